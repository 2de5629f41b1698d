import asyncio
import copy
import pickle
import sys
import threading
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentbench._clock import CountingIds, TickingClock, set_runtime_defaults
from agentbench._copying import register_frozen
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.fork import fork_checkpoint
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import CheckpointNotFoundError, WorkflowBusyError, WorkflowCheckpointException
from agentbench.testing.expectations import ids_of, make_checkpoint, save_chain
from tests.parts.errors import raises

# -------------------------------------------------------------------------------------------------------------- copies


async def test_three_runs_from_one_checkpoint_end_alike(storage):
    async def run_from(checkpoint_id):
        loaded = await storage.load(checkpoint_id)
        loaded.state["log"].append(len(loaded.state["log"]))
        loaded.state["_executor_state"]["counter"]["count"] += 1
        loaded.messages["a"].pop()
        return loaded

    saved = make_checkpoint(
        1, state={"log": [0], "_executor_state": {"counter": {"count": 1}}}, messages={"a": ["x", "y"]}
    )
    await storage.save(saved)
    first, second, third = [await run_from(saved.checkpoint_id) for _ in range(3)]
    assert first == second == third
    assert first.state == {"log": [0, 1], "_executor_state": {"counter": {"count": 2}}}


async def test_objects_shared_by_messages_and_state_are_shared_after_loading_too(storage):
    conversation = ["hello"]
    await storage.save(
        make_checkpoint(1, checkpoint_id="c", state={"log": conversation}, messages={"a": [conversation]})
    )
    loaded = await storage.load("c")
    assert loaded.state["log"] is loaded.messages["a"][0]


async def test_values_that_are_frozen_once_saved_are_not_copied(storage):
    class Sealed:
        pass

    register_frozen(Sealed)
    value = Sealed()
    await storage.save(make_checkpoint(1, checkpoint_id="c", state={"values": [value]}))
    assert (await storage.load("c")).state["values"][0] is value


async def test_the_graph_signature_is_stored_once_per_chain_and_loaded_as_a_copy(storage):
    signature = {"start_executor": "a", "executors": {"a": "module.A"}}
    saved = await save_chain(storage, 3, metadata={"graph_signature": signature})
    kept = [storage._ab_entries[each.checkpoint_id].checkpoint.metadata["graph_signature"] for each in saved]
    assert kept[0] == signature
    assert kept[0] is kept[1] is kept[2]
    assert kept[0] is not signature
    loaded = await storage.load(saved[2].checkpoint_id)
    assert list(loaded.metadata) == ["seq", "source", "graph_signature"]
    loaded.metadata["graph_signature"]["executors"].clear()
    assert (await storage.load(saved[0].checkpoint_id)).metadata["graph_signature"] == signature


async def test_a_graph_that_changed_has_its_own_signature(storage):
    await storage.save(make_checkpoint(1, checkpoint_id="c1", metadata={"graph_signature": {"start": "a"}}))
    await storage.save(make_checkpoint(2, checkpoint_id="c2", metadata={"graph_signature": {"start": "b"}}))
    await storage.save(make_checkpoint(3, checkpoint_id="c3"))
    assert (await storage.load("c1")).metadata["graph_signature"] == {"start": "a"}
    assert (await storage.load("c2")).metadata["graph_signature"] == {"start": "b"}
    assert "graph_signature" not in (await storage.load("c3")).metadata


async def test_the_latest_checkpoint_is_found_without_touching_the_others(storage):
    copies = []

    class CountsItsCopies:
        def __init__(self, number):
            self.number = number

        def __deepcopy__(self, memo):
            copies.append(self.number)
            return self

    for seq in range(1, 4):
        await storage.save(make_checkpoint(seq, state={"value": CountsItsCopies(seq)}))
    copies.clear()
    await storage.get_latest(workflow_name="flow")
    assert copies == [3]


# --------------------------------------------------------------------------------------------------------------- errors


@dataclass
class Holder:
    inner: Any


@dataclass(slots=True)
class SlottedHolder:
    inner: Any = field(default=None)


