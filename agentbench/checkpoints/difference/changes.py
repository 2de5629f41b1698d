"""One difference between two values: its place, its kind, and the values before and after."""

from __future__ import annotations

import reprlib
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from agentbench._display import call_view

ChangeOp = Literal["added", "removed", "changed", "reordered"]
"""The kind of a change: added, removed, another value, or the same parts in a different order."""


class ItemId(NamedTuple):
    """A step to the list item with this id."""

    name: str
    value: Any


class Member(NamedTuple):
    """A step to a member of a set."""

    value: Any


@dataclass(frozen=True, slots=True, repr=False)
class CheckpointChange:
    """One difference. `str()` returns a line such as `+ state.conv[12] = 'x'`, with long values cut and secrets masked.

    Attributes:
        path: The place, such as `state.users['a b'].age`, `state.conv[12]`, `state.conv[message_id='m3'].text` or
            `state.tags{'new'}`. Positions refer to the list after the change, those of removed items to the list
            before.
        op: The kind of change.
        before: The value before, `None` if there was none; the checkpoint's own value, not a copy. For reordered items
            with ids: the ids in their old order.
        after: The value after, or the ids in their new order.
        keys: The path as a sequence of keys, field names, positions, `ItemId`s and `Member`s.

    Example:
        from agentbench import WorkflowCheckpoint
        from agentbench.checkpoints import diff_checkpoints

        before = WorkflowCheckpoint("w", "hash", state={"topic": "cats"})
        after = WorkflowCheckpoint("w", "hash", state={"topic": "dogs"})
        for change in diff_checkpoints(before, after).changes:
            print(change)  # ~ state.topic: 'cats' -> 'dogs'
    """

    path: str
    op: ChangeOp
    before: Any = None
    after: Any = None
    keys: tuple[Any, ...] = ()

    def __str__(self) -> str:
        line: str = call_view("agentbench._text.changes:change_line", self)
        return line

    def __repr__(self) -> str:
        return f"<CheckpointChange {self}>"


def path_text(keys: tuple[Any, ...]) -> str:
    """Return a path as text; long keys are cut."""
    return "".join(map(step_text, keys)).removeprefix(".")


def step_text(key: object) -> str:
    """Return one step of a path, with the dot or the brackets."""
    if isinstance(key, ItemId):
        return f"[{key.name}={_key_text(key.value)}]"
    if isinstance(key, Member):
        return f"{{{_key_text(key.value)}}}"
    is_name = isinstance(key, str) and len(key) <= LONGEST_KEY and key.isidentifier()
    return f".{key}" if is_name else f"[{_key_text(key)}]"


LONGEST_KEY = 120
"""Longer keys are cut in paths, which then cannot be followed."""


def _key_text(key: object) -> str:
    try:
        text = _KEY_REPR.repr(key)
    except Exception:  # noqa: BLE001 - `repr` is user code
        text = f"<{type(key).__name__}>"
    return text if text.isprintable() else ascii(text)[1:-1]


_KEY_REPR = reprlib.Repr()
_KEY_REPR.maxstring = _KEY_REPR.maxother = _KEY_REPR.maxlong = LONGEST_KEY
