"""A Redis of the test session's own, which keeps its data when it is stopped and started again."""

from __future__ import annotations

from tests.servers.process import ServerProcess, answers, find_program


class RedisServer:
    """Listens on loopback only.

    Attributes:
        url: Of its database 0.
    """

    def __init__(self) -> None:
        self._program = find_program("redis-server")
        self._process = ServerProcess("redis")
        self.port = self._process.port
        self.url = f"redis://127.0.0.1:{self.port}/0"

    def start(self) -> None:
        command = [self._program, "--bind", "127.0.0.1", "--port", str(self.port), "--dir", str(self._process.folder)]
        command += ["--save", "", "--appendonly", "yes", "--daemonize", "no"]
        self._process.start(command, lambda: answers(self.port, b"PING\r\n", b"+PONG"))

    def stop(self) -> None:
        """Stop it; `start` brings it back with its data, on the same port."""
        self._process.stop()

    def clear(self) -> None:
        """Remove all data."""
        assert answers(self.port, b"FLUSHALL\r\n", b"+OK"), "Redis was not cleared"

    def remove(self) -> None:
        self._process.remove()
