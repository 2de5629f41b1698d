"""A process that runs an agent with queued messages, and that can be killed anywhere: `FOLDER PLACES [POINT]`.

It stores its session in a file when it begins, before and after each tool call, and at the end.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

from agentbench import (
    Agent,
    AgentExecutor,
    AgentSession,
    Call,
    ChatContext,
    CompactionProvider,
    FileCheckpointStorage,
    FileHistoryProvider,
    InMemoryHistoryProvider,
    Message,
    MessageInjectionMiddleware,
    ScriptedChatClient,
    WorkflowBuilder,
    WorkflowContext,
    chat_middleware,
    enqueue_messages,
    executor,
    tool,
)

folder, places, *points = Path(sys.argv[1]), sys.argv[2], *sys.argv[3:]
reached: dict[str, int] = {}


def pass_point(name: str) -> None:
    """Kill the process at its point."""
    reached[name] = reached.get(name, 0) + 1
    if f"{name} {reached[name]}" in points:
        os.kill(os.getpid(), signal.SIGKILL)


class Saves:
    """A history that passes a point before and after it stores messages."""

    async def save_messages(self, session_id: str | None, messages: Any, **more: Any) -> None:
        pass_point("before save")
        await super().save_messages(session_id, messages, **more)  # type: ignore[misc]
        pass_point("after save")


class InSession(Saves, InMemoryHistoryProvider):
    pass


class InFile(Saves, FileHistoryProvider):
    pass


@chat_middleware
async def around_call(context: ChatContext, call_next: Any) -> None:
    pass_point("before call")
    await call_next()
    pass_point("after call")


def store(session: AgentSession) -> None:
    (folder / "new.json").write_text(json.dumps(session.to_dict()))
    (folder / "new.json").replace(folder / "session.json")


def restored() -> AgentSession | None:
    path = folder / "session.json"
    return AgentSession.from_dict(json.loads(path.read_text())) if path.exists() else None


session = restored() or AgentSession(session_id="s1")


@tool
def work() -> str:
    if places != "checkpoint":
        store(session)
    return "done"


def reply(messages: Any, options: Any) -> Any:
    return "All done." if any(message.role == "tool" for message in messages[-2:]) else Call("work")


async def keep_last(messages: list[Message]) -> bool:
    """Exclude all messages before the input of the run."""
    begin = max(at for at, message in enumerate(messages) if message.text == "Cook.")
    for message in messages[:begin]:
        message.additional_properties["_excluded"] = True
    return begin > 0


history = InFile(folder / "history") if places.startswith("file") else InSession()
client = ScriptedChatClient([reply] * 9)
agent = Agent(
    client,
    name="cook",
    tools=[work],
    middleware=[MessageInjectionMiddleware(), around_call],
    context_providers=[history, *([CompactionProvider(before_strategy=keep_last)] if "compacted" in places else [])],
    require_per_service_call_history_persistence="per call" in places,
)


async def run_agent() -> list[Message]:
    if not (folder / "session.json").exists():
        enqueue_messages(session, "With salt.")
        store(session)
    await agent.run("Cook.", session=session)
    store(session)
    return await history.get_messages("s1", state=session.state.get(history.source_id))


async def run_workflow() -> list[Message]:
    @executor
    async def order(text: str, ctx: WorkflowContext[str]) -> None:
        enqueue_messages(session, "With salt.")
        await ctx.send_message(text)

    node = AgentExecutor(agent, session=session)
    storage = FileCheckpointStorage(folder / "checkpoints")
    workflow = (
        WorkflowBuilder(start_executor=order, checkpoint_storage=storage, name="kitchen").add_edge(order, node).build()
    )
    latest = await storage.get_latest(workflow_name="kitchen")
    if latest is None:
        await workflow.run("Cook.")
    else:
        await workflow.run(checkpoint_id=latest.checkpoint_id)
    messages: list[Message] = node.session.state[history.source_id]["messages"]
    return messages


if __name__ == "__main__":
    stored = asyncio.run(run_workflow() if places == "checkpoint" else run_agent())
    last_call = client.calls[-1].messages
    print(
        json.dumps(
            {
                "stored": [message.text for message in stored],
                "seen": [message.text for message in last_call],
                "queue": [message.text for message in session.state.get("message_injection", {}).get("messages", [])],
            }
        )
    )
