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
from weakref import ref

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession

#: Attribute of a session that holds its queues, each with its event loop.
QUEUES: Final = "_turn_queues"


#: Rounds of the event loop within which forgotten streams are closed.
_ROUNDS: Final = 8

#: Attribute of a session: how many streams of runs on it are being read, or were forgotten and are not closed yet.
STREAMS: Final = "_open_streams"


class TurnQueue:
    """Who has the turn and who waits for it, first come first served. Belongs to one event loop."""

    __slots__ = ("_is_taken", "_waiting")

    def __init__(self) -> None:
        self._is_taken = False
        self._waiting: deque[asyncio.Future[None]] = deque()

    def take_if_free(self) -> bool:
        """Take the turn if nobody has it, and tell whether it was taken."""
        was_taken, self._is_taken = self._is_taken, True
        return not was_taken

    async def wait(self) -> None:
        """Wait for the turn, which somebody has."""
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
        parent: The turn on the same session that this one is in.
        queue: The queue that this turn stands in.
        within: The queue of the turns that are taken in this one.
        is_open: Whether turns may be taken in this one.
        members: This one while it is held, and the turns in it that are held or waited for.
    """

    __slots__ = ("is_open", "members", "outer", "parent", "queue", "root", "session", "within")

    is_open: bool
    outer: Turn | None
    parent: Turn | None
    within: TurnQueue | None

    def __init__(self, session: AgentSession) -> None:
        self.session = session

    async def __aenter__(self) -> None:
        outer = self.outer = _innermost.get()
        root = self.root = _queue_of(self.session)
        while outer is not None and not (outer.root is root and outer.is_open):
            outer = outer.outer
        self.parent = outer
        self.queue = root if outer is None else outer.enter()
        self.within = None
        if not self.queue.take_if_free():
            try:
                await self.queue.wait()
            except BaseException:
                if outer is not None:
                    outer.leave()
                raise
        self.is_open, self.members = True, 1
        _innermost.set(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not reset by token: an async generator may be closed in another context than it was begun in.
        _innermost.set(self.outer)
        self.is_open = False
        self.leave()

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
            if self.parent is not None:
                self.parent.leave()


_innermost: ContextVar[Turn | None] = ContextVar("agentbench_session_turn", default=None)


def session_turn(session: AgentSession) -> Turn:
    """Hold a session while it is read or written, as an async context manager.

    Taken twice per run, around what comes before the model and around what comes after it, never across the call of the
    model. See the module for who may take it again.

    Args:
        session: The session. Runs that share it on other event loops, in other threads, are not kept out: their turns
            are all kept, and may be mixed.
    """
    return Turn(session)


def note_stream(session: AgentSession, more: int) -> None:
    """Note that a stream of a run on a session was opened (1), or is closed (-1)."""
    attributes = vars(session)
    attributes[STREAMS] = attributes.get(STREAMS, 0) + more


async def after_forgotten_streams(session: AgentSession) -> None:
    """Let a stream that its reader has just left take its turn: the event loop closes it within a few rounds."""
    for _ in range(_ROUNDS):
        if not vars(session).get(STREAMS):
            return
        await asyncio.sleep(0)


def _queue_of(session: AgentSession) -> TurnQueue:
    attributes, loop = vars(session), asyncio.get_running_loop()
    queues: list[_OfLoop] = attributes.get(QUEUES, _NO_QUEUES)
    for owner, queue in queues:
        if owner() is loop:
            return queue
    queue = TurnQueue()
    # A new list: other threads may be looking through the old one.
    attributes[QUEUES] = [(ref(loop), queue), *(each for each in queues if each[0]() is not None)]
    return queue


_OfLoop = tuple["ref[asyncio.AbstractEventLoop]", TurnQueue]
_NO_QUEUES: Final[list[_OfLoop]] = []
