"""Graphs of fifty and of five hundred nodes: they open, are stepped, zoomed and walked through."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.page_parts import expect

# Its last steps have no successors; in a kernel that is a warning on the screen.
pytestmark = pytest.mark.filterwarnings("ignore:Executor 'step .*:agentbench.exceptions.WorkflowWarning")

CELLS = [
    "from agentbench.notebook import stepper\nfrom tests.browser.review_flow import build",
    "panel = stepper(build(NODES), 'cats', height=320)\npanel",
]
FOCUSED = "() => document.activeElement?.textContent ?? ''"
SIZE = "() => ['width', 'height'].map(side => document.querySelector('.ab_port svg').getBoundingClientRect()[side])"
# Whether all of a node lies in the part of the graph that is scrolled to.
IN_SIGHT = """
(node) => {
  const [box, port] = [node, node.closest('.ab_port')].map(each => each.getBoundingClientRect());
  return box.left >= port.left && box.right <= port.right && box.top >= port.top && box.bottom <= port.bottom;
}
"""


def opened(open_cells: Any, nodes: int) -> Any:
    page = open_cells([cell.replace("NODES", str(nodes)) for cell in CELLS])
    expect(page.panel.locator(".abs-header")).to_contain_text("ready")
    return page


def test_a_step_among_fifty_nodes_changes_what_it_should_and_keeps_the_focus(open_cells: Any) -> None:
    page = opened(open_cells, 50)
    page.button("Step").click()
    expect(page.panel.locator(".abs-header")).to_contain_text("superstep 0")
    done = page.panel.locator(".ab_node[aria-label*='done']")
    queued = page.panel.locator(".ab_node[aria-label*='queued']")
    expect(done).to_have_count(1)
    expect(queued).to_have_count(12)
    assert page.page.evaluate(FOCUSED) == "Step"
    page.page.keyboard.press("s")
    expect(page.panel.locator(".abs-header")).to_contain_text("superstep 1")
    expect(done).to_have_count(12)
    assert page.page.evaluate(FOCUSED) == "Step"


def test_five_hundred_nodes_open_and_are_zoomed_walked_and_stepped(open_cells: Any) -> None:
    page = opened(open_cells, 500)
    expect(page.panel.locator(".ab_node")).to_have_count(499)
    whole = page.page.evaluate(SIZE)
    page.button("Fit the graph (0)").click()
    fitted = page.page.evaluate(SIZE)
    assert fitted[0] < whole[0]
    # The whole would be a sliver: all of its height fits.
    assert 200 < fitted[1] <= 320
    page.button("Zoom in (+)").click()
    assert page.page.evaluate(SIZE)[0] > fitted[0]

    page.panel.locator(".ab_node[aria-label='step 0']").focus()
    for _ in range(12):
        page.page.keyboard.press("ArrowRight")
    far = page.panel.locator(".ab_node[aria-label='step 120']")
    expect(far).to_be_focused()
    assert far.evaluate(IN_SIGHT)
    page.page.keyboard.press("Enter")
    expect(page.panel.get_by_role("tab", name="Node")).to_have_attribute("aria-selected", "true")
    expect(page.panel.locator(".abs-side")).to_contain_text("step 120")

    page.page.keyboard.press("s")
    expect(page.panel.locator(".ab_node[aria-label*='queued']")).to_have_count(11)  # two alike are one
    page.page.keyboard.press("r")
    expect(page.panel.locator(".abs-header")).to_contain_text("waiting for an answer")
    expect(page.panel.locator(".ab_node[aria-label='review, waiting']")).to_be_attached()
