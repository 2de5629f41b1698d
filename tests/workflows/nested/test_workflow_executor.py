"""A workflow as a node of another workflow."""

import asyncio
from typing import Any

import pytest

from agentbench import (
    Executor,
    FileCheckpointStorage,
    MessageType,
    SubWorkflowRequestMessage,
    SubWorkflowResponseMessage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    WorkflowExecutor,
    WorkflowMessage,
    WorkflowRunState,
    WorkflowValidationError,
    executor,
    handler,
    response_handler,
)
from agentbench.exceptions import WorkflowBusyError
from agentbench.workflows.draw.drawing import RunOverlay
from tests.parts.errors import raises
from tests.parts.executors import Pass, Show


class Ask(Executor):
    """Requests a word for each text, and yields both; counts its responses in shared state."""

    def __init__(self, name: str = "ask", times: int = 1) -> None:
        super().__init__(name)
        self.times = times
        self.broken = False

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        for number in range(self.times):
            await ctx.request_info(f"{text}?{number}" if self.times > 1 else f"{text}?", str)

    @response_handler
    async def on_word(self, question: str, word: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("words", ctx.get_state("words", 0) + 1)
        if self.broken:
            raise ValueError("no network")
        await ctx.yield_output(f"{question}{word}#{ctx.get_state('words')}")


class Answer(Executor):
    @handler
    async def on_request(
        self, request: SubWorkflowRequestMessage, ctx: WorkflowContext[SubWorkflowResponseMessage]
    ) -> None:
        answer = request.create_response(f"<{request.source_event.data}>")
        await ctx.send_message(answer, target_id=request.executor_id)


class Count(Executor):
    """Yields how many texts this object saw; its checkpoint holds the number."""

    def __init__(self, name: str = "count") -> None:
        super().__init__(name)
        self.seen = 0

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        self.seen += 1
        await asyncio.sleep(0)
        await ctx.yield_output(f"{text}{self.seen}")

    def fresh(self) -> "Count":
        return Count(self.id)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"seen": self.seen}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]


def alone(node: Executor, **settings: Any) -> Workflow:
    return WorkflowBuilder(start_executor=node, name=f"only {node.id}", **settings).build()


def nest(workflow: Workflow, depth: int, **settings: Any) -> Workflow:
    for level in range(depth):
        workflow = alone(WorkflowExecutor(workflow, f"level{level}", allow_direct_output=True, **settings))
    return workflow


async def test_an_output_of_the_workflow_inside_is_a_message_to_the_next_node():
    inner, show = WorkflowExecutor(alone(Show("in")), "we"), Show("show")
    result = await WorkflowBuilder(start_executor=inner).add_edge(inner, show).build().run("a")
    assert result.get_outputs() == ["a!!"]
    assert [e.executor_id for e in result if e.type == "executor_invoked"] == ["we", "show"]


async def test_outputs_and_requests_that_go_nowhere_are_warned_of():
    result = await alone(WorkflowExecutor(alone(Show("in")), "we")).run("a")
    assert (result.get_outputs(), len(result.warnings)) == ([], 1)
    assert "allow_direct_output=True" in result.warnings[0]
    asked = await alone(WorkflowExecutor(alone(Ask()), "we")).run("a")
    assert asked.get_final_state() == WorkflowRunState.IDLE
    assert "propagate_request=True" in asked.warnings[0]


async def test_intermediate_outputs_bypass_the_designation_around():
    show = Show("in")
    inner = WorkflowBuilder(start_executor=show, intermediate_output_from=[show]).build()
    node, last = WorkflowExecutor(inner, "we"), Show("last")
    result = await WorkflowBuilder(start_executor=node, output_from=[last]).add_edge(node, last).build().run("a")
    assert [(e.type, e.executor_id, e.data) for e in result if e.type == "intermediate"] == [
        ("intermediate", "we", "a!")
    ]


async def test_a_run_inside_goes_on_when_all_its_requests_are_answered():
    outer = alone(WorkflowExecutor(alone(Ask(times=2)), "we", allow_direct_output=True, propagate_request=True))
    first, second = (await outer.run("a")).get_request_info_events()
    halfway = await outer.run(responses={first.request_id: "x"})
    assert (halfway.get_outputs(), halfway.get_final_state()) == ([], WorkflowRunState.IDLE_WITH_PENDING_REQUESTS)
    assert (await outer.run(responses={second.request_id: "y"})).get_outputs() == ["a?0x#1", "a?1y#2"]


async def test_an_executor_around_responds_to_requests():
    node, answers, show = WorkflowExecutor(alone(Ask()), "we"), Answer("icpt"), Show("show")
    outer = WorkflowBuilder(start_executor=node).add_edge(node, answers).add_edge(answers, node).add_edge(node, show)
    result = await outer.build().run("a")
    assert result.get_request_info_events() == []
    assert result.get_outputs() == ["a?<a?>#1!"]


def test_a_response_of_another_type_is_refused():
    request = SubWorkflowRequestMessage(WorkflowEvent.request_info("r", "ask", "a?", str), "we")
    with raises(TypeError, "str"):
        request.create_response(5)
    assert request.create_response("5").data == "5"


