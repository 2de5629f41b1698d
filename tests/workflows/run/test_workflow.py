import asyncio
import json
import pickle
from typing import Any

import pytest

from agentbench._bridge import run_sync
from agentbench._clock import CountingIds, TickingClock, set_runtime_defaults
from agentbench.checkpoints.manager import CheckpointManager
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import (
    NestedLoopError,
    ValidationTypeEnum,
    WorkflowBusyError,
    WorkflowConvergenceException,
    WorkflowValidationError,
    WorkflowWarning,
)
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.by_hand.runner_context import InProcRunnerContext
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import FunctionExecutor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.message import WorkflowMessage
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.graph.edge_groups import InternalEdgeGroup, SingleEdgeGroup
from agentbench.workflows.run.workflow import Workflow
from tests.parts.errors import raises, warns
from tests.parts.executors import Pass, Show, chain


def node(key, *, takes: Any = Any, sends: Any = Any, yields: Any = Any, act=None):
    async def run(message, ctx):
        if act is not None:
            await act(ctx)
        if yields is not None:
            await ctx.yield_output((key, message))
        if sends is not None:
            await ctx.send_message(message)

    declared = {"input": takes, "output": sends, "workflow_output": yields}
    return FunctionExecutor(run, key, **{name: t for name, t in declared.items() if t is not None})


def two(**settings):
    a, b = node("a"), node("b")
    return WorkflowBuilder(name="flow", start_executor=a, **settings).add_edge(a, b).build()


class Counter(Executor):
    """Counts its runs in shared state."""

    @handler
    async def run(self, text: str, ctx: WorkflowContext[str, int]) -> None:
        count = ctx.get_state("n", 0) + 1
        ctx.set_state("n", count)
        await ctx.yield_output(count)


def counting(**settings):
    return WorkflowBuilder(name="count", start_executor=Counter("counter"), **settings).build()


# ---- attributes ----------------------------------------------------------------------------------


def test_a_workflow_knows_its_graph():
    a, b = node("a", takes=str, yields=None), node("b", yields=int | str)
    workflow = WorkflowBuilder(
        name="flow", description="for people", max_iterations=7, start_executor=a
    ).add_edge(a, b).build()  # fmt: skip
    assert (workflow.name, workflow.description, workflow.max_iterations) == ("flow", "for people", 7)
    assert workflow.executors == {"a": a, "b": b}
    assert (workflow.start_executor_id, workflow.start_executor_ids) == ("a", ("a",))
    assert workflow.get_start_executor() is a
    assert workflow.start_executors == [a]
    assert workflow.get_executors_list() == [a, b]
    assert workflow.input_types == [str]
    assert workflow.output_types == [int, str]
    assert repr(workflow) == "Workflow('flow', 2 executors, start=a)"


def test_designated_executors_are_listed_in_builder_order():
    a, b, c = node("a"), node("b"), node("c")
    workflow = (
        WorkflowBuilder(start_executor=a, output_from=[c, a], intermediate_output_from=[b]).add_chain([a, b, c]).build()
    )
    assert workflow.get_output_executors() == [a, c]
    assert workflow.get_intermediate_executors() == [b]
    assert [workflow.is_terminal_executor(i) for i in "abc"] == [True, False, True]
    assert [workflow.is_intermediate_executor(i) for i in "abc"] == [False, True, False]


def test_a_definition_as_a_dict():
    workflow = two(description="d", max_iterations=5)
    written = workflow.to_dict()
    assert list(written) == [
        "name",
        "id",
        "start_executor_id",
        "max_iterations",
        "edge_groups",
        "executors",
        "output_executors",
        "intermediate_executors",
        "description",
    ]
    assert written["executors"] == {
        "a": {"id": "a", "type": "FunctionExecutor"},
        "b": {"id": "b", "type": "FunctionExecutor"},
    }
    assert (written["name"], written["id"], written["start_executor_id"]) == ("flow", workflow.id, "a")
    assert (written["output_executors"], written["intermediate_executors"]) == (None, None)
    assert [g["type"] for g in written["edge_groups"]] == ["SingleEdgeGroup", *["InternalEdgeGroup"] * 2]
    assert json.loads(workflow.to_json()) == written


