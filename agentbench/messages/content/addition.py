"""Joining pieces of content that belong together, as they come in a stream."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar

from agentbench.exceptions import AdditionItemMismatch, ContentError
from agentbench.messages.content.record import ContentRecord
from agentbench.messages.usage import add_usage_details

C = TypeVar("C", bound=ContentRecord)


def add_contents(left: C, right: ContentRecord) -> C:
    """Join two contents of one kind: texts, reasoning, calls or usages.

    Raises:
        AdditionItemMismatch: They are of different kinds, or of different calls or thoughts.
        ContentError: There is no sum of their kind.
    """
    if left.type != right.type:
        message = f"Content of type {left.type!r} and content of type {right.type!r} cannot be added."
        raise AdditionItemMismatch(message)
    add = _ADDITIONS.get(left.type)
    if add is None:
        message = f"Contents of type {left.type!r} cannot be added. Only {', '.join(_ADDITIONS)} can."
        raise ContentError(message)
    return type(left)(
        left.type,
        annotations=_joined(left.annotations, right.annotations),
        additional_properties={**right.additional_properties, **left.additional_properties},
        raw_representation=joined_raw(left.raw_representation, right.raw_representation),
        **add(left, right),
    )


def joined_raw(left: Any, right: Any) -> Any:
    """Collect what services sent into a list; one alone stays as it is."""
    if left is None or right is None:
        return right if left is None else left
    return [*(left if isinstance(left, list) else [left]), *(right if isinstance(right, list) else [right])]


def joined_arguments(left: str | Mapping[str, Any] | None, right: str | Mapping[str, Any] | None) -> Any:
    """Join the arguments of two pieces of a call.

    Raises:
        AdditionItemMismatch: One is text and the other a mapping.
    """
    if not left or not right:
        return left or right or (right if left is None else left)
    if isinstance(left, str) and isinstance(right, str):
        return left + right
    if isinstance(left, str) or isinstance(right, str):
        message = "Arguments that are text and arguments that are a mapping cannot be joined."
        raise AdditionItemMismatch(message)
    return {**left, **right}


def _joined(left: list[Any] | None, right: list[Any] | None) -> list[Any] | None:
    return None if left is None and right is None else [*(left or ()), *(right or ())]


def _added_texts(left: ContentRecord, right: ContentRecord) -> dict[str, Any]:
    return {"text": (left.text or "") + (right.text or "")}


def _added_reasoning(left: ContentRecord, right: ContentRecord) -> dict[str, Any]:
    if left.id and right.id and left.id != right.id:
        message = f"Reasoning {left.id!r} and reasoning {right.id!r} are two thoughts, and cannot be joined."
        raise AdditionItemMismatch(message)
    text = None if left.text is None and right.text is None else (left.text or "") + (right.text or "")
    protected = left.protected_data if right.protected_data is None else right.protected_data
    return {"id": left.id or right.id, "text": text, "protected_data": protected}


def _added_calls(left: ContentRecord, right: ContentRecord) -> dict[str, Any]:
    if right.call_id and right.call_id != left.call_id:
        message = f"Call {left.call_id!r} and call {right.call_id!r} are two calls, and cannot be joined."
        raise AdditionItemMismatch(message)
    return {
        "call_id": left.call_id,
        "name": left.name or right.name,
        "arguments": joined_arguments(left.arguments, right.arguments),
        "exception": left.exception or right.exception,
        "user_input_request": left.user_input_request or right.user_input_request,
        "id": left.id or right.id,
    }


def _added_usages(left: ContentRecord, right: ContentRecord) -> dict[str, Any]:
    return {"usage_details": add_usage_details(left.usage_details, right.usage_details)}


_ADDITIONS = {
    "text": _added_texts,
    "text_reasoning": _added_reasoning,
    "function_call": _added_calls,
    "usage": _added_usages,
}