async def test_a_response_to_an_unknown_request_is_warned_of():
    node = WorkflowExecutor(alone(Ask()), "we")
    response = SubWorkflowResponseMessage("x", WorkflowEvent.request_info("r", "ask", "a?", str))
    result = await alone(node).run(response)
    assert "'r' is ignored" in result.warnings[0]


async def test_a_response_whose_run_failed_can_be_given_again():
    ask = Ask()
    outer = alone(WorkflowExecutor(alone(ask), "we", allow_direct_output=True, propagate_request=True))
    (request,) = (await outer.run("a")).get_request_info_events()
    ask.broken = True
    with raises(ValueError, "network"):
        await outer.run(responses={request.request_id: "yes"})
    ask.broken = False
    assert (await outer.run(responses={request.request_id: "yes"})).get_outputs() == ["a?yes#1"]


async def test_a_failure_inside_is_one_of_the_node_and_of_the_run():
    @executor
    async def fail(text: str, ctx: WorkflowContext) -> None:
        raise KeyError(text)

    run = alone(WorkflowExecutor(alone(fail), "we")).start("a")
    with pytest.raises(KeyError):
        await run.result()
    assert [e.executor_id for e in run.events if e.type == "executor_failed"] == ["we"]
    assert run.status == WorkflowRunState.FAILED


def two_sources(node: WorkflowExecutor) -> Workflow:
    """Two messages reach the node in one superstep."""
    split, left, right, end = Pass("split"), Pass("l"), Pass("r"), Show("end")
    builder = WorkflowBuilder(start_executor=split).add_fan_out_edges(split, [left, right])
    return builder.add_edge(left, node).add_edge(right, node).add_edge(node, end).build()


@pytest.mark.parametrize("thing", [WorkflowBuilder(Ask()), Ask(), None])
def test_what_is_no_workflow_is_refused_with_what_is(thing):
    with raises(TypeError, "build()", "WorkflowBuilder"):
        WorkflowExecutor(thing, "we")


@pytest.mark.parametrize(("concurrency", "expected"), [("queue", ["1", "2"]), ("isolate", ["1", "1"])])
async def test_messages_that_arrive_together_are_run_one_after_the_other_or_on_copies(concurrency, expected):
    node = WorkflowExecutor(alone(Count()), "we", concurrency=concurrency)
    result = await two_sources(node).run("a")
    assert [text[-2] for text in result.get_outputs()] == expected


async def test_messages_that_arrive_together_can_be_an_error():
    with raises(WorkflowBusyError, "concurrency='queue'"):
        await two_sources(WorkflowExecutor(alone(Count()), "we", concurrency="error")).run("a")
    with raises(ValueError, "'queue'"):
        WorkflowExecutor(alone(Count()), "we", concurrency="many")  # type: ignore[arg-type]


async def test_runs_of_isolated_copies_wait_for_their_own_responses():
    node = WorkflowExecutor(alone(Ask()), "we", propagate_request=True, concurrency="isolate")
    outer = two_sources(node)
    requests = (await outer.run("a")).get_request_info_events()
    first, second = sorted(requests, key=lambda request: str(request.data))  # they ran side by side
    assert (await outer.run(responses={second.request_id: "y"})).get_outputs() == ["a>split>r?y#1!"]
    assert (await outer.run(responses={first.request_id: "x"})).get_outputs() == ["a>split>l?x#1!"]


@pytest.mark.parametrize("depth", [1, 2, 3])
async def test_requests_and_outputs_pass_any_number_of_levels(depth):
    outer = nest(alone(Ask()), depth, propagate_request=True)
    (request,) = (await outer.run("a")).get_request_info_events()
    assert (await outer.run(responses={request.request_id: "z"})).get_outputs() == ["a?z#1"]


