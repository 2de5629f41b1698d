from __future__ import annotations

import asyncio
import gc
import threading
from concurrent.futures import Future
from typing import Any

import pytest
from pydantic import PydanticUserError, SecretStr

from agentbench import (
    Approval,
    Executor,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowEvent,
    _bridge,
    handler,
    response_handler,
    run_sync,
)
from agentbench.exceptions import FormInvalid, NotebookError, RequestAlreadyAnswered, RequestExpired, WidgetsUnavailable
from agentbench.notebook import Form, FormState, form, request_form
from tests.parts.errors import raises

pytestmark = pytest.mark.usefixtures("ticking")


class Unreadable:
    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        raise PydanticUserError("no schema", code=None)


class Receiver:
    """The other side: remembers answers, refuses some."""

    def __init__(self, error: Exception | None = None) -> None:
        self.answers: list[tuple[str, Any]] = []
        self.error = error

    def __call__(self, request_id: str, answer: Any) -> None:
        if self.error is not None:
            raise self.error
        self.answers.append((request_id, answer))


def ask(data: Any, response_type: Any, respond: Any = None) -> tuple[Form, Receiver]:
    receiver = Receiver()
    request = WorkflowEvent.request_info("r1", "review", data, response_type)
    return request_form(request, respond=respond or receiver), receiver


# ---- approvals


def test_an_approval_returns_the_decision_with_its_reason():
    asked, receiver = ask("Publish?", Approval)
    asked.set_raw("approved", "Approve")
    asked.set_raw("reason", "fine")
    assert asked.submit()
    assert receiver.answers == [("r1", Approval(True, "fine"))]
    assert asked.value == Approval(True, "fine")
    assert asked.state is FormState.ANSWERED


def test_nothing_is_decided_before_the_person_decides():
    asked, receiver = ask("Publish?", Approval)
    assert asked.raw == {}
    assert not asked.submit()
    assert asked.state is FormState.INVALID
    assert receiver.answers == []


def test_a_rejection_needs_a_reason_where_the_request_says_so():
    asked, receiver = ask({"prompt": "Publish?", "reason_required": True}, Approval)
    asked.set_raw("approved", "Reject")
    assert not asked.submit()
    assert list(asked.errors) == ["reason"]
    asked.set_raw("reason", "too long")
    assert asked.submit()
    assert receiver.answers == [("r1", Approval(False, "too long"))]


def test_edited_arguments_come_with_the_approval_and_only_with_it():
    data = {"prompt": "Send?", "arguments": {"to": "all"}, "editable": True}
    asked, receiver = ask(data, Approval)
    asked.press("edit", {"edited": '{"to": "ann"}'})
    assert receiver.answers == [("r1", Approval(True, "", {"to": "ann"}))]
    asked, receiver = ask(data, Approval)
    asked.press("approve")
    asked, second = ask(data, Approval)
    asked.press("reject", {"edited": '{"to": "ann"}'})
    assert [*receiver.answers, *second.answers] == [("r1", Approval(True)), ("r1", Approval(False))]


def test_approve_sends_what_was_changed_and_refuses_what_is_not_valid():
    asked, receiver = ask({"prompt": "Send?", "arguments": {"to": "all"}, "editable": True}, Approval)
    asked.press("approve", {"edited": "{broken"})
    assert list(asked.errors) == ["edited"]
    asked.press("approve", {"edited": '{"to": "ann"}'})
    assert receiver.answers == [("r1", Approval(True, "", {"to": "ann"}))]


# ---- sending


def test_a_second_answer_changes_nothing():
    asked, receiver = ask("Title?", str)
    asked.set_raw("value", "first")
    asked.submit()
    for late in (asked.submit, lambda: asked.set_raw("value", "second"), lambda: asked.press("submit")):
        with raises(RequestAlreadyAnswered, "2024-01-01T00:00:00"):
            late()
    assert receiver.answers == [("r1", "first")]
    assert asked.value == "first"


def test_a_refused_answer_keeps_the_text_and_says_why():
    asked, receiver = ask("Title?", str)
    receiver.error = ValueError("nobody asked")
    asked.set_raw("value", "mine")
    assert not asked.submit()
    assert (asked.state, asked.refusal, asked.raw) == (FormState.REFUSED, "nobody asked", {"value": "mine"})
    receiver.error = None
    assert asked.submit()


