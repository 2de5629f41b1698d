"""Checkpoints as the guides use them: snippets through the front door, and a storage that one writes oneself."""

import json
from typing import Any

import pytest

from agentbench import (
    CheckpointID,
    CheckpointInfo,
    CheckpointManager,
    CheckpointStorage,
    Executor,
    InMemoryCheckpointStorage,
    InProcessExecution,
    WorkflowBuilder,
    WorkflowCheckpoint,
    WorkflowCheckpointException,
    WorkflowContext,
    WorkflowRunState,
    handler,
    response_handler,
)
from agentbench.exceptions import GraphMismatchError
from agentbench.testing import storage_suite

# ---- executors as the guides write them ------------------------------------------------------------


class CustomExecutor(Executor):
    """Keeps what it has seen, in checkpoints too."""

    def __init__(self, id: str) -> None:  # noqa: A002 - the name of the base class
        super().__init__(id=id)
        self._messages: list[str] = []

    @handler
    async def handle(self, message: str, ctx: WorkflowContext[str, list[str]]) -> None:
        self._messages.append(message)
        await ctx.send_message(f"{message}{self.id}")
        await ctx.yield_output(list(self._messages))

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"messages": self._messages}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self._messages = state.get("messages", [])


class Review(Executor):
    @handler
    async def ask(self, draft: str, ctx: WorkflowContext) -> None:
        await ctx.request_info(draft, str)

    @response_handler
    async def decide(self, draft: str, verdict: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{draft}: {verdict}")


def guide_workflow(**settings: Any) -> Any:
    """One executor after another, with a branch at the second."""
    start_executor, executor_b, executor_c, end_executor = (CustomExecutor(name) for name in "abce")
    builder = WorkflowBuilder(start_executor=start_executor, name="guide", **settings)
    builder.add_edge(start_executor, executor_b)
    builder.add_edge(executor_b, executor_c)
    builder.add_edge(executor_b, end_executor)
    return builder.build()


# ---- capture, resume, rehydrate --------------------------------------------------------------------


async def test_checkpoints_are_read_from_the_storage_after_a_run():
    checkpoint_storage = InMemoryCheckpointStorage()
    workflow = guide_workflow(checkpoint_storage=checkpoint_storage)
    async for _ in workflow.run("x", stream=True):
        pass
    checkpoints = await checkpoint_storage.list_checkpoints(workflow_name=workflow.name)
    assert [c.iteration_count for c in checkpoints] == [0, 1, 2, 3]
    assert checkpoints[-1].state["_executor_state"]["c"] == {"messages": ["xab"]}


async def test_the_same_instance_resumes_from_any_of_them():
    checkpoint_storage = InMemoryCheckpointStorage()
    workflow = guide_workflow(checkpoint_storage=checkpoint_storage)
    await workflow.run("x")
    saved_checkpoint = (await checkpoint_storage.list_checkpoints(workflow_name=workflow.name))[1]
    outputs = [
        event.data
        async for event in workflow.run(checkpoint_id=saved_checkpoint.checkpoint_id, stream=True)
        if event.type == "output"
    ]
    assert outputs == [["xab"], ["xab"]]


async def test_a_new_instance_rehydrates_without_checkpointing_of_its_own():
    checkpoint_storage = InMemoryCheckpointStorage()
    await guide_workflow(checkpoint_storage=checkpoint_storage).run("x")
    saved_checkpoint = (await checkpoint_storage.list_checkpoints(workflow_name="guide"))[1]
    workflow = guide_workflow()
    async for _ in workflow.run(
        checkpoint_id=saved_checkpoint.checkpoint_id, checkpoint_storage=checkpoint_storage, stream=True
    ):
        pass
    assert workflow.executors["a"]._messages == ["x"]
    assert workflow.executors["e"]._messages == ["xab"]


async def test_a_run_handle_tells_of_its_checkpoints_while_it_runs_and_after():
    checkpoint_manager = CheckpointManager.create_in_memory()
    run = await InProcessExecution.run_streaming(guide_workflow(), "x", checkpoint_manager)
    told: list[CheckpointInfo] = []
    async for event in run.watch_stream():
        if event.type == "superstep_completed":
            assert event.completion_info is not None
            assert event.completion_info.checkpoint is not None
            told.append(event.completion_info.checkpoint)
    assert told == run.checkpoints[1:]
    assert [info.iteration for info in run.checkpoints] == [0, 1, 2, 3]


async def test_a_run_goes_back_on_the_same_handle_and_a_new_run_starts_from_the_same_point():
    checkpoint_manager = CheckpointManager.create_in_memory()
    run = await InProcessExecution.run_streaming(guide_workflow(), "x", checkpoint_manager)
    first = [event.data async for event in run.watch_stream() if event.type == "output"]
    saved_checkpoint = run.checkpoints[1]
    await run.restore_checkpoint(saved_checkpoint)
    again = [event.data async for event in run.watch_stream() if event.type == "output"]
    new_run = await InProcessExecution.resume_streaming(guide_workflow(), saved_checkpoint, checkpoint_manager)
    anew = [event.data async for event in new_run.watch_stream() if event.type == "output"]
    assert first[2:] == again == anew == [["xab"], ["xab"]]


async def test_a_run_that_cannot_resume_starts_afresh():
    storage = InMemoryCheckpointStorage()
    await guide_workflow(checkpoint_storage=storage).run("x")
    changed = WorkflowBuilder(start_executor=CustomExecutor("a"), name="guide", checkpoint_storage=storage).build()

    async def robust_run() -> Any:
        checkpoint = await storage.get_latest(workflow_name=changed.name)
        assert checkpoint is not None
        try:
            return await changed.run_from_checkpoint(checkpoint.checkpoint_id)
        except GraphMismatchError:
            return await changed.run("fresh")

    assert (await robust_run()).outputs == [["fresh"]]


# ---- a storage of one's own ------------------------------------------------------------------------


class FakeRedis:
    """The five commands that a sketch of a storage needs, over a dict; answers are bytes, as from a server."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.lists: dict[str, list[str]] = {}

    async def set(self, key: str, value: str) -> bool:
        self.texts[key] = value
        return True

    async def get(self, key: str) -> bytes | None:
        return self.texts[key].encode() if key in self.texts else None

    async def delete(self, key: str) -> int:
        return int(self.texts.pop(key, None) is not None)

    async def rpush(self, key: str, value: str) -> int:
        self.lists.setdefault(key, []).append(value)
        return len(self.lists[key])

    async def lrange(self, key: str, first: int, last: int) -> list[bytes]:
        kept = self.lists.get(key, [])
        return [each.encode() for each in (kept[first:] if last == -1 else kept[first : last + 1])]

    async def aclose(self) -> None:
        """Nothing is open."""


class SketchedStorage:
    """A storage on a client of a key-value server: six methods, no base class. Leaves out nothing but the encoding."""

    def __init__(self, client: Any) -> None:
        self._client = client

    def write(self, checkpoint: WorkflowCheckpoint) -> str:
        return checkpoint.to_json()

    def read(self, raw: str) -> WorkflowCheckpoint:
        return WorkflowCheckpoint.from_json(raw)

    async def save(self, checkpoint: WorkflowCheckpoint) -> CheckpointID:
        await self._client.set(f"checkpoint:{checkpoint.checkpoint_id}", self.write(checkpoint))
        await self._client.rpush(f"workflow:{checkpoint.workflow_name}", checkpoint.checkpoint_id)
        return checkpoint.checkpoint_id

    async def load(self, checkpoint_id: CheckpointID) -> WorkflowCheckpoint:
        raw = await self._client.get(f"checkpoint:{checkpoint_id}")
        if raw is None:
            raise WorkflowCheckpointException(f"No checkpoint with id: {checkpoint_id}")
        return self.read(raw.decode())

    async def list_checkpoint_ids(self, *, workflow_name: str) -> list[CheckpointID]:
        return [each.decode() for each in await self._client.lrange(f"workflow:{workflow_name}", 0, -1)]

    async def list_checkpoints(self, *, workflow_name: str) -> list[WorkflowCheckpoint]:
        return [await self.load(each) for each in await self.list_checkpoint_ids(workflow_name=workflow_name)]

    async def delete(self, checkpoint_id: CheckpointID) -> bool:
        return bool(await self._client.delete(f"checkpoint:{checkpoint_id}") > 0)

    async def get_latest(self, *, workflow_name: str) -> WorkflowCheckpoint | None:
        ids = await self._client.lrange(f"workflow:{workflow_name}", -1, -1)
        return await self.load(ids[0].decode()) if ids else None


class TextsForTheRest(SketchedStorage):
    """Encodes as the shortest sketch does: whatever JSON lacks becomes a text."""

    def write(self, checkpoint: WorkflowCheckpoint) -> str:
        return json.dumps(checkpoint.to_dict(), default=str)

    def read(self, raw: str) -> WorkflowCheckpoint:
        return WorkflowCheckpoint.from_dict(json.loads(raw))


class DictsForTheRest(TextsForTheRest):
    """Encodes messages and requests as dicts of plain values."""

    def write(self, checkpoint: WorkflowCheckpoint) -> str:
        return json.dumps(checkpoint.to_dict(), default=lambda value: value.to_dict())


on_each_client = pytest.mark.parametrize("kind", ["dict", "server"])


@pytest.fixture
def server_url(kind: str, request: pytest.FixtureRequest) -> str | None:
    """Where the server is, for what runs on one."""
    return request.getfixturevalue("redis_url") if kind == "server" else None


def connected(server_url: str | None) -> Any:
    if server_url is None:
        return FakeRedis()
    return pytest.importorskip("redis.asyncio", reason="redis is not installed").Redis.from_url(server_url)


@on_each_client
@pytest.mark.parametrize("storage_class", [SketchedStorage, DictsForTheRest])
async def test_a_sketched_storage_resumes_a_run_in_the_middle(storage_class, server_url):
    client = connected(server_url)
    storage = storage_class(client)
    assert isinstance(storage, CheckpointStorage)
    whole = await guide_workflow(checkpoint_storage=storage).run("x")
    checkpoints = await storage.list_checkpoints(workflow_name="guide")
    assert [c.metadata["seq"] for c in checkpoints] == [1, 2, 3, 4]
    for checkpoint, left in zip(checkpoints, (1, 2, 4, 4), strict=True):
        result = await guide_workflow().run(checkpoint_id=checkpoint.checkpoint_id, checkpoint_storage=storage)
        assert result.outputs == whole.outputs[left:]
    await client.aclose()


@on_each_client
@pytest.mark.parametrize("storage_class", [SketchedStorage, DictsForTheRest])
async def test_a_question_survives_a_sketched_storage(storage_class, server_url):
    client = connected(server_url)
    storage = storage_class(client)

    def make_flow() -> Any:
        return WorkflowBuilder(name="review", checkpoint_storage=storage, start_executor=Review("review")).build()

    (ask,) = (await make_flow().run("draft")).get_request_info_events()
    latest = await storage.get_latest(workflow_name="review")
    assert latest is not None
    (asked,) = latest.pending_request_info_events.values()
    assert (asked.request_type, asked.response_type) == (str, str)
    done = await make_flow().run(checkpoint_id=latest.checkpoint_id, responses={ask.request_id: "ok"})
    assert done.outputs == ["draft: ok"]
    assert done.get_final_state() is WorkflowRunState.IDLE
    await client.aclose()


async def test_texts_instead_of_messages_bring_back_finished_runs_and_say_so_of_others():
    storage = TextsForTheRest(FakeRedis())
    workflow = guide_workflow(checkpoint_storage=storage)
    await workflow.run("x")
    checkpoints = await storage.list_checkpoints(workflow_name="guide")
    finished = guide_workflow(checkpoint_storage=storage)
    result = await finished.run(checkpoint_id=checkpoints[-1].checkpoint_id)
    assert result.get_final_state() is WorkflowRunState.IDLE
    assert finished.executors["a"]._messages == ["x"]
    with pytest.raises(WorkflowCheckpointException, match=r"message 0 of 'a' came back .* as a str.*to_json\(\)"):
        await guide_workflow(checkpoint_storage=storage).run(checkpoint_id=checkpoints[0].checkpoint_id)


async def test_the_published_suite_tells_what_the_sketch_forgets():
    forgotten = []
    for check in storage_suite.checks():
        try:
            await check(lambda: SketchedStorage(FakeRedis()))
        except AssertionError:
            forgotten.append(check.name)
    assert forgotten == ["deleting_removes_a_checkpoint_once", "saving_an_id_again_replaces_the_checkpoint"]


async def test_a_run_saves_behind_a_latest_checkpoint_that_the_sketch_has_lost():
    storage = SketchedStorage(FakeRedis())
    await guide_workflow(checkpoint_storage=storage).run("x")
    latest = await storage.get_latest(workflow_name="guide")
    assert latest is not None
    assert await storage.delete(latest.checkpoint_id)
    result = await guide_workflow(checkpoint_storage=storage).run("y")
    (warning,) = [event.data for event in result if event.type == "warning"]
    assert "The latest checkpoint of chain 'guide' cannot be read: No checkpoint with id" in warning
    newest = await storage.get_latest(workflow_name="guide")
    assert newest is not None
    assert newest.metadata["seq"] == 8


async def test_the_chain_of_a_sketched_storage_is_sorted_by_time():
    storage = SketchedStorage(FakeRedis())
    await guide_workflow(checkpoint_storage=storage).run("x")
    history = sorted(await storage.list_checkpoints(workflow_name="guide"), key=lambda c: c.timestamp)
    assert [c.previous_checkpoint_id for c in history[1:]] == [c.checkpoint_id for c in history[:-1]]
