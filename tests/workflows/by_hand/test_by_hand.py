"""Programs that drive the engine by hand: a runner, executors and contexts over a backend of their own."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from typing import Any

import pytest

from agentbench import (
    Executor,
    FanInEdgeGroup,
    GraphConnectivityError,
    InMemoryCheckpointStorage,
    InProcRunnerContext,
    InternalEdgeGroup,
    MessageType,
    Runner,
    RunnerContext,
    SingleEdgeGroup,
    State,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowContext,
    WorkflowConvergenceException,
    WorkflowEvent,
    WorkflowMessage,
    WorkflowRunnerException,
    create_edge_runner,
    handler,
    response_handler,
)
from agentbench.exceptions import CheckpointNotFoundError, GraphMismatchError
from tests.parts.errors import raises


class Backend:
    """A backend of its own: nothing of the library's but messages, events and checkpoints."""

    def __init__(self, storage: Any = None) -> None:
        self.queue: dict[str, list[WorkflowMessage]] = defaultdict(list)
        self.events: asyncio.Queue[WorkflowEvent[Any]] = asyncio.Queue()
        self.requests: dict[str, WorkflowEvent[Any]] = {}
        self.storages = [storage, None]
        self.streaming = False
        self.classifier: Any = None

    async def send_message(self, message: WorkflowMessage) -> None:
        await asyncio.sleep(0)  # another process is never at hand at once
        self.queue[message.source_id].append(message)

    async def drain_messages(self) -> dict[str, list[WorkflowMessage]]:
        taken, self.queue = self.queue, defaultdict(list)
        return dict(taken)

    async def has_messages(self) -> bool:
        return bool(self.queue)

    async def add_event(self, event: WorkflowEvent[Any]) -> None:
        await asyncio.sleep(0)
        await self.events.put(event)

    async def drain_events(self) -> list[WorkflowEvent[Any]]:
        return [self.events.get_nowait() for _ in range(self.events.qsize())]

    async def has_events(self) -> bool:
        return not self.events.empty()

    async def next_event(self) -> WorkflowEvent[Any]:
        return await self.events.get()

    def has_checkpointing(self) -> bool:
        return any(self.storages)

    def set_runtime_checkpoint_storage(self, storage: Any) -> None:
        self.storages[1] = storage

    def clear_runtime_checkpoint_storage(self) -> None:
        self.storages[1] = None

    @property
    def storage(self) -> Any:
        return self.storages[1] or self.storages[0]

    async def create_checkpoint(
        self,
        workflow_name: str,
        graph_signature_hash: str,
        state: State,
        previous_checkpoint_id: str | None,
        iteration_count: int,
        metadata: Any = None,
    ) -> str:
        saved = WorkflowCheckpoint(workflow_name, graph_signature_hash, previous_checkpoint_id=previous_checkpoint_id)
        saved.messages = {source: list(queued) for source, queued in self.queue.items()}
        saved.state, saved.iteration_count, saved.metadata = state.export_state(), iteration_count, dict(metadata)
        saved.pending_request_info_events = dict(self.requests)
        checkpoint_id: str = await self.storage.save(saved)
        return checkpoint_id

    async def load_checkpoint(self, checkpoint_id: str) -> WorkflowCheckpoint:
        checkpoint: WorkflowCheckpoint = await self.storage.load(checkpoint_id)
        return checkpoint

    async def apply_checkpoint(self, checkpoint: WorkflowCheckpoint) -> None:
        self.queue = defaultdict(list, {source: list(sent) for source, sent in checkpoint.messages.items()})
        self.requests = {}
        for event in checkpoint.pending_request_info_events.values():
            await self.add_request_info_event(event)

    async def add_request_info_event(self, event: WorkflowEvent[Any]) -> None:
        self.requests[event.request_id] = event
        await self.add_event(event)

    async def send_request_info_response(self, request_id: str, response: Any) -> None:
        event = self.requests.pop(request_id)
        target = event.source_executor_id
        source = f"internal:{target}"
        envelope = WorkflowMessage(response, source, target, MessageType.RESPONSE, original_request_info_event=event)
        await self.send_message(envelope)

    async def get_pending_request_info_events(self) -> dict[str, WorkflowEvent[Any]]:
        return dict(self.requests)

    def reset_for_new_run(self) -> None:
        self.queue.clear()

    def set_streaming(self, streaming: bool) -> None:
        self.streaming = streaming

    def is_streaming(self) -> bool:
        return self.streaming

    def set_yield_output_classifier(self, classifier: Any) -> None:
        self.classifier = classifier

    def classify_yielded_output(self, executor_id: str) -> Any:
        return "output" if self.classifier is None else self.classifier(executor_id)


