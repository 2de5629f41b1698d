"""What a notebook keeps of its panels when it is run and saved with the state of all widgets."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import nbformat
import pytest

from tests.parts.nightly import nightly

pytest.importorskip("nbconvert")

ROOT = Path(__file__).parents[2]
WIDGET = "application/vnd.jupyter.widget-view+json"

STEPPERS = [
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

FORMS = [
    """
from pydantic import SecretStr
from agentbench import Approval, WorkflowEvent
from agentbench.notebook import form, inbox, request_form
""",
    """
key = form(SecretStr, title="Key")
key.set_raw("value", "S3CRET-submitted")
key
""",
    "key.submit()",
    """
data = {"prompt": "Q-asked", "text": "C-context", "password": "S3CRET-data"}
request = WorkflowEvent.request_info("r", "review", data, Approval)
ask = request_form(request, respond=lambda request_id, answer: None)
ask.set_raw("reason", "S3CRET-draft")
ask
""",
    """
count = form(str, value="S3CRET-preset")
count
""",
    """
rows = form(dict[str, int | list[str]], value={"S3CRET-key": ["S3CRET-row"]})
rows.edit_json()
rows
""",
    """
class Run:
    run_id = "1"
    pending_requests = [WorkflowEvent.request_info("r2", "review", {"prompt": "Q-inbox"}, str)]
    def send_response(self, request_id, value): pass

box = inbox(Run())
box.form("r2").set_raw("value", "S3CRET-inbox")
box
""",
]

PLAIN = [
    """
from dataclasses import dataclass
from pydantic import SecretStr
from agentbench import Executor, WorkflowBuilder, WorkflowContext, handler, response_handler
from agentbench.notebook import configure, form, inbox, make_graph_panel, progress
from tests.parts.nightly import nightly

configure(deterministic=True, live_graph=False)

@dataclass
class Ask:
    prompt: str
    password: str

class Review(Executor):
    @handler
    async def review(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("draft", "S3CRET-state")
        await ctx.request_info(Ask("S3CRET-question", "S3CRET-password"), str)

    @response_handler
    async def answered(self, asked: Ask, answer: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output("S3CRET-output " + answer)

def flow():
    return WorkflowBuilder(start_executor=Review(id="review"), name="flow").build()
""",
    "run = flow().start('S3CRET-input')\nawait run.result()\nbox = inbox(run)\nbox",
    "box.requests[0]\nbox.answer(box.requests[0].request_id, 'S3CRET-answer')\nNone",
    "graph = make_graph_panel(flow())\ngraph",
    "graph.update({'review': 'waiting'}, {'review': 'S3CRET-badge'})\ngraph.close()",
    "await progress(flow().start('S3CRET-input'))\nNone",
]


class Saved:
    """A notebook that was run and saved."""

    def __init__(self, folder: Path, cells: list[str]) -> None:
        made = [nbformat.v4.new_code_cell(source) for source in cells]
        kernel = {"kernelspec": {"name": "python3", "display_name": "Python 3"}}
        nbformat.write(nbformat.v4.new_notebook(cells=made, metadata=kernel), folder / "flow.ipynb")
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / ".ipython")}
        command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output=saved", "flow.ipynb"]
        done = subprocess.run(command, cwd=folder, env=environment, check=False, capture_output=True, timeout=120)
        assert done.returncode == 0, done.stderr.decode()
        self.notebook: Any = nbformat.read(folder / "saved.ipynb", as_version=4)
        state = self.notebook.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
        self.state = json.dumps(
            [{k: v for k, v in each["state"].items() if k not in ("_esm", "_css")} for each in state.values()]
        )
        self.outputs: list[Any] = [output for cell in self.notebook.cells for output in cell.outputs]
        self.shown: list[Any] = [output["data"] for output in self.outputs if "data" in output]

    def before_panels(self) -> list[str]:
        """The texts before each panel, which itself has none."""
        panels = [at for at, data in enumerate(self.shown) if WIDGET in data]
        assert all(self.shown[at]["text/plain"] == "" for at in panels)
        return [self.shown[at - 1]["text/plain"] for at in panels]


@pytest.fixture(scope="module")
def steppers(tmp_path_factory: pytest.TempPathFactory) -> Saved:
    return Saved(tmp_path_factory.mktemp("steppers"), STEPPERS)


@pytest.mark.parametrize("cells", [pytest.param(FORMS, id="forms"), nightly(PLAIN, id="plain widgets")])
def test_what_is_kept_of_forms_inboxes_and_bars_holds_nothing_of_questions_and_answers(
    cells: list[str], tmp_path: Path
) -> None:
    saved = Saved(tmp_path, cells)
    for kept in ("S3CRET", "Q-asked", "C-context", "Q-inbox"):
        assert kept not in saved.state
    assert "S3CRET" not in json.dumps(saved.outputs)
    if cells is FORMS:
        assert "Form approval from review" in saved.state
        assert saved.before_panels() == [
            "Form(for SecretStr, editing)",
            "Form(approval from review, editing)",
            "Form(for str, editing)",
            "Form(for dict[str, int | list[str]], editing)",
            "Inbox(1 run, 1 open)",
        ]


def test_a_stepper_leaves_pictures_and_nothing_of_the_run(steppers: Saved) -> None:
    assert "IPY_MODEL" in steppers.state
    assert "S3CRET" not in steppers.state
    texts = [text.splitlines() for text in steppers.before_panels()]
    assert [lines[0] for lines in texts] == [
        "Stepper(flow, no superstep yet, ready)",
        "Stepper(flow, superstep 2, failed)",
        "Stepper(flow, superstep 1, waiting)",
        "Stepper(flow, superstep 1, waiting)",
    ]
    assert "review (start, output, asks a person) [failed]" in texts[1][2]
    pictures = [data for data in steppers.shown if "image/svg+xml" in data]
    assert len(pictures) == 5
    assert "S3CRET" not in json.dumps(pictures)
    [data] = [data for cell in steppers.notebook.cells if "snapshot" in cell.source for data in cell.outputs]
    assert "review (start, output, asks a person) [failed]" in data["data"]["text/plain"]


def test_a_cell_whose_run_asks_shows_the_panel_once(steppers: Saved) -> None:
    for source in ("again.run()", "last.run()"):
        [cell] = [cell for cell in steppers.notebook.cells if source in cell.source]
        assert [WIDGET in output.data for output in cell.outputs if "data" in output] == [False, False, True]


def test_only_what_the_workflow_itself_prints_is_printed(steppers: Saved) -> None:
    printed = "".join(output.get("text", "") for output in steppers.outputs if output.output_type == "stream")
    mine = "S3CRET-printed"
    assert printed.splitlines() == [mine, "failed Stepper(flow, superstep 2, failed)", mine, mine]


def test_a_page_made_of_the_notebook_shows_one_picture_for_a_panel(steppers: Saved) -> None:
    from nbconvert import HTMLExporter

    notebook = nbformat.from_dict(steppers.notebook)
    del notebook.metadata["widgets"]  # as JupyterLab saves it
    notebook.cells = notebook.cells[1:2]
    page, _ = HTMLExporter(template_name="lab").from_notebook_node(notebook)
    assert page.count("<img") == 1
    assert "Stepper(flow" not in page
