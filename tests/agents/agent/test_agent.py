"""Agents as objects: how they are made, what they are called, how their errors and questions reach the caller."""

from __future__ import annotations

import asyncio
import copy
import logging
import pickle
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentSession,
    BaseAgent,
    Content,
    ContextProvider,
    RawAgent,
    UserInputRequiredException,
    resolve_agent_id,
    tool,
)
from agentbench import exceptions as errors
from agentbench.agents.agent.errors import as_agent_error
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient
from agentbench.exceptions import CassetteMissError, ChatClientContentFilterException, ChatClientException
from agentbench.testing import CountingIds, set_runtime_defaults
from tests.agents.agent_runs import BOTH, answer, numbered
from tests.agents.fake_clients import Model, Stranger, call
from tests.parts.errors import raises

# ------------------------------------------------------------------------------------------------------- how it is made


@pytest.mark.parametrize("kind", [Agent, RawAgent])
def test_a_client_is_needed_and_has_to_be_one(kind: Any) -> None:
    for given in ((), (object(),), (Model,), ("gpt",)):
        with pytest.raises(TypeError):
            kind(*given)
    with pytest.raises(TypeError):
        kind(Model(), chat_client=Model())
    assert kind(chat_client=(client := Model())).client is client


def test_explicit_arguments_beat_the_options_and_tools_are_united() -> None:
    mine, same_name, other = numbered(1, "n"), numbered(2, "n"), numbered(3, "o")
    agent = Agent(
        Model(), "a", tools=mine, default_options={"instructions": "b", "tools": [same_name, other], "seed": None}
    )

    assert agent.instructions == "a"
    assert agent.default_options == {"instructions": "a", "tool_choice": "auto", "tools": [mine, other]}
    assert Agent(Model(), default_options={"instructions": "b", "tool_choice": "none"}).default_options == {
        "instructions": "b",
        "tool_choice": "none",
        "tools": [],
    }


def test_the_client_gets_name_and_description_of_its_agent() -> None:
    told: list[Any] = []

    class Listening(Model):
        def _update_agent_name_and_description(self, name: Any, description: Any) -> None:
            told.append((name, description))

    Agent(Listening(), name="a", description="d")

    assert told == [("a", "d")]


def test_an_id_is_made_up_and_known_to_be() -> None:
    set_runtime_defaults(ids=CountingIds())

    assert [(each.id, each.id_is_generated) for each in (Agent(Model()), Agent(Model(), id="mine"))] == [
        ("agent-1", True),
        ("mine", False),
    ]
    assert len(BaseAgent().id) > 0


def test_the_repr_says_what_it_is_made_of() -> None:
    agent = Agent(
        Model(model="m1"),
        name="a",
        id="x1",
        tools=[numbered(1)],
        context_providers=[ContextProvider("p")],
        middleware=[],
    )

    expected = "Agent(id='x1', name='a', client=Model('m1'), tools=[n], context_providers=[ContextProvider])"
    assert repr(agent) == expected
    assert repr(RawAgent(Model(), id="x2")) == "RawAgent(id='x2', client=Model)"
    assert repr(BaseAgent(id="x3", description="d")) == "BaseAgent(id='x3', description='d')"


# ---------------------------------------------------------------------------------------------------- what it counts as


class Foreign:
    """An agent of another library: only what the protocol asks for."""

    id, name, description = "f1", "foreign", None

    def run(self, messages: Any = None, *, stream: bool = False, session: Any = None) -> Any: ...

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        return AgentSession(session_id=session_id)

    def get_session(self, service_session_id: str, *, session_id: str | None = None) -> AgentSession:
        return AgentSession(service_session_id=service_session_id, session_id=session_id)


def test_in_a_graph_an_agent_goes_by_its_name_or_by_an_id_of_its_author() -> None:
    assert resolve_agent_id(Agent(Model(), name="a", id="i")) == "a"
    assert resolve_agent_id(Agent(Model(), id="i")) == "i"
    assert resolve_agent_id(Foreign()) == "foreign"
    unnamed = Foreign()
    unnamed.name = ""
    assert resolve_agent_id(unnamed) == "f1"
    with raises(ValueError, "name"):
        resolve_agent_id(Agent(Model()))


# ----------------------------------------------------------------------------------------------- questions to a person


def asking() -> Any:
    def ask() -> str:
        raise UserInputRequiredException(
            [Content("oauth_consent_request", consent_link="https://x", user_input_request=True)]
        )

    return tool(ask)


