"""Executors of one run on the workers of a Dask cluster."""

import asyncio
import os
import signal
import threading
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Never

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbench import (
    Executor,
    RunOptions,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    executor,
    handler,
    response_handler,
)
from agentbench.batch import DaskPlacement
from agentbench.batch.cluster.pickling import check_workers, pickled, require_importable, unpickled
from agentbench.exceptions import PlacementError, RemoteExecutorError, UnpicklableError
from agentbench.testing import CountingIds
from agentbench.workflows.executors.placement import placement_of
from tests.parts.cluster import client, until_exists
from tests.parts.errors import raises

__all__ = ["client"]


@dataclass
class Part:
    text: str
    weight: int = 1


class NotHereError(Exception):
    """Pickles, but does not unpickle: its constructor takes two arguments."""

    def __init__(self, name: str, place: str) -> None:
        super().__init__(f"{name} is not in {place}")


class Node(Executor):
    """Does what the message says, step by step: async, with the steps of plain handlers in `Plain`."""

    @handler
    async def on_steps(self, steps: list[str], ctx: WorkflowContext[Part | list[str], str]) -> None:
        for step in steps:
            match step:
                case "send":
                    await ctx.send_message(Part(self.id, len(steps)))
                case "yield":
                    await ctx.yield_output(f"{self.id}:{len(steps)}")
                case "set":
                    ctx.set_state(self.id, [*ctx.get_state(self.id, []), len(steps)])
                case "delete" if ctx.has_state(self.id):
                    ctx.delete_state(self.id)
                case "event":
                    await ctx.add_event(WorkflowEvent("progress", Part("half"), executor_id=self.id))
                case "print":
                    print("printed by", self.id)
                case "request":
                    await ctx.request_info(Part("ready?"), bool)
                case "fail":
                    raise KeyError(self.id)

    @response_handler
    async def on_answer(self, question: Part, answer: bool, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"{question.text} {answer} {ctx.request_id}")


class Plain(Executor):
    """Takes parts in a plain handler, and returns what nobody asked for."""

    @handler
    def on_part(self, part: Part, ctx: WorkflowContext[Never, Part]) -> int:
        ctx.yield_output(Part(part.text.upper(), part.weight + len(ctx.source_executor_ids)))
        ctx.set_state("seen by plain", [*ctx.get_state("seen by plain", []), ctx.get_state("first"), ctx.task_id])
        return 1


def flow(placement: Any) -> Any:
    first, plain = Node("first", placement=placement), Plain("plain", placement=placement)
    return WorkflowBuilder(start_executor=first).add_edge(first, plain).build()


def brief(events: Any) -> list[tuple[Any, ...]]:
    return [
        (event.type, event.source_id, event.order, event.superstep, repr(getattr(event.data, "message", event.data)))
        for event in events
    ]


async def everything_of(run: Any) -> tuple[Any, ...]:
    try:
        await run.result()
    except KeyError as error:
        return brief(run.events), error.args, run.status
    state = {key: value for key, value in run.state.items() if not key.startswith("_")}
    return brief(run.events), state, run.status


STEPS = ["send", "yield", "set", "delete", "event", "print", "request", "fail"]


