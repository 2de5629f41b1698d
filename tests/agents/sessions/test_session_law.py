"""What a session holds comes back as it was, in every process."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pydantic")

from hypothesis import HealthCheck, Phase, given, settings

from agentbench import AgentSession
from tests.agents.sessions import stored_types

ROOT = Path(__file__).parents[3]


def same(one: Any, other: Any) -> bool:
    """Equal, with equal types all the way down: True is not 1, a session's text is no enum."""
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(same, one, other))
    return bool(one == other)


@given(stored_types.sessions)
def test_a_session_comes_back_as_it_was(session: AgentSession) -> None:
    written = session.to_dict()
    again = AgentSession.from_dict(json.loads(json.dumps(written)))
    assert again == session
    assert same(again.state, session.state)
    assert again.to_dict() == written


def test_a_fresh_process_that_knows_the_classes_reads_and_writes_the_same(tmp_path: Path) -> None:
    lines: list[str] = []

    @settings(max_examples=150, phases=[Phase.generate], suppress_health_check=[HealthCheck.too_slow], database=None)
    @given(stored_types.sessions)
    def generate(session: AgentSession) -> None:
        lines.append(json.dumps(session.to_dict()))

    generate()
    source, target = tmp_path / "sessions.jsonl", tmp_path / "again.jsonl"
    source.write_text("\n".join(lines), "utf-8")
    command = [sys.executable, "-m", "tests.agents.sessions.stored_types", str(source), str(target)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert target.read_text("utf-8").splitlines() == lines


def test_a_process_that_does_not_know_the_classes_hands_them_on_unharmed(tmp_path: Path) -> None:
    session = stored_types.session_of("s", None, {})
    session.state["m"] = [stored_types.UserPreferences(language="de"), {"deep": stored_types.SearchHistory(["q"])}]
    session.state["t"] = stored_types.Ticket(type="feature", no=3)
    session.state["u"] = stored_types.Untold(["a"])
    source, target = tmp_path / "s.json", tmp_path / "t.json"
    source.write_text(json.dumps(session.to_dict()), "utf-8")
    program = (
        "import json, sys; from agentbench import AgentSession;"
        "s = AgentSession.from_dict(json.load(open(sys.argv[1])));"
        "assert type(s.state['m'][0]) is dict and s.state['m'][0]['language'] == 'de', s.state;"
        "assert 'pydantic' not in sys.modules;"
        "json.dump(s.to_dict(), open(sys.argv[2], 'w'))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(source), str(target)], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert AgentSession.from_dict(json.loads(target.read_text("utf-8"))) == session
