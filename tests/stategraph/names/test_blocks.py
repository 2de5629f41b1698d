"""Blocks of messages with their annotations, and the token counts of a message."""

from __future__ import annotations

import copy
import pickle
from typing import Any

from agentbench import FileCheckpointStorage
from agentbench.stategraph.core.graph import StateGraph
from agentbench.stategraph.core.state import (
    AgentState,
    AnnotationRef,
    Message,
    TextBlock,
    TokenUsages,
    ToolCallBlock,
    ToolResultBlock,
)
from agentbench.stategraph.utils import END, START

SOURCE = AnnotationRef(url="https://example.org/owls", title="Owls", page=3)


def test_a_text_cites_its_sources() -> None:
    block: Any = TextBlock(text="Owls see well.", annotations=[SOURCE])

    assert block.annotations == [
        {
            "type": "citation",
            "title": "Owls",
            "url": "https://example.org/owls",
            "additional_properties": {"page": 3},
        }
    ]
    assert (block.annotations[0].title, SOURCE.page, SOURCE.file_id, SOURCE.index) == ("Owls", 3, None, None)
    for copied in (copy.deepcopy(SOURCE), pickle.loads(pickle.dumps(SOURCE))):
        assert (type(copied), copied, copied.url) == (AnnotationRef, SOURCE, SOURCE.url)
    assert TextBlock("Owls.").annotations is None


def test_a_call_keeps_the_type_of_its_tool() -> None:
    call = ToolCallBlock(id="c1", name="look", args={"at": 1}, tool_type="web_search")

    assert call.additional_properties == {"tool_type": "web_search"}
    assert ToolCallBlock("c1", "look").additional_properties == {}
    assert ToolResultBlock(call_id="c1", output="dark").result == "dark"


def test_results_count_the_tokens_of_messages_and_storages_keep_all_of_it(tmp_path: Any) -> None:
    usages = TokenUsages(completion_tokens=5, prompt_tokens=12, reasoning_tokens=2, cache_read_input_tokens=4)
    assert (usages.total_tokens, usages["cache_read_input_tokens"]) == (17, 4)

    def say(state: AgentState) -> Message:
        return Message("assistant", content=[TextBlock("Owls see well.", [SOURCE])], usages=usages)

    def app() -> Any:
        graph = StateGraph(name="owls").add_node("say", say).add_edge(START, "say").add_edge("say", END)
        return graph.compile(checkpointer=FileCheckpointStorage(tmp_path))

    result = app().invoke("Hi", {"thread_id": "t1"})

    assert result["token_usage"]["total_tokens"] == 17
    (stored,) = [each for each in app().get_state({"thread_id": "t1"}).values.context if each.role == "assistant"]
    assert (stored.usages, stored.contents[0].annotations) == (usages, [SOURCE])
