"""Executors that many tests of the engine use."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterable
from typing import Any

from agentbench import Executor, Workflow, WorkflowBuilder, WorkflowContext, WorkflowEvent, handler, response_handler


class Pass(Executor):
    """Sends its input on, with its own id added."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(f"{text}>{self.id}")


class Show(Executor):
    """Yields its input."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{text}!")


class Join(Executor):
    """Yields all that a barrier gathered."""

    @handler
    async def on_texts(self, texts: list[str], ctx: WorkflowContext[str, list[str]]) -> None:
        await ctx.yield_output(texts)


class Fail(Executor):
    """Writes state, sends, asks, and raises while `broken`."""

    broken = True
    error: Exception = KeyError("k")

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("written by the broken", text)
        await ctx.send_message("from the broken")
        await ctx.request_info("why?", str)
        if self.broken:
            raise self.error
        await ctx.yield_output("mended")

    @response_handler
    async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext) -> None:
        """Takes any answer."""


class Wait(Executor):
    """Waits on its gate before it yields; notes how it ended."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.gate = asyncio.Event()
        self.entered = asyncio.Event()
        self.ended = ""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        self.entered.set()
        try:
            await self.gate.wait()
        except asyncio.CancelledError:
            self.ended = "cancelled"
            raise
        ctx.set_state("waited", text)
        await ctx.send_message("late")
        await ctx.yield_output("late")
        self.ended = "ran on"


class Again(Executor):
    """Sends itself or its partner messages until the count is down."""

    @handler
    async def on_number(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        if n:
            await ctx.send_message(n - 1)
        else:
            await ctx.yield_output(n)


def chain(*executors: Executor, **settings: Any) -> Workflow:
    """Executors in a row."""
    builder = WorkflowBuilder(start_executor=executors[0], **settings)
    if len(executors) > 1:
        builder.add_chain(list(executors))
    return builder.build()


async def collect(stream: AsyncIterable[WorkflowEvent[Any]], into: list[WorkflowEvent[Any]]) -> None:
    """Read a stream into a list that keeps what came before an error."""
    async for event in stream:
        into.append(event)  # noqa: PERF401 - an extend would lose what came before an error


def brief(events: Any) -> list[str]:
    """Events as short texts: type, executor or state or number."""
    return [_brief(event) for event in events]


def _brief(event: WorkflowEvent[Any]) -> str:
    detail = event.source_id or event.state or event.iteration
    return event.type if detail is None else f"{event.type} {detail}"
