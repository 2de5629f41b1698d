"""Pages come and go, are opened twice, are not trusted, are interrupted; a run and its answers stay."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser.page_parts import expect, header

SETUP = (
    "from agentbench.notebook import configure, make_graph_panel, stepper\nfrom tests.browser.review_flow import build"
)
SHOW = "panel = stepper(build(), 'cats', height=320)\npanel"
# A superstep that lasts until a button is pressed.
HELD = """
import ipywidgets
from tests.browser.review_flow import held
let_go = ipywidgets.Button(description='Let go')
let_go.on_click(lambda _: held.pop()())
panel = stepper(build(holds=True), 'cats', height=320)
display(panel, let_go)
"""
# Checkpoints that are still there without a kernel.
HELD_WITH_FILES = HELD.replace("'cats'", "'cats', storage=FileCheckpointStorage('kept')")
HELD_WITH_FILES = f"from agentbench import FileCheckpointStorage\n{HELD_WITH_FILES.lstrip()}"


def test_a_page_reloaded_in_the_middle_of_a_superstep_shows_it_again_and_no_answer_is_lost(
    lab: Any, open_notebook: Any
) -> None:
    lab.write("reload", [SETUP, HELD])
    page = open_notebook("reload", own=True)
    page.run_all()
    page.button("Run").click()
    expect(header(page)).to_contain_text("running: library")
    page.save()  # what is loaded again is what was saved
    page.page.reload()
    expect(header(page)).to_contain_text("running: library")
    page.button("Let go").click()
    expect(header(page)).to_contain_text("waiting for an answer")
    page.page.reload()
    page.button("Approve").click()
    expect(header(page)).to_contain_text("finished")
    expect(page.panel.locator(".abs-banner-text")).to_contain_text("published: 3 papers in library")


@pytest.mark.nightly
def test_a_notebook_open_in_two_tabs_shows_one_run_in_both(lab: Any, open_notebook: Any) -> None:
    lab.write("tabs", [SETUP, SHOW])
    first = open_notebook("tabs", own=True)
    first.run_all()
    expect(header(first)).to_contain_text("ready")
    first.save()
    second = open_notebook("tabs", own=True)
    expect(header(second)).to_contain_text("ready")
    first.button("Step").click()
    expect(header(second)).to_contain_text("superstep 0")
    second.button("Step").click()
    for page in (first, second):
        expect(header(page)).to_contain_text("superstep 1")
        expect(page.panel.locator(".ab_node[aria-label='library, done']")).to_be_visible()
    first.button("Run").click()
    second.button("Approve").click()
    expect(header(first)).to_contain_text("finished")
    expect(first.panel.locator(".abs-banner-text")).to_contain_text("published")


@pytest.mark.nightly
def test_a_notebook_that_is_not_trusted_shows_pictures_in_place_of_panels(lab: Any, open_notebook: Any) -> None:
    graph = "configure(deterministic=True)\nbuild()"
    lab.write(
        "mine", [SETUP, graph, SHOW, "panel.step(2)\nNone", "panel.snapshot()\nNone", "make_graph_panel(build())"]
    )
    page = open_notebook("mine", own=True)
    page.run_all()
    expect(header(page)).to_contain_text("superstep 1")
    page.save()
    # JupyterLab trusts a notebook whose very text it has signed. This one comes from somewhere else.
    others = json.loads(lab.file("mine").read_text())
    others["metadata"]["authors"] = [{"name": "somebody else"}]
    for cell in others["cells"]:
        cell["metadata"].pop("trusted", None)
    lab.file("others").write_text(json.dumps(others))
    page = open_notebook("others", own=True)
    shown = page.panel.locator(".jp-OutputArea-output")
    expect(shown.nth(0).locator("img[src^='data:image/png']")).to_be_visible()
    expect(page.panel.locator(".jp-OutputArea-output img[src^='data:image/png']")).to_have_count(4)
    assert page.panel.locator("script, .jp-OutputArea-output svg, .abs-frame").count() == 0


@pytest.mark.parametrize("where", ["at a question", "in a handler"])
@pytest.mark.nightly
def test_an_interrupted_cell_leaves_a_run_that_goes_on(lab: Any, open_notebook: Any, where: str) -> None:
    in_handler = where == "in a handler"
    lab.write("interrupt", [SETUP, HELD if in_handler else SHOW, "await panel.arun()"])
    page = open_notebook("interrupt")
    page.run_all(finished=False)
    expect(header(page)).to_contain_text("running: library" if in_handler else "waiting for an answer")
    page.interrupt()
    expect(page.panel.locator("[data-mime-type='application/vnd.jupyter.stderr']")).to_contain_text("CancelledError")
    page.wait_until_ready()
    if in_handler:
        page.button("Run").click()
        expect(header(page)).to_contain_text("running: library")
        page.button("Let go").click()  # of the search that was given up, and then of the one that was begun anew
        page.button("Let go").click()
        expect(header(page)).to_contain_text("waiting for an answer")
    page.button("Approve").click()
    if not in_handler:  # the cell that would have gone on is gone
        page.button("Run").click()
    expect(header(page)).to_contain_text("finished")


@pytest.mark.nightly
def test_after_a_restart_of_the_kernel_the_panel_says_so_and_is_a_picture(lab: Any, open_notebook: Any) -> None:
    lab.write("restart", [SETUP, HELD_WITH_FILES, "await panel.arun()"])
    page = open_notebook("restart", own=True)
    page.run_all(finished=False)
    expect(header(page)).to_contain_text("running: library")
    page.page.evaluate("() => jupyterapp.shell.currentWidget.sessionContext.session.kernel.restart()")
    expect(page.panel.locator(".abs-banner-text")).to_contain_text("The kernel of this panel has stopped. Run its cell")
    expect(page.panel.locator(".abs-banner-text")).to_contain_text("kept'), checkpoint=")
    expect(page.panel.locator(".abs-frame :is(.abs-tools, .abs-requests, .abs-status)").first).not_to_be_visible()
    expect(page.panel.locator(".ab_node[aria-label='plan, ran before']")).to_be_visible()
    expect(page.panel.locator(".ab_node[aria-label='library']")).to_be_visible()
    expect(page.panel.locator(".ab_s_running")).to_have_count(0)


def test_without_a_live_panel_a_cell_shows_the_picture_of_the_run(lab: Any, open_notebook: Any) -> None:
    show = "panel = stepper(build(), 'cats')\npanel.run()\npanel"
    lab.write("plain", [SETUP, "configure(live_graph=False)", show])
    page = open_notebook("plain")
    page.run_all()
    expect(page.panel.locator(".jp-OutputArea-output img[src^='data:image/svg']").first).to_be_visible()
    assert page.panel.locator(".abs-frame, [role=application]").count() == 0
