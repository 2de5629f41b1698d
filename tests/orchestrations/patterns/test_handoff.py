"""Agents that hand a conversation on."""

from __future__ import annotations

from typing import Any

from agentbench import (
    Agent,
    Call,
    FileCheckpointStorage,
    FunctionMiddleware,
    Message,
    ScriptedChatClient,
    WorkflowConvergenceException,
    WorkflowRunState,
    tool,
)
from agentbench.orchestrations import HandoffAgentUserRequest, HandoffBuilder, HandoffSentEvent
from tests.orchestrations.nodes import ForeignAgent
from tests.parts.errors import raises


def agent(name: str, *script: Any, **settings: Any) -> Agent:
    client = ScriptedChatClient([*script])
    settings = {"require_per_service_call_history_persistence": True, "description": f"Knows {name}.", **settings}
    return Agent(client, name=name, **settings)


def team(*agents: Agent, **options: Any) -> HandoffBuilder:
    return HandoffBuilder(participants=agents, **options).with_start_agent(agents[0])


def read(of: Agent, call: int = -1) -> list[tuple[str, str]]:
    """What the model of an agent was sent: roles with texts, calls and results."""
    return [
        (message.role, message.text or " ".join(str(each.result or each.name) for each in message.contents))
        for message in of.client.calls[call].messages
    ]


def handoffs(result: Any) -> list[tuple[str, str]]:
    return [(event.data.source, event.data.target) for event in result if event.type == "handoff_sent"]


def question(result: Any) -> str:
    [request] = result.get_request_info_events()
    assert isinstance(request.data, HandoffAgentUserRequest)
    return str(request.request_id)


async def test_who_gets_the_conversation_has_heard_it_and_asks_the_user():
    triage, refunds = agent("triage", Call("handoff_to_refunds", {})), agent("refunds", "Which order?", "Paid back.")
    workflow = team(triage, refunds).build()
    result = await workflow.run("I want my money back.")
    assert (handoffs(result), [output.text for output in result.outputs]) == ([("triage", "refunds")], ["Which order?"])
    assert result.get_final_state() is WorkflowRunState.IDLE_WITH_PENDING_REQUESTS
    answer = HandoffAgentUserRequest.create_response("Order 7.")
    result = await workflow.run(responses={question(result): answer})
    assert [output.text for output in result.outputs] == ["Paid back."]
    assert read(refunds) == [("user", "I want my money back."), ("assistant", "Which order?"), ("user", "Order 7.")]
    result = await workflow.run(responses={question(result): HandoffAgentUserRequest.terminate()})
    assert (result.outputs, result.get_final_state()) == ([], WorkflowRunState.IDLE)


async def test_there_and_back_again_with_a_history_that_is_whole():
    a = agent("a", Call("handoff_to_b", {}), "Thanks, b.")
    b = agent("b", [Call("handoff_to_a", {})])
    result = await team(a, b).build().run("hi")
    assert handoffs(result) == [("a", "b"), ("b", "a")]
    assert read(a) == [
        ("user", "hi"),
        ("assistant", "handoff_to_b"),
        ("tool", '{"handoff_to": "b"}'),
        ("user", "b has handed the conversation to you."),
    ]


async def test_tools_to_hand_on_stand_in_the_order_of_participants_and_say_what_others_know():
    a, b, c = agent("a", "x"), agent("b"), agent("c")
    await team(a, c, b).build().run("hi")
    [call] = a.client.calls
    tools = {each.name: each.description for each in call.options["tools"]}
    assert [*tools] == ["handoff_to_c", "handoff_to_b"]
    assert "Knows c." in tools["handoff_to_c"]
    assert call.options["allow_multiple_tool_calls"] is False
    assert a.default_options.get("tools") in ([], None)


async def test_only_the_added_ones_may_be_used():
    a, b, c = agent("a", Call("handoff_to_c", {}), "Nobody there."), agent("b"), agent("c")
    result = await team(a, b, c).add_handoff(a, [b], description="For bees.").build().run("hi")
    assert [each.name for each in a.client.calls[0].options["tools"]] == ["handoff_to_b"]
    assert "For bees." in a.client.calls[0].options["tools"][0].description
    assert (handoffs(result), result.outputs[-1].text) == ([], "Nobody there.")


