"""Calls of tools: check arguments, run middleware, convert failures to results; all calls of one answer."""

from __future__ import annotations

import asyncio
import json
import logging
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from agentbench._clock import runtime_defaults
from agentbench._secrets import mask_text
from agentbench.agents.history.pending_calls import MADE_UP
from agentbench.agents.loop.configuration import FunctionInvocationConfiguration
from agentbench.agents.middleware.contexts import (
    INNER_APPROVALS,
    RUN_INVOCATIONS,
    TOOLS_OF_RUN,
    FunctionInvocationContext,
    InnerApprovals,
)
from agentbench.agents.middleware.sorting import run_pipeline
from agentbench.agents.sessions.session import CHANGED_TOOLS, AgentSession
from agentbench.agents.tools.collection import enter_tool, is_mcp_tool, normalize_tools, tool_name
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import (
    MiddlewareFailure,
    NestedLoopError,
    ToolArgumentsError,
    ToolExecutionException,
    ToolResultError,
    UserInputRequiredException,
)
from agentbench.messages.answers import ANSWER
from agentbench.messages.content.content import ASKED_TOOL, HANDOFF, STANDING, Content
from agentbench.messages.message import Message
from agentbench.observability.switches import is_tracing

if TYPE_CHECKING:
    from agentbench.agents.loop.tool_approval import StandingApprovals

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
        ended: Whether the loop ends with this result: a middleware ended it, or the call is a handoff.
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

    async def run(self, tool: Any, call: ToolCall, toolbox: Toolbox) -> Outcome:
        """Make one call and return its outcome. Only cancellations and interrupts are raised."""
        content, call_id = call.content, call.content.call_id
        try:
            arguments = _read_arguments(content.arguments)
            if hasattr(tool, "validate_arguments"):
                arguments = tool.validate_arguments(arguments)
        except Exception as error:  # noqa: BLE001 - a validator may raise anything, and so does what is nested too deeply
            return self.failure(content, _UNPARSED, error)
        metadata: dict[str, Any] = {"call_id": call_id, RUN_INVOCATIONS: self._run_invocations, TOOLS_OF_RUN: toolbox}
        if call.approval is not None:
            metadata["approval_response"] = call.approval
        if call.requests:
            metadata[INNER_APPROVALS] = InnerApprovals(call.requests, call.answers)
        context = FunctionInvocationContext(tool, arguments, self._session, metadata, kwargs=dict(self._arguments))
        try:
            ended, is_called = False, True
            if self._middleware:
                ended, is_called = await self._run_middleware(tool, call_id, context)
            else:
                context.result = await self._call(tool, call_id, context)
        except UserInputRequiredException as error:
            return _outcome_of_requests(content, error.contents)
        except (NestedLoopError, MiddlewareFailure):  # errors that the model cannot fix
            raise
        except Exception as error:  # noqa: BLE001 - what a function raised may be private
            return self.failure(content, _FAILED, error)
        outcome = _outcome_of(content, context.result, ended=ended, is_made_up=ended and not is_called)
        target = getattr(tool, "_ab_handoff", None)
        return outcome if target is None or not is_called else _handed_over(outcome, target)

    async def _run_middleware(
        self, tool: Any, call_id: str | None, context: FunctionInvocationContext
    ) -> tuple[bool, bool]:
        """Call the tool inside middleware; return whether a middleware ended the loop, and whether there was a call."""
        is_called = False

        async def innermost() -> None:
            nonlocal is_called
            is_called = True
            context.result = await self._call(tool, call_id, context)

        ended = await run_pipeline(self._middleware, context, innermost)
        return ended, is_called

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


def _outcome_of(call: Content, found: Any, *, ended: bool, is_made_up: bool) -> Outcome:
    """Return the outcome of a call whose tool returned `found`."""
    items = found if isinstance(found, list) else [found]
    requests = [item for item in items if isinstance(item, Content) and item.user_input_request]
    if requests:
        return _outcome_of_requests(call, requests)._replace(ended=ended)
    result = Content.from_function_result(call.call_id or "", result=items if isinstance(found, Content) else found)
    if is_made_up:
        result.additional_properties[MADE_UP] = True
    return Outcome(call.name or "", result, ended=ended)


def _handed_over(outcome: Outcome, target: str) -> Outcome:
    """Return the outcome of a call that hands the conversation over to a node of a state graph."""
    if outcome.result is None:
        return outcome
    outcome.result.additional_properties[HANDOFF] = target
    return outcome._replace(ended=True)


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


# ---- all calls of one answer


RUN: Final = "run"
REQUEST_APPROVAL: Final = "request approval"
HAND_BACK: Final = "hand back"
UNKNOWN: Final = "unknown"

