"""How the shared state of runs changed, as data frames."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from typing import TYPE_CHECKING, Any

from agentbench._secrets import is_secret_name
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.difference.comparison import Comparison
from agentbench.checkpoints.metadata import RUN_ID, WRITERS
from agentbench.notebook.escaping import MASK
from agentbench.notebook.frame_columns import Column, build_frame
from agentbench.notebook.frame_sources import Chosen, Run, Since, read_checkpoints, read_runs
from agentbench.notebook.redaction import mask_secrets
from agentbench.workflows.executors.state import ABSENT

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Change", "StateAfter", "flatten_state", "state_frame", "states_of"]

_NOTHING: Any = object()


@dataclass(frozen=True)
class Change:
    """One key that got another value, or none.

    Attributes:
        key: With dots where mappings lie in mappings.
        value: After; `None` when it was deleted.
        old: Before; `None` when it is new.
        op: `set` or `del`.
        executor: Its writer; `None` where several executors ran and no event names the one.
    """

    key: str
    value: object
    old: object
    op: str
    executor: str | None


@dataclass(frozen=True)
class StateAfter:
    """State after a superstep, and what changed in it; `checkpoint_id` is `None` where none was saved."""

    superstep: int
    at: str | int | None
    run_id: str | None
    state: Mapping[str, object]
    changes: Sequence[Change]
    checkpoint_id: str | None = None


def state_frame(
    source: Any,
    *,
    wide: bool = False,
    internal: bool = False,
    workflow_name: str | None = None,
    run_id: str | None = None,
    since: Since | None = None,
    limit: int | None = None,
) -> "pd.DataFrame":
    """Tabulate shared state: what changed, or with `wide` the whole of it after each superstep.

    With `limit`, only as many checkpoints are opened as that takes. Checkpoints that cannot be read are left out, with
    one warning; their changes appear at the next one that can be read, without an executor.

    Args:
        source: A storage, a run, an observed result, or a list of those.
        wide: One row per checkpoint and one column per key, instead of one row per change.
        internal: Take in the keys that begin with `_`: the engine's own, and what executors saved of themselves.
        workflow_name: Only this chain.
        run_id: Only what this run wrote.
        since: Only from this superstep (a number) or this time (a datetime, ISO 8601 text) on.
        limit: At most so many rows, the last ones.

    Shapes:
        Keys are dotted where mappings lie in mappings. Secrets are masked.
        Changes: index (`superstep` int64, `key` string); columns `value`, `old` object, `op` category (`set`, `del`),
        `executor` category, NA where several ran and no event names the one, `checkpoint_id` string, NA where none
        was saved, `run_id` category.
        Wide: index `superstep` int64; `run_id` category, NA where no run wrote the checkpoint, as with a fork; a column
        per key with the dtype that pandas finds best. A key that is called `run_id` is the column `state.run_id`.

    Raises:
        TypeError: No frame can be made from the source.
        ValueError: `limit` is negative, or `since` is a text that is no time.

    Example:
        state_frame(storage, wide=True)["score"].max()
    """
    chosen = Chosen(workflow_name, run_id, since, limit)
    history = _History(source, chosen, internal=internal)
    if wide:
        entries = chosen.gather(history.newest_first(), lambda entry: [entry])
        history.warn_about_problems()
        return _wide(entries, chosen)
    rows = chosen.gather(history.newest_first(), lambda entry: [(entry, change) for change in entry.changes])
    history.warn_about_problems()
    return _narrow(rows, chosen)


def flatten_state(state: Mapping[str, Any], *, internal: bool = False) -> dict[str, object]:
    """Return state as one level of dotted keys; empty mappings and mappings with keys other than text stay values."""
    flat: dict[str, object] = {}
    for key, value in state.items():
        if internal or not key.startswith("_"):
            _flatten(key, value, flat)
    return flat


def _flatten(key: str, value: Any, flat: dict[str, object]) -> None:
    if type(value) is dict and value and all(type(name) is str for name in value):
        for name, item in value.items():
            _flatten(f"{key}.{name}", item, flat)
    else:
        flat[key] = value


# ---- states -----------------------------------------------------------------------------------------------------


class _History:
    """The state after each superstep, read from the sources.

    Args:
        source: As for `state_frame`.
        chosen: Which supersteps are wanted; of the others, only the state before a wanted one is read.
        internal: As for `state_frame`.
    """

    def __init__(self, source: Any, chosen: Chosen, *, internal: bool) -> None:
        self._chosen = chosen
        self._internal = internal
        self._runs = read_runs(source, chosen)
        self._writers = {run.run_id: _writers(run) for run in self._runs}
        observed = any(known for known in self._writers.values())
        self._read = read_checkpoints(source, chosen, content_wanted=not observed)
        self._flat: dict[str, dict[str, object]] = {}
        self.warn_about_problems = self._read.warn_about_problems

    def newest_first(self) -> Iterator[StateAfter]:
        """The wanted states, the last one first."""
        for run in reversed(self._runs):
            if run.storage is None:
                entries = states_of(run, internal=self._internal)
                yield from (m for m in reversed(entries) if self._chosen.includes(m.superstep, m.at))
        for checkpoint in self._read.newest_first():
            if self._chosen.includes(checkpoint.iteration_count, checkpoint.timestamp):
                after = self._state(checkpoint)
                if after is not None:
                    yield self._entry(checkpoint, after)

    def _entry(self, checkpoint: WorkflowCheckpoint, after: Mapping[str, object]) -> StateAfter:
        before, is_next = self._before(checkpoint)
        run_id, ran = checkpoint.metadata.get(RUN_ID), list(checkpoint.metadata.get(WRITERS) or [])
        only = ran[0] if len(ran) == 1 and is_next else None
        superstep = checkpoint.iteration_count
        changes = _changes(before, after, partial(_writer, self._writers.get(run_id, {}), superstep, only=only))
        return StateAfter(superstep, checkpoint.timestamp, run_id, after, changes, checkpoint.checkpoint_id)

    def _before(self, checkpoint: WorkflowCheckpoint) -> tuple[Mapping[str, object], bool]:
        """The state that a checkpoint went on from, as far as it can be read; and whether that was just before."""
        is_next = True
        passed = {checkpoint.checkpoint_id}  # a foreign storage may hold a ring
        at = self._read.find(checkpoint.previous_checkpoint_id)
        while at is not None and at.checkpoint_id not in passed:
            state = self._state(at)
            if state is not None:
                return state, is_next
            is_next = False
            passed.add(at.checkpoint_id)
            at = self._read.find(at.previous_checkpoint_id)
        return {}, is_next

    def _state(self, checkpoint: WorkflowCheckpoint) -> dict[str, object] | None:
        if checkpoint.checkpoint_id not in self._flat:
            if not self._read.can_read(checkpoint):
                return None
            self._flat[checkpoint.checkpoint_id] = flatten_state(checkpoint.state, internal=self._internal)
        return self._flat[checkpoint.checkpoint_id]


def states_of(run: Run, *, internal: bool) -> list[StateAfter]:
    """Return the states of an observed run, from its `state_updated` events."""
    entries = []
    state: dict[str, Any] = {}
    known = _writers(run)
    for event in run.events:
        if event.type != "state_updated" or not isinstance(event.data, Mapping):
            continue
        superstep = event.superstep or 0
        before = flatten_state(state, internal=internal)
        for key, change in event.data.items():
            new = change.get("new")
            if new is ABSENT:
                state.pop(key, None)
            else:
                state[key] = new
        after = flatten_state(state, internal=internal)
        changes = _changes(before, after, partial(_writer, known, superstep))
        entries.append(StateAfter(superstep, event.time_ns, run.run_id, after, changes))
    return entries


def _writers(run: Run) -> dict[tuple[int, str], str]:
    """The writers by superstep and key, from `state_updated` events."""
    known: dict[tuple[int, str], str] = {}
    for event in run.events:
        if event.type == "state_updated" and isinstance(event.data, Mapping):
            for key, change in event.data.items():
                names = change.get("writers") if isinstance(change, Mapping) else None
                if names:
                    known[(event.superstep or 0, key)] = ", ".join(map(str, names))
    return known


def _writer(known: Mapping[tuple[int, str], str], superstep: int, key: str, *, only: str | None = None) -> str | None:
    return known.get((superstep, key.partition(".")[0]), only)


def _changes(
    before: Mapping[str, object], after: Mapping[str, object], who: Callable[[str], str | None]
) -> list[Change]:
    same = Comparison().same
    changes = [
        Change(key, value, None if (old := before.get(key, _NOTHING)) is _NOTHING else old, "set", who(key))
        for key, value in after.items()
        if not same(before.get(key, _NOTHING), value)
    ]
    return changes + [Change(key, None, old, "del", who(key)) for key, old in before.items() if key not in after]


# ---- frames -----------------------------------------------------------------------------------------------------


def _narrow(rows: Sequence[tuple[StateAfter, Change]], chosen: Chosen) -> "pd.DataFrame":
    return build_frame(
        "state",
        {
            "superstep": ("int64", [entry.superstep for entry, _ in rows]),
            "key": ("string", [change.key for _, change in rows]),
            "value": ("object", [_masked_value(change.key, change.value) for _, change in rows]),
            "old": ("object", [_masked_value(change.key, change.old) for _, change in rows]),
            "op": ("category", [change.op for _, change in rows]),
            "executor": ("category", [change.executor for _, change in rows]),
            "checkpoint_id": ("string", [entry.checkpoint_id for entry, _ in rows]),
            "run_id": ("category", [entry.run_id for entry, _ in rows]),
        },
        index=["superstep", "key"],
        chosen=chosen,
        run_ids=(entry.run_id for entry, _ in rows),
    )


def _wide(rows: Sequence[StateAfter], chosen: Chosen) -> "pd.DataFrame":
    keys = dict.fromkeys(key for entry in rows for key in entry.state)
    columns: dict[str, Column] = {
        "superstep": ("int64", [entry.superstep for entry in rows]),
        _RUN: ("category", [entry.run_id for entry in rows]),
    }
    for key in keys:
        columns[f"{_KEY}{key}"] = ("object", [_masked_value(key, entry.state.get(key)) for entry in rows])
    frame = build_frame("state", columns, index=["superstep"], chosen=chosen, run_ids=(entry.run_id for entry in rows))
    attrs, run_ids = frame.attrs, frame.pop(_RUN)
    frame = frame.rename(columns=_column_of).convert_dtypes()
    frame.insert(0, "run_id", run_ids)
    frame.attrs = attrs
    return frame


# Keys of the state may be named like the other columns.
_KEY = "state:"
_RUN = "run_id"


def _column_of(name: str) -> str:
    key = name.removeprefix(_KEY)
    return f"state.{key}" if key == _RUN else key


def _masked_value(key: str, value: object) -> object:
    return MASK if value is not None and _names_secret(key) else mask_secrets(value)


@lru_cache(maxsize=2048)
def _names_secret(key: str) -> bool:
    return any(map(is_secret_name, key.split(".")))
