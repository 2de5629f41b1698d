"""The suite is only worth something if it fails: each test breaks a storage in one way."""

import asyncio
import subprocess
import sys

import pytest

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import CheckpointNotFoundError, WorkflowCheckpointException
from agentbench.testing import storage_suite
from tests.parts.errors import raises


def run(name, make_storage):
    (check,) = [each for each in storage_suite.checks() if each.name == name]
    return asyncio.run(check(make_storage))


def test_a_sound_storage_fails_nothing():
    assert all(asyncio.run(check(InMemoryCheckpointStorage)) for check in storage_suite.checks())


def test_the_maker_may_be_asynchronous():
    async def make_storage():
        return InMemoryCheckpointStorage()

    assert all(asyncio.run(check(make_storage)) for check in storage_suite.checks())


def test_a_missing_method_is_named():
    check = storage_suite.checks()[0]
    with raises(AssertionError, "CheckpointStorage", "list_checkpoints"):
        asyncio.run(check(dict))  # type: ignore[arg-type]


def test_a_check_of_a_missing_capability_says_that_there_was_nothing_to_check():
    class SixMethods:
        def __init__(self):
            inner = InMemoryCheckpointStorage()
            self.save, self.load, self.delete = inner.save, inner.load, inner.delete
            self.list_checkpoints, self.list_checkpoint_ids = inner.list_checkpoints, inner.list_checkpoint_ids
            self.get_latest = inner.get_latest

    answers = {check: asyncio.run(check(SixMethods)) for check in storage_suite.checks()}
    assert answers == {check: check.capability is None for check in answers}


class KeepsReferences(InMemoryCheckpointStorage):
    def __init__(self):
        super().__init__()
        self.live = {}

    async def save(self, checkpoint):
        self.live[checkpoint.checkpoint_id] = checkpoint
        return await super().save(checkpoint)

    async def load(self, checkpoint_id):
        if checkpoint_id not in self._ab_entries:
            raise CheckpointNotFoundError(checkpoint_id)
        return self.live[checkpoint_id]


class ReturnsItsOwnObjects(InMemoryCheckpointStorage):
    async def load(self, checkpoint_id):
        if checkpoint_id not in self._ab_entries:
            raise CheckpointNotFoundError(checkpoint_id)
        return self._ab_entries[checkpoint_id].checkpoint


class ForgetsMetadata(InMemoryCheckpointStorage):
    async def load(self, checkpoint_id):
        found = await super().load(checkpoint_id)
        return WorkflowCheckpoint.from_dict({**found.to_dict(), "metadata": {}})


class TurnsTuplesIntoLists(InMemoryCheckpointStorage):
    async def load(self, checkpoint_id):
        found = await super().load(checkpoint_id)
        found.state = {key: list(value) if isinstance(value, tuple) else value for key, value in found.state.items()}
        return found


class RaisesKeyErrors(InMemoryCheckpointStorage):
    async def load(self, checkpoint_id):
        try:
            return await super().load(checkpoint_id)
        except CheckpointNotFoundError:
            raise KeyError(checkpoint_id) from None


class LetsTypeErrorsThrough(InMemoryCheckpointStorage):
    async def save(self, checkpoint):
        try:
            return await super().save(checkpoint)
        except Exception as error:
            raise TypeError("not JSON serializable") from error


class ListsNewestFirst(InMemoryCheckpointStorage):
    async def list_checkpoints(self, *, workflow_name):
        return (await super().list_checkpoints(workflow_name=workflow_name))[::-1]


class FindsByPrefix(InMemoryCheckpointStorage):
    async def list_checkpoint_ids(self, *, workflow_name):
        names = await self.list_workflow_names(workflow_name)
        return [
            each
            for name in names
            for each in await InMemoryCheckpointStorage.list_checkpoint_ids(self, workflow_name=name)
        ]


class AlwaysDeletes(InMemoryCheckpointStorage):
    async def delete(self, checkpoint_id):
        await super().delete(checkpoint_id)
        return True


class WritesMessagesAsText(InMemoryCheckpointStorage):
    async def load(self, checkpoint_id):
        found = await super().load(checkpoint_id)
        found.messages = {sender: [str(message) for message in sent] for sender, sent in found.messages.items()}
        return found


