"""A memory that lasts: topics, index, transcripts, what the model picks, consolidation."""

from __future__ import annotations

import asyncio
import json
import logging
import stat
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import (
    Agent,
    AgentSession,
    MemoryContextProvider,
    MemoryFileStore,
    MemoryIndexEntry,
    MemoryTopicRecord,
    Message,
    ScriptedChatClient,
    tool,
)
from agentbench.exceptions import ChatClientException
from agentbench.testing import Call
from tests.agents.harness.runs import call, shown, source_of
from tests.parts.errors import raises

NOTHING = '{"memories": []}'


@pytest.fixture
def store(tmp_path: Path) -> MemoryFileStore:
    return MemoryFileStore(tmp_path / "memories", owner_state_key="user")


def session_of(user: str = "ada", session_id: str | None = None) -> AgentSession:
    session = AgentSession(session_id=session_id)
    session.state["user"] = user
    return session


def silent(store: MemoryFileStore, **options: Any) -> MemoryContextProvider:
    """A memory that picks nothing by itself."""
    return MemoryContextProvider(store=store, max_extractions=0, **options)


def picks(*facts: tuple[str, str]) -> str:
    return json.dumps({"memories": [{"topic": topic, "memory": memory} for topic, memory in facts]})


async def talk(
    provider: MemoryContextProvider, session: AgentSession, *script: Any, text: str = "hello"
) -> ScriptedChatClient:
    client = ScriptedChatClient([*script])
    await Agent(client, context_providers=[provider]).run(text, session=session)
    return client


def topics(store: MemoryFileStore, session: AgentSession) -> dict[str, list[str]]:
    return {record.topic: record.memories for record in store.list_topics(session, source_id="memory")}


# ------------------------------------------------------------------------------------------------------ records


@given(
    topic=st.text(min_size=1).filter(lambda text: text.strip()),
    summary=st.text() | st.just("# Title\n## Memories\n- no\n\\# x"),
    memories=st.lists(st.text() | st.sampled_from(["## Summary", "- item", "two\n- lines\n## Memories", "\\x"])),
    session_ids=st.lists(st.text(min_size=1, alphabet="abc,% /#\n"), max_size=3),
)
def test_a_record_survives_its_file(topic, summary, memories, session_ids):
    summary, updated_at = "\n".join(summary.splitlines()), "2026-01-01T00:00:00+00:00"
    record = MemoryTopicRecord(
        topic=topic, summary=summary, memories=memories, updated_at=updated_at, session_ids=session_ids
    )
    assert MemoryTopicRecord.from_markdown(record.to_markdown()) == record
    assert MemoryTopicRecord.from_dict(json.loads(json.dumps(record.to_dict()))) == record


def test_the_file_is_readable_and_may_be_edited():
    record = MemoryTopicRecord(
        topic="Tea",
        summary="What Ada drinks.",
        memories=["Green tea.", "green TEA.", " "],
        updated_at="T",
        session_ids=["s"],
    )
    assert record.to_markdown() == (
        "# Tea\n\nUpdated: T\nSessions: s\n\n## Summary\nWhat Ada drinks.\n\n## Memories\n- Green tea.\n"
    )
    edited = MemoryTopicRecord.from_markdown("## Memories\n- By hand\n", fallback_topic="Tea")
    assert (edited.topic, edited.summary, edited.memories) == ("Tea", "", ["By hand"])
    with raises(ValueError):
        MemoryTopicRecord.from_markdown("no heading")


def test_two_topics_never_share_a_file():
    names = ["C", "C++", "größe", "grösse", "日本", "日本語", "🍵", "☕", "a/b", "a b", "x" * 300, "x" * 301]
    slugs = {name: MemoryTopicRecord(topic=name, summary="", memories=(), updated_at="").slug for name in names}
    assert len(set(slugs.values())) == len(names)
    assert slugs["a b"] == "a-b"
    assert all(slug.isascii() and len(slug) < 100 for slug in slugs.values())


# ---------------------------------------------------------------------------------------------------------- tools


async def test_a_model_writes_reads_lists_and_forgets(store):
    provider, session = silent(store), session_of()
    written = json.loads(await call(provider, session, "write_memory", {"topic": "Tea", "memory": "Likes green."}))
    assert written["memories"] == ["Likes green."]
    await call(provider, session, "write_memory", {"topic": "tea", "memory": "Hates black."})
    read = json.loads(await call(provider, session, "read_memory_topic", {"topic": "Tea"}))
    assert (read["memories"], read["session_ids"]) == (["Likes green.", "Hates black."], [session.session_id])
    [listed] = json.loads(await call(provider, session, "list_memory_topics"))
    assert (listed["topic"], listed["slug"]) == ("Tea", "tea")
    assert json.loads(await call(provider, session, "delete_memory_topic", {"topic": "tea"})) == {"deleted": "tea"}
    assert topics(store, session) == {}
    assert "'coffee'" in await call(provider, session, "read_memory_topic", {"topic": "coffee"})
    assert "Expected non-blank text" in await call(provider, session, "write_memory", {"topic": " ", "memory": "x"})


