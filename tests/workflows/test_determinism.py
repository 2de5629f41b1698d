"""The law of supersteps: what a run does depends on its graph and its input, never on timing."""

import asyncio
import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from agentbench._clock import CountingIds, TickingClock
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.graph.edges import Case, Default

# ---- random graphs as data -------------------------------------------------------------------------


@dataclass(frozen=True)
class Chain:
    length: int


@dataclass(frozen=True)
class FanOut:
    """One to several, all of them or a selection, and back to one: each on its own, or gathered."""

    width: int
    barrier: bool
    selects: bool


@dataclass(frozen=True)
class Switch:
    width: int


@dataclass(frozen=True)
class Cycle:
    rounds: int


@dataclass(frozen=True)
class Recipe:
    """A graph: segments one after the other, and what its nodes do besides passing messages on."""

    segments: tuple[Any, ...]
    doubles: frozenset[int]  # nodes that send everything twice
    asks: frozenset[int]  # nodes that ask
    serial: frozenset[int]  # nodes that handle one message at a time


segments = st.one_of(
    st.builds(Chain, st.integers(1, 2)),
    st.builds(FanOut, st.integers(2, 3), st.booleans(), st.booleans()),
    st.builds(Switch, st.integers(2, 3)),
    st.builds(Cycle, st.integers(1, 3)),
)
some_nodes = st.frozensets(st.integers(0, 9), max_size=2)
recipes = st.builds(Recipe, st.lists(segments, min_size=1, max_size=4).map(tuple), some_nodes, some_nodes, some_nodes)
hops = st.lists(st.integers(0, 4), min_size=1, max_size=40)


class Node(Executor):
    """Writes state, sends, yields and asks, and may be interrupted between any two of these."""

    def __init__(self, number: int, recipe: Recipe, pauses: Iterator[int]) -> None:
        super().__init__(f"n{number}")
        self.number, self.recipe, self.pauses = number, recipe, pauses
        self.serialize = number in recipe.serial

    async def pause(self) -> None:
        for _ in range(next(self.pauses)):
            await asyncio.sleep(0)

    async def work(self, text: str, ctx: Any) -> None:
        await self.pause()
        ctx.set_state(f"{self.id} in {ctx.task_id}", text)
        await self.pause()
        await ctx.send_message(f"{text}/{self.id}")
        if self.number in self.recipe.doubles:
            await self.pause()
            await ctx.send_message(f"{text}/{self.id}'")
        if self.number in self.recipe.asks:
            await ctx.request_info(text, str, request_id=ctx.task_id)
        await self.pause()
        await ctx.yield_output(f"{self.id}: {text}")

    @response_handler
    async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext) -> None:
        """Takes any answer."""


class One(Node):
    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await self.work(text, ctx)


class Gather(Node):
    @handler
    async def on_texts(self, texts: list[str], ctx: WorkflowContext[str, str]) -> None:
        await self.work("+".join(texts), ctx)


def length_is(n):
    return lambda text: len(text) % 3 == n


def been_at(node, times):
    """Whether a message has passed a node more often than so many times."""
    return lambda text: text.count(node.id) > times


def not_yet(condition):
    return lambda text: not condition(text)


def by_length(text, targets):
    return [t for place, t in enumerate(targets) if place != len(text) % len(targets)]


def built(recipe, pauses):
    """The workflow of a recipe; equal for equal recipes but for its pauses."""
    endless = itertools.cycle(pauses)
    numbers = itertools.count()

    def node(kind=One):
        return kind(next(numbers), recipe, endless)

    last = node()
    builder = WorkflowBuilder(name="random", start_executor=last, max_iterations=200, checkpoint_storage=None)
    for segment in recipe.segments:
        if isinstance(segment, Chain):
            chain = [last, *(node() for _ in range(segment.length))]
            builder.add_chain(chain)
            last = chain[-1]
        elif isinstance(segment, FanOut):
            targets = [node() for _ in range(segment.width)]
            builder.fan_out(last, targets, by_length if segment.selects else None)
            last = node(Gather if segment.barrier else One)
            builder.fan_in(targets, last, mode="barrier" if segment.barrier else "independent")
        elif isinstance(segment, Switch):
            targets = [node() for _ in range(segment.width)]
            cases = [Case(length_is(n), t) for n, t in enumerate(targets[:-1])]
            builder.switch(last, [*cases, Default(targets[-1])])
            last = node()
            for target in targets:
                builder.connect(target, last)
        else:
            around, out = node(), node()
            enough = been_at(around, segment.rounds)
            builder.connect(last, around).connect(around, around, not_yet(enough)).connect(around, out, enough)
            last = out
    return builder.build()


# ---- what a run did, without its timing ------------------------------------------------------------


def without_timing(events):
    """Events in the order of the plan: by superstep, delivery and place within the delivery."""
    placed = sorted(events, key=lambda e: (e.superstep, -1 if e.order is None else e.order, e.seq))
    dropped = ("seq", "time_ns", "duration_s")
    return [{k: v for k, v in e.to_json_dict().items() if k not in dropped} for e in placed]


def in_order(checkpoint):
    """A checkpoint with the order of its messages, which comparing dicts would overlook."""
    written = checkpoint.to_dict()
    written["messages"] = list(written["messages"].items())
    buffers = written["state"].get("_fan_in_buffers", {})
    written["buffers"] = [(key, source, held) for key, waiting in buffers.items() for source, held in waiting.items()]
    written["requests"] = {i: e.to_dict() for i, e in written.pop("pending_request_info_events").items()}
    return written


async def done(recipe, pauses, *, stepped=False):
    """Events and checkpoints of one run of a recipe."""
    storage = InMemoryCheckpointStorage()
    options = RunOptions(observe=True, clock=TickingClock(), ids=CountingIds())
    run = built(recipe, pauses).start("x", checkpoint_storage=storage, options=options)
    if stepped:
        while not run.is_over and run.status.name.startswith(("STARTED", "IN_PROGRESS")):
            await run.step()
    else:
        await run.result()
    checkpoints = await storage.list_checkpoints(workflow_name="random")
    return without_timing(run.events), [in_order(c) for c in checkpoints], sorted(run.outputs)


LOOPING = Recipe((FanOut(3, False, False), Cycle(2)), frozenset({0, 2}), frozenset({1}), frozenset({4}))
GATHERING = Recipe((FanOut(2, True, True), FanOut(2, True, False)), frozenset({0}), frozenset(), frozenset())


@given(recipes, hops, hops)
@example(LOOPING, [4, 0, 3], [0, 2])
@example(GATHERING, [1, 0], [3])
def test_a_graph_and_an_input_determine_events_and_checkpoints(recipe, pauses, others):
    async def main():
        undisturbed = await done(recipe, [0])
        assert undisturbed[0][0]["type"] == "started"
        assert undisturbed[1]
        for run in (done(recipe, pauses), done(recipe, others), done(recipe, pauses, stepped=True)):
            assert await run == undisturbed

    asyncio.run(main())
