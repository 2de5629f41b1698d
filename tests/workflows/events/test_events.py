import copy
import json
import pickle
import traceback
from dataclasses import dataclass
from typing import Any

import pytest

from agentbench.workflows.events.events import (
    EventStamps,
    WorkflowErrorDetails,
    WorkflowEvent,
    WorkflowEventSource,
    WorkflowEventType,
    WorkflowRunState,
)
from tests.parts.errors import raises, warns

OF_FRAMEWORK = WorkflowEventSource.FRAMEWORK
OF_EXECUTOR = WorkflowEventSource.EXECUTOR
DETAILS = WorkflowErrorDetails("ValueError", "no")

PLAIN_FIELDS = ("data", "state", "details", "executor_id", "iteration")


@dataclass
class Draft:
    text: str


def filled(event):
    """The fields of an event that are set."""
    return {name: value for name in PLAIN_FIELDS if (value := getattr(event, name)) is not None}


# ---- types ---------------------------------------------------------------------------------------


def test_a_type_constant_and_its_text_are_the_same_thing():
    for member in WorkflowEventType:
        event: WorkflowEvent[None] = WorkflowEvent(member)
        assert type(event.type) is str
        assert event.type == member == member.value == member.name.lower()
        assert hash(member) == hash(member.value)
        assert f"{member}" == str(member) == member.value
        assert WorkflowEventType(member.value) is member
    assert WorkflowEvent("my_kind", data=1).type == "my_kind"


# ---- factories -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "kind", "fields", "origin"),
    [
        (WorkflowEvent.started(), "started", {}, OF_FRAMEWORK),
        (
            WorkflowEvent.status(WorkflowRunState.IDLE),
            "status",
            {"state": WorkflowRunState.IDLE},
            OF_FRAMEWORK,
        ),
        (WorkflowEvent.failed(DETAILS), "failed", {"details": DETAILS}, OF_FRAMEWORK),
        (WorkflowEvent.superstep_started(2), "superstep_started", {"iteration": 2}, OF_FRAMEWORK),
        (WorkflowEvent.superstep_completed(2, "d"), "superstep_completed", {"iteration": 2, "data": "d"}, OF_FRAMEWORK),
        (WorkflowEvent.executor_invoked("a", 0), "executor_invoked", {"executor_id": "a", "data": 0}, OF_FRAMEWORK),
        (WorkflowEvent.executor_completed("a"), "executor_completed", {"executor_id": "a"}, OF_FRAMEWORK),
        (
            WorkflowEvent.executor_failed("a", DETAILS),
            "executor_failed",
            {"executor_id": "a", "details": DETAILS, "data": DETAILS},
            OF_FRAMEWORK,
        ),
        (WorkflowEvent.executor_bypassed("a", 1), "executor_bypassed", {"executor_id": "a", "data": 1}, OF_FRAMEWORK),
        (WorkflowEvent.warning("careful"), "warning", {"data": "careful"}, OF_EXECUTOR),
        (WorkflowEvent("custom", 1, executor_id="a"), "custom", {"data": 1, "executor_id": "a"}, OF_EXECUTOR),
    ],
    ids=lambda value: value.type if isinstance(value, WorkflowEvent) else None,
)
def test_a_factory_fills_the_fields_of_its_type_and_no_others(event, kind, fields, origin):
    assert event.type == kind
    assert filled(event) == fields
    assert event.origin is origin


def test_an_error_event_carries_the_exception_and_a_failure_its_details_twice():
    error = KeyError("k")
    assert (WorkflowEvent.error(error).type, WorkflowEvent.error(error).data) == ("error", error)
    failure = WorkflowEvent.executor_failed("a", DETAILS)
    assert failure.data is failure.details


def test_emit_is_deprecated():
    with warns(DeprecationWarning, "yield_output"):
        event = WorkflowEvent.emit("a", 5)
    assert (event.type, event.executor_id, event.data) == ("data", "a", 5)


def test_a_request_has_its_executor_and_the_types_of_request_and_answer():
    event = WorkflowEvent.request_info("r1", "review", Draft("x"), str)
    assert event.type == "request_info"
    assert (event.request_id, event.source_executor_id) == ("r1", "review")
    assert (event.request_type, event.response_type) == (Draft, str)
    assert event.data == Draft("x")
    assert event.executor_id is None


def test_fields_of_requests_are_refused_on_other_events():
    for field in ("request_id", "source_executor_id", "request_type", "response_type"):
        with raises(RuntimeError, "'started'", field):
            getattr(WorkflowEvent.started(), field)


