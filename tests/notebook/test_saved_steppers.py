"""What a notebook keeps of its steppers when it is run and saved with the state of all widgets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

pytest.importorskip("nbconvert")

ROOT = Path(__file__).parents[2]
WIDGET = "application/vnd.jupyter.widget-view+json"

CELLS = [
    """
from dataclasses import dataclass
from agentbench import Executor, WorkflowBuilder, WorkflowContext, handler, response_handler
from agentbench.notebook import configure, stepper

configure(deterministic=True)

@dataclass
class Ask:
    prompt: str

class Review(Executor):
    @handler
    async def review(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        print("S3CRET-printed")
        ctx.set_state("draft", "S3CRET-state")
        await ctx.request_info(Ask("S3CRET-question"), str)

    @response_handler
    async def answered(self, asked: Ask, answer: str, ctx: WorkflowContext[str, str]) -> None:
        raise ValueError("S3CRET-error " + answer)

workflow = WorkflowBuilder(start_executor=Review(id="review"), name="flow").build()
""",
    "panel = stepper(workflow, 'S3CRET-input')\npanel",
    "panel.step()\nNone",
    "panel.respond(panel.pending[0].request_id, 'S3CRET-answer')",
    "print(panel.run(), panel)",
    "panel",
    "panel.snapshot()",
    "panel.snapshot()\nNone",
    "again = stepper(workflow.clone(copy_executors=True), 'S3CRET-input')",
    "again.run()\nagain",
    "last = stepper(workflow.clone(copy_executors=True), 'S3CRET-input')\nlast.run()\nNone",
    "panel.close()\npanel",
]


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("saved")
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in CELLS],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, folder / "flow.ipynb")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / ".ipython")}
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output", "saved", "flow.ipynb"]
    done = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, timeout=120)
    assert done.returncode == 0, done.stderr.decode()
    return (folder / "saved.ipynb").read_text(encoding="utf-8")


def outputs_of(saved: str) -> list[Any]:
    return [output for cell in nbformat.reads(saved, as_version=4).cells for output in cell.outputs]


def test_the_state_of_the_widgets_holds_nothing_of_the_run(saved: str) -> None:
    state = json.loads(saved)["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    assert state
    assert "S3CRET" not in json.dumps(state)


def test_before_each_panel_stands_its_picture_which_does_not_change_where_outputs_are_compared(saved: str) -> None:
    shown = [output.data for output in outputs_of(saved) if "data" in output]
    panels = [at for at, data in enumerate(shown) if WIDGET in data]
    texts = [shown[at - 1]["text/plain"].splitlines() for at in panels]
    assert [lines[0] for lines in texts] == [
        "Stepper(flow, no superstep yet, ready)",
        "Stepper(flow, superstep 2, failed)",
        "Stepper(flow, superstep 1, waiting)",
        "Stepper(flow, superstep 1, waiting)",
    ]
    assert "review (start, output, asks a person) [failed]" in texts[1][2]
    assert all(shown[at]["text/plain"] == "" for at in panels)


def test_a_cell_whose_run_asks_shows_the_panel_once(saved: str) -> None:
    cells = nbformat.reads(saved, as_version=4).cells
    for source in ("again.run()", "last.run()"):
        [cell] = [cell for cell in cells if source in cell.source]
        assert [WIDGET in output.data for output in cell.outputs if "data" in output] == [False, False, True]


def test_a_snapshot_leaves_a_picture_where_the_widget_was(saved: str) -> None:
    cells = nbformat.reads(saved, as_version=4).cells
    [data] = [output.data for cell in cells if "snapshot" in cell.source for output in cell.outputs]
    assert "review (start, output, asks a person) [failed]" in data["text/plain"]


def test_the_pictures_hold_nothing_of_the_run(saved: str) -> None:
    pictures = [output.data for output in outputs_of(saved) if "image/svg+xml" in output.get("data", {})]
    assert len(pictures) == 5
    assert "S3CRET" not in json.dumps(pictures)


def test_a_page_made_of_the_notebook_shows_one_picture_for_a_panel(saved: str) -> None:
    from nbconvert import HTMLExporter

    notebook = nbformat.reads(saved, as_version=4)
    del notebook.metadata["widgets"]  # as JupyterLab saves it
    notebook.cells = notebook.cells[1:2]
    page, _ = HTMLExporter(template_name="lab").from_notebook_node(notebook)
    assert page.count("<img") == 1
    assert "Stepper(flow" not in page


def test_only_what_the_workflow_itself_prints_is_printed(saved: str) -> None:
    printed = "".join(output.get("text", "") for output in outputs_of(saved) if output.output_type == "stream")
    mine = "S3CRET-printed"
    assert printed.splitlines() == [mine, "failed Stepper(flow, superstep 2, failed)", mine, mine]
