"""Agents that work in the background."""

from __future__ import annotations

import asyncio
import json
import threading
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentResponse,
    AgentSession,
    BackgroundAgentsProvider,
    BaseAgent,
    Call,
    FunctionInvocationContext,
    Message,
    ScriptedChatClient,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    tool,
)
from agentbench._bridge import home_loop
from tests.agents.harness.runs import shown


class Helper(BaseAgent):
    """Answers when it is told to, and remembers in its session what it was asked."""

    def __init__(self, name: str = "helper") -> None:
        super().__init__(name=name, description=f"The {name}.")
        self.may_answer = threading.Event()  # it answers on the engine's event loop

    async def run(self, messages: Any = None, *, stream: bool = False, session: Any = None, **_: Any) -> Any:
        asked = session.state.setdefault("asked", [])
        asked.append(messages)
        while not self.may_answer.is_set():  # noqa: ASYNC110 - an event of asyncio belongs to one loop
            await asyncio.sleep(0.001)
        if "fail" in messages:
            raise ValueError("no such thing")
        return AgentResponse(text=" then ".join(asked))


def tools_of(provider: BackgroundAgentsProvider, session: AgentSession | None) -> Any:
    """Return a function that calls a tool of a provider by the end of its name."""
    context = FunctionInvocationContext(None, {}, session=session)

    def use(name: str, **arguments: Any) -> Any:
        return getattr(provider, f"background_agents_{name}")(context, **arguments)

    return use


async def started(helper: Any, text: str = "look", **more: Any) -> tuple[Any, BackgroundAgentsProvider, AgentSession]:
    provider, session = BackgroundAgentsProvider([helper], **more), AgentSession()
    use = tools_of(provider, session)
    assert "Task 1 was started" in await use("start_task", agent_name=" HELPER", input=text, description="to look")
    return use, provider, session


async def test_a_task_runs_while_the_agent_goes_on():
    researcher = Agent(ScriptedChatClient("It is 42."), name="Researcher", description="Looks things up.")
    provider, session = BackgroundAgentsProvider([researcher]), AgentSession()
    start = {"agent_name": "researcher", "input": "What is it?", "description": "the answer"}
    client = ScriptedChatClient(
        [
            Call("background_agents_start_task", start),
            Call("background_agents_wait_for_first_completion", {"task_ids": [1]}),
            Call("background_agents_get_task_results", {"task_id": 1}),
            "done",
        ]
    )
    await Agent(client, context_providers=[provider]).run("go", session=session)
    results = [one.result for message in client.calls[-1].messages for one in message.contents if one.result]
    assert results == ["Task 1 was started: Researcher works on it.", "Task 1 has ended: completed.", "It is 42."]
    assert "- Researcher: Looks things up." in str(client.calls[0].options["instructions"])
    [message, _] = await shown(provider, session)
    assert message == "Your background tasks:\n- 1. Researcher: the answer (completed)"
    await provider.aclose()


async def test_tools_work_without_a_session_in_that_of_the_latest_run_or_a_new_one():
    helper = Helper()
    helper.may_answer.set()
    provider, session = BackgroundAgentsProvider([helper]), AgentSession()
    use = tools_of(provider, None)
    assert await use("get_all_tasks") == "No tasks."
    assert "Task 1 was" in await use("start_task", agent_name="helper", input="look", description="to look")
    assert await use("wait_for_first_completion", task_ids=[1]) == "Task 1 has ended: completed."
    await shown(provider, session)
    assert "Task 1 was" in await use("start_task", agent_name="helper", input="read", description="to read")
    assert [task["description"] for task in session.state["background_agents"]["tasks"]] == ["to read"]
    await provider.aclose()


async def test_results_before_the_end_and_after_it():
    helper = Helper()
    use, provider, _ = await started(helper)
    assert await use("get_task_results", task_id=1) == "Task 1 is running."
    assert "is running" in await use("continue_task", task_id=1, text="more")
    assert "is running" in await use("clear_completed_task", task_id=1)
    waiting = asyncio.ensure_future(use("wait_for_first_completion", task_ids=[1]))
    await asyncio.sleep(0)
    helper.may_answer.set()
    assert await waiting == "Task 1 has ended: completed."
    assert await use("wait_for_first_completion", task_ids=[1]) == "Task 1 has ended: completed."
    assert await use("get_task_results", task_id=1) == "look"
    assert await use("continue_task", task_id=1, text="again") == "Task 1 continues."
    await use("wait_for_first_completion", task_ids=[1])
    assert await use("get_task_results", task_id=1) == "look then again"
    assert await use("clear_completed_task", task_id=1) == "Task 1 was cleared."
    assert await use("get_all_tasks") == "No tasks."
    await use("start_task", agent_name="helper", input="x", description="d")
    assert "2. helper" in await use("get_all_tasks")
    await provider.aclose()


