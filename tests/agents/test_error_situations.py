"""The errors of a run as a person catches them: from the most precise class to the root."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentbench.agents.agent.agent import Agent
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient
from agentbench.agents.model.client import BaseChatClient
from agentbench.exceptions import (
    AgentContentFilterException,
    AgentFrameworkException,
    AgentInvalidAuthException,
    AgentInvalidRequestException,
    AgentInvalidResponseException,
    ChatClientContentFilterException,
    ChatClientException,
    ChatClientInvalidAuthException,
    ChatClientInvalidRequestException,
    ChatClientInvalidResponseException,
)


class Answering(BaseChatClient[Any]):
    """Answers with whatever it was given, also with what is no answer."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer

    async def _inner_get_response(self, **_: Any) -> Any:
        return self._answer


class Remote(Answering):
    NEEDS_NETWORK = True

    def service_url(self) -> str:
        return "https://models.example.com"


async def test_the_network_is_refused_while_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_OFFLINE", "1")
    with pytest.raises(ChatClientException, match="AGENTBENCH_OFFLINE"):
        await Remote("").get_response("q")


# ------------------------------------------------------------------------------------------------- the ladder of a user


async def outcome(run: Callable[[], Awaitable[Any]]) -> str:
    """What a person writes around a run: from the most precise error to the root, with one `try` inside another."""
    try:
        try:
            await run()
        except ChatClientInvalidAuthException:
            return "refresh the credentials"
        except AgentContentFilterException:
            return "say sorry"
    except AgentFrameworkException as exc:
        return f"log: {exc}"
    return "fine"


PAIRS = [
    (ChatClientInvalidAuthException, AgentInvalidAuthException, "refresh the credentials"),
    (ChatClientContentFilterException, AgentContentFilterException, "say sorry"),
    (ChatClientInvalidRequestException, AgentInvalidRequestException, "log: m"),
    (ChatClientInvalidResponseException, AgentInvalidResponseException, "log: m"),
]


@pytest.mark.parametrize(("clients", "agents", "done"), PAIRS, ids=lambda value: getattr(value, "__name__", value))
async def test_a_nested_ladder_around_a_run_meets_the_right_rung(
    clients: type[ChatClientException], agents: type[Exception], done: str
) -> None:
    async def run() -> Any:
        return await Agent(ScriptedChatClient([clients("m")])).run("q", stream=True).get_final_response()

    assert await outcome(run) == done
    for family in (clients, agents):
        with pytest.raises(family) as caught:
            await run()
        assert type(caught.value.__cause__) is clients
        assert str(caught.value) == "m"


async def test_a_run_that_is_well_meets_no_rung() -> None:
    assert await outcome(lambda: Agent(ScriptedChatClient(["a"])).run("q")) == "fine"


async def test_cancelling_a_run_is_no_error_of_the_tree() -> None:
    task = asyncio.ensure_future(outcome(lambda: Agent(ScriptedChatClient(["a"], delay=60)).run("q", stream=False)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
