"""A server behind HTTP, and one behind a WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest

from agentbench import Agent, MCPStreamableHTTPTool, MCPWebsocketTool, ScriptedChatClient
from agentbench.exceptions import ToolException, ToolExecutionException
from agentbench.testing import Call
from tests.agents.mcp.servers import demo_process, named, start, text, until
from tests.parts.errors import raises
from tests.servers.process import ServerProcess, free_port

pytest.importorskip("mcp")
pytest.importorskip("uvicorn")


@pytest.fixture(scope="module")
def http() -> Iterator[ServerProcess]:
    with demo_process("http") as server:
        yield server


@pytest.fixture(scope="module")
def websocket() -> Iterator[ServerProcess]:
    with demo_process("websocket") as server:
        yield server


def over_http(server: ServerProcess, **options: Any) -> MCPStreamableHTTPTool:
    return MCPStreamableHTTPTool("web", f"http://127.0.0.1:{server.port}/mcp", **options)


async def test_calls_over_http(http):
    async with over_http(http, tool_name_prefix="web") as server:
        assert text(await named(server.functions, "web_add").invoke(arguments={"a": 1})) == "2"
        found = await asyncio.gather(*(server.call_tool("add", a=number) for number in range(100)))
        assert [text(each) for each in found] == [str(number + 1) for number in range(100)]
        assert await server.get_prompt("greet", name="Ada") == "Say hello to Ada."


async def test_calls_over_a_websocket(websocket):
    async with MCPWebsocketTool("socket", f"ws://127.0.0.1:{websocket.port}") as server:
        assert text(await server.call_tool("add", a=1)) == "2"
        found = await asyncio.gather(*(server.call_tool("add", a=number) for number in range(100)))
        assert [text(each) for each in found] == [str(number + 1) for number in range(100)]
        await server.call_tool("change", kind="add")
        await until(lambda: any(each.name == "more" for each in server.functions))


async def test_a_server_asks_a_person_over_both(http, websocket):
    for make, address in (
        (MCPStreamableHTTPTool, f"http://127.0.0.1:{http.port}/mcp"),
        (MCPWebsocketTool, f"ws://127.0.0.1:{websocket.port}"),
    ):
        async with make("asking", address) as server:
            client = ScriptedChatClient([Call("choose"), "Done."])
            agent = Agent(client, tools=server)
            session = agent.create_session()
            [request] = (await agent.run("?", session=session)).user_input_requests
            answer = request.to_function_approval_response(True, arguments={"day": "Friday"})
            assert (await agent.run(answer, session=session)).text == "Done."
            results = [one for one in client.calls[-1].messages[-1].contents if one.type == "function_result"]
            assert results[-1].result == "accept: Friday"


async def test_headers_of_a_run_go_with_its_calls_only(http):
    seen = []

    def headers(run: dict[str, Any]) -> dict[str, str]:
        seen.append(set(run))
        return {"X-Who": run["who"]} if "who" in run else {}

    async with over_http(http, header_provider=headers) as server:
        client = ScriptedChatClient([[Call("header", {})], "ok"] * 2)
        agent = Agent(client, tools=server)
        response = await agent.run("?", function_invocation_kwargs={"who": "Ada"})
        assert response.messages[1].contents[0].result == "Ada"
        response = await agent.run("?")
        assert response.messages[1].contents[0].result == "None"
        assert seen == [{"who"}, set()]
        every = [server.call_tool("header", who=str(number)) for number in range(50)]
        assert [text(each) for each in await asyncio.gather(*every)] == [str(number) for number in range(50)]
        assert server._ab_headers_of == {}


async def test_the_users_own_http_client_is_used_and_left_open(http):
    from agentbench.agents.mcp.package import new_http_client

    async with new_http_client(lambda: None) as client:
        client.headers["X-Who"] = "everybody"
        server = over_http(http, http_client=client, header_provider=lambda run: {"X-Who": "Ada"} if run else {})
        for _ in range(2):
            async with server:
                assert text(await server.call_tool("header")) == "everybody"
                assert text(await server.call_tool("header", who=1)) == "Ada"
        assert len(client.event_hooks["request"]) == 1
        assert not client.is_closed


@pytest.mark.nightly
async def test_a_server_that_was_started_anew_is_found_again():
    with demo_process("http") as process:
        async with over_http(process) as server:
            add = named(server.functions, "add")
            assert text(await add.invoke(arguments={"a": 1})) == "2"
            process.stop()
            with raises(ToolExecutionException, "web"):
                await asyncio.wait_for(server.call_tool("nothing"), 20)
            start(process, "http")
            assert text(await asyncio.wait_for(add.invoke(arguments={"a": 2}), 20)) == "3"
            assert text(await asyncio.wait_for(server.call_tool("nothing"), 20)) == "null"


async def test_a_server_that_dies_in_a_call():
    with demo_process("http") as process:
        async with over_http(process) as server:
            with pytest.raises(ToolExecutionException):
                await asyncio.wait_for(server.call_tool("die"), 20)


@pytest.mark.nightly
async def test_a_websocket_that_closes_in_a_call_is_opened_again():
    with demo_process("websocket") as process:
        async with MCPWebsocketTool("socket", f"ws://127.0.0.1:{process.port}") as server:
            with raises(ToolExecutionException, "die"):
                await asyncio.wait_for(server.call_tool("die"), 20)
            process.stop()
            start(process, "websocket")
            assert text(await server.call_tool("add", a=1)) == "2"


@pytest.mark.parametrize("kind", [MCPStreamableHTTPTool, MCPWebsocketTool])
async def test_nobody_at_the_port(kind):
    scheme = "http" if kind is MCPStreamableHTTPTool else "ws"
    server = kind("gone", f"{scheme}://ada:hunter2@127.0.0.1:{free_port()}/mcp?key=abc")
    with pytest.raises(ToolExecutionException) as caught:
        await server.connect()
    assert "'gone' (" in str(caught.value)
    assert "hunter2" not in str(caught.value)
    assert "abc" not in str(caught.value)
    with pytest.raises(ToolException):
        async with server:
            pass
    assert not server.is_connected


async def test_what_the_websocket_does_not_know(websocket):
    server = MCPWebsocketTool("socket", f"ws://127.0.0.1:{websocket.port}", colour="red")
    with raises(ToolExecutionException, "colour"):
        await server.connect()
