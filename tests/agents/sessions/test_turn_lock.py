"""One run at a time reads or writes a session."""

from __future__ import annotations

import asyncio
import gc
import pickle
from collections.abc import Callable
from contextvars import Context, copy_context
from copy import copy, deepcopy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.agents.sessions.session import LOCKS, AgentSession, SessionTurn


async def turns_over(times: int = 20) -> None:
    """Let everybody else get as far as they can."""
    for _ in range(times):
        await asyncio.sleep(0)


class Log(list[str]):
    """Who was inside, in order."""

    def visitor(self, session: AgentSession, inside: Callable[[], Any] | None = None) -> Callable[[str], Any]:
        async def visit(name: str) -> None:
            async with SessionTurn(session):
                self.append(f"{name} in")
                await turns_over()
                if inside is not None:
                    await inside()
                self.append(f"{name} out")

        return visit


async def test_a_task_left_behind_blocks_others_until_it_is_done() -> None:
    session, log, go_on = AgentSession(), Log(), asyncio.Event()

    async def left_behind() -> None:
        async with SessionTurn(session):
            log.append("left in")
            await go_on.wait()
            log.append("left out")

    async with SessionTurn(session):
        task = asyncio.ensure_future(left_behind())
        await turns_over()
        log.append("a out")
    other = asyncio.ensure_future(log.visitor(session)("b"))
    await turns_over()
    assert log == ["left in", "a out"]
    go_on.set()
    await asyncio.gather(task, other)
    assert log == ["left in", "a out", "left out", "b in", "b out"]


async def test_a_task_started_inside_that_comes_too_late_waits_like_all_others() -> None:
    session, log, go_on, begin = AgentSession(), Log(), asyncio.Event(), asyncio.Event()

    async def late() -> None:
        await begin.wait()
        await log.visitor(session)("late")

    async with SessionTurn(session):
        task = asyncio.ensure_future(late())

    async def holds() -> None:
        async with SessionTurn(session):
            log.append("b in")
            await go_on.wait()
            log.append("b out")

    other = asyncio.ensure_future(holds())
    await turns_over()
    begin.set()
    await turns_over()
    go_on.set()
    await asyncio.gather(task, other)
    assert log == ["b in", "b out", "late in", "late out"]


@pytest.mark.parametrize("is_called_up", [False, True])
@pytest.mark.parametrize("is_inside", [False, True])
async def test_giving_up_waiting_blocks_no_other(is_called_up: bool, is_inside: bool) -> None:
    session, log = AgentSession(), Log()
    async with SessionTurn(session):
        where = copy_context() if is_inside else Context()
        async with SessionTurn(session):
            waiting = where.run(asyncio.ensure_future, log.visitor(session)("gone"))
            behind = where.run(asyncio.ensure_future, log.visitor(session)("next"))
            await turns_over(1)
            if not is_called_up:
                waiting.cancel()
    waiting.cancel()
    await asyncio.gather(waiting, behind, return_exceptions=True)
    assert log == ["next in", "next out"]
    await asyncio.wait_for(log.visitor(session)("after"), 5)


async def test_an_error_inside_lets_the_next_one_in() -> None:
    session = AgentSession()
    with pytest.raises(ZeroDivisionError):
        async with SessionTurn(session):
            raise ZeroDivisionError
    await asyncio.wait_for(Log().visitor(session)("after"), 5)


def test_each_event_loop_has_a_lock_of_its_own_which_goes_with_it() -> None:
    session = AgentSession()
    for _ in range(3):
        asyncio.run(Log().visitor(session)("a"))
    gc.collect()
    assert len(vars(session)[LOCKS]) == 0


async def test_a_held_session_can_be_copied_pickled_and_written() -> None:
    session = AgentSession(session_id="s")
    session.state["a"] = [1]
    async with SessionTurn(session):
        twins = [copy(session), deepcopy(session), pickle.loads(pickle.dumps(session))]
        assert AgentSession.from_dict(session.to_dict()) == session
    for twin in twins:
        assert twin == session
        await asyncio.wait_for(Log().visitor(twin)("free"), 5)


#: A visit: how long it stays, which visits it makes inside, whether these are at once, and when it is broken off.

visits = st.recursive(
    st.tuples(st.integers(0, 3), st.just(()), st.booleans(), st.none() | st.integers(0, 6)),
    lambda inner: st.tuples(
        st.integers(0, 3), st.lists(inner, max_size=3).map(tuple), st.booleans(), st.none() | st.integers(0, 6)
    ),
    max_leaves=8,
)


@given(st.lists(visits, max_size=5))
def test_no_two_visits_are_inside_at_once_unless_one_was_made_by_the_other(plans: list[Any]) -> None:
    async def play() -> None:
        session = AgentSession()
        inside: list[tuple[int, ...]] = []
        strangers: list[Any] = []

        async def visit(path: tuple[int, ...], plan: Any) -> None:
            stay, inner, at_once, broken_off = plan
            task = asyncio.ensure_future(stay_inside(path, stay, inner, at_once))
            if broken_off is not None:
                await turns_over(broken_off)
                task.cancel()
            await asyncio.gather(task, return_exceptions=broken_off is not None)

        async def stay_inside(path: tuple[int, ...], stay: int, inner: Any, at_once: bool) -> None:
            async with SessionTurn(session):
                strangers.extend((path, other) for other in inside if path[: len(other)] != other)
                inside.append(path)
                try:
                    await turns_over(stay)
                    paths = [(*path, index) for index in range(len(inner))]
                    if at_once:
                        await asyncio.gather(*map(visit, paths, inner))
                    else:
                        for each, plan in zip(paths, inner, strict=True):
                            await visit(each, plan)
                finally:
                    inside.remove(path)

        await asyncio.gather(*[visit((index,), plan) for index, plan in enumerate(plans)])
        assert strangers == []
        await asyncio.wait_for(Log().visitor(session)("after"), 5)

    asyncio.run(play())
