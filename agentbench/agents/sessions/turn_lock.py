"""One run at a time reads or writes a session: a lock per session and event loop, open to the run that holds it.

Whoever holds the lock may take it again, and so may every task that is started meanwhile: a provider or tool can run
agents on the same session. What is started inside takes turns among itself, so that two runs gathered in one hook do
not mix either, and the lock is free for others when the last of them is done. A task that was started inside but comes
back when nothing is held any more waits like everybody else.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession

#: Attribute of a session that holds its queues by event loop; a loop that is gone takes its queue along.
QUEUES: Final = "_turn_queues"


class TurnQueue:
    """Who has the turn and who waits for it, first come first served. Belongs to one event loop."""

    __slots__ = ("_is_taken", "_waiting")

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    async def take(self) -> None:
        """Wait for the turn."""
        if not self._is_taken:
            self._is_taken = True
            return
        called = asyncio.get_running_loop().create_future()
        self._waiting.append(called)
        try:
            await called
        except BaseException:
            if called.done() and not called.cancelled():  # was called up, and leaves all the same
                self.pass_on()
            called.cancel()
            raise

    def pass_on(self) -> None:
        """Let the next one have the turn."""
        while self._waiting:
            called = self._waiting.popleft()
            if not called.done():
                called.set_result(None)
                return
        self._is_taken = False


class Turn:
    """One holding of a session: in the queue of the session, or within the turn that it was taken in.

    Attributes:
        outer: The turn that the context was in before, on whatever session.
        root: The queue of the session.
        queue: The queue that this turn stands in.
        within: The queue of the turns that are taken in this one.
        is_open: Whether turns may be taken in this one.
        members: This one while it is held, and the turns in it that are held or waited for.
    """

    __slots__ = ("is_open", "members", "outer", "parent", "queue", "root", "within")

    def __init__(self, root: TurnQueue, outer: Turn | None) -> None:
        self.outer = outer
        self.root = root
        self.parent = _enclosing(root, outer)
        self.within: TurnQueue | None = None
        self.queue = root if self.parent is None else self.parent.enter()
        self.is_open = True
        self.members = 1

    def enter(self) -> TurnQueue:
        """Count one more turn in this one, and return the queue in which it stands."""
        self.members += 1
        if self.within is None:
            self.within = TurnQueue()
        return self.within

    def leave(self) -> None:
        """Count one less; with the last one the turn is passed on."""
        self.members -= 1
        if self.members == 0:
            self.queue.pass_on()
            self.give_up()

    def give_up(self) -> None:
        """No longer be in another turn."""
        if self.parent is not None:
            self.parent.leave()


def _enclosing(root: TurnQueue, outer: Turn | None) -> Turn | None:
    """The innermost open turn on the same session."""
    while outer is not None and not (outer.root is root and outer.is_open):
        outer = outer.outer
    return outer


_innermost: ContextVar[Turn | None] = ContextVar("agentbench_session_turn", default=None)


class session_turn:  # noqa: N801 - reads as the function that it is used as
    """Hold a session while it is read or written: `async with session_turn(session): ...`.

    Taken twice per run, around what comes before the model and around what comes after it, never across the call of the
    model. See the module for who may take it again.

    Args:
        session: The session. Runs that share it on other event loops, in other threads, are not kept out.
    """

    __slots__ = ("_session", "_turn")

    def __init__(self, session: AgentSession) -> None:
        self._session = session

    async def __aenter__(self) -> None:
        turn = self._turn = Turn(_queue_of(self._session), _innermost.get())
        try:
            await turn.queue.take()
        except BaseException:
            turn.give_up()
            raise
        _innermost.set(turn)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not reset by token: an async generator may be closed in another context than it was begun in.
        _innermost.set(self._turn.outer)
        self._turn.is_open = False
        self._turn.leave()


def _queue_of(session: AgentSession) -> TurnQueue:
    attributes = vars(session)
    queues: WeakKeyDictionary[asyncio.AbstractEventLoop, TurnQueue] | None = attributes.get(QUEUES)
    if queues is None:
        queues = attributes.setdefault(QUEUES, WeakKeyDictionary())
    loop = asyncio.get_running_loop()
    queue = queues.get(loop)
    if queue is None:
        queue = queues[loop] = TurnQueue()
    return queue
