"""Events of a streamed answer of the Responses API as updates. Pure: one event in, one update or nothing out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar, cast

from agentbench.agents.clients.openai.chat.response import new_call_id
from agentbench.agents.clients.openai.responses.output import (
    annotation,
    continuation_token,
    conversation_id,
    failure_of,
    finish_reason,
    output_contents,
    usage_details,
)
from agentbench.agents.clients.openai.wire import field, iso_time, json_text, number, text
from agentbench.messages.content.content import Content
from agentbench.messages.update import ChatResponseUpdate, ContinuationToken

# Items whose contents come piece by piece, and not once more when the item is done.
_IN_PIECES = ("message", "function_call", "custom_tool_call", "reasoning")

_ENDS = ("response.completed", "response.incomplete")


class EventReader:
    """Reads the events of one stream, in order.

    Args:
        stored: Whether the service keeps the answer.
        continues: The id of the answer, if its beginning was read before.

    Attributes:
        ended: Whether the answer is complete.
        failure: What the service reports as its failure, if it does.
    """

    def __init__(self, *, stored: bool = True, continues: str | None = None) -> None:
        self.ended = False
        self.failure: Any = None
        self._stored = stored
        self._response_id = continues
        self._conversation_id = continues if stored else None
        self._model: str | None = None
        self._created_at: str | None = None
        self._background = continues is not None
        self._called = False
        self._with_arguments: set[int] = set()  # indexes of calls whose arguments have come in pieces
        self._thinking: set[str] = set()  # ids of items whose thoughts have come in pieces

    def read(self, event: Any) -> ChatResponseUpdate | None:
        """Return the update that an event brings; `None` for one that brings nothing, or reports a failure."""
        if text(event, "event") == "error":
            event = field(event, "data")  # older versions of the SDK hand it over wrapped
        kind = text(event, "type") or ""
        if kind in ("error", "response.error"):
            self.failure = event
            return None
        answer = field(event, "response")
        if answer is not None:
            return self._of_answer(kind, event, answer)
        read = self._READERS.get(kind)
        contents = [] if read is None else read(self, event)
        return self._update(contents, event) if contents else None

    def _of_answer(self, kind: str, event: Any, answer: Any) -> ChatResponseUpdate | None:
        self.failure = failure_of(answer)
        if self.failure is not None:
            return None
        self._response_id = text(answer, "id") or self._response_id
        self._conversation_id = conversation_id(answer, stored=self._stored) or self._conversation_id
        self._model = text(answer, "model") or self._model
        self._created_at = iso_time(field(answer, "created_at")) or self._created_at
        self._background = self._background or field(answer, "background") is True
        contents: list[Content] = []
        reason = None
        if kind in _ENDS:
            self.ended = True
            usage = usage_details(answer)
            contents = [] if usage is None else [Content.from_usage(usage)]
            reason = finish_reason(answer, [])
            reason = "tool_calls" if reason == "stop" and self._called else reason
        update = self._update(contents, event)
        update.finish_reason = cast("Any", reason)
        update.continuation_token = self._token(event) if continuation_token(answer) is not None else None
        return update

    def _update(self, contents: list[Content], event: Any) -> ChatResponseUpdate:
        return ChatResponseUpdate(
            contents=contents,
            role="assistant",
            response_id=self._response_id,
            message_id=self._response_id,
            conversation_id=self._conversation_id,
            model=self._model,
            created_at=self._created_at,
            continuation_token=self._token(event),
            raw_representation=event,
        )

    def _token(self, event: Any) -> ContinuationToken | None:
        """Where to go on if the stream of an answer that is made in the background breaks here."""
        if not self._background or self._response_id is None:
            return None
        token = {"response_id": self._response_id, "sequence_number": number(event, "sequence_number")}
        return cast("ContinuationToken", token)

    def _text_delta(self, event: Any) -> list[Content]:
        return [Content.from_text(delta)] if (delta := text(event, "delta")) else []

    def _refusal_delta(self, event: Any) -> list[Content]:
        delta = text(event, "delta")
        return [Content.from_text(delta, additional_properties={"refusal": True})] if delta else []

    def _annotation_added(self, event: Any) -> list[Content]:
        return [Content.from_text("", annotations=[annotation(field(event, "annotation"))])]

    def _thought(self, event: Any) -> list[Content]:
        item_id, delta = text(event, "item_id"), text(event, "delta")
        self._thinking.add(item_id or "")
        return [Content.from_text_reasoning(id=item_id, text=delta)] if delta else []

    def _thought_part(self, event: Any) -> list[Content]:
        # The parts of a summary are lines of one text.
        if not number(event, "summary_index"):
            return []
        return [Content.from_text_reasoning(id=text(event, "item_id"), text="\n")]

    def _item_added(self, event: Any) -> list[Content]:
        item = field(event, "item")
        if text(item, "type") not in ("function_call", "custom_tool_call"):
            return []
        self._called = True
        call_id = text(item, "call_id") or new_call_id()
        return [self._call_piece(event, call_id, text(item, "name") or "", "", raw=item)]

    def _arguments_delta(self, event: Any) -> list[Content]:
        self._with_arguments.add(number(event, "output_index") or 0)
        return [self._call_piece(event, "", "", json_text(field(event, "delta")), raw=event)]

    def _item_done(self, event: Any) -> list[Content]:
        item = field(event, "item")
        kind = text(item, "type")
        if kind not in _IN_PIECES:
            return list(output_contents(item))
        if kind == "reasoning":
            return self._reasoning_done(item)
        whole = json_text(field(item, "arguments")) or text(item, "input") or ""
        if kind == "message" or not whole or (number(event, "output_index") or 0) in self._with_arguments:
            return []
        return [self._call_piece(event, "", "", whole, raw=event)]

    def _reasoning_done(self, item: Any) -> list[Content]:
        contents = list(output_contents(item))
        if (text(item, "id") or "") in self._thinking:
            contents = [
                Content.from_text_reasoning(id=content.id, protected_data=content.protected_data)
                for content in contents
                if content.protected_data
            ]
        return contents

    def _call_piece(self, event: Any, call_id: str, name: str, arguments: str, *, raw: Any) -> Content:
        index = {"tool_call_index": number(event, "output_index") or 0}
        return Content.from_function_call(
            call_id, name, arguments=arguments, additional_properties=index, raw_representation=raw
        )

    _READERS: ClassVar[dict[str, Callable[[EventReader, Any], list[Content]]]] = {
        "response.output_text.delta": _text_delta,
        "response.refusal.delta": _refusal_delta,
        "response.output_text.annotation.added": _annotation_added,
        "response.reasoning_text.delta": _thought,
        "response.reasoning_summary_text.delta": _thought,
        "response.reasoning_summary_part.added": _thought_part,
        "response.output_item.added": _item_added,
        "response.function_call_arguments.delta": _arguments_delta,
        "response.custom_tool_call_input.delta": _arguments_delta,
        "response.output_item.done": _item_done,
    }
