"""Background agents, which work while the agent that started them continues."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final, Self

from agentbench._bridge import EngineFuture, home_loop, submit
from agentbench.agents.arguments import describe
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.sessions.agent_protocol import ContextProvider, SupportsAgentRun
from agentbench.agents.sessions.session import AgentSession
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import UserInputRequiredException
from agentbench.messages.message import Message

if TYPE_CHECKING:
    from agentbench.agents.sessions.session_context import SessionContext

DEFAULT_BACKGROUND_AGENTS_SOURCE_ID: Final = "background_agents"

_INSTRUCTIONS: Final = (
    "These agents work for you in the background:\n{background_agents}\nStart a task for one when parts of the work do "
    "not depend on each other; it sees only what you write to it. Continue with other work, wait for a task "
    "only when you need its result, and clear tasks that you no longer need."
)


class BackgroundTaskStatus(StrEnum):
    """The status of a background task. `LOST` means that the process that ran it has ended.

    Example:
        from agentbench import BackgroundTaskStatus

        assert BackgroundTaskStatus("completed") is BackgroundTaskStatus.COMPLETED
    """

    RUNNING = "running"
    COMPLETED = "completed"
    FAILED = "failed"
    LOST = "lost"


@dataclass
class BackgroundTaskInfo:
    """A background task of a session.

    Attributes:
        id: A positive number that is unique in the session.
        agent_name: The name of the agent that works on the task.
        description: A description by the agent that started the task.
        status: The status of the task.
        result_text: The answer of the agent, if the task is completed.
        error_text: The reason for the failure, if the task failed.

    Example:
        from agentbench import BackgroundTaskInfo, BackgroundTaskStatus

        task = BackgroundTaskInfo(1, "researcher", "Find three sources", BackgroundTaskStatus.RUNNING)
        assert BackgroundTaskInfo.from_dict(task.to_dict()) == task
    """

    id: int
    agent_name: str
    description: str
    status: BackgroundTaskStatus = BackgroundTaskStatus.RUNNING
    result_text: str | None = None
    error_text: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Convert the task to plain JSON values. Fields that are None are omitted."""
        plain = {**vars(self), "status": self.status.value}
        return {name: value for name, value in plain.items() if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Create a task from the result of `to_dict`."""
        return cls(**{**data, "status": BackgroundTaskStatus(data["status"])})


@dataclass
class _TaskRuns:
    """The running tasks of a session and the sessions of their agents, by task id."""

    tasks: dict[int, EngineFuture[Any]] = field(default_factory=dict)
    sessions: dict[int, Any] = field(default_factory=dict)


class BackgroundAgentsProvider(ContextProvider):
    """Lets an agent delegate work to other agents, which run in the background on the engine's event loop.

    The model starts, watches, continues and clears tasks with tools (`background_agents_start_task` and so on). If the
    agent of a task needs an answer from a person, the task fails and its error text contains the question. The model
    can continue such a task with more text.

    The session of the agent that has the provider lists the tasks. A tool that is called outside a run uses the session
    of the latest run, or a new session.

    Args:
        agents: The background agents. Each needs a unique name; for a workflow pass its `as_agent()`.
        source_id: The id of the provider, unique in an agent.
        instructions: Instructions for the model; `{background_agents}` is replaced by the names and descriptions of the
            agents.

    Raises:
        TypeError: An item is not an agent.
        ValueError: The list is empty, an agent has no name, or two agents have the same name.

    Example:
        researcher = Agent(EchoChatClient(), name="researcher", description="Reads the web.")
        provider = BackgroundAgentsProvider([researcher])
        agent = Agent(EchoChatClient(), context_providers=[provider])
        await provider.aclose()
    """

    def __init__(
        self,
        agents: Sequence[Any],
        *,
        source_id: str = DEFAULT_BACKGROUND_AGENTS_SOURCE_ID,
        instructions: str | None = None,
    ) -> None:
        super().__init__(source_id)
        self._ab_agents: dict[str, Any] = {}
        for agent in agents:
            if not isinstance(agent, SupportsAgentRun):
                message = f"{describe(agent)} is not an agent. Expected agents; for a workflow pass its as_agent()."
                raise TypeError(message)
            name = (agent.name or "").strip()
            if not name or name.lower() in self._ab_agents:
                message = f"{agent!r} has the name {agent.name!r}. Expected a unique name."
                raise ValueError(message)
            self._ab_agents[name.lower()] = agent
        if not self._ab_agents:
            message = "The list of agents is empty. Expected at least one background agent."
            raise ValueError(message)
        listed = "\n".join(
            f"- {agent.name}" + (f": {agent.description}" if agent.description else "")
            for agent in self._ab_agents.values()
        )
        self.instructions = (instructions or _INSTRUCTIONS).replace("{background_agents}", listed)
        self._ab_runs: dict[str, _TaskRuns] = {}
        self._ab_last_session: AgentSession | None = None
        functions: tuple[Callable[..., Any], ...] = (
            self.background_agents_start_task,
            self.background_agents_wait_for_first_completion,
            self.background_agents_get_task_results,
            self.background_agents_get_all_tasks,
            self.background_agents_continue_task,
            self.background_agents_clear_completed_task,
        )
        self._ab_tools = [FunctionTool(function) for function in functions]

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        """Add the tools, and a message with the current tasks."""
        context.extend_instructions(self, self.instructions)
        context.extend_tools(self, self._ab_tools)
        self._ab_last_session = session
        tasks = self._ab_refresh(session)
        if tasks:
            lines = "\n".join(f"- {_line(task)}" for task in tasks.values())
            context.extend_messages(self, [Message("user", f"Your background tasks:\n{lines}")])

    def tasks(self, session: AgentSession) -> list[BackgroundTaskInfo]:
        """Return the tasks of a session with their current status, oldest first."""
        return list(self._ab_refresh(session).values())

    async def cancel_all(self, session: AgentSession) -> None:
        """Cancel the tasks of a session and wait until they have ended."""
        await _cancel([self._ab_runs.get(session.session_id, _TaskRuns())])
        self._ab_refresh(session)
        self._ab_runs.pop(session.session_id, None)

    async def aclose(self) -> None:
        """Cancel all tasks and wait until they have ended. Their sessions then show them as lost."""
        runs, self._ab_runs = self._ab_runs, {}
        await _cancel(list(runs.values()))

    # ------------------------------------------------------------------------------------------------------- the tools

    async def background_agents_start_task(
        self,
        context: FunctionInvocationContext,
        agent_name: str,
        input: str,  # noqa: A002 - the name that models see
        description: str,
    ) -> str:
        """Start a background task for an agent, which sees nothing but `input`."""
        agent = self._ab_agents.get(agent_name.strip().lower())
        if agent is None:
            names = ", ".join(one.name for one in self._ab_agents.values())
            return f"Error: Unknown agent {agent_name!r}. Agents: {names}."
        session = self._ab_session_of(context)
        state = session.state.setdefault(self.source_id, {})
        task = BackgroundTaskInfo(state.get("next_task_id", 1), agent.name, description)
        state["next_task_id"] = task.id + 1
        runs = self._ab_runs.setdefault(session.session_id, _TaskRuns())
        runs.sessions[task.id] = agent.create_session()
        self._ab_start(runs, task, agent, input)
        self._ab_store(session, {**self._ab_load_tasks(session), task.id: task})
        return f"Task {task.id} was started: {agent.name} works on it."

    async def background_agents_wait_for_first_completion(
        self, context: FunctionInvocationContext, task_ids: list[int]
    ) -> str:
        """Wait until one of these tasks has ended, and return which one."""
        if not task_ids:
            return "Error: task_ids is empty. Expected the ids of tasks to wait for."
        session = self._ab_session_of(context)
        tasks = self._ab_refresh(session)
        if unknown := [str(task_id) for task_id in task_ids if task_id not in tasks]:
            return f"Error: Unknown task {', '.join(unknown)}. {_task_list(tasks)}"
        if all(tasks[task_id].status is BackgroundTaskStatus.RUNNING for task_id in task_ids):
            running = self._ab_runs[session.session_id].tasks
            runs = [asyncio.wrap_future(running[task_id]) for task_id in task_ids]
            await asyncio.wait(runs, return_when=asyncio.FIRST_COMPLETED)
            tasks = self._ab_refresh(session)
        ended = next(tasks[one] for one in task_ids if tasks[one].status is not BackgroundTaskStatus.RUNNING)
        return f"Task {ended.id} has ended: {ended.status.value}."

    async def background_agents_get_task_results(self, context: FunctionInvocationContext, task_id: int) -> str:
        """Return the answer of a task, or its status."""
        tasks = self._ab_refresh(self._ab_session_of(context))
        task = tasks.get(task_id)
        if task is None:
            return f"Error: Unknown task {task_id}. {_task_list(tasks)}"
        if task.status is BackgroundTaskStatus.COMPLETED:
            return task.result_text or ""
        if task.status is BackgroundTaskStatus.FAILED:
            return f"Task {task.id} failed: {task.error_text}"
        return f"Task {task.id} is {task.status.value}."

    async def background_agents_get_all_tasks(self, context: FunctionInvocationContext) -> str:
        """Return all tasks, one per line."""
        return "\n".join(map(_line, self._ab_refresh(self._ab_session_of(context)).values())) or "No tasks."

    async def background_agents_continue_task(self, context: FunctionInvocationContext, task_id: int, text: str) -> str:
        """Send more text to the agent of a task that has ended. The agent remembers the conversation."""
        session = self._ab_session_of(context)
        tasks = self._ab_refresh(session)
        if problem := _why_not_ended(task_id, tasks):
            return problem
        task, runs = tasks[task_id], self._ab_runs.get(session.session_id)
        if runs is None or task_id not in runs.sessions or task.agent_name.lower() not in self._ab_agents:
            return f"Error: Task {task_id} cannot be continued: its agent or its conversation is gone. Start a new one."
        task.status, task.result_text, task.error_text = BackgroundTaskStatus.RUNNING, None, None
        self._ab_start(runs, task, self._ab_agents[task.agent_name.lower()], text)
        self._ab_store(session, tasks)
        return f"Task {task_id} continues."

    async def background_agents_clear_completed_task(self, context: FunctionInvocationContext, task_id: int) -> str:
        """Remove a task that has ended, and its conversation."""
        session = self._ab_session_of(context)
        tasks = self._ab_refresh(session)
        if problem := _why_not_ended(task_id, tasks):
            return problem
        del tasks[task_id]
        self._ab_store(session, tasks)
        runs = self._ab_runs.get(session.session_id)
        if runs is not None:
            runs.sessions.pop(task_id, None)
            if not runs.sessions:
                del self._ab_runs[session.session_id]
        return f"Task {task_id} was cleared."

    # ----------------------------------------------------------------------------------------------- state of the tasks

    def _ab_start(self, runs: _TaskRuns, task: BackgroundTaskInfo, agent: Any, text: str) -> None:
        async def run() -> Any:  # starting the run inside its own task gives it its own context variables
            return await agent.run(text, session=runs.sessions[task.id])

        runs.tasks[task.id] = submit(run(), loop=home_loop())

    def _ab_session_of(self, context: FunctionInvocationContext) -> AgentSession:
        """Return the session of a tool call; of a call outside a run, that of the latest run or a new one."""
        session: AgentSession = context.session or self._ab_last_session or AgentSession()
        if context.session is None:
            self._ab_last_session = session
        return session

    def _ab_load_tasks(self, session: AgentSession) -> dict[int, BackgroundTaskInfo]:
        state = session.state.setdefault(self.source_id, {})
        tasks = [BackgroundTaskInfo.from_dict(data) for data in state.get("tasks", ())]
        return {task.id: task for task in tasks}

    def _ab_store(self, session: AgentSession, tasks: Mapping[int, BackgroundTaskInfo]) -> None:
        session.state[self.source_id]["tasks"] = [task.to_dict() for task in tasks.values()]

    def _ab_refresh(self, session: AgentSession) -> dict[int, BackgroundTaskInfo]:
        """Update the status of the tasks of a session, store the tasks and return them."""
        tasks = self._ab_load_tasks(session)
        running = self._ab_runs.get(session.session_id, _TaskRuns()).tasks
        for task in tasks.values():
            if task.status is not BackgroundTaskStatus.RUNNING:
                continue
            live = running.get(task.id)
            if live is None:
                task.status = BackgroundTaskStatus.LOST
            elif live.done():
                del running[task.id]
                task.result_text, task.error_text = _outcome(live)
                is_failed = task.error_text is not None
                task.status = BackgroundTaskStatus.FAILED if is_failed else BackgroundTaskStatus.COMPLETED
        if tasks:
            self._ab_store(session, tasks)
        return tasks


def _outcome(run: EngineFuture[Any]) -> tuple[str | None, str | None]:
    """Return the text of an answer and None, or None and the reason for the failure."""
    if run.cancelled():
        return None, "The task was cancelled."
    error = run.exception()
    if isinstance(error, UserInputRequiredException):
        return None, _needs(error.contents)
    if error is not None:
        return None, f"{type(error).__name__}: {error}"
    response = run.result()
    if response.user_input_requests:
        return None, _needs(response.user_input_requests)
    return response.text, None


def _needs(requests: Sequence[Any]) -> str:
    calls = [getattr(request, "function_call", None) for request in requests]
    questions = [
        f"approval to call {call.name}" if call is not None else str(request)
        for call, request in zip(calls, requests, strict=True)
    ]
    return f"The task needs an answer from a person: {'; '.join(questions)}"


def _line(task: BackgroundTaskInfo) -> str:
    return f"{task.id}. {task.agent_name}: {task.description} ({task.status.value})"


def _task_list(tasks: Mapping[int, BackgroundTaskInfo]) -> str:
    return f"Tasks: {', '.join(map(str, tasks))}." if tasks else "No tasks."


def _why_not_ended(task_id: int, tasks: Mapping[int, BackgroundTaskInfo]) -> str:
    """Return the error for a model that needs a task to have ended; empty if it has."""
    if task_id not in tasks:
        return f"Error: Unknown task {task_id}. {_task_list(tasks)}"
    is_running = tasks[task_id].status is BackgroundTaskStatus.RUNNING
    return f"Error: Task {task_id} is running. Wait until it has ended." if is_running else ""


async def _cancel(runs: Sequence[_TaskRuns]) -> None:
    tasks = [task for session_runs in runs for task in session_runs.tasks.values()]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*map(asyncio.wrap_future, tasks), return_exceptions=True)
