"""A bundle takes the place of its members, wherever middleware is accepted."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentSession,
    ContextProvider,
    MiddlewareBundle,
    MiddlewareException,
    agent_middleware,
    chat_middleware,
    function_middleware,
)
from tests.agents.agent_runs import BOTH, answer, numbered
from tests.agents.fake_clients import Model, call
from tests.parts.errors import raises


class Watch(MiddlewareBundle):
    """Writes down the calls of every kind; its subclass state has names of its own."""

    def __init__(self) -> None:
        self.middleware: list[str] = []
        super().__init__(
            self._noting("run", agent_middleware),
            MiddlewareBundle(self._noting("model", chat_middleware), self._noting("tool", function_middleware)),
        )

    def _noting(self, name: str, kind: Any) -> Any:
        @kind
        async def note(context: Any, call_next: Any) -> None:
            self.middleware.append(name)
            await call_next()

        return note


@BOTH
@pytest.mark.parametrize("place", ["agent", "run"])
async def test_members_wrap_the_calls_of_their_kinds(stream: bool, place: str) -> None:
    watch = Watch()
    agent = Agent(Model(call("n")), tools=[numbered(7)], middleware=[watch] if place == "agent" else None)

    await answer(agent, stream=stream, **({"middleware": watch} if place == "run" else {}))

    assert watch.middleware == ["run", "model", "tool", "model"]


async def test_a_client_and_a_context_provider_accept_a_bundle() -> None:
    of_client, of_provider = Watch(), Watch()

    class Provider(ContextProvider):
        async def before_run(self, *, context: Any, **others: Any) -> None:
            context.extend_middleware(self, MiddlewareBundle(*of_provider[1:]))

    client = Model(call("n"), middleware=[MiddlewareBundle(*of_client[1:])])
    agent = Agent(client, tools=[numbered(7)], context_providers=[Provider("p")])

    await agent.run("q", session=AgentSession())

    assert of_client.middleware == of_provider.middleware == ["model", "tool", "model"]


def test_a_bundle_shows_its_members_and_refuses_what_is_no_middleware_where_it_is_installed() -> None:
    assert repr(Watch()) == "Watch(note, note, note)"
    with raises(MiddlewareException, "is not middleware"):
        Agent(Model(), middleware=[MiddlewareBundle(5)])  # type: ignore[arg-type]
