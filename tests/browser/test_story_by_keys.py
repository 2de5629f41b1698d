"""The story of the notebook on people in the loop, told with a keyboard alone: a choice, a mistake, a decision."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.browser.page_parts import expect

NOTEBOOK = Path(__file__).parents[2] / "notebooks" / "06_human_in_the_loop.ipynb"
# What a person who cannot see hears of the element that has the focus.
FOCUSED = """
() => {
  const at = document.activeElement;
  const label = at.labels?.length ? at.labels[0].textContent : at.getAttribute('aria-label') ?? at.textContent;
  return label.trim();
}
"""


def cells_that_build() -> list[str]:
    """The cells of the notebook up to the one that builds its workflow."""
    cells = [
        "".join(cell["source"]) for cell in json.loads(NOTEBOOK.read_text())["cells"] if cell["cell_type"] == "code"
    ]
    (building,) = [number for number, source in enumerate(cells) if ".build()" in source]
    return [*cells[:building], cells[building].partition("\n\n")[0]]


def tab_to(page: Any, name: str) -> None:
    """Press Tab until something of this name has the focus."""
    for _ in range(30):
        if page.page.evaluate(FOCUSED).lower().startswith(name.lower()):
            return
        page.page.keyboard.press("Tab")
    raise AssertionError(f"Tab leads to no {name!r}")


@pytest.mark.nightly
def test_a_run_is_stepped_and_its_questions_are_answered_without_a_mouse(lab: Any, open_notebook: Any) -> None:
    show = "from agentbench.notebook import stepper\npanel = stepper(lending, Loan('the museum by the sea'))\npanel"
    lab.write("story", [*cells_that_build(), show])
    page = open_notebook("story")
    page.run_all()
    keyboard = page.page.keyboard
    header = page.panel.locator(".abs-header")
    page.button("Step").focus()
    keyboard.press("r")

    expect(page.panel.get_by_text("How will The Great Wave travel")).to_be_visible()
    expect(header).to_contain_text("waiting for an answer")
    tab_to(page, "van")
    keyboard.press("Enter")

    expect(page.panel.get_by_text("Under which conditions may it be shown?")).to_be_visible()
    months, lux = (page.panel.get_by_role("textbox", name=name) for name in ("months", "lux"))
    expect(months).to_be_focused()  # Run went on by itself, and the focus with it
    keyboard.type("3")
    keyboard.press("Tab")
    tab_to(page, "lux")
    keyboard.type("80")
    keyboard.press("Control+Enter")
    expect(lux).to_be_focused()  # too bright: the field says so, and keeps what was typed
    expect(lux).to_have_value("80")
    expect(lux).to_have_attribute("aria-invalid", "true")
    expect(months).to_have_value("3")
    keyboard.press("Control+a")
    keyboard.type("45")
    keyboard.press("Control+Enter")

    expect(page.panel.get_by_text("Lend it to the museum by the sea?")).to_be_visible()
    tab_to(page, "Reject")
    keyboard.press("Enter")
    reason = page.panel.get_by_role("textbox", name="Reason")
    expect(reason).to_be_focused()  # a rejection needs one
    keyboard.type("It is tired.")
    tab_to(page, "Reject")
    keyboard.press("Enter")
    expect(header).to_contain_text("finished")
    expect(page.panel.locator(".abs-banner-text")).to_contain_text("We are sorry. It is tired.")