async def test_a_workflow_can_be_put_together_by_hand():
    a, b = node("a"), node("b")
    groups = [SingleEdgeGroup("a", "b"), InternalEdgeGroup("a"), InternalEdgeGroup("b")]
    for workflow in (
        Workflow(groups, {"a": a, "b": b}, a, InProcRunnerContext(), "by hand", "described", 7, ["b"], ["a"]),
        Workflow(groups, {"a": a, "b": b}, a, output_executors=["b"], intermediate_executors=["a"]),
    ):
        assert (await workflow.run("x")).outputs == [("b", "x")]
        assert (workflow.get_output_executors(), workflow.get_intermediate_executors()) == ([b], [a])
    assert (workflow.name, workflow.description, workflow.max_iterations) == ("Workflow", None, 100)
    wrong = Workflow(groups, {"a": a, "b": b}, a, output_from=["b", "c"], intermediate_output_from=["d"])
    for designated in (wrong.get_output_executors, wrong.get_intermediate_executors):
        with pytest.raises(WorkflowValidationError, match=r"\['[cd]'\] are designated") as caught:
            designated()
        assert caught.value.validation_type is ValidationTypeEnum.OUTPUT_VALIDATION


async def test_the_data_of_an_envelope_is_the_input():
    class Where(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str, Any]) -> None:
            await ctx.yield_output((text, ctx.source_executor_ids))

    workflow = WorkflowBuilder(start_executor=Where("w")).build()
    envelope = WorkflowMessage("x", "somewhere", "elsewhere")
    stream = workflow.run_stream(envelope)
    for result in (
        await workflow.run(envelope),
        await stream.get_final_response(),
        await workflow.start(envelope).result(),
    ):
        assert result.outputs == [("x", ["Workflow"])]
        assert [e.data for e in result if e.type == "executor_invoked"] == ["x"]


