"""Mistakes of the first day: what is forgotten, undeclared or cannot happen is named."""

from __future__ import annotations

import asyncio
import functools
import inspect
from typing import Any, Never

import pytest

from agentbench import (
    Case,
    Default,
    Executor,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
    run_sync,
)
from agentbench.exceptions import WorkflowWarning
from tests.parts.errors import raises, warns


@executor(id="start")
async def start(number: int, ctx: WorkflowContext[int]) -> None:
    await ctx.send_message(number)


@executor(id="left")
async def left(number: int, ctx: WorkflowContext[int]) -> None:
    await ctx.send_message(number)


@executor(id="right")
async def right(number: int, ctx: WorkflowContext[int]) -> None:
    await ctx.send_message(number)


@executor(id="end")
async def end(number: int, ctx: WorkflowContext[Never, int]) -> None:
    await ctx.yield_output(number)


class Join(Executor):
    @handler
    async def join(self, numbers: list[int], ctx: WorkflowContext[Never, int]) -> None:
        await ctx.yield_output(sum(numbers))


def chain(condition: Any = None) -> Workflow:
    return WorkflowBuilder(start_executor=start).add_edge(start, end, condition=condition).build()


@pytest.mark.parametrize("name", ["outputs", "get_outputs", "final_state", "warnings"])
def test_a_run_that_is_read_without_await_says_how_to_wait_for_it(name: str):
    run = chain().run(1)
    with raises(AttributeError, f"workflow.run(...)).{name}", "run_sync"):
        getattr(run, name)
    run.close()


async def test_a_run_can_be_awaited_in_every_way_of_a_coroutine():
    assert (await asyncio.create_task(chain().run(1))).outputs == [1]
    assert [each.outputs for each in await asyncio.gather(chain().run(2), chain().run(3))] == [[2], [3]]
    assert (await asyncio.wait_for(chain().run(4), 30)).outputs == [4]


@pytest.mark.parametrize("name", ["run", "start", "as_agent"])
def test_a_builder_that_is_run_says_to_build_first(name: str):
    with raises(AttributeError, f"builder.build().{name}"):
        getattr(WorkflowBuilder(start_executor=start), name)
    with raises(AttributeError, "'colour'"):
        WorkflowBuilder(start_executor=start).colour  # noqa: B018


@pytest.mark.filterwarnings("ignore:coroutine 'WorkflowContext.*' was never awaited:RuntimeWarning")
@pytest.mark.parametrize("observed", [False, True])
async def test_a_forgotten_await_is_a_warning_of_the_run(observed: bool):
    @executor(id="hasty")
    async def hasty(number: int, ctx: WorkflowContext[Never, int]) -> None:
        ctx.yield_output(number)

    workflow = WorkflowBuilder(start_executor=hasty).build()
    result = await workflow.start(1).result() if observed else await workflow.run(1)
    assert result.outputs == []
    [warning] = result.warnings
    assert "'hasty'" in warning
    assert "without await" in warning
    assert f"line {inspect.getsourcelines(test_a_forgotten_await_is_a_warning_of_the_run)[1] + 5} " in warning


@pytest.mark.filterwarnings("ignore:coroutine 'WorkflowContext.*' was never awaited:RuntimeWarning")
async def test_a_forgotten_await_is_found_in_a_decorated_handler():
    def timed(function: Any) -> Any:
        @functools.wraps(function)
        async def call(*args: Any) -> None:
            await function(*args)

        return call

    class Hasty(Executor):
        @handler
        @timed
        async def take(self, number: int, ctx: WorkflowContext[Never, int]) -> None:
            ctx.yield_output(number)

    result = await WorkflowBuilder(start_executor=Hasty("hasty")).build().run(1)
    assert len(result.warnings) == 1


@executor(id="careful")
async def careful(number: int, ctx: WorkflowContext[int, int]) -> None:
    sending = ctx.send_message(number)
    await asyncio.gather(sending, ctx.yield_output(number))
    ctx.set_state("smtp", 1)
    Post().send_message(number)


class Post:
    def send_message(self, number: int) -> None:
        """Send a mail at once: this is no method of a context."""


@executor(id="plain")
def plain(number: int, ctx: WorkflowContext[Never, int]) -> None:
    ctx.yield_output(number)


async def test_what_is_awaited_later_or_need_not_be_is_no_forgotten_await():
    result = await WorkflowBuilder(start_executor=careful).add_edge(careful, plain).build().run(1)
    assert result.outputs == [1, 1]
    assert result.warnings == []


async def test_a_message_that_no_condition_lets_pass_leaves_a_trace():
    [warning] = (await chain(lambda number: number > 5).run(1)).warnings
    assert "No condition" in warning
    assert (await chain(lambda number: number > 5).run(6)).warnings == []


async def test_an_output_of_an_undeclared_type_leaves_a_trace():
    @executor(id="loose")
    async def loose(number: int, ctx: WorkflowContext[Never, int]) -> None:
        await ctx.yield_output("text")  # type: ignore[arg-type]

    result = await WorkflowBuilder(start_executor=loose).build().run(1)
    assert result.outputs == ["text"]
    [warning] = result.warnings
    assert "type str; it declares int" in warning


def test_a_fan_in_of_branches_of_which_one_is_chosen_is_reported_when_it_is_built():
    builder = WorkflowBuilder(start_executor=start)
    builder.add_switch_case_edge_group(start, [Case(lambda number: number > 0, left), Default(right)])
    with warns(WorkflowWarning, "'join'", "'left'", "'right'"):
        builder.add_fan_in_edges([left, right], Join("join")).build()


def test_a_fan_in_that_can_fire_is_not_reported():
    WorkflowBuilder(start_executor=start).add_fan_out_edges(start, [left, right]).add_fan_in_edges(
        [left, right], Join("join")
    ).build()
    looped = WorkflowBuilder(start_executor=start)
    looped.add_switch_case_edge_group(start, [Case(lambda number: number > 0, left), Default(right)])
    looped.add_edge(left, start).add_fan_in_edges([left, right], Join("join")).build()


def test_a_warning_of_a_run_without_await_reaches_the_user():
    """Such a run is on another thread than the code of the user."""

    @executor(id="sender")
    async def sender(number: int, ctx: WorkflowContext[Any]) -> None:
        await ctx.send_message("text")

    workflow = WorkflowBuilder(start_executor=sender).add_edge(sender, start).build()
    with warns(WorkflowWarning, "'start'"):
        run_sync(workflow.run(1))
