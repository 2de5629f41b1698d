"""A saved notebook that is opened again without its kernel: pictures stand where the panels were."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.browser.page_parts import expect

CELLS = [
    "from agentbench.notebook import inbox, make_graph_panel, stepper, timeline",
    "from tests.browser.review_flow import build",
    "panel = stepper(build(), 'cats', height=320)\npanel",
    "graph = make_graph_panel(build())\ngraph",
    "inbox(panel)",
    "run = build().start('cats')\nawait run.result()\ntimeline(run).panel()",
]
# What JupyterLab says of a widget without a kernel, on the console too.
NO_KERNEL = "widget model not found"


@pytest.mark.nightly
def test_a_notebook_opened_without_its_kernel_shows_pictures_where_the_panels_were(
    lab: Any, open_notebook: Any
) -> None:
    lab.write("mine", CELLS)
    page = open_notebook("mine")
    page.run_all()
    pictures = page.panel.locator(".jp-OutputArea-output > img")
    expect(page.panel.locator(".abs-header")).to_contain_text("ready")
    expect(page.panel.locator(".ab_panel")).to_have_count(2)
    page.button("Run").click()
    page.button("Approve").first.click()
    expect(page.panel.locator(".abs-header")).to_contain_text("finished")
    expect(pictures).to_have_count(3)
    for picture in pictures.all():  # each panel is alive
        expect(picture).not_to_be_visible()
    told = "() => [...jupyterapp.shell.currentWidget.content.widgets].flatMap(c => c.model.toJSON().outputs ?? [])"
    page.page.wait_for_function(f"() => JSON.stringify(({told})()).includes('superstep 4, done')")
    page.save()
    notebook = json.loads(lab.file("mine").read_text())
    # JupyterLab trusts a notebook whose very text it has signed.
    notebook["metadata"]["authors"] = [{"name": "somebody else"}]
    for cell in notebook["cells"]:
        cell["metadata"].pop("trusted", None)
    lab.file("others").write_text(json.dumps(notebook))
    page.page.close()
    lab.end_kernels()

    for name, kind in (("mine", "svg+xml"), ("others", "png")):
        page = open_notebook(name, own=True)
        pictures = page.panel.locator(f".jp-OutputArea-output > img[src^='data:image/{kind}']")
        expect(pictures).to_have_count(3)
        for picture in pictures.all():
            expect(picture).to_be_visible()
        expect(page.panel.get_by_text("Inbox(1 run, 0 open)")).to_be_visible()
        if name == "mine":
            expect(page.panel.get_by_text("Error displaying widget: model not found")).to_have_count(4)
        for words in page.panel.get_by_text("widget").all():
            expect(words).not_to_be_visible()
        page.shot(f"reopened-{kind}")
        page.problems[:] = [each for each in page.problems if NO_KERNEL not in each]
