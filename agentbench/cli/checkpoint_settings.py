"""New values for a state, named as diffs name them: `limit`, or `search.limit` for what lies in a value."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from agentbench.exceptions import WorkflowCheckpointException

_MOST_NAMED = 20


def updated_state(state: Mapping[str, Any], settings: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return what of a state changes by settings; the state itself stays as it is.

    Args:
        state: Of a checkpoint.
        settings: Names and values. A name is a key of the state, which need not be there yet; or, after a dot, a key or
            field of what is there. Keys that hold a dot themselves go first.

    Returns:
        New values for keys of the state.

    Raises:
        WorkflowCheckpointException: A name leads nowhere.
    """
    new = dict(state)
    for name, value in settings:
        shorter = name.removeprefix("state.")  # as a diff prints it
        new = _replaced(new, shorter if name not in new and "state" not in new else name, value, name)
    return {key: value for key, value in new.items() if key not in state or value is not state[key]}


def _replaced(holder: Any, path: str, value: Any, name: str) -> Any:
    """Return a copy of a holder in which the value at the end of a path is another one."""
    known = _entries(holder)
    first, dot, rest = path.partition(".")
    if path in known or (not dot and isinstance(holder, dict) and not _is_place(path, known)):
        return _with_entry(holder, path, value)
    if dot and first in known:
        return _with_entry(holder, first, _replaced(known[first], rest, value, name))
    there = ", ".join(map(repr, list(known)[:_MOST_NAMED])) or "none"
    more = f" and {len(known) - _MOST_NAMED:,} more" if len(known) > _MOST_NAMED else ""
    msg = (
        f"--set {name}: there is no {path!r} in the {type(holder).__name__} to be changed, and no value there has such "
        f"a part. There are: {there}{more}. To change an entry of a list, set the whole list."
    )
    raise WorkflowCheckpointException(msg)


def _is_place(path: str, known: Mapping[Any, Any]) -> bool:
    """Whether this is a place in a list as diffs print it."""
    return path.endswith("]") and path.partition("[")[0] in known


def _entries(holder: Any) -> dict[Any, Any]:
    if isinstance(holder, dict):
        return holder
    names: Iterable[str] | None = getattr(type(holder), "_fields", None) or getattr(type(holder), "model_fields", None)
    if names is None and is_dataclass(holder):
        names = [each.name for each in fields(holder)]
    elif names is None:
        names = getattr(holder, "__dict__", {})
    return {name: getattr(holder, name) for name in names or () if hasattr(holder, name)}


def _with_entry(holder: Any, key: str, value: Any) -> Any:
    if isinstance(holder, tuple):
        return holder._replace(**{key: value})  # type: ignore[attr-defined]  # only named ones have entries
    if hasattr(type(holder), "model_copy"):
        return holder.model_copy(update={key: value})
    changed = copy.copy(holder)
    if isinstance(changed, dict):
        changed[key] = value
    else:
        object.__setattr__(changed, key, value)  # also of a frozen one: the copy is nobody's yet
    return changed
