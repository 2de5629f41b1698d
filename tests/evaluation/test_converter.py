"""Messages for evaluation services."""

from __future__ import annotations

from agentbench import Agent, AgentEvalConverter, AgentResponse, Content, Message, ScriptedChatClient, tool
from tests.evaluation.conversations import said

convert = AgentEvalConverter.convert_message


def test_texts_pictures_and_calls():
    picture = Content.from_data(b"\x89PNG\r\n\x1a\n", "image/png")
    call = Content.from_function_call("c1", "add", arguments='{"a": 1}')
    [message] = convert(Message("user", ["Look", picture, call]))
    text, image, called = message["content"]
    assert message["role"] == "user"
    assert text == {"type": "text", "text": "Look"}
    assert (image["type"], image["image_url"]) == ("input_image", picture.uri)
    assert called == {"type": "tool_call", "tool_call_id": "c1", "name": "add", "arguments": {"a": 1}}


def test_each_result_is_a_message_of_its_own():
    results = [
        Content.from_function_result(call, result=value) for call, value in (("c1", '{"sum": 3}'), ("c2", "three"))
    ]
    assert convert(Message("tool", results)) == [
        {"role": "tool", "tool_call_id": "c1", "content": [{"type": "tool_result", "tool_result": {"sum": 3}}]},
        {"role": "tool", "tool_call_id": "c2", "content": [{"type": "tool_result", "tool_result": "three"}]},
    ]


def test_arguments_that_cannot_be_read_are_not_leaked():
    [message] = convert(Message("assistant", [Content.from_function_call("c", "login", arguments='{"password": "hun')]))
    assert "hun" not in str(message)
    assert message["content"][0]["arguments"] == {"_raw_arguments": "[unparsable]"}


def test_an_empty_message_has_one_empty_text():
    assert convert(Message("assistant")) == [{"role": "assistant", "content": [{"type": "text", "text": ""}]}]
    assert [each["role"] for each in AgentEvalConverter.convert_messages(said("a", "b"))] == ["user", "assistant"]


def test_tools_and_items():
    @tool
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    agent = Agent(ScriptedChatClient(["3"]), tools=[add])
    [found] = AgentEvalConverter.extract_tools(agent)
    assert (found["name"], found["description"]) == ("add", "Add two numbers.")
    assert set(found["parameters"]["properties"]) == {"a", "b"}
    answer = AgentResponse(messages=[Message("assistant", ["3"])])
    item = AgentEvalConverter.to_eval_item(query="1 + 2?", response=answer, agent=agent, context="sums")
    assert (item.query, item.response, item.context, [each.name for each in item.tools or ()]) == (
        "1 + 2?",
        "3",
        "sums",
        ["add"],
    )
    assert AgentEvalConverter.to_eval_item(query="a", response=said("a", "b")[1:], tools=["x"]).tools == ["x"]
