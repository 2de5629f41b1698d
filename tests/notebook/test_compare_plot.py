from __future__ import annotations

import base64
import contextlib
import re
from pathlib import Path
from typing import Any, Never

import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowRun,
    executor,
    handler,
    run_sync,
)
from agentbench.notebook import compare
from tests.parts.errors import raises

pytestmark = pytest.mark.usefixtures("counted")


class Plan(Executor):
    @handler
    async def plan(self, text: str, ctx: WorkflowContext[str]) -> None:
        ctx.set_state("topic", text)
        await ctx.send_message(text.upper())


class Write(Executor):
    @handler
    async def write(self, text: str, ctx: WorkflowContext[str]) -> None:
        if text == "CATS":
            raise ValueError("no such page")
        await ctx.send_message(f"about {text}")


class Show(Executor):
    @handler
    async def show(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(text)


def flow(name: str = "write", *, archive: bool = False) -> Workflow:
    plan, write = Plan("plan"), Write(name)
    builder = WorkflowBuilder(start_executor=plan, name="flow").add_edge(plan, write).add_edge(write, Show("show"))
    return (builder.add_edge(write, Show("archive")) if archive else builder).build()


async def ran(text: str, storage: Any = None, workflow: Workflow | None = None) -> WorkflowRun:
    run = (workflow or flow()).start(text, checkpoint_storage=storage)
    with contextlib.suppress(ValueError):
        await run.result()
    return run


def graphs(html: str) -> list[str]:
    """The pictures of graphs in a page."""
    return [base64.b64decode(each).decode() for each in re.findall(r'src="data:image/svg\+xml;base64,([^"]*)"', html)]


def test_two_runs_of_one_input_are_equal():
    plot = compare(run_sync(ran("bees")), run_sync(ran("bees")))
    assert plot.is_equal
    assert plot.first is None
    assert plot.title == "run-1 and run-2: 3 of 3 supersteps equal"
    assert plot.frame["op"].tolist() == ["equal"] * 3
    assert "\N{NOT EQUAL TO}" not in plot.html


def test_runs_that_part_are_marked_in_both_graphs_and_in_the_table():
    plot = compare(run_sync(ran("bees")), run_sync(ran("cats", workflow=flow(archive=True))))
    assert plot.first == 0
    assert plot.verdict.startswith("In superstep 0, plan differs: sent 'BEES' in run-1, sent 'CATS' in run-2.")
    assert "run-1 (\N{NOT EQUAL TO} plan, write, show)" in plot.html
    assert "run-2 (\N{NOT EQUAL TO} plan, write, show, archive)" in plot.html
    assert [svg.count(".ab_shape{stroke:#C21A1A!important") for svg in graphs(plot.html)] == [3, 4]
    assert "failed (ValueError: no such page)" in plot.html
    assert "sent &#x27;BEES&#x27;" in plot.html


def test_a_fork_is_compared_through_the_checkpoints_that_it_shares(storage: InMemoryCheckpointStorage):
    async def main() -> tuple[WorkflowRun, WorkflowRun]:
        run = await ran("bees", storage)
        fork = await run.fork(run.checkpoints[1], state_updates={"topic": "wasps"}, workflow=flow())
        await fork.result()
        return run, fork

    run, fork = run_sync(main())
    plot = compare(run, fork)
    assert (
        plot.verdict
        == "Equal up to superstep 0. In superstep 1, state topic differs: 'bees' in run-1, 'wasps' in run-2."
    )
    assert plot.frame.query("op != 'equal'").index.tolist() == [(1, "topic")]


@pytest.mark.parametrize("form", ["ids", "narrowed", "checkpoints"])
def test_chains_of_checkpoints_are_compared_without_their_runs(form: str, storage: InMemoryCheckpointStorage):
    one, other = run_sync(ran("bees", storage)), run_sync(ran("birds", storage))
    loaded = run_sync(storage.list_checkpoints(workflow_name="flow"))
    sides: dict[str, tuple[Any, Any]] = {
        "ids": ("run-1", "run-2"),
        "narrowed": ([storage, "run-1"], [storage, "run-2"]),
        "checkpoints": tuple([c for c in loaded if c.metadata["run_id"] == run.run_id] for run in (one, other)),  # type: ignore[dict-item]
    }
    plot = compare(*sides[form], source=storage if form == "ids" else None)
    assert plot.first == 0
    assert "sent 'BEES' in run-1, sent 'BIRDS' in run-2" in plot.verdict
    assert ("state", "changed") in plot.frame[["kind", "op"]].itertuples(index=False, name=None)


def test_events_without_a_graph_make_a_table_alone():
    one, other = run_sync(ran("bees")), run_sync(ran("birds"))
    html = compare(list(one.events), list(other.events)).html
    assert graphs(html) == []
    assert "sent &#x27;BIRDS&#x27;" in html


def test_a_comparison_is_saved_as_the_page_that_a_cell_displays(tmp_path: Path):
    plot = compare(run_sync(ran("bees")), run_sync(ran("cats")))
    assert set(plot._repr_mimebundle_()) == {"text/html", "text/plain"}
    assert plot.save(tmp_path / "c.html").read_text(encoding="utf-8") == plot.html
    with raises(ValueError, ".html", ".txt", ".csv"):
        plot.save(tmp_path / "c.svg")


async def test_outputs_of_a_fork_are_compared_by_the_events_of_both_runs(storage: InMemoryCheckpointStorage):
    run = counting(storage).start(2)
    await run.result()
    fork = await run.fork(run.checkpoints[0], state_updates={"factor": 5})
    await fork.result()
    plot = compare(run, fork)
    assert plot.frame["op"].to_dict() == {(0, "count"): "equal", (0, "factor"): "only_b", (1, "end"): "changed"}


async def test_outputs_that_one_side_does_not_record_are_never_called_equal(storage: InMemoryCheckpointStorage):
    run, other = counting(storage).start(2), counting(storage).start(2)
    await run.result()
    await other.result()
    plot = compare(run, [storage, other.run_id])
    assert set(plot.frame["op"]) == {"unknown"}
    assert "=" not in plot.text
    assert "outputs not recorded" in plot.text
    assert plot.first is None


def counting(storage: InMemoryCheckpointStorage) -> Workflow:
    @executor(id="count")
    async def count(number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(number)

    @executor(id="end")
    async def end(number: int, ctx: WorkflowContext[Never, int]) -> None:
        await ctx.yield_output(number * ctx.get_state("factor", 1))

    return WorkflowBuilder(start_executor=count, checkpoint_storage=storage).add_edge(count, end).build()
