"""Workflows that are Python functions."""

import asyncio
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from agentbench import (
    FileCheckpointStorage,
    FunctionalWorkflow,
    FunctionalWorkflowDefinition,
    InMemoryCheckpointStorage,
    RunContext,
    RunOptions,
    StepWrapper,
    WorkflowCheckpointException,
    WorkflowEvent,
    WorkflowRunnerException,
    WorkflowRunResult,
    WorkflowRunState,
    get_run_context,
    step,
    workflow,
)
from agentbench.exceptions import FunctionCheckpointError, WorkflowBusyError
from agentbench.testing import CountingIds
from agentbench.workflows.events.events import WithdrawnWarning
from tests.parts.errors import raises, warns
from tests.parts.executors import collect as read_into

IDLE = WorkflowRunState.IDLE

calls: list[str] = []


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    calls.clear()


@step
async def upper(text: str) -> str:
    calls.append(f"upper {text}")
    return text.upper()


@step(name="twice")
async def double(ctx: RunContext, text: str) -> str:
    assert ctx is get_run_context()
    calls.append(f"double {text}")
    return text * 2


@workflow
async def ask(text: str, ctx: RunContext) -> str:
    """Ask in between.

    At length.
    """
    loud = await upper(text)
    answer = await ctx.request_info({"about": loud}, str)
    return await double(loud + answer)


def types_of(result: Any) -> list[str]:
    return [event.type for event in result]


async def test_what_the_function_returns_is_the_output():
    @workflow
    async def both(text: str) -> list[str]:
        return [text, text]

    result = await both.run("a")
    assert [(e.type, e.executor_id, e.data) for e in result] == [("output", "both", ["a", "a"])]
    assert result.get_final_state() == WorkflowRunState.IDLE


async def test_no_result_is_no_output():
    @workflow(name="quiet", description="says nothing")
    async def nothing() -> None:
        pass

    assert (nothing.name, nothing.description) == ("quiet", "says nothing")
    assert list(await nothing.run()) == []
    with raises(ValueError, "message"):
        await nothing.run("a")


async def test_a_run_waits_for_a_response_and_goes_on_past_remembered_steps():
    first = await ask.run("a")
    assert types_of(first) == ["executor_invoked", "executor_completed", "request_info"]
    assert first.get_final_state() == WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
    (request,) = first.get_request_info_events()
    assert (request.request_id, request.data, request.source_executor_id) == ("auto::0", {"about": "A"}, "ask")
    second = await ask.run(responses={"auto::0": "bb"})
    assert types_of(second) == ["executor_bypassed", "executor_invoked", "executor_completed", "output"]
    assert second.get_outputs() == ["AbbAbb"]
    assert calls == ["upper a", "double Abb"]
    assert second.get_final_state() == WorkflowRunState.IDLE
    with raises(ValueError, "open"):
        await ask.run(responses={"auto::0": "bb"})


async def test_events_of_steps_have_arguments_and_results():
    result = await ask.run("a")
    assert [(e.executor_id, e.data) for e in result][:2] == [("upper", {"args": ("a",), "kwargs": {}}), ("upper", "A")]


async def test_responses_of_earlier_rounds_are_remembered():
    @workflow
    async def twice(ctx: RunContext) -> Any:
        return await ctx.request_info("1?", str) + await ctx.request_info("2?", str, request_id="second")

    await twice.run()
    (request,) = (await twice.run(responses={"auto::0": "a"})).get_request_info_events()
    assert request.request_id == "second"
    assert (await twice.run(responses={"second": "b", "auto::0": "ignored"})).get_outputs() == ["ab"]


async def test_responses_are_checked():
    await ask.run("a")
    with raises(ValueError, "str"):
        await ask.run(responses={"auto::0": 5})
    with raises(ValueError, "auto::0"):
        await ask.run(responses={"other": "b"})
    assert (await ask.run(responses={"auto::0": "b"})).get_outputs() == ["ABAB".replace("B", "b")]


