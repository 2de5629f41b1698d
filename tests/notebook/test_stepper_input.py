"""The input as a position of a stepper: shown, edited, and the start of new runs."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import pytest
from pydantic import BaseModel

from agentbench import (
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    Message,
    RunOptions,
    StateGraph,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    run_sync,
)
from agentbench.exceptions import InvalidEdit
from agentbench.notebook import Stepper, stepper
from agentbench.notebook.forms.text_values import text_of, value_of
from agentbench.stategraph import END, START
from tests.parts.errors import raises


@dataclass
class Topic:
    title: str
    words: int = 100


class Order(BaseModel):
    item: str
    count: int = 1


class Take(Executor):
    """Keeps what it gets, and fails for "bad"."""

    @handler
    async def take(self, given: Any, ctx: WorkflowContext[Any]) -> None:
        if given == "bad":
            raise ValueError("a bad input")
        ctx.set_state("taken", given)
        await ctx.send_message(given)


class Give(Executor):
    @handler
    async def give(self, given: Any, ctx: WorkflowContext[Any, Any]) -> None:
        await ctx.yield_output(given)


def read_back(value: object) -> Any:
    """What a page stages if a person types this value."""
    return value_of(text_of(value).text, value)


def flow() -> Workflow:
    take, give = Take(id="take"), Give(id="give")
    return WorkflowBuilder(start_executor=take, name="flow").add_edge(take, give).build()


def done(given: Any, **settings: Any) -> Stepper:
    panel = stepper(flow(), given, **settings)
    panel.run()
    return panel


def outputs(panel: Stepper) -> list[Any]:
    return panel.handle.outputs


def test_back_reaches_the_input_where_nothing_has_happened_yet() -> None:
    panel = done("cats")
    panel.back(2)
    assert (panel.checkpoint_id, panel.state, panel.edits()) == ("input", {}, [])
    assert "viewing the input" in panel.text
    assert repr(panel) == "Stepper(flow, superstep 1, done, viewing the input)"
    assert "back" not in panel.allowed
    panel.forward()
    assert panel.checkpoint_id == panel.checkpoints[0].checkpoint_id
    assert len(panel.checkpoints) == 2  # the input is not a checkpoint


@pytest.mark.parametrize("where", ["memory", "file"])
def test_an_edited_input_starts_a_new_run_and_the_old_one_does_not_change(where: str, tmp_path: Path) -> None:
    storage = InMemoryCheckpointStorage() if where == "memory" else FileCheckpointStorage(tmp_path)
    panel = done("cats", storage=storage)
    old, old_id = panel.handle, panel.run_id
    panel.goto("input")
    panel.edit("input", "dogs")
    assert "edit, not applied yet: ~ input: 'cats' -> 'dogs'" in panel.text
    panel.run()
    assert (panel.run_id != old_id, outputs(panel), old.outputs) == (True, ["dogs"], ["cats"])
    assert panel.handle.origin is old
    assert [info.iteration for info in panel.checkpoints] == [0, 1]
    panel.goto("input")
    panel.step()  # the input of the new run, once more
    panel.run()
    assert outputs(panel) == ["dogs"]


@pytest.mark.parametrize(
    ("given", "path", "value", "expected"),
    [
        ("cats", "input", "dogs", "dogs"),
        (3, "input", 4, 4),
        (Topic("cats"), "input.title", "dogs", Topic("dogs")),
        (Order(item="tea"), "input.count", "2", Order(item="tea", count=2)),
        ([Message("user", "hi")], "input[0]", Message("user", "hello"), [Message("user", "hello")]),
        ([Message("user", "hi")], "input[0]", read_back(Message("user", "hello")), [Message("user", "hello")]),
        ({"a": {"b": 1}}, "input.a.b", 2, {"a": {"b": 2}}),
    ],
)
def test_inputs_of_all_kinds_are_edited_at_their_places(given: Any, path: str, value: Any, expected: Any) -> None:
    panel = stepper(flow(), given)
    edit = panel.edit(path, value)
    assert edit.path == path
    panel.run()
    assert repr(outputs(panel)) == repr([expected])
    assert panel.handle.input == expected


def test_a_value_that_does_not_fit_the_input_is_refused() -> None:
    panel = stepper(flow(), Topic("cats"))
    for path, value in (("input.words", "many"), ("input.missing", 1), ("inputs", 1)):
        with raises(InvalidEdit, path):
            panel.edit(path, value)
    assert panel.edits() == []


def test_an_input_that_made_the_first_superstep_fail_is_edited_and_run_again() -> None:
    panel = stepper(flow(), "bad")
    panel.step()
    assert (panel.status, panel.checkpoint_id) == ("failed", "input")
    panel.step()  # a retry, with the same input
    assert panel.status == "failed"
    panel.edit("input", "good")
    panel.step()
    panel.run()
    assert outputs(panel) == ["good"]


def test_a_fork_from_the_input_is_a_stepper_of_its_own() -> None:
    panel = done("cats")
    for made, expected in (
        (panel.fork("input"), "cats"),
        (panel.fork("input", input="cows"), "cows"),
        (panel.fork("input", edits={"input": "dogs"}), "dogs"),
    ):
        assert (made.status, made.checkpoint_id, made.checkpoints) == ("ready", "input", [])
        made.run()
        assert outputs(made) == [expected]
    assert outputs(panel) == ["cats"]


def test_a_stepper_that_resumes_knows_the_input_of_the_run_before(tmp_path: Path) -> None:
    storage = FileCheckpointStorage(tmp_path)
    first = done(Topic("cats"), storage=storage)
    panel = stepper(flow(), checkpoint=first.checkpoints[0], storage=FileCheckpointStorage(tmp_path))
    panel.back()
    assert panel.checkpoint_id == "input"
    panel.edit("input.title", "dogs")
    panel.run()
    assert outputs(panel) == [Topic("dogs")]


def test_where_the_input_is_not_known_the_line_begins_with_the_first_checkpoint() -> None:
    storage = InMemoryCheckpointStorage()
    result = run_sync(flow().run("cats", checkpoint_storage=storage))  # a plain run stores no input
    panel = stepper(flow(), checkpoint=result.checkpoints[-1], storage=storage)
    panel.back()
    assert panel.checkpoint_id == panel.checkpoints[0].checkpoint_id
    assert "back" not in panel.allowed
    with raises(LookupError, "'input'"):
        panel.goto("input")


@pytest.mark.parametrize("resumed", [False, True])
def test_a_saved_input_is_the_same_position(resumed: bool) -> None:
    storage = InMemoryCheckpointStorage()
    panel = done("cats", storage=storage, options=RunOptions(save_input=True))
    if resumed:
        first = panel.checkpoints[0]
        panel = stepper(flow(), checkpoint=first, storage=storage)
        assert (panel.status, panel.superstep, panel.checkpoint_id) == ("ready", None, first.checkpoint_id)
        assert "no superstep yet" in panel.text
    assert [past.label for past in panel._session.model.checkpoints.past] == ["input", "superstep 0", "superstep 1"][
        : 1 if resumed else 3
    ]
    panel.goto("input")
    assert panel.checkpoint_id == panel.checkpoints[0].checkpoint_id
    panel.edit("input", "dogs")
    panel.run()
    assert (outputs(panel), panel.handle.input) == (["dogs"], "dogs")


@dataclass
class Notes:
    topic: str = ""
    notes: Annotated[list[str], operator.add] = field(default_factory=list)


def graph(**settings: Any) -> Any:
    made = StateGraph(Notes, name="noting").add_node("note", lambda state: {"notes": [f"about {state.topic}"]})
    return made.add_edge(START, "note").add_edge("note", END).compile(**settings)


def test_the_input_of_a_state_graph_is_a_position_too() -> None:
    panel = stepper(graph(), {"topic": "cats"}, {"thread_id": "t1"})
    panel.run()
    panel.goto("input")
    assert panel.state == {}
    panel.edit("input.topic", "dogs")
    panel.run()
    assert panel.handle.outputs[-1]["notes"] == ["about dogs"]


def test_secrets_in_an_input_are_masked_wherever_it_is_shown() -> None:
    panel = stepper(flow(), {"api_key": "sk-hidden", "left": 1})
    panel.edit("input.api_key", "sk-other")
    shown = [panel.text, repr(panel.edits()), *(line.text for line in panel._session.model.log)]
    panel.step()
    shown += [panel.text, *(line.text for line in panel._session.model.log)]
    assert "sk-" not in "".join(shown)
