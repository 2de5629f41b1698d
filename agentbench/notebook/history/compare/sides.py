"""Two runs or two chains of checkpoints, read as sides of a comparison."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.metadata import RUN_ID, SOURCE, WRITERS
from agentbench.notebook.history.calls import run_bars
from agentbench.notebook.history.compare.comparison import Outcome, Side, Step
from agentbench.notebook.history.contents import Everything
from agentbench.notebook.history.sources import Chosen, Run, read_all_checkpoints, read_runs
from agentbench.notebook.history.state import flatten_state, states_of
from agentbench.notebook.history.supersteps import supersteps_of
from agentbench.notebook.text.phrases import run_name

__all__ = ["read_sides"]


def read_sides(a: Any, b: Any, source: Any) -> tuple[Side, Side]:
    """Return both sides, named by their run ids if these differ.

    Args:
        a: A run, a result, a chain of checkpoints, or the id of a run.
        b: The other one, of the same types.
        source: A storage or a list of runs, needed for ids.

    Raises:
        TypeError: A side is none of these, or is an id and `source` is missing.
    """
    origins = [_origin(each, source) for each in (a, b)]
    # Both sides are read in the same way: events record more than checkpoints and number the start differently, but a
    # run that was resumed has no events of what came before.
    runs = [run for _, run, _, _ in origins if run is not None]
    begun = set(map(_start, runs))
    watched = len(runs) == 2 and (begun == {0} or any(run.storage is None for run in runs))
    sides = [
        _of_run(run) if watched and run is not None else _of_checkpoints(read_all_checkpoints(whole, chosen), run_id)
        for whole, run, chosen, run_id in origins
    ]
    names = [side.name for side in sides]
    if names[0] == names[1] or not all(names):
        names = [f"{name or 'run'} ({letter})" for name, letter in zip(names, "ab", strict=True)]
    one, other = (Side(name, side.steps, side.status) for name, side in zip(names, sides, strict=True))
    return one, other


def _origin(side: Any, source: Any) -> tuple[Any, Run | None, Chosen, str | None]:
    """Return what a side is read from, its run if that has events, the part of the source, and the run id if known."""
    run_id = side if isinstance(side, str) and source is not None else None
    whole = source if run_id is not None else side
    chosen = Chosen(run_id=run_id)
    runs = read_runs(whole, chosen)
    watched = [run for run in runs if any(event.type == "executor_invoked" for event in run.events)]
    known = runs[-1].run_id if runs else run_id
    return whole, watched[-1] if watched else None, chosen, known


def _start(run: Run) -> int:
    """Return the first superstep in which an executor ran."""
    steps = zip(run.events, supersteps_of(run.events), strict=True)
    return next(superstep for event, superstep in steps if event.type == "executor_invoked")


# ---- runs -------------------------------------------------------------------------------------------------------


def _of_run(run: Run) -> Side:
    results, requests = _results_and_requests(run)
    states: dict[int, Mapping[str, object]] = {at.superstep: at.state for at in states_of(run, internal=False)}
    outcomes: dict[int, dict[str, Outcome]] = {}
    for bar in run_bars(run):
        key = (bar.superstep, bar.executor)
        outcome = Outcome(bar.status, tuple(results.get(key, ())), tuple(requests.get(key, ())), bar.error)
        outcomes.setdefault(bar.superstep, {})[bar.executor] = outcome
    known: Mapping[str, object] = {}
    steps = {}
    for superstep, done in outcomes.items():
        known = states.get(superstep, known)
        steps[superstep] = Step(done, known)
    return Side(_name(run.run_id), steps, run.status)


def _results_and_requests(run: Run) -> tuple[dict[tuple[int, str], list[object]], dict[tuple[int, str], list[object]]]:
    """Return what executors sent or yielded, and the data of their requests, by superstep and executor."""
    results: dict[tuple[int, str], list[object]] = {}
    requests: dict[tuple[int, str], list[object]] = {}
    for event, superstep in zip(run.events, supersteps_of(run.events), strict=True):
        key = (superstep, event.source_id or "")
        if event.type == "executor_completed" and isinstance(event.data, list):
            results.setdefault(key, []).extend(event.data)
        elif event.type == "request_info":
            requests.setdefault(key, []).append(event.data)
    return results, requests


# ---- checkpoints ------------------------------------------------------------------------------------------------


def _of_checkpoints(read: Everything, known_id: str | None) -> Side:
    """Return the chain from the first to the last checkpoint as a side."""
    path = _path(read)
    outcomes: dict[int, dict[str, Outcome]] = {}
    states: dict[int, Mapping[str, object]] = {}
    for checkpoint in path:
        if not read.can_read(checkpoint):
            continue
        superstep = checkpoint.iteration_count
        states[superstep] = flatten_state(checkpoint.state)
        outcomes.setdefault(superstep, {}).update(_outcomes(checkpoint))
    read.warn_about_problems()
    run_ids = (each.metadata.get(RUN_ID) for each in reversed(path))
    run_id = next((run for run in run_ids if run is not None), known_id)
    return Side(_name(run_id), {step: Step(done, states[step]) for step, done in outcomes.items()})


def _path(read: Everything) -> Sequence[WorkflowCheckpoint]:
    at = read.rows[-1] if read.rows else None
    path: list[WorkflowCheckpoint] = []
    passed: set[str] = set()  # a foreign storage may hold a ring
    while at is not None and at.checkpoint_id not in passed:
        path.append(at)
        passed.add(at.checkpoint_id)
        at = read.find(at.previous_checkpoint_id)
    return path[::-1]


def _outcomes(checkpoint: WorkflowCheckpoint) -> dict[str, Outcome]:
    requests: dict[str, list[object]] = {}
    for request in checkpoint.pending_request_info_events.values():
        requests.setdefault(str(request.source_executor_id), []).append(request.data)
    ran = [str(name) for name in checkpoint.metadata.get(WRITERS) or ()]
    broken = (
        checkpoint.metadata.get(SOURCE) == "error" and len(ran) == 1
    )  # of several, the one that failed is not recorded
    return {
        name: Outcome(
            "failed" if broken else "waiting" if name in requests else "completed",
            tuple(message.data for message in checkpoint.messages.get(name, ())),
            tuple(requests.get(name, ())),
        )
        for name in ran
    }


def _name(run_id: str | None) -> str:
    return "" if run_id is None else run_name(run_id)
