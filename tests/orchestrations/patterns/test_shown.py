"""What a stepper tells of a pattern: who gets the turn, and why; the plan, and how far it is."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("ipywidgets")

from agentbench.notebook.history.log import lines_of_event
from tests.orchestrations.patterns.teams import handoff, magentic, managed_chat


async def told(builder: Any) -> list[str]:
    return [line.text for event in await builder.build().run("hello") for line in lines_of_event(event)]


async def test_turns_and_reasons():
    lines = await told(managed_chat())
    assert lines[:2] == ["boss: turn 1 goes to b: turn 0", "boss: b has answered in turn 1"]


async def test_handoffs():
    assert await told(handoff()) == ["a: hands the conversation on to b", "b: hands the conversation on to a"]


async def test_plans_and_progress():
    lines = await told(magentic())
    assert lines[0].startswith("magentic_orchestrator: plan created: We work on this task together:")
    assert lines[1].startswith("magentic_orchestrator: progress ledger updated: not done, progress, next a: Step 0")
    assert lines[2] == "magentic_orchestrator: turn 1 goes to a: so"
