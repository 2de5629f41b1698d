"""Record what LangGraph prints for the programs in `tests/stategraph/langgraph/programs`.

Usage: `python -m tests.tools.record_langgraph PYTHON [NAME ...]`. `PYTHON` is an interpreter that has LangGraph. It
runs each program; what the program prints becomes `NAME.txt` beside it. Without names, all programs are run.
"""

import subprocess
import sys
from pathlib import Path

PROGRAMS = sorted((Path(__file__).parents[1] / "stategraph/langgraph/programs").glob("*.py"))


def main(python: str, *names: str) -> None:
    """Record the named programs, by default all."""
    for path in PROGRAMS:
        if not names or path.stem in names:
            printed = subprocess.run([python, "-W", "ignore", path], capture_output=True, check=True, text=True)
            path.with_suffix(".txt").write_text(printed.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