async def test_none_is_a_response_with_a_warning():
    @workflow
    async def echo(ctx: RunContext) -> list[Any]:
        return [await ctx.request_info(data="?", response_type=str)]

    await echo.run()
    result = await echo.run(responses={"auto::0": None})
    assert result.get_outputs() == [[None]]
    assert "is None" in result.warnings[0]


@pytest.mark.parametrize("storage_of", [lambda _: InMemoryCheckpointStorage(), FileCheckpointStorage])
async def test_a_run_that_failed_goes_on_from_its_last_checkpoint(storage_of, tmp_path):
    broken = [True]

    @step
    async def second(text: str) -> str:
        if broken:
            raise KeyError("network")
        return text + "!"

    @workflow
    async def pair(text: str) -> str:
        return await second(await upper(text))

    storage = storage_of(tmp_path)
    with pytest.raises(KeyError):
        await pair.run("a", checkpoint_storage=storage)
    latest = await storage.get_latest(workflow_name="pair")
    assert latest is not None
    broken.clear()
    result = await pair.run(checkpoint_id=latest.checkpoint_id, checkpoint_storage=storage)
    assert types_of(result) == ["executor_bypassed", "executor_invoked", "executor_completed", "output"]
    assert calls == ["upper a"]


async def test_checkpoints_follow_each_step_and_the_end(tmp_path):
    storage = FileCheckpointStorage(tmp_path)
    await ask.run("a", checkpoint_storage=storage)
    waiting = await storage.get_latest(workflow_name="ask")
    assert waiting is not None
    assert waiting.state["_step_cache"] == {"upper::0": "A"}
    assert waiting.state["_original_message"] == "a"
    other_process = FunctionalWorkflow(ask._function.function, name="ask", checkpoint_storage=storage)
    result = await other_process.run(checkpoint_id=waiting.checkpoint_id, responses={"auto::0": "b"})
    assert result.get_outputs() == ["AbAb"]
    saved = sorted(await storage.list_checkpoints(workflow_name="ask"), key=lambda c: c.metadata["seq"])
    assert [c.metadata["source"] for c in saved] == ["step", "interrupt", "step", "step"]
    assert [c.iteration_count for c in saved] == [0] * 4
    assert [c.previous_checkpoint_id for c in saved] == [None, *[c.checkpoint_id for c in saved[:-1]]]


def make(body: str) -> FunctionalWorkflow:
    space: dict[str, Any] = {"upper": upper}
    exec(f"async def f(text, ctx):\n    {body}", space)
    return FunctionalWorkflow(space["f"], name="f")


async def test_a_checkpoint_of_another_version_of_the_function_is_refused():
    storage = InMemoryCheckpointStorage()
    before, same, after = (make(body) for body in ("return await upper(text)", "return await upper(text)", "return 1"))
    await before.run("a", checkpoint_storage=storage)
    latest = await storage.get_latest(workflow_name="f")
    assert latest is not None
    assert (await same.run(checkpoint_id=latest.checkpoint_id, checkpoint_storage=storage)).get_outputs() == ["A"]
    for kind in (FunctionCheckpointError, WorkflowCheckpointException, ValueError):
        with raises(kind, "version"):
            await after.run(checkpoint_id=latest.checkpoint_id, checkpoint_storage=storage)


def test_comments_and_docstrings_are_no_other_version():
    def version() -> FunctionalWorkflow:
        @workflow(name="f")
        async def f(text: str) -> str:
            """Say it."""
            return text + "!"  # loud

        return f

    @workflow(name="f")
    async def f(text: str) -> str:
        return text + "!"

    assert version().graph_signature_hash == f.graph_signature_hash


async def test_malformed_keys_of_steps_are_refused():
    storage = InMemoryCheckpointStorage()
    await ask.run("a", checkpoint_storage=storage)
    checkpoint = await storage.get_latest(workflow_name="ask")
    assert checkpoint is not None
    checkpoint.state["_step_cache"] = {"upper": "A"}
    checkpoint.checkpoint_id = "edited"
    await storage.save(checkpoint)
    with raises(ValueError, "'<name>::<number>'"):
        await ask.run(checkpoint_id="edited", checkpoint_storage=storage)


