"""What a person does with a run in a page: stop it here and there, change a value, go another way, compare."""

from __future__ import annotations

from typing import Any

import pytest

from tests.browser.page_parts import banner, expect, header, node

SHOW = """
from agentbench import InMemoryCheckpointStorage
from agentbench.notebook import *
from tests.browser.review_flow import build
storage = InMemoryCheckpointStorage()
panel = stepper(build(), 'cats', storage=storage, height=320)
panel
"""


@pytest.fixture
def page(open_cells: Any) -> Any:
    shown = open_cells([SHOW])
    expect(header(shown)).to_contain_text("ready")
    return shown


def test_a_run_stops_before_a_node_that_was_marked_by_a_key_or_in_its_tab(page: Any) -> None:
    node(page, "review").focus()
    page.page.keyboard.press("b")
    expect(node(page, "review")).to_have_attribute("aria-label", "review, breakpoint")
    expect(page.button("Breakpoints: 1")).to_be_visible()
    page.button("Run").click()
    expect(header(page)).to_contain_text("paused (breakpoint: review)")
    expect(banner(page)).to_contain_text("Breakpoint: review")
    expect(node(page, "review")).to_have_attribute("aria-label", "review, queued, breakpoint")
    node(page, "publish").click()
    page.panel.get_by_label("break before").check()
    expect(page.button("Breakpoints: 2")).to_be_visible()
    page.button("Run").click()  # on from the one that was reached: it does not stop there again
    page.button("Approve").click()
    expect(header(page)).to_contain_text("paused (breakpoint: publish)")
    page.press("More", "Remove all breakpoints")
    expect(page.panel.get_by_role("button", name="Breakpoints:")).to_be_hidden()
    page.button("Run").click()
    expect(header(page)).to_contain_text("finished")


def test_breakpoints_of_other_kinds_are_chosen_in_a_dialog_and_removed_there(page: Any) -> None:
    page.press("More", "Breakpoints …")
    dialog = page.panel.get_by_role("dialog", name="Breakpoints")
    expect(dialog.get_by_label("Pause")).to_be_focused()
    dialog.get_by_label("Pause").select_option("superstep")
    dialog.get_by_label("Superstep").fill("2")
    page.page.keyboard.press("Enter")
    expect(dialog.locator("li")).to_have_count(1)
    expect(dialog.locator("li")).to_contain_text("superstep 2")
    page.page.keyboard.press("Escape")
    page.button("Run").click()
    expect(header(page)).to_contain_text("superstep 1")
    expect(header(page)).to_contain_text("paused (breakpoint: superstep 2)")
    page.button("Breakpoints: 1").click()
    expect(dialog.get_by_text("reached")).to_be_visible()
    dialog.get_by_role("button", name="Remove the breakpoint").click()
    expect(dialog.get_by_text("No breakpoints.")).to_be_visible()


def test_the_run_menu_runs_for_a_number_of_supersteps_and_to_the_next_question(page: Any) -> None:
    page.press("Ways to run", "Run for n supersteps …")
    steps = page.panel.get_by_role("spinbutton", name="Supersteps")
    expect(steps).to_be_focused()
    steps.fill("2")
    page.page.keyboard.press("Enter")
    expect(header(page)).to_contain_text("superstep 1")
    expect(header(page)).to_contain_text("paused")
    page.button("Ways to run").focus()
    page.page.keyboard.press("ArrowDown")
    page.page.keyboard.press("ArrowDown")
    expect(page.panel.get_by_role("menuitem", name="Run to the next request")).to_be_focused()
    page.page.keyboard.press("Enter")
    expect(header(page)).to_contain_text("waiting for an answer")
    page.button("Approve").click()
    expect(header(page)).not_to_contain_text("waiting")
    expect(header(page)).to_contain_text("paused")  # to the request, and no further


def test_an_edited_value_goes_on_as_a_second_branch_and_the_first_one_stays(page: Any) -> None:
    for superstep in (0, 1):
        page.button("Step").click()
        expect(header(page)).to_contain_text(f"superstep {superstep}")
    first = page.panel.locator(".abs-run").text_content()
    page.button("Edit topic").click()
    field = page.panel.get_by_role("textbox", name="New value of topic")
    expect(field).to_be_focused()
    field.fill("dogs")
    field.press("Control+Enter")
    expect(banner(page)).to_contain_text("1 edit, not applied yet")
    page.panel.get_by_role("tab", name="Diff").click()
    expect(page.panel.locator(".abs-change").first).to_contain_text("cats")
    expect(page.panel.locator(".abs-change").first).to_contain_text("dogs")
    page.shot("light-edited", page.panel.locator(".abs-frame"))
    page.button("Fork").click()
    expect(page.panel.locator(".abs-run")).not_to_have_text(first)
    page.panel.get_by_role("tab", name="State").click()
    expect(page.panel.locator(".abs-title")).to_contain_text("Shared state")
    expect(page.panel.locator(".abs-side")).to_contain_text("dogs")
    page.button("Run").click()
    page.button("Approve").click()
    expect(header(page)).to_contain_text("finished")
    expect(page.run("sorted(lineage_frame(storage).is_fork), len(runs_frame(storage))")).to_contain_text("True], 2")


def test_what_is_typed_just_before_another_tab_opens_stays_with_its_value(page: Any) -> None:
    for superstep in (0, 1):
        page.button("Step").click()
        expect(header(page)).to_contain_text(f"superstep {superstep}")
    page.button("Edit topic").click()
    field = page.panel.get_by_role("textbox", name="New value of topic")
    expect(field).to_be_focused()
    # Typed and switched in one go: sooner than what is typed is told, and with the focus in the field.
    field.evaluate("""(area) => {
        area.value = "dogs and";
        area.dispatchEvent(new Event("input"));
        const tabs = [...area.closest(".abs-side").querySelectorAll("[role=tab]")];
        tabs.find((tab) => tab.textContent === "Messages").click();
    }""")
    expect(page.panel.locator(".abs-title")).to_contain_text("next superstep")
    again = page.run("panel")  # a page that knows only what was told
    expect(again.locator(".abs-title")).to_contain_text("next superstep")
    expect(again.get_by_role("textbox", name="New value of")).to_have_count(0)
    again.get_by_role("tab", name="State").click()
    expect(again.get_by_role("textbox", name="New value of topic")).to_have_value("dogs and")


def test_showing_again_plays_what_is_stored_and_executes_nothing(page: Any) -> None:
    page.button("Run").click()
    page.button("Approve").click()
    expect(header(page)).to_contain_text("finished")
    run = page.panel.locator(".abs-run").text_content()
    page.button("Back").click()
    page.button("Back").click()
    expect(banner(page)).to_contain_text("Viewing")
    page.press("More", "Replay from here")
    expect(banner(page)).to_contain_text("Finished. Output: published")
    expect(page.panel.locator(".abs-run")).to_have_text(run)
    expect(page.run("f'{len(runs_frame(storage))} run'")).to_contain_text("1 run")


def test_a_closed_panel_leaves_the_page_and_is_text_from_then_on(page: Any) -> None:
    page.button("Step").click()
    expect(header(page)).to_contain_text("superstep 0")
    expect(page.run("panel.close()\nrepr(panel)")).to_contain_text("Stepper(research-flow, superstep 0, closed)")
    expect(page.panel.locator(".abs-frame")).to_have_count(0)
