"""Read by the type checker, never run: what `run` of an agent gives, by how it is asked."""

from __future__ import annotations

from collections.abc import Coroutine
from typing import Any, assert_type

from agentbench import Agent, AgentResponse, AgentResponseUpdate, RawAgent, ResponseStream

Response = Coroutine[Any, Any, AgentResponse[Any]]
Stream = ResponseStream[AgentResponseUpdate, AgentResponse[Any]]


async def runs(agent: Agent, plain: RawAgent, is_streaming: bool) -> None:
    assert_type(await agent.run("hi"), AgentResponse[Any])
    assert_type(agent.run("hi", stream=True), Stream)
    assert_type(agent.run("hi", stream=is_streaming), Response | Stream)
    assert_type(plain.run("hi", stream=is_streaming), Response | Stream)