_changing = threading.Lock()


class Toolbox:
    """The tools of one request by name. `taken_away` tools failed too often; `additional` tools are not run here.

    The calls of an answer may change the tools from several threads. The list `offered` is replaced, never changed.
    `standing` are the approvals of earlier requests that are valid for this one.
    """

    def __init__(
        self, tools: list[Any], additional: Sequence[Any] = (), standing: StandingApprovals | None = None
    ) -> None:
        self.offered = tools
        self.added: list[Any] = []
        self.removed: set[str] = set()
        self.tools: dict[str, Any] = {}
        for tool in tools:
            enter_tool(self.tools, tool)
        self._additional = {tool_name(tool) for tool in normalize_tools(additional)} if additional else frozenset[str]()
        self.taken_away: dict[str, str] = {}
        self.standing = standing

    @property
    def is_changed(self) -> bool:
        """Whether the tools that are offered are no longer those of the request."""
        return bool(self.added or self.removed or self.taken_away)

    def add(self, tools: Any) -> None:
        """Offer further tools; raise if a different tool has the same name, or if a server is not connected."""
        for tool in (found := normalize_tools(tools)):
            if is_mcp_tool(tool) and not tool.is_connected:
                message = f"{tool!r} is not connected. Connect it before its tools are added: await server.connect()."
                raise ValueError(message)
        with _changing:
            by_name = dict(self.tools)
            new = [tool for tool in _with_functions(found) if enter_tool(by_name, tool)]
            self.tools, self.offered, self.added = by_name, [*self.offered, *new], [*self.added, *new]

    def remove(self, tools: Any) -> None:
        """Stop offering tools, which are passed themselves or by name."""
        items = [tools] if isinstance(tools, (str, Mapping)) or not isinstance(tools, Iterable) else list(tools)
        names = {item for item in items if isinstance(item, str)}
        found = normalize_tools([item for item in items if not isinstance(item, str)])
        names.update(name for tool in _with_functions(found) if (name := tool_name(tool)))
        with _changing:
            self.tools = {name: tool for name, tool in self.tools.items() if name not in names}
            self.offered = [tool for tool in self.offered if tool_name(tool) not in names]
            self.added = [tool for tool in self.added if tool_name(tool) not in names]
            self.removed |= names

    def keep_changes(self, session: Any, requests: Iterable[Content]) -> None:
        """Keep what was added and removed, for the run that continues with the answers to these requests."""
        if isinstance(session, AgentSession) and (self.added or self.removed):
            changes = (self.added, self.removed)
            vars(session).setdefault(CHANGED_TOOLS, {}).update((one.id or one.call_id, changes) for one in requests)

    def restore_changes(self, session: Any, contents: Iterable[Content]) -> bool:
        """Add and remove what was added and removed before the answered requests; return whether there was any.

        Other runs of the session, for example of another agent, do not get the tools.
        """
        kept = vars(session).get(CHANGED_TOOLS) if isinstance(session, AgentSession) else None
        if not kept:
            return False
        answered = [one.id or one.call_id for one in contents if one.type in (ANSWER, "function_result")]
        changes = next((kept[one] for one in answered if one in kept), None)
        if changes is None:
            return False
        vars(session)[CHANGED_TOOLS] = {one: other for one, other in kept.items() if other is not changes}
        added, removed = changes
        self.remove(removed)
        self.add([tool for tool in added if tool_name(tool) not in self.tools])
        return True

    def take_away(self, name: str, reason: str) -> None:
        """Stop offering a tool, and refuse its calls with a reason."""
        self.taken_away[name] = reason
        self.offered = [tool for tool in self.offered if tool_name(tool) != name]

    def kind_of(self, call: Content) -> str:
        """Classify a call: `RUN`, `REQUEST_APPROVAL`, `HAND_BACK` or `UNKNOWN`."""
        name = call.name
        if name in self._additional:
            return HAND_BACK
        tool = self.tools.get(name or "")
        if tool is None:
            return UNKNOWN
        if getattr(tool, "approval_mode", None) == "always_require" and not (
            self.standing is not None and self.standing.approves(tool, call)
        ):
            return REQUEST_APPROVAL
        if isinstance(tool, FunctionTool):
            return HAND_BACK if tool.func is None else RUN
        return RUN if hasattr(tool, "invoke") and not getattr(tool, "declaration_only", False) else HAND_BACK

    def approval_request(self, call: Content) -> Content:
        """Return the request to approve a call: what its tool is and can do, and whether an approval can be kept."""
        from agentbench.agents.sessions.tool_approvals import identity_of  # noqa: PLC0415 - few runs ask a person

        tool = self.tools.get(call.name or "")
        facts: dict[str, Any] = {ASKED_TOOL: identity_of(tool)}
        if capabilities := getattr(tool, "capabilities", ()):
            facts["capabilities"] = [*capabilities]
        if self.standing is not None and self.kind_of(call) == REQUEST_APPROVAL:
            facts[STANDING] = True
        return Content.from_function_approval_request(new_approval_id(), call, additional_properties=facts)

    def is_changed_since(self, request: Content, call: Content) -> bool:
        """Return whether a call needs approval, but another tool than that of the request would run.

        Requests that the loop did not make do not name a tool.
        """
        from agentbench.agents.sessions.tool_approvals import identity_of  # noqa: PLC0415 - few runs ask a person

        return (
            self.kind_of(call) == REQUEST_APPROVAL
            and ASKED_TOOL in request.additional_properties
            and request.additional_properties[ASKED_TOOL] != identity_of(self.tools.get(call.name or ""))
        )


