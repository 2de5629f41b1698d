"""The requests of runs to people, and the answers that checkpoints store."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.metadata import DURATION_S, RUN_ID, SOURCE
from agentbench.notebook.history.run_history import ExecutorCall, RunHistory
from agentbench.notebook.history.sources import Chosen, Name, ancestors, read_checkpoints, read_runs, time_ns
from agentbench.workflows.events.events import WithdrawnWarning
from agentbench.workflows.executors.message import WITHDRAWN

UNKNOWN: Final = object()
"""The value of an answer that no checkpoint stores; `None` is a valid answer."""

# Run and request, because request ids may repeat from run to run.
_Key = tuple[str | None, str]
# An answer and its time.
_Answer = tuple[object, int | None]


@dataclass(slots=True)
class PersonRequest:
    """A request to a person, from the first event or checkpoint that contains it."""

    request: Any
    run_id: str | None
    superstep: int
    asked_ns: int | None
    answer: object = None
    """The answer: `None` while open, `WITHDRAWN` if nobody answers it, `UNKNOWN` if no checkpoint stores it."""
    answered_ns: int | None = None
    checkpoint_id: str | None = None
    """The last checkpoint in which it is open, to resume from with an answer."""

    @property
    def wait_s(self) -> float:
        """Waiting time; NaN if unknown."""
        if self.asked_ns is None or self.answered_ns is None:
            return float("nan")
        return (self.answered_ns - self.asked_ns) / 1e9


def calls_with_waits(run: RunHistory) -> list[ExecutorCall]:
    """Return all executor calls, also in sub-workflows, with the waiting times of requests from checkpoints."""
    asking = [call for call in run.calls if call.requests]
    if asking and run.storage is not None:
        read = read_checkpoints(run, Chosen())
        answers = _answers_in(each for each in read.rows if read.can_read(each))
        answered_ns = {request_id: at_ns for (_, request_id), (_, at_ns) in answers.items()}
        for call in asking:
            waits = [
                answered - event.time_ns
                for event in call.requests
                if event.time_ns is not None and (answered := answered_ns.get(event.request_id)) is not None
            ]
            call.wait_ns = max(waits, default=None)
    return run.all_calls


def requests_of(source: Any, *, workflow_name: Name = None, run_id: Name = None) -> list[PersonRequest]:
    """Return the requests of the sources in order."""
    chosen = Chosen(workflow_name, run_id)
    runs, read = read_runs(source, chosen), read_checkpoints(source, chosen)
    checkpoints = [checkpoint for checkpoint in read.rows if read.can_read(checkpoint)]
    everything = [each for each in read.by_id.values() if read.can_read(each)]
    read.warn_about_problems()
    requests: dict[_Key, PersonRequest] = {}
    for run in runs:  # events have the exact time
        warnings = [event.data for step in run.supersteps for event in step.warnings]
        withdrawn = {text.request_id for text in warnings if isinstance(text, WithdrawnWarning)}
        for call in run.calls:
            for event in call.requests:  # a restored run emits its pending requests again
                record = PersonRequest(event, run.run_id, call.superstep, event.time_ns)
                requests.setdefault((run.run_id, event.request_id), record)
                if event.request_id in withdrawn:
                    record.answer = WITHDRAWN
                elif run.open_requests is not None and event.request_id not in run.open_requests:
                    record.answer = UNKNOWN
    for checkpoint in checkpoints:
        run_id, asked_ns = checkpoint.metadata.get(RUN_ID), time_ns(checkpoint.timestamp)
        for request_id, request in checkpoint.pending_request_info_events.items():
            record = PersonRequest(request, run_id, checkpoint.iteration_count, asked_ns)
            requests.setdefault((run_id, request_id), record).checkpoint_id = checkpoint.checkpoint_id
    # Best source: the run itself; then a run that resumed from it; then the fact that it was answered.
    answers = _answers_of_heirs(everything) | _answers_in(checkpoints)
    for key, record in requests.items():
        record.answer, record.answered_ns = answers.get(key, (record.answer, None))
    return list(requests.values())


def _answers_in(checkpoints: Iterable[WorkflowCheckpoint]) -> dict[_Key, _Answer]:
    """Return the answers that are queued in checkpoints as messages, each with the time of its first checkpoint."""
    answers: dict[_Key, _Answer] = {}
    for checkpoint in checkpoints:
        for message in (each for messages in checkpoint.messages.values() for each in messages):
            request = message.original_request_info_event
            if request is not None:
                key = (checkpoint.metadata.get(RUN_ID), request.request_id)
                answers.setdefault(key, (message.data, time_ns(checkpoint.timestamp)))
    return answers


def _answers_of_heirs(checkpoints: Sequence[WorkflowCheckpoint]) -> dict[_Key, _Answer]:
    """Return the answers given after a resume, by the runs whose checkpoints contain the open requests.

    An answer passed to the resume itself is not in a checkpoint: only its time is known.
    """
    by_id = {checkpoint.checkpoint_id: checkpoint for checkpoint in checkpoints}
    stored: dict[_Key, _Answer] = {}
    others: dict[_Key, _Answer] = {}
    for checkpoint in checkpoints:
        answers = {request_id: answer for (_, request_id), answer in _answers_in([checkpoint]).items()}
        before = by_id.get(checkpoint.previous_checkpoint_id or "")
        gone: set[str] = set()
        if before is not None and checkpoint.metadata.get(SOURCE) not in ("fork", "update"):
            gone = before.pending_request_info_events.keys() - checkpoint.pending_request_info_events.keys()
        for request_id in gone | answers.keys():
            for each in ancestors(by_id, checkpoint):
                if request_id not in each.pending_request_info_events:
                    break
                key = (each.metadata.get(RUN_ID), request_id)
                if request_id in answers:
                    stored.setdefault(key, answers[request_id])
                else:
                    others.setdefault(key, (UNKNOWN, _began_ns(checkpoint)))
                if each.metadata.get(SOURCE) in ("fork", "update"):  # earlier checkpoints belong to another branch
                    break
    return others | stored


def _began_ns(checkpoint: WorkflowCheckpoint) -> int | None:
    """Return the start time of the superstep before a checkpoint."""
    saved, took_s = time_ns(checkpoint.timestamp), checkpoint.metadata.get(DURATION_S)
    return saved - round(took_s * 1e9) if saved is not None and isinstance(took_s, (int, float)) else saved