async def test_other_arguments_than_remembered_are_an_error():
    texts = iter("ab")

    @workflow
    async def fickle(ctx: RunContext) -> Any:
        await upper(next(texts))
        return await ctx.request_info("?", str)

    await fickle.run()
    with raises(WorkflowRunnerException, "'upper::0'"):
        await fickle.run(responses={"auto::0": "x"})


@dataclass
class Notes:
    texts: list[str] = field(default_factory=list)


@step
async def note(items: Any, item: str, **more: Any) -> None:
    calls.append(item)
    for each in (items, *more.values()):
        if isinstance(each, list):
            each.append(item)
        elif isinstance(each, dict):
            each[item] = [item]
        elif isinstance(each, set):
            each.add(item)
        else:
            each.texts.append(item)


@workflow
async def collect(topic: str, ctx: RunContext) -> list[Any]:
    held: list[Any] = [[], {}, set(), Notes()]
    for each in held:
        await note(each, "a", also=held[0])
    await ctx.request_info("go on?", bool)
    await note(held[0], "b", also=held[3])
    return held


async def test_what_a_step_changes_in_place_is_changed_again_where_its_result_is_remembered(tmp_path: Path):
    storage = FileCheckpointStorage(tmp_path)
    waiting = await collect.run("x", checkpoint_storage=storage)
    assert waiting.warnings == []
    (request,) = waiting.get_request_info_events()
    saved = await storage.get_latest(workflow_name="collect")
    assert saved is not None
    responses = {request.request_id: True}
    (held,) = (
        await collect.run(checkpoint_id=saved.checkpoint_id, checkpoint_storage=storage, responses=responses)
    ).get_outputs()
    assert held == [["a"] * 5 + ["b"], {"a": ["a"]}, {"a"}, Notes(["a", "b"])]
    assert calls == ["a"] * 4 + ["b"]


async def test_a_change_that_cannot_be_remembered_is_warned_of():
    class Handle:
        def __init__(self) -> None:
            self.texts: list[str] = []

    @workflow
    async def use(text: str) -> None:
        await note(Handle(), text)

    with warns(RuntimeWarning, "'note'", "1"):
        result = await use.run("x")
    assert len(result.warnings) == 1
    assert "'note'" in result.warnings[0]


async def test_steps_run_side_by_side_and_results_are_remembered_although_one_asks():
    slow = asyncio.Event()

    @step
    async def wait(text: str) -> str:
        calls.append("wait")
        await slow.wait()
        return text

    @step
    async def question(ctx: RunContext) -> str:
        asyncio.get_running_loop().call_soon(slow.set)
        return str(await ctx.request_info("?", str))

    @workflow
    async def both(ctx: RunContext) -> list[str]:
        texts = list(await asyncio.gather(wait("a"), question(), upper("c")))
        return [*texts, await ctx.request_info("more?", str)]

    await both.run()
    (more,) = (await both.run(responses={"auto::0": "b"})).get_request_info_events()
    assert more.request_id == "auto::1"
    assert (await both.run(responses={"auto::1": "d"})).get_outputs() == [["a", "b", "C", "d"]]
    assert calls == ["wait", "upper c"]


async def test_requests_in_a_task_group_are_raised_together():
    @workflow
    async def grouped(ctx: RunContext) -> list[str]:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(ctx.request_info(f"{n}?", str)) for n in range(2)]
        return [task.result() for task in tasks]

    requests = (await grouped.run()).get_request_info_events()
    assert (await grouped.run(responses={r.request_id: r.data for r in requests})).get_outputs() == [["0?", "1?"]]


async def test_a_step_inside_a_step_is_remembered_with_it():
    @step
    async def outer(text: str) -> str:
        return await upper(text)

    @workflow
    async def nested(ctx: RunContext) -> list[str]:
        return [await outer("a"), await upper("b"), await ctx.request_info("?", str)]

    await nested.run()
    result = await nested.run(responses={"auto::0": "c"})
    assert result.get_outputs() == [["A", "B", "c"]]
    assert types_of(result) == ["executor_bypassed", "executor_bypassed", "output"]


