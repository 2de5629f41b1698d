"""Checks for incoming messages of a server, and logging of the lines that it sends."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from agentbench import _clock
from agentbench._plain_text import plain_line
from agentbench.agents.mcp.connection import WatchedStream
from agentbench.agents.mcp.limits import MCPLimits, measure
from agentbench.agents.mcp.package import as_received, error_response, listing_problem, parse_problem
from agentbench.exceptions import MCPLimitError

logger = logging.getLogger("agentbench")

_ANSWER = re.compile(r'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,\s*"(?:result|error)"')
"""Matches the beginning of a response, so that the id is known even if the rest cannot be parsed."""

_MINUTE_NS = 60_000_000_000

_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "emergency": logging.CRITICAL,
}

_LISTS = ("tools", "prompts", "resources")
_NAME_CHARS = 100


class CheckedStream(WatchedStream):
    """Checks each message of a server before the session receives it; invalid ones are dropped."""

    def __init__(self, stream: Any, on_end: Callable[[], None], server: str, limits: MCPLimits) -> None:
        super().__init__(stream, on_end)
        self._server, self._limits = server, limits

    async def __anext__(self) -> Any:
        while (message := self._check(await super().__anext__())) is None:
            pass
        return message

    async def receive(self) -> Any:
        """Return the next message."""
        while (message := self._check(await super().receive())) is None:
            pass
        return message

    def _check(self, message: Any) -> Any:
        """Return the message for the session, or `None` to drop it.

        A response that is too large becomes an error response, so that its request does not wait forever.
        """
        if isinstance(message, Exception):
            return self._failed_answer(message) or message
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

    def _failed_answer(self, error: Exception) -> Any:
        """Return an error response for a response that could not be parsed; `None` if the line is not a response."""
        problem, line = parse_problem(error)
        answer = _ANSWER.match(line)
        if answer is None:
            return None
        reason: Exception = ValueError(f"The response cannot be parsed: {problem}")
        if "recursion" in problem:
            reason = MCPLimitError(
                self._server, "a message that is nested too deeply", "max_depth", self._limits.max_depth
            )
        return as_received(error_response(int(answer[1]), reason))

    def _excess(self, body: Any) -> MCPLimitError | None:
        limits = self._limits
        most = limits.max_message_bytes
        size, depth = measure(body, most, limits.max_depth)
        if depth > limits.max_depth:
            return MCPLimitError(self._server, "a message that is nested too deeply", "max_depth", limits.max_depth)
        return (
            MCPLimitError(self._server, "a message that is too large", "max_message_bytes", most)
            if size > most
            else None
        )

    def _usable(self, kind: str, listings: list[Any]) -> list[Any]:
        """Return the valid entries of a list, so that one invalid entry does not hide the others."""
        most = getattr(self._limits, f"max_{kind}")
        if len(listings) > most:  # read_pages() rejects the list anyway, and checking every entry would be slow
            listings = listings[: int(most) + 1]
        if kind == "tools":
            listings = [_with_object_schema(one) for one in listings]
        if listing_problem(kind, listings) is None:
            return listings
        valid = []
        for listing in listings:
            problem = listing_problem(kind, [listing])
            if problem is None:
                valid.append(listing)
                continue
            name = plain_line(listing.get("name") if isinstance(listing, dict) else listing, _NAME_CHARS)
            logger.warning("The MCP server %r lists the %s %r in an invalid form; it is ignored: %s",
                           self._server, kind.removesuffix("s"), name, plain_line(problem, _NAME_CHARS))  # fmt: skip
        return valid


def _with_object_schema(tool: Any) -> Any:
    """Return a tool whose schema has `"type": "object"`; some servers omit it."""
    schema = tool.get("inputSchema", {}) if isinstance(tool, dict) else None
    if isinstance(schema, dict) and "type" not in schema:
        return {**tool, "inputSchema": {**schema, "type": "object"}}
    return tool


def level_name(level: int) -> str:
    """Return the protocol's name for a level of `logging`."""
    return next((name for name, number in _LEVELS.items() if number >= level), "emergency")


class ServerLog:
    """Logs the lines of one server as plain text, up to a limit per minute."""

    def __init__(self, server: str, limits: MCPLimits) -> None:
        self._server, self._limits = server, limits
        self._begin_ns = self._count = 0

    def log(self, level: str | None, text: object) -> None:
        """Log a line with the name of the server. Lines over the limit are dropped with a single warning."""
        now = _clock.runtime_defaults().clock.perf_ns()
        if now - self._begin_ns >= _MINUTE_NS:
            self._begin_ns, self._count = now, 0
        self._count += 1
        most = self._limits.max_log_lines_per_minute
        if self._count <= most:
            line = " ".join(self._limits.log_text(text).split())
            logger.log(_LEVELS.get(level or "", logging.INFO), "%s: %s", self._server, line)
        elif self._count <= most + 1:
            error = MCPLimitError(self._server, "too many log lines", "max_log_lines_per_minute", most)
            logger.warning("Log lines are dropped: %s", error)
