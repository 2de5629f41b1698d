"""An agent that works in turns: it gathers messages until a token gives it the turn."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentHostExecutor,
    AgentHostOptions,
    AgentResponse,
    AgentResponseUpdate,
    Content,
    Executor,
    InMemoryCheckpointStorage,
    InProcessExecution,
    Message,
    TurnToken,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowRunState,
    bind_as_executor,
    handler,
)
from agentbench.orchestrations import build_sequential
from tests.agents.fake_clients import Model, call
from tests.orchestrations.nodes import ForeignAgent, agent, asked
from tests.orchestrations.test_agent_requests import ASK, approve, kinds, secretary


class Collect(Executor):
    """Notes what it gets."""

    def __init__(self) -> None:
        super().__init__("collect")
        self.got: list[Any] = []

    @handler
    async def anything(self, data: list[Message] | Content | TurnToken, ctx: WorkflowContext) -> None:
        self.got.append(data)


def alone(of: Any, **options: Any) -> tuple[Collect, Any]:
    collect, node = Collect(), bind_as_executor(of, AgentHostOptions(**options))
    return collect, WorkflowBuilder(start_executor=node).add_edge(node, collect).build()


def seen(of: Agent) -> list[list[tuple[str, str]]]:
    """Roles and texts of each call of the agent's model."""
    model: Model = of.client
    return [[(message.role, message.text) for message in one.messages] for one in model.asked]


# ---- turns -----------------------------------------------------------------------------------------


async def test_nothing_runs_without_a_token_and_everything_with_it():
    a = agent("a")
    workflow = build_sequential(a, options=AgentHostOptions())
    for message in ("one", Message("user", "two"), ["three", Message("user", "four")]):
        result = await workflow.run(message)
        assert result.get_final_state() is WorkflowRunState.IDLE
    assert asked(a) == []
    await workflow.run(TurnToken())
    assert asked(a) == [["one", "two", "three", "four"]]
    await workflow.run(["five", TurnToken()])
    assert asked(a)[1][-1] == "five"


async def test_one_token_at_the_head_runs_a_chain():
    fr, es, en = agent("fr"), agent("es"), agent("en")
    workflow = build_sequential(fr, es, en, options=AgentHostOptions(emit_agent_response_events=True))
    result = await workflow.run(["hello", TurnToken()])
    assert [output.text for output in result.outputs] == ["FR", "ES", "EN"]
    assert seen(es) == [[("user", "hello"), ("user", "FR")]]
    assert seen(en) == [[("user", "hello"), ("user", "FR"), ("user", "ES")]]
    assert result.warnings == []


@pytest.mark.parametrize(
    ("options", "heard"),
    [
        ({"forward_incoming_messages": False}, [("user", "FR")]),
        ({"reassign_other_agents_as_users": False}, [("user", "hi"), ("assistant", "FR")]),
    ],
)
async def test_options_choose_what_the_next_agent_hears(options, heard):
    fr, es = agent("fr"), agent("es")
    await build_sequential(fr, es, options=AgentHostOptions(**options)).run(["hi", TurnToken()])
    assert seen(es) == [heard]


async def test_it_sends_what_it_got_and_what_its_agent_said_and_then_a_new_token():
    collect, workflow = alone(agent("a"))
    token = TurnToken(emit_events=False)
    await workflow.run(["hi", token])
    messages, passed = collect.got
    assert [message.text for message in messages] == ["hi", "A"]
    assert passed == token
    assert passed is not token


@pytest.mark.parametrize("of", [agent("a", "first", "second"), ForeignAgent()])
async def test_its_own_messages_stay_its_own_when_they_come_back(of):
    collect, workflow = alone(of)
    await workflow.run(["hi", TurnToken()])
    stored = [message.role for message in collect.got[0]]
    again = bind_as_executor(of)
    collect.got[0].append(Message("assistant", "other", author_name="b"))
    workflow = WorkflowBuilder(start_executor=again).build()
    await workflow.run([*collect.got[0], TurnToken()])
    sent = of.asked[-1] if isinstance(of, ForeignAgent) else of.client.asked[-1].messages
    assert [message.role for message in sent] == ["user", "assistant", "user"]
    assert [message.role for message in collect.got[0]] == [*stored, "assistant"]


# ---- what it yields --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("token", "options", "kinds_yielded"),
    [
        (None, {}, []),
        (None, {"emit_agent_update_events": True}, [AgentResponseUpdate] * 2),
        (True, {"emit_agent_update_events": False}, [AgentResponseUpdate] * 2),
        (False, {"emit_agent_update_events": True}, []),
        (None, {"emit_agent_response_events": True}, [AgentResponse]),
        (True, {"emit_agent_response_events": True}, [AgentResponseUpdate] * 2 + [AgentResponse]),
    ],
)
async def test_the_token_and_then_the_options_choose_what_is_yielded(token, options, kinds_yielded):
    _, workflow = alone(agent("a", "Good day"), **options)
    result = await workflow.run(["hi", TurnToken(token)])
    assert [type(event.data) for event in result if event.type == "output"] == kinds_yielded


