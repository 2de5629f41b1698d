"""A reentrant lock per session and event loop, so that one run at a time reads or writes a session.

The run that holds the lock and the tasks that it starts may acquire it again, because a provider or a tool can run
agents on the same session. Nested runs take turns, and the lock is released when the last of them has left. A task
that was started inside, but acquires the lock after its release, waits like every other run.
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

LOCKS: Final = "_turn_locks"
"""Attribute of a session: its locks, by event loop."""

_PATIENCE_S: Final = 1.0


class SessionTurn:
    """Locks a session while hooks read or write it, but not during model calls; other event loops do not wait."""

    def __init__(self, session: AgentSession) -> None:
        locks = vars(session).get(LOCKS)
        if locks is None:  # avoids a new dictionary and lock in the common case
            locks = vars(session).setdefault(LOCKS, WeakKeyDictionary())
        loop = asyncio.get_running_loop()
        self.root: asyncio.Lock = locks.get(loop) or locks.setdefault(loop, asyncio.Lock())
        self._lock = self.root  # the lock to acquire: the session's, or that of the enclosing turn
        self.inner: asyncio.Lock | None = None
        self.parent: SessionTurn | None = None
        self.before: SessionTurn | None = None  # the innermost turn of the context, for any session
        self.is_open = False
        self.users = 1  # this turn, and nested turns that hold or wait for its lock

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
        # Not reset by token, because an async generator may be closed in another context than the one it started in.
        _innermost.set(self.before)
        self.is_open = False
        self.leave()

    def leave(self) -> None:
        """Decrement the users; the last one releases the lock."""
        self.users -= 1
        if self.users == 0:
            self._lock.release()
            if self.parent is not None:
                self.parent.leave()


_innermost: ContextVar[SessionTurn | None] = ContextVar("agentbench_session_turn", default=None)


async def after_abandoned_streams() -> None:
    """Wait until runs with abandoned streams are stored; a nested run does not wait, because it holds the session."""
    turn = _innermost.get()
    if turn is None or not turn.is_open:
        await wait_for_abandoned_streams(timeout_s=_PATIENCE_S)
