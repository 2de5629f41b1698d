"""Loops of agents with a task list or with background agents."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentLoopMiddleware,
    AgentResponse,
    BackgroundAgentsProvider,
    BaseAgent,
    Call,
    ScriptedChatClient,
    TodoFileStore,
    TodoProvider,
    background_tasks_running,
    background_tasks_running_message,
    todos_remaining,
    todos_remaining_message,
)
from tests.agents.agent_runs import BOTH, answer
from tests.parts.errors import raises

TODOS = AgentLoopMiddleware(continue_while=todos_remaining, message=todos_remaining_message)
TASKS = AgentLoopMiddleware(continue_while=background_tasks_running, message=background_tasks_running_message)


@BOTH
@pytest.mark.parametrize("is_in_files", [False, True])
async def test_an_agent_continues_while_tasks_remain(stream: bool, is_in_files: bool, tmp_path: Any) -> None:
    client = ScriptedChatClient(
        [
            Call("todos_add", {"todos": [{"title": "Invite"}, {"title": "Cook"}]}),
            Call("todos_complete", {"items": [{"id": 1, "reason": "sent"}]}),
            "One is done.",
            Call("todos_complete", {"items": [{"id": 2, "reason": "eaten"}]}),
            "All is done.",
        ]
    )
    provider = TodoProvider(store=TodoFileStore(tmp_path) if is_in_files else None)
    agent = Agent(client, context_providers=[provider], middleware=[TODOS])

    response = await answer(agent, "Plan the party.", stream=stream)

    assert response.text == "All is done."
    follow_up = client.calls[3].messages[-1].text
    assert "Cook" in follow_up
    assert "Invite" not in follow_up


async def test_an_agent_continues_while_background_tasks_run() -> None:
    class Helper(BaseAgent):
        async def run(self, messages: Any = None, **_: Any) -> Any:
            return AgentResponse(text="found")

    client = ScriptedChatClient(
        [
            Call("background_agents_start_task", {"agent_name": "helper", "input": "look", "description": "a search"}),
            "It works.",
            Call("background_agents_wait_for_first_completion", {"task_ids": [1]}),
            Call("background_agents_get_task_results", {"task_id": 1}),
            "It found it.",
        ]
    )
    provider = BackgroundAgentsProvider([Helper(name="helper", description="Looks.")])
    running: list[bool] = []

    def is_running(context: Any) -> bool:
        running.append(background_tasks_running(context))
        return len(running) == 1  # the task may have ended already

    loop = AgentLoopMiddleware(continue_while=is_running, message=background_tasks_running_message)
    response = await Agent(client, context_providers=[provider], middleware=[loop]).run("Search.")

    assert response.text == "It found it."
    assert running[-1] is False


@pytest.mark.parametrize(("loop", "missing"), [(TODOS, "TodoProvider"), (TASKS, "BackgroundAgentsProvider")])
async def test_an_agent_without_the_provider_is_an_error(loop: AgentLoopMiddleware, missing: str) -> None:
    with raises(ValueError, missing):
        await Agent(ScriptedChatClient("hello"), middleware=[loop]).run("q")


async def test_a_loop_until_tasks_remain_ends_when_none_remains() -> None:
    done = Call("todos_complete", {"items": [{"id": 1, "reason": "sent"}]})
    client = ScriptedChatClient([Call("todos_add", {"todos": [{"title": "Invite"}]}), "Soon.", done, "Sent."])
    loop = AgentLoopMiddleware(until=todos_remaining)
    response = await Agent(client, context_providers=[TodoProvider()], middleware=[loop]).run("Plan the party.")
    assert (response.text, len(response.rounds)) == ("Sent.", 2)


async def test_until_tasks_remain_means_the_same_beside_another_predicate() -> None:
    done = Call("todos_complete", {"items": [{"id": 1, "reason": "sent"}]})
    client = ScriptedChatClient([Call("todos_add", {"todos": [{"title": "Invite"}]}), "Soon.", done, "Sent."])
    loop = AgentLoopMiddleware(until=todos_remaining, continue_while=lambda context: True)
    response = await Agent(client, context_providers=[TodoProvider()], middleware=[loop]).run("Plan the party.")
    assert (response.text, len(response.rounds)) == ("Sent.", 2)
