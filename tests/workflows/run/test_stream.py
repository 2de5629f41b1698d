import asyncio
import contextlib
import gc
import weakref
from typing import Any

import pytest

from agentbench import run_sync
from agentbench.exceptions import NestedLoopError
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.events.events import WorkflowEvent, WorkflowRunState
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.options import RunOptions
from tests.parts.errors import raises

CHAIN = [
    "started",
    "status IN_PROGRESS",
    "executor_invoked first",
    "executor_completed first",
    "superstep_started 1",
    "executor_invoked show",
    "output show",
    "executor_completed show",
    "superstep_completed 1",
    "status IDLE",
]


class First(Executor):
    """Passes its input on, after telling what `do` says."""

    def __init__(self, do=None):
        super().__init__("first")
        self.do = do

    @handler
    async def run(self, text: str, ctx: WorkflowContext[str]) -> None:
        if self.do is not None:
            await self.do(text, ctx)
        await ctx.send_message(text)


@executor
async def show(text: str, ctx: WorkflowContext[Any, str]) -> None:
    await ctx.yield_output(text.upper())


def flow(do=None, **settings):
    first = First(do)
    return WorkflowBuilder(name="flow", start_executor=first, **settings).add_edge(first, show).build()


def brief(events):
    return [f"{e.type} {e.source_id or e.state or e.iteration or ''}".strip() for e in events]


async def fail(text, ctx):
    raise KeyError(text)


async def test_awaiting_a_stream_gives_the_stream():
    stream = flow().run("ab", stream=True)
    assert await stream is stream
    assert brief([e async for e in stream]) == CHAIN
    assert await stream is stream


# ---- reading -------------------------------------------------------------------------------------


async def test_the_final_response_is_the_result_and_always_the_same_object():
    stream = flow().run("ab", stream=True)
    result = await stream.get_final_response()
    assert result.outputs == ["AB"]
    assert await stream.get_final_response() is result
    assert result == [e for e in result if e.type not in ("started", "status")]


async def test_the_final_response_consumes_what_is_left_and_holds_what_was_read_before():
    stream = flow().run("ab", stream=True)
    read = [await anext(stream) for _ in range(4)]
    result = await stream.get_final_response()
    assert brief(read) == CHAIN[:4]
    assert result[:2] == read[2:]
    assert brief(result) == [b for b in CHAIN if not b.startswith(("started", "status"))]
    assert [e async for e in stream] == []


async def test_nothing_runs_before_the_stream_is_read_and_no_further_than_it_is_read():
    begun: list[str] = []

    async def note(text, ctx):
        begun.append(text)

    stream = flow(note).run("ab", stream=True)
    for _ in range(5):
        await asyncio.sleep(0)
    assert begun == []
    await stream.get_final_response()
    assert begun == ["ab"]


async def test_events_come_while_a_handler_runs():
    told, go_on = asyncio.Event(), asyncio.Event()

    async def tell(text, ctx):
        await ctx.add_event(WorkflowEvent("custom", "half way"))
        told.set()
        await go_on.wait()

    async for event in flow(tell).run("ab", stream=True):
        if event.type == "custom":
            assert told.is_set()
            assert not go_on.is_set()
            go_on.set()
    assert go_on.is_set()


async def test_no_timer_is_armed_while_events_are_waited_for(monkeypatch):
    loop = asyncio.get_running_loop()
    armed: list[Any] = []
    monkeypatch.setattr(loop, "call_later", lambda *args, **kwargs: armed.append(args))
    monkeypatch.setattr(loop, "call_at", lambda *args, **kwargs: armed.append(args))

    async def hop(text, ctx):
        for _ in range(10):
            await asyncio.sleep(0)

    result = await flow(hop).run("ab", stream=True).get_final_response()
    assert result.outputs == ["AB"]
    assert armed == []


# ---- failing -------------------------------------------------------------------------------------


async def test_an_error_is_raised_once_after_the_last_event():
    stream = flow(fail).run("ab", stream=True)
    events: list[WorkflowEvent[Any]] = []
    with raises(KeyError, "ab"):
        await collect(stream, events)
    assert brief(events) == [
        "started",
        "status IN_PROGRESS",
        "executor_invoked first",
        "executor_failed first",
        "failed",
        "status FAILED",
    ]
    assert [e async for e in stream] == []


