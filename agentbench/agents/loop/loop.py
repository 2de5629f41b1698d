"""The loop between a model and its tools in one request.

`ToolLoop` decides what is done and runs the tools, the same whether the answer is streamed or not. `answer` and
`stream_answer` call the model: they hand each of its answers to `absorb`, which returns what follows it.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from agentbench import _clock
from agentbench.agents.history.pending_calls import PendingCalls, RecordedCall, has_pending_calls, is_same_call
from agentbench.agents.loop.answers import Addition, merge_responses, sort_outcomes, with_additions
from agentbench.agents.loop.approvals import ApprovalRecord, take_outcomes, tool_call
from agentbench.agents.loop.batch import Batch, Toolbox, open_calls, plan_batch, run_batch
from agentbench.agents.loop.call import Calling, Outcome, ToolCall
from agentbench.agents.loop.configuration import FunctionInvocationConfiguration
from agentbench.agents.tools.collection import is_mcp_tool, tool_name, validate_tools
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate

logger = logging.getLogger("agentbench")


class Model(Protocol):
    """The model, called once per round."""

    async def respond(self, messages: list[Message], options: dict[str, Any]) -> ChatResponse[Any]:
        """Return its answer."""
        ...

    async def open(
        self, messages: list[Message], options: dict[str, Any]
    ) -> ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        """Return the stream of its answer."""
        ...


class Request(NamedTuple):
    """The input of the loop; messages and options of the caller are never changed.

    `middleware` is that of functions, and `arguments` are for tools. With `own_messages` the working list is made of
    copies, since compaction marks messages in it.
    """

    messages: list[Message]
    options: Mapping[str, Any]
    configuration: FunctionInvocationConfiguration
    middleware: Sequence[Callable[..., Any]] = ()
    session: Any = None
    arguments: Mapping[str, Any] | None = None
    own_messages: bool = False


class Limits:
    """Counts what a request uses up of the limits of its configuration.

    Attributes:
        rounds: How many calls of the model led to tool calls.
        failed_too_often: Names of tools to be taken away one by one, where errors are counted for each tool.
    """

    def __init__(self, config: FunctionInvocationConfiguration) -> None:
        self._config = config
        self.rounds = self._executed = self._errors = 0
        self._most_errors = max(config["max_consecutive_errors_per_request"], 1)
        self._errors_of: dict[str, int] | None = {} if config.get("error_scope") == "tool" else None
        self.failed_too_often: list[str] = []
        self._begin_ns = 0 if config.get("max_duration_s") is None else _now_ns()

    def room(self) -> int | None:
        """Return how many calls of the next batch may be made; `None` for all of them."""
        most = self._config["max_function_calls"]
        if most is None or not self._config.get("strict_max_function_calls", False):
            return None
        return max(most - self._executed, 0)

    def count(self, outcomes: Sequence[Outcome], executed: int) -> None:
        """Count a batch and its errors."""
        self._executed += executed
        if self._errors_of is None:
            self._errors = self._errors + 1 if [outcome for outcome in outcomes if outcome.failed] else 0
            return
        failing = {outcome.name for outcome in outcomes if outcome.failed}
        for name in {outcome.name for outcome in outcomes}:
            self._errors_of[name] = self._errors_of.get(name, 0) + 1 if name in failing else 0
            if self._errors_of[name] == self._most_errors:
                self.failed_too_often.append(name)

    def reason_to_stop(self) -> str | None:
        """Return the limit that is used up, so that the model gets no tools any more; `None` if none is."""
        config, most = self._config, self._config["max_function_calls"]
        if self.rounds >= config["max_iterations"]:
            return f"max_iterations={config['max_iterations']}"
        if most is not None and self._executed >= most:
            return f"max_function_calls={most}"
        if self._errors >= self._most_errors:
            return f"max_consecutive_errors_per_request={config['max_consecutive_errors_per_request']}"
        duration_s = config.get("max_duration_s")
        if duration_s is not None and _now_ns() >= self._begin_ns + duration_s * 1e9:
            return f"max_duration_s={duration_s}"
        return None


def _now_ns() -> int:
    return _clock.runtime_defaults().clock.perf_ns()


class ToolLoop:
    """One request.

    Attributes:
        messages: The working list: the messages for the next call of the model.
        options: The options of the next call.
        done: Whether the model is not called again.
    """

    def __init__(self, request: Request) -> None:
        config = request.configuration
        self._request = request
        self.options: dict[str, Any] = dict(request.options)
        self._toolbox: Toolbox | None = None
        self._limits = Limits(config)
        self._calling: Calling | None = None
        self.messages: list[Message] = []
        self.done = False
        self._answer: list[Message] = []
        self._has_additions = False
        self._responses: list[ChatResponse[Any]] = []
        self._resolved: list[tuple[Message, list[Message]]] | None = None
        self._last_call = mode_of(self.options.get("tool_choice")) == "none"
        self._is_internal = self._is_stored_by_service = False

    async def begin(self) -> list[Addition]:
        """Carry out the answers to earlier requests, set up the working list, and return what the answer begins with.

        If there is something, the loop is done without a call of the model.
        """
        messages = self._request.messages
        additions: list[Addition] = []
        pending = None
        if self._request.configuration["enabled"]:
            tools = self.options.get("tools")
            if tools:
                if any(is_mcp_tool(tool) for tool in tools if not isinstance(tool, FunctionTool)):
                    self.options["tools"] = tools = await validate_tools(tools)
                self._toolbox = Toolbox(tools, self._request.configuration["additional_tools"])
            if has_pending_calls(messages):
                pending = PendingCalls(messages, ApprovalRecord(self._request.session).calls())
        if pending is None:
            messages = list(messages)
        else:
            messages, additions = await self._carry_out(pending)
        self.messages = [own_copy(message) for message in messages] if self._request.own_messages else messages
        return additions

    async def _carry_out(self, pending: PendingCalls) -> tuple[list[Message], list[Addition]]:
        """Make the approved calls; return the messages for the model, and what the answer holds besides."""
        outcomes = await self._run([tool_call(call) for call in pending.approved]) if pending.approved else []
        take_outcomes(pending, outcomes, ApprovalRecord(self._request.session))
        messages, replaced = pending.resolve(has_service=bool(self.options.get("conversation_id")))
        requests, _, has_ended = sort_outcomes((), outcomes)
        additions = [Addition("assistant", requests)] if requests else []
        if not has_ended:
            self._resolved = replaced or None
        elif results := pending.results:  # they are the answer, so no message is stored with them
            additions.append(Addition("tool", results))
        if additions:
            self.done = True
            self._answer = with_additions((), additions)
            self._has_additions = True
        elif outcomes:
            self._limit()
        return messages, additions

    async def absorb(self, response: ChatResponse[Any]) -> list[Addition]:
        """Add an answer of the model, run the tools that it calls, and return what follows its messages."""
        self._responses.append(response)
        if response.additional_properties and response.has_internal_conversation_id():
            self._is_internal = True
        elif response.conversation_id:
            self._is_stored_by_service = True
            self.options["conversation_id"] = response.conversation_id
        calls = open_calls(response.messages) if self._toolbox is not None and not self._last_call else []
        if not calls or self._toolbox is None:
            self._answer.extend(response.messages)
            self.done = True
            return []
        config = self._request.configuration
        batch = plan_batch(
            calls,
            self._toolbox,
            terminate_on_unknown=config["terminate_on_unknown_calls"],
            ask_alone=config.get("approval_scope") == "call",
        )
        self._limits.rounds += 1
        outcomes = await self._run([ToolCall(call) for call in batch.calls]) if batch.calls else []
        requests, additions, has_ended = sort_outcomes(batch.requests, outcomes)
        if requests:
            self._record_requests(batch, outcomes)
        messages = with_additions(response.messages, additions)
        self._answer.extend(messages)
        self._has_additions = True
        if requests or has_ended:
            self.done = True
            return additions
        if self._is_internal or self._is_stored_by_service:
            self.messages = [Message(addition.role, addition.contents) for addition in additions]
        else:
            self.messages.extend([own_copy(one) for one in messages] if self._request.own_messages else messages)
        if mode_of(self.options.get("tool_choice")) == "required":
            del self.options["tool_choice"]
        self._limit()
        return additions

    def _record_requests(self, batch: Batch, outcomes: Sequence[Outcome]) -> None:
        """Record the calls that wait for a person, if later messages will not show them."""
        record = ApprovalRecord(self._request.session)
        waiting = [RecordedCall(one.function_call) for one in batch.requests if one.function_call is not None]
        if self._is_internal or self._is_stored_by_service:
            for call, outcome in zip(batch.calls, outcomes, strict=True):
                if outcome.requests:
                    waiting.append(RecordedCall(call, outcome.requests))
            for one in waiting:
                record.add(one)
        else:  # models use ids again
            record.replace(lambda known: any(is_same_call(known, one.call) for one in waiting))

    def _limit(self) -> None:
        """Take away the tools that were used up or failed too often, or all of them once a limit is reached."""
        limits, toolbox = self._limits, self._toolbox
        reason = limits.reason_to_stop()
        if limits.failed_too_often and toolbox is not None:
            for name in limits.failed_too_often:
                toolbox.taken_away[name] = "This tool failed too often and cannot be called again in this request."
            limits.failed_too_often.clear()
            left = [tool for tool in self.options["tools"] if tool_name(tool) not in toolbox.taken_away]
            self.options["tools"] = left
            if not left:
                reason = "no tool is left"
        if reason is not None:
            logger.info("The model is called once more, without tools: %s.", reason)
            self._last_call = True
            self.options["tool_choice"] = "none"

    async def _run(self, calls: Sequence[ToolCall]) -> list[Outcome]:
        request, limits = self._request, self._limits
        room = limits.room()
        if self._calling is None:
            self._calling = Calling(request.configuration, request.middleware, request.session, request.arguments or {})
        outcomes = await run_batch(calls, self._toolbox or Toolbox(()), self._calling, room=room)
        limits.count(outcomes, len(calls) if room is None else min(len(calls), room))
        return outcomes

    def response(self) -> ChatResponse[Any]:
        """Return the whole answer: the messages and the usage of all rounds, everything else from the last.

        Only now the session continues the conversation of the service: before, it may have calls without results.
        """
        session = self._request.session
        if session is not None and self._is_stored_by_service:
            session.service_session_id = self.options["conversation_id"]
        if len(self._responses) == 1 and not self._has_additions:
            response = self._responses[0]
        else:
            response = merge_responses(self._responses, self._answer)
        response_format = self.options.get("response_format")
        is_unformed = response_format is not None and response.response_format is None
        if not (is_unformed or self._resolved or self._is_internal):
            return response
        completed = copy.copy(response)  # clients may hold the response itself
        if is_unformed:
            completed.response_format = response_format
        if self._is_internal:
            completed.conversation_id = None
            completed.additional_properties = dict(response.additional_properties)
            completed.clear_internal_conversation_id()
        completed._resolved_inputs = self._resolved  # noqa: SLF001 - a slot that is there for this
        return completed


async def answer(loop: ToolLoop, model: Model) -> ChatResponse[Any]:
    """Call the model until it has no more calls, and return the whole answer."""
    await loop.begin()
    while not loop.done:
        await loop.absorb(await model.respond(loop.messages, loop.options))
    return loop.response()


def stream_answer(loop: ToolLoop, model: Model) -> ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
    """Return the stream of a request; nothing happens before its first pull.

    Its final response is put together from those of the calls, since result hooks of a call may have changed them.
    """
    return ResponseStream(_updates(loop, model), finalizer=lambda _: loop.response())


async def _updates(loop: ToolLoop, model: Model) -> AsyncGenerator[ChatResponseUpdate, None]:
    """Call the model until it has no more calls; closing this closes the stream of the current call."""
    for addition in await loop.begin():
        yield ChatResponseUpdate(role=addition.role, contents=addition.contents)
    continues_message = True  # whether an update without a role belongs to a message of the model
    while not loop.done:
        stream = await model.open(loop.messages, loop.options)
        try:
            async for update in stream:
                if not continues_message and not update.role:
                    # What has no role continues the message before it, and that one is the tools'.
                    update = copy.copy(update)
                    update.role = "assistant"
                continues_message = True
                yield update
            response: Any = await stream.get_final_response()
            if not isinstance(response, ChatResponse):  # a middleware made a stream that has no finalizer
                response = ChatResponse.from_updates(stream.updates)
        finally:
            await stream.aclose()
        continues_message = False
        for addition in await loop.absorb(response):
            token = response.continuation_token
            yield ChatResponseUpdate(role=addition.role, contents=addition.contents, continuation_token=token)


def own_copy(message: Message) -> Message:
    """Return a copy of a message that can be marked: its additional properties are its own."""
    copied = copy.copy(message)
    copied.additional_properties = dict(message.additional_properties)
    return copied


def mode_of(tool_choice: Any) -> Any:
    """Return the mode of a tool choice, however it is written."""
    return tool_choice if tool_choice is None or isinstance(tool_choice, str) else tool_choice.get("mode")
