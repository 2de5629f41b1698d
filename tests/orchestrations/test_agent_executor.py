"""An agent as a node: what it takes, what its agent sees, what it yields and sends."""

from __future__ import annotations

import asyncio
import logging
from typing import Any, Never

import pytest

from agentbench import (
    AgentExecutor,
    AgentExecutorCheckpointState,
    AgentExecutorRequest,
    AgentExecutorResponse,
    AgentResponse,
    AgentResponseUpdate,
    ExecutorPolicy,
    Message,
    StateGraph,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowInvocationKwargs,
    agent_middleware,
    executor,
    tool,
)
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from tests.agents.fake_clients import call
from tests.orchestrations.nodes import ForeignAgent, agent, asked
from tests.parts.errors import raises


def chain(*nodes: Any, **settings: Any) -> Any:
    builder = WorkflowBuilder(start_executor=nodes[0], **settings)
    return (builder.add_chain(nodes) if len(nodes) > 1 else builder).build()


def texts(messages: list[Message] | None) -> list[str]:
    return [message.text for message in messages or ()]


# ---- what it takes ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given_input", "seen"),
    [
        ("s", ["s"]),
        (Message("user", "m"), ["m"]),
        (["s", Message("user", "m")], ["s", "m"]),
        (AgentExecutorRequest([Message("user", "r")]), ["r"]),
        (AgentExecutorResponse("x", AgentResponse(text="own")), ["own"]),
        (AgentExecutorResponse("x", AgentResponse(text="own"), [Message("user", "all")]), ["all"]),
    ],
)
async def test_its_agent_answers_every_kind_of_input(given_input, seen):
    a = agent("a")
    result = await chain(a).run(given_input)
    assert asked(a) == [seen]
    assert [output.text for output in result.outputs] == ["A"]


async def test_an_empty_list_runs_the_agent_and_is_warned_of(caplog):
    a = agent("a")
    with caplog.at_level(logging.WARNING, "agentbench"):
        await chain(a).run([])
    assert asked(a) == [[]]
    assert "'a' runs its agent without a message" in caplog.text


async def test_a_list_of_anything_else_is_refused():
    with raises(RuntimeError, "list[str", "int]"):
        await chain(agent("a")).run(["hi", 1])


async def test_messages_that_need_no_answer_wait_for_the_next_that_does():
    a = agent("a")
    workflow = chain(a)
    silent = await workflow.run(AgentExecutorRequest([Message("user", "bg")], should_respond=False))
    assert silent.outputs == []
    await workflow.run(AgentExecutorRequest([Message("user", "q")]))
    await workflow.run("again")
    assert asked(a) == [["bg", "q"], ["bg", "q", "A", "again"]]  # the session has the first turn


async def test_each_call_gets_only_what_came_since_the_last_one():
    stranger = ForeignAgent()
    workflow = chain(stranger)
    await workflow.run(AgentExecutorRequest([Message("user", "bg")], should_respond=False))
    await workflow.run("q")
    await workflow.run("again")
    assert [texts(messages) for messages in stranger.asked] == [["bg", "q"], ["again"]]


async def test_reset_drops_what_waits():
    stranger: Any = ForeignAgent()
    node = AgentExecutor(stranger)
    workflow = chain(node)
    await workflow.run(AgentExecutorRequest([Message("user", "bg")], should_respond=False))
    node.reset()
    await workflow.run("q")
    assert texts(stranger.asked[0]) == ["q"]


# ---- chains ----------------------------------------------------------------------------------------


async def test_the_next_agent_gets_the_conversation():
    a, b = agent("a"), agent("b")
    result = await chain(a, b).run("hi")
    assert asked(b) == [["hi", "A"]]
    (_, sent) = (e.data for e in result if e.type == "executor_completed")
    (response, output) = sent
    assert (response.executor_id, texts(response.full_conversation)) == ("b", ["hi", "A", "B"])
    assert [m.author_name for m in response.full_conversation] == [None, "a", "b"]
    assert output is not None
    assert output.text == "B"


@pytest.mark.parametrize(
    ("settings", "seen"),
    [
        ({}, ["hi", "A"]),
        ({"context_mode": "full"}, ["hi", "A"]),
        ({"context_mode": "last_agent"}, ["A"]),
        ({"context_mode": "custom", "context_filter": lambda m: [one for one in m if one.role == "user"]}, ["hi"]),
    ],
)
async def test_the_context_mode_chooses_what_an_agent_gets_of_the_one_before(settings, seen):
    b = agent("b")
    await chain(agent("a"), AgentExecutor(b, **settings)).run("hi")
    assert asked(b) == [seen]


async def test_a_filter_may_be_async_and_change_its_list():
    async def last(messages: list[Message]) -> list[Message]:
        del messages[:-1]
        return messages

    b, c = agent("b"), agent("c")
    node = AgentExecutor(b, context_mode="custom", context_filter=last)
    builder = WorkflowBuilder(start_executor=(a := agent("a"))).add_fan_out_edges(a, [node, c])
    await builder.build().run("hi")
    assert (asked(b), asked(c)) == ([["A"]], [["hi", "A"]])


