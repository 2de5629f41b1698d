"""Threads of an older state graph in a newer one: nodes, fields, defaults and types."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest

from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import MigrationError, ThreadBusyError
from agentbench.stategraph import END, START, AgentState, StateGraph, interrupt
from agentbench.stategraph.compiled import CompiledGraph
from tests.parts.errors import raises

CONFIG = {"thread_id": "t"}


class Old(AgentState):
    severity: str = "3"
    notes: Annotated[list[str], operator.add] = []
    leftover: int = 1


class New(AgentState):
    severity: int = 0
    remarks: Annotated[list[str], operator.add] = []
    owner: str = "nobody"


class Strict(AgentState):
    severity: int


def note(name: str, field: str) -> Any:
    def node(state: AgentState) -> dict[str, Any]:
        return {field: [name]}

    return node


def compiled(state: type, field: str, *names: str, storage: Any, pause: str | None = None) -> CompiledGraph[Any]:
    graph: StateGraph[Any] = StateGraph(state, name="g")
    for name in names:
        graph.add_node(name, note(name, field))
    for source, target in zip((START, *names), (*names, END), strict=True):
        graph.add_edge(source, target)
    return graph.compile(checkpointer=storage, interrupt_before=[pause] if pause else [])


async def test_a_paused_thread_continues_in_a_graph_with_other_nodes_fields_and_types() -> None:
    storage = InMemoryCheckpointStorage()
    old = compiled(Old, "notes", "look", "judge", storage=storage, pause="judge")
    await old.ainvoke({"messages": "hello"}, CONFIG)
    new = compiled(New, "remarks", "look", "decide", "write", storage=storage, pause="decide")
    migration = await new.amigrate(
        CONFIG, renamed={"judge": "decide", "notes": "remarks"}, dropped=["leftover"], functions={"severity": int}
    )
    assert migration.after.state["owner"] == "nobody"
    assert migration.after.state["severity"] == 3
    assert "- state.leftover = 1" in str(migration)
    await migration.apply()
    snapshot = await new.aget_state(CONFIG)
    assert snapshot.interrupts[0].next == ("decide",)
    assert (snapshot.next, snapshot.invalid, snapshot.extra) == (("decide",), None, {})
    await new.ainvoke(None, CONFIG)
    state = (await new.aget_state(CONFIG)).values
    assert (state.remarks, state.severity, state.owner) == (["look", "decide", "write"], 3, "nobody")


async def test_a_value_that_does_not_fit_its_new_type_is_refused_with_the_name_of_the_field() -> None:
    storage = InMemoryCheckpointStorage()
    old = compiled(Old, "notes", "look", "judge", storage=storage, pause="judge")
    await old.ainvoke({"state": {"severity": "sk-verysecret"}, "messages": "hello"}, CONFIG)
    new = compiled(New, "remarks", "look", "judge", storage=storage)
    with raises(MigrationError, "functions=", name="severity") as caught:
        await new.amigrate(CONFIG)
    assert "verysecret" not in str(caught.value)
    assert len(await storage.list_infos()) == len(await storage.list_infos(workflow_name="g/t"))


async def test_a_node_that_is_due_and_gone_is_refused() -> None:
    storage = InMemoryCheckpointStorage()
    await compiled(Old, "notes", "look", "judge", storage=storage, pause="judge").ainvoke({"messages": "x"}, CONFIG)
    with raises(MigrationError, name="judge"):
        await compiled(Old, "notes", "look", storage=storage).amigrate(CONFIG)


async def test_a_field_without_a_value_and_a_default_is_refused() -> None:
    storage = InMemoryCheckpointStorage()
    graph = StateGraph(AgentState, name="g").add_node("look", lambda state: {}).add_edge(START, "look")
    await graph.add_edge("look", END).compile(checkpointer=storage).ainvoke({"messages": "x"}, CONFIG)
    new = StateGraph(Strict, name="g").add_node("look", lambda state: {}).add_edge(START, "look").add_edge("look", END)
    with raises(MigrationError, name="severity"):
        await new.compile(checkpointer=storage).amigrate(CONFIG)


async def test_an_open_question_moves_with_its_node() -> None:
    def ask(state: Any) -> dict[str, Any]:
        return {"notes": [interrupt("Which one?")]}

    def asking(name: str, storage: Any) -> CompiledGraph[Any]:
        graph = StateGraph(Old, name="g").add_node(name, ask).add_edge(START, name).add_edge(name, END)
        return graph.compile(checkpointer=storage)

    storage = InMemoryCheckpointStorage()
    await asking("ask", storage).ainvoke({"messages": "x"}, CONFIG)
    new = asking("question", storage)
    await (await new.amigrate(CONFIG, renamed={"ask": "question"})).apply()
    snapshot = await new.aget_state(CONFIG)
    assert [each.node for each in snapshot.interrupts] == ["question"]
    await new.ainvoke({"resume": "this"}, CONFIG)
    assert (await new.aget_state(CONFIG)).values.notes == ["this"]


async def test_the_loser_of_two_migrations_of_a_thread_gets_a_busy_error() -> None:
    storage = InMemoryCheckpointStorage()
    await compiled(Old, "notes", "look", storage=storage).ainvoke({"messages": "x"}, CONFIG)
    new = compiled(Old, "notes", "look", "write", storage=storage)
    first, second = await new.amigrate(CONFIG), await new.amigrate(CONFIG)
    await second.apply()
    with pytest.raises(ThreadBusyError):
        await first.apply()
