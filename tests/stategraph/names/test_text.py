"""`message.text` may be called, wherever the text goes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentbench import Agent, FileCheckpointStorage, ScriptedChatClient, WorkflowEvent
from agentbench.notebook.forms.questions import read_request
from agentbench.stategraph.core.graph import StateGraph
from agentbench.stategraph.core.state import AgentState, Message
from agentbench.stategraph.utils import END, START

TEXT: Any = Message.text_message("May I?").text


class Said(AgentState):
    last: str = ""
    anything: Any = None


def test_a_node_reads_text_and_a_storage_keeps_it(tmp_path: Any) -> None:
    def hear(state: Said) -> dict[str, Any]:
        said: Any = state.context[-1].text
        return {"last": said().upper(), "anything": [said(), {"said": said}]}

    graph = StateGraph(Said, name="said").add_node("hear", hear).add_edge(START, "hear").add_edge("hear", END)
    graph.compile(checkpointer=FileCheckpointStorage(tmp_path)).invoke({"messages": "Hi"}, {"thread_id": "t1"})

    state = graph.compile(checkpointer=FileCheckpointStorage(tmp_path)).get_state({"thread_id": "t1"}).values
    assert (state.last, state.anything) == ("HI", ["Hi", {"said": "Hi"}])
    assert type(state.anything[0]) is str


async def test_a_scripted_model_answers_with_the_text_of_a_message() -> None:
    assert (await Agent(ScriptedChatClient([TEXT])).run("Hi")).text == "May I?"


def test_a_form_asks_with_the_text_of_a_message() -> None:
    @dataclass
    class Ask:
        question: str

    request = WorkflowEvent.request_info("q1", "asker", Ask(TEXT), bool)
    assert read_request(request).prompt == "May I?"
