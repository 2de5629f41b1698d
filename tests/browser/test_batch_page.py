"""A person watches a batch, filters and opens its rows, answers its questions and reads its map, in a real browser."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.page_parts import expect
from tests.browser.scenes import BATCHES, SETUP
from tests.browser.test_chat_page import nothing_serious

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


def test_a_panel_out_of_sight_is_not_drawn_until_it_is_seen(open_cells: Any) -> None:
    page = open_cells([SETUP, BATCHES, "shown = batch(**running)\npanel = BatchPanel(shown)\npanel"])
    share = page.panel.locator(".abb-share")
    expect(share).to_have_text("1,000 of 2,000 inputs")
    page.page.evaluate("document.querySelector('.abb').parentElement.style.display = 'none'")
    page.run("while not panel._follower.paused:\n    await asyncio.sleep(0.01)")
    page.run("shown.change(*many_rows(1500))")
    page.page.evaluate("document.querySelector('.abb').parentElement.style.display = ''")
    expect(share).to_have_text("1,500 of 2,000 inputs")