def test_a_context_mode_must_be_known_and_custom_and_a_filter_need_each_other():
    with raises(ValueError, "'full'", "'last_agent'", "'custom'"):
        AgentExecutor(agent("a"), context_mode="x")  # type: ignore[arg-type]
    with raises(ValueError, "context_filter="):
        AgentExecutor(agent("a"), context_mode="custom")
    with raises(ValueError, "context_filter="):
        AgentExecutor(agent("a"), context_filter=lambda messages: messages[-1:])


async def test_a_fan_in_passes_each_answer_by_itself():
    start, left, right, end = (agent(name) for name in ("s", "l", "r", "e"))
    for builder in (
        WorkflowBuilder(start_executor=start).fan_out(start, [left, right]).fan_in([left, right], end),
        WorkflowBuilder(start_executor=start)
        .add_fan_out_edges(start, [left, right])
        .add_fan_in_edges([left, right], end),
    ):
        end.client.asked.clear()
        await builder.build().run("hi")
        assert [turn[-3:] for turn in asked(end)] == [["hi", "S", "L"], ["hi", "S", "R"]]


# ---- between agents --------------------------------------------------------------------------------


async def test_a_changed_text_goes_on_with_the_conversation(caplog):
    @executor(id="change")
    async def change(response: AgentExecutorResponse, ctx: WorkflowContext[AgentExecutorResponse]) -> None:
        await ctx.send_message(response.with_text("N"))

    b = agent("b")
    with caplog.at_level(logging.WARNING, "agentbench"):
        await chain(agent("a"), change, b).run("hi")
    assert asked(b) == [["hi", "N"]]
    assert caplog.text == ""


async def test_a_plain_text_behind_an_agent_is_warned_of(caplog):
    @executor(id="change")
    async def change(response: AgentExecutorResponse, ctx: WorkflowContext[str]) -> None:
        await ctx.send_message("N")

    b = agent("b")
    with caplog.at_level(logging.WARNING, "agentbench"):
        await chain(agent("a"), change, b).run("hi")
    assert asked(b) == [["N"]]
    assert "'b' got a plain text from change" in caplog.text
    assert "with_text" in caplog.text


def response(conversation: list[Message] | None, *own: Message) -> AgentExecutorResponse:
    return AgentExecutorResponse("node", AgentResponse(messages=list(own)), conversation)


HI, ONE, TWO = Message("user", "hi"), Message("assistant", "1", author_name="a"), Message("assistant", "2")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (response([HI, ONE], ONE), ["hi", "N"]),
        (response([HI, ONE, TWO], ONE, TWO), ["hi", "N"]),
        (response([HI]), ["hi", "N"]),  # the agent said nothing
        (response([HI, TWO], ONE), ["hi", "2", "N"]),  # edited by hand
        (response(None, ONE), ["N"]),
    ],
)
def test_with_text_replaces_what_the_agent_said_and_nothing_else(before, after):
    known = [*(before.full_conversation or [])], [*before.agent_response.messages]
    changed = before.with_text("N")
    assert texts(changed.full_conversation) == after
    assert (changed.executor_id, texts(changed.agent_response.messages)) == ("node", ["N"])
    assert (before.full_conversation or [], before.agent_response.messages) == known


def test_a_changed_text_keeps_its_author():
    assert response([HI, ONE], ONE).with_text("N").agent_response.messages[0].author_name == "a"


# ---- streams ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [lambda: agent("a", "Good day"), ForeignAgent])
async def test_a_streamed_run_yields_updates_and_sends_the_whole_response(make):
    got: list[AgentExecutorResponse] = []

    @executor(id="sink")
    async def sink(response: AgentExecutorResponse, ctx: WorkflowContext) -> None:
        got.append(response)

    events = [event async for event in chain(make(), sink).run("hi", stream=True)]
    outputs = [event.data for event in events if event.type == "output"]
    assert [type(data) for data in outputs] == [AgentResponseUpdate, AgentResponseUpdate]
    assert "".join(update.text for update in outputs) == "Good day"
    assert texts(got[0].full_conversation) == ["hi", "Good day"]
    (completed,) = (e for e in events if e.type == "executor_completed" and e.executor_id != "sink")
    assert [type(data) for data in completed.data] == [AgentExecutorResponse, AgentResponseUpdate, AgentResponseUpdate]


async def test_updates_come_while_the_agent_is_still_speaking():
    spoken: list[str] = []

    class Slow(ForeignAgent):
        async def _stream(self):
            async for update in super()._stream():
                await asyncio.sleep(0)  # as a model over the network
                spoken.append(update.text)
                yield update

    async for event in chain(Slow()).run("hi", stream=True):
        if event.type == "output":
            assert spoken == ["Good "]
            break


async def test_the_final_response_of_a_stream_has_passed_the_hooks_of_its_agent():
    @agent_middleware
    async def shout(context, call_next):
        context.stream_result_hooks.append(lambda response: AgentResponse(text=response.text.upper()))
        await call_next()

    b = agent("b")
    stream = chain(agent("a", "quiet", middleware=[shout]), b).run("hi", stream=True)
    await stream.get_final_response()
    assert asked(b) == [["hi", "QUIET"]]


