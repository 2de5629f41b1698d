"""The tools of one request: which are run here, which are only declared, which were taken away."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

from agentbench.agents.tools.collection import enter_tool, is_mcp_tool, normalize_tools, tool_name
from agentbench.agents.tools.function_tool import FunctionTool

RUN: Final = "run"
ASK: Final = "ask"
HAND_BACK: Final = "hand back"
UNKNOWN: Final = "unknown"


class Toolbox:
    """Tools by the name that the model calls them by.

    Args:
        tools: Of the options of the request, as `normalize_tools` gives them.
        additional: Known, but never run here.

    Attributes:
        taken_away: Names of tools that failed too often, with the reason.

    Raises:
        ValueError: Two different tools have one name.
    """

    __slots__ = ("_additional", "_tools", "taken_away")

    def __init__(self, tools: Sequence[Any], additional: Sequence[Any] = ()) -> None:
        self._tools: dict[str, Any] = {}
        for tool in tools:
            enter_tool(self._tools, tool)
        self._additional = {tool_name(tool) for tool in normalize_tools(additional)} if additional else frozenset[str]()
        self.taken_away: dict[str, str] = {}

    def find(self, name: str | None) -> Any:
        """Return the tool of this name, or `None`."""
        return self._tools.get(name or "")

    def kind_of(self, name: str | None) -> str:
        """What is done with a call of this name: `RUN`, `ASK` a person first, `HAND_BACK`; or it is `UNKNOWN`."""
        if name in self._additional:
            return HAND_BACK
        tool = self._tools.get(name or "")
        if tool is None:
            return UNKNOWN
        if getattr(tool, "approval_mode", None) == "always_require":
            return ASK
        if getattr(tool, "declaration_only", False) or not hasattr(tool, "invoke"):
            return HAND_BACK
        return RUN


def needs_server(tools: Iterable[Any]) -> bool:
    """Whether there are connections to servers among tools, which have to be asked for their functions."""
    return any(is_mcp_tool(tool) for tool in tools if not isinstance(tool, FunctionTool))


def without(tools: Iterable[Any], names: Iterable[str]) -> list[Any]:
    """Return the tools that are called none of these names."""
    left_out = set(names)
    return [tool for tool in tools if tool_name(tool) not in left_out]
