import copy

import pytest

from agentbench.checkpoints.access import head_of, list_infos, list_lineage, list_workflow_names, next_seq
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo, checkpoint_order
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.testing import storage_capabilities, storage_suite
from agentbench.testing.expectations import ids_of, make_checkpoint, save_chain
from tests.parts.errors import raises


class DictStorage:
    """A backend as its users write one: a key-value store, lists of ids per name, and not one method more."""

    def __init__(self):
        self.data = {}
        self.ids = {}

    async def save(self, checkpoint):
        try:
            content = copy.deepcopy(checkpoint.to_dict())
        except TypeError as error:
            raise WorkflowCheckpointException(f"cannot keep it: {error}", error) from error
        await self.delete(checkpoint.checkpoint_id)
        self.data[checkpoint.checkpoint_id] = content
        self.ids.setdefault(checkpoint.workflow_name, []).append(checkpoint.checkpoint_id)
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id):
        content = self.data.get(checkpoint_id)
        if content is None:
            raise WorkflowCheckpointException(f"No checkpoint with id: {checkpoint_id}")
        return WorkflowCheckpoint.from_dict(copy.deepcopy(content))

    async def list_checkpoint_ids(self, *, workflow_name):
        return list(self.ids.get(workflow_name, []))

    async def list_checkpoints(self, *, workflow_name):
        return [await self.load(each) for each in await self.list_checkpoint_ids(workflow_name=workflow_name)]

    async def get_latest(self, *, workflow_name):
        ids = self.ids.get(workflow_name)
        return await self.load(ids[-1]) if ids else None

    async def delete(self, checkpoint_id):
        content = self.data.pop(checkpoint_id, None)
        if content is None:
            return False
        self.ids[content["workflow_name"]].remove(checkpoint_id)
        return True


class NamedDictStorage(DictStorage):
    """The same with one capability, so that all chains can be listed."""

    async def list_workflow_names(self, prefix=""):
        return sorted(name for name, ids in self.ids.items() if ids and name.startswith(prefix))


BACKENDS = [InMemoryCheckpointStorage, DictStorage, NamedDictStorage]


@pytest.mark.parametrize("make_storage", BACKENDS)
async def test_a_storage_keeps_its_contract(make_storage):
    for check in storage_suite.checks():
        has_capability = check.capability is None or isinstance(make_storage(), check.capability)
        assert await check(make_storage) == has_capability, str(check)


async def test_the_functions_do_with_six_methods_what_a_capability_does():
    infos = [check for check in storage_capabilities.INFO_CHECKS if "sequence" not in check.__name__]
    for check in (*infos, *storage_capabilities.PRUNE_CHECKS):
        await check(NamedDictStorage())


async def test_infos_come_in_order_although_the_storage_lists_them_otherwise():
    storage = DictStorage()
    for seq in (2, 3, 1):
        await storage.save(make_checkpoint(seq))
    assert [info.seq for info in await list_infos(storage, workflow_name="flow")] == [1, 2, 3]


# ---------------------------------------------------------------------------------------------------------------- order


def at(timestamp, seq=None):
    return WorkflowCheckpoint("flow", "hash", timestamp=timestamp, metadata={} if seq is None else {"seq": seq})


def test_checkpoints_without_a_sequence_number_come_first_by_time():
    first, second, third = at("2024-01-01T00:00:02.000000+00:00"), at("2024-01-01T00:00:03.000000+00:00"), at("", 1)
    assert sorted([third, second, first], key=checkpoint_order) == [first, second, third]


def test_one_time_has_one_place_in_every_notation():
    cases = [
        "2024-01-01T12:00:00.000000+00:00",
        "2024-01-01T12:00:00+00:00",
        "2024-01-01T12:00:00Z",
        "2024-01-01T14:00:00+02:00",
        "2024-01-01T12:00:00",
    ]
    for timestamp in cases:
        before, after = at("2024-01-01T11:59:59.999999+00:00"), at("2024-01-01T12:00:00.000001+00:00")
        assert checkpoint_order(before) < checkpoint_order(at(timestamp)) < checkpoint_order(after)


def test_a_time_that_cannot_be_read_is_compared_as_text():
    assert checkpoint_order(at("yesterday")) == (0, "yesterday")


def test_a_checkpoint_and_its_info_have_the_same_place():
    checkpoint = at("2024-01-01T12:00:00Z", 4)
    assert checkpoint_order(checkpoint) == checkpoint_order(CheckpointInfo.of(checkpoint))


def test_sequence_numbers_begin_with_one_and_go_on_from_the_head():
    assert next_seq(None) == 1
    assert next_seq(CheckpointInfo.of(at("", 7))) == 8
    assert next_seq(CheckpointInfo.of(at(""))) == 1


# --------------------------------------------------------------------------------------------------- heads and lineages


@pytest.mark.parametrize("make_storage", BACKENDS)
async def test_the_head_of_a_chain_is_its_newest_checkpoint(make_storage):
    storage = make_storage()
    assert await head_of(storage, "flow") is None
    saved = await save_chain(storage, 3)
    head = await head_of(storage, "flow")
    assert head == CheckpointInfo.of(saved[-1])
    assert head.seq == 3


@pytest.mark.parametrize("make_storage", BACKENDS)
async def test_a_lineage_leads_from_the_beginning_to_the_checkpoint_across_chains(make_storage):
    storage = make_storage()
    root, parent, _ = await save_chain(storage, 3)
    branch = make_checkpoint(1, workflow_name="branch", previous_checkpoint_id=parent.checkpoint_id)
    tip = make_checkpoint(2, workflow_name="branch", previous_checkpoint_id=branch.checkpoint_id)
    for checkpoint in (branch, tip):
        await storage.save(checkpoint)
    assert ids_of(await list_lineage(storage, tip.checkpoint_id)) == ids_of([root, parent, branch, tip])
    assert ids_of(await list_lineage(storage, root.checkpoint_id)) == ids_of([root])


@pytest.mark.parametrize("make_storage", BACKENDS)
async def test_a_lineage_begins_after_what_was_deleted(make_storage):
    storage = make_storage()
    saved = await save_chain(storage, 4)
    await storage.delete(saved[1].checkpoint_id)
    assert ids_of(await list_lineage(storage, saved[3].checkpoint_id)) == ids_of(saved[2:])


async def test_a_lineage_whose_links_form_a_ring_ends():
    storage = InMemoryCheckpointStorage()
    one = make_checkpoint(1, checkpoint_id="one", previous_checkpoint_id="two")
    two = make_checkpoint(2, checkpoint_id="two", previous_checkpoint_id="one")
    for checkpoint in (one, two):
        await storage.save(checkpoint)
    assert ids_of(await list_lineage(storage, "two")) == ["one", "two"]


# --------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize("ask", [list_infos, list_workflow_names])
async def test_a_storage_that_does_not_know_its_chains_says_so(ask):
    with raises(WorkflowCheckpointException, "DictStorage", "workflow_name="):
        await ask(DictStorage())
