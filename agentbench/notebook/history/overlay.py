"""The state of each executor after a run, read from its events, and what is next: for static pictures."""

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from agentbench.notebook.look.states import STATES, strongest

__all__ = ["read_states"]

# A run that has one of these states does nothing any more; an executor at work then was cancelled.
_ENDED = frozenset({"IDLE", "IDLE_WITH_PENDING_REQUESTS", "FAILED", "CANCELLED"})


def read_states(run: object) -> dict[Any, str]:
    """Return states by executor id, and by (source id, target id) of edges; empty for `None` and workflows.

    Args:
        run: A run, its result, any list of events, or a mapping to the keys of `STATES`, which is checked.

    Raises:
        TypeError: For anything else.
        ValueError: For a state that does not exist.
    """
    if isinstance(run, Mapping):
        return _check(run)
    events = getattr(run, "events", run)
    if callable(events) or not isinstance(events, Iterable) or isinstance(events, (str, bytes)):
        if run is None or hasattr(run, "executors") or hasattr(run, "nodes"):
            return {}
        msg = f"run={type(run).__name__} has no states of executors. Pass a run, its result, or states by executor id."
        raise TypeError(msg)
    states, open_requests, ended = _fold(events)
    if ended:
        states = {executor_id: state for executor_id, state in states.items() if state != "running"}
    known_open = getattr(run, "pending_requests", None)
    if known_open is not None:
        open_requests = {event.request_id: event.source_executor_id for event in _values(known_open)}
    states |= dict.fromkeys(open_requests.values(), "waiting")
    return states if ended else _with_queued(states, run)


def _with_queued(states: dict[Any, str], run: Any) -> dict[Any, str]:
    """Add the executors that are called next, and the edges that lead there, for a run that is not over."""
    plan = getattr(run, "plan_without_conditions", None)
    if plan is None or run.is_over:
        return states
    if run.started_from is None and not states:
        queued: set[Any] = {start.id for start in run.workflow.graph.start_executors}
    else:
        ways = [((source, each.target), each.target) for each in plan() for source in each.sources]
        queued = set(itertools.chain.from_iterable(ways))
    return states | {key: strongest((states.get(key, "idle"), "queued")) for key in queued}


def _fold(events: Iterable[Any]) -> tuple[dict[str, str], dict[str, str], bool]:
    """States by executor, executors by id of the request that they wait for, and whether the run is over."""
    states: dict[str, str] = {}
    open_requests: dict[str, str] = {}
    ended = False
    for event in events:
        executor_id = event.source_id
        if event.type == "status":
            ended = str(getattr(event.state, "value", event.state)) in _ENDED
        elif event.type == "request_info":
            open_requests[event.request_id] = executor_id
        elif event.type in ("executor_completed", "executor_bypassed"):
            states[executor_id] = "done"
        elif event.type == "executor_failed":
            states[executor_id] = "failed"
        elif event.type == "executor_invoked":
            states[executor_id] = "running"
            # Whoever works again after asking has got its answers: requests are answered by the executor's own turn.
            open_requests = {key: asker for key, asker in open_requests.items() if asker != executor_id}
    return states, open_requests, ended


def _values(requests: Any) -> Iterable[Any]:
    return requests.values() if isinstance(requests, Mapping) else requests


def _check(states: Mapping[Any, str]) -> dict[Any, str]:
    for key, state in states.items():
        if state not in STATES:
            msg = f"{key!r} has the state {state!r}, which does not exist. Use one of {', '.join(map(repr, STATES))}."
            raise ValueError(msg)
    return dict(states)
