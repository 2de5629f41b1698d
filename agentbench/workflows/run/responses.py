"""Checks what is given for the open requests of a run: responses, or that they are withdrawn."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from agentbench._secrets import masked_repr
from agentbench._signatures import coerce_answer, find_misfits, is_instance_of, type_name
from agentbench.exceptions import MissingResponseHandlerError
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WITHDRAWN

if TYPE_CHECKING:
    from agentbench.workflows.graph.graph import Graph


def id_of_request(request: Any) -> str:
    """Return the id of a request, from an id, a `request_info` event or any object that has its id."""
    request_id = request if isinstance(request, str) else getattr(request, "request_id", None)
    if not isinstance(request_id, str):
        msg = f"request is {request!r}; expected the id of a request, or a request_info event."
        raise TypeError(msg)
    return request_id


def check_responses(
    open_requests: Mapping[str, WorkflowEvent[Any]], responses: Mapping[Any, Any], graph: Graph | None = None
) -> dict[str, Any]:
    """Return the responses, each coerced to the response type of its request.

    Raises:
        RuntimeError: No request is open.
        ValueError: A response fits no open request; all stay open.
        MissingResponseHandlerError: The executor in `graph` that made the request takes no responses.
    """
    if not open_requests:
        msg = "There is no open request to answer. Start a run with a message first."
        raise RuntimeError(msg)
    checked: dict[str, Any] = {}
    for key, response in responses.items():
        request_id = id_of_request(key)
        request = open_requests.get(request_id)
        if request is None:
            raise _unknown_request(request_id, open_requests)
        if response is WITHDRAWN:
            checked[request_id] = response
            continue
        # A boundary hook may have made the request, in the name of any executor.
        executor = None if graph is None or graph.driver else graph.executors.get(request.source_executor_id)
        if executor is not None and not executor.is_request_response_capable:
            raise MissingResponseHandlerError(executor.id, request.request_type, request.response_type)
        value = coerce_answer(response, request.response_type)
        # A response of the right type may still belong to another request of an agent.
        fits = getattr(request.data, "is_answered_by", None) if type(value) is type(request.data) else None
        if not is_instance_of(value, request.response_type) or (fits is not None and not fits(value)):
            why = "; ".join(find_misfits(value, request.response_type))
            msg = (
                f"The response to request {request.request_id!r} of {request.source_executor_id!r} is "
                f"{masked_repr(value)} ({type(value).__name__}); expected {type_name(request.response_type)}"
                f"{f': {why}' if why else ''}. The request stays open. {getattr(request.data, 'answer_hint', '')}"
            )
            raise ValueError(msg.rstrip())
        checked[request_id] = value
    return checked


def _unknown_request(request_id: str, open_requests: Iterable[str]) -> ValueError:
    return ValueError(
        f"No open request has the id {request_id!r}. Open requests: {', '.join(open_requests) or 'none'}."
    )


def withdrawals(open_requests: Mapping[str, WorkflowEvent[Any]], requests: Any) -> dict[str, Any]:
    """Return responses that withdraw requests: one, several, or for None all that are open.

    Raises:
        ValueError: One of them is not open, or is an interrupt of a state graph.
        TypeError: One of them is neither a request nor an id.
    """
    if requests is None:
        chosen = list(open_requests)
    else:
        several = isinstance(requests, Iterable) and not isinstance(requests, str)
        chosen = [id_of_request(one) for one in (requests if several else (requests,))]
    for request_id in chosen:
        if request_id not in open_requests:
            raise _unknown_request(request_id, open_requests)
        request = open_requests[request_id]
        if not can_be_withdrawn(request):
            msg = (
                f"Request {request_id!r} of {request.source_executor_id!r} is an interrupt of a state graph, which "
                "cannot go on without an answer. Resume it with a value, or continue elsewhere: Command(goto=...)."
            )
            raise ValueError(msg)
    return dict.fromkeys(chosen, WITHDRAWN)


def can_be_withdrawn(request: Any) -> bool:
    """Whether the run can go on without a response: not if the request is an interrupt of a state graph."""
    return getattr(type(request.data), "can_be_withdrawn", True)
