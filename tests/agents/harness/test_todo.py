"""The list of tasks of an agent."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentSession,
    Call,
    FunctionInvocationContext,
    ScriptedChatClient,
    TodoFileStore,
    TodoInput,
    TodoItem,
    TodoProvider,
    TodoSessionStore,
)
from tests.agents.harness.runs import call, shown
from tests.parts.errors import raises

TWO = {"todos": [{"title": " Read "}, {"title": "Write", "description": "in French"}]}


@pytest.fixture(params=["session", "file"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    return TodoSessionStore() if request.param == "session" else TodoFileStore(tmp_path / "todos")


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


async def test_a_list_lasts_as_long_as_its_session(store: Any):
    provider, session = TodoProvider(store=store), AgentSession(session_id="s")
    added = json.loads(await call(provider, session, "todos_add", TWO))
    assert added == [
        {"id": 1, "title": "Read", "description": None, "is_complete": False},
        {"id": 2, "title": "Write", "description": "in French", "is_complete": False},
    ]
    done = {"items": [{"id": 1, "reason": "read it"}, {"id": 1, "reason": "again"}, {"id": 9, "reason": "?"}]}
    assert json.loads(await call(provider, session, "todos_complete", done)) == {"completed": 1}
    assert json.loads(await call(provider, session, "todos_complete", done)) == {"completed": 0}
    session = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    assert [item["id"] for item in json.loads(await call(provider, session, "todos_get_remaining"))] == [2]
    message, instructions = await shown(provider, session)
    assert message == "Your tasks:\n- [x] 1. Read\n- [ ] 2. Write: in French"
    assert "list of tasks" in instructions
    assert json.loads(await call(provider, session, "todos_remove", {"ids": [1, 2, 3]})) == {"removed": 2}
    assert json.loads(await call(provider, session, "todos_add", {"todos": [{"title": "Rest"}]}))[0]["id"] == 3
    assert [item["id"] for item in json.loads(await call(provider, session, "todos_get_all"))] == [3]


async def test_an_empty_list_says_so_and_instructions_are_yours():
    provider = TodoProvider(instructions="Use the list.")
    assert await shown(provider, AgentSession()) == ["Your list of tasks is empty.", "Use the list."]


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("todos_add", {"todos": []}), ("todos_complete", {"items": []}), ("todos_remove", {"ids": []})],
)
async def test_an_empty_call_is_an_error(name: str, arguments: dict[str, Any]):
    provider = TodoProvider()
    with raises(ValueError):
        await getattr(provider, name)(FunctionInvocationContext(None, {}, session=AgentSession()), **arguments)


async def test_a_blank_title_is_refused_by_name():
    session = AgentSession()
    assert "title" in await call(TodoProvider(), session, "todos_add", {"todos": [{"title": "  "}]})
    with raises(ValueError, "title"):
        TodoInput("  ")
    with raises(ValueError, "title"):
        TodoInput(3)  # type: ignore[arg-type]
    with raises(ValueError):
        TodoItem(0, "t")
    assert TodoItem(1, "t") == TodoItem.from_dict(TodoItem(1, " t ").to_dict())
    assert TodoInput.from_dict(TodoInput("t", "d").to_dict()) == TodoInput("t", "d")
    for task in (TodoItem(1, "t", is_complete=True), TodoInput("é", "d")):
        assert type(task).from_dict(json.loads(task.to_json())) == task


@pytest.mark.parametrize("state", [[], "", None, 3, {"items": {}}])
async def test_the_store_in_sessions_refuses_state_of_another_type(state: Any):
    session = AgentSession()
    session.state["todo"] = state
    with raises(ValueError, "state['todo']"):
        await TodoSessionStore().load_items(session, source_id="todo")


async def test_calls_at_once_give_ids_of_their_own(store: Any):
    provider, session = TodoProvider(store=store), AgentSession(session_id="s")
    adds = [Call("todos_add", {"todos": [{"title": f"t{number}"}]}) for number in range(20)]
    await Agent(ScriptedChatClient([adds, "done"]), context_providers=[provider]).run("go", session=session)
    items = await store.load_items(session, source_id="todo")
    assert [item.id for item in items] == list(range(1, 21))
    assert {item.title for item in items} == {f"t{number}" for number in range(20)}


async def test_a_next_id_that_is_too_small_is_raised():
    session = AgentSession()
    session.state["todo"] = {"items": [{"id": 7, "title": "t"}], "next_id": 2}
    assert await TodoSessionStore().load_state(session, source_id="todo") == ([TodoItem(7, "t")], 8)
    session.state["todo"]["next_id"] = "seven"
    assert (await TodoSessionStore().load_state(session, source_id="todo"))[1] == 8


async def test_two_providers_have_two_lists():
    home, work, session = TodoProvider("home"), TodoProvider("work"), AgentSession()
    await call(home, session, "todos_add", {"todos": [{"title": "Cook"}]})
    assert (await shown(work, session))[0] == "Your list of tasks is empty."
    assert session.state["home"]["items"][0]["title"] == "Cook"


async def test_files_are_made_with_the_first_task_and_by_owner(tmp_path: Path):
    store = TodoFileStore(tmp_path / "todos", owner_prefix="user-", owner_state_key="owner")
    provider, session = TodoProvider(store=store), AgentSession(session_id="s 1")
    session.state["owner"] = "ada"
    assert await shown(provider, session)
    assert not (tmp_path / "todos").exists()
    await call(provider, session, "todos_add", TWO)
    [path] = files_in(tmp_path / "todos")
    assert path.parent.parent == tmp_path / "todos" / "user-ada" / "todos"
    assert path.name == "todos.todo.json"
    assert json.loads(path.read_text())["next_id"] == 3
    del session.state["owner"]
    with raises(RuntimeError, "owner"):
        await store.load_items(session, source_id="todo")


@pytest.mark.parametrize("owner", ["../../out", "/etc", ".", "..", "con", "a/b", "x. "])
async def test_an_owner_cannot_lead_out_of_the_folder(tmp_path: Path, owner: str):
    store = TodoFileStore(tmp_path / "base" / "todos", owner_state_key="owner")
    session = AgentSession(session_id="s")
    session.state["owner"] = owner
    await store.save_state(session, [TodoItem(1, "t")], next_id=2, source_id="../todo")
    files = files_in(tmp_path)
    assert len(files) == 1
    assert len(files[0].relative_to(tmp_path / "base" / "todos").parts) == 4
    assert await store.load_items(session, source_id="../todo") == [TodoItem(1, "t")]


async def test_a_session_id_with_a_separator_and_a_link_out_are_refused(tmp_path: Path):
    store = TodoFileStore(tmp_path / "todos")
    for session_id in ("a/b", "a\\b", "../x"):
        with raises(ValueError, "separator"):
            await store.load_items(AgentSession(session_id=session_id), source_id="todo")
    (tmp_path / "todos").mkdir()
    (tmp_path / "out").mkdir()
    os.symlink(tmp_path / "out", tmp_path / "todos" / "s")
    with raises(ValueError):
        await store.save_state(AgentSession(session_id="s"), [], next_id=1, source_id="todo")


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "JSON"),
        ("[]", "does not contain tasks"),
        ('{"items": 3}', "does not contain tasks"),
        ('{"items": [3]}', "not a task"),
        ('{"items": [{"id": 1}]}', "id and title"),
        ('{"items": [{"id": "1", "title": "t"}]}', "positive integer"),
    ],
)
async def test_a_broken_file_says_what_is_wrong(tmp_path: Path, text: str, problem: str):
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "todos.todo.json").write_text(text)
    with raises(ValueError, problem) as raised:
        await TodoFileStore(tmp_path).load_items(AgentSession(session_id="s"), source_id="todo")
    assert "todos.todo.json" in str(raised.value)


async def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    store, session = TodoFileStore(tmp_path), AgentSession(session_id="s")
    await store.save_state(session, [TodoItem(1, "old")], next_id=2, source_id="todo")

    def fail(*_: Any) -> None:
        raise OSError("the disk is full")

    with monkeypatch.context() as patched:
        patched.setattr(os, "replace", fail)
        with raises(OSError, "full"):
            await store.save_state(session, [TodoItem(1, "new")], next_id=2, source_id="todo")
    assert await store.load_items(session, source_id="todo") == [TodoItem(1, "old")]
    assert len(list((tmp_path / "s").iterdir())) == 1
