"""The current code of a workflow: what was defined again since the workflow was noted, and a copy that uses it.

Classes and functions are looked up by module and qualified name. Workflows, executors, agents, clients and tools are
looked up by the variables of the notebook that held them. Lambdas and closures have neither: they count as changed
if the function that makes them changed, and are found only in a workflow that was built again.
"""

from __future__ import annotations

import copy
import functools
import sys
import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import FunctionType, MethodType
from typing import Any

from agentbench.exceptions import RedoError
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import FunctionExecutor
from agentbench.workflows.executors.handlers import HandlerTable, ResponseTable
from agentbench.workflows.graph.code_hash import code_hashes, part_hash
from agentbench.workflows.graph.edge_groups import EdgeGroup
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup


@dataclass(frozen=True, slots=True)
class CurrentCode:
    """The current code of a workflow, as far as it was found.

    Attributes:
        workflow: A workflow that uses what was found; equal to the noted one if nothing changed.
        changed: The ids of the executors and edges whose code changed, sorted; parts of sub-workflows as `outer/inner`.
        missing: The changed parts whose current code was not found, with the reason of each.

    Example:
        >>> find_current(workflow).changed
        ('classify',)
    """

    workflow: Any
    changed: tuple[str, ...]
    missing: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Note:
    """What is known from the time when a workflow was noted. Objects are named by `id`, as the workflow keeps them."""

    hashes: Mapping[str, str]
    variables: Mapping[int, list[str]] = field(default_factory=dict)
    shadowed: frozenset[int] = frozenset()
    """Classes and functions that their names did not hold even then."""
    factories: Mapping[tuple[str, str], str] = field(default_factory=dict)
    """Hashes of the functions in which lambdas and closures were made, by module and name."""


_notes: weakref.WeakKeyDictionary[Any, _Note] = weakref.WeakKeyDictionary()


def note_code(workflow: Any) -> None:
    """Remember the code of a workflow and the variables that hold its parts, so that later changes are found.

    Args:
        workflow: The workflow; noting it again replaces the former note.

    Example:
        >>> note_code(workflow)
    """
    variables: dict[int, list[str]] = {}
    for name, value in list(user_variables().items()):
        if not name.startswith("_"):  # the outputs of cells
            variables.setdefault(id(_workflow_of(value)), []).append(name)
    look = _Lookup(_Note({}))
    look.graph(workflow.graph, "")
    factories = {key: part_hash(made) for key in look.factories if (made := _find_by_name(*key)) is not None}
    _notes[workflow] = _Note(code_hashes(workflow.graph), variables, frozenset(look.replaced), factories)


def find_current(of: Any) -> CurrentCode:
    """Find the current code of a workflow without raising for what is missing.

    Args:
        of: A workflow, a run or a stepper.

    Returns:
        What was found, what changed and what is missing.

    Example:
        >>> if find_current(run).changed:
        ...     redone = await run.redo()
    """
    workflow = getattr(of, "workflow", of)
    note = _notes.get(workflow) or _Note(workflow.graph.code_hashes)
    base = _rebuilt(workflow, note) or workflow
    look = _Lookup(note, rebuilt=base is not workflow)
    graph = look.graph(base.graph, "")
    new = code_hashes(graph)
    differ = {part for part in {*note.hashes, *new} if note.hashes.get(part) != new.get(part)}
    current = type(workflow).from_graph(graph, workflow.storage)
    return CurrentCode(current, tuple(sorted({*differ, *look.missing})), look.missing)


def changed_parts(of: Any) -> tuple[str, ...]:
    """Return the ids of the executors and edges whose code was changed.

    Args:
        of: A workflow, a run or a stepper.

    Returns:
        Executor ids, edges (`"a->b"`) and parts of sub-workflows (`"outer/inner"`), sorted.

    Example:
        >>> changed_parts(run)
        ('classify', 'classify->reply')
    """
    return find_current(of).changed


def current_workflow(of: Any) -> Any:
    """Return a workflow with the current code of another one, or of a run's.

    If the variable that held the workflow now holds another one with the same graph, that one is used. Otherwise the
    classes and functions of the graph are replaced by what has their names now; executors keep their attributes.

    Args:
        of: A workflow, a run or a stepper.

    Returns:
        A new workflow; the argument does not change.

    Raises:
        RedoError: Some parts changed, but their current code cannot be found by name.

    Example:
        >>> redone = await run.fork(workflow=current_workflow(run))
    """
    found = find_current(of)
    if found.missing:
        listed = "; ".join(f"{part}: {reason}" for part, reason in found.missing.items())
        msg = (
            f"The current code was not found for all parts of the workflow that changed ({listed}). "
            "Build the workflow again and pass it as workflow=."
        )
        raise RedoError(msg, changed=found.changed, missing=dict(found.missing))
    return found.workflow


