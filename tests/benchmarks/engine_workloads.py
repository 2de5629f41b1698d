"""Workloads of the engine. Their bare halves use one task and one gather per superstep, as plain asyncio code would."""

import asyncio
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from agentbench import Executor, Workflow, WorkflowBuilder, WorkflowContext, WorkflowExecutor, handler
from tests.benchmarks.workload import Prepare, Workload, awaited

SUPERSTEPS = 2_000
FAN, FAN_ROUNDS = 100, 20
CHAIN, CHAIN_RUNS = 50, 40
BUILT = 500
SMALL_BUILDS = 200
RUNS, RUN_SUPERSTEPS = 1_000, 20
OUTPUTS = 10_000
NESTED_CHAIN, NESTED_RUNS = 3, 300

_NO_LIMIT = 10**9


class Bounce(Executor):
    """Sends n + 1 until the limit, then yields it."""

    def __init__(self, name: str, limit: int, probe: Callable[[int], None] | None = None) -> None:
        super().__init__(name)
        self.limit, self.probe = limit, probe

    @handler
    async def on_int(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        if self.probe is not None:
            self.probe(n)
        if n >= self.limit:
            await ctx.yield_output(n)
        else:
            await ctx.send_message(n + 1)


class Sleepy(Bounce):
    """The same after a nap."""

    @handler
    async def on_int(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        await asyncio.sleep(0.001)
        if n >= self.limit:
            await ctx.yield_output(n)
        else:
            await ctx.send_message(n + 1)


class Hop(Executor):
    @handler
    async def on_int(self, n: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(n + 1)


class End(Executor):
    @handler
    async def on_int(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.yield_output(n)


class Join(Executor):
    """Gets a list, starts the next round, and yields at the end of the last one."""

    def __init__(self, name: str, rounds: int) -> None:
        super().__init__(name)
        self.rounds, self.seen = rounds, 0

    @handler
    async def on_list(self, items: list[int], ctx: WorkflowContext[int, int]) -> None:
        self.seen += 1
        if self.seen % self.rounds == 0:
            await ctx.yield_output(len(items))
        else:
            await ctx.send_message(self.seen)


class Talk(Executor):
    """Yields many outputs in one superstep, pausing before each as a model client does."""

    @handler
    async def on_int(self, n: int, ctx: WorkflowContext[int, str]) -> None:
        for _ in range(n):
            await asyncio.sleep(0)
            await ctx.yield_output("tok ")


def ping_pong(kind: type[Bounce], limit: int, *more: Any) -> Workflow:
    """Two executors that send a number back and forth."""
    ping, pong = kind("ping", limit, *more), kind("pong", limit, *more)
    builder = WorkflowBuilder(start_executor=ping, max_iterations=_NO_LIMIT, name="ping_pong")
    return builder.add_edge(ping, pong).add_edge(pong, ping).build()


def chain(length: int) -> Workflow:
    """Executors one after the other."""
    hops = [Hop(f"h{number}") for number in range(length - 1)]
    builder = WorkflowBuilder(start_executor=hops[0], max_iterations=_NO_LIMIT, name="chain")
    for a, b in pairwise([*hops, End("end")]):
        builder.add_edge(a, b)
    return builder.build()


def ring(length: int, prefix: str = "h") -> Workflow:
    """Executors in a circle, for runs that do not end."""
    hops = [Hop(f"{prefix}{number}") for number in range(length)]
    builder = WorkflowBuilder(start_executor=hops[0], max_iterations=_NO_LIMIT, name="ring")
    return builder.add_chain([*hops, hops[0]]).build()


def nested(workflow: Workflow, levels: int) -> Workflow:
    """The workflow inside that many others."""
    for level in range(levels):
        node = WorkflowExecutor(workflow, f"level {level}", allow_direct_output=True)
        workflow = WorkflowBuilder(start_executor=node, max_iterations=_NO_LIMIT).build()
    return workflow


def _nested_runs(levels: int) -> Prepare:
    """Many short runs, each of which goes through all levels."""
    return _runs(lambda: nested(chain(NESTED_CHAIN), levels), NESTED_CHAIN - 1, NESTED_RUNS)


def fan(width: int, rounds: int) -> Workflow:
    """One source, many targets, one that waits for all of them."""
    source, join = Hop("source"), Join("join", rounds)
    targets = [Hop(f"t{number}") for number in range(width)]
    builder = WorkflowBuilder(start_executor=source, max_iterations=_NO_LIMIT, name="fan")
    return builder.add_fan_out_edges(source, targets).add_fan_in_edges(targets, join).add_edge(join, source).build()


def _runs(make: Callable[[], Workflow], expected: int, times: int = 1) -> Prepare:
    """Whole runs of one workflow that was built before."""

    def prepare() -> Callable[[], Any]:
        workflow = make()

        async def once() -> None:
            for _ in range(times):
                outputs = (await workflow.run(0)).get_outputs()
                assert outputs == [expected], outputs

        return once

    return awaited(prepare)


async def _increment(n: int) -> int:
    return n + 1


def _bare_steps(count: int) -> Prepare:
    async def once() -> None:
        n = 0
        while n < count:
            (n,) = await asyncio.gather(asyncio.create_task(_increment(n)))

    return awaited(lambda: once)


async def _bare_fan() -> None:
    for _ in range(FAN_ROUNDS):
        results = await asyncio.gather(*(asyncio.create_task(_increment(i)) for i in range(FAN)))
        (found,) = await asyncio.gather(asyncio.create_task(_increment(len(results))))
        assert found == FAN + 1, found


def _build_chain(_: object) -> Callable[[], object]:
    return lambda: chain(BUILT)


def _build_small(_: object) -> Callable[[], object]:
    return lambda: [ping_pong(Bounce, 10) for _ in range(SMALL_BUILDS)]


def _many_runs() -> Callable[[], Any]:
    # An instance runs once at a time, so each run has its own.
    workflows = [ping_pong(Sleepy, RUN_SUPERSTEPS) for _ in range(RUNS)]

    async def once() -> None:
        results = await asyncio.gather(*(workflow.run(0) for workflow in workflows))
        assert all(result.get_outputs() == [RUN_SUPERSTEPS] for result in results)

    return once


async def _bare_many_runs() -> None:
    async def one() -> None:
        for _ in range(RUN_SUPERSTEPS + 1):
            await asyncio.sleep(0.001)

    await asyncio.gather(*(one() for _ in range(RUNS)))


def _stream() -> Callable[[], Any]:
    workflow = WorkflowBuilder(start_executor=Talk("talk"), name="talk").build()

    async def once() -> None:
        found = 0
        async for event in workflow.run(OUTPUTS, stream=True):
            found += event.type == "output"
        assert found == OUTPUTS, found

    return once


async def _bare_stream() -> None:
    queue: asyncio.Queue[str | None] = asyncio.Queue()

    async def pump() -> None:
        for _ in range(OUTPUTS):
            await asyncio.sleep(0)
            queue.put_nowait("tok ")
        queue.put_nowait(None)

    task, found = asyncio.create_task(pump()), 0
    while await queue.get() is not None:
        found += 1
    await task
    assert found == OUTPUTS, found


WORKLOADS = (
    Workload(
        name="W1",
        what="a superstep of two executors that play ping-pong",
        unit="us",
        per_call=SUPERSTEPS,
        agentbench=_runs(lambda: ping_pong(Bounce, SUPERSTEPS), SUPERSTEPS),
        bare=_bare_steps(SUPERSTEPS),
    ),
    Workload(
        name="W2",
        what="a message of a fan-out to 100 executors and back to one",
        unit="us",
        per_call=FAN_ROUNDS * 2 * FAN,
        agentbench=_runs(lambda: fan(FAN, FAN_ROUNDS), FAN),
        bare=awaited(lambda: _bare_fan),
    ),
    Workload(
        name="W3",
        what="a hop in a chain of 50, the start of the run included",
        unit="us",
        per_call=CHAIN * CHAIN_RUNS,
        agentbench=_runs(lambda: chain(CHAIN), CHAIN - 1, CHAIN_RUNS),
        bare=_bare_steps(CHAIN * CHAIN_RUNS),
    ),
    Workload(
        name="W3 nested",
        what="a run of a chain of 3 inside three levels of sub-workflows; bare: inside one level",
        unit="us",
        per_call=NESTED_RUNS,
        agentbench=_nested_runs(3),
        bare=_nested_runs(1),
    ),
    Workload(name="W3 build", what="building a chain of 500", unit="ms", per_call=1, agentbench=_build_chain),
    Workload(
        name="W6 engine",
        what="an output of a run that streams 10,000 in one superstep",
        unit="us",
        per_call=OUTPUTS,
        agentbench=awaited(_stream),
        bare=awaited(lambda: _bare_stream),
    ),
    Workload(
        name="W7 build",
        what="making two executors and a workflow of them",
        unit="us",
        per_call=SMALL_BUILDS,
        agentbench=_build_small,
    ),
    Workload(
        name="W10",
        what="1,000 runs at once, 20 supersteps of 1 ms each",
        unit="s",
        per_call=1,
        agentbench=awaited(_many_runs),
        bare=awaited(lambda: _bare_many_runs),
        by_wall=True,
    ),
)
