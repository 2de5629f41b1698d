"""A PostgreSQL of the test session's own, which keeps its data when it is stopped and started again."""

from __future__ import annotations

import os
import signal
from itertools import count
from typing import Any
from urllib.parse import quote

from tests.servers.process import ServerProcess, find_program

USER, PASSWORD = "keeper", "open sesame/7:@"
PROGRAMS = ("/usr/lib/postgresql/*/bin/", "/opt/homebrew/opt/postgresql*/bin/", "/usr/local/pgsql/bin/")


class PostgresServer:
    """Asks for a password and listens on loopback only; needs `psycopg`."""

    def __init__(self) -> None:
        self._initdb = find_program("initdb", *[f"{folder}initdb" for folder in PROGRAMS])
        self._program = find_program("postgres", *[f"{folder}postgres" for folder in PROGRAMS])
        # It refuses to run as root.
        self._process = ServerProcess("postgres", user="postgres" if os.geteuid() == 0 else None)
        self.port = self._process.port
        self._numbers = count(1)
        self._data = self._process.folder / "data"

    def start(self) -> None:
        if not self._data.exists():
            self._create()
        command = [self._program, "-D", str(self._data), "-p", str(self.port)]
        for setting in ("listen_addresses=127.0.0.1", "unix_socket_directories=", "fsync=off", "max_connections=50"):
            command += ["-c", setting]
        self._process.start(command, self._is_ready, stop_signal=signal.SIGINT)

    def stop(self) -> None:
        """Stop it, whoever is connected; `start` brings it back with its data, on the same port."""
        self._process.stop()

    def create_database(self, options: str = "") -> str:
        """Create an empty database and return its URL; `options` are those of CREATE DATABASE."""
        name = f"test_{next(self._numbers)}"
        self.execute(f"CREATE DATABASE {name} TEMPLATE template0 {options}")
        return self.url(name)

    def url(self, database: str = "postgres", *, password: str = PASSWORD) -> str:
        return f"postgresql://{USER}:{quote(password, safe='')}@127.0.0.1:{self.port}/{database}"

    def execute(self, statement: str) -> None:
        """Run a statement as the database's owner."""
        with self._connect() as connection:
            connection.execute(statement)

    def remove(self) -> None:
        self._process.remove()

    def _create(self) -> None:
        secret = self._process.folder / "password"
        secret.write_text(PASSWORD)
        secret.chmod(0o644)
        options = ["-U", USER, f"--pwfile={secret}", "--auth=scram-sha-256", "--encoding=UTF8", "--no-locale"]
        self._process.run_once([self._initdb, "-D", self._data, "--no-sync", *options])

    def _is_ready(self) -> bool:
        import psycopg

        try:
            self._connect().close()
        except psycopg.OperationalError:
            return False
        return True

    def _connect(self) -> Any:
        import psycopg

        return psycopg.connect(self.url(), autocommit=True, connect_timeout=10)