@given(st.lists(st.sampled_from(STEPS), max_size=6).filter(lambda steps: steps.count("send") < 2))
@settings(max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_run_is_the_same_here_and_on_workers(client, steps):
    async def both() -> None:
        here = flow(None).start(steps, options=RunOptions(ids=CountingIds()))
        there = flow("workers").start(steps, options=RunOptions(ids=CountingIds(), workers=client))
        assert await everything_of(there) == await everything_of(here)
        if "request" in steps and "fail" not in steps:
            for request in here.pending_requests:
                await here.respond(request.request_id, True)
                await there.respond(request.request_id, True)
            assert await everything_of(there) == await everything_of(here)

    asyncio.run(both())


async def test_a_fan_out_on_workers_joins_as_it_does_here(client):
    @executor
    async def split(n: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(n)

    def add(i: int) -> Any:
        return executor(id=f"add{i}", input=int, output=int, send_result=True, on="workers")(lambda n: n + i)

    adding = [add(i) for i in range(4)]

    @executor
    async def join(parts: list[int], ctx: WorkflowContext[Never, list[int]]) -> None:
        await ctx.yield_output(parts)

    builder = WorkflowBuilder(start_executor=split).add_fan_out_edges(split, adding).add_fan_in_edges(adding, join)
    result = await builder.build().run(3, options=RunOptions(workers=client, observe=True))
    assert result.get_outputs() == [[3, 4, 5, 6]]
    completed = {event.executor_id: event.worker for event in result if event.type == "executor_completed"}
    workers = set(client.scheduler_info()["workers"])
    assert (completed.pop("split"), completed.pop("join")) == (None, None)
    assert len(completed) == 4
    assert set(completed.values()) <= workers


async def test_without_workers_an_executor_with_a_placement_runs_here():
    @executor(on="workers")
    def where(_: str, ctx: WorkflowContext[Never, int]) -> None:
        ctx.yield_output(os.getpid())

    assert (await WorkflowBuilder(start_executor=where).build().run("x")).get_outputs() == [os.getpid()]


@executor(on="workers")
def die_once(marker: Path, ctx: WorkflowContext[Never, str]) -> None:
    ctx.set_state("count", ctx.get_state("count", 0) + 1)
    ctx.yield_output("lived")
    if not marker.exists():
        marker.touch()
        os.kill(os.getpid(), signal.SIGKILL)


async def test_a_call_whose_worker_is_lost_has_one_result_and_a_second_attempt(client, tmp_path):
    run = (
        WorkflowBuilder(start_executor=die_once)
        .build()
        .start(tmp_path / "died", options=RunOptions(workers=client, observe=True))
    )
    await run.result()
    assert (run.outputs, run.state) == (["lived"], {"count": 1})
    stamps = {event.type: event.attempt for event in run.events if event.executor_id == "die_once"}
    assert stamps == {"executor_invoked": 1, "output": 2, "executor_completed": 2}


@executor(on="workers")
async def endless(folder: Path, ctx: WorkflowContext[Never, str]) -> None:
    (folder / "began").touch()
    try:
        await asyncio.Event().wait()
    finally:
        (folder / "cancelled").touch()


@executor(on="workers")
def plain_endless(folder: Path, ctx: WorkflowContext[Never, str]) -> None:
    (folder / "began").touch()
    while not ctx.stop_requested:
        threading.Event().wait(0.01)
    (folder / "cancelled").touch()


@pytest.mark.parametrize("handling", [endless, plain_endless], ids=["async", "plain"])
async def test_the_cancellation_of_a_run_reaches_the_worker(client, tmp_path, handling):
    run = WorkflowBuilder(start_executor=handling).build().start(tmp_path, options=RunOptions(workers=client))
    running = asyncio.ensure_future(run.result())
    await until_exists(tmp_path / "began")
    await run.cancel()
    await asyncio.wait((running,))
    await until_exists(tmp_path / "cancelled")


def failing(error: Any) -> Any:
    @executor(on="workers")
    async def fail(_: str, ctx: WorkflowContext) -> None:
        raise error() if callable(error) else error

    return WorkflowBuilder(start_executor=fail).build()


async def test_an_error_of_a_handler_has_its_type_and_the_traceback_of_the_worker(client):
    with raises(LookupError) as caught:
        await failing(LookupError("nothing there")).run("x", options=RunOptions(workers=client))
    assert caught.value.args == ("nothing there",)
    assert isinstance(caught.value.__cause__, RemoteExecutorError)
    assert "in fail" in caught.value.__cause__.remote_traceback


async def test_an_error_that_cannot_be_pickled_comes_back_as_text(client):
    facts = {"executor_id": "fail", "error_type": "NotHereError", "error_message": "key is not in box"}
    with raises(RemoteExecutorError, **facts) as caught:
        await failing(lambda: NotHereError("key", "box")).run("x", options=RunOptions(workers=client))
    assert "in fail" in caught.value.remote_traceback


# ---- wrong uses ----------------------------------------------------------------------------------


async def refused(handling: Any, client: Any, data: Any = "x") -> Any:
    """Run one executor that should not get to its handler; return the events."""
    run = WorkflowBuilder(start_executor=handling).build().start(data, options=RunOptions(workers=client))
    try:
        await run.result()
    finally:
        assert not [event for event in run.events if event.type == "executor_completed"]


async def test_an_executor_that_holds_a_lock_is_named_before_anything_runs(client):
    class Locked(Executor):
        placement = "workers"

        def __init__(self) -> None:
            super().__init__("locked")
            self.box = {"guard": threading.Lock()}

        @handler
        async def on_text(self, text: str, ctx: WorkflowContext) -> None: ...

    @executor
    async def first(text: str, ctx: WorkflowContext[str]) -> None:
        raise AssertionError

    locked = Locked()
    workflow = WorkflowBuilder(start_executor=first).add_edge(first, locked).build()
    with raises(UnpicklableError, "lock", what="executor 'locked'", culprit=".box['guard']"):
        await workflow.run("x", options=RunOptions(workers=client))


async def test_a_closure_over_a_lock_is_named_by_its_variable(client):
    guard = threading.Lock()

    @executor(on="workers")
    async def locked(text: str, ctx: WorkflowContext) -> None:
        with guard:
            pass

    with raises(UnpicklableError, "factory", what="executor 'locked'", culprit=".guard"):
        await refused(locked, client)


async def test_a_module_of_this_machine_is_named_with_the_way_to_send_it(client, tmp_path, monkeypatch):
    cloudpickle = pytest.importorskip("cloudpickle")

    (tmp_path / "only_here.py").write_text("def triple(n):\n    return 3 * n\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    import only_here  # type: ignore[import-not-found]

    triple = executor(id="triple", input=int, workflow_output=int, on="workers")(only_here.triple)
    with raises(UnpicklableError, "register_pickle_by_value(only_here)", what="executor 'triple'", culprit="only_here"):
        await refused(triple, client, 1)
    cloudpickle.register_pickle_by_value(only_here)
    try:
        await refused_not(triple, client)
    finally:
        cloudpickle.unregister_pickle_by_value(only_here)


async def refused_not(handling: Any, client: Any) -> None:
    await WorkflowBuilder(start_executor=handling).build().run(1, options=RunOptions(workers=client))


async def test_a_message_and_a_result_that_cannot_be_pickled_are_named(client):
    @executor(on="workers")
    async def take(value: Any, ctx: WorkflowContext) -> None: ...

    @executor(on="workers")
    async def make(value: str, ctx: WorkflowContext[Any]) -> None:
        await ctx.send_message({"lock": threading.Lock()})

    with raises(UnpicklableError, what="the message to executor 'take'", culprit="[0]"):
        await refused(take, client, [threading.Lock()])
    with raises(UnpicklableError, what="a message of executor 'make'", culprit="['lock']"):
        await refused(make, client)


async def test_a_state_value_that_cannot_be_pickled_is_an_error_only_where_it_is_read(client):
    @executor
    async def fill(text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("lock", threading.Lock())
        await ctx.send_message(text)

    @executor(on="workers")
    async def read(text: str, ctx: WorkflowContext[Never, bool]) -> None:
        await ctx.yield_output(ctx.has_state("lock"))
        if text == "read it":
            ctx.get_state("lock")

    workflow = WorkflowBuilder(start_executor=fill).add_edge(fill, read).build()
    run = workflow.start("x", options=RunOptions(workers=client))
    assert (await run.result()).get_outputs() == [True]
    with raises(UnpicklableError, what="the value of state key 'lock'"):
        await workflow.start("read it", options=RunOptions(workers=client)).result()


async def test_an_executor_that_keeps_state_is_refused(client):
    class Count(Executor):
        placement = "workers"

        @handler
        async def on_text(self, text: str, ctx: WorkflowContext) -> None: ...

        async def on_checkpoint_save(self) -> dict[str, Any]:
            return {}

    with raises(PlacementError, "on_checkpoint_save", executor_id="count"):
        await refused(Count("count"), client)


def test_a_closed_client_and_one_of_an_event_loop_are_refused(client):
    from distributed import Client

    with Client(client.scheduler.address) as closed:
        options = RunOptions(workers=closed)
    with raises(PlacementError, "closed"):
        RunOptions(workers=closed)
    with raises(PlacementError, "closed"):
        WorkflowBuilder(start_executor=endless).build().start(Path(), options=options)

    async def use_asynchronous_client() -> None:
        async with Client(client.scheduler.address, asynchronous=True) as bound:
            RunOptions(workers=bound)

    with raises(PlacementError, "asynchronous=True"):
        asyncio.run(use_asynchronous_client())


async def test_a_client_that_is_closed_during_a_call_ends_it_with_an_error(client, tmp_path):
    from distributed import Client

    with Client(client.scheduler.address) as other:
        run = WorkflowBuilder(start_executor=endless).build().start(tmp_path, options=RunOptions(workers=other))
        running = asyncio.ensure_future(run.result())
        await until_exists(tmp_path / "began")
        await asyncio.to_thread(other.close)
        with raises(PlacementError, executor_id="endless"):
            await running
    await until_exists(tmp_path / "cancelled")


def test_workers_with_another_python_are_named(client, monkeypatch):
    worker = {"host": {"python": "3.9.1.final.0"}}
    monkeypatch.setattr(client, "get_versions", lambda: {"workers": {"tcp://10.0.0.7:4000": worker}})
    with raises(PlacementError, "tcp://10.0.0.7:4000", "3.9.1"):
        check_workers(client)


@pytest.mark.parametrize("workers", [5, "tcp://127.0.0.1:8786", object], ids=["number", "address", "class"])
def test_other_values_are_no_workers(workers):
    with raises(TypeError, "Client"):
        RunOptions(workers=workers)


def test_a_misspelt_placement_is_named():
    with raises(ValueError, "'worker'", "'workers'"):
        executor(id="x", input=str, on="worker")(len)  # type: ignore[call-overload]

    class Misplaced(Plain):
        placement = "worker"  # type: ignore[assignment]

    with raises(ValueError, "'worker'", "'workers'"):
        Misplaced("x")


def test_a_client_has_one_placement(client):
    placement = placement_of(client)
    assert isinstance(placement, DaskPlacement)
    assert placement_of(client) is placement
    assert placement_of(placement) is placement


def test_functions_and_classes_of_a_notebook_are_pickled_by_value():
    scope: dict[str, Any] = {"__name__": "__main__"}
    exec(
        "from agentbench import Executor, WorkflowContext, handler\n"
        "class Echo(Executor):\n"
        "    @handler\n"
        "    async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None: ...\n",
        scope,
    )
    echo = scope["Echo"]("echo")
    copy = unpickled(pickled(echo, "echo"))
    assert [spec.name for spec in copy._ab_handlers.specs] == ["on_text"]
    with raises(UnpicklableError, what="executor 'echo'", culprit="Echo"):
        require_importable([str, int | scope["Echo"]], "executor 'echo'")
