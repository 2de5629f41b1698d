"""Saves the state of a run to its checkpoint storage, with the metadata of a checkpoint and the links of the chain."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench._clock import iso_utc, runtime_defaults
from agentbench._copying import isolate_or_same
from agentbench._user_code import warn_user
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.access import (
    checkpoint_error,
    checks_head,
    head_of,
    list_infos,
    save_at_head,
    save_checkpoint,
)
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.checkpoints.storage import SupportsCheckpointInfos
from agentbench.exceptions import WorkflowBusyError, WorkflowCheckpointException
from agentbench.workflows.engine.active_run import ActiveRun
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.persist.snapshot import snapshot

if TYPE_CHECKING:
    from agentbench.checkpoints.storage import CheckpointStorage


class CheckpointWriter:
    """Saves the checkpoints of one run, linked to each other.

    Several runs may write to one chain at the same time, unless one of them checks the head: they become branches, each
    linked to its own last checkpoint. If a run continues from a checkpoint, its first save is checked. A failed save is
    raised, or becomes a `warning` event (and the first one of a run also a `RuntimeWarning`), and the run continues.
    """

    def __init__(self, run: ActiveRun, storage: CheckpointStorage) -> None:
        options, settings, defaults = run.options, run.graph.settings, runtime_defaults()
        self._run = run
        self._storage = storage
        self._chain = options.chain or run.graph.name
        self._clock = options.clock or defaults.clock
        self._ids = options.ids or defaults.ids
        self._metadata: dict[str, Any] = isolate_or_same(dict(options.metadata)) if options.metadata else {}
        strict = settings.strict_checkpoints if options.strict_checkpoints is None else options.strict_checkpoints
        self._strict = strict or run.graph.driver is not None
        self._checks_head = options.check_head is not None and options.check_head is not False
        self._may_check_first = options.check_head is None and checks_head(storage)
        self._checks_first = False
        self.answers_once = False
        """Whether the run responds to a request that may be answered only once."""
        # Sequence number of the chain's newest checkpoint, as far as this run knows.
        self._head_seq: int | None = options.check_head if type(options.check_head) is int else None
        # For a checkpoint in the middle of a superstep, which the next one replaces.
        self._amid: str | None = None
        self._saving = asyncio.Lock()

    async def save(
        self,
        source: str,
        *,
        writers: Sequence[str] = (),
        began_ns: int | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> CheckpointInfo | None:
        """Save the state at this boundary, written by `writers` since `began_ns`; None if that failed."""
        log = self._run.log
        try:
            facts = self._metadata.copy()
            if metadata:
                facts.update(isolate_or_same(metadata))
            if self._run.first_metadata is not None:
                facts.update(self._run.first_metadata())
            if began_ns is not None:
                facts[keys.DURATION_S] = (self._clock.perf_ns() - began_ns) / 1e9
            checkpoint = await self._compose(source, writers, facts)
            await self._store(checkpoint)
        except Exception as error:  # noqa: BLE001 - a storage raises anything
            self._head_seq = None  # it may have been saved nevertheless
            self._report_failure(error, f"The checkpoint of superstep {self._run.run_state.superstep} was not saved")
            return None
        self._head_seq = checkpoint.metadata[keys.SEQ]
        self._run.first_metadata = None
        await self._delete_amid(None)
        info = CheckpointInfo.of(checkpoint, own_metadata=True)
        log.checkpoints.append(info)
        if log.observed:
            log.append(WorkflowEvent("checkpoint_saved", info))
        return info

    async def save_amid(self, values: Mapping[str, Any]) -> None:
        """Save an unfinished superstep: its messages, with further `values`; the next checkpoint replaces it."""
        async with self._saving:  # several deliveries may end at the same time
            run_state = self._run.run_state
            try:
                checkpoint = await self._compose("pending", (), self._metadata.copy())
                checkpoint.messages = {source: [*sent] for source, sent in run_state.delivering.items()}
                checkpoint.state = {**checkpoint.state, **values}
                checkpoint.iteration_count -= 1
                await self._store(checkpoint)
            except Exception as error:  # noqa: BLE001 - a storage raises anything
                self._report_failure(error, f"A checkpoint within superstep {run_state.superstep} was not saved")
                return
            self._head_seq = checkpoint.metadata[keys.SEQ]
            await self._delete_amid(checkpoint.checkpoint_id)

    async def _delete_amid(self, replacement: str | None) -> None:
        replaced, self._amid = self._amid, replacement
        if replaced is not None:
            await self._storage.delete(replaced)

    def _report_failure(self, error: Exception, what: str) -> None:
        if isinstance(error, WorkflowBusyError):
            raise error
        if self._strict:
            raise error if isinstance(error, WorkflowCheckpointException) else checkpoint_error(error, what) from error
        text = f"{_reason(error, what)} The run continues without it; strict_checkpoints=True makes this an error."
        log = self._run.log
        log.append(WorkflowEvent.warning(text))
        if "unsaved" not in log.warned:  # few people read the events of a run that seems to have succeeded
            log.warned |= {"unsaved"}
            warn_user(text, RuntimeWarning)

    async def load_head(self, *, is_new: bool, is_answer: bool) -> None:
        """Remember the head of the chain, unless the run `is_new`: then it is a separate branch, whoever else saves.

        A request can be answered once: if the storage outlasts the process, `is_answer` requires that no other run has
        answered after the checkpoint of this run.
        """
        checks_first = self._may_check_first and not is_new
        if self._head_seq is not None or not (self._checks_head or checks_first):
            return
        self._head_seq = await self._find_head()
        self._checks_first = checks_first
        if is_answer and _is_durable(self._storage):
            await self._require_unanswered()
            self.answers_once = True

    async def _require_unanswered(self) -> None:
        last_id = self._run.run_state.last_checkpoint_id
        latest = await self._storage.get_latest(workflow_name=self._chain)  # raises if damaged: it may answer
        if latest is None or latest.checkpoint_id == last_id:
            return
        later = {last_id} - {None}
        for info in await list_infos(self._storage, workflow_name=self._chain):
            if info.previous_checkpoint_id in later:
                later.add(info.checkpoint_id)
                if info.source == "answer":
                    raise _answered_error(last_id, info)

    async def _store(self, checkpoint: WorkflowCheckpoint) -> None:
        head_seq = checkpoint.metadata[keys.SEQ] - 1
        if self._checks_first:
            await save_at_head(self._storage, checkpoint, head_seq)
            self._checks_first = False
        else:
            await save_checkpoint(self._storage, checkpoint, head_seq if self._checks_head else None)

    async def _compose(self, source: str, writers: Sequence[str], facts: dict[str, Any]) -> WorkflowCheckpoint:
        run_state, graph = self._run.run_state, self._run.graph
        checkpoint_id, timestamp = self._ids.new_id("cp"), iso_utc(self._clock.time_ns())
        head_seq = await self._find_head() if self._head_seq is None else self._head_seq
        content = await snapshot(graph, run_state)
        facts[keys.SEQ] = head_seq + 1
        facts[keys.SOURCE] = source
        facts[keys.RUN_ID] = self._run.run_id
        facts[keys.WRITERS] = list(writers)
        facts[keys.SIZES] = {"messages": sum(map(len, content.messages.values())), "requests": len(content.requests)}
        facts[keys.GRAPH_SIGNATURE] = graph.signature
        return WorkflowCheckpoint(
            self._chain,
            graph.signature_hash,
            checkpoint_id,
            run_state.last_checkpoint_id,
            timestamp,
            content.messages,
            content.state,
            content.requests,
            content.superstep,
            facts,
        )

    async def _find_head(self) -> int:
        """Return the sequence number of the chain's newest checkpoint; 0 for an empty chain."""
        try:
            head = await head_of(self._storage, self._chain)
        except Exception as error:
            if self._checks_head or isinstance(self._storage, SupportsCheckpointInfos):
                raise
            # An unreadable checkpoint is no reason to lose this run's checkpoints too.
            count = len(await self._storage.list_checkpoint_ids(workflow_name=self._chain))
            what = f"The latest checkpoint of chain {self._chain!r} cannot be read"
            text = f"{_reason(error, what)} This run's checkpoints are numbered from the number of existing ones."
            self._run.log.append(WorkflowEvent.warning(text))
            return count
        return 0 if head is None else head.seq


def _is_durable(storage: CheckpointStorage) -> bool:
    return checks_head(storage) and not isinstance(storage, InMemoryCheckpointStorage)


def _answered_error(own: str | None, answer: CheckpointInfo) -> WorkflowBusyError:
    message = (
        f"The requests of checkpoint {own!r} were not answered, because another run has already answered them, see "
        f"{answer.checkpoint_id!r} of chain {answer.workflow_name!r}. Load the latest checkpoint to see what is open. "
        "To answer again, fork the older one, or pass options=RunOptions(check_head=False)."
    )
    return WorkflowBusyError(message)


def _reason(error: Exception, what: str) -> str:
    """Return as sentences what failed and why."""
    text = str(checkpoint_error(error, what))
    return text if text.startswith(what) else f"{what}: {text}"
