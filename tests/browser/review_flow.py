"""The workflow that browser tests step; copied beside their notebooks."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from agentbench.workflow.builder import WorkflowBuilder
from agentbench.workflow.context import WorkflowContext
from agentbench.workflow.executor import Executor
from agentbench.workflow.handlers import handler, response_handler
from agentbench.workflow.workflow import Workflow


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
    """Looks for papers; fails the first time if told to, takes as long as it is told to."""

    def __init__(self, name: str, *, seconds: float = 0.0, fails: bool = False, holds: bool = False) -> None:
        super().__init__(id=name)
        self.seconds, self.fails, self.holds = seconds, fails, holds

    @handler
    async def search(self, plan: str, ctx: WorkflowContext[str]) -> None:
        if self.holds:
            await asyncio.Event().wait()
        await asyncio.sleep(self.seconds)
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


def build(**search: bool | float) -> Workflow:
    """`plan` asks two searches, `review` joins them and asks a person, `publish` tells."""
    plan, review, publish = Plan(id="plan"), Review(id="review"), Publish(id="publish")
    library, archive = Search("library", **search), Search("archive")  # type: ignore[arg-type]
    return (
        WorkflowBuilder(start_executor=plan, name="research-flow")
        .add_fan_out_edges(plan, [library, archive])
        .add_fan_in_edges([library, archive], review)
        .add_edge(review, publish)
        .build()
    )
