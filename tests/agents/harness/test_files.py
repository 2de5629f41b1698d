"""Stores of text files, and the tools of agents over them."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentFileStore,
    AgentSession,
    Call,
    FileAccessProvider,
    FileMemoryProvider,
    FileSearchMatch,
    FileSearchResult,
    FileStoreEntry,
    FileSystemAgentFileStore,
    InMemoryAgentFileStore,
    ScriptedChatClient,
    create_harness_agent,
)
from agentbench.exceptions import FileStoreError
from tests.agents.harness.runs import call, shown
from tests.parts.errors import raises


@pytest.fixture(params=["memory", "files"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> AgentFileStore:
    return InMemoryAgentFileStore() if request.param == "memory" else FileSystemAgentFileStore(tmp_path / "root")


async def test_a_store_reads_lists_and_deletes_what_was_written(store: AgentFileStore):
    assert await store.list_children() == []
    await store.write("notes/owls.md", "Owls hunt.\r\n")
    await store.write("./notes//b.md", "é")
    await store.write("z.txt", "")
    assert await store.read("notes\\owls.md") == "Owls hunt.\r\n"
    assert await store.list_children() == [FileStoreEntry("notes", "directory"), FileStoreEntry("z.txt", "file")]
    assert [entry.name for entry in await store.list_children("notes/")] == ["b.md", "owls.md"]
    assert [await store.delete("notes/b.md"), await store.delete("notes/b.md")] == [True, False]
    with raises(FileNotFoundError):
        await store.read("notes/b.md")
    for folder in ("nowhere", "z.txt"):
        with raises(FileNotFoundError):
            await store.list_children(folder)


@pytest.mark.parametrize("path", ["../a", "a/../../b", "/etc/passwd", "C:\\a", "\\\\server\\a", "a\0b"])
async def test_a_path_that_leaves_the_store_is_refused(store: AgentFileStore, path: str):
    for refused in (store.read(path), store.write(path, ""), store.delete(path), store.list_children(path)):
        with raises(FileStoreError, path=path):
            await refused


async def test_a_file_and_a_folder_never_have_the_same_path(store: AgentFileStore):
    await store.write("a/b", "text")
    for path in ("a", "a/b/c", ""):
        with raises(FileStoreError, path=path):
            await store.write(path, "other")
    assert await store.read("a/b") == "text"


async def test_an_edit_replaces_one_piece_or_all(store: AgentFileStore):
    await store.write("a.md", "one two one")
    assert await store.edit("a.md", "two", "2") == 1
    for old in ("one", "three", ""):
        with raises(FileStoreError, path="a.md"):
            await store.edit("a.md", old, "x")
    assert await store.edit("a.md", "one", "1", replace_all=True) == 2
    assert await store.read("a.md") == "1 2 1"


async def test_a_search_finds_lines_in_all_folders(store: AgentFileStore):
    await store.write("a.md", "An owl.\nA cat.\nOWLS!")
    await store.write("deep/b.txt", f"{'x' * 500} owl {'y' * 500}")
    first, second = await store.search("owl")
    assert first == FileSearchResult("a.md", (FileSearchMatch(1, "An owl."), FileSearchMatch(3, "OWLS!")))
    assert second.file_name == "deep/b.txt"
    assert " owl " in second.matching_lines[0].line
    assert len(second.matching_lines[0].line) < 500
    assert [one.file_name for one in await store.search("owl", file_pattern="*.txt")] == ["deep/b.txt"]
    assert await store.search("owl", "deep", limit=1) == [second]
    assert await store.search("owl", limit=1) == [FileSearchResult("a.md", first.matching_lines[:1])]
    assert await store.search("o.l") == []
    with raises(FileStoreError):
        await store.search("")


@pytest.mark.skipif(sys.platform == "win32", reason="needs the right to make links")
async def test_links_are_neither_followed_nor_listed(tmp_path: Path):
    root, outside = tmp_path / "root", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (outside / "secret.md").write_text("secret")
    (root / "file.md").symlink_to(outside / "secret.md")
    (root / "folder").symlink_to(outside)
    store = FileSystemAgentFileStore(root)
    assert await store.list_children() == []
    assert await store.search("secret") == []
    for path in ("file.md", "folder/secret.md"):
        for refused in (store.read(path), store.write(path, "x"), store.delete(path)):
            with raises(FileStoreError, path=path):
                await refused
    with raises(FileStoreError):
        await store.list_children("folder")
    assert (outside / "secret.md").read_text() == "secret"


async def test_files_that_are_not_text_or_too_large_are_refused(tmp_path: Path):
    (tmp_path / "picture.png").write_bytes(b"\x89PNG owl")
    (tmp_path / "large.md").write_text("an owl" * 100)
    (tmp_path / "folder").mkdir()
    store = FileSystemAgentFileStore(tmp_path, max_file_bytes=100)
    for path in ("picture.png", "large.md", "folder"):
        with raises(FileStoreError, path=path):
            await store.read(path)
    with raises(FileStoreError, path="folder"):
        await store.delete("folder")
    assert await store.search("owl") == []


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such permissions")
async def test_a_new_file_is_private_and_a_replaced_one_keeps_its_permissions(tmp_path: Path):
    script = tmp_path / "run.sh"
    script.write_text("echo 1")
    script.chmod(0o755)
    store = FileSystemAgentFileStore(tmp_path)
    await store.edit("run.sh", "1", "2")
    await store.write("new.md", "")
    assert [os.stat(tmp_path / name).st_mode & 0o777 for name in ("run.sh", "new.md")] == [0o755, 0o600]


# ---- the providers


async def test_an_agent_works_on_the_files_of_a_store():
    store, session = InMemoryAgentFileStore({"plan.md": "Buy tea."}), AgentSession()
    provider = FileAccessProvider(store)
    assert json.loads(await call(provider, session, "file_access_list")) == [{"name": "plan.md", "type": "file"}]
    assert await call(provider, session, "file_access_read", {"path": "plan.md"}) == "Buy tea."
    await call(provider, session, "file_access_edit", {"path": "plan.md", "old_text": "tea", "new_text": "milk"})
    await call(provider, session, "file_access_write", {"path": "birds/owl.md", "content": "an owl"})
    found = json.loads(await call(provider, session, "file_access_search", {"query": "OWL", "directory": "birds"}))
    assert found == [{"file_name": "birds/owl.md", "matching_lines": [{"line_number": 1, "line": "an owl"}]}]
    await call(provider, session, "file_access_delete", {"path": "birds/owl.md"})
    assert await store.read("plan.md") == "Buy milk."
    assert [entry.name for entry in await store.list_children()] == ["plan.md"]


async def test_the_model_reads_why_a_file_was_refused():
    provider = FileAccessProvider(InMemoryAgentFileStore({"a.md": "a"}))
    refused: list[tuple[str, dict[str, Any]]] = [
        ("file_access_read", {"path": "b.md"}),
        ("file_access_read", {"path": "../b.md"}),
        ("file_access_edit", {"path": "a.md", "old_text": "x", "new_text": "y"}),
        ("file_access_list", {"directory": "nowhere"}),
    ]
    for name, arguments in refused:
        client = ScriptedChatClient([Call(name, arguments), "done"])
        await Agent(client, context_providers=[provider]).run("go")
        result = client.calls[-1].messages[-1].contents[0]
        assert result.exception in result.result


async def test_a_long_file_is_read_in_parts():
    text = "".join(f"line {number} {'x' * 90}\n" for number in range(1, 1001))
    provider, session = FileAccessProvider(InMemoryAgentFileStore({"long.txt": text})), AgentSession()
    parts, first = "", 1
    while first:
        part = await call(provider, session, "file_access_read", {"path": "long.txt", "first_line": first})
        kept, _, hint = part.partition("[Lines ")
        parts += kept
        first = int(hint.rpartition("=")[2].removesuffix(".]")) if hint else 0
    assert parts == text


async def test_a_model_is_told_that_a_line_is_cut_and_that_there_are_no_more_lines():
    files = {"wide.txt": f"{'x' * 40_000}\nend\n", "last.txt": "y" * 40_000, "empty.txt": ""}
    provider, session = FileAccessProvider(InMemoryAgentFileStore(files)), AgentSession()

    async def read(path: str, first_line: int = 1) -> str:
        return await call(provider, session, "file_access_read", {"path": path, "first_line": first_line})

    wide, last = await read("wide.txt"), await read("last.txt")
    assert "x" * 30_000 in wide
    assert "Line 1 is cut" in wide
    assert "first_line=2" in wide
    assert "Line 1 is cut" in last
    assert "first_line" not in last
    assert await read("wide.txt", 2) == "end\n"
    assert "2 lines" in await read("wide.txt", 3)
    assert "empty" in await read("empty.txt")


async def test_files_may_be_read_only_and_changes_may_need_approval():
    store = InMemoryAgentFileStore()
    read_only = ScriptedChatClient("done")
    await Agent(read_only, context_providers=[FileAccessProvider(store, read_only=True)]).run("go")
    names = {tool.name for tool in read_only.calls[0].options["tools"]}
    assert names == {"file_access_list", "file_access_read", "file_access_search"}
    client = ScriptedChatClient([Call("file_access_write", {"path": "a", "content": "b"}), "done"])
    agent = Agent(client, context_providers=[FileAccessProvider(store, require_write_approval=True)])
    session = agent.create_session()
    [request] = (await agent.run("go", session=session)).user_input_requests
    assert await store.list_children() == []
    await agent.run(request.to_function_approval_response(approved=True), session=session)
    assert await store.read("a") == "b"


async def test_a_memory_of_files_belongs_to_a_session():
    store = InMemoryAgentFileStore()
    provider, mine, other = FileMemoryProvider(store), AgentSession(), AgentSession()
    assert json.loads(await call(provider, mine, "file_memory_list")) == []
    assert json.loads(await call(provider, mine, "file_memory_search", {"query": "tea"})) == []
    await call(provider, mine, "file_memory_write", {"path": "ada.md", "content": "About Ada\nShe likes tea."})
    assert "ada.md: About Ada" in (await shown(provider, mine))[0]
    assert "ada.md" not in (await shown(provider, other))[0]
    found = json.loads(await call(provider, mine, "file_memory_search", {"query": "tea"}))
    assert [one["file_name"] for one in found] == ["ada.md"]
    refused = await call(provider, other, "file_memory_read", {"path": f"../{mine.session_id}/ada.md"})
    assert "tea" not in refused
    assert other.session_id not in await call(provider, other, "file_memory_read", {"path": "ada.md"})


async def test_the_sessions_of_an_owner_share_a_memory():
    provider = FileMemoryProvider(InMemoryAgentFileStore(), owner_state_key="user")
    sessions = [AgentSession() for _ in range(3)]
    for session, user in zip(sessions, ("ada", "ada", "../ada"), strict=True):
        session.state["user"] = user
    await call(provider, sessions[0], "file_memory_write", {"path": "a.md", "content": "tea"})
    assert ["a.md: tea" in (await shown(provider, session))[0] for session in sessions] == [True, True, False]
    with raises(RuntimeError):
        await shown(provider, AgentSession())


async def test_owners_whose_names_differ_only_by_case_have_folders_that_differ_without_case():
    store = InMemoryAgentFileStore()
    provider = FileMemoryProvider(store, owner_state_key="user")
    for user in ("Ada", "ada"):
        session = AgentSession()
        session.state["user"] = user
        await call(provider, session, "file_memory_write", {"path": "a.md", "content": user})
    assert len({entry.name.casefold() for entry in await store.list_children()}) == 2


async def test_the_memory_of_a_harness_agent_may_be_files():
    store = InMemoryAgentFileStore()
    client = ScriptedChatClient([Call("file_memory_write", {"path": "a.md", "content": "tea"}), "done"])
    agent = create_harness_agent(
        client, max_context_window_tokens=1000, max_output_tokens=100, memory_store=store, disable_web_search=True
    )
    session = agent.create_session(session_id="s")
    await agent.run("go", session=session)
    assert await store.read("s/a.md") == "tea"


async def test_what_is_no_store_no_folder_or_no_text_is_refused_by_name():
    wrong: Any
    for wrong in (None, "workspace"):
        for provider in (FileAccessProvider, FileMemoryProvider):
            with raises(TypeError, "store is", "FileSystemAgentFileStore("):
                provider(wrong)
    with raises(ValueError, "root_directory is empty", "'.'"):
        FileSystemAgentFileStore("")
    wrong = {"a.md": 3}
    with raises(TypeError, "'a.md' is 3", "text"):
        InMemoryAgentFileStore(wrong)
