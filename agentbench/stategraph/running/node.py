"""How a node is called: the arguments for its parameters, and the conversion of its result."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, get_type_hints

from agentbench.exceptions import GraphError
from agentbench.messages.message import Message
from agentbench.stategraph.command import Command
from agentbench.stategraph.merging.state_fields import StateFields, is_state_class
from agentbench.stategraph.merging.updates import Collected
from agentbench.workflows.executors.context import WorkflowContext


@dataclass(frozen=True, slots=True)
class Runtime:
    """A node's access to facts about its run, for a parameter named `runtime` or annotated with this class.

    Args:
        step: The number of this superstep in the run, from 1.
        remaining_steps: The number of supersteps that the recursion limit still allows after this one.
        thread_id: The id of the thread.
        run_id: The id of the run.
        store: The object passed to `compile(store=...)`.
        emit: `emit(data)` sends data to the observers of the run.
        stop_probe: Returns whether a stop was requested; used by `stop_requested`.

    Example:
        >>> def search(state: AgentState, runtime: Runtime) -> dict:
        ...     return {"depth": 1 if runtime.remaining_steps < 3 else 5}
    """

    step: int = 0
    remaining_steps: int = 0
    thread_id: str | int | None = None
    run_id: str | None = None
    store: Any = None
    emit: Callable[[Any], None] = field(default=lambda data: None, repr=False)
    stop_probe: Callable[[], bool] = field(default=lambda: False, repr=False)

    @property
    def stop_requested(self) -> bool:
        """Whether a stop of this thread was requested."""
        return self.stop_probe()


class NodeFunction:
    """A callable as a node. Parameters are matched once, by name, then by annotation; `view` creates its state.

    Raises:
        GraphError: `GRAPH_007`, the graph cannot fill a required parameter.
    """

    def __init__(self, name: str, function: Callable[..., Any], fields: StateFields) -> None:
        self.function = function
        called = function if inspect.isroutine(function) or isinstance(function, type) else function.__call__  # type: ignore[operator]
        called = getattr(function, "func", called)  # for functools.partial
        self.is_async = inspect.iscoroutinefunction(called) or inspect.isasyncgenfunction(called)
        hints = annotations_of(called)
        self.parameters = _match_parameters(name, function, hints, fields)
        states = [parameter for parameter, kind in self.parameters.items() if kind == "state"]
        self.view = fields.view_of(hints.get(states[0].removeprefix("*"))) if states else fields
        # Most nodes take only the state, by position, and are called without a dictionary of arguments.
        self.takes_state_alone = [*self.parameters.values()] == ["state"]

    def call(self, gets: Mapping[str, Callable[[], Any]]) -> Any:
        """Call the function; `gets` returns the argument for a parameter, by its kind."""
        if self.takes_state_alone:
            return self.function(gets["state"]())
        positional = [gets[kind]() for name, kind in self.parameters.items() if name.startswith("*")]
        return self.function(
            *positional, **{name: gets[kind]() for name, kind in self.parameters.items() if not name.startswith("*")}
        )


_KINDS = ("state", "config", "runtime", "emit", "store", "ctx")


def annotations_of(function: Any) -> dict[str, Any]:
    """Return the annotations of a function; an empty mapping if they cannot be read."""
    try:
        return get_type_hints(function)
    except Exception:  # noqa: BLE001 - annotations are code of the user, and names alone are often enough
        return {}


def _match_parameters(
    node: str, function: Callable[..., Any], hints: Mapping[str, Any], fields: StateFields
) -> dict[str, str]:
    """Return the kind of argument for each parameter, by name."""
    try:
        parameters = [*inspect.signature(function).parameters.values()]
    except (TypeError, ValueError):  # functions written in C may have none
        return {"state": "state"}
    found: dict[str, str] = {}
    others = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        kind = parameter.name if parameter.name in _KINDS else _kind_of(hints.get(parameter.name), fields)
        key = f"*{parameter.name}" if parameter.kind is parameter.POSITIONAL_ONLY else parameter.name
        if kind is not None:
            found[key] = kind
        elif parameter.default is parameter.empty:
            others.append(key)
    if len(others) == 1 and "state" not in found.values():
        return {others[0]: "state", **found}
    if others:
        message = (
            f"Node {node!r} has a required parameter {others[0]!r}, which the graph cannot fill. A node may take "
            f"{', '.join(_KINDS)}, or one parameter of any name for the state. Give {others[0]!r} a default, or bind "
            "it with functools.partial."
        )
        raise GraphError(message, "GRAPH_007", {"parameter": others[0]}, node=node)
    return found


def _kind_of(hint: Any, fields: StateFields) -> str | None:
    if not isinstance(hint, type):
        return "ctx" if getattr(hint, "__origin__", None) is WorkflowContext else None
    if hint in fields.cls.__mro__ and is_state_class(hint):
        return "state"
    if hint is StateFields:
        return "fields"
    return "runtime" if hint is Runtime else "ctx" if WorkflowContext in hint.__mro__ else None


async def collect(result: Any, emit: Callable[[Any], None]) -> Any:
    """Return the final result of an async node: the awaited value, or the updates that an async generator yielded."""
    if inspect.isawaitable(result):
        return await result
    if not inspect.isasyncgen(result):
        return result
    return Collected([part async for part in result if _is_update(part, emit)])


def collect_generator(parts: Iterator[Any], emit: Callable[[Any], None]) -> Collected:
    """Return the updates that a generator yielded."""
    return Collected(part for part in parts if _is_update(part, emit))


def _is_update(part: Any, emit: Callable[[Any], None]) -> bool:
    """Return whether a yielded value is an update; pieces of messages and other objects are only displayed."""
    if isinstance(part, (dict, Command)) or (isinstance(part, Message) and not part.delta):
        return True
    emit(part)
    return False
