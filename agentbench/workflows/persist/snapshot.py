"""Converts the state of a run to a value and back, with the types of its state; needs no storage."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from agentbench.checkpoints.access import checkpoint_error
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.serialization.registry import of_kind, register_type
from agentbench.workflows.engine.active_run import NOTHING, RunState
from agentbench.workflows.engine.run_kwargs import RUN_KWARGS
from agentbench.workflows.events.events import EventStamps, WorkflowEvent, WorkflowEventSource, WorkflowRunState
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.message import WITHDRAWN, MessageType, Withdrawn, WorkflowMessage
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.persist.graph_changes import require_fitting

# Reserved keys of shared state.
EXECUTOR_STATE = "_executor_state"
RUNS_INSIDE = "execution_contexts"  # in the state of an executor with a sub-workflow: its unfinished runs
FAN_IN_BUFFERS = "_fan_in_buffers"


@dataclass(slots=True)
class Snapshot:
    """A run's part of a checkpoint; reserved keys of `state` hold the executors' own state and fan-in buffers."""

    superstep: int
    messages: dict[str, list[WorkflowMessage]]
    state: dict[str, Any]
    requests: dict[str, WorkflowEvent[Any]]


async def snapshot(graph: Graph, run_state: RunState) -> Snapshot:
    """Return the data needed to continue later in another run or process; pending writes are excluded."""
    state = run_state.state.committed.copy()
    if not graph.settings.checkpoint_run_kwargs:
        state.pop(RUN_KWARGS, None)
    messages = {source: list(queued) for source, queued in run_state.messages.items()}
    state[EXECUTOR_STATE] = {executor.id: await _own_state(executor) for executor in graph.stateful_executors}
    if run_state.buffers:
        state[FAN_IN_BUFFERS] = run_state.buffers
    return Snapshot(run_state.superstep, messages, state, dict(run_state.requests))


async def _own_state(executor: Executor) -> dict[str, Any]:
    try:
        saved: Any = await executor.on_checkpoint_save()
    except Exception as error:
        msg = f"on_checkpoint_save of executor {executor.id!r} raised {type(error).__name__}: {str(error).rstrip('.')}."
        raise WorkflowCheckpointException(msg, error) from error
    if not _is_text_keyed(saved):
        msg = (
            f"on_checkpoint_save of executor {executor.id!r} returned {saved!r}; "
            "expected a dict with text keys, as on_checkpoint_restore gets it back."
        )
        raise WorkflowCheckpointException(msg)
    return dict(saved)


async def restore(graph: Graph, run_state: RunState, saved: Snapshot, where: str = "The snapshot") -> None:
    """Restore a run from a snapshot. All of it is checked before anything changes; `where` names it in errors."""
    try:
        state, executor_states, buffers = _check(graph, saved, where)
    except WorkflowCheckpointException:
        raise
    except Exception as error:
        raise checkpoint_error(error, f"{where} cannot be restored") from error
    before = run_state.state.export_state()
    run_state.state.clear()
    run_state.state.import_state(state)
    try:
        for executor_id, value in executor_states.items():
            await _restore_executor(graph.executors[executor_id], value, where)
    except BaseException:
        run_state.state.clear()
        run_state.state.import_state(before)
        raise
    run_state.buffers = buffers
    run_state.messages = {source: list(queued) for source, queued in saved.messages.items()}
    run_state.requests = dict(saved.requests)
    run_state.raised = []
    run_state.delivering = NOTHING
    run_state.superstep = saved.superstep


async def restore_checkpoint(graph: Graph, run_state: RunState, checkpoint: WorkflowCheckpoint) -> None:
    """Restore a run from a checkpoint, or leave it unchanged and raise. No request is emitted."""
    require_fitting(graph, checkpoint)
    content = Snapshot(
        checkpoint.iteration_count, checkpoint.messages, checkpoint.state, checkpoint.pending_request_info_events
    )
    await restore(graph, run_state, content, f"Checkpoint {checkpoint.checkpoint_id!r}")
    run_state.unconverged = False
    run_state.last_checkpoint_id = checkpoint.checkpoint_id


async def _restore_executor(executor: Executor, value: dict[str, Any], where: str) -> None:
    try:
        await executor.on_checkpoint_restore(value)
    except WorkflowCheckpointException:
        raise
    except Exception as error:
        what = f"Executor {executor.id!r} cannot restore its state from {where[0].lower()}{where[1:]}"
        raise checkpoint_error(error, what) from error


def _check(graph: Graph, saved: Snapshot, where: str) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return shared state, the executors' own states and the fan-in buffers of a valid snapshot."""
    _check_messages(saved.messages, where)
    requests: Mapping[str, object] = saved.requests
    for request_id, event in requests.items():
        if not isinstance(event, WorkflowEvent) or event.type != "request_info":
            raise _not_restorable(where, f"the request {request_id!r}", event)
    state = dict(saved.state)
    executor_states = state.pop(EXECUTOR_STATE, {})
    for executor_id, value in executor_states.items():
        if executor_id not in graph.executors:
            msg = f"{where} holds state of executor {executor_id!r}, which this workflow lacks."
            raise WorkflowCheckpointException(msg)
        if not _is_text_keyed(value):
            msg = f"{where}: the state of executor {executor_id!r} is not a dict with text keys."
            raise WorkflowCheckpointException(msg)
    buffers = state.pop(FAN_IN_BUFFERS, {})
    for key, waiting in buffers.items():
        _check_messages(waiting, f"{where}, fan-in {key!r}")
    return state, executor_states, buffers


