import asyncio
import contextvars
import threading
from typing import Any

import pytest

from agentbench.notebook.runtime import kernel as kernel_module
from agentbench.notebook.runtime.kernel import PageWatch
from agentbench.notebook.runtime.pacing import Pacer


class Clockwork:
    """Time that moves when told, and calls that wait for it."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.waiting: list[tuple[float, object]] = []
        self.sent_at: list[float] = []

    def now(self) -> float:
        return self.now_s

    def later(self, delay_s, call) -> None:
        self.waiting.append((self.now_s + delay_s, call))

    def advance(self, seconds: float) -> None:
        self.now_s += seconds
        due = [call for at, call in self.waiting if at <= self.now_s]
        self.waiting = [(at, call) for at, call in self.waiting if at > self.now_s]
        for call in due:
            call()  # type: ignore[operator]

    def pacer(self) -> Pacer:
        return Pacer(lambda: self.sent_at.append(self.now_s), interval_s=0.05, now=self.now, later=self.later)


def test_a_flood_is_sent_at_most_twenty_times_a_second():
    clock = Clockwork()
    pacer = clock.pacer()
    for _ in range(1000):
        pacer.touch()
        clock.advance(0.001)
    assert 19 <= len(clock.sent_at) <= 21
    assert clock.waiting == [] or len(clock.waiting) == 1


def test_the_last_change_of_a_flood_is_sent_too():
    clock = Clockwork()
    pacer = clock.pacer()
    pacer.touch()
    pacer.touch()
    assert len(clock.sent_at) == 1
    clock.advance(0.05)
    assert len(clock.sent_at) == 2
    clock.advance(10)
    assert len(clock.sent_at) == 2


def test_after_closing_nothing_is_sent():
    clock = Clockwork()
    pacer = clock.pacer()
    pacer.touch()
    pacer.touch()
    pacer.close()
    clock.advance(1)
    pacer.touch()
    pacer.flush()
    assert len(clock.sent_at) == 1


def test_waiting_changes_are_sent_on_the_engine_thread():
    threads: list[str] = []
    both = threading.Event()

    def send() -> None:
        threads.append(threading.current_thread().name)
        if len(threads) == 2:
            both.set()

    pacer = Pacer(send, interval_s=0.001)
    pacer.touch()
    pacer.touch()
    assert both.wait(30)
    assert threads[0] == threading.current_thread().name


# ---- page watch

cell: contextvars.ContextVar[str] = contextvars.ContextVar("cell", default="none")


class Cell:
    """Stands for the kernel: what is displayed, and in which cell."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.cells: list[str] = []

    def show(self, bundle: dict[str, str], **options: Any) -> "Cell":
        assert options == {"raw": True, "display_id": True}
        self.lines.append(bundle["text/plain"])
        self.cells.append(cell.get())
        return self

    def update(self, bundle: dict[str, str], *, raw: bool) -> None:
        assert raw
        self.lines[-1] = bundle["text/plain"]


@pytest.fixture
def kernel(monkeypatch: pytest.MonkeyPatch) -> Cell:
    made = Cell()
    monkeypatch.setattr(kernel_module, "in_kernel", lambda: True)
    monkeypatch.setattr(kernel_module, "show_in_cell", made.show)
    monkeypatch.setattr(kernel_module, "_GRACE_S", 0)
    return made


async def pass_time() -> None:
    for _ in range(5):
        await asyncio.sleep(0.001)


async def test_a_page_that_answers_leaves_no_trace(kernel: Cell):
    watch = PageWatch(delay_s=0)
    watch.start()
    watch.finish()
    watch.start()
    await pass_time()
    assert kernel.lines == []


async def test_a_page_that_never_answers_gets_one_line_with_the_way_out(kernel: Cell):
    watch = PageWatch(delay_s=0)
    watch.start()
    watch.start()
    await pass_time()
    assert len(kernel.lines) == 1
    assert "configure(live_graph=False)" in kernel.lines[0]


async def test_a_late_answer_removes_the_line(kernel: Cell):
    watch = PageWatch(delay_s=0)
    watch.start()
    await pass_time()
    watch.finish()
    assert kernel.lines == [""]


async def test_the_line_goes_to_the_cell_that_displayed_the_panel(kernel: Cell):
    cell.set("first")
    PageWatch(delay_s=0).start()
    cell.set("second")
    await pass_time()
    assert kernel.cells == ["first"]


def test_without_a_loop_nothing_is_waited_for(kernel: Cell):
    PageWatch(delay_s=0).start()


async def test_in_a_program_with_a_loop_nothing_is_waited_for(monkeypatch: pytest.MonkeyPatch):
    waited: list[float] = []
    monkeypatch.setattr(asyncio.get_running_loop(), "call_later", lambda delay_s, *_, **__: waited.append(delay_s))
    PageWatch().start()
    assert waited == []
