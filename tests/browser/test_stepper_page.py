"""The stepper as a person meets it: a page, a mouse, a keyboard; what its keys do in JupyterLab."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.page_parts import expect, header, node
from tests.notebook.attacks import ATTACKS

SETUP = "from agentbench.notebook import stepper\nfrom tests.browser.review_flow import build"
SHOW = "panel = stepper(build(), 'cats', height=320)\npanel"
# A superstep that lasts until a button is pressed.
HELD = """
import ipywidgets
from tests.browser.review_flow import held
let_go = ipywidgets.Button(description='Let go')
let_go.on_click(lambda _: held.pop()())
display(stepper(build(holds=True), 'cats', height=320), let_go)
"""

STATUS = "[role=status].abs-quiet"

ACTIVE = "() => document.activeElement?.textContent ?? ''"


def in_lab(lab: Any, open_notebook: Any, name: str, *cells: str) -> Any:
    """A page of JupyterLab on which the cells were run."""
    lab.write(name, [SETUP, *cells])
    opened = open_notebook(name)
    opened.run_all()
    return opened


def test_a_step_changes_graph_and_log_and_keeps_the_focus(open_cells: Any) -> None:
    page = open_cells([SETUP, SHOW])
    expect(header(page)).to_contain_text("ready")
    page.shot("light-ready")
    page.button("Step").click()
    expect(header(page)).to_contain_text("superstep 0")
    expect(header(page)).to_contain_text("paused")
    expect(page.panel.locator(".abs-last")).to_have_text("superstep 0: plan got 1 message")
    expect(node(page, "plan")).to_have_attribute("aria-label", "plan, done")
    expect(node(page, "library")).to_have_attribute("aria-label", "library, queued")
    assert page.page.evaluate(ACTIVE) == "Step"
    page.shot("light-paused")


def test_a_slow_superstep_shows_who_is_at_work_and_keeps_the_keys_off_the_notebook(
    lab: Any, open_notebook: Any
) -> None:
    page = in_lab(lab, open_notebook, "slow", HELD)
    page.button("Step").click()
    expect(header(page)).to_contain_text("paused")
    page.page.keyboard.press("s")
    expect(header(page)).to_contain_text("stepping: library")
    expect(page.button("Step")).to_be_disabled()
    expect(page.button("Pause")).to_be_enabled()
    expect(node(page, "library")).to_have_attribute("aria-label", "library, running")
    page.shot("light-stepping")
    cells = page.panel.locator(".jp-Cell").count()
    for key in ("x", "b", "y", "d", "d"):  # in command mode these cut, insert, retype and delete cells
        page.page.keyboard.press(key)
    expect(header(page)).to_contain_text("stepping: library")
    page.button("Let go").evaluate("button => button.click()")  # the focus stays where it is
    expect(header(page)).to_contain_text("superstep 1")
    assert page.panel.locator(".jp-Cell").count() == cells
    assert page.page.evaluate(ACTIVE) == "Step"


@pytest.mark.parametrize("width", [600, 1200])
def test_a_question_is_whole_and_its_node_in_sight(open_cells: Any, width: int) -> None:
    page = open_cells([SETUP, SHOW])
    page.page.set_viewport_size({"width": width, "height": 1400})
    page.button("Run").click()
    expect(header(page)).to_contain_text("waiting for an answer")
    # What lies at the middle of each is it itself: nothing clips or covers it.
    for part in (page.button("Approve"), page.button("Reject"), node(page, "review")):
        part.scroll_into_view_if_needed()
        assert part.evaluate(
            "el => { const at = el.getBoundingClientRect();"
            " return el.contains(document.elementFromPoint(at.x + at.width / 2, at.y + at.height / 2)); }"
        )
    inner, outer = page.page.locator(".abs-requests .abf").bounding_box(), page.page.locator(".abs-body").bounding_box()
    assert inner["y"] + inner["height"] <= outer["y"] + outer["height"]


def test_a_question_is_answered_beside_its_graph(open_cells: Any) -> None:
    page = open_cells([SETUP, SHOW])
    page.button("Run").click()
    expect(header(page)).to_contain_text("waiting for an answer")
    expect(page.panel.locator(STATUS)).to_have_text("superstep 2, waiting for an answer, 1 request")
    expect(page.panel.get_by_text("Publish this draft?")).to_be_visible()
    # The form has the focus, no button of it.
    page.page.wait_for_function(f"() => ({ACTIVE})().includes('Publish this draft?')")
    page.shot("light-waiting")
    page.button("Approve").click()
    expect(header(page)).to_contain_text("finished")  # Run goes through: it went on by itself
    expect(page.panel.locator(".abs-banner-text")).to_have_text(
        "Finished. Output: published: 3 papers in library, 3 papers in archive"
    )
    page.shot("light-done")


def test_looking_back_and_going_on_from_there(open_cells: Any) -> None:
    page = open_cells([SETUP, SHOW])
    page.button("Run").click()
    page.button("Approve").click()
    expect(header(page)).to_contain_text("finished")
    run = page.panel.locator(".abs-run").text_content()
    slider = page.panel.get_by_role("slider", name="Checkpoint")
    slider.focus()
    for _ in range(5):
        slider.press("ArrowLeft")
    expect(page.panel.locator(".abs-banner-text")).to_contain_text("Viewing checkpoint 1 of 6 (superstep 0).")
    expect(page.panel.locator(".abs-title")).to_have_text("Shared state after superstep 0")
    expect(node(page, "plan")).to_have_attribute("aria-label", "plan, done")
    page.button("Step from here").click()
    expect(page.panel.locator(".abs-banner-text")).to_contain_text("starts a new run")
    page.shot("light-ask")
    page.button("Keep viewing").click()
    expect(page.panel.locator(".abs-banner-text")).to_contain_text("Viewing checkpoint 1 of 6")
    page.button("Step from here").click()
    page.button("Start a new run here").click()
    expect(header(page)).to_contain_text("superstep 1")
    assert page.panel.locator(".abs-run").text_content() != run


def test_the_input_is_edited_and_run_again(open_cells: Any) -> None:
    page = open_cells([SETUP, SHOW])
    page.button("Step").click()
    expect(header(page)).to_contain_text("superstep 0")
    slider = page.panel.get_by_role("slider", name="Checkpoint")
    slider.focus()
    slider.press("ArrowLeft")
    expect(page.panel.locator(".abs-banner-text")).to_contain_text("Viewing the input.")
    expect(page.panel.locator(".abs-place")).to_have_text("input")
    assert slider.get_attribute("aria-valuetext") == "input"
    page.button("Edit input").click()
    page.panel.locator(".abs-field textarea").fill("dogs")
    page.page.keyboard.press("Control+Enter")
    expect(page.panel.locator(".abs-banner-text")).to_contain_text("1 edit, not applied yet")
    page.button("Step from here").click()
    page.button("Start a new run here").click()
    expect(header(page)).to_contain_text("superstep 0")
    expect(page.panel.locator(".abs-side")).to_contain_text("dogs")


def test_a_failure_is_reported_and_its_superstep_taken_again(open_cells: Any) -> None:
    page = open_cells([SETUP, "panel = stepper(build(fails=True), 'cats', height=320)\npanel"])
    page.button("Run").click()
    expect(header(page)).to_contain_text("failed")
    expect(page.panel.locator(".abs-banner-text")).to_contain_text("library failed: ConnectionError: the index")
    expect(node(page, "library")).to_have_attribute("aria-label", "library, failed")
    page.panel.get_by_text("details").click()
    expect(page.panel.locator(".abs-banner pre")).to_contain_text("Traceback")
    page.shot("light-failed")
    page.button("Retry step").click()
    expect(header(page)).to_contain_text("superstep 1")


def test_everything_can_be_done_without_a_mouse(lab: Any, open_notebook: Any) -> None:
    page = in_lab(lab, open_notebook, "keys", SHOW)
    keyboard = page.page.keyboard
    page.button("Step").focus()
    keyboard.press("s")
    expect(header(page)).to_contain_text("superstep 0")
    keyboard.press("?")
    expect(page.panel.get_by_text("Keys, while the focus is in this panel")).to_be_visible()
    keyboard.press("?")
    keyboard.press("r")
    expect(header(page)).to_contain_text("waiting for an answer")
    page.page.wait_for_function(f"() => ({ACTIVE})().includes('Publish this draft?')")  # the form has the focus
    for _ in range(3):  # its text, which scrolls; Reject; Approve
        keyboard.press("Tab")
    assert page.page.evaluate(ACTIVE) == "Approve"
    keyboard.press("Enter")
    expect(header(page)).to_contain_text("finished")
    page.panel.get_by_role("tab", name="State").focus()
    keyboard.press("ArrowRight")
    expect(page.panel.get_by_role("tab", name="Messages")).to_have_attribute("aria-selected", "true")
    keyboard.press("Escape")
    assert page.page.evaluate(ACTIVE) == "Step"


def test_nodes_and_values_open_in_the_details_and_everything_is_large_enough_to_hit(open_cells: Any) -> None:
    page = open_cells([SETUP, SHOW])
    page.button("Step").click()
    expect(header(page)).to_contain_text("superstep 0")
    node(page, "plan").click()
    expect(page.panel.get_by_role("tab", name="Node")).to_have_attribute("aria-selected", "true")
    expect(page.panel.locator(".abs-title")).to_have_text("plan")
    expect(page.panel.locator(".abs-facts")).to_contain_text("done")
    page.panel.get_by_role("tab", name="Events").click()
    expect(page.panel.locator(".abs-fold").first).to_be_visible()
    for box in page.panel.locator(".abs-frame :is(button, [role=slider], input)").all():
        if box.is_visible():
            size = box.bounding_box()
            assert min(size["width"], size["height"]) >= 24, box.evaluate("el => el.outerHTML")
    page.button("Run").click()
    expect(header(page)).to_contain_text("waiting for an answer")
    page.panel.get_by_role("tab", name="State").click()
    expect(page.panel.locator(".abs-title")).to_have_text("Shared state after superstep 2")
    page.panel.get_by_role("button", name="Open found").click()
    expect(page.panel.locator(".abs-rows .abs-rows > li").last).to_contain_text("3 papers in archive")


def test_on_a_narrow_page_everything_stacks_and_nothing_is_cut_off(open_cells: Any) -> None:
    page = open_cells([SETUP, SHOW], width=700)
    page.button("Run").click()
    expect(header(page)).to_contain_text("waiting")
    frame = page.panel.locator(".abs-frame")
    # Both at one moment: the page may be scrolling to the form.
    below = "el => ['.abs-side', '.abs-graph'].map(part => el.querySelector(part).getBoundingClientRect())"
    for dark in (False, True):
        page.use_theme(dark=dark)
        page.settle()
        side, graph = frame.evaluate(f"el => ({below})(el).map(box => [box.top, box.bottom])")
        assert side[0] >= graph[1]
        assert frame.evaluate("el => el.scrollWidth <= el.clientWidth + 1")
        page.shot(f"{'dark' if dark else 'light'}-narrow", frame)


def test_what_models_and_people_write_is_shown_and_never_run(open_cells: Any) -> None:
    attack_cells = [
        f"attacks = {ATTACKS!r}",
        """
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler, response_handler

