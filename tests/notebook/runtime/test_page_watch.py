import asyncio
import contextvars
from collections.abc import Callable

import pytest

from agentbench.notebook.runtime import page_watch
from agentbench.notebook.runtime.page_watch import PageWatch


class Cell:
    """Stands for an output cell and for time."""

    def __init__(self) -> None:
        self.waiting: list[Callable[[], None]] = []
        self.lines: list[str] = []

    def later(self, delay_s: float, call) -> None:
        assert delay_s == 5.0
        self.waiting.append(call)

    def show(self, line: str):
        self.lines.append(line)

        def replace(text: str) -> None:
            self.lines[-1] = text

        return replace

    def watch(self) -> PageWatch:
        return PageWatch(later=self.later, show=self.show)

    def pass_time(self) -> None:
        for call in self.waiting:
            call()


def test_a_page_that_answers_leaves_no_trace():
    cell = Cell()
    watch = cell.watch()
    watch.start()
    watch.finish()
    cell.pass_time()
    assert cell.lines == []


def test_a_page_that_never_answers_gets_one_line_with_the_way_out():
    cell = Cell()
    watch = cell.watch()
    watch.start()
    watch.start()
    cell.pass_time()
    assert len(cell.lines) == 1
    assert "configure(live_graph=False)" in cell.lines[0]


def test_a_late_answer_takes_the_line_back():
    cell = Cell()
    watch = cell.watch()
    watch.start()
    cell.pass_time()
    watch.finish()
    assert cell.lines == [""]


def test_a_page_that_is_there_already_is_not_waited_for():
    cell = Cell()
    watch = cell.watch()
    watch.finish()
    watch.start()
    assert cell.waiting == []


def test_without_a_kernel_nothing_is_waited_for():
    PageWatch().start()


async def test_in_a_program_with_a_loop_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch):
    waited: list[float] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", lambda delay_s, *_, **__: waited.append(delay_s))
    PageWatch().start()
    assert waited == []


def test_the_line_goes_to_the_cell_that_displayed_the_panel(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(page_watch, "_GRACE_S", 0)
    monkeypatch.setattr(page_watch, "in_kernel", lambda: True)

    async def main() -> list[str]:
        cell = contextvars.ContextVar("cell", default="none")
        seen: list[str] = []

        def show(line: str):
            seen.append(cell.get())
            done.set()
            return lambda text: None

        done = asyncio.Event()
        cell.set("first")
        watch = PageWatch(delay_s=0, show=show)
        watch.start()
        cell.set("second")
        await asyncio.wait_for(done.wait(), 30)
        return seen

    assert asyncio.run(main()) == ["first"]
