"""A queued message survives the end of its process: after a restart it is neither lost nor stored twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

PLACES = ["session", "session per call", "file", "file per call", "checkpoint"]
COMPACTED = ["session compacted", "file compacted", "file compacted per call"]
POINTS = [f"{moment} {what} 1" for what in ("call", "save") for moment in ("before", "after")]
LATER = ["before call 2", "after call 2"]


def run(folder: Path, places: str, *points: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tests.agents.sessions.killed_injections", str(folder), places, *points]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)


@pytest.mark.parametrize("point", [*POINTS, *LATER])
@pytest.mark.parametrize("places", PLACES)
def test_a_message_is_delivered_once_although_its_process_was_killed(places: str, point: str, tmp_path: Path) -> None:
    killed = run(tmp_path, places, point)
    assert killed.returncode == -signal.SIGKILL, killed.stderr

    restarted = run(tmp_path, places)

    assert restarted.returncode == 0, restarted.stderr
    found: dict[str, Any] = json.loads(restarted.stdout.splitlines()[-1])
    assert found["stored"].count("With salt.") == found["seen"].count("With salt.") == 1
    assert found["queue"] == []


@pytest.mark.parametrize("point", [*POINTS, *LATER])
@pytest.mark.parametrize("places", COMPACTED)
def test_a_message_is_stored_once_although_the_model_gets_a_shortened_conversation(
    places: str, point: str, tmp_path: Path
) -> None:
    assert run(tmp_path, places, point).returncode == -signal.SIGKILL

    restarted = run(tmp_path, places)

    assert restarted.returncode == 0, restarted.stderr
    found: dict[str, Any] = json.loads(restarted.stdout.splitlines()[-1])
    assert found["stored"].count("With salt.") == 1
    assert found["queue"] == []
