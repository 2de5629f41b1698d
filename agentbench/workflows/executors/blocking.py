"""How code in a worker thread acts on the event loop: each call has taken effect when it returns."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Callable, Coroutine, Generator
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

    __slots__ = ("_loop", "_loop_thread", "_waiting", "abandoned")

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
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
            self._loop.call_soon_threadsafe(_carry_out, outcome, function, args)
            if self._is_abandoned():  # set after the check above: abandon() did not find this call
                outcome.cancel()
            outcome.result()
        except concurrent.futures.CancelledError:
            pass
        except RuntimeError:
            if not self._loop.is_closed():
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
