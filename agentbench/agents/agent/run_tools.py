"""Tools that stand for a server of the Model Context Protocol: told apart, connected to, replaced by its functions."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentbench.agents.tools.collection import connect_once, is_mcp_tool


def split_mcp_tools(tools: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """The tools as they are, and those that stand for servers."""
    sides: tuple[list[Any], list[Any]] = ([], [])
    for tool in tools:
        sides[is_mcp_tool(tool)].append(tool)
    return sides


async def connected_functions(servers: Sequence[Any], opened: list[Any]) -> list[Any]:
    """The functions of servers, connected to where they are not yet.

    Args:
        servers: Tools that stand for servers.
        opened: Those connected to here are noted in it, for who closes them.
    """
    functions: list[Any] = []
    for server in servers:
        if await connect_once(server):
            opened.append(server)
        functions.extend(server.functions)
    return functions
