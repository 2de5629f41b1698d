import asyncio
from typing import Any, Never, Union

import pytest

from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.by_hand.runner_context import InProcRunnerContext
from agentbench.workflows.events.events import WorkflowEvent, WorkflowEventSource
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import FunctionExecutor, executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.state import State
from tests.parts.errors import raises


def node(act, key="node", *, takes: Any = Any, sends: Any = Any, yields: Any = Any):
    """An executor that calls `act(ctx)` and hands its result out."""

    async def run(message, ctx):
        result = act(ctx)
        if asyncio.iscoroutine(result):
            result = await result
        await ctx.yield_output(result)

    return FunctionExecutor(run, key, input=takes, output=sends, workflow_output=yields)


def single(executor, **settings):
    return WorkflowBuilder(start_executor=executor, **settings).build()


async def seen_by_handler(act, **settings):
    """What `act(ctx)` gives inside a handler."""
    (result,) = (await single(node(act), **settings).run("x")).outputs
    return result


# ---- what is available ---------------------------------------------------------------------------


def reporting(annotation: Any) -> Executor:
    """An executor whose handler, with this annotation of its context, stores what the context offers."""

    class Reporting(Executor):
        @handler
        async def run(self, text: str, ctx: annotation) -> None:
            context: Any = ctx
            context.set_state("can", (hasattr(ctx, "send_message"), hasattr(ctx, "yield_output")))

    return Reporting("e")


class Explicit(Executor):
    @handler(input=str, workflow_output=str)
    async def run(self, text, ctx):
        ctx.set_state("can", (hasattr(ctx, "send_message"), hasattr(ctx, "yield_output")))


class PlainSend(Executor):
    @handler
    def run(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("can", (hasattr(ctx, "send_message"), hasattr(ctx, "yield_output")))


@pytest.mark.parametrize(
    ("node", "can"),
    [
        (reporting(WorkflowContext), (False, False)),
        (reporting(WorkflowContext[str]), (True, False)),
        (reporting(WorkflowContext[Never, str]), (False, True)),
        (reporting(WorkflowContext[Never, Never]), (False, False)),
        (reporting(WorkflowContext[Any, Union[int, str]]), (True, True)),  # noqa: UP007 - old spelling
        (Explicit("e"), (False, True)),
        (PlainSend("e"), (True, False)),
    ],
)
async def test_a_context_has_what_its_annotation_declares_and_a_lenient_one_everything(node: Executor, can: Any):
    for strict, expected in ((True, can), (False, (True, True))):
        workflow = single(node, strict_context=strict)
        await workflow.run("x")
        assert workflow.state.get("can") == expected


@pytest.mark.parametrize(
    ("member", "advice"),
    [
        ("send_message", "WorkflowContext[MessageType]"),
        ("yield_output", "WorkflowContext[MessageType, OutputType]"),
    ],
)
async def test_using_what_is_not_declared_fails_the_run_and_says_what_to_declare(member, advice):
    @executor(id="quiet", input=str)
    async def quiet(text, ctx):
        await getattr(ctx, member)(text)

    with raises(AttributeError, "'quiet'", f"ctx.{member}", advice):
        await single(quiet).run("x")


# ---- where a handler stands ----------------------------------------------------------------------


async def test_a_message_comes_from_its_sender():
    @executor
    async def first(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)

    look = node(lambda ctx: (ctx.source_executor_ids, ctx.get_source_executor_id(), ctx.executor_id), "look")
    result = await WorkflowBuilder(start_executor=first).add_edge(first, look).build().run("x")
    assert result.outputs == [(["first"], "first", "look")]


async def test_an_answer_comes_from_the_executor_itself_and_names_its_request():
    class Asks(Executor):
        @handler
        async def ask(self, text: str, ctx: WorkflowContext[Never, Any]) -> None:
            await ctx.yield_output(ctx.request_id)
            await ctx.request_info(text, str, request_id="R0")

        @response_handler
        async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext[Never, Any]) -> None:
            await ctx.yield_output((ctx.request_id, ctx.source_executor_ids))

    workflow = single(Asks("asks"))
    assert (await workflow.run("x")).outputs == [None]
    assert (await workflow.run(responses={"R0": "yes"})).outputs == [("R0", ["internal:asks"])]


