"""Two runs or two chains of checkpoints, read for comparing them."""

from collections.abc import Mapping, Sequence
from typing import Any

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.metadata import RUN_ID, SOURCE, WRITERS
from agentbench.notebook.compare_model import Deed, Side, Step
from agentbench.notebook.event_frames import run_bars
from agentbench.notebook.frame_contents import Everything
from agentbench.notebook.frame_sources import Chosen, Run, read_all_checkpoints, read_runs
from agentbench.notebook.state_frames import flattened, moments_of
from agentbench.notebook.step_log import run_name
from agentbench.notebook.timeline_model import supersteps_of

__all__ = ["read_sides"]


def read_sides(a: Any, b: Any, source: Any) -> tuple[Side, Side]:
    """Read both sides; they are called by their run ids where these differ.

    Args:
        a: A run, a result, a chain of checkpoints, or the id of a run.
        b: Likewise.
        source: Where ids are looked up.

    Raises:
        TypeError: For an id without a source, and for what is no source.
    """
    given = [_given(each, source) for each in (a, b)]
    # Both in the same way: a run that was watched tells more than its checkpoints, and numbers its start otherwise.
    # One that went on from a checkpoint tells nothing of what came before; its checkpoints do.
    runs = [run for _, run, _, _ in given if run is not None]
    begun = set(map(_start, runs))
    watched = len(runs) == 2 and (begun == {0} or any(run.storage is None for run in runs))
    sides = [
        _of_run(run) if watched and run is not None else _of_checkpoints(read_all_checkpoints(whole, chosen), run_id)
        for whole, run, chosen, run_id in given
    ]
    names = [side.name for side in sides]
    if names[0] == names[1] or not all(names):
        names = [f"{name or 'run'} ({letter})" for name, letter in zip(names, "ab", strict=True)]
    one, other = (Side(name, side.steps, side.status) for name, side in zip(names, sides, strict=True))
    return one, other


def _given(given: Any, source: Any) -> tuple[Any, Run | None, Chosen, str | None]:
    """One side: what it is read from, its run if that was watched, which part of it is meant, and its id if known."""
    run_id = given if isinstance(given, str) and source is not None else None
    whole = source if run_id is not None else given
    chosen = Chosen(run_id=run_id)
    runs = read_runs(whole, chosen)
    watched = [run for run in runs if any(event.type == "executor_invoked" for event in run.events)]
    known = runs[-1].run_id if runs else run_id
    return whole, watched[-1] if watched else None, chosen, known


def _start(run: Run) -> int:
    """The first superstep in which something ran."""
    steps = zip(run.events, supersteps_of(run.events), strict=True)
    return next(superstep for event, superstep in steps if event.type == "executor_invoked")


# ---- runs -------------------------------------------------------------------------------------------------------


def _of_run(run: Run) -> Side:
    results, questions = _told(run)
    states: dict[int, Mapping[str, object]] = {
        moment.superstep: moment.state for moment in moments_of(run, internal=False)
    }
    deeds: dict[int, dict[str, Deed]] = {}
    for bar in run_bars(run):
        key = (bar.superstep, bar.executor)
        deed = Deed(bar.status, tuple(results.get(key, ())), tuple(questions.get(key, ())), bar.error)
        deeds.setdefault(bar.superstep, {})[bar.executor] = deed
    known: Mapping[str, object] = {}
    steps = {}
    for superstep, done in deeds.items():
        known = states.get(superstep, known)
        steps[superstep] = Step(done, known)
    return Side(_name(run.run_id), steps, run.status)


def _told(run: Run) -> tuple[dict[tuple[int, str], list[object]], dict[tuple[int, str], list[object]]]:
    """What executors sent or yielded, and what they asked, by superstep and executor."""
    results: dict[tuple[int, str], list[object]] = {}
    questions: dict[tuple[int, str], list[object]] = {}
    for event, superstep in zip(run.events, supersteps_of(run.events), strict=True):
        key = (superstep, event.source_id or "")
        if event.type == "executor_completed" and isinstance(event.data, list):
            results.setdefault(key, []).extend(event.data)
        elif event.type == "request_info":
            questions.setdefault(key, []).append(event.data)
    return results, questions


# ---- checkpoints ------------------------------------------------------------------------------------------------


def _of_checkpoints(read: Everything, known_id: str | None) -> Side:
    """The chain that led to the last checkpoint, back to where it all began."""
    path = _path(read)
    deeds: dict[int, dict[str, Deed]] = {}
    states: dict[int, Mapping[str, object]] = {}
    for checkpoint in path:
        if not read.can_read(checkpoint):
            continue
        superstep = checkpoint.iteration_count
        states[superstep] = flattened(checkpoint.state)
        deeds.setdefault(superstep, {}).update(_deeds(checkpoint))
    read.tell_problems()
    told = (each.metadata.get(RUN_ID) for each in reversed(path))
    run_id = next((run for run in told if run is not None), known_id)
    return Side(_name(run_id), {step: Step(done, states[step]) for step, done in deeds.items()})


def _path(read: Everything) -> Sequence[WorkflowCheckpoint]:
    at = read.rows[-1] if read.rows else None
    path: list[WorkflowCheckpoint] = []
    passed: set[str] = set()  # a foreign storage may hold a ring
    while at is not None and at.checkpoint_id not in passed:
        path.append(at)
        passed.add(at.checkpoint_id)
        at = read.find(at.previous_checkpoint_id)
    return path[::-1]


def _deeds(checkpoint: WorkflowCheckpoint) -> dict[str, Deed]:
    asked: dict[str, list[object]] = {}
    for request in checkpoint.pending_request_info_events.values():
        asked.setdefault(str(request.source_executor_id), []).append(request.data)
    ran = [str(name) for name in checkpoint.metadata.get(WRITERS) or ()]
    broken = checkpoint.metadata.get(SOURCE) == "error" and len(ran) == 1  # of several nothing tells which it was
    return {
        name: Deed(
            "failed" if broken else "waiting" if name in asked else "completed",
            tuple(message.data for message in checkpoint.messages.get(name, ())),
            tuple(asked.get(name, ())),
        )
        for name in ran
    }


def _name(run_id: str | None) -> str:
    return "" if run_id is None else run_name(run_id)
