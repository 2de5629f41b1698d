"""Answers to open requests: checked all together before any is taken."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentbench._signatures import coerce_answer, is_instance_of, type_name
from agentbench.workflows.events.events import WorkflowEvent


def check_answers(open_requests: Mapping[str, WorkflowEvent[Any]], answers: Mapping[str, Any]) -> dict[str, Any]:
    """The answers, each coerced to the response type of its request. Nothing is consumed.

    Args:
        open_requests: by id.
        answers: by request id; may leave requests open.

    Raises:
        RuntimeError: no request is open at all.
        ValueError: an id is unknown, or a value is not of the response type.
    """
    if not open_requests:
        msg = "No request is open, so there is nothing to answer. Start a run with a message first."
        raise RuntimeError(msg)
    unknown = [request_id for request_id in answers if request_id not in open_requests]
    if unknown:
        msg = f"No open request has the id {unknown[0]!r}; open are: {', '.join(open_requests)}."
        raise ValueError(msg)
    return {request_id: _checked(open_requests[request_id], value) for request_id, value in answers.items()}


def _checked(request: WorkflowEvent[Any], value: Any) -> Any:
    value = coerce_answer(value, request.response_type)
    if not is_instance_of(value, request.response_type):
        msg = (
            f"The answer to request {request.request_id!r} of {request.source_executor_id!r} is {value!r} "
            f"({type(value).__name__}); expected {type_name(request.response_type)}. The request stays open."
        )
        raise ValueError(msg)
    return value
