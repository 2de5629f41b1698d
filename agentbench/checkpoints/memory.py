"""Checkpoints kept in memory, for as long as the process lives."""

from __future__ import annotations

import threading
from bisect import bisect_left, bisect_right
from collections.abc import Iterator
from types import MemberDescriptorType
from typing import Any

from agentbench._copying import is_atomic, isolate, isolate_but
from agentbench._display import Displayable, drawn_by
from agentbench.checkpoints.access import id_of
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo, checkpoint_order, select_infos
from agentbench.checkpoints.metadata import GRAPH_SIGNATURE
from agentbench.checkpoints.parts.grown_list import GrownList, GrowthLogs
from agentbench.checkpoints.storage import require_head, require_keep
from agentbench.exceptions import CheckpointNotFoundError, WorkflowCheckpointException

_DEEPEST_PATH = 20
_NOTHING: dict[int, GrownList] = {}


@drawn_by("agentbench.notebook.storage_view:storage_bundle")
class InMemoryCheckpointStorage(Displayable):
    """A storage for tests, notebooks and whatever ends together with its process.

    Checkpoints are copied when they are saved and when they are loaded, so that a run never changes what is kept: any
    number of runs may go on from one checkpoint, and all of them begin alike. Values that are frozen once saved
    (messages, and everything immutable) are shared instead. It may be used from several threads and event loops.

    A save costs time in proportion to the state, the newest checkpoint of a chain is found at once, and infos are
    listed without copying any state.

    Args:
        keep_last: How many checkpoints of each chain to keep; older ones are removed as new ones are saved. `None`
            keeps all.

    Raises:
        TypeError: `keep_last` is no whole number.
        ValueError: It is less than 1.
    """

    keeps_copies = True

    def __init__(self, *, keep_last: int | None = None) -> None:
        if keep_last is not None:
            require_keep(keep_last, "keep_last")
        self._keep_last = keep_last
        self._entries: dict[CheckpointID, _Entry] = {}
        self._chains: dict[str, _Chain] = {}
        self._logs: dict[str, GrowthLogs] = {}
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"InMemoryCheckpointStorage(checkpoints={len(self._entries)}, chains={len(self._chains)})"

    def __getstate__(self) -> dict[str, Any]:
        return {"_entries": self._entries, "_chains": self._chains, "_keep_last": self._keep_last}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._entries, self._chains, self._logs = state["_entries"], state["_chains"], {}
        self._keep_last = state.get("_keep_last")
        self._lock = threading.Lock()

    async def save(self, checkpoint: WorkflowCheckpoint) -> CheckpointID:
        """Keep a copy of a checkpoint and return its id; one of the same id is replaced.

        Raises:
            WorkflowCheckpointException: Something in it cannot be copied; nothing was changed.
        """
        entry = self._entry_for(checkpoint)
        with self._lock:
            self._put(entry)
        return checkpoint.checkpoint_id

    async def save_if_head(self, checkpoint: WorkflowCheckpoint, expected_seq: int) -> CheckpointID:
        """Keep a checkpoint only if the newest one of its chain has the expected sequence number (0: no chain yet).

        Raises:
            WorkflowBusyError: It has another one; nothing was saved.
            WorkflowCheckpointException: Something in the checkpoint cannot be copied; nothing was changed.
        """
        entry = self._entry_for(checkpoint)
        with self._lock:
            chain = self._chains.get(checkpoint.workflow_name)
            require_head(checkpoint.workflow_name, chain.head_seq if chain else 0, expected_seq)
            self._put(entry)
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
        """Return a copy of a checkpoint.

        Raises:
            CheckpointNotFoundError: The id is unknown.
        """
        checkpoint_id = id_of(checkpoint_id)
        entry = self._entries.get(checkpoint_id)
        if entry is None:
            raise CheckpointNotFoundError(checkpoint_id)
        return _copied(entry.checkpoint)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Return copies of the checkpoints of a chain, oldest first."""
        return [_copied(entry.checkpoint) for entry in self._entries_of(workflow_name)]

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[CheckpointID]:
        """Return the ids of the checkpoints of a chain, oldest first."""
        return [entry.checkpoint.checkpoint_id for entry in self._entries_of(workflow_name)]

    async def delete(self, checkpoint_id: CheckpointID) -> bool:
        """Forget a checkpoint, and tell whether there was one."""
        with self._lock:
            return self._remove(checkpoint_id)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Return a copy of the newest checkpoint of a chain, if there is one."""
        head = self._head_of(workflow_name)
        return None if head is None else _copied(head.checkpoint)

    async def list_infos(
        self,
        *,
        workflow_name: str | None = None,
        run_id: str | None = None,
        before: CheckpointID | None = None,
        limit: int | None = None,
    ) -> list[CheckpointInfo]:
        """List checkpoints without their content, oldest first, chains one after another sorted by name.

        Args:
            workflow_name: The chain; `None` for all chains.
            run_id: Only what this run wrote.
            before: Only what comes before the checkpoint with this id.
            limit: At most so many, the newest ones.

        Raises:
            CheckpointNotFoundError: There is no checkpoint `before` among them.
            ValueError: `limit` is negative.
        """
        names = await self.list_workflow_names() if workflow_name is None else [workflow_name]
        newest = limit if run_id is None and before is None else None
        entries = [entry for name in names for entry in self._entries_of(name, newest)]
        return select_infos([entry.info for entry in entries], run_id=run_id, before=before, limit=limit)

    async def list_workflow_names(self, prefix: str = "") -> list[str]:
        """List the chains that there are, sorted; only those whose names begin with `prefix`."""
        return sorted(name for name in list(self._chains) if name.startswith(prefix))

    async def prune(self, *, workflow_name: str, keep: int) -> int:
        """Remove all but the `keep` newest checkpoints of a chain, and return how many were removed.

        Raises:
            ValueError: `keep` is less than 1.
        """
        require_keep(keep)
        with self._lock:
            return self._remove_all(self._entries_of(workflow_name)[:-keep])

    async def delete_chain(self, workflow_name: str) -> int:
        """Remove all checkpoints of a chain, and return how many were removed."""
        with self._lock:
            return self._remove_all(self._entries_of(workflow_name))

    def _entries_of(self, workflow_name: str, newest: int | None = None) -> list[_Entry]:
        chain = self._chains.get(workflow_name)
        if chain is None:
            return []
        return chain.entries[-newest:] if newest is not None and newest > 0 else chain.entries.copy()

    def _head_of(self, workflow_name: str) -> _Entry | None:
        heads = self._entries_of(workflow_name, 1)
        return heads[0] if heads else None

    def _entry_for(self, checkpoint: WorkflowCheckpoint) -> _Entry:
        head = self._head_of(checkpoint.workflow_name)
        kept = None if head is None else head.checkpoint.metadata.get(GRAPH_SIGNATURE)
        signature = checkpoint.metadata.get(GRAPH_SIGNATURE)
        with self._lock:
            grown = self._logs.setdefault(checkpoint.workflow_name, GrowthLogs()).note(checkpoint.state)
        return _Entry(_copied(checkpoint, kept if type(signature) is dict and signature == kept else None, grown))

    def _put(self, entry: _Entry) -> None:
        checkpoint = entry.checkpoint
        self._remove(checkpoint.checkpoint_id)
        self._entries[checkpoint.checkpoint_id] = entry
        self._chains.setdefault(checkpoint.workflow_name, _Chain()).add(entry)
        if self._keep_last is not None:
            self._remove_all(self._entries_of(checkpoint.workflow_name)[: -self._keep_last])

    def _remove(self, checkpoint_id: CheckpointID) -> bool:
        entry = self._entries.pop(checkpoint_id, None)
        if entry is None:
            return False
        chain = self._chains[entry.checkpoint.workflow_name]
        chain.remove(entry)
        if not chain.entries:
            del self._chains[entry.checkpoint.workflow_name]
            self._logs.pop(entry.checkpoint.workflow_name, None)
        return True

    def _remove_all(self, entries: list[_Entry]) -> int:
        return sum([self._remove(entry.checkpoint.checkpoint_id) for entry in entries])