@pytest.fixture(params=[InProcRunnerContext, Backend])
def backend(request: Any) -> Any:
    return request.param


class Count(Executor):
    """Counts its messages in a field, saved with checkpoints, and sends on."""

    seen = 0
    broken = False

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        self.seen += 1
        ctx.set_state("last", text)
        await ctx.yield_output(f"{text}{self.seen}")
        if self.broken:
            raise KeyError(text)
        if len(text) < 4:
            await ctx.send_message(text + self.id)

    @response_handler
    async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext) -> None:
        """Takes any answer."""

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"seen": self.seen}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]


def counting(context: Any, **settings: Any) -> tuple[Runner, dict[str, Executor], State]:
    nodes: dict[str, Executor] = {"a": Count("a"), "b": Count("b")}
    groups = [SingleEdgeGroup("a", "b"), SingleEdgeGroup("b", "a")]
    state = State()
    return Runner(groups, nodes, state, context, "by hand", "hash", **settings), nodes, state


async def outputs(runner: Runner) -> list[Any]:
    return [event.data async for event in runner.run_until_convergence() if event.type == "output"]


# ---- a runner ------------------------------------------------------------------------------------


async def test_a_runner_saves_through_its_context_and_another_one_goes_on_from_there(backend: Any):
    storage = InMemoryCheckpointStorage()
    context: RunnerContext = backend(storage)
    assert isinstance(context, RunnerContext)
    runner, _, _ = counting(context)
    await context.send_message(WorkflowMessage("x", "a"))
    assert await outputs(runner) == ["x1", "xb1", "xba2", "xbab2"]
    saved = await storage.list_checkpoints(workflow_name="by hand")
    assert [c.iteration_count for c in saved] == [0, 1, 2, 3, 4]
    assert [c.previous_checkpoint_id for c in saved] == [None, *(c.checkpoint_id for c in saved[:-1])]
    assert [c.metadata["source"] for c in saved] == ["input", *["step"] * 4]
    assert [m.data for sent in saved[2].messages.values() for m in sent] == ["xba"]

    fresh: RunnerContext = backend(storage)
    runner, nodes, state = counting(fresh)
    await runner.restore_from_checkpoint(saved[2].checkpoint_id)
    assert (runner.iteration, state.get("last"), [node.seen for node in nodes.values()]) == (2, "xb", [1, 1])  # type: ignore[attr-defined]
    assert await outputs(runner) == ["xba2", "xbab2"]
    again = (await storage.list_checkpoints(workflow_name="by hand"))[5:]
    assert [(c.iteration_count, c.previous_checkpoint_id) for c in again] == [
        (3, saved[2].checkpoint_id),
        (4, again[0].checkpoint_id),
    ]
    runner.reset_iteration_count()
    await fresh.send_message(WorkflowMessage("xxxx", "a"))
    await outputs(runner)
    first, second = (await storage.list_checkpoints(workflow_name="by hand"))[7:]
    assert [(c.iteration_count, c.previous_checkpoint_id) for c in (first, second)] == [
        (0, None),
        (1, first.checkpoint_id),
    ]


async def test_a_storage_for_one_run_goes_before_the_first_one(backend: Any):
    first, other = InMemoryCheckpointStorage(), InMemoryCheckpointStorage()
    context = backend(first)
    context.set_runtime_checkpoint_storage(other)
    await context.send_message(WorkflowMessage("xxxx", "a"))
    await outputs(counting(context)[0])
    context.clear_runtime_checkpoint_storage()
    assert [len(await s.list_checkpoint_ids(workflow_name="by hand")) for s in (first, other)] == [0, 2]
    assert context.storage is first
    assert not backend().has_checkpointing()


def test_a_workflow_says_how_a_backend_of_its_own_is_driven():
    with raises(TypeError, "runner_context", "InProc", "Runner"):
        Workflow([], {"a": Count("a")}, Count("a"), Backend())  # type: ignore[arg-type]


async def test_what_cannot_be_restored_is_one_family_of_errors(backend: Any):
    class Broken(InMemoryCheckpointStorage):
        async def load(self, checkpoint_id: str) -> WorkflowCheckpoint:
            raise OSError(checkpoint_id)

    storage = InMemoryCheckpointStorage()
    foreign = await storage.save(WorkflowCheckpoint("by hand", "another hash"))
    for context, checkpoint_id, given, error in (
        (backend(storage), "unknown", None, CheckpointNotFoundError),
        (backend(), "unknown", storage, CheckpointNotFoundError),
        (backend(storage), foreign, None, GraphMismatchError),
        (backend(), foreign, None, WorkflowCheckpointException),
        (backend(storage), None, None, WorkflowCheckpointException),
        (backend(), None, storage, WorkflowCheckpointException),
    ):
        with pytest.raises(error):
            await counting(context)[0].restore_from_checkpoint(checkpoint_id, given)  # type: ignore[arg-type]
    with pytest.raises(WorkflowCheckpointException) as caught:
        await counting(backend(Broken()))[0].restore_from_checkpoint("x")
    assert isinstance(caught.value.__cause__, OSError)