async def test_a_failed_run_can_be_answered_again():
    @workflow
    async def fussy(ctx: RunContext) -> str:
        answer: str = await ctx.request_info("?", str)
        if await upper(answer) != "GOOD":
            raise ValueError("bad")
        return answer

    await fussy.run()
    with raises(ValueError, "bad"):
        await fussy.run(responses={"auto::0": "poor"})
    assert (await fussy.run(responses={"auto::0": "good"})).get_outputs() == ["good"]


async def test_user_code_cannot_catch_a_pending_request_by_accident():
    @workflow
    async def careful(ctx: RunContext) -> str:
        try:
            answer: str = await ctx.request_info("?", str)
        except Exception:  # noqa: BLE001 - as users do
            return "swallowed"
        return answer

    assert (await careful.run()).get_final_state() == WorkflowRunState.IDLE_WITH_PENDING_REQUESTS


async def test_events_are_live():
    gate = asyncio.Event()

    @step
    async def last(text: str) -> str:
        await gate.wait()
        return text

    @workflow
    async def live(text: str, ctx: RunContext) -> str:
        assert ctx.is_streaming()
        loud = await upper(text)
        await ctx.add_event(WorkflowEvent("custom", "now"))
        return await last(loud)

    stream = live.run("a", stream=True)
    seen = []
    async for event in stream:
        seen.append(event.type)
        if event.type == "custom":
            gate.set()
    assert [t for t in seen if t not in ("started", "status")] == [
        *["executor_invoked", "executor_completed", "custom", "executor_invoked", "executor_completed", "output"],
    ]
    assert (await stream.get_final_response()).get_outputs() == ["A"]


async def test_state_is_that_of_one_run_and_of_those_that_go_on_with_it():
    @step
    async def write(text: str, ctx: RunContext) -> None:
        assert ctx.get_state("text") is None
        ctx.set_state("text", text)

    @workflow
    async def note(text: str, ctx: RunContext) -> str:
        await write(text)
        await ctx.request_info("?", str)
        return str(ctx.get_state("text"))

    for text in "ab":
        await note.run(text)
        assert (await note.run(responses={"auto::0": "x"})).get_outputs() == [text]


async def test_reserved_keys_of_state_are_refused():
    @workflow
    async def bad(ctx: RunContext) -> None:
        ctx.set_state("_step_cache", {})

    with raises(ValueError, "reserved"):
        await bad.run()


async def test_one_run_at_a_time():
    gate = asyncio.Event()

    @workflow
    async def slow(text: str) -> str:
        await gate.wait()
        return text

    first = asyncio.create_task(slow.run("a"))
    await asyncio.sleep(0)
    with pytest.raises(WorkflowBusyError):
        await slow.run("b")
    gate.set()
    assert (await first).get_outputs() == ["a"]
    assert (await slow.run("b")).get_outputs() == ["b"]


async def test_a_workflow_inside_a_step_works():
    @workflow
    async def inner(text: str) -> str:
        return await upper(text)

    @step
    async def run_inner(text: str) -> str:
        output: str = (await inner.run(text)).get_outputs()[0]
        return output

    @workflow
    async def outer(text: str) -> str:
        return await run_inner(text) + await upper("x")

    result = await outer.run("a")
    assert result.get_outputs() == ["AX"]
    assert [e.executor_id for e in result if e.type == "executor_invoked"] == ["run_inner", "upper"]


async def test_outside_of_a_workflow_a_step_is_its_function():
    assert await upper("a") == "A"
    assert get_run_context() is None
    assert isinstance(upper, StepWrapper)
    assert (upper.name, double.name) == ("upper", "twice")


def test_signatures_are_checked():
    with raises(ValueError, "b"):

        @workflow
        async def two(a: str, b: str, ctx: RunContext) -> None: ...

    with raises(TypeError, "async"):

        @step  # type: ignore[arg-type]
        def plain() -> None: ...

    with raises(TypeError, "async"):

        @workflow
        def also_plain() -> None: ...

    for decorator in (workflow, step):
        with raises(TypeError, "'report'", "name='...'"):
            decorator("report")  # type: ignore[call-overload]


