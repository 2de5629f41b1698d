"""Programs written for LangGraph print the same with this library once their import lines are changed."""

import re
import runpy
from pathlib import Path

import pytest

from tests.tools.record_langgraph import PROGRAMS

_IMPORT = re.compile(r"^(\s*)from (?:langgraph|langchain_core)[\w.]* import", re.MULTILINE)


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("path", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_prints_what_langgraph_prints(path: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = tmp_path / path.name
    program.write_text(_IMPORT.sub(r"\1from agentbench.stategraph import", path.read_text()))
    runpy.run_path(str(program), run_name="program")
    assert capsys.readouterr().out == path.with_suffix(".txt").read_text()