def test_an_answer_from_elsewhere_is_reported_and_not_replaced():
    asked, receiver = ask("Title?", str)
    receiver.error = RequestAlreadyAnswered("r1", "noon")
    asked.set_raw("value", "mine")
    assert not asked.submit()
    assert asked.state is FormState.ANSWERED
    assert "at noon" in asked.text
    with raises(RequestAlreadyAnswered, "noon"):
        _ = asked.value


def test_a_deadline_passes_while_a_person_types():
    asked, receiver = ask({"prompt": "Title?", "deadline": "2024-01-01T00:00:00.002Z"}, str)
    asked.set_raw("value", "quick")
    while asked.state is not FormState.EXPIRED:
        pass  # the clock ticks at each reading
    with pytest.raises(RequestExpired):
        asked.submit()
    assert (asked.raw, receiver.answers) == ({}, [])


def test_async_answers_run_on_the_engine_thread_and_submit_waits_for_them():
    threads: list[str] = []

    async def respond(request_id: str, answer: Any) -> None:
        await asyncio.sleep(0)
        threads.append(threading.current_thread().name)

    asked, _ = ask("Title?", str, respond)
    asked.set_raw("value", "x")
    assert asked.submit()
    assert threads == ["agentbench-engine"]


def test_a_click_does_not_wait_for_the_answer_to_be_taken():
    answered: Future[None] = Future()
    asked, _ = ask("Title?", str, lambda request_id, answer: answered)
    asked.press("submit", {"value": "x"})
    assert asked.state is FormState.SENDING
    with pytest.raises(RequestAlreadyAnswered):
        asked.press("submit", {"value": "y"})
    ended = threading.Event()
    asked.on_submit(lambda answer: ended.set())
    answered.set_result(None)
    assert ended.wait(10)
    assert (asked.state, asked.value) == (FormState.ANSWERED, "x")


def test_a_form_submitted_on_the_engine_thread_does_not_wait_for_itself():
    async def respond(request_id: str, answer: Any) -> None:
        await asyncio.sleep(0)

    asked, _ = ask("Title?", str, respond)
    asked.set_raw("value", "x")

    async def on_engine() -> bool:
        return asked.submit()

    assert _bridge.run_sync(on_engine()) is False


def test_listeners_hear_the_answer_once_it_was_taken():
    asked, receiver = ask("Title?", str)
    heard: list[Any] = []
    stop = asked.on_submit(lambda value: heard.append((value, str(asked.state))))
    receiver.error = ValueError("no")
    asked.set_raw("value", "x")
    asked.submit()
    receiver.error = None
    asked.submit()
    stop()
    stop()
    assert heard == [("x", "answered")]


# ---- with a real run