async def test_the_first_of_several_handoffs_wins():
    a, b, c = (
        agent("a", [Call("handoff_to_c", {}), Call("handoff_to_b", {})], "later"),
        agent("b"),
        agent("c", Call("handoff_to_a", {})),
    )
    result = await team(a, b, c).build().run("hi")
    assert handoffs(result) == [("a", "c"), ("c", "a")]
    told = " ".join(text for role, text in read(a) if role == "tool")
    assert told == '{"handoff_to": "c"} Refused: the conversation goes to c already.'


async def test_a_handoff_alone_is_no_output_and_is_streamed_as_none():
    a, b = agent("a", [Call("handoff_to_b", {})]), agent("b", "Here.")
    streamed = await team(a, b).build().run("hi", stream=True).get_final_response()
    assert "".join(update.text for update in streamed.outputs) == "Here."
    assert {event.executor_id for event in streamed if event.type == "output"} == {"b"}
    assert HandoffSentEvent("a", "b") in [event.data for event in streamed]


async def test_others_hear_texts_only():
    @tool
    def look() -> str:
        """Look."""
        return "secret"

    a = agent("a", [Call("look", {})], ["I looked.", Call("handoff_to_b", {})], tools=[look])
    b = agent("b", "fine")
    await team(a, b).build().run("hi")
    assert read(b) == [("user", "hi"), ("assistant", "I looked.")]


async def test_alone_until_the_limit_then_the_user_is_asked():
    a, b = agent("a", "one", "two", "three", "four"), agent("b")
    workflow = team(a, b).with_autonomous_mode(prompts={"a": "And?"}, turn_limits={"a": 2}).build()
    result = await workflow.run("hi")
    assert [output.text for output in result.outputs] == ["one", "two", "three"]
    assert [text for role, text in read(a) if role == "user"] == ["hi", "And?", "And?"]
    answer = HandoffAgentUserRequest.create_response(["go"])
    with raises(Exception, "script"):  # four, and then there is nothing left to say
        await workflow.run(responses={question(result): answer})


async def test_many_turns_alone_are_a_loop():
    a = Agent(
        ScriptedChatClient(["on"], on_exhausted="repeat_last"),
        name="a",
        require_per_service_call_history_persistence=True,
    )
    workflow = team(a, agent("b")).with_autonomous_mode(agents=[a], turn_limits={"a": 300}).build()
    assert len((await workflow.run("hi")).outputs) == 301


async def test_two_who_hand_on_for_ever_end_at_a_limit_that_is_named():
    def other(name: str, to: str) -> Agent:
        client = ScriptedChatClient([Call(f"handoff_to_{to}", {})], on_exhausted="repeat_last")
        return Agent(client, name=name, require_per_service_call_history_persistence=True)

    with raises(WorkflowConvergenceException, "max_iterations"):
        await team(other("a", "b"), other("b", "a")).build().run("hi")


async def test_a_condition_ends_it_before_and_after_a_turn():
    async def is_over(conversation: list[Message]) -> bool:
        return "bye" in conversation[-1].text

    a, b = agent("a", "bye"), agent("b")
    workflow = team(a, b, termination_condition=is_over).build()
    result = await workflow.run("hi")
    assert (len(result.outputs), result.get_request_info_events()) == (1, [])
    result = await workflow.clone().run("bye")
    assert (result.outputs, len(a.client.calls)) == ([], 1)


async def test_an_approval_in_the_middle_and_a_resume_elsewhere(tmp_path):
    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        """Pay."""
        return f"paid {amount}"

    def build(*script: Any) -> Any:
        a, b = agent("a", Call("handoff_to_b", {})), agent("b", *script, tools=[pay])
        return team(a, b, name="shop", checkpoint_storage=FileCheckpointStorage(tmp_path)).build(), b

    workflow, _ = build([Call("pay", {"amount": 7})])
    result = await workflow.run("hi")
    [request] = result.get_request_info_events()
    later, b = build("Done.")
    await later.run(checkpoint_id=result.checkpoints[-1])
    answer = request.data.to_function_approval_response(approved=True)
    result = await later.run(responses={request.request_id: answer})
    assert result.outputs[-1].text == "Done."
    assert ("tool", "paid 7") in read(b)


