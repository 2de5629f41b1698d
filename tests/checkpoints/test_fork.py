from typing import Any

import pytest

from agentbench._clock import CountingIds, TickingClock, set_runtime_defaults
from agentbench.checkpoints.access import head_of, list_infos, list_lineage
from agentbench.checkpoints.fork import fork_checkpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import CheckpointNotFoundError, WorkflowCheckpointException
from agentbench.testing.expectations import ids_of, save_chain
from tests.parts.errors import raises

RICH: dict[str, Any] = {
    "messages": {"a": ["x", "y"]},
    "state": {"items": [1], "name": "n"},
    "pending_request_info_events": {"r": "a request"},
    "metadata": {
        "run_id": "run-1",
        "writers": ["a"],
        "duration_s": 0.5,
        "sizes": {"messages": 2, "requests": 1, "bytes": 999},
        "graph_signature": {"start_executor": "a"},
        "thread_id": "t1",
    },
}


async def everything_in(storage):
    return {info.checkpoint_id: await storage.load(info.checkpoint_id) for info in await list_infos(storage)}


async def test_a_fork_is_a_new_checkpoint_with_the_content_of_the_original(storage):
    saved = await save_chain(storage, 3, **RICH)
    set_runtime_defaults(ids=CountingIds(), clock=TickingClock("2030-01-01T00:00:00Z"))
    info = await fork_checkpoint(storage, saved[1].checkpoint_id)
    fork = await storage.load(info.checkpoint_id)
    assert fork.checkpoint_id == "cp-0001"
    assert fork.timestamp == "2030-01-01T00:00:00.000000+00:00"
    for name in (
        "workflow_name",
        "graph_signature_hash",
        "messages",
        "state",
        "pending_request_info_events",
        "iteration_count",
        "version",
    ):
        assert getattr(fork, name) == getattr(saved[1], name)
    assert fork.previous_checkpoint_id == saved[1].checkpoint_id


async def test_a_fork_may_start_from_an_info(storage):
    saved = await save_chain(storage, 2)
    info = await fork_checkpoint(storage, CheckpointInfo.of(saved[0]))
    assert info.previous_checkpoint_id == saved[0].checkpoint_id
    assert (await storage.load(info.checkpoint_id)).metadata["forked_from"] == saved[0].checkpoint_id
    wrongs: tuple[Any, ...] = (5, None, ["cp"])
    for wrong in wrongs:
        with raises(TypeError, type(wrong).__name__, "CheckpointInfo"):
            await fork_checkpoint(storage, wrong)


@pytest.mark.parametrize(
    ("updates", "error", "told"),
    [
        ("n", TypeError, "not a mapping"),
        ({"n.len": 5}, ValueError, r"'n.len'.* state_updates=\{'n': \{...\}\}"),
    ],
)
async def test_updates_that_would_do_something_else_are_refused_and_nothing_is_saved(storage, updates, error, told):
    (saved,) = await save_chain(storage, 1, state={"n": {"len": 1}})
    with pytest.raises(error, match=told):
        await fork_checkpoint(storage, saved.checkpoint_id, state_updates=updates)
    assert len(await list_infos(storage)) == 1


async def test_keys_with_a_point_are_keys_like_others_where_no_dict_is_meant(storage):
    (saved,) = await save_chain(storage, 1, state={"n.len": 1, "n": {"len": 1}, "text": "t"})
    updates = {"n.len": 5, "text.new": 6, "other.new": 7}
    info = await fork_checkpoint(storage, saved.checkpoint_id, state_updates=updates)
    assert (await storage.load(info.checkpoint_id)).state == {"n": {"len": 1}, "text": "t", **updates}


async def test_an_unknown_original_is_one_error_and_not_two(storage):
    with pytest.raises(CheckpointNotFoundError) as caught:
        await fork_checkpoint(storage, "nobody")
    assert caught.value.__cause__ is None
    assert caught.value.__context__ is None


async def test_the_metadata_of_a_fork_are_its_own_where_they_were_of_one_run_or_superstep(storage):
    saved = await save_chain(storage, 3, **RICH)
    info = await fork_checkpoint(storage, saved[1].checkpoint_id)
    assert (await storage.load(info.checkpoint_id)).metadata == {
        "seq": 4,
        "source": "fork",
        "forked_from": saved[1].checkpoint_id,
        "sizes": {"messages": 2, "requests": 1},
        "graph_signature": {"start_executor": "a"},
        "thread_id": "t1",
    }


