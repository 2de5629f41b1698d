"""Laws of migrations over random graphs and random changes: what opens continues, what is refused writes nothing."""

from __future__ import annotations

import asyncio
from typing import Any

from hypothesis import event, given, settings
from hypothesis import strategies as st

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import MigrationError
from agentbench.revisions import ExecutorContent
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler
from agentbench.workflows.run.workflow import Workflow
from tests.parts.nightly import NIGHTLY

Edge = tuple[int, int, bool]


class Hop(Executor):
    """Passes a list on, with its name added; counts."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self.count = 0

    @handler
    async def go(self, path: list[str], ctx: WorkflowContext[list[str], list[str]]) -> None:
        self.count += 1
        ctx.set_state(f"seen by {self.id}", str(self.count))
        await ctx.send_message([*path, self.id])
        await ctx.yield_output([*path, self.id])

    @handler
    async def gather(self, paths: list[list[str]], ctx: WorkflowContext[list[str], list[str]]) -> None:
        await self.go([name for path in paths for name in path], ctx)

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"count": self.count}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.count = state.get("count", 0)


def build(names: list[str], edges: set[Edge], fan_in: bool) -> Workflow:
    """Executors of which each may lead to later ones; the last may wait for two."""
    executors = [Hop(name) for name in names]
    builder = WorkflowBuilder(start_executor=executors[0], name="flow")
    for source, target in zip(executors, executors[1:-1] if fan_in else executors[1:], strict=False):
        builder.add_edge(source, target)
    for start, end, is_conditional in sorted(edges):
        if end < len(executors) - fan_in and start + 1 < end:
            condition = (lambda data: len(data) % 2 == 0) if is_conditional else None
            builder.add_edge(executors[start], executors[end], condition=condition)
    if fan_in:
        builder.add_fan_in_edges(executors[-3:-1], executors[-1])
    return builder.build()


def split(old: ExecutorContent) -> list[ExecutorContent]:
    first, second = f"{old.executor_id}1", f"{old.executor_id}2"
    received = [ExecutorContent(first, old.state, old.received, [], old.requests)]
    return [*received, ExecutorContent(second, {"count": 1}, sent=old.sent)]


@st.composite
def cases(draw: st.DrawFn) -> dict[str, Any]:
    size = draw(st.integers(3, 6))
    edges = draw(st.sets(st.tuples(st.integers(0, 4), st.integers(1, 5), st.booleans()), max_size=4))
    kinds = draw(st.lists(st.sampled_from(["keep", "rename", "split", "drop", "gone"]), min_size=size, max_size=size))
    return {
        "size": size,
        "edges": edges,
        "kinds": kinds,
        "fan_in": draw(st.booleans()),
        "stop": draw(st.integers(1, 6)),
        "field": draw(st.sampled_from([None, "number", "broken", "dropped", "renamed"])),
    }


@settings(max_examples=1500 if NIGHTLY else 60, deadline=None)
@given(cases())
def test_every_old_checkpoint_continues_in_the_new_graph_or_is_refused(case: dict[str, Any]) -> None:
    asyncio.run(check(**case))


async def check(size: int, edges: set[Edge], kinds: list[str], *, fan_in: bool, stop: int, field: str | None) -> None:
    storage = InMemoryCheckpointStorage()
    names = [f"e{number}" for number in range(size)]
    await interrupted(build(names, edges, fan_in), storage, stop)
    new_names: list[str] = []
    for name, kind in zip(names, kinds, strict=True):
        new_names += {"keep": [name], "rename": [f"r{name}"], "split": [f"{name}1", f"{name}2"]}.get(kind, [])
    if len(new_names) < 3:
        new_names += ["x", "y", "z"]
    new = build(new_names, edges, fan_in)
    by_kind = {kind: [name for name, each in zip(names, kinds, strict=True) if each == kind] for kind in kinds}
    key = "seen by e0"
    arguments: dict[str, Any] = {
        "renamed": {name: f"r{name}" for name in by_kind.get("rename", ())}
        | ({key: "s"} if field == "renamed" else {}),
        "dropped": by_kind.get("drop", []) + ([key] if field == "dropped" else []),
        "functions": dict.fromkeys(by_kind.get("split", ()), split),
    }
    if field == "renamed":
        arguments["renamed"][key] = "seen"
    if field in ("number", "broken"):
        arguments["functions"][key] = int if field == "number" else (lambda value: object())
    is_renamed_only = {"keep", "rename"} >= {*kinds} and field in (None, "renamed")
    for info in await storage.list_infos():
        before = await contents(storage)
        try:
            migration = await new.migrate(info, **arguments, checkpoint_storage=storage)
        except MigrationError as refused:
            error = refused
            event("refused")
        else:
            assert field != "broken"
            event("continued")
            outputs = await outputs_from(new, await migration.apply(), storage)
            if is_renamed_only:
                expected = await outputs_from(build(names, edges, fan_in), info, storage)
                assert list(map(len, outputs)) == list(map(len, expected))
            continue
        assert not is_renamed_only, error
        assert error.checkpoint_id == info.checkpoint_id
        assert error.name is not None
        assert before == await contents(storage)


async def interrupted(workflow: Workflow, storage: InMemoryCheckpointStorage, supersteps: int) -> None:
    run = workflow.start([], checkpoint_storage=storage)
    for _ in range(supersteps):
        if not run.is_over:
            await run.step()
    await run.cancel()


async def contents(storage: InMemoryCheckpointStorage) -> list[Any]:
    return [await storage.load(each.checkpoint_id) for each in await storage.list_infos()]


async def outputs_from(workflow: Workflow, info: CheckpointInfo, storage: InMemoryCheckpointStorage) -> list[Any]:
    result = await workflow.run(checkpoint_id=info, checkpoint_storage=storage)
    return result.get_outputs()
