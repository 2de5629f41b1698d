"""Normalization of the inputs of an evaluation: values for each query, and the tools of an agent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeVar

from agentbench._limits import require_limit
from agentbench.agents.tools.collection import normalize_tools, split_mcp_tools
from agentbench.evaluation.resume_file import digest
from agentbench.messages.inputs import normalize_messages

_T = TypeVar("_T")


def as_list(values: Any, single: tuple[type, ...]) -> list[Any]:
    """Return one or more values as a list. An instance of the classes `single` is one value."""
    return [values] if isinstance(values, single) else list(values)


def per_query(name: str, values: list[_T] | None, queries: Sequence[Any]) -> list[Any]:
    """Return a value for each query; raise ValueError if the numbers differ."""
    if values is None:
        return [None] * len(queries)
    if len(values) != len(queries):
        msg = f"{name} has {len(values)} values for {len(queries)} queries; expected one for each query."
        raise ValueError(msg)
    return values


def repeat(queries: list[_T], times: int) -> list[_T]:
    """Return the list repeated a number of times."""
    require_limit("num_repetitions", times, least=1)
    return queries * times


def function_tools(agent: Any) -> list[Any]:
    """Return the function tools of an agent, including those of its connected MCP servers."""
    tools = (getattr(agent, "default_options", None) or {}).get("tools")
    own, servers = split_mcp_tools(normalize_tools(tools))
    servers += getattr(agent, "mcp_tools", None) or []
    return own + [function for server in servers if server.is_connected for function in server.functions]


def repeated_keys(kind: str, name: object, queries: Iterable[Any]) -> Iterator[str]:
    """Yield the key of each query in a resume file. Repetitions of a query have different keys."""
    seen: Counter[str] = Counter()
    for query in queries:
        content = [message.to_dict() for message in normalize_messages(query)]
        plain = digest(kind, name, content)
        seen[plain] += 1
        yield digest(plain, seen[plain])
