"""A checkpoint storage in memory, for as long as the process lives.

Every checkpoint of a chain contains the conversation, each time a little longer. The entries of such a list are stored
once, in a log of the chain; a checkpoint stores how many of them it has.
"""

from __future__ import annotations

import threading
from bisect import bisect_left, insort
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter, is_
from typing import Any

from agentbench._copying import is_atomic, isolate, isolate_but, slots_of
from agentbench._display import drawn_by
from agentbench.checkpoints.checkpoint import FIELDS, CheckpointID, WorkflowCheckpoint, id_of
from agentbench.checkpoints.info import CheckpointInfo, checkpoint_order, select_infos
from agentbench.checkpoints.metadata import GRAPH_SIGNATURE
from agentbench.checkpoints.storage import ChainStorage, require_head
from agentbench.exceptions import CheckpointNotFoundError, WorkflowCheckpointException
from agentbench.serialization.search import find_part, items_of

_SHORTEST_SHARED = 32
"""Shorter lists are copied: sharing them would save nothing."""
_DEEPEST_LIST = 3
"""The depth to which dictionaries are searched for long lists: state, executor state, the state of one executor."""


@drawn_by("agentbench.notebook.cards.checkpoint:storage_bundle")
class InMemoryCheckpointStorage(ChainStorage):
    """A storage for tests, notebooks and everything else that ends with its process.

    Checkpoints are copied when they are saved and when they are loaded, so a run never changes a stored one: any number
        of
    runs can continue from one checkpoint, and all of them begin with the same state. Values that are frozen once saved
    (messages, and everything immutable) are shared instead. It can be used from several threads and event loops.

    A save takes time in proportion to the state, the newest checkpoint of a chain is found immediately, and infos are
    listed without copying any state.

    Args:
        keep_last: How many checkpoints of each chain to keep; older ones are removed as new ones are saved. `None`
            keeps all.

    Raises:
        TypeError: `keep_last` is not a whole number.
        ValueError: `keep_last` is less than 1.

    Example:
        >>> storage = InMemoryCheckpointStorage(keep_last=100)
        >>> workflow = WorkflowBuilder(start_executor=first, name="report", checkpoint_storage=storage).build()
        >>> await workflow.run("tea")
        >>> latest = await storage.get_latest(workflow_name="report")
        >>> result = await workflow.run(checkpoint_id=latest.checkpoint_id)
    """

    keeps_copies = True

    def __init__(self, *, keep_last: int | None = None) -> None:
        super().__init__(keep_last)
        self._ab_entries: dict[CheckpointID, _Entry] = {}
        self._ab_chains: dict[str, list[_Entry]] = {}
        self._ab_logs: dict[str, _ListLogs] = {}
        self._ab_lock = threading.Lock()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(checkpoints={len(self._ab_entries)}, chains={len(self._ab_chains)})"

    def __getstate__(self) -> dict[str, Any]:
        return {"_entries": self._ab_entries, "_chains": self._ab_chains, "_keep_last": self._ab_keep_last}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self._ab_entries, self._ab_chains, self._ab_logs = state["_entries"], state["_chains"], {}
        self._ab_keep_last = state.get("_keep_last")
        self._ab_lock = threading.Lock()

    async def save(self, checkpoint: WorkflowCheckpoint) -> CheckpointID:
        """Store a copy and return its id. WorkflowCheckpointException: a value in it cannot be copied."""
        return self._ab_save(checkpoint, None)

    async def save_if_head(self, checkpoint: WorkflowCheckpoint, expected_seq: int) -> CheckpointID:
        """Store a copy if the newest checkpoint of its chain has this number (0: none), else `WorkflowBusyError`."""
        return self._ab_save(checkpoint, expected_seq)

    async def save_all(self, checkpoints: Sequence[WorkflowCheckpoint]) -> None:
        """Store copies of the checkpoints of a new chain, all or none; `WorkflowBusyError` if the chain exists."""
        entries = sorted((_Entry(_copy(checkpoint)) for checkpoint in checkpoints), key=_order)
        with self._ab_lock:
            for entry in entries:
                chain_name, checkpoint_id = entry.checkpoint.workflow_name, entry.checkpoint.checkpoint_id
                if chain := self._ab_chains.get(chain_name):
                    require_head(chain_name, chain[-1].order[0], 0)
                if checkpoint_id in self._ab_entries:
                    message = f"There is a checkpoint {checkpoint_id!r} already; expected new ids. Nothing was saved."
                    raise WorkflowCheckpointException(message)
            for entry in entries:
                self._ab_entries[entry.checkpoint.checkpoint_id] = entry
                self._ab_chains.setdefault(entry.checkpoint.workflow_name, []).append(entry)
            if entries and self._ab_keep_last is not None:
                self._ab_remove_all(self._ab_chains[entries[0].checkpoint.workflow_name][: -self._ab_keep_last])

    async def load(self, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
        """Return a copy of a checkpoint. CheckpointNotFoundError: The id is unknown."""
        checkpoint_id = id_of(checkpoint_id)
        entry = self._ab_entries.get(checkpoint_id)
        if entry is None:
            raise CheckpointNotFoundError(checkpoint_id)
        return _copy(entry.checkpoint)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Return copies of the checkpoints of a chain, oldest first."""
        return [_copy(entry.checkpoint) for entry in self._ab_entries_of(workflow_name)]

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[CheckpointID]:
        """Return the ids of the checkpoints of a chain, oldest first."""
        return [entry.checkpoint.checkpoint_id for entry in self._ab_entries_of(workflow_name)]

    async def delete(self, checkpoint_id: CheckpointID) -> bool:
        """Remove a checkpoint, and return whether there was one."""
        with self._ab_lock:
            return self._ab_remove_one(checkpoint_id)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Return a copy of the newest checkpoint of a chain, if there is one."""
        heads = self._ab_entries_of(workflow_name, 1)
        return _copy(heads[0].checkpoint) if heads else None

    async def _ab_infos(self, workflow_name: str, **limits: Any) -> list[CheckpointInfo]:
        newest = limits["limit"] if limits.keys() == {"limit"} else None
        return select_infos([entry.info for entry in self._ab_entries_of(workflow_name, newest)], **limits)

    async def list_workflow_names(self, prefix: str = "") -> list[str]:
        """Return the names of the chains, sorted; only those that begin with `prefix`."""
        return sorted(name for name in list(self._ab_chains) if name.startswith(prefix))

    async def _ab_remove(self, workflow_name: str, keep: int) -> int:
        with self._ab_lock:
            entries = self._ab_entries_of(workflow_name)
            return self._ab_remove_all(entries[: max(0, len(entries) - keep)])

    def _ab_entries_of(self, workflow_name: str, newest: int | None = None) -> list[_Entry]:
        chain = self._ab_chains.get(workflow_name, [])
        return chain[-newest:] if newest is not None and newest > 0 else chain.copy()

    def _ab_save(self, checkpoint: WorkflowCheckpoint, expected_seq: int | None) -> CheckpointID:
        chain_name, signature = checkpoint.workflow_name, checkpoint.metadata.get(GRAPH_SIGNATURE)
        heads = self._ab_entries_of(chain_name, 1)
        stored_signature = heads[0].checkpoint.metadata.get(GRAPH_SIGNATURE) if heads else None
        same_signature = type(signature) is dict and signature == stored_signature
        with self._ab_lock:
            shared = self._ab_logs.setdefault(chain_name, _ListLogs()).share(checkpoint.state)
        entry = _Entry(_copy(checkpoint, stored_signature if same_signature else None, shared))
        with self._ab_lock:
            if expected_seq is not None:
                chain = self._ab_chains.get(chain_name)
                require_head(chain_name, chain[-1].order[0] if chain else 0, expected_seq)
            if checkpoint.checkpoint_id in self._ab_entries:
                self._ab_remove_one(checkpoint.checkpoint_id)
            self._ab_entries[checkpoint.checkpoint_id] = entry
            chain = self._ab_chains.setdefault(chain_name, [])
            if not chain or chain[-1].order < entry.order:  # almost always
                chain.append(entry)
            else:
                insort(chain, entry, key=_order)
            if self._ab_keep_last is not None:
                self._ab_remove_all(chain[: -self._ab_keep_last])
        return checkpoint.checkpoint_id

    def _ab_remove_one(self, checkpoint_id: CheckpointID) -> bool:
        entry = self._ab_entries.pop(checkpoint_id, None)
        if entry is None:
            return False
        chain = self._ab_chains[entry.checkpoint.workflow_name]
        del chain[chain.index(entry, bisect_left(chain, entry.order, key=_order))]
        if not chain:
            del self._ab_chains[entry.checkpoint.workflow_name]
            self._ab_logs.pop(entry.checkpoint.workflow_name, None)
        return True

    def _ab_remove_all(self, entries: list[_Entry]) -> int:
        return sum([self._ab_remove_one(entry.checkpoint.checkpoint_id) for entry in entries])


class _Entry:
    """A stored checkpoint, which never leaves the storage and so never changes."""

    __slots__ = ("_info", "checkpoint", "order")

    def __init__(self, checkpoint: WorkflowCheckpoint) -> None:
        self.checkpoint = checkpoint
        self.order = checkpoint_order(checkpoint)
        self._info: CheckpointInfo | None = None

    @property
    def info(self) -> CheckpointInfo:
        """The checkpoint's info, created on first use, because most checkpoints are saved but never listed."""
        if self._info is None:
            self._info = CheckpointInfo.of(self.checkpoint)
        return self._info


_order: Callable[[_Entry], tuple[int, str]] = attrgetter("order")
_values_of: Callable[[WorkflowCheckpoint], tuple[Any, ...]] = attrgetter(*FIELDS)
_METADATA = FIELDS.index("metadata")


class _ListPrefix:
    """The first entries of a log. Copying it returns a list of them."""

    __slots__ = ("length", "log")

    def __init__(self, log: list[Any], length: int) -> None:
        self.log = log
        self.length = length

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Any]:
        copied = memo[id(self)] = self.log[: self.length]
        return copied


