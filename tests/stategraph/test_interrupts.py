"""Pauses: breakpoints between supersteps, and questions that nodes ask."""

from __future__ import annotations

import asyncio
import operator
from threading import Lock
from typing import Annotated, Any, TypedDict

import pytest
from pydantic import BaseModel

from agentbench import FileCheckpointStorage, Message
from agentbench.exceptions import GraphError
from agentbench.stategraph.command import Command
from agentbench.stategraph.functional import entrypoint, task
from agentbench.stategraph.graph import StateGraph
from agentbench.stategraph.interrupts import BreakpointRequest, Interrupt, interrupt, pending_interrupt
from agentbench.stategraph.state import END, START, AgentState, ExecutionStatus
from tests.parts.errors import raises
from tests.parts.graphs import note

THREAD = {"thread_id": "t1"}


class Notes(AgentState):
    notes: Annotated[list[str], operator.add] = []


def line(*names: str, **settings: Any) -> Any:
    graph = StateGraph(Notes, name="line")
    for name in names:
        graph.add_node(name, note(name))
    for before, after in zip((START, *names), (*names, END), strict=True):
        graph.add_edge(before, after)
    return graph.compile(**settings)


# ---- breakpoints -----------------------------------------------------------------------------------------------------


def test_breakpoints_pause_once_and_the_same_one_pauses_at_the_next_visit():
    app = line("a", "b", "c", interrupt_before=["b"], interrupt_after=["b"])
    first = app.invoke("go", THREAD)
    assert (first.status, first.state.notes, first.interrupts[0].reasons) == (
        ExecutionStatus.INTERRUPTED, ["a"], ("interrupt_before: b",),
    )  # fmt: skip
    meta = first.state.execution_meta
    assert (meta.current_node, meta.interrupt_node, meta.interrupt_when) == ("b", "b", "before")
    second = app.invoke(None, THREAD)
    assert (second.state.notes, second.interrupts[0].reasons) == (["a", "b"], ("interrupt_after: b",))
    assert app.invoke(None, THREAD).status is ExecutionStatus.COMPLETED
    assert app.invoke("again", THREAD).interrupts[0].reasons == ("interrupt_before: b",)


def test_before_and_after_on_one_edge_is_one_pause_with_two_reasons():
    app = line("a", "b", interrupt_after=["a"], interrupt_before=["b"])
    paused = app.invoke("go", THREAD)
    assert paused.interrupts[0].reasons == ("interrupt_after: a", "interrupt_before: b")
    assert paused.state.execution_meta.interrupt_reason == "interrupt_after: a; interrupt_before: b"
    assert app.invoke(None, THREAD).status is ExecutionStatus.COMPLETED


def test_all_nodes_an_entry_node_and_settings_of_one_call():
    app = line("a", "b", interrupt_before="*")
    assert app.invoke("go", THREAD).state.notes == []
    assert app.invoke(None, THREAD).state.notes == ["a"]
    assert app.invoke(None, THREAD).state.notes == ["a", "b"]
    free = line("a", "b")
    assert free.invoke("go", {**THREAD, "interrupt_after": ["a"]}).status is ExecutionStatus.INTERRUPTED
    assert app.invoke("go", {"thread_id": "t2", "interrupt_before": []}).status is ExecutionStatus.COMPLETED


def test_a_pause_never_splits_parallel_nodes():
    graph = StateGraph(Notes)
    for name in "abc":
        graph.add_node(name, note(name)).add_edge(START, name)
    app = graph.compile(interrupt_before=["b"], interrupt_after=["c"])
    paused = app.invoke("go", THREAD)
    assert (paused.interrupts[0].next, paused.state.notes) == (("a", "b", "c"), [])
    done = app.invoke(None, THREAD)
    assert (done.status, done.state.notes) == (ExecutionStatus.COMPLETED, ["a", "b", "c"])


