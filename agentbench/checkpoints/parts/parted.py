"""A checkpoint storage over a backend: everything that storages on disk and on servers have in common.

Checkpoints are cut where they are saved, so that what is kept is what they were at that moment. Whatever blocks happens
on a thread of the storage's own, one thing after another; only small writes to this machine's own files are quicker
done than handed over.
"""

from __future__ import annotations

import asyncio
import logging
import os
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Callable
from functools import partial
from typing import Any, Final, TypeVar

from agentbench._display import Displayable, drawn_by
from agentbench.checkpoints.access import id_of
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo, require_limit, select_infos
from agentbench.checkpoints.listing import Listing, readable
from agentbench.checkpoints.parts.backend import CheckpointRecord, StalePartsError, StorageBackend
from agentbench.checkpoints.parts.parts import ChainMemory, PartTexts
from agentbench.checkpoints.parts.records import looks_whole, to_checkpoint, to_info, to_record
from agentbench.checkpoints.parts.worker import Worker
from agentbench.checkpoints.storage import require_keep
from agentbench.exceptions import (
    AgentFrameworkException,
    CheckpointNotFoundError,
    UnstorableValueError,
    WorkflowCheckpointException,
)
from agentbench.serialization.search import explain_unstorable

T = TypeVar("T")
_log = logging.getLogger(__name__)

#: Chains whose memory is kept; the longest unused is forgotten, which costs one checkpoint in full.
_MOST_CHAINS: Final = 64
#: Others may sweep a chain between a look and a save; not that often, though.
_ATTEMPTS: Final = 8
#: Writes of up to so many characters are small; one that takes longer, in seconds, is slow; so many are not tried then.
_SMALL: Final = 1 << 16
_SLOW_S: Final = 0.005
_AWAY: Final = 20
#: With `keep_last`, unneeded parts are removed after so many checkpoints at the earliest.
_SWEEP_EVERY: Final = 16


