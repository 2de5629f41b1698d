"""Runs of generated workflows that are killed, abandoned and cancelled, and go on in another process or instance.

Run as `python -m tests.orchestrations.soak.lives FOLDER COUNT`: one warm process forks those that are killed, because a
new interpreter for each would take most of the time. Prints what went wrong.

A run has one journal, which outlasts its processes: what tools did, which checkpoints were saved, what was said. A tool
that worked in a superstep whose checkpoint was not saved any more works again in the next life. That apart, it works
once.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
import traceback
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

from agentbench import Content, FileCheckpointStorage
from agentbench._clock import RandomIds
from agentbench.checkpoints.sql import SQLCheckpointStorage
from agentbench.testing import set_runtime_defaults
from tests.orchestrations.soak.flows import Flow, answer_to

ENDS = ("kill", "kill", "time", "abandon", "cancel")


class Journal:
    """Lines that are written at once and never lost; its ids note when a checkpoint is about to be saved."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def note(self, line: str) -> None:
        file = os.open(self.path, os.O_APPEND | os.O_CREAT | os.O_WRONLY)
        os.write(file, f"{line}\n".encode())
        os.close(file)

    def lines(self) -> list[str]:
        return self.path.read_text().splitlines() if self.path.exists() else []

    def new_id(self, kind: str) -> str:
        made = RandomIds().new_id(kind)
        if kind == "cp":
            self.note(f"saving {made}")
        return made


class Life:
    """What one process does with a run: goes on from the latest checkpoint, and answers until nothing is open."""

    def __init__(self, seed: int, number: int, folder: Path, end: str) -> None:
        self.rng = Random(f"life {seed}/{number}")
        self.end = end
        self.seed = seed
        self.number = number
        self.folder = folder
        self.journal = Journal(folder / "journal")
        self.left = self.rng.randint(1, 30) if end != "last" else -1
        self.is_plain = self.end in ("time", "cancel") or (end == "last" and self.rng.random() < 0.5)
        self.open: dict[str, Any] = {}
        self.answered: list[str] = []

    async def live(self) -> None:
        storage: Any = FileCheckpointStorage(self.folder)
        if self.seed % 2:
            storage = SQLCheckpointStorage(self.folder / "checkpoints.db")
        try:
            await self.go_on(storage)
        finally:
            if self.seed % 2:
                storage.close()

    async def go_on(self, storage: Any) -> None:
        flow = Flow(self.seed, self.journal.note, storage)
        saved = await storage.get_latest(workflow_name="w0")
        self.journal.note(f"life {self.number} {self.end} {saved and saved.checkpoint_id}")
        arguments: dict[str, Any] = {"message": flow.input}
        if saved is not None:
            self.open = dict(saved.pending_request_info_events)
            arguments = {"checkpoint_id": saved.checkpoint_id, **self.some_answers(at_least=0)}
        while True:
            await self.run(flow.workflow, arguments)
            if not self.open:
                break
            if self.rng.random() < 0.2:
                await self.answer_wrongly(flow.workflow)
            arguments = self.some_answers(at_least=1)
        self.journal.note("done")

    def some_answers(self, *, at_least: int) -> dict[str, Any]:
        chosen = self.rng.sample(sorted(self.open), self.rng.randint(min(at_least, len(self.open)), len(self.open)))
        answers = {key: answer_to(self.open.pop(key).data) for key in chosen}
        self.answered += chosen
        return {"responses": answers} if answers else {}

    async def answer_wrongly(self, workflow: Any) -> None:
        fine = Content.from_text("yes")
        twice = dict.fromkeys(self.answered[:1], fine)
        wrong = self.rng.choice([{"nobody asked": fine}, {min(self.open): 5}, *([twice] if twice else [])])
        try:
            await workflow.run(responses=wrong)
        except ValueError:
            return
        message = f"{wrong} was accepted"
        raise RuntimeError(message)

    async def run(self, workflow: Any, arguments: dict[str, Any]) -> None:
        if self.is_plain:
            events = await workflow.run(**arguments)
            self.open.update((event.request_id, event) for event in events.get_request_info_events())
            return
        stream = workflow.run(stream=True, **arguments)
        async for event in stream:
            if event.type == "request_info":
                self.open[event.request_id] = event
            self.left -= 1
            if self.left == 0 and self.end == "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            if self.left == 0:
                await stream.aclose()
                raise Abandoned


