"""Runs of an agent that does nothing but call its providers, as agents do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from agentbench import AgentResponse, AgentSession, Message, SessionContext
from agentbench.agents.history.history import call_hook
from agentbench.agents.sessions.session import SessionTurn


async def turn(
    session: AgentSession,
    providers: Sequence[Any],
    question: str,
    answer: Callable[[list[Message]], str] | str = "ok",
    *,
    pauses: int = 0,
) -> list[Message]:
    """One run; returns what the model saw."""
    context = SessionContext(session_id=session.session_id, input_messages=[Message("user", [question])])

    async def call(hook: str, provider: Any) -> None:
        state = session.state.setdefault(provider.source_id, {})
        await call_hook(provider, hook, agent=None, session=session, context=context, state=state)

    async with SessionTurn(session):
        for provider in providers:
            if getattr(provider, "load_messages", True):
                await call("before_run", provider)
    seen = context.get_messages(include_input=True)
    for _ in range(pauses):
        await asyncio.sleep(0)
    said = answer if isinstance(answer, str) else answer(seen)
    context._response = AgentResponse(messages=[Message("assistant", [said])])
    async with SessionTurn(session):
        for provider in reversed(providers):
            await call("after_run", provider)
    return seen


def texts(messages: Sequence[Message]) -> list[str]:
    return [message.text for message in messages]
