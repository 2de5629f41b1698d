"""The coroutine of a run, with an error that explains to await it if its result is read too early."""

from __future__ import annotations

from collections.abc import Coroutine, Generator
from typing import Any

from agentbench.workflows.run.result import WorkflowRunResult


class RunCoroutine(Coroutine[Any, Any, WorkflowRunResult]):
    """The result of calling `workflow.run(...)`: a coroutine that must be awaited once."""

    # An interrupt arrives here when asyncio.run drives the coroutine; `cut_to_user` removes the frames below.

    __slots__ = ("_coroutine",)

    def __init__(self, coroutine: Coroutine[Any, Any, WorkflowRunResult]) -> None:
        self._coroutine = coroutine

    def __await__(self) -> Generator[Any, Any, WorkflowRunResult]:
        return self._coroutine.__await__()

    def send(self, value: Any) -> Any:
        """Resume the coroutine with a value."""
        return self._coroutine.send(value)

    def throw(self, *error: Any) -> Any:
        """Resume the coroutine with an error."""
        return self._coroutine.throw(*error)

    def close(self) -> None:
        """End the coroutine."""
        self._coroutine.close()

    def __getattr__(self, name: str) -> Any:
        if hasattr(WorkflowRunResult, name) and not name.startswith("_"):
            msg = (
                f"The run has not been awaited, so it has no {name!r} yet. Write (await workflow.run(...)).{name}, or "
                f"in synchronous code: run_sync(workflow.run(...)).{name}."
            )
            raise AttributeError(msg)
        return getattr(self._coroutine, name)

    def __repr__(self) -> str:
        return "<coroutine of Workflow.run, to be awaited>"