async def test_the_first_of_several_is_named():
    slow, fast = Helper("helper"), Helper("fast")
    provider, session = BackgroundAgentsProvider([slow, fast]), AgentSession()
    use = tools_of(provider, session)
    for name in ("helper", "fast"):
        await use("start_task", agent_name=name, input=name, description=name)
    fast.may_answer.set()
    assert await use("wait_for_first_completion", task_ids=[1, 2]) == "Task 2 has ended: completed."
    slow.may_answer.set()
    assert await use("wait_for_first_completion", task_ids=[1]) == "Task 1 has ended: completed."
    await provider.aclose()


async def test_wrong_use_is_answered_with_text():
    use, provider, _ = await started(Helper())
    assert await use("start_task", agent_name="x", input="", description="") == (
        "Error: Unknown agent 'x'. Agents: helper."
    )
    assert "empty" in await use("wait_for_first_completion", task_ids=[])
    assert "7, 8. Tasks: 1." in await use("wait_for_first_completion", task_ids=[7, 1, 8])
    for name, more in (("get_task_results", {}), ("continue_task", {"text": "t"}), ("clear_completed_task", {})):
        assert "Unknown task 7" in await use(name, task_id=7, **more)
    await provider.aclose()


async def test_a_failed_task_says_why_and_can_go_on():
    helper = Helper()
    helper.may_answer.set()
    use, provider, session = await started(helper, "fail")
    await use("wait_for_first_completion", task_ids=[1])
    assert await use("get_task_results", task_id=1) == "Task 1 failed: ValueError: no such thing"
    assert session.state["background_agents"]["tasks"][0]["status"] == "failed"
    assert await use("continue_task", task_id=1, text="go on") == "Task 1 continues."
    await use("wait_for_first_completion", task_ids=[1])
    assert await use("get_task_results", task_id=1) == "fail then go on"
    await provider.aclose()


@pytest.mark.parametrize("raises", [False, True])
async def test_a_question_to_a_person_ends_a_task(raises: bool):
    asked = tool(lambda: "ok", name="erase", description="Erase.", approval_mode="always_require")
    helper = Agent(
        ScriptedChatClient([Call("erase", {}), "fine"]), name="helper", tools=asked, raise_on_user_input=raises
    )
    use, provider, _ = await started(helper)
    await use("wait_for_first_completion", task_ids=[1])
    text = await use("get_task_results", task_id=1)
    assert text.startswith("Task 1 failed:")
    assert "erase" in text
    await provider.aclose()


async def test_tasks_of_another_process_are_lost():
    use, provider, session = await started(Helper())
    restored = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    other = tools_of(BackgroundAgentsProvider([Helper()]), restored)
    assert await other("get_task_results", task_id=1) == "Task 1 is lost."
    assert "cannot be continued" in await other("continue_task", task_id=1, text="t")
    assert "cleared" in await other("clear_completed_task", task_id=1)
    assert "running" in await use("get_all_tasks")
    await provider.aclose()


async def test_nothing_runs_on_after_cancelling_and_closing():
    use, provider, session = await started(Helper())
    await provider.cancel_all(session)
    assert "was cancelled" in await use("get_task_results", task_id=1)
    await use("start_task", agent_name="helper", input="x", description="d")
    await provider.aclose()
    assert await use("get_task_results", task_id=2) == "Task 2 is lost."
    assert not any("Helper.run" in repr(task) for task in asyncio.all_tasks(home_loop()))


async def test_a_workflow_works_as_a_helper():
    @executor(id="shout")
    async def shout(text: list[Message], ctx: WorkflowContext[Any, str]) -> None:
        await ctx.yield_output(text[-1].text.upper())

    helper = WorkflowBuilder(start_executor=shout).build().as_agent(name="helper")
    use, provider, _ = await started(helper)
    await use("wait_for_first_completion", task_ids=[1])
    assert await use("get_task_results", task_id=1) == "LOOK"
    await provider.aclose()


@pytest.mark.parametrize("agents", [[], [Helper("")], [Helper("a"), Helper("A ")], [BaseAgent()]])
def test_agents_without_names_of_their_own_are_refused(agents: Any):
    with pytest.raises((ValueError, TypeError)):
        BackgroundAgentsProvider(agents)


async def test_instructions_of_your_own_name_the_agents():
    provider = BackgroundAgentsProvider([Helper()], instructions="Helpers: {background_agents}")
    assert await shown(provider, AgentSession()) == ["Helpers: - helper: The helper."]
