"""A server in a cell: connected or not, and what it gives."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import MCPStreamableHTTPTool
from tests.agents.mcp.servers import raw


def lines(server: Any) -> list[str]:
    return str(server._repr_mimebundle_()["text/plain"]).splitlines()


def test_a_server_that_is_not_connected_shows_its_address_without_secrets():
    server = MCPStreamableHTTPTool("docs", "https://ada:hunter2@example.com/mcp?key=abc", description="The manuals.")
    found = "docs: not connected, MCPStreamableHTTPTool, https://example.com/mcp, 0 functions, The manuals."
    assert lines(server) == [found]


async def test_a_connected_one_shows_its_functions_and_nothing_becomes_markup():
    pytest.importorskip("mcp")
    async with raw(
        """answer(request, {"tools": [{"name": "t", "description": "<b>x</b>",
                           "inputSchema": {"type": "object"}}]})""",
        approval_mode="always_require",
    ) as server:
        assert lines(server)[0].startswith("raw: connected, MCPStdioTool, ")
        assert lines(server)[1:] == ["functions", "  t  <b>x</b>  needs approval"]
        assert "<b>x" not in server._repr_mimebundle_()["text/html"]
