"""What a page has room for: the graph at a question, links that need no pointer, and the run as a file."""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import pytest

from tests.browser.page_parts import expect
from tests.tools.refresh_notebooks import NOTEBOOKS, text_of

CHAIN = """
from agentbench import Approval, Executor, WorkflowBuilder, WorkflowContext, handler, response_handler
from agentbench.notebook import stepper

class Pass(Executor):
    @handler
    async def go(self, topic: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(topic)

class Ask(Executor):
    @handler
    async def go(self, topic: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("topic", topic)
        await ctx.request_info({"prompt": "Publish?", "text": topic}, Approval)

    @response_handler
    async def decide(self, asked: dict, answer: Approval, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message("published")

nodes = [Pass(id=name) for name in ("collect", "summarise", "translate", "proofread")]
nodes += [Ask(id="approval"), Pass(id="publish")]
builder = WorkflowBuilder(start_executor=nodes[0], name="newsletter")
for before, after in zip(nodes, nodes[1:]):
    builder = builder.add_edge(before, after)
"""
# Of the nodes of the picture, those that are not whole in its port; and whether the port scrolls.
OUTSIDE = """port => {
  const room = port.getBoundingClientRect();
  const boxes = [...port.querySelectorAll(".ab_node")].map(each => each.getBoundingClientRect());
  const cut = boxes.filter(box => box.left < room.left || box.right > room.right);
  return [cut.length, port.scrollWidth > port.clientWidth];
}"""


def test_at_a_question_the_graph_is_whole_where_it_can_be_and_scrolls_where_it_cannot(open_cells: Any) -> None:
    page = open_cells([CHAIN, "panel = stepper(builder.build(), 'cats')\npanel", "panel.run()"])
    expect(page.panel.locator(".abs-requests .abf")).to_be_visible()
    port = page.panel.locator(".ab_port")
    for width in (1200, 700, 1200):
        page.page.set_viewport_size({"width": width, "height": 1400})
        page.page.wait_for_function(f"port => !({OUTSIDE})(port)[0]", arg=port.element_handle())
    page.page.set_viewport_size({"width": 600, "height": 1400})
    page.page.wait_for_function(f"port => ({OUTSIDE})(port)[1]", arg=port.element_handle())
    page.page.get_by_role("button", name="Zoom in").click()
    chosen = port.locator("svg").get_attribute("width")
    page.page.set_viewport_size({"width": 1200, "height": 1400})
    page.settle()
    assert port.locator("svg").get_attribute("width") == chosen  # it is the person's now


def test_a_link_that_edits_needs_no_pointer_over_it(open_cells: Any) -> None:
    page = open_cells(
        [
            "from agentbench.notebook import stepper\nfrom tests.browser.review_flow import build\n"
            "panel = stepper(build(), 'cats')\npanel.step(2)\npanel"
        ]
    )
    link = page.panel.get_by_role("button", name="Edit topic")
    page.page.mouse.move(0, 0)
    expect(link).to_have_css("opacity", "1")


def test_the_menu_downloads_the_run_as_a_page(open_cells: Any, tmp_path: Path) -> None:
    page = open_cells(
        [
            "from agentbench.notebook import stepper\nfrom tests.browser.review_flow import build\n"
            "panel = stepper(build(), 'cats')\npanel.step(2)\npanel"
        ]
    )
    with page.page.expect_download() as download:
        page.press("More", "Save as a page …")
    download.value.save_as(tmp_path / download.value.suggested_filename)
    assert download.value.suggested_filename == "research-flow.html"
    assert "A saved run of research-flow" in (tmp_path / "research-flow.html").read_text(encoding="utf-8")


@pytest.mark.nightly
def test_a_shipped_notebook_that_was_only_opened_and_saved_is_not_changed(lab: Any, open_notebook: Any) -> None:
    name = "13_state_graph"
    notebook = json.loads((NOTEBOOKS / f"{name}.ipynb").read_text(encoding="utf-8"))
    notebook["metadata"]["language_info"]["version"] = platform.python_version()
    before = text_of(notebook)
    lab.file(name).write_text(before, encoding="utf-8")
    page = open_notebook(name)
    page.settle()
    assert not page.page.evaluate("() => jupyterapp.shell.currentWidget.context.model.dirty")
    page.page.evaluate("() => jupyterapp.shell.currentWidget.context.save()")
    assert lab.file(name).read_text(encoding="utf-8") == before