async def test_transcripts_are_searched_without_regard_to_case(store):
    provider = silent(store)
    for session_id, text in (("one", "The Fjord is deep"), ("two", "a FJORD again"), ("three", "nothing")):
        await talk(provider, session_of(session_id=session_id), "fine", text=text)
    found = json.loads(
        await call(provider, session_of(session_id="four"), "search_memory_transcripts", {"query": "fjord"})
    )
    assert [(each["session_id"], each["line_number"], each["role"], each["text"]) for each in found] == [
        ("one", 1, "user", "The Fjord is deep"),
        ("two", 1, "user", "a FJORD again"),
    ]
    given = {"query": "fjord", "session_id": "two", "limit": 1}
    assert len(json.loads(await call(provider, session_of(session_id="five"), "search_memory_transcripts", given))) == 1
    path = store.get_transcripts_directory(session_of(), source_id="memory") / "one.jsonl"
    path.write_bytes(path.read_bytes() + b'{"half": ')
    assert store.search_transcripts(session_of(), source_id="memory", query="half") == []


async def test_a_search_finds_a_session_by_the_id_that_an_earlier_search_returned(store):
    session = session_of(session_id="a/b: c")
    provider = silent(store)
    await talk(provider, session, "Rye bread.")
    found = json.loads(await call(provider, session, "search_memory_transcripts", {"query": "rye"}))
    for session_id in ("a/b: c", found[0]["session_id"]):
        again = {"query": "rye", "session_id": session_id}
        assert json.loads(await call(provider, session, "search_memory_transcripts", again)) == found


@pytest.mark.skipif(sys.platform == "win32", reason="links need a privilege there")
async def test_links_in_a_memory_are_not_followed(store, tmp_path, caplog):
    session = session_of()
    await call(silent(store), session, "write_memory", {"topic": "bread", "memory": "rye"})
    (tmp_path / "secret.md").write_text("# key\n\nthe key is 123\n")
    [topic] = store.base_path.glob("**/topics/*.md")
    (topic.parent / "key.md").symlink_to(tmp_path / "secret.md")
    assert list(topics(store, session)) == ["bread"]
    assert "123" not in "".join(await shown(silent(store), session))
    assert "key.md" in caplog.text
    topic.parent.rename(tmp_path / "moved")
    topic.parent.symlink_to(tmp_path / "moved")
    assert topics(store, session) == {}
    answer = await call(silent(store), session, "write_memory", {"topic": "new", "memory": "wheat"})
    assert "is a link" in answer
    assert not (tmp_path / "moved" / "new.md").exists()


async def test_owners_and_providers_are_apart(store):
    await call(silent(store), session_of("ada"), "write_memory", {"topic": "Tea", "memory": "Green."})
    await call(silent(store, source_id="other"), session_of("ada"), "write_memory", {"topic": "Car", "memory": "Red."})
    assert topics(store, session_of("ada")) == {"Tea": ["Green."]}
    assert topics(store, session_of("bob")) == {}
    later = AgentSession()
    store.import_provider_state(later, state=store.export_provider_state(session_of("ada")))
    assert topics(store, later) == {"Tea": ["Green."]}


@pytest.mark.parametrize(("owner", "error"), [(None, RuntimeError), ("../x", ValueError), ("/etc", ValueError)])
def test_an_owner_must_be_a_name(store, owner, error):
    session = AgentSession()
    session.state["user"] = owner
    with raises(error, "owner"):
        store.list_topics(session, source_id="memory")


async def test_concurrent_facts_of_one_topic_are_all_kept(store):
    provider, session = silent(store), session_of()
    facts = [{"topic": "Numbers", "memory": str(number)} for number in range(30)]
    await asyncio.gather(*(call(provider, session, "write_memory", fact) for fact in facts))
    assert sorted(topics(store, session)["Numbers"], key=int) == [str(number) for number in range(30)]


async def test_files_are_private_and_reading_makes_none(store, tmp_path):
    session = session_of()
    assert store.list_topics(session, source_id="memory") == []
    assert store.read_state(session, source_id="memory")["sessions_since_consolidation"] == []
    assert store.rebuild_index(session, source_id="memory", line_limit=9, line_length=99) == []
    assert not (tmp_path / "memories").exists()
    await call(silent(store), session, "write_memory", {"topic": "Tea", "memory": "Green."})
    files = [path for path in (tmp_path / "memories").rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"tea.md", "state.json"}
    assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in files)


