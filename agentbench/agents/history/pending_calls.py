"""Find the open calls of a conversation, and convert the conversation to the form that services accept.

Services reject a call without a result directly after it, and a result without its call. Therefore:

- An answer to an approval request is valid until the model speaks again; its result comes directly after the call. A
  call without an answer by then gets the result `UNANSWERED`.
- A later answer or result repeats its call: call and result are inserted before the message that contains it. The same
  applies to an answer whose request is only in the session.
- Only messages with the role `user` can answer, and only requests in the conversation or the session; other answers are
  dropped. The call in the conversation is executed. An answer whose tool or arguments differ from its request, or whose
  request differs from the call, is rejected.
- A call is executed once: further answers and results are ignored.

All of this is read from the messages, because callers may pass them without a session; `ToolLoop` only records there
what the messages do not show. Messages are not changed; messages that have to differ are copied.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from operator import is_
from typing import Final, NamedTuple, cast

from agentbench.agents.sessions.session_context import ATTRIBUTION
from agentbench.messages.answers import ANSWER, with_contents
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message


class Replacement(NamedTuple):
    """The replacement for the model of the messages from `first` up to `last` (exclusive)."""

    first: int
    last: int
    messages: list[Message]


class ResolvedStart:
    """The start of a conversation in which every call has a result; the session keeps it for later requests."""

    __slots__ = ("messages", "replacements")

    def __init__(self) -> None:
        self.messages: list[Message] = []
        self.replacements: list[Replacement] = []

    def resolve(self, messages: list[Message]) -> list[Message]:
        """Convert messages that start with the resolved ones to the form for the model."""
        resolved: list[Message] = []
        at = 0
        for first, last, instead in self.replacements:
            resolved += messages[at:first]
            resolved += instead
            at = last
        resolved += messages[at:]
        return resolved

    def begins(self, messages: list[Message]) -> bool:
        """Return whether messages start with the resolved ones; messages with replacements must be identical."""
        start, length = self.messages, len(self.messages)
        if not 0 < length <= len(messages) or start[0] is not messages[0] or start[-1] is not messages[length - 1]:
            return False
        start += messages[length:]  # lists of equal length are compared without a copy; no other request uses this list
        is_same = start == messages
        del start[length:]
        replaced = (at for first, last, _ in self.replacements for at in range(first, last))
        return is_same and all(start[at] is messages[at] for at in replaced)


# ---- calls and answers


UNANSWERED: Final = "Error: Tool call was not answered."
REJECTED: Final = "Error: Tool call invocation was rejected by user."
REFUSED: Final = "Error: The answer does not match the call of its request. The call was not made."
RESULT_LOST: Final = "The call was approved and executed earlier, but its result is lost."

MADE_UP: Final = "_made_up"
"""Key in the additional properties of a result with which a middleware ended the loop before the tool was called."""

_REQUEST: Final = "function_approval_request"
_QUESTIONS: Final = frozenset((_REQUEST, ANSWER))
_RELEVANT: Final = _QUESTIONS | {"function_call", "function_result"}


class RecordedCall(NamedTuple):
    """A call that the session recorded because the messages may not show it, with its requests and optional result.

    If `is_approved`, the call was approved and has started, and the requests are for calls that it wants to make.
    """

    call: Content
    requests: tuple[Content, ...] = ()
    result: Content | None = None
    is_approved: bool = False


@dataclass(slots=True, eq=False)
class PendingCall:
    """A call of a conversation with its approval requests, their answers and its result.

    Attributes:
        at: Index of the message that contains the call, or before which the call is repeated.
        requests: The approval requests of the last round; each round is in a separate message.
        requested_at: Index of the message with these requests.
        is_about_another: Whether an answer does not match its request, or a request does not match the call.
        was_approved: Whether an earlier round of requests approved the call itself.
        result: The `function_result`; `None` until the call has been made.
        source: Index of the message with the result or the first answer; a history stores it before `stored_at`.
    """

    content: Content
    at: int
    is_repeated: bool = False
    requests: list[Content] = field(default_factory=list)
    requested_at: int | None = None
    answers: list[Content] = field(default_factory=list)
    is_about_another: bool = False
    was_approved: bool = False
    result: Content | None = None
    source: int | None = None
    stored_at: int | None = None

    @property
    def inner_requests(self) -> tuple[Content, ...]:
        """The requests for calls that the tool itself wants to make, for example an agent that runs as a tool."""
        return tuple(request for request in self.requests if self.is_inner(request))

    def is_inner(self, request: Content) -> bool:
        """Return whether a request is for a call that the tool itself wants to make."""
        inner = request.function_call
        own_call = (self.content.call_id, self.content.name)
        return bool(request.call_id) and inner is not None and (inner.call_id, inner.name) != own_call

    @property
    def approval(self) -> Content | None:
        """The first answer, if all answers approve."""
        return self.answers[0] if all(answer.approved is True for answer in self.answers) else None


class PendingCalls:
    """Reads a conversation from `start`, with the calls that its session recorded; earlier calls have results.

    Attributes:
        approved: The calls to make now, in order. The loop sets each `result` before it calls `resolve`.
        refers_back: Whether messages may refer to calls before `start`.
        resolved_until: Index of the model's last message. Later messages do not change anything before it.
        dropped: The reason for each invalid answer.
    """

    def __init__(self, messages: Sequence[Message], recorded: Sequence[RecordedCall] = (), start: int = 0) -> None:
        self._messages, self._recorded, self._start = messages, recorded, start
        self.refers_back, self.resolved_until = False, start
        self._calls: list[PendingCall] = []
        self._open: list[PendingCall] = []
        self._latest: dict[str, PendingCall] = {}  # by call id; models reuse ids
        self._requested: dict[str, tuple[PendingCall, Content]] = {}  # by request id
        self._input_at: int | None = None  # start of the input; a history stores results before it
        self.approved: list[PendingCall] = []
        self.dropped: list[str] = []
        self._without_call = set[int]()  # calls of which the conversation only contains the request
        self._contents: dict[int, list[Content]] = {}  # remaining contents of messages that lose some
        for at in range(start, len(messages)):
            self._read(at, messages[at])
        self._close(is_over=False)

    def _read(self, at: int, message: Message) -> None:
        contents, repeated = message.contents, set[int]()
        is_relevant = not _RELEVANT.isdisjoint([content.type for content in contents])
        speaks = message.role == "assistant"
        if speaks and is_relevant:
            # Callers that do not know the history pass the open calls again.
            repeated = {
                id(one)
                for one in contents
                if one.type == "function_call"
                and (open_call := self._latest.get(one.call_id or ""))
                and open_call.result is None
                and is_same_call(open_call.content, one)
            }
            speaks = not repeated and any(one.type == "function_call" or not one.user_input_request for one in contents)
        elif speaks:
            speaks = any(not one.user_input_request for one in contents)
        if self._input_at is None and ATTRIBUTION not in message.additional_properties:
            self._input_at = at
        if speaks:
            self._close(is_over=True)
            self._input_at, self.resolved_until = None, at
        if is_relevant:
            replaced = [self._take(one, at, message.role) for one in contents if id(one) not in repeated]
            self._contents[at] = [one for one in replaced if one is not None]

    def _take(self, content: Content, at: int, role: str) -> Content | None:
        """Read a content, and return its replacement, or `None` to remove it."""
        kind = content.type
        if kind == "function_call":
            earlier = self._latest.get(content.call_id or "")
            if not _is_made_by_service(content) and (earlier is None or earlier.at != at):
                self._add(PendingCall(content, at))
            return content
        if kind == "function_result":
            return self._take_result(content, at)
        call = content.function_call if kind in _QUESTIONS else None
        if kind == ANSWER and role != "user":
            self.dropped.append(f"it is in a message with the role {role!r} instead of 'user'")
            return None
        if call is None or _is_made_by_service(call):
            return content
        if kind == _REQUEST:
            return self._take_request(content, at) if role == "assistant" else None
        self._take_answer(content, at)
        return None

    def _add(self, call: PendingCall) -> PendingCall:
        self._calls.append(call)
        self._open.append(call)
        self._latest[call.content.call_id or ""] = call
        return call

    def _take_result(self, content: Content, at: int) -> Content | None:
        call = self._latest.get(content.call_id or "")
        if call is None:
            self.refers_back = True
            return content
        if call.result is None:
            call.result, call.source = content, at
            return content
        if _is_lost(call.result) and content.result != UNANSWERED:
            late = self._add(PendingCall(call.content, at, is_repeated=True))
            late.result, late.source = content, at
        return None

    def _take_request(self, content: Content, at: int) -> Content | None:
        requested, addressed = _call_of(content), self._latest.get(content.call_id or "")
        call, instead = addressed or self._latest.get(requested.call_id or ""), None
        if call is None or call.result is not None:
            self.refers_back = self.refers_back or call is None
            instead = requested if addressed is None else addressed.content
            call = self._add(PendingCall(instead, at))
            self._without_call.add(id(instead))
        if any(content.id == request.id for request in call.requests):
            return instead
        if call.answers or call.requested_at not in (None, at):  # a new round of requests
            is_own = bool(call.answers and call.approval and not call.is_about_another and not call.inner_requests)
            call.was_approved = call.was_approved or is_own
            call.requests, call.answers, call.is_about_another, call.source = [], [], False, None
        call.requested_at = at
        call.requests.append(content)
        self._requested[content.id or ""] = call, content
        return instead

    def _take_answer(self, content: Content, at: int) -> None:
        named = _call_of(content)
        self.refers_back = self.refers_back or content.id not in self._requested
        call, request = self._requested.get(content.id or "") or self._recorded_request(content, at)
        if call is None or request is None:
            self.dropped.append(f"the request {content.id!r} is neither in the conversation nor in its session")
            return
        for one in reversed(self._calls):  # the call may have been repeated
            if one is call or (
                is_same_call(one.content, call.content) and (request in one.requests or not one.requests)
            ):
                call, one.requests = one, one.requests or [*call.requests]
                break
        if request not in call.requests:
            self.dropped.append(f"later requests for its call replaced the request {content.id!r}")
            return
        if call.result is not None:
            if call.answers or call.result.result != UNANSWERED:
                return
            call = self._add(PendingCall(call.content, at, is_repeated=True, requests=[*call.requests]))
        if any(content.id == answer.id for answer in call.answers):
            return  # the first answer to a request counts
        if not call.answers:
            call.source = at
        call.answers.append(content)
        requested = _call_of(request)
        if not is_same_call(requested, named) or not (call.is_inner(request) or is_same_call(requested, call.content)):
            call.is_about_another = True

    def _recorded_request(self, answer: Content, at: int) -> tuple[PendingCall | None, Content | None]:
        """Repeat a call that only the session recorded; return it and its request with the answer's id."""
        for call, requests, *_ in reversed(self._recorded):
            if answer.id in {one.id for one in requests}:
                repeated = self._add(PendingCall(call, at, is_repeated=True, requests=[*requests]))
                self._requested.update({one.id or "": (repeated, one) for one in requests})
                return self._requested[answer.id or ""]
        return None, None

    def _close(self, *, is_over: bool) -> None:
        """Give every open call a result, or list it as approved. After the model has spoken, no call is approved."""
        for call in self._open:
            call.stored_at = self._input_at if self._input_at is not None and call.at < self._input_at else call.source
            if call.result is None:
                call.result = self._result_of(call, is_over=is_over)
                if call.result is None:
                    self.approved.append(call)
        self._open = []

    def _result_of(self, call: PendingCall, *, is_over: bool) -> Content | None:
        if call.is_about_another:
            text = REFUSED
        elif call.answers and call.approval is None and not call.inner_requests:
            text = REJECTED
        else:
            for recorded in self._recorded:
                if recorded.result is not None and is_same_call(recorded.call, call.content):
                    return recorded.result
            if call.answers and not is_over:
                return None
            text = RESULT_LOST if call.answers else UNANSWERED
        return Content.from_function_result(call.content.call_id or "", result=text)

    @property
    def results(self) -> list[Content]:
        """The results of the answered calls, in the order of the calls."""
        return [call.result for call in self._calls if call.answers and call.result is not None]

    @property
    def requested(self) -> list[RecordedCall]:
        """The calls with approval requests, each with its result if it has been made."""
        return [
            RecordedCall(one.content, tuple(one.requests), None if (made := one.result) and _is_lost(made) else made)
            for one in self._calls
            if one.requests
        ]

    def has_result_of(self, call: Content) -> bool:
        """Return whether the messages contain a result of a call other than `UNANSWERED`."""
        results = {id(one) for message in self._messages for one in message.contents if one.type == "function_result"}
        return any(
            id(one.result) in results
            and one.result is not None
            and one.result.result != UNANSWERED
            and is_same_call(one.content, call)
            for one in self._calls
        )

    def resolve(self, *, has_service: bool = False) -> tuple[list[Message], list[tuple[Message, list[Message]]]]:
        """Return the conversation from `start` with a result after every call, without requests and answers.

        If the service stores the conversation, calls are not repeated. The second value lists each message that a
        history stores differently, with the messages to store instead (possibly none). Unchanged messages are shared.
        """
        resolved: list[Message] = []
        replaced: list[tuple[Message, list[Message]]] = []
        for message, in_front, replacement, behind in self._resolve(
            self._start, len(self._messages), has_service=has_service
        ):
            instead = [*in_front, *replacement]
            if len(instead) != 1 or instead[0] is not message:
                replaced.append((message, instead))
            resolved += [*replacement, *behind]
        return resolved, replaced

    def replacements(self) -> list[Replacement]:
        """Return the replacements for the model of messages between `start` and `resolved_until`."""
        replacements: list[Replacement] = []
        first, instead = self._start, list[Message]()
        resolved = self._resolve(self._start, self.resolved_until)
        for at, (message, _, replacement, behind) in enumerate(resolved, start=self._start):
            if behind or len(replacement) != 1 or replacement[0] is not message:
                instead += [*replacement, *behind]
                continue
            self._add_replacement(replacements, first, at, instead)
            first, instead = at + 1, []
        self._add_replacement(replacements, first, self.resolved_until, instead)
        return replacements

    def _add_replacement(self, replacements: list[Replacement], first: int, last: int, instead: list[Message]) -> None:
        before = self._messages[first:last]
        if len(before) != len(instead) or not all(map(is_, before, instead)):
            replacements.append(Replacement(first, last, instead))

    def _resolve(
        self, first: int, last: int, *, has_service: bool = False
    ) -> Iterator[tuple[Message, list[Message], list[Message], list[Message]]]:
        """Yield each message, the results that are stored before it, its replacement, and the messages after it."""
        repeated: dict[int, list[PendingCall]] = defaultdict(list)
        behind: dict[int, list[PendingCall]] = defaultdict(list)
        stored: dict[int, list[PendingCall]] = defaultdict(list)
        moved: set[int] = set()
        for call in self._calls:
            if call.result is None:
                continue
            if call.is_repeated:
                repeated[call.at].append(call)
            elif call.source != call.at:  # the result is in another message than its call
                moved.add(id(call.result))
                behind[call.at].append(call)
                if call.stored_at is not None:
                    stored[call.stored_at].append(call)
        touched = repeated.keys() | behind.keys() | stored.keys() | self._contents.keys()
        for at in range(first, last):
            message = self._messages[at]
            if at not in touched:
                yield message, [], [message], []
                continue
            replacement: list[Message] = []
            for calls in _with_ids_apart(repeated.get(at, ())):
                replacement += [] if has_service else [Message("assistant", [call.content for call in calls])]
                replacement += self._results(calls)
            contents = self._contents.get(at, message.contents)
            if has_service:  # the service has the call
                contents = [one for one in contents if id(one) not in self._without_call]
            replacement += _with(message, message.role, [one for one in contents if id(one) not in moved])
            yield message, self._results(stored.get(at, ())), replacement, self._results(behind.get(at, ()))

    def _results(self, calls: Sequence[PendingCall]) -> list[Message]:
        """Return the results of calls as `tool` messages, one for each message that contained results."""
        brought: dict[int | None, list[Content]] = {}
        for call in calls:
            brought.setdefault(call.source, []).append(cast("Content", call.result))
        tool_messages: list[Message] = []
        for source, results in brought.items():
            tool_messages += (
                [Message("tool", results)] if source is None else _with(self._messages[source], "tool", results)
            )
        return tool_messages


