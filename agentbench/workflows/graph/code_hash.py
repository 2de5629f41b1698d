"""Hashes of the code of a graph: which parts were edited since results or checkpoints were stored.

A part is described by its byte code, because comments, docstrings, formatting and moved lines do not change it, and
because functions from notebooks and from other processes have no source. Byte code differs between versions of Python,
and so do the hashes. The hashes are equal in all processes of one version.
"""

from __future__ import annotations

import dis
import functools
import hashlib
import json
import sys
from bisect import bisect_left
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from types import BuiltinFunctionType, CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from agentbench._secrets import is_secret_name
from agentbench.workflows.graph.edge_groups import EdgeGroup
from agentbench.workflows.graph.edges import SwitchCaseEdgeGroupCase
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup

_PLAIN = (str, int, float, bool, complex, bytes, type(None), type(...))
_CODE = (FunctionType, MethodType, type)
_FILLERS = ("CACHE", "EXTENDED_ARG", "NOP")
_WITHOUT_CODE = ("__doc__", "__firstlineno__")  # set by the body of a class inside a function
_KIND_FLAGS = 0x3FF  # variable arguments, generator, coroutine; higher flags say nothing about behaviour


def code_hash(graph: Any) -> str:
    """Return the SHA-256 of all code of a graph as 64 hex digits; see `code_hashes`.

    Args:
        graph: A `Graph` or a `Workflow`.

    Returns:
        One hash; `Graph.code_hash` computes it once.

    Example:
        >>> code_hash(workflow.graph) == code_hash(workflow.clone().graph)
        True
    """
    return _digest(code_hashes(graph))


def code_hashes(graph: Any) -> dict[str, str]:
    """Return a hash for each part of a graph that has code, so that a message can list the parts that changed.

    It covers executors with the functions of their class and its bases, conditions and selection functions, the nodes
    and conditions of state graphs, agents with their instructions, model, options, tools and middleware, sub-workflows,
    and what these functions refer to: their defaults, closures, and functions, classes and plain values of their
    module. The library, the standard library and, except as part of the graph itself, installed packages count by name.

    Numbers, texts and tuples in the attributes of an executor count, because a prompt may be in one. So that a run
    does not change the hash, they are read from `executor.fresh()`; lists, dictionaries, other objects' contents and
    values with secret names do not count.

    Args:
        graph: A `Graph` or a `Workflow`.

    Returns:
        Hashes by executor id, by edge (`"a->b"`), and for parts of sub-workflows by `"executor id/part"`.

    Example:
        >>> before = code_hashes(workflow.graph)
        >>> [part for part, digest in code_hashes(edited.graph).items() if before.get(part) != digest]
        ['classify', 'classify->reply']
    """
    return _hashes(graph, ())


def part_hash(part: Any) -> str:
    """Return a hash of one part of a graph: a function, a class, or an object that has code.

    Args:
        part: The part.

    Returns:
        64 hex digits.

    Example:
        >>> part_hash(classify) == part_hash(edited.classify)
        False
    """
    return _digest(_Reader().root(part))


def _hashes(graph: Any, within: tuple[object, ...]) -> dict[str, str]:
    found: dict[str, str] = {}
    for key, executor in graph.executors.items():
        found[key] = _digest(_Reader().root(executor.fresh()))
        inner = getattr(executor, "workflow", None)
        if hasattr(inner, "edge_groups") and hasattr(inner, "executors") and not any(inner is one for one in within):
            nested = _hashes(inner, (*within, inner))
            found.update({f"{key}/{part}": digest for part, digest in nested.items()})
    functions = [pair for group in graph.edge_groups for pair in _functions_of(group)]
    hook = getattr(graph, "boundary_hook", None)
    if hook is not None:
        functions += [("boundary", type(hook)), *getattr(hook, "functions", {}).items()]
    by_key: dict[str, list[Any]] = {}  # several edges may connect the same two executors
    for key, function in functions:
        by_key.setdefault(key, []).append(_Reader().root(function))
    found.update({key: _digest(parts) for key, parts in by_key.items()})
    return found