class Abandoned(Exception):  # noqa: N818 - no error
    """A reader left."""


async def live_here(life: Life) -> None:
    """Live in this process; a life that is to be cancelled is, after a while."""
    set_runtime_defaults(ids=life.journal)
    task = asyncio.ensure_future(life.live())
    if life.end == "cancel":
        asyncio.get_running_loop().call_later(life.rng.uniform(0.002, 0.03), task.cancel)
    with contextlib.suppress(Abandoned, asyncio.CancelledError):
        await task


def live_in_fork(life: Life) -> None:
    """Live in a process of its own, which does not end well."""
    child = os.fork()
    if child == 0:
        try:
            if life.end == "time":
                signal.setitimer(signal.ITIMER_REAL, life.rng.uniform(0.005, 0.04))
            asyncio.run(live_here(life))
        except BaseException:  # noqa: BLE001 - told to the parent by the status
            life.journal.note("error " + traceback.format_exc().replace("\n", "\n      "))
        os._exit(0)
    os.waitpid(child, 0)


def live_through(seed: int, folder: Path) -> Journal:
    """One run from its beginning to its end, in up to seven lives."""
    folder.mkdir()
    rng = Random(f"lives {seed}")
    ends = [rng.choice(ENDS) for _ in range(rng.randint(2, 6))]
    journal = Journal(folder / "journal")
    for number, end in enumerate([*ends, "last"]):
        life = Life(seed, number, folder, end)
        if end in ("kill", "time"):
            live_in_fork(life)
        else:
            try:
                asyncio.run(live_here(life))
            except Exception:  # noqa: BLE001 - judged with the rest
                journal.note("error " + traceback.format_exc().replace("\n", "\n      "))
        if any(line == "done" or line.startswith("error") for line in journal.lines()):
            break
    return journal


async def undisturbed(seed: int) -> list[str]:
    """What the tools do and the agents say in a run that is answered at once."""
    lines: list[str] = []
    flow = Flow(seed, lines.append)
    result = await flow.workflow.run(flow.input)
    while True:
        if not (requests := result.get_request_info_events()):
            return lines
        result = await flow.workflow.run(responses={one.request_id: answer_to(one.data) for one in requests})


def judge(lines: list[str], expected: list[str]) -> list[str]:
    """What is wrong with a journal."""
    errors = [line for line in lines if line.startswith("error")]
    if errors or "done" not in lines:
        return [*errors, "did not end"]
    starts = [place for place, line in enumerate(lines) if line.startswith("life ")]
    lasting: Counter[str] = Counter()
    for start, end in zip(starts, [*starts[1:], len(lines)], strict=True):
        kept = end
        if end < len(lines):
            went_on_from = lines[end].split()[-1]
            kept = lines.index(f"saving {went_on_from}") if went_on_from != "None" else 0
        done = Counter(line.split()[1] for line in lines[start:end] if line.startswith("effect"))
        errors += [f"{key} was done {count} times in one life" for key, count in done.items() if count > 1]
        lasting.update(line.split()[1] for line in lines[start : min(kept, end)] if line.startswith("effect"))
    wanted = Counter(line.split()[1] for line in expected if line.startswith("effect"))
    if lasting != wanted:
        errors.append(f"tools: too often {lasting - wanted}, too rarely {wanted - lasting}")
    said, to_say = ({line for line in each if line.startswith("said")} for each in (lines, expected))
    if said != to_say:
        errors.append(f"too much: {sorted(said - to_say)}; missing: {sorted(to_say - said)}")
    return errors


def main(folder: str, count: str) -> None:
    """Live through so many runs; print what went wrong, and how often each end came."""
    for seed in range(int(count)):
        journal = live_through(seed, Path(folder) / f"{seed:03}")
        for problem in judge(journal.lines(), asyncio.run(undisturbed(seed))):
            print(seed, Flow(seed, print).kind, problem, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