def iter_of_nothing():
    yield from ()


class HashableLock:
    def __init__(self):
        self.lock = threading.Lock()

    def __repr__(self):
        return "lock"


@pytest.mark.parametrize(
    ("fields", "path", "kind"),
    [
        ({"state": {"a": threading.Lock()}}, "state['a']", "_thread.lock"),
        ({"state": {"a": [1, {"b": (2, threading.Lock())}]}}, "state['a'][1]['b'][1]", "_thread.lock"),
        ({"state": {"a": Holder(threading.Lock())}}, "state['a'].inner", "_thread.lock"),
        ({"state": {"a": [SlottedHolder(threading.Lock())]}}, "state['a'][0].inner", "_thread.lock"),
        ({"state": {"f": sys.__stderr__}}, "state['f']", "_io.TextIOWrapper"),
        ({"messages": {"e": [iter_of_nothing()]}}, "messages['e'][0]", "builtins.generator"),
        ({"pending_request_info_events": {"r": threading.Lock()}}, "pending_request_info_events['r']", "_thread.lock"),
        ({"metadata": {"tags": [threading.Lock()]}}, "metadata['tags'][0]", "_thread.lock"),
        ({"state": {"a": {HashableLock(): 1}}}, "state['a'] key lock.lock", "_thread.lock"),
    ],
)
async def test_what_cannot_be_copied_is_named_with_its_path_and_type(storage, fields, path, kind):
    with pytest.raises(WorkflowCheckpointException) as caught:
        await storage.save(make_checkpoint(1, checkpoint_id="c", **fields))
    assert f"Checkpoint 'c' cannot be saved: {path} is a {kind}, which cannot be copied" in str(caught.value)
    assert isinstance(caught.value.__cause__, TypeError)
    assert await storage.list_checkpoint_ids(workflow_name="flow") == []


async def test_the_cause_in_a_ring_of_objects_is_found(storage):
    ring: list[Any] = [[]]
    ring[0].append(ring)
    ring[0].append(threading.Lock())
    with raises(WorkflowCheckpointException, "'a'", "[0]", "[1]", "state[", "_thread.lock"):
        await storage.save(make_checkpoint(1, state={"a": ring}))


async def test_a_value_nested_too_deeply_is_refused_with_a_path_that_can_be_read(storage):
    deep: list[Any] = []
    for _ in range(3000):
        deep = [deep]
    with pytest.raises(WorkflowCheckpointException, match=r"state\['a'\](\[0\]){5,30} is a builtins.list") as caught:
        await storage.save(make_checkpoint(1, state={"a": deep}))
    assert len(str(caught.value)) < 1000


async def test_a_part_whose_own_copy_method_fails_is_named(storage):
    class Stubborn:
        def __deepcopy__(self, memo):
            raise LookupError("not me")

    with raises(WorkflowCheckpointException, "'a'", "state[", "Stubborn"):
        await storage.save(make_checkpoint(1, state={"a": Stubborn()}))


async def test_a_refused_replacement_leaves_the_former_checkpoint(storage):
    await storage.save(make_checkpoint(1, checkpoint_id="c", state={"a": 1}))
    with pytest.raises(WorkflowCheckpointException):
        await storage.save(make_checkpoint(1, checkpoint_id="c", state={"a": threading.Lock()}))
    assert (await storage.load("c")).state == {"a": 1}


# --------------------------------------------------------------------------------------------------- the storage itself


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda value: pickle.loads(pickle.dumps(value))])
async def test_a_copy_of_the_storage_goes_its_own_way(storage, duplicate):
    saved = await save_chain(storage, 3)
    other = duplicate(storage)
    await other.save(make_checkpoint(4))
    await other.delete(saved[0].checkpoint_id)
    assert await storage.list_checkpoint_ids(workflow_name="flow") == ids_of(saved)
    assert (await other.list_checkpoint_ids(workflow_name="flow"))[:2] == ids_of(saved[1:])


