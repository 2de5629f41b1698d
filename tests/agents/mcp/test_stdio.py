"""A server as a child process: lists, names, calls, results, skills, what the server begins, and its death."""

from __future__ import annotations

import asyncio
import logging
import os
import re
import subprocess
import sys
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import (
    Agent,
    AgentFrameworkException,
    FunctionInvocationContext,
    MCPSkillsSource,
    MCPStdioTool,
    ScriptedChatClient,
    SecretString,
    SkillsProvider,
    run_sync,
)
from agentbench.agents.mcp.listing import normalize_prefix, tool_name_of
from agentbench.exceptions import MissingExtraError, NestedLoopError, ToolException, ToolExecutionException
from agentbench.testing import Call
from tests.agents.mcp.servers import DEMO, ROOT, adder, demo, named, quiet, raw, text, until
from tests.parts.errors import raises

pytest.importorskip("mcp")


def is_alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat", encoding="ascii") as file:  # a child that was not waited for is gone too
        return file.read().rpartition(")")[2].split()[0] != "Z"


async def test_tools_and_prompts_become_functions():
    async with demo(tool_name_prefix="d_") as server:
        names = [function.name for function in server.functions]
        assert names[:3] == ["d_add", "d_fail", "d_odd-name-here"]
        assert names[-1] == "d_greet"
        add = named(server.functions, "d_add")
        assert add.description == "Add two numbers."
        assert add.parameters()["required"] == ["a"]
        assert text(await add.invoke(arguments={"a": 2, "b": 3})) == "5"
        assert text(await named(server.functions, "d_odd-name-here").invoke()) == "odd"
        assert named(server.functions, "d_nothing").parameters()["properties"] == {}
        greet = named(server.functions, "d_greet")
        assert (greet.parameters()["properties"]["name"]["type"], greet.parameters()["required"]) == (
            "string",
            ["name"],
        )
        assert text(await greet.invoke(arguments={"name": "Ada"})) == "Say hello to Ada."
        assert await server.get_prompt("greet", name="Bob") == "Say hello to Bob."
        assert repr(server).endswith(" stdio, 18 functions)")
    assert not server.is_connected


async def test_an_agent_connects_calls_and_closes():
    server = demo()
    client = ScriptedChatClient([[Call("add", {"a": 20, "b": 22})], "It is 42."])
    async with Agent(client, tools=server) as agent:
        assert agent.mcp_tools == [server]
        response = await agent.run("20 + 22?")
        assert [content.result for message in response.messages for content in message.contents][1] == "42"
        assert server.is_connected
    assert not server.is_connected


async def test_every_kind_of_result():
    async with demo() as server:
        found: Any = await server.call_tool("everything")
        assert [(each.type, each.text or each.uri, each.media_type) for each in found] == [
            ("text", "one", None),
            ("data", "data:audio/wav;base64,AAEC", "audio/wav"),
            ("uri", "demo://a", "text/plain"),
            ("text", "inside", None),
            ("data", "data:application/octet-stream;base64,AAEC", "application/octet-stream"),
        ]
        picture: Any = (await server.call_tool("picture"))[0]
        assert (picture.type, picture.media_type) == ("data", "image/png")
        assert text(await server.call_tool("nothing")) == "null"
        resource = await server.session.read_resource("demo://a")
        assert resource.contents[0].text == "inside"


async def test_own_parsers_get_the_whole_result():
    async with demo(
        parse_tool_results=lambda result: f"{len(result.content)} parts",
        parse_prompt_results=lambda result: f"{len(result.messages)} messages",
    ) as server:
        assert await server.call_tool("everything") == "5 parts"
        assert await server.get_prompt("greet", name="Ada") == "1 messages"
        assert text(await named(server.functions, "everything").invoke()) == "5 parts"


async def test_errors_name_what_failed():
    async with demo() as server:
        with pytest.raises(ToolExecutionException):
            await server.call_tool("fail", text="no such luck")
        with pytest.raises(ToolExecutionException):
            await server.call_tool("missing")
        with pytest.raises(ToolExecutionException) as caught:
            await server.get_prompt("missing")
        assert isinstance(caught.value.__cause__, Exception)
        assert str(caught.value) == str(caught.value.args[0])
    for flag, call in (("load_tools", "call_tool"), ("load_prompts", "get_prompt")):
        options: dict[str, Any] = {flag: False}
        silent = demo(**options)
        with raises(ToolExecutionException, flag):
            await getattr(silent, call)("x")


@pytest.mark.nightly
async def test_only_wanted_lists_are_loaded():
    async with demo(load_tools=False) as server:
        assert [each.name for each in server.functions] == ["greet"]
    async with demo(load_prompts=False, allowed_tools=["add", "odd name/here"]) as server:
        assert [each.name for each in server.functions] == ["add", "odd-name-here"]
        server.allowed_tools = []
        assert server.functions == []