class _Entry:
    """A kept checkpoint. Nobody outside gets hold of it, so that it never changes."""

    __slots__ = ("_info", "checkpoint", "order")

    def __init__(self, checkpoint: WorkflowCheckpoint) -> None:
        self.checkpoint = checkpoint
        self.order = checkpoint_order(checkpoint)
        self._info: CheckpointInfo | None = None

    @property
    def info(self) -> CheckpointInfo:
        """The checkpoint's info, made when it is first asked for: most checkpoints are saved and never listed."""
        if self._info is None:
            self._info = CheckpointInfo.of(self.checkpoint)
        return self._info


class _Chain:
    """The checkpoints of one name in their order."""

    __slots__ = ("_orders", "entries")

    def __init__(self) -> None:
        self._orders: list[tuple[int, str]] = []
        self.entries: list[_Entry] = []

    @property
    def head_seq(self) -> int:
        return self._orders[-1][0]

    def add(self, entry: _Entry) -> None:
        position = bisect_right(self._orders, entry.order)
        self._orders.insert(position, entry.order)
        self.entries.insert(position, entry)

    def remove(self, entry: _Entry) -> None:
        position = self.entries.index(entry, bisect_left(self._orders, entry.order))
        del self._orders[position], self.entries[position]


# --------------------------------------------------------------------------------------------------------------- copies


