"""A function called, whatever kind of function it is."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

_PLAIN = frozenset({str, int, float, bool, dict, list, tuple, type(None)})
"""Exact types of results that are neither awaited nor iterated."""


async def call(func: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any], *, in_thread: bool) -> Any:
    """Call a function and return its result: awaited, and as a list if it came piece by piece.

    Args:
        func: Plain, async, a generator or an async generator.
        args: Positional arguments.
        named: The others.
        in_thread: Run what does not await in a thread of its own, with a copy of the context variables.
    """
    if in_thread and not inspect.iscoroutinefunction(func):
        result = await asyncio.to_thread(_call_to_end, func, args, named)
    else:
        result = func(*args, **named)
    if type(result) in _PLAIN:
        return result
    if inspect.isawaitable(result):
        result = await result
    if inspect.isgenerator(result):
        return list(result)
    if inspect.isasyncgen(result):
        return [item async for item in result]
    return result


def _call_to_end(func: Callable[..., Any], args: Sequence[Any], named: Mapping[str, Any]) -> Any:
    result = func(*args, **named)
    return list(result) if inspect.isgenerator(result) else result
