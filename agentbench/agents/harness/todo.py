"""A task list that an agent writes for itself and sees in every run."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from agentbench.agents.harness.todo_store import TodoInput, TodoItem, TodoSessionStore, TodoStore
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.sessions.context_provider import ContextProvider
from agentbench.agents.sessions.turn_lock import SessionTurn
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext

DEFAULT_TODO_SOURCE_ID: Final = "todo"

_INSTRUCTIONS: Final = (
    "You have a list of tasks for work that takes several steps. Write the steps down before you begin, complete each "
    "one as soon as it is done and say how, and remove those that are no longer needed. The list is shown to you at "
    "the beginning of every run; a short question needs no list."
)


@dataclass
class CompletedTodo:
    """A model's report of a completed task."""

    id: int
    reason: str


class TodoProvider(ContextProvider):
    """Gives an agent a task list that lasts as long as its session.

    The model adds, completes and removes tasks with tools (`todos_add`, `todos_complete`, `todos_remove`,
    `todos_get_remaining`, `todos_get_all`). Each run shows the list to the model.

    Args:
        source_id: The id of the provider, unique in an agent.
        instructions: Instructions for the model, instead of the default ones.
        store: Stores the tasks; by default in the session.

    Example:
        agent = Agent(EchoChatClient(), context_providers=[TodoProvider()])
    """

    def __init__(
        self,
        source_id: str = DEFAULT_TODO_SOURCE_ID,
        *,
        instructions: str | None = None,
        store: TodoStore | None = None,
    ) -> None:
        super().__init__(source_id)
        self.instructions = _INSTRUCTIONS if instructions is None else instructions
        self.store = store or TodoSessionStore()
        tools = (self.todos_add, self.todos_complete, self.todos_remove, self.todos_get_remaining, self.todos_get_all)
        self._tools = [FunctionTool(function) for function in tools]

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the tools, and a message with the list."""
        items = await self.store.load_items(session, source_id=self.source_id)
        context.extend_instructions(self, self.instructions)
        context.extend_tools(self, self._tools)
        context.extend_messages(self, [Message("user", _todo_text(items))])

    async def todos_add(self, context: FunctionInvocationContext, todos: list[TodoInput]) -> str:
        """Add tasks to the list."""
        _refuse_empty("todos", todos)
        async with SessionTurn(context.session):
            items, next_id = await self._load(context)
            added = [TodoItem(next_id + index, todo.title, todo.description) for index, todo in enumerate(todos)]
            await self._save(context, [*items, *added], next_id + len(added))
        return _json(item.to_dict() for item in added)

    async def todos_complete(self, context: FunctionInvocationContext, items: list[CompletedTodo]) -> str:
        """Mark tasks as done; say for each how it was done."""
        _refuse_empty("items", items)
        ids = {item.id for item in items}
        async with SessionTurn(context.session):
            stored, next_id = await self._load(context)
            done = [item for item in stored if item.id in ids and not item.is_complete]
            for item in done:
                item.is_complete = True
            await self._save(context, stored, next_id)
        return _json({"completed": len(done)})

    async def todos_remove(self, context: FunctionInvocationContext, ids: list[int]) -> str:
        """Remove tasks from the list, done or not."""
        _refuse_empty("ids", ids)
        async with SessionTurn(context.session):
            stored, next_id = await self._load(context)
            remaining = [item for item in stored if item.id not in ids]
            await self._save(context, remaining, next_id)
        return _json({"removed": len(stored) - len(remaining)})

    async def todos_get_remaining(self, context: FunctionInvocationContext) -> str:
        """Return the tasks that are not done."""
        items, _ = await self._load(context)
        return _json(item.to_dict() for item in items if not item.is_complete)

    async def todos_get_all(self, context: FunctionInvocationContext) -> str:
        """Return all tasks, done or not."""
        items, _ = await self._load(context)
        return _json(item.to_dict() for item in items)

    async def _load(self, context: FunctionInvocationContext) -> tuple[list[TodoItem], int]:
        return await self.store.load_state(context.session, source_id=self.source_id)

    async def _save(self, context: FunctionInvocationContext, items: list[TodoItem], next_id: int) -> None:
        await self.store.save_state(context.session, items, next_id=next_id, source_id=self.source_id)


def _todo_text(items: list[TodoItem]) -> str:
    lines = [
        f"- [{'x' if item.is_complete else ' '}] {item.id}. {item.title}"
        + (f": {item.description}" if item.description else "")
        for item in items
    ]
    return "\n".join(["Your tasks:", *lines]) if lines else "Your list of tasks is empty."


def _refuse_empty(name: str, values: list[Any]) -> None:
    if not values:
        message = f"{name} is empty. Expected at least one."
        raise ValueError(message)


def _json(value: Any) -> str:
    return json.dumps(list(value) if isinstance(value, Iterable) and not isinstance(value, dict) else value)
