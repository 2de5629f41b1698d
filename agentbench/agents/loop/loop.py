"""The tool loop of one request.

`ToolLoop` makes all decisions and runs the tools, for streamed and other answers alike. `answer` and `stream_answer`
call the model and pass each answer to `absorb`, which returns the messages that follow it.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agentbench import _clock
from agentbench.agents.history.pending_calls import (
    UNANSWERED,
    PendingCall,
    PendingCalls,
    RecordedCall,
    ResolvedStart,
    end_of_stored,
    has_pending_calls,
    is_same_call,
)
from agentbench.agents.history.unique_calls import RecordedCalls, UniqueCalls, with_unique_calls
from agentbench.agents.loop.call import (
    REQUEST_APPROVAL,
    Batch,
    Calling,
    Outcome,
    Toolbox,
    ToolCall,
    open_calls,
    plan_batch,
    run_batch,
)
from agentbench.agents.loop.configuration import FunctionInvocationConfiguration
from agentbench.agents.sessions.session import ANSWERING, RESOLVED_START, AgentSession
from agentbench.agents.tools.collection import is_mcp_tool, validate_tools
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import AgentInvalidRequestException
from agentbench.messages.content.addition import mend_messages
from agentbench.messages.content.content import ASKED_TOOL, EDITED_ARGUMENTS, Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate
from agentbench.messages.usage import UsageDetails, add_usage_details

if TYPE_CHECKING:
    from agentbench.agents.loop.tool_approval import StandingApprovals

logger = logging.getLogger("agentbench")


class Model(Protocol):
    """The model; it is called once per round."""

    async def respond(self, messages: list[Message], options: dict[str, Any]) -> ChatResponse[Any]:
        """Return the model's answer."""

    async def open(
        self, messages: list[Message], options: dict[str, Any]
    ) -> ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        """Return the model's streamed answer."""


class Addition(NamedTuple):
    """Contents that the loop adds to an answer: results (role `tool`) or user input requests (`assistant`)."""

    role: str
    contents: list[Content]


