"""State graphs: W8, a loop of three nodes over a state with a growing list; W11, a chat of 500 turns on one thread."""

from __future__ import annotations

import asyncio
import operator
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Annotated, Any

from agentbench import FileCheckpointStorage, SQLCheckpointStorage
from agentbench.stategraph import END, START, AgentState, StateGraph
from tests.benchmarks.workload import Await, Call, Workload

STEPS = 1000
TEXT = "x" * 200


class Talk(AgentState):
    said: Annotated[list[str], operator.add] = []
    n: int = 0


async def _say(state: Talk) -> dict[str, Any]:
    return {"said": [TEXT], "n": state.n + 1}


def _loop(steps: int, runs: int = 1, thread: str = "") -> Any:
    """Prepare a loop on no thread, or on one that is kept in `memory` or in `files`."""

    def prepare(wait: Await) -> Call:
        graph = StateGraph(Talk)
        for name in "abc":
            graph.add_node(name, _say)
        graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c")
        graph.add_conditional_edges("c", lambda state: "a" if state.n < steps else END, ["a", END])
        config = {**({"thread_id": "t"} if thread else {}), "recursion_limit": steps + 3}

        def call() -> None:
            with TemporaryDirectory() as folder:
                app = graph.compile(FileCheckpointStorage(folder) if thread == "files" else None)
                for _ in range(runs):
                    result = wait(app.ainvoke({"n": 0}, config))
                    assert len(result.state.said) == result.step >= steps

        return call

    return prepare


def _bare(wait: Await) -> Call:
    async def say(said: list[str]) -> list[str]:
        return [TEXT]

    async def go() -> None:
        said: list[str] = []
        for _ in range(STEPS):
            (new,) = await asyncio.gather(asyncio.create_task(say(said)))
            said += new
        assert len(said) == STEPS

    return lambda: wait(go())


# ---- a chat

TURNS = 500
_OPEN: dict[str, Callable[[Path], Any]] = {
    "memory": lambda folder: None,
    "file": lambda folder: FileCheckpointStorage(folder / "checkpoints"),
    "SQLite": lambda folder: SQLCheckpointStorage(folder / "checkpoints.db"),
}


async def _answer(state: AgentState) -> str:
    return f"{len(state.context):08d}".ljust(200, "x")


def _chat(storage: Any) -> Any:
    graph = StateGraph(AgentState()).add_node("answer", _answer).add_edge("answer", END)
    return graph.set_entry_point("answer").compile(storage, name="chat")


async def _turn(app: Any, n: int, thread: str = "t") -> float:
    """Say something of 200 bytes, and return the milliseconds until the answer."""
    began = time.perf_counter()
    await app.ainvoke({"messages": [f"{n:08d}".ljust(200, "x")]}, {"thread_id": thread})
    return 1e3 * (time.perf_counter() - began)


def turns_ms(kind: str, *, is_new_storage: bool = False) -> tuple[float, float]:
    """Return the time of a turn in the first and in the last tenth of a chat, by one storage or a new one per turn."""

    async def chat(folder: Path) -> list[float]:
        app, found = _chat(_OPEN[kind](folder)), []
        for n in range(TURNS):
            if is_new_storage:
                app = _chat(_OPEN[kind](folder))
            found.append(await _turn(app, n))
        return found

    with TemporaryDirectory() as folder:
        found = asyncio.run(chat(Path(folder)))
    return statistics.mean(found[10 : TURNS // 10]), statistics.mean(found[-TURNS // 10 :])


def reopening_ms(kind: str = "SQLite") -> float:
    """Return the time to read the state of a chat of 500 turns with new objects."""

    async def read(folder: Path) -> float:
        app = _chat(_OPEN[kind](folder))
        for n in range(TURNS):
            await _turn(app, n)
        began = time.perf_counter()
        snapshot = await _chat(_OPEN[kind](folder)).aget_state({"thread_id": "t"})
        assert len(snapshot.values.context) == 2 * TURNS
        return 1e3 * (time.perf_counter() - began)

    with TemporaryDirectory() as folder:
        return asyncio.run(read(Path(folder)))


def first_turn_growth() -> float:
    """Return the time of the first turn of a thread beside 2,000 others in a folder, to that beside 100."""

    async def first_turn(folder: Path, others: int) -> float:
        app = _chat(_OPEN["file"](folder))
        for n in range(others):
            await _turn(app, 0, f"other {n}")
        return statistics.median([await _turn(app, 0, f"new {n}") for n in range(30)])

    with TemporaryDirectory() as few, TemporaryDirectory() as many:
        beside_few = asyncio.run(first_turn(Path(few), 100))
        return asyncio.run(first_turn(Path(many), 2000)) / beside_few


WORKLOADS = (
    Workload(
        name="W8",
        what="a step of a loop of three nodes of a state graph, each adding 200 bytes",
        unit="us",
        per_call=STEPS,
        agentbench=_loop(STEPS),
        bare=_bare,
    ),
    *(
        Workload(
            name=f"W8 thread in {place}",
            what=f"the same on a thread that is kept in {place}",
            unit="us",
            per_call=STEPS,
            agentbench=_loop(STEPS, thread=place),
            bare=_bare,
        )
        for place in ("memory", "files")
    ),
    Workload(
        name="W8 growth",
        what="the same 1,000 steps in one run; bare: in ten runs of 100",
        unit="us",
        per_call=STEPS,
        agentbench=_loop(STEPS),
        bare=_loop(STEPS // 10, 10),
    ),
)
