import copy
import dataclasses
import pickle
from typing import Any

import pytest

from agentbench._copying import isolate
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo


def full_checkpoint():
    return WorkflowCheckpoint(
        "flow",
        "hash",
        checkpoint_id="c2",
        previous_checkpoint_id="c1",
        timestamp="2024-01-01T00:00:00.000000+00:00",
        messages={"a": ["x", "y"], "b": ["z"]},
        state={"k": 1},
        pending_request_info_events={"r": object()},
        iteration_count=3,
        metadata={
            "seq": 7,
            "source": "fork",
            "run_id": "run-1",
            "forked_from": "c0",
            "writers": ["b", "a"],
            "sizes": {"messages": 3, "requests": 1, "bytes": 99},
            "graph_signature": {"start_executor": "a"},
            "tags": ["mine"],
        },
    )


def test_an_info_says_what_the_checkpoint_and_its_metadata_say():
    info = CheckpointInfo.of(full_checkpoint())
    assert dataclasses.asdict(info) == {
        "workflow_name": "flow",
        "checkpoint_id": "c2",
        "iteration": 3,
        "timestamp": "2024-01-01T00:00:00.000000+00:00",
        "previous_checkpoint_id": "c1",
        "seq": 7,
        "source": "fork",
        "run_id": "run-1",
        "graph_signature_hash": "hash",
        "n_messages": 3,
        "n_requests": 1,
        "size_bytes": 99,
        "writers": ("b", "a"),
        "forked_from": "c0",
        "metadata": {
            "seq": 7,
            "source": "fork",
            "run_id": "run-1",
            "forked_from": "c0",
            "writers": ["b", "a"],
            "sizes": {"messages": 3, "requests": 1, "bytes": 99},
            "tags": ["mine"],
        },
    }


@pytest.mark.parametrize("sizes", [None, "many", 3, []])
def test_foreign_values_under_the_sizes_key_do_not_matter(sizes):
    checkpoint = WorkflowCheckpoint("flow", "hash", metadata={"sizes": sizes})
    assert CheckpointInfo.of(checkpoint).size_bytes == 0


def test_equality_and_hash_are_those_of_chain_and_id():
    info = CheckpointInfo.of(full_checkpoint())
    same = CheckpointInfo("flow", "c2", 0, "another time")
    assert info == same
    assert hash(info) == hash(same)
    assert info != CheckpointInfo("flow", "c3", 3, info.timestamp)
    assert info != CheckpointInfo("other", "c2", 3, info.timestamp)


def test_later_changes_of_the_checkpoint_do_not_reach_its_info():
    checkpoint = full_checkpoint()
    info = CheckpointInfo.of(checkpoint)
    checkpoint.metadata["tags"].append("late")
    checkpoint.metadata["seq"] = 8
    assert info.metadata["tags"] == ["mine"]
    assert info.metadata["seq"] == info.seq == 7


def test_an_info_survives_pickling_and_copying():
    info = CheckpointInfo.of(full_checkpoint())
    for again in (pickle.loads(pickle.dumps(info)), copy.deepcopy(info)):
        assert dataclasses.asdict(again) == dataclasses.asdict(info)


def test_copies_of_events_share_the_infos_in_them():
    info = CheckpointInfo.of(full_checkpoint())
    assert isolate([info])[0] is info


def test_a_sequence_number_counts_only_if_it_is_a_positive_integer():
    cases: list[tuple[dict[str, Any], int]] = [
        ({}, 0),
        ({"seq": 5}, 5),
        ({"seq": "5"}, 0),
        ({"seq": None}, 0),
        ({"seq": -1}, 0),
    ]
    for metadata, seq in cases:
        checkpoint = WorkflowCheckpoint("flow", "hash", metadata=metadata)
        assert CheckpointInfo.of(checkpoint).seq == seq


def test_an_info_is_one_short_line():
    shown = repr(CheckpointInfo.of(full_checkpoint()))
    assert shown == "CheckpointInfo('c2', workflow_name='flow', iteration=3, seq=7, source='fork')"