class ToolLoop:
    """The state of one request. The caller's messages and options are not changed.

    `messages` and `options` are for the next model call; the messages in `resolved_start` are not read again. With
    `own_messages` they are copies of what it returns for a conversation, because compaction marks them.
    """

    def __init__(
        self,
        messages: list[Message],
        options: Mapping[str, Any],
        configuration: FunctionInvocationConfiguration,
        middleware: Sequence[Callable[..., Any]] = (),
        session: Any = None,
        arguments: Mapping[str, Any] | None = None,
        *,
        own_messages: Callable[[list[Message]], list[Message]] | None = None,
    ) -> None:
        self.messages, self._configuration, self._session = messages, configuration, session
        self.resolved_start: ResolvedStart | None = None
        self.standing: StandingApprovals | None = None
        self._middleware, self._arguments, self._own_messages = middleware, arguments or {}, own_messages
        self.options: dict[str, Any] = dict(options)
        self._toolbox: Toolbox | None = None
        self._rounds = self._executed = self._errors = 0  # errors are reset by a batch without errors
        self._most_errors = max(configuration["max_consecutive_errors_per_request"], 1)
        self._errors_of: dict[str, int] | None = {} if configuration.get("error_scope") == "tool" else None
        is_timed = configuration.get("max_duration_seconds") is not None
        self._begin_ns = _clock.runtime_defaults().clock.perf_ns() if is_timed else 0
        self._calling: Calling | None = None
        self.done = False
        self._answer: list[Message] = []
        self._has_additions = False
        self._responses: list[ChatResponse[Any]] = []
        self._resolved: list[tuple[Message, list[Message]]] | None = None
        self._last_call = mode_of(self.options.get("tool_choice")) == "none"
        self._is_internal = self._is_stored_by_service = False
        self._earlier_conversation = None if session is None else getattr(session, "service_session_id", None)

    async def begin(self) -> list[Addition]:
        """Apply the answers to earlier requests, set up the working list, and return the start of the answer.

        If the result is not empty, the loop ends without a model call.
        """
        messages = self.messages
        additions: list[Addition] = []
        if self._configuration["enabled"]:
            tools = self.options.get("tools")
            if tools:
                if any(is_mcp_tool(tool) for tool in tools if not isinstance(tool, FunctionTool)):
                    self.options["tools"] = tools = await validate_tools(tools)
                self._toolbox = Toolbox(tools, self._configuration["additional_tools"], self.standing)
            messages, pending = self._read()
            if pending is not None:
                toolbox = self._toolbox or Toolbox([], standing=self.standing)
                latest = self.messages[pending.resolved_until :]
                if toolbox.restore_changes(self._session, [one for message in latest for one in message.contents]):
                    self._toolbox, self.options["tools"] = toolbox, toolbox.offered
                more, additions = await self._carry_out(pending)
                if self.done:
                    toolbox.keep_changes(self._session, [one for addition in additions for one in addition.contents])
                messages += more
        own_messages = self._own_messages
        self.messages = messages if own_messages is None else [own_copy(one) for one in own_messages(messages)]
        return additions

    def _read(self) -> tuple[list[Message], PendingCalls | None]:
        """Return the conversation for the model; if calls are pending, only the resolved start and these calls."""
        messages, resolved_start, pending = self.messages, self.resolved_start, None
        start = 0 if resolved_start is None else len(resolved_start.messages)
        if has_pending_calls(messages, start):
            recorded = self._recorded.read()
            pending = PendingCalls(messages, recorded, start)
            if start and pending.refers_back:
                resolved_start, start = None, 0
                pending = PendingCalls(messages, recorded)
            for reason in pending.dropped:
                logger.warning("Dropped an approval: %s.", reason)
        conversation = messages if pending is None else messages[:start]
        if resolved_start is not None and resolved_start.replacements:
            conversation = resolved_start.resolve(conversation)
        if isinstance(self._session, AgentSession) and not self.options.get("conversation_id"):
            resolved_start = resolved_start or ResolvedStart()
            end = end_of_stored(messages, start) if pending is None else pending.resolved_until
            if pending is not None:
                resolved_start.replacements += pending.replacements()
            resolved_start.messages += messages[start:end]
            vars(self._session)[RESOLVED_START] = resolved_start
        return conversation, pending

    async def _carry_out(self, pending: PendingCalls) -> tuple[list[Message], list[Addition]]:
        """Make the approved calls; return the messages for the model, and the additions to the answer."""
        calls, approved, requests = self._take_approvals(pending)
        waiting_of = {id(call): waiting for call, waiting in zip(calls, approved, strict=True)}
        with self._answering(approved):
            outcomes = (
                await self._run(calls, lambda call, one: self._record_outcome(waiting_of[id(call)], one))
                if calls
                else []
            )
        self._recorded.drop(pending.has_result_of)
        for waiting, call, outcome in zip(approved, calls, outcomes, strict=True):
            waiting.result = outcome.result
            if outcome.result is not None and call.content is not waiting.content:  # for readers of the history
                outcome.result.additional_properties[EDITED_ARGUMENTS] = call.content.arguments
            self._record_outcome(waiting, outcome)
        messages, replaced = pending.resolve(has_service=bool(self.options.get("conversation_id")))
        requests += _requests_of(outcomes)
        additions = [Addition("assistant", requests)] if requests else []
        if not any(outcome.ended for outcome in outcomes):
            self._resolved = replaced or None
        elif results := pending.results:  # they are the answer, so they are not stored with a message
            additions.append(Addition("tool", results))
        if additions:
            self.done = self._has_additions = True
            self._answer = [Message(addition.role, addition.contents) for addition in additions]
        elif outcomes:
            self._limit()
        return messages, additions

    def _take_approvals(self, pending: PendingCalls) -> tuple[list[ToolCall], list[PendingCall], list[Content]]:
        """Return the approved calls to make, what was waiting for each, and new requests for calls of changed tools."""
        calls, approved, requests = list[ToolCall](), list[PendingCall](), list[Content]()
        for waiting in pending.approved:
            # A tool that raised requests for its own calls has started, so it gets all answers, including rejections.
            inner = waiting.inner_requests
            if inner and not self._was_approved(waiting):
                waiting.result = Content.from_function_result(waiting.content.call_id or "", result=UNANSWERED)
                continue
            answers = tuple(waiting.answers) if inner else ()
            content, approval = waiting.content, waiting.approval
            if not inner and approval is not None:
                content = _with_edited_arguments(content, approval)
                if (again := self._take_approval(waiting, content, approval)) is not None:
                    requests.append(again)
                    continue
            calls.append(ToolCall(content, approval, inner, answers))
            approved.append(waiting)
        return calls, approved, requests

    def _take_approval(self, waiting: PendingCall, call: Content, approval: Content) -> Content | None:
        """Keep an approval that is for later calls too; return a new request if the tool has changed since the request.

        What a person was asked is in the request: an answer may contain anything.
        """
        request = next((one for one in waiting.requests if one.id == approval.id), None)
        if self._toolbox is None or request is None:
            return None
        if self._toolbox.is_changed_since(request, call):
            logger.warning("The tool %r has changed since the request to approve its call, so the call was not made. "
                           "A new request asks again.", call.name)  # fmt: skip
            again = self._toolbox.approval_request(waiting.content)
            if waiting.is_repeated:  # the messages do not contain the call
                self._recorded.add(RecordedCall(waiting.content, (again,)))
            return again
        if self.standing is not None:
            asked = request.additional_properties.get(ASKED_TOOL)
            self.standing.add(self._toolbox.tools.get(call.name or ""), call, approval, asked)
        return None

    @contextmanager
    def _answering(self, calls: Sequence[PendingCall]) -> Iterator[None]:
        """Refuse calls that another run of this session is making: an approval that is sent twice makes its call once.

        Requests that a tool raised about its own calls are left out: an agent inside it may share the session.
        """
        runs: dict[str | None, ToolLoop] = {}
        if isinstance(self._session, AgentSession):
            runs = vars(self._session).setdefault(ANSWERING, runs)
        ids = [request.id for call in calls if not call.inner_requests for request in call.requests]
        try:
            for one in ids:
                if runs.setdefault(one, self) is not self:
                    message = f"Another run of this session is making the call of request {one!r}. Wait for that run."
                    raise AgentInvalidRequestException(message)
            yield
        finally:
            for one in ids:
                if runs.get(one) is self:
                    del runs[one]

    @property
    def _recorded(self) -> RecordedCalls:
        return RecordedCalls(self._session)

    def _needs_approval(self, call: Content) -> bool:
        return self._toolbox is not None and self._toolbox.kind_of(call) == REQUEST_APPROVAL

    def _was_approved(self, call: PendingCall) -> bool:
        """Return whether a tool that raised requests for its own calls was itself approved, if necessary."""
        recorded = (one.call for one in self._recorded.read() if one.is_approved)
        return (
            call.was_approved
            or not self._needs_approval(call.content)
            or any(is_same_call(one, call.content) for one in recorded)
        )

    def _record_outcome(self, call: PendingCall, outcome: Outcome) -> None:
        """Record the outcome of an approved call immediately, so that a later failure does not repeat the call."""
        if outcome.result is not None:
            self._recorded.add(RecordedCall(call.content, tuple(call.requests), outcome.result))
        elif call.is_repeated or self._needs_approval(call.content):
            self._recorded.add(RecordedCall(call.content, outcome.requests, is_approved=True))

    async def absorb(self, response: ChatResponse[Any]) -> list[Addition]:
        """Add a model's answer, run the tools that it calls, and return the additions that follow its messages."""
        response = with_unique_calls(response)
        messages = mend_messages(response.messages)
        if messages is not response.messages:
            response = copy.copy(response)
            response.messages = messages
        self._responses.append(response)
        if response.additional_properties and response.has_internal_conversation_id():
            self._is_internal = True
        elif response.conversation_id:
            self._is_stored_by_service = True
            self.options["conversation_id"] = response.conversation_id
            if self._session is not None:  # immediately, because tools of this request may read it
                self._session.service_session_id = response.conversation_id
        calls = open_calls(response.messages) if self._toolbox is not None and not self._last_call else []
        if not calls or self._toolbox is None:
            self._answer.extend(response.messages)
            self.done = True
            return []
        config = self._configuration
        batch = plan_batch(
            calls,
            self._toolbox,
            terminate_on_unknown=config["terminate_on_unknown_calls"],
            ask_alone=config.get("approval_scope") == "call",
        )
        self._rounds += 1
        self.options.pop("continuation_token", None)  # it belonged to the answer that is now complete
        outcomes = await self._run([ToolCall(call) for call in batch.calls]) if batch.calls else []
        requests = [*batch.requests, *_requests_of(outcomes)]
        results = [outcome.result for outcome in outcomes if outcome.result is not None]
        additions = [Addition("tool", results)] if results else []
        if requests:
            additions.insert(0, Addition("assistant", requests))
            self._record_requests(batch, outcomes)
            self._toolbox.keep_changes(self._session, requests)
        messages = _with_additions(response.messages, additions)
        self._answer.extend(messages)
        self._has_additions = True
        if requests or any(outcome.ended for outcome in outcomes):
            self.done = True
            return additions
        if self._is_internal or self._is_stored_by_service:
            self.messages = [Message(addition.role, addition.contents) for addition in additions]
        else:
            self.messages.extend([own_copy(one) for one in messages] if self._own_messages else messages)
        if mode_of(self.options.get("tool_choice")) == "required":
            del self.options["tool_choice"]
        self._limit()
        return additions

    async def _run(
        self, calls: Sequence[ToolCall], note: Callable[[ToolCall, Outcome], None] | None = None
    ) -> list[Outcome]:
        """Make as many calls as the limits allow, and count calls and errors."""
        config, room = self._configuration, None
        most = config["max_function_calls"]
        if most is not None and config.get("strict_max_function_calls", False):
            room = max(most - self._executed, 0)
        if self._calling is None:
            self._calling = Calling(config, self._middleware, self._session, self._arguments)
        running = run_batch(calls, self._toolbox or Toolbox([]), self._calling, room=room, note=note)
        outcomes = await (running if self.standing is None else self.standing.around(running))
        self._executed += len(calls[:room])
        if self._errors_of is None:
            self._errors = self._errors + 1 if any(outcome.failed for outcome in outcomes) else 0
        else:
            failing = {outcome.name for outcome in outcomes if outcome.failed}
            for name in {outcome.name for outcome in outcomes}:
                self._errors_of[name] = self._errors_of.get(name, 0) + 1 if name in failing else 0
        return outcomes

    def _limit(self) -> None:
        """Disable tools that failed too often, or all tools if a limit is reached."""
        reason = self._reached_limit()
        if self._errors_of is not None and self._toolbox is not None:
            text = "This tool failed too often and cannot be called again in this request."
            for name, errors in self._errors_of.items():
                if errors == self._most_errors:
                    self._toolbox.take_away(name, text)
            if self._toolbox.taken_away and not self._toolbox.offered:
                reason = "all tools are disabled"
        if self._toolbox is not None and self._toolbox.is_changed:
            self.options["tools"] = self._toolbox.offered
        if reason is not None:
            logger.info("Calling the model a last time without tools: %s.", reason)
            self._last_call = True
            self.options["tool_choice"] = "none"

    def _reached_limit(self) -> str | None:
        config: Mapping[str, Any] = self._configuration
        most, duration_s = config["max_function_calls"], config.get("max_duration_seconds")
        if self._rounds >= config["max_iterations"]:
            name = "max_iterations"
        elif most is not None and self._executed >= most:
            name = "max_function_calls"
        elif self._errors >= self._most_errors:
            name = "max_consecutive_errors_per_request"
        elif duration_s is not None and _clock.runtime_defaults().clock.perf_ns() >= self._begin_ns + duration_s * 1e9:
            name = "max_duration_seconds"
        else:
            return None
        return f"{name}={config[name]}"

    def _record_requests(self, batch: Batch, outcomes: Sequence[Outcome]) -> None:
        """Record the calls that wait for a person, if later messages will not contain them."""
        waiting = [RecordedCall(one.function_call, (one,)) for one in batch.requests if one.function_call is not None]
        if self._is_internal or self._is_stored_by_service:
            pairs = zip(batch.calls, outcomes, strict=True)
            waiting += [RecordedCall(call, outcome.requests) for call, outcome in pairs if outcome.requests]
            for one in waiting:
                self._recorded.add(one)
        else:  # models reuse ids
            self._recorded.drop(lambda known: any(is_same_call(known, one.call) for one in waiting))

    def abandon(self) -> None:
        """Keep the session from continuing a failed request's conversation, whose calls may lack results."""
        if self._session is not None and self._is_stored_by_service:
            self._session.service_session_id = self._earlier_conversation

    def response(self, *, is_streamed: bool = False) -> ChatResponse[Any]:
        """Return the complete answer: messages and usage of all rounds, other fields from the last round.

        The conversation id of a streamed answer is the last one that the service sent, as in its updates.
        """
        if len(self._responses) == 1 and not self._has_additions:
            response = self._responses[0]
        else:
            response = _merge_responses(self._responses, self._answer)
            if self._responses and not is_streamed:
                response.conversation_id = self._responses[-1].conversation_id
        response_format = self.options.get("response_format")
        is_unformed = response_format is not None and response.response_format is None
        if not (is_unformed or self._resolved or self._is_internal):
            return response
        completed = copy.copy(response)  # clients may keep a reference to the response
        if is_unformed:
            completed.response_format = response_format
        if self._is_internal:
            completed.conversation_id = None
            completed.additional_properties = dict(response.additional_properties)
            completed.clear_internal_conversation_id()
        completed._resolved_inputs = self._resolved  # noqa: SLF001 - a slot that is there for this
        return completed