def test_source_id_names_the_executor_of_any_event_and_never_raises():
    assert WorkflowEvent("anything").source_id is None
    assert WorkflowEvent.executor_invoked("a").source_id == "a"
    assert WorkflowEvent.request_info("r", "sender", 1, int).source_id == "sender"


# ---- requests as dicts ---------------------------------------------------------------------------


def test_only_requests_turn_into_a_dict():
    with raises(ValueError, "to_json_dict"):
        WorkflowEvent.started().to_dict()
    written = WorkflowEvent.request_info("r", "a", Draft("x"), Draft).to_dict()
    assert list(written) == ["type", "data", "request_id", "source_executor_id", "request_type", "response_type"]
    assert (written["type"], written["request_type"]) == ("request_info", f"{Draft.__module__}.Draft")


@pytest.mark.parametrize("response_type", [bool, dict[str, int] | None, Any], ids=str)
def test_a_request_comes_back_with_its_types_generic_ones_too(response_type):
    event = WorkflowEvent.request_info("r", "a", 3, response_type)
    back = WorkflowEvent.from_dict(json.loads(json.dumps(event.to_dict())))
    assert (back.request_id, back.source_executor_id, back.data) == ("r", "a", 3)
    assert (back.request_type, back.response_type) == (int, response_type)


def test_a_request_whose_data_has_another_type_than_recorded_is_refused():
    written = WorkflowEvent.request_info("r", "a", 3, int).to_dict() | {"data": "three"}
    with raises(TypeError, "type"):
        WorkflowEvent.from_dict(written)


# ---- errors --------------------------------------------------------------------------------------


def raised(error):
    with pytest.raises(type(error)) as caught:
        raise error
    return caught.value


def test_details_describe_an_exception_with_its_traceback():
    details = WorkflowErrorDetails.from_exception(raised(KeyError("k")), executor_id="a", extra={"n": 1})
    assert (details.error_type, details.message, details.executor_id, details.extra) == (
        "KeyError",
        "'k'",
        "a",
        {"n": 1},
    )
    assert details.traceback is not None
    assert details.traceback.startswith("Traceback (most recent call last):")
    assert "raise error" in details.traceback
    assert (
        repr(details) == "WorkflowErrorDetails(error_type='KeyError', message=\"'k'\", executor_id='a', extra={'n': 1})"
    )


def test_details_are_made_although_text_or_traceback_cannot_be_formatted(monkeypatch):
    class MuteError(Exception):
        def __str__(self):
            raise RuntimeError("no text")

    details = WorkflowErrorDetails.from_exception(raised(MuteError()))
    assert details.error_type == "MuteError"
    assert "MuteError" in details.message
    monkeypatch.setattr(traceback, "format_exception", {}.__getitem__)
    assert WorkflowErrorDetails.from_exception(KeyError("k")).traceback is None


# ---- stamps --------------------------------------------------------------------------------------

STAMPS = EventStamps.__slots__


def test_stamps_are_read_from_the_event_and_written_only_to_json():
    event = WorkflowEvent.request_info("r", "a", 1, int)
    assert {name: getattr(event, name) for name in STAMPS} == dict.fromkeys(STAMPS)
    event._stamps = EventStamps(seq=7, run_id="run-1", superstep=2, time_ns=99)
    assert (event.seq, event.run_id, event.superstep, event.time_ns, event.order) == (7, "run-1", 2, 99, None)
    assert not set(STAMPS) & set(event.to_dict())
    assert {k: v for k, v in event.to_json_dict().items() if k in STAMPS} == {
        "seq": 7,
        "run_id": "run-1",
        "superstep": 2,
        "time_ns": 99,
    }


# ---- as values -----------------------------------------------------------------------------------


@pytest.mark.parametrize("copied", [copy.copy, copy.deepcopy, lambda e: pickle.loads(pickle.dumps(e))])
def test_events_can_be_copied_and_pickled(copied):
    event = WorkflowEvent.request_info("r", "a", [1], int)
    event._stamps = EventStamps(1, "run", 0, 5)
    twin = copied(event)
    assert twin is not event
    assert twin.to_dict() == event.to_dict()
    assert twin.to_json_dict() == event.to_json_dict()


def test_an_event_prints_what_it_is_about():
    assert repr(WorkflowEvent.status(WorkflowRunState.IDLE)) == "WorkflowEvent('status', state=IDLE)"
    assert repr(WorkflowEvent.superstep_started(3)) == "WorkflowEvent('superstep_started', iteration=3)"
    request = WorkflowEvent.request_info("R", "a", 1, int)
    assert repr(request) == "WorkflowEvent('request_info', request_id='R', executor='a', data=1)"