def has_pending_calls(messages: Sequence[Message], start: int = 0) -> bool:
    """Return whether messages from `start` contain approval requests, answers, or a call without one result."""
    messages = messages[start:]
    kinds = {content.type for message in messages for content in message.contents}
    if not kinds.isdisjoint(_QUESTIONS):
        return True
    if "function_call" not in kinds and not (start and "function_result" in kinds):
        return False
    waiting: set[str | None] = set()
    with_result: set[str | None] = set()
    for message in messages:
        if waiting and message.role != "tool":
            return True
        for content in message.contents:
            if content.type == "function_call" and not _is_made_by_service(content):
                waiting.add(content.call_id)
            elif content.type == "function_result":
                if content.call_id not in waiting and (start or content.call_id in with_result):
                    return True  # a second result, or the result of an earlier call
                waiting.discard(content.call_id)
                with_result.add(content.call_id)
    return bool(waiting)


def end_of_stored(messages: Sequence[Message], start: int) -> int:
    """Return the index of the first message from `start` that no history stores; results stay with their calls."""
    for at in range(start, len(messages)):
        if ATTRIBUTION not in messages[at].additional_properties:
            return start if messages[at].role == "tool" else at
    return len(messages)


def replace_messages(
    messages: Sequence[Message], replaced: Sequence[tuple[Message, list[Message]]] | None
) -> list[Message]:
    """Return messages with those that `PendingCalls.resolve` replaced in their stored form."""
    instead = {id(message): others for message, others in replaced or ()}
    return [one for message in messages for one in instead.get(id(message), (message,))]


