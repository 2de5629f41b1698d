"""A window that continues where the last turn ended gives what one that starts over gives."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import (
    Agent,
    AgentSession,
    CharacterEstimatorTokenizer,
    Content,
    Message,
    SlidingWindowStrategy,
    apply_compaction,
    tool,
)
from agentbench.agents.compaction import continued
from agentbench.agents.compaction.continued import ContinuedWindow
from agentbench.agents.loop.loop import own_copy
from agentbench.agents.sessions.session import COMPACTED
from tests.agents.fake_clients import Model, call


@pytest.fixture(autouse=True)
def _remembers_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(continued, "_FEWEST", 1)


def seen(messages: list[Message]) -> list[Any]:
    """Return what a model gets, without the ids of the groups, which are new at each turn."""
    found = []
    for message in messages:
        marks = {name: value for name, value in message.additional_properties.items() if name != "_attribution"}
        group = {name: value for name, value in marks.pop("_group").items() if name != "id"}
        found.append((message.role, [one.to_dict() for one in message.contents], marks, group))
    return found


def message_of(kind: str, ids: list[str]) -> Message:
    if kind in ("user", "assistant", "system"):
        return Message(kind, [kind])
    if kind == "reasoning":
        return Message("assistant", [Content.from_text_reasoning(text="hm")])
    if kind == "calls":
        return Message("assistant", [Content.from_function_call(one, "f", arguments={}) for one in ids])
    if kind == "results":
        return Message("tool", [Content.from_function_result(one, result="r") for one in ids])
    asked = Content.from_function_call(ids[0], "f", arguments={})
    return Message("user", [Content.from_function_approval_response(True, "r1", asked)])


KINDS = ["user", "user", "user", "assistant", "assistant", "system", "reasoning", "calls", "results", "approval"]
MESSAGES = st.builds(
    message_of, st.sampled_from(KINDS), st.lists(st.sampled_from("abc"), min_size=1, max_size=2, unique=True)
)
EDITS = st.sampled_from(
    [*["none"] * 6, "mark", "mark", "unmark", "remove", "replace", "insert", "cut", "clear", "settings"]
)


@given(data=st.data(), keep=st.integers(1, 3), preserve=st.booleans(), counts=st.booleans())
def test_each_turn_is_that_of_a_strategy_that_starts_over(data: st.DataObject, keep: int, preserve: bool, counts: bool):
    conversation: list[Message] = []
    memory: dict[Any, Any] = {}
    strategy = SlidingWindowStrategy(keep_last_groups=keep, preserve_system=preserve)
    tokenizer = CharacterEstimatorTokenizer() if counts else None
    for _ in range(data.draw(st.integers(1, 10))):
        edit = data.draw(EDITS)
        if conversation and edit != "none":
            at = data.draw(st.integers(0, len(conversation) - 1))
            if edit in ("mark", "unmark"):
                conversation[at].additional_properties["_excluded"] = edit == "mark"
            elif edit == "insert":
                conversation.insert(at, data.draw(MESSAGES))
            elif edit == "replace":
                conversation[at] = data.draw(MESSAGES)
            elif edit == "settings":
                strategy.keep_last_groups = data.draw(st.integers(1, 3))
            else:
                del conversation[{"clear": 0}.get(edit, at) : at + 1 if edit == "remove" else None]
        conversation += data.draw(st.lists(MESSAGES, min_size=1, max_size=4))
        window = ContinuedWindow(strategy, memory)
        working = [own_copy(message) for message in window.begin([*conversation])]
        anew = [own_copy(message) for message in conversation]
        for more in ([], data.draw(st.lists(MESSAGES, max_size=3))):  # a second call of the model in the same run
            working += [own_copy(message) for message in more]
            anew += [own_copy(message) for message in more]
            sent = asyncio.run(apply_compaction(working, strategy=window, tokenizer=tokenizer))
            assert seen(sent) == seen(asyncio.run(apply_compaction(anew, strategy=strategy, tokenizer=tokenizer)))


@tool
def weather(city: str) -> str:
    return f"fog in {city}"


def edit(session: AgentSession, turn: int) -> None:
    """Edit the stored messages before some of the turns."""
    state = session.state.get("in_memory", {})
    stored = state.get("messages", [])
    if turn in (5, 11):
        stored[2].additional_properties["_excluded"] = turn == 5
    elif turn == 7:
        state["messages"] = stored[3:]
    elif turn == 9:
        state["messages"] = [Message("system", "Be brief."), *stored]
    elif turn == 13:
        state["messages"] = stored[:2]


async def test_an_agent_sends_the_same_however_the_session_is_edited():
    async def sent(*, starts_over: bool) -> list[Any]:
        model = Model(*[answer for _ in range(8) for answer in (call("weather", city="Oslo"), "fog")])
        agent = Agent(model, tools=[weather], compaction_strategy=SlidingWindowStrategy(keep_last_groups=3))
        session = AgentSession()
        for turn in range(16):
            if starts_over:
                vars(session).pop(COMPACTED, None)
            edit(session, turn)
            if turn % 4 == 3:
                async for _ in agent.run(f"question {turn}", session=session, stream=True):
                    pass
            else:
                await agent.run(f"question {turn}", session=session)
        return [seen(asked.messages) for asked in model.asked]

    assert await sent(starts_over=False) == await sent(starts_over=True)
