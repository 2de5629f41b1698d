"""Calls of a conversation that wait for an answer: what a person allows, and the conversation as the model sees it.

Services refuse a call that no result follows, and a result that does not follow its call. The rule that sees to it:

- An answer counts until the model speaks again. Its result stands right behind the call.
- What has no result or answer by then is told as unanswered; an answer that the model has spoken after is never acted
  upon again.
- An answer that comes later than that is a call of its own: it is told anew, under an id of its own, with its result
  behind it, since what was said before stays said. So is an answer to what the conversation does not hold.
- What is made is the call of the conversation. An answer that tells another one is refused.
- A call is made once: further answers to it are left out.

Pure: nothing is awaited, and no message that was given is changed.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import is_
from typing import Final, NamedTuple, cast

from agentbench.agents.history.open_calls import UNANSWERED, is_same_call
from agentbench.agents.loop.call import Outcome, ToolCall, changed, rejection
from agentbench.agents.loop.waiting import WaitingCall
from agentbench.agents.sessions.attribution import ATTRIBUTION
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message

REQUEST: Final = "function_approval_request"
RESPONSE: Final = "function_approval_response"
REFUSED: Final = "Error: The answer is about another call than the one that was asked about. The call was not made."
UNKEPT: Final = "The call was approved, and made at that time; its result was not kept."
_KINDS: Final = frozenset((REQUEST, RESPONSE))
_TAKEN: Final = _KINDS | {"function_call", "function_result"}


class Resolved(NamedTuple):
    """A conversation after the answers were taken in.

    Attributes:
        messages: As the model sees it; what did not change is the same object.
        replaced: Each message with what is to be remembered in its place, if that is something else, or nothing.
    """

    messages: list[Message]
    replaced: list[tuple[Message, list[Message]]]


class Approvals:
    """The requests, answers and open calls in a conversation.

    Args:
        messages: The conversation.
        made: Calls that somebody was asked about before, with their results if they were made, where the messages need
            not tell.

    Attributes:
        allowed: The calls to be made now, in order; `take` wants to know what came of them.
    """

    __slots__ = ("_asked", "_calls", "_home", "_known", "_made", "_making", "_messages", "_open", "_stays", "allowed")

    def __init__(self, messages: Sequence[Message], made: Sequence[tuple[Content, Content | None]] = ()) -> None:
        self._messages, self._made = messages, made
        self._calls: list[WaitingCall] = []
        self._known: dict[str, WaitingCall] = {}  # the last call of an id
        self._asked: dict[str, tuple[WaitingCall, Content]] = {}  # by the id of the request
        self._open: list[WaitingCall] = []
        self._making: list[WaitingCall] = []
        self.allowed: list[ToolCall] = []
        self._home: int | None = None  # where results that are new are remembered: the first message of the user
        self._stays = [self._read(at, message) for at, message in enumerate(messages)]
        self._close(is_over=False)

    # ---------------------------------------------------------------------------------------------------- reading it

    def _read(self, at: int, message: Message) -> list[Content]:
        """Take in a message, and return those of its contents that are to be remembered."""
        again: set[int] = set()
        if message.role == "assistant":
            if self._open:
                again = {id(one) for one in message.contents if one.type == "function_call" and self._is_open(one)}
                if not again:
                    self._close(is_over=True)
            self._home = None
        elif self._home is None and ATTRIBUTION not in message.additional_properties:
            self._home = at
        if _TAKEN.isdisjoint([content.type for content in message.contents]):
            return message.contents
        return [
            one
            for content in message.contents
            if id(content) not in again and (one := self._taken(content, at)) is not None
        ]

    def _is_open(self, call: Content) -> bool:
        """Whether this call waits already: it is told once more by who has not seen the history."""
        known = self._known.get(call.call_id or "")
        return known is not None and known in self._open and is_same_call(known.content, call)

    def _taken(self, content: Content, at: int) -> Content | None:
        kind = content.type
        if kind == "function_call":
            known = self._known.get(content.call_id or "")
            if not _is_of_service(content) and (known is None or known.at != at):
                self._note(WaitingCall(content, at))
            return content
        if kind == "function_result":
            return self._result(content, at)
        if kind not in _KINDS or not _is_ours(content):
            return content
        if kind == REQUEST:
            return self._request(content, at)
        self._response(content, at)
        return None

    def _note(self, call: WaitingCall) -> WaitingCall:
        self._calls.append(call)
        self._open.append(call)
        self._known[call.content.call_id or ""] = call
        return call

    def _result(self, content: Content, at: int) -> Content | None:
        call = self._known.get(content.call_id or "")
        if call is None:
            return content
        if call.result is None or call.is_made_up:
            call.give(content, at)
            return content
        if call.is_closed and (again := self._again(call, at)) is not None:
            again.give(changed(content, call_id=again.content.call_id), at)
        return None

    def _request(self, content: Content, at: int) -> Content | None:
        asked, told = _call_of(content), None
        call = self._known.get(content.call_id or "") or self._known.get(asked.call_id or "")
        if call is None or (call.at != at and call.result is not None and not call.is_made_up):
            call, told = self._note(WaitingCall(asked, at)), asked
        call.ask(content)
        if call not in self._open:
            self._open.append(call)
        self._asked[content.id or ""] = call, content
        return told

    def _response(self, content: Content, at: int) -> None:
        told = _call_of(content)
        call, request = self._asked.get(content.id or "") or (self._known.get(told.call_id or ""), None)
        if call is None:
            known = next((one for one, _ in reversed(self._made) if one.call_id == told.call_id), told)
            untold = self._note(WaitingCall(known, at, is_untold=True))
            untold.answer(content, at, is_about_another=not is_same_call(known, told))
            return
        if call.is_closed:
            call = self._again(call, at)
        if call is None or call.result is not None:
            return
        asked = call.content if request is None else _call_of(request)
        call.answer(content, at, is_about_another=not is_same_call(asked, told))

    def _again(self, call: WaitingCall, at: int) -> WaitingCall | None:
        """Return a call that went unanswered as one of its own; `None` if it is already."""
        call_id = f"{call.content.call_id or ''}_again"
        known = self._known.get(call_id)
        if known is not None and known.at > call.at:
            return None
        again = self._note(WaitingCall(changed(call.content, call_id=call_id), at, is_untold=True))
        again.requests = list(call.requests)
        return again

    # --------------------------------------------------------------------------------------------------- answering it

    def _close(self, *, is_over: bool) -> None:
        """Settle what is open: the model speaks next.

        Args:
            is_over: Whether it has spoken already, so that nothing is made any more.
        """
        for call in self._open:
            if call.result is not None:
                continue
            call.remembered_at = self._home if self._home is not None and call.at < self._home else call.source
            result = self._result_without_making(call)
            if result is not None:
                call.make_up(result)
            elif is_over:
                call.make_up(Content.from_function_result(call.content.call_id or "", result=UNKEPT))
            else:
                self.allowed.append(cast("ToolCall", call.settled()))
                self._making.append(call)
        self._open = []

    def _result_without_making(self, call: WaitingCall) -> Content | None:
        """Return what a call comes to that is not to be made, or was made before."""
        if not call.answers:
            return self._made_before(call.content) or rejection(call.content, UNANSWERED)
        if call.is_about_another:
            return rejection(call.content, REFUSED)
        if call.settled() is None:
            return rejection(call.content)
        return self._made_before(call.content)

    def _made_before(self, call: Content) -> Content | None:
        return next((result for one, result in self._made if result is not None and is_same_call(one, call)), None)

    def take(self, outcomes: Iterable[Outcome]) -> None:
        """Take in what came of the calls that were allowed."""
        for call, outcome in zip(self._making, outcomes, strict=True):
            call.result = outcome.result

    @property
    def results(self) -> list[Content]:
        """What the answers came to, in the order of the calls."""
        return [call.result for call in self._calls if call.answers and call.result is not None]

    def has_result_of(self, call: Content) -> bool:
        """Whether the conversation itself holds the result of a call."""
        return any(one.is_given and is_same_call(one.content, call) for one in self._calls)

    def resolve(self, *, has_service: bool) -> Resolved:
        """Put results in the place of answers, take requests out, and answer what was never answered.

        Args:
            has_service: Whether a service keeps the conversation, and with it the calls that are not in the list.
        """
        shown: dict[int, list[WaitingCall]] = defaultdict(list)
        remembered: dict[int, list[WaitingCall]] = defaultdict(list)
        untold: dict[int, list[WaitingCall]] = defaultdict(list)
        moved: set[int] = set()
        for call in self._calls:
            if call.result is None or (call.is_given and call.source == call.at and not call.is_untold):
                continue  # there is none, or it stands in the message of the call
            if call.is_untold:
                untold[call.at].append(call)
                continue
            shown[call.at].append(call)
            if call.is_given:
                moved.add(id(call.result))
            elif call.remembered_at is not None:
                remembered[call.remembered_at].append(call)
        seen: list[Message] = []
        replaced: list[tuple[Message, list[Message]]] = []
        for at, message in enumerate(self._messages):
            kept = self._stays[at]
            if kept is message.contents and not (at in shown or at in remembered or at in untold):
                seen.append(message)
                continue
            anew = [] if has_service else [call.content for call in untold[at]]
            told = [*_as_message("assistant", anew), *self._as_messages(untold[at])]
            if told or remembered[at] or not _are_same(kept, message.contents):
                own = [_copy(message, message.role, kept)] if kept else []
                replaced.append((message, [*self._as_messages(remembered[at]), *told, *own]))
            rest = [content for content in kept if id(content) not in moved]
            if _are_same(rest, message.contents):
                seen += [*told, message]
            else:
                seen += [*told, *([_copy(message, message.role, rest)] if rest else ())]
            seen += self._as_messages(shown[at])
        return Resolved(seen, replaced)

    def _as_messages(self, calls: Sequence[WaitingCall]) -> list[Message]:
        """Return the results of calls, in a message for each of those that brought them."""
        brought: dict[int | None, list[Content]] = {}
        for call in calls:
            brought.setdefault(call.source, []).append(cast("Content", call.result))
        found: list[Message] = []
        for source, results in brought.items():
            if source is None:
                found.append(Message("tool", results))
            elif _are_same(results, self._messages[source].contents):
                found.append(self._messages[source])
            else:
                found.append(_copy(self._messages[source], "tool", results))
        return found


def find_approvals(
    messages: Sequence[Message], made: Sequence[tuple[Content, Content | None]] = ()
) -> Approvals | None:
    """Return what waits in a conversation, or waited; `None` where nothing does, which is told quickly.

    Args:
        messages: The conversation.
        made: See `Approvals`.
    """
    kinds = {content.type for message in messages for content in message.contents}
    if not kinds.isdisjoint(_KINDS) or ("function_call" in kinds and _has_open_calls(messages)):
        return Approvals(messages, made)
    return None


def _has_open_calls(messages: Sequence[Message]) -> bool:
    """Whether a call has no result right behind it."""
    waiting: set[str | None] = set()
    for message in messages:
        if waiting and message.role != "tool":
            return True
        for content in message.contents:
            if content.type == "function_call" and not _is_of_service(content):
                waiting.add(content.call_id)
            elif content.type == "function_result":
                waiting.discard(content.call_id)
    return bool(waiting)


def _is_ours(content: Content) -> bool:
    """Whether this is about a call that is made here, rather than by the service."""
    call = content.function_call
    return call is not None and not _is_of_service(call)


def _is_of_service(call: Content) -> bool:
    return bool(call.additional_properties.get("server_label"))


def _call_of(content: Content) -> Content:
    return cast("Content", content.function_call)  # there is one where _is_ours says so


def _are_same(some: Sequence[Content], others: Sequence[Content]) -> bool:
    return len(some) == len(others) and all(map(is_, some, others))


def _as_message(role: str, contents: list[Content]) -> list[Message]:
    return [Message(role, contents)] if contents else []


def _copy(message: Message, role: str, contents: list[Content]) -> Message:
    copied = copy.copy(message)
    copied.role, copied.contents = role, contents
    copied.additional_properties = dict(message.additional_properties)
    return copied