async def answer(loop: ToolLoop, model: Model) -> ChatResponse[Any]:
    """Call the model until it makes no more calls, and return the complete answer."""
    try:
        await loop.begin()
        while not loop.done:
            await loop.absorb(await model.respond(loop.messages, loop.options))
    except BaseException:
        loop.abandon()
        raise
    return loop.response()


def stream_answer(loop: ToolLoop, model: Model) -> ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
    """Return the stream of a request; its final response combines those of the model calls."""
    return ResponseStream(_updates(loop, model), finalizer=lambda _: loop.response(is_streamed=True))


async def _updates(loop: ToolLoop, model: Model) -> AsyncGenerator[ChatResponseUpdate, None]:
    """Call the model until it makes no more calls; closing this closes the stream of the current call."""
    try:
        for addition in await loop.begin():
            yield ChatResponseUpdate(role=addition.role, contents=addition.contents)
        continues_message = True  # whether an update without a role belongs to a model message
        while not loop.done:
            stream = await model.open(loop.messages, loop.options)
            calls = UniqueCalls()
            try:
                async for received in stream:
                    update = calls.rename(received)
                    if not continues_message and not update.role:
                        # An update without a role continues the previous message, which is a tool message.
                        update = copy.copy(update)
                        update.role = "assistant"
                    continues_message = True
                    yield update
                response: Any = await stream.get_final_response()
                if not isinstance(response, ChatResponse):  # a middleware returned a stream without a finalizer
                    response = ChatResponse.from_updates(stream.updates)
            finally:
                await stream.aclose()
            continues_message = False
            for addition in await loop.absorb(response):
                token = response.continuation_token
                yield ChatResponseUpdate(role=addition.role, contents=addition.contents, continuation_token=token)
    except BaseException:
        loop.abandon()
        raise


