"""`StreamEmitter`: a tool tells those who watch the run what it is doing, while it does it."""

from __future__ import annotations

import threading
from typing import Annotated, Any

import pytest

from agentbench import Agent, Content, Message, RunOptions, ScriptedChatClient, WorkflowBuilder, tool
from agentbench.stategraph.core.graph import StateGraph, ToolNode
from agentbench.stategraph.core.state import AgentState, StreamEvent
from agentbench.stategraph.core.state.stream_emitter import StreamEmitter
from agentbench.stategraph.utils import END, START

THREAD = {"thread_id": "t1"}


def asking(name: str, **arguments: Any) -> dict[str, Any]:
    return {"messages": [Message("assistant", [Content.from_function_call("call_1", name, arguments=arguments)])]}


def graph_of(*tools: Any) -> Any:
    graph = StateGraph(AgentState).add_node("tools", ToolNode(tools))
    return graph.add_edge(START, "tools").add_edge("tools", END).compile()


def search(query: str, emit: StreamEmitter | None = None) -> str:
    """Search the archive."""
    if emit is None:
        return "nobody watches"
    emit.progress("1 of 2", data={"share": 0.5})
    emit.message("The archive is large.")
    emit.error("Shelf 3 is locked.")
    emit.update({"status": "indexed", "pages": 7})
    return f"found {query}"


def test_models_do_not_see_the_emitter() -> None:
    (spec,) = ToolNode([search]).all_tools()

    assert [*spec["function"]["parameters"]["properties"]] == ["query"]
    assert [*tool(search).parameters()["properties"]] == ["query"]


@pytest.mark.parametrize("level", ["low", "partial", "full"])
@pytest.mark.parametrize("made", [search, tool(search)], ids=["function", "tool"])
def test_what_a_tool_reports_is_in_the_stream_at_every_level(made: Any, level: str) -> None:
    chunks = [*graph_of(made).stream(asking("search", query="maps"), {**THREAD, "run_id": "r1"}, level)]

    reports = [chunk for chunk in chunks if chunk.data and "tool_name" in chunk.data]
    facts = {"tool_name": "search", "tool_call_id": "call_1", "node": "tools", "thread_id": "t1", "run_id": "r1"}
    assert [(chunk.event, chunk.data) for chunk in reports] == [
        (StreamEvent.UPDATES, {**facts, "status": "tool_progress", "message": "1 of 2", "share": 0.5}),
        (StreamEvent.MESSAGE, {**facts, "status": "tool_message", "message": "The archive is large."}),
        (StreamEvent.ERROR, {**facts, "status": "tool_failed", "message": "Shelf 3 is locked."}),
        (StreamEvent.UPDATES, {**facts, "status": "indexed", "pages": 7}),
    ]
    assert reports[1].message.text == "The archive is large."


@pytest.mark.parametrize(
    ("value", "text"), [(3, "3"), (None, "None"), ({"page": 1}, "{'page': 1}"), (ValueError("No disk."), "No disk.")]
)
def test_a_report_of_what_is_not_text_has_its_text(value: Any, text: str) -> None:
    def count(emit: StreamEmitter | None = None) -> str:
        assert emit is not None
        emit.progress(value)
        emit.error(value)
        emit.message(value)
        return "done"

    chunks = [*graph_of(count).stream(asking("count"), THREAD)]

    assert [chunk.data["message"] for chunk in chunks if chunk.data] == [text] * 3
    assert chunks[-1].message.contents[0].result == "done"


def test_an_emitter_with_a_note_in_its_annotation_is_filled_and_hidden() -> None:
    def optional(query: str, report: Annotated[StreamEmitter | None, "progress"] = None) -> str:
        return type(report).__name__

    def required(query: str, report: Annotated[StreamEmitter, "progress"]) -> str:
        return type(report).__name__

    for function in (optional, required):
        name = function.__name__
        for made in (function, tool(function)):
            (spec,) = ToolNode([made]).all_tools()
            assert [*spec["function"]["parameters"]["properties"]] == ["query"]
            chunks = [*graph_of(made).stream(asking(name, query="maps"), THREAD)]
            assert chunks[-1].message.contents[0].result == "StreamEmitter"
        call = Content.from_function_call("c1", name, arguments={"query": "maps"})
        agent = Agent(ScriptedChatClient([call, "done"]), tools=[function])
        graph = StateGraph(AgentState).add_node("finder", agent).add_edge(START, "finder").compile()
        messages = [chunk.message for chunk in graph.stream("Find.", THREAD)]
        assert "StreamEmitter" in [message.contents[0].result for message in messages if message.contents]


def test_nobody_watches_an_invoked_graph() -> None:
    assert graph_of(search).invoke(asking("search", query="maps"), THREAD)["messages"][-1].contents[0].result == (
        "nobody watches"
    )


@pytest.mark.parametrize("annotated", [True, False])
def test_a_tool_in_a_worker_thread_is_heard_while_it_runs(annotated: bool) -> None:
    heard = threading.Event()

    def with_emitter(emit: StreamEmitter | None = None) -> str:
        assert emit is not None
        emit({"n": 1})
        return "in time" if heard.wait(5) else "too late"

    def plain(emit: Any) -> str:
        emit({"n": 1})
        return "in time" if heard.wait(5) else "too late"

    said = []
    name, app = ("with_emitter", graph_of(with_emitter)) if annotated else ("plain", graph_of(plain))
    for mode, payload in app.stream(asking(name), THREAD, stream_mode=["custom", "messages"]):
        if mode == "custom":
            assert payload == {"n": 1}
            heard.set()
        else:
            said.append(payload.contents[0].result)
    assert said[-1] == "in time"


async def test_tools_of_agents_report_in_streams_of_graphs_and_workflows() -> None:
    def agent() -> Agent:
        client = ScriptedChatClient([Content.from_function_call("c1", "search", arguments={"query": "maps"}), "done"])
        return Agent(client, name="finder", tools=[search])

    graph = StateGraph(AgentState).add_node("finder", agent()).add_edge(START, "finder").compile()
    lines = [
        chunk.data["message"] async for chunk in graph.astream("Find maps.", THREAD) if "message" in (chunk.data or {})
    ]
    assert lines == ["1 of 2", "The archive is large.", "Shelf 3 is locked."]

    workflow = WorkflowBuilder(start_executor=agent()).build()
    events = [event async for event in workflow.run("Find maps.", stream=True, options=RunOptions(observe=True))]
    reports = [event.data for event in events if event.type == "custom"]
    assert [(report["tool_name"], report["status"]) for report in reports][:2] == [
        ("search", "tool_progress"),
        ("search", "tool_message"),
    ]
    assert (await agent().run("Find maps.")).text == "done"
