"""How hooks of context providers are called."""

from __future__ import annotations

import logging
from types import SimpleNamespace
from typing import Any

import pytest

from agentbench import AgentSession, ContextProvider, SessionContext
from agentbench.agents.history.run_hooks import call_hook
from agentbench.agents.sessions.context_provider import warn_of_shared_sources
from tests.parts.errors import raises

GIVEN: dict[str, Any] = {
    "agent": "the agent",
    "session": AgentSession(),
    "context": SessionContext(input_messages=[]),
    "state": {},
}


async def seen_by(hook: Any) -> Any:
    """What a hook of these parameters is called with."""
    seen: dict[str, Any] = {}
    provider = type("Own", (ContextProvider,), {"before_run": hook, "seen": seen})("own")
    await call_hook(provider, "before_run", **GIVEN)
    return seen


async def all_four(self: Any, *, agent: Any, session: Any, context: Any, state: Any) -> None:
    self.seen.update(agent=agent, session=session, context=context, state=state)


async def by_position(self: Any, agent: Any, session: Any, context: Any, state: Any) -> None:
    self.seen.update(agent=agent, session=session, context=context, state=state)


async def the_rest(self: Any, *, context: Any, **kwargs: Any) -> None:
    self.seen.update(kwargs, context=context)


def plain(self: Any, **kwargs: Any) -> None:
    self.seen.update(kwargs)


@pytest.mark.parametrize("hook", [all_four, by_position, the_rest, plain])
async def test_a_hook_gets_all_that_a_run_has(hook: Any) -> None:
    assert await seen_by(hook) == GIVEN


async def test_a_hook_may_take_less() -> None:
    async def only_context(self: Any, *, context: Any) -> None:
        self.seen.update(context=context)

    def nothing(self: Any) -> None:
        self.seen.update(called=True)

    async def with_default(self: Any, *, state: Any, more: int = 3) -> None:
        self.seen.update(state=state, more=more)

    assert await seen_by(only_context) == {"context": GIVEN["context"]}
    assert await seen_by(nothing) == {"called": True}
    assert await seen_by(with_default) == {"state": {}, "more": 3}


async def test_a_hook_that_needs_something_else_is_refused_by_name() -> None:
    async def wrong(self: Any, *, context: Any, config: Any) -> None:
        self.seen.update(config=config)

    async def positional(self: Any, context: Any, /) -> None:
        self.seen.update(context=context)

    with raises(TypeError, "1", "config"):
        await seen_by(wrong)
    with raises(TypeError, "context"):
        await seen_by(positional)


async def test_an_awaitable_of_a_plain_function_is_awaited_and_errors_come_through() -> None:
    async def later(self: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await seen_by(lambda self, **kwargs: later(self))


async def test_providers_of_others_need_not_have_every_hook() -> None:
    await call_hook(SimpleNamespace(source_id="x"), "before_run", **GIVEN)
    await call_hook(SimpleNamespace(source_id="x", on_error=None), "on_error", **GIVEN, error=ValueError())
    await call_hook(ContextProvider("x"), "on_error", **GIVEN, error=ValueError())


def test_two_providers_of_one_source_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    one = ContextProvider("x")
    with caplog.at_level(logging.WARNING, "agentbench"):
        warn_of_shared_sources([one, ContextProvider("y"), one])
        assert not caplog.records
        warn_of_shared_sources([one, ContextProvider("y"), ContextProvider("x")])
    assert "both have the source_id 'x'" in caplog.text
