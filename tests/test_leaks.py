"""What stays behind when a thing is made, used and dropped, over and over: objects, threads and files are counted."""

from __future__ import annotations

import asyncio
import gc
import inspect
import os
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentSession,
    EchoChatClient,
    Executor,
    FileCheckpointStorage,
    SQLCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    run_sync,
    tool,
)
from agentbench.stategraph import END, START, AgentState, StateGraph
from tests.parts.nightly import nightly

TIMES = 20


class Bounce(Executor):
    @handler
    async def take(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        if n < 5:
            await ctx.send_message(n + 1)
        else:
            await ctx.yield_output(n)


class Asks(Executor):
    @handler
    async def take(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.request_info(n, int)

    @response_handler
    async def on_answer(self, asked: int, answer: int, ctx: WorkflowContext[int, int]) -> None: ...


class Waits(Executor):
    @handler
    async def take(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        await asyncio.Event().wait()


def pair(kind: type[Executor] = Bounce, storage: Any = None) -> Workflow:
    a, b = kind(id="a"), kind(id="b")
    builder = WorkflowBuilder(start_executor=a, name="pair", checkpoint_storage=storage)
    return builder.add_edge(a, b).add_edge(b, a).build()


def counting() -> Any:
    class Count(AgentState):
        n: int = 0

    async def add(state: Any) -> dict[str, Any]:
        return {"n": state.n + 1}

    return StateGraph(Count).add_node("a", add).add_edge(START, "a").add_edge("a", END).compile()


@tool
def add_numbers(a: int, b: int) -> int:
    """Add."""
    return a + b


ONE = pair()
AGENT = Agent(EchoChatClient(), name="e")
GRAPH = counting()


async def run() -> None:
    await ONE.run(0)


async def build() -> None:
    await pair().run(0)


async def start() -> None:
    await ONE.start(0).step()


async def leave_stream() -> None:
    async for _ in ONE.run(0, stream=True):
        break


async def cancel() -> None:
    running = asyncio.ensure_future(pair(Waits).run(0))
    for _ in range(3):
        await asyncio.sleep(0)
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)


async def ask() -> None:
    await pair(Asks).run(0)


def wait() -> None:
    run_sync(ONE.run(0))


def wait_in_threads() -> None:
    with ThreadPoolExecutor(4) as pool:
        list(pool.map(lambda _: run_sync(pair().run(0)), range(4)))


async def use_agent() -> None:
    await Agent(EchoChatClient(), name="e", tools=[add_numbers]).run("hi")


async def call_sync_tool() -> None:
    await add_numbers.invoke(arguments={"a": 1, "b": 2})


async def use_session() -> None:
    await AGENT.run("hi", session=AgentSession())


async def call_graph() -> None:
    await GRAPH.ainvoke({"n": 1})


async def compile_graph() -> None:
    await counting().ainvoke({"n": 1}, {"thread_id": "t"})


async def save_in_files(folder: Path) -> None:
    await pair(storage=FileCheckpointStorage(folder / "files")).run(0)


async def save_in_sqlite(folder: Path) -> None:
    pytest.importorskip("sqlalchemy")
    await pair(storage=SQLCheckpointStorage(folder / "checkpoints.db")).run(0)


def draw() -> None:
    ONE._repr_mimebundle_()


def step_panel(kind: type[Executor] = Bounce, *, name: str | None = None, closes: bool = True) -> None:
    stepper = pytest.importorskip("agentbench.notebook").stepper
    panel = stepper(pair(kind), 0, name=name)
    panel.step()
    panel._repr_mimebundle_()
    if closes:
        panel.close()


def replace_panel() -> None:
    step_panel(name="the same", closes=False)


def leave_form() -> None:
    step_panel(Asks)


@pytest.mark.parametrize(
    "use",
    [
        run, leave_stream, wait_in_threads, use_agent, use_session, call_graph, save_in_files, replace_panel,
        *[nightly(use) for use in (
            build, start, cancel, ask, wait, call_sync_tool, compile_graph, save_in_sqlite, draw, step_panel,
            leave_form,
        )],
    ],
)  # fmt: skip
def test_nothing_stays_behind(use: Callable[..., Any], tmp_path: Path) -> None:
    arguments = (tmp_path,) if "folder" in inspect.signature(use).parameters else ()

    async def repeat() -> None:
        for _ in range(TIMES):
            await use(*arguments)

    def use_often() -> None:
        if inspect.iscoroutinefunction(use):
            asyncio.run(repeat())
        else:
            for _ in range(TIMES):
                use(*arguments)

    for _ in range(3):  # what is made once, such as caches and idle threads
        use_often()
    before = counts()
    use_often()
    grown = [TIMES, 2, 2]
    for _ in range(100):  # panels end in the background
        grown = [now - then for now, then in zip(counts(), before, strict=True)]
        if grown[0] < TIMES and max(grown[1:]) <= 1:
            return
        run_sync(asyncio.sleep(0.05))
    pytest.fail(f"{TIMES} repetitions leave {grown[0]} objects, {grown[1]} threads and {grown[2]} files.")


def counts() -> tuple[int, int, int]:
    """Return how many objects, threads and open files there are."""
    gc.collect()
    gc.collect()
    files = len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0
    return len(gc.get_objects()), threading.active_count(), files