async def test_the_returned_info_is_that_of_the_saved_fork_and_the_new_head(storage):
    saved = await save_chain(storage, 3)
    info = await fork_checkpoint(storage, saved[0].checkpoint_id)
    assert info == await head_of(storage, "flow")
    assert info == CheckpointInfo.of(await storage.load(info.checkpoint_id))
    assert (info.seq, info.source, info.forked_from) == (4, "fork", saved[0].checkpoint_id)


async def test_state_updates_replace_keys_and_make_it_an_update(storage):
    (original,) = await save_chain(storage, 1, **RICH)
    info = await fork_checkpoint(storage, original.checkpoint_id, state_updates={"name": None, "new": [2]})
    assert info.source == "update"
    assert (await storage.load(info.checkpoint_id)).state == {"items": [1], "name": None, "new": [2]}


@pytest.mark.parametrize(("messages", "count"), [({"b": ("z",)}, 1), ({}, 0)])
async def test_messages_replace_all_waiting_ones_and_make_it_an_update(storage, messages, count):
    (original,) = await save_chain(storage, 1, **RICH)
    info = await fork_checkpoint(storage, original.checkpoint_id, messages=messages)
    assert info.source == "update"
    assert info.n_messages == count
    fork = await storage.load(info.checkpoint_id)
    assert fork.messages == {key: list(sent) for key, sent in messages.items()}
    assert fork.metadata["sizes"] == {"messages": count, "requests": 1}


async def test_callers_metadata_are_added_but_the_forks_own_keys_stay(storage):
    (original,) = await save_chain(storage, 1, **RICH)
    given = {"run_id": "run-9", "thread_id": "t2", "seq": 99, "source": "input", "forked_from": "x", "sizes": {}}
    info = await fork_checkpoint(storage, original.checkpoint_id, metadata=given)
    assert (info.run_id, info.metadata["thread_id"]) == ("run-9", "t2")
    assert (info.seq, info.source, info.forked_from) == (2, "fork", original.checkpoint_id)
    assert info.metadata["sizes"] == {"messages": 2, "requests": 1}


async def test_nothing_stored_is_changed_and_nothing_is_shared_with_it(storage):
    saved = await save_chain(storage, 3, **RICH)
    before = await everything_in(storage)
    info = await fork_checkpoint(storage, saved[1].checkpoint_id, state_updates={"name": "m"}, messages={"a": ["w"]})
    fork = await storage.load(info.checkpoint_id)
    fork.state["items"].append("changed")
    after = await everything_in(storage)
    del after[info.checkpoint_id]
    assert after == before


class ReturnsItsOwnObjects(InMemoryCheckpointStorage):
    def __init__(self):
        super().__init__()
        self.kept = {}

    async def save(self, checkpoint):
        self.kept[checkpoint.checkpoint_id] = checkpoint
        return await super().save(checkpoint)

    async def load(self, checkpoint_id):
        return self.kept[checkpoint_id]


async def test_history_is_copied_from_a_storage_that_returns_its_own_objects():
    storage = ReturnsItsOwnObjects()
    (original,) = await save_chain(storage, 1, **RICH)
    info = await fork_checkpoint(storage, original.checkpoint_id, workflow_name="new", with_history=True)
    copied = storage.kept[info.previous_checkpoint_id]
    copied.state["items"].append("changed")
    assert original.state == {"items": [1], "name": "n"}


async def test_the_object_that_a_storage_returns_is_not_changed_either():
    storage = ReturnsItsOwnObjects()
    (original,) = await save_chain(storage, 1, **RICH)
    info = await fork_checkpoint(storage, original.checkpoint_id, state_updates={"name": "m"}, metadata={"k": 1})
    fork = storage.kept[info.checkpoint_id]
    fork.state["items"].append("changed")
    fork.messages["a"].append("changed")
    fork.metadata["graph_signature"]["changed"] = True
    assert original.state == {"items": [1], "name": "n"}
    assert original.messages == {"a": ["x", "y"]}
    assert original.metadata["graph_signature"] == {"start_executor": "a"}
    assert "k" not in original.metadata


