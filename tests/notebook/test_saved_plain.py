"""What a notebook keeps of panels made of plain widgets, which hold what they show while they are open."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import nbformat
import pytest

pytest.importorskip("nbconvert")

ROOT = Path(__file__).parents[2]

CELLS = [
    """
from dataclasses import dataclass
from pydantic import SecretStr
from agentbench import Executor, WorkflowBuilder, WorkflowContext, handler, response_handler
from agentbench.notebook import configure, form, inbox, make_graph_panel, progress

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


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> nbformat.NotebookNode:
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
    read: nbformat.NotebookNode = nbformat.read(folder / "saved.ipynb", as_version=4)
    return read


def test_after_close_the_state_of_the_widgets_holds_nothing_of_the_run(saved: nbformat.NotebookNode) -> None:
    states = saved.metadata["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    holding = {key: state for key, state in states.items() if "S3CRET" in json.dumps(state)}
    assert states
    assert holding == {}


def test_outputs_are_fixed_lines_without_anything_of_the_run(saved: nbformat.NotebookNode) -> None:
    outputs = [output for cell in saved.cells for output in cell.outputs]
    assert "S3CRET" not in json.dumps(outputs)