async def test_arguments_of_a_run_are_not_sent_to_a_server_whatever_its_schema_says():
    client = ScriptedChatClient([[Call("arguments", {"city": "Oslo"}), Call("meta", {})], "ok"])
    async with demo() as server:
        agent = Agent(client, tools=server)
        given = {"token": "t0k", "password": "hunter2", "session": object(), "chat_options": {}}
        response = await agent.run("?", function_invocation_kwargs=given)
        results = [content.result for message in response.messages for content in message.contents if content.result]
        assert results[0] == "token= city=Oslo"
        assert "hunter2" not in str(results)
        assert text(await server.call_tool("arguments", city="Rome", options={"a": 1})) == "token= city=Rome"


async def test_runtime_arguments_are_sent_hidden_from_the_model_and_win_over_what_it_writes():
    client = ScriptedChatClient([Call("arguments", {"city": "Oslo"}), "ok"])
    async with demo(runtime_arguments=["token", "unknown"]) as server:
        assert list(named(server.functions, "arguments").parameters()["properties"]) == ["city"]
        given = {"token": SecretString("t0k"), "city": "Rome", "unknown": 1}
        response = await Agent(client, tools=server).run("?", function_invocation_kwargs=given)
        assert response.messages[1].contents[0].result == "token=t0k city=Oslo"
        faked = await named(server.functions, "arguments").invoke(
            arguments={"token": "guessed"}, context=FunctionInvocationContext(None, {}, kwargs={"token": "t0k"})
        )
        assert text(faked) == "token=t0k city="


async def test_approval_by_name():
    async with demo(
        approval_mode={"always_require_approval": ["add", "fail"], "never_require_approval": ["fail", "nothing"]}
    ) as server:
        modes = {each.name: each.approval_mode for each in server.functions}
        assert (modes["add"], modes["fail"], modes["nothing"]) == ("always_require", "always_require", "never_require")
        response = await Agent(ScriptedChatClient([[Call("add", {"a": 1})]]), tools=server).run("?")
        [request] = response.user_input_requests
        assert request.function_call is not None
        assert request.function_call.name == "add"


@pytest.mark.nightly
async def test_a_changed_list_is_followed_by_functions():
    async with demo() as server:
        add = named(server.functions, "add")

        def more() -> list[Any]:
            return [each for each in server.functions if each.name == "more"]

        await server.call_tool("change", kind="add")
        await until(more)
        assert more()[0].parameters()["properties"].keys() == {"size"}
        assert named(server.functions, "add") is add  # what did not change is the same object
        assert text(await more()[0].invoke(arguments={"size": 2})) == "moremore"
        await server.call_tool("change", kind="replace")
        await until(lambda: more() and "unit" in more()[0].parameters()["properties"])
        await server.call_tool("change", kind="remove")
        await until(lambda: not more())


async def test_a_server_asks_the_model():
    client = ScriptedChatClient(["Forty-two."])
    async with demo(client=client, sampling_approval_callback=lambda _: True) as server:
        answer = text(await server.call_tool("ask", question="What is 6 * 7?"))
        assert answer.startswith("assistant ")
        assert answer.endswith(": Forty-two.")
    call = client.calls[-1]
    assert [message.text for message in call.messages][-1] == "What is 6 * 7?"
    assert (call.options["max_tokens"], call.options["temperature"], call.options["stop"]) == (20, 0.5, ["END"])


@pytest.mark.parametrize("client", [None, ScriptedChatClient([ConnectionError("secret details")])])
async def test_a_model_that_is_missing_or_fails_is_an_answer_too(client):
    async with demo(client=client) as server:
        with pytest.raises(ToolExecutionException) as caught:
            await server.call_tool("ask", question="?")
        assert "secret details" not in str(caught.value)


async def test_progress_and_logs_are_logged(caplog):
    caplog.set_level(logging.DEBUG, logger="agentbench")
    async with demo() as server:
        await server.call_tool("progress", steps=2)
        await server.call_tool("log", level="alert", text="the pump is dry")
        await until(lambda: "the pump is dry" in caplog.text)
    records = {record.getMessage(): record.levelno for record in caplog.records}
    assert records["demo: progress: 1 of 2, step 1"] == logging.INFO
    assert records["demo: the pump is dry"] == logging.CRITICAL


@pytest.mark.nightly
async def test_five_hundred_calls_at_once():
    async with demo() as server:
        found = await asyncio.gather(*(server.call_tool("add", a=number) for number in range(500)))
        assert [text(each) for each in found] == [str(number + 1) for number in range(500)]


