"""Predicates and messages of loops for agents with a task list or with background agents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from agentbench.agents.harness.background import BackgroundAgentsProvider, BackgroundTaskInfo, BackgroundTaskStatus
from agentbench.agents.harness.todo import TodoItem, TodoProvider
from agentbench.agents.middleware.loop import MORE_WORK

if TYPE_CHECKING:
    from agentbench.agents.middleware.contexts import AgentContext

_ProviderT = TypeVar("_ProviderT")


async def todos_remaining(context: AgentContext) -> bool:
    """Return whether the agent has tasks that are not done: `AgentLoopMiddleware(continue_while=todos_remaining)`.

    Raises:
        ValueError: The agent has no `TodoProvider`.

    Example:
        loop = AgentLoopMiddleware(continue_while=todos_remaining, message=todos_remaining_message)
        agent = Agent(EchoChatClient(), context_providers=[TodoProvider()], middleware=[loop])
        await agent.run("Plan the party.")
    """
    return bool(await _open_todos(context))


async def todos_remaining_message(context: AgentContext) -> str:
    """Return a follow-up message with the tasks that are not done; see `todos_remaining`.

    Raises:
        ValueError: The agent has no `TodoProvider`.

    Example:
        loop = AgentLoopMiddleware(continue_while=todos_remaining, message=todos_remaining_message)
    """
    lines = [f"- {item.id}. {item.title}" for item in await _open_todos(context)]
    return "\n".join(["These tasks are not done yet. Continue with them:", *lines])


def background_tasks_running(context: AgentContext) -> bool:
    """Return whether background tasks are running: `AgentLoopMiddleware(continue_while=background_tasks_running)`.

    Raises:
        ValueError: The agent has no `BackgroundAgentsProvider`.

    Example:
        researcher = Agent(EchoChatClient(), name="researcher", description="Reads the web.")
        loop = AgentLoopMiddleware(continue_while=background_tasks_running, message=background_tasks_running_message)
        agent = Agent(EchoChatClient(), context_providers=[BackgroundAgentsProvider([researcher])], middleware=[loop])
        await agent.run("Compare the two cities.")
    """
    return bool(_running_tasks(context))


def background_tasks_running_message(context: AgentContext) -> str:
    """Return a follow-up message with the running background tasks; see `background_tasks_running`.

    Raises:
        ValueError: The agent has no `BackgroundAgentsProvider`.

    Example:
        loop = AgentLoopMiddleware(continue_while=background_tasks_running, message=background_tasks_running_message)
    """
    lines = [f"- {task.id}. {task.agent_name}: {task.description}" for task in _running_tasks(context)]
    text = "These background tasks are still running. Wait for one to end, and use its result:"
    return "\n".join([text, *lines])


for _predicate in (todos_remaining, background_tasks_running):
    setattr(_predicate, MORE_WORK, True)


async def _open_todos(context: AgentContext) -> list[TodoItem]:
    return [
        item
        for provider in _providers_of(context, TodoProvider)
        for item in await provider.store.load_items(context.session, source_id=provider.source_id)
        if not item.is_complete
    ]


def _running_tasks(context: AgentContext) -> list[BackgroundTaskInfo]:
    return [
        task
        for provider in _providers_of(context, BackgroundAgentsProvider)
        for task in provider.tasks(context.session)
        if task.status is BackgroundTaskStatus.RUNNING
    ]


def _providers_of(context: AgentContext, kind: type[_ProviderT]) -> list[_ProviderT]:
    providers: Any = getattr(context.agent, "context_providers", ())
    found = [provider for provider in providers if isinstance(provider, kind)]
    if not found:
        message = f"{context.agent!r} has no {kind.__name__}. Pass one to the agent: context_providers=[...]."
        raise ValueError(message)
    return found
