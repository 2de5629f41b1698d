"""Approved calls when the process ends while they are under way: only the history of calls is left."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from agentbench import AgentSession, FileHistoryProvider, Message, ScriptedChatClient, tool
from tests.agents.loop.scripts import call, says

ran: list[str] = []


@tool(approval_mode="always_require")
def wipe(disk: str) -> str:
    ran.append(disk)
    return f"{disk} is wiped"


def process(folder: Path, *answers: Any) -> Any:
    """An agent as a new process makes it: nothing but the folder is left of the one before."""
    return ScriptedChatClient(list(answers)).as_agent(
        name="a",
        tools=[wipe],
        context_providers=[FileHistoryProvider(folder)],
        require_per_service_call_history_persistence=True,
    )


async def stored(folder: Path) -> list[Message]:
    return await FileHistoryProvider(folder).get_messages("s")


@pytest.fixture(autouse=True)
def _nothing_ran() -> None:
    ran.clear()


async def test_the_history_of_calls_alone_knows_what_waits_for_an_answer(tmp_path: Path) -> None:
    asks = says(call("c", "wipe", {"disk": "b"}))
    (request,) = (await process(tmp_path, asks).run("q", session=AgentSession(session_id="s"))).user_input_requests
    assert [one.type for message in await stored(tmp_path) for one in message.contents] == [
        *("text", "function_call", "function_approval_request")
    ]

    answer = Message("user", [request.to_function_approval_response(True)])
    await process(tmp_path, "done").run(answer, session=AgentSession(session_id="s"))

    assert ran == ["b"]
    roles = [message.role for message in await stored(tmp_path)]
    assert roles == ["user", "assistant", "assistant", "tool", "assistant"]


async def test_an_approved_call_is_not_made_again_after_a_crash_during_the_call_of_the_model(tmp_path: Path) -> None:
    live, left = tmp_path / "live", tmp_path / "left"
    first, session = process(live, says(call("c", "wipe", {"disk": "b"}))), AgentSession(session_id="s")
    (request,) = (await first.run("q", session=session)).user_input_requests
    answer = Message("user", [request.to_function_approval_response(True)])

    def crash(messages: Any, options: Any) -> str:
        shutil.copytree(live, left)  # what a process that is killed here leaves
        return "never read"

    await process(live, crash).run(answer, session=AgentSession(session_id="s"))
    assert [one.result for message in await stored(left) for one in message.contents][-1] == "b is wiped"

    again = process(left, "done")
    response = await again.run(answer, session=AgentSession(session_id="s"))

    assert (ran, response.text) == (["b"], "done")
    (seen,) = again.client.calls
    assert [message.role for message in seen.messages] == ["user", "assistant", "tool"]
    assert [message.role for message in await stored(left)] == ["user", "assistant", "assistant", "tool", "assistant"]
