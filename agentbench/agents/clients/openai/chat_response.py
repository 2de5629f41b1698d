"""Convert Chat Completions answers to responses, and streamed chunks to updates."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, cast

from agentbench.agents.clients.openai.wire import (
    answer_text,
    call_piece,
    citation,
    field,
    iso_time,
    items,
    json_text,
    new_call_id,
    number,
    plain,
    refusal_content,
    text,
    usage_of,
)
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate
from agentbench.messages.usage import UsageDetails

logger = logging.getLogger("agentbench.openai")


def chat_response(completion: Any, *, response_format: Any = None) -> ChatResponse[Any]:
    """Convert a completion to a response with one message per choice."""
    choices = items(completion, "choices")
    response_id = text(completion, "id")
    properties = _properties(completion)
    log_probabilities = next(filter(None, (field(choice, "logprobs") for choice in choices)), None)
    if log_probabilities is not None:
        properties["logprobs"] = plain(log_probabilities)
    return ChatResponse(
        messages=[
            Message(
                "assistant",
                list(_contents(_part_of(choice, "message"), _call)),
                message_id=response_id,
                raw_representation=choice,
            )
            for choice in choices
        ],
        response_id=response_id,
        model=text(completion, "model"),
        created_at=iso_time(field(completion, "created")),
        finish_reason=cast("Any", next(filter(None, map(_finish_reason, choices)), None)),
        usage_details=usage_of(completion),
        response_format=response_format,
        additional_properties=properties,
        raw_representation=completion,
    )


def _part_of(choice: Any, name: str) -> Any:
    """Return the message or delta of a choice; raise ValueError if it has another type."""
    part = field(choice, name)
    for what, value in (("choice", choice), (name, part)):
        if isinstance(value, (str, int, float, list)):
            problem = f"its {what} has type {type(value).__name__}"
            raise ValueError(problem)
    return part


def _contents(message: Any, read_call: Callable[[Any], Content]) -> Iterator[Content]:
    thought = text(message, "reasoning_content") or text(message, "reasoning")  # compatible servers use two names
    if thought:
        yield Content.from_text_reasoning(text=thought)
    words = answer_text(message, "content")
    if words:
        notes = [citation(field(note, "url_citation")) for note in items(message, "annotations")]
        yield Content.from_text(words, annotations=notes or None)
    refusal = refusal_content(message)
    if refusal is not None:
        yield refusal
    calls = field(message, "tool_calls")
    if calls is not None and not isinstance(calls, (list, tuple)):
        problem = f"its tool_calls have type {type(calls).__name__}"
        raise ValueError(problem)
    for call in calls or ():
        yield read_call(call)
    if (legacy := field(message, "function_call")) is not None:
        yield read_call({"index": 0, "function": legacy})


def _call(call: Any) -> Content:
    # The input of a custom tool is any text; the arguments of a function are JSON.
    function, custom = field(call, "function"), field(call, "custom")
    return Content.from_function_call(
        text(call, "id") or new_call_id(),
        text(function, "name") or text(custom, "name") or "",
        arguments=json_text(field(function, "arguments")) or text(custom, "input") or "",
        raw_representation=call,
    )


def _finish_reason(choice: Any) -> str | None:
    reason = text(choice, "finish_reason")
    return "tool_calls" if reason == "function_call" else reason


def _properties(source: Any) -> dict[str, Any]:
    fingerprint = text(source, "system_fingerprint")
    return {} if fingerprint is None else {"system_fingerprint": fingerprint}


class ChunkReader:
    """Reads the chunks of one stream in order."""

    def __init__(self) -> None:
        self._calls = CallSlots()
        self._counted: dict[str, int] = {}
        self._warned = False
        self.ended = False
        self.failure: Any = None

    @property
    def must_end(self) -> bool:
        """Whether a missing finish reason is an error: the answer has tool calls whose arguments may be incomplete."""
        return self._calls.has_calls

    def read(self, chunk: Any) -> ChatResponseUpdate | None:
        """Convert a chunk to an update; `None` if it has neither choices nor usage."""
        choice = self._choice(chunk)
        usage = self._usage(chunk)
        if choice is None and usage is None:
            return None
        contents = list(_contents(_part_of(choice, "delta"), self._calls.read))
        if usage is not None:
            contents.append(Content.from_usage(usage))
        reason = _finish_reason(choice)
        self.ended = self.ended or reason is not None
        chunk_id = text(chunk, "id") or None
        return ChatResponseUpdate(
            contents=contents,
            role="assistant",
            response_id=chunk_id,
            message_id=chunk_id,
            model=text(chunk, "model"),
            created_at=iso_time(field(chunk, "created")),
            finish_reason=cast("Any", reason),
            additional_properties=_properties(chunk) or None,
            raw_representation=chunk,
        )

    def _choice(self, chunk: Any) -> Any:
        """Return the first choice. Streaming others as well would mix them into one message."""
        choices = items(chunk, "choices")
        first = next((choice for choice in choices if (number(choice, "index") or 0) == 0), None)
        if first is None and choices and not self._warned:
            self._warned = True
            logger.warning(
                "The stream has several choices (n > 1); only the first is used. Call without streaming to get all."
            )
        return first

    def _usage(self, chunk: Any) -> UsageDetails | None:
        """Return the increase in token counts; some servers repeat the running total in every chunk."""
        total = cast("dict[str, int] | None", usage_of(chunk))
        if total is None:
            return None
        new = {name: count - self._counted.get(name, 0) for name, count in total.items()}
        first = not self._counted
        self._counted.update(total)
        return cast("UsageDetails", new) if first or any(new.values()) else None


class CallSlots:
    """Groups the pieces of streamed calls, and makes ids for calls without one."""

    def __init__(self) -> None:
        self._slot_of: dict[int, int] = {}  # the service's index -> ours
        self._id_of: dict[int, str] = {}  # our index -> the service's id, if any
        self._newest = -1

    @property
    def has_calls(self) -> bool:
        """Whether any piece of a call has been read."""
        return bool(self._id_of)

    def read(self, delta: Any) -> Content:
        """Convert a delta to a piece of a call."""
        call_id = text(delta, "id") or ""
        function = field(delta, "function")
        slot, is_new = self._slot(number(delta, "index"), call_id)
        arguments = json_text(field(function, "arguments"))
        if not is_new:
            return call_piece(slot, arguments=arguments, raw=delta)
        return call_piece(slot, call_id or new_call_id(), text(function, "name") or "", arguments, raw=delta)

    def _slot(self, index: int | None, call_id: str) -> tuple[int, bool]:
        if index is None:
            # The server does not number its calls, so a new id starts a new call.
            known_slot = next((slot for slot, known_id in self._id_of.items() if known_id == call_id), None)
            slot = known_slot if call_id else self._newest if self._newest >= 0 else None
        else:
            slot = self._slot_of.get(index)
            if slot is not None and call_id and self._id_of[slot] not in ("", call_id):
                # The server uses the same number for all calls.
                slot = None
        if slot is not None:
            return slot, False
        slot = self._newest + 1 if index is None or index in self._id_of else index
        self._newest = max(self._newest, slot)
        self._id_of[slot] = call_id
        self._slot_of[slot if index is None else index] = slot
        return slot, True
