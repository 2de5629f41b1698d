"""The file of a saved run in a browser that has no network: it is stepped, looked into, and does nothing else."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    run_sync,
)
from tests.browser.axe import violations
from tests.browser.page_parts import expect
from tests.notebook.attacks import ATTACKS

SECRET = "S3CRET"
# What the browser says when the HTML of an output tries something, and is kept from it.
KEPT_FROM_IT = ("Blocked script execution in 'about:srcdoc'", "Not allowed to load", "Content Security Policy")


class Plan(Executor):
    @handler
    async def plan(self, topic: str, ctx: WorkflowContext[pd.DataFrame]) -> None:
        ctx.set_state("topic", {"name": topic, "words": ["plan", "write"], "api_key": SECRET})
        await ctx.send_message(pd.DataFrame({"word": [topic, "end"], "n": [3, 4]}))


class Review(Executor):
    broken = False

    @handler
    async def review(self, table: pd.DataFrame, ctx: WorkflowContext[str, pd.DataFrame]) -> None:
        print("reading the table")
        if self.broken:
            raise ValueError(f"unreadable: {table['word'][0]}")
        ctx.set_state("rows", len(table))
        await ctx.yield_output(table)
        await ctx.request_info(f"Print {table['word'][0]}?", bool)

    @response_handler
    async def answered(self, asked: str, ok: bool, ctx: WorkflowContext[str, pd.DataFrame]) -> None:
        await ctx.send_message("printed" if ok else "dropped")


class Report(Executor):
    @handler
    async def report(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("end", text)
        await ctx.yield_output(text)


def flow(*, broken: bool = False, name: str = "review flow") -> Workflow:
    review = Review(id="review")
    review.broken = broken
    return WorkflowBuilder(name=name).add_chain([Plan(id="plan"), review, Report(id="report")]).build()


def save(workflow: Workflow, topic: Any, path: Path, *answers: object) -> Path:
    run = workflow.start(topic, checkpoint_storage=InMemoryCheckpointStorage())

    async def drive() -> None:
        with contextlib.suppress(ValueError):
            await run.result()
        for answer in answers:
            await run.respond(run.pending_requests[0], answer)
            await run.result()

    run_sync(drive())
    return run.save(path)


@pytest.fixture
def open_file(pages: Any) -> Iterator[Callable[..., Any]]:
    """Open a file offline; asserts that its page raised nothing, said nothing and asked for nothing else."""
    problems: list[str] = []

    def heard(message: Any) -> None:
        if not any(words in message.text for words in KEPT_FROM_IT):
            problems.append(message.text)

    def requested(request: Any) -> None:
        if not request.url.startswith(("file:", "data:", "about:")) and request.failure != "csp":
            problems.append(f"{request.url}: {request.failure}")

    with contextlib.ExitStack() as last:

        def open_it(path: Path, *, dark: bool = False, width: int = 1200) -> Any:
            context = pages.context.browser.new_context(
                offline=True, color_scheme="dark" if dark else "light", viewport={"width": width, "height": 900}
            )
            last.callback(context.close)
            page = context.new_page()
            page.on("pageerror", lambda error: problems.append(str(error.stack)))
            page.on("console", heard)
            page.on("dialog", lambda dialog: problems.append(dialog.message))
            page.on("requestfinished", requested)
            page.on("requestfailed", requested)
            page.goto(path.as_uri())
            return page

        yield open_it
        assert problems == []


def shot(page: Any, name: str) -> None:
    folder = os.environ.get("AGENTBENCH_SHOTS")
    if folder:
        page.screenshot(path=str(Path(folder) / f"{name}.png"))


def button(page: Any, name: str) -> Any:
    return page.get_by_role("button", name=name, exact=True)


def test_anybody_steps_back_and_forth_by_button_key_and_slider(open_file: Any, tmp_path: Path) -> None:
    page = open_file(save(flow(), "harvest", tmp_path / "run.html", True))
    header, values, log = page.locator(".abs-header"), page.locator(".abs-page"), page.locator(".abs-lines")
    expect(header).to_contain_text("superstep 3")
    expect(header).to_contain_text("finished")
    expect(values).to_contain_text("printed")
    expect(log).to_contain_text("output of report: printed")
    expect(page.locator(".ab_node.ab_s_done[data-name=report]")).to_have_count(1)
    expect(button(page, "Forward")).to_have_attribute("aria-disabled", "true")

    button(page, "Back").click()
    expect(header).to_contain_text("superstep 2")
    expect(page.locator(".abs-banner")).to_contain_text("report gets 1 message")
    expect(page.locator(".ab_node.ab_s_queued[data-name=report]")).to_have_count(1)
    expect(values).not_to_contain_text("printed")
    expect(log).not_to_contain_text("output of report")

    page.keyboard.press("ArrowLeft")
    expect(header).to_contain_text("waiting for an answer")
    expect(page.locator(".abs-banner")).to_contain_text("review asks: Print harvest?")
    expect(page.locator(".ab_node.ab_s_waiting[data-name=review]")).to_have_count(1)
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("ArrowLeft")  # nothing is before the start
    expect(header).to_contain_text("no superstep yet")
    expect(values).to_contain_text("harvest")  # the input
    expect(log.locator("li")).to_have_count(0)
    expect(button(page, "Back")).to_have_attribute("aria-disabled", "true")

    button(page, "Forward").click()
    page.get_by_role("tab", name="Messages").click()
    expect(values).to_contain_text("plan → review")
    page.keyboard.press("s")
    expect(values).to_contain_text("No messages")
    page.get_by_role("slider").fill("1")
    expect(header).to_contain_text("superstep 0")
    expect(values).to_contain_text("plan → review")


def test_values_open_nodes_are_selected_and_outputs_show_themselves(open_file: Any, tmp_path: Path) -> None:
    page = open_file(save(flow(), "harvest", tmp_path / "run.html", True))
    values = page.locator(".abs-page")
    button(page, "Open topic").click()
    expect(values).to_contain_text("api_key•••")
    button(page, "Open words").click()
    expect(values).to_contain_text("write")
    page.keyboard.press("ArrowLeft")
    expect(values).to_contain_text("write")  # what was opened stays open

    page.locator(".ab_node[data-name=review]").click()
    expect(page.get_by_role("tab", name="Node")).to_have_attribute("aria-selected", "true")
    expect(values).to_contain_text("visits2, the last in superstep 2")
    page.keyboard.press("ArrowRight")  # in the graph: to the next node
    page.keyboard.press("Enter")
    expect(page.locator(".abs-title").first).to_have_text("report")

    page.get_by_role("tab", name="Output").click()
    table = page.frame_locator(".abs-output iframe").locator("table")
    expect(table).to_contain_text("harvest")
    page.get_by_role("tab", name="Events").click()
    expect(values).to_contain_text("superstep started")
    page.get_by_role("tab", name="Diff").click()
    expect(values).to_contain_text("compared with")
    assert SECRET not in page.content()


def test_nothing_that_needs_a_kernel_can_be_pressed(open_file: Any, tmp_path: Path) -> None:
    page = open_file(save(flow(), "harvest", tmp_path / "run.html", True))
    page.keyboard.press("b")
    page.keyboard.press("r")
    page.keyboard.press("?")
    shown = [each.text_content() for each in page.get_by_role("button").all() if each.is_visible()]
    assert not {"Step", "Run", "Pause", "Stop", "Fork", "Edit", "⋯"}.intersection(shown)
    assert page.locator(".ab_ring").count() == 0


def test_a_run_that_failed_opens_at_its_failure(open_file: Any, tmp_path: Path) -> None:
    page = open_file(save(flow(broken=True), "harvest", tmp_path / "run.html"))
    expect(page.locator(".abs-banner")).to_contain_text("review failed: ValueError: unreadable: harvest")
    expect(page.locator(".ab_node.ab_s_failed[data-name=review]")).to_have_count(1)
    page.get_by_text("details").click()
    expect(page.locator(".abs-banner pre")).to_contain_text("raise ValueError")
    button(page, "Back").click()
    expect(page.locator(".abs-banner")).to_contain_text("Superstep 1 is next")


def test_hostile_texts_do_nothing(open_file: Any, tmp_path: Path) -> None:
    class Evil(Executor):
        @handler
        async def go(self, texts: list[str], ctx: WorkflowContext[list[str], str]) -> None:
            for number, text in enumerate(texts):
                ctx.set_state(text or str(number), {text: [text]})
                print(text)
            await ctx.yield_output(" ".join(texts))
            await ctx.request_info("".join(texts), str)

        @response_handler
        async def answered(self, asked: str, answer: str, ctx: WorkflowContext) -> None: ...

    class Picture:
        def _repr_html_(self) -> str:
            return "".join(ATTACKS)

    class Draw(Executor):
        @handler
        async def go(self, texts: list[str], ctx: WorkflowContext[str, Picture]) -> None:
            await ctx.yield_output(Picture())
            raise ValueError("".join(texts))

    evil, draw = Evil(id=ATTACKS[0]), Draw(id=ATTACKS[1])
    first = WorkflowBuilder(name=ATTACKS[2], start_executor=evil).add_edge(evil, draw).build()
    second = WorkflowBuilder(name=ATTACKS[3], start_executor=draw).build()
    for place, workflow in enumerate((first, second)):
        page = open_file(save(workflow, ATTACKS, tmp_path / f"{place}.html"))
        for tab in ("Node", "State", "Messages", "Output", "Events", "Diff"):
            page.get_by_role("tab", name=tab).click()
            page.keyboard.press("Home")
        page.locator(".ab_node").first.click()
        button(page, "Back").click()
        assert page.evaluate("window.pwned") is None


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [600, 1200])
def test_it_reads_well_on_narrow_and_wide_pages_light_and_dark(
    open_file: Any, tmp_path: Path, dark: bool, width: int
) -> None:
    page = open_file(save(flow(), "harvest", tmp_path / "run.html", True), dark=dark, width=width)
    shot(page, f"saved-run-{width}-{'dark' if dark else 'light'}")
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    found = page.context.new_cdp_session(page)
    found.send("Page.setBypassCSP", {"enabled": True})  # axe is a script of ours
    page.reload()
    assert violations(page, "body") == []
