"""The display of an MCP server: its connection and its functions. Nothing is called."""

from __future__ import annotations

from agentbench._text.phrases import count_text
from agentbench.agents.mcp.tool import MCPTool
from agentbench.notebook.look.html import Page, Table


def server_bundle(server: MCPTool) -> dict[str, str]:
    """Return a server's views by media type: its address without secrets, and a row for each function."""
    functions = server.functions
    rows = [
        (each.name, each.description or "", "needs approval" if each.approval_mode == "always_require" else "")
        for each in functions
    ]
    connected = server.is_connected
    facts = [type(server).__name__, server.address, count_text(len(functions), "function"), server.description]
    return Page(
        server.name,
        "connected" if connected else "not connected",
        "done" if connected else "idle",
        [*filter(None, facts)],
        [Table("Functions", ("name", "what it does", "note"), rows)],
    ).bundle()
