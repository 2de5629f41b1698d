"""Responses to open requests: checked all together before any is delivered."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agentbench._signatures import coerce_answer, is_instance_of, type_name
from agentbench.workflows.events.events import WorkflowEvent


def check_responses(open_requests: Mapping[str, WorkflowEvent[Any]], responses: Mapping[str, Any]) -> dict[str, Any]:
    """Return the responses, each coerced to the response type of its request. No request is closed.

    Args:
        open_requests: by id.
        responses: by request id; may leave requests open.

    Raises:
        RuntimeError: no request is open at all.
        ValueError: an id is unknown, or a value is not of the response type.
    """
    if not open_requests:
        msg = "No request is open, so there is nothing to answer. Start a run with a message first."
        raise RuntimeError(msg)
    checked = {}
    for request_id, response in responses.items():
        request = open_requests.get(request_id)
        if request is None:
            msg = f"No open request has the id {request_id!r}; open are: {', '.join(open_requests)}."
            raise ValueError(msg)
        value = coerce_answer(response, request.response_type)
        if not is_instance_of(value, request.response_type):
            msg = (
                f"The answer to request {request.request_id!r} of {request.source_executor_id!r} is {value!r} "
                f"({type(value).__name__}); expected {type_name(request.response_type)}. The request stays open."
            )
            raise ValueError(msg)
        checked[request_id] = value
    return checked
