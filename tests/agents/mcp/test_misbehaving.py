"""Servers that lie, stall or lead in circles, and results of which nothing is lost."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agentbench import Agent, Content, MCPStdioTool, Message, ScriptedChatClient
from agentbench.agents.clients.openai.chat_messages import result_text
from agentbench.agents.clients.openai.responses_requests import response_input
from agentbench.exceptions import ToolExecutionException, ToolResultError
from agentbench.testing import Call
from tests.agents.mcp.servers import raw, text, until
from tests.parts.errors import raises

pytest.importorskip("mcp")


async def test_a_circle_of_pages_ends(caplog):
    async with raw("""
answer(request, {"tools": [{"name": "t" + params.get("cursor", "0"), "inputSchema": {"type": "object"}}],
                 "nextCursor": {"0": "1", "1": "2", "2": "1"}[params.get("cursor", "0")]})
""") as server:
        assert [each.name for each in server.functions] == ["t0", "t1", "t2"]
        assert server.functions[0].parameters() == {"type": "object", "properties": {}}
    assert "repeat" in caplog.text


async def test_tools_that_cannot_be_used_are_left_out_and_named(caplog):
    async with raw("""
schema = {"type": "object"}
answer(request, {"tools": [{"name": "a b", "inputSchema": schema}, {"name": "a/b", "inputSchema": schema},
                           {"name": "", "inputSchema": schema}, {"name": "good", "inputSchema": schema}]})
""") as server:
        assert [each.name for each in server.functions] == ["a-b", "good"]
    assert "two tools named 'a-b'" in caplog.text
    assert "The tool '' of the server raw is ignored" in caplog.text


async def test_a_server_that_can_nothing_is_not_asked_for_lists():
    async with raw('answer(request, error={"code": 1, "message": "asked"})', capabilities={}) as server:
        assert server.functions == []


async def test_a_list_of_the_wrong_form_is_a_failed_connection():
    server = raw('answer(request, {"tools": "all of them"})')
    with raises(ToolExecutionException, "raw"):
        await server.connect()
    assert not server.is_connected


async def test_an_error_without_words_is_told_so():
    async with raw("""
