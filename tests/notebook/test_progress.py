"""A run under a bar."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from agentbench import (
    Executor,
    RunOptions,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    WorkflowRunState,
    executor,
    handler,
    response_handler,
)
from agentbench.notebook import Progress
from agentbench.notebook.progress_bar import progress as progress_module
from agentbench.notebook.progress_bar import state as progress_state
from agentbench.notebook.progress_bar.progress import progress
from agentbench.notebook.progress_bar.state import Bar, ProgressState, Widget
from agentbench.notebook.runtime import settings
from tests.parts.errors import raises


class Count(Executor):
    @handler
    async def count(self, left: int, ctx: WorkflowContext[int, int]) -> None:
        if left < 0:
            raise ValueError("below zero")
        if left:
            await ctx.send_message(left - 1)
        else:
            await ctx.yield_output(0)


class Ask(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.request_info("ok?", bool)

    @response_handler
    async def on_answer(self, asked: str, answer: bool, ctx: WorkflowContext) -> None:
        """Takes any answer."""


def counting() -> Workflow:
    one, other = Count(id="one"), Count(id="other")
    return WorkflowBuilder(start_executor=one, name="counting").add_edge(one, other).add_edge(other, one).build()


class Recorder:
    """A display that remembers what it was shown."""

    def __init__(self) -> None:
        self.drawn: list[str] = []
        self.closed = 0

    def draw(self, state: ProgressState) -> None:
        self.drawn.append(state.words(times=True))

    def close(self, last_words: str) -> bool:
        self.closed += 1
        return False


@pytest.fixture(autouse=True)
def compared_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_current", settings.Settings(deterministic=True))


def test_a_script_gets_the_final_state_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    run = counting().start(4)
    assert progress(run).wait() is WorkflowRunState.IDLE
    assert run.outputs == [0]
    assert capsys.readouterr().out == "counting: finished, 5 supersteps, 5 calls\n"


def test_the_error_of_a_run_is_raised_and_its_line_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with raises(ValueError, "below zero"):
        progress(counting().start(-1)).wait()
    assert capsys.readouterr().out.startswith("counting: failed, ")


def test_a_run_that_asks_ends_with_the_question_open(capsys: pytest.CaptureFixture[str]) -> None:
    run = WorkflowBuilder(start_executor=Ask(id="ask"), name="asking").build().start("x")
    assert progress(run).wait() is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
    assert capsys.readouterr().out.startswith("asking: waiting for an answer, ")


def test_the_bar_is_gone_when_the_run_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = Recorder()
    shown = drawn_on(recorder, monkeypatch, until=lambda: bool(recorder.drawn))
    shown.wait()
    assert recorder.drawn
    assert recorder.closed == 1


def drawn_on(display: Any, monkeypatch: pytest.MonkeyPatch, *, until: Callable[[], bool]) -> Progress:
    """A run that lasts until something was drawn on a display, which is there from the beginning."""
    monkeypatch.setattr(progress_module, "_SHOW_AFTER_S", 0)
    monkeypatch.setattr(progress_module, "_display_for", lambda _: display)

    @executor
    async def work(text: str, ctx: WorkflowContext[str]) -> None:
        while not until():  # noqa: ASYNC110 - another thread draws
            await asyncio.sleep(0.001)

    return progress(WorkflowBuilder(start_executor=work, name="counting").build().start("x"))


def test_who_is_at_work_is_named_and_many_are_counted() -> None:
    state = ProgressState()
    for number in range(6):
        state.see(WorkflowEvent.executor_invoked(f"e{number}"))
    assert state.words(times=False).endswith("running: e0, e1, e2, e3 and 2 more")
    for number in range(6):
        state.see(WorkflowEvent.executor_completed(f"e{number}"))
    assert (state.names_at_work, state.share_here) == ("", (6, 6))


def test_a_terminal_gets_the_bar_of_tqdm(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    bar = Bar("counting", 3)
    bar.draw(ProgressState(3, supersteps=2, tokens=7))
    told = capsys.readouterr().err
    assert "counting" in told
    assert "2/3" in told
    assert "7 tokens" in told
    assert bar.close("done") is False


class Handle:
    """What `display(..., display_id=True)` returns."""

    def __init__(self) -> None:
        self.updates: list[Any] = []

    def update(self, bundle: Any, *, raw: bool) -> None:
        assert raw
        self.updates.append(bundle)


@pytest.fixture
def page(monkeypatch: pytest.MonkeyPatch) -> tuple[list[Any], Handle]:
    """What was displayed, and the handle that changes it."""
    displayed: list[Any] = []
    handle = Handle()

    def show(what: Any, **options: Any) -> Handle:
        assert options == {"display_id": True}
        displayed.append(what)
        return handle

    monkeypatch.setattr(progress_state, "show_in_cell", show)
    return displayed, handle


def test_a_notebook_gets_two_bars_and_a_stop_button(page: tuple[list[Any], Handle]) -> None:
    displayed, handle = page
    run = counting().start(3)
    widget = Widget("counting", progress(run, total=4).stop)
    state = ProgressState(4, supersteps=2, tokens=5, elapsed_s=1.0)
    state.see(WorkflowEvent.executor_invoked("one"))
    widget.draw(state)
    bars, stop, told, _ = displayed[0].children
    assert "2 of 4 supersteps" in bars.value
    assert 'aria-valuenow="2"' in bars.value
    assert "0 of 1 finished" in bars.value
    assert "5 tokens · 1.0 s" in bars.value
    assert 'role="status"' in told.value
    stop.click()
    assert (stop.description, stop.disabled) == ("Stopping …", True)
    assert run._execution.run.stop_requested
    assert widget.close("counting: stopped")
    assert handle.updates == [{"text/plain": "counting: stopped"}]
    assert bars.value == told.value == ""


def test_screen_readers_hear_of_it_every_five_seconds_only(page: tuple[list[Any], Handle]) -> None:
    widget = Widget("counting", lambda: None)
    told = page[0][0].children[2]
    heard: list[str] = []
    told.observe(lambda change: heard.append(change["new"]), "value")
    for tenth in range(110):
        widget.draw(ProgressState(supersteps=tenth, elapsed_s=tenth / 10))
    assert len(heard) == 3
    widget.close("")


def test_the_line_takes_the_place_of_the_bar(
    page: tuple[list[Any], Handle], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    widget = Widget("counting", lambda: None)
    drawn_on(widget, monkeypatch, until=lambda: bool(page[0][0].children[0].value)).wait()
    assert capsys.readouterr().out == ""
    assert page[1].updates == [{"text/plain": "counting: finished, 1 superstep, 1 call"}]


def test_a_total_that_is_no_number_of_supersteps_is_refused_before_anything_runs() -> None:
    run = counting().start(1)
    wrong: Any
    for wrong in ("x", 2.5, True, 0, -1):
        with raises((TypeError, ValueError), "total", "1"):
            progress(run, total=wrong)
    assert run.events == []


def test_a_name_is_displayed_in_one_harmless_line_and_one_that_was_made_up_is_not(
    capsys: pytest.CaptureFixture[str],
) -> None:
    def named(name: str | None) -> Workflow:
        return WorkflowBuilder(start_executor=Count(id="one"), name=name).build()

    assert repr(progress(named("a\u202eb\nc").start(0))).startswith("Progress(a\\u202eb c, not begun")
    progress(named(None).start(0)).wait()
    assert capsys.readouterr().out.startswith("workflow: finished, ")


def test_stop_may_be_pressed_on_a_thread_with_a_loop_of_its_own() -> None:
    shown = progress(counting().start(10**9, options=RunOptions(max_iterations=10**9)))

    async def press() -> None:
        shown.stop()

    async def cell() -> WorkflowRunState:
        driven = asyncio.ensure_future(shown._drive())
        await asyncio.sleep(0)
        await asyncio.to_thread(lambda: asyncio.run(press()))
        return await driven

    assert asyncio.run(cell()) is WorkflowRunState.CANCELLED
