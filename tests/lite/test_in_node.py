"""The library in Pyodide, the Python of browsers: a selection of the other tests, run there by Node.js."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path
from typing import NamedTuple
from xml.etree import ElementTree as ET

import pytest

from tests.lite.pyodide_runtime import MissingRuntimeError, fetch_runtime
from tests.lite.selection import LEFT_OUT, NIGHTLY, QUICK
from tests.parts import nightly

ROOT = Path(__file__).parents[2]
CHOSEN = NIGHTLY if nightly.NIGHTLY else QUICK
PATIENCE_S = 1200
OPTIONS = (
    "-v",
    "--tb=short",
    "--continue-on-collection-errors",
    "--junitxml=/reports/report.xml",
    "-ojunit_family=xunit1",  # with the file of each test
    "-oaddopts=--strict-markers --import-mode=importlib",
    "-ofaulthandler_timeout=0",  # it is watched by a thread
    "-pno:cacheprovider",
    "-Wignore:It looks like `register_random`",  # a check of hypothesis that counts references
    "-pno:unraisableexception",  # there, generators that nobody closed are collected where no loop is running
)


class Report(NamedTuple):
    """What happened in Pyodide: the number of tests that passed, failures by file, and everything that was printed."""

    passed: int
    failures: dict[str, str]
    printed: str


@pytest.fixture(scope="module")
def report(pytestconfig: pytest.Config, tmp_path_factory: pytest.TempPathFactory) -> Report:
    folder = tmp_path_factory.mktemp("reports")
    try:
        cache = getattr(pytestconfig, "cache", None)
        runtime = fetch_runtime(Path(cache.mkdir("lite")) if cache else folder)
    except MissingRuntimeError as error:
        (pytest.fail if os.environ.get("CI") else pytest.skip)(f"there is no Pyodide here: {error}")
    left_out = [f"--deselect={name}" for names in LEFT_OUT.values() for name in names]
    places = (runtime.pyodide, runtime.packages, ROOT, folder)
    command = [runtime.node, Path(__file__).with_name("run_tests.mjs"), *places, *OPTIONS, *left_out, *CHOSEN]
    done = subprocess.run(
        command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", timeout=PATIENCE_S, check=False
    )
    printed = "\n".join(line for line in done.stdout.splitlines() if len(line) < 1000)  # not the source of Pyodide
    if not (folder / "report.xml").exists():
        pytest.fail(f"Node.js ended early, with {done.returncode}. The last lines:\n{printed[-3000:]}")
    return _read(folder / "report.xml", printed)


def _read(path: Path, printed: str) -> Report:
    passed, failures = 0, dict[str, str]()
    for case in ET.parse(path).iter("testcase"):
        problems = [part for part in case if part.tag in ("failure", "error")]
        passed += not problems and case.find("skipped") is None
        for problem in problems:
            file = case.get("file") or f"{case.get('name', '').replace('.', '/')}.py"
            failures[file] = f"{failures.get(file, '')}\n{case.get('name')}\n{problem.text}\n"
    return Report(passed, failures, printed)


@pytest.mark.parametrize("chosen", CHOSEN)
def test_it_passes_in_pyodide(report: Report, chosen: str) -> None:
    problems = [text for file, text in report.failures.items() if file.startswith(chosen)]
    assert not problems, "".join(problems)


def test_enough_of_the_suite_runs_there(report: Report) -> None:
    assert report.passed >= (200 if nightly.NIGHTLY else 30), report.printed[-3000:]


def test_tests_that_are_left_out_exist() -> None:
    for name in [name for names in LEFT_OUT.values() for name in names]:
        file, _, test = name.partition("::")
        assert re.search(rf"\b{test}\b", (ROOT / file).read_text("utf-8")), name
