"""Redo a run with the current code: a branch that runs on the recorded answers of models and people."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentbench._display import shorten
from agentbench.agents.clients.cassette.recording import ModelRecording, RecordedCall, check_new_calls
from agentbench.checkpoints.access import list_lineage
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.metadata import CODE_HASHES
from agentbench.exceptions import RedoError
from agentbench.revisions.current_code import current_workflow
from agentbench.workflows.executors.recorder import GivenAnswer
from agentbench.workflows.run.definition import WorkflowDefinition
from agentbench.workflows.run.run import WorkflowRun


async def redo(run: WorkflowRun, since: int | None, workflow: Any, new_calls: Any) -> WorkflowRun:
    """Start the branch; `WorkflowRun.redo` documents it."""
    check_new_calls(new_calls)
    if since is not None and (type(since) is not int or since < 0):
        msg = f"since is {since!r}; expected the number of a superstep, from 0."
        raise ValueError(msg)
    if workflow is None:
        workflow = current_workflow(run)
    workflow = getattr(workflow, "workflow", workflow)  # of a compiled state graph
    if not isinstance(workflow, WorkflowDefinition):
        msg = f"workflow is {shorten(workflow)}; expected a Workflow or a compiled state graph."
        raise TypeError(msg)
    lineage = await _lineage(run)
    if since is None:
        since = first_changed(run, lineage, workflow.graph.code_hashes)
    recording = await _recorded_since(run, lineage, since, new_calls)
    before = [info for info in lineage if info.iteration < since]
    return await run.fork(before[-1] if before else "input", workflow=workflow, record=recording)


async def _lineage(run: WorkflowRun) -> list[CheckpointInfo]:
    """Return the checkpoints that led to the current state, oldest first."""
    last = run.last_checkpoint.checkpoint_id if run.last_checkpoint is not None else run.started_from
    return [] if last is None or run.storage is None else await list_lineage(run.storage, last)


def hashes_before(run: WorkflowRun, lineage: Sequence[CheckpointInfo]) -> Mapping[str, str]:
    """Return the code hashes with which a run began, also in another process."""
    stored = (info.metadata.get(CODE_HASHES) for info in reversed(lineage))
    found: Mapping[str, str] = next(filter(None, stored), run.code_hashes)
    return found


def first_changed(run: WorkflowRun, lineage: Sequence[CheckpointInfo], now: Mapping[str, str]) -> int:
    """Return the first superstep in which an executor took part whose code has changed.

    Raises:
        RedoError: No code has changed, or only that of executors that did not run.
    """
    before = hashes_before(run, lineage)
    changed = [part for part in {**before, **now} if before.get(part) != now.get(part)]
    if not changed:
        msg = "No code has changed since the run began. Pass since=, the superstep from which to redo it."
        raise RedoError(msg)
    executors = {part.partition("->")[0].partition("/")[0] for part in changed}
    if not executors <= run.workflow.executors.keys():
        return 0  # a reducer, or the code around all nodes
    supersteps = [info.iteration for info in lineage if executors.intersection(info.writers)]
    report = run.last_report
    if report is not None and report.failures and executors.intersection(report.invoked):
        supersteps.append(report.superstep)
    if not supersteps:
        msg = (
            f"The changed code ({', '.join(changed)}) did not run in this run. Continue it with the new code: "
            "run.fork(workflow=...), or pass since=."
        )
        raise RedoError(msg, changed=changed)
    return min(supersteps)


async def _recorded_since(
    run: WorkflowRun, lineage: Sequence[CheckpointInfo], since: int, new_calls: Any
) -> ModelRecording:
    """Return a recording that gives the calls and answers of the lineage again; those of the newest run first."""
    calls: list[RecordedCall] = []
    earlier: list[RecordedCall] = []
    answers: list[GivenAnswer] = []
    run_ids = dict.fromkeys([run.run_id, *(info.run_id for info in reversed(lineage) if info.run_id is not None)])
    chain = lineage[-1].workflow_name if lineage else ""
    for run_id in run_ids:
        recording = run.recording
        if run_id != run.run_id:
            recording = None if run.storage is None else await ModelRecording.of_run(run.storage, chain, run_id)
        if recording is not None:
            calls += [each for each in recording.own if each.superstep >= since]
            earlier = [*(each for each in recording.own if each.superstep < since), *earlier]
            answers += recording.answers
    everything = run.recording is None or run.recording.everything
    redone = ModelRecording(calls, answers or run.answers, new_calls=new_calls, everything=everything)
    redone.inherit(earlier)
    return redone