def _with_functions(tools: Sequence[Any]) -> list[Any]:
    """Return tools with the functions of servers instead of the servers."""
    return [one for tool in tools for one in (tool.functions if is_mcp_tool(tool) else [tool])]


class Batch(NamedTuple):
    """The calls of one answer to make now, and the approval requests instead of them or in addition."""

    calls: list[Content]
    requests: list[Content]


def open_calls(messages: Iterable[Message]) -> list[Content]:
    """Return the calls of an answer that have no result in it."""
    calls: list[Content] = []
    done = set[str | None]()
    for message in messages:
        for content in message.contents:
            if content.type == "function_call":
                calls.append(content)
            elif content.type == "function_result" and content.call_id:
                done.add(content.call_id)
    return [call for call in calls if call.call_id not in done] if done else calls


def plan_batch(calls: Sequence[Content], toolbox: Toolbox, *, terminate_on_unknown: bool, ask_alone: bool) -> Batch:
    """Plan the calls of an answer: the first call that is not simply run decides for all.

    With `ask_alone`, only the calls that need approval wait, and the others are made. With
    `terminate_on_unknown` a call of an unknown tool raises a KeyError.
    """
    waiting: list[Content] = []
    for call in calls:
        kind = toolbox.kind_of(call)
        if kind == REQUEST_APPROVAL:
            if not ask_alone:
                return Batch([], [toolbox.approval_request(one) for one in calls])
            waiting.append(call)
        elif kind == HAND_BACK:
            return Batch([], [copy_with(one, id=one.call_id, user_input_request=True) for one in calls])
        elif kind == UNKNOWN and terminate_on_unknown:
            raise _unknown_tool(call)
    if not waiting:
        return Batch([*calls], [])
    remaining = [call for call in calls if not any(call is one for one in waiting)]
    return Batch(remaining, [toolbox.approval_request(call) for call in waiting])


async def run_batch(
    calls: Sequence[ToolCall],
    toolbox: Toolbox,
    calling: Calling,
    *,
    room: int | None = None,
    note: Callable[[ToolCall, Outcome], None] | None = None,
) -> list[Outcome]:
    """Make at most `room` calls concurrently, and return the outcomes of all in the order of the calls.

    `note` is called with each outcome immediately, so that it is recorded even if other calls fail or are cancelled.
    """
    running = [_run(call, toolbox, calling, note) for call in calls[:room]]
    if len(running) == 1:
        outcomes = [await running[0]]
    else:
        tasks = [asyncio.ensure_future(one) for one in running]
        try:
            outcomes = await asyncio.gather(*tasks)
        except BaseException:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            raise
    if len(outcomes) < len(calls):
        reason = "The maximum number of calls for this request is reached; this call was not made."
        outcomes += [calling.refusal(call.content, reason) for call in calls[len(outcomes) :]]
    return outcomes


async def _run(
    call: ToolCall, toolbox: Toolbox, calling: Calling, note: Callable[[ToolCall, Outcome], None] | None
) -> Outcome:
    content, name = call.content, call.content.name or ""
    if name in toolbox.taken_away:
        return calling.refusal(content, toolbox.taken_away[name])
    tool = toolbox.tools.get(name)
    if tool is None:
        text = f'Error: Requested function "{content.name}" not found.'
        return calling.failure(content, text, _unknown_tool(content), known=False)
    outcome = await calling.run(tool, call, toolbox)
    if note is not None:
        note(call, outcome)
    return outcome


def _unknown_tool(call: Content) -> KeyError:
    return KeyError(f"Requested function {call.name!r} not found.")
