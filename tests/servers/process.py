"""A server program that a test session starts for itself: on loopback, in a folder of its own, gone when it ends."""

from __future__ import annotations

import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from glob import glob
from pathlib import Path

KEEPER = Path(__file__).with_name("keeper.py")
PATIENCE_S = 60.0


class MissingServerError(Exception):
    """The program of a server is not installed here."""


def find_program(name: str, *patterns: str) -> str:
    """Return the path of a program, from PATH or else the last of what the patterns find."""
    found = shutil.which(name) or max((path for pattern in patterns for path in glob(pattern)), default=None)
    if found is None:
        raise MissingServerError(f"{name} is not installed")
    return found


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


class ServerProcess:
    """Starts and stops one server program, again and again on the same port and folder.

    Args:
        name: For messages and the folder's name.
        user: Whom the program runs as, where that is not whoever runs the tests.
    """

    def __init__(self, name: str, *, user: str | None = None) -> None:
        self.name, self.user = name, user
        self.port = free_port()
        # Not below pytest's folders: those are closed to other users.
        self.folder = Path(tempfile.mkdtemp(prefix=f"agentbench-{name}-"))
        if user is not None:
            shutil.chown(self.folder, user)
        self._keeper: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        return self.folder / "log"

    def run_once(self, command: Sequence[str | Path]) -> None:
        """Run a command as the server's user until it is done."""
        with self._keep(command) as keeper:
            if keeper.wait() != 0:
                raise self._failure(f"{command[0]} failed")

    def start(
        self, command: Sequence[str | Path], is_ready: Callable[[], bool], *, stop_signal: int = signal.SIGTERM
    ) -> None:
        """Start the server and wait until it answers. `stop_signal` is what ends it in an orderly way."""
        keeper = self._keeper = self._keep(command, stop_signal)
        ends = time.monotonic() + PATIENCE_S
        while not is_ready():
            if keeper.poll() is not None or time.monotonic() > ends:
                self.stop()
                raise self._failure(f"{self.name} did not start")
            time.sleep(0.02)

    def stop(self) -> None:
        """Stop the server and wait until it is gone. The folder stays, for the next start."""
        if self._keeper is not None:
            self._keeper.communicate()  # closes the pipe, which is the keeper's signal to stop the server
            self._keeper = None

    def remove(self) -> None:
        """Stop the server for good."""
        self.stop()
        shutil.rmtree(self.folder)

    def _keep(self, command: Sequence[str | Path], stop_signal: int = signal.SIGTERM) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, KEEPER, str(int(stop_signal)), self.user or "", self.log, *map(str, command)],
            cwd=self.folder,
            stdin=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the tests; the server is needed until they have been torn down
        )

    def _failure(self, what: str) -> RuntimeError:
        return RuntimeError(f"{what}:\n{self.log.read_text(errors='replace')}")


def answers(port: int, request: bytes, beginning: bytes) -> bool:
    """Whether something listens on the port and answers a request as expected."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as connection:
            connection.sendall(request)
            return connection.recv(len(beginning)) == beginning
    except OSError:
        return False