async def collect(stream, events):
    async for event in stream:
        events.append(event)


# ---- leaving early -------------------------------------------------------------------------------


def endless(ended):
    async def wait(text, ctx):
        if text == "again":
            return
        ctx.set_state("unfinished", True)
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(text)

    return wait


class Thing:
    """Something that an event holds."""


@pytest.mark.parametrize("observe", [False, True])
async def test_a_finished_stream_leaves_nothing_behind_that_the_next_run_would_have_to_free(observe):
    held = []

    async def tell(text, ctx):
        held.append(weakref.ref(thing := Thing()))
        await ctx.add_event(WorkflowEvent("custom", thing))

    workflow = flow(tell)
    gc.collect()
    gc.disable()
    try:
        async for _ in workflow.run("hello", stream=True, options=RunOptions(observe=observe)):
            pass
        assert [each() for each in held] == [None]
    finally:
        gc.enable()


async def test_closing_a_stream_breaks_its_run_off_and_frees_the_instance():
    ended: list[str] = []
    workflow = flow(endless(ended))
    stream = workflow.run("ab", stream=True)
    read = [await anext(stream) for _ in range(3)]
    await stream.aclose()
    assert brief(read) == CHAIN[:3]
    assert ended == ["ab"]
    assert [e async for e in stream] == []
    assert not workflow.state.pending
    assert (await workflow.run("again")).outputs == ["AGAIN"]
    partial = await stream.get_final_response()
    assert partial.final_state is WorkflowRunState.CANCELLED
    assert brief(partial) == ["executor_invoked first"]