def test_a_loop_pauses_at_each_visit():
    graph = StateGraph(Notes).add_node("try", note("try")).set_entry_point("try")
    graph.add_conditional_edges("try", lambda state: END if len(state.notes) == 3 else "try", ["try", END])
    app = graph.compile(interrupt_before=["try"])
    app.invoke("go", THREAD)
    seen = [app.invoke(None, THREAD).state.notes for _ in range(3)]
    assert [len(notes) for notes in seen] == [1, 2, 3]


def test_new_messages_at_a_breakpoint_are_merged_and_the_run_goes_on():
    app = line("a", "b", interrupt_before=["b"])
    app.invoke("one", THREAD)
    done = app.invoke({"messages": "two", "notes": ["mine"]}, THREAD, "full")
    assert [message.text for message in done["context"]] == ["one", "two"]
    assert (done["state"].notes, [m.text for m in done["messages"]]) == (["a", "mine", "b"], ["two"])


# ---------------------------------------------------------------------------------------------------------- questions


def ask_twice(state: Notes) -> dict[str, Any]:
    colour = interrupt("colour", message="Which colour?", response_schema=str)
    return {"notes": [colour, interrupt("size", response_schema=int) * "x"]}


def asking(node: Any = ask_twice, **settings: Any) -> Any:
    return StateGraph(Notes, name="asking").add_node("ask", node).set_entry_point("ask").compile(**settings)


def test_a_node_asks_and_runs_again_with_the_answers():
    app = asking()
    first = app.invoke("go", THREAD)
    question = first.interrupts[0]
    assert isinstance(question, Interrupt)
    assert (question.node, question.value, question.message) == ("ask", "colour", "Which colour?")
    assert (first.status, first.state.execution_meta.interrupt_when) == (ExecutionStatus.INTERRUPTED, "during")
    found = pending_interrupt(first.state)
    assert found is not None
    assert (found.id, found.value) == (question.id, "colour")
    second = app.invoke({"resume": "red"}, THREAD)
    assert [each.value for each in second.interrupts] == ["size"]
    third = app.invoke(Command(resume=2), THREAD)
    assert (third.state.notes, third.interrupts, pending_interrupt(third.state)) == (["red", "xx"], [], None)


def test_a_wrong_answer_an_input_and_a_missing_one_leave_the_question_open():
    app = asking()
    app.invoke("go", THREAD)
    for wrong, words in (({"resume": 5}, "expected str"), (None, "Which colour"), ("hello", "app.invoke")):
        with pytest.raises(ValueError, match=words):
            app.invoke(wrong, THREAD)
        assert len(app.get_state(THREAD).interrupts) == 1
    assert app.invoke({"resume": "red"}, THREAD).interrupts[0].value == "size"


def test_none_is_an_answer():
    app = asking(lambda state: {"notes": [repr(interrupt("anything"))]})
    app.invoke("go", THREAD)
    assert app.invoke({"resume": None}, THREAD).state.notes == ["None"]


def test_an_answer_may_come_with_an_update():
    app = asking(lambda state: {"notes": [interrupt("name")]})
    app.invoke("go", THREAD)
    assert app.invoke(Command(resume="Ann", update={"notes": ["first"]}), THREAD).state.notes == ["first", "Ann"]


def test_an_answer_may_come_with_nodes_that_run_beside_the_one_that_asked():
    graph = StateGraph(Notes).add_node("ask", lambda state: {"notes": [interrupt("name")]}, goes_to=["log"])
    app = graph.add_node("log", note("log")).set_entry_point("ask").compile()
    paused = app.invoke("go", THREAD)
    with raises(GraphError, "'nowhere'"):
        app.invoke(Command(resume="Ann", goto="nowhere"), THREAD)
    assert list(app.get_state(THREAD).interrupts) == paused.interrupts
    assert app.invoke(Command(resume="Ann", goto="log"), THREAD).state.notes == ["Ann", "log"]


class Approval(BaseModel):
    approved: bool


def test_the_answer_is_of_the_type_that_was_asked_for():
    app = asking(lambda state: {"notes": [str(interrupt("pay", response_schema=Approval).approved)]})
    app.invoke("go", THREAD)
    assert app.invoke({"resume": {"approved": True}}, THREAD).state.notes == ["True"]


