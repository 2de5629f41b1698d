"""Agents as servers of the Model Context Protocol, asked by the client of the installed package."""

from __future__ import annotations

import importlib
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

import agentbench
from agentbench import Agent, tool
from agentbench.agents.agent.as_tool import _server_with
from agentbench.exceptions import MissingExtraError
from tests.agents.fake_clients import Model, call
from tests.parts.errors import raises

mcp = pytest.importorskip("mcp")


@asynccontextmanager
async def asked(server: Any) -> AsyncIterator[Any]:
    """A client that talks to the server, within this process."""
    if hasattr(mcp, "Client"):  # 2.x
        async with mcp.Client(server) as client:
            yield client
    else:
        connected = importlib.import_module("mcp.shared.memory").create_connected_server_and_client_session
        async with connected(server) as client:
            yield client


def failed(result: Any) -> bool:
    return bool(result.is_error if hasattr(result, "is_error") else result.isError)


async def test_a_server_offers_the_agent_as_its_tool() -> None:
    agent = Agent(Model(), name="My helper", description="Helps.")
    async with asked(agent.as_mcp_server()) as client:
        [offered] = (await client.list_tools()).tools

    assert (offered.name, offered.description) == ("My_helper", "Helps.")
    schema = offered.input_schema if hasattr(offered, "input_schema") else offered.inputSchema
    assert (schema["required"], list(schema["properties"])) == (["task"], ["task"])


async def test_a_call_of_the_tool_runs_the_agent() -> None:
    client = Model("first", "second")
    async with asked(Agent(client, name="helper").as_mcp_server()) as session:
        results = [await session.call_tool("helper", {"task": text}) for text in ("one", "two")]

    assert [result.content[0].text for result in results] == ["first", "second"]
    assert not any(map(failed, results))
    assert [each.texts for each in client.asked] == [["one"], ["two"]]


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("other", {"task": "x"}, '"other"'),
        ("helper", {}, "task: required"),
        ("helper", {"task": 1}, "task: expected string"),
        ("helper", {"task": "x", "more": 1}, "more"),
    ],
)
async def test_the_answer_to_a_wrong_call_names_the_mistake(name: str, arguments: dict[str, Any], said: str) -> None:
    client = Model()
    async with asked(Agent(client, name="helper").as_mcp_server()) as session:
        result = await session.call_tool(name, arguments)

    assert failed(result)
    assert said in result.content[0].text
    assert client.asked == []


@pytest.mark.parametrize("error", [ValueError("secret detail"), TypeError("secret detail")])
async def test_clients_of_a_server_do_not_learn_why_the_agent_failed(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    async with asked(Agent(Model(error), name="helper").as_mcp_server()) as session:
        result = await session.call_tool("helper", {"task": "x"})

    assert failed(result)
    assert "secret" not in result.content[0].text
    assert [type(error).__name__ in each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == [True]


async def test_a_question_to_a_person_is_an_error_that_says_so() -> None:
    @tool(approval_mode="always_require")
    def danger() -> str:
        return "did"

    async with asked(Agent(Model(call("danger")), name="helper", tools=[danger]).as_mcp_server()) as session:
        result = await session.call_tool("helper", {"task": "x"})

    assert failed(result)
    assert "danger" in result.content[0].text


async def test_a_server_says_what_it_is_and_keeps_to_its_lifespan() -> None:
    log: list[str] = []

    @asynccontextmanager
    async def lifespan(server: Any) -> AsyncIterator[dict[str, Any]]:
        log.append(f"began {server.name}")
        yield {}
        log.append("ended")

    agent = Agent(Model(), name="helper")
    server = agent.as_mcp_server(server_name="S", version="9", instructions="Ask.", lifespan=lifespan)
    async with asked(server) as session:
        await session.list_tools()

    assert log == ["began S", "ended"]
    options = server.create_initialization_options()
    assert (options.server_name, options.server_version, options.instructions) == ("S", "9", "Ask.")
    own = agent.as_mcp_server().create_initialization_options().server_version
    assert own == agentbench.__version__


def test_an_agent_without_a_name_cannot_be_served() -> None:
    with raises(ValueError, "name"):
        Agent(Model()).as_mcp_server()


def test_without_the_package_the_error_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp.types", None)

    with raises(MissingExtraError, extra="mcp"):
        Agent(Model(), name="helper").as_mcp_server()


class ServerOfOne:
    """What matters of the 1.x class: handlers are kept by the class of the request."""

    def __init__(self, name: str, **facts: Any) -> None:
        self.name, self.facts = name, facts
        self.request_handlers: dict[Any, Any] = {}

    def list_tools(self) -> Any: ...


class Types:
    ServerResult = staticmethod(lambda result: ("result", result))
    ListToolsRequest, CallToolRequest = "list", "call"


class Request:
    class params:  # noqa: N801 - an attribute of a request
        name, arguments = "helper", {"task": "x"}


async def test_the_first_major_version_stores_handlers_by_request() -> None:
    async def list_tools(_: Any, params: Any) -> Any:
        return ["helper"]

    async def call_tool(_: Any, params: Any) -> Any:
        return [params.name, params.arguments]

    server = _server_with(ServerOfOne, Types, "S", {"version": "1"}, list_tools, call_tool)

    assert (server.name, server.facts) == ("S", {"version": "1"})
    assert await server.request_handlers["list"](Request()) == ("result", ["helper"])
    assert await server.request_handlers["call"](Request()) == ("result", ["helper", {"task": "x"}])
