"""The executors defined by `%%executor` cells, and detection of workflows that still run older code."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from agentbench._signatures import type_name
from agentbench.notebook.look.html import Page, Table

if TYPE_CHECKING:
    from agentbench.workflows.executors.executor import Executor


def ports_of(executor: Executor) -> tuple[str, str, str]:
    """Return the types that an executor accepts, sends and yields, in words."""
    ports = (executor.input_types, executor.output_types, executor.workflow_output_types)
    takes, sends, yields = (" or ".join(map(type_name, types)) or "nothing" for types in ports)
    return f"takes {takes}", f"sends {sends}", f"yields {yields}"


class Workbench:
    """The executors of this notebook by id, each with its newest code; a cell displays them with their types.

    `workbench()` returns the only instance; `%%executor` and `define_executor` fill it.

    Example:
        workbench().executors["review"]
        workbench().clear()
    """

    def __init__(self) -> None:
        self._executors: dict[str, Executor] = {}
        # Code that is defined again without a change is not older.
        self._code_of: weakref.WeakKeyDictionary[Executor, str] = weakref.WeakKeyDictionary()

    @property
    def executors(self) -> dict[str, Executor]:
        """All executors by id, in the order of their first definition."""
        return dict(self._executors)

    def put(self, executor: Executor, code: str) -> Executor | None:
        """Add an executor with its source code; returns the executor that it replaces, if any."""
        before = self._executors.get(executor.id)
        self._executors[executor.id] = executor
        self._code_of[executor] = code
        return before

    def is_older(self, executor: Executor) -> bool:
        """Whether the code of an executor was changed after the executor was made."""
        newest, code = self._executors.get(executor.id), self._code_of.get(executor)
        return newest is not None and code is not None and code != self._code_of[newest]

    def clear(self) -> None:
        """Remove all executors; workflows built with them do not change."""
        self._executors.clear()
        self._code_of.clear()

    def __repr__(self) -> str:
        return f"Workbench({', '.join(self._executors) or 'empty'})"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, str]:
        rows = [(name, *ports_of(executor)) for name, executor in self._executors.items()]
        return Page("Workbench", tables=[Table("Executors", ("id", "takes", "sends", "yields"), rows)]).bundle()


_workbench = Workbench()


def workbench() -> Workbench:
    """Return the workbench of this notebook, with the executors defined by its `%%executor` cells.

    Example:
        workbench()  # a table of all executors and their types
    """
    return _workbench


def older_code(of: Any) -> tuple[str, ...]:
    """Return the ids of the executors whose code was changed after this object was made.

    Args:
        of: A workflow, a run or a stepper.

    Example:
        if older_code(workflow):
            workflow = build()  # with the newest executors
    """
    executors = getattr(getattr(of, "workflow", of), "executors", {})
    return tuple(name for name, executor in executors.items() if _workbench.is_older(executor))
