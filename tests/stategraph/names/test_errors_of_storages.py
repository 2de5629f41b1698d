"""The names of errors that storages and runs raise."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import Content, FileCheckpointStorage, InMemoryCheckpointStorage, Message
from agentbench.exceptions import UnstorableValueError, WorkflowCheckpointException
from agentbench.stategraph.core.exceptions import (
    GraphStopRequested,
    ResourceNotFoundError,
    SchemaVersionError,
    SerializationError,
    StaleStateError,
    StorageError,
    TransientStorageError,
)
from agentbench.stategraph.core.graph import StateGraph, ToolNode
from agentbench.stategraph.core.state import AgentState, ExecutionStatus
from agentbench.stategraph.utils import END, START
from tests.parts.errors import raises

THREAD = {"thread_id": "t1"}


class Count(AgentState):
    n: int = 0
    what: Any = None


def counting(node: Any, **settings: Any) -> Any:
    return (
        StateGraph(Count, name="count")
        .add_node("up", node)
        .add_edge(START, "up")
        .add_edge("up", END)
        .compile(**settings)
    )


@pytest.mark.parametrize(
    "cls",
    [
        StorageError,
        TransientStorageError,
        SerializationError,
        ResourceNotFoundError,
        SchemaVersionError,
        StaleStateError,
        GraphStopRequested,
    ],
)
def test_programs_make_these_errors_too(cls: Any) -> None:
    error = cls(message="The disk is full.", error_code="DISK_001", context={"disk": "a"})

    assert (error.message, error.error_code, error.context) == ("The disk is full.", "DISK_001", {"disk": "a"})
    assert issubclass(cls, StorageError) or cls in (StaleStateError, GraphStopRequested)


def test_what_cannot_be_stored_or_found_is_a_storage_error(tmp_path: Any) -> None:
    storage = FileCheckpointStorage(tmp_path)
    app = counting(lambda state: {"what": object()}, checkpointer=storage)
    with raises(SerializationError) as caught:
        app.invoke("Hi", THREAD)
    assert isinstance(caught.value, (UnstorableValueError, WorkflowCheckpointException))
    with raises(ResourceNotFoundError, checkpoint_id="nothing"):
        app.get_state({**THREAD, "checkpoint_id": "nothing"})


def test_a_storage_that_cannot_be_reached_may_be_reached_later() -> None:
    class Down(InMemoryCheckpointStorage):
        async def save_if_head(self, checkpoint: Any, expected_seq: int) -> str:
            message = "no route"
            raise ConnectionError(message)

    with raises(TransientStorageError, "no route"):
        counting(lambda state: {"n": 1}, checkpointer=Down()).invoke("Hi", THREAD)


async def test_only_one_of_two_edits_of_the_same_state_wins() -> None:
    app = counting(lambda state: {"n": 1})
    config = {**THREAD, "on_busy": "raise"}
    await app.ainvoke("Hi", config)
    head = await app.threads.head_seq("t1")
    checkpoint = await app.threads.load(config)
    await app.aupdate_state(config, {"n": 2})
    with raises(StaleStateError, thread_id="t1"):
        await app.threads.replay(checkpoint, "t1", head)


@pytest.mark.parametrize("is_async", [True, False])
def test_a_node_stops_its_run_which_goes_on_later(is_async: bool) -> None:
    quota = [0]

    def up(state: Count) -> dict[str, int]:
        if quota.pop():
            return {"n": state.n + 1}
        message = "The quota is used up."
        raise GraphStopRequested(message)

    async def up_later(state: Count) -> dict[str, int]:
        return up(state)

    app = counting(up_later if is_async else up)
    stopped = app.invoke({"n": 1}, THREAD)
    assert (stopped.status, stopped.state.n) == (ExecutionStatus.INTERRUPTED, 1)
    assert stopped.state.execution_meta.interrupt_reason == "stop_requested"

    quota.append(1)
    assert app.invoke(None, THREAD).state.n == 2


@pytest.mark.parametrize("place", ["graph in a node", "tool"])
def test_a_graph_in_a_node_and_a_tool_stop_the_run_too(place: str) -> None:
    quota = [0]

    def spend() -> str:
        """Spend the quota."""
        if quota.pop():
            return "spent"
        message = "The quota is used up."
        raise GraphStopRequested(message)

    inner = StateGraph(Count).add_node("up", lambda state: {"what": spend()}).add_edge(START, "up").compile()
    app = counting(ToolNode([spend]) if place == "tool" else inner)
    call = Message("assistant", [Content.from_function_call("c1", "spend")])

    assert app.invoke({"messages": [call]}, THREAD).status is ExecutionStatus.INTERRUPTED
    quota.append(1)
    assert app.invoke(None, THREAD).status is ExecutionStatus.COMPLETED
    assert not quota
