"""A storage of the parent's in a process that was forked off while a thread was saving."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.parts.backend import CheckpointRecord
from agentbench.serialization.state_types import register_state_type
from tests.checkpoints.plain_backend import PlainBackend, PlainStorage

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning"),
]

LONG_TEXT = "x" * 5_000
_PATIENCE_S = 20


class Gate:
    """Holds up the thread that comes to it."""

    def __init__(self) -> None:
        self.reached, self.opened = threading.Event(), threading.Event()

    def pass_through(self) -> None:
        self.reached.set()
        assert self.opened.wait(_PATIENCE_S)


class GatedBackend(PlainBackend):
    def __init__(self) -> None:
        super().__init__()
        self.gate: Gate | None = None

    def put(
        self,
        record: CheckpointRecord,
        parts: Mapping[str, str],
        *,
        generation: int,
        expected_seq: int | None = None,
        patient: bool = True,
    ) -> None:
        if self.gate is not None:
            self.gate.pass_through()
        super().put(record, parts, generation=generation, expected_seq=expected_seq)


class Gated:
    def __init__(self, gate: Gate) -> None:
        self.gate = gate


def checkpoint(seq: int, **state: Any) -> WorkflowCheckpoint:
    return WorkflowCheckpoint("flow", "hash", f"flow-{seq}", state=state, metadata={"seq": seq})


def in_a_fork(work: Callable[[], bytes]) -> bytes:
    """Return what the function returns in a process that is forked off; nothing if it does not end."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        threading.Timer(_PATIENCE_S, os._exit, [1]).start()
        try:
            os.write(write_end, work())
        finally:
            os._exit(0)
    os.close(write_end)
    os.waitpid(child, 0)
    with os.fdopen(read_end, "rb") as answer:
        return answer.read()


def save_and_load(storage: PlainStorage) -> bytes:
    async def work() -> bytes:
        await storage.save(checkpoint(3, text=LONG_TEXT))
        found = await storage.load("flow-3")
        return b"kept" if found.state == {"text": LONG_TEXT} else b"lost"

    return asyncio.run(work())


def test_a_forked_process_does_not_rely_on_what_its_parent_was_still_saving() -> None:
    backend, gate = GatedBackend(), Gate()
    storage = PlainStorage(backend)
    asyncio.run(storage.save(checkpoint(1)))
    backend.gate = gate
    saving = threading.Thread(target=lambda: asyncio.run(storage.save(checkpoint(2, text=LONG_TEXT))))
    saving.start()
    assert gate.reached.wait(_PATIENCE_S)

    def work() -> bytes:
        backend.gate = None
        return save_and_load(storage)

    answer = in_a_fork(work)
    gate.opened.set()
    saving.join()
    assert answer == b"kept"
    assert backend.ids("flow") == ["flow-1", "flow-2"]


def test_a_forked_process_does_not_wait_for_a_thread_of_its_parent() -> None:
    storage, gate = PlainStorage(), Gate()
    register_state_type(Gated, encode=lambda gated: gated.gate.pass_through(), decode=lambda found: found)
    saving = threading.Thread(target=lambda: asyncio.run(storage.save(checkpoint(2, gated=Gated(gate)))))
    saving.start()
    assert gate.reached.wait(_PATIENCE_S)
    answer = in_a_fork(lambda: save_and_load(storage))
    gate.opened.set()
    saving.join()
    assert answer == b"kept"