@pytest.mark.parametrize("passed", ["not at all", "by place", "by name"])
async def test_a_step_asks_in_its_own_name_however_it_got_the_context(passed):
    @step
    async def ask_name(prompt: str, ctx: RunContext) -> str:
        return str(await ctx.request_info(prompt, str))

    @workflow
    async def greet(_: str, ctx: RunContext) -> str:
        call = {"not at all": ((), {}), "by place": ((ctx,), {}), "by name": ((), {"ctx": ctx})}
        args, kwargs = call[passed]
        name = await ask_name("name?", *args, **kwargs)
        greeting = await ctx.request_info(f"greet {name} how?", str)
        return f"{greeting} {name}"

    await greet.run("x")
    await greet.run(responses={"auto::0": "Ann"})
    assert (await greet.run(responses={"auto::1": "Hello"})).get_outputs() == ["Hello Ann"]


async def test_two_requests_of_one_id_are_refused_so_that_no_response_answers_both():
    @workflow
    async def until_approved(draft: str, ctx: RunContext) -> str:
        while not await ctx.request_info(draft, bool, request_id="review"):
            draft += "!"
        return draft

    await until_approved.run("hi")
    with raises(ValueError, "'review'"):
        await until_approved.run(responses={"review": False})
    assert (await until_approved.run(responses={"review": True})).get_outputs() == ["hi"]


async def test_arguments_of_run_are_those_of_any_workflow():
    with raises(ValueError, "message"):
        await ask.run()
    with raises(ValueError, "combined"):
        await ask.run("a", checkpoint_id="x")
    with raises(ValueError, "storage"):
        await ask.run(checkpoint_id="x")
    with raises(TypeError, "responses={request", "True}"):
        await ask.run(responses=True)


async def test_an_error_of_a_step_is_an_event_of_it_and_of_the_run():
    @step
    async def fail() -> None:
        raise KeyError("k")

    @workflow
    async def failing() -> None:
        await fail()

    events: list[WorkflowEvent[Any]] = []
    with pytest.raises(KeyError):
        await read_into(failing.run(stream=True), events)
    types = [(e.type, e.executor_id) for e in events]
    assert ("executor_failed", "fail") in types
    assert types[-2][0] == "failed"


async def test_options_of_a_run_reach_it_and_observed_steps_say_how_long_they_took():
    storage = InMemoryCheckpointStorage()

    @step
    async def work(text: str) -> str:
        await asyncio.sleep(0.002)
        return text.upper()

    @workflow(checkpoint_storage=storage)
    async def shout(text: str) -> str:
        return await work(text)

    result = await shout.run("a", options=RunOptions(observe=True, chain="of mine", ids=CountingIds()))
    (done,) = [event for event in result if event.type == "executor_completed"]
    assert done.duration_s is not None
    assert done.duration_s >= 0.002
    first, *_ = await storage.list_checkpoints(workflow_name="of mine")
    assert first.checkpoint_id == "cp-0001"
    with raises(TypeError, "RunOptions"):
        await shout.run("a", options={"observe": True})


# ---- definitions and keys of steps -------------------------------------------------------------------


async def test_a_definition_builds_independent_instances():
    first, second = ask.build(), ask.build()
    await first.run("a")
    assert (first.status, second.status) == (WorkflowRunState.IDLE_WITH_PENDING_REQUESTS, WorkflowRunState.IDLE)
    with raises(ValueError, "auto::0"):
        await second.run(responses={"auto::0": "b"})
    assert (await first.run(responses={"auto::0": "b"})).get_outputs() == ["AbAb"]
    assert isinstance(ask, FunctionalWorkflowDefinition)
    assert not isinstance(first, FunctionalWorkflowDefinition)
    assert (first.name, first.description, first.storage) == (ask.name, ask.description, ask.storage)


def keyed(order: str, called: list[str]) -> FunctionalWorkflow:
    """Return a function whose code differs with the order of its steps."""

    @step(replay_key=lambda text: text)
    async def shout(text: str) -> str:
        called.append(text)
        return text.upper()

    space: dict[str, Any] = {"shout": shout}
    body = f"parts = [await shout(each) for each in {[*order]!r}]"
    asked = "await ctx.request_info('Go on?', str, request_id='go')"
    exec(f"async def f(text, ctx):\n    {body}\n    return ''.join(parts) + {asked}", space)
    return FunctionalWorkflow(space["f"], name="keyed")


