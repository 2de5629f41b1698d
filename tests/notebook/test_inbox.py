from __future__ import annotations

from typing import Any

import pytest

from tests.parts.errors import raises

pytest.importorskip("anywidget")

from agentbench import (
    Approval,
    Executor,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    handler,
    response_handler,
    run_sync,
)
from agentbench.exceptions import RequestAlreadyAnswered
from agentbench.notebook import FormState, inbox, request_form, stepper

pytestmark = pytest.mark.usefixtures("ticking")


class Review(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info({"prompt": f"Publish {text}?", "token": "hush"}, Approval, request_id=f"publish-{text}")
        await ctx.request_info({"prompt": "How many?", "deadline": "2030-01-01"}, int, request_id="count")

    @response_handler
    async def decided(self, request: dict, answer: Approval, ctx: WorkflowContext[str, str]) -> None:  # type: ignore[type-arg]
        await ctx.yield_output(answer.reason)

    @response_handler
    async def counted(self, request: dict, answer: int, ctx: WorkflowContext[str, int]) -> None:  # type: ignore[type-arg]
        await ctx.yield_output(answer)
        if answer > 1:
            await ctx.request_info({"prompt": "And now?"}, int, request_id="again")

    @response_handler
    async def nothing(self, request: str, answer: str, ctx: WorkflowContext[str, int]) -> None:
        pass


def started(text: str) -> Any:
    run = WorkflowBuilder(start_executor=Review("review"), name=f"w-{text}").build().start(text)
    run_sync(run.result())
    return run


class FakeRun:
    """A run as an inbox sees it, whose requests are set by hand."""

    def __init__(self, run_id: str, *requests: WorkflowEvent[Any]) -> None:
        self.run_id = run_id
        self.pending_requests = list(requests)
        self.answers: list[tuple[str, Any]] = []
        self.look: Any = None

    def send_response(self, request_id: str, value: Any) -> None:
        self.answers.append((request_id, value))
        self.pending_requests = [each for each in self.pending_requests if each.request_id != request_id]

    def listen(self, look: Any) -> Any:
        self.look = look
        return lambda: setattr(self, "look", None)


def asked(request_id: str, data: Any = "Title?", response_type: Any = str) -> WorkflowEvent[Any]:
    return WorkflowEvent.request_info(request_id, "review", data, response_type)


def test_requests_of_several_runs_are_in_the_order_of_their_emission():
    first, second = started("a"), started("b")
    box = inbox(second, first)
    assert [(entry.request_id, entry.run.split(",")[0]) for entry in box] == [
        ("publish-a", "w-a"),
        ("count", "w-a"),
        ("publish-b", "w-b"),
        ("count", "w-b"),
    ]
    assert [entry.superstep for entry in box] == [0, 0, 0, 0]
    assert all(entry.waiting_s is not None and entry.waiting_s > 0 for entry in box)
    assert repr(box) == "Inbox(2 runs, 4 open)"


def test_code_answers_with_values_and_the_run_goes_on():
    run = started("a")
    box = inbox(run)
    assert box.respond(box.requests[0], Approval(False, "too short"))
    assert box.respond("count", 1)
    assert len(box) == 0
    run_sync(run.result())
    assert sorted(map(str, run.outputs)) == ["1", "too short"]


def test_code_withdraws_and_the_run_goes_on_without_an_answer():
    run = started("a")
    box = inbox(run)
    assert "inbox.withdraw('count')" in box.text
    assert box.withdraw("count")
    assert box.form("count").state is FormState.WITHDRAWN
    with raises(RequestAlreadyAnswered):
        box.respond("count", 1)
    assert box.withdraw(box.requests[0])
    run_sync(run.result())
    assert (run.outputs, len(box)) == ([], 0)


def test_a_withdrawal_in_a_stepper_is_named():
    made = stepper(WorkflowBuilder(start_executor=Review("review"), name="stepped").build(), "a")
    box = inbox(made)
    made.run()
    form = box.form("count")
    made.withdraw("count")
    box.refresh()
    assert (form.state, "Withdrawn elsewhere" in form.text) == (FormState.WITHDRAWN, True)
    assert box.withdraw("publish-a")
    box.close()
    made.close()


def test_a_value_that_the_run_refuses_keeps_the_request_open():
    box = inbox(started("a"))
    with raises(ValueError, "'many'", "str", "int"):
        box.answer("count", "many")
    assert box.form("count").state is FormState.REFUSED
    assert "count" in {entry.request_id for entry in box}


def test_an_answered_form_stays_until_the_next_request_comes():
    run = FakeRun("r", asked("one"))
    box = inbox(run)
    box.answer("one", "x")
    assert box.form("one").value == "x"
    run.pending_requests.append(asked("two"))
    with raises(KeyError, "'two'"):
        box.form("one")


def test_requests_that_come_while_a_run_goes_on_are_followed():
    run = started("a")
    box = inbox(run)
    box.answer("count", 5)
    run_sync(run.result())
    assert [entry.request_id for entry in box] == ["publish-a", "again"]


def test_what_was_answered_elsewhere_says_so_and_takes_nothing_more():
    run = FakeRun("r", asked("one"))
    box = inbox(run)
    form = box.form("one")
    form.set_raw("value", "mine")
    run.send_response("one", "theirs")
    assert len(box) == 0
    assert "Already answered" in form.text
    with pytest.raises(RequestAlreadyAnswered):
        form.submit()
    assert run.answers == [("one", "theirs")]


def test_two_runs_with_one_request_id_are_distinguished_by_the_name_of_the_run():
    first, second = FakeRun("a", asked("same")), FakeRun("b", asked("same"))
    box = inbox(first, second)
    with raises(ValueError, "run a, run b"):
        box.answer("same", "x")
    assert box.answer("same", "x", run="run b")
    assert (first.answers, second.answers) == ([], [("same", "x")])
    assert box.answer("same", "y")  # only one of them is open now
    assert first.answers == [("same", "y")]


def test_an_answer_that_a_stepper_took_elsewhere_is_named():
    made = stepper(WorkflowBuilder(start_executor=Review("review"), name="stepped").build(), "a")
    box = inbox(made)
    made.run()
    form = box.form("count")
    made.respond("count", 7)
    box.refresh()
    assert "2024-01-01. 7." in form.text
    box.close()
    made.close()


def test_text_names_the_question_and_the_code_that_answers_and_nothing_typed():
    box = inbox(FakeRun("r", asked("one", {"prompt": "Title?\u202e", "deadline": "2030-01-01"})))
    box.form("one").set_raw("value", "typed")
    assert box.text == (
        "1 open request\nrun r: review\n  Title?\\u202e\n  before 2030-01-01 00:00:00 UTC\n  inbox.respond('one', ...)"
    )
    assert inbox().text == "0 open requests"


def test_the_widget_holds_the_forms_and_no_text_of_anybodys():
    run = FakeRun("r", asked("one"))
    box = inbox(run)
    widget = box.widget
    bundle, _ = box._repr_mimebundle_()
    assert bundle["text/plain"] == "Inbox(1 run, 1 open)"
    assert [repr(child) for child in widget.children] == ["FormPanel('Form text from review')"]
    first = widget.children[0]
    run.pending_requests.append(asked("two"))
    run.look([])
    assert box.widget is widget
    assert widget.children[0] is first
    assert len(widget.children) == 2
    assert "Title" not in str(widget.get_state())


def test_without_anywidget_the_inbox_is_text(monkeypatch: pytest.MonkeyPatch):
    import sys

    monkeypatch.setitem(sys.modules, "ipywidgets", None)
    box = inbox(FakeRun("r", asked("one")))
    assert box._repr_mimebundle_() == {"text/plain": box.text}


def test_a_request_that_a_restored_run_tells_anew_keeps_its_form_and_its_draft():
    run = FakeRun("r", asked("one"), asked("two"))
    box = inbox(run)
    form = box.form("one")
    form.set_raw("value", "a draft")
    run.pending_requests = [asked("one"), asked("two", "Another title?")]
    run.look([])
    assert box.form("one") is form
    assert (form.state, form.raw) == (FormState.EDITING, {"value": "a draft"})
    assert [entry.request for entry in box] == run.pending_requests
    assert request_form(run.pending_requests[0], respond=run.send_response).raw == {"value": "a draft"}
