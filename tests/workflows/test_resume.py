"""Checkpoints of runs: what they hold, and going on from them in the same or another instance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest

from agentbench import (
    Executor,
    InMemoryCheckpointStorage,
    RunOptions,
    Workflow,
    WorkflowCheckpoint,
    WorkflowContext,
    handler,
    response_handler,
)
from tests.parts.errors import raises, warns
from tests.parts.executors import Pass, Show, brief, chain


class Keep(Executor):
    """Counts in a field, and keeps it in checkpoints."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.seen: list[str] = []

    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, Any]) -> None:
        self.seen.append(text)
        texts = ctx.get_state("texts", [])
        texts.append(text)
        ctx.set_state("texts", texts)
        await ctx.send_message(f"{text}+")
        await ctx.yield_output((list(self.seen), list(texts)))

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"seen": self.seen}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.seen = state["seen"]


class Broken(Pass):
    """A hook that fails as told."""

    save: Any = None
    restore: Exception | None = None

    async def on_checkpoint_save(self) -> dict[str, Any]:
        if isinstance(self.save, Exception):
            raise self.save
        return self.save if self.save is not None else {}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        if self.restore is not None:
            raise self.restore


@dataclass
class Verdict:
    good: bool


class Ask(Executor):
    @handler
    async def on_text(self, text: str, ctx: WorkflowContext[str, Any]) -> None:
        await ctx.request_info(f"{text}?", str, request_id="R0")
        await ctx.request_info(f"{text}!", Verdict, request_id="R1")

    @response_handler
    async def on_word(self, question: str, word: str, ctx: WorkflowContext[str, Any]) -> None:
        await ctx.yield_output((ctx.request_id, ctx.source_executor_ids, question, word))

    @response_handler
    async def on_verdict(self, question: str, verdict: Verdict, ctx: WorkflowContext[str, Any]) -> None:
        await ctx.yield_output(verdict)


def keeping(**settings: Any) -> Workflow:
    return chain(Keep("a"), Keep("b"), Keep("c"), name="keeps", **settings)


async def saved(storage: InMemoryCheckpointStorage, name: str = "keeps") -> list[WorkflowCheckpoint]:
    return await storage.list_checkpoints(workflow_name=name)


async def test_a_chain_of_three_leaves_three_linked_checkpoints():
    storage = InMemoryCheckpointStorage()
    await chain(Pass("e0"), Pass("e1"), Show("e2"), name="keeps", checkpoint_storage=storage).run("x")
    points = await saved(storage)
    assert [p.iteration_count for p in points] == [0, 1, 2]
    assert [{source: [m.data for m in sent] for source, sent in p.messages.items()} for p in points] == [
        {"e0": ["x>e0"]},
        {"e1": ["x>e0>e1"]},
        {},
    ]
    assert [p.previous_checkpoint_id for p in points] == [None, points[0].checkpoint_id, points[1].checkpoint_id]
    assert [p.metadata["seq"] for p in points] == [1, 2, 3]
    assert len({p.metadata["run_id"] for p in points}) == 1


async def test_a_resume_runs_only_the_rest_and_links_to_where_it_began():
    storage = InMemoryCheckpointStorage()
    await keeping(checkpoint_storage=storage).run("x")
    middle = (await saved(storage))[1]
    fresh = keeping(checkpoint_storage=storage)
    result = await fresh.run(checkpoint_id=middle.checkpoint_id)
    assert brief(result)[:2] == ["superstep_started 2", "executor_invoked c"]
    before, after = (await saved(storage))[:4], (await saved(storage))[4:]
    assert after[0].previous_checkpoint_id == middle.checkpoint_id
    assert after[1].previous_checkpoint_id == after[0].checkpoint_id
    assert [p.metadata["seq"] for p in [*before, *after]] == [1, 2, 3, 4, 5, 6]


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_a_workflow_built_without_checkpoints_resumes_with_a_storage_for_the_run():
    storage = InMemoryCheckpointStorage()
    await keeping(checkpoint_storage=storage).run("x")
    point = (await saved(storage))[1]
    workflow = keeping()
    await workflow.run(checkpoint_id=point.checkpoint_id, checkpoint_storage=storage)
    count = len(await saved(storage))
    await workflow.run("another")  # the storage of the run before is forgotten
    assert len(await saved(storage)) == count


# ---- requests ------------------------------------------------------------------------------------


async def test_a_bad_answer_after_a_restore_fails_the_run_and_loses_nothing():
    storage = InMemoryCheckpointStorage()
    await chain(Ask("ask"), name="keeps", checkpoint_storage=storage).run("x")
    point = (await saved(storage))[-1]
    workflow = chain(Ask("ask"), name="keeps", checkpoint_storage=storage)
    with raises(ValueError, "nope"):
        await workflow.run(checkpoint_id=point.checkpoint_id, responses={"nope": 1})
    result = await workflow.run(checkpoint_id=point.checkpoint_id, responses={"R0": "word"})
    assert len(result.outputs) == 1


# ---- what can go wrong ---------------------------------------------------------------------------


async def test_state_that_cannot_be_copied_is_a_warning_that_names_it():
    class Odd(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
            ctx.set_state("generator", (n for n in [1]))
            await ctx.send_message(text)

    storage = InMemoryCheckpointStorage()
    with warns(RuntimeWarning, "generator"):
        result = await chain(Odd("o"), Show("s"), name="keeps", checkpoint_storage=storage).run("x")
    assert result.outputs == ["x!"]
    warnings = [e.data for e in result if e.type == "warning"]
    assert any("generator" in text for text in warnings)


async def test_the_name_of_the_workflow_is_not_compared():
    storage = InMemoryCheckpointStorage()
    await keeping(checkpoint_storage=storage).run("x")
    point = (await saved(storage))[1]
    other = chain(Keep("a"), Keep("b"), Keep("c"), name="another name")
    assert len((await other.run(checkpoint_id=point.checkpoint_id, checkpoint_storage=storage)).outputs) == 1


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_an_observed_run_reports_changes_of_state_even_in_place():
    class Grow(Executor):
        @handler
        async def on_text(self, text: str, ctx: WorkflowContext[str]) -> None:
            texts = ctx.get_state("texts", [])
            texts.append(text)
            ctx.set_state("texts", texts)
            await ctx.send_message(f"{text}+")

    workflow = chain(Grow("a"), Grow("b"))
    workflow.state.import_state({"texts": ["from before"]})
    result = await workflow.run("x", options=RunOptions(observe=True))
    told = [e.data["texts"] for e in result if e.type == "state_updated"]
    assert told == [
        {"old": ["from before"], "new": ["from before", "x"], "writers": ["a"]},
        {"old": ["from before", "x"], "new": ["from before", "x", "x+"], "writers": ["b"]},
    ]
