"""What a notebook keeps of its forms when it is run and saved with the state of all widgets."""

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

CELLS = [
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


@pytest.fixture(scope="module")
def saved(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("saved")
    notebook = nbformat.v4.new_notebook(
        cells=[nbformat.v4.new_code_cell(source) for source in CELLS],
        metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
    )
    nbformat.write(notebook, folder / "forms.ipynb")
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "IPYTHONDIR": str(folder / ".ipython")}
    command = [sys.executable, "-m", "nbconvert", "--to", "notebook", "--execute", "--output", "saved", "forms.ipynb"]
    subprocess.run(command, cwd=folder, env=environment, check=True, capture_output=True, timeout=120)
    return (folder / "saved.ipynb").read_text(encoding="utf-8")


def outputs_of(saved: str) -> list[Any]:
    notebook = nbformat.reads(saved, as_version=4)  # texts that a file keeps in lines come whole
    return [output for cell in notebook.cells for output in cell.outputs]


def state_of(saved: str) -> str:
    state = json.loads(saved)["metadata"]["widgets"]["application/vnd.jupyter.widget-state+json"]["state"]
    return json.dumps([{k: v for k, v in w["state"].items() if k not in ("_esm", "_css")} for w in state.values()])


def test_widgets_are_saved_and_hold_nothing_of_questions_and_answers(saved: str):
    state = state_of(saved)
    assert "Form approval from review" in state
    for kept in ("S3CRET", "Q-asked", "C-context", "Q-inbox"):
        assert kept not in state


def test_outputs_name_the_forms_and_nothing_else(saved: str):
    outputs = outputs_of(saved)
    assert "S3CRET" not in json.dumps(outputs)
    shown = [output["data"] for output in outputs if "data" in output]
    panels = [at for at, data in enumerate(shown) if "application/vnd.jupyter.widget-view+json" in data]
    assert all(shown[at]["text/plain"] == "" for at in panels)
    assert [shown[at - 1]["text/plain"] for at in panels] == [
        "Form(for SecretStr, editing)",
        "Form(approval from review, editing)",
        "Form(for str, editing)",
        "Form(for dict[str, int | list[str]], editing)",
        "Inbox(1 run, 1 open)",
    ]
