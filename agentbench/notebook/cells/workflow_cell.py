"""`define_workflow`: the function behind `%%workflow`."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, NoReturn

from agentbench.exceptions import WorkflowTextError
from agentbench.notebook.cells.workbench import workbench
from agentbench.notebook.cells.workflow_text import Arrow, Name, parse_workflow
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.draw.python_code import remember_names
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.edges import Case, Default
from agentbench.workflows.run.workflow import Workflow


def define_workflow(text: str, namespace: Mapping[str, Any], *, name: str = "workflow") -> Workflow:
    """Build a workflow from its text form.

    Args:
        text: Lines such as `load -> check if ready`; see `agentbench.notebook.cells.workflow_text`. Nothing is
            evaluated: names are looked up in `namespace`.
        namespace: The variables with conditions and executors (or anything that the builder converts to one). Executors
            that are only on the workbench are found by their ids.
        name: Name of the workflow.

    Returns:
        An ordinary workflow; its `to_python()` is the builder code.

    Raises:
        WorkflowTextError: The text has a syntax error, or a name in it does not exist; the error has line, column and
            the expected input.
        WorkflowValidationError: The executors cannot be connected in this way.

    Example:
        define_workflow("load -> check -> report", globals(), name="nightly")
    """
    return _Building(text, namespace, name).workflow()


class _Building:
    """Looks up the names of a text in the namespace and makes the builder calls."""

    def __init__(self, text: str, namespace: Mapping[str, Any], name: str) -> None:
        self._arrows = parse_workflow(text)
        self._lines = text.splitlines()
        self._namespace = namespace
        self._builder = WorkflowBuilder(name=name)
        self._used: dict[str, object] = {}

    def workflow(self) -> Workflow:
        names = list(dict.fromkeys(name for arrow in self._arrows for name in (*arrow.sources, *arrow.targets)))
        for name in names:
            self._add(name)
        for arrow in self._arrows:
            self._connect(arrow)
        workflow = self._builder.build()
        # Objects that are not executors themselves get their nodes only now.
        self._used.update(zip(map(str, names), workflow.executors.values(), strict=True))
        remember_names(workflow, self._used)
        return workflow

    def _add(self, name: Name) -> None:
        executor = self._find("executor", name, Executor, workbench().executors)
        try:
            self._builder.add_executor(executor)
        except TypeError:
            made = "; convert it with @executor or %%executor" if inspect.isroutine(executor) else ""
            self._fail(name, f"expected an executor; {name.text!r} is a {type(executor).__name__}{made}")
        except ValueError as error:  # another variable has an executor with the same id
            self._fail(name, str(error).rstrip("."))

    def _connect(self, arrow: Arrow) -> None:
        sources, targets = ([self._used[name.text] for name in names] for names in (arrow.sources, arrow.targets))
        conditions = [self._find("condition", name, object, {}) for name in arrow.conditions]
        for name, found in zip(arrow.conditions, conditions, strict=True):
            if not callable(found) or isinstance(found, Executor):
                wrong = f"{name.text!r} is a {type(found).__name__}"
                self._fail(name, f"expected a function of the message; {wrong}")
        if len(sources) > 1:
            self._builder.fan_in(sources, targets[0])
        elif arrow.is_switch:
            cases = [Case(condition, target) for condition, target in zip(conditions, targets, strict=False)]
            self._builder.switch(sources[0], [*cases, Default(targets[-1])])
        elif len(targets) > 1:
            self._builder.fan_out(sources[0], targets)
        elif targets:
            self._builder.connect(sources[0], targets[0], *conditions)

    def _find(self, what: str, name: Name, kind: type, others: Mapping[str, Any]) -> Any:
        """Return the object with a name from the namespace or from `others`; the error suggests a similar name."""
        place = next((each for each in (self._namespace, others) if name.text in each), None)
        if place is None:
            names = [k for k, value in self._namespace.items() if isinstance(value, kind) and not k.startswith("_")]
            close = get_close_matches(name.text, [*names, *workbench().executors], n=1)
            self._fail(name, f"there is no {what} {name.text!r}" + (f". Did you mean {close[0]!r}?" if close else ""))
        self._used[name.text] = place[name.text]
        return place[name.text]

    def _fail(self, name: Name, problem: str) -> NoReturn:
        source = self._lines[name.line - 1]
        raise WorkflowTextError(problem, line=name.line, column=name.column, source=source) from None
