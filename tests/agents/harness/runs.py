"""Agents whose scripted model calls the tools of a provider."""

from __future__ import annotations

from typing import Any

from agentbench import Agent, AgentSession, Call, Message, ScriptedChatClient


async def call(
    provider: Any, session: AgentSession, name: str, arguments: dict[str, Any] | None = None, **options: Any
) -> str:
    """Let a model call one tool of a provider in a run of an agent, and return what it got back."""
    client = ScriptedChatClient([Call(name, arguments or {}), "done"])
    agent = Agent(client, context_providers=[provider], **options)
    await agent.run("go", session=session)
    result = client.calls[-1].messages[-1].contents[0]
    assert result.type == "function_result"
    return str(result.exception or result.result)


async def shown(provider: Any, session: AgentSession) -> list[str]:
    """Return what a provider shows the model at the beginning of a run."""
    client = ScriptedChatClient("done")
    await Agent(client, context_providers=[provider]).run("the question", session=session)
    last = client.calls[-1]
    own = [message for message in last.messages if source_of(message) == provider.source_id]
    return [*(message.text for message in own), str(last.options.get("instructions"))]


def source_of(message: Message) -> str | None:
    return message.additional_properties.get("_attribution", {}).get("source_id")  # type: ignore[no-any-return]
