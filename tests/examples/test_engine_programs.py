"""Programs that use the engine as its guides teach it, through the front door alone."""

import threading
from dataclasses import dataclass
from typing import Any

import pytest

from agentbench import (
    Case,
    CheckpointID,
    CheckpointManager,
    CheckpointStorage,
    Default,
    Executor,
    FanOutEdgeGroup,
    InMemoryCheckpointStorage,
    InProcessExecution,
    InProcRunnerContext,
    Runner,
    SingleEdgeGroup,
    State,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowContext,
    WorkflowEventType,
    WorkflowMessage,
    WorkflowRunState,
    executor,
    handler,
    response_handler,
)

# ---- executors as the guides write them ------------------------------------------------------------


class UpperCase(Executor):
    def __init__(self) -> None:
        super().__init__(id="upper_case")

    @handler
    async def process(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text.upper())


class Show(Executor):
    def __init__(self, id: str = "show") -> None:  # noqa: A002 - the name of the base class
        super().__init__(id=id)

    @handler
    async def show(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{text}!")


class Flexible(Executor):
    def __init__(self) -> None:
        super().__init__(id="flex")

    @handler(input=str, output=int, workflow_output=str)
    async def process(self, text, ctx) -> None:
        await ctx.send_message(len(text))
        await ctx.yield_output(text[:10])


class Numbers(Executor):
    def __init__(self) -> None:
        super().__init__(id="numbers")
        self.seen: list[int] = []

    @handler
    async def keep(self, number: int, ctx: WorkflowContext) -> None:
        self.seen.append(number)


class Poly(Executor):
    def __init__(self) -> None:
        super().__init__(id="poly")

    @handler
    async def handle_str(self, msg: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(f"string: {msg}")

    @handler
    async def handle_int(self, msg: int, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(f"int: {msg}")


class Counting(Executor):
    def __init__(self) -> None:
        super().__init__(id="counter")
        self._count = 0

    @handler
    async def count(self, msg: str, ctx: WorkflowContext[int, int]) -> None:
        self._count += 1
        await ctx.yield_output(self._count)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"count": self._count}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self._count = state.get("count", 0)


# ---- two dialects ----------------------------------------------------------------------------------


def fluent(name, first, second, **settings):
    builder = WorkflowBuilder(name=name).add_executor(first).add_executor(second).connect(first, second)
    if "storage" in settings:
        builder = builder.checkpoint_storage(settings["storage"])
    return builder.max_iterations(10).build()


def by_keywords(name, first, second, **settings):
    builder = WorkflowBuilder(
        max_iterations=10, name=name, start_executor=first, checkpoint_storage=settings.get("storage")
    )
    return builder.add_edge(first, second).build()


both_dialects = pytest.mark.parametrize("build", [fluent, by_keywords])


@both_dialects
async def test_two_steps_and_both_spellings_of_the_outputs(build):
    result = await build("two_step", UpperCase(), Show()).run("ab")
    assert result.outputs == result.get_outputs() == ["AB!"]
    assert result.get_final_state() is WorkflowRunState.IDLE


def test_both_dialects_build_the_same_graph():
    one, other = (build("w", UpperCase(), Show()) for build in (fluent, by_keywords))
    assert one.graph_signature_hash == other.graph_signature_hash
    assert one.max_iterations == other.max_iterations == 10


@both_dialects
async def test_explicit_types_send_on_and_yield(build):
    numbers = Numbers()
    result = await build("flexible", Flexible(), numbers).run("a long sentence")
    assert result.outputs == ["a long sen"]
    assert numbers.seen == [15]


@both_dialects
@pytest.mark.parametrize(("message", "shown"), [("a", "string: a!"), (3, "int: 3!")])
async def test_the_type_of_a_message_picks_the_handler(build, message, shown):
    assert (await build("poly", Poly(), Show()).run(message)).outputs == [shown]


@both_dialects
async def test_functions_are_nodes(build):
    @executor
    async def normalize(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text.strip().lower())

    @executor(id="word_counter", input=str, output=int, workflow_output=int)
    async def count_words(text: str, ctx: WorkflowContext[int, int]) -> None:
        await ctx.yield_output(len(text.split()))

    assert (normalize.id, count_words.id) == ("normalize", "word_counter")
    assert (await build("words", normalize, count_words).run("  One TWO three ")).outputs == [3]


@both_dialects
async def test_a_plain_function_needs_no_await_and_no_loop(build):
    thread = []

    @executor(id="shout")
    def shout(text: str, ctx: WorkflowContext[str]) -> None:
        thread.append(threading.get_ident())
        ctx.send_message(text.upper())

    assert (await build("cpu", shout, Show()).run("data")).outputs == ["DATA!"]
    assert thread != [threading.get_ident()]


@dataclass
class Request:
    text: str


@dataclass
class Reply:
    size: int


# ---- edges -----------------------------------------------------------------------------------------


def passes(key):
    async def act(msg, ctx):
        await ctx.send_message(msg)

    return executor(id=key, input=dict, output=dict)(act)


def names(key):
    async def act(msg, ctx):
        await ctx.yield_output(key)

    return executor(id=key, input=dict, workflow_output=str)(act)


async def reached(group, source, targets, message):
    builder = WorkflowBuilder(name="edges").add_executor(passes(source))
    for target in targets:
        builder.add_executor(names(target))
    return sorted((await builder.add_edge_group(group).build().run(message)).outputs)


def route_by_language(msg: dict[str, Any], targets: list[str]) -> list[str]:
    preferred = f"agent_{msg.get('language', 'en')}"
    return [preferred] if preferred in targets else ["agent_en"]


@pytest.mark.parametrize(
    ("message", "target"),
    [({"language": "fr"}, "agent_fr"), ({"language": "xx"}, "agent_en"), ({}, "agent_en")],
)
async def test_a_fan_out_may_select_its_targets(message, target):
    targets = ["agent_en", "agent_fr", "agent_de"]
    group = FanOutEdgeGroup(source_id="classifier", target_ids=targets, selection_func=route_by_language)
    assert await reached(group, "classifier", targets, message) == [target]


@pytest.mark.parametrize(("priority", "target"), [("high", "fast"), ("low", "batch")])
async def test_a_switch_in_both_dialects(priority, target):
    def high(msg: dict[str, Any]) -> bool:
        return bool(msg["priority"] == "high")

    async def run(extend):
        router, fast, batch = passes("router"), names("fast"), names("batch")
        builder = WorkflowBuilder(name="switch", start_executor=router)
        return (await extend(builder, router, fast, batch).build().run({"priority": priority})).outputs

    fluent_outputs = await run(lambda b, r, fast, batch: b.switch(r, [Case(high, fast), Default(batch)]))
    keyword_outputs = await run(
        lambda b, r, fast, batch: b.add_switch_case_edge_group(r, [Case(high, fast), Default(batch)])
    )
    assert fluent_outputs == keyword_outputs == [target]


def searching(key):
    @executor(id=key)
    async def search(query: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(f"{key}:{query}")

    return search


@executor
async def each(text: str, ctx: WorkflowContext[str, str]) -> None:
    await ctx.yield_output(text)


@executor
async def join(texts: list[str], ctx: WorkflowContext[str, list[str]]) -> None:
    await ctx.yield_output(texts)


async def test_a_fan_in_joins_or_passes_on_as_its_target_takes_it():
    left, right = searching("l"), searching("r")
    independent = WorkflowBuilder(name="i").fan_out(each_on, [left, right]).fan_in([left, right], each).build()
    barrier = (
        WorkflowBuilder(start_executor=each_on)
        .add_fan_out_edges(each_on, [left, right])
        .add_fan_in_edges([left, right], join)
        .build()
    )
    assert sorted((await independent.run("x")).outputs) == ["l:x", "r:x"]
    assert (await barrier.run("x")).outputs == [["l:x", "r:x"]]


@executor
async def each_on(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message(text)


# ---- watching --------------------------------------------------------------------------------------


@both_dialects
async def test_events_are_distinguished_by_constants_or_by_text_and_name_their_source(build):
    seen = []
    async for event in build("watched", UpperCase(), Show()).run_stream("ab"):
        if event.type == WorkflowEventType.EXECUTOR_INVOKED:
            seen.append(f">> {event.source_id} {event.data!r}")
        elif event.type == "executor_completed":
            seen.append(f"<< {event.source_id} {event.data!r}")
        elif event.type == WorkflowEventType.EXECUTOR_FAILED:
            seen.append(f"!! {event.source_id} {event.data!r}")
        else:
            seen.append(f"{event.type} {event.source_id}")
    assert seen == [
        "started None",
        "status None",
        ">> upper_case 'ab'",
        "<< upper_case ['AB']",
        "superstep_started None",
        ">> show 'AB'",
        "output show",
        "<< show ['AB!']",
        "superstep_completed None",
        "status None",
    ]


async def test_the_runner_can_be_driven_by_hand():
    nodes: dict[str, Executor] = {"upper_case": UpperCase(), "show": Show()}
    context = InProcRunnerContext()
    runner = Runner([SingleEdgeGroup("upper_case", "show")], nodes, State(), context, "by hand", "hash", 5)
    await context.send_message(WorkflowMessage("AB", "upper_case"))
    seen = [(event.type, event.source_id, event.data) async for event in runner.run_until_convergence()]
    assert seen == [
        ("superstep_started", None, None),
        ("executor_invoked", "show", "AB"),
        ("output", "show", "AB!"),
        ("executor_completed", "show", ["AB!"]),
        ("superstep_completed", None, None),
    ]


# ---- limits and errors -----------------------------------------------------------------------------


# ---- checkpoints -----------------------------------------------------------------------------------


@both_dialects
async def test_a_run_is_resumed_from_its_latest_checkpoint(build):
    storage = InMemoryCheckpointStorage()
    workflow = build("resumable_pipeline", UpperCase(), Show(), storage=storage)
    assert (await workflow.run("initial input")).outputs == ["INITIAL INPUT!"]
    first, latest = await storage.list_checkpoints(workflow_name="resumable_pipeline")
    assert (first.iteration_count, latest.iteration_count) == (0, 1)
    assert list(first.messages) == ["upper_case"]
    assert latest.previous_checkpoint_id == first.checkpoint_id
    assert first.graph_signature_hash == workflow.graph_signature_hash
    again: Any = await workflow.run_from_checkpoint(first.checkpoint_id)
    assert again.outputs == ["INITIAL INPUT!"]


async def test_an_executor_keeps_its_count_in_checkpoints():
    storage = InMemoryCheckpointStorage()

    def build():
        return WorkflowBuilder(name="count", checkpoint_storage=storage, start_executor=Counting()).build()

    workflow = build()
    for _ in range(3):
        await workflow.run("x")
    latest = await storage.get_latest(workflow_name="count")
    assert latest is not None
    assert latest.state["_executor_state"] == {"counter": {"count": 3}}
    fresh = build()
    await fresh.run(checkpoint_id=latest.checkpoint_id)
    assert (await fresh.run("x")).outputs == [4]


async def test_a_checkpoint_of_another_graph_is_refused_and_a_fresh_run_goes_on():
    storage = InMemoryCheckpointStorage()
    await by_keywords("pipeline", UpperCase(), Show(), storage=storage).run("a")
    old = await storage.get_latest(workflow_name="pipeline")
    assert old is not None
    changed = by_keywords("pipeline", UpperCase(), Show("renamed"), storage=storage)
    try:
        result = await changed.run(checkpoint_id=old.checkpoint_id)
    except WorkflowCheckpointException:
        result = await changed.run("a")
    assert result.outputs == ["A!"]
    assert "executor_invoked" in {e.type for e in result}


class DictStorage:
    """A storage of one's own: six methods and no base class."""

    def __init__(self) -> None:
        self.saved: dict[str, dict[str, Any]] = {}

    async def save(self, checkpoint: WorkflowCheckpoint) -> CheckpointID:
        self.saved[checkpoint.checkpoint_id] = checkpoint.to_dict()
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
        if checkpoint_id not in self.saved:
            raise WorkflowCheckpointException(f"No checkpoint with id: {checkpoint_id}")
        return WorkflowCheckpoint.from_dict(self.saved[checkpoint_id])

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        return [WorkflowCheckpoint.from_dict(d) for d in self.saved.values() if d["workflow_name"] == workflow_name]

    async def delete(self, checkpoint_id: CheckpointID) -> bool:
        return self.saved.pop(checkpoint_id, None) is not None

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        found = await self.list_checkpoints(workflow_name=workflow_name)
        return found[-1] if found else None

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[CheckpointID]:
        return [c.checkpoint_id for c in await self.list_checkpoints(workflow_name=workflow_name)]


async def get_checkpoint_history(storage: CheckpointStorage, workflow_name: str) -> list[WorkflowCheckpoint]:
    found = await storage.list_checkpoints(workflow_name=workflow_name)
    return sorted(found, key=lambda c: c.timestamp)


@both_dialects
@pytest.mark.parametrize("kind", [DictStorage, InMemoryCheckpointStorage])
async def test_any_class_with_the_six_methods_is_a_storage(build, kind):
    storage = kind()
    assert isinstance(storage, CheckpointStorage)
    await build("own", UpperCase(), Show(), storage=storage).run("ab")
    history = await get_checkpoint_history(storage, "own")
    assert [c.iteration_count for c in history] == [0, 1]
    assert [c.previous_checkpoint_id for c in history] == [None, history[0].checkpoint_id]
    again = await build("own", UpperCase(), Show()).run(
        checkpoint_id=history[0].checkpoint_id, checkpoint_storage=storage
    )
    assert again.outputs == ["AB!"]
    with pytest.raises(WorkflowCheckpointException):
        await build("own", UpperCase(), Show(), storage=storage).run(checkpoint_id="unknown")


# ---- questions, and the handle ---------------------------------------------------------------------


class Review(Executor):
    @handler
    async def ask(self, draft: str, ctx: WorkflowContext) -> None:
        await ctx.request_info(draft, str)

    @response_handler
    async def decide(self, draft: str, verdict: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{draft}: {verdict}")


async def test_a_question_is_answered_in_a_fresh_instance():
    def make_flow(store):
        return WorkflowBuilder(name="review", checkpoint_storage=store, start_executor=Review("review")).build()

    store = InMemoryCheckpointStorage()
    first = await make_flow(store).run("draft")
    (ask,) = first.get_request_info_events()
    checkpoint = await store.get_latest(workflow_name="review")
    assert checkpoint is not None
    done = await make_flow(store).run(checkpoint_id=checkpoint.checkpoint_id, responses={ask.request_id: "ok"})
    assert done.get_final_state() is WorkflowRunState.IDLE
    assert done.outputs == ["draft: ok"]
    assert done.get_request_info_events() == []


@both_dialects
async def test_a_handle_rewinds_on_the_same_run(build):
    workflow = build("rewind", UpperCase(), Show())
    run = await InProcessExecution.run_streaming(workflow, "ab", CheckpointManager.create_in_memory())
    events = [e async for e in run.watch_stream()]
    await run.restore_checkpoint(run.checkpoints[0])
    again = [e async for e in run.watch_stream()]
    outputs = [[e.data for e in seen if e.type == "output"] for seen in (events, again)]
    assert outputs == [["AB!"], ["AB!"]]
    assert [e.source_id for e in again if e.type == "executor_invoked"] == ["show"]
