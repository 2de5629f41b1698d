"""One owner per input: a process that runs inputs, and its sign of life in the database."""

from __future__ import annotations

import os
import secrets
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from agentbench._bridge import start_thread, threads_available
from agentbench.batch.store.database import BatchDatabase
from agentbench.batch.store.tables import ADD_OWNER, EXPIRE_OWNERS, EXPIRES_S, OWNERS, REMOVE_OWNER, SEEN

_RENEW_S: Final = 5.0
_SAFE_S: Final = EXPIRES_S - 5.0
"""Others may take a claim after `EXPIRES_S`; a process stops using it a little earlier."""


def this_machine() -> str:
    """Return what identifies this machine, and the space of process ids in it, until it is restarted."""
    parts = [socket.gethostname()]
    with suppress(OSError):  # only Linux has these
        parts.append(Path("/proc/sys/kernel/random/boot_id").read_text("ascii").strip())
        parts.append(os.readlink("/proc/self/ns/pid"))
    return ":".join(part.replace("|", "_") for part in parts)


def _start_of(pid: int) -> str | None:
    """Return when a process of this machine was started, since process ids are used again; None if there is none."""
    try:
        facts = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()
        return None if facts[0] == b"Z" else facts[19].decode()  # a zombie has ended
    except FileNotFoundError:
        return None if os.path.isdir("/proc/self") else _start_without_proc(pid)
    except (OSError, IndexError):
        return None


def _start_without_proc(pid: int) -> str | None:
    if sys.platform == "win32":
        return ""  # os.kill would end the process; its claims expire
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return None
    except OSError:
        return ""
    return ""


class Owner:
    """This process as the owner of inputs. While it is open, a thread renews its sign of life every five seconds.

    A process that was not seen for 30 seconds, or that no longer exists on this machine, has lost its claims: another
    process deletes its entry, which is how both learn of it.
    """

    def __init__(self, database: BatchDatabase) -> None:
        self._database = database
        self._machine = this_machine()
        self.id = b""
        self._seen = 0.0, 0.0
        self._ended = threading.Event()
        self._begin()
        if database.into is not None and threads_available():
            self._thread = start_thread(self._renew_often, name="agentbench-batch-owner")

    def _begin(self) -> None:
        pid = os.getpid()
        text = "|".join([self._machine, str(pid), _start_of(pid) or "", secrets.token_hex(6)])
        now = time.monotonic(), time.time()
        owner = text.encode("utf-8", "surrogateescape")
        self._database.change(lambda session: session.run(self._database.sql(ADD_OWNER), {"owner": owner}))
        self.id, self._seen = owner, now

    def holds(self, owner: bytes) -> bool:
        """Return whether claims of this owner are certainly still valid: it was seen alive a short time ago.

        Both clocks count: one of them stands still while a laptop sleeps, the other may be set.
        """
        if self._database.into is None:
            return owner == self.id
        ages = time.monotonic() - self._seen[0], time.time() - self._seen[1]
        return owner == self.id and max(ages) < _SAFE_S

    def renew(self) -> bool:
        """Renew the sign of life. If the claims were lost meanwhile, become another owner and return False."""
        before = time.monotonic(), time.time()
        statement = self._database.sql(SEEN)
        if self._database.change(lambda session: session.run(statement, {"owner": self.id})):
            self._seen = before
            return True
        self._begin()
        return False

    def expire_others(self) -> int:
        """Delete owners that were not seen for long, or that were processes of this machine and have ended."""
        database = self._database
        gone = [owner for (owner,) in database.read(OWNERS) if owner != self.id and self._has_ended(bytes(owner))]

        def work(session: object) -> int:
            removed: int = session.run(database.sql(EXPIRE_OWNERS), {})  # type: ignore[attr-defined]
            for owner in gone:
                removed += session.run(database.sql(REMOVE_OWNER), {"owner": owner})  # type: ignore[attr-defined]
            return removed

        return database.change(work)

    def _has_ended(self, owner: bytes) -> bool:
        machine, pid, start, _ = owner.decode("utf-8", "surrogateescape").rsplit("|", 3)
        if machine != self._machine or not pid.isdigit():
            return False
        found = _start_of(int(pid))
        return found is None or bool(start and found and start != found)

    def _renew_often(self) -> None:
        while not self._ended.wait(_RENEW_S):
            with suppress(Exception):  # the database is down: it is tried again, and the claims may expire meanwhile
                self.renew()

    def close(self) -> None:
        """Give up all claims."""
        self._ended.set()
        with suppress(Exception):  # they expire
            self._database.change(lambda session: session.run(self._database.sql(REMOVE_OWNER), {"owner": self.id}))