async def test_an_edge_to_an_executor_that_is_not_there_is_named():
    context = InProcRunnerContext()
    runner = Runner([SingleEdgeGroup("a", "b")], {"a": Count("a")}, State(), context, "by hand", "hash")
    await context.send_message(WorkflowMessage("x", "a"))
    with raises(GraphConnectivityError, "'b'", "'a'"):
        await outputs(runner)


async def test_a_runner_with_another_hash_names_the_hashes_and_no_start():
    storage = InMemoryCheckpointStorage()
    workflow = WorkflowBuilder(Count("a"), name="flow", checkpoint_storage=storage).build()
    await workflow.run("x")
    saved = await storage.get_latest(workflow_name="flow")
    assert saved is not None
    runner = Runner([], workflow.executors, State(), InProcRunnerContext(storage), "flow", "mine")
    with raises(GraphMismatchError, f"'{workflow.graph_signature_hash}'", "'mine'"):
        await runner.restore_from_checkpoint(saved.checkpoint_id)

    context = InProcRunnerContext(storage)
    await context.send_message(WorkflowMessage("x", "a"))
    await outputs(counting(context)[0])
    by_hand = await storage.get_latest(workflow_name="by hand")
    assert by_hand is not None
    with raises(GraphMismatchError, "'flow'", "'b'") as caught:
        await runner.restore_from_checkpoint(by_hand.checkpoint_id)
    assert "start" not in str(caught.value).split("start a new run")[0]


async def test_a_failing_superstep_yields_its_events_before_the_exception(backend: Any):
    context = backend()
    runner, nodes, state = counting(context)
    nodes["b"].broken = True  # type: ignore[attr-defined]
    await context.send_message(WorkflowMessage("x", "a"))
    events: Any = runner.run_until_convergence()
    types = [(await anext(events)).type for _ in range(4)]
    assert types == ["superstep_started", "executor_invoked", "output", "executor_failed"]
    with pytest.raises(KeyError):
        await anext(events)
    assert state.get("last") is None
    nodes["b"].broken = False  # type: ignore[attr-defined]
    await context.send_message(WorkflowMessage("xxx", "a"))
    assert await outputs(runner) == ["xxx2", "xxxb1"]


async def test_two_runs_of_one_runner_collide_and_a_closed_one_lets_go(backend: Any):
    context = backend()
    runner, _, _ = counting(context, max_iterations=2)
    await context.send_message(WorkflowMessage("x", "a"))
    results = await asyncio.gather(outputs(runner), outputs(runner), return_exceptions=True)
    assert isinstance(results[0], WorkflowConvergenceException)
    assert results[0].pending == {"a": 1}
    assert isinstance(results[1], WorkflowRunnerException)
    events: Any = runner.run_until_convergence()
    await anext(events)
    await events.aclose()
    runner.reset_iteration_count()
    assert [e.iteration async for e in runner.run_until_convergence() if e.type == "superstep_started"] == [1]


async def test_a_checkpoint_that_cannot_be_saved_is_a_warning(backend: Any):
    class Full(InMemoryCheckpointStorage):
        async def save(self, checkpoint: WorkflowCheckpoint) -> str:
            raise OSError("disk full")

    context = backend(Full())
    await context.send_message(WorkflowMessage("xxxx", "a"))
    events = [event async for event in counting(context)[0].run_until_convergence()]
    assert [e.data for e in events if e.type == "output"] == ["xxxx1"]
    assert all("was not saved: OSError: disk full" in e.data for e in events if e.type == "warning")


