"""A call without a thread id leaves nothing behind, unless there is something to continue."""

from __future__ import annotations

import gc
import operator
import warnings
from typing import Annotated, Any

import pytest

from agentbench import FileCheckpointStorage, InMemoryCheckpointStorage
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import GraphError, GraphRecursionError, NodeError
from agentbench.stategraph import AgentState, CompiledGraph, ExecutionStatus, StateGraph, interrupt
from tests.parts.errors import raises, warns


class Log(AgentState):
    log: Annotated[list[str], operator.add] = []


def make_graph(storage: Any = None, **options: Any) -> CompiledGraph[Log]:
    """A graph of two nodes, the first of which does what the input says."""
    failures = [True]

    async def first(state: Log) -> dict[str, Any]:
        if "ask" in state.log:
            return {"log": [interrupt("what?")]}
        if "fail" in state.log and failures:
            failures.clear()
            message = "down"
            raise RuntimeError(message)
        return {"log": ["first"]}

    async def second(state: Log) -> dict[str, Any]:
        return {"log": ["second"]}

    graph = StateGraph(Log, name="g").add_node("first", first).add_node("second", second)
    return graph.set_entry_point("first").add_edge("first", "second").compile(storage, **options)


@pytest.fixture(params=["memory", "given", "files"])
def storage(request: pytest.FixtureRequest, tmp_path: Any) -> CheckpointStorage | None:
    if request.param == "files":
        return FileCheckpointStorage(tmp_path)
    return InMemoryCheckpointStorage() if request.param == "given" else None


@pytest.mark.parametrize("durability", ["step", "task", "exit"])
async def test_a_call_that_completes_saves_nothing_and_does_not_warn(storage: Any, durability: Any) -> None:
    app = make_graph(storage, durability=durability)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = await app.ainvoke({"log": ["in"]})
        async for _ in app.astream({"log": ["in"]}):
            pass
    assert (result.state.log, result.status) == (["in", "first", "second"], ExecutionStatus.COMPLETED)
    assert result.checkpoint_id is None
    assert await app.alist_threads() == []
    assert await app.threads.storage.list_infos() == []


@pytest.mark.parametrize("name", ["aget_state", "aget_state_history", "aupdate_state", "afork"])
async def test_its_id_leads_to_an_error_that_names_it(name: str) -> None:
    app = make_graph()
    result = await app.ainvoke({"log": ["in"]})
    config = {"thread_id": result.thread_id}
    if name == "aget_state_history":
        assert len(await app.aget_state_history(config)) == 0
        return
    with pytest.raises(GraphError) as caught:
        await getattr(app, name)(config, **({"values": {}} if name == "aupdate_state" else {}))
    assert caught.value.thread_id == result.thread_id
    assert await app.astop(config) == {"ok": False, "running": False, "reason": "no-state"}


async def test_a_question_is_saved_once_and_answered_under_the_id_of_the_result(storage: Any) -> None:
    app = make_graph(storage)
    with warns(UserWarning, "thread_id") as warned:
        asked = await app.ainvoke({"log": ["ask"]})
    assert len(warned) == 1
    assert warned[0].filename == __file__
    assert asked.status is ExecutionStatus.INTERRUPTED
    assert await app.alist_threads() == [asked.thread_id]
    assert len(await app.aget_state_history({"thread_id": asked.thread_id})) == 1
    answered = await make_graph(app.storage).ainvoke({"resume": "this"}, {"thread_id": asked.thread_id})
    assert answered.state.log == ["ask", "this", "second"]


async def test_a_breakpoint_and_a_limit_are_continued(storage: Any) -> None:
    app = make_graph(storage, interrupt_before=["second"])
    with warns(UserWarning, "thread_id"):
        paused = await app.ainvoke({"log": ["in"]})
    assert (await app.ainvoke(None, {"thread_id": paused.thread_id})).state.log == ["in", "first", "second"]
    app = make_graph(storage)
    with warns(UserWarning, "thread_id"), pytest.raises(GraphRecursionError) as caught:
        await app.ainvoke({"log": ["in"]}, {"recursion_limit": 1})
    assert (await app.ainvoke(None, {"thread_id": caught.value.thread_id})).state.log == ["in", "first", "second"]


async def test_a_node_that_fails_runs_again(storage: Any) -> None:
    app = make_graph(storage)
    with warns(UserWarning, "thread_id"), pytest.raises(NodeError) as caught:
        await app.ainvoke({"log": ["fail"]})
    assert (await app.ainvoke(None, {"thread_id": caught.value.thread_id})).state.log == ["fail", "first", "second"]


async def test_an_input_that_does_not_fit_is_no_reason_to_save() -> None:
    app = make_graph()
    with pytest.raises(GraphError):
        await app.ainvoke({"log": 5})
    assert await app.alist_threads() == []


@pytest.mark.filterwarnings("ignore:The call has no thread_id")
async def test_the_last_hundred_are_kept_and_those_that_were_continued_by_their_id() -> None:
    app = make_graph()
    first, second = [await app.ainvoke({"log": ["ask"]}) for _ in range(2)]
    await app.ainvoke({"resume": "this"}, {"thread_id": first.thread_id})
    last = [await app.ainvoke({"log": ["ask"]}) for _ in range(100)]
    kept = {first.thread_id, *(each.thread_id for each in last)}
    assert set(await app.alist_threads()) == kept
    assert second.thread_id not in kept


async def test_a_handle_gets_an_id_and_saves_as_with_one() -> None:
    app = make_graph()
    run = await app.astart({"log": ["in"]})
    await run.result()
    (thread_id,) = await app.alist_threads()
    assert (await app.aget_state({"thread_id": thread_id})).values.log == ["in", "first", "second"]


async def test_a_checkpoint_without_its_thread_is_refused() -> None:
    with raises(ValueError, "thread_id"):
        await make_graph().ainvoke(None, {"checkpoint_id": "cp"})


async def test_nothing_remains_in_memory_of_calls_that_complete() -> None:
    app = make_graph()

    async def count_objects(calls: int) -> int:
        for _ in range(calls):
            await app.ainvoke({"log": ["in"]})
        gc.collect()
        return len(gc.get_objects())

    before = await count_objects(20)
    assert await count_objects(100) - before < 50