async def test_leaving_the_loop_and_dropping_the_stream_frees_the_instance():
    ended: list[str] = []
    workflow = flow(endless(ended))
    async for event in workflow.run("ab", stream=True):
        if event.type == "executor_invoked":
            break
    gc.collect()
    assert (await workflow.run("again")).outputs == ["AGAIN"]
    await asyncio.sleep(0)
    assert ended == ["ab"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_a_stream_that_is_kept_after_leaving_the_loop_goes_on_where_it_was_left():
    stream = flow().run("ab", stream=True)
    async for event in stream:
        if event.type == "executor_completed":
            break
    assert brief([e async for e in stream]) == CHAIN[4:]


async def test_the_handlers_of_a_dropped_stream_reach_nothing_any_more():
    late: list[str] = []

    async def stubborn(text, ctx):
        if text == "again":
            return
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            with pytest.raises(RuntimeError):
                ctx.set_state("late", True)
            late.append(text)
            raise

    workflow = flow(stubborn)
    stream = workflow.run("ab", stream=True)
    for _ in range(3):
        await anext(stream)
    del stream
    gc.collect()
    assert (await workflow.run("again")).outputs == ["AGAIN"]
    await asyncio.sleep(0)
    assert late == ["ab"]
    assert workflow.state.export_state() == {}


async def test_a_handler_that_ignores_its_cancellation_does_not_let_the_next_message_in():
    calls: list[str] = []
    entered = asyncio.Event()

    async def twice(text, ctx):
        await ctx.send_message(text + "1")

    @executor
    async def stubborn(text: str, ctx: WorkflowContext[Any]) -> None:
        calls.append(text)
        entered.set()
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.Event().wait()

    first = First(twice)
    stream = WorkflowBuilder(start_executor=first).add_edge(first, stubborn).build().run("x", stream=True)
    async for event in stream:
        if event.source_id == "stubborn":
            break
    await entered.wait()
    del stream
    gc.collect()
    for _ in range(5):
        await asyncio.sleep(0)
    assert calls == ["x1"]
    assert asyncio.all_tasks() == {asyncio.current_task()}


async def test_cancelling_the_reader_cancels_the_run():
    ended: list[str] = []
    workflow = flow(endless(ended))
    stream = workflow.run("ab", stream=True)
    events: list[WorkflowEvent[Any]] = []
    reader = asyncio.ensure_future(collect(stream, events))
    while len(events) < 3:  # noqa: ASYNC110 - the reader has nothing to signal with
        await asyncio.sleep(0)
    reader.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reader
    assert ended == ["ab"]
    assert asyncio.all_tasks() == {asyncio.current_task()}
    assert (await workflow.run("again")).outputs == ["AGAIN"]


def test_a_stream_that_outlives_its_loop_can_be_dropped():
    workflow = flow(endless([]))

    async def main():
        stream = workflow.run("ab", stream=True)
        for _ in range(3):
            await anext(stream)
        return stream

    stream = asyncio.run(main())
    del stream
    gc.collect()

    async def again():
        return (await workflow.run("again")).outputs

    assert asyncio.run(again()) == ["AGAIN"]


# ---- what is kept --------------------------------------------------------------------------------


class Chatty(Executor):
    """Sends itself messages, and yields, warns and asks on the way."""

    @handler
    async def run(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        await ctx.yield_output(n)
        await ctx.add_event(WorkflowEvent.warning(f"at {n}"))
        if n:
            await ctx.send_message(n - 1)
        else:
            await ctx.request_info("more?", int)

    @response_handler
    async def on_more(self, asked: str, n: int, ctx: WorkflowContext[int]) -> None: ...


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("observe", [False, True])
async def test_a_run_that_keeps_no_events_keeps_outputs_requests_warnings_and_states(stream, observe):
    chatty = Chatty("chatty")
    workflow = WorkflowBuilder(start_executor=chatty).add_edge(chatty, chatty).build()
    options = RunOptions(keep_events=False, observe=observe)
    running: Any = workflow.run(3, stream=stream, options=options, include_status_events=True)
    if stream:
        streamed = [e async for e in running]
        assert sum(e.type == "executor_invoked" for e in streamed) == 4
    result = await (running.get_final_response() if stream else running)
    assert result.outputs == [3, 2, 1, 0]
    assert [e.type for e in result] == [
        "status",
        *["output", "warning"] * 4,
        "request_info",
        "status",
        "status",
    ]
    assert result.final_state is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS


async def test_a_handle_that_keeps_no_events_still_reports_each_step():
    chatty = Chatty("chatty")
    workflow = WorkflowBuilder(start_executor=chatty).add_edge(chatty, chatty).build()
    run = workflow.start(3, options=RunOptions(keep_events=False))
    reports: list[Any] = []
    while not reports or reports[-1].status is WorkflowRunState.IN_PROGRESS:
        reports.append(await run.step())
    assert all(any(e.type == "executor_invoked" for e in report.events) for report in reports)
    assert {e.type for e in run.events} == {"started", "status", "output", "warning", "request_info"}
    assert run.result_so_far().outputs == [3, 2, 1, 0]

    watched = workflow.start(3, options=RunOptions(keep_events=False))
    assert sum([e.type == "executor_invoked" async for e in watched.watch_stream()]) == 4
    assert {e.type for e in watched.events} == {"started", "status", "output", "warning", "request_info"}


class Suspends(Executor):
    @handler
    async def take(self, n: int, ctx: WorkflowContext[int, int]) -> None:
        for _ in range(3):
            await asyncio.sleep(0)
        await ctx.yield_output(n)


@pytest.mark.parametrize("as_handle", [False, True])
def test_what_was_begun_on_a_loop_that_is_blocked_now_is_a_named_error_and_can_still_be_awaited(as_handle):
    workflow = WorkflowBuilder(start_executor=Suspends("suspends")).build()

    async def cell() -> None:
        one: Any = workflow.start(3) if as_handle else workflow.run(3, stream=True)
        await anext(one.watch_stream() if as_handle else one)
        rest = one.result if as_handle else one.get_final_response
        with pytest.raises(NestedLoopError):
            run_sync(rest(), timeout=60)
        assert (await rest()).outputs == [3]

    asyncio.run(cell())


async def test_a_handler_that_blocks_its_own_loop_ends_the_stream_with_its_error_each_time():
    @executor(id="blocks")
    async def blocks(number: int, ctx: WorkflowContext) -> None:
        raise NestedLoopError("Agent.run")

    stream = WorkflowBuilder(start_executor=blocks).build().run(3, stream=True)
    for _ in range(2):
        with pytest.raises(NestedLoopError):
            await stream.get_final_response()


def test_a_stream_may_be_read_from_several_loops():
    chatty = Chatty("chatty")
    workflow = WorkflowBuilder(start_executor=chatty).add_edge(chatty, chatty).build()
    stream = workflow.run(3, stream=True)
    run_sync(anext(stream))
    assert asyncio.run(anext(stream)).type == "status"
    assert asyncio.run(stream.get_final_response()).outputs == [3, 2, 1, 0]
