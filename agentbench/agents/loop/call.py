"""One tool call: check arguments, run middleware, and convert failures to a result for the model."""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple

from agentbench._clock import runtime_defaults
from agentbench._secrets import mask_text
from agentbench.agents.history.pending_calls import MADE_UP
from agentbench.agents.loop.configuration import FunctionInvocationConfiguration
from agentbench.agents.middleware.contexts import (
    INNER_APPROVALS,
    RUN_INVOCATIONS,
    FunctionInvocationContext,
    InnerApprovals,
)
from agentbench.agents.middleware.pipeline import run_pipeline
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import (
    NestedLoopError,
    ToolArgumentsError,
    ToolExecutionException,
    ToolResultError,
    UserInputRequiredException,
)
from agentbench.messages.content.content import Content
from agentbench.observability.switches import is_tracing

logger = logging.getLogger("agentbench")

EXCEPTION_TYPE: Final = "_exception_type"
"""Key in the additional properties of a failed result: the class of the error, whose text is `exception`."""

_UNPARSED = "Error: Argument parsing failed."
_FAILED = "Error: Function failed."
_NO_QUESTION = "Error: The tool needs an answer from the user, but it did not provide a question."


class ToolCall(NamedTuple):
    """A tool call to make.

    Attributes:
        approval: A person's answer that approves the call, if it needs approval.
        requests: The approval requests that the tool raised in an earlier call, for calls that it wants to make.
        answers: The answers to these requests.
    """

    content: Content
    approval: Content | None = None
    requests: tuple[Content, ...] = ()
    answers: tuple[Content, ...] = ()


class Outcome(NamedTuple):
    """The outcome of a tool call, with the name of the tool.

    Attributes:
        result: The `function_result`; `None` if a person has to answer first.
        requests: The tool's requests for user input.
        ended: Whether a middleware ended the loop with this result.
    """

    name: str
    result: Content | None
    requests: tuple[Content, ...] = ()
    failed: bool = False
    ended: bool = False


