"""A person watches a batch, filters and opens its rows, answers its questions and reads its map, in a real browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from agentbench.notebook.batches.explore import explore
from tests.browser.axe import violations
from tests.browser.page_parts import expect
from tests.browser.scenes import BATCHES, SETUP
from tests.browser.test_chat_page import nothing_serious
from tests.parts.batches import FakeBatch, many_rows, review_flow

pytest.importorskip("playwright")
pytest.importorskip("axe_playwright_python")


def test_a_person_filters_opens_retries_and_answers_in_the_panel(open_cells: Any) -> None:
    page = open_cells([SETUP, BATCHES, "shown = batch(keeps=True, **running)\nBatchPanel(shown)"], height=2400)
    panel, batch = page.panel.locator(".abb"), page.cells.names["shown"]
    expect(panel).to_contain_text("1,000 of 2,000 inputs")
    expect(panel.get_by_role("progressbar")).to_have_attribute("aria-valuenow", "50")
    panel.get_by_role("button", name="TimeoutError 50").click()
    expect(panel.locator("tbody tr")).to_have_count(50)
    expect(panel.locator("caption")).to_have_text("Rows with TimeoutError")
    page.button("Cancel").click()
    expect(panel.locator(".abb-state")).to_have_text("cancelled")
    page.button("Retry 100 failed").click()
    page.button("Resume").click()
    expect(panel.locator(".abb-state")).to_have_text("running")
    assert batch.calls == ["cancel", "retry", "resume"]
    page.button("row-00003").press("Enter")
    expect(panel.locator(".abb-detail")).to_contain_text("no answer for 3")
    page.button("Step").click()
    expect(page.panel.locator(".abs-banner")).to_contain_text("write gets 1 message")
    assert nothing_serious(page, ".abb")
    page.button("Close").click()
    expect(page.panel.locator(".abs")).to_have_count(0)
    page.button("Answer 20 waiting").click()
    forms = page.panel.locator(".abf")
    expect(forms).to_have_count(2)
    page.panel.get_by_role("checkbox", name="Answer these 312 together").check()
    forms.first.get_by_role("button", name="Approve").click()
    expect(forms).to_have_count(1)
    assert sum(call[0] == "answer" and call[2] == {f"request-{int(call[1][4:])}": True} for call in batch.calls) == 312
    assert nothing_serious(page, ".abf")
    page.button("Close questions").click()
    expect(forms).to_have_count(0)


def test_a_row_without_checkpoints_is_run_again_with_a_click(open_cells: Any) -> None:
    page = open_cells([SETUP, BATCHES, "BatchPanel(batch())"], height=2400)
    page.button("row-00993").click()
    expect(page.panel.locator(".abb-note")).to_contain_text("keeps no checkpoints")
    page.button("Run it again").click()
    page.button("Run").click()
    expect(page.panel.locator(".abs-banner")).to_contain_text("Finished.")


def test_a_person_selects_nodes_paths_and_errors_on_a_map_and_opens_a_row(open_cells: Any) -> None:
    page = open_cells([SETUP, BATCHES, "explore(batch(keeps=True))"], height=2400)
    panel = page.panel.locator(".abb-map")
    rows = panel.get_by_role("region", name="Rows", exact=True)
    expect(rows.locator("caption")).to_have_text("All rows, the first 50 of 1,000")
    panel.locator('.ab_node[data-name="check"]').click()
    expect(rows.locator("caption")).to_have_text("Rows that called check, the first 50 of 950")
    expect(page.button("check")).to_have_attribute("aria-pressed", "true")
    page.button("read > (check, rate)").press("Enter")
    expect(rows.locator("caption")).to_have_text("Rows on the path read > (check, rate), the first 50 of 70")
    expect(panel.locator(".ab_node.ab_sel")).to_have_count(0)
    page.button("ValueError").click()
    page.button("Show all rows").click()
    expect(rows.locator("caption")).to_have_text("All rows, the first 50 of 1,000")
    page.button("TimeoutError").click()
    page.button("row-00003").click()
    expect(panel.locator(".abb-detail")).to_contain_text("no answer for 3")
    expect(page.panel.locator(".abs-banner")).to_contain_text("Superstep 1 is next")
    assert nothing_serious(page, ".abb-map")


def test_a_saved_map_works_without_a_kernel_and_without_a_network(pages: Any, tmp_path: Path) -> None:
    batch = FakeBatch(many_rows(3000), workflow=review_flow())
    path = explore(batch).save(tmp_path / "map.html")
    for dark in (False, True):
        problems: list[str] = []
        requests: list[str] = []
        context = pages.context.browser.new_context(offline=True, color_scheme="dark" if dark else "light")
        page = context.new_page()
        page.on("pageerror", lambda error, problems=problems: problems.append(str(error)))
        page.on("console", lambda said, problems=problems: problems.append(said.text))
        page.on("request", lambda request, requests=requests: requests.append(request.url))
        page.goto(path.as_uri())
        rows = page.get_by_role("region", name="Rows", exact=True)
        expect(page.locator(".abb-saved").first).to_contain_text("3,000 runs; the page has 2,000 of their rows")
        page.locator('.ab_node[data-name="write"]').click()
        expect(rows.locator("caption")).to_contain_text("Rows that called write, the first 500 of 2,640")
        page.get_by_role("button", name="TimeoutError").click()
        expect(rows.locator("tbody tr")).to_have_count(150)
        page.get_by_role("button", name="row-00003").click()
        expect(page.locator(".abb-detail")).to_contain_text("Traceback: TimeoutError")
        page.get_by_role("button", name="Close").click()
        expect(page.locator(".abb-detail")).to_be_hidden()
        assert violations(page, ".abb-map") == []
        assert problems == []
        assert {url.partition(":")[0] for url in requests} <= {"file", "data"}
        context.close()


def test_a_panel_out_of_sight_is_not_drawn_until_it_is_seen(open_cells: Any) -> None:
    page = open_cells([SETUP, BATCHES, "shown = batch(**running)\npanel = BatchPanel(shown)\npanel"])
    share = page.panel.locator(".abb-share")
    expect(share).to_have_text("1,000 of 2,000 inputs")
    page.page.evaluate("document.querySelector('.abb').parentElement.style.display = 'none'")
    page.run("while not panel._follower.paused:\n    await asyncio.sleep(0.01)")
    page.run("shown.change(*many_rows(1500))")
    page.page.evaluate("document.querySelector('.abb').parentElement.style.display = ''")
    expect(share).to_have_text("1,500 of 2,000 inputs")


REAL = """
from agentbench import Executor, WorkflowBuilder, WorkflowContext, handler, response_handler
from agentbench.batch import run_many

