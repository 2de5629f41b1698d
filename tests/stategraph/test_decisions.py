"""Where the page of the seed, the system that it describes and others disagree: what is decided here, a test each."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any

import pytest
from pydantic import Field, ValidationError

from agentbench import Message
from agentbench.stategraph import (
    END,
    START,
    AgentState,
    Command,
    ConcurrentUpdateError,
    ExecutionState,
    ExecutionStatus,
    GraphError,
    GraphRecursionError,
    NodeError,
    Overwrite,
    StateGraph,
    StopRequestStatus,
    add_messages,
    remove_tool_messages,
    replace_messages,
    replace_value,
)
from tests.parts.errors import raises
from tests.parts.graphs import note

THREAD = {"thread_id": "t1"}


class Order(AgentState):
    order_id: str | None = None
    notes: Annotated[list[str], operator.add] = []
    plain: int = 0
    last: Annotated[int, replace_value] = 0


def chain(*names: str, nodes: dict[str, Any] | None = None, **settings: Any) -> Any:
    graph = StateGraph(Order)
    for before, name in zip((START, *names), names, strict=False):
        graph.add_node(name, (nodes or {}).get(name, note(name))).add_edge(before, name)
    return graph.compile(**settings)


def one(node: Any, **settings: Any) -> Any:
    return chain("a", nodes={"a": node}, **settings)


def said(text: str, message_id: str | None = None) -> Message:
    return Message.text_message(text, "assistant", message_id)


def test_01_a_dict_updates_fields_by_their_reducers() -> None:
    assert one(note("a")).invoke({"notes": ["b"]}, THREAD).state.notes == ["b", "a"]


def test_02_none_updates_nothing() -> None:
    assert one(lambda state: None).invoke("hi", THREAD).status is ExecutionStatus.COMPLETED


def test_03_a_state_is_an_input_by_itself_and_beside_messages() -> None:
    initial = Order(order_id="ORD-001")

    assert one(note("a")).invoke(initial, THREAD).state.order_id == "ORD-001"
    result = one(note("a")).invoke({"messages": "hi", "state": initial}, THREAD)
    assert (result.state.order_id, result["messages"][0].text) == ("ORD-001", "hi")


def test_04_there_are_four_statuses_and_two_more_names() -> None:
    assert [each.name for each in ExecutionStatus] == ["RUNNING", "INTERRUPTED", "COMPLETED", "ERROR"]
    assert ExecutionStatus.INTERRUPTED_BEFORE is ExecutionStatus("interrupted_after") is ExecutionStatus.INTERRUPTED


def test_05_interrupt_node_has_another_name() -> None:
    meta = chain("a", "b", interrupt_before=["b"]).invoke("hi", THREAD).state.execution_meta
    assert (meta.interrupt_node, meta.interrupted_node, meta.interrupt_when) == ("b", "b", "before")


def test_06_stopped_reads_as_stop_requested() -> None:
    assert StopRequestStatus("stopped") is StopRequestStatus.STOP_REQUESTED


def test_07_a_list_goes_through_the_reducer_of_the_context_and_input_always_appends() -> None:
    class Replaced(AgentState):
        context: Annotated[list[Message], replace_messages] = Field(default_factory=list)

    seen: list[int] = []

    def say(state: Replaced) -> list[Message]:
        seen.append(len(state.context))
        return [said("only")]

    app = StateGraph(Replaced).add_node("say", say).set_entry_point("say").compile()
    app.invoke("one", THREAD)
    result = app.invoke("two", THREAD)

    assert [message.text for message in result.state.context] == ["only"]
    assert seen == [1, 2]


def test_08_an_id_twice_in_one_update_is_kept_once() -> None:
    assert [each.text for each in add_messages([], [said("first", "1"), said("second", "1")])] == ["first"]


def test_09_the_same_id_with_new_content_is_dropped_with_a_warning() -> None:
    app = one(lambda state: [said("new", "1")])
    app.invoke([said("old", "1")], THREAD)
    result = app.invoke(None, {**THREAD, "checkpoint_id": app.get_state_history(THREAD)[-1].config["checkpoint_id"]})

    assert [message.text for message in result.state.context] == ["old"]
    assert "upsert_messages" in result.warnings[0]


def test_10_replace_value_differs_from_no_reducer_only_for_two_writers() -> None:
    def graph(field: str) -> Any:
        built = StateGraph(Order).add_node("a", lambda state: {field: 1}).add_node("b", lambda state: {field: 2})
        return built.add_edge(START, "a").add_edge(START, "b").compile()

    assert graph("last").invoke("hi", THREAD).state.last == 2
    with pytest.raises(ConcurrentUpdateError):
        graph("plain").invoke("hi", THREAD)


def test_11_and_12_several_edges_mean_parallel_nodes() -> None:
    graph = StateGraph(Order)
    for name in "abcd":
        graph.add_node(name, note(name))
    graph.add_edge(START, "a").add_edge(START, "b").add_edge("a", "c").add_edge("a", "d")

    assert [(step, name) for step, _, name, *_ in graph.compile().invoke("hi", THREAD).tasks] == [
        (1, "a"), (1, "b"), (2, "c"), (2, "d"),
    ]  # fmt: skip


@pytest.mark.parametrize(("limit", "is_enough"), [(1, False), (2, True), (3, True)])
def test_13_n_supersteps_need_a_limit_of_n(limit: int, is_enough: bool) -> None:
    app = chain("a", "b")
    if is_enough:
        assert app.invoke("hi", {**THREAD, "recursion_limit": limit}).step == 2
    else:
        with pytest.raises(GraphRecursionError):
            app.invoke("hi", {**THREAD, "recursion_limit": limit})


def test_14_and_15_the_step_counts_nodes_of_this_run_and_the_end_is_the_current_node() -> None:
    app = chain("a", "b")
    app.invoke("hi", THREAD)
    meta = app.invoke("again", THREAD).state.execution_meta

    assert (meta.step, meta.current_node) == (2, END)


def test_16_a_new_state_is_running() -> None:
    assert AgentState().is_running()


def test_17_a_change_in_place_is_not_applied_and_a_state_that_is_returned_is_compared() -> None:
    def change(state: Order) -> None:
        state.notes.append("lost")

    def give_back(state: Order) -> Order:
        state.notes.append("kept")
        return state

    result = one(change).invoke("hi", THREAD)
    assert (result.state.notes, len(result.warnings)) == ([], 1)
    assert one(give_back).invoke({"notes": ["old"]}, THREAD).state.notes == ["old", "kept"]


def test_18_an_unknown_field_is_an_error() -> None:
    with pytest.raises(GraphError):
        one(lambda state: {"unknown": 1}).invoke("hi", THREAD)
    with pytest.raises(ValidationError):
        Order(unknown=1)  # type: ignore[call-arg]


def test_19_a_full_result_has_five_keys() -> None:
    assert {*one(note("a")).invoke("hi", THREAD, "full")} == {"messages", "token_usage", "context", "summary", "state"}


def test_20_messages_are_the_input_of_this_call_and_what_was_added() -> None:
    app = chain("a", "b", nodes={"a": lambda state: "one", "b": lambda state: "two"}, interrupt_before=["b"])

    assert [message.text for message in app.invoke("hi", THREAD)["messages"]] == ["hi", "one"]
    assert [message.text for message in app.invoke(None, THREAD)["messages"]] == ["two"]


def test_21_before_and_after_on_one_edge_is_one_pause() -> None:
    app = chain("a", "b", interrupt_after=["a"], interrupt_before=["b"])

    assert app.invoke("hi", THREAD).interrupts[0].reasons == ("interrupt_after: a", "interrupt_before: b")
    assert app.invoke(None, THREAD).status is ExecutionStatus.COMPLETED


def test_22_new_input_after_an_error_is_a_new_run_and_none_retries() -> None:
    calls: list[str] = []

    def flaky(state: Order) -> dict[str, Any]:
        calls.append(state.context[-1].text)
        if len(calls) < 3:
            raise RuntimeError("down")
        return {"notes": ["flaky"]}

    app = chain("a", "b", nodes={"b": flaky})
    for data in ("one", "two"):
        with pytest.raises(NodeError):
            app.invoke(data, THREAD)

    assert app.invoke(None, THREAD).state.notes == ["a", "a", "flaky"]
    assert calls == ["one", "two", "two"]


def test_23_new_messages_at_a_breakpoint_are_merged_and_the_run_goes_on() -> None:
    app = chain("a", "b", interrupt_before=["b"])
    app.invoke("one", THREAD)
    result = app.invoke("two", THREAD)

    assert result.state.notes == ["a", "b"]
    assert [message.text for message in result.state.context] == ["one", "two"]


def test_24_goto_takes_the_place_of_the_edges() -> None:
    graph = StateGraph(Order).add_node("a", lambda state: Command(goto="c")).add_node("b", note("b"))
    app = graph.add_node("c", note("c")).add_edge(START, "a").add_edge("a", "b").add_edge("b", "c").compile()

    assert app.invoke("hi", THREAD).state.notes == ["c"]


def test_25_and_26_a_result_that_is_not_in_the_path_map_is_an_error_and_conditions_may_take_the_config() -> None:
    def choose(state: Order, config: dict[str, Any]) -> str:
        return str(config["way"])

    graph = StateGraph(Order).add_node("a", note("a")).add_node("b", note("b")).add_edge(START, "a")
    app = graph.add_conditional_edges("a", choose, {"on": "b", "off": END}).compile()

    assert app.invoke("hi", {**THREAD, "way": "on"}).state.notes == ["a", "b"]
    with raises(GraphError, "GRAPH_ROUTING_001", "'up'", "'on'", "'off'"):
        app.invoke("hi", {**THREAD, "way": "up"})


async def test_27_invoke_works_in_a_running_loop() -> None:
    assert one(note("a")).invoke("hi", THREAD).state.notes == ["a"]
    await asyncio.sleep(0)


def test_28_two_graphs_of_one_process_do_not_see_each_others_threads() -> None:
    first, second = one(note("a")), one(note("a"))
    first.invoke("hi", THREAD)

    assert (first.list_threads(), second.list_threads()) == (["t1"], [])


def test_29_and_30_text_and_contents_have_other_names() -> None:
    message = Message(role="user", content=["a", "b"])

    assert (message.text, message.as_text()) == ("a b", "a b")
    assert message.content is message.contents


def test_31_an_error_is_forgotten_after_a_good_run() -> None:
    fails = [True]

    def flaky(state: Order) -> None:
        if fails.pop():
            raise RuntimeError("down")

    app = one(flaky)
    with pytest.raises(NodeError):
        app.invoke("hi", THREAD)
    fails.append(False)

    assert "down" in str(app.get_state(THREAD).values.execution_meta.error_message)
    assert app.invoke(None, THREAD).state.execution_meta.error_message is None


def test_32_an_edge_from_a_list_waits_for_all_of_it() -> None:
    graph = StateGraph(Order).add_node("a", note("a")).add_node("b", note("b")).add_node("c", note("c"))
    app = graph.add_edge(START, "a").add_edge("a", "b").add_edge(["a", "b"], "c").compile()

    assert app.invoke("hi", THREAD).state.notes == ["a", "b", "c"]


def test_33_an_execution_state_is_a_model() -> None:
    assert ExecutionState(current_node="a").model_dump()["current_node"] == "a"


def test_34_remove_tool_messages_is_a_filter() -> None:
    class Wrong(AgentState):
        context: Annotated[list[Message], remove_tool_messages] = Field(default_factory=list)

    with raises(GraphError, "remove_tool_messages"):
        StateGraph(Wrong)
    app = one(lambda state: {"context": Overwrite(remove_tool_messages(state.context))})
    assert len(app.invoke("hi", THREAD).state.context) == 1
