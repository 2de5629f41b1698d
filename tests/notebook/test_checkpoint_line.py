"""The checkpoints that lead to now: runs that go on, go back and branch, and what is looked at meanwhile."""

from __future__ import annotations

import pytest

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.checkpoint_line import CheckpointLine


def info(checkpoint_id: str, iteration: int = 0, source: str = "step") -> CheckpointInfo:
    return CheckpointInfo("flow", checkpoint_id, iteration, "2024-01-01T00:00:00.000000+00:00", source=source)


A, B, C, D = (info(name, place) for place, name in enumerate("abcd"))


def ids(line: CheckpointLine) -> str:
    return "".join(past.info.checkpoint_id for past in line.past)


@pytest.fixture
def line() -> CheckpointLine:
    made = CheckpointLine()
    made.learn([A, B, C], {"plan": "done"})
    return made


def test_a_run_that_was_put_back_loses_what_came_after(line: CheckpointLine) -> None:
    line.learn([A, B], {})
    line.learn([A, D], {})
    assert ids(line) == "ad"


def test_a_branch_keeps_what_leads_to_it_and_its_copy(line: CheckpointLine) -> None:
    copy = info("x", 1, "update")
    line.look_at(1)
    line.branch(1, copy)
    assert (ids(line), line.viewing) == ("abx", None)
    assert line.past[-1].label == "superstep 1, edited"
    line.learn([D], {})
    assert ids(line) == "abxd"


def test_a_branch_that_was_put_back_to_its_beginning_has_it_once(line: CheckpointLine) -> None:
    line.branch(1, info("x", 1, "fork"))
    line.learn([info("x", 1, "fork")], {})
    line.learn([info("x", 1, "fork"), D], {})
    assert ids(line) == "abxd"
