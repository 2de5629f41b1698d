"""Tools by which a model hands the conversation over to another node."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, cast

_PREFIX = "transfer_to_"


def create_handoff_tool(agent_name: str, description: str | None = None) -> Callable[[], str]:
    """Return a tool with which a model sends the graph to another node, for a `ToolNode` or an agent that is a node.

    The graph goes on at the node, and the model's call gets a result. An agent makes the other calls of the answer too,
    and then ends its run without asking the model again, also outside a graph: the caller reads in the response where
    the conversation goes.

    Args:
        agent_name: The name of the node.
        description: The text for the model.

    Raises:
        TypeError: The name is not text.
        ValueError: The name is empty.

    Example:
        >>> tools = ToolNode([create_handoff_tool("billing", "Ask billing about invoices.")])
        >>> [spec["function"]["name"] for spec in tools.all_tools()]
        ['transfer_to_billing']
        >>> graph.add_node("triage", Agent(client, name="triage", tools=[create_handoff_tool("billing")]))
    """
    is_text = isinstance(cast("object", agent_name), str)
    if not is_text or not agent_name.strip():
        message = f"agent_name is {agent_name!r}; expected the name of a node."
        raise ValueError(message) if is_text else TypeError(message)

    def handoff() -> str:
        return handoff_result(agent_name)

    handoff.__name__ = handoff.__qualname__ = f"{_PREFIX}{agent_name}"
    handoff.__doc__ = description or f"Hand the conversation over to {agent_name}."
    handoff.__handoff_tool__ = True  # type: ignore[attr-defined]
    handoff.__target_agent__ = agent_name  # type: ignore[attr-defined]
    return handoff


def is_handoff_tool(name: str) -> tuple[bool, str | None]:
    """Return whether a tool of this name hands over to another node, and the name of the node, by the name alone.

    A function with such a name that is not from `create_handoff_tool` is an ordinary tool of a `ToolNode`.

    Example:
        >>> is_handoff_tool("transfer_to_billing"), is_handoff_tool("search")
        ((True, 'billing'), (False, None))
    """
    target = name.removeprefix(_PREFIX)
    return (True, target) if target != name and target else (False, None)


def target_of(tool: Any) -> str | None:
    """Return the node to which a tool of `create_handoff_tool`, or an agent's tool made of one, leads."""
    function = getattr(tool, "func", tool)
    return function.__target_agent__ if hasattr(function, "__handoff_tool__") else None


def targets_of(tools: Iterable[Any]) -> list[str]:
    """Return the nodes to which the handoffs among some tools lead."""
    return [target for tool in tools if (target := target_of(tool)) is not None]


def handoff_result(target: str) -> str:
    """Return the result of a call that hands over to a node."""
    return f"Transferred to {target}."
