"""The sources of every time and every id that the library creates, so that both can be replaced.

A run takes its clock and its ids from its `RunOptions`, or else from the process-wide defaults below. With
`TickingClock` and `CountingIds`, two runs of one graph produce identical events and identical checkpoints.
"""

from __future__ import annotations

import itertools
import os
import time
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from datetime import datetime

_NS_PER_S = 1_000_000_000
_ID_DIGITS = {"cp": 4}

# The bits of a UUID that mean "version 4, variant 1", and the remaining bits, which are random.
_VERSION_4 = (4 << 76) | (2 << 62)
_RANDOM = ~((0xF << 76) | (3 << 62))


@runtime_checkable
class Clock(Protocol):
    """A source of times, as integer nanoseconds. `SystemClock` and `TickingClock` implement it.

    Example:
        from agentbench import RunOptions
        from agentbench.testing import TickingClock

        RunOptions(clock=TickingClock("2026-01-31"))  # the same times in every run
    """

    def time_ns(self) -> int:
        """Return nanoseconds since 1970-01-01T00:00:00Z, for time stamps. May go back when the clock is adjusted."""

    def perf_ns(self) -> int:
        """Return nanoseconds since an arbitrary point in time, for durations. Never goes back."""


@runtime_checkable
class IdSource(Protocol):
    """A source of ids. `RandomIds` and `CountingIds` implement it.

    Example:
        from agentbench import RunOptions
        from agentbench.testing import CountingIds

        RunOptions(ids=CountingIds())  # run-1, cp-0001, request-1
    """

    def new_id(self, kind: str) -> str:
        """Return an id that this source has not returned before.

        Args:
            kind: What the id is for: `run`, `cp` (checkpoint), `request`, `workflow`, `group` (of edges), `message`,
                `agent`, `session`, `call` or `approval` (a request to approve a call).
        """


class SystemClock:
    """The machine's clock.

    Example:
        from agentbench.testing import SystemClock

        clock = SystemClock()
        assert clock.perf_ns() <= clock.perf_ns()
    """

    __slots__ = ()

    time_ns = staticmethod(time.time_ns)
    perf_ns = staticmethod(time.perf_counter_ns)

    def __repr__(self) -> str:
        return "SystemClock()"


