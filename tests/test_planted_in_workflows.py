"""A key is planted in what a workflow holds, in every way in which users hold one, and is in nothing that it shows."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import (
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    SecretString,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    WorkflowRun,
    handler,
    response_handler,
    run_sync,
)
from agentbench._secrets import mask_secrets, mask_text, masked_repr
from agentbench.checkpoints import diff_checkpoints
from agentbench.cli import main
from agentbench.serialization.plain import OF_LOGS, to_plain
from tests.plants import KEY, PLANTS, STORABLE, assert_nowhere

Plant = Callable[[], Any]
logger = logging.getLogger("tests.plants")


class Work(Executor):
    """Sends, stores, yields, asks for and emits what it holds, and gets it as the answer."""

    def __init__(self, plant: Plant) -> None:
        super().__init__(id="work")
        self.plant = plant

    @handler
    async def work(self, text: str, ctx: WorkflowContext[Any, Any]) -> None:
        ctx.set_state("data", self.plant())
        ctx.set_state("password", KEY)
        await ctx.send_message(self.plant())
        await ctx.yield_output(self.plant())
        await ctx.add_event(WorkflowEvent("custom", self.plant()))
        await ctx.request_info({"about": self.plant()}, object)

    @response_handler
    async def answered(self, asked: object, answer: object, ctx: WorkflowContext[Any, Any]) -> None:
        ctx.set_state("answer", answer)
        await ctx.yield_output(answer)


class Watch(Executor):
    @handler
    async def watch(self, data: object, ctx: WorkflowContext[Any, Any]) -> None:
        """Gets it as a message."""


class Fail(Executor):
    @handler
    async def fail(self, text: str, ctx: WorkflowContext[Any, Any]) -> None:
        problem = f"the service refused: password={KEY}, see https://ann:{KEY}@example.org/?api_key={KEY}"
        raise PermissionError(problem)


def make(plant: Plant, storage: Any) -> Workflow:
    work, watch = Work(plant), Watch(id="watch")
    return WorkflowBuilder(work, name="w", checkpoint_storage=storage).add_edge(work, watch).build()


async def run_of(plant: Plant, storage: Any) -> tuple[WorkflowRun, list[Any]]:
    """Run to the end; also what was shown while the request was open."""
    run = make(plant, storage).start("x")
    await run.result()
    (request,) = run.pending_requests
    waiting = [request, *run.events]
    await run.respond(request, {"value": plant()})
    await run.result()
    return run, waiting


def shown_by(*things: Any) -> Iterator[str]:
    """Whatever things print, render or say in a log."""
    for thing in things:
        yield from (repr(thing), str(thing), f"{thing}")
        for name in ("_repr_mimebundle_", "_repr_html_"):
            if callable(getattr(thing, name, None)):
                yield repr(getattr(thing, name)())
        if isinstance(thing, WorkflowEvent):
            yield json.dumps(thing.to_json_dict(), ensure_ascii=False)


@pytest.mark.filterwarnings("ignore:The checkpoint of:RuntimeWarning")
@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
async def test_no_view_of_a_run_shows_it(plant: Plant, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    storage = InMemoryCheckpointStorage()
    run, waiting = await run_of(plant, storage)
    result = await run.result()
    checkpoints = await storage.list_checkpoints(workflow_name="w")
    logger.info("%r %s %r", run.events, result, checkpoints)
    messages = [message for each in checkpoints for some in each.messages.values() for message in some]
    things = [run, result, result.outputs and result, list(run.events), *waiting, *run.events, *checkpoints, *messages]
    if len(checkpoints) > 1:
        difference = diff_checkpoints(checkpoints[0], checkpoints[-1])
        things += [difference, list(difference), *difference]
    shown = [*shown_by(*things), caplog.text]
    assert any("custom" in text for text in shown)
    assert_nowhere(shown)


@pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS)
def test_no_error_about_an_answer_shows_it(plant: Plant) -> None:
    class Ask(Executor):
        @handler
        async def ask(self, text: str, ctx: WorkflowContext) -> None:
            await ctx.request_info("which?", int)

        @response_handler
        async def answered(self, asked: str, answer: int, ctx: WorkflowContext) -> None:
            """Gets no such answer."""

    workflow = WorkflowBuilder(Ask(id="ask")).build()
    (request,) = run_sync(workflow.run("x")).get_request_info_events()
    with pytest.raises(ValueError, match="expected int") as caught:
        run_sync(workflow.run(responses={request.request_id: [plant()]}))
    assert_nowhere([str(caught.value), repr(caught.value)])


async def test_no_view_of_a_failure_shows_it(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    run = WorkflowBuilder(Fail(id="fail")).build().start("x")
    with pytest.raises(PermissionError):
        await run.result()
    assert_nowhere([*shown_by(run, list(run.events), *run.events), caplog.text])


@pytest.mark.parametrize("plant", STORABLE.values(), ids=STORABLE)
def test_no_command_shows_it_but_what_is_stored_holds_it(
    plant: Plant, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    storage = FileCheckpointStorage(tmp_path)
    run_sync(run_of(plant, storage))
    first, *_, last = run_sync(storage.list_checkpoints(workflow_name="w"))
    folder = str(tmp_path)
    for words in (
        ["list", folder],
        ["list", folder, "--json"],
        ["show", folder, "latest"],
        ["show", folder, "latest", "--full"],
        ["show", folder, "latest", "--json"],
        ["diff", folder, first.checkpoint_id, last.checkpoint_id],
        ["diff", folder, first.checkpoint_id, last.checkpoint_id, "--json"],
    ):
        assert main(["checkpoints", *words]) == 0
    shown = capsys.readouterr()
    assert "work" in shown.out
    assert_nowhere(shown)
    assert type(last.state["data"]) is type(plant())
    assert last.state["data"] == plant()


# ------------------------------------------------------------------------------------------------------------- the law

names = st.sampled_from(["user", "note", "max_tokens", "password", "api-key", "connectionString", "pin"])
secret_names = st.sampled_from(["password", "X-Api-Key", "Authorization", "otp", "dsn", "webhook_url"])
harmless = st.none() | st.booleans() | st.integers() | st.sampled_from(["ann", '{"a": 1}', "https://example.org/?a=1"])


def with_keys(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    some = st.dictionaries(names, children, max_size=2)
    planted = st.builds(lambda name, rest: {**rest, name: KEY}, secret_names, some)
    return (
        st.lists(children, max_size=3)
        | some
        | st.tuples(children, children)
        | planted
        | st.builds(lambda name, about: json.dumps({"about": about, name: KEY}), secret_names, harmless)
        | st.sampled_from(list(PLANTS.values())).map(lambda plant: plant())
        | st.just(SecretString(KEY))
    )


@given(st.recursive(harmless, with_keys, max_leaves=12))
def test_of_no_value_any_form_for_people_shows_it(value: Any) -> None:
    assert_nowhere(
        [
            mask_secrets(value),
            repr(mask_secrets([value])),
            masked_repr(value),
            json.dumps(to_plain(value, mask=True), ensure_ascii=False),
            json.dumps(to_plain({"a": [value]}, mask=True, limits=OF_LOGS)),
            mask_text(f"failed with {masked_repr(value)}"),
        ]
    )


plain = st.recursive(
    harmless | st.binary(max_size=4), lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("ab"), inner)
)


@given(plain)
def test_what_holds_no_secret_is_returned_itself(value: Any) -> None:
    assert mask_secrets(value) is value
    assert to_plain(value, mask=True) == to_plain(value)


def test_lines_and_tracebacks_of_the_library_are_masked(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    log = logging.getLogger("agentbench")
    log.warning("Saving %s failed for %r.", "a.json", {"password": KEY})
    try:
        problem = f"refused with token={KEY}"
        raise PermissionError(problem)
    except PermissionError:
        log.debug("It failed.", exc_info=True)
    lines = caplog.text
    assert "PermissionError" in lines
    assert "a.json" in lines
    assert_nowhere([lines])
