"""What `@tool` records about a function."""

from __future__ import annotations

import inspect
from typing import Any

from agentbench.stategraph import tool

__all__ = [
    "get_tool_metadata",
    "has_tool_decorator",
    "tool",
]


def has_tool_decorator(func: Any) -> bool:
    """Return whether a function was made a tool by `@tool`.

    Example:
        >>> has_tool_decorator(tool(len)), has_tool_decorator(len)
        (True, False)
    """
    return hasattr(func, "capabilities") and callable(getattr(func, "invoke", None))


def get_tool_metadata(func: Any) -> dict[str, Any]:
    """Return name, description, tags, provider, capabilities and metadata of a tool, or of a plain function.

    Raises:
        TypeError: The argument is neither a tool nor a function.

    Example:
        >>> @tool(tags=["read"], provider="archive")
        ... def search(query: str) -> str:
        ...     "Search the archive."
        >>> get_tool_metadata(search)["tags"], get_tool_metadata(search)["provider"]
        ({'read'}, 'archive')
    """
    name = getattr(func, "name", None) or getattr(func, "__name__", None)
    if not isinstance(name, str):
        message = f"func is {func!r}; expected a tool or a function."
        raise TypeError(message)
    return {
        "name": name,
        "description": getattr(func, "description", None) or inspect.getdoc(func) or "",
        "tags": {*getattr(func, "tags", ())},
        "provider": getattr(func, "provider", None),
        "capabilities": [*getattr(func, "capabilities", ())],
        "metadata": {**(getattr(func, "additional_properties", None) or {})},
    }
