"""Nodes that are agents, executors, workflows or graphs; and a graph as executor, node and agent."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any

import pytest

from agentbench import (
    Agent,
    Call,
    EchoChatClient,
    Executor,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    Message,
    ScriptedChatClient,
    WorkflowBuilder,
    WorkflowContext,
    handler,
    response_handler,
    tool,
)
from agentbench.exceptions import GraphError, GraphRecursionError, NodeError
from agentbench.orchestrations import SequentialBuilder
from agentbench.stategraph.command import Command
from agentbench.stategraph.graph import StateGraph
from agentbench.stategraph.interrupts import interrupt
from agentbench.stategraph.state import START, AgentState, ExecutionStatus
from tests.parts.errors import raises
from tests.parts.graphs import note

CONFIG = {"thread_id": "t"}


class Notes(AgentState):
    notes: Annotated[list[str], operator.add] = []
    n: int = 0


def nested(inner: Any, storage: Any = None, **around: Any) -> Any:
    graph = StateGraph(Notes, name="outer").add_node("before", note("before")).add_node("inner", inner)
    graph.add_node("after", note("after"))
    graph.add_edge(START, "before").add_edge("before", "inner").add_edge("inner", "after")
    return graph.compile(storage, **around)


def asking() -> Any:
    def ask(state: Notes) -> dict[str, Any]:
        return {"notes": [f"answer: {interrupt('ready?', message='Ready?', response_schema=str)}"]}

    graph = StateGraph(Notes, name="inner").add_node("count", lambda state: {"n": state.n + 1, "notes": ["count"]})
    return graph.add_node("ask", ask).add_edge(START, "count").add_edge("count", "ask").compile()


class TestGraphInAGraph:
    def test_a_graph_returns_what_it_changed_through_the_reducers(self) -> None:
        inner = StateGraph(Notes).add_node("work", lambda state: {"notes": ["work"], "n": 5}).set_entry_point("work")
        app = nested(inner.compile())

        result = app.invoke({"n": 1}, CONFIG)

        assert result.state.notes == ["before", "work", "after"]
        assert result.state.n == 5
        assert result.changed["n"][-1] == "inner"

    def test_a_question_inside_is_a_question_of_the_graph_around_and_nothing_runs_twice(self, tmp_path: Any) -> None:
        app = nested(asking(), FileCheckpointStorage(tmp_path))
        asked = app.invoke({"n": 0}, CONFIG)

        again = nested(asking(), FileCheckpointStorage(tmp_path))
        result = again.invoke({"resume": "yes"}, CONFIG)

        assert [question.message for question in asked.interrupts] == ["Ready?"]
        assert asked.interrupts[0].node == "inner"
        assert result.state.notes == ["before", "count", "answer: yes", "after"]
        assert result.state.n == 1

    def test_a_replay_before_the_graph_asks_again(self) -> None:
        app = nested(asking())
        app.invoke({"n": 0}, CONFIG)
        app.invoke({"resume": "yes"}, CONFIG)
        early = next(each for each in app.get_state_history(CONFIG) if each.next == ("inner",) and not each.interrupts)

        replayed = app.invoke(None, early.config)
        result = app.invoke({"resume": "no"}, CONFIG)

        assert replayed.status is ExecutionStatus.INTERRUPTED
        assert result.state.notes == ["before", "count", "answer: no", "after"]

    def test_a_breakpoint_inside_pauses_the_graph_around(self) -> None:
        inner = StateGraph(Notes).add_node("a", note("a")).add_node("b", note("b"))
        inner.add_edge(START, "a").add_edge("a", "b")
        app = nested(inner.compile(interrupt_before=["b"]))
        paused = app.invoke({"n": 0}, CONFIG)

        result = app.invoke({"resume": {"notes": ["edited"]}}, CONFIG)

        assert paused.interrupts[0].value == {"next": ["b"], "changed": ["notes"]}
        assert result.state.notes == ["before", "a", "edited", "b", "after"]

    def test_a_retry_goes_on_inside_where_it_failed(self) -> None:
        calls: list[str] = []

        def first(state: Notes) -> dict[str, Any]:
            calls.append("first")
            return {"notes": ["first"]}

        def second(state: Notes) -> dict[str, Any]:
            calls.append("second")
            if calls.count("second") == 1:
                raise RuntimeError("down")
            return {"notes": ["second"]}

        inner = StateGraph(Notes).add_node("first", first).add_node("second", second)
        app = nested(inner.add_edge(START, "first").add_edge("first", "second").compile())
        with raises(NodeError, "second"):
            app.invoke({"n": 0}, CONFIG)

        result = app.invoke(None, CONFIG)

        assert calls == ["first", "second", "second"]
        assert result.state.notes == ["before", "first", "second", "after"]

    async def test_a_stop_reaches_the_nodes_inside_and_the_thread_goes_on(self) -> None:
        began = asyncio.Event()
        calls: list[str] = []

        async def quick(state: Notes) -> dict[str, Any]:
            calls.append("quick")
            return {"notes": ["quick"]}

        async def slow(state: Notes) -> dict[str, Any]:
            calls.append("slow")
            if calls.count("slow") == 1:
                began.set()
                await asyncio.sleep(60)
            return {"notes": ["slow"]}

        inner = StateGraph(Notes).add_node("quick", quick).add_node("slow", slow)
        app = nested(inner.add_edge(START, "quick").add_edge("quick", "slow").compile())
        running = asyncio.ensure_future(app.ainvoke({"n": 0}, CONFIG))
        await began.wait()

        await app.astop(CONFIG)
        stopped = await running
        result = await app.ainvoke(None, CONFIG)

        assert stopped.state.execution_meta.interrupt_reason == "stop_requested"
        assert calls == ["quick", "slow", "slow"]
        assert result.state.notes == ["before", "quick", "slow", "after"]

    @pytest.mark.filterwarnings("ignore:No edge leads to")
    def test_a_command_goes_to_a_node_of_the_graph_around(self) -> None:
        def leave(state: Notes) -> Command:
            return Command(update={"notes": ["leave"]}, goto="aside", graph=Command.PARENT)

        inner = StateGraph(Notes).add_node("leave", leave).add_node("never", note("never")).add_edge(START, "leave")
        app_inside = inner.add_edge("leave", "never").compile()
        graph = (
            StateGraph(Notes).add_node("inner", app_inside).add_node("aside", note("aside")).add_node("on", note("on"))
        )
        app = graph.add_edge(START, "inner").add_edge("inner", "on").compile()

        assert app.invoke({"n": 0}, CONFIG).state.notes == ["leave", "aside"]
        with raises(GraphError, "aside"):
            app_inside.invoke({"n": 0}, CONFIG)

    def test_graphs_nest_to_any_depth(self) -> None:
        middle = StateGraph(Notes, name="middle").add_node("deep", asking()).set_entry_point("deep").compile()
        app = nested(middle)
        asked = app.invoke({"n": 0}, CONFIG)

        result = app.invoke({"resume": {asked.interrupts[0].id: "yes"}}, CONFIG)

        assert result.state.notes == ["before", "count", "answer: yes", "after"]

    def test_only_fields_that_both_have_are_shared(self) -> None:
        class Other(AgentState):
            n: int = 0
            secret: str = "mine"

        inner = StateGraph(Other).add_node("add", lambda state: {"n": state.n + 1, "secret": "x"})
        app = nested(inner.set_entry_point("add").compile())

        assert app.invoke({"n": 4}, CONFIG).state.n == 5

    def test_a_cycle_inside_ends_at_the_limit_of_supersteps(self) -> None:
        inner = StateGraph(Notes).add_node("loop", note("x")).add_edge(START, "loop").add_edge("loop", "loop")
        app = nested(inner.compile())

        with raises(GraphRecursionError, "'inner'", "7"):
            app.invoke({"n": 0}, {**CONFIG, "recursion_limit": 7})


class TestExecutorInAGraph:
    def test_what_an_executor_sends_and_yields_is_the_update(self) -> None:
        class Shout(Executor):
            @handler
            async def shout(self, message: Message, ctx: WorkflowContext[dict[str, Any], str]) -> None:
                await ctx.send_message({"notes": [message.text.upper()]})
                await ctx.yield_output("Done.")

        result = nested(Shout(id="shout")).invoke("hello", CONFIG)

        assert result.state.notes == ["before", "HELLO", "after"]
        assert [message.text for message in result["messages"]] == ["hello", "Done."]

    def test_its_request_to_a_person_is_an_interrupt(self, tmp_path: Any) -> None:
        class Publish(Executor):
            @handler
            async def ask(self, text: str, ctx: WorkflowContext) -> None:
                await ctx.request_info(f"Publish {text}?", bool)

            @response_handler
            async def decide(self, question: str, answer: bool, ctx: WorkflowContext[str]) -> None:
                await ctx.send_message("published" if answer else "rejected")

        asked = nested(Publish(id="p"), FileCheckpointStorage(tmp_path)).invoke("a draft", CONFIG)
        app = nested(Publish(id="p"), FileCheckpointStorage(tmp_path))
        result = app.invoke({"resume": True}, CONFIG)

        assert asked.interrupts[0].value == "Publish a draft?"
        assert asked.interrupts[0].response_schema is bool
        assert result["messages"][-1].text == "published"

    def test_an_executor_that_takes_nothing_of_the_state_is_refused(self) -> None:
        class Add(Executor):
            @handler
            async def add(self, number: int, ctx: WorkflowContext[int]) -> None: ...

        with raises(GraphError, "conversation"):
            nested(Add(id="add")).invoke({"n": 1}, CONFIG)

    def test_a_graph_in_a_workflow_in_a_graph_asks_and_goes_on(self) -> None:
        class Read(Executor):
            @handler
            async def read(self, result: dict[str, Any], ctx: WorkflowContext[Any, dict[str, Any]]) -> None:
                await ctx.yield_output({"notes": result["state"].notes})

        inner = asking().as_executor("triage")
        workflow = WorkflowBuilder(start_executor=inner).add_edge(inner, Read(id="read")).build()
        app = nested(workflow)
        asked = app.invoke("go", CONFIG)

        result = app.invoke({"resume": "yes"}, CONFIG)

        assert asked.interrupts[0].message == "Ready?"
        assert result.state.notes == ["before", "count", "answer: yes", "after"]


class TestAgentInAGraph:
    def test_an_agent_answers_the_conversation_and_its_tokens_are_counted(self) -> None:
        graph = StateGraph().add_node("agent", Agent(EchoChatClient(), "Be kind.", name="echo"))

        result = graph.set_entry_point("agent").compile().invoke("hello", CONFIG)

        assert [message.text for message in result["messages"]] == ["hello", "Echo: hello"]
        assert result["token_usage"]["total_output_tokens"] > 0

    def test_agents_whose_clients_number_their_messages_alike_both_answer(self, tmp_path: Any) -> None:
        def app(*said: str) -> Any:
            first, second = (Agent(ScriptedChatClient([text]), name="agent") for text in said)
            graph = StateGraph(name="two").add_node("first", first).add_node("second", second)
            graph.add_edge(START, "first").add_edge("first", "second")
            return graph.compile(FileCheckpointStorage(tmp_path))

        app("1", "2").invoke("Go", CONFIG)
        app("3", "4").invoke("Again", CONFIG)

        said = [message.text for message in app("", "").get_state(CONFIG).values.context]
        assert said == ["Go", "1", "2", "Again", "3", "4"]

    def test_an_agent_that_repeats_the_conversation_adds_only_its_answer(self) -> None:
        team = SequentialBuilder(participants=[Agent(EchoChatClient(), name="echo")]).build().as_agent("team")
        graph = StateGraph().add_node("team", team).set_entry_point("team").compile()

        result = graph.invoke("hello", CONFIG)

        assert [message.text for message in result["messages"]] == ["hello", "Echo: hello"]

    async def test_a_stream_shows_the_pieces_of_its_answer(self) -> None:
        app = StateGraph().add_node("agent", Agent(EchoChatClient(), name="echo")).set_entry_point("agent").compile()

        chunks = [chunk.message async for chunk in app.astream("hello", CONFIG)]

        assert "".join(message.text for message in chunks if message.delta) == "Echo: hello"
        assert chunks[-1].text == "Echo: hello"
        assert not chunks[-1].delta

    @pytest.mark.parametrize(("answer", "sent"), [(True, ["ada"]), (False, [])])
    def test_a_tool_that_needs_approval_asks_and_runs_once(self, tmp_path: Any, answer: bool, sent: list[str]) -> None:
        done: list[str] = []

        @tool(approval_mode="always_require")
        def send(to: str) -> str:
            """Send a letter."""
            done.append(to)
            return "sent"

        client = ScriptedChatClient([Call("send", {"to": "ada"}), "All done."])

        def app() -> Any:
            graph = StateGraph(name="letters").add_node("agent", Agent(client, name="a", tools=[send]))
            return graph.set_entry_point("agent").compile(FileCheckpointStorage(tmp_path))

        asked = app().invoke("Write to Ada.", CONFIG)
        result = app().invoke({"resume": answer}, CONFIG)

        assert asked.interrupts[0].value.function_call.name == "send"
        assert done == sent
        assert result["messages"][-1].text == "All done."


class TestGraphInAWorkflow:
    async def test_a_workflow_sends_messages_to_a_graph_and_gets_its_result(self) -> None:
        app = StateGraph(Notes).add_node("work", note("work")).set_entry_point("work").compile()
        workflow = WorkflowBuilder(start_executor=app.as_executor("graph")).build()

        for data in ({"n": 3}, Notes(n=3), [Message("user", ["hi"])], Message("user", ["hi"]), "hi"):
            (result,) = (await workflow.clone().run(data)).get_outputs()
            assert set(result) == {"messages", "token_usage", "context", "summary", "state"}
            assert result.state.notes == ["work"]

    async def test_a_question_is_a_request_and_a_checkpoint_holds_the_graph(self) -> None:
        storage = InMemoryCheckpointStorage()

        def workflow() -> Any:
            builder = WorkflowBuilder(
                start_executor=asking().as_executor("graph"), name="w", checkpoint_storage=storage
            )
            return builder.build()

        waiting = await workflow().run("go")
        (request,) = waiting.get_request_info_events()
        head = await storage.get_latest(workflow_name="w")
        assert head is not None
        result = await workflow().run(checkpoint_id=head.checkpoint_id, responses={request.request_id: "yes"})

        assert request.data.message == "Ready?"
        assert result.get_outputs()[0].state.notes == ["count", "answer: yes"]

    async def test_an_agent_answers_with_what_the_graph_adds(self) -> None:
        graph = StateGraph().add_node("say", lambda state: f"{len(state.context)}: {state.context[-1].text}")
        agent = graph.set_entry_point("say").compile().as_agent("bot")
        session = agent.create_session()

        first, second = await agent.run("one", session=session), await agent.run("two", session=session)

        assert agent.name == "bot"
        assert first.text == "1: one"
        assert [message.text for message in second.messages] == ["3: two"]
