"""Limits for everything that a server sends: an error or a warning names the limit, and nothing else is lost."""

from __future__ import annotations

import logging
import sys
from typing import Any

import pytest

from agentbench import ChatResponse, MCPStdioTool, Message, ScriptedChatClient
from agentbench.agents.mcp.inbound import ServerLog
from agentbench.agents.mcp.limits import MCPLimits
from agentbench.agents.mcp.skills_source import MCPSkillsSource
from agentbench.exceptions import MCPLimitError, ToolResultError
from agentbench.testing import TickingClock, set_runtime_defaults
from tests.agents.mcp.servers import raw, text, until
from tests.parts.errors import raises
from tests.parts.nightly import nightly

pytest.importorskip("mcp")

TOOLS = 'answer(request, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})'


def calls(body: str, **options: Any) -> MCPStdioTool:
    """A server with the tool `t`; `body` answers its calls."""
    answering = body.strip().replace("\n", "\n    ")
    return raw(f'if method == "tools/list":\n    {TOOLS}\nelse:\n    {answering}\n', **options)


@pytest.mark.parametrize(
    ("body", "limit"),
    [
        # Each page leads to another one.
        ('answer(request, {"tools": [], "nextCursor": str(time.monotonic_ns())})', "max_pages"),
        (
            'answer(request, {"tools": [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(2000)]})',
            "max_tools",
        ),
        nightly("time.sleep(600)", "connect_s"),
        ('answer(request, {"tools": [], "_meta": {"x": "y" * 3000}})', "max_message_bytes"),
    ],
)
async def test_a_list_over_a_limit_ends_connect_with_an_error_that_names_it(body, limit):
    small = {"connect_s": 0.05} if limit == "connect_s" else {"max_message_bytes": 2000} if "bytes" in limit else {}
    server = raw(body, limits=small)
    with pytest.raises(MCPLimitError) as caught:
        await server.connect()
    assert (caught.value.server, caught.value.limit) == ("raw", limit)
    assert caught.value.value == getattr(server.limits, limit)
    assert not server.is_connected


async def test_a_raised_limit_lets_the_list_in():
    body = 'answer(request, {"tools": [{"name": f"t{n}", "inputSchema": {"type": "object"}} for n in range(1001)]})'
    async with raw(body, limits={"max_tools": 1001}) as server:
        assert len(server.functions) == 1001


@pytest.mark.parametrize("invalid", ['{"name": 7}', '"text"', '{"name": "bad", "inputSchema": "text"}', "None"])
async def test_one_invalid_tool_does_not_hide_the_others(invalid, caplog):
    tools = f'[{invalid}, {{"name": "good"}}, {{"name": "fine", "inputSchema": {{}}}}]'
    body = f"""
if method == "tools/list":
    answer(request, {{"tools": {tools}}})
else:
    answer(request, {{"content": [{{"type": "text", "text": "ok"}}]}})
"""
    async with raw(body) as server:
        assert [each.name for each in server.functions] == ["good", "fine"]
        assert text(await server.functions[0].invoke()) == "ok"
    assert "invalid form" in caplog.text


async def test_a_result_over_a_limit_is_the_error_of_its_call_only():
    body = """
if params["arguments"].get("deep"):
    value = 1
    for _ in range(100):
        value = [value]
    answer(request, {"content": [], "structuredContent": {"a": value}})
else:
    answer(request, {"content": [{"type": "text", "text": "x" * params["arguments"]["size"]}]})
"""
    async with calls(body, limits={"max_message_bytes": 10_000}) as server:
        for arguments, limit in (({"size": 20_000}, "max_message_bytes"), ({"deep": True}, "max_depth")):
            with pytest.raises(MCPLimitError) as caught:
                await server.call_tool("t", **arguments)
            assert caught.value.limit == limit
        assert text(await server.call_tool("t", size=3)) == "xxx"


async def test_long_descriptions_are_shortened_and_large_schemas_left_out(caplog):
    body = """
big = {"type": "object", "properties": {"a": {"enum": ["x" * 5000]}}}
answer(request, {"tools": [{"name": "big", "inputSchema": big},
                           {"name": "long", "description": "y" * 5000, "inputSchema": {"type": "object"}}]})
"""
    async with raw(body, limits={"max_schema_bytes": 4000, "max_description_chars": 100}) as server:
        [long] = server.functions
        assert (long.name, len(long.description)) == ("long", 101)
    assert "'big'" in caplog.text
    assert "max_schema_bytes" in caplog.text
    assert "max_description_chars" in caplog.text


async def test_many_changes_of_a_list_at_once_are_one():
    body = """
if method == "tools/list":
    lists = globals().get("lists", 0) + 1
    answer(request, {"tools": [{"name": f"t{lists}", "inputSchema": {"type": "object"}}]})
elif method == "tools/call":
    for _ in range(500):
        print('{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}', flush=True)
    answer(request, {"content": []})
else:
    answer(request, {})
"""
    async with raw(body, limits={"reload_interval_s": 0.001}) as server:
        await server.call_tool("t1")
        await until(lambda: server.functions[0].name != "t1")
        await server.call_tool("t1")
        assert int(server.functions[0].name[1:]) < 10


