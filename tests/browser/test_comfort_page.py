"""For people who see little, who are bothered by motion, or whose page is small."""

from __future__ import annotations

from typing import Any

from tests.browser.page_parts import expect

SETUP = "from agentbench.notebook import form, stepper\nfrom tests.browser.review_flow import build"
# Everything in a panel that a person can use, and that does not lie within the page or cannot be scrolled to.
CUT_OFF = """
(frame) => [...frame.querySelectorAll('button, input, select, textarea, summary')].filter(each => {
  const box = each.getBoundingClientRect();
  if (!box.width || each.closest('.ab_port')) return false;
  return box.left < 0 || box.right > document.documentElement.clientWidth + 1;
}).map(each => each.outerHTML)
"""


def test_at_twice_the_size_nothing_is_lost(open_cells: Any) -> None:
    # A browser that zooms to 200 % has half the pixels to lay out a page of 1280 by 1000.
    page = open_cells([SETUP, "panel = stepper(build(), 'cats')\ndisplay(panel)\npanel.run()"], width=640, height=500)
    frame = page.panel.locator(".abs-frame")
    expect(page.panel.locator(".abs-header")).to_contain_text("waiting for an answer")
    expect(frame.get_by_text("Publish this draft?")).to_be_attached()
    assert frame.evaluate("frame => frame.scrollWidth <= frame.clientWidth + 1")
    assert frame.evaluate(CUT_OFF) == []
    page.button("More").click()
    menu = page.panel.get_by_role("menu", name="More")
    expect(menu).to_be_visible()
    box = menu.bounding_box()
    assert box["x"] >= 0
    assert box["x"] + box["width"] <= 640
    page.page.keyboard.press("Escape")
    page.button("Approve").click()
    expect(page.panel.locator(".abs-header")).to_contain_text("paused")
    page.shot("zoom-200", frame)


def test_what_moves_rests_where_a_person_prefers_that(open_cells: Any) -> None:
    run = """
import asyncio
from tests.browser.review_flow import held
panel = stepper(build(holds=True), 'cats')
display(panel)
at_work = asyncio.ensure_future(panel.arun())
while not held:
    await asyncio.sleep(0.01)
"""
    page = open_cells([SETUP, run])
    running = page.panel.locator(".ab_node[aria-label='library, running'] > .ab_shape")
    expect(running).to_have_css("animation-name", "ab_pulse")
    expect(running).to_have_css("transition-duration", "0.12s")
    page.page.emulate_media(reduced_motion="reduce")
    expect(running).to_have_css("animation-name", "none")
    expect(running).to_have_css("transition-duration", "0s")