def _copied(
    checkpoint: WorkflowCheckpoint,
    signature: dict[str, Any] | None = None,
    grown: dict[int, GrownList] = _NOTHING,
) -> WorkflowCheckpoint:
    """Copy a checkpoint, with `signature` in the place of its own equal one, and `grown` in that of long lists."""
    content = checkpoint.to_dict()
    if signature is not None:
        content["metadata"] = {**checkpoint.metadata, GRAPH_SIGNATURE: None}
    try:
        duplicate = WorkflowCheckpoint(**isolate_but(content, grown))
    except Exception as error:
        path, part = _find_uncopyable(checkpoint)
        message = (
            f"Checkpoint {checkpoint.checkpoint_id!r} cannot be saved: {path} is a {type(part).__module__}."
            f"{type(part).__qualname__}, which cannot be copied ({error}). Expected values that can be. Keep such "
            "things on the executor instead, and make them anew in on_checkpoint_restore."
        )
        raise WorkflowCheckpointException(message, error) from error
    if signature is not None:
        duplicate.metadata[GRAPH_SIGNATURE] = signature
    return duplicate


def _find_uncopyable(checkpoint: WorkflowCheckpoint) -> tuple[str, object]:
    """Descend to the innermost part that cannot be copied, or as deep as a path can still be read."""
    path, part = "", checkpoint
    passed = {id(checkpoint)}
    for _ in range(_DEEPEST_PATH):
        for step, inner in _parts_of(part):
            if id(inner) not in passed and not _can_be_copied(inner):
                passed.add(id(inner))
                path, part = path + step, inner
                break
        else:
            break
    return path.removeprefix("."), part


def _can_be_copied(value: object) -> bool:
    try:
        isolate(value)
    except Exception:  # noqa: BLE001  copying runs foreign `__deepcopy__` and `__reduce__` methods, which raise anything
        return False
    return True


def _parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"[{key!r}]", item
            if not is_atomic(key):
                yield f" key {key!r}", key
    elif isinstance(value, (list, tuple)):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    slots = [
        name
        for cls in type(value).__mro__
        if "__slots__" in vars(cls)
        for name, member in vars(cls).items()
        if isinstance(member, MemberDescriptorType)
    ]
    for name in [*getattr(value, "__dict__", ()), *slots]:
        if hasattr(value, name):
            yield f".{name}", getattr(value, name)
