"""PDFs of graphs, by a program that writes what Graphviz would get."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

CODE = """
from agentbench import WorkflowBuilder, WorkflowContext, executor
from agentbench.notebook import draw

@executor(id="one")
async def one(text: str, ctx: WorkflowContext) -> None: ...

draw(WorkflowBuilder(start_executor=one).build(), run={"one": "failed"}).save("graph.pdf")
"""


@pytest.mark.skipif(sys.platform == "win32", reason="the program is a script of POSIX")
def test_the_nodes_of_a_pdf_have_the_colours_and_signs_of_their_states(tmp_path: Path):
    program = tmp_path / "dot"
    program.write_text('#!/bin/sh\n[ "$1" = -V ] && echo "dot - graphviz version 9.0.0" || cat\n')
    program.chmod(0o755)
    environment = {**os.environ, "PATH": f"{tmp_path}{os.pathsep}{os.environ['PATH']}"}
    subprocess.run([sys.executable, "-c", CODE], cwd=tmp_path, env=environment, check=True)
    text = (tmp_path / "graph.pdf").read_text()
    assert "one ✗" in text
    assert "#D55E00" in text
