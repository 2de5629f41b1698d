"""The tool with which a model finds the tools of a server, and is offered those that it needs."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Final

from agentbench.agents.mcp.listing import normalize_prefix
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.tools.function_tool import FunctionTool

_MOST_OFFERED: Final = 10
_WORD: Final = re.compile(r"[^\W_]+")


def tool_finder(server: str, prefix: str, get_functions: Callable[[], Sequence[FunctionTool]]) -> FunctionTool:
    """Return the tool that finds functions by words in their names and descriptions, and adds them to the run.

    Args:
        server: The name of the server.
        prefix: The prefix of its tools.
        get_functions: Returns the functions that may be offered.
    """

    def find_tools(context: FunctionInvocationContext, query: str) -> str:
        functions = get_functions()
        best = _best(functions, query)[:_MOST_OFFERED]
        if not best:
            names = ", ".join(function.name for function in functions) or "none"
            return f"No tool matches. Call this again with one of these names: {names}."
        context.add_tools(best)
        lines = (f"- {function.name}: {function.description}" for function in best)
        return "\n".join(["You can call these tools now:", *lines])

    return FunctionTool(
        find_tools,
        name=f"{prefix or normalize_prefix(server)}_find_tools",
        description=(
            f"Find tools of the server {server!r}. Pass their names, or words for what you want to do; the tools that "
            "fit best can then be called. An empty query lists the names of all tools."
        ),
    )


def _best(functions: Sequence[FunctionTool], query: str) -> list[FunctionTool]:
    """Return the functions that fit a query, best first: at least half as well as the best one."""
    wanted = set(_words(query))

    def score(function: FunctionTool) -> int:
        name, description = set(_words(function.name)), set(_words(function.description))
        is_named = _has_name(query, function.name)
        return 100 * is_named + 2 * len(wanted & name) + len(wanted & description)

    scored = [(points, function) for function in functions if (points := score(function))]
    scored.sort(key=lambda one: -one[0])
    return [function for points, function in scored if 2 * points >= scored[0][0]]


def _has_name(query: str, name: str) -> bool:
    """Return whether a query contains the name of a function, and not only as a part of another word or name."""
    return re.search(rf"(?<![\w-]){re.escape(name.casefold())}(?![\w-])", query.casefold()) is not None


def _words(text: str) -> list[str]:
    return _WORD.findall(text.casefold())
