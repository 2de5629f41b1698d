"""One run at a time reads or writes a session: a lock per session and event loop, open to the run that holds it.

A run that holds the lock may take it again, and so may the tasks that it starts: a provider or a tool can run agents on
the same session. Runs inside take turns among themselves, and the lock is free again when the last of them has left. A
task that was started inside, but comes when the lock was released, waits like every other run.
"""

from __future__ import annotations

import asyncio
from contextvars import ContextVar
from types import TracebackType
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

from agentbench.messages.stream import wait_for_abandoned_streams

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession

#: Attribute of a session: its locks, by event loop.
LOCKS: Final = "_turn_locks"

_PATIENCE_S: Final = 1.0


class SessionTurn:
    """Holds a session while hooks read or write it, never while the model is called; other event loops do not wait."""

    def __init__(self, session: AgentSession) -> None:
        locks = vars(session).get(LOCKS)
        if locks is None:  # the usual case costs no new dictionary or lock
            locks = vars(session).setdefault(LOCKS, WeakKeyDictionary())
        loop = asyncio.get_running_loop()
        self.root: asyncio.Lock = locks.get(loop) or locks.setdefault(loop, asyncio.Lock())
        self._lock = self.root  # the one to take: of the session, or of the turn on it that this one is inside of
        self.inner: asyncio.Lock | None = None
        self.parent: SessionTurn | None = None
        self.before: SessionTurn | None = None  # the innermost turn of the context, on any session
        self.is_open = False
        self.users = 1  # this turn, and those inside that hold their lock or wait for it

    async def __aenter__(self) -> None:
        parent = self.before = _innermost.get()
        while parent is not None and not (parent.root is self.root and parent.is_open):
            parent = parent.before
        if parent is None:
            await self._lock.acquire()
        else:
            self.parent = parent
            parent.users += 1
            if parent.inner is None:
                parent.inner = asyncio.Lock()
            self._lock = parent.inner
            try:
                await self._lock.acquire()
            except BaseException:
                parent.leave()
                raise
        self.is_open = True
        _innermost.set(self)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        # Not reset by token: an async generator may be closed in another context than it was begun in.
        _innermost.set(self.before)
        self.is_open = False
        self.leave()

    def leave(self) -> None:
        """Count one user less; the last one releases the lock."""
        self.users -= 1
        if self.users == 0:
            self._lock.release()
            if self.parent is not None:
                self.parent.leave()


_innermost: ContextVar[SessionTurn | None] = ContextVar("agentbench_session_turn", default=None)


async def after_abandoned_streams() -> None:
    """Let runs be stored whose streams were just dropped; a run inside a turn does not wait, it holds the session."""
    turn = _innermost.get()
    if turn is None or not turn.is_open:
        await wait_for_abandoned_streams(timeout_s=_PATIENCE_S)
