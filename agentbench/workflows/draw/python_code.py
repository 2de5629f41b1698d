"""`to_python`: the builder code of a workflow, to move it from a notebook into a module."""

from __future__ import annotations

import keyword
import re
import textwrap
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Any

from agentbench.exceptions import GraphConnectivityError
from agentbench.workflows.executors.options import WorkflowSettings
from agentbench.workflows.graph.edge_groups import EdgeGroup, FanInEdgeGroup, InternalEdgeGroup, SingleEdgeGroup
from agentbench.workflows.graph.edges import SwitchCaseEdgeGroupDefault, callable_name
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup
from agentbench.workflows.graph.validation import infer_starts

if TYPE_CHECKING:
    from agentbench.workflows.run.workflow import Workflow

_WIDTH = 100
_INDENT = "    "
_IMPORTED = ("Case", "Default", "WorkflowBuilder")

_Argument = str | list[str]

# Workflows built by `%%workflow`, and the variables that it used.
_remembered: weakref.WeakKeyDictionary[Workflow, Mapping[str, object]] = weakref.WeakKeyDictionary()


def to_python(workflow: Workflow, names: Mapping[str, object] | None = None) -> str:
    """Return builder code that creates the same graph.

    The code refers to executors and functions by their variables; its first line lists the ones it needs.

    Args:
        workflow: Any workflow, whether built by code or by `%%workflow`.
        names: Variables, such as `globals()`. Executors that are not among them are referred to by their id, functions
            by their name.

    Returns:
        Python code that assigns the workflow to a variable with its name.

    Example:
        print(to_python(workflow))
    """
    return _Code(workflow, names).text()


def names_in_code(workflow: Workflow, names: Mapping[str, object] | None = None) -> dict[str, object]:
    """Return the objects that the code of `to_python` needs, by the names it uses: executors, conditions and so on."""
    code = _Code(workflow, names)
    code.text()
    return code.needed


def remember_names(workflow: Workflow, names: Mapping[str, object]) -> None:
    """Let `to_python` refer to the executors and functions of this workflow by these variables."""
    _remembered[workflow] = dict(names)