# ---- what run() takes ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "reason"),
    [
        ({}, "needs a message"),
        ({"message": None}, "needs a message"),
        ({"message": "x", "responses": {}}, "message and responses"),
        ({"message": "", "checkpoint_id": "cp"}, "message and checkpoint_id"),
        ({"message": "x", "responses": {}, "checkpoint_id": "cp"}, "message and responses"),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_wrong_combination_is_refused_by_the_call(given, reason, stream):
    with pytest.raises(ValueError, match=reason):
        two().run(stream=stream, **given)


@pytest.mark.parametrize("message", ["", 0, [], {}, False, 0.0])
async def test_falsy_messages_are_messages(message):
    assert (await two().run(message)).outputs == [("a", message), ("b", message)]


def test_a_handle_needs_something_to_start_from():
    with raises(ValueError, "input=", "resume_from=", "responses="):
        two().start()


async def test_a_checkpoint_needs_a_storage():
    with raises(ValueError, "checkpoint_storage="):
        await two().run(checkpoint_id="cp")


# ---- what run() gives ----------------------------------------------------------------------------


async def test_run_from_checkpoint_is_run_with_a_checkpoint_id():
    storage = InMemoryCheckpointStorage()
    workflow = two(checkpoint_storage=storage)
    first = await workflow.run("x")
    start_id = first.checkpoints[0].checkpoint_id
    again: Any = await workflow.run_from_checkpoint(start_id)
    assert again.outputs == [("b", "x")]
    streamed: Any = workflow.run_from_checkpoint(start_id, stream=True)
    assert [e.data async for e in streamed if e.type == "output"] == [("b", "x")]
    elsewhere: Any = await two().run_from_checkpoint(start_id, checkpoint_storage=storage)
    assert elsewhere.outputs == [("b", "x")]


# ---- options of one run --------------------------------------------------------------------------


async def test_a_storage_argument_of_a_run_is_used_for_that_run_alone():
    built_in, other = InMemoryCheckpointStorage(), InMemoryCheckpointStorage()
    workflow = two(checkpoint_storage=built_in)
    await workflow.run("x", checkpoint_storage=other)
    assert await built_in.list_checkpoint_ids(workflow_name="flow") == []
    assert len(await other.list_checkpoint_ids(workflow_name="flow")) == 3
    await workflow.run("x")
    assert len(await built_in.list_checkpoint_ids(workflow_name="flow")) == 3
    assert len(await other.list_checkpoint_ids(workflow_name="flow")) == 3


async def test_a_manager_may_stand_for_its_storage():
    manager = CheckpointManager.create_in_memory()
    await two().run("x", checkpoint_storage=manager)
    assert len(await manager.storage.list_checkpoint_ids(workflow_name="flow")) == 3


async def test_a_chain_replaces_the_name_of_the_workflow_on_checkpoints():
    storage = InMemoryCheckpointStorage()
    await two(checkpoint_storage=storage).run("x", options=RunOptions(chain="thread-1", metadata={"user": "Ann"}))
    assert await storage.list_checkpoint_ids(workflow_name="flow") == []
    saved = await storage.list_checkpoints(workflow_name="thread-1")
    assert [c.metadata["user"] for c in saved] == ["Ann"] * 3


async def test_a_limit_in_the_options_of_a_run_is_for_that_run_alone():
    workflow = two(max_iterations=10)
    with pytest.raises(WorkflowConvergenceException):
        await workflow.run("x", options=RunOptions(max_iterations=0))
    workflow.reset()
    assert len((await workflow.run("x")).outputs) == 2
    strict = two(max_iterations=0)
    assert len((await strict.run("x", options=RunOptions(max_iterations=5))).outputs) == 2


@pytest.mark.parametrize(
    ("by_default", "by_option", "observed"),
    [(None, None, False), (True, None, True), (True, False, False), (False, True, True)],
)
async def test_a_run_is_observed_by_its_options_else_by_the_default_of_the_process(by_default, by_option, observed):
    set_runtime_defaults(observe=by_default)
    result = await two().run("x", options=RunOptions(observe=by_option))
    assert [e.seq is not None for e in result] == [observed] * len(result)


async def test_clock_and_ids_come_from_the_options_else_from_the_process():
    async def observed(**given):
        storage = InMemoryCheckpointStorage()
        result = await two().run("x", checkpoint_storage=storage, options=RunOptions(observe=True, **given))
        (first, *_) = await storage.list_checkpoints(workflow_name="flow")
        return result[0].run_id, result[0].time_ns, first.checkpoint_id, first.timestamp[:10]

    day = 1_704_067_200_000_000_000  # 2024-01-01T00:00:00Z
    run_id, time_ns, checkpoint_id, date = await observed(clock=TickingClock(), ids=CountingIds())
    assert (run_id, checkpoint_id, date) == ("run-1", "cp-0001", "2024-01-01")
    assert 0 <= time_ns - day < 10**9
    set_runtime_defaults(clock=TickingClock("2030-01-01T00:00:00Z"), ids=CountingIds())
    run_id, _, checkpoint_id, date = await observed()
    assert (run_id, checkpoint_id, date) == ("run-1", "cp-0001", "2030-01-01")
    run_id, _, checkpoint_id, date = await observed(clock=TickingClock(), ids=CountingIds())
    assert (run_id, checkpoint_id, date) == ("run-1", "cp-0001", "2024-01-01")


# ---- what stays between runs ---------------------------------------------------------------------


async def test_reset_drops_everything_but_the_fields_of_executors():
    class Remembers(Counter):
        seen = 0

        @handler
        async def run(self, text: str, ctx: WorkflowContext[str, int]) -> None:
            self.seen += 1
            ctx.set_state("n", ctx.get_state("n", 0) + 1)
            await ctx.request_info(text, str)
            await ctx.yield_output(ctx.get_state("n"))

        @response_handler
        async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext) -> None:
            """Takes any answer."""

    executor = Remembers("r")
    workflow = WorkflowBuilder(start_executor=executor).build()
    await workflow.run("x")
    workflow.reset()
    assert workflow.state.export_state() == {}
    result = await workflow.run("x")
    assert result.outputs == [1]
    assert len(workflow.run_state.requests) == 1
    assert executor.seen == 2


# ---- several instances ---------------------------------------------------------------------------


async def test_a_clone_has_the_definition_and_nothing_of_what_happened():
    a, b = node("a"), node("b")
    workflow = WorkflowBuilder(
        name="flow", description="d", max_iterations=9, start_executor=a, output_from=[b], strict_context=False
    ).add_edge(a, b).build()  # fmt: skip
    workflow.state.import_state({"k": 1})
    twin = workflow.clone()
    assert twin.id != workflow.id
    assert (twin.name, twin.description, twin.max_iterations) == ("flow", "d", 9)
    assert twin.graph.settings is workflow.graph.settings
    assert twin.executors == workflow.executors
    assert twin.graph_signature_hash == workflow.graph_signature_hash
    assert twin.state.export_state() == {}
    assert (await twin.run("x")).outputs == [("b", "x")]


