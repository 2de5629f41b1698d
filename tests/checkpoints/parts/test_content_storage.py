"""The storage over any backend: what it does by itself, shown on a backend of dictionaries."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Collection, Mapping
from typing import Any, ClassVar

import pytest

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.parts import content_storage
from agentbench.checkpoints.parts.backend import CheckpointRecord, StalePartsError
from agentbench.exceptions import (
    CheckpointNotFoundError,
    WorkflowCheckpointException,
)
from tests.checkpoints.plain_backend import PlainBackend, PlainStorage
from tests.parts.errors import raises
from tests.parts.storages import conversation


def checkpoint(seq: int, chain: str = "flow", **fields: Any) -> WorkflowCheckpoint:
    fields.setdefault("metadata", {"seq": seq, "graph_signature": {"start": "a"}})
    fields.setdefault("checkpoint_id", f"{chain}-{seq}")
    return WorkflowCheckpoint(chain, "hash", iteration_count=seq, **fields)


# --------------------------------------------------------------------------------------------------------- what is read


async def test_listing_reads_no_content_until_it_is_accessed() -> None:
    storage = PlainStorage()
    for seq in range(1, 4):
        await storage.save(checkpoint(seq, state={"conversation": conversation(50 * seq)}))
    storage.backend.fetches.clear()
    listed = await storage.list_checkpoints(workflow_name="flow")
    assert [each.iteration_count for each in listed] == [1, 2, 3]
    assert storage.backend.fetches == []
    assert listed[2].state == {"conversation": conversation(150)}
    assert listed[0].metadata == {"seq": 1, "graph_signature": {"start": "a"}}
    assert listed == [await storage.load(f"flow-{seq}") for seq in range(1, 4)]


async def test_a_listed_checkpoint_that_was_deleted_meanwhile_says_so_when_it_is_read() -> None:
    storage = PlainStorage()
    await storage.save(checkpoint(1))
    (listed,) = await storage.list_checkpoints(workflow_name="flow")
    await storage.delete("flow-1")
    with pytest.raises(CheckpointNotFoundError):
        _ = listed.state


async def test_a_listed_checkpoint_can_be_saved_under_another_name() -> None:
    storage = PlainStorage()
    await storage.save(checkpoint(1, state={"n": 1}))
    (listed,) = await storage.list_checkpoints(workflow_name="flow")
    listed.workflow_name, listed.checkpoint_id = "copy", "copy-1"
    await storage.save(listed)
    assert (await storage.load("copy-1")).state == {"n": 1}


class PrunedBackend(PlainBackend):
    """Others prune the chain whenever parts are about to be read."""

    def parts(self, workflow_name: str, ids: Collection[str]) -> dict[str, str]:
        if len(self.ids(workflow_name)) > 1:
            self.delete(workflow_name, self.ids(workflow_name)[:1], sweep=False)
            self.parts_of[workflow_name].clear()
        return super().parts(workflow_name, ids)


async def test_a_checkpoint_that_is_removed_while_it_is_read_is_not_taken_for_a_damaged_one() -> None:
    storage = PlainStorage(PrunedBackend())
    await storage.save(checkpoint(1, state={"conversation": conversation(50)}))
    await storage.save(checkpoint(2, state={"n": 1}, metadata={"seq": 2}))
    with pytest.raises(CheckpointNotFoundError):
        await storage.load("flow-1")
    assert (await storage.load("flow-2")).state == {"n": 1}


async def test_a_damaged_head_is_left_out_of_lists_and_hides_no_neighbour(caplog: pytest.LogCaptureFixture) -> None:
    storage = PlainStorage()
    for seq in range(1, 4):
        await storage.save(checkpoint(seq))
    found = storage.backend.records["flow-2"]
    for head in ("{", "[]", '{"format":1}', '{"format":99}', found.head.replace('"format":1', '"format":"1"')):
        broken = CheckpointRecord("flow-2", "flow", 2, found.timestamp, None, head, found.content)
        storage.backend.records["flow-2"] = broken
        assert [each.checkpoint_id for each in await storage.list_checkpoints(workflow_name="flow")] == [
            "flow-1",
            "flow-3",
        ]
        assert [each.seq for each in await storage.list_infos(workflow_name="flow")] == [1, 3]
        assert "flow-2" in await storage.list_checkpoint_ids(workflow_name="flow")
        with raises(WorkflowCheckpointException, "flow-2"):
            await storage.load("flow-2")
    assert "flow-2" in caplog.text


# ----------------------------------------------------------------------------------------------------- what is written


async def test_only_what_is_new_is_written() -> None:
    storage, talk = PlainStorage(), conversation(400)
    await storage.save(checkpoint(1, state={"conversation": talk}))
    await storage.save(checkpoint(2, state={"conversation": [*talk, "one more " * 20]}))
    _, parts = storage.backend.puts[-1]
    assert sum(map(len, parts.values())) < 1000


class FailingBackend(PlainBackend):
    """Fails at some puts."""

    def __init__(self, *failing: int) -> None:
        super().__init__()
        self.failing, self.tried = set(failing), 0

    def put(self, record: CheckpointRecord, parts: Mapping[str, str], **how: Any) -> None:
        self.tried += 1
        if self.tried in self.failing:
            raise OSError(28, "No space left on device")
        super().put(record, parts, **how)


async def test_a_failed_save_is_explained_and_what_it_had_cut_is_sent_again() -> None:
    storage = PlainStorage(FailingBackend(2))
    talk = conversation(100)
    await storage.save(checkpoint(1))
    with raises(WorkflowCheckpointException, "'flow-2'", "PlainStorage()"):
        await storage.save(checkpoint(2, state={"conversation": talk}))
    await storage.save(checkpoint(3, state={"conversation": talk}))
    assert (await storage.load("flow-3")).state == {"conversation": talk}


async def test_saves_that_were_cut_behind_a_failing_one_lose_nothing() -> None:
    storage = PlainStorage(FailingBackend(2))
    await storage.save(checkpoint(1))
    talk = conversation(100)
    saves = [storage.save(checkpoint(seq, state={"conversation": talk[: 30 * seq]})) for seq in (2, 3, 4)]
    results = await asyncio.gather(*saves, return_exceptions=True)
    kept = [seq for seq, result in zip((2, 3, 4), results, strict=True) if isinstance(result, str)]
    assert len(kept) == 2
    for seq in kept:
        assert (await storage.load(f"flow-{seq}")).state == {"conversation": talk[: 30 * seq]}


async def test_a_writer_that_others_have_swept_behind_starts_afresh() -> None:
    backend, talk = PlainBackend(), conversation(100)
    one, other = PlainStorage(backend), PlainStorage(backend)
    await one.save(checkpoint(1, state={"conversation": talk}))
    await other.delete("flow-1")
    assert backend.parts_of["flow"] == {}
    await one.save(checkpoint(2, state={"conversation": talk}))
    assert (await other.load("flow-2")).state == {"conversation": talk}


class RestlessBackend(PlainBackend):
    """Somebody sweeps before every put."""

    def put(self, record: CheckpointRecord, parts: Mapping[str, str], **how: Any) -> None:
        raise StalePartsError


async def test_a_writer_gives_up_when_others_sweep_all_the_time() -> None:
    with raises(WorkflowCheckpointException, "checkpoints"):
        await PlainStorage(RestlessBackend()).save(checkpoint(1))


async def test_an_abandoned_save_is_finished_and_later_ones_build_on_it() -> None:
    storage, talk = PlainStorage(), conversation(60)
    await storage.save(checkpoint(1))
    task = asyncio.ensure_future(storage.save(checkpoint(2, state={"conversation": talk})))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await storage.save(checkpoint(3, state={"conversation": talk}))
    assert (await storage.load("flow-3")).state == {"conversation": talk}


# --------------------------------------------------------------------------------------------------------- what is kept


@pytest.mark.parametrize("keep", [1, 3, 20])
async def test_of_each_chain_the_last_ones_stay_with_what_they_need(keep: int) -> None:
    storage = PlainStorage(keep_last=keep)
    for seq in range(1, 61):
        await storage.save(checkpoint(seq, state={"conversation": conversation(seq)}))
        await storage.save(checkpoint(seq, "other", state={"n": seq}))
        ids = await storage.list_checkpoint_ids(workflow_name="flow")
        assert ids == [f"flow-{each}" for each in range(max(1, seq - keep + 1), seq + 1)]
    for seq in range(60 - keep + 1, 61):
        assert (await storage.load(f"flow-{seq}")).state == {"conversation": conversation(seq)}
    unneeded = len(storage.backend.parts_of["flow"])
    await storage.prune(workflow_name="flow", keep=keep)
    await storage.delete_chain("other")
    assert unneeded < 60
    assert storage.backend.parts_of["other"] == {}


# ------------------------------------------------------------------------------------------------- threads and the end


def test_one_storage_serves_event_loops_of_several_threads() -> None:
    storage = PlainStorage()

    def work(chain: str) -> None:
        async def save() -> None:
            for seq in range(1, 21):
                await storage.save(checkpoint(seq, chain, state={"conversation": conversation(seq)}))

        asyncio.run(save())

    threads = [threading.Thread(target=work, args=(f"chain-{each}",)) for each in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    async def read() -> None:
        for each in range(4):
            latest = await storage.get_latest(workflow_name=f"chain-{each}")
            assert latest is not None
            assert latest.state == {"conversation": conversation(20)}

    asyncio.run(read())


async def test_programs_that_save_little_and_end_leave_no_parts_behind_with_keep_last() -> None:
    backend = PlainBackend()
    for seq in range(1, 11):
        program = PlainStorage(backend, keep_last=2)
        await program.save(checkpoint(seq, state={"text": f"{seq:02d}" * 1000}))
        program.close()
    assert backend.ids("flow") == ["flow-9", "flow-10"]
    assert len([text for text in backend.parts_of["flow"].values() if len(text) > 1000]) == 2


async def test_a_chain_that_is_saved_to_all_the_time_is_remembered_among_many_others() -> None:
    storage, talk = PlainStorage(), conversation(100)
    for seq in range(1, 201):
        await storage.save(checkpoint(seq, "busy", state={"talk": talk}))
        await storage.save(checkpoint(1, f"other-{seq}"))
    written = [parts for record, parts in storage.backend.puts if record.workflow_name == "busy"]
    assert not any(written[1:])


async def test_a_chain_that_is_forgotten_for_its_size_is_read_and_written_as_before(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(content_storage, "_MOST_CHARACTERS", 20_000)
    storage, said = PlainStorage(), conversation(100)
    for seq in range(1, 5):
        for chain in ("one", "other"):
            before = [] if seq == 1 else (await storage.load(f"{chain}-{seq - 1}")).state["said"]
            await storage.save(checkpoint(seq, chain, state={"said": [*before, *said]}))

    assert (await storage.load("one-4")).state == (await storage.load("other-4")).state == {"said": said * 4}


@pytest.mark.parametrize("keep_last", [None, 1])
async def test_older_checkpoints_are_never_removed_on_the_thread_of_the_caller(keep_last: int | None) -> None:
    class LocalBackend(PlainBackend):
        is_local = True
        threads: ClassVar[set[threading.Thread]] = set()

        def put(self, *args: Any, **how: Any) -> None:
            self.threads.add(threading.current_thread())
            super().put(*args, **how)

    storage = PlainStorage(LocalBackend(), keep_last=keep_last)
    for seq in range(1, 4):
        await storage.save(checkpoint(seq))
    assert (threading.current_thread() in LocalBackend.threads) is (keep_last is None)


async def test_metadata_of_a_caller_under_a_key_of_the_engine_hide_no_other_checkpoint() -> None:
    storage = PlainStorage()
    await storage.save(checkpoint(1, metadata={"seq": 1, "writers": 5}))
    await storage.save(checkpoint(2, metadata={"seq": 2, "writers": ["a"]}))
    assert [info.writers for info in await storage.list_infos(workflow_name="flow")] == [(), ("a",)]


async def test_a_checkpoint_notes_how_many_bytes_were_newly_written_for_it() -> None:
    storage, talk = PlainStorage(), conversation(100)
    first = checkpoint(1, state={"talk": talk}, metadata={"seq": 1, "sizes": {"messages": 0}})
    second = checkpoint(2, state={"talk": [*talk, "new"]}, metadata={"seq": 2, "sizes": {"messages": 0}})
    for each in (first, second):
        await storage.save(each)
    sizes = [each.metadata["sizes"]["bytes"] for each in (first, second)]
    assert sizes[0] > 20_000 > 1_000 > sizes[1]
    assert [info.size_bytes for info in await storage.list_infos(workflow_name="flow")] == sizes
    assert await storage.load("flow-2") == second


async def test_an_info_is_as_good_as_an_id_and_what_is_neither_is_refused() -> None:
    storage = PlainStorage()
    await storage.save(checkpoint(1))
    (info,) = await storage.list_infos(workflow_name="flow")
    assert (await storage.load(info)).checkpoint_id == "flow-1"  # type: ignore[arg-type]
    for wrong in (None, 5):
        with raises(TypeError, "id"):
            await storage.load(wrong)  # type: ignore[arg-type]
    assert await storage.delete(info)  # type: ignore[arg-type]
