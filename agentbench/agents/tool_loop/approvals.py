"""Calls of a conversation that wait for an answer: what a person allows, and the conversation as the model sees it.

Services refuse a call that no result follows, and a result that does not follow its call. So answers of a person
become results, results that came late are put behind their calls, and what was never answered is told as such.

Pure: nothing is awaited, and no message that was given is changed.
"""

from __future__ import annotations

import copy
from collections import defaultdict
from collections.abc import Iterable, Sequence
from operator import is_
from typing import Final, NamedTuple, cast

from agentbench.agents.sessions.open_calls import UNANSWERED
from agentbench.agents.tool_loop.call import Outcome, ToolCall, rejection
from agentbench.agents.tool_loop.waiting import WaitingCall, is_same_call
from agentbench.messages.content import Content
from agentbench.messages.message import Message

REQUEST: Final = "function_approval_request"
RESPONSE: Final = "function_approval_response"
_KINDS: Final = frozenset((REQUEST, RESPONSE))
_OF_THE_MODEL: Final = frozenset(("assistant", "tool"))


class Resolved(NamedTuple):
    """A conversation after the answers were taken in.

    Attributes:
        messages: As the model sees it; what did not change is the same object.
        replaced: Each message with what is to be remembered in its place, if that is something else: one pair for
            each, so several with one message that was split.
    """

    messages: list[Message]
    replaced: list[tuple[Message, Message]]


class Approvals:
    """The requests, answers and open calls in a conversation.

    Attributes:
        allowed: The calls to be made now, in order; `take` wants to know what came of them.
    """

    __slots__ = ("_answered", "_asked", "_calls", "_kept", "_late", "_made", "_messages", "_open", "_talk", "allowed")

    def __init__(self, messages: Sequence[Message]) -> None:
        self._messages = messages
        self._calls: list[WaitingCall] = []
        self._open: dict[str, WaitingCall | None] = {}  # by the id of the call; None once there is a result
        self._asked: dict[str, WaitingCall] = {}  # by the id of the request
        self._late: set[int] = set()  # results that are put elsewhere, by identity
        self._talk = 0  # how many messages of others than the model and its tools were read
        self._kept = [self._read(at, message) for at, message in enumerate(messages)]
        self._answered = [call for call in self._calls if call.result is None and call.answers]
        settled = [(call, call.settled()) for call in self._answered]
        self._made = [call for call, wanted in settled if wanted is not None]
        self.allowed: list[ToolCall] = [wanted for _, wanted in settled if wanted is not None]
        for call, wanted in settled:
            if wanted is None:
                call.result = rejection(call.content)

    # ---------------------------------------------------------------------------------------------------- reading it

    def _read(self, at: int, message: Message) -> list[Content]:
        """Take in a message, and return those of its contents that are to be remembered."""
        kept = [one for content in message.contents if (one := self._taken(content, at)) is not None]
        if kept and message.role not in _OF_THE_MODEL:
            self._talk += 1
        return kept

    def _taken(self, content: Content, at: int) -> Content | None:
        kind = content.type
        if kind == "function_call":
            return content if _is_of_service(content) else self._call(content, at)
        if kind == "function_result":
            return self._result(content)
        if kind not in _KINDS or not _is_ours(content):
            return content
        if kind == REQUEST:
            return self._request(content, at)
        self._response(content, at)
        return None

    def _call(self, content: Content, at: int) -> Content | None:
        known = self._open.get(content.call_id or "")
        if known is None or known.is_untold or not is_same_call(known.content, content):
            self._note(WaitingCall(content, at, self._talk))
        elif known.at != at:
            return None  # told once more by who answers without having seen the history
        return content

    def _result(self, content: Content) -> Content:
        call_id = content.call_id or ""
        call = self._open.get(call_id)
        if call is not None:
            call.result = content
            call.is_late = call.talk != self._talk
            if call.is_late:
                self._late.add(id(content))
        self._open[call_id] = None
        return content

    def _request(self, content: Content, at: int) -> Content | None:
        asked, told = _call_of(content), None
        call_id = asked.call_id or ""
        call = (self._open.get(content.call_id) if content.call_id else None) or self._open.get(call_id)
        if call is None:
            if call_id in self._open:
                return None  # it has its result
            call = self._note(WaitingCall(asked, at, self._talk))
            told = asked
        if call.is_untold:
            return None  # it was answered before
        call.ask(content)
        self._asked[content.id or ""] = call
        return told

    def _response(self, content: Content, at: int) -> None:
        asked = _call_of(content)
        call_id = asked.call_id or ""
        call = self._asked.get(content.id or "") or self._open.get(call_id)
        if call is None and call_id not in self._open:
            call = self._note(WaitingCall(asked, at, self._talk, is_untold=True))
        if call is not None and call.result is None:
            call.answer(content, at, self._talk)

    def _note(self, call: WaitingCall) -> WaitingCall:
        self._calls.append(call)
        self._open[call.content.call_id or ""] = call
        return call

    # --------------------------------------------------------------------------------------------------- answering it

    def take(self, outcomes: Iterable[Outcome]) -> None:
        """Take in what came of the calls that were allowed."""
        for call, outcome in zip(self._made, outcomes, strict=True):
            call.result = outcome.result

    @property
    def results(self) -> list[Content]:
        """What the answers came to, in the order of the calls."""
        return [call.result for call in self._answered if call.result is not None]

    def resolve(self, *, has_service: bool) -> Resolved:
        """Put results in the place of answers, take requests out, and answer what was never answered.

        Args:
            has_service: Whether a service keeps the conversation, and with it the calls that are not in the list.
        """
        answered: dict[int, list[WaitingCall]] = defaultdict(list)
        behind: dict[int, list[Content]] = defaultdict(list)
        made_up: dict[int, list[Content]] = defaultdict(list)
        for call in self._calls:
            if call.result is None and not call.answers and (call.requests or call.talk < self._talk):
                result = rejection(call.content, UNANSWERED)
                made_up[call.at].append(result)
                behind[call.at].append(result)
            elif call.result is not None and call.is_late:
                behind[call.at].append(call.result)
                self._late.add(id(call.result))
        for call in self._answered:
            if call.result is not None:
                answered[call.answered_at].append(call)
        seen: list[Message] = []
        replaced: list[tuple[Message, Message]] = []
        for at, message in enumerate(self._messages):
            told = self._told(at, answered[at], has_service=has_service)
            if made_up[at] or len(told) != 1 or told[0] is not message:
                replaced.extend((message, one) for one in (*told, *_as_message("tool", made_up[at])))
            seen.extend(one for part in told if (one := self._without_late(part)).contents or one is message)
            seen.extend(_as_message("tool", behind[at]))
        return Resolved(seen, replaced)

    def _told(self, at: int, answered: Sequence[WaitingCall], *, has_service: bool) -> list[Message]:
        """Return what is to be remembered of a message."""
        message, kept = self._messages[at], self._kept[at]
        if len(kept) == len(message.contents) and all(map(is_, kept, message.contents)):
            return [message]
        untold = [call.content for call in answered if call.is_untold and not has_service]
        results = [call.result for call in answered if call.result is not None]
        return [
            *_as_message("assistant", untold),
            *([_copy(message, "tool", results)] if results else ()),
            *([_copy(message, message.role, kept)] if kept else ()),
        ]

    def _without_late(self, message: Message) -> Message:
        kept = [content for content in message.contents if id(content) not in self._late]
        return message if len(kept) == len(message.contents) else _copy(message, message.role, kept)


