"""The nodes of a builder: executors, and the executors that represent objects of other kinds.

The engine does not know agents. A module with an adapter for a class registers it on import, and a fixed table
names that module, so that it is imported when such an object is first used as a node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from importlib import import_module
from typing import Any, Literal, TypeVar

from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.edges import Case, Default, SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault
from agentbench.workflows.graph.validation import EVERY_YIELD_IS_OUTPUT, OutputDesignation

AgentMode = Literal["respond", "turns"]
"""How an agent node works: it answers each message immediately, or collects messages until it gets the turn."""

_MadeT = TypeVar("_MadeT")

_factories: dict[type, Callable[..., Executor]] = {}

_MODULE_OF_CLASS: dict[str, str] = {
    "agentbench.workflows.run.workflow.Workflow": "agentbench.workflows.nested",
    "agentbench.stategraph.compiled.CompiledGraph": "agentbench.stategraph.nested",
}
"""The module that registers the adapter of a class, by the class's module and qualified name."""

_ADAPTER_OF_METHODS = {("run", "create_session"): "agentbench.orchestrations.agent_executor:agent_node"}
"""The adapter, as "module:function", for objects that have these methods, such as agents of other libraries."""


def register_executor_adapter(cls: type, factory: Callable[..., Executor]) -> None:
    """Let `factory(obj, agent_mode=...)` create the nodes of a class and its subclasses, one per object and builder."""
    _factories[cls] = factory


def as_executor(obj: Any, *, agent_mode: AgentMode = "respond") -> Executor:
    """Return the executor that represents an object: the object itself, or its adapter's result. Else `TypeError`."""
    if isinstance(obj, Executor):
        return obj
    factory = _find_factory(obj)
    if factory is not None:
        return factory(obj, agent_mode=agent_mode)
    name = getattr(obj, "__name__", None)
    if isinstance(obj, type):
        hint = f"It is a class: pass an instance, such as {name}(...)."
    elif isinstance(obj, str):
        hint = "Pass the object itself; connect(), fan_out(), fan_in() and switch() also take the id of an added one."
    elif hasattr(obj, "as_agent"):
        hint = "Use the result of its as_agent(name=...) as the node."
    elif hasattr(obj, "build"):
        hint = "Use the result of its build() as the node."
    elif callable(obj) and name is not None:
        hint = f"Turn it into a node with @executor, or FunctionExecutor({name})."
    else:
        hint = "Wrap it in an executor: a function with @executor, or a method with @handler, that calls it."
    msg = f"{obj!r} is of type {type(obj).__name__}, not a node. Expected an executor, an agent or a workflow. {hint}"
    raise TypeError(msg)


def _find_factory(obj: Any) -> Callable[..., Executor] | None:
    for cls in type(obj).__mro__:
        if cls not in _factories:
            module = _MODULE_OF_CLASS.get(f"{cls.__module__}.{cls.__qualname__}")
            if module is not None:
                import_module(module)
        if cls in _factories:
            return _factories[cls]
    for methods, adapter in _ADAPTER_OF_METHODS.items():
        if not isinstance(obj, type) and all(callable(getattr(obj, name, None)) for name in methods):
            module, _, function = adapter.partition(":")
            factory: Callable[..., Executor] = getattr(import_module(module), function)
            return factory
    return None


def each_of(name: str, objects: Any, make: Callable[[Any], _MadeT]) -> list[_MadeT]:
    """Return `make(obj)` for each object in a list; `TypeError` if the argument `name` is a single object."""
    if isinstance(objects, str) or not isinstance(objects, Iterable):
        msg = f"{name} is {objects!r}, which is not a list. Pass a list: {name}=[...]."
        raise TypeError(msg)
    return [make(obj) for obj in objects]


def branch_with_ids(
    branch: Any, node: Callable[[Any], Executor]
) -> SwitchCaseEdgeGroupCase | SwitchCaseEdgeGroupDefault:
    """Return the descriptor of a `Case`, a `Default` or a `(condition, target)` pair; keep descriptors as is."""
    if isinstance(branch, (SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault)):
        return branch
    if isinstance(branch, Default):
        return SwitchCaseEdgeGroupDefault(node(branch.target).id)
    if isinstance(branch, Case):
        return SwitchCaseEdgeGroupCase(branch.condition, node(branch.target).id, condition_name=branch.condition_name)
    if isinstance(branch, tuple) and len(branch) == 2:
        return SwitchCaseEdgeGroupCase(branch[0], node(branch[1]).id)
    msg = f"{branch!r} is not a switch case. Expected Case(condition, target), Default(target) or (condition, target)."
    raise TypeError(msg)


