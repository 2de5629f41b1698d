"""The workflow that browser tests step."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from agentbench import Executor, Workflow, WorkflowBuilder, WorkflowContext
from agentbench.workflows.executors.handlers import handler, response_handler

held: list[Callable[[], object]] = []  # calls, from any thread, that let a search go on


@dataclass
class Draft:
    prompt: str
    text: str


class Plan(Executor):
    @handler
    async def plan(self, topic: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("topic", topic)
        await ctx.send_message(f"plan for {topic}")


class Search(Executor):
    """Looks for papers; if told to, fails the first time, or holds until it is let go."""

    def __init__(self, name: str, *, fails: bool = False, holds: bool = False) -> None:
        super().__init__(id=name)
        self.fails, self.holds = fails, holds

    @handler
    async def search(self, plan: str, ctx: WorkflowContext[str]) -> None:
        if self.holds:
            go_on = asyncio.Event()
            held.append(partial(asyncio.get_running_loop().call_soon_threadsafe, go_on.set))
            await go_on.wait()
        if self.fails:
            self.fails = False
            raise ConnectionError("the index cannot be reached")
        await ctx.send_message(f"3 papers in {self.id}")


class Review(Executor):
    @handler
    async def review(self, found: list[str], ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("found", found)
        await ctx.request_info(Draft("Publish this draft?", ", ".join(found)), bool)

    @response_handler
    async def answered(self, asked: Draft, ok: bool, ctx: WorkflowContext[str, str]) -> None:
        if ok:
            await ctx.send_message(asked.text)
        else:
            await ctx.yield_output("rejected")


class Publish(Executor):
    @handler
    async def publish(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"published: {text}")


class Step(Executor):
    """Hands on what it gets."""

    @handler
    async def go(self, plan: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(plan)


def build(nodes: int = 5, **search: bool) -> Workflow:
    """`plan` asks two searches, `review` joins them and asks a person, `publish` tells.

    With more than five nodes, the others go their own ways beside them: ten steps in every superstep.
    """
    plan, review, publish = Plan(id="plan"), Review(id="review"), Publish(id="publish")
    library, archive = Search("library", **search), Search("archive")
    steps = [Step(id=f"step {number}") for number in range(nodes - 5)]
    builder = (
        WorkflowBuilder(start_executor=plan, name="research-flow")
        .add_fan_out_edges(plan, [library, archive, *steps[:10]])
        .add_fan_in_edges([library, archive], review)
        .add_edge(review, publish)
    )
    for before, after in zip(steps, steps[10:], strict=False):
        builder.add_edge(before, after)
    return builder.build()