async def test_the_task_id_counts_the_deliveries_of_an_executor_in_a_superstep():
    @executor
    async def twice(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message("one")
        await ctx.send_message("two")

    look = node(lambda ctx: ctx.task_id, "look")
    result = await WorkflowBuilder(start_executor=twice).add_edge(twice, look).build().run("x")
    assert result.outputs == ["1:look:0", "1:look:1"]
    assert await seen_by_handler(lambda ctx: ctx.task_id) == "0:node:0"


async def test_a_handler_knows_whether_its_run_is_streamed():
    workflow = single(node(lambda ctx: ctx.is_streaming()))
    assert (await workflow.run("x")).outputs == [False]
    assert [e.data async for e in workflow.run("x", stream=True) if e.type == "output"] == [True]
    assert (await workflow.run("x")).outputs == [False]


async def test_a_context_lists_what_its_call_did():
    async def act(ctx):
        await ctx.send_message(1)
        await ctx.send_message(2, target_id="nobody")
        await ctx.yield_output("a")
        before = (ctx.get_sent_messages(), ctx.get_yielded_outputs())
        ctx.get_sent_messages().append("not kept")
        ctx.get_yielded_outputs().append("not kept")
        return before == (ctx.get_sent_messages(), ctx.get_yielded_outputs()) == ([1, 2], ["a"])

    assert (await single(node(act)).run("x")).outputs == ["a", True]


async def test_a_context_made_by_hand_needs_a_source():
    class Handles(Executor):
        @handler
        async def run(self, text: str, ctx: WorkflowContext) -> None: ...

    wrong: list[Any] = [[], "src"]
    for sources in wrong:
        with raises(ValueError, "source_executor_ids"):
            WorkflowContext(Handles("e"), sources, State(), InProcRunnerContext())
        with raises(ValueError, "sender"):
            await Handles("e").execute("x", sources, State(), InProcRunnerContext())
    state, bus = State(), InProcRunnerContext()
    ctx: Any = WorkflowContext(Handles("e"), ["a"], state, bus)
    assert (ctx.executor_id, ctx.get_source_executor_id(), ctx.get_sent_messages()) == ("e", "a", [])
    ctx.set_state("k", 1)
    assert ctx.state is state
    assert state.get("k") == 1
    assert hasattr(ctx, "send_message")


# ---- late use ------------------------------------------------------------------------------------

LATE = {
    "send_message": lambda ctx: ctx.send_message("late"),
    "yield_output": lambda ctx: ctx.yield_output("late"),
    "add_event": lambda ctx: ctx.add_event(WorkflowEvent.warning("late")),
    "request_info": lambda ctx: ctx.request_info("late", str),
    "set_state": lambda ctx: ctx.set_state("late", 1),
    "delete_state": lambda ctx: ctx.delete_state("early"),
    "queue_state_update": lambda ctx: ctx.queue_state_update("late", 1),
}


async def called(use, ctx):
    result = use(ctx)
    if result is not None:
        await result


@pytest.mark.parametrize("fails", [False, True], ids=["after success", "after failure"])
@pytest.mark.parametrize("member", LATE)
async def test_a_context_is_of_no_use_after_its_handler_has_ended(member, fails):
    kept: list[Any] = []

    async def keep(ctx):
        kept.append(ctx)
        ctx.set_state("early", 1)
        if fails:
            raise KeyError("k")

    workflow = single(node(keep))
    if fails:
        with pytest.raises(KeyError):
            await workflow.run("x")
    else:
        await workflow.run("x")
    with raises(RuntimeError, "'node'"):
        await called(LATE[member], kept[0])
    assert not workflow.state.pending
    assert workflow.run_state.messages == {}
    assert workflow.run_state.requests == {}


async def test_a_context_is_of_no_use_after_its_handler_was_cancelled():
    kept: list[Any] = []
    entered = asyncio.Event()

    @executor
    async def split(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)

    async def cancelled(ctx):
        kept.append(ctx)
        entered.set()
        await asyncio.Event().wait()

    async def fails(ctx):
        await entered.wait()
        raise KeyError("k")

    targets = [node(cancelled, "cancelled"), node(fails, "fails")]
    workflow = WorkflowBuilder(start_executor=split).add_fan_out_edges(split, targets).build()
    with pytest.raises(KeyError):
        await workflow.run("x")
    with raises(RuntimeError, "'cancelled'"):
        kept[0].set_state("late", 1)
    assert not workflow.state.pending


# ---- shared state --------------------------------------------------------------------------------


async def test_a_handler_reads_its_own_writes():
    def act(ctx):
        seen = [ctx.get_state("k", "nothing"), ctx.has_state("k")]
        ctx.set_state("k", None)
        seen += [ctx.get_state("k", "nothing"), ctx.has_state("k")]
        ctx.delete_state("k")
        return [*seen, ctx.get_state("k"), ctx.has_state("k")]

    assert await seen_by_handler(act) == ["nothing", False, None, True, None, False]


@pytest.mark.parametrize("key", ["_x", "_executor_state", "_workflow_run_kwargs", "_graph:next"])
async def test_keys_with_an_underscore_belong_to_the_engine(key):
    async def act(ctx):
        with raises(ValueError, "reserved"):
            ctx.set_state(key, 1)
        with raises(ValueError, "reserved"):
            await ctx.queue_state_update(key, 1)
        return ctx.has_state(key)

    assert await seen_by_handler(act) is False


def two_writers(first_waits):
    """Two executors of one superstep that write one key in a fixed order of time."""
    written = asyncio.Event()

    @executor
    async def split(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)

    async def write_last(ctx):
        await written.wait()
        seen = ctx.get_state("k")
        ctx.set_state("k", "last")
        return seen

    async def write_first(ctx):
        ctx.set_state("k", "first")
        written.set()

    acts = [write_last, write_first] if first_waits else [write_first, write_last]
    left, right = (node(act, key) for act, key in zip(acts, ("left", "right"), strict=True))
    return WorkflowBuilder(start_executor=split).add_fan_out_edges(split, [left, right]).build()


@pytest.mark.parametrize("first_waits", [False, True])
async def test_writes_are_seen_by_siblings_at_once_and_the_last_in_time_wins(first_waits):
    workflow = two_writers(first_waits)
    result = await workflow.run("x")
    assert result.outputs == [None, "first"]
    assert workflow.state.export_state() == {"k": "last"}


# ---- events of user code -------------------------------------------------------------------------


def event_of(kind):
    if kind == "request_info":
        return WorkflowEvent.request_info("R", "node", "q", str)
    return WorkflowEvent(kind, data=1)


@pytest.mark.parametrize("kind", ["started", "status", "failed", "output", "intermediate", "request_info"])
async def test_events_that_only_the_engine_may_emit_become_a_warning(kind, caplog):
    workflow = single(node(lambda ctx: ctx.add_event(event_of(kind))))
    result = await workflow.run("x", include_status_events=True)
    own = [e for e in result if e.type in (kind, "warning") and e.origin is WorkflowEventSource.EXECUTOR]
    assert [e.type for e in own] == ["warning"]
    assert f"'node' tried to emit an event of type '{kind}'" in own[0].data
    assert [(r.levelname, r.getMessage()) for r in caplog.records] == [("WARNING", own[0].data)]
    assert result.outputs == [None]
    assert workflow.run_state.requests == {}


@pytest.mark.parametrize(
    "kind", ["my_kind", "warning", "error", "custom", "data", "executor_invoked", "superstep_started"]
)
async def test_other_events_pass_as_they_are(kind):
    event = WorkflowEvent(kind, data=1)
    result = await single(node(lambda ctx: ctx.add_event(event))).run("x")
    assert [e for e in result if e is event] == [event]


# ---- sending and yielding ------------------------------------------------------------------------


@pytest.mark.parametrize(("target", "reached"), [(None, ["a", "b"]), ("a", ["a"]), ("b", ["b"]), ("nobody", [])])
@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_a_message_may_name_the_one_executor_it_is_for(target, reached):
    @executor
    async def first(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text, target)

    a, b = (node(lambda ctx: ctx.executor_id, key) for key in "ab")
    result = await WorkflowBuilder(start_executor=first).add_edge(first, a).add_edge(first, b).build().run("x")
    assert result.outputs == reached
