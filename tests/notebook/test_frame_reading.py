"""What frames read of a storage: no more than they show, what can be read, and what they say of a client elsewhere."""

from __future__ import annotations

import asyncio
import inspect
import sys
from typing import Any

import pytest

from agentbench import InMemoryCheckpointStorage, WorkflowCheckpoint, WorkflowCheckpointException, WorkflowMessage
from agentbench.exceptions import MissingExtraError, NestedLoopError
from agentbench.notebook import Frames
from agentbench.notebook.frames.frames import checkpoints_frame, messages_frame, requests_frame, state_frame
from agentbench.notebook.plots.diff import diff
from tests.parts.errors import raises, warns


class Counting(InMemoryCheckpointStorage):
    """Counts what is opened; some checkpoints cannot be."""

    def __init__(self, *unreadable: str) -> None:
        super().__init__()
        self.opened: list[str] = []
        self.unreadable = unreadable

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        if checkpoint_id in self.unreadable:
            raise WorkflowCheckpointException(f"{checkpoint_id} holds an Odd, which is not known here")
        self.opened.append(checkpoint_id)
        return await super().load(checkpoint_id)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        infos = await self.list_infos(workflow_name=workflow_name)
        return [self._later(info.checkpoint_id, await super(Counting, self).load(info.checkpoint_id)) for info in infos]

    def _later(self, checkpoint_id: str, found: WorkflowCheckpoint) -> WorkflowCheckpoint:
        content = found.to_dict()
        known = {name: value for name, value in content.items() if name not in ("state", "messages")}

        def read(_: str) -> dict[str, Any]:
            if checkpoint_id in self.unreadable:
                raise WorkflowCheckpointException(f"{checkpoint_id} holds an Odd, which is not known here")
            self.opened.append(checkpoint_id)
            return {name: content[name] for name in ("state", "messages")}

        return WorkflowCheckpoint.read_later(known, read)


def saved(storage: InMemoryCheckpointStorage, count: int, *, chain: str = "w") -> InMemoryCheckpointStorage:
    async def main() -> None:
        for seq in range(1, count + 1):
            await storage.save(
                WorkflowCheckpoint(
                    chain,
                    "h",
                    f"{chain}-{seq}",
                    f"{chain}-{seq - 1}" if seq > 1 else None,
                    messages={"a": [WorkflowMessage(seq, "a")]},
                    state={"n": seq},
                    iteration_count=seq,
                    metadata={"seq": seq, "run_id": "run-1", "writers": ["a"]},
                )
            )

    asyncio.run(main())
    return storage


# ---- no more than is shown


def test_with_a_limit_only_the_rows_and_one_checkpoint_before_are_loaded() -> None:
    storage = Counting()
    saved(storage, 200)
    frame = state_frame(storage, limit=3)
    assert frame["value"].tolist() == [198, 199, 200]
    assert frame["old"].tolist() == [197, 198, 199]
    assert sorted(storage.opened) == ["w-197", "w-198", "w-199", "w-200"]
    storage.opened.clear()
    assert messages_frame(storage, limit=2)["checkpoint_id"].tolist() == ["w-199", "w-200"]
    assert sorted(storage.opened) == ["w-199", "w-200"]
    storage.opened.clear()
    assert state_frame(storage, wide=True, limit=0).empty
    assert checkpoints_frame(storage, limit=3)["depth"].tolist() == [197, 198, 199]
    assert storage.opened == []


@pytest.mark.parametrize("build", [state_frame, messages_frame])
def test_a_limit_leaves_the_last_rows_of_all_chains(build: Any) -> None:
    for limit in (0, 1, 64, 65, 150, 151, 500):
        storage = saved(saved(InMemoryCheckpointStorage(), 130), 20, chain="b")
        everything, some = build(storage, full=True), build(storage, limit=limit, full=True)
        assert some.reset_index().to_dict("list") == (
            everything.iloc[max(0, len(everything) - limit) :].reset_index().to_dict("list")
        )
        assert len(build(storage, limit=limit, run_id="run-2")) == 0
        assert len(build(storage, limit=limit, workflow_name="b")) == min(limit, 20)