class CountAndAsk(Count):
    """Counts in a field, and requests a word."""

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        self.seen += 1
        await ctx.request_info(f"{text}?", str)

    @response_handler
    async def on_word(self, question: str, word: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{question}{word}{self.seen}")

    def fresh(self) -> "CountAndAsk":
        return CountAndAsk(self.id)


@pytest.mark.parametrize("concurrency", ["queue", "isolate"])
@pytest.mark.parametrize("depth", [1, 3])
async def test_a_checkpoint_holds_the_complete_run_inside(concurrency, depth, tmp_path):
    def build() -> Workflow:
        return nest(alone(CountAndAsk()), depth, propagate_request=True, concurrency=concurrency)

    storage = FileCheckpointStorage(tmp_path)
    first = await build().run("a", checkpoint_storage=storage)
    (request,) = first.get_request_info_events()
    latest = await storage.get_latest(workflow_name=build().name)
    assert latest is not None
    other_process = build()
    result = await other_process.run(
        checkpoint_id=latest.checkpoint_id, checkpoint_storage=storage, responses={request.request_id: "b"}
    )
    assert result.get_outputs() == ["a?b1"]


async def test_a_checkpoint_holds_what_runs_inside_left_behind(tmp_path):
    def build() -> Workflow:
        node, ask = WorkflowExecutor(alone(Count()), "we"), Ask()
        return WorkflowBuilder(start_executor=node, name="outer").add_edge(node, ask).add_edge(ask, node).build()

    storage = FileCheckpointStorage(tmp_path)
    (request,) = (await build().run("a", checkpoint_storage=storage)).get_request_info_events()
    latest = await storage.get_latest(workflow_name="outer")
    assert latest is not None
    assert latest.state["_executor_state"]["we"]["workflow"]["state"]["_executor_state"] == {"count": {"seen": 1}}
    run = build().start(
        resume_from=latest.checkpoint_id, checkpoint_storage=storage, responses={request.request_id: "b"}
    )
    assert (await run.result()).get_outputs() == ["a1?b#1"]


async def test_requests_and_responses_between_executors_are_stored(tmp_path):
    node, answers = WorkflowExecutor(alone(Ask()), "we"), Answer("icpt")
    show = Show("show")
    builder = WorkflowBuilder(start_executor=node, name="outer", checkpoint_storage=FileCheckpointStorage(tmp_path))
    outer = builder.add_edge(node, answers).add_edge(answers, node).add_edge(node, show).build()
    await outer.run("a")
    storage = FileCheckpointStorage(tmp_path)
    for checkpoint in await storage.list_checkpoints(workflow_name="outer"):
        result = await outer.clone().run(checkpoint_id=checkpoint.checkpoint_id, checkpoint_storage=storage)
        assert result.get_outputs() in (["a?<a?>#1!"], [])


async def test_inner_events_are_reported_live_with_the_path_of_their_nodes():
    gate = asyncio.Event()

    @executor
    async def slow(text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(text)
        await gate.wait()

    run = nest(alone(slow), 2).start("a")
    seen = []
    async for event in run.watch_stream():
        if event.type == "sub_workflow":
            seen.append(("/".join((*event.data.path, event.data.source_id or "")), event.data.type))
            if event.data.type == "output":
                gate.set()  # the node is still running
    assert ("level1/level0/slow", "executor_invoked") in seen
    assert ("level1/level0/slow", "executor_completed") in seen
    assert ("level1/level0", "executor_completed") in seen
    assert run.outputs == ["a"]
    assert RunOverlay.of(run.events).executed == {"level1", "level1/level0", "level1/level0/slow"}


async def test_run_arguments_reach_the_nodes_inside():
    seen = {}

    @executor
    async def look(text: str, ctx: WorkflowContext) -> None:
        seen.update(ctx.get_state("_workflow_run_kwargs"))

    await nest(alone(look), 2).run("a", client_kwargs={"look": {"user": "Ann"}}, function_invocation_kwargs={"k": 1})
    assert seen["client_kwargs"] == {"look": {"user": "Ann"}}
    assert seen["function_invocation_kwargs"] == {"__global__": {"k": 1}}


def test_types_and_signature_are_those_of_the_workflow_inside():
    node = WorkflowExecutor(alone(Ask()), "we", propagate_request=True)
    assert node.input_types == [SubWorkflowResponseMessage, str]
    assert node.output_types == [str, SubWorkflowRequestMessage]
    assert WorkflowExecutor(alone(Show("in")), "we").output_types == [str]
    assert node.workflow_output_types == [Any]
    assert node.to_dict()["workflow"]["start_executor_id"] == "ask"
    other = alone(WorkflowExecutor(alone(Show("in")), "we"))
    assert alone(node).graph_signature_hash != other.graph_signature_hash


async def test_it_handles_the_responses_that_it_waits_for():
    node = WorkflowExecutor(alone(Ask()), "we", propagate_request=True)
    (request,) = (await alone(node).run("a")).get_request_info_events()
    response = WorkflowMessage("x", "we", None, MessageType.RESPONSE, original_request_info_event=request)
    assert node.can_handle(response)
    assert not node.fresh().can_handle(response)
    assert node.can_handle(WorkflowMessage("text", "x"))
    assert not node.can_handle(WorkflowMessage(5, "x"))


async def test_a_bare_workflow_is_a_node_that_passes_requests_and_outputs_on():
    inner = alone(Ask())
    outer = WorkflowBuilder(start_executor=inner).build()
    (request,) = (await outer.run("a")).get_request_info_events()
    assert (await outer.run(responses={request.request_id: "b"})).get_outputs() == ["a?b#1"]
    between = WorkflowBuilder(start_executor=alone(Show("in")))
    result = (
        await WorkflowBuilder(start_executor=(first := between.build())).add_edge(first, Show("end")).build().run("a")
    )
    assert result.get_outputs() == ["a!!"]


async def test_workflows_nested_too_deeply_for_the_stack_are_refused_when_they_are_built():
    workflow = WorkflowBuilder(start_executor=Show("a"), name="w").build()
    for number in range(40):
        inner = WorkflowExecutor(workflow, f"in{number}", allow_direct_output=True)
        workflow = WorkflowBuilder(start_executor=inner, name=f"w{number}").build()
    await workflow.run("x")
    with raises(WorkflowValidationError, "40"):
        WorkflowBuilder(start_executor=WorkflowExecutor(workflow, "in"), name="outer").build()
