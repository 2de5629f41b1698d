"""Servers that lie, stall, lead in circles or answer what nobody asked."""

from __future__ import annotations

import logging

import pytest

from agentbench.exceptions import ToolExecutionException, ToolResultError
from tests.agents.mcp.servers import raw, text
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
