"""The live panel of a batch as its page drives it, and the display of a running batch."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

pytest.importorskip("anywidget")

from agentbench.batch.rows import BatchRow, RowError, RowStatus
from agentbench.notebook import Stepper
from agentbench.notebook.batches import follower
from agentbench.notebook.batches.inbox import BatchInbox
from agentbench.notebook.batches.live import LastLine, NoDisplay, TextProgress, show_live
from agentbench.notebook.batches.page import BatchPage
from agentbench.notebook.batches.panel import BatchPanel
from tests.notebook.attacks import ATTACKS
from tests.notebook.test_hostile_text import check_text
from tests.parts.batches import FakeBatch, many_rows, questions_of, review_flow


class Timers:
    """The delayed calls of a follower, made by hand."""

    def __init__(self) -> None:
        self.due: list[Any] = []

    def call_later(self, _: float, call: Any) -> None:
        self.due.append(call)

    def submit(self, work: Any) -> None:
        with pytest.raises(StopIteration):
            work.send(None)

    def fire(self) -> None:
        calls, self.due = self.due, []
        for call in calls:
            call()


@pytest.fixture
def timers(monkeypatch: pytest.MonkeyPatch) -> Timers:
    made = Timers()

    async def call_here(function: Any) -> None:
        function()

    monkeypatch.setattr(follower, "_bridge", made)
    monkeypatch.setattr(follower, "run_in_thread", call_here)
    return made


class Page:
    """What a page gets from a panel and says to it."""

    def __init__(self, batch: FakeBatch) -> None:
        self.panel = BatchPanel(batch)
        self.widget: BatchPage = self.panel.widget.children[0]
        self.sent: list[dict[str, Any]] = []
        self.widget.send = self.sent.append
        self.say("ready")

    def say(self, kind: str, **more: Any) -> None:
        self.widget._handle_custom_msg({"kind": kind, "view": "v", **more}, [])

    def last(self, kind: str) -> dict[str, Any]:
        return next(message for message in reversed(self.sent) if message["kind"] == kind)

    def keys(self) -> list[str]:
        return [row["id"] for row in self.last("rows")["rows"]]


def test_a_page_gets_counts_errors_and_the_latest_rows(timers: Timers):
    page = Page(FakeBatch(many_rows(100), state="running", running=2, total=200))
    facts = page.last("progress")
    assert facts["share"] == "100 of 200 inputs"
    assert dict(facts["counts"]) == {
        "finished": "88 finished",
        "failed": "10 failed",
        "waiting": "2 waiting",
        "open": "2 running",
    }
    assert facts["errors"] == [["TimeoutError", "TimeoutError 5"], ["ValueError", "ValueError 5"]]
    assert facts["bar"] == {"finished": 44.0, "failed": 5.0, "waiting": 1.0, "cancelled": 0.0}
    assert (page.keys()[0], page.keys()[-1], len(page.keys())) == ("row-00080", "row-00099", 20)
    assert page.last("rows")["title"] == "Latest 20 rows"


def test_a_thousand_changes_are_drawn_once_and_nothing_is_sent_while_the_page_is_hidden(timers: Timers):
    batch = FakeBatch(many_rows(30), state="running")
    page = Page(batch)
    before = len(page.sent)
    for place in range(1000):
        batch.change(rate=float(place), tokens_in=place)
    assert (len(page.sent), len(timers.due)) == (before, 1)
    timers.fire()
    assert [message["kind"] for message in page.sent[before:]] == ["progress"]
    page.say("visible", visible=False)
    batch.change(*many_rows(40))
    assert timers.due == []
    page.say("visible", visible=True)
    assert page.last("progress")["share"] == "40 of 40 inputs"


def test_rows_are_only_read_again_when_one_can_have_changed(timers: Timers):
    batch = FakeBatch(many_rows(30), state="running")
    page = Page(batch)
    page.say("filter", by="error", id="ValueError")
    sent = len(page.sent)
    batch.change(BatchRow("new", 99, "x", RowStatus.FINISHED))
    timers.fire()
    assert "rows" not in {message["kind"] for message in page.sent[sent:]}
    batch.change(replace(batch.known[0], status=RowStatus.FAILED, error=RowError("ValueError", "no")))
    timers.fire()
    assert page.keys() == ["row-00000", "row-00013"]


def test_a_click_on_an_error_or_a_status_filters_the_rows_and_a_second_click_shows_all(timers: Timers):
    page = Page(FakeBatch(many_rows(2000)))
    page.say("filter", by="error", id="TimeoutError")
    assert (page.keys()[:2], len(page.keys())) == (["row-00003", "row-00023"], 50)
    assert page.last("rows")["title"] == "Rows with TimeoutError: the first 50 of 100"
    assert page.last("progress")["filter"] == "TimeoutError"
    page.say("filter", by="status", id="waiting")
    assert page.last("rows")["title"] == "Waiting rows"
    page.say("filter", by="status", id="waiting")
    assert page.last("rows")["title"] == "Latest 20 rows"
    page.say("filter", by="status", id="no such status")
    assert page.last("progress")["filter"] is None


@pytest.mark.parametrize(
    ("state", "status", "buttons"),
    [
        ("running", "finished", ["cancel"]),
        ("running", "failed", ["cancel"]),
        ("cancelled", "failed", ["resume", "retry"]),
        ("done", "finished", []),
        ("done", "failed", ["retry"]),
        ("done", "waiting", ["answer"]),
    ],
)
def test_the_buttons_are_those_that_make_sense(timers: Timers, state: str, status: str, buttons: list[str]):
    page = Page(FakeBatch([BatchRow("a", 0, "x", RowStatus(status))], state=state))
    assert [name for name, _ in page.last("progress")["buttons"]] == buttons


def test_buttons_cancel_resume_and_retry(timers: Timers):
    batch = FakeBatch(many_rows(20), state="running")
    page = Page(batch)
    for name in ("cancel", "resume", "retry", "erase"):
        page.say(name)
    assert batch.calls == ["cancel", "resume", "retry"]
    assert page.last("progress")["state"] == "running"


def test_a_row_opens_with_its_card_and_its_run_in_a_stepper(timers: Timers):
    batch = FakeBatch(many_rows(20), workflow=review_flow(), keeps=True)
    page = Page(batch)
    page.say("open", id="row-00003")
    assert dict(page.last("view")["fields"])["error"] == "TimeoutError: no answer for 3"
    below = page.panel.widget.children[1]
    first = page.panel._below.opened
    assert isinstance(first, Stepper)
    first.run()
    assert first.status == "done"
    page.say("open", id="row-00004")
    assert first.status == "closed"
    assert page.panel.widget.children[1] is not below
    page.say("close")
    assert (len(page.panel.widget.children), page.last("view")) == (1, {"kind": "view"})
    page.panel.close()
    page.panel.close()


def test_a_row_without_checkpoints_can_be_run_again(timers: Timers):
    batch = FakeBatch(many_rows(20), workflow=review_flow())
    page = Page(batch)
    page.say("open", id="row-00003")
    view = page.last("view")
    assert (view["again"], view["problem"]) == (
        True,
        "Row 'row-00003' keeps no checkpoints. Run it again: open('row-00003', rerun=True).",
    )
    assert len(page.panel.widget.children) == 1
    page.say("rerun", id="row-00003")
    opened = page.panel._below.opened
    assert isinstance(opened, Stepper)
    opened.run()
    assert opened.result is not None
    assert opened.result.outputs == ["clean, 57 letters"]
    page.panel.close()
    assert opened.status == "closed"


def test_answer_shows_the_open_questions_below(timers: Timers):
    page = Page(FakeBatch(many_rows(8), questions=questions_of(1, "Publish?")))
    page.say("answer")
    assert isinstance(page.panel._below.opened, BatchInbox)
    page.say("close")
    assert page.panel._below.opened is None


def test_an_unknown_row_is_a_problem_on_the_page(timers: Timers):
    page = Page(FakeBatch(many_rows(3)))
    page.say("open")
    assert "There is no row 'None'" in page.last("problem")["text"]


def test_hostile_text_is_inert_secrets_are_masked_and_no_text_is_in_the_state_of_the_widget(timers: Timers):
    for attack in ATTACKS:
        error = RowError(attack, f"{attack} password=sk-planted", attack, attack)
        row = BatchRow(
            f"k{attack}", 0, {attack: "Q-input", "token": "sk-planted"}, RowStatus.FAILED, error=error, seconds=1.0
        )
        page = Page(FakeBatch([row], name=f"b{attack}"[:60], reason=attack, workflow=review_flow()))
        page.say("open", id=page.last("rows")["rows"][0]["id"])
        page.say("filter", by="error", id=page.last("progress")["errors"][0][0])
        assert len(page.last("rows")["rows"]) == 1
        shown = [text for field in page.last("view")["fields"] for text in field]
        for text in [*shown, *page.last("rows")["rows"][0]["cells"]]:
            check_text(text[:999])
        assert "sk-planted" not in json.dumps(page.sent)
        assert "Q-input" not in json.dumps(page.widget.get_state(), default=str)
        check_text(repr(page.panel))
        page.panel.close()


def test_the_panel_in_a_cell_has_a_static_picture_and_the_name_as_text(timers: Timers):
    page = Page(FakeBatch(many_rows(3)))
    bundle, _ = page.panel._repr_mimebundle_()
    assert bundle["text/plain"] == "BatchPanel(reviews)"
    assert page.panel.text == "reviews, done: 3 of 3 inputs, 3 finished, 363 tokens, cost 0.003"


def test_a_terminal_gets_a_line_per_second_while_something_changes(timers: Timers, capsys: pytest.CaptureFixture[str]):
    batch = FakeBatch(many_rows(3), total=5, state="running")
    shown = TextProgress(batch)
    timers.fire()
    assert capsys.readouterr().err == ""
    batch.change(*many_rows(4))
    batch.change(*many_rows(5))
    timers.fire()
    assert capsys.readouterr().err == "reviews, running: 5 of 5 inputs, 4 finished, 1 failed, 610 tokens, cost 0.005\n"
    batch.change(state="done")
    shown.close()
    assert capsys.readouterr().err == "reviews, done: 5 of 5 inputs, 4 finished, 1 failed, 610 tokens, cost 0.005\n"
    assert batch.listeners == []


def test_compared_outputs_get_one_line_at_the_end(capsys: pytest.CaptureFixture[str]):
    batch = FakeBatch(many_rows(2), rate=3.0, remaining_s=1.0)
    assert isinstance(show_live(batch), NoDisplay)
    shown = show_live(batch, progress=True)
    assert isinstance(shown, LastLine)
    shown.close()
    assert capsys.readouterr().out == "reviews, done: 2 of 2 inputs, 2 finished, 241 tokens, cost 0.002\n"
