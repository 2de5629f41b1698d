"""Tools in a graph: calls side by side, their results in order, what the graph fills in, failures and questions."""

from __future__ import annotations

import asyncio
import operator
import time
from typing import Annotated, Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agentbench import Content, FileCheckpointStorage, Message, tool
from agentbench.exceptions import ConcurrentUpdateError, NodeError
from agentbench.stategraph.command import Command
from agentbench.stategraph.graph import StateGraph
from agentbench.stategraph.interrupts import interrupt
from agentbench.stategraph.state import START, AgentState
from agentbench.stategraph.toolnode import ToolNode, ToolResult
from tests.parts.errors import raises

THREAD = {"thread_id": "t1"}


class Trip(AgentState):
    seats: Annotated[list[str], operator.add] = []
    city: str = ""


def calling(*calls: tuple[str, Any]) -> list[Message]:
    contents = [
        Content.from_function_call(f"call_{n}", name, arguments=arguments)
        for n, (name, arguments) in enumerate(calls, start=1)
    ]
    return [Message("assistant", contents, message_id="asking")]


def run(node: ToolNode, messages: Any, **config: Any) -> Any:
    return trip(node).invoke({"messages": messages}, {**THREAD, **config}, "full")


def trip(node: ToolNode, **settings: Any) -> Any:
    return StateGraph(Trip, name="trip").add_node("tools", node).add_edge(START, "tools").compile(**settings)


def said(result: Any) -> list[str]:
    return [content.result for message in result["messages"] if message.role == "tool" for content in message.contents]


async def fog(city: str, days: int = 1) -> str:
    """Tell the weather."""
    await asyncio.sleep(0.003 * (5 - days))
    return f"Fog in {city} for {days} days."


def test_a_stream_of_updates_has_the_results_of_all_calls():
    calls = calling(*(("fog", {"city": "Oslo", "days": days}) for days in (1, 2)))
    (update,) = trip(ToolNode([fog])).stream({"messages": calls}, THREAD, stream_mode="updates")
    assert [message.contents[0].result for message in update["tools"]["context"]] == [
        "Fog in Oslo for 1 days.",
        "Fog in Oslo for 2 days.",
    ]


def test_results_come_in_the_order_of_the_calls_one_message_each():
    result = run(ToolNode([fog]), calling(*(("fog", {"city": "Oslo", "days": days}) for days in (1, 2, 3))))
    assert said(result) == [f"Fog in Oslo for {days} days." for days in (1, 2, 3)]
    messages = result["context"][1:]
    assert [message.role for message in messages] == ["tool"] * 3
    assert [message.contents[0].call_id for message in messages] == ["call_1", "call_2", "call_3"]


def test_schemas_leave_out_what_the_graph_fills_in():
    def book(
        seat: str, state: Trip, config: dict[str, Any], tool_call_id: str, emit: Any, runtime: Any, store: Any
    ) -> str:
        """Book a seat."""
        emit(seat)
        return f"{seat} {state.city} {config['thread_id']} {tool_call_id} {runtime.step} {store}"

    node = ToolNode().add_tool(book)
    assert [*node.tools] == ["book"]
    (spec,) = node.all_tools()
    assert spec["function"]["name"], spec["function"]["description"] == ("book", "Book a seat.")
    assert [*spec["function"]["parameters"]["properties"]] == ["seat"]
    app = trip(node, store="shelf")
    result = app.invoke({"messages": calling(("book", '{"seat": "4A"}')), "city": "Graz"}, THREAD)
    assert said(result) == ["4A Graz t1 call_1 1 shelf"]


def broken() -> str:
    message = "out of order"
    raise OSError(message)


def slow() -> str:
    time.sleep(0.6)
    return "late"


def test_what_goes_wrong_is_a_result_for_the_model():
    node = ToolNode([fog, broken, slow])
    calls = [("nothing", {}), ("fog", "{not json"), ("fog", {}), ("fog", {"city": 7}), ("broken", {}), ("slow", {})]
    result = run(node, calling(*calls), tool_timeout=0.3)
    words = [
        "no tool 'nothing'. Tools: fog",
        "do not fit",
        "city: Field required",
        "city",
        "out of order",
        "0.3 s",
    ]
    for message, word in zip(result["context"][1:], words, strict=True):
        content = message.contents[0]
        assert word in content.result
        assert (content.additional_properties["is_error"], content.additional_properties["status"]) == (True, "failed")
    with pytest.raises(NodeError):
        run(ToolNode([broken], handle_errors=False), calling(("broken", {})))


def test_a_node_without_messages_or_calls_says_so():
    for messages, code in (([], "NODE_003"), ("hello", "NODE_002")):
        with pytest.raises(NodeError, match=code):
            run(ToolNode([fog]), messages)


def test_tools_update_the_state_by_its_reducers_in_call_order():
    async def reserve(seat: str, wait: float) -> ToolResult:
        await asyncio.sleep(wait)
        return ToolResult(f"Seat {seat}.", state={"seats": [seat]})

    def move(city: str) -> ToolResult:
        return ToolResult("Moved.", state={"city": city})

    def stay(city: str) -> ToolResult:
        return ToolResult("Stayed.", state={"city": city})

    node = ToolNode([reserve, move, stay])
    result = run(node, calling(("reserve", {"seat": "A", "wait": 0.01}), ("reserve", {"seat": "B", "wait": 0})))
    assert (result["state"].seats, said(result)) == (["A", "B"], ["Seat A.", "Seat B."])
    assert run(node, calling(("move", {"city": "Graz"}), ("stay", {"city": "Graz"})))["state"].city == "Graz"
    with raises(ConcurrentUpdateError, "'move'", "'stay'", "'city'"):
        run(node, calling(("move", {"city": "Graz"}), ("stay", {"city": "Wien"})))