def _functions_of(group: EdgeGroup) -> Iterable[tuple[str, Any]]:
    source = group.edges[0].source_id if group.edges else ""
    for edge in group.edges:
        if edge.condition is not None:
            yield edge.id, edge.condition
    if isinstance(group, SwitchCaseEdgeGroup):
        for case in group.cases:
            if isinstance(case, SwitchCaseEdgeGroupCase):
                yield f"{source}->{case.target_id}", case.condition
    elif isinstance(group, FanOutEdgeGroup) and group.selection_func is not None:
        yield f"{source}->{', '.join(group.target_ids)}", group.selection_func


def _digest(described: Any) -> str:
    return hashlib.sha256(json.dumps(described, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class _Reader:
    """Describes one part of a graph as JSON values without addresses, positions, and orders that differ."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}  # functions and classes, which may refer to each other
        self._own = set[str]()  # the packages of the functions and classes that are parts of the graph

    def root(self, value: Any) -> Any:
        """Describe a part of the graph: a function, or an object with its attributes, its tools and its agent."""
        if not hasattr(value, "__dict__") or isinstance(value, (*_CODE, functools.partial)):
            return self._part(value)
        attributes = {
            name: attribute
            for name, attribute in vars(value).items()
            if isinstance(attribute, (*_PLAIN, tuple)) and not name.startswith("_ab_")
        }
        functions = [[name, self._part(one)] for name, one in sorted(vars(value).items()) if callable(one)]
        described = [self._part(type(value)), self._named(attributes), functions]
        agent = value if hasattr(value, "default_options") else getattr(value, "agent", None)
        return [*described, self._parts(getattr(value, "tools", None)), agent and self._agent(agent)]

    def _part(self, value: Any) -> Any:
        """Describe a part of the graph, such as a tool, and remember that the graph owns the code of its package."""
        owner = getattr(value, "func", value)  # of a tool
        self._own.add(_package_of(owner if isinstance(owner, _CODE) else type(owner)))
        return self.value(value)

    def _parts(self, parts: Any) -> Any:
        parts = parts.values() if isinstance(parts, Mapping) else parts
        return [self._part(part) for part in (parts if isinstance(parts, Iterable) else [parts])]

    def value(self, value: Any) -> Any:
        """Describe a value by its code or, if it is plain, by itself; others by their class."""
        if type(value) in _PLAIN:
            return [type(value).__name__, repr(value)]
        if type(value) is tuple:
            return ["tuple", *map(self.value, value)]
        if type(value) is frozenset:
            return ["frozenset", *sorted(map(self.value, value), key=json.dumps)]
        if isinstance(value, _CODE):
            return self._code_of(value)
        if isinstance(value, functools.partial):
            return [self.value(value.func), [*map(self.value, value.args)], self._named(value.keywords)]
        if isinstance(value, (ModuleType, BuiltinFunctionType)):
            return value.__name__
        tool = getattr(value, "func", None)
        texts = [] if tool is None else [self._plain(value, name) for name in ("name", "description")]
        return [self._class(type(value)), *texts, *([] if tool is None else [self.value(tool)])]

    def _code_of(self, value: Any) -> Any:
        if isinstance(value, MethodType):
            return [self.value(value.__func__), self._class(type(value.__self__))]
        return self._class(value) if isinstance(value, type) else self._function(value)

    def _plain(self, owner: Any, name: str) -> Any:
        value = getattr(owner, name, None)
        return self.value(value) if isinstance(value, _PLAIN) else None

    def _named(self, values: Mapping[str, Any]) -> Any:
        return [[name, self.value(value)] for name, value in sorted(values.items()) if not is_secret_name(name)]

    def _agent(self, agent: Any) -> Any:
        """Describe an agent, recognised by its attributes, because the engine does not import agents."""
        options = dict(getattr(agent, "default_options", None) or {})
        tools, response_format = options.pop("tools", None), options.get("response_format")
        make_schema = getattr(response_format, "model_json_schema", None)
        texts = [self._plain(agent, name) for name in ("name", "description", "instructions", "model")]
        return [
            self._class(type(agent)),
            texts,
            self._named(options),
            None if make_schema is None else make_schema(),
            self._parts(tools),
            self._parts(getattr(agent, "middleware", None)),
            self._plain(getattr(agent, "client", None), "model"),
        ]

    def _class(self, cls: type) -> Any:
        """Describe a class by its functions and plain attributes, and those of its bases."""
        if self._is_library(cls):
            return f"{cls.__module__}.{cls.__qualname__}"
        if id(cls) in self._seen:
            return self._seen[id(cls)]
        self._seen[id(cls)] = len(self._seen)
        described: list[Any] = [cls.__name__]
        for base in cls.__mro__:
            if self._is_library(base):
                described.append(f"{base.__module__}.{base.__qualname__}")
                continue
            members: dict[str, Any] = {}
            for name, member in vars(base).items():
                functions = _functions_in(member)
                is_plain = isinstance(member, (*_PLAIN, tuple)) and not name.startswith("__")
                members[name] = tuple(functions) if functions else member if is_plain else None
            described.append(self._named({name: member for name, member in members.items() if member is not None}))
        return described

    def _function(self, function: FunctionType) -> Any:
        if self._is_library(function):
            return f"{function.__module__}.{function.__qualname__}"
        if id(function) in self._seen:
            return self._seen[id(function)]
        self._seen[id(function)] = len(self._seen)
        code, read, written = self._code(function.__code__)
        closure: dict[str, Any] = {}
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            with suppress(ValueError):  # a variable without a value yet
                closure[name] = cell.cell_contents
        # What a function sets is its state: a counter, a cache.
        closure = {name: value for name, value in closure.items() if name not in written}
        module = {name: function.__globals__[name] for name in read - written if name in function.__globals__}
        defaults = [*map(self.value, function.__defaults__ or ())]
        return [code, defaults, self._named(function.__kwdefaults__ or {}), self._named(closure), self._named(module)]

    def _code(self, code: CodeType) -> tuple[Any, set[str], set[str]]:
        """Describe byte code; return also the names of the module that it reads, and the outer names that it sets."""
        instructions = [one for one in dis.get_instructions(code) if one.opname not in _FILLERS]
        offsets = [one.offset for one in instructions]
        described: list[Any] = []
        read, written = set[str](), set[str]()
        for one in instructions:
            argument: Any = repr(one.argval)
            if isinstance(one.argval, CodeType):
                argument, inner_read, inner_written = self._code(one.argval)
                read, written = read | inner_read, written | inner_written
            elif one.opcode in dis.hasconst:
                argument = self.value(one.argval)
            elif one.opcode in dis.hasjrel or one.opcode in dis.hasjabs:
                argument = bisect_left(offsets, one.argval)
            elif one.opname == "LOAD_GLOBAL":
                read.add(one.argval)
            elif one.opname in ("STORE_GLOBAL", "STORE_DEREF"):
                written.add(one.argval)
            elif one.opname == "STORE_NAME" and one.argval in _WITHOUT_CODE:
                described.pop()
                continue
            described.append([one.opname, argument])
        counts = [code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _KIND_FLAGS]
        return [counts, code.co_varnames, code.co_exceptiontable.hex(), described], read, written

    def _is_library(self, definition: Any) -> bool:
        """Return whether a function or class counts by its name only."""
        package = _package_of(definition)
        if package == "agentbench" or package in sys.stdlib_module_names:
            return True
        file = getattr(sys.modules.get(definition.__module__), "__file__", None) or ""
        return package not in self._own and ("site-packages" in file or "dist-packages" in file)


def _package_of(definition: Any) -> str:
    module = getattr(definition, "__module__", None)
    return module.partition(".")[0] if isinstance(module, str) else ""


def _functions_in(member: Any) -> list[Callable[..., Any]]:
    """Return the functions of a member of a class: a method, a property, and the like."""
    parts = [getattr(member, name, None) for name in ("__func__", "fget", "fset", "fdel", "func")]
    return [part for part in (member, *parts) if isinstance(part, FunctionType)]
