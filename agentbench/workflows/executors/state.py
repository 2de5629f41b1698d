"""The state that the executors of a workflow share. Writes are pending until the superstep ends."""

from collections.abc import Mapping
from enum import Enum
from typing import Any, Final


class StateMark(Enum):
    """The marker for a missing value in `State.pending_changes`; unlike `None` it cannot be a stored value."""

    ABSENT = "absent"

    def __repr__(self) -> str:
        return "<absent>"


ABSENT: Final = StateMark.ABSENT

_MISSING: Final = object()
_DELETED: Final = object()


class State:
    """Key-value state in two layers: committed values, and values written since the last commit.

    All executors of a superstep share one pending layer: a write is visible to the others immediately, and the last of
    several writes to a key wins. Values are held by reference, not copied. Contexts check which keys are reserved.

    No method uses a lock. Each one touches the layers only by single dictionary operations, which the interpreter does
    not interrupt, so executors may call them from worker threads: no write is lost or applied in part.

    Example:
        >>> state = State()
        >>> state.set("topic", "rain")
        >>> state.get("topic"), state.export_state()
        ('rain', {})
    """

    __slots__ = ("committed", "pending")

    def __init__(self) -> None:
        # The engine reads both layers.
        self.committed: dict[str, Any] = {}
        self.pending: dict[str, Any] = {}

    def __repr__(self) -> str:
        return f"State(committed={len(self.committed)}, pending={len(self.pending)})"

    @property
    def has_pending(self) -> bool:
        """Whether there are writes or deletions since the last commit."""
        return bool(self.pending)

    def set(self, key: str, value: Any) -> None:
        """Write a value; it is committed when the superstep ends."""
        self.pending[key] = value

    def get(self, key: str, default: Any = None) -> Any:
        """Return the pending value of a key, or the committed one, or the default."""
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
        """Remove a key: a committed one when the superstep ends, a pending one immediately. KeyError: no such key."""
        if key in self.committed:
            if self.pending.get(key) is _DELETED:
                raise KeyError(key)
            self.pending[key] = _DELETED
        elif self.pending.pop(key, _MISSING) is _MISSING:
            raise KeyError(key)

    def pending_changes(self) -> dict[str, tuple[Any, Any]]:
        """Return the committed and pending value of each written key, in the order of writing; `ABSENT` if missing."""
        committed = self.committed
        return {
            key: (committed.get(key, ABSENT), ABSENT if value is _DELETED else value)
            for key, value in list(self.pending.items())
        }

    def commit(self) -> None:
        """Apply all pending writes and deletions."""
        pending, committed = self.pending, self.committed
        for key in list(pending):
            value = pending.get(key, _MISSING)
            if value is _MISSING:
                continue
            if value is _DELETED:
                committed.pop(key, None)
            else:
                committed[key] = value
            last = pending.pop(key, value)
            if last is not value:  # written again in the meantime by a thread that outlived its superstep
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