if method == "tools/list":
    answer(request, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
else:
    answer(request, {"content": [], "isError": True})
""") as server:
        with raises(ToolResultError, "'t'"):
            await server.functions[0].invoke()


async def test_answers_to_nobody_and_half_answers_do_not_disturb(caplog):
    caplog.set_level(logging.CRITICAL, logger="mcp")
    async with raw("""
if method == "tools/list":
    answer(request, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
else:
    answer({"id": 9999}, {"content": []})
    print('{"jsonrpc": "2.0", "method": "notifications/surprise", "params": {}}', flush=True)
    print('{"half": ', flush=True)
    print('{"jsonrpc": "2.0", "id": ' + "9" * 5000 + ', "result": nul}', flush=True)
    answer(request, {"content": [{"type": "text", "text": "fine"}]})
""") as server:
        assert text(await server.functions[0].invoke()) == "fine"


@pytest.mark.parametrize(
    ("rest", "problem"), [("[" * 400 + "]" * 400, "max_depth"), ("nul", "cannot be parsed")], ids=["deep", "not JSON"]
)
async def test_an_answer_that_cannot_be_read_is_an_error_of_its_call(caplog, rest: str, problem: str):
    caplog.set_level(logging.CRITICAL, logger="mcp")
    async with raw(f"""
if method == "tools/list":
    answer(request, {{"tools": [{{"name": "t", "inputSchema": {{"type": "object"}}}}]}})
else:
    print('{{"jsonrpc": "2.0", "id": %s, "result": {{"a": {rest}}}}}' % request["id"], flush=True)
""") as server:
        with pytest.raises(ToolExecutionException, match=problem):
            await server.call_tool("t")


@pytest.mark.nightly
async def test_a_call_without_an_answer_is_given_up_after_the_timeout():
    async with raw("""
if method == "tools/list":
    answer(request, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
else:
    time.sleep(600)
""", request_timeout=1) as server:  # fmt: skip
        with pytest.raises(ToolExecutionException):
            await server.functions[0].invoke()


async def test_a_server_without_ping_is_asked_once(caplog):
    async with raw("""
if method == "ping":
    answer(request, error={"code": -32601, "message": "no"})
else:
    answer(request, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
""") as server:
        await server.load_tools()
        first = server.session
        await server.load_tools()
        assert server.session is first


async def test_what_a_tool_is_listed_with_is_echoed_and_names_are_not_trusted():
    async with raw("""
if method == "tools/list":
    answer(request, {"tools": [{"name": "t", "inputSchema": {"type": "object"}, "_meta": {"version": "7"},
                                "description": "x" * 9}]})
else:
    answer(request, {"content": [{"type": "text", "text": json.dumps(params.get("_meta"), sort_keys=True)}]})
""") as server:
        assert '"version": "7"' in text(await server.functions[0].invoke())


@pytest.mark.parametrize(("level", "sent"), [(logging.DEBUG, "debug"), (15, "info"), (99, "emergency")])
async def test_a_level_of_our_log_reaches_a_server_that_logs(level, sent):
    logger = logging.getLogger("agentbench")
    before = logger.level
    logger.setLevel(level)
    try:
        async with raw(
            """
if method == "logging/setLevel":
    wanted = params["level"]
    answer(request, {})
elif method == "tools/list":
    answer(request, {"tools": [{"name": wanted, "inputSchema": {"type": "object"}}]})
""",
            capabilities={"tools": {}, "logging": {}},
        ) as server:
            assert [each.name for each in server.functions] == [sent]
    finally:
        logger.setLevel(before)


async def test_a_server_that_refuses_the_level_is_used_all_the_same(caplog):
    caplog.set_level(logging.INFO, logger="agentbench")
    async with raw(
        """
if method == "tools/list":
    answer(request, {"tools": []})
else:
    answer(request, error={"code": 1, "message": "no"})
""",
        capabilities={"tools": {}, "logging": {}},
    ) as server:
        assert server.is_connected
    assert "does not accept the log level 'info'" in caplog.text


def returning(result: dict[str, Any]) -> MCPStdioTool:
    return raw(f"""
if method == "tools/list":
    answer(request, {{"tools": [{{"name": "t", "inputSchema": {{"type": "object"}}}}]}})
else:
    answer(request, {result!r})
""")


@pytest.mark.parametrize(
    ("content", "structured", "expected"),
    [
        ([], {"wind": 3}, ['{"wind": 3}']),
        (["Windy."], {"wind": "ü"}, ["Windy.", '{"wind": "ü"}']),
        (['{"wind": 3}'], {"wind": 3}, ['{"wind": 3}']),
        (["3"], {"result": 3}, ["3"]),
        (["calm"], {"result": "calm"}, ["calm"]),
        (["1", "2"], {"result": [1, 2]}, ["1", "2"]),
        ([], {"result": None}, ["null"]),
        ([], None, ["null"]),
    ],
)
async def test_structured_content_is_read_unless_a_text_says_the_same(content, structured, expected):
    result: dict[str, Any] = {"content": [{"type": "text", "text": each} for each in content]}
    if structured is not None:
        result["structuredContent"] = structured
    async with returning(result) as server:
        found: Any = await server.call_tool("t")
    assert [each.text for each in found] == expected


async def test_the_model_reads_the_whole_report_of_a_tool_that_failed():
    result = {
        "isError": True,
        "content": [
            {"type": "text", "text": "No such day."},
            {"type": "image", "data": "AAEC", "mimeType": "image/png"},
        ],
        "structuredContent": {"first": "2012-01-01"},
    }
    client = ScriptedChatClient([Call("t"), "Sorry."])
    async with returning(result) as server:
        with pytest.raises(ToolResultError) as caught:
            await server.call_tool("t")
        await Agent(client, tools=server).run("?")
    assert [each.media_type for each in caught.value.contents] == ["image/png"]
    [sent] = [one for message in client.calls[-1].messages for one in message.contents if one.type == "function_result"]
    assert sent.result == 'Error: No such day.\n{"first": "2012-01-01"}'
    assert [item.type for item in sent.items or ()] == ["text", "data"]


async def test_an_error_of_the_protocol_reaches_the_model_and_one_of_the_connection_does_not():
    refusing = raw("""
if method == "tools/list":
    answer(request, {"tools": [{"name": "t", "inputSchema": {"type": "object"}}]})
elif params["arguments"].get("die"):
    sys.exit(3)
else:
    answer(request, error={"code": -32602, "message": "day: expected a date"})
""")
    client = ScriptedChatClient([Call("t"), Call("t", {"die": True}), "Sorry."])
    async with refusing as server:
        await Agent(client, tools=server).run("?")
    sent = [one for message in client.calls[-1].messages for one in message.contents if one.type == "function_result"]
    assert [one.result for one in sent] == ["Error: day: expected a date", "Error: Function failed."]


async def test_links_and_files_keep_their_names():
    parts = [
        {"type": "resource_link", "uri": "demo://a", "name": "a", "title": "Table", "description": "High water."},
        {"type": "resource", "resource": {"uri": "demo://b", "blob": "AAEC", "mimeType": "application/zip"}},
    ]
    async with returning({"content": parts}) as server:
        found: Any = await server.call_tool("t")
    link, file = found
    assert link.additional_properties["description"] == "High water."
    assert file.additional_properties["uri"] == "demo://b"
    result = Content.from_function_result("1", result=[link, file])
    for described in (result_text(result), str(response_input([Message("tool", [result])])[0]["output"])):
        assert "demo://a, Table, a, High water." in described
    assert "application/zip" in result_text(result)


BOTH = """
listed = {"name": "fetch", "inputSchema": {"type": "object"}}
if method == "tools/list":
    answer(request, {"tools": [listed] if not globals().get("is_gone") else []})
elif method == "prompts/list":
    answer(request, {"prompts": [{"name": "fetch"}]})
elif method == "tools/call":
    is_gone = True
    print('{"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}', flush=True)
    answer(request, {"content": [{"type": "text", "text": "the tool"}]})
elif method == "prompts/get":
    message = {"role": "user", "content": {"type": "text", "text": "the prompt"}}
    answer(request, {"messages": [message]})
else:
    answer(request, {})
"""


@pytest.mark.parametrize(
    ("prefix", "names"), [(None, ["fetch", "fetch_prompt"]), ("web", ["web_fetch", "web_fetch_prompt"])]
)
async def test_a_tool_and_a_prompt_of_one_name_can_both_be_called(prefix, names):
    both = raw(BOTH, capabilities={"tools": {}, "prompts": {}}, tool_name_prefix=prefix)
    client = ScriptedChatClient([[Call(name) for name in names], "Done."])
    async with both as server:
        assert [each.name for each in server.functions] == names
        await Agent(client, tools=server).run("?")
        await until(lambda: [each.name for each in server.functions] == names[:1])  # the tool is gone
        assert text(await server.functions[0].invoke()) == "the prompt"
    sent = [one for message in client.calls[-1].messages for one in message.contents if one.type == "function_result"]
    assert [one.result for one in sent] == ["the tool", "the prompt"]


async def test_two_servers_that_share_names_work_with_the_prefix_that_the_error_recommends():
    pair = [raw(BOTH, capabilities={"tools": {}, "prompts": {}}, tool_name_prefix=prefix) for prefix in (None, None)]
    async with pair[0], pair[1]:
        with raises(ValueError, "tool_name_prefix"):
            await Agent(ScriptedChatClient(["ok"]), tools=pair).run("?")
    pair = [raw(BOTH, capabilities={"tools": {}, "prompts": {}}, tool_name_prefix=prefix) for prefix in (None, "b")]
    async with pair[0], pair[1]:
        assert (await Agent(ScriptedChatClient(["ok"]), tools=pair).run("?")).text == "ok"
