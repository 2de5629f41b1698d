"""Limits on what a server may send, and the size of a message."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from math import inf
from typing import Any

from agentbench._plain_text import plain_text
from agentbench.agents.arguments import check_known, describe


@dataclass(frozen=True, kw_only=True)
class MCPLimits:
    """Limits on what a server may send. Change one with the argument `limits={"max_tools": 5_000}` of an MCP tool.

    Attributes:
        connect_s: Maximum seconds to open the connection, and again to load the lists.
        max_message_bytes: Maximum size of one message: a result, a resource, a page of a list, a notification.
        max_depth: Maximum levels of nesting in one message.
        max_pages: Maximum number of pages in one list.
        max_tools: Maximum number of tools that the server lists.
        max_prompts: Maximum number of prompts that the server lists.
        max_resources: Maximum number of resources that the server lists.
        max_description_chars: Maximum length of a description; a longer one is shortened.
        max_schema_bytes: Maximum size of the schema of one tool; a tool with a larger one is ignored.
        max_skills: Maximum number of skills among the server's resources.
        max_front_matter_chars: Maximum length of a skill's front matter; a skill with a longer one is ignored.
        max_log_chars: Maximum length of a log line or an error text of the server; a longer one is shortened.
        max_log_lines_per_minute: Maximum number of log lines per minute; the others are dropped.
        reload_interval_s: Seconds between two reloads of a list that the server reports as changed.
        max_host_payload_size_bytes: Maximum size of a sampling request or of a question to a person.
        max_sampling_requests: Maximum number of requests to the model during one tool call.
        max_sampling_tokens: Maximum tokens of one answer of the model; a request for more gets this many.
        max_questions: Maximum number of questions to a person during one tool call.

    Example:
        files = MCPStdioTool("files", "files-server", limits={"max_tools": 5_000})
        print(files.limits)
    """

    connect_s: float = 120
    max_message_bytes: float = 16 * 2**20
    max_depth: float = 64
    max_pages: float = 100
    max_tools: float = 1_000
    max_prompts: float = 1_000
    max_resources: float = 10_000
    max_description_chars: float = 16_384
    max_schema_bytes: float = 2**18
    max_skills: float = 200
    max_front_matter_chars: float = 16_384
    max_log_chars: float = 2_000
    max_log_lines_per_minute: float = 600
    reload_interval_s: float = 1
    max_host_payload_size_bytes: float = 2**20
    max_sampling_requests: float = 10
    max_sampling_tokens: float = 4_096
    max_questions: float = 10

    def with_values(self, values: Mapping[str, float]) -> MCPLimits:
        """Return limits with some values replaced.

        Raises:
            TypeError: A value is not a number.
            ValueError: A name is unknown, or a value is not positive.
        """
        check_known("limits", values, [field.name for field in fields(self)])
        for name, value in values.items():
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                message = f"The limit {name} is {describe(value)}. Expected a number."
                raise TypeError(message)
            if not value > 0:
                message = f"The limit {name} is {value!r}. Expected a positive number; float('inf') means no limit."
                raise ValueError(message)
        return replace(self, **values)

    def log_text(self, text: object) -> str:
        """Return a text of the server for an error or a log: shortened, and without terminal control codes."""
        return plain_text(text, None if self.max_log_chars == inf else int(self.max_log_chars))


def measure(value: Any, most_bytes: float, most_levels: float) -> tuple[int, int]:
    """Return the approximate size of a JSON value in bytes, and its depth. Stop as soon as one exceeds its maximum."""
    size = depth = 0
    stack = [(value, 1)]
    while stack and size <= most_bytes and depth <= most_levels:
        item, level = stack.pop()
        depth = max(depth, level)
        size += 8
        if isinstance(item, str):
            size += len(item) if item.isascii() else len(item.encode(errors="replace"))
        elif isinstance(item, Mapping):
            size += sum(map(len, item))
            stack.extend([(inner, level + 1) for inner in item.values()])
        elif isinstance(item, list):
            stack.extend([(inner, level + 1) for inner in item])
    return size, depth