async def test_a_foreign_agent_with_a_response_format_sends_values():
    class Formatted(ForeignAgent):
        def __init__(self) -> None:
            super().__init__(updates=('{"n":', " 1}"))
            self.default_options = {"response_format": {"type": "object"}}

    @executor(id="value")
    async def value(response: AgentExecutorResponse, ctx: WorkflowContext[Never, Any]) -> None:
        await ctx.yield_output(response.agent_response.value)

    events = [e async for e in chain(Formatted(), value, output_from=[value]).run("hi", stream=True)]
    assert [event.data for event in events if event.type == "output"] == [{"n": 1}]


# ---- the run around it -----------------------------------------------------------------------------


async def test_arguments_of_a_run_reach_the_tools_and_clients_of_the_agents_they_are_for():
    seen: list[Any] = []

    @tool(approval_mode="never_require")
    def look(ctx: FunctionInvocationContext) -> str:
        "Look."
        seen.append(ctx.kwargs["user"])
        return "seen"

    a = agent("a", call("look"), "done", tools=[look])
    b = agent("b", call("look"), "done", tools=[look])
    await chain(a, b).run("hi", function_invocation_kwargs={"a": {"user": "Ann"}, "b": {"user": "Bob"}})
    await chain(agent("c", call("look"), "done", tools=[look])).run("hi", function_invocation_kwargs={"user": "Cem"})
    assert seen == ["Ann", "Bob", "Cem"]


async def test_an_agent_in_a_workflow_that_is_an_agent_is_found_by_its_id_and_gets_the_arguments_for_all():
    seen: list[dict[str, Any]] = []

    @tool
    def look(ctx: FunctionInvocationContext) -> str:
        "Look."
        seen.append({key: value for key, value in ctx.kwargs.items() if key != "session"})
        return "seen"

    clerk = agent("clerk", call("look"), "done", tools=[look])
    team = WorkflowBuilder(clerk).build().as_agent("team")
    given = WorkflowInvocationKwargs(global_kwargs={"user": "Ada"}, executor_kwargs={"clerk": {"a": 1}})
    await WorkflowBuilder(team).build().run("Go", function_invocation_kwargs=given)
    assert seen == [{"user": "Ada", "a": 1}]


@pytest.mark.parametrize(
    "around",
    [
        lambda clerk: one_node(clerk),
        lambda clerk: one_node(one_node(clerk)),
        lambda clerk: one_node(chain(clerk), "desk"),
        lambda clerk: one_node(chain(clerk).as_agent("team"), "desk"),
        lambda clerk: one_node(clerk).as_agent("team"),
    ],
    ids=["graph", "graph in a graph", "workflow in a graph", "workflow agent in a graph", "graph as an agent"],
)
async def test_arguments_reach_an_agent_in_a_state_graph_in_the_workflow(around: Any):
    seen: list[Any] = []

    @tool
    def look(ctx: FunctionInvocationContext) -> str:
        "Look."
        seen.append((ctx.kwargs["user"], ctx.kwargs["desk"]))
        return "seen"

    clerk = agent("clerk", call("look"), "done", tools=[look])
    given = WorkflowInvocationKwargs(global_kwargs={"user": "Ada"}, executor_kwargs={"clerk": {"desk": 1}})
    await chain(around(clerk)).run([Message("user", ["Go"])], function_invocation_kwargs=given, client_kwargs={"n": 7})
    assert seen == [("Ada", 1)]
    assert [asked.more["n"] for asked in clerk.client.asked] == [7, 7]


def one_node(node: Any, name: str = "clerk") -> Any:
    return StateGraph(name="graph").add_node(name, node).set_entry_point(name).compile()


async def test_client_arguments_reach_the_client():
    a = agent("a")
    await chain(a).run("hi", client_kwargs={"trace": 7})
    assert a.client.asked[0].more["trace"] == 7


async def test_a_middleware_that_ends_the_run_leaves_an_empty_answer():
    @agent_middleware
    async def end(context, call_next):
        return

    b = agent("b")
    result = await chain(agent("a", middleware=[end]), b).run("hi")
    assert asked(b) == [["hi"]]
    assert [output.text for output in result.outputs] == ["", "B"]


async def test_a_failed_turn_leaves_nothing_behind():
    a = agent("a", ConnectionError("down"), "fine")
    workflow = chain(a)
    with pytest.raises(ConnectionError):
        await workflow.run("one")
    await workflow.run("two")
    assert asked(a) == [["one"], ["two"]]


async def test_a_turn_can_be_tried_again():
    class Patient(AgentExecutor):
        policy = ExecutorPolicy(retries=1)

    a, b = agent("a", ConnectionError("down"), "fine"), agent("b")
    await chain(Patient(a), b).run("hi")
    assert asked(a) == [["hi"], ["hi"]]
    assert asked(b) == [["hi", "fine"]]


async def test_the_saved_state_has_the_documented_parts():
    saved = await AgentExecutor(agent("a")).on_checkpoint_save()
    assert saved.keys() == AgentExecutorCheckpointState.__annotations__.keys()
