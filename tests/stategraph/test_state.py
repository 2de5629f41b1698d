"""AgentState: its fields, status and lifecycle, and what a subclass may declare."""

from __future__ import annotations

import copy
import operator
from typing import Annotated, Any, Optional

import pytest
from annotated_types import Ge
from pydantic import AfterValidator, Field, ValidationError

from agentbench import Message
from agentbench.exceptions import GraphError
from agentbench.stategraph.graph import StateGraph
from agentbench.stategraph.reducers import Reducer, remove_tool_messages, replace_value
from agentbench.stategraph.state import END, START, AgentState, ExecutionState, ExecutionStatus, StopRequestStatus
from tests.parts.errors import raises, warns


class Order(AgentState):
    order_id: str | None = None
    cart: list[dict[str, Any]] = Field(default_factory=list)


class Express(Order):
    deadline_h: int = 24


def test_a_new_state_is_empty_and_runs():
    state = AgentState()
    assert state.context == []
    assert state.context_summary is None
    assert state.execution_meta.current_node == START
    assert state.is_running()
    assert not state.is_interrupted()
    assert not state.is_stopped_requested()


def test_two_states_share_no_list():
    one, other = Express(), Express()
    one.context.append(Message("user", "Hi"))
    one.cart.append({})
    assert other.context == [] == other.cart


def test_unknown_fields_and_wrong_types_are_refused():
    with raises(ValidationError, "bogus"):
        Order(bogus=1)  # type: ignore[call-arg]
    state = Express()
    with raises(ValidationError, "deadline_h"):
        state.deadline_h = "soon"  # type: ignore[assignment]


def test_a_state_comes_back_from_json():
    state = Order(order_id="ORD-1", context=[Message("user", "Hi", message_id=1)])
    assert Order.model_validate(state.model_dump(mode="json")) == state


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


class OneArgument(AgentState):
    field: Annotated[list[str], len, lambda items: items] = []


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


def test_only_a_state_makes_a_graph():
    with raises(TypeError, "AgentState"):
        StateGraph(dict)
    with raises(TypeError, "AgentState"):
        StateGraph({"n": 1})  # type: ignore[call-overload]


def test_a_deep_copy_of_a_state_still_hears_of_a_stop():
    state = AgentState()
    stopped = [False]
    state._stop_probe = lambda: stopped[0]  # as the graph sets it
    twin = copy.deepcopy(state)
    stopped[0] = True
    assert twin.is_stopped_requested()
