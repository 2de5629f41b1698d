"""What is loaded before a run and saved after it, and the history that a session holds itself."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from threading import Thread
from typing import Any

import pytest

from agentbench import (
    AgentResponse,
    AgentSession,
    ContextProvider,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
    SessionContext,
)
from tests.agents.sessions.runs import texts, turn
from tests.parts.errors import raises


class Notes(ContextProvider):
    """Adds one message to each run."""

    async def before_run(self, *, context: SessionContext, **kwargs: Any) -> None:
        context.extend_messages(self, [Message("system", [f"note of {self.source_id}"])])


class Elsewhere(HistoryProvider):
    """Keeps messages in a list, as a database would."""

    def __init__(self, **flags: Any) -> None:
        super().__init__("elsewhere", **flags)
        self.kept: list[Message] = []
        self.saves: list[tuple[Any, Any, int]] = []

    async def get_messages(self, session_id: str | None, *, state: Any = None, **kwargs: Any) -> list[Message]:
        return self.kept

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: Any = None, **kwargs: Any
    ) -> None:
        self.saves.append((session_id, state, len(messages)))
        self.kept += messages


def stored(session: AgentSession, source_id: str = "in_memory") -> list[Message]:
    return list(session.state[source_id]["messages"])


# ---- any history ---------------------------------------------------------------------------------------------


async def test_a_history_without_a_method_that_it_needs_is_refused() -> None:
    class Loads(HistoryProvider):
        async def get_messages(self, session_id: Any, **kwargs: Any) -> list[Message]:
            return []

    class Hooks(HistoryProvider):
        async def before_run(self, **hook: Any) -> None: ...
        async def after_run(self, **hook: Any) -> None: ...

    with raises(TypeError, "HistoryProvider", "get_messages()", "before_run"):
        HistoryProvider("x")
    with raises(TypeError, "save_messages()"):
        Loads("x")
    assert await turn(AgentSession(), [Loads("x", store_inputs=False, store_outputs=False), Hooks("y")], "q")
    with raises(NotImplementedError, "get_messages()"):
        await Hooks("y").get_messages("s")


async def test_a_history_gets_the_id_of_the_session_and_its_state() -> None:
    session, history = AgentSession(session_id="s"), Elsewhere()
    seen = [texts(await turn(session, [history], question)) for question in ("q1", "q2")]
    assert seen == [["q1"], ["q1", "ok", "q2"]]
    assert history.saves == [("s", {}, 2), ("s", {}, 2)]


async def test_loaded_messages_carry_their_source() -> None:
    session, history = AgentSession(), Elsewhere()
    await turn(session, [history], "q1")
    seen = await turn(session, [history], "q2")
    assert seen[0].additional_properties["_attribution"] == {"source_id": "elsewhere", "source_type": "Elsewhere"}
    assert "_attribution" not in history.kept[0].additional_properties


@pytest.mark.parametrize(
    ("flags", "kept"),
    [
        ({}, ["q1", "ok", "q2", "ok"]),
        ({"store_inputs": False, "store_context_messages": True, "store_context_from": "b"}, ["note of b", "ok"] * 2),
        ({"store_outputs": False}, ["q1", "q2"]),
        ({"load_messages": False}, ["q1", "ok", "q2", "ok"]),
        (
            {"store_context_messages": True},
            ["note of a", "note of b", "q1", "ok", "note of a", "note of b", "q2", "ok"],
        ),
        (
            {"store_context_messages": True, "store_context_from": {"b"}},
            ["note of b", "q1", "ok", "note of b", "q2", "ok"],
        ),
        ({"store_context_messages": True, "store_context_from": set()}, ["q1", "ok", "q2", "ok"]),
        ({"store_inputs": False, "store_outputs": False}, []),
    ],
    ids=str,
)
async def test_what_is_stored_of_a_run(flags: dict[str, Any], kept: list[str]) -> None:
    session, history, seen = AgentSession(), InMemoryHistoryProvider(**flags), list[Message]()
    for question in ("q1", "q2"):
        seen = await turn(session, [Notes("a"), history, Notes("b")], question)
    assert texts(session.state["in_memory"].get("messages", [])) == kept
    if "load_messages" in flags:
        assert texts(seen) == ["note of a", "note of b", "q2"]


# ---- in the session ------------------------------------------------------------------------------------------------


async def test_a_message_is_copied_and_stamped_once_and_shared_from_then_on() -> None:
    session, history = AgentSession(), InMemoryHistoryProvider()
    await turn(session, [history], "q1")
    kept = stored(session)
    assert kept[0].additional_properties["_attribution"] == {
        "source_id": "in_memory",
        "source_type": "InMemoryHistoryProvider",
    }
    seen = await turn(session, [history], "q2")
    assert [each is other for each, other in zip(seen, kept, strict=False)] == [True, True]
    assert [each is other for each, other in zip(stored(session), kept, strict=False)] == [True, True]


async def test_lists_that_were_handed_out_are_never_changed() -> None:
    session, history = AgentSession(), InMemoryHistoryProvider()
    await turn(session, [history], "q1")
    held, loaded = (
        session.state["in_memory"]["messages"],
        await history.get_messages("s", state=session.state["in_memory"]),
    )
    seen = await turn(session, [history], "q2")
    seen.clear()
    assert texts(held) == texts(loaded) == ["q1", "ok"]
    loaded.clear()
    assert len(stored(session)) == 4


async def test_what_the_caller_does_to_messages_afterwards_does_not_reach_the_history() -> None:
    session, history = AgentSession(), InMemoryHistoryProvider()
    question = Message("user", ["q1"])
    context = SessionContext(input_messages=[question])
    context._response = AgentResponse(messages=[Message("assistant", ["a1"])])
    state: dict[str, Any] = {}
    await history.after_run(agent=None, session=session, context=context, state=state)  # type: ignore[arg-type]
    question.contents.clear()
    question.additional_properties["x"] = 1
    context.response.messages[0].role = "tool"
    assert state["messages"] == [Message("user", ["q1"]), Message("assistant", ["a1"])]


@pytest.mark.parametrize("how", ["before", "replaced", "appended"])
async def test_messages_that_others_put_there_are_stamped_when_they_are_loaded(how: str) -> None:
    session, history = AgentSession(), InMemoryHistoryProvider()
    theirs = Message("user", ["theirs"])
    if how == "before":
        session.state["in_memory"] = {"messages": [theirs]}
    else:
        await turn(session, [history], "q1")
        await turn(session, [history], "q2")
        if how == "replaced":
            session.state["in_memory"]["messages"] = [theirs]
        else:
            session.state["in_memory"]["messages"].append(theirs)
    seen = await turn(session, [history], "q3")
    assert all("_attribution" in message.additional_properties for message in seen[:-1])
    assert texts(seen)[-2:] == ["theirs", "q3"]
    assert theirs.additional_properties == {}


async def test_a_context_message_of_another_source_retains_that_source() -> None:
    session, history = AgentSession(), InMemoryHistoryProvider(store_context_messages=True)
    await turn(session, [Notes("a"), history], "q1")
    assert stored(session)[0].additional_properties["_attribution"]["source_id"] == "a"


@pytest.mark.parametrize("skip", [True, False])
async def test_messages_that_compaction_left_out_may_be_left_out(skip: bool) -> None:
    session, history = AgentSession(), InMemoryHistoryProvider(skip_excluded=skip)
    await turn(session, [history], "q1")
    stored(session)[0].additional_properties["_excluded"] = True
    assert texts(await turn(session, [history], "q2")) == (["ok", "q2"] if skip else ["q1", "ok", "q2"])
    assert len(stored(session)) == 4
    assert len(await history.get_messages("s", state=session.state["in_memory"])) == (3 if skip else 4)


async def test_a_subclass_may_change_what_is_loaded_and_what_is_saved() -> None:
    class LastOnly(InMemoryHistoryProvider):
        async def get_messages(self, session_id: str | None, *, state: Any = None, **kwargs: Any) -> list[Message]:
            return (await super().get_messages(session_id, state=state))[-1:]

        async def save_messages(
            self, session_id: str | None, messages: Sequence[Message], *, state: Any = None, **kwargs: Any
        ) -> None:
            await super().save_messages(session_id, [Message("user", ["!"]), *messages], state=state)

    session = AgentSession()
    await turn(session, [LastOnly()], "q1")
    seen = await turn(session, [LastOnly()], "q2")
    assert texts(seen) == ["ok", "q2"]
    assert texts(stored(session)) == ["!", "q1", "ok", "!", "q2", "ok"]
    assert seen[0].additional_properties["_attribution"]["source_id"] == "in_memory"


async def test_turns_of_several_threads_are_all_stored() -> None:
    class Slow(dict[str, Any]):
        """Has another thread come between reading and writing, unless that one has to wait."""

        other: Thread | None = None

        def get(self, key: str, default: Any = None) -> Any:
            found = super().get(key, default)
            if self.other is None:
                self.other = Thread(target=lambda: asyncio.run(save("other")))
                self.other.start()
                self.other.join(0.2)
            return found

    history, state = InMemoryHistoryProvider(), Slow()

    async def save(text: str) -> None:
        await history.save_messages("s", [Message("user", text)], state=state)

    await save("first")
    assert state.other is not None
    state.other.join()
    assert texts(state["messages"]) == ["first", "other"]
