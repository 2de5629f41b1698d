"""`"messages"` in an update means the conversation, unless the state has a field of that name."""

from __future__ import annotations

import operator
from typing import Annotated, Any

import pytest

from agentbench import Content
from agentbench.stategraph import Overwrite, replace_messages
from agentbench.stategraph.core.graph import StateGraph, ToolNode
from agentbench.stategraph.core.state import AgentState, Message, ToolResult
from agentbench.stategraph.utils import END, START, Command

THREAD = {"thread_id": "t1"}


class Chat(AgentState):
    context: Annotated[list[Message], replace_messages] = []


class Notes(AgentState):
    messages: Annotated[list[str], operator.add] = []


def chat(node: Any, state: Any = AgentState) -> Any:
    return StateGraph(state).add_node("say", node).add_edge(START, "say").add_edge("say", END).compile()


def texts(state: AgentState) -> list[str]:
    return [message.text for message in state.context]


@pytest.mark.parametrize(
    "returned",
    [
        {"messages": [Message.text_message("Hello.", "assistant")]},
        {"messages": Message.text_message("Hello.", "assistant")},
        Command(update={"messages": [Message.text_message("Hello.", "assistant")]}, goto=END),
        {"messages": "Hello."},
        {"context": ["Hello."]},
        {"context": ("ai", "Hello.")},
    ],
    ids=["list", "message", "command", "text", "texts", "pair"],
)
def test_a_node_writes_the_conversation(returned: Any) -> None:
    result = chat(lambda state: returned).invoke({"messages": "Hi"}, THREAD)

    assert texts(result.state) == ["Hi", "Hello."]
    assert [(message.role, message.text()) for message in result["messages"]] == [
        ("user", "Hi"),
        ("assistant", "Hello."),
    ]


def test_the_reducer_of_the_conversation_applies() -> None:
    answer = Message.text_message("Hello.", "assistant")

    assert texts(chat(lambda state: {"messages": [answer]}, Chat).invoke({"messages": "Hi"}, THREAD).state) == [
        "Hello."
    ]
    overwrites = chat(lambda state: {"messages": Overwrite([answer])})
    assert texts(overwrites.invoke({"messages": "Hi"}, THREAD).state) == ["Hello."]


def test_an_edit_and_a_tool_write_the_conversation() -> None:
    def note() -> ToolResult:
        return ToolResult("noted", state={"messages": [Message.text_message("Note taken.", "system")]})

    app = chat(ToolNode([note]))
    app.invoke({"messages": [Message("assistant", [Content.from_function_call("c1", "note")])]}, THREAD)
    app.update_state(THREAD, {"messages": [Message.text_message("Well done.")]})

    assert texts(app.get_state(THREAD).values) == ["", "", "Note taken.", "Well done."]


def test_a_field_of_that_name_is_an_ordinary_field() -> None:
    state = chat(lambda state: {"messages": ["b"]}, Notes).invoke({"messages": ["a"]}, THREAD).state

    assert (state.messages, state.context) == (["a", "b"], [])
