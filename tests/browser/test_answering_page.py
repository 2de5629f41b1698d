"""An editable page of a saved run: its reader changes values and answers, downloads a file, and the run merges it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowRun,
    handler,
    response_handler,
    run_sync,
)
from agentbench.exceptions import MergeError, WorkflowCheckpointException
from tests.browser.axe import violations
from tests.browser.page_parts import expect
from tests.browser.test_saved_run_page import button, flow, open_file, shot

__all__ = ["open_file"]


@dataclass
class Order:
    title: str
    number: int
    rush: bool
    api_key: str = "S3CRET"


class Ask(Executor):
    @handler
    async def take(self, order: Order, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("order", order)
        ctx.set_state("tags", ["a", "b"])
        await ctx.request_info("Which colour?", Literal["red", "green"])

    @response_handler
    async def answered(self, asked: str, colour: Literal["red", "green"], ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(colour)


class Print(Executor):
    @handler
    async def print(self, colour: str, ctx: WorkflowContext[str, str]) -> None:
        order = ctx.get_state("order")
        await ctx.yield_output(f"{colour} {order.title} {order.number} {order.rush} {ctx.get_state('tags')}")


def order_flow() -> Workflow:
    return WorkflowBuilder(name="orders").add_chain([Ask(id="ask"), Print(id="print")]).build()


def started(workflow: Workflow, message: Any) -> WorkflowRun:
    run = workflow.start(message, checkpoint_storage=InMemoryCheckpointStorage())
    run_sync(run.result())
    return run


def choose(page: Any, label: str, value: str) -> None:
    page.get_by_label("Value or question").select_option(label=label)
    field = page.get_by_label("New value")
    if field.evaluate("field => field.tagName") == "SELECT":
        field.select_option(label=value)
    else:
        field.fill(value)
    button(page, "Add change").click()


def download(page: Any, folder: Path) -> Path:
    with page.expect_download() as waiting:
        button(page, "Download answer.json").click()
    path: Path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path


@pytest.mark.parametrize("dark", [False, True])
def test_a_reader_edits_and_answers_and_the_run_merges_the_file_into_a_branch(
    open_file: Any, tmp_path: Path, dark: bool
) -> None:
    run = started(order_flow(), Order("cats", 12345678901234567890, False))
    page = open_file(run.save(tmp_path / "run.html", editable=True, site="../lab/"), dark=dark)
    assert "S3CRET" not in page.content()
    expect(page.get_by_role("link", name="Continue here")).to_have_attribute("href", "../lab/")
    choose(page, "ask asks: Which colour?", "green")
    choose(page, "order.title", "dogs\n<b>")
    choose(page, "order.number", "many")
    expect(page.get_by_role("alert").last).to_have_text("This must be a whole number.")
    choose(page, "order.number", "12345678901234567891")
    choose(page, "order.rush", "true")
    choose(page, "tags", '["c"]')
    choose(page, "tags[0]", "d")
    expect(page.get_by_role("alert").last).to_contain_text("overlaps with this one")
    choose(page, "tags", f'["{"c" * 20_000}"]')
    expect(page.get_by_role("alert").last).to_contain_text("longer than 20000 characters")
    page.get_by_label("Your name (shown as unverified)").fill("A\u200dda")
    assert violations(page) == []
    shot(page, f"answering_{'dark' if dark else 'light'}")

    merge = run_sync(run.merge(download(page, tmp_path)))
    assert repr(merge) == "Merge(4 edits, 1 answer by Ada (unverified), at superstep 1)"
    assert 'order.title: "cats" -> "dogs\\n<b>"' in str(merge)
    assert "&lt;b&gt;" in merge._repr_mimebundle_()["text/html"]
    assert run.state["order"].title == "cats"
    branch = run_sync(merge.apply())
    result = run_sync(branch.result())
    assert result.get_outputs() == ["green dogs\n<b> 12345678901234567891 True ['c']"]
    assert branch.state["order"].api_key == "S3CRET"


def test_changes_belong_to_one_superstep_and_can_be_removed(open_file: Any, tmp_path: Path) -> None:
    run = started(flow(), "harvest")
    page = open_file(run.save(tmp_path / "run.html", editable=True))
    choose(page, "topic.name", "winter")
    button(page, "Back").click()
    choose(page, "topic.name", "spring")
    expect(page.get_by_role("alert").last).to_contain_text("remove those at superstep 1 first")
    button(page, "Remove the change of topic.name").click()
    expect(button(page, "Download answer.json")).to_be_disabled()
    choose(page, "topic.name", "spring")
    merge = run_sync(run.merge(download(page, tmp_path)))
    assert merge.checkpoint.iteration == 0
    other = started(flow(), "harvest")
    with pytest.raises(MergeError, match="different run"):
        run_sync(other.merge(tmp_path / "answer.json"))


def test_an_approval_becomes_a_question_to_the_person_who_merges(open_file: Any, tmp_path: Path) -> None:
    run = started(flow(), "harvest")
    page = open_file(run.save(tmp_path / "run.html", editable=True))
    page.get_by_label("Value or question").select_option(label="review asks: Print harvest?")
    expect(page.locator("#answer-note")).to_contain_text("a file cannot approve")
    choose(page, "review asks: Print harvest?", "true")
    merge = run_sync(run.merge(download(page, tmp_path)))
    assert [each.data for each in merge.questions] == ["Print harvest?"]
    assert not merge.answers
    branch = run_sync(merge.apply())
    assert len(branch.pending_requests) == 1
    run_sync(branch.respond(merge.questions[0], True))
    assert run_sync(branch.result()).get_outputs() == ["printed"]


def test_a_page_without_checkpoints_cannot_be_edited(tmp_path: Path) -> None:
    run = flow().start("harvest")
    run_sync(run.result())
    with pytest.raises(WorkflowCheckpointException, match="checkpoint_storage="):
        run.save(tmp_path / "run.html", editable=True)
    assert not (tmp_path / "run.html").exists()


@pytest.mark.parametrize("site", ["https://a.b/", "//a.b/", "javascript:alert(1)", "/root", "\\\\a", ""])
def test_continue_here_leads_to_no_other_place(tmp_path: Path, site: str) -> None:
    with pytest.raises(ValueError, match="relative link"):
        started(flow(), "harvest").save(tmp_path / "run.html", editable=True, site=site)