def test_threads_with_loops_of_their_own_may_share_it():
    storage = InMemoryCheckpointStorage()
    busy = []

    async def climb():
        for _ in range(200):
            head = await storage.list_infos(workflow_name="flow", limit=1)
            seq = head[0].seq if head else 0
            try:
                await storage.save_if_head(make_checkpoint(seq + 1), seq)
            except WorkflowBusyError as error:
                busy.append(error)

    threads = [threading.Thread(target=lambda: asyncio.run(climb())) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    infos = asyncio.run(storage.list_infos(workflow_name="flow"))
    assert [info.seq for info in infos] == list(range(1, 601 - len(busy)))


# ------------------------------------------------------------------------------------------------ against a tiny model

CHAINS = ["a", "b", "c/d"]


class StorageAgainstADictionary(RuleBasedStateMachine):
    """The model: a dictionary of copies by id, in the order of saving. Order within a chain is a stable sort of it."""

    @initialize()
    def start(self):
        self.storage = InMemoryCheckpointStorage()
        self.model = {}
        self.ids = CountingIds()
        self.before = set_runtime_defaults(clock=TickingClock(), ids=self.ids)

    def teardown(self):
        set_runtime_defaults(clock=self.before.clock, ids=self.before.ids)

    @staticmethod
    def do(coroutine):
        """Run a coroutine that never waits; a loop per call would take most of the time."""
        try:
            coroutine.send(None)
        except StopIteration as done:
            return done.value
        raise AssertionError("the storage in memory waited for something")

    def chain(self, name):
        members = [each for each in self.model.values() if each.workflow_name == name]
        return sorted(members, key=lambda each: (each.metadata.get("seq", 0), each.timestamp))

    def remember(self, checkpoint):
        self.model.pop(checkpoint.checkpoint_id, None)
        self.model[checkpoint.checkpoint_id] = copy.deepcopy(checkpoint)

    def some_id(self, data):
        return data.draw(st.sampled_from(sorted(self.model)), label="id")

    @rule(
        name=st.sampled_from(CHAINS),
        seq=st.one_of(st.none(), st.integers(1, 4)),
        second=st.integers(0, 3),
        state=st.dictionaries(st.sampled_from("xy"), st.lists(st.integers(0, 3), max_size=2), max_size=2),
        run_id=st.sampled_from(["r1", "r2"]),
        data=st.data(),
    )
    def save(self, name, seq, second, state, run_id, data):
        again = self.model and data.draw(st.booleans(), label="replace")
        checkpoint = WorkflowCheckpoint(
            name,
            "hash",
            checkpoint_id=self.some_id(data) if again else self.ids.new_id("cp"),
            timestamp=f"2024-01-01T00:00:0{second}.000000+00:00",
            state=state,
            metadata={"run_id": run_id} if seq is None else {"run_id": run_id, "seq": seq},
        )
        assert self.do(self.storage.save(checkpoint)) == checkpoint.checkpoint_id
        self.remember(checkpoint)
        checkpoint.state["late"] = checkpoint.metadata["late"] = True

    @rule(name=st.sampled_from(CHAINS), expected=st.integers(0, 5))
    def save_if_head(self, name, expected):
        checkpoint = make_checkpoint(expected + 1, workflow_name=name, checkpoint_id=self.ids.new_id("cp"))
        members = self.chain(name)
        if (members[-1].metadata.get("seq", 0) if members else 0) == expected:
            self.do(self.storage.save_if_head(checkpoint, expected))
            self.remember(checkpoint)
        else:
            with pytest.raises(WorkflowBusyError):
                self.do(self.storage.save_if_head(checkpoint, expected))

    @precondition(lambda self: self.model)
    @rule(data=st.data())
    def load_and_change(self, data):
        checkpoint_id = self.some_id(data)
        loaded = self.do(self.storage.load(checkpoint_id))
        assert loaded == self.model[checkpoint_id]
        for items in loaded.state.values():
            if isinstance(items, list):
                items.append("changed")
        loaded.metadata.clear()

    @rule(data=st.data())
    def delete(self, data):
        checkpoint_id = data.draw(st.sampled_from(["nobody", *sorted(self.model)]), label="id")
        assert self.do(self.storage.delete(checkpoint_id)) == (self.model.pop(checkpoint_id, None) is not None)

    @precondition(lambda self: self.model)
    @rule(data=st.data(), name=st.one_of(st.none(), st.sampled_from(CHAINS)), edited=st.booleans())
    def fork(self, data, name, edited):
        checkpoint_id = self.some_id(data)
        original = self.model[checkpoint_id]
        target = name or original.workflow_name
        members = self.chain(target)
        info = self.do(
            fork_checkpoint(
                self.storage, checkpoint_id, workflow_name=name, state_updates={"x": ["edited"]} if edited else None
            )
        )
        fork = self.do(self.storage.load(info.checkpoint_id))
        assert fork.state == ({**original.state, "x": ["edited"]} if edited else original.state)
        assert fork.previous_checkpoint_id == info.forked_from == checkpoint_id
        assert info.seq == (members[-1].metadata.get("seq", 0) if members else 0) + 1
        assert info.checkpoint_id not in self.model
        self.remember(fork)
        assert self.chain(target)[-1].checkpoint_id == info.checkpoint_id

    @rule(name=st.sampled_from(CHAINS), keep=st.integers(1, 4))
    def prune(self, name, keep):
        gone = self.chain(name)[:-keep]
        assert self.do(self.storage.prune(workflow_name=name, keep=keep)) == len(gone)
        for checkpoint in gone:
            del self.model[checkpoint.checkpoint_id]

    @rule(name=st.sampled_from(CHAINS))
    def delete_chain(self, name):
        gone = self.chain(name)
        assert self.do(self.storage.delete_chain(name)) == len(gone)
        for checkpoint in gone:
            del self.model[checkpoint.checkpoint_id]

    @rule(name=st.sampled_from(CHAINS), run_id=st.sampled_from([None, "r1"]), limit=st.sampled_from([None, 0, 1, 2]))
    def list_infos(self, name, run_id, limit):
        members = [each for each in self.chain(name) if run_id is None or each.metadata.get("run_id") == run_id]
        wanted = members if limit is None else members[len(members) - min(limit, len(members)) :]
        infos = self.do(self.storage.list_infos(workflow_name=name, run_id=run_id, limit=limit))
        assert ids_of(infos) == ids_of(wanted)

    @invariant()
    def all_chains_hold_what_the_model_holds(self):
        names = sorted({each.workflow_name for each in self.model.values()})
        assert self.do(self.storage.list_workflow_names()) == names
        for name in CHAINS:
            members = self.chain(name)
            assert self.do(self.storage.list_checkpoints(workflow_name=name)) == members
            assert self.do(self.storage.list_checkpoint_ids(workflow_name=name)) == ids_of(members)
            assert self.do(self.storage.get_latest(workflow_name=name)) == (members[-1] if members else None)
            assert self.do(self.storage.list_infos(workflow_name=name)) == [
                info for info in self.do(self.storage.list_infos()) if info.workflow_name == name
            ]


TestStorageAgainstADictionary = StorageAgainstADictionary.TestCase


@pytest.mark.parametrize("keep", [1, 3])
async def test_only_the_last_checkpoints_of_each_chain_stay(keep):
    storage = InMemoryCheckpointStorage(keep_last=keep)
    saved = await save_chain(storage, 6)
    other = await save_chain(storage, 2, workflow_name="other")
    assert await storage.list_checkpoint_ids(workflow_name="flow") == ids_of(saved[-keep:])
    assert await storage.list_checkpoint_ids(workflow_name="other") == ids_of(other[-keep:])
    with pytest.raises(CheckpointNotFoundError):
        await storage.load(saved[0].checkpoint_id)
    again = pickle.loads(pickle.dumps(storage))
    await again.save_if_head(make_checkpoint(7), 6)
    assert len(await again.list_checkpoint_ids(workflow_name="flow")) == keep