@drawn_by("agentbench.notebook.storage_view:storage_bundle")
class PartedStorage(Displayable):
    """A `CheckpointStorage` with all capabilities.

    It may be used from several threads and event loops, and several processes may use the same place; a process that
    was forked off goes on with a storage of its parent's.

    Args:
        backend: Where records and parts go.
        keep_last: How many checkpoints of each chain to keep; older ones are removed as new ones are saved. `None`
            keeps all.

    Raises:
        TypeError: `keep_last` is no whole number.
        ValueError: It is less than 1.
    """

    keeps_copies = True

    def __init__(self, backend: StorageBackend, *, keep_last: int | None = None) -> None:
        if keep_last is not None:
            require_keep(keep_last, "keep_last")
        self._backend = backend
        self._keep_last = keep_last
        #: Removing older checkpoints takes its time now and then, and waits for other writers.
        self._is_quick = backend.is_local and keep_last is None
        self._unswept: dict[str, int] = {}
        self._begin_anew()
        _STORAGES.add(self)

    def _begin_anew(self) -> None:
        """Forget what this process takes for kept: a forked one cannot know what its parent still had to put away."""
        self._worker = Worker("agentbench-checkpoints")
        self._lock = threading.Lock()
        #: How many of the next saves go to the thread in any case.
        self._away = 0
        self._memories: OrderedDict[str, ChainMemory] = OrderedDict()

    # ------------------------------------------------------------------------------------------------- six methods

    async def save(self, checkpoint: WorkflowCheckpoint) -> CheckpointID:
        """Keep a checkpoint and return its id; one of the same id is replaced.

        Raises:
            WorkflowCheckpointException: It holds something that has no stored form, or the place cannot keep it;
                nothing was changed.
        """
        return await self._save(checkpoint, None)

    async def load(self, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
        """Return a checkpoint.

        Raises:
            CheckpointNotFoundError: The id is unknown.
            WorkflowCheckpointException: What was kept is damaged, or holds instances of classes that are not known in
                this process.
        """
        checkpoint_id = id_of(checkpoint_id)
        return await self._run(f"Checkpoint {checkpoint_id!r} was not loaded from", self._load, checkpoint_id)

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        """Return the checkpoints of a chain, oldest first.

        Their messages, state, requests and metadata are read when they are first asked for, and raise then what `load`
        would have raised. One whose head cannot be read is left out with a warning in the log.
        """
        failure = f"Chain {workflow_name!r} was not listed from"
        records = await self._run(failure, self._backend.outlines, workflow_name)
        listing = Listing(workflow_name, self._backend, load=self._load, ask=self._wait_for)
        return readable(partial(self._listed, listing), filter(looks_whole, records))

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[CheckpointID]:
        """Return the ids of the checkpoints of a chain, oldest first."""
        return await self._run(
            f"The ids of chain {workflow_name!r} were not read from", self._backend.ids, workflow_name
        )

    async def delete(self, checkpoint_id: CheckpointID) -> bool:
        """Forget a checkpoint together with what only it needs, and tell whether there was one."""
        checkpoint_id = id_of(checkpoint_id)
        return await self._run(f"Checkpoint {checkpoint_id!r} was not deleted from", self._delete, checkpoint_id)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        """Return the newest checkpoint of a chain, if there is one.

        Raises:
            WorkflowCheckpointException: It cannot be read, as with `load`.
        """
        return await self._run(f"The latest of chain {workflow_name!r} was not read from", self._latest, workflow_name)

    # ------------------------------------------------------------------------------------------------ capabilities

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
        require_limit(limit)
        if workflow_name is not None:
            return readable(to_info, await self._heads(workflow_name, run_id=run_id, before=before, limit=limit))
        infos: list[CheckpointInfo] = []
        for name in await self.list_workflow_names():
            infos.extend(readable(to_info, await self._heads(name)))
        return select_infos(infos, run_id=run_id, before=before, limit=limit)

    async def list_workflow_names(self, prefix: str = "") -> list[str]:
        """List the chains that there are, sorted; only those whose names begin with `prefix`."""
        return await self._run("The chains were not read from", self._backend.chains, prefix)

    async def save_if_head(self, checkpoint: WorkflowCheckpoint, expected_seq: int) -> CheckpointID:
        """Keep a checkpoint only if the newest one of its chain has the expected sequence number (0: no chain yet).

        Raises:
            WorkflowBusyError: It has another one; nothing was saved.
            WorkflowCheckpointException: As with `save`.
        """
        return await self._save(checkpoint, expected_seq)

    async def prune(self, *, workflow_name: str, keep: int) -> int:
        """Remove all but the `keep` newest checkpoints of a chain together with what only they need.

        Returns:
            How many were removed.

        Raises:
            ValueError: `keep` is less than 1.
        """
        require_keep(keep)
        return await self._run(f"Chain {workflow_name!r} was not pruned in", self._prune, workflow_name, keep)

    async def delete_chain(self, workflow_name: str) -> int:
        """Remove all checkpoints of a chain, and return how many were removed."""
        delete = self._backend.delete_chain
        return await self._run(f"Chain {workflow_name!r} was not deleted from", delete, workflow_name)

    def close(self) -> None:
        """Let go of files and connections once what was begun is done. The storage opens them again when it is used."""
        self._wait_for("Nothing was closed of", self._backend.close)
        self._worker.close()

    # ------------------------------------------------------------------------------------------------------ saving

    async def _save(self, checkpoint: WorkflowCheckpoint, expected_seq: int | None) -> CheckpointID:
        given: object = checkpoint
        if not isinstance(given, WorkflowCheckpoint):
            message = f"A {type(given).__name__} was given to save; expected a WorkflowCheckpoint."
            raise TypeError(message)
        try:
            checkpoint.messages, checkpoint.metadata  # noqa: B018 - one from a list is read now, not under the lock
            for attempt in range(1, _ATTEMPTS + 1):
                memory = self._memories.get(checkpoint.workflow_name)
                if memory is None or memory.spoilt:
                    memory = await self._begin(checkpoint.workflow_name)
                try:
                    handed_over = self._cut_and_put(memory, checkpoint, expected_seq)
                    if handed_over is not None:
                        await handed_over
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
            raise self._explained(failure, error) from error
        return checkpoint.checkpoint_id

    async def _begin(self, chain: str) -> ChainMemory:
        memory = ChainMemory(await self._worker.hand_over(self._backend.generation, chain))
        with self._lock:
            self._memories[chain] = memory
            while len(self._memories) > _MOST_CHAINS:
                self._memories.popitem(last=False)
        return memory

    def _cut_and_put(
        self, memory: ChainMemory, checkpoint: WorkflowCheckpoint, expected_seq: int | None
    ) -> asyncio.Future[None] | None:
        """Cut and put in one go: the next one is cut on the understanding that this one is kept first.

        To hand a small write to a thread takes as long as to do it. So it is done here, where the backend is local:
        until one turns out to be slow, which sends the next ones to the thread.

        Returns:
            What to wait for; `None` if it is done.
        """
        with self._lock:
            try:
                record, parts = to_record(checkpoint, memory)
            except BaseException:
                memory.spoilt = True  # it takes parts for kept that will not be
                raise
            if checkpoint.workflow_name in self._memories:
                self._memories.move_to_end(checkpoint.workflow_name)
            put = partial(self._put, memory, record, parts, expected_seq)
            if self._away > 0:
                self._away -= 1
            elif self._is_quick and len(record.content) + sum(map(len, parts.values())) <= _SMALL:
                began = time.perf_counter()
                try:
                    if self._worker.run_here(put, patient=False):
                        return None
                except BlockingIOError:
                    pass  # somebody else is writing: the thread waits for that
                finally:
                    if time.perf_counter() - began > _SLOW_S:
                        self._away = _AWAY
            return self._worker.hand_over(put)

    def _put(
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
            self._backend.put(record, parts, generation=generation, expected_seq=expected_seq, patient=patient)
        except BlockingIOError:
            if patient:
                memory.spoilt = True
            raise
        except BaseException:
            memory.spoilt = True
            raise
        if self._keep_last is not None:
            self._trim(record.workflow_name, self._keep_last)

    def _trim(self, chain: str, keep: int) -> None:
        try:
            old = self._backend.ids(chain)[:-keep]
            enough = max(keep, _SWEEP_EVERY)
            # The first time at once: programs that save a few checkpoints and end would never sweep.
            unswept = self._unswept.get(chain, enough) + len(old)
            sweep = unswept >= enough
            if old:
                self._backend.delete(chain, old, sweep=sweep)
                self._unswept[chain] = 0 if sweep else unswept
        except Exception as error:  # noqa: BLE001 - the checkpoint is safe; what is too much is removed another time
            _log.warning("Old checkpoints of chain %r were not removed from %r: %s", chain, self, error)

    # ----------------------------------------------------------------------------------------------------- reading

    def _load(self, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
        found = self._found(partial(self._backend.get, checkpoint_id))
        if found is None:
            raise CheckpointNotFoundError(checkpoint_id)
        return found

    def _latest(self, workflow_name: str) -> WorkflowCheckpoint | None:
        return self._found(partial(self._backend.latest, workflow_name))

    def _found(self, look: Callable[[], CheckpointRecord | None]) -> WorkflowCheckpoint | None:
        record = look()
        if record is None:
            return None
        try:
            return self._whole(record)
        except WorkflowCheckpointException:
            # Perhaps others removed it, and its parts with it, between the two readings.
            before, record = record, look()
            if record == before:
                raise
        return None if record is None else self._whole(record)

    def _whole(self, record: CheckpointRecord) -> WorkflowCheckpoint:
        return to_checkpoint(record, partial(self._backend.parts, record.workflow_name))

    def _listed(self, listing: Listing, record: CheckpointRecord) -> WorkflowCheckpoint:
        return listing.checkpoint(record)

    async def _heads(self, workflow_name: str, **limits: Any) -> list[CheckpointRecord]:
        read = partial(self._backend.heads, workflow_name, **limits)
        return await self._run(f"Chain {workflow_name!r} was not listed from", read)

    # ---------------------------------------------------------------------------------------------------- deleting

    def _delete(self, checkpoint_id: CheckpointID) -> bool:
        record = self._backend.get(checkpoint_id)
        return record is not None and self._backend.delete(record.workflow_name, [checkpoint_id], sweep=True) > 0

    def _prune(self, workflow_name: str, keep: int) -> int:
        old = self._backend.ids(workflow_name)[:-keep]
        return self._backend.delete(workflow_name, old, sweep=True) if old else 0

    # ------------------------------------------------------------------------------------------------------ errors

    async def _run(self, failure: str, function: Callable[..., T], *args: Any) -> T:
        try:
            return await self._worker.hand_over(function, *args)
        except AgentFrameworkException:
            raise
        except Exception as error:
            raise self._explained(failure, error) from error

    def _wait_for(self, failure: str, function: Callable[..., T], *args: Any) -> T:
        try:
            return self._worker.submit(function, *args).result()
        except AgentFrameworkException:
            raise
        except Exception as error:
            raise self._explained(failure, error) from error

    def _explained(self, failure: str, error: Exception) -> WorkflowCheckpointException:
        """The error that says what was not done, and where; those of the library say it already."""
        if isinstance(error, StalePartsError):
            reason = "others removed checkpoints of the chain again and again. Try again"
        else:
            cause = f"{type(error).__name__}: {error}".rstrip(".")
            reason = f"{cause}. What was saved before is as it was; mend the cause and try again"
        return WorkflowCheckpointException(f"{failure} {self!r}: {reason}.", error)


_STORAGES: Final[weakref.WeakSet[PartedStorage]] = weakref.WeakSet()


#: What the forking thread has stopped.
_FORKING: Final = threading.local()
#: How long a fork waits for what a storage is doing, in seconds.
_LONGEST_WAIT_S: Final = 2.0


def _stop_for_fork() -> None:
    # A child finds files half followed otherwise, and in a transaction of SQLite one that it waits for in vain.
    workers = [storage._worker for storage in list(_STORAGES)]  # noqa: SLF001 - of this module
    _FORKING.stopped = [worker for worker in workers if worker.hold(_LONGEST_WAIT_S)]


def _go_on_in_parent() -> None:
    for worker in _FORKING.stopped:
        worker.go_on()
    _FORKING.stopped = []


def _begin_anew_in_child() -> None:
    _FORKING.stopped = []
    for storage in _STORAGES:
        storage._begin_anew()  # noqa: SLF001 - of this module; its lock may be held by a thread that is not here


if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=_stop_for_fork, after_in_parent=_go_on_in_parent, after_in_child=_begin_anew_in_child)
