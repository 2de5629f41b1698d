"""Runs a server until the standard input is closed: so it ends with the tests, however those end.

Usage: keeper.py SIGNAL USER LOG COMMAND...   (USER may be empty)
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading


def group_of(user: str) -> int | None:
    if not user:
        return None
    import pwd  # not there on Windows

    return pwd.getpwnam(user).pw_gid


def keep(stop_signal: int, user: str, log: str, command: list[str]) -> int:
    with open(log, "ab") as output:
        server = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=output, stderr=output, user=user or None, group=group_of(user)
        )

    def stop_with_the_tests() -> None:
        os.read(0, 1)
        server.send_signal(stop_signal)

    threading.Thread(target=stop_with_the_tests, daemon=True).start()
    return int(server.wait())


if __name__ == "__main__":
    sys.exit(keep(int(sys.argv[1]), sys.argv[2], sys.argv[3], sys.argv[4:]))
