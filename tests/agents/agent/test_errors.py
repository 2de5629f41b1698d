"""Errors of a chat client that leave an agent, tables of section "both families"."""

from __future__ import annotations

import copy
import logging
import pickle

import pytest

from agentbench import exceptions as errors
from agentbench.agents.agent.errors import as_agent_error
from agentbench.exceptions import CassetteMissError, ChatClientContentFilterException, ChatClientException

PAIRS = [
    (errors.ChatClientInvalidAuthException, errors.AgentInvalidAuthException),
    (errors.ChatClientInvalidRequestException, errors.AgentInvalidRequestException),
    (errors.ChatClientInvalidResponseException, errors.AgentInvalidResponseException),
    (errors.ChatClientContentFilterException, errors.AgentContentFilterException),
]


class Filtered(ChatClientContentFilterException):
    """An error of a provider's client, with facts of its own."""

    def __init__(self, message: str, param: str) -> None:
        self.param = param
        super().__init__(message)


@pytest.mark.parametrize(("client_side", "agent_side"), PAIRS)
def test_an_error_is_caught_by_the_classes_of_both_families(
    client_side: type[ChatClientException], agent_side: type[errors.AgentException]
) -> None:
    both = as_agent_error(client_side("no"))

    assert isinstance(both, client_side)
    assert isinstance(both, agent_side)
    assert str(both) == "no"


def test_an_error_of_a_provider_keeps_its_class_its_name_and_its_facts() -> None:
    both = as_agent_error(Filtered("no", "prompt"))

    assert isinstance(both, Filtered)
    assert isinstance(both, errors.AgentContentFilterException)
    assert type(both).__name__ == "Filtered"
    assert vars(both)["param"] == "prompt"


@pytest.mark.parametrize(
    "error", [ChatClientException("slow down"), CassetteMissError("not recorded", path="c", request={})]
)
def test_what_has_no_twin_among_agents_stays_itself(error: ChatClientException) -> None:
    assert as_agent_error(error) is error


def test_an_error_of_both_families_stays_itself() -> None:
    both = as_agent_error(errors.ChatClientInvalidAuthException("no"))

    assert as_agent_error(both) is both


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
