"""A process that has a thread in memory notices what others did to it: each turn begins from what is stored now."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from agentbench.exceptions import GraphMismatchError
from tests.stategraph.other_process import CONFIG, compiled


@pytest.fixture(params=["files", "chat.db"])
def place(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    return str(tmp_path / request.param)


def let_other_process(place: str, command: str) -> None:
    module = [sys.executable, "-m", "tests.stategraph.other_process", place, command]
    subprocess.run(module, check=True, timeout=60, cwd=Path(__file__).parents[2])


async def turns(app: Any, n: int) -> list[str]:
    for turn in range(n):
        result = await app.ainvoke({"messages": [f"turn {turn}"]}, CONFIG)
    return [message.text for message in result.state.context]


async def test_turns_edits_and_replays_of_another_process_are_noticed(place: str) -> None:
    app = compiled(place)
    assert len(await turns(app, 10)) == 20

    let_other_process(place, "turn")
    said = await turns(app, 1)
    assert len(said) == 24
    assert said[20] == "of the other process"

    let_other_process(place, "edit")
    assert (await app.aget_state(CONFIG)).values.context_summary == "edited after 24"
    assert (await app.ainvoke({"messages": ["again"]}, CONFIG)).state.context_summary == "edited after 24"

    let_other_process(place, "go back")
    said = await turns(app, 1)
    assert "from the first turn" in said
    assert len(said) < 10


async def test_a_thread_that_another_process_deleted_begins_anew(place: str) -> None:
    app = compiled(place)
    await turns(app, 10)

    let_other_process(place, "delete")
    assert len(await turns(app, 1)) == 2
    assert len(await turns(app, 9)) == 20


async def test_a_thread_that_another_graph_went_on_with_is_refused(place: str) -> None:
    app = compiled(place)
    await turns(app, 10)

    let_other_process(place, "another graph")
    with pytest.raises(GraphMismatchError):
        await turns(app, 1)
    result = await app.ainvoke({"messages": ["all the same"]}, {**CONFIG, "on_graph_change": "allow"})
    assert "of the other graph" in [message.text for message in result.state.context]


async def test_two_storage_objects_of_one_process_take_turns(place: str) -> None:
    for turn in range(12):
        said = await turns(compiled(place), 1)
        assert len(said) == 2 * (turn + 1)
