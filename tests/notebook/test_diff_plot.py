from __future__ import annotations

from typing import Any

from agentbench import Executor, Workflow, WorkflowBuilder, WorkflowCheckpoint, WorkflowContext, handler
from agentbench.notebook import DiffPlot, diff, stepper


def checkpoint(name: str, state: dict[str, Any]) -> WorkflowCheckpoint:
    return WorkflowCheckpoint("flow", "hash", checkpoint_id=name, timestamp="2026-01-01", state=state)


def between(before: dict[str, Any], after: dict[str, Any]) -> DiffPlot:
    return diff(checkpoint("one", before), checkpoint("two", after))


class Note(Executor):
    @handler
    async def note(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("last", self.id)
        await ctx.send_message(text)


def one_step() -> Workflow:
    one, two = Note(id="one"), Note(id="two")
    return WorkflowBuilder(start_executor=one).add_edge(one, two).build()


def test_a_diff_iterates_over_its_changes_and_is_false_without_any():
    plot = between({"n": 1}, {"n": 2})
    assert [change.path for change in plot] == ["state.n"] == [change.path for change in plot.changes]
    assert (len(plot), plot[0].after, bool(between({}, {}))) == (1, 2, False)
    assert str(plot) == str(plot.found)
    assert repr(plot) == "DiffPlot('one and two: 1 changed')"


def test_ids_are_loaded_from_a_stepper_a_run_or_a_storage():
    panel = stepper(one_step(), "a")
    panel.run()
    ids = [info.checkpoint_id for info in panel.handle.checkpoints]
    found = [diff(ids[0], ids[-1], source=source).text for source in (panel, panel.handle, panel.handle.storage)]
    assert len(set(found)) == 1
    assert "no difference" not in found[0]
