"""Messages of a server, checked before the session reads them, and the lines that it logs."""

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

#: How an answer begins of which the rest cannot be read.
_ANSWER = re.compile(r'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,15})\s*,\s*"(?:result|error)"')
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
    """A stream of messages of a server of which each one is checked; the session does not get what is dropped."""

    def __init__(self, stream: Any, on_end: Callable[[], None], server: str, limits: MCPLimits) -> None:
        super().__init__(stream, on_end)
        self._server, self._limits = server, limits

    async def __anext__(self) -> Any:
        while (message := self._checked(await super().__anext__())) is None:
            pass
        return message

    async def receive(self) -> Any:
        """Return the next message."""
        while (message := self._checked(await super().receive())) is None:
            pass
        return message

    def _checked(self, message: Any) -> Any:
        """Return a message as the session may read it; `None` drops it.

        An answer that is too large becomes an error, so that the request does not wait for ever.
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
        """Return the answer that failed to be read as one that is an error; `None` if the line is no answer."""
        problem, line = parse_problem(error)
        answer = _ANSWER.match(line)
        if answer is None:
            return None
        reason: Exception = ValueError(f"The answer cannot be read: {problem}")
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


def level_name(level: int) -> str:
    """Return the name that the protocol has for a level of our log."""
    return next((name for name, number in _LEVELS.items() if number >= level), "emergency")


class ServerLog:
    """Logs the lines of one server, as plain text and at most so many a minute."""

    def __init__(self, server: str, limits: MCPLimits) -> None:
        self._server, self._limits = server, limits
        self._begin_ns = self._count = 0

    def log(self, level: str | None, text: object) -> None:
        """Log a line with the name of the server; what is over the limit is dropped, with one warning."""
        now = _clock.runtime_defaults().clock.perf_ns()
        if now - self._begin_ns >= _MINUTE_NS:
            self._begin_ns, self._count = now, 0
        self._count += 1
        most = self._limits.max_log_lines_per_minute
        if self._count <= most:
            line = " ".join(self._limits.shown(text).split())
            logger.log(_LEVELS.get(level or "", logging.INFO), "%s: %s", self._server, line)
        elif self._count <= most + 1:
            error = MCPLimitError(self._server, "too many log lines", "max_log_lines_per_minute", most)
            logger.warning("Log lines are dropped: %s", error)