class _Code:
    """Writes the code of one workflow, and collects what it needs."""

    def __init__(self, workflow: Workflow, names: Mapping[str, object] | None) -> None:
        self.needed: dict[str, object] = {}
        self._workflow = workflow
        variables = _remembered.get(workflow, {}) if names is None else names
        self._variables = {id(value): name for name, value in variables.items() if not name.startswith("_")}
        self._groups = [group for group in workflow.edge_groups if not isinstance(group, InternalEdgeGroup)]
        self._node = {i: self._name(executor, i, "executor") for i, executor in workflow.executors.items()}
        self._order: dict[str, None] = {}
        self._imports = {"WorkflowBuilder"}

    def text(self) -> str:
        """Return the whole code."""
        edges = [line for group in self._groups for line in self._group(group)]
        nodes: list[str] = []
        if list(self._order) != list(self._workflow.executors):  # edges add nodes in another order
            nodes = [f".add_executor({name})" for name in self._node.values()]
        variable = self._own_variable()
        calls = [*nodes, *self._start(), *edges, *self._outputs(), *self._hook()]
        head = _call("WorkflowBuilder", self._keywords())
        lines = [
            *textwrap.wrap(", ".join(self.needed), _WIDTH, initial_indent="# Needs: ", subsequent_indent="#        "),
            f"from agentbench import {', '.join(sorted(self._imports))}",
            "",
            f"{variable} = (",
            *(_INDENT + line for call in (head, *calls, ".build()") for line in call.splitlines()),
            ")",
        ]
        return "\n".join(lines) + "\n"

    # ---- names -------------------------------------------------------------------------------------------------------

    def _name(self, value: object, wish: str | None, kind: str) -> str:
        """Return the variable of an object: its existing one, or `wish` if that is free."""
        wish = self._variables.get(id(value), wish)
        wanted = re.sub(r"\W+", "_", wish or "").strip("_")
        if not wanted.isidentifier():
            wanted = f"{kind}_{wanted}" if wanted and wish is not None and wish[0].isdigit() else kind
        name, number = wanted, 1
        while name in _IMPORTED or keyword.iskeyword(name) or self.needed.setdefault(name, value) is not value:
            number += 1
            name = f"{wanted}_{number}"
        return name

    def _function(self, function: object, kind: str) -> str:
        return self._name(function, getattr(function, "__name__", None), kind)

    def _own_variable(self) -> str:
        name = re.sub(r"\W+", "_", self._workflow.name)
        taken = not name.isidentifier() or keyword.iskeyword(name) or name in self.needed or name in _IMPORTED
        name, number = ("workflow" if taken else name), 1
        while name in self.needed:
            number += 1
            name = f"workflow_{number}"
        return name

    # ---- the parts ---------------------------------------------------------------------------------------------------

    def _keywords(self) -> list[str]:
        workflow = self._workflow
        arguments: dict[str, str] = {"name": _quote(workflow.name)}
        if workflow.description:
            arguments["description"] = _quote(workflow.description)
        if workflow.max_iterations != 100:
            arguments["max_iterations"] = repr(workflow.max_iterations)
        storage = workflow.storage
        if storage is not None:
            arguments["checkpoint_storage"] = self._name(storage, "storage", "storage")
        plain = WorkflowSettings()
        for field in fields(WorkflowSettings):
            value = getattr(workflow.graph.settings, field.name)
            if value != getattr(plain, field.name):
                arguments[field.name] = _quote(value) if isinstance(value, str) else repr(value)
        return [f"{key}={value}" for key, value in arguments.items()]

    def _start(self) -> list[str]:
        """Return the argument for the start executor, empty if the builder finds it by itself."""
        hook = self._workflow.boundary_hook
        try:
            inferred = infer_starts(
                self._workflow.executors, self._groups, check_roots=hook is None or hook.reachability
            )
        except GraphConnectivityError:
            inferred = ()
        if inferred == self._workflow.start_executor_ids:
            return []
        return [f".set_start({self._node[self._workflow.start_executor_id]})"]

    def _outputs(self) -> list[str]:
        designated = self._workflow.to_dict()
        calls = []
        for method, key in (
            ("output_from", "output_executors"),
            ("intermediate_output_from", "intermediate_executors"),
        ):
            ids = designated[key]
            if ids:
                calls.append(_call(f".{method}", [self._node[i] for i in self._workflow.executors if i in ids]))
        return calls

    def _hook(self) -> list[str]:
        hook = self._workflow.boundary_hook
        return [] if hook is None else [f".boundary_hook({self._name(hook, 'hook', 'hook')})"]

    # ---- edges -------------------------------------------------------------------------------------------------------

    def _group(self, group: EdgeGroup) -> list[str]:
        """Return the call that adds a group; a group of another kind, or with custom names, is added as an object."""
        writers = {
            SingleEdgeGroup: self._single,
            SwitchCaseEdgeGroup: self._switch,
            FanOutEdgeGroup: self._fan_out,
            FanInEdgeGroup: self._fan_in,
        }
        write: Any = writers.get(type(group))
        call: str | None = None if write is None else write(group)
        if call is None:
            return [f".add_edge_group({self._name(group, 'edges', 'edges')})"]
        ids = (*group.source_executor_ids, *group.target_executor_ids)
        self._order.update(dict.fromkeys(ids))
        return [call]

    def _single(self, group: SingleEdgeGroup) -> str | None:
        (edge,) = group.edges
        nodes = [self._node[edge.source_id], self._node[edge.target_id]]
        if edge.condition is None:
            return _call(".connect", nodes)
        if callable_name(edge.condition) != edge.condition_name:
            return None
        return _call(".connect", [*nodes, self._function(edge.condition, "condition")])

    def _fan_out(self, group: FanOutEdgeGroup) -> str | None:
        (source,) = group.source_executor_ids
        arguments: list[_Argument] = [self._node[source], [self._node[target] for target in group.target_ids]]
        select = group.selection_func
        if select is not None:
            arguments.append(self._function(select, "select"))
            if group.selection_func_name != callable_name(select):
                arguments.append(f"selection_func_name={_quote(group.selection_func_name)}")
        return _call(".fan_out", arguments)

    def _fan_in(self, group: FanInEdgeGroup) -> str | None:
        sources = [self._node[source] for source in group.source_executor_ids]
        arguments: list[_Argument] = [sources, self._node[group.target_id]]
        if group.mode != "auto":
            return _call(".fan_in", [*arguments, f'mode="{group.mode}"'])
        return _call(".add_fan_in_edges" if group.prefers_barrier else ".fan_in", arguments)

    def _switch(self, group: SwitchCaseEdgeGroup) -> str:
        (source,) = group.source_executor_ids
        cases = []
        for case in group.cases:
            target = self._node[case.target_id]
            if isinstance(case, SwitchCaseEdgeGroupDefault):
                cases.append(f"Default({target})")
                self._imports.add("Default")
                continue
            self._imports.add("Case")
            arguments = [self._function(case.condition, "condition"), target]
            if callable_name(case.condition) != case.condition_name:
                arguments.append(f"condition_name={_quote(case.condition_name)}")
            cases.append(f"Case({', '.join(arguments)})")
        return _call(".switch", [self._node[source], cases])


def _quote(value: object) -> str:
    """Return a Python string literal, in double quotes if that needs no escapes."""
    text = repr(value)
    return f'"{text[1:-1]}"' if text[0] == "'" and '"' not in text else text


def _call(function: str, arguments: Sequence[_Argument]) -> str:
    """Return a call, on one line or with each argument on its own line."""
    short = [argument if isinstance(argument, str) else f"[{', '.join(argument)}]" for argument in arguments]
    line = f"{function}({', '.join(short)})"
    if len(line) <= _WIDTH or not arguments:
        return line
    lines = [f"{function}("]
    for argument, text in zip(arguments, short, strict=True):
        if isinstance(argument, str) or len(text) <= _WIDTH:
            lines.append(f"{_INDENT}{text},")
        else:
            lines += [f"{_INDENT}[", *(f"{_INDENT * 2}{item}," for item in argument), f"{_INDENT}],"]
    return "\n".join([*lines, ")"])