@pytest.mark.parametrize("copies", [False, True])
async def test_clones_share_their_executors_unless_copies_are_wanted(copies):
    class Keeps(Counter):
        def __init__(self, key):
            super().__init__(key)
            self.kept = []

        @handler
        async def run(self, text: str, ctx: WorkflowContext[str, int]) -> None:
            self.kept.append(text)
            await ctx.yield_output(len(self.kept))

    workflow = WorkflowBuilder(start_executor=Keeps("k")).build()
    await workflow.run("x")
    twin = workflow.clone(copy_executors=copies)
    assert (twin.executors["k"] is workflow.executors["k"]) is not copies
    assert (await twin.run("y")).outputs == [2]
    assert workflow.executors["k"].kept == (["x"] if copies else ["x", "y"])  # type: ignore[attr-defined]


# ---- one run at a time ---------------------------------------------------------------------------


class Waits(Executor):
    """Waits until it is let go."""

    def __init__(self):
        super().__init__("waits")
        self.entered, self.go_on = asyncio.Event(), asyncio.Event()

    @handler
    async def run(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        self.entered.set()
        await self.go_on.wait()
        await ctx.yield_output(text)


def waiting():
    waits = Waits()
    return waits, WorkflowBuilder(name="flow", start_executor=waits).build()


async def running(workflow, waits, how):
    """Start a run in one of three ways; a task that ends with its outputs."""
    if how == "run":
        task = asyncio.ensure_future(_outputs(workflow.run("first")))
    elif how == "stream":
        task = asyncio.ensure_future(_outputs(workflow.run("first", stream=True).get_final_response()))
    else:
        task = asyncio.ensure_future(_outputs(workflow.start("first", keep_state=True).result()))
    await waits.entered.wait()
    return task


async def _outputs(result):
    return (await result).outputs


@pytest.mark.parametrize("how", ["run", "stream", "handle"])
async def test_another_run_is_refused_by_the_call_until_the_first_has_ended(how):
    waits, workflow = waiting()
    first = await running(workflow, waits, how)
    second_tries = [
        lambda: workflow.run("second"),
        lambda: workflow.run("second", stream=True),
        lambda: workflow.run_stream("second"),
        lambda: workflow.start("second", keep_state=True),
        lambda: workflow.run(responses={}),
        workflow.reset,
    ]
    for second in second_tries:
        with raises(RuntimeError, "'flow'") as caught:
            second()
        assert isinstance(caught.value, WorkflowBusyError)
    waits.go_on.set()
    assert await first == ["first"]
    assert (await workflow.run("second")).outputs == ["second"]


@pytest.mark.parametrize("how", ["run", "stream", "handle"])
async def test_the_instance_is_free_after_a_cancelled_run(how):
    waits, workflow = waiting()
    first = await running(workflow, waits, how)
    first.cancel()
    with pytest.raises(asyncio.CancelledError):
        await first
    waits.go_on.set()
    assert (await workflow.run("second")).outputs == ["second"]


async def test_of_two_runs_that_were_called_before_either_began_the_second_fails_when_it_is_awaited():
    waits, workflow = waiting()
    one, two = asyncio.ensure_future(workflow.run("one")), asyncio.ensure_future(workflow.run("two"))
    await waits.entered.wait()
    with raises(WorkflowBusyError, "clone"):
        await two
    waits.go_on.set()
    assert (await one).outputs == ["one"]


async def test_a_handler_cannot_run_its_own_workflow():
    async def recurse(ctx):
        with pytest.raises(WorkflowBusyError):
            await workflow.run("inner")

    workflow = WorkflowBuilder(start_executor=node("a", act=recurse)).build()
    assert (await workflow.run("outer")).outputs == [("a", "outer")]


@pytest.mark.parametrize("exit_type", [KeyboardInterrupt, SystemExit])
@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
def test_an_interrupted_cell_leaves_the_instance_usable(exit_type):
    """Also where several handlers run at once, so that the interrupt ends a task of its own."""
    interrupts: list[bool] = []

    async def interrupted(ctx):
        if not interrupts:
            interrupts.append(True)
            raise exit_type

    async def waits_for_ever(ctx):
        if ctx.get_state("again") is None:
            await asyncio.Event().wait()

    a = node("a")
    targets = [node("b", act=waits_for_ever, sends=None), node("c", act=interrupted, sends=None)]
    workflow = WorkflowBuilder(start_executor=a).add_fan_out_edges(a, targets).build()

    async def main():
        return (await workflow.run("x")).outputs

    with pytest.raises(exit_type):
        asyncio.run(main())
    workflow.state.import_state({"again": True})
    assert asyncio.run(main()) == [("a", "x"), ("b", "x"), ("c", "x")]


# ---- views ---------------------------------------------------------------------------------------


def test_a_run_that_cannot_be_waited_for_is_named_as_it_was_written():
    async def within(x, ctx):
        run_sync(counting().run("x"))

    with raises(NestedLoopError, "Workflow.run") as caught:
        run_sync(WorkflowBuilder(start_executor=FunctionExecutor(within, "outer", input=str)).build().run("x"))
    assert caught.value.call == "Workflow.run"


# ---- what earlier runs left ----------------------------------------------------------------------


async def test_a_result_says_what_its_run_found_of_earlier_runs():
    workflow = counting()
    first = await workflow.run("x")
    with warns(WorkflowWarning, "workflow.reset()") as warned:
        second = await workflow.run("y")
    assert warned[0].filename == __file__
    assert (first.outputs, first.warnings, first.carried_over) == ([1], [], None)
    assert second.outputs == [2]
    assert second.carried_over is not None
    assert second.carried_over.state_keys == ("n",)
    assert second.warnings == [str(warned[0].message)]
    workflow.reset()
    assert (await workflow.run("z")).carried_over is None


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_a_started_run_begins_empty_unless_it_goes_on_in_the_state_of_the_instance():
    workflow = counting()
    await workflow.run("x")
    assert (await workflow.start("x").result()).outputs == [1]
    assert (await workflow.start("x", keep_state=True).result()).outputs == [2]
    assert (await workflow.run("x")).outputs == [3]


async def test_responses_without_open_requests_are_refused_by_the_call():
    with raises(ValueError, "resume_from=", "keep_state=True"):
        counting().start(responses={"R": 1})


async def test_a_clone_and_a_started_run_get_fresh_executors():
    class Remembers(Executor):
        """Remembers its messages in a field; every run begins with none."""

        def __init__(self):
            super().__init__("k")
            self.messages = []

        def fresh(self):
            return Remembers()

        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str, int]) -> None:
            self.messages.append(text)
            await ctx.yield_output(len(self.messages))

    workflow = WorkflowBuilder(start_executor=Remembers()).build()
    assert [(await workflow.run("x")).outputs for _ in range(2)] == [[1], [2]]
    assert (await workflow.clone().run("x")).outputs == [1]
    assert (await workflow.start("x").result()).outputs == [1]


