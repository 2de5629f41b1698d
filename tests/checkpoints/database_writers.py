"""Programs that use a database at the same time as others: `python -m tests.checkpoints.database_writers WHAT URL ...`.

Each waits for a line on its standard input before it begins.
"""

from __future__ import annotations

import itertools
import os
import resource
import signal
import sys
import threading

from agentbench.checkpoints.parts.backend import StalePartsError
from agentbench.checkpoints.sql_storage.backend import SQLBackend
from agentbench.exceptions import WorkflowBusyError
from tests.checkpoints.backend_contract import put, record


def save_many(url: str, name: str, count: int) -> None:
    """Save to a chain of its own and to one that all share."""
    backend = SQLBackend(url)
    for number in range(count):
        put(
            backend, record(f"{name} own {number}", number, chain=name, needs=(f"{name} {number}",)), f"{name} {number}"
        )
        put(backend, record(f"{name} shared {number}", number, chain="shared", needs=(f"{number}",)), f"{number}")
    backend.close()


def move_on(url: str, name: str, count: int) -> None:
    """Move the same chain on so many times, each time from where it is."""
    backend = SQLBackend(url)
    while count:
        latest = backend.latest("shared")
        seq = latest.seq if latest else 0
        try:
            put(backend, record(f"{name} {seq + 1}", seq + 1, chain="shared"), expected_seq=seq)
            count -= 1
        except WorkflowBusyError:
            pass
    backend.close()


def save_and_sweep(url: str, name: str, count: int) -> None:
    """Save to a shared chain what refers to shared parts, and remove it again, parts included."""
    backend = SQLBackend(url)
    for number in range(count):
        checkpoint_id = f"{name} {number}"
        while True:
            try:
                put(
                    backend,
                    record(checkpoint_id, number, chain="shared", needs=("common", checkpoint_id)),
                    "common",
                    checkpoint_id,
                )
                break
            except StalePartsError:
                pass
        if number % 3:
            backend.delete("shared", [checkpoint_id], sweep=True)
    backend.close()


def use_in_a_fork(url: str, name: str, count: int) -> None:
    """Save here, in a fork, and here again, with the same backend."""
    backend = SQLBackend(url)
    put(backend, record("before", 1))
    child = os.fork()
    if child == 0:
        put(backend, record("in the fork", 2))
        backend.close()
        sys.exit(0)
    assert os.waitpid(child, 0)[1] == 0
    put(backend, record("after", 3))
    backend.close()


def end_while_saving(url: str, name: str, count: int) -> None:
    """End the program while another thread is saving."""
    backend, saved = SQLBackend(url), threading.Event()

    def save() -> None:
        for number in itertools.count():
            put(backend, record(f"{name} {number}", number, needs=("x" * 5000,)), "x" * 5000)
            if number >= count:
                saved.set()

    threading.Thread(target=save, daemon=True).start()
    assert saved.wait(60)


def save_until_the_disk_is_full(url: str, name: str, count: int) -> None:
    """Save until files may grow no more; tell the number that was saved, and the error."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (count, count))
    backend = SQLBackend(url)
    number = 0
    try:
        while True:
            put(backend, record(f"id{number}", number, needs=(f"{number}".rjust(100),)), f"{number}".rjust(100))
            number += 1
    except OSError as error:
        print(f"{number}\n{error}", flush=True)
    backend.close()


if __name__ == "__main__":
    sys.stdin.readline()
    globals()[sys.argv[1]](sys.argv[2], sys.argv[3], int(sys.argv[4]))
