"""Old checkpoints in a new graph: the preview, what moves, what is refused, and the checkpoint that is saved."""

from __future__ import annotations

import threading
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest

from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import CheckpointNotFoundError, MigrationError, WorkflowBusyError
from agentbench.revisions import ExecutorContent
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.nested import WorkflowExecutor
from agentbench.workflows.run.workflow import Workflow
from tests.parts.errors import raises
from tests.workflows.persist.test_migration import Pass, chained, saved


class Gather(Pass):
    @handler
    async def all(self, texts: list[str], ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output("+".join(sorted(texts)))


class Number(Executor):
    @handler
    async def go(self, number: int, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(str(number))


class Measure(Executor):
    @handler
    async def go(self, text: str, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(len(text))


async def outputs(workflow: Workflow, info: CheckpointInfo, storage: InMemoryCheckpointStorage) -> list[Any]:
    return (await workflow.run(checkpoint_id=info, checkpoint_storage=storage)).get_outputs()


async def before(storage: InMemoryCheckpointStorage, *ids: str, supersteps: int = 2) -> CheckpointInfo:
    return await saved(chained(*ids), storage, supersteps)


async def test_renamed_executors_keep_their_state_their_messages_and_their_requests() -> None:
    storage = InMemoryCheckpointStorage()
    info = await before(storage, "a", "b", "c")
    new = chained("first", "second", "c")
    migration = await new.migrate(info, renamed={"a": "first", "b": "second"}, checkpoint_storage=storage)
    assert (migration.unchanged, migration.new, migration.dropped) == (("c",), (), ())
    assert migration.renamed == {"a": "first", "b": "second"}
    assert len(migration.diff) == 0
    copy = await migration.apply()
    assert (copy.previous_checkpoint_id, copy.seq, copy.source) == (info.checkpoint_id, info.seq + 1, "update")
    assert await outputs(new, copy, storage) == ["xab"]
    asked = await before(storage, "a", "ask")
    renamed = chained("a", "b")
    with raises(MigrationError, name="b2"):
        await renamed.migrate(asked, renamed={"ask": "b2"}, checkpoint_storage=storage)
    moved = await renamed.migrate(asked, renamed={"ask": "b"}, checkpoint_storage=storage)
    (request,) = moved.after.pending_request_info_events.values()
    assert request.source_executor_id == "b"


async def test_nothing_is_written_before_apply_and_it_applies_once() -> None:
    storage = InMemoryCheckpointStorage()
    info = await before(storage, "a", "b", "c")
    migration = await chained("a", "c").migrate(info, dropped=["b"], checkpoint_storage=storage)
    assert len(await storage.list_infos()) == 2
    await migration.apply()
    assert migration.applied == (await storage.list_infos())[-1]
    with raises(MigrationError, checkpoint_id=info.checkpoint_id):
        await migration.apply()
    assert len(await storage.list_infos()) == 3


async def test_the_loser_of_two_migrations_gets_a_busy_error() -> None:
    storage = InMemoryCheckpointStorage()
    info = await before(storage, "a", "b", "c")
    first, second = [await chained("a", "b", "c", "d").migrate(info, checkpoint_storage=storage) for _ in "12"]
    await second.apply()
    with pytest.raises(WorkflowBusyError):
        await first.apply()
    assert len(await storage.list_infos()) == 3


def to(*ids: str, state: dict[str, Any] | None = None) -> Callable[[ExecutorContent], list[ExecutorContent]]:
    """Hands everything over to the first of some executors, and a state to all."""

    def handed_over(old: ExecutorContent) -> list[ExecutorContent]:
        first = ExecutorContent(ids[0], state or old.state, old.received, [], old.requests)
        return [first, *(ExecutorContent(each, state or old.state) for each in ids[1:])]

    return handed_over


async def test_an_executor_can_be_split() -> None:
    storage = InMemoryCheckpointStorage()
    info = await before(storage, "a", "b", "c")
    new = chained("a", "b1", "b2", "c")
    split = {"b": to("b1", "b2", state={"got": 7})}
    migration = await new.migrate(info, functions=split, checkpoint_storage=storage)
    assert migration.new == ("b1", "b2")
    assert migration.after.messages == {}  # b had sent it; the function dropped what b sent
    earlier = (await storage.list_infos())[0]  # the message waits for b
    migration = await new.migrate(
        earlier, functions={"b": to("b1", "b2", state={"got": 7})}, checkpoint_storage=storage
    )
    assert await outputs(new, await migration.apply(), storage) == ["xa", "xab1", "xab1b2"]
    assert [executor.got for executor in new.get_executors_list()] == [1, 8, 8, 1]  # type: ignore[attr-defined]


async def test_a_waiting_message_to_an_executor_that_is_gone_is_refused_unless_a_function_takes_it() -> None:
    storage = InMemoryCheckpointStorage()
    await before(storage, "a", "b", "c")
    waits_for_b = (await storage.list_infos())[0]
    new = chained("a", "c")
    with raises(MigrationError, name="b", checkpoint_id=waits_for_b.checkpoint_id):
        await new.migrate(waits_for_b, dropped=["b"], checkpoint_storage=storage)
    migration = await new.migrate(waits_for_b, dropped=["c"], functions={"b": to("c")}, checkpoint_storage=storage)
    assert await outputs(new, await migration.apply(), storage) == ["xa"]


async def test_a_message_from_an_executor_that_is_gone_still_reaches_its_receiver() -> None:
    storage = InMemoryCheckpointStorage()
    info = await before(storage, "a", "b", "c")
    new = chained("a", "c")
    migration = await new.migrate(info, dropped=["b"], checkpoint_storage=storage)
    assert migration.dropped == ("executor 'b'",)
    assert await outputs(new, await migration.apply(), storage) == ["xab"]


async def test_a_message_that_no_executor_of_the_new_graph_takes_is_refused() -> None:
    storage = InMemoryCheckpointStorage()
    info = await before(storage, "a", "b", "c")
    b, number = Measure(id="b"), Number(id="c")
    new = WorkflowBuilder(start_executor=(a := Pass("a")), name="flow").add_edge(a, b).add_edge(b, number).build()
    with raises(MigrationError, name="c"):
        await new.migrate(info, checkpoint_storage=storage)

    def as_numbers(old: ExecutorContent) -> ExecutorContent:
        old.received = [len(message.data) for message in old.received]
        return old

    migration = await new.migrate(info, functions={"c": as_numbers}, checkpoint_storage=storage)
    assert [message.data for queued in migration.after.messages.values() for message in queued] == [3]


class Asker(Executor):
    @handler
    async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(text, str)

    @response_handler
    async def answered(self, asked: str, answer: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(answer)


async def test_a_sub_workflow_with_another_graph_is_refused_amid_its_run_unless_a_function_takes_it() -> None:
    def outer(*inner: str) -> Workflow:
        asks = [Asker(each) for each in inner]
        sub = WorkflowBuilder(start_executor=asks[0], name="inside")
        for one, other in pairwise(asks):
            sub.add_edge(one, other)
        ask = WorkflowExecutor(sub.build(), id="ask", propagate_request=True)
        return WorkflowBuilder(start_executor=ask, name="flow").add_edge(ask, Pass("end")).build()

    storage = InMemoryCheckpointStorage()
    run = outer("one").start("x", checkpoint_storage=storage)
    await run.result()
    info = run.checkpoints[-1]
    with raises(MigrationError, "sub-workflow", name="ask"):
        await outer("other").migrate(info, checkpoint_storage=storage)
    new = outer("one", "two")
    with raises(MigrationError, "functions=", name="ask"):
        await new.migrate(info, checkpoint_storage=storage)
    migration = await new.migrate(info, functions={"ask": lambda old: old}, checkpoint_storage=storage)
    answers = {run.pending_requests[0].request_id: "yes"}
    copy = await migration.apply()
    result = await new.run(checkpoint_id=copy, checkpoint_storage=storage, responses=answers)
    assert result.get_outputs() == ["yes"]


async def test_messages_that_wait_at_a_fan_in_follow_renames_and_new_sources() -> None:
    def fan(left: str, right: str, end: str) -> Workflow:
        start, one, two, more = Pass("start"), Pass(left), Pass(right), Pass("more")
        builder = WorkflowBuilder(start_executor=start, name="flow").add_edge(start, one).add_edge(start, more)
        return builder.add_edge(more, two).add_fan_in_edges([one, two], Gather(end)).build()

    storage = InMemoryCheckpointStorage()
    info = await saved(fan("l", "r", "end"), storage, 3)
    assert (await storage.load(info.checkpoint_id)).state["_fan_in_buffers"]
    new = fan("left", "right", "end2")
    names = {"l": "left", "r": "right", "end": "end2"}
    migration = await new.migrate(info, renamed=names, checkpoint_storage=storage)
    assert len(migration.diff) == 0
    expected = (await fan("l", "r", "end").run("x")).get_outputs()[-1:]
    assert (await outputs(new, await migration.apply(), storage))[-1:] == [expected[0]]


class Limit(Pass):
    """Stores a setting."""

    @handler
    async def go(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        ctx.set_state("limit", "3")
        ctx.set_state("old", text)
        await ctx.send_message(text)


async def test_fields_are_renamed_dropped_and_converted() -> None:
    storage = InMemoryCheckpointStorage()
    old = WorkflowBuilder(start_executor=(first := Limit("a")), name="flow").add_edge(first, Pass("b")).build()
    info = await saved(old, storage, 1)
    changes: dict[str, Any] = {"renamed": {"limit": "most"}, "dropped": ["old"], "functions": {"limit": int}}
    migration = await chained("a", "b", "c").migrate(info, **changes, checkpoint_storage=storage)
    assert {key: value for key, value in migration.after.state.items() if key[0] != "_"} == {"most": 3}
    assert (migration.renamed, migration.dropped) == ({"limit": "most"}, ("field 'old'",))
    assert [str(change) for change in migration.diff] == ["~ state.most: '3' -> 3", "- state.old = 'x'"]


async def test_a_field_takes_the_name_of_one_that_is_dropped() -> None:
    storage = InMemoryCheckpointStorage()
    old = WorkflowBuilder(start_executor=(first := Limit("a")), name="flow").add_edge(first, Pass("b")).build()
    info = await saved(old, storage, 1)
    migration = await old.migrate(info, renamed={"limit": "old"}, dropped=["old"], checkpoint_storage=storage)
    assert {key: value for key, value in migration.after.state.items() if key[0] != "_"} == {"old": "3"}


@pytest.mark.parametrize(
    ("renamed", "dropped"),
    [
        ({"limit": "old"}, []),
        ({"limit": "new", "old": "new"}, []),
        ({"limit": "_executor_state"}, []),
        ({"limit": "most"}, ["limit"]),
    ],
    ids=["a name that is taken", "one name for two", "a name of the engine", "renamed and dropped"],
)
async def test_names_of_fields_that_would_lose_a_value_are_refused(renamed: dict[str, str], dropped: list[str]) -> None:
    storage = InMemoryCheckpointStorage()
    old = WorkflowBuilder(start_executor=(first := Limit("a")), name="flow").add_edge(first, Pass("b")).build()
    info = await saved(old, storage, 1)
    with raises(MigrationError, "limit"):
        await old.migrate(info, renamed=renamed, dropped=dropped, checkpoint_storage=storage)


@pytest.mark.parametrize("argument", ["renamed", "dropped", "functions"])
async def test_unknown_names_are_refused_with_the_nearest_one(argument: str) -> None:
    storage = InMemoryCheckpointStorage()
    info = await before(storage, "alpha", "beta", "gamma")
    values: dict[str, Any] = {"renamed": {"gama": "beta"}, "dropped": ["gama"], "functions": {"gama": lambda old: old}}
    arguments = {argument: values[argument]}
    with raises(MigrationError, name="gama") as caught:
        await chained("alpha", "beta").migrate(info, **arguments, checkpoint_storage=storage)
    assert "Did you mean 'gamma'?" in str(caught.value)


async def same_later(old: ExecutorContent) -> ExecutorContent:
    return old


@pytest.mark.parametrize(
    "function",
    [
        lambda old: None,
        lambda old: ExecutorContent("nowhere"),
        lambda old: ExecutorContent("b", {"lock": threading.Lock()}),
        lambda old: ExecutorContent("a", {"got": 1}),
        lambda old: 1 / 0,
        same_later,
    ],
    ids=["nothing", "an unknown executor", "a lock", "a state that exists", "an error", "a coroutine"],
)
async def test_results_of_functions_that_cannot_work_are_refused_and_nothing_is_written(
    function: Callable[[ExecutorContent], Any],
) -> None:
    storage = InMemoryCheckpointStorage()
    info = await before(storage, "a", "b", "c")
    with pytest.raises(MigrationError):
        await chained("a", "b", "c", "d").migrate(info, functions={"b": function}, checkpoint_storage=storage)
    assert len(await storage.list_infos()) == 2


async def test_the_preview_shows_the_differences_with_secrets_masked() -> None:
    storage = InMemoryCheckpointStorage()
    info = await before(storage, "a", "b", "c")

    def changed(old: ExecutorContent) -> ExecutorContent:
        old.state |= {"got": 5, "api_key": "sk-verysecret"}
        return old

    migration = await chained("a", "b", "c", "d").migrate(info, functions={"b": changed}, checkpoint_storage=storage)
    text = str(migration)
    assert "new        d" in text
    assert "~ executors.b.got: 1 -> 5" in text
    assert "verysecret" not in text + repr(migration)


async def test_a_checkpoint_that_does_not_exist_is_an_error() -> None:
    with pytest.raises(CheckpointNotFoundError):
        await chained("a", "b").migrate("nothing", checkpoint_storage=InMemoryCheckpointStorage())
    with pytest.raises(ValueError, match="storage"):
        await chained("a", "b").migrate("nothing")
