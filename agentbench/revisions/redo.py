"""Redo a run with the current code: a branch that runs on the recorded answers of models and people."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any, TypeVar

from agentbench._display import shorten
from agentbench.agents.clients.cassette.recorded_call import RecordedCall, check_new_calls
from agentbench.agents.clients.cassette.recording import ModelRecording
from agentbench.checkpoints.access import list_lineage
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.metadata import CODE_HASHES
from agentbench.exceptions import RedoError, WorkflowCheckpointException
from agentbench.revisions.current_code import current_workflow
from agentbench.workflows.executors.recorder import GivenAnswer
from agentbench.workflows.run.definition import WorkflowDefinition
from agentbench.workflows.run.run import WorkflowRun

_One = TypeVar("_One")


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
        msg = f"workflow is {shorten(workflow)}; expected a workflow or a compiled state graph."
        raise TypeError(msg)
    lineage = await _lineage(run)
    if since is None:
        since = first_changed(run, lineage, workflow.graph.code_hashes)
    before = [info for info in lineage if info.iteration < since]
    if since > (lineage[-1].iteration + 1 if lineage else 0):
        msg = f"since is {since}, but there is no checkpoint of the superstep before it."
        raise WorkflowCheckpointException(msg)
    start = before[-1] if before else None
    recording = await _recorded_after(run, lineage, start, new_calls)
    return await run.fork(start or "input", workflow=workflow, record=recording)


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
    if not before:
        msg = "It is not known which code has changed, because the run was not observed. Pass since=."
        raise RedoError(msg)
    changed = [part for part in {**before, **now} if before.get(part) != now.get(part)]
    if not changed:
        msg = "No code has changed since the run began. Pass since=, the superstep from which to redo it."
        raise RedoError(msg)
    executors = {part.partition("->")[0].partition("/")[0] for part in changed}
    if not executors <= run.workflow.executors.keys():
        return 0  # a reducer, or the code around all nodes
    if not lineage:
        return 0
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


async def _recorded_after(
    run: WorkflowRun, lineage: Sequence[CheckpointInfo], start: CheckpointInfo | None, new_calls: Any
) -> ModelRecording:
    """Return a recording that gives the calls and answers after a checkpoint again; those of the newest run first."""
    after = -1 if start is None else start.iteration
    requests: Collection[str] = ()
    if start is not None and start.n_requests and run.storage is not None:
        requests = (await run.storage.load(start.checkpoint_id)).pending_request_info_events
    calls: list[RecordedCall] = []
    earlier: list[RecordedCall] = []
    answers: list[GivenAnswer] = []
    for recording in await _recordings(run, lineage):
        unused, further = recording.unused
        late = [each for each in (*recording.own, *unused) if each.superstep > after]
        calls += _beyond(calls, late, lambda each: repr((each.call.request, each.call.response, each.call.updates)))
        earlier = [*(each for each in recording.own if each.superstep <= after), *earlier]
        given = [each for each in (*recording.answers, *further) if each.is_after(after, requests)]
        answers += _beyond(answers, given, lambda each: repr((each.executor_id, each.request, each.value)))
    if run.recording is None:
        answers += [each for each in run.answers if each.is_after(after, requests)]
        redone = ModelRecording(calls, answers, new_calls=new_calls)
    else:
        rules = {"everything": run.recording.everything, "limit": run.recording.limit}
        redone = ModelRecording(calls, answers, new_calls=new_calls, **rules)
    redone.inherit(earlier)
    return redone


async def _recordings(run: WorkflowRun, lineage: Sequence[CheckpointInfo]) -> list[ModelRecording]:
    """Return the recordings of the runs that led to the current state, newest first."""
    found = [] if run.recording is None else [run.recording]
    for run_id, chain in dict.fromkeys((info.run_id, info.workflow_name) for info in reversed(lineage)):
        if run_id is not None and run_id != run.run_id and run.storage is not None:
            found.append(await ModelRecording.of_run(run.storage, chain, run_id))
    return found


def _beyond(present: Sequence[_One], more: Sequence[_One], key: Callable[[_One], str]) -> Sequence[_One]:
    """Return what only the earlier run recorded; a run that redoes it records once more what it is given."""
    shared = Counter(map(key, present))
    if not shared:
        return more
    beyond = []
    for each in more:
        if shared[key(each)]:
            shared[key(each)] -= 1
        else:
            beyond.append(each)
    return beyond
