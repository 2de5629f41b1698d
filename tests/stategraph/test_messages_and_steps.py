"""Where other systems disagree: what is decided here about messages, steps and the context."""

from __future__ import annotations

import operator
from typing import Annotated, Any

from pydantic import Field

from agentbench import Message
from agentbench.stategraph import (
    END,
    START,
    AgentState,
    StateGraph,
    add_messages,
    replace_messages,
    replace_value,
)
from tests.parts.graphs import note

THREAD = {"thread_id": "t1"}


class Order(AgentState):
    order_id: str | None = None
    notes: Annotated[list[str], operator.add] = []
    plain: int = 0
    last: Annotated[int, replace_value] = 0


def chain(*names: str, nodes: dict[str, Any] | None = None, **settings: Any) -> Any:
    graph = StateGraph(Order)
    for before, name in zip((START, *names), names, strict=False):
        graph.add_node(name, (nodes or {}).get(name, note(name))).add_edge(before, name)
    return graph.compile(**settings)


def one(node: Any, **settings: Any) -> Any:
    return chain("a", nodes={"a": node}, **settings)


def said(text: str, message_id: str | None = None) -> Message:
    return Message.text_message(text, "assistant", message_id)


def test_a_list_goes_through_the_reducer_of_the_context_and_input_always_appends() -> None:
    class Replaced(AgentState):
        context: Annotated[list[Message], replace_messages] = Field(default_factory=list)

    seen: list[int] = []

    def say(state: Replaced) -> list[Message]:
        seen.append(len(state.context))
        return [said("only")]

    app = StateGraph(Replaced).add_node("say", say).set_entry_point("say").compile()
    app.invoke("one", THREAD)
    result = app.invoke("two", THREAD)

    assert [message.text for message in result.state.context] == ["only"]
    assert seen == [1, 2]


def test_an_id_twice_in_one_update_is_kept_once() -> None:
    assert [each.text for each in add_messages([], [said("first", "1"), said("second", "1")])] == ["first"]


def test_the_same_id_with_new_content_is_dropped_with_a_warning() -> None:
    app = one(lambda state: [said("new", "1")])
    app.invoke([said("old", "1")], THREAD)
    result = app.invoke(None, {**THREAD, "checkpoint_id": app.get_state_history(THREAD)[-1].config["checkpoint_id"]})

    assert [message.text for message in result.state.context] == ["old"]
    assert "upsert_messages" in result.warnings[0]


def test_the_step_counts_nodes_of_this_run_and_the_end_is_the_current_node() -> None:
    app = chain("a", "b")
    app.invoke("hi", THREAD)
    meta = app.invoke("again", THREAD).state.execution_meta

    assert (meta.step, meta.current_node) == (2, END)


def test_messages_are_the_input_of_this_call_and_what_was_added() -> None:
    app = chain("a", "b", nodes={"a": lambda state: "one", "b": lambda state: "two"}, interrupt_before=["b"])

    assert [message.text for message in app.invoke("hi", THREAD)["messages"]] == ["hi", "one"]
    assert [message.text for message in app.invoke(None, THREAD)["messages"]] == ["two"]
