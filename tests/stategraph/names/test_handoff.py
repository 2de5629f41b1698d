"""Tools by which a model hands the conversation over to another node."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import Content, Message, tool
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


def calling(name: str, **arguments: Any) -> dict[str, Any]:
    return {"messages": [Message("assistant", [Content.from_function_call("c1", name, arguments=arguments)])]}


@pytest.mark.parametrize("wrapped", [False, True], ids=["function", "tool"])
def test_a_function_of_ones_own_that_is_named_like_a_handoff_runs(wrapped: bool) -> None:
    def transfer_to_savings(amount: int) -> str:
        return f"{amount} euros saved."

    own = tool(transfer_to_savings) if wrapped else transfer_to_savings
    graph = StateGraph().add_node("tools", ToolNode([own, create_handoff_tool("billing")]))
    graph.add_node("billing", lambda state: "Your invoice.").add_edge(START, "tools").add_edge("billing", END)

    result = graph.compile().invoke(calling("transfer_to_savings", amount=5), {"thread_id": "t1"})

    assert result["messages"][-1].contents[0].result == "5 euros saved."


def test_a_handoff_that_an_agents_tool_was_made_of_is_still_one() -> None:
    graph = StateGraph().add_node("tools", ToolNode([tool(create_handoff_tool("billing"))]))
    graph.add_node("billing", lambda state: "Your invoice.").add_edge(START, "tools").add_edge("billing", END)

    result = graph.compile().invoke(calling("transfer_to_billing"), {"thread_id": "t1"})

    assert result["messages"][-1].text() == "Your invoice."


@pytest.mark.parametrize(("targets", "name"), [(["billing"], "transfer_to_tools"), ([], "transfer_to_moon")])
def test_a_handoff_that_the_model_invents_is_an_unknown_tool(targets: list[str], name: str) -> None:
    graph = desk(*targets).add_edge("tools", "billing") if not targets else desk(*targets)

    result = graph.compile().invoke(calling(name), {"thread_id": "t1"})

    answer = result["messages"][1].contents[0]
    assert (answer.call_id, answer.additional_properties["is_error"]) == ("c1", True)
    assert f"no tool '{name}'" in answer.result


async def test_a_tool_node_that_is_called_without_a_graph_knows_only_its_own_handoffs() -> None:
    tools = ToolNode([create_handoff_tool("billing")])

    assert (await tools.invoke("transfer_to_billing", {})).goto == "billing"
    assert "no tool" in (await tools.invoke("transfer_to_moon", {})).contents[0].result