async def test_middleware_and_providers_of_the_agent_are_kept_and_the_agent_is_not_touched():
    seen: list[str] = []

    class Watch(FunctionMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            seen.append(context.function.name)
            await call_next()

    a, b = agent("a", [Call("handoff_to_b", {})], middleware=[Watch()]), agent("b", "x")
    before = {**a.default_options}
    await team(a, b).build().run("hi")
    assert seen == ["handoff_to_b"]
    assert a.default_options == before


async def test_copies_may_get_the_setting_that_agents_lack():
    a, b = (Agent(ScriptedChatClient(["x"]), name=name) for name in "ab")
    with raises(ValueError, "require_per_service_call_history_persistence=True"):
        team(a, b).build()
    workflow = team(a, b, enable_history_persistence=True).build()
    assert (await workflow.run("hi")).outputs[0].text == "x"
    assert not a.require_per_service_call_history_persistence


def test_what_makes_no_handoff(caplog):
    a, b = agent("a"), agent("b")
    with raises(ValueError, "participant"):
        HandoffBuilder().build()
    with raises(ValueError, "with_start_agent()"):
        HandoffBuilder(participants=[a, b]).build()
    with raises(TypeError, "Agent"):
        HandoffBuilder(participants=[a, ForeignAgent()])
    with raises(ValueError, "twice"):
        HandoffBuilder(participants=[a, a])
    with raises(ValueError, "already"):
        team(a, b).participants([a])
    with raises(ValueError, "participant"):
        team(a, b).add_handoff(a, ["zoe"])
    with raises(ValueError, "itself"):
        team(a, b).add_handoff(a, [a])
    with raises(ValueError, "participant"):
        team(a, b).with_autonomous_mode(turn_limits={"zoe": 1})
    with raises(ValueError, "'b'"):
        team(a, b).with_autonomous_mode(agents=[a], prompts={"b": "And?"})
    with raises(ValueError, "'b'", "turn_limits"):
        team(a, b).with_autonomous_mode(agents=[a], turn_limits={"b": 1})
    clash = agent("c", tools=[tool(lambda: 1, name="handoff_to_b", description="d")])
    with raises(ValueError, "'handoff_to_b'"):
        team(clash, b).build()
    team(a, b).add_handoff(a, [b]).add_handoff(a, [b])
    assert "already exists" in caplog.text


async def test_the_users_message_goes_to_the_start_agent_if_it_does_not_return_to_the_previous_one():
    triage = agent("triage", Call("handoff_to_refunds", {}), "Anything else?")
    refunds = agent("refunds", "Which order?")
    workflow = team(triage, refunds).enable_return_to_previous(False).build()
    waiting = await workflow.run("I want my money back.")
    result = await workflow.run(responses={question(waiting): "Order 7."})
    assert [output.text for output in result.outputs] == ["Anything else?"]
    assert [text for role, text in read(triage) if role == "user"] == ["I want my money back.", "Order 7."]
    assert question(result)
    assert len(refunds.client.calls) == 1


async def test_the_agent_that_asked_goes_on_by_default_and_when_that_is_enabled():
    for builder in (team, lambda *agents: team(*agents).enable_return_to_previous()):
        triage, refunds = agent("triage", Call("handoff_to_refunds", {})), agent("refunds", "Which?", "Paid back.")
        workflow = builder(triage, refunds).build()
        waiting = await workflow.run("I want my money back.")
        result = await workflow.run(responses={question(waiting): "Order 7."})
        assert [output.text for output in result.outputs] == ["Paid back."]


async def test_an_empty_answer_ends_the_conversation_whoever_would_get_it():
    triage, refunds = agent("triage", Call("handoff_to_refunds", {})), agent("refunds", "Which order?")
    workflow = team(triage, refunds).enable_return_to_previous(False).build()
    waiting = await workflow.run("I want my money back.")
    result = await workflow.run(responses={question(waiting): HandoffAgentUserRequest.terminate()})
    assert (result.outputs, result.get_final_state()) == ([], WorkflowRunState.IDLE)
