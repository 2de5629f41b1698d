from typing import Any

import pytest

from agentbench._clock import CountingIds, TickingClock, set_runtime_defaults
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.exceptions import WorkflowCheckpointException
from tests.parts.errors import raises

FIELDS = [
    "workflow_name",
    "graph_signature_hash",
    "checkpoint_id",
    "previous_checkpoint_id",
    "timestamp",
    "messages",
    "state",
    "pending_request_info_events",
    "iteration_count",
    "metadata",
    "version",
]


def test_ids_and_times_come_from_the_defaults_of_the_process():
    set_runtime_defaults(clock=TickingClock("2024-01-01T00:00:00Z", tick_s=0.5), ids=CountingIds())
    made = [WorkflowCheckpoint("flow", "hash") for _ in range(2)]
    assert [each.checkpoint_id for each in made] == ["cp-0001", "cp-0002"]
    assert [each.timestamp for each in made] == ["2024-01-01T00:00:00.000000+00:00", "2024-01-01T00:00:00.500000+00:00"]


def test_to_dict_lists_the_fields_in_order_and_copies_nothing():
    checkpoint = WorkflowCheckpoint("flow", "hash", messages={"a": [object()]}, state={"a": [1]})
    result = checkpoint.to_dict()
    assert list(result) == FIELDS
    assert all(result[name] is getattr(checkpoint, name) for name in FIELDS)


@pytest.mark.parametrize("missing", ["workflow_name", "graph_signature_hash"])
def test_from_dict_names_a_missing_field(missing):
    data = WorkflowCheckpoint("flow", "hash").to_dict()
    del data[missing]
    with raises(WorkflowCheckpointException, f"'{missing}'"):
        WorkflowCheckpoint.from_dict(data)


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_the_text_may_come_back_as_bytes(kind):
    checkpoint = WorkflowCheckpoint("flöw", "hash", state={"text": "ä €"})
    assert WorkflowCheckpoint.from_json(kind(checkpoint.to_json().encode())) == checkpoint


def test_bytes_that_are_no_text_are_refused():
    with raises(WorkflowCheckpointException, "UTF-8"):
        WorkflowCheckpoint.from_json(b"\xff{}")


def test_another_format_is_refused():
    cases: list[Any] = ["9.0", "2", "10.0", "", 1, None]
    for version in cases:
        text = WorkflowCheckpoint("flow", "hash", "cp-1", version=version).to_json()
        with raises(WorkflowCheckpointException, "'cp-1'", "1.x"):
            WorkflowCheckpoint.from_json(text)


@pytest.mark.parametrize("version", ["1", "1.0", "1.9", "1.0.1"])
def test_another_version_of_the_same_format_is_read(version):
    text = WorkflowCheckpoint("flow", "hash", version=version).to_json()
    assert WorkflowCheckpoint.from_json(text).version == version


def test_the_repr_of_a_checkpoint_that_is_read_later_reads_nothing_and_shows_what_is_known():
    def read(name):
        raise OSError(name)

    checkpoint = WorkflowCheckpoint.read_later({"workflow_name": "w", "checkpoint_id": "cp-1"}, read)
    assert repr(checkpoint) == "WorkflowCheckpoint('cp-1', workflow_name='w', …not read yet)"
    checkpoint.iteration_count, checkpoint.messages = 2, {"a": ["x", "y"]}
    assert repr(checkpoint) == (
        "WorkflowCheckpoint('cp-1', workflow_name='w', iteration_count=2, messages=2, …not read yet)"
    )


@pytest.mark.parametrize(("damaged", "shown"), [(None, "<NoneType>"), (5, "<int>"), ({"a": None}, "1")])
def test_the_repr_never_raises(damaged, shown):
    checkpoint = WorkflowCheckpoint("w", "hash", messages=damaged, pending_request_info_events=damaged)
    assert f"messages={shown}, requests={shown}" in repr(checkpoint)


def test_the_repr_fits_one_line_and_keeps_the_id_whole():
    checkpoint = WorkflowCheckpoint(
        "flow",
        "hash",
        checkpoint_id="c" * 36,
        messages={"a": ["x", "y"], "b": ["z"]},
        state={"text": "long " * 1000},
        pending_request_info_events={"r": object()},
        iteration_count=4,
    )
    assert repr(checkpoint) == (
        f"WorkflowCheckpoint({'c' * 36!r}, workflow_name='flow', iteration_count=4, messages=3, requests=1)"
    )


def test_fields_of_another_kind_are_refused_by_name():
    cases = [
        ("messages", 5, "messages is a int"),
        ("messages", {"a": 5}, "messages['a'] is a int"),
        ("state", [], "state is a list"),
        ("pending_request_info_events", "", "pending_request_info_events is a str"),
        ("metadata", None, "metadata is a NoneType"),
    ]
    for field, found, named in cases:
        fields = {"workflow_name": "flow", "graph_signature_hash": "hash", field: found}
        with pytest.raises(WorkflowCheckpointException) as caught:
            WorkflowCheckpoint.from_dict(fields)
        assert named in str(caught.value)
