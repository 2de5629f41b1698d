"""What all tests lean on: a hook that runs nothing, or a guard that guards nothing, would let every test pass."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).parent


def outcomes(folder: Path, code: str, *arguments: str, **environment: str) -> tuple[dict[str, int], str]:
    """Run tests in a folder of their own that has only our conftest; returns the closing counts and the output."""
    shutil.copy(HERE / "conftest.py", folder)
    (folder / "test_inner.py").write_text(code, encoding="utf-8")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers =\n    browser\n    nightly\n", encoding="utf-8")
    inherited = {name: value for name, value in os.environ.items() if not name.startswith(("AGENTBENCH_", "PYTEST_"))}
    alone = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # what other plugins do is not the question here
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env={**inherited, **alone, **environment},
    )
    said = done.stdout + done.stderr
    return {kind: int(count) for count, kind in re.findall(r"(\d+) (passed|failed|skipped|errors?)", said)}, said


def test_async_tests_run_to_their_end_with_their_fixtures(tmp_path: Path) -> None:
    code = """
import asyncio
import pytest

@pytest.fixture
def number():
    return 3

async def test_that_holds(number):
    await asyncio.sleep(0)
    assert number == 3

async def test_that_fails_after_a_pause(number):
    await asyncio.sleep(0)
    assert number == 4
"""
    counts, said = outcomes(tmp_path, code)
    assert counts == {"passed": 1, "failed": 1}, said
    assert "assert 3 == 4" in said


def test_a_test_that_reaches_for_the_network_fails(tmp_path: Path) -> None:
    code = """
import socket

def test_connecting():
    socket.create_connection(("192.0.2.1", 80))

def test_connecting_in_a_way_that_does_not_raise():
    socket.socket().connect_ex(("192.0.2.1", 80))

def test_connecting_by_the_longer_addresses():
    socket.socket(socket.AF_INET6).connect(("2001:db8::1", 80))

def test_looking_up_a_name():
    socket.getaddrinfo("example.invalid", 80)
"""
    counts, said = outcomes(tmp_path, code)
    assert counts == {"failed": 4}, said
    assert "Failed: a test reached for the network" in said
    assert "4 failed" in said


def test_nightly_tests_run_at_night_and_where_they_are_asked_for(tmp_path: Path) -> None:
    code = """
import hypothesis
import pytest

def test_by_day(): ...

@pytest.mark.nightly
def test_at_night():
    assert hypothesis.settings().max_examples in (25, 200)
"""
    assert outcomes(tmp_path, code)[0] == {"passed": 1}
    assert outcomes(tmp_path, code, AGENTBENCH_NIGHTLY="1")[0] == {"passed": 2}
    assert outcomes(tmp_path, code, "-m", "nightly")[0] == {"passed": 1}
    assert outcomes(tmp_path, code, "test_inner.py::test_at_night")[0] == {"passed": 1}


BROWSER_TEST = """
import pytest

@pytest.mark.browser
def test_clicking(chromium):
    assert False, "there is no such browser"

@pytest.mark.browser
def test_skipping_in_the_middle():
    pytest.skip("no server")

def test_skipping_something_else():
    pytest.skip("no such thing")
"""


SERVER_TESTS = """
def test_redis(redis_server):
    pass
"""


def test_where_servers_are_required_their_absence_fails(tmp_path: Path) -> None:
    counts, said = outcomes(tmp_path, SERVER_TESTS, PATH="/nowhere", AGENTBENCH_REQUIRE_SERVERS="1")
    assert set(counts) <= {"error", "errors"}, said
    assert "AGENTBENCH_REQUIRE_SERVERS is set, but: redis-server is not installed" in said


def test_where_the_browser_is_required_its_absence_fails(tmp_path: Path) -> None:
    counts, said = outcomes(tmp_path, BROWSER_TEST, CHROMIUM="/nowhere/chromium", AGENTBENCH_REQUIRE_BROWSER="1")
    assert counts in ({"failed": 1, "errors": 1, "skipped": 1}, {"failed": 1, "error": 1, "skipped": 1}), said
    assert "AGENTBENCH_REQUIRE_BROWSER is set" in said


def test_cases_are_not_named_by_a_repr_which_may_hold_an_address() -> None:
    # Processes that share a run (`pytest -n 2`) have to agree on the names.
    files = [path for path in HERE.rglob("*.py") if path != Path(__file__)]
    assert [str(path) for path in files if "ids=repr" in path.read_text(encoding="utf-8")] == []
