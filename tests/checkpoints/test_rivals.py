"""Of several writers that change one chain at once, one is acknowledged, and each other one gets a named error."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import InMemoryCheckpointStorage, RunOptions, WorkflowCheckpoint
from agentbench.checkpoints import fork_checkpoint
from agentbench.exceptions import ThreadBusyError, WorkflowBusyError
from tests.checkpoints.rival_writers import CHAINS, OPERATIONS, THREAD, make_graph, make_workflow

ROOT = Path(__file__).parents[2]


@pytest.fixture(params=["files", "sqlite", "postgresql"])
def where(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    if request.param == "files":
        return str(tmp_path / "checkpoints")
    pytest.importorskip("sqlalchemy")
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'checkpoints.db'}"
    url: str = request.getfixturevalue("postgres_url")
    return url


def test_of_two_processes_that_change_a_chain_at_once_one_is_refused(where: str) -> None:
    command = [sys.executable, "-m", "tests.checkpoints.rival_writers", where]
    printed = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True, timeout=120).stdout
    reports = [json.loads(line) for line in printed.splitlines()]
    assert [report["operation"] for report in reports] == [*OPERATIONS]
    for report in reports:
        refused = "ThreadBusyError t" if report["operation"].startswith("graph") else "WorkflowBusyError"
        assert sorted(report["outcomes"].values()) == [refused, "saved"], report
        winner = next(name for name, outcome in report["outcomes"].items() if outcome == "saved")
        assert [name for name in report["log"] if name != "in"] in ([], [winner]), report
        assert report["seqs"] == [*range(1, len(report["seqs"]) + 1)], report


# --- in any order -----------------------------------------------------------------------------------------------------

CLIENT: ContextVar[int] = ContextVar("CLIENT")


class Turns:
    """Lets clients take turns: each waits before a call of the storage until it is its turn."""

    def __init__(self, order: list[int]) -> None:
        self.order = order
        self.waiting: dict[int, asyncio.Future[None]] = {}

    async def take(self) -> None:
        if (client := CLIENT.get(None)) is not None:
            self.waiting[client] = asyncio.get_running_loop().create_future()
            await self.waiting[client]

    async def drive(self, *clients: Awaitable[None]) -> None:
        """Run the clients to their ends, in an order that depends on nothing else."""
        tasks = []
        for number, client in enumerate(clients):
            CLIENT.set(number)
            tasks.append(asyncio.ensure_future(client))
        while running := [task for task in tasks if not task.done()]:
            if len(self.waiting) < len(running):
                await asyncio.sleep(0)
                continue
            chosen = self.order.pop() if self.order else 0
            numbers = sorted(self.waiting)
            self.waiting.pop(numbers[chosen % len(numbers)]).set_result(None)
            await asyncio.sleep(0)
        for task in tasks:
            task.result()


class SharedStorage(InMemoryCheckpointStorage):
    """A storage of several clients that take turns."""

    turns: Turns

    async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
        await self.turns.take()
        return await super().load(checkpoint_id)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        await self.turns.take()
        return await super().get_latest(workflow_name=workflow_name)

    async def list_infos(self, **choice: Any) -> Any:
        await self.turns.take()
        return await super().list_infos(**choice)

    async def save(self, checkpoint: WorkflowCheckpoint) -> str:
        await self.turns.take()
        return await super().save(checkpoint)

    async def save_if_head(self, checkpoint: WorkflowCheckpoint, expected_seq: int) -> str:
        await self.turns.take()
        return await super().save_if_head(checkpoint, expected_seq)


Log = list[str]
#: Of an operation: the log that it results in, by the log of the first checkpoint, the one at the head, and its mark.
EFFECTS: dict[str, Callable[[Log, Log, str], Log]] = {
    "edit": lambda first, head, mark: [*head, mark],
    "answer": lambda first, head, mark: [*head, mark],
    "fork": lambda first, head, mark: [*first, mark],
}


async def change_thread(storage: SharedStorage, operation: str, first: str, mark: str) -> None:
    app = make_graph(storage)
    if operation == "edit":
        await app.aupdate_state(THREAD, {"log": [mark]})
    elif operation == "answer":
        await app.ainvoke({"resume": mark}, THREAD)
    else:
        await app.aupdate_state({**THREAD, "checkpoint_id": first}, {"log": [mark]})


async def change_chain(storage: SharedStorage, operation: str, first: str, mark: str) -> None:
    head = await storage.get_latest(workflow_name="w")
    assert head is not None
    origin = await storage.load(first) if operation == "fork" else head
    if operation == "answer":
        options = RunOptions(check_head=head.metadata["seq"])
        await make_workflow(storage).run(checkpoint_id=head.checkpoint_id, responses={"what": mark}, options=options)
    else:
        log = {"log": [*origin.state["log"], mark]}
        await fork_checkpoint(storage, origin.checkpoint_id, state_updates=log, head_seq=head.metadata["seq"])


CHANGES: dict[str, tuple[Any, type[WorkflowBusyError]]] = {
    "graph": (change_thread, ThreadBusyError),
    "workflow": (change_chain, WorkflowBusyError),
}
PROGRAMS = st.lists(st.lists(st.sampled_from([*EFFECTS]), min_size=1, max_size=3), min_size=2, max_size=2)


@pytest.mark.parametrize("kind", [*CHANGES])
@given(programs=PROGRAMS, order=st.lists(st.integers(0, 1), max_size=40))
def test_no_acknowledged_change_is_lost_in_whatever_order_two_clients_save(
    kind: str, programs: list[list[str]], order: list[int]
) -> None:
    change, refusal = CHANGES[kind]
    storage = SharedStorage()
    storage.turns = Turns(order)
    acknowledged: dict[str, str] = {}

    async def client(name: str, program: list[str], first: str) -> None:
        for number, operation in enumerate(program):
            mark = f"{name}{number}"
            try:
                await change(storage, operation, first, mark)
            except refusal:
                continue
            except (ValueError, RuntimeError):  # the question was answered
                continue
            acknowledged[mark] = operation

    async def both() -> None:
        if kind == "graph":
            await make_graph(storage).ainvoke({"log": ["in"]}, THREAD)
        else:
            await make_workflow(storage).run("in")
        (*_, asked) = await storage.list_infos(workflow_name=CHAINS[kind])
        clients = [client(name, each, asked.checkpoint_id) for name, each in zip("AB", programs, strict=True)]
        await storage.turns.drive(*clients)

    asyncio.run(both())
    chain = asyncio.run(storage.list_checkpoints(workflow_name=CHAINS[kind]))
    logs = [each.state.get("log") or [] for each in chain if each.state.get("log")]
    saved = [log[-1] for log in logs if log[-1] != "in"]
    assert sorted(dict.fromkeys(saved)) == sorted(acknowledged)
    expected = ["in"]
    for mark in dict.fromkeys(saved):
        expected = EFFECTS[acknowledged[mark]](["in"], expected, mark)
    assert logs[-1] == expected
