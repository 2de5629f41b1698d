"""Stores of sessions: what was stored is read again, as a copy."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest

from agentbench import AgentSession, FileSessionStore, Message, SecretString, SessionStore
from tests.parts.errors import raises


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> SessionStore:
    return SessionStore() if request.param == "memory" else FileSessionStore(tmp_path)


def filled(**state: Any) -> AgentSession:
    session = AgentSession(session_id="s", service_session_id="svc")
    session.state.update(state)
    return session


async def test_a_stored_session_is_read_again(store: SessionStore) -> None:
    session = filled(messages=[Message("user", ["Hello"])], limits={"a": (1, 2.5)})
    await store.set("ada", session)
    assert await store.get("ada") == AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    assert await store.get("bob") is None


async def test_a_snapshot_is_independent_of_the_session_and_of_its_readers(store: SessionStore) -> None:
    session = filled(notes=["one"])
    await store.set("ada", session)
    session.state["notes"].append("two")
    first = await store.get("ada")
    assert first is not None
    assert first.state == {"notes": ["one"]}
    first.state["notes"].clear()
    second = await store.get("ada")
    assert second is not None
    assert second.state == {"notes": ["one"]}


async def test_a_snapshot_is_replaced_listed_and_deleted(store: SessionStore) -> None:
    for one in ("b", "a/../../etc", "", "con", "x" * 500, "b"):
        await store.set(one, filled(by=one))
    assert await store.list_ids() == ["", "a/../../etc", "b", "con", "x" * 500]
    for one in await store.list_ids():
        stored = await store.get(one)
        assert stored is not None
        assert stored.state == {"by": one}
    assert (await store.delete("b"), await store.delete("b")) == (True, False)
    assert await store.get("b") is None


async def test_what_cannot_be_stored_is_refused_and_the_snapshot_stays(store: SessionStore) -> None:
    await store.set("ada", filled(n=1))
    for wrong in (filled(key=SecretString("s3cr3t")), filled(f=print), {"n": 2}):
        with raises(TypeError):
            await store.set("ada", wrong)  # type: ignore[arg-type]
    with raises(TypeError, "7"):
        await store.get(7)  # type: ignore[arg-type]
    stored = await store.get("ada")
    assert stored is not None
    assert stored.state == {"n": 1}


async def test_files_are_found_by_another_store_and_links_are_not_followed(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path / "new" / "folder")
    await store.set("ada", filled(n=1))
    again = FileSessionStore(store.storage_path)
    assert await again.get("ada") == await store.get("ada")
    [file] = store.storage_path.iterdir()
    (store.storage_path / "notes.json").write_text("[]")
    (store.storage_path / "other.json").write_text("{")
    os.symlink(file, store.storage_path / "eve.json")
    assert await again.list_ids() == ["ada"]
    for call in (again.get("eve"), again.set("eve", filled())):
        with raises(ValueError, "eve.json"):
            await call
    with raises(ValueError, "other.json"):
        await again.get("other")


async def test_a_removed_folder_is_empty_until_the_next_session_is_stored(tmp_path: Path) -> None:
    store = FileSessionStore(tmp_path / "sessions")
    await store.set("ada", filled())
    shutil.rmtree(store.storage_path)
    assert await store.list_ids() == []
    assert await store.get("ada") is None
    await store.set("ada", filled())
    assert await store.list_ids() == ["ada"]


def test_a_store_in_an_empty_path_is_refused() -> None:
    with raises(ValueError, "storage_path is empty", "'.'"):
        FileSessionStore("")