class Judge(Executor):
    mends = False

    @handler
    async def judge(self, number: int, ctx: WorkflowContext[int, str]) -> None:
        if number % 10 == 1 and not Judge.mends:
            raise TimeoutError(f"no answer for {number}")
        if number % 10 == 2:
            await ctx.request_info("Publish?", bool)
        else:
            await ctx.yield_output(f"judged {number}")

    @response_handler
    async def hear(self, question: str, yes: bool, ctx: WorkflowContext[int, str]) -> None:
        await ctx.yield_output(f"published {yes}")

class Read(Executor):
    @handler
    async def read(self, number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(number)

read, judge = Read("read"), Judge("judge")
judging = WorkflowBuilder(start_executor=read, name="judging").add_edge(read, judge).build()
real = run_many(judging, range(100), keys=str)
real.result()
BatchPanel(real)
"""


def test_the_panel_opens_answers_and_retries_the_runs_of_a_real_batch(open_cells: Any) -> None:
    page = open_cells([SETUP, BATCHES, REAL], height=2400)
    panel, batch = page.panel.locator(".abb"), page.cells.names["real"]
    expect(panel).to_contain_text("100 of 100 inputs")
    panel.get_by_role("button", name="TimeoutError 10").click()
    expect(panel.locator("tbody tr")).to_have_count(10)
    page.button("11").press("Enter")
    expect(page.panel.locator(".abs-banner")).to_contain_text("judge gets 1 message")
    page.button("Close").click()
    page.button("Answer 10 waiting").click()
    page.panel.get_by_role("checkbox", name="Answer these 10 together").check()
    page.panel.locator(".abf").first.get_by_role("button", name="Approve").click()
    expect(page.panel.locator(".abf")).to_have_count(0)
    page.cells.names["Judge"].mends = True
    page.button("Retry 10 failed").click()
    expect(panel).to_contain_text("100 finished")
    assert {row.output for row in batch.rows() if row.position % 10 == 2} == {"published True"}