async def test_log_lines_of_a_server_do_nothing_to_a_terminal(caplog):
    caplog.set_level(logging.INFO, logger="agentbench")
    body = r"""
note = {"level": "info", "data": "\x1b]0;owned\x07 first\nsecond \u202e"}
print(json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": note}), flush=True)
answer(request, {"content": [{"type": "text", "text": "\x1b[2Jgone"}], "isError": True})
"""
    async with calls(body) as server:
        with pytest.raises(ToolResultError) as caught:
            await server.call_tool("t")
        await until(lambda: "first" in caplog.text)
    assert "\x1b" not in str(caught.value) + caplog.text
    assert "\u202e" not in caplog.text
    assert any(record.getMessage().endswith("first second \\u202e") for record in caplog.records)


def test_a_flood_of_log_lines_is_cut(caplog):
    caplog.set_level(logging.INFO, logger="agentbench")
    before = set_runtime_defaults(clock=TickingClock())
    try:
        log = ServerLog("noisy", MCPLimits(max_log_lines_per_minute=3, max_log_chars=300))
        for number in range(100):
            log.log("info", f"line {number} {'x' * 1000}")
    finally:
        set_runtime_defaults(clock=before.clock)
    lines = [record.getMessage() for record in caplog.records if record.levelno == logging.INFO]
    assert [line.split()[2] for line in lines] == ["0", "1", "2"]
    assert max(map(len, lines)) < 400
    assert caplog.text.count("Log lines are dropped") == 1


SKILLS = """
if method == "resources/list":
    names = ("deep", "long", "ok")
    answer(request, {"resources": [{"uri": f"skill://{name}/SKILL.md", "name": name} for name in names]})
else:
    fronts = {"deep": "a: " + "[" * 12000, "long": "x: " + "y" * 20000, "ok": "name: ok\\ndescription: Fine."}
    name = params["uri"].split("/")[2]
    answer(request, {"contents": [{"uri": params["uri"], "text": "---\\n" + fronts[name] + "\\n---\\nBody."}]})
"""


async def test_a_skill_with_a_hostile_front_matter_is_left_out_and_the_others_stay(caplog):
    async with raw(SKILLS, capabilities={"resources": {}}) as server:
        skills = await MCPSkillsSource(server).get_skills()
    assert [skill.frontmatter.name for skill in skills] == ["ok"]
    assert "nested too deeply" in caplog.text
    assert "20,004 characters" in caplog.text


ASKS = """
print(json.dumps({"jsonrpc": "2.0", "id": "s", "method": "sampling/createMessage", "params": {
    "messages": [{"role": "user", "content": {"type": "text", "text": "?" * params["arguments"].get("size", 1)}}],
    "maxTokens": 1_000_000, "systemPrompt": "Be brief.", "stopSequences": ["END"],
    "temperature": 0.5}}), flush=True)
reply = json.loads(sys.stdin.readline())
answer(request, {"content": [{"type": "text", "text": json.dumps(reply.get("result") or reply["error"]["message"])}]})
"""


async def asked(client: Any, approve: Any, **options: Any) -> str:
    size = options.pop("size", 1)
    async with calls(ASKS, client=client, sampling_approval_callback=approve, **options) as server:
        return text(await server.call_tool("t", size=size))


async def no(params: Any) -> bool:
    return False


@pytest.mark.parametrize("approve", [None, no, lambda _: "yes"])
async def test_a_server_may_ask_the_model_only_if_a_callback_allows_it(approve):
    client = ScriptedChatClient(["Yes."])
    answer = await asked(client, approve)
    assert "Yes." not in answer
    assert client.calls == []


async def test_what_the_model_gets_and_how_much_it_may_answer():
    client = ScriptedChatClient(["Yes."])
    assert "Yes." in await asked(client, lambda _: True, limits={"max_sampling_tokens": 50})
    options = client.calls[0].options
    assert (options["max_tokens"], options["stop"], options["temperature"]) == (50, ["END"], 0.5)
    assert options["instructions"] == "Be brief."


class Plain:
    async def get_response(self, messages: list[Message]) -> ChatResponse:
        return ChatResponse(text=f"To {messages[-1].text}: yes.")


async def test_a_client_that_takes_nothing_but_messages_answers_too():
    assert "To ?: yes." in await asked(Plain(), lambda _: True)


class Silent:
    async def get_response(self, messages: Any, **options: Any) -> Any:
        return None


@pytest.mark.parametrize("client", [None, Silent(), ScriptedChatClient([""])])
async def test_no_client_no_answer_and_no_text_are_errors_with_a_message(client):
    answer = await asked(client, lambda _: True)
    assert '"role"' not in answer
    assert len(answer) > 10


async def test_requests_to_the_model_are_limited_in_size_and_number():
    client = ScriptedChatClient(["Yes."], on_exhausted="repeat_last")
    assert "max_host_payload_size_bytes" in await asked(
        client, lambda _: True, size=5000, max_host_payload_size_bytes=1000
    )
    assert "max_sampling_requests" in await asked(client, lambda _: True, limits={"max_sampling_requests": 0.5})
    assert client.calls == []


@pytest.mark.parametrize(
    ("limits", "error"),
    [({"max_tool": 5}, ValueError), ({"max_tools": 0}, ValueError), ({"max_tools": True}, TypeError),
     ({"max_tools": "5"}, TypeError), ({"connect_s": -1}, ValueError), ({"connect_s": float("nan")}, ValueError)],
)  # fmt: skip
def test_what_is_not_a_limit_is_refused(limits, error):
    with raises(error, next(iter(limits))):
        MCPStdioTool("x", sys.executable, limits=limits)


async def test_a_client_without_options_answers_too():
    class Plain:
        async def get_response(self, messages: Any) -> Any:
            return await ScriptedChatClient([f"read {messages[-1].text}"]).get_response(messages)

    assert "read ?" in await asked(Plain(), lambda _: True)