def _check_messages(messages: Mapping[str, Iterable[object]], where: str) -> None:
    for source, queued in messages.items():
        for place, message in enumerate(queued):
            if not isinstance(message, WorkflowMessage):
                raise _not_restorable(where, f"message {place} of {source!r}", message)


def _not_restorable(where: str, what: str, found: object) -> WorkflowCheckpointException:
    msg = (
        f"{where} cannot be restored: {what} came back from the storage as a {type(found).__name__}. "
        "A storage that writes text must write the result of checkpoint.to_json(), and load it with "
        "WorkflowCheckpoint.from_json()."
    )
    return WorkflowCheckpointException(msg)


def _is_text_keyed(value: object) -> bool:
    return isinstance(value, dict) and all(isinstance(key, str) for key in value)


_OPTIONAL: Final = ("target_id", "trace_contexts", "source_span_ids", "original_request_info_event")
_REQUEST: Final = ("request_id", "source_executor_id", "request_type", "response_type")


def _message_to_dict(message: WorkflowMessage) -> dict[str, Any]:
    data: dict[str, Any] = {"data": message.data, "source_id": message.source_id}
    if message.type is not MessageType.STANDARD:
        data["type"] = message.type.value
    for name in _OPTIONAL:
        value = getattr(message, name)
        if value is not None:
            data[name] = value
    return data


def _write_message(message: WorkflowMessage, write: Callable[[Any], str]) -> str | None:
    """Return the text of `_message_to_dict` for a message of which most fields are not set."""
    if message.type is not MessageType.STANDARD or message.trace_contexts is not None:
        return None
    if message.source_span_ids is not None or message.original_request_info_event is not None:
        return None
    target = "" if message.target_id is None else f',"target_id":{write(message.target_id)}'
    return f'{{"data":{write(message.data)},"source_id":{write(message.source_id)}{target}}}'


def _message_from_dict(found: dict[str, Any]) -> WorkflowMessage:
    of_kind(str, found.get("type", ""))  # looking up an enum would compare anything with each member
    return WorkflowMessage.from_dict(found)


def _event_to_dict(event: WorkflowEvent[Any]) -> dict[str, Any]:
    data: dict[str, Any] = {"type": event.type}
    if event.origin is not WorkflowEventSource.EXECUTOR:
        data["origin"] = event.origin.value
    if event.state is not None:
        data["state"] = event.state.value
    for name in ("data", "details", "executor_id", "iteration"):
        value = getattr(event, name)
        if value is not None:
            data[name] = value
    if event._request is not None:  # noqa: SLF001 - same unit: what an event is made of
        data.update(zip(_REQUEST, event._request, strict=True))  # noqa: SLF001
    if event._stamps is not None:  # noqa: SLF001
        data["stamps"] = event._stamps.to_dict()  # noqa: SLF001
    return data


def _event_from_dict(found: dict[str, Any]) -> WorkflowEvent[Any]:
    stamps = found.pop("stamps", None)
    for name, read in (("origin", WorkflowEventSource), ("state", WorkflowRunState)):
        if name in found:
            found[name] = read(of_kind(str, found[name]))
    event = WorkflowEvent(**found)
    if stamps is not None:
        event._stamps = EventStamps.from_dict(of_kind(dict, stamps))  # noqa: SLF001
    return event


register_type(WorkflowMessage, "workflow_message", _message_to_dict, _message_from_dict, write=_write_message)
register_type(WorkflowEvent, "workflow_event", _event_to_dict, _event_from_dict)
register_type(Withdrawn, "withdrawn", lambda _: {}, lambda _: WITHDRAWN, frozen=True)
