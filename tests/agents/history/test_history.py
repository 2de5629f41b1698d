"""What is loaded before a run and saved after it, and how hooks of context providers are called."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from threading import Thread
from types import SimpleNamespace
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
from agentbench.agents.history.history import call_hook
from agentbench.agents.sessions.agent_protocol import warn_of_shared_sources
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


GIVEN: dict[str, Any] = {
    "agent": "the agent",
    "session": AgentSession(),
    "context": SessionContext(input_messages=[]),
    "state": {},
}


async def seen_by(hook: Any) -> Any:
    """What a hook of these parameters is called with."""
    seen: dict[str, Any] = {}
    provider = type("Own", (ContextProvider,), {"before_run": hook, "seen": seen})("own")
    await call_hook(provider, "before_run", **GIVEN)
    return seen


async def all_four(self: Any, *, agent: Any, session: Any, context: Any, state: Any) -> None:
    self.seen.update(agent=agent, session=session, context=context, state=state)


async def by_position(self: Any, agent: Any, session: Any, context: Any, state: Any) -> None:
    self.seen.update(agent=agent, session=session, context=context, state=state)


async def the_rest(self: Any, *, context: Any, **kwargs: Any) -> None:
    self.seen.update(kwargs, context=context)


def plain(self: Any, **kwargs: Any) -> None:
    self.seen.update(kwargs)


@pytest.mark.parametrize("hook", [all_four, by_position, the_rest, plain])
async def test_a_hook_gets_all_that_a_run_has(hook: Any) -> None:
    assert await seen_by(hook) == GIVEN


async def test_a_hook_may_take_less() -> None:
    async def only_context(self: Any, *, context: Any) -> None:
        self.seen.update(context=context)

    def nothing(self: Any) -> None:
        self.seen.update(called=True)

    async def with_default(self: Any, *, state: Any, more: int = 3) -> None:
        self.seen.update(state=state, more=more)

    assert await seen_by(only_context) == {"context": GIVEN["context"]}
    assert await seen_by(nothing) == {"called": True}
    assert await seen_by(with_default) == {"state": {}, "more": 3}


async def test_a_hook_that_needs_something_else_is_refused_by_name() -> None:
    async def wrong(self: Any, *, context: Any, config: Any) -> None:
        self.seen.update(config=config)

    async def positional(self: Any, context: Any, /) -> None:
        self.seen.update(context=context)

    with raises(TypeError, "1", "config"):
        await seen_by(wrong)
    with raises(TypeError, "context"):
        await seen_by(positional)


async def test_an_awaitable_of_a_plain_function_is_awaited_and_errors_come_through() -> None:
    async def later(self: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await seen_by(lambda self, **kwargs: later(self))


async def test_providers_of_others_need_not_have_every_hook() -> None:
    await call_hook(SimpleNamespace(source_id="x"), "before_run", **GIVEN)
    await call_hook(SimpleNamespace(source_id="x", on_error=None), "on_error", **GIVEN, error=ValueError())
    await call_hook(ContextProvider("x"), "on_error", **GIVEN, error=ValueError())


def test_two_providers_of_one_source_are_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    one = ContextProvider("x")
    with caplog.at_level(logging.WARNING, "agentbench"):
        warn_of_shared_sources([one, ContextProvider("y"), one])
        assert not caplog.records
        warn_of_shared_sources([one, ContextProvider("y"), ContextProvider("x")])
    assert "both have the source_id 'x'" in caplog.text
