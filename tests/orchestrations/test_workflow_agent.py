"""A workflow as an agent."""

import json
from pathlib import Path
from typing import Any, Never

import pytest

from agentbench import (
    Agent,
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    Content,
    Executor,
    FileCheckpointStorage,
    FunctionTool,
    InMemoryHistoryProvider,
    Message,
    SupportsAgentRun,
    Workflow,
    WorkflowAgent,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
    response_handler,
    tool,
)
from agentbench.exceptions import AgentInvalidRequestException, AgentInvalidResponseException
from tests.agents.fake_clients import Model, call
from tests.orchestrations.nodes import agent, asked
from tests.parts.errors import raises


def yielding(*values: Any) -> Workflow:
    @executor(id="speaker")
    async def speak(messages: list[Message], ctx: WorkflowContext[str, Any]) -> None:
        for value in values:
            await ctx.yield_output(value)

    return WorkflowBuilder(start_executor=speak, name="speaking").build()


class Ask(Executor):
    @handler
    async def on_messages(self, messages: list[Message], ctx: WorkflowContext[str, str]) -> None:
        await ctx.request_info(messages[-1].text, bool)

    @response_handler
    async def on_answer(self, text: str, answer: bool, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(f"{text}: {answer}")


def asking() -> WorkflowAgent:
    found: WorkflowAgent = WorkflowBuilder(start_executor=Ask("ask"), name="asking").build().as_agent()
    return found


def pairs(messages: list[Message]) -> list[tuple[str | None, str]]:
    return [(message.author_name, message.text) for message in messages]


async def test_two_agents_speak_for_themselves_streamed_or_not():
    a, b = agent("A", "first", "first"), agent("B", "second", "second")
    team = WorkflowBuilder(start_executor=a).add_edge(a, b).build().as_agent()
    response = await team.run("Hello")
    assert pairs(response.messages) == [("A", "first"), ("B", "second")]
    stream = team.run("Hello", stream=True)
    updates = [update async for update in stream]
    assert {update.author_name for update in updates} == {"A", "B"}
    assert pairs((await stream.get_final_response()).messages) == [("A", "first"), ("B", "second")]


async def test_it_is_an_agent_with_the_name_of_the_workflow():
    workflow = yielding("a")
    team = workflow.as_agent(description="Speaks.")
    assert (team.name, team.description, team.workflow) == ("speaking", "Speaks.", workflow)
    assert isinstance(team, SupportsAgentRun)
    assert team.id.startswith("WorkflowAgent_")
    assert workflow.as_agent("other").name == "other"


def test_a_start_executor_for_texts_only_is_refused():
    @executor
    async def text_only(text: str, ctx: WorkflowContext) -> None: ...

    with raises(ValueError, "list[Message]"):
        WorkflowBuilder(start_executor=text_only).build().as_agent()


async def test_a_session_of_another_type_is_refused_with_advice():
    team: Any = asking()
    with raises(TypeError, "'s1'", "AgentSession", "agent.create_session(session_id="):
        await team.run("hi", session="s1")


async def test_yields_of_any_kind_are_messages():
    one = Message("assistant", ["m"], author_name="me")
    workflow = yielding({"k": 1}, ["a", Content.from_text("b")], one, [one, one], AgentResponse(text="r"), 5)
    response = await workflow.as_agent().run("go")
    texts = [message.text for message in response.messages]
    assert texts[0] == "{'k': 1}"
    assert [content.text for content in response.messages[1].contents] == ["a", "b"]
    assert texts[2:] == ["m", "m", "m", "r", "5"]
    assert [m.author_name for m in response.messages][:3] == ["speaker", "speaker", "me"]
    streamed = await workflow.as_agent().run("go", stream=True).get_final_response()
    assert [message.text for message in streamed.messages][2:] == texts[2:]


async def test_an_update_has_what_the_executor_yielded_as_its_raw_representation():
    message, piece = Message("assistant", ["m"]), AgentResponseUpdate(text="p", raw_representation="of the client")
    yielded = [{"k": 1}, "text", message, [message, message], AgentResponse(text="r")]
    updates = [update async for update in yielding(*yielded, piece).as_agent().run("go", stream=True)]
    assert [update.raw_representation for update in updates] == [
        *yielded[:4], yielded[3], yielded[4], "of the client"
    ]  # fmt: skip


@pytest.mark.parametrize("streamed", [False, True])
async def test_additional_properties_of_several_responses_are_merged(streamed):
    parts = [AgentResponse(text="a", additional_properties={"a": 1, "n": 1})]
    parts.append(AgentResponse(text="b", additional_properties={"b": 2, "n": 2}))
    team = yielding(*parts).as_agent()
    response = await (team.run("go", stream=True).get_final_response() if streamed else team.run("go"))
    assert response.additional_properties == {"a": 1, "b": 2, "n": 2}


async def test_an_update_belongs_into_a_streamed_run():
    workflow = yielding(AgentResponseUpdate(text="piece"))
    with pytest.raises(AgentInvalidRequestException):
        await workflow.as_agent().run("go")
    (update,) = [update async for update in workflow.as_agent().run("go", stream=True)]
    assert (update.text, update.author_name) == ("piece", "speaker")


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_request_is_a_call_and_the_request_to_approve_it(streamed):
    team = asking()
    response = await team.run("go", stream=True).get_final_response() if streamed else await team.run("go")
    (request_id,) = team.pending_requests
    call, approval = response.messages[0].contents
    assert (call.type, call.name, call.call_id) == ("function_call", "request_info", request_id)
    assert call.arguments == {"request_id": request_id, "data": "go"}
    assert (approval.type, approval.id) == ("function_approval_request", request_id)
    assert response.user_input_requests == [approval]


async def test_a_function_result_responds_to_a_request():
    team = asking()
    await team.run("go")
    (request_id,) = team.pending_requests
    answer = Message("tool", [Content.from_function_result(request_id, result=True)])
    assert (await team.run(answer)).text == "go: True"
    assert team.pending_requests == {}
    assert (await team.run("again")).user_input_requests


async def test_an_approval_responds_with_its_argument():
    team = asking()
    (request,) = (await team.run("go")).user_input_requests
    assert request.function_call is not None
    arguments = WorkflowAgent.RequestInfoFunctionArgs(str(request.id), False)
    call = Content.from_function_call(str(request.id), "request_info", arguments=arguments.to_json())
    approval = Content.from_function_approval_response(True, str(request.id), call)
    assert (await team.run(Message("user", [approval]))).text == "go: False"


async def test_other_messages_while_a_request_is_pending_are_refused():
    team = asking()
    (request,) = (await team.run("go")).user_input_requests
    broken = Content.from_function_call("x", "request_info", arguments="{")
    for content in (
        Content.from_text("yes"),
        request.to_function_approval_response(False),
        Content.from_function_approval_response(True, "x", broken),
    ):
        with pytest.raises(AgentInvalidResponseException):
            await team.run(Message("user", [content]))
    with raises(AgentInvalidRequestException, "'other'"):
        await team.run(Message("tool", [Content.from_function_result("other", result=True)]))
    assert list(team.pending_requests) == [request.id]


async def test_a_session_holds_the_conversation_and_sessions_do_not_mix():
    inner = agent("A", "one", "two", "three")
    team = WorkflowBuilder(start_executor=inner, name="team").build().as_agent()
    session, other = team.create_session(), team.create_session()
    await team.run("first", session=session)
    await team.run("second", session=session)
    await team.run("third", session=other)
    assert asked(inner) == [["first"], ["first", "one", "second"], ["third"]]
    assert [type(each) for each in team.context_providers] == [InMemoryHistoryProvider]


def test_merged_updates_go_by_response_then_message_in_the_order_of_time():
    def update(text: str, response_id: str | None, message_id: str, second: int) -> AgentResponseUpdate:
        time = f"2026-01-01T00:00:0{second}+00:00"
        return AgentResponseUpdate(text=text, response_id=response_id, message_id=message_id, created_at=time)

    call = AgentResponseUpdate(
        contents=[Content.from_function_call("c1", "look")], response_id="r2", message_id="m3", role="assistant"
    )
    call.created_at = "2026-01-01T00:00:02+00:00"
    result = AgentResponseUpdate(contents=[Content.from_function_result("c1", result="found")], role="tool")
    call.additional_properties, result.additional_properties = {"calls": 1}, {"found": True}
    updates = [
        result,
        update("late", "r2", "m2", 4),
        update("or", None, "m9", 1),
        update("a", "r1", "m1", 1),
        call,
        update("b", "r1", "m1", 3),
    ]
    merged = WorkflowAgent.merge_updates(updates, "all")
    assert merged.response_id == "all"
    assert (merged.messages[0].text, merged.messages[-1].text) == ("ab", "or")
    assert merged.additional_properties == {"found": True, "calls": 1}
    assert {"function_call", "function_result"} <= {c.type for m in merged.messages[1:-1] for c in m.contents}


# ---- requests of agents inside ---------------------------------------------------------------------


def paying(paid: list[int]) -> Any:
    @tool(approval_mode="always_require")
    def pay(amount: int) -> str:
        paid.append(amount)
        return "paid"

    calls = [call("pay", "c1", amount=3), call("pay", "c2", amount=4)]
    return WorkflowBuilder(Agent(Model(calls, "done"), name="payer", tools=[pay])).build().as_agent("team")


def with_inner(requests: list[Content]) -> list[Any]:
    """Return requests of a workflow agent, and the requests of the agents inside that they repeat."""
    read = WorkflowAgent.RequestInfoFunctionArgs.from_dict
    return [*requests, *(read(one.function_call.arguments).data for one in requests)]  # type: ignore[union-attr, arg-type]


@pytest.mark.parametrize("streamed", [False, True])
async def test_a_response_lists_what_an_agent_inside_asks_only_as_requests_of_the_workflow(streamed):
    team, updates = paying([]), []
    if streamed:
        stream = team.run("go", stream=True)
        updates = [update async for update in stream]
        response = await stream.get_final_response()
    else:
        response = await team.run("go")
    requests = response.user_input_requests
    assert [one.id for one in requests] == [*team.pending_requests]
    streamed_ids = [one.id for update in updates for one in update.user_input_requests]
    assert streamed_ids == ([*team.pending_requests] if streamed else [])
    assert [one.function_call.name for one in with_inner(requests)] == ["request_info"] * 2 + ["pay"] * 2


@pytest.mark.parametrize("approved", [True, False])
@pytest.mark.parametrize("names", [{"pay"}, {"request_info"}, {"pay", "request_info"}])
async def test_what_an_agent_inside_asks_is_approved_or_rejected_by_either_of_its_requests(names, approved):
    paid: list[int] = []
    team = paying(paid)
    requests = with_inner((await team.run("go")).user_input_requests)
    answers = [one.to_function_approval_response(approved) for one in requests if one.function_call.name in names]
    assert (await team.run(Message("user", answers))).text == "done"
    assert sorted(paid) == ([3, 4] if approved else [])


@pytest.mark.parametrize("rejected", ["pay", "request_info"])
async def test_of_two_answers_to_what_an_agent_inside_asks_the_rejection_counts(rejected: str):
    paid: list[int] = []
    team = paying(paid)
    requests = with_inner((await team.run("go")).user_input_requests)
    answers = [one.to_function_approval_response(one.function_call.name != rejected) for one in requests]
    await team.run(Message("user", answers))
    assert paid == []


async def test_a_call_that_a_person_carries_out_inside_takes_the_result_of_the_request():
    ask = FunctionTool(name="ask", description="Asks a person.", input_model={"type": "object", "properties": {}})
    team = WorkflowBuilder(Agent(Model(call("ask", "c1"), "thanks"), name="clerk", tools=[ask])).build().as_agent()
    await team.run("go")
    (request_id,) = team.pending_requests
    result = Content.from_function_result(request_id, result="42")
    assert (await team.run(Message("tool", [result]))).text == "thanks"


async def test_each_session_waits_for_its_own_responses():
    team, one, other = asking(), AgentSession(), AgentSession()
    (first,) = (await team.run("a", session=one)).user_input_requests
    (second,) = (await team.run("b", session=other)).user_input_requests
    assert list(team.pending_requests) == [first.id, second.id]
    answer = Message("tool", [Content.from_function_result(str(second.id), result=True)])
    assert (await team.run(answer, session=other)).text == "b: True"
    assert list(team.pending_requests) == [first.id]
    answer = Message("tool", [Content.from_function_result(str(first.id), result=True)])
    assert (await team.run(answer)).text == "a: True"  # found without its session, too
    assert team.pending_requests == {}


async def test_an_answer_in_a_new_process_continues_at_its_checkpoint_and_is_refused_without_one(tmp_path: Path):
    class Review(Executor):
        @handler
        async def ask(self, messages: list[Message], ctx: WorkflowContext) -> None:
            await ctx.request_info(f"ok {messages[-1].text}?", str)

        @response_handler
        async def answered(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
            await ctx.yield_output(f"{question} -> {answer}")

    storage = FileCheckpointStorage(tmp_path)

    def process() -> WorkflowAgent:
        review = Review("review")
        return WorkflowBuilder(start_executor=review, name="rv", checkpoint_storage=storage).build().as_agent()

    first, session = process(), AgentSession()
    (request,) = (await first.run("plan", session=session)).user_input_requests
    stored = json.loads(json.dumps(session.to_dict()))
    point = await storage.get_latest(workflow_name="rv")
    assert point is not None
    answer = Message("tool", [Content.from_function_result(request.id or "", result="yes")])
    with pytest.raises(AgentInvalidRequestException):
        await process().run(answer, session=AgentSession.from_dict(stored))
    other = Message("tool", [Content.from_function_result("other", result="yes")])
    with pytest.raises(AgentInvalidRequestException):
        await process().run(other, session=AgentSession.from_dict(stored), checkpoint_id=point.checkpoint_id)
    session = AgentSession.from_dict(stored)
    response = await process().run(answer, session=session, checkpoint_id=point.checkpoint_id)
    assert (response.text, response.user_input_requests) == ("ok plan? -> yes", [])
    roles = [message.role for message in session.state["in_memory"]["messages"]]
    assert roles == ["user", "assistant", "tool", "assistant"]


@pytest.mark.parametrize("role", ["assistant", "tool", "system"])
async def test_only_a_message_of_the_user_approves_a_request(role: str):
    team = asking()
    (request,) = (await team.run("go")).user_input_requests
    with pytest.raises(AgentInvalidResponseException):
        await team.run(Message(role, [request.to_function_approval_response(True)]))
    assert list(team.pending_requests) == [request.id]
