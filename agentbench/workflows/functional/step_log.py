"""What a run records of its finished steps: a mapping that only grows, so that a checkpoint writes each entry once."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from agentbench._copying import isolate, isolate_or_same
from agentbench.serialization.registry import of_kind, register_type


class StepEntry:
    """A key and its value, which nobody else can change: it is copied when it is recorded and when it is read."""

    __slots__ = ("key", "value")

    def __init__(self, key: str, value: Any) -> None:
        self.key, self.value = key, value


class StepLog(Mapping[str, Any]):
    """Values by the key of the step, for example its result. A copy shares the entries and does not grow with it.

    Args:
        values: The first entries: another log, or a dictionary, as older checkpoints and edited ones contain.
    """

    __slots__ = ("_by_key", "_entries", "_is_copy", "_length", "_uncopied")

    def __init__(self, values: Mapping[str, Any] | None = None) -> None:
        self._entries: list[StepEntry] = []
        self._length, self._is_copy = 0, False
        self._by_key: dict[str, StepEntry] | None = None
        """It is made when the log is first read."""
        self._uncopied: list[Any] = []
        """Values that cannot be copied, so that a storage that copies checkpoints refuses them."""
        if isinstance(values, StepLog):
            self._entries, self._uncopied = values.entries(), values._uncopied  # noqa: SLF001  another log
            self._length = len(self._entries)
        else:
            for key, value in (values or {}).items():
                self[key] = value

    def entries(self) -> list[StepEntry]:
        """Return the entries in a new list, oldest first."""
        return self._entries[: self._length]

    def __getitem__(self, key: str) -> Any:
        return isolate_or_same(self._found()[key].value)

    def __setitem__(self, key: str, value: Any) -> None:
        try:
            entry = StepEntry(key, isolate(value))
        except Exception:  # noqa: BLE001  as in isolate_or_same
            entry = StepEntry(key, value)
            self._uncopied = [*self._uncopied, value]  # not extended, because copies share it
        found = self._found()
        if key in found or self._is_copy:
            self._entries = [each for each in self.entries() if each.key != key]
            self._is_copy = False
        self._entries.append(entry)
        self._length = len(self._entries)
        found[key] = entry

    def __contains__(self, key: object) -> bool:
        return key in self._found()

    def __iter__(self) -> Iterator[str]:
        return iter([entry.key for entry in self.entries()])

    def __len__(self) -> int:
        return self._length

    def __deepcopy__(self, memo: object) -> StepLog:
        isolate(self._uncopied)  # raises if there are any
        copied = StepLog()
        copied._entries, copied._length, copied._is_copy = self._entries, self._length, True
        return copied

    def __reduce__(self) -> Any:
        return dict, (dict(self),)

    def __repr__(self) -> str:
        return repr(dict(self))

    def _found(self) -> dict[str, StepEntry]:
        if self._by_key is None:
            self._by_key = {entry.key: entry for entry in self.entries()}
        return self._by_key


register_type(
    StepEntry,
    "step_entry",
    lambda entry: [entry.key, entry.value],
    lambda found: StepEntry(of_kind(str, found[0]), found[1]),
    frozen=True,
)
register_type(
    StepLog,
    "step_log",
    StepLog.entries,
    lambda found: StepLog({of_kind(StepEntry, entry).key: entry.value for entry in of_kind(list, found)}),
)