@pytest.mark.parametrize("returned", [None, node("other")])
def test_what_fresh_returns_has_to_be_an_executor_with_the_same_id(returned):
    executor = node("k")
    executor.fresh = lambda: returned
    workflow = WorkflowBuilder(start_executor=executor).build()
    with raises(TypeError, "'k'", "fresh()"):
        workflow.start("x")


def test_what_was_built_cannot_be_changed_also_not_in_copies():
    workflow = chain(Pass("a"), Show("b"), name="flow")
    for same in (workflow, workflow.clone(), workflow.clone(copy_executors=True), pickle.loads(pickle.dumps(workflow))):
        owner: Any
        for owner in (same, same.graph):
            for name in ("name", "edge_groups", "executors", "max_iterations"):
                with pytest.raises(AttributeError):
                    setattr(owner, name, None)
            with pytest.raises(TypeError):
                owner.executors["c"] = Pass("c")
        assert list(same.executors) == ["a", "b"]


def test_a_workflow_pickles_where_its_executors_do():
    workflow = WorkflowBuilder(start_executor=(a := node("a")), name="flow").add_edge(a, node("b")).build()
    with pytest.raises((AttributeError, TypeError, pickle.PicklingError)):
        pickle.dumps(workflow)  # its functions are defined inside a function
    travels = pickle.loads(pickle.dumps(chain(Pass("a"), Show("b"), name="flow")))
    assert travels.name == "flow"
    assert asyncio.run(_outputs(travels.run("x"))) == ["x>a!"]
