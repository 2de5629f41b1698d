"""Programs of the specification, as they are written there: both dialects, runs, requests, handles, agents in turns."""

from __future__ import annotations

from typing import Any, Never

from agentbench import (
    AgentHostOptions,
    CheckpointManager,
    Executor,
    InMemoryCheckpointStorage,
    InProcessExecution,
    TurnToken,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEventType,
    WorkflowRunState,
    executor,
    handler,
    response_handler,
)
from agentbench.orchestrations import build_sequential
from tests.orchestrations.nodes import agent


@executor
async def up(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message(text.upper())


@executor
async def show(text: str, ctx: WorkflowContext[Never, str]) -> None:
    await ctx.yield_output(f"{text}!")


def two_steps() -> Workflow:
    return WorkflowBuilder(name="two_step").add_executor(up).add_executor(show).connect(up, show).build()


async def test_both_dialects_build_one_graph():
    wf = (
        WorkflowBuilder(name="two_step")
        .add_executor(up)
        .add_executor(show)
        .connect(up, show)
        .max_iterations(10)
        .build()
    )
    res = await wf.run("ab")
    assert res.outputs == res.get_outputs() == ["AB!"]
    wf2 = WorkflowBuilder(start_executor=up).add_edge(up, show).build()
    assert wf2.graph_signature_hash == wf.graph_signature_hash


async def test_a_fan_in_is_independent_or_a_barrier_by_what_its_target_takes():
    @executor
    async def src(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)

    @executor(id="l")
    async def left(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(f"l:{text}")

    @executor(id="r")
    async def right(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(f"r:{text}")

    @executor
    async def each(text: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(text)

    @executor
    async def join(texts: list[str], ctx: WorkflowContext[Never, list[str]]) -> None:
        await ctx.yield_output(texts)

    a = WorkflowBuilder(name="i").add_executor(src).fan_out(src, [left, right]).fan_in([left, right], each).build()
    b = (
        WorkflowBuilder(start_executor=src)
        .add_fan_out_edges(src, [left, right])
        .add_fan_in_edges([left, right], join)
        .build()
    )
    assert sorted((await a.run("x")).outputs) == ["l:x", "r:x"]
    assert (await b.run("x")).outputs == [["l:x", "r:x"]]


async def test_a_plain_function_sends_without_awaiting():
    @executor(id="shout")
    def shout(text: str, ctx: WorkflowContext[str]) -> None:
        ctx.send_message(text.upper())  # type: ignore[unused-coroutine, unused-ignore]

    assert (await WorkflowBuilder(shout).add_edge(shout, show).build().run("ab")).outputs == ["AB!"]


async def test_events_are_compared_with_constants_and_name_their_source():
    events = two_steps().run_stream("ab")
    completed = [(ev.source_id, ev.data) async for ev in events if ev.type == WorkflowEventType.EXECUTOR_COMPLETED]
    assert completed == [("up", ["AB"]), ("show", ["AB!"])]


class Review(Executor):
    @handler
    async def draft(self, draft: str, ctx: WorkflowContext) -> None:
        await ctx.request_info(draft, str)

    @response_handler
    async def verdict(self, draft: str, verdict: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"{draft}: {verdict}")


def make_flow(store: Any) -> Workflow:
    return WorkflowBuilder(name="review", start_executor=Review("review"), checkpoint_storage=store).build()


async def test_a_question_is_answered_in_a_fresh_instance():
    store = InMemoryCheckpointStorage()
    first = await make_flow(store).run("draft")
    ask = first.get_request_info_events()[0]
    cp = await store.get_latest(workflow_name="review")
    assert cp is not None
    done = await make_flow(store).run(checkpoint_id=cp.checkpoint_id, responses={ask.request_id: "ok"})
    assert done.get_final_state() is WorkflowRunState.IDLE
    assert done.outputs == ["draft: ok"]


async def test_a_run_is_wound_back_on_its_handle():
    run = await InProcessExecution.run_streaming(two_steps(), "ab", CheckpointManager.create_in_memory())
    events = [e async for e in run.watch_stream()]
    await run.restore_checkpoint(run.checkpoints[0])
    again = [e async for e in run.watch_stream()]
    assert [e.data for e in again if e.type == "output"] == [e.data for e in events if e.type == "output"] == ["AB!"]


async def test_a_token_lets_agents_speak_in_turn():
    fr, es = agent("fr"), agent("es")
    run = await InProcessExecution.run_streaming(build_sequential(fr, es, options=AgentHostOptions()), "hello")
    await run.try_send_message(TurnToken(emit_events=True))
    spoken = [e.data.text async for e in run.watch_stream() if e.type == "output"]
    assert spoken == ["FR", "ES"]
