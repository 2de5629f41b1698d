"""Convert `tools=` arguments (functions, tools, MCP servers, nested lists) to a list of tools with unique names."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import CoroutineType
from typing import Any, TypeAlias

from agentbench.agents.arguments import describe
from agentbench.agents.tools.function_tool import FunctionTool, as_labels

ToolTypes: TypeAlias = FunctionTool | Callable[..., Any] | Mapping[str, Any] | Sequence[Any] | Any
"""Values for a `tools=` argument: tools, functions, hosted tools as dicts, MCP tools."""


_OF_A_COPY = frozenset({"additional_properties", "_ab_bound"})
"""Attributes that may differ in a copy of a tool."""

_connecting: dict[tuple[int, int], asyncio.Future[None]] = {}
"""Futures of pending connections, by MCP tool and event loop."""

_NO_TOOLS = (str, bytes, bytearray, int, float, complex, type(None), CoroutineType)

_MCP_NAMES = ("is_connected", "connect", "functions")


def is_mcp_tool(value: object) -> bool:
    """Return whether a value is an MCP tool: its class has `is_connected`, `connect` and `functions`."""
    cls = type(value)
    return all(hasattr(cls, name) or name in getattr(value, "__dict__", ()) for name in _MCP_NAMES)


def split_mcp_tools(tools: Iterable[Any]) -> tuple[list[Any], list[Any]]:
    """Split tools into those that are not MCP tools and those that are."""
    sides: tuple[list[Any], list[Any]] = ([], [])
    for tool in tools:
        sides[is_mcp_tool(tool)].append(tool)
    return sides


def tools_with_tags(tools: Iterable[Any], tags: Iterable[str] | str) -> list[Any]:
    """Return the tools that have at least one of the tags; `ValueError` if none has."""
    wanted, tools = as_labels("tags", tags), [*tools]
    found = [tool for tool in tools if not {*getattr(tool, "tags", ())}.isdisjoint(wanted)]
    if tools and not found:
        known = sorted({tag for tool in tools for tag in getattr(tool, "tags", ())})
        message = (
            f"No tool has one of the tags {', '.join(map(repr, wanted))}. Tags of the tools: "
            f"{', '.join(known) or 'none'}. Tag a tool with @tool(tags=[...])."
        )
        raise ValueError(message)
    return found


def normalize_tools(tools: object = None) -> list[Any]:
    """Convert tools to a flat list in the same order.

    Functions become tools, new ones at each call: two agents with the same function get two tools. A function that
    occurs twice becomes one tool. Tools, dicts, MCP tools and objects of other classes stay unchanged. Nested iterables
    and the `tools` attributes of objects are flattened; mappings other than dicts may have one, too.

    Args:
        tools: `None`, one tool, or many.

    Raises:
        TypeError: An item is not a tool, but a class, an agent, text, a number, `None` or a coroutine.

    Example:
        def add(a: int, b: int) -> int:
            return a + b


        [tool] = normalize_tools(add)
        assert tool.name == "add"
    """
    return [] if tools is None else list(_flat(tools, []))


def _flat(item: Any, made: list[FunctionTool]) -> Iterator[Any]:
    if isinstance(item, (FunctionTool, dict)) or is_mcp_tool(item):
        yield item
    elif isinstance(item, _NO_TOOLS) or _is_agent(item):
        raise _no_tool(item)
    elif (parts := _parts_of(item)) is not None:
        for part in parts:
            yield from _flat(part, made)
    elif isinstance(item, Mapping):
        yield item
    elif callable(item):
        yield _tool_of(item, made)
    else:
        yield item


def _parts_of(item: Any) -> Iterable[Any] | None:
    """Return the items of an iterable or the `tools` of a toolbox; a mapping needs an attribute, not a key."""
    if isinstance(item, Mapping):
        has_tools = hasattr(type(item), "tools") or "tools" in getattr(item, "__dict__", ())
        tools = item.tools if has_tools else None  # type: ignore[attr-defined]
    elif isinstance(item, Iterable) and not isinstance(item, type):
        return item
    else:
        tools = getattr(item, "tools", None)
    return tools if isinstance(tools, Iterable) and not isinstance(tools, (str, bytes, Mapping)) else None


def _is_agent(item: Any) -> bool:
    members = ("run", "create_session", "get_session")
    return not isinstance(item, type) and all(callable(getattr(item, name, None)) for name in members)


def _no_tool(item: Any) -> TypeError:
    expected = "Expected functions, tools or tool declarations"
    if isinstance(item, str):
        return TypeError(f"{describe(item)} is text, not a tool. {expected}: pass the function itself, not its name.")
    if isinstance(item, CoroutineType):
        item.close()  # prevents a warning, because it is never awaited
        mend = f"pass the function {item.__name__} without calling it"
        return TypeError(f"A coroutine is not a tool. {expected}: {mend}.")
    if isinstance(item, _NO_TOOLS):
        mend = "for example, pass a function itself, not its result"
        return TypeError(f"{describe(item)} is not a tool. {expected}: {mend}.")
    return TypeError(f"{item!r} is an agent, not a tool. {expected}: pass agent.as_tool().")


def _tool_of(func: Callable[..., Any], made: list[FunctionTool]) -> FunctionTool:
    for tool in made:
        if tool.func == func:
            return tool
    tool = FunctionTool(func)
    tool._ab_is_plain = True  # noqa: SLF001 - set only here
    made.append(tool)
    return tool


def tool_name(tool: Any) -> str | None:
    """Return the name by which a model calls a tool; `None` for servers and hosted tools without a name."""
    if isinstance(tool, FunctionTool):  # the common case, and faster than the check for a mapping
        return tool.name
    if isinstance(tool, Mapping):
        function = tool.get("function")
        name = function.get("name") if isinstance(function, Mapping) else None
        if name is None and tool.get("type") == "function":
            name = tool.get("name")
    else:
        name = None if is_mcp_tool(tool) else getattr(tool, "name", None)
    return name if isinstance(name, str) and name else None


def enter_tool(by_name: dict[str, Any], tool: Any) -> bool:
    """Add a tool under its name and return whether it is new; raise if a different tool has that name."""
    name = tool_name(tool)
    if name is None:
        return True
    before = by_name.get(name)
    if before is None:
        by_name[name] = tool
        return True
    if _is_same(before, tool):
        return False
    message = (
        f"Two tools are named {name!r}: {before!r} and {tool!r}. A model only sees the names of tools: rename one "
        "of them (tools of a server with tool_name_prefix), or pass the same object twice."
    )
    raise ValueError(message)


async def connect_once(server: Any) -> bool:
    """Connect an MCP tool if necessary, while concurrent callers wait; return whether this call connected it."""
    loop = asyncio.get_running_loop()
    key = (id(server), id(loop))
    while not server.is_connected:
        pending = _connecting.get(key)
        if pending is not None:
            await asyncio.wait([pending])
            continue
        pending = _connecting[key] = loop.create_future()
        try:
            await server.connect()
        finally:
            del _connecting[key]
            pending.set_result(None)
        return True
    return False


def _is_same(one: Any, other: Any) -> bool:
    if one is other or one == other:
        return True
    if isinstance(other, FunctionTool) and other._ab_is_plain and getattr(one, "func", None) == other.func:  # noqa: SLF001
        return True
    mine, others = getattr(one, "__dict__", {}), getattr(other, "__dict__", {})
    return (
        type(one) is type(other)
        and 0 < len(mine) == len(others)
        and all(name in _OF_A_COPY or others.get(name, _is_same) is value for name, value in mine.items())
    )


async def validate_tools(tools: object = None) -> list[Any]:
    """Normalize tools as in `normalize_tools`, connect MCP tools, and replace them by their functions.

    Args:
        tools: `None`, one tool, or many.

    Raises:
        TypeError: An item is not a tool.

    Example:
        tools = await validate_tools([len])
    """
    found: list[Any] = []
    for item in normalize_tools(tools):
        if not is_mcp_tool(item):
            found.append(item)
            continue
        await connect_once(item)
        found.extend(item.functions)
    return found
