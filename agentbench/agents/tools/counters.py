"""How often a tool was called and failed, and how often it may."""

from __future__ import annotations

from collections.abc import MutableMapping
from threading import Lock
from typing import Any, Protocol

from agentbench.agents.arguments import check_whole_number
from agentbench.agents.middleware.contexts import RUN_INVOCATIONS
from agentbench.exceptions import ToolException


class Limited(Protocol):
    """What sets limits to its calls: a tool. `None` is without limit."""

    name: str
    max_invocations: int | None
    max_invocation_exceptions: int | None
    max_invocations_per_run: int | None


class Counters:
    """Counts the calls of one tool, from any thread.

    Attributes:
        invocations: Calls begun.
        exceptions: Calls that raised.
    """

    __slots__ = ("_lock", "exceptions", "invocations")

    def __init__(self) -> None:
        self._lock = Lock()
        self.invocations = self.exceptions = 0

    def reset(self) -> None:
        """Begin again at 0."""
        with self._lock:
            self.invocations = self.exceptions = 0

    def __reduce__(self) -> tuple[Any, ...]:
        return _counted, (self.invocations, self.exceptions)

    def begin(self, tool: Limited, metadata: MutableMapping[str, Any] | None) -> None:
        """Count one call of a tool.

        Args:
            tool: Which tool, with its limits.
            metadata: Of the call's context. The calls of a run are counted there, if whoever drives the run wants it.

        Raises:
            ToolException: The tool is used up; nothing is counted then.
        """
        with self._lock:
            limit = tool.max_invocations
            if limit is not None and self.invocations >= limit:
                raise _used_up(tool.name, f"was called {self.invocations} times", "max_invocations", limit)
            limit = tool.max_invocation_exceptions
            if limit is not None and self.exceptions >= limit:
                raise _used_up(tool.name, f"failed {self.exceptions} times", "max_invocation_exceptions", limit)
            if tool.max_invocations_per_run is not None and metadata is not None and RUN_INVOCATIONS in metadata:
                _begin_in_run(tool.name, tool.max_invocations_per_run, metadata[RUN_INVOCATIONS])
            self.invocations += 1

    def count_exception(self) -> None:
        """Count one call that raised."""
        with self._lock:
            self.exceptions += 1


def _begin_in_run(name: str, limit: int, calls: MutableMapping[str, int]) -> None:
    count = calls.get(name, 0)
    if count >= limit:
        message = (
            f"Tool {name!r} was called {count} times in this run, and max_invocations_per_run={limit} allows no more. "
            "It can be called again in the next run."
        )
        raise ToolException(message)
    calls[name] = count + 1


def _used_up(name: str, problem: str, limit: str, allowed: int) -> ToolException:
    return ToolException(
        f"Tool {name!r} {problem}, and {limit}={allowed} allows no more. Call reset() on it to begin again, "
        "or raise the limit."
    )


def _counted(invocations: int, exceptions: int) -> Counters:
    counters = Counters()
    counters.invocations, counters.exceptions = invocations, exceptions
    return counters


def checked_limit(name: str, limit: int | None) -> int | None:
    """Return a limit, if it is one.

    Raises:
        TypeError: It is no whole number.
        ValueError: It is less than 1.
    """
    if limit is None:
        return None
    check_whole_number(name, limit)
    if limit < 1:
        message = f"{name}={limit!r} would allow nothing. Expected None, for no limit, or at least 1."
        raise ValueError(message)
    return limit
