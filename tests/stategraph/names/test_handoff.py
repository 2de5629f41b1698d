"""Tools by which a model hands the conversation over to another node."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

import pytest

from agentbench import Agent, Content, FunctionInvocationContext, FunctionTool, Message, function_middleware, tool
from agentbench.exceptions import GraphCompileError
from agentbench.stategraph import add_messages
from agentbench.stategraph.core.graph import StateGraph, ToolNode
from agentbench.stategraph.core.state import AgentState
from agentbench.stategraph.prebuilt.tools import create_handoff_tool, is_handoff_tool
from agentbench.stategraph.utils import END, START
from agentbench.testing import Call, ScriptedChatClient
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


# ---- agents that are nodes


def search(question: str) -> str:
    """Search the archive."""
    return f"Nothing about {question}."


def office(agent: Agent, state: Any = None) -> StateGraph[Any]:
    """Return a graph whose edge leads from the agent to `closing`, and whose handoffs lead to `billing`."""
    graph: StateGraph[Any] = StateGraph(state).add_node("triage", agent)
    for name, said in (("billing", "Your invoice."), ("closing", "Goodbye.")):
        graph.add_node(name, lambda state, said=said: {"messages": [Message("assistant", [said])]})
    return graph.add_edge(START, "triage").add_edge("triage", "closing")


def triage(*turns: Any, tools: Any = None, **settings: Any) -> Agent:
    tools = [create_handoff_tool("billing"), search] if tools is None else tools
    return Agent(ScriptedChatClient([*turns]), name="triage", tools=tools, **settings)


HANDS_OVER = [Call("transfer_to_billing"), Call("search", {"question": "ships"})]


@pytest.mark.parametrize("is_streamed", [False, True], ids=["awaited", "streamed"])
async def test_an_agents_handoff_ends_its_answer_and_the_graph_goes_on_at_the_target(is_streamed: bool) -> None:
    app = office(triage(HANDS_OVER, "Never said.")).compile()

    if is_streamed:
        async for _ in app.astream("Hi", {"thread_id": "t1"}):
            pass
        messages = (await app.aget_state({"thread_id": "t1"})).values.context
    else:
        messages = (await app.ainvoke("Hi", {"thread_id": "t1"}))["messages"]

    _, asking, answer, said = messages
    assert [one.call_id for one in answer.contents] == [one.call_id for one in asking.contents]
    assert [one.result for one in answer.contents] == ["Transferred to billing.", "Nothing about ships."]
    assert said.text() == "Your invoice."


def test_an_agent_that_hands_nothing_over_is_followed_by_its_edge() -> None:
    agent = triage([Call("search", {"question": "ships"})], "No ships.")

    result = office(agent).compile().invoke("Hi", {"thread_id": "t1"})

    assert [message.text() for message in result["messages"][-2:]] == ["No ships.", "Goodbye."]


def test_a_handoff_of_an_agent_goes_on_at_the_target_with_other_state_classes_too() -> None:
    class Chat(TypedDict):
        messages: Annotated[list[Any], add_messages]

    result = office(triage(HANDS_OVER), Chat).compile().invoke({"messages": ["Hi"]})

    assert "Your invoice." in [message.text() for message in result["messages"]]


@pytest.mark.parametrize(("answer", "said"), [(True, "Your invoice."), (False, "Goodbye.")])
def test_a_person_approves_the_handoff_of_an_agent(answer: bool, said: str) -> None:
    handoff = FunctionTool(create_handoff_tool("billing"), approval_mode="always_require")
    app = office(triage([Call("transfer_to_billing")], "I cannot.", tools=[handoff])).compile()

    asked = app.invoke("Hi", {"thread_id": "t1"})
    result = app.invoke({"resume": answer}, {"thread_id": "t1"})

    assert asked.interrupts[0].value.function_call.name == "transfer_to_billing"
    assert result["messages"][-1].text() == said


def test_a_middleware_refuses_the_handoff_of_an_agent() -> None:
    @function_middleware
    async def refuse(context: FunctionInvocationContext, call_next: Any) -> None:
        context.result = "Billing is closed."

    agent = triage([Call("transfer_to_billing")], "Billing is closed today.", middleware=[refuse])

    result = office(agent).compile().invoke("Hi", {"thread_id": "t1"})

    assert [message.text() for message in result["messages"][-2:]] == ["Billing is closed today.", "Goodbye."]


def test_an_unknown_target_of_an_agent_is_found_when_the_graph_is_compiled() -> None:
    with raises(GraphCompileError, error_code="GRAPH_004", node="support") as caught:
        office(triage(tools=[create_handoff_tool("support")])).compile()
    assert "billing" in str(caught.value)


def test_the_way_of_an_agents_handoff_is_drawn_dashed() -> None:
    edges = {(edge.source, edge.target): edge for edge in read_shape(office(triage()).compile().workflow).edges}
    assert edges["triage", "billing"].is_dashed
    assert not edges["triage", "closing"].is_dashed


async def test_outside_a_graph_a_handoff_ends_the_run_of_the_agent() -> None:
    response = await triage(HANDS_OVER, "Never said.").run("Hi")

    asking, answer = response.messages
    assert [one.call_id for one in answer.contents] == [one.call_id for one in asking.contents]
    assert answer.contents[0].result == "Transferred to billing."
