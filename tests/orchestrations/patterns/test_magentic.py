"""A team with a manager that plans and watches the progress."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import Agent, BaseChatClient, ChatResponse, FileCheckpointStorage, Message, ScriptedChatClient
from agentbench.orchestrations import (
    MagenticBuilder,
    MagenticContext,
    MagenticManagerBase,
    MagenticOrchestrator,
    MagenticOrchestratorEvent,
    MagenticPlanReviewRequest,
    MagenticProgressLedger,
    MagenticProgressLedgerItem,
    StandardMagenticManager,
)
from tests.orchestrations.nodes import agent, asked
from tests.orchestrations.patterns.teams import ledger
from tests.parts.errors import raises


class Boss(BaseChatClient):
    """Answers questions about the progress by a script, and all others by their kind."""

    def __init__(self, *progress: str) -> None:
        super().__init__()
        self.progress = [*progress]
        self.plans = 0
        self.read: list[list[str]] = []

    async def _inner_get_response(self, *, messages: Any, **kwargs: Any) -> ChatResponse:
        self.read.append([message.text for message in messages])
        last = messages[-1].text
        if "JSON alone" in last:
            text = self.progress.pop(0)
        elif "plan" in last and "steps" in last:
            self.plans += 1
            text = f"Plan {self.plans}"
        else:
            text = "The answer." if "is done" in last else "Facts."
        return ChatResponse(messages=[Message("assistant", [text])])


def team(boss: Boss, *agents: Agent, **options: Any) -> MagenticBuilder:
    return MagenticBuilder(
        participants=agents or [agent("a"), agent("b")], manager_agent=Agent(boss, name="boss"), **options
    )


DONE = ledger("a", "", satisfied=True)


def story(result: Any) -> list[str]:
    found = []
    for event in result:
        if isinstance(event.data, MagenticOrchestratorEvent):
            found.append(event.data.event_type.value)
        elif event.type == "group_chat" and hasattr(event.data, "reason"):
            found.append(event.data.participant_name)
    return found


async def test_it_plans_works_and_answers():
    a, b = agent("a"), agent("b")
    boss = Boss(ledger("b", "Look it up."), ledger("a", "Write it down."), DONE)
    result = await team(boss, a, b).build().run("Which bridges?")
    assert story(result) == [
        "plan_created", "progress_ledger_updated", "b", "progress_ledger_updated", "a", "progress_ledger_updated",
    ]  # fmt: skip
    assert [(each.text, each.messages[0].author_name) for each in result.outputs] == [
        ("The answer.", "magentic_manager")
    ]
    [heard] = asked(b)
    assert (heard[0], heard[-1]) == ("Which bridges?", "Look it up.")  # everybody knows the task and the plan
    assert "Plan 1" in heard[1]
    assert asked(a)[0][2:] == ["B", "Write it down."]


async def test_the_manager_reads_everything_once_and_knows_its_plan():
    boss = Boss(*[ledger("a", f"Step {number}.") for number in range(3)], DONE)
    await team(boss, agent("a", "A1", "A2", "A3")).build().run("task")
    questions = [read for read in boss.read if "five questions" in read[-1]]
    assert [len(read) for read in questions] == [2, 4, 6, 8]  # the plan, and two messages for each turn
    assert "Plan 1" in questions[0][0]
    assert questions[-1].count("A2") == 1


@pytest.mark.parametrize("answer", ["False", "no", False])
async def test_no_is_no_also_as_a_text(answer):
    boss = Boss(ledger("a", "Work.", satisfied=answer), DONE)
    assert "a" in story(await team(boss, agent("a")).build().run("task"))


@pytest.mark.parametrize("bad", ["I think a.", "{}", ledger("a", "x", satisfied=3), '{"next_speaker": 1}'])
async def test_a_ledger_that_cannot_be_read_is_asked_for_again(bad):
    boss = Boss(bad, f"Sure: ```json\n{ledger('a', 'Work.')}\n```", DONE)
    assert story(await team(boss, agent("a")).build().run("task"))[-2:] == ["a", "progress_ledger_updated"]


async def test_without_progress_the_plan_is_made_anew_and_everybody_forgets():
    nowhere = ledger("a", "Try.", progress=False)
    boss = Boss(nowhere, nowhere, ledger("a", "Now."), DONE)
    a = agent("a")
    result = await team(boss, a, max_stall_count=1).build().run("task")
    assert story(result).count("replanned") == 1
    assert boss.plans == 2
    before, after = asked(a)
    assert before[-1] == "Try."
    assert "Try." not in after
    assert "Plan 2" in after[1]


async def test_the_plan_may_be_made_anew_as_often_as_allowed():
    nowhere = ledger("a", "Try.", loop=True)
    boss = Boss(*[nowhere] * 9)
    result = await team(boss, agent("a", *"x" * 9), max_stall_count=0, max_reset_count=2).build().run("task")
    assert boss.plans == 3  # the last of them was worked on, too
    assert "max_reset_count" in result.outputs[0].text


async def test_turns_are_limited_by_default_and_by_number():
    boss = Boss(*[ledger("a", "Go.")] * 9)
    result = await team(boss, agent("a", *"x" * 9), max_round_count=3).build().run("task")
    assert story(result).count("a") == 3
    assert result.outputs[0].text == MagenticOrchestrator.MAX_ROUNDS_MET_MESSAGE
    endless = Boss(*[ledger("a", "Go.")] * 200)
    result = await team(endless, agent("a", *"x" * 200)).build().run("task")
    assert story(result).count("a") == 100


async def test_a_manager_that_cannot_tell_ends_at_the_limit():
    def at_a_loss(**limits: Any) -> Any:
        boss = Agent(Boss(*["what?"] * 99), name="boss")
        manager = StandardMagenticManager(boss, progress_ledger_retry_count=0, **limits)
        return MagenticBuilder(participants=[agent("a")], manager=manager).build()

    result = await at_a_loss(max_reset_count=1).run("task")
    assert "max_reset_count" in result.outputs[0].text
    with raises(ValueError, "progress"):
        await at_a_loss().run("task")


@pytest.mark.parametrize(
    ("speaker", "then"), [("zoe", "progress_ledger_updated"), (True, "a"), (None, "progress_ledger_updated")]
)
async def test_whom_nobody_knows(speaker, then):
    result = await team(Boss(ledger(speaker, "Go."), DONE), agent("a")).build().run("task")
    assert then in story(result)
    assert result.outputs[0].text == "The answer."


async def test_a_person_reviews_plans_until_one_is_good(tmp_path):
    def build() -> Any:
        boss = Boss(ledger("a", "Go."), DONE)
        return (
            team(boss, agent("a"), name="team", checkpoint_storage=FileCheckpointStorage(tmp_path))
            .with_plan_review()
            .build()
        )

    result = await build().run("task")
    for number in range(2):
        [request] = result.get_request_info_events()
        assert isinstance(request.data, MagenticPlanReviewRequest)
        assert (request.data.current_progress, request.data.is_stalled) == (None, False)
        later = build()  # in another object, from the checkpoint
        await later.run(checkpoint_id=result.checkpoints[-1])
        answer = request.data.revise("Ask the library.") if number == 0 else request.data.approve()
        result = await later.run(responses={request.request_id: answer})
    assert result.outputs[0].text == "The answer."


async def test_a_stream_has_the_request_to_review_a_plan():
    workflow = team(Boss(DONE), agent("a")).with_plan_review().build()
    [request] = [event async for event in workflow.run("task", stream=True) if event.type == "request_info"]
    answers = {request.request_id: request.data.approve()}
    [output] = [event async for event in workflow.run(responses=answers, stream=True) if event.type == "output"]
    assert output.data.text == "The answer."


async def test_after_a_stall_the_review_says_so():
    boss = Boss(ledger("a", "Try.", progress=False), DONE)
    workflow = team(boss, agent("a"), max_stall_count=0, enable_plan_review=True).build()
    [request] = (await workflow.run("task")).get_request_info_events()
    [request] = (await workflow.run(responses={request.request_id: request.data.approve()})).get_request_info_events()
    assert request.data.is_stalled
    assert isinstance(request.data.current_progress, MagenticProgressLedger)
    result = await workflow.run(responses={request.request_id: request.data.approve()})
    assert result.outputs[0].text == "The answer."


@pytest.mark.parametrize("given", [" ", ["one", "two"]])
async def test_one_task_it_is(given):
    with raises(ValueError, "task"):
        await team(Boss()).build().run(given)


async def test_a_team_that_is_done_says_so():
    workflow = team(Boss(DONE, DONE)).build()
    await workflow.run("task")
    with raises(RuntimeError, "finished"):
        await workflow.run("another")
    assert (await workflow.clone().run("another")).outputs[0].text == "The answer."


class Simple(MagenticManagerBase):
    """Lets the first one work once."""

    async def plan(self, magentic_context: MagenticContext) -> Message:
        return Message("assistant", ["Just do it."])

    replan = plan

    async def create_progress_ledger(self, magentic_context: MagenticContext) -> MagenticProgressLedger:
        done = magentic_context.round_count > 1
        items = [MagenticProgressLedgerItem("", answer) for answer in (done, False, True, "a", "Do it.")]
        return MagenticProgressLedger(*items)

    async def prepare_final_answer(self, magentic_context: MagenticContext) -> Message:
        return Message("assistant", [f"{len(magentic_context.chat_history)} messages"])


async def test_managers_of_your_own(caplog):
    for given in ({"manager": Simple()}, {"manager_factory": Simple}):
        options: dict[str, Any] = given
        result = await MagenticBuilder(participants=[agent("a")], **options).build().run("task")
        assert result.outputs[0].text == "3 messages"
    assert "has no effect" not in caplog.text
    MagenticBuilder(participants=[agent("a")], manager=Simple(), max_stall_count=3)
    assert "max_stall_count has no effect" in caplog.text
    made = MagenticBuilder(participants=[agent("a")], manager_agent_factory=lambda: Agent(Boss(DONE), name="boss"))
    assert (await made.build().run("task")).outputs[0].text == "The answer."


def test_what_makes_no_team():
    a, boss = agent("a"), Agent(Boss(), name="boss")
    with raises(ValueError, "manager"):
        MagenticBuilder(participants=[a]).build()
    with raises(ValueError, "manager="):
        MagenticBuilder(participants=[a], manager=Simple(), manager_agent=boss)
    with raises(ValueError, "name"):
        MagenticBuilder(participants=[Agent(ScriptedChatClient(["x"]))], manager_agent=boss)
    with raises(ValueError, "task"):
        MagenticContext.from_dict({"participant_descriptions": {}})


async def test_what_is_remembered_survives_json_and_renamed_teams_are_refused(tmp_path):
    context = MagenticContext("task", [Message("user", ["hi"])], {"a": "A"}, 3, 2, 1)
    assert MagenticContext.from_dict(context.to_dict()) == context
    storage = FileCheckpointStorage(tmp_path)
    result = (
        await team(Boss(ledger("a", "Go."), DONE), agent("a"), name="t", checkpoint_storage=storage).build().run("task")
    )
    other = team(Boss(DONE), agent("z"), name="t", checkpoint_storage=storage).build()
    with pytest.raises(Exception, match=r"graph|changed|differ"):
        await other.run(checkpoint_id=result.checkpoints[0])
    assert StandardMagenticManager(agent("m")).retry_count == 3


def test_a_copy_of_a_context_has_its_own_lists():
    context = MagenticContext("task", [Message("user", ["hi"])], {"a": "Works."}, round_count=2)
    copied = context.clone()
    assert copied == context
    copied.chat_history.append(Message("user", ["more"]))
    copied.participant_descriptions["b"] = "Waits."
    copied.reset()
    assert (len(context.chat_history), [*context.participant_descriptions], context.reset_count) == (1, ["a"], 0)


def test_the_orchestrator_names_its_manager():
    start = team(Boss(DONE)).build().get_start_executor()
    assert isinstance(start, MagenticOrchestrator)
    assert start.MANAGER_NAME == MagenticOrchestrator.MANAGER_NAME == "magentic_manager"