async def test_results_of_steps_with_keys_are_found_although_the_code_was_reordered():
    storage, called = InMemoryCheckpointStorage(), list[str]()
    before = keyed("ab", called)
    await before.run("x", checkpoint_storage=storage)
    after = keyed("bca", called)
    result = await after.run(
        checkpoint_id=before.get_last_checkpoint_id(), responses={"go": "!"}, checkpoint_storage=storage
    )
    assert (result.get_outputs(), called) == (["BCA!"], ["a", "b", "c"])


async def test_a_text_as_key_finds_the_result_of_a_step_that_was_renamed():
    storage, called = InMemoryCheckpointStorage(), list[str]()

    def version(name: str) -> FunctionalWorkflow:
        @step(name=name, replay_key="fetched")
        async def fetch(text: str) -> str:
            called.append(name)
            return text.upper()

        @workflow(name="renamed")
        async def f(text: str, ctx: RunContext) -> str:
            return f"{await fetch(text)}{await ctx.request_info('Go on?', str, request_id='go')}"

        return f

    before = version("load")
    await before.run("a", checkpoint_storage=storage)
    result = await version("fetch").run(
        checkpoint_id=before.get_last_checkpoint_id(), responses={"go": "!"}, checkpoint_storage=storage
    )
    assert (result.get_outputs(), called) == (["A!"], ["load"])


def test_a_key_is_a_text_or_a_function():
    async def fetch() -> None: ...

    with raises(TypeError, "replay_key", 7):
        step(fetch, replay_key=7)  # type: ignore[call-overload]


def test_a_key_is_not_an_async_function():
    async def fetch(text: str) -> None: ...

    with raises(TypeError, "replay_key", "async"):
        step(replay_key=fetch)(fetch)


@pytest.mark.parametrize("key", [object(), (1, object()), {"a", "b"}], ids=["object", "nested", "set"])
async def test_a_key_whose_text_differs_between_processes_is_refused(key: object):
    @step(replay_key=lambda _: key)
    async def fetch(text: str) -> str:
        return text

    @workflow
    async def f(text: str) -> str:
        return await fetch(text)

    with raises(TypeError, "fetch", "replay_key", "differs between processes"):
        await f.run("x")
    assert await fetch("outside of a run there is no key") == "outside of a run there is no key"


class Library:
    """Has steps of each kind."""

    @step(replay_key=lambda self, text: text)
    async def shout(self, text: str) -> str:
        loaded.append(text)
        return text.upper()

    @staticmethod
    @step(replay_key=lambda text: text)
    async def whisper(text: str) -> str:
        loaded.append(text)
        return text.lower()

    @classmethod
    @step(replay_key=lambda cls, text: text)
    async def double(cls, text: str) -> str:
        loaded.append(text)
        return text * 2


loaded: list[str] = []


@pytest.mark.parametrize("path", ["library.{}", "module.library.{}", "package.module.library.{}"])
async def test_steps_with_keys_are_found_as_attributes_of_objects_and_modules(path: str):
    storage = InMemoryCheckpointStorage()
    loaded.clear()

    def version(*names: str) -> FunctionalWorkflow:
        library = Library()
        module = SimpleNamespace(library=library)
        space: dict[str, Any] = {"library": library, "module": module, "package": SimpleNamespace(module=module)}
        calls = "".join(f"    parts['{name}'] = await {path.format(name)}('{name[0]}X')\n" for name in names)
        asked = "await ctx.request_info('Go on?', str, request_id='go')"
        body = f"    parts = {{}}\n{calls}    return [parts[name] for name in sorted(parts)] + [{asked}]"
        exec(f"async def f(text, ctx):\n{body}", space)
        return FunctionalWorkflow(space["f"], name="attributes")

    before = version("shout", "whisper")
    await before.run("x", checkpoint_storage=storage)
    result = await version("double", "whisper", "shout").run(
        checkpoint_id=before.get_last_checkpoint_id(), responses={"go": "!"}, checkpoint_storage=storage
    )
    assert result.get_outputs() == [["dXdX", "SX", "wx", "!"]]
    assert loaded == ["sX", "wX", "dX"]


