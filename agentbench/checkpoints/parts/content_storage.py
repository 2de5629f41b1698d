"""A checkpoint storage over a backend: content-addressed parts, shared along a chain.

A checkpoint is cut into parts when it is saved, so that it holds the state at that point of the run. Blocking work runs
on one thread of the storage, in order. Only a small write to local files runs on the caller's thread, because handing
it over would take as long; it is handed over if other work is queued or running.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from functools import partial
from typing import Any, Final, TypeVar

from agentbench._display import drawn_by
from agentbench._limits import require_limit
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint, id_of
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.parts.backend import CheckpointRecord, StalePartsError, StorageBackend
from agentbench.checkpoints.parts.chain_memory import ChainMemory
from agentbench.checkpoints.parts.joining import join_part
from agentbench.checkpoints.parts.parts import PartTexts
from agentbench.checkpoints.parts.records import (
    CONTENT,
    looks_whole,
    plain_fields,
    read_metadata,
    readable,
    to_checkpoint,
    to_info,
    to_record,
)
from agentbench.checkpoints.parts.worker import Worker
from agentbench.checkpoints.storage import ChainStorage
from agentbench.exceptions import (
    AgentFrameworkException,
    CheckpointNotFoundError,
    UnstorableValueError,
    WorkflowCheckpointException,
)
from agentbench.serialization.search import explain_unstorable

T = TypeVar("T")
_log = logging.getLogger(__name__)

_MOST_CHAINS: Final = 64
_MOST_CHARACTERS: Final = 1 << 28
"""Limits of the chains whose values are remembered; the chain unused for longest is then read and saved in full."""
_ATTEMPTS: Final = 8
"""Other processes may remove parts of a chain between reading its generation and saving, but rarely this often."""
_SMALL: Final = 1 << 16
"""Writes of up to this many characters may run on the caller's thread."""
_SWEEP_EVERY: Final = 16
"""With `keep_last`, unneeded parts are removed after at least this many checkpoints."""