async def test_an_index_that_did_not_change_is_not_written(store):
    session, limits = session_of(), {"line_limit": 2, "line_length": 40}
    for topic in ("Tea", "Car", "Boat"):
        record = MemoryTopicRecord(topic=topic, summary="long " * 20, memories=(), updated_at=topic)
        store.write_topic(session, record, source_id="memory")
    store.rebuild_index(session, source_id="memory", **limits)
    index = store.get_transcripts_directory(session, source_id="memory").parent / "MEMORY.md"
    lines = index.read_text().splitlines()
    assert lines[2].startswith("- [Tea](topics/tea.md): long")
    assert max(map(len, lines)) <= 40
    assert lines[-1] == "- 1 more topics"
    before = index.stat().st_mtime_ns
    store.rebuild_index(session, source_id="memory", **limits)
    assert index.stat().st_mtime_ns == before


# ------------------------------------------------------------------------------------------------------------ a run


async def test_a_run_shows_the_index_and_the_topics_that_fit(store):
    session = session_of()
    for topic, summary in (("Tea", "What she drinks"), ("Question marks", "How she writes"), ("Boat", "Her boat")):
        record = MemoryTopicRecord(topic=topic, summary=summary, memories=[f"about {topic}"], updated_at="2026")
        store.write_topic(session, record, source_id="memory")
    text, instructions = await shown(silent(store), session)  # it asks "the question"
    assert "- [Tea](topics/tea.md): What she drinks" in text
    assert "about Question marks" in text
    assert "about Tea" not in text
    assert "memory" in instructions
    text, _ = await shown(silent(store, selection_limit=0), session)
    assert "about" not in text.replace("about Tea", "")


async def test_the_model_picks_what_lasts_and_the_next_session_knows(store):
    provider = MemoryContextProvider(store=store)
    first = session_of(session_id="one")
    client = await talk(
        provider, first, "Noted.", f"```json\n{picks(('Tea', 'Likes green tea.'))}\n```", text="I like green tea."
    )
    assert topics(store, first) == {"Tea": ["Likes green tea."]}
    assert "I like green tea." in client.calls[1].messages[0].text
    second = session_of(session_id="two")
    client = await talk(provider, second, "Green.", NOTHING, text="Which tea do I like?")
    assert any("Likes green tea." in message.text for message in client.calls[0].messages)


async def test_at_most_so_many_facts_and_none_of_a_strange_form(store, caplog):
    answer = json.dumps(
        {
            "memories": [
                {"topic": "a", "memory": "1"},
                {"topic": 3},
                "x",
                *[{"topic": "b", "memory": str(n)} for n in range(9)],
            ]
        }
    )
    await talk(MemoryContextProvider(store=store, max_extractions=3), session_of(), "ok", answer)
    assert topics(store, session_of()) == {"a": ["1"], "b": ["0", "1"]}
    assert caplog.text.count("returned an invalid") == 2


@pytest.mark.parametrize(
    "answer",
    ["I would remember the tea.", "[]", '{"memories": 3}', ChatClientException("busy"), TimeoutError(), OSError()],
)
async def test_a_model_that_is_away_or_writes_prose_is_no_error(store, answer, caplog):
    caplog.set_level(logging.ERROR)
    await talk(MemoryContextProvider(store=store), session_of(), "ok", answer)
    assert topics(store, session_of()) == {}
    assert store.search_transcripts(session_of(), source_id="memory", query="hello")


async def test_an_error_of_the_program_is_one(store):
    with raises(Exception, "mistake"):
        await talk(MemoryContextProvider(store=store), session_of(), "ok", KeyError("mistake"))


async def test_facts_are_picked_from_several_turns_at_once(store):
    provider, session = MemoryContextProvider(store=store, extract_every=3), session_of()
    agent = Agent(client := ScriptedChatClient(["1", "2", "3", picks(("a", "b"))]), context_providers=[provider])
    for number in range(3):
        await agent.run(f"turn {number}", session=session)
    assert all(f"turn {number}" in client.calls[-1].messages[0].text for number in range(3))
    assert topics(store, session) == {"a": ["b"]}


