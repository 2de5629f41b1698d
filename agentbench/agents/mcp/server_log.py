"""The lines that a server logs, in our log."""

from __future__ import annotations

import logging

from agentbench import _clock
from agentbench.agents.mcp.limits import MCPLimits
from agentbench.exceptions import MCPLimitError

logger = logging.getLogger("agentbench")

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
