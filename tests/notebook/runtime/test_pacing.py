import threading

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
