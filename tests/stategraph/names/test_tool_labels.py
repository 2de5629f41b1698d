"""Labels of tools, the choice of tools by tag, and calls of a single tool of a node."""

from __future__ import annotations

from typing import Any

import pytest

import agentbench
from agentbench import Agent, Content, Message, ScriptedChatClient, WorkflowEvent
from agentbench.notebook.forms.questions import read_request
from agentbench.stategraph import Command
from agentbench.stategraph.core.graph import StateGraph, ToolNode
from agentbench.stategraph.core.state import AgentState, ToolResult
from agentbench.stategraph.utils import END, START, tool
from agentbench.stategraph.utils.decorators import get_tool_metadata, has_tool_decorator
from tests.parts.errors import raises


@tool(
    name="search_archive",
    description="Search the archive.",
    tags=["read", "archive"],
    provider="archive",
    capabilities=["reads files"],
    metadata={"cost": 2},
)
def search(query: str, state: AgentState, tool_call_id: str, config: dict[str, Any] | None = None) -> str:
    return f"{query} {len(state.context)} {tool_call_id} {(config or {}).get('thread_id')}"


@tool(tags={"write"})
async def save(text: str) -> str:
    """Save a text."""
    return f"saved {text}"


def plain(city: str) -> str:
    """Tell the weather."""
    return f"Fog in {city}."


def names(specs: list[dict[str, Any]]) -> list[str]:
    return [spec["function"]["name"] for spec in specs]


@pytest.mark.parametrize("make", [tool, agentbench.FunctionTool])
@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        ({"tags": 3}, "tags=3. Expected one text or several, such as tags=['web', 'search']."),
        ({"tags": ["web", 3]}, "tags=['web', 3]. Expected one text or several"),
        ({"tags": {"web": True}}, "tags={'web': True}. Expected one text or several"),
        ({"capabilities": {2, "web"}}, "Expected one text or several, such as capabilities=["),
        ({"capabilities": b"web"}, "capabilities=b'web'. Expected one text or several"),
        ({"provider": ["GitHub"]}, "provider=['GitHub']. Expected a text, such as provider='GitHub', or None."),
        ({"metadata": "fast"}, "metadata='fast'. Expected a dictionary, such as metadata={'cost': 2}, or None."),
    ],
)
def test_labels_of_another_type_are_refused(make: Any, labels: dict[str, Any], expected: str) -> None:
    with raises(TypeError, expected):
        make(plain, **labels)


@pytest.mark.parametrize("make", [tool, agentbench.FunctionTool])
def test_a_single_text_is_one_label(make: Any) -> None:
    made = make(plain, tags="web", capabilities="reads files")
    assert (made.tags, made.capabilities) == (("web",), ("reads files",))


def test_labels_are_read_from_tools_and_plain_functions() -> None:
    assert tool is agentbench.tool
    assert get_tool_metadata(search) == {
        "name": "search_archive",
        "description": "Search the archive.",
        "tags": {"read", "archive"},
        "provider": "archive",
        "capabilities": ["reads files"],
        "metadata": {"cost": 2},
    }
    assert get_tool_metadata(plain) | {"name": "plain", "description": "Tell the weather.", "tags": set()} == (
        get_tool_metadata(plain)
    )
    assert [has_tool_decorator(each) for each in (search, save, plain)] == [True, True, False]


async def test_a_decorated_function_can_be_called_as_before() -> None:
    assert await save("a") == "saved a"
    assert search("a", AgentState(), "c1") == "a 0 c1 None"


def test_a_node_offers_the_tools_that_have_one_of_the_tags() -> None:
    node = ToolNode([search, save, plain])

    assert names(node.get_tool_schemas()) == names(node.get_local_tool()) == ["search_archive", "save", "plain"]
    assert names(node.get_local_tool(tags={"write", "archive"})) == ["search_archive", "save"]
    assert names(node.get_local_tool("read")) == ["search_archive"]
    assert node.get_local_tool({"other"}) == []
    (spec,) = node.get_local_tool({"read"})
    assert spec["function"]["description"] == "Search the archive."
    assert [*spec["function"]["parameters"]["properties"]] == ["query"]


