"""Chunks of a streamed completion as updates. Pure: one chunk in, one update or nothing out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any, cast

from agentbench.agents.clients.openai.chat.response import (
    finish_reason,
    new_call_id,
    properties,
    reasoning_text,
    refusal_content,
    usage_details,
)
from agentbench.agents.clients.openai.wire import field, iso_time, items, json_text, number, text
from agentbench.messages.content.content import Content
from agentbench.messages.update import ChatResponseUpdate
from agentbench.messages.usage import UsageDetails

logger = logging.getLogger("agentbench.openai")


class ChunkReader:
    """Reads the chunks of one stream, in order."""

    def __init__(self) -> None:
        self._calls = CallSlots()
        self._counted: dict[str, int] = {}
        self._warned = False
        self.ended = False
        self.failure: Any = None  # failures within a stream are raised by the SDK

    def read(self, chunk: Any) -> ChatResponseUpdate | None:
        """Return the update that a chunk brings; `None` for one without choices and usage."""
        choice = self._choice(chunk)
        usage = self._usage(chunk)
        if choice is None and usage is None:
            return None
        contents = [] if choice is None else list(self._contents(field(choice, "delta")))
        if usage is not None:
            contents.append(Content.from_usage(usage))
        reason = None if choice is None else finish_reason(choice)
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
            additional_properties=properties(chunk) or None,
            raw_representation=chunk,
        )

    def _choice(self, chunk: Any) -> Any:
        """The first choice. Others cannot be streamed beside it: they would end up within one message."""
        choices = items(chunk, "choices")
        first = next((choice for choice in choices if (number(choice, "index") or 0) == 0), None)
        if first is None and choices and not self._warned:
            self._warned = True
            logger.warning("Several choices (n > 1) are streamed; only the first is taken. Ask without streaming.")
        return first

    def _usage(self, chunk: Any) -> UsageDetails | None:
        """What was counted since the last time: some servers repeat the running total in every chunk."""
        total = usage_details(chunk)
        if total is None:
            return None
        now = cast("dict[str, int]", total)
        new = {name: count - self._counted.get(name, 0) for name, count in now.items()}
        first = not self._counted
        self._counted.update(now)
        return cast("UsageDetails", new) if first or any(new.values()) else None

    def _contents(self, delta: Any) -> Iterator[Content]:
        thought = reasoning_text(delta)
        if thought:
            yield Content.from_text_reasoning(text=thought)
        words = text(delta, "content")
        if words:
            yield Content.from_text(words)
        refusal = refusal_content(delta)
        if refusal is not None:
            yield refusal
        for call in items(delta, "tool_calls"):
            yield self._calls.read(call)
        if (legacy := field(delta, "function_call")) is not None:
            yield self._calls.read({"index": 0, "function": legacy})


class CallSlots:
    """Finds which pieces of streamed calls belong together, and makes ids for calls that have none."""

    def __init__(self) -> None:
        self._slot_of: dict[int, int] = {}  # the service's index -> ours
        self._id_of: dict[int, str] = {}  # our index -> the id that the service gave, if any
        self._newest = -1

    def read(self, delta: Any) -> Content:
        """Return a piece of a call. Only the first piece of each call has an id and a name."""
        call_id = text(delta, "id") or ""
        function = field(delta, "function")
        slot, is_new = self._slot(number(delta, "index"), call_id)
        return Content.from_function_call(
            (call_id or new_call_id()) if is_new else "",
            (text(function, "name") or "") if is_new else "",
            arguments=json_text(field(function, "arguments")),
            additional_properties={"tool_call_index": slot},
            raw_representation=delta,
        )

    def _slot(self, index: int | None, call_id: str) -> tuple[int, bool]:
        if index is None:
            # A server that does not number its calls: a new id begins a new one.
            known = next((slot for slot, known_id in self._id_of.items() if known_id == call_id), None)
            slot = known if call_id else self._newest if self._newest >= 0 else None
        else:
            slot = self._slot_of.get(index)
            if slot is not None and call_id and self._id_of[slot] not in ("", call_id):
                # A server that gives one number to all of its calls.
                slot = None
        if slot is not None:
            return slot, False
        slot = self._newest + 1 if index is None or index in self._id_of else index
        self._newest = max(self._newest, slot)
        self._id_of[slot] = call_id
        self._slot_of[slot if index is None else index] = slot
        return slot, True
