"""Inspects callables: their parameters, their annotations, and the types that text annotations name."""

from __future__ import annotations

import contextlib
import functools
import inspect
import operator
import sys
from collections.abc import Callable, Mapping
from types import FrameType, FunctionType, MethodType
from typing import Annotated, Any, ForwardRef, Literal, NamedTuple, Optional, Union, get_args

from agentbench._signatures.forms import TypeLike, is_union, origin_of, union_of

_PACKAGE = __name__.partition(".")[0]
_ALWAYS_KNOWN: Mapping[str, object] = {"Any": Any, "Optional": Optional, "Union": Union}


class Callee(NamedTuple):
    """The parts of a callable, found without calling it."""

    name: str
    parameters: tuple[str, ...]
    """Names of positional parameters, without a bound `self`."""
    other_parameters: tuple[str, ...]
    """Names of the other parameters: keyword-only, `*args`, `**kwargs`."""
    function: Any
    """The Python function inside, or None if there is none, as in a builtin. For type checkers it looks like a method.
    """

    @property
    def annotations(self) -> Mapping[str, TypeLike]:
        """The annotations by parameter name, as written."""
        return {} if self.function is None else self.function.__annotations__

    @property
    def module_names(self) -> dict[str, Any]:
        """The globals of the module in which the function was written."""
        return {} if self.function is None else self.function.__globals__

    @property
    def enclosing_scopes(self) -> tuple[str, ...]:
        """The names of the classes and functions around the definition, nearest first."""
        parts = self.function.__qualname__.split(".")[:-1] if self.function else []
        return tuple(part for part in reversed(parts) if part != "<locals>")

    @property
    def closure(self) -> Mapping[str, object]:
        """The names that the function closes over and that already have a value."""
        if self.function is None:
            return {}
        names: dict[str, object] = {}
        for name, cell in zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # an empty cell: the name is assigned later
                names[name] = cell.cell_contents
        return names


def take_apart(func: Callable[..., object]) -> Callee:
    """Inspect a function, a bound method, a partial or a callable object."""
    if isinstance(func, (staticmethod, classmethod)):
        kind = type(func).__name__
        message = f"{func!r} is a {kind} object. Expected a function. Put @{kind} above this decorator, not below it."
        raise ValueError(message)
    if isinstance(func, type) or not callable(func):
        message = f"{func!r} is not a function. Expected a function, a bound method, a partial or a callable object."
        raise TypeError(message)
    function = _function_inside(func)
    name = getattr(function or func, "__qualname__", type(func).__qualname__)
    return Callee(str(name), *_parameters_of(func), function)


def _function_inside(func: Callable[..., object]) -> FunctionType | None:
    while not isinstance(func, FunctionType):
        if isinstance(func, functools.partial):
            func = func.func
        elif isinstance(func, MethodType):
            func = func.__func__
        elif isinstance(getattr(type(func), "__call__", None), FunctionType):  # noqa: B004  the function is wanted
            func = type(func).__call__
        else:
            return None
    wrapped = getattr(func, "__wrapped__", None)
    return func if wrapped is None else _function_inside(wrapped)


def _parameters_of(func: Callable[..., object]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if type(func) is FunctionType and not func.__dict__:
        code = func.__code__
        if not code.co_kwonlyargcount and not code.co_flags & (inspect.CO_VARARGS | inspect.CO_VARKEYWORDS):
            return code.co_varnames[: code.co_argcount], ()  # ten times faster than a Signature, and the usual case
    try:
        parameters = inspect.signature(func).parameters.values()
    except ValueError as error:
        message = f"{func!r} does not reveal its parameters. Wrap it in a Python function."
        raise ValueError(message) from error
    filled = func.keywords if isinstance(func, functools.partial) else {}
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    others = (each.name for each in parameters if each.kind not in by_position and each.name not in filled)
    return tuple(each.name for each in parameters if each.kind in by_position), tuple(others)


class UnknownNameError(Exception):
    """An internal signal, never raised to users: a name in a text annotation is not known (yet)."""

    def __init__(self, name: str, text: str) -> None:
        self.name, self.text = name, text
        super().__init__(name)


class Scope(NamedTuple):
    """The scope in which the names in annotations are looked up: the nearest scopes first, the module last."""

    module_names: dict[str, Any]
    local_names: Mapping[str, object]

    def evaluate(self, text: str) -> TypeLike:
        """Return the type that the text names; UnknownNameError or ValueError if it names none."""
        try:
            return eval(text, self.module_names, self.local_names)
        except NameError as error:
            raise UnknownNameError(error.name or text, text) from error
        except AttributeError as error:
            raise UnknownNameError(text, text) from error
        except Exception as error:
            message = f"{text!r} is not a type: {error}. Expected an expression such as 'int' or 'list[str] | None'."
            raise ValueError(message) from error

    def resolve(self, annotation: TypeLike) -> TypeLike:
        """Return the annotation with every text inside it replaced by the result of `evaluate`."""
        if isinstance(annotation, str):
            return self.resolve(self.evaluate(annotation))
        if isinstance(annotation, ForwardRef):
            return self.resolve(annotation.__forward_arg__)
        if isinstance(annotation, list):  # the parameters of a callable
            return [self.resolve(item) for item in annotation]
        origin, args = origin_of(annotation), get_args(annotation)
        if not args or origin is Literal:
            return annotation
        types = args[:1] if origin is Annotated else args
        resolved = tuple(self.resolve(type_) for type_ in types)
        return annotation if resolved == types else _rebuild(annotation, resolved + args[len(types) :])


def holds_text(annotation: TypeLike) -> bool:
    """Return whether an annotation contains text, so that it needs a scope."""
    if isinstance(annotation, (str, ForwardRef)):
        return True
    if isinstance(annotation, list):
        return any(map(holds_text, annotation))
    return origin_of(annotation) is not Literal and any(map(holds_text, get_args(annotation)))


def scope_of(callee: Callee, *, known: Mapping[str, object], fallbacks: Mapping[str, object]) -> Scope:
    """Return the scope of a callable's annotations: its surroundings, `known`, the caller, and the module."""
    enclosing, caller = _running_scopes(callee)
    names = {**_ALWAYS_KNOWN, **fallbacks}
    names = {name: value for name, value in names.items() if name not in callee.module_names}
    for namespace in (caller, known, callee.closure, *reversed(enclosing)):
        names.update(namespace)
    return Scope(callee.module_names, names)


def _running_scopes(callee: Callee) -> tuple[list[Mapping[str, object]], Mapping[str, object]]:
    """Return the local names of the frames around the definition, nearest first, and of the library's caller."""
    awaited = list(callee.enclosing_scopes)
    enclosing: list[Mapping[str, object]] = []
    caller: Mapping[str, object] | None = None
    frame: FrameType | None = sys._getframe(1)  # noqa: SLF001  inspect.stack reads every source file on the way
    while frame is not None and (caller is None or awaited):
        if caller is None and str(frame.f_globals.get("__name__")).partition(".")[0] != _PACKAGE:
            caller = _local_names(frame)
        if awaited and frame.f_globals is callee.module_names and frame.f_code.co_name == awaited[0]:
            enclosing.append(_local_names(frame))
            del awaited[0]
        frame = frame.f_back
    return enclosing, caller or {}


def _local_names(frame: FrameType) -> Mapping[str, object]:
    return {} if frame.f_locals is frame.f_globals else dict(frame.f_locals)


def _rebuild(annotation: TypeLike, args: tuple[TypeLike, ...]) -> TypeLike:
    if is_union(annotation):
        return union_of(args)
    return operator.getitem(origin_of(annotation), args[0] if len(args) == 1 else args)
