"""Workflows of known shapes, from the real builder."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agentbench import Case, Default, Executor, Workflow, WorkflowBuilder, WorkflowContext, handler, response_handler


class Step(Executor):
    """Hands on what it gets."""

    @handler
    async def go(self, message: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(message)


class Gather(Executor):
    """Takes single messages and lists of them."""

    @handler
    async def one(self, message: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(message)

    @handler
    async def many(self, message: list[str], ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(" ".join(message))


class Yield(Executor):
    """Ends with an output."""

    @handler
    async def go(self, message: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(message)


class Fail(Executor):
    """Raises."""

    @handler
    async def go(self, message: str, ctx: WorkflowContext[str]) -> None:
        raise ValueError(message)


@dataclass
class Question:
    """What `Ask` asks."""

    text: str


class Ask(Executor):
    """Asks a person, and hands on the message when the answer is yes."""

    @handler
    async def go(self, message: str, ctx: WorkflowContext[str]) -> None:
        await ctx.request_info(Question(message), bool)

    @response_handler
    async def answered(self, question: Question, answer: bool, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(question.text if answer else "no")


def needs_review(message: str) -> bool:
    return True


def score_low(message: str) -> bool:
    return False


def is_spam(message: str) -> bool:
    return False


def pick(message: str, targets: list[str]) -> list[str]:
    return targets[:1]


def research(name: str = "research-flow") -> Workflow:
    """Five nodes: a start, a condition, a question, a loop and an output."""
    plan, search, draft, review, publish = Step("plan"), Step("search"), Step("draft"), Ask("review"), Yield("publish")
    return (
        WorkflowBuilder(start_executor=plan, name=name)
        .add_edge(plan, search)
        .add_edge(search, draft)
        .add_edge(draft, review, condition=needs_review)
        .add_edge(review, publish)
        .add_edge(review, draft, condition=score_low)
        .build()
    )


def desk() -> Workflow:
    """A switch, a selection, a fan-in."""
    intake, spam, triage = Step("intake"), Step("spam_bin"), Step("triage")
    billing, sales, merge = Step("billing"), Step("sales"), Gather("merge")
    return (
        WorkflowBuilder(start_executor=intake, name="desk")
        .add_switch_case_edge_group(intake, [Case(is_spam, spam), Default(triage)])
        .add_multi_selection_edge_group(triage, [billing, sales], pick)
        .add_fan_in_edges([billing, sales], merge)
        .build()
    )


def chain(ids: Sequence[str], name: str = "chain") -> Workflow:
    """One node after the other."""
    steps: list[Any] = [Step(each) for each in ids]
    builder = WorkflowBuilder(start_executor=steps[0], name=name)
    for source, target in itertools.pairwise(steps):
        builder.add_edge(source, target)
    return builder.build()


def loops() -> Workflow:
    """A loop of one node, a short loop inside a long one."""
    plan, act, look, finish = Step("plan"), Step("act"), Step("observe"), Yield("finish")
    return (
        WorkflowBuilder(start_executor=plan, name="loops")
        .add_edge(plan, act)
        .add_edge(act, act, condition=score_low)
        .add_edge(act, look)
        .add_edge(look, act, condition=needs_review)
        .add_edge(look, plan, condition=score_low)
        .add_edge(look, finish)
        .build()
    )


def farm(n_workers: int) -> Workflow:
    """One node, many that look alike, one that joins them, one more."""
    split, join, report = Step("split"), Gather("join"), Step("report")
    workers: list[Any] = [Step(f"worker_{index}") for index in range(n_workers)]
    return (
        WorkflowBuilder(start_executor=split, name="farm")
        .add_fan_out_edges(split, workers)
        .add_fan_in_edges(workers, join)
        .add_edge(join, report)
        .build()
    )


def layers(n_nodes: int, width: int = 10) -> Workflow:
    """A wide graph without look-alikes: each node but the first `width` follows one of the layer before."""
    steps: list[Any] = [Step(f"step_{index:04d}") for index in range(n_nodes)]
    builder = WorkflowBuilder(start_executor=steps[0], name="layers")
    for index in range(1, n_nodes):
        builder.add_edge(steps[max(0, index - width)], steps[index])
    return builder.build()


class Nest(Executor):
    """A node with a workflow inside."""

    def __init__(self, executor_id: str, workflow: Workflow) -> None:
        super().__init__(id=executor_id)
        self.workflow = workflow

    @handler
    async def go(self, message: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(message)


def nested() -> Workflow:
    """A sub-workflow in a sub-workflow."""
    deep = Nest("deep", chain(["x", "y"], "deepest"))
    first, last = Step("in"), Step("out")
    inner = WorkflowBuilder(start_executor=first, name="inner").add_edge(first, deep).add_edge(deep, last).build()
    before, middle, after = Step("before"), Nest("middle", inner), Step("after")
    return WorkflowBuilder(start_executor=before, name="outer").add_edge(before, middle).add_edge(middle, after).build()
