"""Errors of a chat client as a person catches them around a run of an agent."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentbench import exceptions as errors
from agentbench.agents.agent.agent import Agent
from agentbench.agents.agent.errors import as_agent_error
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient
from agentbench.exceptions import CassetteMissError, ChatClientContentFilterException, ChatClientException


class Filtered(ChatClientContentFilterException):
    """An error of a provider's client, with facts of its own."""

    def __init__(self, message: str, param: str) -> None:
        self.param = param
        super().__init__(message)


async def outcome(run: Callable[[], Awaitable[Any]]) -> str:
    """What a person writes around a run: from the most precise error to the root, with one `try` inside another."""
    try:
        try:
            await run()
        except errors.ChatClientInvalidAuthException:
            return "refresh the credentials"
        except errors.AgentContentFilterException:
            return "say sorry"
    except errors.AgentFrameworkException as exc:
        return f"log: {exc}"
    return "fine"


PAIRS = [
    (errors.ChatClientInvalidAuthException, errors.AgentInvalidAuthException, "refresh the credentials"),
    (errors.ChatClientContentFilterException, errors.AgentContentFilterException, "say sorry"),
    (errors.ChatClientInvalidRequestException, errors.AgentInvalidRequestException, "log: m"),
    (errors.ChatClientInvalidResponseException, errors.AgentInvalidResponseException, "log: m"),
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


def test_an_error_of_a_provider_keeps_its_class_its_name_and_its_facts() -> None:
    both = as_agent_error(Filtered("no", "prompt"))

    assert isinstance(both, Filtered)
    assert isinstance(both, errors.AgentContentFilterException)
    assert type(both).__name__ == "Filtered"
    assert vars(both)["param"] == "prompt"
    assert as_agent_error(both) is both


@pytest.mark.parametrize(
    "error", [ChatClientException("slow down"), CassetteMissError("not recorded", path="c", request={})]
)
def test_what_has_no_twin_among_agents_stays_itself(error: ChatClientException) -> None:
    assert as_agent_error(error) is error


def test_copies_are_of_both_families_and_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    both = as_agent_error(Filtered("no", "prompt"))
    caplog.clear()

    with caplog.at_level(logging.DEBUG, "agentbench"):
        twins = [copy.copy(both), pickle.loads(pickle.dumps(both))]

    for twin in twins:
        assert type(twin) is type(both)
        assert (twin.args, vars(twin)["param"]) == (both.args, "prompt")
    assert caplog.records == []


def test_the_error_is_logged_once(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG, "agentbench"):
        as_agent_error(errors.ChatClientInvalidAuthException("no"))

    assert [record.message for record in caplog.records] == ["no"]
