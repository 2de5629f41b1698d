"""Messages and events in checkpoints."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.serialization.json_text import from_json, to_json
from agentbench.workflows.events.events import (
    EventStamps,
    SuperstepCompletionInfo,
    WorkflowErrorDetails,
    WorkflowEvent,
    WorkflowEventSource,
    WorkflowEventType,
    WorkflowRunState,
)
from agentbench.workflows.executors.approval import Approval
from agentbench.workflows.executors.message import MessageType, WorkflowMessage
from tests.ids import steady
from tests.serialization.samples import Note

DETAILS = WorkflowErrorDetails("ValueError", "bad", "trace", "e", {"a": (1,)})
REQUEST = WorkflowEvent.request_info("r1", "asker", Note("Ship?"), Approval | None)
STAMPS = tuple(EventStamps.__slots__)


def stamped(event: WorkflowEvent[Any], **more: Any) -> WorkflowEvent[Any]:
    event._stamps = EventStamps(3, "run-1", 2, 1_700_000_000_000_000_001)
    for name, value in more.items():
        setattr(event._stamps, name, value)
    return event


def facts(event: WorkflowEvent[Any]) -> dict[str, Any]:
    """Everything that an event says."""
    names = ["type", "data", "origin", "state", "details", "executor_id", "iteration", "source_id", *STAMPS]
    if event.type == "request_info":
        names += ["request_id", "source_executor_id", "request_type", "response_type"]
    return {name: getattr(event, name) for name in names}


@pytest.mark.parametrize(
    "message",
    [
        WorkflowMessage(None, "a"),
        WorkflowMessage(Note({1, 2}), "a", "b", MessageType.RESPONSE, [{"traceparent": "00"}], ["s"]),
    ],
    ids=["short", "full"],
)
def test_a_message_comes_back_as_it_was(message: WorkflowMessage) -> None:
    assert from_json(to_json([message])) == [message]


def test_a_message_that_answers_keeps_the_request() -> None:
    message = WorkflowMessage(Approval(approved=True), "internal:asker", "asker", MessageType.RESPONSE)
    message.original_request_info_event = REQUEST
    again = from_json(to_json(message))
    assert again.data == Approval(approved=True)
    assert facts(again.original_request_info_event) == facts(REQUEST)


@pytest.mark.parametrize(
    "event",
    [
        WorkflowEvent.started(),
        WorkflowEvent.status(WorkflowRunState.IDLE),
        WorkflowEvent.failed(DETAILS),
        WorkflowEvent.executor_failed("e", DETAILS),
        WorkflowEvent.superstep_completed(
            4, SuperstepCompletionInfo(CheckpointInfo("flow", "cp-1", 4, "2026"), True, False, ["a"])
        ),
        WorkflowEvent("custom", {"a": (1,)}, executor_id="e"),
        WorkflowEvent(WorkflowEventType.OUTPUT, 1, origin=WorkflowEventSource.FRAMEWORK, executor_id="e"),
        REQUEST,
        WorkflowEvent.request_info("r2", "asker", None, dict[str, list[Note]]),
        WorkflowEvent.request_info("r3", "asker", "text", Any),
        stamped(WorkflowEvent.executor_invoked("e", "in")),
        stamped(WorkflowEvent.executor_completed("e"), task_id="2:e:0", order=0, duration_s=0.5, span_id="s"),
    ],
    ids=steady,
)
def test_an_event_comes_back_with_everything_that_it_says(event: WorkflowEvent[Any]) -> None:
    again = from_json(to_json(event))
    assert type(again) is WorkflowEvent
    assert facts(again) == facts(event)
    assert (again._stamps is None) == (event._stamps is None)


@pytest.mark.parametrize(
    "found",
    [
        "{}",
        "[]",
        '{"type":"a","unknown":1}',
        '{"type":"status","state":"NO"}',
        '{"type":"a","stamps":{}}',
        '{"data":1}',
    ],
)
def test_a_made_up_event_is_refused(found: str) -> None:
    with pytest.raises(WorkflowCheckpointException):
        from_json(f'{{"__t__":"workflow_event","v":{found}}}')


@pytest.mark.parametrize("found", ["{}", "[]", '{"data":1}', '{"data":1,"source_id":"a","type":"odd"}'])
def test_a_made_up_message_is_refused(found: str) -> None:
    with pytest.raises(WorkflowCheckpointException):
        from_json(f'{{"__t__":"workflow_message","v":{found}}}')
