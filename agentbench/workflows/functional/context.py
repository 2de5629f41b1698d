"""`RunContext`: a workflow function's and its steps' access to the run."""

from __future__ import annotations

from collections import Counter
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

from agentbench.workflows.events.events import WorkflowEvent

if TYPE_CHECKING:
    from agentbench.workflows.functional.execution import FunctionExecution

ACTIVE: ContextVar[RunContext | None] = ContextVar("agentbench_run_context", default=None)
"""The context of the function or step that is running."""


class RunPending(BaseException):
    """Ends a function that needs a response. Not an `Exception`, so that the function does not catch it by accident."""


class RunContext:
    """What a workflow function and its steps can request from the run: a person's response, events, state.

    A function gets it in a parameter named `ctx`, or annotated with this class. Elsewhere call `get_run_context()`.

    Example:
        >>> @workflow
        ... async def publish(draft: str, ctx: RunContext) -> str:
        ...     approved = await ctx.request_info(draft, bool)
        ...     return draft if approved else "withdrawn"
    """

    __slots__ = ("_execution", "calls", "prefix", "requests")

    def __init__(self, execution: FunctionExecution, prefix: str = "") -> None:
        self._execution = execution
        self.prefix = prefix
        """Prefix of the keys of steps that are called inside a step."""
        self.calls: Counter[str] = Counter()
        """How often each step was called in this context."""
        self.requests = 0
        """How many requests without an explicit id were made in this context."""

    @property
    def execution(self) -> FunctionExecution:
        """The run, for steps."""
        return self._execution

    async def request_info(
        self,
        request_data: Any = None,
        response_type: Any = object,
        *,
        request_id: str | None = None,
        data: Any = None,
    ) -> Any:
        """Return the response to a request, for example to a person.

        If there is no response yet, the run ends here with the request pending. `run(responses={request_id: ...})` then
        calls the function again, and this call returns the response; results of steps are cached.

        Args:
            request_data: The data that the person needs.
            response_type: The type of the response.
            request_id: The request's id; by default `auto::0`, `auto::1` and so on, in the order of the calls.
            data: Another name for `request_data`.

        Raises:
            ValueError: Another request of this run has the same id.
        """
        if request_id is None:
            request_id = self._execution.next_request_id()
            self.requests += 1
        return self._execution.request(request_id, data if request_data is None else request_data, response_type)

    async def add_event(self, event: WorkflowEvent[Any]) -> None:
        """Emit an event to the observers of the run."""
        self._execution.log.append(event)

    def get_state(self, key: str, default: Any = None) -> Any:
        """Return a value of the run's state."""
        return self._execution.run.state.get(key, default)

    def set_state(self, key: str, value: Any) -> None:
        """Write a value to the run's state, which checkpoints include. ValueError: the key begins with `_`."""
        if key.startswith("_"):
            msg = f"State key {key!r} is reserved: the engine uses keys that start with '_'. Use another name."
            raise ValueError(msg)
        self._execution.run.state.set(key, value)

    def is_streaming(self) -> bool:
        """Whether the run was started with `stream=True`."""
        return self._execution.run.streaming


def get_run_context() -> RunContext | None:
    """Return the context of the workflow function or step that is currently running, or None.

    Example:
        >>> async def note(text: str) -> None:
        ...     ctx = get_run_context()
        ...     if ctx is not None:
        ...         await ctx.add_event(WorkflowEvent("custom", text))
    """
    return ACTIVE.get()
