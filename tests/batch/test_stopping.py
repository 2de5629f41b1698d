"""Batches that are stopped, closed, or continued at the moment at which they end."""

from __future__ import annotations

import asyncio
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from agentbench import Executor, Workflow, WorkflowBuilder, WorkflowContext, executor, handler, response_handler
from agentbench.batch import RowStatus, run_many
from agentbench.exceptions import BatchError
from tests.parts.errors import raises


def pausing() -> Workflow:
    @executor(id="pause")
    async def pause(number: int, ctx: WorkflowContext[Any, int]) -> None:
        await asyncio.sleep(0)
        await ctx.yield_output(number)

    return WorkflowBuilder(start_executor=pause, name="pausing").build()


class Ask(Executor):
    """Asks whether to go on."""

    @handler
    async def ask(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.request_info(f"Go on with {number}?", bool)

    @response_handler
    async def hear(self, question: str, yes: bool, ctx: WorkflowContext[int, int]) -> None:
        await ctx.yield_output(int(yes))


async def test_a_batch_can_be_closed_on_the_event_loop_that_runs_it(tmp_path: Path) -> None:
    batch = run_many(pausing(), range(200), tmp_path / "rows.db", concurrency=2)
    async for _ in batch:
        break
    batch.close()
    await batch
    assert batch.progress.state == "cancelled"


async def test_a_call_that_would_block_the_event_loop_of_the_batch_is_an_error() -> None:
    batch = run_many(pausing(), range(200), concurrency=2)
    async for _ in batch:
        break
    with raises(BatchError):
        batch.result()
    with raises(BatchError):
        next(iter(batch))
    await batch
    assert batch.progress.counts["finished"] == 200


def test_a_batch_that_is_cancelled_at_its_start_finishes_nothing() -> None:
    gate = asyncio.Event()

    @executor(id="wait")
    async def wait(number: int, ctx: WorkflowContext[Any, int]) -> None:
        await gate.wait()
        await ctx.yield_output(number)

    batch = run_many(WorkflowBuilder(start_executor=wait).build(), range(20)).start()
    batch.cancel()
    batch.result()
    assert batch.progress.state == "cancelled"
    assert batch.progress.counts["finished"] == 0
    gate.set()
    assert batch.resume().result().progress.counts["finished"] == 20


@pytest.mark.parametrize("waits", ["result", "for"])
def test_ctrl_c_ends_the_runs_before_the_program_goes_on(tmp_path: Path, waits: str) -> None:
    @executor(id="interrupt")
    async def interrupt(number: int, ctx: WorkflowContext[Any, int]) -> None:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(60)

    workflow = WorkflowBuilder(start_executor=interrupt, name="interrupting").build()
    batch = run_many(workflow, [1], tmp_path / "rows.db")
    with raises(KeyboardInterrupt):
        batch.result() if waits == "result" else list(batch)
    assert batch.progress.state == "cancelled"
    assert [row.status in (RowStatus.CANCELLED, RowStatus.OPEN) for row in batch.rows()] == [True]
    assert batch.store.busy() == 0
    batch.close()


async def test_an_answer_that_comes_while_the_batch_ends_is_carried_out(tmp_path: Path) -> None:
    batch = run_many(WorkflowBuilder(start_executor=Ask("ask")).build(), [1, 2], tmp_path / "rows.db")
    give_up_claims = batch.store.give_up_claims

    def answer_first() -> None:
        if batch.waiting:
            batch.answer_now(lambda question: True)
        give_up_claims()

    batch.store.give_up_claims = answer_first  # type: ignore[method-assign]
    await batch
    assert [row.output for row in batch.rows()] == [1, 1]
    batch.close()


async def test_answers_before_one_that_does_not_fit_are_carried_out() -> None:
    batch = await run_many(WorkflowBuilder(start_executor=Ask("ask")).build(), [1, 2, 3])
    with raises(ValueError):
        await batch.answer(lambda question: "perhaps" if "2" in question.request.data else True)
    await batch
    assert [row.status for row in batch.rows()] == [RowStatus.FINISHED, RowStatus.WAITING, RowStatus.WAITING]