def test_parallel_questions_are_answered_by_id_in_any_order_and_nothing_runs_in_vain():
    ran: list[str] = []

    def node(name: str) -> Any:
        def run(state: Notes) -> dict[str, Any]:
            ran.append(name)
            return {"notes": [interrupt(name)]}

        return run

    def plain(state: Notes) -> dict[str, Any]:
        ran.append("plain")
        return {"notes": ["plain"]}

    graph = StateGraph(Notes).add_node(plain).add_edge(START, "plain")
    for name in ("left", "right"):
        graph.add_node(name, node(name)).add_edge(START, name)
    app = graph.compile()
    paused = app.invoke("go", THREAD)
    ids = {each.node: each.id for each in paused.interrupts}
    with raises(ValueError, "questions"):
        app.invoke({"resume": "?"}, THREAD)
    half = app.invoke({"resume": {ids["right"]: "R"}}, THREAD)
    assert [each.node for each in half.interrupts] == ["left"]
    assert app.get_state(THREAD).pending_writes.keys() == {"1:plain:1"}
    done = app.invoke({"resume": {ids["left"]: "L"}}, THREAD)
    assert done.state.notes == ["plain", "L", "R"]
    assert sorted(ran) == ["left", "left", "plain", "right", "right"]


def test_keys_tell_questions_apart_whose_order_changes():
    def node(state: Notes) -> dict[str, Any]:
        order = ("a", "b") if not turns else ("b", "a")
        turns.append(1)
        return {"notes": sorted(interrupt(key, key=key) for key in order)}

    turns: list[int] = []
    app = asking(node)
    assert app.invoke("go", THREAD).interrupts[0].key == "a"
    assert app.invoke({"resume": "A"}, THREAD).interrupts[0].key == "b"
    assert app.invoke({"resume": "B"}, THREAD).state.notes == ["A", "B"]


async def test_questions_in_async_nodes_and_generators():
    async def generator(state: Notes) -> Any:
        yield {"notes": ["before"]}
        yield {"notes": [interrupt("name")]}

    async def plain(state: Notes) -> dict[str, Any]:
        return {"notes": [interrupt("name")]}

    for node, notes in ((generator, ["before", "Ann"]), (plain, ["Ann"])):
        app = asking(node)
        await app.ainvoke("go", THREAD)
        assert (await app.ainvoke({"resume": "Ann"}, THREAD)).state.notes == notes


def test_a_node_that_swallows_the_question_fails():
    def node(state: Notes) -> dict[str, Any]:
        try:
            return {"notes": [interrupt("name")]}
        except BaseException:  # noqa: BLE001 - what this test is about
            return {"notes": ["nobody"]}

    def cautious(state: Notes) -> dict[str, Any]:
        try:
            return {"notes": [interrupt("name")]}
        except Exception:  # noqa: BLE001 - what this test is about
            return {"notes": ["nobody"]}

    with raises(GraphError, "[GRAPH_010]"):
        asking(node).invoke("go", THREAD)
    assert len(asking(cautious).invoke("go", THREAD).interrupts) == 1


def test_interrupt_outside_a_run_says_so():
    with raises(RuntimeError, "outside"):
        interrupt("name")


def test_a_graph_without_storage_cannot_ask_and_says_so():
    with raises(GraphError, "checkpointer=False"):
        asking(checkpointer=False).invoke("go", THREAD)
    with raises(GraphError, "checkpointer=False"):
        line("a", interrupt_before=["a"], checkpointer=False)


def test_a_question_outlasts_the_process(tmp_path: Any):
    asking(checkpointer=FileCheckpointStorage(tmp_path)).invoke("go", THREAD)
    later = asking(checkpointer=FileCheckpointStorage(tmp_path))
    snapshot = later.get_state(THREAD)
    assert (snapshot.next, snapshot.interrupts[0].message) == (("ask",), "Which colour?")
    assert isinstance(snapshot.values.context[0], Message)
    later.invoke({"resume": "red"}, THREAD)
    assert later.invoke({"resume": 1}, THREAD).state.notes == ["red", "x"]
    paused = line("a", "b", interrupt_before=["b"], checkpointer=FileCheckpointStorage(tmp_path))
    paused.invoke("go", THREAD)
    assert isinstance(paused.get_state(THREAD).interrupts[0], BreakpointRequest)


