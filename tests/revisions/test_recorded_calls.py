"""Wherever a run calls a model, a redo answers from the recording and sends nothing that was not allowed."""

from __future__ import annotations

import asyncio
import contextvars
import pickle
from typing import Any, Never

import pytest

from agentbench import (
    Agent,
    BaseChatClient,
    ChatResponse,
    Executor,
    InMemoryCheckpointStorage,
    Message,
    RunOptions,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
    response_handler,
)
from agentbench.batch import record_call
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.revisions import ModelRecording, UnrecordedCallError
from agentbench.stategraph import END, START, AgentState, CompiledGraph, StateGraph
from agentbench.testing import Call, ScriptedChatClient
from agentbench.workflows.run.run import WorkflowRun
from tests.parts.errors import raises


class Numbered(ScriptedChatClient):
    """Repeats each request, with the number of the answer."""

    def __init__(self) -> None:
        super().__init__([lambda messages, _: f"{messages[-1].text} #{len(self.calls)}"], on_exhausted="repeat_last")


async def recorded(workflow: Workflow, message: Any = "late") -> WorkflowRun:
    options = RunOptions(record=True)
    run = workflow.start(message, checkpoint_storage=InMemoryCheckpointStorage(), options=options)
    await run.result()
    return run


@executor(id="start")
async def start(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message(text)


@executor(id="end")
async def end(text: str, ctx: WorkflowContext[Never, str]) -> None:
    await ctx.yield_output(text)


async def test_the_model_calls_of_a_condition_are_recorded_and_new_ones_wait_or_are_refused() -> None:
    client = Numbered()

    def build(question: str) -> Workflow:
        async def is_late(text: str) -> bool:
            return bool((await client.get_response(f"{question} {text}")).text)

        return WorkflowBuilder(start_executor=start).add_edge(start, end, condition=is_late).build()

    run = await recorded(build("Is it?"))
    assert [(each.executor_id, each.superstep) for each in run.recording.recorded] == [("", 1)]
    same = await run.redo(since=1, workflow=build("Is it?"), new_calls="refuse")
    assert (await same.result()).get_outputs() == ["late"]
    refused = await run.redo(since=1, workflow=build("Really?"), new_calls="refuse")
    with raises(UnrecordedCallError, executor_id=""):
        await refused.result()
    asked = await run.redo(since=0, workflow=build("Really?"))
    asked.pause_when(lambda report, plan: "before the end" if plan else None)
    await asked.result()
    assert (asked.new_call.prompt, len(client.calls)) == ("Really? late", 1)
    asked.allow_new_calls()
    await asked.result()
    assert (asked.outputs, len(client.calls)) == (["late"], 2)


async def test_the_model_calls_of_conditions_of_state_graphs_are_recorded_too() -> None:
    client = Numbered()

    class State(AgentState):
        note: str = ""

    def build(question: str) -> CompiledGraph[State]:
        async def choose(state: State) -> str:
            return "write" if (await client.get_response(question)).text else END

        graph = StateGraph(State).add_node("read", lambda state: {"note": "a"})
        graph.add_node("write", lambda state: {"note": "b"})
        graph.add_edge(START, "read").add_conditional_edges("read", choose, ["write", END])
        return graph.add_edge("write", END).compile()

    run = await build("Go on?").astart({}, {"thread_id": "t"}, record=True)
    await run.result()
    since = next(info.iteration for info in run.checkpoints if "read" in info.writers)
    same = await run.redo(since=since, workflow=build("Go on?"), new_calls="refuse")
    await same.result()
    assert (same.state["note"], len(client.calls)) == ("b", 1)
    asked = await run.redo(since=since, workflow=build("Stop?"))
    await asked.result()
    assert (asked.new_call.prompt, len(client.calls)) == ("Stop?", 1)


class _Slow(Executor):
    """Asks a model after a time."""

    def __init__(self, client: Any, name: str, seconds: float) -> None:
        super().__init__(name)
        self._client, self._seconds = client, seconds

    @handler
    async def ask(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        await asyncio.sleep(self._seconds)
        await ctx.yield_output(f"{self.id}: {(await self._client.get_response(text)).text}")


async def test_executors_with_equal_requests_get_their_own_answers_in_any_order() -> None:
    client = Numbered()

    def build(seconds: float) -> Workflow:
        several = [_Slow(client, "a", 0.05 - seconds), _Slow(client, "b", seconds)]
        return WorkflowBuilder(start_executor=start).add_fan_out_edges(start, several).build()

    run = await recorded(build(0.0))
    assert sorted(run.outputs) == ["a: late #2", "b: late #1"]
    redone = await run.redo(since=1, workflow=build(0.05), new_calls="refuse")
    await redone.result()
    assert sorted(redone.outputs) == sorted(run.outputs)


async def test_a_refused_request_of_a_tool_is_the_error_although_the_agent_goes_on() -> None:
    helping, leading = Numbered(), ScriptedChatClient([Call("helper", {"task": "x"}), "done"])

    def build(instructions: str) -> Workflow:
        helper = Agent(helping, name="helper", instructions=instructions)
        lead = Agent(leading, name="lead", id="lead", tools=[helper.as_tool()])
        return WorkflowBuilder(start_executor=start).add_edge(start, lead).build()

    run = await recorded(build("Help."))
    redone = await run.redo(since=1, workflow=build("Help briefly."), new_calls="refuse")
    with raises(UnrecordedCallError, executor_id="lead") as caught:
        await redone.result()
    assert "Help briefly." in str(caught.value.request)
    assert (len(helping.calls), len(leading.calls)) == (1, 2)


def _chain(client: Any, **instructions: str) -> Workflow:
    agents = [Agent(client, name=name, id=name, instructions=instructions.get(name, "Go on.")) for name in "abc"]
    builder = WorkflowBuilder(start_executor=agents[0], name="abc")
    return builder.add_edge(agents[0], agents[1]).add_edge(agents[1], agents[2]).build()


async def test_a_redo_that_was_stopped_or_rewound_is_redone_from_the_same_recording() -> None:
    client = Numbered()
    run = await recorded(_chain(client))
    stopped = await run.redo(since=0, workflow=_chain(client, b="Other."))
    await stopped.result()
    stopped.stop()
    await stopped.result()
    redone = await stopped.redo(since=0, workflow=_chain(client), new_calls="refuse")
    await redone.result()
    await redone.restore_checkpoint(redone.checkpoints[0])
    await redone.result()
    assert (str(redone.outputs[-1]), len(client.calls)) == (str(run.outputs[-1]), 3)


async def test_a_run_that_went_back_is_redone_from_what_came_after() -> None:
    client = Numbered()
    run = await recorded(_chain(client))
    await run.restore_checkpoint(run.checkpoints[0])
    await run.result()
    for recording in (
        run.recording,
        await ModelRecording.of_run(run.storage or InMemoryCheckpointStorage(), "abc", run.run_id),
    ):
        assert [each.superstep for each in recording.recorded] == [0, 1, 2]
    redone = await run.redo(since=1, workflow=_chain(client), new_calls="refuse")
    await redone.result()
    assert (redone.outputs[-1].text, len(client.calls)) == (run.outputs[-1].text, 5)


async def test_a_fork_on_another_chain_is_redone_from_the_recording_of_its_origin() -> None:
    client = Numbered()
    run = await recorded(_chain(client))
    fork = await run.fork(run.checkpoints[1], chain="other")
    await fork.result()
    assert len(client.calls) == 4
    redone = await fork.redo(since=1, workflow=_chain(client), new_calls="refuse")
    await redone.result()
    assert (redone.outputs[-1].text, len(client.calls)) == (fork.outputs[-1].text, 4)


async def test_a_request_that_two_runs_recorded_is_answered_as_often_as_one_of_them_made_it() -> None:
    client = Numbered()
    run = await recorded(_chain(client))
    once = await run.redo(since=1, workflow=_chain(client), new_calls="refuse")
    await once.result()
    twice = await once.redo(since=1, workflow=_chain(client), new_calls="refuse")
    await twice.result()
    assert twice.recording.unused == ([], [])


async def test_a_run_without_storage_is_redone_from_its_input_only() -> None:
    client = Numbered()
    run = _chain(client).start("late", options=RunOptions(record=True))
    await run.result()
    with pytest.raises(WorkflowCheckpointException, match="since is 1"):
        await run.redo(since=1, workflow=_chain(client))
    redone = await run.redo(workflow=_chain(client, c="Other."))
    await redone.result()
    assert (redone.new_call.executor_id, len(client.calls)) == ("c", 3)


class _Rounds(Executor):
    """Asks the same question again until the answer is no."""

    @handler
    async def ask(self, text: str, ctx: WorkflowContext) -> None:
        await ctx.request_info("Another round?", str)

    @response_handler
    async def go_on(self, question: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
        if answer == "no":
            await ctx.yield_output("over")
        else:
            await ctx.send_message(answer)


async def test_an_answer_from_before_the_redo_does_not_answer_a_later_question() -> None:
    def build() -> Workflow:
        rounds = _Rounds(id="rounds")
        return WorkflowBuilder(start_executor=rounds).add_edge(rounds, start).add_edge(start, rounds).build()

    run = await recorded(build(), "go")
    for answer in ("yes", "no"):
        await run.respond(run.pending_requests[0], answer)
        await run.result()
    assert run.outputs == ["over"]
    for since, n_given in ((0, 2), (2, 1), (4, 1), (5, 0)):
        redone = await run.redo(since=since, workflow=build())
        await redone.result()
        assert (redone.outputs, len(redone.recording.answers)) == (["over"], n_given), since


class _Forwarding(BaseChatClient[Any]):
    """Passes requests on to another client."""

    def __init__(self, client: Any) -> None:
        super().__init__()
        self._client = client

    def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        return self._client.get_response(messages, stream=stream)


async def test_a_request_that_a_client_passes_on_counts_once_also_as_a_stream() -> None:
    client = Numbered()

    def build(prompt: str) -> Workflow:
        @executor(id="ask")
        async def ask(text: str, ctx: WorkflowContext[Never, str]) -> None:
            async for update in _Forwarding(client).get_response(prompt, stream=True):
                await ctx.yield_output(update.text)

        return WorkflowBuilder(start_executor=ask).build()

    run = await recorded(build("One?"))
    assert len(run.recording.calls) == 1
    redone = await run.redo(since=0, workflow=build("Two?"), new_calls=1)
    await redone.result()
    assert len(client.calls) == 2


async def test_a_run_that_a_handler_starts_sends_nothing_new_even_if_it_records_itself() -> None:
    client = Numbered()

    def build(prompt: str) -> Workflow:
        @executor(id="outer")
        async def outer(text: str, ctx: WorkflowContext) -> None:
            await recorded(_chain(client, a=prompt))

        return WorkflowBuilder(start_executor=outer).build()

    run = await recorded(build("One."))
    redone = await run.redo(since=0, workflow=build("Two."), new_calls="refuse")
    with raises(UnrecordedCallError, executor_id="outer"):
        await redone.result()
    assert len(client.calls) == 3


async def test_a_fork_of_a_redone_run_sends_no_new_request_either() -> None:
    client = Numbered()
    run = await recorded(_chain(client))
    redone = await run.redo(since=0, workflow=_chain(client), new_calls="refuse")
    await redone.step()
    fork = await redone.fork()
    await fork.result()
    assert (fork.outputs[-1].text, len(client.calls)) == (run.outputs[-1].text, 3)
    with raises(UnrecordedCallError, executor_id="a"):
        await (await redone.fork("input", message="early")).result()


class _Elsewhere:
    """Has handlers called as on another machine, which gets what can be pickled."""

    def __init__(self) -> None:
        self.n_calls = 0

    async def prepare(self, executors: Any) -> None:
        """Take all executors."""

    async def call(self, executor: Executor, call: Any) -> Any:
        self.n_calls += 1
        there = record_call(executor, pickle.loads(pickle.dumps(call)))
        return await asyncio.get_running_loop().create_task(there, context=contextvars.Context())


class _Far(_Slow):
    """Runs on workers."""

    placement = "workers"


async def test_a_redo_runs_all_handlers_in_this_process_where_it_sees_their_requests() -> None:
    client, elsewhere = Numbered(), _Elsewhere()
    far = _Far(client, "far", 0)
    workflow = WorkflowBuilder(start_executor=start).add_edge(start, far).build()
    run = workflow.start(
        "late", checkpoint_storage=InMemoryCheckpointStorage(), options=RunOptions(record=True, workers=elsewhere)
    )
    await run.result()
    redone = await run.redo(since=1, workflow=workflow, new_calls="refuse")
    with raises(UnrecordedCallError, executor_id="far"):
        await redone.result()
    assert (elsewhere.n_calls, len(client.calls)) == (1, 1)


async def test_a_person_may_take_longer_than_the_time_limit_of_a_handler_to_allow_its_request() -> None:
    client = Numbered()

    def build(prompt: str) -> Workflow:
        @executor(id="ask", timeout=0.05)
        async def ask(text: str, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.yield_output((await client.get_response(prompt)).text)

        return WorkflowBuilder(start_executor=ask).build()

    run = await recorded(build("One?"))
    redone = await run.redo(since=0, workflow=build("Two?"))
    await redone.result()
    await asyncio.sleep(0.1)
    redone.allow_new_calls()
    await redone.result()
    assert redone.outputs == ["Two? #2"]


class Foreign:
    """A chat client that is not derived from one of this library."""

    def __init__(self) -> None:
        self.requests = 0

    async def get_response(self, messages: Any, *, stream: bool = False, **_: Any) -> ChatResponse:
        self.requests += 1
        return ChatResponse(messages=[Message("assistant", [f"answer {self.requests}"])])


async def test_the_calls_of_an_agent_with_a_client_of_another_library_are_recorded_and_held_back() -> None:
    client = Foreign()

    def build(instructions: str) -> Workflow:
        agent = Agent(client, name="a", id="a", instructions=instructions)
        return WorkflowBuilder(start_executor=agent).build()

    run = build("Read.").start("hi", checkpoint_storage=InMemoryCheckpointStorage(), options=RunOptions(record=True))
    await run.result()
    redone = await run.redo(0, build("Read."), "refuse")
    assert (await redone.result()).get_outputs()[0].text == "answer 1"
    changed = await run.redo(0, build("Write."), "refuse")
    with raises(UnrecordedCallError, executor_id="a"):
        await changed.result()
    assert client.requests == 1