def own_copy(message: Message) -> Message:
    """Return a copy of a message with its own additional properties, so that it can be marked."""
    copied = copy.copy(message)
    copied.additional_properties = dict(message.additional_properties)
    return copied


def mode_of(tool_choice: Any) -> Any:
    """Return the mode of a tool choice in any form."""
    return tool_choice if tool_choice is None or isinstance(tool_choice, str) else tool_choice.get("mode")


def _with_edited_arguments(call: Content, approval: Content) -> Content:
    """Return the call with the arguments that the person edited, if there are any."""
    if EDITED_ARGUMENTS not in approval.additional_properties:
        return call
    edited = approval.additional_properties[EDITED_ARGUMENTS]
    return Content.from_function_call(call.call_id or "", call.name or "", arguments=edited)


def _requests_of(outcomes: Iterable[Outcome]) -> list[Content]:
    return [request for outcome in outcomes for request in outcome.requests]


def _with_additions(messages: Sequence[Message], additions: Iterable[Addition]) -> list[Message]:
    """Append additions to messages, in the same way as combining their updates.

    A returned call replaces the call that it is a copy of. Changed messages are copied.
    """
    combined = list(messages)
    for role, contents in additions:
        remaining = _put_back(combined, contents) if role == "assistant" else contents  # results have another role
        if remaining and combined and combined[-1].role == role:
            combined[-1] = copy.copy(combined[-1])
            combined[-1].contents = [*combined[-1].contents, *remaining]
        elif remaining:
            combined.append(Message(role, remaining))
    return combined


