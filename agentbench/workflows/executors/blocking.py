"""How code in a worker thread acts on the event loop, and how a missing `await` is found."""

from __future__ import annotations

import asyncio
import concurrent.futures
import dis
import inspect
import threading
from collections.abc import Callable, Coroutine, Generator
from itertools import pairwise
from typing import Any, NoReturn


class Done(Coroutine[Any, Any, None]):
    """A coroutine that is already done: it may be awaited, or ignored without a warning."""

    __slots__ = ()

    def __await__(self) -> Generator[Any, None, None]:
        yield from ()  # nothing to wait for; this makes it a generator function

    def send(self, value: Any) -> NoReturn:
        """End immediately."""
        raise StopIteration

    def throw(self, typ: Any, val: Any = None, tb: Any = None) -> NoReturn:
        """Raise the thrown exception."""
        raise typ if val is None else val

    def close(self) -> None:
        """Do nothing; there is nothing to close."""


class LoopCalls:
    """Calls from one worker thread into the run's loop; each call waits until it was carried out."""

    __slots__ = ("_loop_thread", "_waiting", "abandoned", "loop")

    def __init__(self) -> None:
        self.loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._waiting: concurrent.futures.Future[None] | None = None
        self.abandoned = False

    def run(self, function: Callable[..., None], *args: Any) -> Done:
        """Run `function(*args)` on the loop's thread and wait for it; its exception is raised here."""
        if threading.get_ident() == self._loop_thread:
            function(*args)
            return Done()
        if self._is_abandoned():
            return Done()
        outcome: concurrent.futures.Future[None] = concurrent.futures.Future()
        self._waiting = outcome
        try:
            self.loop.call_soon_threadsafe(_carry_out, outcome, function, args)
            if self._is_abandoned():  # set after the check above: abandon() did not find this call
                outcome.cancel()
            outcome.result()
        except concurrent.futures.CancelledError:
            pass
        except RuntimeError:
            if not self.loop.is_closed():
                raise
        return Done()

    def _is_abandoned(self) -> bool:
        """Return the flag. A method, so that it is read again each time: another thread sets it."""
        return self.abandoned

    def abandon(self) -> None:
        """Release the thread: the waiting call and all later ones have no effect."""
        self.abandoned = True
        if self._waiting is not None:
            self._waiting.cancel()


def _carry_out(outcome: concurrent.futures.Future[None], function: Callable[..., None], args: tuple[Any, ...]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        function(*args)
    except BaseException as error:  # noqa: BLE001 - raised in the thread that called
        outcome.set_exception(error)
    else:
        outcome.set_result(None)


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