class ChecksTheHeadTooEarly(InMemoryCheckpointStorage):
    async def save_if_head(self, checkpoint, expected_seq):
        newest = await self.list_infos(workflow_name=checkpoint.workflow_name, limit=1)
        await asyncio.sleep(0)
        if newest and newest[0].seq != expected_seq:
            return await super().save_if_head(checkpoint, expected_seq)
        return await self.save(checkpoint)


class PrunesEveryChain(InMemoryCheckpointStorage):
    async def prune(self, *, workflow_name, keep):
        for name in await self.list_workflow_names():
            if name != workflow_name:
                await super().prune(workflow_name=name, keep=keep)
        return await super().prune(workflow_name=workflow_name, keep=keep)


class ListsOldestInfos(InMemoryCheckpointStorage):
    async def list_infos(self, *, workflow_name=None, run_id=None, before=None, limit=None):
        infos = await super().list_infos(workflow_name=workflow_name, run_id=run_id, before=before)
        return infos[:limit]


class ListsEmptyChains(InMemoryCheckpointStorage):
    def __init__(self):
        super().__init__()
        self.names = set()

    async def save(self, checkpoint):
        self.names.add(checkpoint.workflow_name)
        return await super().save(checkpoint)

    async def list_workflow_names(self, prefix=""):
        return sorted(name for name in self.names if name.startswith(prefix))


@pytest.mark.parametrize(
    ("broken", "check", "text"),
    [
        (KeepsReferences, "changes_after_a_save_are_not_stored", "after the saved one was changed"),
        (ReturnsItsOwnObjects, "every_load_returns_an_independent_checkpoint", "changed by its user"),
        (ForgetsMetadata, "a_saved_checkpoint_is_loaded_with_all_its_fields", "field metadata: found {}"),
        (TurnsTuplesIntoLists, "values_that_json_lacks_are_restored_exactly_or_rejected", "a tuple, saved and loaded"),
        (RaisesKeyErrors, "loading_an_unknown_id_raises_a_checkpoint_exception", "KeyError('unknown')"),
        (LetsTypeErrorsThrough, "a_value_that_cannot_be_stored_is_rejected_and_nothing_is_saved", "TypeError"),
        (ListsNewestFirst, "a_chain_is_listed_oldest_first", "list_checkpoints()"),
        (FindsByPrefix, "chains_with_similar_names_are_separate", "flow"),
        (AlwaysDeletes, "deleting_removes_a_checkpoint_once", "delete()"),
        (WritesMessagesAsText, "messages_and_requests_are_restored_as_objects", "the loaded messages"),
        (ChecksTheHeadTooEarly, "only_one_of_several_concurrent_writers_succeeds", "8"),
        (PrunesEveryChain, "pruning_keeps_the_newest_checkpoints_of_one_chain", "the ids of another chain"),
        (ListsOldestInfos, "infos_can_be_paged_backwards", "the pages of infos"),
        (ListsEmptyChains, "the_names_of_chains_are_listed", "still listed"),
    ],
)
def test_a_broken_storage_is_found_out(broken, check, text):
    with raises(AssertionError, text):
        run(check, broken)


class LoadsNothing(InMemoryCheckpointStorage):
    async def load(self, checkpoint_id):
        await super().load(checkpoint_id)


class LoadsFields(InMemoryCheckpointStorage):
    async def load(self, checkpoint_id):
        return (await super().load(checkpoint_id)).to_dict()


class LosesTheClassesOfMessages(InMemoryCheckpointStorage):
    async def load(self, checkpoint_id):
        found = await super().load(checkpoint_id)
        found.messages = {source: [str(each) for each in sent] for source, sent in found.messages.items()}
        found.pending_request_info_events = dict.fromkeys(found.pending_request_info_events, "text")
        return found


class ListsNothing(InMemoryCheckpointStorage):
    async def list_checkpoints(self, *, workflow_name):
        return None

    async def list_infos(self, **_):
        return None


@pytest.mark.parametrize("broken", [LoadsNothing, LoadsFields, LosesTheClassesOfMessages, ListsNothing])
def test_what_a_broken_storage_gives_back_fails_as_an_assertion_and_never_inside_a_check(broken):
    failed = 0
    for check in storage_suite.checks():
        try:
            asyncio.run(check(broken))
        except (AssertionError, WorkflowCheckpointException):
            failed += 1
    assert failed > 0


def test_the_suite_loads_no_test_framework():
    code = (
        "import sys, agentbench.testing.storage_suite; print(*('pytest' in sys.modules, 'hypothesis' in sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