class _ListLogs:
    """The logs of one chain, as used by its newest checkpoint."""

    __slots__ = ("_logs",)

    def __init__(self) -> None:
        self._logs: dict[int, list[Any]] = {}
        """By the identity of the first entry, which the log keeps alive."""

    def share(self, state: dict[str, Any]) -> dict[int, _ListPrefix]:
        """Append new entries of long lists in a state to their logs; return the lists' replacements, by identity."""
        former, self._logs = self._logs, {}
        prefixes: dict[int, _ListPrefix] = {}
        holders: list[tuple[dict[Any, Any], int]] = [(state, 1)] if type(state) is dict else []
        for holder, depth in holders:  # grows during the loop
            for item in holder.values():
                if type(item) is dict:
                    if depth < _DEEPEST_LIST:
                        holders.append((item, depth + 1))
                elif type(item) is list and len(item) >= _SHORTEST_SHARED:
                    first = id(item[0])
                    log = self._logs.get(first) or former.get(first)
                    if log is None or not all(map(is_, log, item)):
                        log = []
                    new = item[len(log) :]
                    if all(map(is_atomic, new)):
                        log.extend(new)
                        self._logs[first] = log
                        prefixes[id(item)] = _ListPrefix(log, len(item))
        return prefixes


def _copy(
    checkpoint: WorkflowCheckpoint,
    signature: dict[str, Any] | None = None,
    shared: dict[int, _ListPrefix] | None = None,
) -> WorkflowCheckpoint:
    """Copy a checkpoint, with `signature` replacing its own equal one, and `shared` replacing long lists."""
    content = [*_values_of(checkpoint)]
    if signature is not None:
        content[_METADATA] = {**checkpoint.metadata, GRAPH_SIGNATURE: None}
    try:
        duplicate = WorkflowCheckpoint(*isolate_but(content, shared or {}))
    except Exception as error:
        path, part = find_part(checkpoint, _has_no_copy, _parts_of)
        message = (
            f"Checkpoint {checkpoint.checkpoint_id!r} cannot be saved: {path} is a {type(part).__module__}."
            f"{type(part).__qualname__}, which cannot be copied ({error}). Expected values that can be copied. Hold "
            "such objects in the executor instead, and create them again in on_checkpoint_restore."
        )
        raise WorkflowCheckpointException(message, error) from error
    if signature is not None:
        duplicate.metadata[GRAPH_SIGNATURE] = signature
    return duplicate


def _has_no_copy(value: object) -> bool:
    try:
        isolate(value)
    except Exception:  # noqa: BLE001  copying runs foreign `__deepcopy__` and `__reduce__` methods, which raise anything
        return True
    return False


def _parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    yield from items_of(value)
    for name in [*getattr(value, "__dict__", ()), *slots_of(type(value))]:
        if hasattr(value, name):
            yield f".{name}", getattr(value, name)
