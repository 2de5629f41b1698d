"""Where every time and every id that the library makes comes from, so that both can be replaced.

A run takes its clock and its ids from its `RunOptions`, else from the process-wide defaults kept here. With
`TickingClock` and `CountingIds` two runs of one graph give equal events and equal checkpoints, down to the byte.
"""

from __future__ import annotations

import itertools
import os
import time
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable

if TYPE_CHECKING:
    from datetime import datetime

_NS_PER_S = 1_000_000_000
_ID_DIGITS = {"cp": 4}

# The bits of a UUID that say "version 4, variant 1", and all the others, which are random.
_VERSION_4 = (4 << 76) | (2 << 62)
_RANDOM = ~((0xF << 76) | (3 << 62))


@runtime_checkable
class Clock(Protocol):
    """A source of times.

    Units: nanoseconds, as integers.
    """

    def time_ns(self) -> int:
        """Nanoseconds since 1970-01-01T00:00:00Z; for time stamps. May go back when the machine's clock is set."""
        ...

    def perf_ns(self) -> int:
        """Nanoseconds since an arbitrary moment; for durations. Never goes back."""
        ...


@runtime_checkable
class IdSource(Protocol):
    """A source of ids."""

    def new_id(self, kind: str) -> str:
        """Return an id that this source has not given before.

        Args:
            kind: What the id is for: `run`, `cp` (checkpoint), `request`, `workflow`, `group` (of edges), `message`,
                `agent`, `session` or `call`.
        """
        ...


class SystemClock:
    """The machine's clock."""

    __slots__ = ()

    time_ns = staticmethod(time.time_ns)
    perf_ns = staticmethod(time.perf_counter_ns)

    def __repr__(self) -> str:
        return "SystemClock()"


class TickingClock:
    """A clock that moves by one fixed tick per reading, and not otherwise: the same readings in every run.

    Time stamps and durations tick apart from each other, so that measuring durations does not move the time stamps.

    Args:
        start: The first time stamp: a datetime (without a zone: UTC) or ISO 8601 text.
        tick_s: How far one reading moves the clock, in seconds.
    """

    def __init__(self, start: datetime | str = "2024-01-01T00:00:00Z", tick_s: float = 0.001) -> None:
        if tick_s < 0:
            message = f"tick_s is {tick_s!r}; expected 0 or more seconds, since a clock for durations never goes back."
            raise ValueError(message)
        first_at = _as_utc(start)
        tick_ns = round(tick_s * _NS_PER_S)
        # Reading an itertools.count is atomic, also between threads.
        self._times = itertools.count(_since_epoch_ns(first_at), tick_ns)
        self._perfs = itertools.count(0, tick_ns)
        self._shown = f"TickingClock({first_at.isoformat()!r}, tick_s={tick_s!r})"

    def time_ns(self) -> int:
        """The time in nanoseconds since 1970, one tick later at each call."""
        return next(self._times)

    def perf_ns(self) -> int:
        """Nanoseconds since this clock was made, one tick later at each call."""
        return next(self._perfs)

    def __repr__(self) -> str:
        return self._shown


class RandomIds:
    """Ids that no one else has: the text of a random UUID (version 4), whatever the kind."""

    __slots__ = ()

    def new_id(self, kind: str) -> str:
        """Return a new UUID as text."""
        # As uuid.uuid4() does it; that module alone would be a fifth of what this package takes to import.
        text = f"{int.from_bytes(os.urandom(16), 'big') & _RANDOM | _VERSION_4:032x}"
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"

    def __repr__(self) -> str:
        return "RandomIds()"


class CountingIds:
    """Ids that count from one, each kind for itself: `run-1`, `run-2`, `cp-0001`, `request-1`.

    Checkpoint ids have four digits, so that files named after them sort in order of age.
    """

    def __init__(self) -> None:
        self._counters: dict[str, itertools.count[int]] = {}

    def new_id(self, kind: str) -> str:
        """Return `kind` and the number of this call among those for that kind."""
        # setdefault and next are atomic: two threads never get one number.
        number = next(self._counters.setdefault(kind, itertools.count(1)))
        return f"{kind}-{number:0{_ID_DIGITS.get(kind, 1)}d}"

    def __repr__(self) -> str:
        return "CountingIds()"


class RuntimeDefaults(NamedTuple):
    """What a run uses where its own options say nothing.

    Attributes:
        clock: Source of times.
        ids: Source of ids.
        observe: Whether runs emit observation events and stamps.
    """

    clock: Clock
    ids: IdSource
    observe: bool


_defaults = RuntimeDefaults(clock=SystemClock(), ids=RandomIds(), observe=False)


def runtime_defaults() -> RuntimeDefaults:
    """The defaults of this process, as they are now."""
    return _defaults


def set_runtime_defaults(
    *, clock: Clock | None = None, ids: IdSource | None = None, observe: bool | None = None
) -> RuntimeDefaults:
    """Replace defaults of this process, for runs that start from now on. What is `None` stays as it is.

    Returns:
        The defaults that held before; their three attributes, given to another call, bring them back.

    Raises:
        TypeError: If `clock` or `ids` lacks the methods of `Clock` or `IdSource`.

    Example:
        ```python
        set_runtime_defaults(clock=TickingClock(), ids=CountingIds())
        ```
    """
    global _defaults
    _require_methods(clock, Clock, "a clock: time_ns() and perf_ns(), as SystemClock has them")
    _require_methods(ids, IdSource, "a source of ids: new_id(kind), as RandomIds has it")
    before = _defaults
    _defaults = RuntimeDefaults(
        clock=before.clock if clock is None else clock,
        ids=before.ids if ids is None else ids,
        observe=before.observe if observe is None else observe,
    )
    return before


def iso_utc(time_ns: int) -> str:
    """Write a time as ISO 8601 text in UTC, always with six fractional digits: text order is the order of time.

    Args:
        time_ns: Nanoseconds since 1970-01-01T00:00:00Z; what is below a microsecond is cut off.
    """
    seconds, below = divmod(time_ns, _NS_PER_S)
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(seconds))}.{below // 1000:06d}+00:00"


def _require_methods(given: object, protocol: type, expected: str) -> None:
    if given is not None and not isinstance(given, protocol):
        message = f"Got {given!r}. Expected {expected}."
        raise TypeError(message)


def _as_utc(start: datetime | str) -> datetime:
    from datetime import datetime, timezone  # noqa: PLC0415 - only clocks that start somewhere need calendars

    if isinstance(start, str):
        # Python 3.10 does not read the letter Z.
        start = datetime.fromisoformat(f"{start[:-1]}+00:00" if start.endswith(("Z", "z")) else start)
    if start.tzinfo is None:
        return start.replace(tzinfo=timezone.utc)
    return start.astimezone(timezone.utc)


def _since_epoch_ns(moment: datetime) -> int:
    from datetime import datetime, timezone  # noqa: PLC0415 - as above

    past = moment - datetime(1970, 1, 1, tzinfo=timezone.utc)
    return ((past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds) * 1000
