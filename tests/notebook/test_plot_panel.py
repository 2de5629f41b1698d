from __future__ import annotations

from typing import Any

import pytest

from agentbench import CheckpointInfo, WorkflowEvent
from agentbench.notebook import lineage, timeline
from agentbench.workflows.events.events import EventStamps

pytest.importorskip("anywidget")


def infos(count: int) -> list[CheckpointInfo]:
    return [
        CheckpointInfo("w", f"cp-{n}", n, "", previous_checkpoint_id=f"cp-{n - 1}" if n else None, run_id="run-1")
        for n in range(count)
    ]


def events() -> list[WorkflowEvent[Any]]:
    made: list[WorkflowEvent[Any]] = [WorkflowEvent.executor_invoked("a"), WorkflowEvent.executor_completed("a")]
    for place, event in enumerate(made):
        event._stamps = EventStamps(place + 1, "run-1", 0, place * 10**6)
    return made


def test_a_timeline_switches_between_real_time_and_equal_steps():
    panel = timeline(events()).panel()
    assert panel.choices == ["real time", "equal steps"]
    assert ">real time<" in panel.svg
    panel.choice = 1
    assert ">equal steps<" in panel.svg
    panel.choice = 0
    assert ">real time<" in panel.svg
    panel.close()


def test_a_chosen_checkpoint_is_reported_until_its_listener_stops():
    panel = lineage(infos(3)).panel()
    told: list[str] = []
    forget = panel.on_select(told.append)
    assert not panel.choices
    panel.selected = 1
    assert (panel.chosen, told) == ("cp-1", ["cp-1"])
    forget()
    forget()
    panel.selected = 2
    assert (panel.chosen, told) == ("cp-2", ["cp-1"])
    panel.close()


@pytest.mark.parametrize("place", [-7, 3, 10**9])
def test_a_page_that_chooses_what_is_not_there_chooses_nothing(place: int):
    panel = lineage(infos(3)).panel()
    told: list[str] = []
    panel.on_select(told.append)
    before = panel.svg
    panel.selected = place
    panel.choice = place
    assert (panel.chosen, told, panel.svg) == (None, [], before)
    panel.close()


@pytest.mark.parametrize("count", [3, 59, 300])
def test_each_row_of_a_lineage_names_what_it_chooses(count: int):
    panel = lineage(infos(count), current="cp-1").panel()
    rows = panel.svg.count("data-item=")
    found = []
    for place in (rows - 1, rows):
        panel.selected = place
        found.append(panel.chosen)
    assert found == [f"cp-{count - 1}", None]
    panel.close()
