"""Finds a forgotten `await` in a handler before it is called, since watching each call would slow down every send."""

from __future__ import annotations

import dis
import inspect
from collections.abc import Callable
from itertools import pairwise
from typing import Any

_METHODS = frozenset({"add_event", "request_info", "send_message", "yield_output"})


def unawaited_calls(function: Callable[..., Any]) -> tuple[int, ...]:
    """Return the lines of an async handler that call a method of its context but do not await the result.

    Only calls in the handler's own code, on its last parameter, are found.
    """
    code = getattr(inspect.unwrap(function), "__code__", None)
    if code is None or not code.co_flags & inspect.CO_COROUTINE or not code.co_argcount:
        return ()
    if _METHODS.isdisjoint(code.co_names):
        return ()  # which saves most of the time
    context, instructions = code.co_varnames[code.co_argcount - 1], [*dis.get_instructions(code)]
    # A call and the look-up of its function begin at the same place in the source.
    begins = {
        _begin(after)
        for before, after in pairwise(instructions)
        if after.opname in ("LOAD_METHOD", "LOAD_ATTR") and after.argval in _METHODS and _loads(before, context)
    }
    dropped = (
        call for call, after in pairwise(instructions) if call.opname.startswith("CALL") and after.opname == "POP_TOP"
    )
    return tuple(line for call in dropped if (begin := _begin(call)) in begins and (line := begin[0]) is not None)


def _begin(instruction: dis.Instruction) -> tuple[int | None, int | None]:
    where = instruction.positions
    return (None, None) if where is None else (where.lineno, where.col_offset)


def _loads(instruction: dis.Instruction, variable: str) -> bool:
    """Return whether an instruction pushes a variable on the stack; newer Pythons combine two in one."""
    loaded = instruction.argval[-1] if isinstance(instruction.argval, tuple) else instruction.argval
    return "LOAD_" in instruction.opname and loaded == variable
