from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import subprocess
import sys

import pytest

from tests.servers.process import MissingServerError, ServerProcess, find_program

ECHO = """
import socket, sys
with socket.create_server(("127.0.0.1", int(sys.argv[1]))) as server:
    while True:
        connection, _ = server.accept()
        with connection:
            connection.sendall(connection.recv(4))
"""
TESTS_THAT_ARE_KILLED = f"""
import os, sys
from tests.servers.process import ServerProcess, answers
server = ServerProcess("echo")
server.start([sys.executable, "-c", {ECHO!r}, str(server.port)], lambda: answers(server.port, b"PING", b"PING"))
print(server.port, server.folder, flush=True)
sys.stdin.read()
"""


def test_a_server_ends_with_the_tests_even_if_those_are_killed():
    with subprocess.Popen(
        [sys.executable, "-c", TESTS_THAT_ARE_KILLED], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as tests:
        assert tests.stdout is not None
        port, folder = tests.stdout.readline().split()
        with socket.create_connection(("127.0.0.1", int(port))) as connection:
            os.kill(tests.pid, signal.SIGKILL)
            connection.settimeout(60)
            # The system closes what a process that has ended held open: what it had taken up in order, with a reset
            # what still waited to be.
            with contextlib.suppress(ConnectionResetError):
                assert connection.recv(1) == b""
    shutil.rmtree(folder)


def test_a_server_that_does_not_start_tells_why():
    server = ServerProcess("broken")
    try:
        with pytest.raises(RuntimeError, match=r"broken did not start:\n.*no such option"):
            server.start([sys.executable, "-c", "import sys; sys.exit('no such option')"], lambda: False)
    finally:
        server.remove()
    assert not server.folder.exists()


def test_a_program_that_is_nowhere_is_named():
    with pytest.raises(MissingServerError, match="no-such-server is not installed"):
        find_program("no-such-server", "/usr/lib/no-such-server/*/bin/no-such-server")