def test_the_graph_fills_the_parameters_of_a_decorated_function() -> None:
    app = StateGraph().add_node("tools", ToolNode([search])).add_edge(START, "tools").add_edge("tools", END).compile()
    asking = Message("assistant", [Content.from_function_call("c1", "search_archive", arguments={"query": "maps"})])

    result = app.invoke({"messages": [asking]}, {"thread_id": "t1"})

    assert result["messages"][-1].contents[0].result == "maps 1 c1 t1"


def test_a_text_of_the_model_may_be_named_like_a_parameter_of_the_graph() -> None:
    @tool
    def forecast(state: str) -> str:
        return f"Fog in {state}."

    (spec,) = ToolNode([forecast]).all_tools()
    assert [*spec["function"]["parameters"]["properties"]] == ["state"]


def test_a_tool_of_an_agent_may_have_annotations_that_only_it_can_read() -> None:
    def find(where: Unknown) -> str:  # type: ignore[name-defined]  # noqa: F821
        return "found"

    assert [*ToolNode([agentbench.FunctionTool(find)]).tools] == ["find"]


async def test_one_tool_is_called_by_name() -> None:
    def note(text: str) -> ToolResult:
        return ToolResult(f"noted {text}", state={"notes": [text]})

    def leave() -> Command:
        return Command(goto="end")

    node = ToolNode([search, plain, note, leave])

    message = await node.invoke("search_archive", {"query": "a"}, "c7", {"thread_id": "t9"}, AgentState())
    assert (message.role, message.contents[0].call_id, message.contents[0].result) == ("tool", "c7", "a 0 c7 t9")
    assert (await node.invoke("plain", {"city": "Oslo"})).contents[0].result == "Fog in Oslo."
    noted = await node.invoke("note", {"text": "b"}, "c8")
    assert (noted.message.contents[0].result, noted.state) == ("noted b", {"notes": ["b"]})
    assert (await node.invoke("leave", {})).goto == "end"
    failed = await node.invoke("plain", {"town": "Oslo"}, "c9")
    assert failed.contents[0].additional_properties["is_error"]


def test_agents_choose_tools_by_tag() -> None:
    def tools_of(agent: Agent) -> list[str]:
        return [each.name for each in agent.default_options["tools"]]

    client = ScriptedChatClient([])
    assert tools_of(Agent(client, tools=[search, save, plain], tools_tags={"read", "other"})) == ["search_archive"]
    assert tools_of(Agent(client, tools=[search, save, plain])) == ["search_archive", "save", "plain"]
    with pytest.raises(ValueError, match="archive, read, write"):
        Agent(client, tools=[search, save], tools_tags="delete")


def test_labels_survive_a_round_trip_and_other_tools_write_none() -> None:
    written = search.to_dict()
    restored = agentbench.FunctionTool.from_dict(written, dependencies={"function_tool": {"func": search.func}})
    assert get_tool_metadata(restored) == get_tool_metadata(search)
    assert {"tags", "capabilities", "provider"}.isdisjoint(tool(plain).to_dict())
    with pytest.raises(TypeError):
        tool(plain, metadata={}, additional_properties={})


async def test_a_form_that_asks_for_approval_says_what_the_tool_can_do() -> None:
    @tool(approval_mode="always_require", capabilities=["deletes files", "sends <b>mail</b>"])
    def wipe(path: str) -> str:
        return path

    call = Content.from_function_call("c1", "wipe", arguments={"path": "/"})
    response = await Agent(ScriptedChatClient([call]), tools=[wipe]).run("Clean up.")
    (request,) = response.user_input_requests
    question = read_request(WorkflowEvent.request_info("q1", "cleaner", request, Content))
    assert "deletes files, sends <b>mail</b>" in question.prompt

    graph = StateGraph().add_node("tools", ToolNode([wipe])).add_edge(START, "tools").compile()
    paused = graph.invoke({"messages": [Message("assistant", [call])]}, {"thread_id": "t1"})
    assert paused.interrupts[0].value["capabilities"] == ["deletes files", "sends <b>mail</b>"]