def is_same_call(one: Content, other: Content) -> bool:
    """Return whether two contents are the same call; their arguments may be formatted differently."""
    return one is other or (
        (one.call_id or "") == (other.call_id or "")
        and one.name == other.name
        and (one.parse_arguments() or {}) == (other.parse_arguments() or {})
    )


def _with_ids_apart(calls: Sequence[PendingCall]) -> list[list[PendingCall]]:
    """Return calls in groups with unique ids, because models reuse ids and services reject duplicates in a message."""
    groups: list[list[PendingCall]] = []
    for call in calls:
        fits = (group for group in groups if all(call.content.call_id != one.content.call_id for one in group))
        group = next(fits, None)
        if group is None:
            groups.append(group := [])
        group.append(call)
    return groups


def _is_lost(result: Content) -> bool:
    return result.result in (UNANSWERED, RESULT_LOST)


def _is_made_by_service(call: Content) -> bool:
    return bool(call.additional_properties.get("server_label"))


def _call_of(question: Content) -> Content:
    return cast("Content", question.function_call)  # contents without a call are not read


def _with(message: Message, role: str, contents: list[Content]) -> list[Message]:
    """Return a message with other contents: itself if they are equal, nothing if they are empty."""
    if len(contents) == len(message.contents) and all(map(is_, contents, message.contents)):
        return [message]
    return [with_contents(message, contents, role=role)] if contents else []
