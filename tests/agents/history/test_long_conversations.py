"""A turn does the same work however long the conversation is."""

from __future__ import annotations

import gc
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

import agentbench
from agentbench import Agent, AgentSession, Message, SlidingWindowStrategy, tool
from tests.agents.fake_clients import Model, call

PACKAGE = str(Path(agentbench.__file__).parent)


@tool(approval_mode="always_require")
def delete(path: str) -> str:
    return f"deleted {path}"


class Steps:
    """Counts the steps of the package's code while it is entered; copying a list is one step."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, frame: FrameType, event: str, _: Any) -> Steps | None:
        if not frame.f_code.co_filename.startswith(PACKAGE):
            return None
        frame.f_trace_opcodes = True
        self.count += event == "opcode"
        return self

    def __enter__(self) -> Steps:
        gc.disable()  # what it finds may run code
        self._before = sys.gettrace()
        sys.settrace(self)
        return self

    def __exit__(self, *_: object) -> None:
        sys.settrace(self._before)
        gc.enable()


@pytest.mark.parametrize("has_approval", [False, True], ids=["plain", "with an early approval"])
async def test_a_turn_takes_as_many_steps_after_a_long_conversation_as_after_a_short_one(has_approval: bool) -> None:
    async def steps(length: int) -> int:
        session = AgentSession()
        model = Model(call("delete", path="x")) if has_approval else Model()
        agent = Agent(model, tools=[delete])
        response = await agent.run("clean up", session=session)
        if has_approval:
            (request,) = response.user_input_requests
            await agent.run(Message("user", [request.to_function_approval_response(True)]), session=session)
        history = session.state["in_memory"]
        more = [Message(role, [role]) for _ in range(length // 2) for role in ("user", "assistant")]
        history["messages"] = [*history["messages"], *more]
        for _ in range(2):
            await agent.run("go on", session=session)
        with Steps() as counted:
            await agent.run("go on", session=session)
        assert len(model.asked[-1].messages) > length
        return counted.count

    assert await steps(2000) == await steps(20)


async def test_a_turn_with_a_sliding_window_takes_as_many_steps_after_a_long_conversation_as_after_a_short_one() -> (
    None
):
    async def steps(length: int) -> int:
        agent = Agent(Model(), compaction_strategy=SlidingWindowStrategy(keep_last_groups=4))
        session = AgentSession()
        messages = [Message(role, [role]) for _ in range(length // 2) for role in ("user", "assistant")]
        session.state["in_memory"] = {"messages": messages}
        for _ in range(2):
            await agent.run("go on", session=session)
        with Steps() as counted:
            await agent.run("go on", session=session)
        return counted.count

    assert await steps(2000) == await steps(100)
