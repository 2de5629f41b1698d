"""The first thing that a newcomer does: open the first notebook, run it, step, look, answer."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from tests.browser.page_parts import expect

NOTEBOOKS = Path(__file__).parents[2] / "notebooks"
# Half a page down, and from the end to the beginning.
FURTHER = """
(notebook) => {
  const atEnd = notebook.scrollTop + notebook.clientHeight >= notebook.scrollHeight - 2;
  notebook.scrollTo(0, atEnd ? 0 : notebook.scrollTop + notebook.clientHeight / 2);
}
"""


@pytest.fixture
def page(lab: Any, open_notebook: Any) -> Any:
    """The first notebook as it is shipped, open and run, the stepper in view."""
    shutil.copytree(NOTEBOOKS, lab.folder, dirs_exist_ok=True)
    shown = open_notebook("01_first_workflow")
    shown.run_all(finished=False)
    scroll_to(shown, larger_panel(shown))
    return shown


def larger_panel(shown: Any) -> Any:
    """The stepper of the larger workflow: the one whose graph has a node `repair`."""
    return shown.panel.locator(".abs-frame").filter(has=shown.page.locator(".ab_node[aria-label^='repair']"))


def scroll_to(shown: Any, what: Any) -> None:
    """Scroll through the notebook until something is in sight: cells that are not are not on the page either."""
    notebook = shown.panel.locator(".jp-WindowedPanel-outer").first
    for _ in range(400):
        if what.count() and what.first.is_visible():
            what.first.scroll_into_view_if_needed()
            return
        notebook.evaluate(FURTHER)
        shown.page.wait_for_timeout(50)
    pytest.fail(f"{what} is not in the notebook")


def node(shown: Any, name: str) -> Any:
    return larger_panel(shown).locator(f".ab_node[aria-label^='{name}']").first


def test_a_newcomer_steps_and_answers(page: Any) -> None:
    panel = larger_panel(page)
    header, log = panel.locator(".abs-header"), panel.locator(".abs-last")
    expect(header).to_contain_text("superstep 1")
    expect(node(page, "convert")).to_have_attribute("aria-label", "convert, done")
    expect(node(page, "repair")).to_have_attribute("aria-label", "repair, skipped")

    page.press("Step", within=panel)
    expect(header).to_contain_text("superstep 2")
    expect(log).to_have_text("superstep 2: consumption got 1 message, weight got 1 message, power got 1 message")
    for name in ("consumption", "weight", "power"):
        expect(node(page, name)).to_have_attribute("aria-label", f"{name}, done")
    expect(node(page, "report")).to_have_attribute("aria-label", "report, queued")
    page.shot("first-stepped", panel)

    page.press("Run", within=panel)
    expect(header).to_contain_text("waiting for an answer")
    expect(panel.get_by_text("Publish this report?").last).to_be_visible()
    page.shot("first-asked", panel)
    page.press("Approve", within=panel)
    expect(header).to_contain_text("finished")
    expect(panel.locator(".abs-banner-text")).to_contain_text("The median car of 1976")
    page.shot("first-answered", panel)
