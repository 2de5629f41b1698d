"""Errors that name the wrong argument of a public function or class when its type makes the call fail.

The packages export their names through `name_arguments`. A successful call costs one extra frame; arguments are
compared with their annotations only after a call has failed.
"""

from __future__ import annotations

import builtins
import collections.abc
import functools
import inspect
import re
import sys
import types
import typing
import weakref
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any, TypeVar, cast, get_origin

from agentbench._lazy import find_packages
from agentbench._secrets import mask_secrets, masked_repr
from agentbench._signatures import flatten_union, is_instance_of, type_name
from agentbench._user_code import is_library
from agentbench.exceptions import AgentFrameworkException

_T = TypeVar("_T")

CALLED_OFTEN = frozenset((
    "AgentContext", "AgentResponse", "AgentResponseUpdate", "AgentSession", "BaseChatClient", "ChatContext",
    "ChatMiddlewareLayer", "ChatResponse", "ChatResponseUpdate", "Content", "Edge", "EdgeGroup", "EdgeRunner",
    "Executor", "FunctionInvocationContext", "FunctionInvocationLayer", "InternalEdgeGroup", "Message",
    "PlannedDelivery", "BatchRow", "RawAgent", "ResponseStream", "SessionContext", "State", "StepReport", "Traffic",
    "WorkflowCheckpoint", "WorkflowContext", "WorkflowEvent", "WorkflowMessage", "WorkflowRunResult", "WorkflowStream",
))  # fmt: skip
"""Classes whose methods or constructors are called many times in a run; they are not wrapped."""
_done: weakref.WeakSet[Any] = weakref.WeakSet()
"""What is already wrapped. Not recorded on the classes themselves: a protocol would require that of its instances."""
_SEQUENCES: tuple[Any, ...] = (collections.abc.Sequence, collections.abc.Iterable, collections.abc.Collection)
_MAYBE_A_WRONG_TYPE = (TypeError, ValueError, LookupError, AttributeError)


def name_arguments(value: _T) -> _T:
    """Wrap a public function or class so that its errors name an argument of a wrong type."""
    if inspect.isclass(value):
        for cls in () if issubclass(value, BaseException) else value.__mro__:
            if cls.__module__.startswith("agentbench.") and cls not in _done:
                _done.add(cls)
                _wrap_methods(cls)
        return value
    # Reducers are compared by identity; an interrupt shows the frames of run_sync.
    if not isinstance(value, types.FunctionType) or value.__module__.endswith((".reducers", "._bridge")):
        return value
    if value in _done or not inspect.signature(value).parameters:
        return value
    wrapped: Any = _wrap(cast("types.FunctionType", value))
    module, name = sys.modules[value.__module__], wrapped.__name__
    if getattr(module, name, None) is value:  # pickle finds functions by name
        setattr(module, name, wrapped)
    return wrapped  # type: ignore[no-any-return]


def _wrap_methods(cls: type) -> None:
    if cls.__name__ in CALLED_OFTEN or getattr(cls, "_is_protocol", False) or hasattr(cls, "model_fields"):
        return
    for name, member in list(vars(cls).items()):
        if name.startswith("_") and name != "__init__":
            continue
        if isinstance(member, types.FunctionType) and not hasattr(member, "__agentbench_handler__"):
            setattr(cls, name, _wrap(member))
        elif isinstance(member, (classmethod, staticmethod)) and isinstance(member.__func__, types.FunctionType):
            setattr(cls, name, type(member)(_wrap(member.__func__)))


def _wrap(function: types.FunctionType) -> Callable[..., Any]:
    if inspect.isasyncgenfunction(function) or inspect.isgeneratorfunction(function) or function in _done:
        return function
    if inspect.iscoroutinefunction(function):

        @functools.wraps(function)
        async def call_async(*args: Any, **kwargs: Any) -> Any:
            try:
                return await function(*args, **kwargs)
            except _MAYBE_A_WRONG_TYPE as error:
                named = _naming(error, function, args, kwargs)
                if named is None:
                    raise
                raise named from error

        wrapped: Callable[..., Any] = call_async
    else:

        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            try:
                return function(*args, **kwargs)
            except _MAYBE_A_WRONG_TYPE as error:
                named = _naming(error, function, args, kwargs)
                if named is None:
                    raise
                raise named from error

        wrapped = call
    _done.add(wrapped)
    return wrapped


def _naming(error: Exception, function: types.FunctionType, args: Any, kwargs: Any) -> Exception | None:
    """Return an error that names the argument of a wrong type; None if there is none, or it is named already."""
    trace = error.__traceback__
    while trace is not None:
        if not is_library(trace.tb_frame):
            return None  # raised by the user's own code
        trace = trace.tb_next
    if isinstance(error, AgentFrameworkException) or "unexpected keyword" in str(error):
        return None
    try:
        given = inspect.signature(function).bind(*args, **kwargs).arguments
    except TypeError:
        return None  # Python itself names a missing or unexpected argument
    for name, value in given.items():
        expected = _annotation(function, name)
        if expected is not None and not _fits(value, expected):
            if re.search(rf"\b{name}\b", str(error)):
                return None
            kind = ValueError if isinstance(error, ValueError) else TypeError
            shown = masked_repr(mask_secrets(value, key=name))
            told = f"{name} is {shown:.80}, of type {type(value).__name__}; expected {type_name(expected)}."
            return kind(f"{told} {error}" if isinstance(error, (TypeError, ValueError)) else told)
    return None


def _fits(value: object, expected: Any) -> bool:
    """Return whether a value has a type. A string does not count as a sequence of other things."""
    if isinstance(value, str) and str not in (members := flatten_union(expected)):
        return any(get_origin(m) not in _SEQUENCES and is_instance_of(value, m) for m in members)
    return is_instance_of(value, expected)


def _annotation(function: types.FunctionType, name: str) -> Any:
    """Return the evaluated annotation of a parameter; None if there is none or it cannot be evaluated."""
    annotation = function.__annotations__.get(name)
    kind = inspect.signature(function).parameters[name].kind
    if annotation is None or kind in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD):
        return None
    if not isinstance(annotation, str):
        return annotation
    try:
        return eval(annotation, {}, _Names(function.__globals__))
    except Exception:  # noqa: BLE001 - whatever it is, there is nothing to compare with
        return None


class _Names(dict[str, Any]):
    """Names used in annotations, some of which are imported for type checkers only."""

    def __init__(self, module: Mapping[str, Any]) -> None:
        super().__init__(module)

    def __missing__(self, name: str) -> Any:
        for found in (builtins, typing, collections.abc, import_module("pathlib")):
            if hasattr(found, name):
                return getattr(found, name)
        packages = find_packages(name)
        if not packages:
            raise KeyError(name)
        return getattr(import_module(packages[0]), name)
