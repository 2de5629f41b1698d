"""Running agents in tests, one way or the other, with providers that write down what happens."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import AgentResponse, ContextProvider, Message, tool

BOTH = pytest.mark.parametrize("stream", [False, True], ids=["awaited", "streamed"])


async def answer(agent: Any, messages: Any = "q", *, stream: bool, **given: Any) -> AgentResponse[Any]:
    """Run an agent, one way or the other."""
    if not stream:
        response: AgentResponse[Any] = await agent.run(messages, **given)
        return response
    streamed = agent.run(messages, stream=True, **given)
    async for _ in streamed:
        pass
    final: AgentResponse[Any] = await streamed.get_final_response()
    return final


class Notes(ContextProvider):
    """Writes down when its hooks run, and adds what it is told to."""

    def __init__(self, name: str, log: list[str], **adds: Any) -> None:
        super().__init__(name)
        self.log, self.adds = log, adds
        self.seen: list[str] = []

    async def before_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        self.log.append(f"before {self.source_id}")
        self.seen = [message.text for message in context.get_messages()]
        if "messages" in self.adds:
            context.extend_messages(self, [Message("user", text) for text in self.adds["messages"]])
        if "instructions" in self.adds:
            context.extend_instructions(self, self.adds["instructions"])
        if "tools" in self.adds:
            context.extend_tools(self, self.adds["tools"])
        if "fails" in self.adds:
            raise ValueError("before")

    async def after_run(self, *, agent: Any, session: Any, context: Any, state: Any) -> None:
        self.log.append(f"after {self.source_id}: {context.response.text}")

    async def on_error(self, *, agent: Any, session: Any, context: Any, state: Any, error: Any) -> None:
        self.log.append(f"error {self.source_id}: {error}")


def numbered(number: int, name: str = "n") -> Any:
    return tool(lambda: number, name=name, description="A number.")