async def test_a_step_without_a_key_that_is_an_attribute_ties_a_checkpoint_to_the_code():
    storage = InMemoryCheckpointStorage()

    @step
    async def fetch(text: str) -> str:
        return text

    @step(replay_key="shout")
    async def shout(text: str) -> str:
        return text.upper()

    def version(body: str) -> FunctionalWorkflow:
        space: dict[str, Any] = {"library": SimpleNamespace(fetch=fetch), "shout": shout}
        exec(f"async def f(text, ctx):\n    {body}\n    return await ctx.request_info('Go on?', str)", space)
        return FunctionalWorkflow(space["f"], name="mixed")

    before = version("await library.fetch('a'); await shout('b')")
    await before.run("x", checkpoint_storage=storage)
    with raises(FunctionCheckpointError, "code were different"):
        await version("await shout('b'); await library.fetch('a')").run(
            checkpoint_id=before.get_last_checkpoint_id(), checkpoint_storage=storage
        )


# ---- withdrawn requests --------------------------------------------------------------------------


def two_branches(storage: Any = None) -> FunctionalWorkflow:
    @workflow(checkpoint_storage=storage)
    async def branches(text: str, ctx: RunContext) -> None:
        async def branch(name: str) -> None:
            word = await ctx.request_info(name, str, request_id=name)
            await ctx.add_event(WorkflowEvent("custom", f"{name}{word}"))

        calls.append("function")
        await asyncio.gather(branch(f"{text}1"), branch(f"{text}2"))

    return branches.build()


def withdrawn(result: WorkflowRunResult) -> list[str]:
    return [event.data.request_id for event in result if isinstance(event.data, WithdrawnWarning)]


def said(result: WorkflowRunResult) -> list[str]:
    return [event.data for event in result if str(event.type) == "custom"]


async def test_a_function_whose_requests_are_all_withdrawn_ends_and_takes_another_message():
    flow = two_branches()
    await flow.run("a")
    result = await flow.cancel_pending_requests()
    assert (withdrawn(result), result.get_final_state(), flow.status) == (["a1", "a2"], IDLE, IDLE)
    assert [*await flow.cancel_pending_requests()] == []
    assert calls == ["function"]
    assert [event.request_id for event in (await flow.run("b")).get_request_info_events()] == ["b1", "b2"]


async def test_the_other_parts_of_a_function_go_on_after_a_withdrawal():
    flow = two_branches()
    await flow.run("a")
    result = await flow.cancel_pending_requests("a1")
    assert (withdrawn(result), [event.request_id for event in result.get_request_info_events()]) == (["a1"], ["a2"])
    with raises(ValueError, "a1"):
        await flow.run(responses={"a1": "no"})
    result = await flow.run(responses={"a2": "!"})
    assert (said(result), result.get_final_state()) == (["a2!"], IDLE)


@pytest.mark.parametrize("durable", [False, True])
async def test_a_withdrawal_is_in_checkpoints_and_can_begin_at_one(durable: bool, tmp_path: Path):
    storage: Any = FileCheckpointStorage(tmp_path) if durable else InMemoryCheckpointStorage()
    first, second, third = (two_branches(storage) for _ in range(3))
    await first.run("a")
    result = await second.cancel_pending_requests(["a1"], checkpoint_id=first.get_last_checkpoint_id())
    assert withdrawn(result) == ["a1"]
    result = await third.run(checkpoint_id=second.get_last_checkpoint_id(), responses={"a2": "!"})
    assert (said(result), result.get_final_state()) == (["a2!"], IDLE)


async def test_a_request_of_a_function_that_is_not_open_cannot_be_withdrawn():
    flow = two_branches()
    await flow.run("a")
    with raises(ValueError, "other", "a1, a2"):
        await flow.cancel_pending_requests("other")
    assert [*flow.run_state.requests] == ["a1", "a2"]