def find_approvals(messages: Sequence[Message]) -> Approvals | None:
    """Return what waits in a conversation, or waited; `None` where nothing does, which is told quickly."""
    kinds = {content.type for message in messages for content in message.contents}
    if not kinds.isdisjoint(_KINDS) or ("function_call" in kinds and _has_open_calls(messages)):
        return Approvals(messages)
    return None


def _has_open_calls(messages: Sequence[Message]) -> bool:
    """Whether somebody goes on after a call that has no result yet."""
    waiting: set[str | None] = set()
    for message in messages:
        if message.role not in _OF_THE_MODEL:
            if waiting:
                return True
            continue
        for content in message.contents:
            if content.type == "function_call" and not _is_of_service(content):
                waiting.add(content.call_id)
            elif content.type == "function_result":
                waiting.discard(content.call_id)
    return False


def _is_ours(content: Content) -> bool:
    """Whether this is about a call that is made here, rather than by the service."""
    call = content.function_call
    return call is not None and not _is_of_service(call)


def _is_of_service(call: Content) -> bool:
    return bool(call.additional_properties.get("server_label"))


def _call_of(content: Content) -> Content:
    return cast("Content", content.function_call)  # there is one where _is_ours says so


def _as_message(role: str, contents: list[Content]) -> list[Message]:
    return [Message(role, contents)] if contents else []


def _copy(message: Message, role: str, contents: list[Content]) -> Message:
    copied = copy.copy(message)
    copied.role, copied.contents = role, contents
    copied.additional_properties = dict(message.additional_properties)
    return copied
