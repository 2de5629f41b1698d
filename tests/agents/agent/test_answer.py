"""What an agent answers, and how its runs fail."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench import Agent, AgentResponse, ChatResponse, ContextProvider, Message
from agentbench.exceptions import AgentInvalidResponseException
from tests.agents.agent_runs import BOTH, Notes, answer
from tests.agents.fake_clients import Model
from tests.parts.errors import raises

# ------------------------------------------------------------------------------------------------------ what comes back


async def test_the_response_has_everything_of_the_answer_and_the_agents_id() -> None:
    given: Any = ChatResponse(text="hi", response_id="r", finish_reason="stop", usage_details={"input_token_count": 3})
    response = await Agent(Model(given), name="a", id="a1").run("q")

    assert (response.text, response.response_id, response.agent_id) == ("hi", "r", "a1")
    assert (response.finish_reason, response.usage_details) == ("stop", {"input_token_count": 3})
    assert isinstance(response.raw_representation, ChatResponse)


async def test_updates_are_signed_and_carry_the_agents_id() -> None:
    agent = Agent(Model("one two"), id="a1")
    updates = [update async for update in agent.run("q", stream=True)]

    assert [update.text for update in updates] == ["one ", "two"]
    assert {(update.author_name, update.agent_id) for update in updates} == {("UnnamedAgent", "a1")}


async def test_an_author_that_is_there_stays_and_the_clients_answer_is_not_changed() -> None:
    given: Any = ChatResponse(messages=[Message("assistant", "a", author_name="x"), Message("assistant", "b")])
    response = await Agent(Model(given), name="me").run("q")

    assert [message.author_name for message in response.messages] == ["x", "me"]
    assert [message.author_name for message in given.messages] == ["x", None]
    assert response.messages is not given.messages


async def test_a_signed_message_is_in_all_else_as_the_client_gave_it() -> None:
    given = Message(
        "assistant",
        "a",
        message_id="m",
        delta=True,
        timestamp=1.5,
        usages={"total_token_count": 1},
        additional_properties={"k": 1},
        raw_representation=object(),
    )
    [signed] = (await Agent(Model([given]), name="me").run("q")).messages

    differing = {name for name in Message.__slots__ if getattr(signed, name) != getattr(given, name)}
    assert differing == {"author_name"}
    assert signed.contents is not given.contents
    assert signed.additional_properties is not given.additional_properties


@pytest.mark.parametrize("where", ["agent", "run", "client"])
async def test_the_value_is_read_in_the_form_of_agent_run_or_client(where: str) -> None:
    schema = {"type": "object"}
    given: Any = ChatResponse(text='{"a": 1}', response_format=schema if where == "client" else None)
    defaults = {"response_format": schema} if where == "agent" else {}
    options = {"response_format": schema} if where == "run" else {}
    response = await answer(Agent(Model(given), default_options=defaults), stream=True, options=options)

    assert response.value == {"a": 1}


class Broken:
    def __init__(self, gives: Any) -> None:
        self.gives = gives

    def get_response(self, messages: Any, **given: Any) -> Any:
        return asyncio.sleep(0, self.gives)


@pytest.mark.parametrize("gives", [None, AgentResponse(text="x")])
async def test_a_client_that_answers_with_no_response_is_named(gives: Any) -> None:
    with raises(AgentInvalidResponseException, "Broken"):
        await Agent(Broken(gives)).run("q")


# -------------------------------------------------------------------------------------------------------------- failing


@BOTH
async def test_when_the_client_fails_providers_get_the_error_in_reverse_order(stream: bool) -> None:
    log: list[str] = []
    agent = Agent(Model(ValueError("no")), context_providers=[Notes("p1", log), Notes("p2", log)])

    with raises(ValueError, "no"):
        await answer(agent, stream=stream)
    assert log == ["before p1", "before p2", "error p2: no", "error p1: no"]


@BOTH
async def test_a_provider_that_fails_before_the_run_does_not_get_its_own_error(stream: bool) -> None:
    log: list[str] = []
    client = Model()
    agent = Agent(client, context_providers=[Notes("p1", log), Notes("p2", log, fails=True), Notes("p3", log)])

    with raises(ValueError, "before"):
        await answer(agent, stream=stream)
    assert log == ["before p1", "before p2", "error p1: before"]
    assert client.asked == []


async def test_a_failing_on_error_is_logged_and_the_runs_error_is_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Bad(ContextProvider):
        async def on_error(self, **given: Any) -> None:
            raise KeyError("secret")

    log: list[str] = []
    agent = Agent(Model(ValueError("no")), context_providers=[Notes("p1", log), Bad("bad")])

    with raises(ValueError, "no"):
        await agent.run("q")
    assert log == ["before p1", "error p1: no"]
    [record] = [each for each in caplog.records if each.levelname == "ERROR"]
    assert "KeyError" in record.getMessage()
    assert "secret" not in record.getMessage()


async def test_a_forgotten_await_is_reported_once_by_a_name_that_users_know() -> None:
    run: Any = Agent(Model()).run
    with pytest.warns(RuntimeWarning) as caught:
        run("q")

    assert [str(each.message) for each in caught] == ["coroutine 'Agent.run' was never awaited"]