def user_variables() -> dict[str, Any]:
    """Return the variables of the notebook, or of the script if there is no notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    variables: dict[str, Any] = vars(sys.modules["__main__"]) if shell is None else shell.user_ns
    return variables


def _workflow_of(value: Any) -> Any:
    """Return the workflow of a compiled state graph; other values unchanged."""
    members = getattr(value, "__dict__", {})
    return members["workflow"] if "workflow" in members and "threads" in members else value


def _rebuilt(workflow: Any, note: _Note) -> Any | None:
    """Return the workflow of the same graph that a variable holds instead of this one, if it is the only one."""
    variables = {name: _workflow_of(value) for name, value in list(user_variables().items()) if name[:1] != "_"}
    names = note.variables.get(id(workflow))
    if names is None:  # not noted: any variable, unless one still holds the workflow
        names = [] if any(value is workflow for value in variables.values()) else [*variables]
    found: dict[int, Any] = {}
    for name in names:
        value = variables.get(name)
        if value is workflow:
            return None
        graph = getattr(value, "graph", None)
        if name in note.variables.get(id(value), ()):  # it was there when this workflow was noted, so it is not newer
            continue
        if isinstance(graph, Graph) and isinstance(value, type(workflow)):  # names of workflows are random by default
            found[id(value)] = value
    found = {key: one for key, one in found.items() if one.graph.signature_hash == workflow.graph.signature_hash}
    return next(iter(found.values())) if len(found) == 1 else None


def _find_by_name(module: str | None, qualname: str) -> Any:
    """Return the object that now has a qualified name, without running properties and the like; None if none has."""
    variables = user_variables()
    value: Any = None
    if module is not None and (module == "__main__" or module in sys.modules):
        value = variables if module == "__main__" else vars(sys.modules[module])
    for part in qualname.split("."):
        members = value if isinstance(value, dict) else getattr(value, "__dict__", {})
        value = members.get(part)
    if isinstance(value, FunctionExecutor):
        return value._ab_function  # noqa: SLF001 - what `@executor` decorated
    if isinstance(value, (staticmethod, classmethod)):
        return value.__func__
    return getattr(value, "func", value) if _is_tool(value) else value


def _is_tool(value: Any) -> bool:
    return isinstance(getattr(value, "func", None), (FunctionType, MethodType)) and hasattr(value, "approval_mode")


def _is_library(definition: Any) -> bool:
    package = str(getattr(definition, "__module__", None) or "").partition(".")[0]
    return package == "agentbench" or package in sys.stdlib_module_names - {"__main__"}


class _Lookup:
    """Copies a graph with everything in it that was defined again, and notes what it could not find."""

    def __init__(self, note: _Note, *, rebuilt: bool = False) -> None:
        self._rebuilt = rebuilt  # it has the lambdas and closures that their factories make now
        self.missing: dict[str, str] = {}
        self.replaced = set[int]()
        self.factories = set[tuple[str, str]]()
        self._note = note
        self._part = ""
        self._inside: list[Any] = []  # workflows may contain themselves

    def graph(self, graph: Graph, prefix: str) -> Graph:
        """Return a copy of a graph with the current code; derived values such as hashes are computed anew."""
        executors: dict[str, Executor] = {}
        for key, executor in graph.executors.items():
            self._part = f"{prefix}{key}"
            executors[key] = self._executor(executor)
        renewed = graph.with_executors(executors)
        vars(renewed)["edge_groups"] = [self._group(group, prefix) for group in graph.edge_groups]
        for name, function in getattr(graph.boundary_hook, "functions", {}).items():
            self._part = f"{prefix}{name}"
            now = self._value(function)
            if now is not function and part_hash(now) != part_hash(function):
                self._miss("compile the state graph again")
        return renewed

    def _miss(self, reason: str) -> None:
        self.missing.setdefault(self._part, reason)

    def _executor(self, executor: Executor) -> Executor:
        executor = self._held(executor, lambda now: isinstance(now, Executor) and now.id == executor.id)
        if type(executor) is FunctionExecutor:
            function = self._value(executor._ab_function)  # noqa: SLF001 - a function executor is its function
            if function is executor._ab_function:  # noqa: SLF001
                return executor
            try:
                return executor.with_function(function)
            except (TypeError, ValueError) as error:
                self._miss(str(error))
                return executor
        changes = {name: self._value(value) for name, value in vars(executor).items() if not name.startswith("_ab_")}
        changes = {name: value for name, value in changes.items() if value is not vars(executor)[name]}
        cls = self._value(type(executor))
        if not changes and cls is type(executor):
            return executor
        renewed = copy.copy(executor)
        vars(renewed).update(changes)
        if cls is not type(executor):
            try:
                renewed.__class__ = cls
                if executor._ab_handlers.executor_class is not None:  # noqa: SLF001 - the tables of its class
                    renewed._ab_handlers = HandlerTable.of_class(cls)  # noqa: SLF001
                    renewed._ab_responses = ResponseTable.of_class(cls)  # noqa: SLF001
            except (TypeError, ValueError) as error:  # another layout, or handlers that are wrong
                self._miss(f"its class cannot be replaced: {error}")
        return renewed

    def _group(self, group: EdgeGroup, prefix: str) -> EdgeGroup:
        renewed = group.clone()
        for edge in renewed.edges:
            self._part = f"{prefix}{edge.id}"
            edge.condition = self._value(edge.condition)
        if isinstance(renewed, SwitchCaseEdgeGroup):
            for case in renewed.cases:
                self._part = f"{prefix}{renewed.edges[0].source_id}->{case.target_id}"
                if hasattr(case, "condition"):
                    case.condition = self._value(case.condition)
        elif isinstance(renewed, FanOutEdgeGroup) and renewed.selection_func is not None:
            self._part = f"{prefix}{renewed.edges[0].source_id}->{', '.join(renewed.target_ids)}"
            renewed._selection_func = self._value(renewed.selection_func)  # noqa: SLF001 - it has no setter
        return renewed

    def _held(self, value: Any, fits: Any) -> Any:
        """Return the current value of the variable that held a value, if it fits."""
        variables = user_variables()
        for name in self._note.variables.get(id(value), ()):
            now = variables.get(name)
            if now is value:
                return value
            if fits(now):
                return now
        return value

    def _value(self, value: Any) -> Any:
        """Return the current one of a class, a function, or an object that a graph refers to."""
        if isinstance(value, functools.partial):
            function = self._value(value.func)
            return value if function is value.func else functools.partial(function, *value.args, **value.keywords)
        if isinstance(value, MethodType):
            function = self._value(value.__func__)
            return value if function is value.__func__ else MethodType(function, value.__self__)
        if isinstance(value, (FunctionType, type)):
            return self._definition(value)
        if _is_tool(value):
            return self._tool(value)
        if hasattr(value, "default_options"):
            return self._agent(value)
        if isinstance(getattr(value, "graph", None), Graph) and hasattr(value, "storage"):
            return self._workflow(value)
        return value

    def _definition(self, definition: Any) -> Any:
        if _is_library(definition) or id(definition) in self._note.shadowed:
            return definition
        module, qualname = definition.__module__, definition.__qualname__
        if "<locals>" in qualname:
            key = (module, qualname.partition(".<locals>")[0])
            self.factories.add(key)
            before, factory = self._note.factories.get(key), _find_by_name(*key)
            if not self._rebuilt and before is not None and factory is not None and part_hash(factory) != before:
                self._miss(f"{key[1]}() made it and was changed: call it again")
            return definition
        now = _find_by_name(module, qualname)
        if now is definition:
            return self._with_bases(definition)
        if now is None or "<lambda>" in qualname:
            return definition
        self.replaced.add(id(definition))
        if isinstance(now, type) is not isinstance(definition, type) or not callable(now):
            self._miss(f"{qualname} is now {type(now).__name__}")
            return definition
        return self._with_bases(now)

    def _with_bases(self, definition: Any) -> Any:
        """Report a base class that was defined again while the class itself was not."""
        for base in definition.__mro__[1:] if isinstance(definition, type) else ():
            now = (
                definition
                if _is_library(base) or "<" in base.__qualname__
                else _find_by_name(base.__module__, base.__qualname__)
            )
            is_other = isinstance(now, type) and now is not base and now is not definition
            if is_other and id(base) not in self._note.shadowed and part_hash(now) != part_hash(base):
                self.replaced.add(id(base))
                self._miss(f"its base class {base.__qualname__} changed: define {definition.__qualname__} again")
        return definition

    def _tool(self, tool: Any) -> Any:
        tool = self._held(tool, lambda now: _is_tool(now) and now.name == tool.name)
        function = self._value(tool.func)
        if function is tool.func:
            return tool
        holder = vars(sys.modules.get(function.__module__, tool)).get(function.__qualname__)
        if _is_tool(holder) and holder.name == tool.name:
            return holder  # decorated with `@tool`, with its own description and schema
        try:
            settings = {name: getattr(tool, name) for name in ("approval_mode", "kind", "result_parser")}
            return type(tool)(function, name=tool.name, **settings)
        except (TypeError, ValueError, AttributeError) as error:
            self._miss(f"its tool {tool.name} cannot be made again: {error}")
            return tool

    def _agent(self, agent: Any) -> Any:
        agent = self._held(agent, lambda now: type(now).__qualname__ == type(agent).__qualname__)
        tools = list(agent.default_options.get("tools") or ())
        new_tools = [self._value(tool) for tool in tools]
        client = getattr(agent, "client", None)
        new_client = self._held(client, lambda now: hasattr(now, "get_response") and not isinstance(now, type))
        if client is new_client and all(new is old for new, old in zip(new_tools, tools, strict=True)):
            return agent
        renewed = copy.copy(agent)
        renewed.client = new_client
        if tools:
            renewed.default_options = {**agent.default_options, "tools": new_tools}
        return renewed

    def _workflow(self, workflow: Any) -> Any:
        if any(workflow is outer for outer in self._inside):
            return workflow
        part = self._part
        self._inside.append(workflow)
        try:
            base = _rebuilt(workflow, self._note) if id(workflow) in self._note.variables else None
            base = base or workflow
            return type(base).from_graph(self.graph(base.graph, f"{part}/"), base.storage)
        finally:
            self._inside.pop()
            self._part = part