async def test_a_fork_can_join_another_chain_where_it_goes_on_from_the_head(storage):
    saved = await save_chain(storage, 3)
    await save_chain(storage, 5, workflow_name="other")
    info = await fork_checkpoint(storage, saved[2].checkpoint_id, workflow_name="other")
    assert (info.workflow_name, info.seq) == ("other", 6)
    assert info.previous_checkpoint_id == saved[2].checkpoint_id
    assert await storage.list_checkpoint_ids(workflow_name="flow") == ids_of(saved)


async def test_the_newest_fork_is_the_head_although_the_clock_went_back(storage):
    saved = await save_chain(storage, 3)
    set_runtime_defaults(clock=TickingClock("1999-01-01T00:00:00Z"))
    info = await fork_checkpoint(storage, saved[0].checkpoint_id)
    latest = await storage.get_latest(workflow_name="flow")
    assert latest is not None
    assert latest.checkpoint_id == info.checkpoint_id


# -------------------------------------------------------------------------------------------------------- with history


async def test_with_history_the_other_chain_is_complete(storage):
    saved = await save_chain(storage, 3, **RICH)
    before = await everything_in(storage)
    info = await fork_checkpoint(storage, saved[1].checkpoint_id, workflow_name="new", with_history=True)
    chain = await storage.list_checkpoints(workflow_name="new")
    assert [each.metadata["seq"] for each in chain] == [1, 2, 3]
    assert [each.iteration_count for each in chain] == [0, 1, 1]
    assert [each.metadata["forked_from"] for each in chain] == ids_of([saved[0], saved[1], saved[1]])
    assert [each.previous_checkpoint_id for each in chain] == [None, *ids_of(chain[:2])]
    assert ids_of(chain)[-1] == info.checkpoint_id
    after = await everything_in(storage)
    assert {key: after[key] for key in before} == before
    await storage.delete_chain("flow")
    assert ids_of(await list_lineage(storage, info.checkpoint_id)) == ids_of(chain)


async def test_copied_history_keeps_content_times_and_who_wrote_it(storage):
    saved = await save_chain(storage, 2, **RICH)
    await fork_checkpoint(storage, saved[1].checkpoint_id, workflow_name="new", with_history=True)
    for copy, original in zip(await storage.list_checkpoints(workflow_name="new"), saved, strict=False):
        assert (copy.timestamp, copy.state, copy.messages) == (original.timestamp, original.state, original.messages)
        assert copy.metadata["source"] == "step"
        assert copy.metadata["run_id"] == "run-1"
        assert copy.metadata["writers"] == ["a"]


async def test_history_is_copied_behind_what_the_other_chain_holds(storage):
    saved = await save_chain(storage, 2)
    await save_chain(storage, 3, workflow_name="other")
    info = await fork_checkpoint(storage, saved[1].checkpoint_id, workflow_name="other", with_history=True)
    assert info.seq == 6
    assert [each.seq for each in await list_infos(storage, workflow_name="other")] == [1, 2, 3, 4, 5, 6]


async def test_history_that_runs_through_several_chains_is_copied_as_a_whole(storage):
    saved = await save_chain(storage, 2)
    branch = await fork_checkpoint(storage, saved[1].checkpoint_id, workflow_name="branch")
    await fork_checkpoint(storage, branch.checkpoint_id, workflow_name="new", with_history=True)
    sources = [each.forked_from for each in await list_infos(storage, workflow_name="new")]
    assert sources == [saved[0].checkpoint_id, saved[1].checkpoint_id, branch.checkpoint_id, branch.checkpoint_id]


# --------------------------------------------------------------------------------------------------------------- errors


async def test_a_fork_that_cannot_be_saved_leaves_no_trace_of_itself_or_its_history(storage):
    saved = await save_chain(storage, 3)
    unstorable = {"value": (number for number in range(3))}
    with raises(WorkflowCheckpointException, "'value'", "state[", "builtins.generator"):
        await fork_checkpoint(
            storage, saved[2].checkpoint_id, workflow_name="new", with_history=True, state_updates=unstorable
        )
    assert await storage.list_workflow_names() == ["flow"]
    assert await storage.list_checkpoint_ids(workflow_name="flow") == ids_of(saved)
