"""Where messages go: conditions, selections, switches, fan-ins, drops."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    Case,
    Default,
    Executor,
    FanOutEdgeGroup,
    InProcRunnerContext,
    RunOptions,
    SingleEdgeGroup,
    State,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    WorkflowMessage,
    WorkflowRunState,
    create_edge_runner,
    handler,
)
from agentbench.workflows.graph.routing import Router
from tests.parts.errors import raises
from tests.parts.executors import Join, Pass, Show, chain

OBSERVED = RunOptions(observe=True)


class Send(Executor):
    """Sends one message, to one target if told."""

    def __init__(self, message: Any, target: str | None = None) -> None:
        super().__init__("send")
        self.message, self.target = message, target

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[Any]) -> None:
        await ctx.send_message(self.message, target_id=self.target)


def drops(result: Any) -> list[dict[str, Any]]:
    return [event.data for event in result if event.type == "message_dropped"]


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_a_message_that_the_target_cannot_take_is_dropped_without_an_error():
    result = await chain(Send(5), Show("a")).run("go", options=OBSERVED)
    assert result.final_state is WorkflowRunState.IDLE
    assert drops(result) == [
        {"reason": "dropped type mismatch", "source": "send", "target": "a", "type": "int"},
    ]


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_a_message_to_one_target_of_a_fan_out_reaches_no_other():
    async def run(target: str) -> Any:
        send = Send("x", target)
        workflow = WorkflowBuilder(start_executor=send).add_fan_out_edges(send, [Show("a"), Show("b")]).build()
        return await workflow.run("go", options=OBSERVED)

    assert [event.executor_id for event in await run("b") if event.type == "output"] == ["b"]
    result = await run("c")
    assert (result.outputs, [drop["reason"] for drop in drops(result)]) == ([], ["dropped target mismatch"])


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_drops_are_silent_in_plain_runs_unless_they_are_to_be_reported():
    assert drops(await chain(Send(5), Show("a")).run("go")) == []
    assert len(drops(await chain(Send(5), Show("a"), report_drops=True).run("go"))) == 1


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_a_message_of_an_executor_without_edges_is_a_drop_with_a_reason_of_its_own():
    result = await chain(Send("x")).run("go", options=OBSERVED)
    assert [d["reason"] for d in drops(result)] == ["no outgoing edge"]


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_the_condition_never_sees_what_the_target_could_not_take():
    asked: list[Any] = []

    def condition(message: Any) -> bool:
        asked.append(message)
        return True

    source, target = Send(5), Show("a")
    await WorkflowBuilder(start_executor=source).add_edge(source, target, condition).build().run("go")
    assert asked == []


@pytest.mark.parametrize("answer", [True, False])
async def test_conditions_may_be_async(answer: bool):
    async def condition(message: str) -> bool:
        return answer

    source, target = Send("x"), Show("a")
    workflow = WorkflowBuilder(start_executor=source).add_edge(source, target, condition).build()
    assert (await workflow.run("go")).outputs == (["x!"] if answer else [])


async def test_a_condition_that_raises_fails_the_run_with_its_own_exception_and_the_edge_is_named():
    def is_long(message: str, ids: Any = None) -> Any:
        raise LookupError(message)

    source, a, b = Send("x"), Show("a"), Show("b")
    edge = WorkflowBuilder(start_executor=source).add_edge(source, a, is_long).build()
    fan_out = WorkflowBuilder(start_executor=source).fan_out(source, [a, b], is_long).build()
    for workflow, place in (
        (edge, "condition 'is_long' of the edge from 'send' to 'a'"),
        (fan_out, "selection function 'is_long' of the fan-out from 'send' to 'a', 'b'"),
    ):
        for _ in range(2):  # the instance is free again
            with pytest.raises(LookupError) as caught:
                await workflow.run("go")
            assert caught.value.__notes__ == [f"Raised by the {place}, for data of type str."]
        handle = workflow.start("go")
        with pytest.raises(LookupError):
            await handle.result()
        failed = [event.details for event in handle.events if event.type == "failed"]
        assert [d and d.message for d in failed] == [f"x\nRaised by the {place}, for data of type str."]


async def test_a_case_that_raises_counts_as_false_and_warns():
    def broken(message: str) -> bool:
        raise KeyError(message)

    source, a, b, c = Send("x"), Show("a"), Show("b"), Show("c")
    cases: list[Case | Default] = [Case(broken, a), Case(lambda m: True, b), Default(c)]
    workflow = WorkflowBuilder(start_executor=source).add_switch_case_edge_group(source, cases).build()
    result = await workflow.run("go")
    assert [e.executor_id for e in result if e.type == "output"] == ["b"]
    assert any("KeyError" in e.data for e in result if e.type == "warning")


async def test_a_barrier_lists_messages_by_source_then_by_arrival_and_names_all_sources():
    class Twice(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
            await ctx.send_message(f"{self.id}1")
            await ctx.send_message(f"{self.id}2")

    class Sources(Executor):
        @handler
        async def on_texts(self, texts: list[str], ctx: WorkflowContext[str, Any]) -> None:
            with raises(RuntimeError, "several"):
                ctx.get_source_executor_id()
            await ctx.yield_output((texts, ctx.source_executor_ids))

    source, hop, left, right, join = Pass("s"), Pass("h"), Pass("l"), Twice("r"), Sources("j")
    builder = WorkflowBuilder(start_executor=source).add_fan_out_edges(source, [right, hop]).add_edge(hop, left)
    workflow = builder.add_fan_in_edges([left, right], join).build()  # left arrives a superstep after right
    assert (await workflow.run("x")).outputs == [(["x>s>h>l", "r1", "r2"], ["l", "r"])]


async def test_a_barrier_that_never_filled_warns_at_the_end_and_is_empty_in_the_next_run():
    source, left, right, join = Pass("s"), Pass("l"), Pass("r"), Join("j")
    wanted = ["l"]
    builder = WorkflowBuilder(start_executor=source).fan_out(source, [left, right], lambda m, ids: wanted)
    workflow = builder.add_fan_in_edges([left, right], join).build()
    first = await workflow.run("a")
    assert first.outputs == []
    assert any("fan-in" in e.data for e in first if e.type == "warning")
    wanted[:] = ["r"]
    assert (await workflow.run("b")).outputs == []  # the left-over of the first run must not complete it
    wanted[:] = ["l", "r"]
    assert (await workflow.run("c")).outputs == [["c>s>l", "c>s>r"]]


async def test_a_mixed_barrier_takes_a_list_of_a_union():
    class Number(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[int]) -> None:
            await ctx.send_message(len(text))

    class Mixed(Executor):
        @handler
        async def on_items(self, items: list[str | int], ctx: WorkflowContext[str, Any]) -> None:
            await ctx.yield_output(items)

    source, text, number, mixed = Pass("s"), Pass("t"), Number("n"), Mixed("m")
    builder = WorkflowBuilder(start_executor=source).add_fan_out_edges(source, [text, number])
    assert (await builder.add_fan_in_edges([text, number], mixed).build().run("x")).outputs == [["x>s>t", 3]]


async def test_a_barrier_whose_list_no_handler_takes_as_a_whole_fails_the_run():
    class Number(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[int]) -> None:
            await ctx.send_message(len(text))

    class Either(Executor):
        @handler
        async def on_texts(self, texts: list[str], ctx: WorkflowContext) -> None: ...

        @handler
        async def on_numbers(self, numbers: list[int], ctx: WorkflowContext) -> None: ...

    source, text, number = Pass("s"), Pass("t"), Number("n")
    builder = WorkflowBuilder(start_executor=source).add_fan_out_edges(source, [text, number])
    workflow = builder.add_fan_in_edges([text, number], Either("either")).build()
    with raises(RuntimeError, "list[str", "int]", "list[str]", "list[int]"):
        await workflow.run("x")


async def test_copies_of_messages_are_made_on_request_only():
    class Grow(Executor):
        @handler
        async def on_items(self, items: list[int], ctx: WorkflowContext[str, int]) -> None:
            items.append(1)
            await ctx.yield_output(len(items))

    for copied, expected in ((False, [1, 2]), (True, [1, 1])):
        source, a, b = Send([]), Grow("a"), Grow("b")
        builder = WorkflowBuilder(start_executor=source, copy_messages=copied).add_fan_out_edges(source, [a, b])
        assert sorted((await builder.build().run("go")).outputs) == expected


async def test_an_edge_runner_returns_whether_a_message_was_delivered():
    a, b = Show("a"), Show("b")
    executors: dict[str, Executor] = {"a": a, "b": b}
    bus, state = InProcRunnerContext(), State()
    single = create_edge_runner(SingleEdgeGroup("s", "a", lambda m: m != "no"), executors)
    assert await single.send_message(WorkflowMessage("yes", "s"), state, bus)
    assert await single.send_message(WorkflowMessage("no", "s"), state, bus)  # held back is no failure
    assert not await single.send_message(WorkflowMessage(5, "s"), state, bus)
    assert not await single.send_message(WorkflowMessage("yes", "s", "b"), state, bus)
    fan_out = create_edge_runner(FanOutEdgeGroup("s", ["a", "b"]), executors)
    assert await fan_out.send_message(WorkflowMessage("both", "s"), state, bus)
    assert [e.data for e in await bus.drain_events() if e.type == "output"] == ["yes!", "both!", "both!"]


def test_a_plan_is_ordered_by_edge_groups_as_built_then_by_messages_as_sent():
    executors: dict[str, Executor] = {i: Show(i) for i in "abcd"}
    groups = [SingleEdgeGroup("b", "c"), SingleEdgeGroup("a", "d"), SingleEdgeGroup("a", "c")]
    router = Router(groups, executors)
    messages = {"a": [WorkflowMessage("a1", "a"), WorkflowMessage("a2", "a")], "b": [WorkflowMessage("b1", "b")]}
    plan = router.plan(messages, {})
    assert [(d.data, d.executor_id, d.order, d.nth) for d in plan.deliveries] == [
        ("b1", "c", 0, 0),
        ("a1", "d", 1, 0),
        ("a2", "d", 2, 1),
        ("a1", "c", 3, 1),
        ("a2", "c", 4, 2),
    ]


async def test_several_starts_all_get_the_input_in_superstep_zero():
    left, right, join = Pass("l"), Pass("r"), Join("j")
    workflow = (
        WorkflowBuilder(name="two starts").add_executor(left).add_executor(right).fan_in([left, right], join).build()
    )
    result = await workflow.run("x")
    assert result.outputs == [["x>l", "x>r"]]
    first_step = [e.type for e in result[: [e.type for e in result].index("superstep_started")]]
    assert first_step.count("executor_invoked") == 2


async def test_observed_runs_tell_what_a_condition_said():
    source, a = Send("x"), Show("a")
    workflow = WorkflowBuilder(start_executor=source).add_edge(source, a, lambda m: False).build()
    result = await workflow.run("go", options=OBSERVED)
    routed: list[WorkflowEvent[Any]] = [e for e in result if e.type == "graph_routed"]
    assert routed[0].data == {"from": "send", "condition": "<lambda>", "result": False, "targets": []}
