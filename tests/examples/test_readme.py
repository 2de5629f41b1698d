"""The README: its code runs and prints what it says, its commands are there for every system."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
# A block of Python, and the block right behind it that says what it prints.
EXAMPLES = re.findall(r"^```python\n(.*?)^```\n(?:\n```text\n(.*?)^```\n)?", README, flags=re.MULTILINE | re.DOTALL)
COMMANDS = dict(re.findall(r"^<!-- (.+?) -->\n```\w+\n(.*?)^```$", README, flags=re.MULTILINE | re.DOTALL))
LINES = {
    "lab": ("notebook", "agentbench lab"),
    "site": ("site", "agentbench site site --port 8000"),
    "test": ("test", "pytest -n auto"),
}
"""The extra that each line installs, and what it runs."""


def test_there_is_an_example() -> None:
    assert EXAMPLES


@pytest.mark.parametrize(("code", "printed"), EXAMPLES)
def test_an_example_runs_and_prints_what_the_readme_says(code: str, printed: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert (done.stderr, done.returncode) == ("", 0)
    assert done.stdout == printed


def test_the_readme_opens_with_a_line_to_see_it_one_for_a_browser_and_one_to_test_it() -> None:
    assert list(COMMANDS) == [f"{task}: {system}" for task in LINES for system in ("Linux, macOS", "Windows")]
    assert README.index("<!-- test: Windows -->") < README.index("\n## ")
    for command in COMMANDS.values():
        assert command.count("\n") == 1
        assert " -m venv .venv && " in command


@pytest.mark.parametrize("task", LINES)
def test_a_line_is_enough_alone(task: str) -> None:
    extra, program = LINES[task]
    unix, windows = COMMANDS[f"{task}: Linux, macOS"], COMMANDS[f"{task}: Windows"]
    assert unix == f'python3 -m venv .venv && .venv/bin/pip install -q -e ".[{extra}]" && .venv/bin/{program}\n'
    assert windows == unix.replace("python3", "py").replace(".venv/bin/", ".venv\\Scripts\\")


def test_the_map_names_folders_that_are_there() -> None:
    named = re.findall(r"^\| `([\w./]+)` \|", README, flags=re.MULTILINE)
    assert named
    assert [name for name in named if not (ROOT / name).exists()] == []


def test_the_tests_of_ci_are_the_line_of_the_readme() -> None:
    script = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    assert "readme_command 'test: Linux, macOS'" in script
    assert COMMANDS["test: Linux, macOS"].partition(" && ")[2].strip() not in script
