"""Tools by which a model hands the conversation over to another node."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import Content, Message
from agentbench.exceptions import GraphCompileError
from agentbench.stategraph.core.graph import StateGraph, ToolNode
from agentbench.stategraph.core.state import AgentState
from agentbench.stategraph.prebuilt.tools import create_handoff_tool, is_handoff_tool
from agentbench.stategraph.utils import END, START
from agentbench.workflows.draw.shape import read_shape
from tests.parts.errors import raises


def desk(*targets: str) -> StateGraph[AgentState]:
    graph = StateGraph().add_node("tools", ToolNode([create_handoff_tool(target) for target in targets]))
    return graph.add_node("billing", lambda state: "Your invoice.").add_edge(START, "tools").add_edge("billing", END)


def test_a_handoff_tool_is_named_after_its_target() -> None:
    handoff: Any = create_handoff_tool("billing", "Ask billing.")

    assert (handoff.__name__, handoff.__doc__) == ("transfer_to_billing", "Ask billing.")
    assert (handoff.__handoff_tool__, handoff.__target_agent__) == (True, "billing")
    assert is_handoff_tool("transfer_to_billing") == (True, "billing")
    assert is_handoff_tool("transfer_to_") == is_handoff_tool("search") == (False, None)
    assert ToolNode([handoff]).all_tools()[0]["function"]["description"] == "Ask billing."
    for blank in ("", " "):
        with pytest.raises(ValueError, match="agent_name"):
            create_handoff_tool(blank)
    with pytest.raises(TypeError, match="agent_name is 3"):
        create_handoff_tool(3)  # type: ignore[arg-type]


def test_the_graph_goes_on_at_the_target_and_the_call_has_a_result() -> None:
    asking = Message("assistant", [Content.from_function_call("c1", "transfer_to_billing", arguments={})])

    result = desk("billing").compile().invoke({"messages": [asking]}, {"thread_id": "t1"})

    call, answer, said = result["messages"]
    assert answer.contents[0].call_id == call.contents[0].call_id == "c1"
    assert said.text() == "Your invoice."


def test_an_unknown_target_is_found_when_the_graph_is_compiled() -> None:
    with raises(GraphCompileError, error_code="GRAPH_004", node="support") as caught:
        desk("support").compile()
    assert "billing" in str(caught.value)


def test_the_way_of_a_handoff_is_drawn_dashed() -> None:
    edges = {(edge.source, edge.target): edge for edge in read_shape(desk("billing").compile().workflow).edges}
    assert edges["tools", "billing"].is_dashed
    assert not edges["billing", END].is_dashed