@pytest.mark.filterwarnings("ignore:No edge leads to")
def test_tools_route_by_commands_and_handoffs():
    graph = StateGraph(Trip, name="trip")
    graph.add_node("tools", ToolNode([_lead]))
    for name in ("billing", "support"):
        graph.add_node(name, lambda state, name=name: {"seats": [name]})
    graph.add_conditional_edges(START, lambda state: "tools")
    app = graph.compile()
    both = app.invoke({"messages": calling(("transfer_to_billing", {}), ("lead", {"to": "support"}))}, THREAD)
    assert (both.state.seats, said(both)) == (["billing", "support"], ["Transferred to billing.", ""])
    assert both.state.city == "led"


def _lead(to: str) -> Command:
    return Command(goto=to, update={"city": "led"})


_lead.__name__ = "lead"


def test_a_tool_that_changes_its_state_in_place_is_warned_of():
    def spoil(state: Trip) -> str:
        state.seats.append("mine")
        return "done"

    result = run(ToolNode([spoil]), calling(("spoil", {})))
    assert result["state"].seats == []
    assert "'spoil' changed its copy" in result.warnings[0]


def test_only_the_call_that_asked_runs_again(tmp_path: Any):
    ran: list[str] = []

    def plain() -> str:
        ran.append("plain")
        return "plain"

    async def asks(what: str) -> str:
        ran.append(f"asks {what}")
        await asyncio.sleep(0.02 if what == "a" else 0)  # the second call asks first
        return f"{what} {interrupt(what)}"

    def fails() -> str:
        ran.append("fails")
        raise OSError

    def app() -> Any:
        return trip(ToolNode([plain, asks, fails]), checkpointer=FileCheckpointStorage(tmp_path))

    calls = calling(("plain", {}), ("asks", {"what": "a"}), ("fails", {}), ("asks", {"what": "b"}))
    paused = app().invoke({"messages": calls}, THREAD)
    assert [(each.value, each.tool_call_id) for each in paused.interrupts] == [("a", "call_2"), ("b", "call_4")]
    ids = [each.id for each in paused.interrupts]
    done = app().invoke({"resume": {ids[1]: "B", ids[0]: "A"}}, THREAD)
    assert said(done) == ["plain", "a A", "OSError: ", "b B"]
    assert sorted(ran) == ["asks a", "asks a", "asks b", "asks b", "fails", "plain"]


def test_a_finished_call_is_not_repeated_by_a_retry():
    ran: list[str] = []

    def once() -> str:
        ran.append("once")
        return "done"

    def flaky() -> str:
        ran.append("flaky")
        if ran.count("flaky") == 1:
            raise OSError
        return "up"

    app = trip(ToolNode([once, flaky], handle_errors=False))
    with pytest.raises(NodeError):
        app.invoke({"messages": calling(("once", {}), ("flaky", {}))}, THREAD)
    assert said(app.invoke(None, THREAD)) == ["done", "up"]
    assert sorted(ran) == ["flaky", "flaky", "once"]


def test_the_same_id_in_two_turns_runs_both():
    app = trip(ToolNode([fog]))
    for turn in range(2):
        asking = calling(("fog", {"city": f"C{turn}"}))
        asking[0].message_id = f"m{turn}"
        assert said(app.invoke({"messages": asking}, THREAD)) == [f"Fog in C{turn} for 1 days."]


def test_tools_of_agents_work_and_a_person_approves():
    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    for answer, words in ((True, "paid 5"), (False, "A person declined the call to pay.")):
        app = trip(ToolNode([pay]))
        paused = app.invoke({"messages": calling(("pay", {"amount": 5}))}, THREAD)
        assert paused.interrupts[0].value == {"tool": "pay", "arguments": {"amount": 5}}
        assert said(app.invoke({"resume": answer}, THREAD)) == [words]


@given(st.lists(st.sampled_from(["x", "x_2", "x_2_2"]), min_size=2, max_size=5), st.integers(0, 4))
@example(["x", "x", "x_2"], 1)
def test_an_approval_runs_one_call_whatever_ids_a_model_gives_to_its_calls(ids: list[str], approved: int):
    approved %= len(ids)
    wiped = []

    @tool(approval_mode="always_require")
    def wipe(disk: int) -> str:
        """Wipe a disk."""
        wiped.append(disk)
        return f"disk {disk} is wiped"

    app = trip(ToolNode([wipe]))
    contents = [Content.from_function_call(one, "wipe", arguments={"disk": disk}) for disk, one in enumerate(ids)]
    paused = app.invoke({"messages": [Message("assistant", contents, message_id="asking")]}, THREAD)
    assert [one.value["arguments"]["disk"] for one in paused.interrupts] == list(range(len(ids)))
    answers = {one.id: disk == approved for disk, one in enumerate(paused.interrupts)}
    result = app.invoke({"resume": answers}, THREAD, "full")
    assert wiped == [approved]
    assert said(result)[approved] == f"disk {approved} is wiped"
