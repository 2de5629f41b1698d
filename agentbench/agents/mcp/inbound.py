"""Checks the messages of a server before the session reads them: their size, and the entries of lists."""

from __future__ import annotations

import logging
from dataclasses import replace
from typing import Any

from agentbench._plain_text import plain_line
from agentbench.agents.mcp.connection import WatchedStream
from agentbench.agents.mcp.limits import MCPLimits, measure
from agentbench.agents.mcp.package import error_response, listing_problem
from agentbench.exceptions import MCPLimitError

logger = logging.getLogger("agentbench")

_LISTS = ("tools", "prompts", "resources")
_NAME_CHARS = 100


class CheckedStream(WatchedStream):
    """A stream of messages of which each one is checked; the session does not get what is dropped.

    Args:
        stream: The stream to read.
        on_end: Called once the server sends no more.
        checks: The checks.
    """

    def __init__(self, stream: Any, on_end: Any, checks: InboundChecks) -> None:
        super().__init__(stream, on_end)
        self._checks = checks

    async def __anext__(self) -> Any:
        while (message := self._checks.check(await super().__anext__())) is None:
            pass
        return message

    async def receive(self) -> Any:
        """Return the next message."""
        while (message := self._checks.check(await super().receive())) is None:
            pass
        return message


class InboundChecks:
    """The checks of one server."""

    def __init__(self, server: str, limits: MCPLimits) -> None:
        self._server, self._limits = server, limits

    def check(self, message: Any) -> Any:
        """Return a message as the session may read it; `None` drops it.

        An answer that is too large becomes an error, so that the request does not wait for ever.
        """
        payload: Any = getattr(message, "message", None)
        payload = getattr(payload, "root", payload)
        result, error = getattr(payload, "result", None), getattr(payload, "error", None)
        too_much = self._excess(
            [getattr(payload, "params", result), *(() if error is None else (error.message, error.data))]
        )
        if too_much is not None:
            if not hasattr(payload, "method"):
                return replace(message, message=error_response(payload.id, too_much))
            logger.warning("A message was dropped: %s", too_much)
            return None
        if isinstance(result, dict):
            for kind in _LISTS:
                if isinstance(result.get(kind), list):
                    result[kind] = self._usable(kind, result[kind])
        return message

    def _excess(self, body: Any) -> MCPLimitError | None:
        limits = self._limits
        size, depth = measure(body, limits.max_message_bytes, limits.max_depth)
        if depth > limits.max_depth:
            return MCPLimitError(self._server, "a message that is nested too deeply", "max_depth", limits.max_depth)
        if size > limits.max_message_bytes:
            return MCPLimitError(
                self._server, "a message that is too large", "max_message_bytes", limits.max_message_bytes
            )
        return None

    def _usable(self, kind: str, listings: list[Any]) -> list[Any]:
        """Return the entries of a list that the protocol allows: one that is invalid must not hide the others."""
        most = getattr(self._limits, f"max_{kind}")
        if len(listings) > most:  # the list is refused where it is read; checking all of it would take long
            listings = listings[: int(most) + 1]
        if kind == "tools":
            listings = [_with_object_schema(one) for one in listings]
        if listing_problem(kind, listings) is None:
            return listings
        found = []
        for one in listings:
            problem = listing_problem(kind, [one])
            if problem is None:
                found.append(one)
                continue
            name = plain_line(one.get("name") if isinstance(one, dict) else one, _NAME_CHARS)
            logger.warning("The MCP server %r lists %s %r in an invalid form, so it is left out: %s",
                           self._server, kind.removesuffix("s"), name, plain_line(problem, _NAME_CHARS))  # fmt: skip
        return found


def _with_object_schema(tool: Any) -> Any:
    """Return a tool whose schema says that it describes an object, which some servers leave out."""
    schema = tool.get("inputSchema", {}) if isinstance(tool, dict) else None
    if isinstance(schema, dict) and "type" not in schema:
        return {**tool, "inputSchema": {**schema, "type": "object"}}
    return tool