@drawn_by("agentbench.notebook.cards.checkpoint:storage_bundle")
class ContentAddressedStorage(ChainStorage):
    """A `CheckpointStorage` with all capabilities; base of the storages in files, databases and Redis.

    It can be used from several threads and event loops, and several processes can use the same place; a forked process
    can continue with its parent's storage.

    Args:
        backend: Stores records and parts.
        keep_last: How many checkpoints of each chain to keep; older ones are removed as new ones are saved. `None`
            keeps all.

    Raises:
        TypeError: `keep_last` is not a whole number.
        ValueError: `keep_last` is less than 1.
    """

    keeps_copies = True

    def __init__(self, backend: StorageBackend, *, keep_last: int | None = None) -> None:
        super().__init__(keep_last)
        self._ab_backend = backend
        self._ab_unswept: dict[str, int] = {}
        self._ab_begin()

    def _ab_begin(self) -> None:
        self._ab_pid = os.getpid()
        self._ab_worker = Worker("agentbench-checkpoints")
        self._ab_lock = threading.Lock()
        self._ab_memories: OrderedDict[str, ChainMemory] = OrderedDict()

    def _ab_require_process(self) -> None:
        """Start over in a forked process, where the parent's thread does not exist and may have been interrupted."""
        if self._ab_pid != os.getpid():
            self._ab_backend.close()
            self._ab_begin()

    # ------------------------------------------------------------------------------------------------- six methods

    async def save(self, checkpoint: WorkflowCheckpoint) -> CheckpointID:
        """Store a checkpoint and return its id; a stored one with the same id is replaced."""
        return await self._ab_save(checkpoint, None)

    async def load(self, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
        """Return a checkpoint."""
        checkpoint_id = id_of(checkpoint_id)
        return await self._ab_run(f"Checkpoint {checkpoint_id!r} was not loaded from", self._ab_load, checkpoint_id)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Return the checkpoints of a chain, oldest first; each is read on first access.

        A checkpoint with an unreadable head is left out with a logged warning.
        """
        failure = f"Chain {workflow_name!r} was not listed from"
        records = await self._ab_run(failure, self._ab_backend.outlines, workflow_name)
        heads: dict[CheckpointID, CheckpointRecord] = {}
        return readable(partial(self._ab_lazy_checkpoint, heads), filter(looks_whole, records))

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[CheckpointID]:
        """Return the ids of the checkpoints of a chain, oldest first."""
        return await self._ab_run(
            f"The ids of chain {workflow_name!r} were not read from", self._ab_backend.ids, workflow_name
        )

    async def delete(self, checkpoint_id: CheckpointID) -> bool:
        """Remove a checkpoint with all data that only it needs, and return whether there was one."""
        checkpoint_id = id_of(checkpoint_id)
        return await self._ab_run(f"Checkpoint {checkpoint_id!r} was not deleted from", self._ab_delete, checkpoint_id)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Return the newest checkpoint of a chain, if there is one."""
        find = partial(self._ab_backend.latest, workflow_name)
        return await self._ab_run(f"The latest of chain {workflow_name!r} was not read from", self._ab_read, find)

    # ------------------------------------------------------------------------------------------------ capabilities

    async def _ab_infos(self, workflow_name: str, **limits: Any) -> list[CheckpointInfo]:
        limit = limits.get("limit")
        require_limit("limit", limit, none="all")
        failure = f"Chain {workflow_name!r} was not listed from"
        read = partial(self._ab_backend.heads, workflow_name, **limits)
        records = await self._ab_run(failure, read, is_quick=limit == 1)
        infos = readable(to_info, records)
        if limit and len(infos) < len(records):  # the ones before the damaged ones are used instead
            read = partial(self._ab_backend.heads, workflow_name, **{**limits, "limit": None})
            infos = readable(to_info, await self._ab_run(failure, read))[-limit:]
        return infos

    async def list_workflow_names(self, prefix: str = "") -> list[str]:
        """Return the names of the chains, sorted; only those that begin with `prefix`."""
        return await self._ab_run("The chains were not read from", self._ab_backend.chains, prefix)

    async def save_if_head(self, checkpoint: WorkflowCheckpoint, expected_seq: int) -> CheckpointID:
        """Store a checkpoint only if the newest one of its chain has the expected sequence number (0: empty chain)."""
        return await self._ab_save(checkpoint, expected_seq)

    async def save_all(self, checkpoints: Sequence[WorkflowCheckpoint]) -> None:
        """Store the checkpoints of a new chain, all or none, visible in one step; `WorkflowBusyError` if it exists."""
        if not checkpoints:
            return
        chain = checkpoints[0].workflow_name
        try:
            await self._ab_run(f"Chain {chain!r} was not saved to", self._ab_put_chain, chain, checkpoints)
        except UnstorableValueError as error:
            for checkpoint in checkpoints:  # says which one, and where in it
                checkpoint.to_json()
            raise explain_unstorable(checkpoints[0]) from error

    async def _ab_remove(self, workflow_name: str, keep: int) -> int:
        def remove() -> int:
            ids = self._ab_backend.ids(workflow_name)
            old = ids[: max(0, len(ids) - keep)]
            return self._ab_backend.delete(workflow_name, old, sweep=True) if old else 0

        return await self._ab_run(f"Checkpoints of chain {workflow_name!r} were not removed from", remove)

    def close(self) -> None:
        """Close files and connections after the work in progress. The storage opens them again on the next use."""
        self._ab_wait_for("Nothing was closed of", self._ab_backend.close)
        self._ab_worker.close()

    # ------------------------------------------------------------------------------------------------------ saving

    async def _ab_save(self, checkpoint: WorkflowCheckpoint, expected_seq: int | None) -> CheckpointID:
        self._ab_require_process()
        try:
            checkpoint.messages, checkpoint.metadata  # noqa: B018 - one from a list is read now, not under the lock
            for attempt in range(1, _ATTEMPTS + 1):
                memory = self._ab_memories.get(checkpoint.workflow_name)
                if memory is None or memory.spoilt:
                    memory = await self._ab_read_quickly(self._ab_memory_of, checkpoint.workflow_name)
                try:
                    queued = self._ab_cut_and_put(memory, checkpoint, expected_seq)
                    if queued is not None:
                        await asyncio.shield(asyncio.wrap_future(queued))
                    break
                except StalePartsError:
                    if attempt == _ATTEMPTS:
                        raise
        except (UnstorableValueError, RecursionError) as error:
            raise explain_unstorable(checkpoint) from error
        except AgentFrameworkException:
            raise
        except Exception as error:
            failure = f"Checkpoint {checkpoint.checkpoint_id!r} was not saved to"
            raise self._ab_storage_error(failure, error) from error
        return checkpoint.checkpoint_id

    async def _ab_read_quickly(self, function: Callable[..., T], *args: Any) -> T:
        """Call a function that reads little: here if that takes less time than handing it over to the thread."""
        if self._ab_backend.is_local:
            found: list[T] = []
            if self._ab_worker.run_here(lambda: found.append(function(*args))):
                return found[0]
        return await self._ab_worker.run(function, *args)

    def _ab_memory_of(self, chain: str) -> ChainMemory:
        """Return the memory of a chain, a new one if there is none; called on the storage's thread."""
        memory = self._ab_memories.get(chain)
        if memory is not None and not memory.spoilt:
            return memory
        memory = ChainMemory(self._ab_backend.generation(chain))
        with self._ab_lock:
            self._ab_memories[chain] = memory
            sizes = [each.size for each in self._ab_memories.values()]
            while len(sizes) > _MOST_CHAINS or (len(sizes) > 1 and sum(sizes) > _MOST_CHARACTERS):
                self._ab_memories.popitem(last=False)
                del sizes[0]
        return memory

    def _ab_cut_and_put(
        self, memory: ChainMemory, checkpoint: WorkflowCheckpoint, expected_seq: int | None
    ) -> Future[None] | None:
        """Cut and put under one lock, because the next cut relies on it; return the put if it is queued."""
        with self._ab_lock:
            try:
                record, parts = to_record(checkpoint, memory)
            except BaseException:
                memory.spoilt = True  # it counts parts as stored that are not
                raise
            if checkpoint.workflow_name in self._ab_memories:
                self._ab_memories.move_to_end(checkpoint.workflow_name)
            put = partial(self._ab_put, memory, record, parts, expected_seq)
            # With `keep_last`, some saves also remove old checkpoints, which takes time.
            is_quick = self._ab_backend.is_local and self._ab_keep_last is None
            if is_quick and len(record.content) + sum(map(len, parts.values())) <= _SMALL:
                try:
                    if self._ab_worker.run_here(partial(put, patient=False)):
                        return None
                except BlockingIOError:
                    pass  # another process is writing: the thread waits for it
            return self._ab_worker.submit(put)

    def _ab_put(
        self,
        memory: ChainMemory,
        record: CheckpointRecord,
        parts: PartTexts,
        expected_seq: int | None,
        *,
        patient: bool = True,
    ) -> None:
        try:
            if memory.spoilt:
                raise StalePartsError
            generation = memory.generation
            self._ab_backend.put(record, parts, generation=generation, expected_seq=expected_seq, patient=patient)
        except BaseException as error:
            if patient or not isinstance(error, BlockingIOError):
                memory.spoilt = True
            raise
        if self._ab_keep_last is not None:
            self._ab_trim(record.workflow_name, self._ab_keep_last)

    def _ab_put_chain(self, chain: str, checkpoints: Sequence[WorkflowCheckpoint]) -> None:
        for attempt in range(1, _ATTEMPTS + 1):
            memory = ChainMemory(self._ab_backend.generation(chain))  # of its own: nothing else may rely on its parts
            cut = [to_record(checkpoint, memory) for checkpoint in checkpoints]
            parts = {name: text for _, texts in cut for name, text in texts.items()}
            try:
                self._ab_backend.put_chain([record for record, _ in cut], parts, generation=memory.generation)
                break
            except StalePartsError:
                if attempt == _ATTEMPTS:
                    raise
        if self._ab_keep_last is not None:
            self._ab_trim(chain, self._ab_keep_last)

    def _ab_trim(self, chain: str, keep: int) -> None:
        try:
            old = self._ab_backend.ids(chain)[:-keep]
            enough = max(keep, _SWEEP_EVERY)
            # The first time immediately, because programs that save a few checkpoints and end would never sweep.
            unswept = self._ab_unswept.get(chain, enough) + len(old)
            sweep = unswept >= enough
            if old:
                self._ab_backend.delete(chain, old, sweep=sweep)
                self._ab_unswept[chain] = 0 if sweep else unswept
        except Exception as error:  # noqa: BLE001 - the checkpoint is safe; the old ones are removed another time
            _log.warning("Old checkpoints of chain %r were not removed from %r: %s", chain, self, error)

    # ----------------------------------------------------------------------------------------------------- reading

    def _ab_load(self, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
        found = self._ab_read(partial(self._ab_backend.get, checkpoint_id))
        if found is None:
            raise CheckpointNotFoundError(checkpoint_id)
        return found

    def _ab_read(self, find: Callable[[], CheckpointRecord | None]) -> WorkflowCheckpoint | None:
        record = find()
        if record is None:
            return None
        try:
            return self._ab_whole(record)
        except WorkflowCheckpointException:
            # Other processes may have removed it, with its parts, between the two reads.
            before, record = record, find()
            if record == before:
                raise
        return None if record is None else self._ab_whole(record)

    def _ab_whole(self, record: CheckpointRecord) -> WorkflowCheckpoint:
        memory = self._ab_memory_of(record.workflow_name)  # before any part is read: all of them count as stored
        return to_checkpoint(record, memory, partial(self._ab_backend.parts, record.workflow_name))

    def _ab_lazy_checkpoint(
        self, heads: dict[CheckpointID, CheckpointRecord], record: CheckpointRecord
    ) -> WorkflowCheckpoint:
        """Create a checkpoint that is read on first access; `heads` are those of its list, once one was needed."""
        known = {"workflow_name": record.workflow_name, "checkpoint_id": record.checkpoint_id}
        return WorkflowCheckpoint.read_later(known, partial(self._ab_read_field, record, heads))

    def _ab_read_field(
        self, record: CheckpointRecord, heads: dict[CheckpointID, CheckpointRecord], name: str
    ) -> Mapping[str, Any]:
        checkpoint_id = record.checkpoint_id
        failure = f"Checkpoint {checkpoint_id!r} was not loaded from"
        if name in CONTENT:
            found = self._ab_wait_for(failure, self._ab_load, checkpoint_id)
            return {each: getattr(found, each) for each in CONTENT}
        if not record.head:
            if not heads:
                records = self._ab_wait_for(failure, self._ab_backend.heads, record.workflow_name)
                heads.update({each.checkpoint_id: each for each in records})
            if checkpoint_id not in heads:
                raise CheckpointNotFoundError(checkpoint_id)
            record = heads[checkpoint_id]
        fields = plain_fields(record)
        if name == "metadata":
            fetch = partial(self._ab_wait_for, failure, self._ab_backend.parts, record.workflow_name)
            fields["metadata"] = read_metadata(record, partial(join_part, fetch=fetch))
        return fields

    def _ab_delete(self, checkpoint_id: CheckpointID) -> bool:
        record = self._ab_backend.get(checkpoint_id)
        return record is not None and self._ab_backend.delete(record.workflow_name, [checkpoint_id], sweep=True) > 0

    # ---------------------------------------------------------------------------------------------------- the thread

    async def _ab_run(self, failure: str, function: Callable[..., T], *args: Any, is_quick: bool = False) -> T:
        """Await a function on the storage's thread; errors say what was not done, and where."""
        self._ab_require_process()
        run = self._ab_read_quickly if is_quick else self._ab_worker.run
        with self._ab_explaining(failure):
            return await run(function, *args)

    def _ab_wait_for(self, failure: str, function: Callable[..., T], *args: Any) -> T:
        """Do the same for callers that cannot await."""
        self._ab_require_process()
        with self._ab_explaining(failure):
            return self._ab_worker.submit(function, *args).result()

    @contextmanager
    def _ab_explaining(self, failure: str) -> Iterator[None]:
        try:
            yield
        except AgentFrameworkException:
            raise
        except Exception as error:
            raise self._ab_storage_error(failure, error) from error

    def _ab_storage_error(self, failure: str, error: Exception) -> WorkflowCheckpointException:
        if isinstance(error, StalePartsError):
            reason = "other processes kept removing checkpoints of the chain. Try again"
        else:
            cause = f"{type(error).__name__}: {error}".rstrip(".")
            reason = f"{cause}. Earlier checkpoints are unchanged; fix the cause and try again"
        return WorkflowCheckpointException(f"{failure} {self!r}: {reason}.", error)
