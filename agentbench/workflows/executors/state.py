"""The state that the executors of a workflow share: writes are pending until the superstep ends."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final


class StateMark(Enum):
    """What `State.pending_changes` puts where there is no value; unlike `None` it cannot be a stored one."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "<absent>"


ABSENT: Final = StateMark.ABSENT

_MISSING: Final = object()
_DELETED: Final = object()


class State:
    """Key-value state in two layers: what is committed, and what was written since the last commit.

    All executors of a superstep share one pending layer: the others read a write at once, and of several writes to one
    key the last one counts. Values are held by reference, not copied. Which keys are reserved is checked by contexts.

    No method locks. Each touches the layers by single dictionary operations only, which the interpreter does not
    interrupt, so executors may call them from worker threads: no write is lost, and none is applied in part.

    Example:
        >>> state = State()
        >>> state.set("topic", "rain")
        >>> state.get("topic"), state.export_state()
        ('rain', {})
    """

    __slots__ = ("committed", "pending")

    def __init__(self) -> None:
        # Both layers are for the engine to read.
        self.committed: dict[str, Any] = {}
        self.pending: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"State(committed={len(self.committed)}, pending={len(self.pending)})"

    @property
    def has_pending(self) -> bool:
        """Whether anything was set or deleted since the last commit."""
        return bool(self.pending)

    def set(self, key: str, value: Any) -> None:
        """Write a value; it is committed when the superstep ends."""
        self.pending[key] = value

    def get(self, key: str, default: Any = None) -> Any:
        """Return the pending value of a key, else the committed one, else the default."""
        value = self.pending.get(key, _MISSING)
        if value is _MISSING:
            return self.committed.get(key, default)
        return default if value is _DELETED else value

    def has(self, key: str) -> bool:
        """Return whether `get` would find a value."""
        value = self.pending.get(key, _MISSING)
        if value is _MISSING:
            return key in self.committed
        return value is not _DELETED

    def delete(self, key: str) -> None:
        """Remove a key: a committed one when the superstep ends, a pending one at once. KeyError: there is none."""
        if key in self.committed:
            if self.pending.get(key) is _DELETED:
                raise KeyError(key)
            self.pending[key] = _DELETED
        elif self.pending.pop(key, _MISSING) is _MISSING:
            raise KeyError(key)

    def pending_changes(self) -> dict[str, tuple[Any, Any]]:
        """Return committed and pending value of each written key, in the order of writing; `ABSENT` is none."""
        committed = self.committed
        return {
            key: (committed.get(key, ABSENT), ABSENT if value is _DELETED else value)
            for key, value in list(self.pending.items())
        }

    def commit(self) -> None:
        """Apply all pending writes and deletions."""
        pending = self.pending
        for key in list(pending):
            value = pending.get(key, _MISSING)
            if value is _MISSING:
                continue
            self._apply(key, value)
            last = pending.pop(key, value)
            if last is not value:  # written once more meanwhile, by a thread that outlived its superstep
                self._apply(key, last)

    def discard(self) -> None:
        """Drop all pending writes and deletions."""
        self.pending.clear()

    def clear(self) -> None:
        """Drop everything, committed or pending."""
        self.pending.clear()
        self.committed.clear()

    def export_state(self) -> dict[str, Any]:
        """Return the committed values in a new dictionary, without pending writes."""
        return self.committed.copy()

    def import_state(self, values: Mapping[str, Any]) -> None:
        """Merge values into the committed ones; pending writes stay pending."""
        self.committed.update(values)

    def _apply(self, key: str, value: Any) -> None:
        if value is _DELETED:
            self.committed.pop(key, None)
        else:
            self.committed[key] = value