class Evil(Executor):
    @handler
    async def go(self, texts: list[str], ctx: WorkflowContext[list[str], str]) -> None:
        if not self.id.startswith('0 '):
            raise ValueError(' '.join(texts))
        for number, text in enumerate(texts):
            # A lone surrogate cannot be sent, and then a kernel waits 10 s for its own output.
            print(text.encode('utf-8', 'backslashreplace').decode())
            ctx.set_state(text or str(number), {text: text})
        await ctx.request_info({'question': texts[0], 'details': texts}, str)
        await ctx.send_message(texts)

    @response_handler
    async def on_answer(self, asked: dict, answer: str, ctx: WorkflowContext) -> None: ...

evil = [Evil(id=f'{number} {text}') for number, text in enumerate(attacks)]
workflow = WorkflowBuilder(start_executor=evil[0], name=attacks[0]).add_fan_out_edges(evil[0], evil[1:]).build()
panel = stepper(workflow, attacks, height=320)
panel
""",
    ]
    page = open_cells([SETUP, *attack_cells])
    page.button("Step").click()
    expect(page.panel.locator(".abs-requests .abf")).to_be_visible()
    for tab in ("Messages", "Events", "State"):
        page.panel.get_by_role("tab", name=tab).click()
        expect(page.panel.get_by_role("tab", name=tab)).to_have_attribute("aria-selected", "true")
        page.panel.locator(".abs-fold").first.click()
        expect(page.panel.locator(".abs-rows .abs-rows > li").first).to_be_visible()
    page.button("Expand").click()
    expect(page.panel.locator(".abs-lines > li").first).to_be_visible()
    page.button("Step").click()
    expect(header(page)).to_contain_text("failed")
    page.panel.locator(".abs-banner summary").click()
    expect(page.panel.locator(".abs-banner pre")).to_be_visible()
    page.shot("light-attacks")
    assert page.page.evaluate("() => window.pwned") is None
    assert page.panel.locator(".abs-frame :is(script, iframe, object, img, a[href])").count() == 0
