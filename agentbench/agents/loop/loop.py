"""What happens between a model and its tools in one request: the decisions, the same whether it is streamed or not.

`ToolLoop` decides and runs tools; who asks the model is `answer` here and `streaming.updates_of` there. Both hand every
answer to `absorb`, and use what it adds.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from agentbench.agents.history.pending_calls import PendingCalls, RecordedCall, find_pending_calls, is_same_call
from agentbench.agents.loop.answers import Addition, additions_of, merged, sorted_out, with_additions
from agentbench.agents.loop.approvals import ApprovalRecord, take_outcomes, tool_call
from agentbench.agents.loop.batch import Batch, open_calls, plan_batch, run_batch
from agentbench.agents.loop.call import Calling, Outcome, ToolCall
from agentbench.agents.loop.configuration import FunctionInvocationConfiguration
from agentbench.agents.loop.limits import Limits
from agentbench.agents.loop.toolbox import Toolbox, needs_server, without
from agentbench.agents.tools.collection import validate_tools
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse

if TYPE_CHECKING:
    from agentbench.messages.stream import ResponseStream
    from agentbench.messages.update import ChatResponseUpdate

logger = logging.getLogger("agentbench")


class Model(Protocol):
    """What the loop asks, once per round."""

    async def respond(self, messages: list[Message], options: dict[str, Any]) -> ChatResponse[Any]:
        """Ask for an answer."""
        ...

    async def open(
        self, messages: list[Message], options: dict[str, Any]
    ) -> ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        """Ask for a streamed answer."""
        ...


class Request(NamedTuple):
    """What the loop is started with.

    Attributes:
        messages: The input; never changed.
        options: Of the caller; never changed. Tools are as `normalize_tools` gives them.
        configuration: Of the loop.
        middleware: Function middleware, outermost first.
        session: Of the run, if any.
        arguments: What the run hands to its tools.
        own_messages: Whether the working list is made of copies, since somebody marks messages in it.
    """

    messages: list[Message]
    options: Mapping[str, Any]
    configuration: FunctionInvocationConfiguration
    middleware: Sequence[Callable[..., Any]] = ()
    session: Any = None
    arguments: Mapping[str, Any] | None = None
    own_messages: bool = False


class ToolLoop:
    """One request.

    Attributes:
        messages: The working list: what the next call of the model gets.
        options: Of the next call.
        done: Whether the model is not asked again.
    """

    __slots__ = (
        "_calling",
        "_has_additions",
        "_is_internal",
        "_is_kept_by_service",
        "_last_call",
        "_limits",
        "_own",
        "_record",
        "_request",
        "_resolved",
        "_responses",
        "_said",
        "_toolbox",
        "done",
        "messages",
        "options",
    )

    def __init__(self, request: Request) -> None:
        config = request.configuration
        self._request = request
        self.options: dict[str, Any] = dict(request.options)
        self._toolbox: Toolbox | None = None
        self._limits = Limits(config)
        self._record = ApprovalRecord(request.session)
        self._calling: Calling | None = None
        self.messages: list[Message] = []
        self.done = False
        self._said: list[Message] = []
        self._has_additions = False
        self._responses: list[ChatResponse[Any]] = []
        self._resolved: list[tuple[Message, list[Message]]] | None = None
        self._last_call = mode_of(self.options.get("tool_choice")) == "none"
        self._is_internal = self._is_kept_by_service = False

    # ------------------------------------------------------------------------------------------------ before the model

    async def begin(self) -> list[Addition]:
        """Take in what a person answered to earlier questions, and set up the working list.

        Returns:
            What there is to say although the model was not asked; the loop is done then.
        """
        messages = self._request.messages
        additions: list[Addition] = []
        pending = None
        if self._request.configuration["enabled"]:
            await self._fill_toolbox()
            pending = find_pending_calls(messages, self._record.calls())
        if pending is None:
            messages = list(messages)
        else:
            messages, additions = await self._carry_out(pending)
        self.messages = [own_copy(message) for message in messages] if self._request.own_messages else messages
        return additions

    async def _fill_toolbox(self) -> None:
        tools = self.options.get("tools")
        if not tools:
            return
        if needs_server(tools):
            self.options["tools"] = tools = await validate_tools(tools)
        self._toolbox = Toolbox(tools, self._request.configuration["additional_tools"])

    async def _carry_out(self, pending: PendingCalls) -> tuple[list[Message], list[Addition]]:
        """Make the approved calls; return the messages for the model, and what the answer holds besides."""
        outcomes = await self._run([tool_call(call) for call in pending.approved]) if pending.approved else []
        take_outcomes(pending, outcomes, self._record)
        messages, replaced = pending.resolve(has_service=bool(self.options.get("conversation_id")))
        questions, _, has_ended = sorted_out((), outcomes)
        if has_ended:  # the results are the answer, so no message is stored with them
            additions = additions_of(questions, pending.results)
        else:
            additions = additions_of(questions, [])
            self._resolved = replaced or None
        if additions:
            self.done = True
            self._said = with_additions((), additions)
            self._has_additions = True
        elif outcomes:
            self._limit()
        return messages, additions

    # ------------------------------------------------------------------------------------------------- after the model

    async def absorb(self, response: ChatResponse[Any]) -> list[Addition]:
        """Take in an answer of the model, and run the tools that it calls.

        Returns:
            What follows its messages: questions to a person, results.

        Raises:
            KeyError: It called a tool that is not there, and the configuration makes that an error.
        """
        self._responses.append(response)
        self._note_conversation(response)
        calls = open_calls(response.messages) if self._toolbox is not None and not self._last_call else []
        if not calls or self._toolbox is None:
            self._said.extend(response.messages)
            self.done = True
            return []
        config = self._request.configuration
        batch = plan_batch(
            calls,
            self._toolbox,
            terminate_on_unknown=config["terminate_on_unknown_calls"],
            ask_alone=config.get("approval_scope") == "call",
        )
        self._limits.count_round()
        outcomes = await self._run([ToolCall(call) for call in batch.calls]) if batch.calls else []
        questions, results, has_ended = sorted_out(batch.questions, outcomes)
        if questions:
            self._note_requests(batch, outcomes)
        additions = additions_of(questions, results)
        said = with_additions(response.messages, additions)
        self._said.extend(said)
        self._has_additions = True
        if questions or has_ended:
            self.done = True
        else:
            self._go_on(said, additions)
        return additions

    def _note_requests(self, batch: Batch, outcomes: Sequence[Outcome]) -> None:
        """Record the calls that a person is asked about if later messages will not show them."""
        asked = [RecordedCall(one.function_call) for one in batch.questions if one.function_call is not None]
        if self._is_internal or self._is_kept_by_service:
            for call, outcome in zip(batch.calls, outcomes, strict=True):
                if outcome.requests:
                    asked.append(RecordedCall(call, outcome.requests))
            for one in asked:
                self._record.add(one)
        else:  # models use ids again
            self._record.replace(lambda known: any(is_same_call(known, one.call) for one in asked))

    def _note_conversation(self, response: ChatResponse[Any]) -> None:
        """Remember under which id the service keeps the conversation, or that somebody here does."""
        if response.has_internal_conversation_id():
            self._is_internal = True
        elif response.conversation_id:
            self._is_kept_by_service = True
            self.options["conversation_id"] = response.conversation_id

    def _go_on(self, said: list[Message], additions: list[Addition]) -> None:
        """Prepare the next call of the model."""
        if self._is_internal or self._is_kept_by_service:
            self.messages = [Message(addition.role, addition.contents) for addition in additions]
        else:
            self.messages.extend([own_copy(message) for message in said] if self._request.own_messages else said)
        if mode_of(self.options.get("tool_choice")) == "required":
            del self.options["tool_choice"]
        self._limit()

    def _limit(self) -> None:
        """Take away the tools that were used up or failed too often, or all of them once a limit is reached."""
        limits, toolbox = self._limits, self._toolbox
        reason = limits.reached()
        if limits.failed_too_often and toolbox is not None:
            for name in limits.failed_too_often:
                toolbox.taken_away[name] = "This tool failed too often and cannot be called again in this request."
            limits.failed_too_often.clear()
            self.options["tools"] = without(self.options["tools"], toolbox.taken_away)
            if not self.options["tools"]:
                reason = "no tool is left"
        if reason is not None:
            logger.info("The model is asked once more, without tools: %s.", reason)
            self._last_call = True
            self.options["tool_choice"] = "none"

    # ------------------------------------------------------------------------------------------------------------ tools

    async def _run(self, calls: Sequence[ToolCall]) -> list[Outcome]:
        request, limits = self._request, self._limits
        if self._calling is None:
            self._calling = Calling(request.configuration, request.middleware, request.session, request.arguments or {})
        room = limits.room()
        outcomes = await run_batch(calls, self._toolbox or Toolbox(()), self._calling, room=room)
        limits.count(outcomes, len(calls) if room is None else min(len(calls), room))
        return outcomes

    # ------------------------------------------------------------------------------------------------------ the answer

    def response(self) -> ChatResponse[Any]:
        """The answer as a whole: all messages of all rounds, the usage of all calls, everything else from the last.

        Only now the session goes on with the conversation of the service: before, there may be calls without results.
        """
        session = self._request.session
        if session is not None and self._is_kept_by_service:
            session.service_session_id = self.options["conversation_id"]
        if len(self._responses) == 1 and not self._has_additions:
            return self._signed(self._responses[0])
        return self._signed(merged(self._responses, self._said))

    def _signed(self, response: ChatResponse[Any]) -> ChatResponse[Any]:
        """Return an answer with what only the loop knows; an answer that a client may keep stays as it is."""
        response_format = self.options.get("response_format")
        is_unformed = response_format is not None and response.response_format is None
        if not (is_unformed or self._resolved or self._is_internal):
            return response
        signed = copy.copy(response)
        if is_unformed:
            signed.response_format = response_format
        if self._is_internal:
            signed.conversation_id = None
            signed.additional_properties = dict(response.additional_properties)
            signed.clear_internal_conversation_id()
        signed._resolved_inputs = self._resolved  # noqa: SLF001 - a slot that is there for this
        return signed


async def answer(loop: ToolLoop, model: Model) -> ChatResponse[Any]:
    """Ask the model until it has no more calls, and return everything that was said."""
    await loop.begin()
    while not loop.done:
        await loop.absorb(await model.respond(loop.messages, loop.options))
    return loop.response()


def own_copy(message: Message) -> Message:
    """Return a copy of a message that can be marked: its additional properties are its own."""
    copied = copy.copy(message)
    copied.additional_properties = dict(message.additional_properties)
    return copied


def mode_of(tool_choice: Any) -> Any:
    """The mode of a tool choice, however it is written."""
    return tool_choice if tool_choice is None or isinstance(tool_choice, str) else tool_choice.get("mode")