async def test_a_server_that_dies_fails_its_calls_and_comes_back():
    async with demo() as server:
        slow = [asyncio.ensure_future(server.call_tool("sleep", seconds=600)) for _ in range(20)]
        await asyncio.sleep(0.1)
        with raises(ToolExecutionException, "demo", "die"):
            await server.call_tool("die")
        failed = await asyncio.gather(*slow, return_exceptions=True)
        assert {type(error) for error in failed} == {ToolExecutionException}
        found = await asyncio.gather(*(server.call_tool("add", a=number) for number in range(20)))
        assert text(found[-1]) == "20"
        assert text(await named(server.functions, "add").invoke(arguments={"a": 1})) == "2"


@pytest.mark.nightly
async def test_what_only_reads_is_repeated_when_the_connection_is_lost():
    async with demo() as server:
        add, sleep = (
            asyncio.ensure_future(server.call_tool(name, **given))
            for name, given in (("add", {"a": 1}), ("sleep", {"seconds": 60}))
        )
        await asyncio.sleep(0)
        connection: Any = server._ab_connection
        connection.loop.call_soon_threadsafe(connection.end)
        assert text(await add) == "2"
        with pytest.raises(ToolExecutionException):
            await sleep


async def test_closed_functions_connect_again():
    server = adder()
    async with server:
        add = named(server.functions, "add")
    assert text(await add.invoke(arguments={"a": 1})) == "2"
    await server.close()
    await server.close()
    await server.connect()
    await server.connect()
    assert server.is_connected
    await server.connect(reset=True)
    assert server.is_connected
    await server.close()
    await adder().close()


async def test_connecting_and_closing_in_different_tasks():
    server = adder()
    await asyncio.create_task(server.connect())
    await asyncio.gather(server.connect(), server.connect())
    await asyncio.create_task(server.close())
    assert not server.is_connected
    await asyncio.gather(server.connect(), server.close(), server.connect(), server.close())
    assert not server.is_connected


def test_one_connection_serves_all_event_loops_and_sync_callers():
    server = adder()
    agent = Agent(ScriptedChatClient([[Call("add", {"a": 1})], "2"] * 5), tools=server)
    asyncio.run(server.connect())
    session = server.session
    for _ in range(2):
        assert asyncio.run(agent.run("1 + 1?")).text == "2"

    async def cell() -> str:
        return run_sync(agent.run("1 + 1?"), timeout=30).text  # this blocks the loop in which it was called

    async def opened_in_a_cell() -> str:
        await server.connect(reset=True)
        return await cell()

    assert asyncio.run(cell()) == "2"
    assert server.session is session
    assert asyncio.run(opened_in_a_cell()) == "2"
    assert run_sync(agent.run("1 + 1?")).text == "2"
    asyncio.run(server.close())
    assert not server.is_connected


def test_a_session_of_a_blocked_event_loop_is_a_named_error():
    from mcp.client.session import ClientSession

    async def cell() -> None:
        async with adder().get_mcp_client() as streams, ClientSession(*streams) as session:
            await session.initialize()
            borrowed = MCPStdioTool("borrowed", "unused", session=session)
            agent = Agent(ScriptedChatClient([[Call("add", {"a": 1})], "2"] * 2), tools=borrowed)
            for _ in range(2):
                with pytest.raises(NestedLoopError):
                    run_sync(agent.run("1 + 1?"), timeout=30)
                await borrowed.connect()
            assert (await agent.run("1 + 1?")).text == "2"

    asyncio.run(cell())


@pytest.mark.nightly
async def test_a_caller_that_is_cancelled_leaves_no_process(tmp_path):
    pid_file = tmp_path / "pid"
    code = f"import os, time; open({str(pid_file)!r}, 'w').write(str(os.getpid())); time.sleep(600)"
    server = MCPStdioTool("mute", sys.executable, args=["-c", code], errlog=quiet)
    connecting = asyncio.ensure_future(server.connect())
    await until(lambda: pid_file.exists() and pid_file.read_text())
    connecting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await connecting
    assert not is_alive(int(pid_file.read_text()))
    assert not server.is_connected


async def test_a_cancelled_call_leaves_the_connection():
    async with demo() as server:
        call = asyncio.ensure_future(server.call_tool("sleep", seconds=600))
        await asyncio.sleep(0.1)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert text(await server.call_tool("add", a=1)) == "2"


async def test_a_slow_server_is_given_up_after_the_timeout():
    mute = MCPStdioTool("mute", sys.executable, args=["-c", "import time; time.sleep(600)"], request_timeout=0.3)
    with raises(ToolException, "mute"):
        await mute.connect()


async def enter(server: MCPStdioTool) -> None:
    async with server:
        pass


async def run_with(server: MCPStdioTool) -> None:
    await Agent(ScriptedChatClient(["x"]), tools=server).run("?")


