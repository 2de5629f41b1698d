"""The answers to the requests of runs, as far as checkpoints store them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.metadata import DURATION_S, RUN_ID, SOURCE
from agentbench.notebook.history.run_history import ExecutorCall, RunHistory
from agentbench.notebook.history.sources import Chosen, read_checkpoints, time_ns

__all__ = ["UNKNOWN", "Answer", "RequestKey", "answers_in", "calls_with_waits", "last_waits"]

#: The value of an answer that was given and that no checkpoint holds; `None` is an answer like others.
UNKNOWN: Final = object()

# Ids of requests may repeat from run to run.
RequestKey = tuple[str | None, str]


@dataclass(frozen=True)
class Answer:
    """The answer to a request, and when it came."""

    value: object
    at_ns: int | None


def calls_with_waits(run: RunHistory) -> list[ExecutorCall]:
    """Return what executors did, with the times that their requests waited, as far as checkpoints store the answers."""
    asking = [call for call in run.calls if call.requests]
    if asking and run.storage is not None:
        read = read_checkpoints(run, Chosen())
        answers = _answers(each for each in read.rows if read.can_read(each))
        answered_ns = {request_id: answer.at_ns for (_, request_id), answer in answers.items()}
        for call in asking:
            waits = [
                answered - event.time_ns
                for event in call.requests
                if event.time_ns is not None and (answered := answered_ns.get(event.request_id)) is not None
            ]
            call.wait_ns = max(waits, default=None)
    return run.calls


def answers_in(
    checkpoints: Sequence[WorkflowCheckpoint], others: Sequence[WorkflowCheckpoint]
) -> dict[RequestKey, Answer]:
    """Return the answers to requests.

    Args:
        checkpoints: Those of the wanted runs.
        others: All that can be read; a run that went on from one of these may hold the answer.
    """
    return _gone(others) | _answers_of_heirs(others) | _answers(checkpoints)


def last_waits(checkpoints: Iterable[WorkflowCheckpoint]) -> dict[RequestKey, str]:
    """The last checkpoint in which each request waits: the one to go on from with an answer."""
    return {
        (checkpoint.metadata.get(RUN_ID), request_id): checkpoint.checkpoint_id
        for checkpoint in checkpoints
        for request_id in checkpoint.pending_request_info_events
    }


def _answers(checkpoints: Iterable[WorkflowCheckpoint]) -> dict[RequestKey, Answer]:
    """The answers that wait in checkpoints as messages, each when it is first met."""
    found: dict[RequestKey, Answer] = {}
    for checkpoint in checkpoints:
        for messages in checkpoint.messages.values():
            for message in messages:
                request = message.original_request_info_event
                if request is not None:
                    key = (checkpoint.metadata.get(RUN_ID), request.request_id)
                    found.setdefault(key, Answer(message.data, time_ns(checkpoint.timestamp)))
    return found


def _answers_of_heirs(checkpoints: Sequence[WorkflowCheckpoint]) -> dict[RequestKey, Answer]:
    """The answers that came after a resume, by the run in whose checkpoints the request waited."""
    by_id = {checkpoint.checkpoint_id: checkpoint for checkpoint in checkpoints}
    found: dict[RequestKey, Answer] = {}
    for checkpoint in checkpoints:
        for (_, request_id), answer in _answers([checkpoint]).items():
            for before in _waits_before(checkpoint, request_id, by_id):
                found.setdefault((before.metadata.get(RUN_ID), request_id), answer)
    return found


def _gone(checkpoints: Sequence[WorkflowCheckpoint]) -> dict[RequestKey, Answer]:
    """When requests were answered whose answers no checkpoint holds: they came with the resume that took them up."""
    by_id = {checkpoint.checkpoint_id: checkpoint for checkpoint in checkpoints}
    found: dict[RequestKey, Answer] = {}
    for checkpoint in checkpoints:
        before = by_id.get(checkpoint.previous_checkpoint_id or "")
        if before is None or checkpoint.metadata.get(SOURCE) in ("fork", "update"):
            continue
        for request_id in before.pending_request_info_events.keys() - checkpoint.pending_request_info_events.keys():
            answer = Answer(UNKNOWN, _began_ns(checkpoint))
            for each in _waits_before(checkpoint, request_id, by_id):
                found.setdefault((each.metadata.get(RUN_ID), request_id), answer)
    return found


def _began_ns(checkpoint: WorkflowCheckpoint) -> int | None:
    """When the superstep began that a checkpoint was saved after."""
    saved, took_s = time_ns(checkpoint.timestamp), checkpoint.metadata.get(DURATION_S)
    return saved - round(took_s * 1e9) if saved is not None and isinstance(took_s, (int, float)) else saved


def _waits_before(
    checkpoint: WorkflowCheckpoint, request_id: str, by_id: Mapping[str, WorkflowCheckpoint]
) -> Iterator[WorkflowCheckpoint]:
    """The checkpoints that led here and in which a request waits, up to a fork, which is another future."""
    passed = {checkpoint.checkpoint_id}  # a storage of somebody else may hold a ring
    before = by_id.get(checkpoint.previous_checkpoint_id or "")
    while before is not None and before.checkpoint_id not in passed:
        if request_id not in before.pending_request_info_events:
            return
        yield before
        if before.metadata.get(SOURCE) in ("fork", "update"):
            return
        passed.add(before.checkpoint_id)
        before = by_id.get(before.previous_checkpoint_id or "")