async def test_a_token_that_is_sent_later_starts_the_turn():
    fr, es = agent("fr"), agent("es")
    run = await InProcessExecution.run_streaming(build_sequential(fr, es, options=AgentHostOptions()), "hello")
    assert await run.try_send_message(TurnToken(emit_events=True))
    events = [event async for event in run.watch_stream()]
    assert [event.data.text for event in events if event.type == "output"] == ["FR", "ES"]
    assert asked(es) == [["hello", "FR"]]


# ---- fan-in ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("mode", "turns"),
    [
        ("barrier", [["hi", "S", "L", "hi", "S", "R"]]),
        ("independent", [["hi", "S", "L"], ["hi", "S", "L", "E", "hi", "S", "R"]]),  # its session has the first turn
    ],
)
async def test_behind_a_barrier_tokens_are_one_turn_and_else_several(mode, turns):
    start, left, right, end = (agent(name) for name in ("s", "l", "r", "e"))
    builder = WorkflowBuilder(start_executor=start, agent_mode="turns").fan_out(start, [left, right])
    await builder.fan_in([left, right], end, mode=mode).build().run(["hi", TurnToken()])
    assert asked(end) == turns


# ---- requests --------------------------------------------------------------------------------------


@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_the_token_waits_until_all_requests_are_answered():
    first, clerk = secretary(), agent("clerk")
    workflow = build_sequential(first, clerk, options=AgentHostOptions(emit_agent_response_events=True))
    one, two = (await workflow.run(["Invite them.", TurnToken()])).get_request_info_events()
    await workflow.run(responses={one.request_id: approve(one)})
    await workflow.run(["And be quick.", TurnToken()])
    assert (len(asked(first)), asked(clerk)) == (1, [])
    done = await workflow.run(responses={two.request_id: approve(two)})
    assert [output.text for output in done.outputs] == ["all sent", "CLERK"]
    assert first.client.asked[-1].messages[-1].text == "And be quick."
    assert kinds(clerk.client.asked[0].messages) == [
        ("user", ["text"]),
        ("assistant", ["function_call", "function_call"]),
        ("tool", ["function_result", "function_result"]),
        ("user", ["text"]),
        ("user", ["text"]),
    ]


async def test_messages_wait_for_their_turn_in_a_checkpoint():
    storage = InMemoryCheckpointStorage()

    def build(a: Agent) -> Any:
        return WorkflowBuilder(bind_as_executor(a), name="w", checkpoint_storage=storage).build()

    run = build(agent("a")).start("hi")
    await run.result()
    a = agent("a")
    last: Any = await storage.get_latest(workflow_name="w")
    await build(a).start(TurnToken(), resume_from=last).result()
    assert asked(a) == [["hi"]]


@pytest.mark.parametrize(
    ("first", "option", "kind"),
    [
        (secretary, "intercept_user_input_requests", "function_approval_request"),
        (
            lambda: Agent(Model(call("ask", "c1"), "It is 42."), name="first", tools=[ASK]),
            "intercept_unterminated_function_calls",
            "function_call",
        ),
    ],
)
async def test_intercepted_requests_are_answered_by_messages(first, option, kind):
    class Person(Executor):
        def __init__(self) -> None:
            super().__init__("person")
            self.got: list[str] = []
            self.end: list[Any] = []

        @handler
        async def answer(self, request: Content, ctx: WorkflowContext[Content]) -> None:
            self.got.append(request.type)
            if request.type == "function_call":
                await ctx.send_message(Content.from_function_result(request.call_id or "", result="42"))
            else:
                await ctx.send_message(request.to_function_approval_response(True))

        @handler
        async def end_of_turn(self, data: list[Message] | TurnToken, ctx: WorkflowContext) -> None:
            self.end.append(data)

    person, node = Person(), bind_as_executor(first(), AgentHostOptions(**{option: True}))
    workflow = WorkflowBuilder(start_executor=node).add_edge(node, person).add_edge(person, node).build()
    result = await workflow.run(["go", TurnToken()])
    assert result.get_request_info_events() == []
    assert set(person.got) == {kind}
    assert person.end[0][-1].text in ("all sent", "It is 42.")


async def test_an_answer_to_nothing_is_ignored_with_a_warning():
    workflow = WorkflowBuilder(bind_as_executor(agent("a"))).build()
    result = await workflow.run(Content.from_function_result("c1", result="42"))
    (warning,) = (event.data for event in result if event.type == "warning")
    assert "'c1'" in warning


async def test_an_agent_that_responds_may_follow_one_that_works_in_turns():
    first, second = AgentHostExecutor(agent("first")), agent("second")
    result = await WorkflowBuilder(first).add_edge(first, second).build().run(["hello", TurnToken()])
    assert [output.text for output in result.get_outputs()] == ["SECOND"]
    assert asked(second) == [["hello", "FIRST"]]
    assert [event for event in result if event.type == "warning"] == []