class Ask(Executor):
    fails = False

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext) -> None:
        await ctx.request_info(text, str, request_id="R")

    @response_handler
    async def on_answer(self, question: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
        if self.fails:
            raise KeyError(answer)
        await ctx.yield_output(f"{question}{answer}{ctx.request_id}")


async def test_a_request_is_answered_through_the_context_and_stays_open_over_a_checkpoint_and_a_failure(backend: Any):
    def asking(context: Any) -> tuple[Runner, Ask]:
        node = Ask("ask")
        groups = [SingleEdgeGroup("user", "ask"), InternalEdgeGroup("ask")]
        return Runner(groups, {"ask": node, "user": Count("user")}, State(), context, "asking", "hash"), node

    storage = InMemoryCheckpointStorage()
    context = backend(storage)
    runner, _ = asking(context)
    await context.send_message(WorkflowMessage("why", "user"))
    assert "request_info" in [event.type async for event in runner.run_until_convergence()]

    context = backend(storage)
    runner, node = asking(context)
    await runner.restore_from_checkpoint((await storage.get_latest(workflow_name="asking")).checkpoint_id)  # type: ignore[union-attr]
    assert [event.type for event in await context.drain_events()] == ["request_info"]
    node.fails = True
    await context.send_request_info_response("R", "!")
    with pytest.raises(KeyError):
        await outputs(runner)
    node.fails = False
    assert list(await context.get_pending_request_info_events()) == ["R"]
    await context.send_request_info_response("R", "!")
    assert await outputs(runner) == ["why!R"]
    saved = await storage.list_checkpoints(workflow_name="asking")
    assert [c.metadata["source"] for c in saved] == ["input", "step", "answer", "answer", "step"]


class Joined(Executor):
    @handler
    async def on_texts(self, texts: list[str], ctx: WorkflowContext[str, list[str]]) -> None:
        await ctx.yield_output(texts)


async def test_a_barrier_waits_over_runs_and_in_checkpoints(backend: Any):
    def joining(context: Any) -> Runner:
        nodes: dict[str, Executor] = {"a": Count("a"), "b": Count("b"), "join": Joined("join")}
        return Runner([FanInEdgeGroup(["a", "b"], "join", mode="barrier")], nodes, State(), context, "j", "hash")

    storage = InMemoryCheckpointStorage()
    context = backend(storage)
    await context.send_message(WorkflowMessage("1", "a"))
    await outputs(joining(context))
    context = backend(storage)
    runner = joining(context)
    await runner.restore_from_checkpoint((await storage.get_latest(workflow_name="j")).checkpoint_id)  # type: ignore[union-attr]
    await context.send_message(WorkflowMessage("2", "b"))
    assert await outputs(runner) == [["1", "2"]]

    edges, state = (
        create_edge_runner(FanInEdgeGroup(["a", "b"], "join", mode="barrier"), runner.graph.executors),
        State(),
    )
    assert await edges.send_message(WorkflowMessage("3", "a"), state, context)
    assert await edges.send_message(WorkflowMessage("4", "b"), state, context)
    assert [e.data for e in await context.drain_events() if e.type == "output"] == [["3", "4"]]


# ---- executors and contexts ----------------------------------------------------------------------


async def test_a_context_by_hand_acts_at_once(backend: Any):
    context = backend()
    context.set_streaming(True)
    context.set_yield_output_classifier({"a": "intermediate"}.get)
    state = State()
    ctx: WorkflowContext[str, int] = WorkflowContext(Count("a"), ["b"], state, context, request_id="R")
    await ctx.send_message("hello", "c")
    assert await context.drain_messages() == {"a": [WorkflowMessage("hello", "a", "c")]}
    await ctx.yield_output(5)
    await ctx.add_event(WorkflowEvent("mine", "x"))
    await ctx.add_event(WorkflowEvent("output", "x"))
    await ctx.request_info("why?", str, request_id="Q")
    ctx.set_state("k", 1)
    events = await context.drain_events()
    assert [(e.type, e.source_id) for e in events] == [
        ("intermediate", "a"),
        ("mine", None),
        ("warning", "a"),
        ("request_info", "a"),
    ]
    assert list(await context.get_pending_request_info_events()) == ["Q"]
    assert (ctx.get_sent_messages(), ctx.get_yielded_outputs()) == (["hello"], [5])
    assert (ctx.request_id, ctx.is_streaming(), state.get("k")) == ("R", True, 1)
    quiet: WorkflowContext[str, int] = WorkflowContext(Count("other"), ["b"], state, context)
    await quiet.yield_output(6)  # the classifier does not know it
    assert (quiet.request_id, await context.drain_events()) == (None, [])


async def test_an_executor_by_hand_emits_while_it_runs_and_queues_what_it_sent(backend: Any):
    class Slow(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            await ctx.send_message(text)
            await ctx.yield_output("first")
            await gate.wait()
            if text == "bad":
                raise KeyError(text)

    gate, context = asyncio.Event(), backend()
    task = asyncio.ensure_future(Slow("s").execute("go", ["a"], State(), context))
    types = []
    while "output" not in types:
        types.append((await context.next_event()).type)
    assert not task.done()
    gate.set()
    await task
    assert await context.drain_messages() == {"s": [WorkflowMessage("go", "s")]}
    assert [*types, *(e.type for e in await context.drain_events())] == [
        "executor_invoked",
        "output",
        "executor_completed",
    ]
    with pytest.raises(KeyError):
        await Slow("s").execute("bad", ["a"], State(), context)
    assert [e.type for e in await context.drain_events()] == ["executor_invoked", "output", "executor_failed"]
    assert not await context.has_messages()