class Topic(TypedDict, total=False):
    topic: str
    text: str
    other: Any


def calling(**settings: Any) -> Any:
    """Return a graph whose node calls a graph of two nodes, of which the second asks."""
    inner = StateGraph(Topic)
    inner.add_node("write", lambda state: {"text": f"about {state['topic']}"})
    inner.add_node("approve", lambda state: {"text": f"{state['text']}: {interrupt('approve?')}"})
    inner.add_edge(START, "write").add_edge("write", "approve")
    called = inner.compile()
    outer = StateGraph(Topic).add_node("node", lambda state: {"text": called.invoke({"topic": state["topic"]})["text"]})
    return outer.add_edge(START, "node").compile(**settings)


def test_a_called_graph_that_asks_outlasts_the_process_with_the_graph_that_calls_it(tmp_path: Any):
    calling(checkpointer=FileCheckpointStorage(tmp_path)).invoke({"topic": "owls"}, THREAD)
    later = calling(checkpointer=FileCheckpointStorage(tmp_path))
    assert [question.value for question in later.get_state(THREAD).interrupts] == ["approve?"]
    assert later.invoke(Command(resume="yes"), THREAD)["text"] == "about owls: yes"


async def test_graphs_called_at_the_same_time_ask_together():
    async def ask(state: Topic) -> Topic:
        return {"text": f"{state['topic']}: {interrupt(state['topic'])}"}

    called = StateGraph(Topic).add_node("ask", ask).add_edge(START, "ask").compile()

    async def both(state: Topic) -> Topic:
        results = await asyncio.gather(*[called.ainvoke({"topic": topic}) for topic in ("owls", "bees")])
        return {"text": ", ".join(result["text"] for result in results)}

    app = StateGraph(Topic).add_node("both", both).add_edge(START, "both").compile()
    paused = await app.ainvoke({}, THREAD)
    answers = {question.id: question.value.upper() for question in paused.interrupts}
    assert (await app.ainvoke(Command(resume=answers), THREAD))["text"] == "owls: OWLS, bees: BEES"
    assert await called.alist_threads() == []  # their runs are stored with the graph that calls them


def test_a_graph_called_in_a_task_lets_the_run_wait():
    called = calling()

    @task
    def in_task() -> Any:
        return called.invoke({"topic": "owls"})["text"]

    @entrypoint()
    def essay(count: int) -> list[str]:
        return [in_task().result() for _ in range(count)]

    assert [each.value for each in essay.invoke(2, THREAD)["__interrupt__"]] == ["approve?"]
    essay.invoke(Command(resume="1"), THREAD)
    assert essay.invoke(Command(resume="2"), THREAD) == ["about owls: 1", "about owls: 2"]


def test_a_graph_called_by_a_node_with_an_agent_state_returns_its_questions():
    called = calling()
    outer = StateGraph(Notes).add_node(
        "a", lambda state: {"notes": [q.value for q in called.invoke({"topic": ""}).interrupts]}
    )
    with pytest.warns(UserWarning, match="no thread_id"):
        assert outer.add_edge(START, "a").compile().invoke("go", THREAD).state.notes == ["approve?"]


def test_an_error_after_a_called_graph_is_not_hidden_by_values_that_cannot_be_saved():
    called = StateGraph(Topic).add_node("open", lambda state: {"other": Lock()}).add_edge(START, "open").compile()

    def node(state: Topic) -> Topic:
        called.invoke({"topic": ""})
        message = "of the node"
        raise LookupError(message)

    app = StateGraph(Topic).add_node("node", node).add_edge(START, "node").compile()
    with pytest.raises(LookupError, match="of the node"), pytest.warns(UserWarning, match="no thread_id"):
        app.invoke({})
