"""A conversation in which one gives the turn."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest

from agentbench import Agent, AgentExecutor, Call, Message, ScriptedChatClient, WorkflowContext, handler, tool
from agentbench.orchestrations import (
    BaseGroupChatOrchestrator,
    GroupChatBuilder,
    GroupChatOrchestrator,
    GroupChatParticipantMessage,
    GroupChatRequestMessage,
    GroupChatResponseMessage,
    OrchestrationState,
    ParticipantRegistry,
    clean_conversation_for_handoff,
)
from agentbench.workflows.executors.executor import Executor
from tests.orchestrations.nodes import agent, asked
from tests.orchestrations.patterns.teams import in_turn
from tests.parts.errors import raises


def decision(speaker: str | None = None, final: str | None = None, **more: Any) -> str:
    fields = {"terminate": final is not None, "reason": "so", "next_speaker": speaker, "final_message": final}
    return json.dumps(fields | more)


def turns(result: Any) -> list[str]:
    return [
        event.data.participant_name
        for event in result
        if event.type == "group_chat" and type(event.data).__name__ == "GroupChatRequestSentEvent"
    ]


async def test_everybody_hears_what_is_said():
    a, b, c = agent("a"), agent("b"), agent("c")
    workflow = GroupChatBuilder(participants=[a, b, c], selection_func=in_turn, max_rounds=4).build()
    result = await workflow.run("hi")
    assert turns(result) == ["a", "b", "c", "a"]
    assert (asked(b), asked(c)) == ([["hi", "A"]], [["hi", "A", "B"]])
    assert asked(a)[1] == ["hi", "A", "B", "C"]
    [output] = result.outputs
    assert output.messages[0].author_name == "group_chat_orchestrator"
    assert output.text == GroupChatOrchestrator.MAX_ROUNDS_MET_MESSAGE


async def test_a_second_run_has_all_its_turns():
    workflow = GroupChatBuilder(participants=[agent("a"), agent("b")], selection_func=in_turn, max_rounds=3).build()
    assert [turns(await workflow.run(text)) for text in ("one", "two")] == [["a", "b", "a"]] * 2


async def test_a_condition_ends_it_also_at_once():
    def ends(conversation: list[Message]) -> bool:
        return conversation[-1].text in ("B", "stop")

    builder = GroupChatBuilder(
        participants=[agent("a"), agent("b")], selection_func=in_turn, orchestrator_name="chair"
    ).with_termination_condition(ends)
    result = await builder.build().run("hi")
    assert (turns(result), result.outputs[0].messages[0].author_name) == (["a", "b"], "chair")
    result = await builder.build().run("stop")
    assert turns(result) == []
    assert len(result.outputs) == 1


@pytest.mark.parametrize(("options", "text"), [
    ({"max_rounds": 1}, "Time is up."),
    ({"termination_condition": lambda conversation: len(conversation) > 2}, "That will do."),
])  # fmt: skip
async def test_a_subclass_ends_it_with_its_own_words(options, text):
    class Chair(GroupChatOrchestrator):
        MAX_ROUNDS_MET_MESSAGE = "Time is up."
        TERMINATION_CONDITION_MET_MESSAGE = "That will do."

    agents = [agent("a"), agent("b")]
    chair = Chair("chair", ParticipantRegistry([*map(AgentExecutor, agents)]), in_turn, **options)
    result = await GroupChatBuilder(participants=agents, orchestrator=chair).build().run("hi")
    assert result.outputs[0].text == text


async def test_there_is_a_limit_by_default(caplog):
    caplog.set_level(logging.INFO, logger="agentbench")
    result = (
        await GroupChatBuilder(participants=[agent("a", *["x"] * 99)], selection_func=lambda state: "a")
        .build()
        .run("hi")
    )
    assert len(turns(result)) == 40
    assert "with_max_rounds()" in caplog.text


async def test_whom_nobody_knows_is_an_error():
    workflow = GroupChatBuilder(participants=[agent("a")], selection_func=lambda state: "zoe").build()
    with raises(RuntimeError, "'zoe'"):
        await workflow.run("hi")


async def test_an_agent_leads_and_reads_everything_once():
    boss = agent(
        "boss", decision("b"), f"```json\n{decision('a')}\n```", f"Hm. {decision('b')} No: {decision(final='Done.')}"
    )
    result = await GroupChatBuilder(participants=[agent("a"), agent("b")], orchestrator_agent=boss).build().run("hi")
    assert (turns(result), [each.text for each in result.outputs]) == (["b", "a"], ["Done."])
    last = asked(boss)[-1]
    assert [last.count(text) for text in ("hi", "B", "A")] == [1, 1, 1]
    reasons = [event.data.reason for event in result if event.type == "group_chat" and hasattr(event.data, "reason")]
    assert reasons == ["so", "so"]


@pytest.mark.parametrize("bad", [decision("zoe"), "Let b speak.", decision(), decision("a", extra=1), "[]"])
async def test_an_answer_that_cannot_be_used_is_asked_for_again(bad):
    boss = agent("boss", bad, decision("a"), decision(final="ok"))
    result = await GroupChatBuilder(participants=[agent("a")], orchestrator_agent=boss).build().run("hi")
    assert (turns(result), result.outputs[0].text) == (["a"], "ok")
    stubborn = agent("boss", *[bad] * 3)
    with raises(RuntimeError, "'boss'", "3"):
        await GroupChatBuilder(participants=[agent("a")], orchestrator_agent=stubborn).build().run("hi")


class Clock(Executor):
    """Takes part, and tells how many messages it has heard."""

    def __init__(self) -> None:
        super().__init__("clock")
        self.heard: list[str] = []

    @handler
    async def hear(self, news: GroupChatParticipantMessage, ctx: WorkflowContext[GroupChatResponseMessage]) -> None:
        self.heard += [message.text for message in news.messages]

    @handler
    async def speak(self, turn: GroupChatRequestMessage, ctx: WorkflowContext[GroupChatResponseMessage]) -> None:
        await ctx.send_message(GroupChatResponseMessage(Message("assistant", [f"heard {len(self.heard)}"])))


async def test_executors_take_part_too():
    a, clock = agent("a"), Clock()
    await GroupChatBuilder(participants=[a, clock], selection_func=in_turn, max_rounds=3).build().run("hi")
    assert asked(a)[1] == ["hi", "A", "heard 2"]
    assert clock.heard == ["hi", "A"]


async def test_only_texts_are_passed_on():
    @tool
    def look() -> str:
        """Look."""
        return "secret"

    a = Agent(ScriptedChatClient([[Call("look", {})], "I looked."]), name="a", tools=look)
    b = agent("b")
    await GroupChatBuilder(participants=[a, b], selection_func=in_turn, max_rounds=2).build().run("hi")
    assert asked(b) == [["hi", "I looked."]]


async def test_who_speaks_again_is_told_to_go_on():
    a = agent("a")
    await GroupChatBuilder(participants=[a], selection_func=lambda state: "a", max_rounds=2).build().run("hi")
    assert asked(a)[1] == ["hi", "A", "Go on."]


class First(BaseGroupChatOrchestrator):
    async def choose(self, ctx: Any) -> Any:
        return Message("assistant", ["bye"]) if self.round_index else (next(iter(self.state.participants)), "first")


async def test_an_orchestrator_of_your_own(caplog):
    for orchestrator in (lambda registry: First("lead", registry, max_rounds=9),):
        builder = GroupChatBuilder(participants=[agent("a"), agent("b")], orchestrator=orchestrator, max_rounds=3)
        result = await builder.build().run("hi")
        assert (turns(result), result.outputs[0].text) == (["a"], "bye")
    assert "have no effect" in caplog.text


async def test_factories_make_new_ones_for_each_build():
    made: list[Agent] = []

    def make() -> Agent:
        made.append(agent("a"))
        return made[-1]

    builder = GroupChatBuilder(participant_factories=[make], selection_func=in_turn, max_rounds=1)
    builder.build()
    builder.build()
    assert len(made) == 2
    boss = GroupChatBuilder(participants=[agent("a")], orchestrator_agent=lambda: agent("boss", decision(final="x")))
    assert (await boss.build().run("hi")).outputs[0].text == "x"


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, ValueError, "either participants= or participant_factories="),
        ({"participants": [], "selection_func": in_turn}, ValueError, "no participant"),
        (
            {"participants": [agent("a")], "selection_func": in_turn, "orchestrator_agent": agent("b")},
            ValueError,
            "one of",
        ),
        ({"participants": [Agent(ScriptedChatClient(["x"]))]}, ValueError, "has no name"),
        ({"participants": [agent("a")]}, ValueError, "selection_func="),
        ({"participants": [agent("a")], "orchestrator": lambda registry: "me"}, TypeError, "BaseGroupChatOrchestrator"),
        ({"participants": [agent("a")], "orchestrator_agent": lambda: "me"}, TypeError, "expected an agent"),
    ],
)
def test_what_makes_no_group_chat(arguments, error, text):
    with pytest.raises(error, match=text):
        GroupChatBuilder(**arguments).build()


def test_state_and_texts_survive_json():
    state = OrchestrationState([Message("user", ["hi"])], 3, "chair", {"a": 1}, Message("user", ["task"]))
    assert OrchestrationState.from_dict(json.loads(json.dumps(state.to_dict()))) == state
    assert "task" not in OrchestrationState().to_dict()
    assert clean_conversation_for_handoff([Message("assistant", [])]) == []
    assert issubclass(GroupChatOrchestrator, BaseGroupChatOrchestrator)
