"""The limiter of model calls: laws of its algorithm, places, rejections, other event loops."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench._call_limiter import AdaptiveLimit, CallLimiter
from agentbench.exceptions import ChatClientException


def run_round(limit: AdaptiveLimit, allowed: int) -> int:
    """Make as many calls at once as the limit allows; return how many a service rejects that allows this number."""
    rounds = [limit.begin(n + 1) for n in range(limit.limit)]
    for begun in rounds[allowed:]:
        limit.reject(begun)
    for begun in rounds[:allowed]:
        limit.succeed(begun)
    return len(rounds[allowed:])


def test_the_limit_doubles_until_the_first_rejection_and_then_adds_one() -> None:
    limit = AdaptiveLimit()
    seen = []
    for _ in range(10):
        seen.append(limit.limit)
        run_round(limit, allowed=20)

    assert seen == [4, 8, 16, 32, 14, 15, 16, 17, 18, 19]


@given(st.integers(1, 50), st.lists(st.tuples(st.sampled_from(["begin", "succeed", "reject"]), st.integers(0, 99))))
def test_the_limit_stays_between_one_and_the_most_and_only_rejections_lower_it(
    most: int, events: list[tuple[str, int]]
) -> None:
    limit, open_calls = AdaptiveLimit(most=most), list[int]()
    for what, which in events:
        before = limit.limit
        if what == "begin":
            open_calls.append(limit.begin(len(open_calls) + 1))
        elif open_calls:
            getattr(limit, what)(open_calls.pop(which % len(open_calls)))
        assert 1 <= limit.limit <= most
        assert limit.limit >= before or what == "reject"


@given(st.integers(0, 12), st.integers(2, 30))
def test_rejections_of_one_round_count_once(n_rounds: int, n_rejected: int) -> None:
    limit = AdaptiveLimit()
    for _ in range(n_rounds):
        run_round(limit, allowed=25)
    rounds = [limit.begin(n + 1) for n in range(n_rejected)]
    before = limit.limit
    limit.reject(rounds[0])
    lowered = limit.limit
    for begun in rounds[1:]:
        limit.reject(begun)

    assert limit.limit == lowered < before


@given(st.integers(1, 100))
def test_the_limit_settles_at_what_the_service_allows(allowed: int) -> None:
    limit = AdaptiveLimit()
    for _ in range(150):
        run_round(limit, allowed)
    settled, rejected, calls = set[int](), 0, 0
    for _ in range(150):
        settled.add(limit.limit)
        calls += limit.limit
        rejected += run_round(limit, allowed)

    assert min(settled) >= max(int(0.9 * allowed), 1)
    assert max(settled) <= allowed + 1
    assert rejected <= 0.03 * calls


@given(st.integers(1, 40), st.integers(41, 100))
def test_the_limit_follows_a_service_that_allows_more_or_less_than_before(few: int, many: int) -> None:
    limit = AdaptiveLimit()
    for allowed in (many, few, many):
        for _ in range(300):
            run_round(limit, allowed)
        assert int(0.9 * allowed) - 1 <= limit.limit <= allowed + 1


def test_calls_that_do_not_fill_all_places_do_not_raise_the_limit() -> None:
    limit = AdaptiveLimit()
    for _ in range(1000):
        limit.succeed(limit.begin(3))

    assert limit.limit == 4


# ---- places


def busy(status: int | None = 429, *, retry_after: float | None = 0, inner: Exception | None = None) -> Exception:
    error = ChatClientException("The service failed.", inner)
    error.status_code, error.retry_after, error.is_retryable = status, retry_after, True
    return error


class Backend:
    """Fails with the given errors first, then answers; counts the concurrent calls."""

    def __init__(self, *errors: Exception, gate: asyncio.Event | None = None) -> None:
        self.errors, self.gate = list(errors), gate
        self.sent = self.open = self.most = 0

    async def send(self) -> str:
        self.sent += 1
        if self.errors:
            raise self.errors.pop(0)
        self.open += 1
        self.most = max(self.most, self.open)
        try:
            await (asyncio.sleep(0) if self.gate is None else self.gate.wait())
        finally:
            self.open -= 1
        return "yes"


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


@given(st.integers(1, 6), st.integers(1, 20))
def test_a_fixed_limit_bounds_the_calls_in_flight(limit: int, calls: int) -> None:
    async def run() -> None:
        limiter, backend = CallLimiter(limits={"s": limit}), Backend()
        assert await asyncio.gather(*(limiter.call("s", backend.send) for _ in range(calls))) == ["yes"] * calls
        assert backend.most == min(limit, calls)
        assert (limiter.calls, limiter.rejected, limiter.services["s"].in_flight) == (calls, 0, 0)

    asyncio.run(run())


async def test_places_are_given_in_order_and_a_changed_limit_counts_at_once() -> None:
    limiter, gate, begun = CallLimiter(limits={"s": 1}), asyncio.Event(), list[int]()

    async def send(number: int) -> None:
        begun.append(number)
        await gate.wait()

    calls = [asyncio.create_task(limiter.call("s", lambda n=n: send(n))) for n in range(5)]  # type: ignore[misc]
    await settle()
    assert begun == [0]
    limiter.set_limit("s", 3)
    await settle()
    assert begun == [0, 1, 2]
    gate.set()
    await asyncio.gather(*calls)
    assert begun == [0, 1, 2, 3, 4]


async def test_cancelled_calls_leave_no_place_taken() -> None:
    limiter, gate = CallLimiter(limits={"s": 2}), asyncio.Event()
    backend = Backend(gate=gate)
    calls = [asyncio.create_task(limiter.call("s", backend.send)) for _ in range(6)]
    await settle()
    for call in (calls[0], calls[3], calls[4]):
        call.cancel()
    calls[1].cancel()  # its place goes to a call that is cancelled before it can begin
    await asyncio.sleep(0)
    calls[2].cancel()
    await settle()
    gate.set()

    assert await asyncio.gather(*calls, return_exceptions=True) != []
    assert limiter.services["s"].in_flight == 0
    assert await limiter.call("s", backend.send) == "yes"


async def test_a_rejection_holds_back_all_calls_to_its_service_only() -> None:
    limiter, backend, other = CallLimiter(), Backend(busy(retry_after=3600)), Backend()
    calls = [asyncio.create_task(limiter.call("s", backend.send)) for _ in range(3)]
    await settle()
    later = asyncio.create_task(limiter.call("s", backend.send))
    await settle()

    assert backend.sent == 1
    assert await limiter.call("other", other.send) == "yes"
    assert (limiter.rejected, limiter.services["s"].rejected, limiter.limit_of("s")) == (1, 1, 3)
    for call in (*calls, later):
        call.cancel()


@pytest.mark.parametrize(
    ("error", "sent", "is_rejection"),
    [
        (lambda: busy(429), 8, True),
        (lambda: busy(503), 8, True),
        (lambda: busy(None, inner=TimeoutError()), 3, True),
        (lambda: busy(500), 3, False),
        (lambda: busy(None, inner=ConnectionError()), 3, False),
        (lambda: ChatClientException("The request is wrong."), 1, False),
        (lambda: ValueError("The request is wrong."), 1, False),
    ],
)
async def test_a_failure_that_may_pass_is_sent_again(
    error: Callable[[], Exception], sent: int, is_rejection: bool
) -> None:
    limiter, backend = CallLimiter(), Backend(*(error() for _ in range(20)))
    with pytest.raises(Exception, match=r"service failed|request is wrong") as caught:
        await limiter.call("s", backend.send)

    assert backend.sent == limiter.calls == sent
    assert limiter.rejected == (sent if is_rejection else 0)
    assert getattr(caught.value, "attempts", 1) == sent


async def test_a_service_that_names_no_time_gets_longer_pauses_with_jitter() -> None:
    limiter = CallLimiter(jitter=lambda: 0.5)
    error = busy(retry_after=None)

    assert [limiter.wait_s(error, attempt) for attempt in (1, 2, 3, 9)] == [0.5, 1, 2, 8]


async def test_a_call_inside_a_call_to_the_same_service_takes_no_second_place() -> None:
    limiter, backend = CallLimiter(limits={"s": 1}), Backend()

    assert await limiter.call("s", lambda: limiter.call("s", backend.send)) == "yes"
    assert limiter.services["s"].in_flight == 0


async def test_a_rejection_that_an_inner_call_gave_up_is_not_sent_again_by_the_outer_one() -> None:
    limiter, backend = CallLimiter(attempts=2), Backend(*(busy() for _ in range(9)))
    with pytest.raises(ChatClientException):
        await limiter.call("outer", lambda: limiter.call("inner", backend.send))

    assert backend.sent == 2


def test_a_limiter_outlives_its_loop() -> None:
    limiter, backend = CallLimiter(), Backend()

    async def abandon() -> None:
        asyncio.create_task(limiter.call("s", Backend(gate=asyncio.Event()).send))  # noqa: RUF006 - ends with the loop
        await settle()

    asyncio.run(abandon())
    assert asyncio.run(limiter.call("s", backend.send)) == "yes"
    assert limiter.services["s"].in_flight == 0


async def test_calls_on_other_loops_share_the_limit() -> None:
    limiter, lock, counts = CallLimiter(limits={"s": 2}), threading.Lock(), [0, 0]
    ours = Backend(gate=asyncio.Event())
    first = asyncio.create_task(limiter.call("s", ours.send))
    await settle()

    async def send() -> None:
        with lock:
            counts[0] += 1
            counts[1] = max(counts)
        await asyncio.sleep(0)
        with lock:
            counts[0] -= 1

    async def several() -> list[Any]:
        return await asyncio.gather(*(limiter.call("s", send) for _ in range(3)))

    await asyncio.gather(*(asyncio.to_thread(asyncio.run, several()) for _ in range(2)))
    assert counts == [0, 1]  # the other place is taken here
    assert ours.gate is not None
    ours.gate.set()
    assert await first == "yes"
    await settle()
    assert limiter.services["s"].in_flight == 0


@pytest.mark.parametrize("limit", [0, -1, True, 1.5, "4"])
def test_a_limit_is_a_number_of_calls(limit: Any) -> None:
    with pytest.raises((TypeError, ValueError), match=r"limit of s is .*; expected a whole number, 1 or more"):
        CallLimiter(limits={"s": limit})
