"""AgentState: its fields, status and lifecycle, and what a subclass may declare."""

from __future__ import annotations

import copy
import operator
from typing import Annotated, Any, Optional

import pytest
from annotated_types import Ge
from pydantic import AfterValidator, Field

from agentbench import Message
from agentbench.exceptions import GraphError
from agentbench.stategraph.graph import StateGraph
from agentbench.stategraph.reducers import Reducer, remove_tool_messages, replace_value
from agentbench.stategraph.state import END, START, AgentState, ExecutionState, ExecutionStatus, StopRequestStatus
from tests.parts.errors import raises, warns


def test_a_new_state_is_empty_and_runs():
    state = AgentState()
    assert state.context == []
    assert state.context_summary is None
    assert state.execution_meta.current_node == START
    assert state.is_running()
    assert not state.is_interrupted()
    assert not state.is_stopped_requested()


def test_lifecycle():
    state = AgentState()
    state.set_interrupt(
        "review", "interrupt_before: review", ExecutionStatus.INTERRUPTED_BEFORE, {"n": 1}, when="before"
    )
    assert state.is_interrupted()
    assert state.execution_meta.interrupted_node == "review"
    assert state.execution_meta.interrupt_data == {"n": 1}
    state.clear_interrupt()
    assert state.is_running()
    assert state.execution_meta == ExecutionState(current_node=START)
    state.advance_step()
    state.set_current_node("judge")
    assert (state.execution_meta.step, state.execution_meta.current_node) == (1, "judge")
    state.error("no network")
    assert (state.execution_meta.status, state.execution_meta.error_message) == (ExecutionStatus.ERROR, "no network")
    state.complete()
    assert (state.execution_meta.status, state.execution_meta.current_node) == (ExecutionStatus.COMPLETED, END)


def test_statuses_have_the_names_and_values_of_older_code():
    assert [status.name for status in ExecutionStatus] == ["RUNNING", "INTERRUPTED", "COMPLETED", "ERROR"]
    assert ExecutionStatus.INTERRUPTED_AFTER is ExecutionStatus.INTERRUPTED  # type: ignore[comparison-overlap]
    assert ExecutionStatus("interrupted_before") is ExecutionStatus.INTERRUPTED
    assert StopRequestStatus("stopped") is StopRequestStatus.STOP_REQUESTED
    with raises(ValueError, "paused"):
        ExecutionStatus("paused")


def first(left: Any, right: Any) -> Any:
    return left


async def later(left: Any, right: Any) -> Any:
    return right


class TwoReducers(AgentState):
    field: Annotated[list[str], operator.add, first] = []


class HiddenReducer(AgentState):
    field: Annotated[list[str], operator.add] | None = None


class HiddenInOptional(AgentState):
    field: Optional[Annotated[list[str], operator.add]] = None  # noqa: UP045 - as people write it


class AsyncReducer(AgentState):
    field: Annotated[list[str], later] = []


class FilterAsReducer(AgentState):
    context: Annotated[list[Message], remove_tool_messages] = []


class OwnMeta(AgentState):
    execution_meta: dict[str, Any] = {}  # type: ignore[assignment]


@pytest.mark.parametrize(
    ("cls", "words"),
    [
        (TwoReducers, "2 reducers"), (HiddenReducer, "inside a union"), (HiddenInOptional, "inside a union"),
        (AsyncReducer, "async"), (FilterAsReducer, "Overwrite"), (OwnMeta, "execution_meta"),
    ],
)  # fmt: skip
def test_a_field_that_cannot_work_is_refused_when_the_graph_is_made(cls, words):
    with pytest.raises(GraphError, match=words) as caught:
        StateGraph(cls)
    assert caught.value.error_code == "GRAPH_008"
    assert caught.value.field in cls.model_fields


def test_a_reducer_with_one_argument_is_refused():
    class Wrong(AgentState):
        field: Annotated[list[str], lambda items: items] = []

    with raises(GraphError, "values"):
        StateGraph(Wrong)


def test_a_field_with_the_name_of_a_method_is_refused():
    with warns(UserWarning, "shadows"):

        class Wrong(AgentState):
            complete: bool = False  # type: ignore[assignment]

    with raises(GraphError, "Rename"):
        StateGraph(Wrong)


def test_constraints_and_validators_are_no_reducers():
    class Fine(AgentState):
        n: Annotated[int, Ge(0), Field(le=9), AfterValidator(abs)] = 0
        items: Annotated[set[str], Reducer(set.union)] = set()
        last: Annotated[str, replace_value] = ""

    fields = StateGraph(Fine).fields.by_name
    assert fields["n"].reducer is None
    assert fields["items"].reducer is set.union
    assert fields["last"].reducer is replace_value


def test_a_deep_copy_of_a_state_still_hears_of_a_stop():
    state = AgentState()
    stopped = [False]
    state._stop_probe = lambda: stopped[0]  # as the graph sets it
    twin = copy.deepcopy(state)
    stopped[0] = True
    assert twin.is_stopped_requested()
