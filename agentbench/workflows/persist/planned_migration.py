"""Migrations of checkpoints to another graph: a preview first, then one new checkpoint, or a copy of a whole chain."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace
from functools import cached_property
from typing import Any

from agentbench._bridge import blocking
from agentbench._clock import iso_utc, runtime_defaults
from agentbench._display import Displayable, call_view, drawn_by
from agentbench.checkpoints import metadata as keys
from agentbench.checkpoints.access import (
    checkpoint_error,
    head_of,
    list_infos,
    load_checkpoint,
    save_checkpoint,
    save_new_chain,
)
from agentbench.checkpoints.checkpoint import CheckpointID, WorkflowCheckpoint
from agentbench.checkpoints.diff import CheckpointDiff, diff_checkpoints
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import MigrationError, WorkflowBusyError
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.persist.executor_content import Changes, Content
from agentbench.workflows.persist.migration import copy_for
from agentbench.workflows.persist.moving import Moved, known_names, move


@drawn_by("agentbench.notebook.cards.migration:migration_bundle")
class Migration(Displayable):
    """The preview of a migration, created by `workflow.migrate`. Nothing is written before `apply()`.

    Its text has a line for each part that differs, with secrets masked; a cell displays a table.

    Attributes:
        before: The checkpoint of the old graph.
        after: The checkpoint of the new graph, as `apply()` saves it.
        unchanged: The executors that both graphs have.
        renamed: The new names of executors and fields, by old name.
        dropped: What is lost, in words: executors, fields, requests.
        new: The executors that the old graph did not have.
        applied: The saved checkpoint, once `apply()` has saved it.

    Example:
        >>> migration = await workflow.migrate(checkpoint, renamed={"draft": "writer"})
        >>> print(migration)
        >>> info = await migration.apply()
        >>> result = await workflow.run(checkpoint_id=info)
    """

    def __init__(
        self,
        storage: CheckpointStorage,
        head_seq: int,
        before: WorkflowCheckpoint,
        moved: Moved,
        after: WorkflowCheckpoint,
        errors: Callable[[], AbstractContextManager[None]],
    ) -> None:
        self._storage, self._head_seq, self._named, self._errors = storage, head_seq, moved.before, errors
        self._is_applied = False
        self.before, self.after = before, after
        self.unchanged, self.renamed, self.dropped, self.new = moved.unchanged, moved.renamed, moved.dropped, moved.new
        self.applied: CheckpointInfo | None = None

    @cached_property
    def diff(self) -> CheckpointDiff:
        """The differences that functions and dropping make; renaming alone is no difference."""
        named = replace(self.after, checkpoint_id=self.before.checkpoint_id, timestamp=self.before.timestamp)
        named.messages, named.state = self._named.messages, self._named.state
        named.pending_request_info_events = self._named.requests
        return diff_checkpoints(named, self.after)

    async def apply(self) -> CheckpointInfo:
        """Save the checkpoint of the new graph, whose parent is the old one, and return its info.

        Raises:
            WorkflowBusyError: Another writer has saved to the chain since the preview; nothing was saved.
            MigrationError: It was applied before.
            WorkflowCheckpointException: The storage cannot save it; nothing was saved.
        """
        if self._is_applied:
            name = self.before.checkpoint_id
            msg = f"The migration of {name!r} was applied already. To migrate again, call workflow.migrate again."
            raise MigrationError(msg, checkpoint_id=name)
        self._is_applied = True
        try:
            with self._errors():
                await save_checkpoint(self._storage, self.after, self._head_seq)
        except Exception as error:
            self._is_applied = False
            if isinstance(error, WorkflowBusyError):
                raise
            raise checkpoint_error(error, f"The migration of {self.before.checkpoint_id!r} was not saved") from error
        self.applied = CheckpointInfo.of(self.after)
        return self.applied

    apply_sync = blocking(apply)

    def __str__(self) -> str:
        text: str = call_view("agentbench._text.migration:migration_text", self)
        return text

    def __repr__(self) -> str:
        state = "applied" if self.applied else "not applied"
        counts = (
            f"unchanged={len(self.unchanged)}, renamed={self.renamed!r}, dropped={len(self.dropped)}, "
            f"new={len(self.new)}, changes={len(self.diff)}"
        )
        return f"<Migration of {self.before.checkpoint_id!r}: {counts}, {state}>"


async def plan_migration(
    storage: CheckpointStorage,
    checkpoint: WorkflowCheckpoint | CheckpointInfo | CheckpointID,
    graph: Graph,
    changes: Changes,
    errors: Callable[[], AbstractContextManager[None]] = nullcontext,
) -> Migration:
    """Return the preview of a migration within the checkpoint's chain; see `Workflow.migrate`.

    `errors` surrounds the save, and may replace its errors.
    """
    original = checkpoint
    if not isinstance(original, WorkflowCheckpoint):
        original = await load_checkpoint(storage, original)
    original.require_known_version()
    head = await head_of(storage, original.workflow_name)
    head_seq = 0 if head is None else head.seq
    moved = move(original, graph, changes)
    defaults = runtime_defaults()
    copy = copy_for(
        original,
        graph,
        _fields(moved.after),
        original.workflow_name,
        head_seq + 1,
        defaults.ids.new_id("cp"),
        iso_utc(defaults.clock.time_ns()),
    )
    return Migration(storage, head_seq, original, moved, copy, errors)


async def migrate_chain(
    storage: CheckpointStorage,
    chain: str,
    new_chain: str,
    graph: Graph,
    changes: Changes,
    adapt: Callable[[WorkflowCheckpoint], None] = lambda _: None,
) -> list[CheckpointInfo]:
    """Copy a whole chain to a new one, migrated; it becomes visible at once, or nothing is written.

    Checkpoints that are of the new graph already are copied unchanged. `adapt` is called with each copy, to replace
    what the content says about the chain.

    Raises:
        MigrationError: A checkpoint cannot be migrated, the chain is empty, or the new one exists.
    """
    if await head_of(storage, new_chain) is not None:
        msg = f"There is a chain {new_chain!r} already, so nothing was copied. Choose another name."
        raise MigrationError(msg, name=new_chain)
    infos = await list_infos(storage, workflow_name=chain)
    if not infos:
        msg = f"Chain {chain!r} has no checkpoints, so there is nothing to migrate. Expected the name of a chain."
        raise MigrationError(msg, name=chain)
    originals = [await load_checkpoint(storage, info) for info in infos]
    known = frozenset().union(*(known_names(each, graph) for each in originals))
    changes = replace(changes, ignored=known)
    is_current = [each.graph_signature_hash == graph.signature_hash for each in originals]
    copies = [
        _make_copy(original, graph, changes, is_current=current and not all(is_current))
        for original, current in zip(originals, is_current, strict=True)
    ]
    for copy in copies:
        adapt(copy)
    await save_new_chain(storage, _link_copies(new_chain, originals, copies))
    return [CheckpointInfo.of(copy) for copy in copies]


def _make_copy(original: WorkflowCheckpoint, graph: Graph, changes: Changes, *, is_current: bool) -> WorkflowCheckpoint:
    original.require_known_version()
    if is_current:
        return replace(original)
    content = _fields(move(original, graph, changes).after)
    metadata = {**original.metadata, keys.GRAPH_SIGNATURE: graph.signature}
    return replace(original, graph_signature_hash=graph.signature_hash, metadata=metadata, **content)


def _link_copies(
    chain: str, originals: Sequence[WorkflowCheckpoint], copies: list[WorkflowCheckpoint]
) -> list[WorkflowCheckpoint]:
    """Give copies their own ids and links; the number of each stays."""
    ids = {original.checkpoint_id: runtime_defaults().ids.new_id("cp") for original in originals}
    for place, copy in enumerate(copies, 1):
        original_id, parent = copy.checkpoint_id, copy.previous_checkpoint_id
        copy.workflow_name, copy.checkpoint_id = chain, ids[original_id]
        copy.previous_checkpoint_id = ids.get(parent, parent) if parent is not None else None
        seq = copy.metadata.get(keys.SEQ) or place
        copy.metadata = {**copy.metadata, keys.SEQ: seq, keys.FORKED_FROM: original_id}
    return copies


def _fields(content: Content) -> dict[str, Any]:
    return {
        "messages": content.messages,
        "state": content.state,
        "pending_request_info_events": content.requests,
    }
