"""A workflow function as an agent."""

from typing import Any

import pytest

from agentbench import (
    Content,
    FunctionalWorkflowAgent,
    InMemoryCheckpointStorage,
    Message,
    RunContext,
    SupportsAgentRun,
    WorkflowBuilder,
    workflow,
)
from tests.parts.errors import raises


@workflow
async def confirm(text: str, ctx: RunContext) -> str:
    """Ask whether the text is right."""
    return f"{text}: {await ctx.request_info(text, bool)}"


async def test_what_the_function_returns_is_a_message_of_the_assistant():
    @workflow
    async def shout(text: str) -> str:
        return text.upper()

    agent = shout.as_agent()
    assert isinstance(agent, SupportsAgentRun)
    assert (agent.id, agent.name) == ("FunctionalWorkflowAgent_shout", "shout")
    (message,) = (await agent.run("hello")).messages
    assert (message.role, message.author_name, message.text) == ("assistant", "shout", "HELLO")
    assert [update.text async for update in agent.run("hello", stream=True)] == ["HELLO"]


async def test_a_function_gets_messages_where_it_says_so_and_nothing_where_it_takes_nothing():
    @workflow
    async def roles(messages: list[Message]) -> str:
        return " ".join(str(message.role) for message in messages)

    @workflow
    async def nothing() -> str:
        return "nothing"

    assert (await roles.as_agent().run([Message("system", ["s"]), Message("user", ["u"])])).text == "system user"
    assert (await nothing.as_agent().run("ignored")).text == "nothing"


async def test_values_that_are_no_messages_are_texts():
    @workflow
    async def echo(text: str) -> list[Any]:
        return [text, {"n": 1}]

    agent = echo.as_agent()
    for given, text in ((5, "5"), ({"a": 1}, "{'a': 1}"), ([1, "b", Message("user", ["c"])], "1\nb\nc")):
        (message,) = (await agent.run(given)).messages
        assert [content.text for content in message.contents] == [text, "{'n': 1}"]
    assert (await agent.run({"type": "text", "text": "d"})).text == "d {'n': 1}"


@pytest.mark.parametrize(
    "given",
    [
        {"type": "invoice", "total": 3},
        {"type": "data", "rows": [1, 2]},
        {"type": ["a"]},
        {"role": "admin", "name": "Ann"},
        {"role": "admin", "text": "hi", "level": 2},
    ],
)
@pytest.mark.parametrize("streamed", [False, True])
async def test_a_dictionary_with_a_type_or_a_role_of_its_own_is_text(given: dict[str, Any], streamed: bool):
    @workflow
    async def echo(text: str) -> list[Any]:
        return [text, given]

    agent = echo.as_agent()
    for value in (given, [given]):
        stream = agent.run(value, stream=True) if streamed else None
        response = await agent.run(value) if stream is None else await stream.get_final_response()
        assert [content.text for content in response.messages[0].contents] == [str(given)] * 2


async def test_serialized_messages_and_contents_stay_messages():
    @workflow
    async def roles(messages: list[Message]) -> str:
        return " ".join(f"{message.role}:{message.text}" for message in messages)

    given = [Message("system", ["a"]).to_dict(), Content.from_text("b").to_dict(), {"role": "user", "text": "c"}]
    assert (await roles.as_agent().run(given)).text == "system:a user:b user:c"


async def test_any_object_with_the_methods_of_a_context_provider_will_do():
    class Counts:
        """Not a `ContextProvider`, and without an id."""

        async def before_run(self, *, context, state, **_):
            state["runs"] = state.get("runs", 0) + 1
            context.extend_messages(self, [Message("system", [f"run {state['runs']}"])])

    @workflow
    async def echo(text: str) -> str:
        return text

    agent = echo.as_agent(context_providers=[Counts()])
    session = agent.create_session()
    assert (await agent.run("hi", session=session)).text.splitlines()[0] == "run 1"
    assert session.state["Counts"] == {"runs": 1}


async def test_its_requests_are_requests_to_approve():
    agent: FunctionalWorkflowAgent = confirm.as_agent()
    (request,) = (await agent.run("a")).user_input_requests
    assert (request.type, request.id) == ("function_approval_request", "auto::0")
    with raises(ValueError, "responses"):
        await agent.run(responses={"other": True})
    assert (await agent.run(responses={"auto::0": True})).text == "a: True"
    assert agent.pending_requests == {}
    await agent.run("b")
    answer = Message("tool", [Content.from_function_result("auto::0", result=False)])
    assert (await agent.run(answer)).text == "b: False"


async def test_a_checkpoint_goes_on_in_another_agent():
    storage: Any = InMemoryCheckpointStorage()
    await confirm.as_agent().run("a", checkpoint_storage=storage)
    latest = await storage.get_latest(workflow_name="confirm")
    settings = {"checkpoint_id": latest.checkpoint_id, "checkpoint_storage": storage}
    assert (await confirm.as_agent().run(responses={"auto::0": True}, **settings)).text == "a: True"


async def test_withdrawn_requests_need_no_response():
    agent = confirm.as_agent()
    session = agent.create_session()
    await agent.run("a")
    await agent.run("b", session=session)
    response = await agent.cancel_pending_requests(session=session)
    assert (response.messages, next(iter(agent.pending_requests.values())).data) == ([], "a")
    with raises(ValueError, "other", "auto::0"):
        await agent.cancel_pending_requests("other")
    await agent.cancel_pending_requests("auto::0")
    assert agent.pending_requests == {}
    (request,) = (await agent.run("c")).user_input_requests
    await agent.cancel_pending_requests([request])
    assert (await agent.cancel_pending_requests()).messages == []
    assert len((await agent.run("d")).user_input_requests) == 1


async def test_a_workflow_around_the_agent_goes_on_after_a_withdrawal():
    workflow = WorkflowBuilder(confirm.as_agent("node")).build()
    await workflow.run("a")
    await workflow.cancel_pending_requests()
    (request,) = (await workflow.run("b")).get_request_info_events()
    answer = request.data.to_function_approval_response(True)
    answer.function_call.arguments["data"] = True
    assert "True" in (await workflow.run(responses={request: answer})).outputs[0].text