class Review(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info({"prompt": "Publish?", "text": text}, Approval)
        await ctx.request_info("How many?", int)

    @response_handler
    async def decided(self, request: dict, answer: Approval, ctx: WorkflowContext[str, str]) -> None:  # type: ignore[type-arg]
        await ctx.yield_output(answer.reason)

    @response_handler
    async def counted(self, request: str, answer: int, ctx: WorkflowContext[str, int]) -> None:
        await ctx.yield_output(answer)


def test_forms_answer_the_requests_of_a_run():
    workflow = WorkflowBuilder(start_executor=Review("review"), name="w").build()
    run = workflow.start("Once")
    run_sync(run.result())
    decision, number = (request_form(request, respond=run.send_response) for request in run.pending_requests)
    decision.set_raw("approved", "Reject")
    decision.set_raw("reason", "too short")
    assert decision.submit()
    number.set_raw("value", "12")
    assert number.submit()
    run_sync(run.result())
    assert sorted(map(str, run.outputs)) == ["12", "too short"]


def test_a_request_that_code_has_answered_is_refused_by_the_run_with_its_words():
    workflow = WorkflowBuilder(start_executor=Review("review"), name="w").build()
    run = workflow.start("Once")
    run_sync(run.result())
    asked = request_form(run.pending_requests[1], respond=run.send_response)
    run_sync(run.send_response(run.pending_requests[1].request_id, 3))
    asked.set_raw("value", "12")
    assert not asked.submit()
    assert asked.state is FormState.REFUSED
    assert "No open request has the id" in asked.refusal
    run_sync(run.result())
    assert run.outputs == [3]


# ---- the same request shown twice


def test_two_forms_of_one_event_share_draft_and_answer():
    request = WorkflowEvent.request_info("r1", "review", "Title?", str)
    receiver = Receiver()
    first, second = request_form(request, respond=receiver), request_form(request, respond=receiver)
    first.set_raw("value", "draft")
    assert second.raw == {"value": "draft"}
    second.submit()
    with pytest.raises(RequestAlreadyAnswered):
        first.submit()
    assert receiver.answers == [("r1", "draft")]


def test_events_of_two_runs_with_one_request_id_stay_apart():
    first, _ = ask("Title?", str)
    first.set_raw("value", "old")
    first.submit()
    gc.collect()
    second, receiver = ask("Title?", str)
    assert second.state is FormState.EDITING
    second.set_raw("value", "new")
    second.submit()
    assert receiver.answers == [("r1", "new")]


# ---- forms without a request


def test_a_function_that_raises_refuses_the_value():
    def only_even(value: int) -> None:
        if value % 2:
            raise ValueError("odd")

    made = form(int, value=3, on_submit=only_even)
    assert not made.submit()
    assert (made.state, made.refusal, made.raw) == (FormState.REFUSED, "odd", {"value": "3"})


def test_the_value_of_an_invalid_form_raises_with_the_paths_and_raw_stays():
    made = form(int)
    made.set_raw("value", "x")
    with pytest.raises(FormInvalid) as caught:
        _ = made.value
    assert list(caught.value.errors) == ["value"]
    assert made.raw == {"value": "x"}
    assert not made.validate()
    assert made.errors["value"].startswith("Input should be a valid integer")


# ---- how it is shown


def test_text_forms_name_the_code_that_answers_and_nothing_typed():
    asked, _ = ask({"prompt": "Publish?", "draft": "Once"}, Approval)
    asked.set_raw("reason", "hush")
    assert asked.text == (
        "Question from review\n"
        "Publish?\n"
        "draft: Once\n"
        "To answer by code:\n"
        "  form.set_raw('approved', ...)  # 'Approve' or 'Reject'\n"
        "  form.set_raw('reason', ...)  # optional\n"
        "  form.submit()"
    )


@pytest.mark.parametrize("kind", [list["Nowhere"], Unreadable], ids=["undefined", "unreadable"])  # type: ignore[name-defined]  # noqa: F821
def test_a_request_of_a_type_that_no_form_can_be_made_for_is_answered_as_json(kind: Any):
    with pytest.raises(NotebookError):
        form(kind)
    asked, receiver = ask("?", kind)
    asked.set_raw("value", '[{"a": 1}]')
    assert asked.submit()
    assert receiver.answers == [("r1", [{"a": 1}])]


@pytest.mark.parametrize(("kind", "text"), [(float, "1e999"), (Any, "1e400"), (Any, '[NaN, {"a": 1}]')])
def test_a_number_that_would_become_another_one_is_refused(kind: Any, text: str):
    made = form(type_or_schema=kind)
    made.set_raw("value", text)
    assert not made.validate()
    assert any(word in made.errors["value"] for word in ("too large", "not a JSON number"))


def test_without_anywidget_the_form_is_text(monkeypatch: pytest.MonkeyPatch):
    import sys

    for module in ("forms.page", "runtime.widgets"):
        monkeypatch.delitem(sys.modules, f"agentbench.notebook.{module}", raising=False)
    monkeypatch.setitem(sys.modules, "anywidget", None)
    asked, _ = ask("Publish?", bool)
    assert asked._repr_mimebundle_() == {"text/plain": asked.text}
    with raises(WidgetsUnavailable, "form.text"):
        _ = asked.widget


def test_answers_are_displayed_with_secrets_masked():
    made = form(SecretStr)
    made.set_raw("value", "hunter2")
    made.submit()
    assert "hunter2" not in made.text
    assert "•••" in made.text