def _put_back(messages: list[Message], contents: list[Content]) -> list[Content]:
    """Replace the calls of which some contents are copies; return the other contents."""
    back = {one.call_id: one for one in contents if one.type == "function_call" and one.call_id}
    used = set[str | None]()
    for index, message in enumerate(messages if back else ()):
        ids = back.keys() & {one.call_id for one in message.contents if one.type == "function_call"}
        if ids:
            used |= ids
            messages[index] = copied = copy.copy(message)
            copied.contents = [
                back[one.call_id] if one.type == "function_call" and one.call_id in ids else one
                for one in message.contents
            ]
    return [one for one in contents if one.call_id not in used or one.type != "function_call"] if used else contents


def _merge_responses(responses: Sequence[ChatResponse[Any]], messages: list[Message]) -> ChatResponse[Any]:
    """Return the last response with other messages, the total usage, and fields that only earlier ones have."""
    if not responses:
        return ChatResponse(messages=messages)
    whole = copy.copy(responses[-1])
    whole.messages = messages
    whole.additional_properties = {}
    usage: UsageDetails | None = None
    for response in responses:
        if response.usage_details is not None:
            usage = add_usage_details(usage, response.usage_details)
        if response.additional_properties:
            whole.additional_properties.update(response.additional_properties)
    whole.usage_details = usage
    for name in ("response_id", "conversation_id", "model", "created_at", "finish_reason"):
        if not getattr(whole, name):
            for response in reversed(responses):
                if value := getattr(response, name):
                    setattr(whole, name, value)
                    break
    return whole
