"""A key that is planted in a run is in no page, file, widget or frame that a notebook makes of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentbench import AgentResponse, Content, InMemoryCheckpointStorage, Message, run_sync
from agentbench.notebook import Frames, Stepper, diff, form, lineage, stepper, timeline, transcript
from tests.notebook.test_stepper_page import widget_states
from tests.plants import KEY, PLANTS, assert_nowhere
from tests.test_planted_in_workflows import make, run_of, shown_by

pytestmark = [
    pytest.mark.parametrize("plant", PLANTS.values(), ids=PLANTS),
    pytest.mark.filterwarnings("ignore"),
]
Plant = Callable[[], Any]

FRAMES = ("checkpoints", "messages", "state", "events", "timeline", "usage", "requests", "runs", "lineage")


def test_frames_and_plots_of_a_run_do_not_show_it(plant: Plant) -> None:
    storage = InMemoryCheckpointStorage()
    run, _ = run_sync(run_of(plant, storage))
    frames = [getattr(Frames(run), name)() for name in FRAMES]
    things = [
        *frames,
        Frames(run).state(wide=True),
        timeline(run),
        lineage(run),
    ]
    checkpoints = run_sync(storage.list_checkpoints(workflow_name="w"))
    if len(checkpoints) > 1:
        things += [diff(checkpoints[0], checkpoints[-1]), Frames(run).diff()]
    tables = [text for frame in frames for text in (frame.to_csv(), repr(frame.to_dict()), frame.to_html())]
    assert_nowhere([*shown_by(*things), *tables])


def test_a_saved_page_does_not_hold_it(plant: Plant, tmp_path: Path) -> None:
    run, _ = run_sync(run_of(plant, InMemoryCheckpointStorage()))
    page = run.save(tmp_path / "run.html").read_text(encoding="utf-8")
    assert "\\u2022\\u2022\\u2022" in page
    assert_nowhere([page])


def test_a_stepper_and_its_forms_do_not_hold_it(plant: Plant, tmp_path: Path) -> None:
    panel: Stepper = stepper(make(plant, InMemoryCheckpointStorage()), "x", name="planted")
    _ = panel._screen.widget
    panel.run()
    (request,) = panel.pending
    question = form(request)
    shown = [widget_states(panel), *shown_by(panel, request, question)]
    panel.respond(request.request_id, {"value": plant()})
    panel.run()
    shown += [widget_states(panel), *shown_by(panel), panel.save(tmp_path / "panel.html").read_text(encoding="utf-8")]
    panel.close()
    assert_nowhere(shown)


def test_transcripts_do_not_show_it(plant: Plant) -> None:
    value = plant()
    contents = [value] if isinstance(value, Content) else [Content.from_text("see")]
    messages = value.messages if isinstance(value, AgentResponse) else [value] if isinstance(value, Message) else []
    call = Content.from_function_call("c9", "send", arguments={"to": "ann", "api_key": KEY})
    result = Content.from_function_result("c9", result=json.dumps({"user": "ann", "token": KEY}))
    conversation = [*messages, Message("assistant", [call, *contents]), Message("tool", [result])]
    view = transcript(conversation)
    assert "ann" in str(view)
    assert_nowhere(shown_by(view, *conversation))
