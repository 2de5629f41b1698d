"""Tools that offer further tools to the model, or take tools back."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import Agent, Call, FunctionInvocationContext, Message, ScriptedChatClient, tool
from tests.parts.errors import raises


@tool
def paint(colour: str) -> str:
    return f"The wall is {colour}."


@tool(approval_mode="always_require")
def tear_down() -> str:
    return "The wall is gone."


@tool
def open_box(context: FunctionInvocationContext) -> str:
    context.add_tools([paint, tear_down])
    return ", ".join(one.name for one in context.tools)


@tool
async def close_box(context: FunctionInvocationContext) -> str:
    context.remove_tools(["paint", open_box, "unknown"])
    return ", ".join(one.name for one in context.tools)


def offered(client: ScriptedChatClient) -> list[list[str]]:
    return [[one.name for one in call.options.get("tools") or ()] for call in client.calls]


def results(messages: list[Message]) -> list[Any]:
    return [one.result for message in messages for one in message.contents if one.type == "function_result"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_tool_offers_further_tools_for_the_rest_of_the_run(stream: bool):
    client = ScriptedChatClient([Call("open_box"), Call("paint", {"colour": "red"}), "done", "hello"])
    agent = Agent(client, tools=[open_box])
    if stream:
        response = await agent.run("go", stream=True).get_final_response()
    else:
        response = await agent.run("go")
    assert results(response.messages) == ["open_box, paint, tear_down", "The wall is red."]
    await agent.run("again")
    assert offered(client) == [["open_box"], *[["open_box", "paint", "tear_down"]] * 2, ["open_box"]]


async def test_a_removed_tool_is_neither_offered_nor_called():
    client = ScriptedChatClient([Call("close_box"), Call("paint", {"colour": "red"}), "done"])
    response = await Agent(client, tools=[open_box, close_box, paint]).run("go")
    assert results(response.messages) == ["close_box", 'Error: Requested function "paint" not found.']
    assert offered(client)[1:] == [["close_box"], ["close_box"]]


async def test_an_added_tool_can_be_called_after_a_person_approved_it():
    client = ScriptedChatClient(
        [Call("open_box"), Call("tear_down"), Call("paint", {"colour": "red"}), "done", "hello"]
    )
    agent = Agent(client, tools=[open_box])
    session = agent.create_session()
    [request] = (await agent.run("go", session=session)).user_input_requests
    response = await agent.run(request.to_function_approval_response(approved=True), session=session)
    assert results(response.messages) == ["The wall is red."]
    assert results(client.calls[2].messages)[-1] == "The wall is gone."
    await agent.run("again", session=session)
    assert offered(client)[-1] == ["open_box"]


@pytest.mark.parametrize("approved", [True, False])
async def test_added_tools_wait_for_the_answer_to_the_request_before_which_they_were_added(approved: bool):
    client = ScriptedChatClient([Call("open_box"), Call("tear_down"), "done"])
    agent = Agent(client, tools=[open_box])
    session = agent.create_session()
    [request] = (await agent.run("go", session=session)).user_input_requests

    others = ScriptedChatClient(["hello", Call("close_box"), Call("tear_down"), "bye"])
    other = Agent(others, tools=[close_box, tear_down])
    await other.run("Who is there?", session=session)
    [asked] = (await other.run("Tidy up.", session=session)).user_input_requests
    assert offered(others) == [["close_box", "tear_down"]] * 3

    await agent.run(request.to_function_approval_response(approved), session=session)
    assert offered(client)[-1] == ["open_box", "paint", "tear_down"]
    await other.run(asked.to_function_approval_response(approved), session=session)
    assert offered(others)[-1] == ["close_box", "tear_down"]


async def test_the_calls_of_one_answer_may_all_add_tools():
    def make(name: str) -> Any:
        @tool(name=f"open_{name}")
        def open_one(context: FunctionInvocationContext) -> str:
            context.add_tools(tool(lambda: name, name=name))
            return name

        return open_one

    client = ScriptedChatClient([[Call("open_a"), Call("open_b")], "done"])
    await Agent(client, tools=[make("a"), make("b")]).run("go")
    assert sorted(offered(client)[1]) == ["a", "b", "open_a", "open_b"]


async def test_two_different_tools_cannot_have_one_name():
    @tool
    def add_another(context: FunctionInvocationContext) -> None:
        with raises(ValueError):
            context.add_tools([paint, tool(lambda: "", name="add_another")])
        assert [one.name for one in context.tools] == ["add_another"]

    client = ScriptedChatClient([Call("add_another"), "done"])
    response = await Agent(client, tools=[add_another]).run("go")
    assert results(response.messages) == [""]


def test_outside_of_a_run_there_is_no_model_to_offer_tools_to():
    context = FunctionInvocationContext(paint, {})
    assert context.tools == []
    for change in (context.add_tools, context.remove_tools):
        with raises(RuntimeError):
            change(paint)


async def test_a_function_is_added_and_removed_as_it_is():
    def knock() -> str:
        return "Knock."

    @tool
    def change(context: FunctionInvocationContext, add: bool) -> None:
        (context.add_tools if add else context.remove_tools)(knock)

    client = ScriptedChatClient([Call("change", {"add": True}), Call("knock"), Call("change", {"add": False}), "done"])
    response = await Agent(client, tools=[change, {"type": "web_search"}]).run("go")
    assert results(response.messages) == ["", "Knock.", ""]
    counts = [len(call.options["tools"]) for call in client.calls]
    assert counts == [2, 3, 3, 2]