# ---- what can be read


@pytest.mark.parametrize("limit", [None, 3])
def test_a_checkpoint_that_cannot_be_read_is_left_out_with_one_warning(limit: int | None) -> None:
    storage = saved(Counting("w-3"), 4)
    with warns(UserWarning, "w-3", "Odd") as told:
        frame = state_frame(storage, limit=limit)
    assert len(told) == 1
    assert told[0].filename == __file__
    assert frame["value"].tolist() == [1, 2, 4]
    assert frame["old"].tolist() == [None, 1, 2]
    assert frame["executor"].astype(object).where(frame["executor"].notna(), None).tolist() == ["a", "a", None]
    with warns(UserWarning, "w-3", "Odd"):
        assert messages_frame(storage, limit=limit)["preview"].tolist() == ["1", "2", "4"]
    with warns(UserWarning, "w-3", "Odd"):
        assert state_frame(storage, wide=True, limit=limit)["n"].tolist() == [1, 2, 4]


def test_requests_have_rows_as_far_as_checkpoints_can_be_read() -> None:
    with warns(UserWarning, "2 checkpoints") as warned:
        assert requests_frame(saved(Counting("w-3", "w-2"), 4)).empty
    assert warned[0].filename == __file__


# ---- loops


class OnALoop:
    """A storage of somebody's, on a client that belongs to the loop on which it was first used."""

    def __init__(self) -> None:
        self.client: dict[str, Any] = {"pool": [asyncio.Event()]}
        self._inner = InMemoryCheckpointStorage()

    async def use(self) -> None:
        event = self.client["pool"][0]
        if event.is_set():
            return
        asyncio.get_running_loop().call_soon(event.set)
        await event.wait()
        event.clear()

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        await self.use()
        return await self._inner.list_checkpoints(workflow_name=workflow_name)

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        await self.use()
        return await self._inner.save(checkpoint)

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        await self.use()
        return await self._inner.load(checkpoint_id)

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        return await self._inner.list_checkpoint_ids(workflow_name=workflow_name)

    async def delete(self, checkpoint_id: str) -> bool:
        return await self._inner.delete(checkpoint_id)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        return await self._inner.get_latest(workflow_name=workflow_name)


@pytest.mark.parametrize(
    "build",
    [
        lambda storage: checkpoints_frame(storage, workflow_name="w"),
        lambda storage: state_frame(storage, workflow_name="w", limit=3),
        lambda storage: diff("c-1", "c-1", source=storage),
    ],
)
async def test_where_a_client_belongs_to_the_running_loop_the_error_says_what_to_do(build: Any) -> None:
    storage = OnALoop()
    await storage.save(WorkflowCheckpoint("w", "h", "c-1"))
    with raises(NestedLoopError, "checkpoints_frame(await storage.list_checkpoints"):
        build(storage)


async def test_what_was_awaited_first_is_tabulated() -> None:
    storage = OnALoop()
    await storage.save(WorkflowCheckpoint("w", "h", "c-1"))
    assert list(checkpoints_frame(await storage.list_checkpoints(workflow_name="w")).index) == ["c-1"]


async def test_a_storage_without_a_client_is_read_beside_the_running_loop() -> None:
    storage = OnALoop()
    storage.client = {"pool": [asyncio.Event()], "lock": asyncio.Lock()}
    assert checkpoints_frame(storage, workflow_name="w").empty


# ---- without pandas


#: What each frame needs beside its source.
MORE: dict[str, tuple[Any, ...]] = {
    "diff": (WorkflowCheckpoint("w", "h"), WorkflowCheckpoint("w", "h")),
    "compare": ([],),
}


@pytest.mark.parametrize(
    "name", sorted(name for name, _ in inspect.getmembers(Frames, inspect.isfunction) if name[0] != "_")
)
def test_without_pandas_every_frame_names_the_extra(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with raises(MissingExtraError, extra="notebook"):
        getattr(Frames([]), name)(*MORE.get(name, ()))
