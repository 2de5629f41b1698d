"""Read the signature of a tool's function: parameters for the model, context parameter, calling convention."""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from agentbench._signatures.annotations import Callee, UnknownNameError, holds_text, scope_of, take_apart
from agentbench._signatures.forms import TypeLike, flatten_union, unwrap
from agentbench.agents.arguments import describe
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.observability.tool_reports import StreamEmitter

NO_VALUE: Any = inspect.Parameter.empty
"""Marks a missing annotation or default."""

_FILLED = (FunctionInvocationContext, StreamEmitter)
"""The types of the parameters that a run fills instead of the model."""
_FALLBACKS: Mapping[str, type] = {cls.__name__: cls for cls in _FILLED}
_NAME = re.compile(r"[0-9A-Za-z_.:-]+")
_OWNERS = ("self", "cls")


class ToolParameter(NamedTuple):
    """A parameter that the model fills. Its annotation stays text until all names in it can be resolved."""

    name: str
    annotation: TypeLike
    default: Any


class ToolSignature(NamedTuple):
    """The parameters of a tool's function: those that the model fills, and the names of those that a run fills."""

    parameters: tuple[ToolParameter, ...]
    context: str | None
    emitter: str | None
    owner: str | None
    """`self` or `cls` of an unbound method."""
    positional_only: tuple[str, ...]
    takes_any_keyword: bool
    pending: Callee | None
    """Set only while an annotation is unresolved, so that no function is kept alive."""

    @property
    def without_default(self) -> frozenset[str]:
        """Names of the required parameters."""
        return frozenset(parameter.name for parameter in self.parameters if parameter.default is NO_VALUE)

    def take_positional(self, named: dict[str, Any]) -> list[Any]:
        """Remove the positional-only arguments from `named` and return them in order."""
        defaults = {parameter.name: parameter.default for parameter in self.parameters}
        values: list[Any] = []
        for name in self.positional_only:
            value = named.pop(name, defaults.get(name, NO_VALUE))
            if value is NO_VALUE:
                break
            values.append(value)
        return values

    def type_of(self, parameter: ToolParameter) -> TypeLike:
        """Return the type of a parameter; names that could not be resolved before are resolved now."""
        if self.pending is None or not holds_text(parameter.annotation):
            return parameter.annotation
        try:
            return scope_of(self.pending, known={}, fallbacks=_FALLBACKS).resolve(parameter.annotation)
        except (UnknownNameError, ValueError) as error:
            reason = f"the name {error.name!r} in it is unknown" if isinstance(error, UnknownNameError) else str(error)
            message = (
                f"Parameter {parameter.name!r} of {self.pending.name!r} is annotated with {parameter.annotation!r}, "
                f"but {reason}. Define or import it where the function is defined, before the tool is first used."
            )
            raise TypeError(message) from error


def read_signature(func: Callable[..., Any], *, ctx_is_context: bool = False) -> ToolSignature:
    """Read the parameters of a function; with `ctx_is_context`, an unannotated `ctx` is the context parameter."""
    if isinstance(func, type):
        message = (
            f"{func.__name__} is a class, which cannot be a tool. Write a function that creates the "
            "object and returns a result for the model."
        )
        raise TypeError(message)
    callee = take_apart(func)
    annotations = _resolve(callee)
    written = list(inspect.signature(func).parameters.values())
    owner = _owner_of(func, written)
    filled: dict[type, list[str]] = {cls: [] for cls in _FILLED}
    parameters: list[ToolParameter] = []
    for parameter in written:
        if parameter.name in _OWNERS or parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            continue
        if parameter.name in callee.other_parameters or parameter.name in callee.parameters:
            annotation = annotations.get(parameter.name, parameter.annotation)
            is_ctx = ctx_is_context and parameter.name == "ctx" and annotation is NO_VALUE
            cls = FunctionInvocationContext if is_ctx else _filled_type(annotation)
            if cls is not None:
                filled[cls].append(parameter.name)
            else:
                parameters.append(ToolParameter(parameter.name, annotation, parameter.default))
    for cls, names in filled.items():
        if len(names) > 1:
            message = (
                f"{callee.name!r} has {len(names)} parameters of one kind: {', '.join(names)}. "
                f"Expected at most one {cls.__name__}. Remove the others."
            )
            raise ValueError(message)
    context, emitter = (next(iter(names), None) for names in filled.values())
    return ToolSignature(
        parameters=tuple(parameters),
        context=context,
        emitter=emitter,
        owner=owner,
        positional_only=tuple(p.name for p in written if p.kind is p.POSITIONAL_ONLY and p.name != owner),
        takes_any_keyword=any(p.kind is p.VAR_KEYWORD for p in written),
        pending=callee if any(holds_text(parameter.annotation) for parameter in parameters) else None,
    )


def _owner_of(func: Callable[..., Any], written: list[inspect.Parameter]) -> str | None:
    if not inspect.isfunction(func) or not written:
        return None
    first = written[0]
    return first.name if first.name in _OWNERS and first.default is NO_VALUE else None


def _resolve(callee: Callee) -> Mapping[str, TypeLike]:
    """Resolve annotations to types; those with unknown names stay text."""
    if not any(map(holds_text, callee.annotations.values())):
        return callee.annotations
    scope = scope_of(callee, known={}, fallbacks=_FALLBACKS)
    types: dict[str, TypeLike] = {}
    for name, annotation in callee.annotations.items():
        try:
            types[name] = scope.resolve(annotation)
        except (UnknownNameError, ValueError):
            types[name] = annotation
    return types


def _filled_type(annotation: TypeLike) -> type | None:
    """Return the type of a parameter that a run fills; `None` if the model fills it."""
    if annotation is NO_VALUE:
        return None
    if isinstance(annotation, str):  # it contains an unknown name, such as that of its module
        return next((cls for cls in _FILLED if re.search(rf"\b{cls.__name__}\b", annotation)), None)
    members = [member for each in flatten_union(annotation) if isinstance(member := unwrap(each), type)]
    return next((cls for cls in _FILLED if any(issubclass(member, cls) for member in members)), None)


def name_of(func: Callable[..., Any]) -> str:
    """Return the name of a function; of a callable object, that of its class."""
    func = _inside(func)
    name: str = getattr(func, "__name__", type(func).__name__)
    return "lambda" if name == "<lambda>" else name


def check_name(name: object) -> str:
    """Check that services accept a tool name, and return it."""
    if not isinstance(name, str):
        message = f"The name of a tool is {describe(name)}. Expected text."
        raise TypeError(message)
    if not _NAME.fullmatch(name):
        proposal = re.sub(r"[^0-9A-Za-z_.:-]+", "_", name).strip("_") or "tool"
        message = (
            f"The tool name {name!r} has characters that services do not accept. Expected only letters from A to Z, "
            f"digits, and _ - . : such as {proposal!r}."
        )
        raise ValueError(message)
    return name


def description_of(func: Callable[..., Any] | None) -> str:
    """Return the docstring of a function, without its indentation."""
    return "" if func is None else inspect.getdoc(_inside(func)) or ""


def _inside(func: Callable[..., Any]) -> Callable[..., Any]:
    while isinstance(func, functools.partial):
        func = func.func
    return func