async def test_a_request_without_an_id_gets_one_that_updates_and_response_share() -> None:
    def request() -> Content:
        return Content("oauth_consent_request", consent_link="https://x", user_input_request=True)

    response = await Agent(Model(request())).run("q")
    assert all(each.id for each in response.user_input_requests)

    stream = Agent(Model([Content.from_text("see"), request()])).run("q", stream=True)
    ids = [each.id async for update in stream for each in update.user_input_requests]
    final = await stream.get_final_response()
    assert ids
    assert ids == [each.id for each in final.user_input_requests]


@pytest.mark.parametrize(("kind", "stream"), [(Agent, True), (Agent, False), (RawAgent, False)])
async def test_a_run_may_raise_for_a_person_and_the_turn_is_stored_all_the_same(kind: Any, stream: bool) -> None:
    session = AgentSession()
    agent = kind(Model(call("ask", "c9")), tools=[asking()], raise_on_user_input=True)

    with pytest.raises(UserInputRequiredException) as caught:
        await answer(agent, stream=stream, session=session)
    assert [content.id for content in caught.value.contents] == ["c9"]
    assert len(session.state["in_memory"]["messages"]) >= 2


async def test_the_run_decides_before_the_agent_whether_it_raises() -> None:
    quiet = Agent(Model(call("ask")), tools=[asking()], raise_on_user_input=True)
    loud = Agent(Model(call("ask")), tools=[asking()])

    assert (await quiet.run("q", raise_on_user_input=False)).user_input_requests
    with pytest.raises(UserInputRequiredException):
        await loud.run("q", raise_on_user_input=True)


async def test_a_stream_raises_for_a_person_after_its_last_update() -> None:
    stream = Agent(Model(call("ask")), tools=[asking()]).run("q", stream=True, raise_on_user_input=True)
    assert (await stream.__anext__()).contents
    with pytest.raises(UserInputRequiredException):
        await _read(stream)
    assert len(stream.updates) >= 1
    with pytest.raises(UserInputRequiredException):
        await stream.get_final_response()


async def _read(stream: Any) -> None:
    async for _ in stream:
        pass


# ---------------------------------------------------------------------------------------------- clients of other makes


@BOTH
async def test_a_client_of_another_library_is_run_as_it_is(stream: bool) -> None:
    client = Stranger("hello there")
    response = await answer(Agent(client, "be kind", name="a"), stream=stream)

    assert (response.text, response.messages[0].author_name) == ("hello there", "a")
    expected = {"options": {"instructions": "be kind", "tool_choice": "auto"}, **({"stream": True} if stream else {})}
    assert client.asked[0][1] == expected


async def test_tools_for_a_client_without_a_loop_are_warned_of_once(caplog: pytest.LogCaptureFixture) -> None:
    agent = Agent(Stranger(call("n"), call("n")), tools=[numbered(1)])
    response = await agent.run("q")
    await agent.run("q")

    assert [content.type for content in response.messages[0].contents] == ["function_call"]
    [record] = [each for each in caplog.records if each.levelno == logging.WARNING]
    assert "Stranger" in record.getMessage()


async def test_a_client_may_give_its_stream_only_when_it_is_awaited() -> None:
    class Late(Stranger):
        def get_response(self, messages: Any, **given: Any) -> Any:
            return asyncio.sleep(0, super().get_response(messages, **given))

    assert (await answer(Agent(Late("one two")), stream=True)).text == "one two"


# ------------------------------------------------------------------------------------------------------ open and closed


class Opened(Model):
    def __init__(self, log: list[str]) -> None:
        super().__init__()
        self.log = log

    async def __aenter__(self) -> Opened:
        self.log.append("open client")
        return self

    async def __aexit__(self, *given: object) -> None:
        self.log.append("close client")


class OpenedServer:
    name, is_connected, functions = "files", False, ()

    def __init__(self, log: list[str], problem: Exception | None = None) -> None:
        self.log, self.problem = log, problem

    async def connect(self) -> None: ...

    async def __aenter__(self) -> OpenedServer:
        if self.problem:
            raise self.problem
        self.log.append("open server")
        self.is_connected = True
        return self

    async def __aexit__(self, *given: object) -> None:
        self.log.append("close server")


async def test_an_agent_opens_and_closes_its_client_and_servers() -> None:
    log: list[str] = []
    async with Agent(Opened(log), tools=[OpenedServer(log)]) as agent:
        assert log == ["open client", "open server"]
        await agent.run("q")
        await agent.close()
        assert log[2:] == ["close server", "close client"]
    await agent.close()

    assert len(log) == 4


async def test_what_was_opened_is_closed_when_opening_fails() -> None:
    log: list[str] = []
    agent = Agent(Opened(log), tools=[OpenedServer(log, OSError("no"))])

    with raises(OSError, "no"):
        async with agent:
            pass
    assert log == ["open client", "close client"]


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