@pytest.mark.parametrize("use", [MCPStdioTool.connect, enter, run_with])
async def test_a_missing_program_is_the_same_error_everywhere(use):
    server = MCPStdioTool("gone", "/no/such/program", args=["--api-key", "hunter2", "--token=abc", "serve"])
    with raises(ToolException, "token=") as caught:
        await use(server)
    assert "hunter2" not in str(caught.value)
    assert isinstance(caught.value, AgentFrameworkException)
    assert not server.is_connected


async def test_garbage_on_its_output_is_a_failed_connection(caplog):
    caplog.set_level(logging.CRITICAL, logger="mcp")
    server = MCPStdioTool("noise", sys.executable, args=["-c", "print('Loading plugins …')"], errlog=quiet)
    with raises(ToolException, "noise"):
        await server.connect()
    assert not server.is_connected


async def test_the_process_gets_its_environment_and_folder(tmp_path):
    async with demo(env={"PLACE": "Bergen"}, cwd=str(tmp_path)) as server:
        assert text(await server.call_tool("environment", name="PLACE")) == "Bergen"


async def test_a_session_that_is_open_is_used_and_left_open():
    async with demo() as server:
        from mcp.client.session import ClientSession

        assert isinstance(server.session, ClientSession)
        borrowed = MCPStdioTool("borrowed", "unused", session=server.session)
        async with borrowed:
            assert text(await borrowed.call_tool("add", a=1)) == "2"
        assert text(await server.call_tool("add", a=2)) == "3"


@pytest.mark.parametrize(
    ("options", "error"), [({"approval_mode": "ask"}, ValueError), ({"allowed_tools": "add"}, TypeError)]
)
def test_what_makes_no_server(options, error):
    with raises(error, next(iter(options))):
        demo(**options)


LEAVES_IT_OPEN = """
import sys
from agentbench import MCPStdioTool, run_sync
code = "import os, sys; open(sys.argv[1], 'w').write(str(os.getpid())); import runpy; sys.argv[1:] = ['stdio'];" \\
       "runpy.run_path({demo!r}, run_name='__main__')"
server = MCPStdioTool("demo", sys.executable, args=["-c", code, {pid_file!r}])
run_sync(server.connect())
assert server.is_connected
"""


@pytest.mark.nightly
def test_a_program_that_ends_without_closing_leaves_no_server(tmp_path):
    pid_file = tmp_path / "pid"
    program = LEAVES_IT_OPEN.format(demo=str(DEMO), pid_file=str(pid_file))
    subprocess.run([sys.executable, "-c", program], check=True, cwd=ROOT, stderr=subprocess.DEVNULL, timeout=60)
    pid, ends = int(pid_file.read_text()), time.monotonic() + 20
    while is_alive(pid):
        assert time.monotonic() < ends
        time.sleep(0.02)


async def test_without_the_package_it_says_what_to_install(monkeypatch):
    server = demo()
    for name in [name for name in sys.modules if name.partition(".")[0] == "mcp"]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "mcp", None)
    for use in (MCPStdioTool.connect, enter, run_with):
        with raises(MissingExtraError, extra="mcp"):
            await use(server)


@pytest.mark.parametrize(
    ("name", "prefix", "exposed"),
    [
        ("read file/now", None, "read-file-now"),
        ("_read", None, "_read"),
        ("_read", "fs", "fs_read"),
        (".-read.", "my fs_.-", "my-fs_read."),
        ("read", "___", "read"),
        ("größe", "", "gr--e"),
    ],
)
def test_names(name, prefix, exposed):
    assert tool_name_of(name, normalize_prefix(prefix)).exposed == exposed


@given(st.text(min_size=1), st.text())
def test_exposed_names_have_only_characters_that_models_take(name, prefix):
    assert re.fullmatch(r"[A-Za-z0-9_.-]*", tool_name_of(name, normalize_prefix(prefix)).exposed)


pytest.importorskip("yaml")


async def test_an_agent_loads_a_skill_of_a_server(caplog):
    async with demo() as server:
        script = [
            Call("load_skill", {"skill_name": "tides"}),
            Call("read_skill_resource", {"skill_name": "tides", "resource_name": "table.csv"}),
            "Noon.",
        ]
        client = ScriptedChatClient(script)
        agent = Agent(client, context_providers=[SkillsProvider(MCPSkillsSource(server))])
        response = await agent.run("High water in Bergen?")
    assert "About tides." in str(client.calls[0].options["instructions"])
    results = [content.result for message in response.messages for content in message.contents if content.result]
    assert "Read table.csv." in str(results[0])
    assert results[1] == "Bergen,12:00"
    assert "skill://broken/SKILL.md" in caplog.text  # those that cannot be read are left out, and named
    assert "skill://picture/SKILL.md" in caplog.text


async def test_a_server_without_resources_has_no_skills():
    async with raw('answer(request, {"tools": []})') as server:
        assert await MCPSkillsSource(server).get_skills() == []
