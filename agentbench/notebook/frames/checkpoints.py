"""Checkpoints and their contents as data frames."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from itertools import chain
from typing import TYPE_CHECKING, Any

from agentbench._secrets import is_secret_name, mask_secrets
from agentbench._text.escape import MASK
from agentbench._text.redact import line_preview
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.metadata import INPUT, RUN_ID
from agentbench.notebook.frames.columns import Column, build_frame
from agentbench.notebook.history.sources import Chosen, Name, Since, read_checkpoints, read_infos
from agentbench.notebook.history.state import StateAfter, StateBySuperstep
from agentbench.workflows.run.execution import ABSENT
from agentbench.workflows.run.first_input import read_input

if TYPE_CHECKING:
    import pandas as pd


def checkpoints_frame(
    source: Any,
    *,
    workflow_name: Name = None,
    run_id: Name = None,
    since: Since = None,
    limit: int | None = None,
    full: bool = False,
) -> "pd.DataFrame":
    """Tabulate checkpoints, one row each, in storage order. Contents are not read.

    For a run, the row `input` comes before its first checkpoint, which stores the input: a position to fork from.

    A storage whose client belongs to a running event loop (as in a notebook) cannot be read here. Await its list:
    `checkpoints_frame(await storage.list_checkpoints(workflow_name=...))`. The storages of agentbench can be read.

    Args:
        source: A storage, a run, a result, or a list of those.
        workflow_name: Only this chain.
        run_id: Only checkpoints of this run.
        since: Only from this superstep (a number) or this time (a datetime, ISO 8601 text) on.
        limit: Maximum number of rows, the last ones.
        full: Include empty columns, and whole ids instead of their first 8 characters.

    Shapes:
        Index `checkpoint_id` string; columns `parent_id` string, `run_id` category, `superstep` int64, `created`
        datetime64[ns, UTC], `source` category, `n_messages`, `n_requests`, `size_bytes` int64, `graph_hash` category,
        `seq`, `depth` int64, `workflow_name` category, `input` string. `depth` is the number of ancestors,
        `workflow_name` is the chain, `input` a preview of at most 120 characters, secrets masked, in the row of
        the input alone. No checkpoints: no rows, same columns.

    Units: `size_bytes` is the number of bytes newly written for the checkpoint, 0 if nothing is written.

    Example:
        checkpoints_frame(storage, workflow_name="travel", limit=20)
    """
    chosen = Chosen(workflow_name, run_id, since, limit)
    read = read_infos(source, chosen)
    depth = depths(list(read.by_id.values()))
    rows = [row for i in read.rows for row in _with_input(i, is_run=i.run_id in read.run_ids)]
    infos = chosen.last([i for i in rows if chosen.includes(i.iteration, i.timestamp)])
    return build_frame(
        "checkpoints",
        {
            "checkpoint_id": ("string", [i.checkpoint_id for i in infos]),
            "parent_id": ("string", [i.previous_checkpoint_id for i in infos]),
            "run_id": ("category", [i.run_id for i in infos]),
            "superstep": ("int64", [i.iteration for i in infos]),
            "created": ("time", [i.timestamp for i in infos]),
            "source": ("category", [i.source for i in infos]),
            "n_messages": ("int64", [i.n_messages for i in infos]),
            "n_requests": ("int64", [i.n_requests for i in infos]),
            "size_bytes": ("int64", [i.size_bytes for i in infos]),
            "graph_hash": ("category", [i.graph_signature_hash for i in infos]),
            "seq": ("int64", [i.seq for i in infos]),
            "depth": ("int64", [depth.get(i.checkpoint_id, 0) for i in infos]),
            "workflow_name": ("category", [i.workflow_name for i in infos]),
            "input": ("string", [_input_text(i) for i in infos]),
        },
        index=["checkpoint_id"],
        chosen=chosen,
        full=full,
    )


def _with_input(info: CheckpointInfo, *, is_run: bool) -> list[CheckpointInfo]:
    """Return the rows of a checkpoint of a run: the first one stores the input, which has a row of its own."""
    if not is_run or INPUT not in info.metadata or info.iteration < 0 or info.forked_from is not None:
        return [info]
    row = replace(info, checkpoint_id=INPUT, iteration=-1, source=INPUT, seq=0, writers=(), size_bytes=0)
    return [replace(row, n_messages=1, n_requests=0, previous_checkpoint_id=None), info]


def _input_text(info: CheckpointInfo) -> str | None:
    message = read_input(info.metadata) if info.iteration < 0 else ABSENT
    return None if message is ABSENT else line_preview(message)


def lineage_frame(
    source: Any,
    *,
    workflow_name: Name = None,
    run_id: Name = None,
    since: Since = None,
    limit: int | None = None,
    full: bool = False,
) -> "pd.DataFrame":
    """Tabulate the parents of checkpoints, one row per link to a parent, in storage order.

    Args:
        source: A storage, a run, a result, or a list of those.
        workflow_name: Only this chain.
        run_id: Only checkpoints of this run.
        since: Only from this superstep (a number) or this time (a datetime, ISO 8601 text) on.
        limit: Maximum number of rows, the last ones.
        full: Include empty columns, and whole ids instead of their first 8 characters.

    Shapes:
        Columns `parent_id`, `checkpoint_id` string, `run_id` category, `is_fork` bool. A link is a fork if it was made
        by `fork()` or an edit, or if the parent already has a child. Checkpoints without a parent have no row.

    Example:
        lineage_frame(run).query("is_fork")
    """
    chosen = Chosen(workflow_name, run_id, since, limit)
    read = read_infos(source, chosen)
    branches = forks(list(read.by_id.values()))
    links = [i for i in read.rows if i.previous_checkpoint_id is not None]
    infos = chosen.last([i for i in links if chosen.includes(i.iteration, i.timestamp)])
    return build_frame(
        "lineage",
        {
            "parent_id": ("string", [i.previous_checkpoint_id for i in infos]),
            "checkpoint_id": ("string", [i.checkpoint_id for i in infos]),
            "run_id": ("category", [i.run_id for i in infos]),
            "is_fork": ("bool", [i.checkpoint_id in branches for i in infos]),
        },
        chosen=chosen,
        full=full,
    )


def messages_frame(
    source: Any,
    *,
    workflow_name: Name = None,
    run_id: Name = None,
    since: Since = None,
    limit: int | None = None,
    full: bool = False,
) -> "pd.DataFrame":
    """Tabulate the messages queued in checkpoints, one row each, in storage order.

    With `limit`, only as many checkpoints are read as needed. Unreadable checkpoints are omitted, with one
    warning.

    Args:
        source: A storage, a run that saves checkpoints, or a list of those.
        workflow_name: Only this chain.
        run_id: Only checkpoints of this run.
        since: Only from this superstep (a number) or this time (a datetime, ISO 8601 text) on.
        limit: Maximum number of rows, the last ones.
        full: Include empty columns, and whole ids instead of their first 8 characters.

    Shapes:
        Index (`superstep`, `position`), where `position` is the message's index in its checkpoint; columns `source`,
        `target` string (`target` is NA if the edges decide), `type` category (`standard`, `response`), `size` int64,
        `preview` string of at most 120 characters, secrets masked, `trace_id`, `checkpoint_id` string, `run_id`
        category.

    Units: `size` is the length of the message's text form, in characters (bytes for bytes).

    Raises:
        WorkflowCheckpointException: No checkpoint of the source can be read.

    Example:
        messages_frame(run, since=2)[["source", "target", "preview"]]
    """
    chosen = Chosen(workflow_name, run_id, since, limit)
    read = read_checkpoints(source, chosen, content_wanted=True)

    def waiting(checkpoint: WorkflowCheckpoint) -> list[tuple[WorkflowCheckpoint, int, Any]]:
        wanted = chosen.includes(checkpoint.iteration_count, checkpoint.timestamp) and read.can_read(checkpoint)
        sent = chain.from_iterable(checkpoint.messages.values()) if wanted else ()
        return [(checkpoint, place, message) for place, message in enumerate(sent)]

    rows = chosen.gather(reversed(read.rows), waiting)
    read.warn_about_problems()
    return build_frame(
        "messages",
        {
            "superstep": ("int64", [checkpoint.iteration_count for checkpoint, _, _ in rows]),
            "position": ("int64", [place for _, place, _ in rows]),
            "source": ("string", [m.source_id for _, _, m in rows]),
            "target": ("string", [m.target_id for _, _, m in rows]),
            "type": ("category", [m.type.value for _, _, m in rows]),
            "size": ("int64", [_size(m.data) for _, _, m in rows]),
            "preview": ("string", [line_preview(m.data) for _, _, m in rows]),
            "trace_id": ("string", [_trace_id(m.trace_context) for _, _, m in rows]),
            "checkpoint_id": ("string", [checkpoint.checkpoint_id for checkpoint, _, _ in rows]),
            "run_id": ("category", [checkpoint.metadata.get(RUN_ID) for checkpoint, _, _ in rows]),
        },
        index=["superstep", "position"],
        chosen=chosen,
        full=full,
    )


def state_frame(  # noqa: PLR0913 - published signature
    source: Any,
    *,
    wide: bool = False,
    internal: bool = False,
    workflow_name: Name = None,
    run_id: Name = None,
    since: Since = None,
    limit: int | None = None,
    full: bool = False,
) -> "pd.DataFrame":
    """Tabulate changes of the shared state, or with `wide` the whole state after each superstep.

    With `limit`, only as many checkpoints are read as needed. Unreadable checkpoints are omitted, with
    one warning; their changes appear at the next readable one, without an executor.

    Args:
        source: A storage, a run, an observed result, or a list of those.
        wide: One row per checkpoint and one column per key, instead of one row per change.
        internal: Include keys that begin with `_`: those of the engine and the saved states of executors.
        workflow_name: Only this chain.
        run_id: Only checkpoints of this run.
        since: Only from this superstep (a number) or this time (a datetime, ISO 8601 text) on.
        limit: Maximum number of rows, the last ones.
        full: Include empty columns, and whole ids instead of their first 8 characters.

    Shapes:
        Keys of nested mappings are dotted. Secrets are masked.
        Changes: index (`superstep` int64, `key` string); columns `value`, `old` object, `op` category (`set`, `del`),
        `executor` category, NA if several ran and no event names the writer, `checkpoint_id` string, NA if none
        was saved, `run_id` category.
        Wide: index `superstep` int64; `run_id` category, NA if no run wrote the checkpoint, as for a fork; a column
        per key with the dtype that pandas infers; `state.run_id` for a key named `run_id`.

    Example:
        state_frame(storage, wide=True)["score"].max()
    """
    chosen = Chosen(workflow_name, run_id, since, limit)
    history = StateBySuperstep(source, chosen, internal=internal)
    if wide:
        entries = chosen.gather(history.newest_first(), lambda entry: [entry])
        history.warn_about_problems()
        return _wide(entries, chosen, full=full)
    rows = chosen.gather(history.newest_first(), lambda entry: [(entry, change) for change in entry.changes])
    history.warn_about_problems()
    return build_frame(
        "state",
        {
            "superstep": ("int64", [entry.superstep for entry, _ in rows]),
            "key": ("string", [change.key for _, change in rows]),
            "value": ("object", [_mask_value(change.key, change.value) for _, change in rows]),
            "old": ("object", [_mask_value(change.key, change.old) for _, change in rows]),
            "op": ("category", [change.op for _, change in rows]),
            "executor": ("category", [change.executor for _, change in rows]),
            "checkpoint_id": ("string", [entry.checkpoint_id for entry, _ in rows]),
            "run_id": ("category", [entry.run_id for entry, _ in rows]),
        },
        index=["superstep", "key"],
        chosen=chosen,
        full=full,
    )


def _wide(rows: Sequence[StateAfter], chosen: Chosen, *, full: bool) -> "pd.DataFrame":
    columns: dict[str, Column] = {
        "superstep": ("int64", [entry.superstep for entry in rows]),
        "run_id": ("category", [entry.run_id for entry in rows]),
    }
    names = {key: f"state.{key}" if key in columns else key for entry in rows for key in entry.state}
    for key, name in names.items():
        columns[name] = ("object", [_mask_value(key, entry.state.get(key)) for entry in rows])
    frame = build_frame("state", columns, index=["superstep"], chosen=chosen, full=full)
    return frame.convert_dtypes()


def _mask_value(key: str, value: object) -> object:
    return MASK if value is not None and _names_secret(key) else mask_secrets(value)


@lru_cache(maxsize=2048)
def _names_secret(key: str) -> bool:
    return any(map(is_secret_name, key.split(".")))


def depths(infos: Sequence[CheckpointInfo]) -> dict[str | None, int]:
    """Return the number of ancestors among these checkpoints, by checkpoint id."""
    parents = {info.checkpoint_id: info.previous_checkpoint_id for info in infos}
    found: dict[str | None, int] = {}
    for start in parents:
        path: list[str] = []
        at: str | None = start
        while at in parents and at not in found:  # stops at a cycle in a damaged storage
            found[at] = -1
            path.append(at)
            at = parents[at]
        depth = found.get(at, -1)
        for each in reversed(path):
            depth += 1
            found[each] = depth
    return found


def forks(infos: Sequence[CheckpointInfo]) -> set[str]:
    """Return the ids of the checkpoints that branch off."""
    parents: set[str] = set()
    branches: set[str] = set()
    for info in infos:
        parent = info.previous_checkpoint_id
        if parent is None:
            continue
        made = info.forked_from is not None and info.source in ("fork", "update")
        if made or parent in parents:
            branches.add(info.checkpoint_id)
        parents.add(parent)
    return branches


def _size(data: object) -> int:
    if isinstance(data, (str, bytes, bytearray)):
        return len(data)
    try:
        return len(repr(data))
    except Exception:  # noqa: BLE001 - `repr` is user code, and a table must not fail because of what it counts
        return 0


def _trace_id(context: dict[str, str] | None) -> str | None:
    """Return the trace id of a W3C `traceparent`."""
    parts = (context or {}).get("traceparent", "").split("-")
    return parts[1] if len(parts) == 4 else None
