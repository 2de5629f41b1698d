"""How the shared state of runs changed, as data frames."""

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agentbench._secrets import is_secret_name
from agentbench.notebook.frames.columns import Column, build_frame
from agentbench.notebook.history.sources import Chosen, Since
from agentbench.notebook.history.state import StateAfter, StateChange, StateHistory
from agentbench.notebook.text.escape import MASK
from agentbench.notebook.text.redact import mask_secrets

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["state_frame"]


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

    Example:
        state_frame(storage, wide=True)["score"].max()
    """
    chosen = Chosen(workflow_name, run_id, since, limit)
    history = StateHistory(source, chosen, internal=internal)
    if wide:
        entries = chosen.gather(history.newest_first(), lambda entry: [entry])
        history.warn_about_problems()
        return _wide(entries, chosen)
    rows = chosen.gather(history.newest_first(), lambda entry: [(entry, change) for change in entry.changes])
    history.warn_about_problems()
    return _narrow(rows, chosen)


def _narrow(rows: Sequence[tuple[StateAfter, StateChange]], chosen: Chosen) -> "pd.DataFrame":
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
    )


def _wide(rows: Sequence[StateAfter], chosen: Chosen) -> "pd.DataFrame":
    keys = dict.fromkeys(key for entry in rows for key in entry.state)
    columns: dict[str, Column] = {
        "superstep": ("int64", [entry.superstep for entry in rows]),
        _RUN: ("category", [entry.run_id for entry in rows]),
    }
    for key in keys:
        columns[f"{_KEY}{key}"] = ("object", [_masked_value(key, entry.state.get(key)) for entry in rows])
    frame = build_frame("state", columns, index=["superstep"], chosen=chosen)
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
