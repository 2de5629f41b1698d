"""Where a workflow comes from: a name in a module that a test can import, or names in the cells of a notebook."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from agentbench._display import call_view
from agentbench.exceptions import KeepTestError
from agentbench.workflows.graph.code_hash import code_hash
from agentbench.workflows.run.definition import WorkflowDefinition

_EXPECTED = (
    'Pass workflow="module:name", or workflow="name" for a name in a cell: that of the workflow, or of a function that '
    "makes it."
)


class Origin(NamedTuple):
    """A name for a workflow, in a module or, without one, in the cells."""

    name: str
    module: str = ""


class Cells(NamedTuple):
    """The sources of the executed cells of this notebook, oldest first, and the values of its names."""

    sources: Sequence[str]
    values: Mapping[str, Any]


def cells_of_notebook() -> Cells:
    """Return the cells that this process has executed; none outside a notebook."""
    if "IPython" not in sys.modules:
        return Cells((), {})
    return Cells(*call_view("agentbench.notebook.cells.executed:executed_cells"))


def find_origin(workflow: object, wanted: str | None, cells: Cells) -> Origin:
    """Return a name under which a test gets a workflow.

    Args:
        workflow: The workflow of the run.
        wanted: `"module:name"`, or a name in the cells; None searches for a variable that holds the workflow.
        cells: The cells of the notebook.

    Raises:
        KeepTestError: There is no such name.
    """
    if wanted is None:
        return _search(workflow, cells)
    module, colon, name = wanted.partition(":")
    if not colon:
        return Origin(_require(wanted, wanted, cells.values, workflow))
    if not all(part.isidentifier() for part in module.split(".")):
        msg = f"workflow is {wanted!r}, but {module!r} is not the name of a module. {_EXPECTED}"
        raise KeepTestError(msg, names=[wanted])
    if module == "__main__":
        msg = f"workflow is {wanted!r}, but a test cannot import the running script. {_EXPECTED}"
        raise KeepTestError(msg, names=[wanted])
    try:
        found = import_module(module)
    except ModuleNotFoundError as error:
        msg = f"workflow is {wanted!r}, but there is no module {error.name!r} to import. {_EXPECTED}"
        raise KeepTestError(msg, names=[wanted]) from error
    return Origin(_require(name, wanted, vars(found), workflow), module)


def _require(name: str, wanted: str, values: Mapping[str, Any], workflow: object) -> str:
    found = values.get(name)
    hashes = [getattr(getattr(each, "workflow", each), "graph_signature_hash", None) for each in (found, workflow)]
    is_other = hashes[0] is not None and hashes[0] != hashes[1]
    if is_other or not (hasattr(found, "start") or callable(found)):
        state = "does not exist" if name not in values else f"is a {type(found).__name__}"
        state = "has another graph than the workflow of this run" if is_other else state
        msg = f"workflow is {wanted!r}, but {name!r} {state}. {_EXPECTED}"
        raise KeepTestError(msg, names=[wanted])
    return name


def _search(workflow: object, cells: Cells) -> Origin:
    def workflow_of(value: object) -> object:
        # The run of a state graph has the workflow that the compiled graph contains.
        is_graph = type(value).__module__ == "agentbench.stategraph.compiled"
        return getattr(value, "workflow", None) if is_graph else value

    def holder(values: Mapping[str, Any], is_it: Callable[[Any], bool]) -> str | None:
        # The names `_` and `_12` are IPython's own for the values that cells have displayed.
        names = (name for name, value in list(values.items()) if not name.startswith("_") and is_it(workflow_of(value)))
        return next(names, None)

    def is_same(value: object) -> bool:
        return value is workflow

    def is_copy(value: object) -> bool:
        return isinstance(value, WorkflowDefinition) and _code_of(value) == _code_of(workflow)

    # A redone run has a copy of the workflow that a variable holds, with the same code.
    name = holder(cells.values, is_same) or holder(cells.values, is_copy)
    if name is not None and any(name in source for source in cells.sources):
        for module, imported in _modules():  # the cell may only have imported it
            if getattr(imported, "__dict__", {}).get(name) is cells.values[name]:
                return Origin(name, module)
        return Origin(name)
    for module, imported in _modules():
        if (name := holder(getattr(imported, "__dict__", {}), is_same)) is not None:
            return Origin(name, module)
    msg = f"No variable of an imported module or of a cell holds the workflow of this run. {_EXPECTED}"
    raise KeepTestError(msg)


def _code_of(workflow: Any) -> tuple[str, str]:
    """Return what tells workflows apart. Functions that a workflow calls may be new, so nothing is cached."""
    return workflow.graph.signature_hash, code_hash(workflow.graph)


def _modules() -> list[tuple[str, ModuleType]]:
    """Return the imported modules by name, without the main one, which processes also have under other names."""
    main = sys.modules["__main__"]
    return [(name, module) for name, module in list(sys.modules.items()) if module is not main]
