"""Where a workflow comes from: a name in a module that a test can import, or names in the cells of a notebook."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from types import ModuleType
from typing import Any, NamedTuple

from agentbench._display import call_view
from agentbench.exceptions import KeepTestError

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
        return Origin(_require(wanted, wanted, cells.values))
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
    return Origin(_require(name, wanted, vars(found)), module)


def _require(name: str, wanted: str, values: Mapping[str, Any]) -> str:
    found = values.get(name)
    if not (hasattr(found, "start") or callable(found)):
        state = "does not exist" if name not in values else f"is a {type(found).__name__}"
        msg = f"workflow is {wanted!r}, but {name!r} {state}. {_EXPECTED}"
        raise KeepTestError(msg, names=[wanted])
    return name


def _search(workflow: object, cells: Cells) -> Origin:
    def is_it(value: object) -> bool:
        # The run of a state graph has the workflow that the compiled graph contains.
        is_graph = type(value).__module__ == "agentbench.stategraph.compiled"
        return value is workflow or (is_graph and getattr(value, "workflow", None) is workflow)

    def holder(values: Mapping[str, Any]) -> str | None:
        # The names `_` and `_12` are IPython's own for the values that cells have displayed.
        names = (name for name, value in list(values.items()) if not name.startswith("_") and is_it(value))
        return next(names, None)

    if (name := holder(cells.values)) is not None and any(name in source for source in cells.sources):
        for module, imported in _modules():  # the cell may only have imported it
            if getattr(imported, "__dict__", {}).get(name) is cells.values[name]:
                return Origin(name, module)
        return Origin(name)
    for module, imported in _modules():
        if (name := holder(getattr(imported, "__dict__", {}))) is not None:
            return Origin(name, module)
    msg = f"No variable of an imported module or of a cell holds the workflow of this run. {_EXPECTED}"
    raise KeepTestError(msg)


def _modules() -> list[tuple[str, ModuleType]]:
    """Return the imported modules by name, without the main one, which processes also have under other names."""
    main = sys.modules["__main__"]
    return [(name, module) for name, module in list(sys.modules.items()) if module is not main]
