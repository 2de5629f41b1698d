"""Storages that people write themselves, with their oddities: six methods over a dict."""

from __future__ import annotations

from typing import Any

from agentbench import WorkflowCheckpoint


class OwnStorage:
    """Gives away the very objects that it keeps, answers None where it has nothing, lists in the order of saving."""

    def __init__(self) -> None:
        self.kept: dict[str, WorkflowCheckpoint] = {}

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        self.kept[checkpoint.checkpoint_id] = checkpoint
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: str) -> Any:
        return self.kept.get(checkpoint_id)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        return [c for c in self.kept.values() if c.workflow_name == workflow_name]

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        return [c.checkpoint_id for c in await self.list_checkpoints(workflow_name=workflow_name)]

    async def delete(self, checkpoint_id: str) -> bool:
        return self.kept.pop(checkpoint_id, None) is not None

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        found = await self.list_checkpoints(workflow_name=workflow_name)
        return found[-1] if found else None


class BackwardsStorage(OwnStorage):
    """Lists the newest first."""

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        return (await super().list_checkpoints(workflow_name=workflow_name))[::-1]

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        found = await self.list_checkpoints(workflow_name=workflow_name)
        return max(found, key=lambda c: c.timestamp, default=None)


class BareStorage(OwnStorage):
    """Keeps no metadata: no sequence numbers, no signatures."""

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        checkpoint.metadata = {}
        return await super().save(checkpoint)


class FailingStorage(OwnStorage):
    """Raises in the methods named, at the calls numbered (from 1; an empty set means at all of them)."""

    def __init__(self, error: Exception, **calls: set[int]) -> None:
        super().__init__()
        self.error = error
        self.calls = calls
        self.counts: dict[str, int] = {}

    def _maybe_fail(self, method: str) -> None:
        self.counts[method] = self.counts.get(method, 0) + 1
        wanted = self.calls.get(method)
        if wanted is not None and (not wanted or self.counts[method] in wanted):
            raise self.error

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        self._maybe_fail("save")
        return await super().save(checkpoint)

    async def load(self, checkpoint_id: str) -> Any:
        self._maybe_fail("load")
        return await super().load(checkpoint_id)

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[str]:
        self._maybe_fail("list_checkpoint_ids")
        return await super().list_checkpoint_ids(workflow_name=workflow_name)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        self._maybe_fail("get_latest")
        return await super().get_latest(workflow_name=workflow_name)
