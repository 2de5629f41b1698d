"""Threads of an older state graph in a newer one: nodes, fields, defaults and types."""

from __future__ import annotations

import operator
from contextlib import closing
from pathlib import Path
from typing import Annotated, Any

import pytest

from agentbench import run_sync
from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.cli import main
from agentbench.exceptions import MigrationError, ThreadBusyError
from agentbench.stategraph import END, START, AgentState, StateGraph, interrupt
from agentbench.stategraph.compiled import CompiledGraph
from agentbench.stategraph.running.executors import META
from tests.checkpoints.flow_versions import ring
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


def compiled(
    state: type, field: str, *names: str, storage: Any, pause: str | None = None, name: str = "g"
) -> CompiledGraph[Any]:
    graph: StateGraph[Any] = StateGraph(state, name=name)
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
    assert "_graph" not in str(migration)  # notes of the graph that were only renamed
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


async def test_a_graph_inside_a_node_that_changed_while_it_asks_is_refused() -> None:
    def outer(name: str, storage: Any) -> CompiledGraph[Any]:
        inner = StateGraph(Old, name="inside").add_node(name, lambda state: {"notes": [interrupt("Which one?")]})
        graph = StateGraph(Old, name="g").add_node("sub", inner.add_edge(START, name).add_edge(name, END).compile())
        return graph.add_edge(START, "sub").add_edge("sub", END).compile(checkpointer=storage)

    storage = InMemoryCheckpointStorage()
    await outer("one", storage).ainvoke({"messages": "x"}, CONFIG)
    with raises(MigrationError, "another graph", name="sub"):
        await outer("two", storage).amigrate(CONFIG)


async def test_the_loser_of_two_migrations_of_a_thread_gets_a_busy_error() -> None:
    storage = InMemoryCheckpointStorage()
    await compiled(Old, "notes", "look", storage=storage).ainvoke({"messages": "x"}, CONFIG)
    new = compiled(Old, "notes", "look", "write", storage=storage)
    first, second = await new.amigrate(CONFIG), await new.amigrate(CONFIG)
    await second.apply()
    with pytest.raises(ThreadBusyError):
        await first.apply()


async def test_a_checkpoint_of_a_workflow_cannot_become_a_thread() -> None:
    storage = InMemoryCheckpointStorage()
    await ring("ping", "pong").run(1, checkpoint_storage=storage)
    last = await storage.get_latest(workflow_name="ring")
    assert last is not None
    with raises(MigrationError, "it is of a workflow"):
        await compiled(Old, "notes", "look", storage=storage).amigrate({**CONFIG, "checkpoint_id": last.checkpoint_id})


# ---- the command

newer = compiled(Old, "notes", "look", "decide", "write", storage=False)
elsewhere = compiled(Old, "notes", "look", "decide", storage=False, name="h")
migration = {"renamed": {"judge": "decide"}}
COMMAND = ["--with", f"{__name__}:migration", "--to", f"{__name__}:newer"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    with closing(FileCheckpointStorage(tmp_path)) as storage:
        compiled(Old, "notes", "look", "judge", storage=storage, pause="judge").invoke({"messages": "hello"}, CONFIG)
    return tmp_path


@pytest.mark.parametrize(("options", "thread"), [([], "t~migrated"), (["--as", "g/a b"], "a b")], ids=["", "a name"])
def test_the_copy_of_a_thread_is_a_thread_of_its_own_that_continues(
    folder: Path, options: list[str], thread: str
) -> None:
    assert main(["checkpoints", "migrate", str(folder), "g/t", *COMMAND, "--all", *options]) == 0
    with closing(FileCheckpointStorage(folder)) as storage:
        app = compiled(Old, "notes", "look", "decide", "write", storage=storage)
        config = {"thread_id": thread}
        assert app.list_threads() == sorted(["t", thread])
        for copy in run_sync(storage.list_checkpoints(workflow_name=app.threads.chain(thread))):
            assert (copy.metadata["thread_id"], copy.state[META]["thread_id"]) == (thread, thread)
        app.invoke(None, config)
        assert app.get_state(config).values.notes == ["look", "decide", "write"]
        assert app.get_state(CONFIG).values.notes == ["look"]


@pytest.mark.parametrize(
    "options",
    [["--all", "--as", "two"], ["--to", f"{__name__}:elsewhere"]],
    ids=["another chain", "another graph"],
)
def test_a_chain_where_the_graph_would_not_find_the_thread_is_refused(
    folder: Path, options: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["checkpoints", "migrate", str(folder), "g/t", *COMMAND, *options]) == 1
    assert "finds its threads in chains named" in capsys.readouterr().err
    with closing(FileCheckpointStorage(folder)) as storage:
        assert run_sync(storage.list_workflow_names()) == ["g/t"]
