"""Callables taken apart: parameters, annotations and the names their annotations may use."""

from __future__ import annotations

import contextlib
import functools
import inspect
from collections.abc import Callable, Mapping
from types import FunctionType, MethodType
from typing import Any

from agentbench._signatures.forms import TypeLike


class Callee:
    """What there is to know about a callable before anyone calls it.

    Attributes:
        name: For messages to people.
        parameters: Names of the parameters that are filled by position, without a bound `self`.
        other_parameters: Those that cannot be: keyword-only, `*args`, `**kwargs`.
        function: The Python function inside, or None where there is none, as in a builtin.
    """

    __slots__ = ("function", "name", "other_parameters", "parameters")

    def __init__(
        self,
        name: str,
        parameters: tuple[str, ...],
        other_parameters: tuple[str, ...],
        function: FunctionType | None,
    ) -> None:
        self.name = name
        self.parameters = parameters
        self.other_parameters = other_parameters
        self.function = function

    @property
    def annotations(self) -> Mapping[str, TypeLike]:
        """Annotations by parameter name, as written."""
        return {} if self.function is None else self.function.__annotations__

    @property
    def module_names(self) -> dict[str, Any]:
        """Globals of the module that the function was written in."""
        return {} if self.function is None else self.function.__globals__

    @property
    def enclosing_scopes(self) -> tuple[str, ...]:
        """Names of the classes and functions around the definition, nearest first."""
        parts = self.function.__qualname__.split(".")[:-1] if self.function else []
        return tuple(part for part in reversed(parts) if part != "<locals>")

    @property
    def closure(self) -> Mapping[str, object]:
        """Names that the function closes over and that have a value by now."""
        if self.function is None:
            return {}
        names: dict[str, object] = {}
        for name, cell in zip(self.function.__code__.co_freevars, self.function.__closure__ or (), strict=True):
            with contextlib.suppress(ValueError):  # an empty cell: the name is assigned further down
                names[name] = cell.cell_contents
        return names


def take_apart(func: Callable[..., object]) -> Callee:
    """Look into a function, a bound method, a partial or a callable object.

    Raises:
        TypeError: The object is a class or cannot be called at all.
        ValueError: It is a `staticmethod` or `classmethod` object, or a builtin that does not tell its parameters.
    """
    if isinstance(func, (staticmethod, classmethod)):
        kind = type(func).__name__
        message = (
            f"{_name_of(func.__func__)!r} is a {kind} object, which has no parameters to read yet. "
            f"Expected a function. Put @{kind} above this decorator instead of below it."
        )
        raise ValueError(message)
    if isinstance(func, type) or not callable(func):
        message = f"{func!r} is not a function. Expected a function, a bound method, a partial or a callable object."
        raise TypeError(message)
    function = _function_inside(func)
    return Callee(_name_of(function or func), *_parameters_of(func), function)


def _name_of(func: Callable[..., object]) -> str:
    return str(getattr(func, "__qualname__", type(func).__qualname__))


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
        message = f"{func!r} does not tell its parameters. Expected a Python function. Wrap it in one."
        raise ValueError(message) from error
    filled = func.keywords if isinstance(func, functools.partial) else {}
    by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return (
        tuple(parameter.name for parameter in parameters if parameter.kind in by_position),
        tuple(
            parameter.name
            for parameter in parameters
            if parameter.kind not in by_position and parameter.name not in filled
        ),
    )
