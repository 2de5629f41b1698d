"""What a type checker knows of a state graph, by the class of its state; read by mypy, never run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, TypedDict, assert_type

from pydantic import BaseModel

from agentbench.stategraph import AgentState, CompiledGraph, GraphResult, StateGraph, StateSnapshot


class Count(AgentState):
    n: int = 0


class Typed(TypedDict, total=False):
    n: int


@dataclass
class Data:
    n: int = 0


class Model(BaseModel):
    n: int = 0


def an_agent_state_is_what_results_and_snapshots_hold() -> None:
    app = StateGraph(Count).compile()
    assert_type(app, CompiledGraph[Count])
    assert_type(app.invoke({}), GraphResult[Count])
    assert_type(app.get_state({}).values.n, int)
    assert_type(StateGraph(Count()), StateGraph[Count])
    assert_type(StateGraph(), StateGraph[AgentState])
    assert_type(StateGraph(name="plain"), StateGraph[AgentState])


def of_a_typed_dict_they_hold_one() -> None:
    app = StateGraph(Typed).add_node("a", str).compile()
    assert_type(app, CompiledGraph[Typed])
    assert_type(app.get_state({}), StateSnapshot[Typed])
    assert_type(app.get_state({}).values["n"], int)
    assert_type(app.invoke({}).state, Typed)


def of_dataclasses_and_models_they_hold_the_fields() -> None:
    assert_type(StateGraph(Data), StateGraph[dict[str, Any]])
    assert_type(StateGraph(Data()), StateGraph[dict[str, Any]])
    assert_type(StateGraph(Model), StateGraph[dict[str, Any]])
    assert_type(StateGraph(Model()).compile().get_state({}).values, dict[str, Any])


def other_values_declare_no_state() -> None:
    StateGraph(5)  # type: ignore[call-overload]
