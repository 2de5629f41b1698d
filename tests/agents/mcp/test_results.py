"""Nothing of a tool's result is lost, and tools and prompts of one name can be used side by side."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import Agent, Content, MCPStdioTool, Message, ScriptedChatClient
from agentbench.agents.clients.openai.chat.messages import result_text
from agentbench.agents.clients.openai.responses.requests import response_input
from agentbench.exceptions import ToolResultError
from agentbench.testing import Call
from tests.agents.mcp.servers import raw, text, until
from tests.parts.errors import raises

pytest.importorskip("mcp")


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
