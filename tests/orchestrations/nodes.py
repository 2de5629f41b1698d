"""Agents for nodes: ours with a model that answers its own name, and one of another library."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from agentbench import Agent, AgentResponse, AgentResponseUpdate, AgentSession, Message
from tests.agents.fake_clients import Model


def agent(name: str, *answers: Any, **settings: Any) -> Agent:
    """An agent whose answer is its name in capitals, unless others are given."""
    return Agent(Model(*(answers or [name.upper()] * 20)), name=name, **settings)


def asked(of: Agent) -> list[list[str]]:
    """The texts of each call of the agent's model."""
    model: Model = of.client
    return [call.texts for call in model.asked]


class ForeignAgent:
    """Of another library: takes what the protocol says and nothing more, streams by a plain generator."""

    id, description = "stranger-1", "A stranger."

    def __init__(self, name: str | None = "stranger", updates: tuple[str, ...] = ("Good ", "day")) -> None:
        self.name = name
        self.updates = updates
        self.asked: list[list[Message]] = []
        self.sessions: list[Any] = []

    def run(self, messages: list[Message], *, stream: bool = False, session: Any = None) -> Any:
        self.asked.append(messages)
        self.sessions.append(session)
        return self._stream() if stream else self._respond()

    async def _respond(self) -> AgentResponse:
        return AgentResponse(text="".join(self.updates))

    async def _stream(self) -> AsyncIterator[AgentResponseUpdate]:
        for text in self.updates:
            yield AgentResponseUpdate(contents=[text], role="assistant")

    def create_session(self, *, session_id: str | None = None) -> AgentSession:
        return AgentSession(session_id=session_id)