class TickingClock:
    """A clock that advances by a fixed tick each time it is read, so every run has the same times.

    Time stamps and durations have separate ticks, so that measuring a duration does not move the time stamps.

    Args:
        start: The first time stamp: a datetime (without a zone: UTC) or ISO 8601 text.
        tick_s: Seconds by which each reading advances the clock.

    Raises:
        ValueError: `tick_s` is negative, or `start` is not a date.

    Example:
        from agentbench.testing import TickingClock

        clock = TickingClock("2026-01-01T00:00:00Z", tick_s=1.0)
        assert clock.time_ns() + 1_000_000_000 == clock.time_ns()
    """

    def __init__(self, start: datetime | str = "2024-01-01T00:00:00Z", tick_s: float = 0.001) -> None:
        if tick_s < 0:
            message = f"tick_s is {tick_s!r}; expected 0 or more seconds, since a clock for durations never goes back."
            raise ValueError(message)
        from datetime import UTC, datetime  # noqa: PLC0415 - only clocks that start somewhere need calendars

        given: object = start
        if not isinstance(given, (str, datetime)):
            message = f"start is {start!r}; expected a datetime or ISO 8601 text."
            raise TypeError(message)
        if isinstance(start, str):
            start = datetime.fromisoformat(start.upper())
        start_at = start.replace(tzinfo=UTC) if start.tzinfo is None else start.astimezone(UTC)
        past = start_at - datetime(1970, 1, 1, tzinfo=UTC)
        first_ns = ((past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds) * 1000
        tick_ns = round(tick_s * _NS_PER_S)
        # Reading an itertools.count is atomic, also between threads.
        self._times = itertools.count(first_ns, tick_ns)
        self._perfs = itertools.count(0, tick_ns)
        self._repr = f"TickingClock({start_at.isoformat()!r}, tick_s={tick_s!r})"

    def time_ns(self) -> int:
        """Return nanoseconds since 1970; each call returns a value one tick later."""
        return next(self._times)

    def perf_ns(self) -> int:
        """Return nanoseconds since this clock was created; each call returns a value one tick later."""
        return next(self._perfs)

    def __repr__(self) -> str:
        return self._repr


class RandomIds:
    """Globally unique ids of every kind: the text of a random UUID (version 4).

    Example:
        from agentbench.testing import RandomIds

        assert len(RandomIds().new_id("run")) == 36
    """

    __slots__ = ()

    def new_id(self, kind: str) -> str:
        """Return a new UUID as text."""
        # Same as uuid.uuid4(); importing that module would take a fifth of this package's import time.
        text = f"{int.from_bytes(os.urandom(16), 'big') & _RANDOM | _VERSION_4:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def __repr__(self) -> str:
        return "RandomIds()"


class CountingIds:
    """Ids that count from one, separately for each kind: `run-1`, `run-2`, `cp-0001`, `request-1`.

    Checkpoint ids have four digits, so that files named after them sort by age.

    Example:
        from agentbench.testing import CountingIds

        ids = CountingIds()
        assert [ids.new_id("run"), ids.new_id("run"), ids.new_id("cp")] == ["run-1", "run-2", "cp-0001"]
    """

    def __init__(self) -> None:
        self._counters: dict[str, itertools.count[int]] = {}

    def new_id(self, kind: str) -> str:
        """Return `kind` with the number of this call among the calls for that kind."""
        # setdefault and next are atomic: two threads never get the same number.
        number = next(self._counters.setdefault(kind, itertools.count(1)))
        return f"{kind}-{number:0{_ID_DIGITS.get(kind, 1)}d}"

    def __repr__(self) -> str:
        return "CountingIds()"


class RuntimeDefaults(NamedTuple):
    """The defaults for runs whose own options are `None`; the arguments of `set_runtime_defaults`."""

    clock: Clock
    ids: IdSource
    observe: bool


_defaults = RuntimeDefaults(clock=SystemClock(), ids=RandomIds(), observe=False)


def runtime_defaults() -> RuntimeDefaults:
    """Return the current defaults of this process."""
    return _defaults


def set_runtime_defaults(
    *, clock: Clock | None = None, ids: IdSource | None = None, observe: bool | None = None
) -> RuntimeDefaults:
    """Replace process-wide defaults for later runs. An argument that is `None` leaves its default unchanged.

    Args:
        clock: The source of times.
        ids: The source of ids.
        observe: Whether runs emit observation events and stamps.

    Returns:
        The previous defaults; pass their three attributes to another call to restore them.

    Raises:
        TypeError: `clock` or `ids` lacks the methods of `Clock` or `IdSource`.

    Example:
        from agentbench.testing import CountingIds, TickingClock, set_runtime_defaults

        set_runtime_defaults(clock=TickingClock(), ids=CountingIds())
    """
    global _defaults
    sources: list[tuple[object, type, str]] = [
        (clock, Clock, "a clock: time_ns() and perf_ns(), as SystemClock has them"),
        (ids, IdSource, "a source of ids: new_id(kind), as RandomIds has it"),
    ]
    for source, protocol, expected in sources:
        if source is not None and not isinstance(source, protocol):
            message = f"Got {source!r}. Expected {expected}."
            raise TypeError(message)
    before = _defaults
    _defaults = RuntimeDefaults(
        before.clock if clock is None else clock,
        before.ids if ids is None else ids,
        before.observe if observe is None else observe,
    )
    return before


def iso_utc(time_ns: int) -> str:
    """Return nanoseconds since 1970 as ISO 8601 text in UTC with six fractional digits; the text sorts by time."""
    seconds, below = divmod(time_ns, _NS_PER_S)
    return f"{_second_text(seconds)}.{below // 1000:06d}+00:00"


@lru_cache(maxsize=1)
def _second_text(seconds: int) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
