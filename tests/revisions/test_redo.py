"""A run is redone with changed code on recorded answers; no request is sent that was recorded or not allowed."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any, Never

import pytest

from agentbench import (
    Agent,
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    RunOptions,
    SQLCheckpointStorage,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
    tool,
)
from agentbench.checkpoints import delete_chain, list_infos, list_workflow_names
from agentbench.revisions import ModelRecording, RedoError, UnrecordedCallError
from agentbench.stategraph import END, START, AgentState, CompiledGraph, StateGraph
from agentbench.testing import Call, CassetteChatClient, ScriptedChatClient
from agentbench.workflows.run.run import WorkflowRun
from tests.parts.errors import raises
from tests.parts.executors import Pass

RECORD = RunOptions(record=True)


class Counted(ScriptedChatClient):
    """Answers each request with its number."""

    def __init__(self) -> None:
        super().__init__([lambda messages, _: f"{messages[-1].text}!"], on_exhausted="repeat_last")


def chain(client: Any, *, second: str = "Answer.") -> Workflow:
    first = Agent(client, name="first", id="first", instructions="Read.")
    last = Agent(client, name="last", id="last", instructions=second)
    return WorkflowBuilder(start_executor=first, name="chain").add_edge(first, last).build()


async def recorded(workflow: Workflow, message: Any = "late", storage: Any = None) -> WorkflowRun:
    run = workflow.start(message, checkpoint_storage=storage or InMemoryCheckpointStorage(), options=RECORD)
    await run.result()
    return run


def texts(run: WorkflowRun) -> list[str]:
    return [output.text for output in run.result_so_far().get_outputs()]


async def test_a_redo_with_unchanged_prompts_makes_no_model_call() -> None:
    client = Counted()
    run = await recorded(chain(client))
    assert len(client.calls) == 2
    redone = await run.redo(since=1, workflow=chain(client), new_calls="refuse")
    await redone.result()
    assert texts(redone) == texts(run)[1:]
    assert len(client.calls) == 2


async def test_a_changed_prompt_stops_at_the_first_new_request_and_sends_it_when_allowed() -> None:
    client = Counted()
    run = await recorded(chain(client))
    redone = await run.redo(workflow=chain(client, second="Answer briefly."))
    report = await redone.step()
    assert (redone.new_call.executor_id, redone.new_call.prompt) == ("last", "late")
    assert getattr(report.pause_reason, "kind", None) == "new_call"
    await redone.result()
    assert len(client.calls) == 2
    redone.allow_new_calls("this")
    await redone.result()
    assert (len(client.calls), redone.new_call, str(redone.status)) == (3, None, "IDLE")
    assert len(redone.recording.calls) == 2


async def test_a_refused_request_is_in_the_error() -> None:
    client = Counted()
    run = await recorded(chain(client))
    redone = await run.redo(since=1, workflow=chain(client, second="Other."), new_calls="refuse")
    with raises(UnrecordedCallError, executor_id="last") as caught:
        await redone.result()
    assert "Other." in str(caught.value.request)
    assert len(client.calls) == 2


async def test_a_number_allows_so_many_new_requests() -> None:
    client = Counted()
    sides = [Agent(client, name=name, id=name) for name in "abc"]

    def build(instructions: str) -> Workflow:
        @executor(id="start")
        async def start(text: str, ctx: WorkflowContext[str]) -> None:
            await ctx.send_message(text)

        agents = [Agent(client, name=side.name, id=side.name, instructions=instructions) for side in sides]
        return WorkflowBuilder(start_executor=start).add_fan_out_edges(start, agents).build()

    run = await recorded(build("One."))
    redone = await run.redo(since=1, workflow=build("Two."), new_calls=2)
    with raises(UnrecordedCallError):
        await redone.result()
    assert len(client.calls) == 5


async def test_concurrent_and_streamed_requests_wait_one_by_one_for_permission() -> None:
    client = Counted()

    def build(instructions: str) -> Workflow:
        @executor(id="start")
        async def start(text: str, ctx: WorkflowContext[str]) -> None:
            await ctx.send_message(text)

        agents = [Agent(client, name=name, id=name, instructions=instructions) for name in "abc"]
        return WorkflowBuilder(start_executor=start).add_fan_out_edges(start, agents).build()

    run = await recorded(build("One."))
    redone = await run.redo(since=1, workflow=build("Two."))
    asked = []
    async for _ in redone.watch_stream():
        pass
    while redone.new_call is not None:
        asked.append(redone.new_call.executor_id)
        assert len(client.calls) == 3 + len(asked) - 1
        redone.allow_new_calls("this")
        await redone.result()
    assert (sorted(asked), len(client.calls)) == (["a", "b", "c"], 6)


async def test_all_that_follow_are_sent_after_one_permission_and_a_stop_sends_none() -> None:
    client = Counted()
    run = await recorded(chain(client))
    for stops in (False, True):
        before = len(client.calls)
        redone = await run.redo(since=1, workflow=chain(client, second=f"Other {stops}."))
        await redone.step()
        if stops:
            redone.stop()
        else:
            redone.allow_new_calls("all")
        await redone.result()
        assert len(client.calls) == before + (not stops)


async def test_tools_are_called_again_and_the_model_is_not() -> None:
    called: list[str] = []

    @tool
    def find(city: str) -> str:
        """Find a parcel."""
        called.append(city)
        return f"in {city}"

    client = ScriptedChatClient([Call("find", {"city": "Ulm"}), "It is in Ulm."])
    agent = Agent(client, name="a", id="a", tools=[find])

    @executor(id="start")
    async def start(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)

    workflow = WorkflowBuilder(start_executor=start).add_edge(start, agent).build()
    run = await recorded(workflow)
    redone = await run.redo(since=1, workflow=workflow, new_calls="refuse")
    await redone.result()
    assert (texts(redone), called, len(client.calls)) == (texts(run), ["Ulm", "Ulm"], 2)


async def test_the_calls_of_a_sub_workflow_are_recorded() -> None:
    client = Counted()

    @executor(id="start")
    async def start(text: str, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message(text)

    inner = WorkflowExecutor(chain(client), id="inner")
    workflow = WorkflowBuilder(start_executor=start).add_edge(start, inner).build()
    run = await recorded(workflow)
    redone = await run.redo(since=1, workflow=workflow, new_calls="refuse")
    await redone.result()
    assert (len(client.calls), len(redone.recording.calls)) == (2, 2)


def _storage(kind: str, folder: Path) -> Any:
    return FileCheckpointStorage(folder / "runs") if kind == "file" else SQLCheckpointStorage(folder / "runs.db")


@pytest.mark.parametrize("kind", ["file", "sql"])
async def test_another_process_redoes_a_stored_run_from_its_recording(kind: str, tmp_path: Path) -> None:
    client = Counted()
    run = await recorded(chain(client), storage=_storage(kind, tmp_path))
    reopened = chain(client).start(
        checkpoint_storage=_storage(kind, tmp_path), resume_from=run.checkpoints[-1], options=RECORD
    )
    redone = await reopened.redo(since=1, workflow=chain(client), new_calls="refuse")
    await redone.result()
    assert (texts(redone), len(client.calls)) == (texts(run)[1:], 2)
    changed = await reopened.redo(workflow=chain(client, second="Shorter."), new_calls="refuse")
    with raises(UnrecordedCallError, executor_id="last"):
        await changed.result()


async def test_nothing_to_redo_is_an_error_that_names_since() -> None:
    client = Counted()
    run = await recorded(chain(client))
    with raises(RedoError, changed=()):
        await run.redo(workflow=chain(client))


def test_secrets_are_not_in_a_recording(tmp_path: Path) -> None:
    client = Counted()
    client.additional_properties["api_key"] = "sk-1234567890abcdef"
    storage = FileCheckpointStorage(tmp_path)
    run = asyncio.run(recorded(chain(client), "my key is sk-1234567890abcdef", storage))
    run.recording.save(tmp_path / "calls.jsonl")
    recordings = "".join(path.read_text() for path in tmp_path.rglob("*recorded*") if path.is_file())
    assert recordings
    assert "sk-1234567890abcdef" not in recordings + (tmp_path / "calls.jsonl").read_text() + repr(run.recording.calls)


async def test_a_full_recording_warns_once_and_the_run_goes_on() -> None:
    run = chain(Counted()).start("late", options=RunOptions(record=True, record_limit=10))
    result = await run.result()
    assert len(result.get_outputs()) == 2
    assert len([e for e in run.events if e.type == "warning" and "record_limit" in str(e.data)]) == 1
    assert run.recording.calls == []


async def test_a_saved_recording_is_a_cassette(tmp_path: Path) -> None:
    client = Counted()
    run = await recorded(chain(client))
    path = tmp_path / "calls.jsonl"
    run.recording.save(path)
    replayed = await chain(CassetteChatClient(path)).run("late")
    assert [output.text for output in replayed.get_outputs()] == texts(run)
    again = chain(client).start("late", options=RunOptions(record=ModelRecording.load(path)))
    await again.result()
    assert (texts(again), len(client.calls)) == (texts(run), 2)


async def test_a_plain_run_records_nothing_and_computes_no_hash(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[object] = []

    def count(graph: object) -> dict[str, str]:
        computed.append(graph)
        return {}

    monkeypatch.setattr("agentbench.workflows.graph.code_hash.code_hashes", count)
    storage = InMemoryCheckpointStorage()
    workflow = chain(Counted())
    await workflow.run("late", checkpoint_storage=storage)
    checkpoints = await storage.list_checkpoints(workflow_name="chain")
    assert computed == []
    assert not any({"code_hashes", "input"} & checkpoint.metadata.keys() for checkpoint in checkpoints)
    for _ in range(3):
        run = workflow.start("late", checkpoint_storage=storage)
        await run.result()
    assert (len(computed), run.recording) == (1, None)


def test_a_redo_is_driven_from_another_event_loop() -> None:
    client = Counted()
    run = asyncio.run(recorded(chain(client)))
    redone = asyncio.run(run.redo(since=1, workflow=chain(client), new_calls="refuse"))
    asyncio.run(redone.result())
    assert len(client.calls) == 2


class _Ask(Executor):
    """Asks a person, then a model."""

    def __init__(self, client: Any, question: str = "Refund?", id: str = "ask") -> None:  # noqa: A002
        super().__init__(id)
        self._client, self._question = client, question

    @handler
    async def ask(self, text: str, ctx: WorkflowContext) -> None:
        await ctx.request_info(f"{self._question} {text}", bool)

    @response_handler
    async def decide(self, question: str, answer: bool, ctx: WorkflowContext[Never, str]) -> None:
        response = await self._client.get_response(f"{question} {answer}")
        await ctx.yield_output(response.text)


async def test_the_answers_of_people_are_given_again_to_equal_requests_only() -> None:
    client = Counted()
    run = (
        WorkflowBuilder(start_executor=_Ask(client))
        .build()
        .start("late", checkpoint_storage=InMemoryCheckpointStorage(), options=RECORD)
    )
    await run.step()
    await run.respond(run.pending_requests[0], True)
    await run.result()
    same = await run.redo(since=0, workflow=WorkflowBuilder(start_executor=_Ask(client)).build(), new_calls="refuse")
    assert (await same.result()).get_outputs() == ["Refund? late True!"]
    other = WorkflowBuilder(start_executor=_Ask(client, "Pay back?")).build()
    asked = await run.redo(since=0, workflow=other, new_calls="refuse")
    await asked.result()
    assert [request.data for request in asked.pending_requests] == ["Pay back? late"]
    assert len(client.calls) == 1


async def test_a_withdrawal_is_repeated_where_the_request_is_equal() -> None:
    def build() -> Workflow:
        asks = [_Ask(Counted(), question, id=question) for question in ("Refund?", "Sure?")]
        return WorkflowBuilder(start_executor=(start := Pass("start"))).add_fan_out_edges(start, asks).build()

    run = build().start("late", checkpoint_storage=InMemoryCheckpointStorage(), options=RECORD)
    await run.result()
    await run.cancel_pending_requests(next(one for one in run.pending_requests if one.data.startswith("Sure?")))
    await run.respond(run.pending_requests[0], True)
    outputs = (await run.result()).get_outputs()

    redone = await run.redo(since=0, workflow=build(), new_calls="refuse")
    assert (await redone.result()).get_outputs() == outputs == ["Refund? late>start True!"]
    assert redone.pending_requests == []


async def test_the_run_of_a_state_graph_is_redone_without_model_calls() -> None:
    client = Counted()

    class State(AgentState):
        note: str = ""

    def build(prefix: str) -> CompiledGraph[State]:
        async def read(state: State) -> dict[str, str]:
            return {"note": (await client.get_response("Read.")).text}

        async def write(state: State) -> dict[str, str]:
            return {"note": (await client.get_response(prefix + state.note)).text}

        graph = StateGraph(State).add_node("read", read).add_node("write", write)
        return graph.add_edge(START, "read").add_edge("read", "write").add_edge("write", END).compile()

    run = await build("Write ").astart({}, {"thread_id": "t"}, record=True)
    await run.result()
    since = next(info.iteration for info in run.checkpoints if "write" in info.writers)
    redone = await run.redo(since=since, workflow=build("Write "), new_calls="refuse")
    await redone.result()
    assert (redone.state["note"], len(client.calls)) == (run.state["note"], 2)
    changed = await run.redo(workflow=build("Send "))
    await changed.result()
    assert (changed.new_call.prompt, len(client.calls)) == ("Send Read.!", 2)


@pytest.mark.parametrize("kind", ["file", "sql"])
async def test_recorded_calls_are_not_listed_and_are_deleted_with_their_chain(kind: str, tmp_path: Path) -> None:
    storage = _storage(kind, tmp_path)
    await recorded(chain(Counted()), storage=storage)
    assert await list_workflow_names(storage) == ["chain"]
    assert {info.workflow_name for info in await list_infos(storage)} == {"chain"}
    await delete_chain(storage, "chain")
    assert await storage.list_workflow_names() == []


async def test_wrong_arguments_and_unknown_changes_are_explained() -> None:
    client = Counted()
    run = await recorded(chain(client))
    with pytest.raises(TypeError, match="expected a workflow"):
        await run.redo(since=1, workflow="module:workflow")
    plain = chain(client).start("late", options=RunOptions(record=True, observe=False))
    await plain.result()
    with pytest.raises(RedoError, match="not observed"):
        await plain.redo(workflow=chain(client))
