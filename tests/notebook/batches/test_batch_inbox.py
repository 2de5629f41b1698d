"""The open questions of a batch: equal ones are answered by one form, one row at a time or all together."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

pytest.importorskip("anywidget")

from agentbench import Executor, WorkflowBuilder, WorkflowContext, WorkflowEvent, handler, response_handler
from agentbench.batch import RowStatus, run_many
from agentbench.notebook.batches.inbox import BatchInbox, batch_inbox
from tests.notebook.attacks import ATTACKS
from tests.notebook.test_hostile_text import check_bundle, check_text
from tests.parts.batches import FakeBatch, OpenQuestion, many_rows, questions_of


class Ask(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(text)
        await ctx.request_info("Publish it?", bool)

    @response_handler
    async def decide(self, question: str, yes: bool, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{question} {yes}")


def asking(*questions: OpenQuestion) -> tuple[FakeBatch, BatchInbox]:
    batch = FakeBatch(many_rows(5), questions=questions)
    return batch, batch_inbox(batch)


def answered(batch: FakeBatch) -> list[str]:
    return [call[1] for call in batch.calls if call[0] == "answer"]


def test_equal_questions_share_a_form_that_answers_the_next_row():
    batch, box = asking(*questions_of(3), *questions_of(2, "Archive it?", first=3))
    assert [(group.prompt, len(group.questions)) for group in box.groups] == [("Publish it?", 3), ("Archive it?", 2)]
    assert box.groups[0].form.answer(True)
    assert batch.calls == [("answer", "row-00000", {"request-0": True})]
    assert [len(group.questions) for group in box.groups] == [2, 2]
    assert box.groups[0].form.answer(False)
    assert answered(batch) == ["row-00000", "row-00001"]


def test_one_form_answers_all_rows_together_when_asked_to():
    batch, box = asking(*questions_of(300), *questions_of(1, "Archive it?", first=300))
    group = box.groups[0]
    assert group.together is False
    group.together = True
    assert group.form.answer(True)
    assert len(answered(batch)) == 300
    assert [each.prompt for each in box.groups] == ["Archive it?"]


async def test_a_withdrawn_question_lets_its_rows_finish_without_an_answer() -> None:
    batch = await run_many(WorkflowBuilder(start_executor=Ask("ask")).build(), ["a", "b", "c"])
    box = batch_inbox(batch)
    assert await asyncio.to_thread(box.groups[0].form.withdraw)
    await batch
    assert [len(group.questions) for group in box.groups] == [2]
    box.groups[0].together = True
    assert await asyncio.to_thread(box.groups[0].form.withdraw)
    await batch
    assert box.groups == []
    assert [(row.status, row.output) for row in batch.rows()] == [(RowStatus.FINISHED, text) for text in "abc"]


def test_questions_of_other_executors_types_or_data_are_other_groups():
    def question(executor: str, data: Any, answer: type) -> OpenQuestion:
        return OpenQuestion("a", WorkflowEvent.request_info("r", executor, data, answer))

    long = "x" * 3000
    _, box = asking(
        question("check", long + "a", str),
        question("check", long + "b", str),
        question("check", long + "a", int),
        question("rate", long + "a", str),
        question("check", long + "a", str),
    )
    assert [len(group.questions) for group in box.groups] == [2, 1, 1, 1]


def test_a_refused_answer_stays_in_its_form_and_the_others_are_not_sent():
    batch, box = asking(*questions_of(3))

    def refuse(key: str, answers: dict[str, Any]) -> None:
        if key == "row-00001":
            raise ValueError("not a bool")
        FakeBatch.answer_now(batch, key, answers)

    batch.answer_now = refuse  # type: ignore[method-assign]
    group = box.groups[0]
    group.together = True
    assert not group.form.answer(True)
    assert group.form.refusal == "1 of 3 rows were answered; then row-00001: not a bool"
    assert [each.key for each in box.groups[0].questions] == ["row-00001", "row-00002"]


def test_an_answer_to_rows_that_ask_no_more_is_refused():
    batch, box = asking(*questions_of(1))
    form = box.groups[0].form
    batch.open_questions = []
    assert box.groups == []
    assert not form.answer(True)
    assert form.refusal == "No row asks this any more: it was answered elsewhere."


def test_typed_text_stays_when_another_row_asks_or_is_answered_elsewhere():
    batch, box = asking(*questions_of(2))
    widget = box.widget
    form = box.groups[0].form
    batch.open_questions = [*batch.open_questions[1:], *questions_of(2, first=2), *questions_of(1, "Other?", first=4)]
    box.refresh()
    assert box.groups[0].form is form
    assert [len(group.questions) for group in box.groups] == [3, 1]
    assert len(widget.children) == 3
    switch = widget.children[1].children[1]
    sent: list[dict[str, Any]] = []
    switch.send = sent.append
    switch._handle_custom_msg({"kind": "set", "on": True}, [])
    assert sent == [{"kind": "switch", "count": 3, "on": True}]
    assert box.groups[0].together
    batch.open_questions = []
    box.refresh()
    assert [type(each).__name__ for each in widget.children] == ["HTML"]
    box.close()
    box.close()


def test_the_text_says_how_to_answer_by_code():
    _, box = asking(*questions_of(312), *questions_of(1, "Archive it?", first=400))
    assert box.text.splitlines() == [
        "313 rows waiting, 2 different questions.",
        "check, 312 rows: Publish it?",
        "  await batch.answer('row-00000', {'request-0': ...})",
        "check, 1 row: Archive it?",
        "  await batch.answer('row-00400', {'request-400': ...})",
    ]
    assert asking()[1].text == "No open questions."


def test_only_the_first_twenty_different_questions_have_forms():
    _, box = asking(*(questions_of(1, f"Question {place}?", first=place)[0] for place in range(30)))
    assert len(box.widget.children) == 21
    assert box.text.splitlines()[0] == "30 rows waiting, 30 different questions; the first 20 are shown."
    box.close()


def test_hostile_questions_are_inert():
    for attack in ATTACKS:
        if attack.strip():
            question = OpenQuestion(attack, WorkflowEvent.request_info(attack, attack, {"prompt": attack}, str))
            _, box = asking(question)
            check_text(box.text)
            check_text(repr(box.groups))
            check_bundle({"text/html": box.widget.children[0].value})
            box.close()
