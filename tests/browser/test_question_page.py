"""A stepper at a question, on wide and narrow pages: who asks, what is asked and how to answer are in sight at once."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.page_parts import expect
from tests.parts.nightly import nightly

# The last steps of a large graph have no successors; in a kernel that is a warning on the screen.
pytestmark = pytest.mark.filterwarnings("ignore:Executor 'step .*:agentbench.exceptions.WorkflowWarning")

SETUP = """
import pandas as pd
from agentbench import Approval, Executor, WorkflowBuilder, WorkflowContext, executor, handler, response_handler
from agentbench.notebook import stepper
from tests.browser.review_flow import build

class Review(Executor):
    @handler
    async def review(self, topic: str, ctx: WorkflowContext[str, pd.DataFrame]) -> None:
        self.table = pd.DataFrame({"topic": [topic] * 40, "papers": range(40)})
        await ctx.request_info({"prompt": "Publish this table?", "table": self.table}, Approval)

    @response_handler
    async def answered(self, asked: dict, answer: Approval, ctx: WorkflowContext[str, pd.DataFrame]) -> None:
        await ctx.yield_output(self.table.head(3))

@executor
async def plan(topic: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message(topic)
"""
TABLE = """
review = Review(id="review")
panel = stepper(WorkflowBuilder(start_executor=plan, name="tables").add_edge(plan, review).build(), "cats")
panel
"""
# What of an element lies outside of the window or of the box in which it scrolls, in pixels.
OUTSIDE = """
(each) => {
  const inner = each.getBoundingClientRect();
  const around = [document.querySelector('.jp-WindowedPanel-outer'), each.closest('.ab_port')].filter(Boolean);
  return Math.round(Math.max(0, ...around.map((box) => box.getBoundingClientRect()).flatMap(
    (box) => [box.top - inner.top, inner.bottom - box.bottom, box.left - inner.left, inner.right - box.right])));
}
"""
COLOUR = "(frame) => getComputedStyle(frame.contentDocument.body).color"
UNSEEN = "(frame) => (frame?.contentDocument?.documentElement?.scrollHeight ?? NaN) - frame?.clientHeight"


@pytest.mark.parametrize("width", [600, nightly(1200)])
def test_who_asks_and_the_whole_form_are_in_sight(open_cells: Any, width: int) -> None:
    who_asks_and_the_whole_form_are_in_sight(open_cells([SETUP, TABLE], width=width, height=900))


def who_asks_and_the_whole_form_are_in_sight(page: Any) -> None:
    page.button("Run").click()
    expect(page.panel.locator(".abs-requests").get_by_role("button", name="Approve")).to_be_visible()
    asks = page.panel.locator(".ab_node[aria-label^='review, waiting']")
    expect(asks).to_be_visible()
    for selector in (".ab_node[aria-label^='review']", ".abs-requests .abf"):
        page.page.wait_for_function(f"selector => ({OUTSIDE})(document.querySelector(selector)) === 0", arg=selector)
    page.shot("question")


@pytest.mark.parametrize("width", [600, nightly(1200)])
def test_who_asks_is_in_sight_below_a_long_cell_too(lab: Any, open_notebook: Any, width: int) -> None:
    lab.write("below", [SETUP + "# more code\n" * 4, "panel = stepper(build(), 'cats')\npanel"])
    page = open_notebook("below", width=width, height=900)
    page.run_all()
    page.panel.locator(".jp-WindowedPanel-outer").evaluate("(each) => { each.scrollTop = 0; }")
    page.button("Run").click()
    expect(page.panel.locator(".abs-requests").get_by_role("button", name="Approve")).to_be_visible()
    for selector in (".ab_node[aria-label^='review, waiting']", ".abs-requests .abf"):
        page.page.wait_for_function(f"selector => ({OUTSIDE})(document.querySelector(selector)) === 0", arg=selector)


def test_a_table_is_as_high_as_it_is_and_has_the_colours_of_the_theme(open_cells: Any) -> None:
    page = open_cells([SETUP, TABLE, "panel.run()\npanel.respond(panel.pending[0], Approval(True))\npanel.run()"])
    page.button("See output").click()
    table = page.panel.locator(".abs-output iframe")
    expect(table).to_be_visible()
    page.page.wait_for_function(f"() => ({UNSEEN})(document.querySelector('.abs-output iframe')) <= 0")
    assert table.bounding_box()["height"] < 200
    light = table.evaluate(COLOUR)
    page.use_theme(dark=True)
    page.page.wait_for_function(f"(was) => ({COLOUR})(document.querySelector('.abs-output iframe')) !== was", arg=light)
    assert [int(part) > 128 for part in table.evaluate(COLOUR)[4:-1].split(",")[:3]] == [True] * 3


def test_a_large_graph_opens_where_things_happen(open_cells: Any) -> None:
    page = open_cells([SETUP, "panel = stepper(build(500), 'cats')\npanel.run()\npanel"], width=1200)
    asks = page.panel.locator(".ab_node[aria-label^='review, waiting']")
    expect(asks).to_be_visible()
    page.page.wait_for_function(f"() => ({OUTSIDE})(document.querySelector(\".ab_node[aria-label^='review']\")) === 0")