class Calling:
    """The context shared by all calls of a request; tools get `arguments` in addition to the model's."""

    def __init__(
        self,
        configuration: FunctionInvocationConfiguration,
        middleware: Sequence[Callable[..., Any]],
        session: Any,
        arguments: Mapping[str, Any],
    ) -> None:
        self._detailed = configuration.get("include_detailed_errors", False)
        self._threads = configuration.get("sync_tools_in_threads", True)
        self._middleware = middleware
        self._session = session
        self._arguments = arguments
        self._run_invocations: dict[str, int] = {}

    async def run(self, tool: Any, call: ToolCall) -> Outcome:
        """Make one call and return its outcome. Only cancellations and interrupts are raised."""
        content, call_id = call.content, call.content.call_id
        try:
            arguments = _read_arguments(content.arguments)
            if hasattr(tool, "validate_arguments"):
                arguments = tool.validate_arguments(arguments)
        except Exception as error:  # noqa: BLE001 - a validator may raise anything, and so does what is nested too deeply
            return self.failure(content, _UNPARSED, error)
        metadata: dict[str, Any] = {"call_id": call_id, RUN_INVOCATIONS: self._run_invocations}
        if call.approval is not None:
            metadata["approval_response"] = call.approval
        if call.requests:
            metadata[INNER_APPROVALS] = InnerApprovals(call.requests, call.answers)
        context = FunctionInvocationContext(tool, arguments, self._session, metadata, kwargs=dict(self._arguments))
        try:
            ended, is_made_up = await self._invoke(tool, call_id, context)
        except UserInputRequiredException as error:
            return _outcome_of_requests(content, error.contents)
        except NestedLoopError:  # a programming error, which the model cannot fix
            raise
        except Exception as error:  # noqa: BLE001 - what a function raised may be private
            return self.failure(content, _FAILED, error)
        result = context.result
        items = result if isinstance(result, list) else [result]
        requests = [item for item in items if isinstance(item, Content) and item.user_input_request]
        if requests:
            return _outcome_of_requests(content, requests)._replace(ended=ended)
        result = Content.from_function_result(call_id or "", result=items if isinstance(result, Content) else result)
        if is_made_up:
            result.additional_properties[MADE_UP] = True
        return Outcome(content.name or "", result, ended=ended)

    async def _invoke(self, tool: Any, call_id: str | None, context: FunctionInvocationContext) -> tuple[bool, bool]:
        """Call the tool inside middleware; return whether a middleware ended the loop, and whether before the call."""
        if not self._middleware:
            context.result = await self._call(tool, call_id, context)
            return False, False
        is_called = False

        async def innermost() -> None:
            nonlocal is_called
            is_called = True
            context.result = await self._call(tool, call_id, context)

        ended = await run_pipeline(self._middleware, context, innermost)
        return ended, ended and not is_called

    def _call(self, tool: Any, call_id: str | None, context: FunctionInvocationContext) -> Awaitable[Any]:
        keywords: dict[str, Any] = {"arguments": context.arguments, "context": context, "tool_call_id": call_id}
        if not self._threads and isinstance(tool, FunctionTool):
            keywords["in_thread"] = False
        if getattr(tool, "MAKES_OWN_SPANS", False) or not is_tracing():
            return tool.invoke(**keywords)  # type: ignore[no-any-return]
        from agentbench.agents.telemetry.spans import ToolSpan  # noqa: PLC0415 - loads OpenTelemetry

        return ToolSpan(tool, call_id, context.arguments).call(lambda: tool.invoke(**keywords))

    def failure(self, content: Content, text: str, error: Exception, *, known: bool = True) -> Outcome:
        """Return the outcome of a failed call, and log it; private details only at level DEBUG."""
        kind = type(error).__name__
        try:
            text_of_error = str(error)
        except Exception:  # noqa: BLE001 - an error whose own text fails is reported all the same
            text_of_error = kind
        reason = mask_text(text_of_error)
        logger.error("A call of %s failed: %s.", f"the tool {content.name!r}" if known else "an unknown tool", kind)
        logger.debug("Call %r of tool %r failed: %s", content.call_id, content.name, reason, exc_info=error)
        contents: list[Content] = []
        if isinstance(error, ToolArgumentsError) and text is _UNPARSED:
            text = f"{text} {'; '.join(error.problems)}."
        if isinstance(error, ToolResultError):
            text, contents = f"Error: {text_of_error}", error.contents
        elif self._detailed:
            text = f"{text} Exception: {reason}"
        result = Content.from_function_result(
            content.call_id or "",
            result=[Content.from_text(text), *contents] if contents else text,
            exception=reason,
            additional_properties={EXCEPTION_TYPE: kind} if known else None,
        )
        return Outcome(content.name or "", result, failed=True)

    def refusal(self, content: Content, reason: str) -> Outcome:
        """Return the outcome of a call that exceeds a limit of the loop."""
        return self.failure(content, _FAILED, ToolExecutionException(reason, log_level=None))


def _read_arguments(arguments: Any) -> Mapping[str, Any]:
    """Return the arguments of a call by name; parse them if they are JSON text."""
    if not arguments:
        return {}
    if not isinstance(arguments, str):
        return arguments  # type: ignore[no-any-return]
    try:
        read = json.loads(arguments)
    except ValueError as error:
        message = f"The arguments are not valid JSON: {error}"
        raise ToolArgumentsError(message, [message]) from error
    if not isinstance(read, dict):
        message = f"The arguments have type {type(read).__name__}; expected a JSON object"
        raise ToolArgumentsError(message, [message])
    return read


def _outcome_of_requests(call: Content, requests: Sequence[Content]) -> Outcome:
    """Return the outcome of a call with user input requests; copies of the requests refer to the call."""
    if not requests:
        exception = UserInputRequiredException.__name__
        result = Content.from_function_result(call.call_id or "", result=_NO_QUESTION, exception=exception)
        return Outcome(call.name or "", result, failed=True)
    named = (copy_with(one, call_id=call.call_id, id=one.id or _id_for(one, call)) for one in requests)
    return Outcome(call.name or "", None, tuple(named))


def _id_for(request: Content, call: Content) -> str | None:
    return new_approval_id() if request.type == "function_approval_request" else call.call_id


def new_approval_id() -> str:
    """Return an id for an approval request: not the call's, which the model chose and may reuse."""
    return runtime_defaults().ids.new_id("approval")


def copy_with(content: Content, **fields: Any) -> Content:
    """Return a copy of a content with some fields changed."""
    return Content(
        content.type,
        annotations=content.annotations,
        additional_properties=content.additional_properties,
        raw_representation=content.raw_representation,
        **{**content.set_fields(), **fields},
    )
