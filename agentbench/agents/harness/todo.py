"""A task list that an agent writes for itself and sees in every run, and the stores of such lists."""

from __future__ import annotations

import json
import os
from abc import ABC, abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from typing import TYPE_CHECKING, Any, Final, Self, TypeGuard

from agentbench._files.stored_text import read_json, replace_text, stem_of
from agentbench._secrets import masked_repr
from agentbench._workers import run_in_thread
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.sessions.agent_protocol import ContextProvider
from agentbench.agents.sessions.session import SessionTurn
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.agents.sessions.session_context import SessionContext


class _Task:
    """The conversion of tasks to plain values and back."""

    def to_dict(self) -> dict[str, Any]:
        """Convert the task to plain JSON values."""
        return asdict(self)  # type: ignore[call-overload,no-any-return]

    def to_json(self) -> str:
        """Convert the task to JSON text."""
        return json.dumps(self.to_dict(), ensure_ascii=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create a task from the result of `to_dict`."""
        is_needed = {field.name: field.default is MISSING for field in fields(cls)}  # type: ignore[arg-type]
        needed = [name for name in is_needed if is_needed[name]]
        if not isinstance(data, Mapping) or not all(name in data for name in needed):  # type: ignore[redundant-expr]
            message = f"{masked_repr(data)} is not a task. Expected a mapping with {' and '.join(needed)}."
            raise ValueError(message)
        return cls(**{name: data[name] for name in is_needed if name in data})


@dataclass
class TodoInput(_Task):
    """A task to add.

    Args:
        title: The title of the task; it must not be blank.
        description: A longer description.

    Raises:
        ValueError: The title is blank.

    Example:
        from agentbench import TodoInput

        task = TodoInput("Book a table", description="for four, at seven")
    """

    title: str
    description: str | None = None

    def __post_init__(self) -> None:
        texts = (self.title, self.description or "")
        if not all(isinstance(text, str) for text in texts) or not self.title.strip():
            message = f"A task has the title {self.title!r} and the description {self.description!r}. Expected text."
            raise ValueError(message)
        self.title = self.title.strip()


@dataclass
class TodoItem(_Task):
    """A task of a session.

    Args:
        id: A positive number that is unique in the session.
        title: The title of the task; it must not be blank.
        description: A longer description.
        is_complete: Whether the task is done.

    Raises:
        ValueError: The id is not an integer greater than 0, or the title is blank.

    Example:
        from agentbench import TodoItem

        item = TodoItem(1, "Book a table")
        assert not item.is_complete
    """

    id: int
    title: str
    description: str | None = None
    is_complete: bool = False

    def __post_init__(self) -> None:
        if not _is_whole(self.id) or self.id < 1:
            message = f"The id of a task is {self.id!r}. Expected a positive integer."
            raise ValueError(message)
        self.title = TodoInput(self.title, self.description).title


class TodoStore(ABC):
    """Base class of the stores of a `TodoProvider`.

    Example:
        from agentbench import TodoProvider, TodoSessionStore

        provider = TodoProvider(store=TodoSessionStore())
    """

    @abstractmethod
    async def load_state(self, session: AgentSession, *, source_id: str) -> tuple[list[TodoItem], int]:
        """Return the tasks of a session and the id for the next task."""

    @abstractmethod
    async def save_state(
        self, session: AgentSession, items: Sequence[TodoItem], *, next_id: int, source_id: str
    ) -> None:
        """Replace the stored tasks of a session."""

    async def load_items(self, session: AgentSession, *, source_id: str) -> list[TodoItem]:
        """Return the tasks of a session."""
        items, _ = await self.load_state(session, source_id=source_id)
        return items


class TodoSessionStore(TodoStore):
    """Stores tasks in the session itself under `state[source_id]`.

    Example:
        from agentbench import TodoProvider, TodoSessionStore

        provider = TodoProvider(store=TodoSessionStore())
    """

    async def load_state(self, session: AgentSession, *, source_id: str) -> tuple[list[TodoItem], int]:
        """Return the tasks in the state of a session and the id for the next task."""
        return _read(session.state.get(source_id, {}), f"state[{source_id!r}] of {session!r}")

    async def save_state(
        self, session: AgentSession, items: Sequence[TodoItem], *, next_id: int, source_id: str
    ) -> None:
        """Replace the tasks in the state of a session."""
        session.state[source_id] = _written(items, next_id)


class TodoFileStore(TodoStore):
    """Stores tasks in a folder, with a JSON file for each session.

    Args:
        base_path: The folder. It is created with the first task.
        kind: The name of the folder for the tasks, next to other files of an owner.
        owner_prefix: A prefix for the owner's name.
        owner_state_key: The key of `session.state` that contains the owner. If set, each owner has a separate folder.
        state_filename: The name of the files; the id of the provider is added to it.

    Example:
        provider = TodoProvider(store=TodoFileStore("todos"))
    """

    def __init__(
        self,
        base_path: str | os.PathLike[str],
        *,
        kind: str = "todos",
        owner_prefix: str = "",
        owner_state_key: str | None = None,
        state_filename: str = "todos.json",
    ) -> None:
        self.base_path = os.fspath(base_path)
        self.kind, self.owner_prefix, self.owner_state_key = kind, owner_prefix, owner_state_key
        self.state_filename = state_filename

    async def load_state(self, session: AgentSession, *, source_id: str) -> tuple[list[TodoItem], int]:
        """Return the tasks in the file of a session and the id for the next task. Without a file there are no tasks.

        Raises:
            RuntimeError: The session has no owner although the store was created with `owner_state_key`.
            ValueError: The file is invalid, or the id of the session is not a valid folder name.
        """
        path = self._ab_path_of(session, source_id)
        data = await run_in_thread(read_json, self.base_path, path)
        return _read({} if data is None else data, path)

    async def save_state(
        self, session: AgentSession, items: Sequence[TodoItem], *, next_id: int, source_id: str
    ) -> None:
        """Replace the tasks in the file of a session atomically."""
        path = self._ab_path_of(session, source_id)
        text = json.dumps(_written(items, next_id), ensure_ascii=False, indent=1)
        await run_in_thread(replace_text, self.base_path, path, text)

    def _ab_path_of(self, session: AgentSession, source_id: str) -> str:
        if "/" in session.session_id or "\\" in session.session_id:
            message = (
                f"The id of {session!r} has a path separator, so it is not a valid folder name. Use an id without one."
            )
            raise ValueError(message)
        stem, suffix = os.path.splitext(self.state_filename)
        file = f"{stem}.{stem_of(source_id)}{suffix}"
        return os.path.join(self.base_path, *self._ab_owner_folders(session), stem_of(session.session_id), file)

    def _ab_owner_folders(self, session: AgentSession) -> list[str]:
        if self.owner_state_key is None:
            return []
        owner = session.state.get(self.owner_state_key)
        if not owner:
            message = f"{session!r} has no state {self.owner_state_key!r}. Expected the owner of its tasks there."
            raise RuntimeError(message)
        return [stem_of(f"{self.owner_prefix}{owner}"), stem_of(self.kind)]


def _read(data: Any, where: str) -> tuple[list[TodoItem], int]:
    if not isinstance(data, Mapping) or not isinstance(data.get("items", []), list):
        message = f"{where} does not contain tasks. Expected a mapping with a list of items; fix or remove it."
        raise ValueError(message)
    try:
        items = [TodoItem.from_dict(item) for item in data.get("items", [])]
    except ValueError as error:
        message = f"{where} contains an invalid task. {error}"
        raise ValueError(message) from error
    next_id = data.get("next_id")
    lowest = max((item.id for item in items), default=0) + 1
    return items, max(next_id, lowest) if _is_whole(next_id) else lowest


def _written(items: Sequence[TodoItem], next_id: int) -> dict[str, Any]:
    lowest = max((item.id for item in items), default=0) + 1
    return {"items": [item.to_dict() for item in items], "next_id": max(next_id, lowest)}


def _is_whole(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


# ---- the provider


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
        self._ab_tools = [FunctionTool(function) for function in tools]

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the tools, and a message with the list."""
        items = await self.store.load_items(session, source_id=self.source_id)
        context.extend_instructions(self, self.instructions)
        context.extend_tools(self, self._ab_tools)
        context.extend_messages(self, [Message("user", _todo_text(items))])

    async def todos_add(self, context: FunctionInvocationContext, todos: list[TodoInput]) -> str:
        """Add tasks to the list."""
        _refuse_empty("todos", todos)
        async with SessionTurn(context.session):
            items, next_id = await self._ab_load(context)
            added = [TodoItem(next_id + index, todo.title, todo.description) for index, todo in enumerate(todos)]
            await self._ab_save(context, [*items, *added], next_id + len(added))
        return _json(item.to_dict() for item in added)

    async def todos_complete(self, context: FunctionInvocationContext, items: list[CompletedTodo]) -> str:
        """Mark tasks as done; say for each how it was done."""
        _refuse_empty("items", items)
        ids = {item.id for item in items}
        async with SessionTurn(context.session):
            stored, next_id = await self._ab_load(context)
            done = [item for item in stored if item.id in ids and not item.is_complete]
            for item in done:
                item.is_complete = True
            await self._ab_save(context, stored, next_id)
        return _json({"completed": len(done)})

    async def todos_remove(self, context: FunctionInvocationContext, ids: list[int]) -> str:
        """Remove tasks from the list, done or not."""
        _refuse_empty("ids", ids)
        async with SessionTurn(context.session):
            stored, next_id = await self._ab_load(context)
            remaining = [item for item in stored if item.id not in ids]
            await self._ab_save(context, remaining, next_id)
        return _json({"removed": len(stored) - len(remaining)})

    async def todos_get_remaining(self, context: FunctionInvocationContext) -> str:
        """Return the tasks that are not done."""
        items, _ = await self._ab_load(context)
        return _json(item.to_dict() for item in items if not item.is_complete)

    async def todos_get_all(self, context: FunctionInvocationContext) -> str:
        """Return all tasks, done or not."""
        items, _ = await self._ab_load(context)
        return _json(item.to_dict() for item in items)

    async def _ab_load(self, context: FunctionInvocationContext) -> tuple[list[TodoItem], int]:
        return await self.store.load_state(context.session, source_id=self.source_id)

    async def _ab_save(self, context: FunctionInvocationContext, items: list[TodoItem], next_id: int) -> None:
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