async def test_the_last_turns_of_a_session_come_back(store):
    @tool
    def clock() -> str:
        """Tell the time."""
        return "noon"

    session = session_of()
    agent = Agent(
        ScriptedChatClient(["one", [Call("clock", {})], "two"]),
        tools=clock,
        context_providers=[silent(store, recent_turns=1)],
    )
    await agent.run("first", session=session)
    await agent.run("second", session=session)
    for load_tool_turns, expected in (
        (True, ["user", "assistant", "tool", "assistant"]),
        (False, ["user", "assistant"]),
    ):
        provider = silent(store, recent_turns=1, load_tool_turns=load_tool_turns)
        client = await talk(provider, session_of(session_id=session.session_id), "three")
        own = [each for each in client.calls[0].messages if source_of(each) == "memory"]
        assert [each.role for each in own][: len(expected)] == expected
        assert own[0].text == "second"
        store.get_transcripts_directory(session, source_id="memory").joinpath("x").parent.mkdir(exist_ok=True)
        path = store.get_transcripts_directory(session, source_id="memory") / f"{session.session_id}.jsonl"
        path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-2]))  # as before this turn


async def test_a_filter_keeps_secrets_out_of_the_transcript(store):
    def masked(message: Message) -> Message | None:
        return None if "password" in message.text else message

    await talk(silent(store, history_message_filter=masked), session_of(), "ok", text="my password is x")
    assert store.search_transcripts(session_of(), source_id="memory", query="password") == []
    assert store.search_transcripts(session_of(), source_id="memory", query="ok")


async def test_topics_are_consolidated_after_enough_sessions_and_time(store):
    provider = MemoryContextProvider(
        store=store, consolidation_min_sessions=2, max_extractions=1, consolidation_interval=timedelta(0)
    )
    await talk(provider, session_of(session_id="one"), "ok", picks(("Tea", "Green.")))
    shorter = '{"summary": "Drinks", "memories": ["Green tea."]}'
    await talk(provider, session_of(session_id="two"), "ok", picks(("Tea", "Green tea.")), shorter)
    record = store.get_topic(session_of(), source_id="memory", topic="Tea")
    assert (record.summary, record.memories, record.session_ids) == ("Drinks", ["Green tea."], ["one", "two"])
    state = store.read_state(session_of(), source_id="memory")
    assert state["last_consolidated_at"]
    assert state["sessions_since_consolidation"] == []
    rested = MemoryContextProvider(store=store, consolidation_min_sessions=1, max_extractions=0)
    client = await talk(rested, session_of(session_id="three"), "ok")
    assert len(client.calls) == 1  # a day has not passed


async def test_a_consolidation_that_fails_changes_nothing(store):
    provider = silent(store, consolidation_client=ScriptedChatClient(["prose", "{}", OSError()]))
    await call(provider, session_of(), "write_memory", {"topic": "Tea", "memory": "Green."})
    for _ in range(3):
        assert json.loads(await call(provider, session_of(), "consolidate_memories")) == {"consolidated_topics": 0}
    assert topics(store, session_of()) == {"Tea": ["Green."]}
    assert store.read_state(session_of(), source_id="memory")["last_consolidated_at"] is None


@pytest.mark.parametrize(
    "options",
    [{"recent_turns": -1}, {"selection_limit": -1}, {"index_line_limit": 0}, {"max_extractions": -1},
     {"consolidation_min_sessions": 0}, {"consolidation_interval": timedelta(-1)}, {"extract_every": 0}],
)  # fmt: skip
def test_limits_that_make_no_sense(store, options):
    with raises(ValueError, next(iter(options))):
        MemoryContextProvider(store=store, **options)


async def test_a_broken_state_names_its_file(store):
    session = session_of()
    store.write_state(session, {}, source_id="memory")
    path = store.get_transcripts_directory(session, source_id="memory").parent / "state.json"
    path.write_text("{")
    with raises(ValueError, "state.json", "JSON"):
        store.read_state(session, source_id="memory")
    path.write_text("[1]")
    with raises(ValueError, "state.json", "[1]"):
        store.read_state(session, source_id="memory")
    with raises(ValueError, "state.json"):
        store.write_state(session, [2], source_id="memory")


async def test_with_history_around_each_call_it_still_works_around_the_run(store):
    provider = MemoryContextProvider(store=store)
    client = ScriptedChatClient([[Call("write_memory", {"topic": "a", "memory": "b"})], "ok", NOTHING])
    agent = Agent(client, context_providers=[provider], require_per_service_call_history_persistence=True)
    await agent.run("hello", session=session_of())
    assert len(client.calls) == 3  # facts are picked once
    assert topics(store, session_of()) == {"a": ["b"]}


def test_an_index_entry_is_one_line():
    entry = MemoryIndexEntry("Tea", "tea", "Green.\nHot.", "2026")
    assert entry.to_pointer_line() == "- [Tea](topics/tea.md): Green. Hot."
    assert MemoryIndexEntry.from_dict(entry.to_dict()) == entry