class Nodes:
    """The executors of one builder by id, in the order of adding: one per object, with unique ids."""

    __slots__ = ("_adapted", "_agent_mode", "executors")

    def __init__(self, agent_mode: AgentMode) -> None:
        self.executors: dict[str, Executor] = {}
        self._adapted: dict[int, tuple[Any, Executor]] = {}
        self._agent_mode: AgentMode = agent_mode

    def add(self, obj: Any) -> Executor:
        """Return the node for an object, adding it if it is new; `ValueError` if another node has its id."""
        executor = obj if isinstance(obj, Executor) else self._executor_of(obj)
        if not hasattr(executor, "id"):
            name = type(executor).__name__
            msg = f"{name}.__init__() does not call super().__init__(id), so this node has no id. Add that call."
            raise TypeError(msg)
        present = self.executors.setdefault(executor.id, executor)
        if present is not executor:
            msg = (
                f"Two nodes have the id {executor.id!r}: {present!r} and {executor!r}. Ids must be unique: "
                "change the id of one of them (or its name, if it is an agent)."
            )
            raise ValueError(msg)
        return executor

    def find(self, obj: Any) -> Executor:
        """Return the node for an object, like `add`, or the node that was added under this id."""
        if not isinstance(obj, str):
            return self.add(obj)
        if obj not in self.executors:
            msg = f"No executor has the id {obj!r}. Ids: {list(self.executors)}. Add it with add_executor() first."
            raise ValueError(msg)
        return self.executors[obj]

    def id_of(self, obj: Any) -> str:
        """Return the id of an object's node without adding it."""
        return obj.id if isinstance(obj, Executor) else self._executor_of(obj).id

    def _executor_of(self, obj: Any) -> Executor:
        adapted = self._adapted.get(id(obj))
        if adapted is None:
            # The object is stored with its node, so that no other object can get its identity.
            adapted = self._adapted[id(obj)] = (obj, as_executor(obj, agent_mode=self._agent_mode))
        return adapted[1]


class Designation:
    """One of the two designations during collection: open (None), one of `words` such as `"all"`, or a list."""

    __slots__ = ("keyword", "value", "words")

    def __init__(self, keyword: str, words: Sequence[str], value: Any = None) -> None:
        self.keyword = keyword
        self.words = tuple(words)
        self.value: str | list[Any] | None = None
        if isinstance(value, str):
            self._set_word(value)
        elif value is not None:
            self.value = list(value) if isinstance(value, Iterable) else [value]

    def add(self, entries: Sequence[Any]) -> None:
        """Add nodes to the ones named before; a single known word is set as the word."""
        if len(entries) == 1 and isinstance(entries[0], str) and entries[0] in self.words:
            self._set_word(entries[0])
        elif isinstance(self.value, str):
            msg = (
                f"{self.keyword} is already {self.value!r}, which names executors by itself; {list(entries)!r} cannot "
                "be added. Use either the word or a list."
            )
            raise ValueError(msg)
        else:
            self.value = [*(self.value or ()), *entries]

    def _set_word(self, word: str) -> None:
        if word not in self.words:
            words = " or ".join(map(repr, self.words))
            msg = f"{self.keyword}={word!r} is not known. Use {words}, or a list of executors."
            raise ValueError(msg)
        if self.value and not isinstance(self.value, str):
            msg = f"{self.keyword} already names executors: {self.value!r}. Use either {word!r} or a list."
            raise ValueError(msg)
        self.value = word


def resolve_designation(
    outputs: Designation,
    intermediate: Designation,
    executors: Mapping[str, Executor],
    node_id: Callable[[Any], str],
) -> OutputDesignation:
    """Expand both designations to executor ids; `node_id` returns the id of a listed node."""
    if outputs.value is None and intermediate.value is None:
        return EVERY_YIELD_IS_OUTPUT

    def expand(designation: Designation, taken: Sequence[str]) -> tuple[str, ...]:
        if not isinstance(designation.value, str):
            return tuple([node_id(entry) for entry in designation.value or ()])
        others = taken if designation.value == "all_other" else ()
        return tuple([key for key, e in executors.items() if e.workflow_output_types and key not in others])

    output_ids = expand(outputs, ())
    return OutputDesignation(output_ids, expand(intermediate, output_ids), not (outputs.value or intermediate.value))
