"""The states of executors after a run, and the next deliveries, for static pictures."""

from collections.abc import Mapping
from typing import Any

from agentbench.notebook.history.sources import read_runs
from agentbench.notebook.look.states import STATES, strongest

# A call that was interrupted by the end of the run has no state.
STATE_OF_CALL = {
    "completed": "done",
    "bypassed": "done",
    "waiting": "waiting",
    "failed": "failed",
    "running": "running",
    "cancelled": "idle",
}


def read_states(run: Any) -> dict[Any, str]:
    """Return states by executor id, and by (source id, target id) of edges; empty for `None`, workflows and graphs.

    Args:
        run: A run, its result, a list of events, or a mapping to the keys of `STATES`, which is checked.

    Raises:
        TypeError: For anything else.
        ValueError: For a state that does not exist.
    """
    if hasattr(run, "tasks") and hasattr(run, "interrupts"):  # the result of a state graph
        ran = {node: "done" for _, _, node, _, _ in run.tasks}
        return ran | {each.node: "waiting" for each in run.interrupts}
    if isinstance(run, Mapping):
        for key, state in run.items():
            if state not in STATES:
                msg = (
                    f"{key!r} has the state {state!r}, which does not exist. Use one of {', '.join(map(repr, STATES))}."
                )
                raise ValueError(msg)
        return dict(run)
    has_graph = any(hasattr(run, name) for name in ("executors", "nodes", "workflow"))
    if run is None or run == [] or (has_graph and not hasattr(run, "run_id")):
        return {}
    try:
        history = read_runs(run)[-1]
    except (TypeError, IndexError) as error:
        msg = f"run={type(run).__name__} has no executor states. Pass a run, its result, or states by executor id."
        raise TypeError(msg) from error
    states = {call.executor: STATE_OF_CALL[call.status] for call in history.all_calls}
    if history.open_requests is None:  # only the events tell who waits until the executor runs again
        has_requests = {call.executor: bool(call.requests) for call in history.calls}
        states |= {executor: "waiting" for executor, is_waiting in has_requests.items() if is_waiting}
    else:
        states |= dict.fromkeys(history.open_requests.values(), "waiting")
    states = {executor: state for executor, state in states.items() if state != "idle"}
    return states if history.is_over else _with_queued(states, getattr(run, "handle", run))


def _with_queued(states: dict[Any, str], run: Any) -> dict[Any, str]:
    """Add the executors that are called next and the edges to them, for an unfinished run."""
    plan = getattr(run, "plan_without_conditions", None)
    if plan is None or run.is_over:
        return states
    queued: set[Any] = set()
    if run.started_from is None and not states:
        queued = {start.id for start in run.workflow.graph.start_executors}
    else:
        for delivery in plan():
            queued |= {delivery.target, *((source, delivery.target) for source in delivery.sources)}
    return states | {key: strongest((states.get(key, "idle"), "queued")) for key in queued}
