"""The files that build the image for Binder."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
BINDER = ROOT / "binder"


def lines(name: str) -> list[str]:
    text = (BINDER / name).read_text(encoding="utf-8")
    return [line for line in text.splitlines() if line and not line.startswith("#")]


def git(*arguments: str) -> str:
    if shutil.which("git") is None or not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    return subprocess.run(["git", *arguments], capture_output=True, text=True, check=True, cwd=ROOT).stdout


def test_the_image_installs_this_checkout_with_notebooks_and_the_site_and_nothing_more() -> None:
    assert lines("requirements.txt") == ["-e .[notebook,site]"]
    assert re.search(r"^notebook = \[$", (ROOT / "pyproject.toml").read_text(encoding="utf-8"), flags=re.MULTILINE)


def test_the_image_has_a_python_that_the_project_supports() -> None:
    (runtime,) = lines("runtime.txt")
    version = runtime.removeprefix("python-")
    pyproject = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert f'"Programming Language :: Python :: {version}"' in pyproject
    required = re.search(r'^requires-python = ">=3\.(\d+)"$', pyproject, flags=re.MULTILINE)
    assert required is not None
    assert int(version.split(".")[1]) >= int(required[1])


@pytest.mark.parametrize("name", ["requirements.txt", "runtime.txt", "postBuild", "start"])
def test_lines_end_as_on_unix(name: str) -> None:
    content = (BINDER / name).read_bytes()
    assert b"\r" not in content
    assert content.endswith(b"\n")


@pytest.mark.parametrize("name", ["postBuild", "start"])
def test_the_scripts_can_be_run(name: str) -> None:
    assert git("ls-files", "--stage", f"binder/{name}").startswith("100755 ")


def test_what_is_started_in_the_image_keeps_off_the_network() -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    command = [bash, str(BINDER / "start"), bash, "-c", 'echo "$AGENTBENCH_OFFLINE and $0 $1"', "what was", "given"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout == "1 and what was given\n"


def test_the_last_step_of_the_build_is_a_shell_script_that_stops_at_the_first_failure() -> None:
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("bash is not installed")
    subprocess.run([bash, "-n", str(BINDER / "postBuild")], check=True)
    text = (BINDER / "postBuild").read_text(encoding="utf-8")
    assert text.startswith("#!/usr/bin/env bash\n")
    assert lines("postBuild")[0] == "set -euo pipefail"
    assert lines("postBuild")[-1] == "agentbench doctor --strict"
