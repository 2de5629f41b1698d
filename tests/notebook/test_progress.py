"""A run under a bar."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench.notebook import settings
from agentbench.notebook.progress import Progress, ProgressState, _Bar, _Lines, _Widget, progress
from agentbench.workflow.builder import WorkflowBuilder
from agentbench.workflow.context import WorkflowContext
from agentbench.workflow.events import WorkflowEvent, WorkflowRunState
from agentbench.workflow.executor import Executor
from agentbench.workflow.handlers import handler
from agentbench.workflow.options import RunOptions
from agentbench.workflow.workflow import Workflow


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

    def close(self) -> None:
        self.closed += 1


@pytest.fixture(autouse=True)
def compared_outputs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(settings, "_current", settings.Settings(deterministic=True))


def test_a_script_gets_the_final_state_and_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    run = counting().start(4)
    assert progress(run).wait() is WorkflowRunState.IDLE
    assert run.outputs == [0]
    assert capsys.readouterr().out == "counting: done, 5 supersteps, 5 calls\n"


async def test_a_cell_awaits_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert await progress(counting().start(2), total=3) is WorkflowRunState.IDLE
    assert capsys.readouterr().out == "counting: done, 3 of 3 supersteps, 3 calls\n"


def test_the_error_of_a_run_is_raised_and_its_line_says_so(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match="below zero"):
        progress(counting().start(-1)).wait()
    assert capsys.readouterr().out.startswith("counting: failed, ")


def test_a_run_that_asks_ends_with_the_question_open(capsys: pytest.CaptureFixture[str]) -> None:
    run = WorkflowBuilder(start_executor=Ask(id="ask"), name="asking").build().start("x")
    assert progress(run).wait() is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
    assert capsys.readouterr().out.startswith("asking: waits for an answer, ")


def test_times_are_told_where_nobody_compares(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(settings, "_current", settings.Settings())
    monkeypatch.delenv("PYTEST_CURRENT_TEST")
    clock = iter([10.0, 13.5])
    Progress(counting().start(0), now=lambda: next(clock)).wait()
    assert capsys.readouterr().out.endswith(", 3.5 s\n")


def test_a_short_run_gets_no_bar_and_a_long_one_does() -> None:
    recorder, time = Recorder(), [0.0]
    shown = Progress(counting().start(0), open_display=lambda _: recorder, now=lambda: time[0])
    time[0] = 0.4
    shown.tick()
    assert recorder.drawn == []
    time[0] = 0.6
    shown.tick()
    shown.tick()
    assert recorder.drawn == ["0 supersteps, 0 calls, 0.6 s"] * 2


def test_the_bar_is_gone_when_the_run_is_over() -> None:
    recorder = Recorder()
    shown = Progress(counting().start(1), open_display=lambda _: recorder, now=lambda: 0.0)
    shown._began = -1.0
    shown.tick()
    shown.wait()
    assert recorder.closed == 1


def test_a_stop_ends_the_run() -> None:
    run = counting().start(10**9, options=RunOptions(max_iterations=10**9))
    shown = progress(run)

    async def stopped_soon() -> WorkflowRunState:
        running = asyncio.ensure_future(shown._awaited())
        await asyncio.sleep(0)
        shown.stop()
        return await running

    assert asyncio.run(stopped_soon()) is WorkflowRunState.CANCELLED


def test_who_is_at_work_is_named_and_many_are_counted() -> None:
    state = ProgressState()
    for number in range(6):
        state.see(WorkflowEvent.executor_invoked(f"e{number}"))
    assert state.words(times=False).endswith("at work: e0, e1, e2, e3 and 2 more")
    for number in range(6):
        state.see(WorkflowEvent.executor_completed(f"e{number}"))
    assert (state.at_work, state.share_here) == ((), (6, 6))


def test_tokens_are_counted() -> None:
    state = ProgressState()
    state.see(WorkflowEvent("model_usage", {"usage": {"total_token_count": 1204}}))
    assert "1,204 tokens" in state.words(times=False)


def test_lines_come_every_five_seconds(capsys: pytest.CaptureFixture[str]) -> None:
    lines = _Lines()
    for seconds in (1.0, 5.0, 7.0, 10.5):
        lines.draw(ProgressState(elapsed_s=seconds))
    lines.close()
    assert capsys.readouterr().err.splitlines() == ["0 supersteps, 0 calls, 5.0 s", "0 supersteps, 0 calls, 10.5 s"]


def test_a_terminal_gets_the_bar_of_tqdm(capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("tqdm")
    bar = _Bar(3)
    bar.draw(ProgressState(3, supersteps=2))
    assert "2/3" in capsys.readouterr().err
    bar.close()


def test_a_notebook_gets_a_widget_with_a_stop_button(monkeypatch: pytest.MonkeyPatch) -> None:
    displayed: list[Any] = []
    monkeypatch.setitem(_Widget.__init__.__globals__, "show_in_cell", displayed.append)
    run = counting().start(3)
    widget = _Widget(progress(run, total=4))
    widget.draw(ProgressState(4, supersteps=2))
    assert (widget._supersteps.value, widget._supersteps.max) == (2, 4)
    displayed[0].children[0].children[2].click()
    assert run.workflow.runner.context.stop_requested
    widget.close()
    assert widget._words.value == ""
