"""One limiter of model calls for all runs of a process: waits for free places, and sends rejected calls again.

A batch puts a `CallLimiter` in force for its runs. Chat clients look it up where they send requests; outside of batches
there is none.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any, Final, TypeVar

from agentbench._bridge import await_on
from agentbench._limits import require_limit

T = TypeVar("T")

in_force: Final[ContextVar[CallLimiter | None]] = ContextVar("agentbench_call_limiter", default=None)
"""The limiter of the running batch. A batch sets it before it starts its runs, which inherit it."""

counting: Final[ContextVar[Callable[[Any], object] | None]] = ContextVar("agentbench_counting", default=None)
"""Is called with each complete answer of a model under a limiter, to count what the running run has used."""

sending: Final[ContextVar[tuple[str, ...]]] = ContextVar("agentbench_limited_calls", default=())
"""The services whose places the running code occupies. Not empty: the limiter handles rejections of this request."""


def note_answer(response: Any) -> None:
    """Pass a complete answer to the function that counts for the running run, if there is one."""
    count = counting.get()
    if count is not None:
        count(response)


# How many full rounds the limit stays one below the number that was rejected before it tries that number again. Each
# further rejection there doubles the rounds, because with `Retry-After` a rejection holds back all calls.
_PATIENCE: Final = 32
_LONGEST_PATIENCE: Final = 64

# Failures that say nothing about the load, such as HTTP 500, are sent as often as the SDKs of services do by default.
_MOST_ATTEMPTS_AFTER_FAILURE: Final = 3
_FIRST_BACK_OFF_S: Final = 0.5
_LONGEST_BACK_OFF_S: Final = 8.0


class AdaptiveLimit:
    """The number of concurrent calls that a service accepts, found by trying. Without a clock and without asyncio.

    The limit starts at 4 and doubles with every full round until the first rejection. Then it goes to 0.9 of the
    highest number that worked, and grows by one with every full round. Where a number was rejected, it is tried again
    only after several rounds. A full round are as many successful calls as the limit, all begun since the limit
    changed, while at some time all places were taken.

    Args:
        most: The limit never exceeds this number.

    Example:
        >>> limit = AdaptiveLimit()
        >>> rounds = [limit.begin(in_flight) for in_flight in (1, 2, 3, 4)]
        >>> for begun in rounds:
        ...     limit.succeed(begun)
        >>> limit.limit
        8
    """

    def __init__(self, *, most: int = 100) -> None:
        self.most = most
        self.limit = min(4, most)
        self._round = 0  # counts changes of the limit
        self._lowered = 0  # the round that began with the last rejection
        self._successes = 0
        self._is_full = False
        self._n_rounds = 0  # full rounds at this limit
        self._is_doubling = True
        self._worked: int | None = None
        self._ceiling: int | None = None  # the number that was rejected last
        self._patience = _PATIENCE

    def begin(self, in_flight: int) -> int:
        """Count a call that begins, `in_flight` includes it; return the round to pass when it ends."""
        if in_flight >= self.limit:
            self._is_full = True
        return self._round

    def succeed(self, begun: int) -> None:
        """Count a successful call that began in this round. Calls that began before show nothing about this limit."""
        if begun != self._round:
            return
        self._successes += 1
        if not self._is_full or self._successes < self.limit:
            return
        self._successes, self._is_full = 0, False
        self._n_rounds += 1
        self._worked = self.limit
        if self._ceiling is not None and self.limit >= self._ceiling:
            self._ceiling, self._patience = None, _PATIENCE
        if self.limit == self.most or (self.limit + 1 == self._ceiling and self._n_rounds < self._patience):
            return
        self._change(min(2 * self.limit if self._is_doubling else self.limit + 1, self.most))

    def reject(self, begun: int) -> None:
        """Lower the limit, unless the call began before the limit was lowered last."""
        if begun < self._lowered:
            return
        if self._ceiling is not None and self.limit >= self._ceiling:
            self._patience = min(2 * self._patience, _LONGEST_PATIENCE)
        else:
            self._patience = _PATIENCE
        self._is_doubling, self._ceiling = False, self.limit
        worked = self.limit if self._worked is None else min(self._worked, self.limit)
        self._change(max(int(0.9 * worked), 1))
        self._lowered = self._round

    def _change(self, limit: int) -> None:
        self.limit = limit
        self._round += 1
        self._successes, self._is_full, self._n_rounds = 0, False, 0


class Place:
    """The place of one call; `end` frees it, once."""

    __slots__ = ("attempt", "begun", "limiter", "service")

    def __init__(self, limiter: CallLimiter, service: Service, attempt: int) -> None:
        self.limiter, self.service, self.attempt = limiter, service, attempt
        self.begun = 0  # the round of an adaptive limit

    def end(self, error: BaseException | None = None, *, succeeded: bool = False) -> None:
        """Free the place and report how the call ended; a call that was abandoned shows nothing about the service."""
        hold_s = self.limiter.wait_s(error, self.attempt) if error is not None and is_busy(error) else None
        self.limiter.on_its_loop(self.service.leave, self, succeeded, hold_s)


class Service:
    """The calls to one service: its limit, the calls in flight and the waiting ones, and counts for display.

    Attributes:
        calls: How many requests were sent, including those that were sent again.
        rejected: How many of them the service rejected or did not answer in time.
    """

    def __init__(self, limit: int | AdaptiveLimit) -> None:
        self.allowed = limit
        self.calls = self.rejected = 0
        self._taken: set[Place] = set()
        self._waiting: deque[tuple[asyncio.Future[None], Place]] = deque()
        self._hold: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        """How many calls may be in flight."""
        return self.allowed.limit if isinstance(self.allowed, AdaptiveLimit) else self.allowed

    @property
    def in_flight(self) -> int:
        """How many calls are in flight."""
        return len(self._taken)

    async def enter(self, place: Place) -> None:
        """Wait for a free place, first come, first served; a rejected call goes to the front."""
        future = asyncio.get_running_loop().create_future()
        (self._waiting.append if place.attempt == 1 else self._waiting.appendleft)((future, place))
        self.admit()
        await future  # if this task is cancelled, `admit` skips the future, or the caller ends the place

    def admit(self) -> None:
        """Let waiting calls begin while there are free places and no call is held back."""
        while self._waiting and self._hold is None and len(self._taken) < self.limit:
            future, place = self._waiting.popleft()
            if future.done():  # cancelled
                continue
            self._taken.add(place)
            self.calls += 1
            if isinstance(self.allowed, AdaptiveLimit):
                place.begun = self.allowed.begin(len(self._taken))
            future.set_result(None)

    def leave(self, place: Place, succeeded: bool, hold_s: float | None) -> None:
        """Free a place, if it is taken, and report how the call ended; a rejection holds back all calls."""
        if place not in self._taken:
            return
        self._taken.remove(place)
        if hold_s is not None:
            self.rejected += 1
            if isinstance(self.allowed, AdaptiveLimit):
                self.allowed.reject(place.begun)
            self._hold_back(hold_s)
        elif succeeded and isinstance(self.allowed, AdaptiveLimit):
            self.allowed.succeed(place.begun)
        self.admit()

    def _hold_back(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + seconds
        if self._hold is not None:
            until = max(until, self._hold.when())
            self._hold.cancel()
        self._hold = loop.call_at(until, self._end_hold)

    def _end_hold(self) -> None:
        self._hold = None
        self.admit()

    def restart(self) -> None:
        """Drop the calls of a loop that does not run any more."""
        self._taken.clear()
        self._waiting.clear()
        self._hold = None


class CallLimiter:
    """Limits the concurrent calls to each service, and sends rejected calls again.

    A service is a text made of URL and model. The first call binds the limiter to its event loop; calls on other loops
    wait there. When that loop has ended, the next call binds it to another loop, with the limits found before. Waiting
    for a place counts as time of the executor, as far as its `timeout` is concerned.

    Args:
        limits: The fixed limits, by service; all others get an `AdaptiveLimit`.
        most: The upper bound of adaptive limits.
        attempts: How often a call is sent before its rejection is raised. Other failures that may pass, such as HTTP
            500, are sent three times at most. The error raised gets an attribute `attempts`.
        jitter: Returns a number from 0 to 1, for the time to wait where the service names none; by default random.

    Raises:
        TypeError: A limit is not a whole number.
        ValueError: A limit is less than 1.

    Example:
        >>> limiter = CallLimiter(limits={"http://localhost:11434/v1 llama3.2": 2})
        >>> in_force.set(limiter)
        >>> await workflow.run("hello")
        >>> limiter.calls, limiter.rejected
    """

    def __init__(
        self,
        *,
        limits: Mapping[str, int] | None = None,
        most: int = 100,
        attempts: int = 8,
        jitter: Callable[[], float] | None = None,
    ) -> None:
        require_limit("most", most, least=1)
        require_limit("attempts", attempts, least=1)
        self.services: dict[str, Service] = {}
        """The services that were called or have a fixed limit."""
        self.most, self.attempts = most, attempts
        self._jitter = jitter
        self._loop: asyncio.AbstractEventLoop | None = None
        for service, limit in (limits or {}).items():
            self.set_limit(service, limit)

    @property
    def calls(self) -> int:
        """How many requests were sent to all services."""
        return sum(service.calls for service in self.services.values())

    @property
    def rejected(self) -> int:
        """How many requests were rejected."""
        return sum(service.rejected for service in self.services.values())

    def limit_of(self, service: str) -> int:
        """Return how many calls to a service may be in flight now."""
        return self._find(service).limit

    def set_limit(self, service: str, limit: int) -> None:
        """Set the fixed limit of a service, also while calls are running: a worker's share of the limit of a batch."""
        require_limit(f"limit of {service}", limit, least=1)
        found = self._find(service)
        found.allowed = limit
        self.on_its_loop(found.admit)

    async def call(self, service: str, send: Callable[[], Awaitable[T]]) -> T:
        """Wait for a free place, send, and return the answer.

        Args:
            service: The service that is called.
            send: Sends the request; called again after a rejection.

        Raises:
            Exception: The error of `send`, the last one if it was called several times.
        """
        answer, place = await self.open(service, send)
        place.end(succeeded=True)
        return answer

    async def open(self, service: str, send: Callable[[], Awaitable[T]]) -> tuple[T, Place]:
        """Do the same as `call`, but keep the place for the caller to end."""
        found, attempt, outer = self._find(service), 0, sending.get()
        if service in outer:  # a client made of another one of the same service: the outer call has the place
            return await send(), Place(self, found, 1)
        while True:
            attempt += 1
            place, token = Place(self, found, attempt), None
            try:
                await self._enter(found, place)
                token = sending.set((*outer, service))
                return await send(), place
            except BaseException as error:
                place.end(error)
                if not isinstance(error, Exception) or not self._may_pass(error, attempt):
                    raise
                # Where the service is busy, all calls to it are held back: this one waits with them.
                wait_s = 0.0 if is_busy(error) else self.wait_s(error, attempt)
            finally:
                if token is not None:
                    sending.reset(token)
            await asyncio.sleep(wait_s)

    def wait_s(self, error: BaseException, attempt: int) -> float:
        """Return how long to wait after a failure: as the service says, else longer with each attempt."""
        wait_s: float | None = getattr(error, "retry_after", None)
        if wait_s is not None:
            return wait_s
        if self._jitter is None:
            import random  # noqa: PLC0415 - most programs see no rejection

            self._jitter = random.random
        back_off_s = min(_FIRST_BACK_OFF_S * 2.0 ** (attempt - 1), _LONGEST_BACK_OFF_S)
        return back_off_s * (0.75 + 0.5 * self._jitter())

    def on_its_loop(self, action: Callable[..., None], *arguments: object) -> None:
        """Call a function on the loop of this limiter: now, if that is the running one or has ended."""
        loop = self._loop
        try:
            is_here = loop is None or asyncio.get_running_loop() is loop
        except RuntimeError:
            is_here = False
        if is_here or loop is None or not loop.is_running():
            action(*arguments)
        else:
            loop.call_soon_threadsafe(action, *arguments)

    def _find(self, service: str) -> Service:
        found = self.services.get(service)
        if found is None:
            found = self.services[service] = Service(AdaptiveLimit(most=self.most))
        return found

    async def _enter(self, service: Service, place: Place) -> None:
        loop = asyncio.get_running_loop()
        if self._loop is None or (self._loop is not loop and not self._loop.is_running()):
            self._loop = loop
            for one in self.services.values():
                one.restart()
        await await_on(self._loop, service.enter(place))

    def _may_pass(self, error: Exception, attempt: int) -> bool:
        """Return whether to send again; an error that has attempts was sent again by the call of an inner client."""
        if not getattr(error, "is_retryable", False) or hasattr(error, "attempts"):
            return False
        is_status = getattr(error, "status_code", None) in _BUSY
        if attempt < (self.attempts if is_status else min(self.attempts, _MOST_ATTEMPTS_AFTER_FAILURE)):
            return True
        with suppress(AttributeError):  # errors of other libraries may have slots
            error.attempts = attempt  # type: ignore[attr-defined]
        return False


_BUSY: Final = (429, 503)


def is_busy(error: BaseException) -> bool:
    """Return whether an error means that the service has too much to do: HTTP 429 or 503, or a timeout."""
    if not getattr(error, "is_retryable", False):
        return False
    status = getattr(error, "status_code", None)
    inner = getattr(error, "inner_exception", None) or error
    return status in _BUSY or (status is None and any("Timeout" in cls.__name__ for cls in type(inner).__mro__))
