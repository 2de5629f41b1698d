"""Responses and updates: what they say, ask, and are worth."""

from __future__ import annotations

import copy
import importlib.util
import json
import pickle
import sys
import traceback
from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel, ValidationError

from agentbench.exceptions import UserInputRequiredException
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate, map_chat_to_agent_update
from tests.parts.errors import raises

RESPONSES: list[Any] = [ChatResponse, AgentResponse]
UPDATES: list[Any] = [ChatResponseUpdate, AgentResponseUpdate]
CALL = Content.from_function_call("call-1", "f")
QUESTION = Content.from_function_approval_request("i", CALL)


class City(BaseModel):
    name: str
    size: int = 0


def said(*texts: str) -> list[Message]:
    return [Message("assistant", text) for text in texts]


# ------------------------------------------------------------------------------------------------------------- texts


@pytest.mark.parametrize(
    ("texts", "chat", "agent"),
    [
        ([], "", ""),
        (["a "], "a", "a "),
        (["a ", "b"], "a \nb", "a b"),
        (["a", "", "b"], "a\n\nb", "ab"),
        (["", "a"], "a", "a"),
    ],
)
def test_messages_are_joined_by_line_breaks_or_by_nothing(texts: list[str], chat: str, agent: str) -> None:
    assert ChatResponse(messages=said(*texts)).text == chat == str(ChatResponse(messages=said(*texts)))
    assert AgentResponse(messages=said(*texts)).text == agent == str(AgentResponse(messages=said(*texts)))


@pytest.mark.parametrize("cls", RESPONSES + UPDATES)
def test_all_of_them_take_a_text(cls: Any) -> None:
    assert cls(text="hi").text == "hi"
    assert cls().text == ""
    assert cls(), "one that says nothing is there nevertheless"


@pytest.mark.parametrize("cls", UPDATES)
def test_contents_of_an_update_may_be_texts_and_dictionaries(cls: Any) -> None:
    update = cls(contents=["a", {"type": "text", "text": "b"}, Content.from_text("c")], text="d")
    assert [type(content) for content in update.contents] == [Content] * 4
    assert update.text == "abcd"
    assert cls(contents="a").text == cls(contents=Content.from_text("a")).text == "a"
    assert update.additional_properties is None


@pytest.mark.parametrize("cls", RESPONSES)
@pytest.mark.parametrize(
    "messages",
    [
        Message("user", "a"),
        [Message("user", "a")],
        {"role": "user", "contents": ["a"]},
        ({"role": "user", "text": "a"},),
    ],
)
def test_messages_may_be_one_several_or_dictionaries(cls: Any, messages: Any) -> None:
    assert cls(messages=messages).messages == [Message("user", "a")]


@pytest.mark.parametrize("cls", RESPONSES)
@pytest.mark.parametrize("messages", [[5], 5, "a text", ["a text"]])
def test_what_is_no_message_is_refused(cls: Any, messages: Any) -> None:
    with raises(TypeError, "text="):
        cls(messages=messages)


# ------------------------------------------------------------------------------------------------------------ values


@pytest.mark.parametrize("cls", RESPONSES)
@pytest.mark.parametrize(
    ("text", "response_format", "value"),
    [
        ('{"name": "Oslo"}', City, City(name="Oslo")),
        ('{"name": "Oslo"}', {"type": "object"}, {"name": "Oslo"}),
        ("[1]", {}, [1]),
        ("", City, None),
        ("", {"type": "object"}, None),
        ("anything", None, None),
    ],
)
def test_the_value_is_read_from_the_text(cls: Any, text: str, response_format: Any, value: Any) -> None:
    response = cls(text=text, response_format=response_format)
    assert response.value == value
    assert response.value is response.value
    assert response.try_value() == value


@pytest.mark.parametrize("cls", RESPONSES)
@pytest.mark.parametrize(
    ("text", "response_format"), [("nope", City), ('{"size": 1}', City), ("x", {"type": "object"})]
)
def test_a_text_that_does_not_fit_raises_where_the_value_is_wanted(cls: Any, text: str, response_format: Any) -> None:
    response = cls(text=text, response_format=response_format)
    for _ in range(2):
        with pytest.raises(ValidationError if response_format is City else ValueError):
            assert response.value
    assert response.try_value() is None
    assert response.try_value(5) == 5
    assert response.text == text


@pytest.mark.skipif(sys.version_info < (3, 11), reason="errors take notes since Python 3.11")
@pytest.mark.parametrize("response_format", [City, {"type": "object"}], ids=["model", "schema"])
def test_the_error_of_a_text_that_does_not_fit_says_what_to_do(response_format: Any) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 - the note is what is looked at
        assert ChatResponse(text="```json\n{}\n```", response_format=response_format).value
    assert "try_value()" in "".join(traceback.format_exception_only(caught.value))


def test_a_passed_value_wins_and_can_be_set() -> None:
    response = AgentResponse(text="nope", response_format=City, value=City(name="Rome"))
    assert response.value == City(name="Rome")
    response.value = City(name="Oslo")
    assert response.value == City(name="Oslo")
    assert ChatResponse(text="1", response_format={}, value=0).value == 0


@pytest.mark.parametrize("cls", RESPONSES)
@pytest.mark.parametrize(
    "copied",
    [copy.copy, copy.deepcopy, lambda response: pickle.loads(pickle.dumps(response))],
    ids=["copy", "deepcopy", "pickle"],
)
def test_the_value_of_a_copy_is_read_from_its_text(cls: Any, copied: Callable[[Any], Any]) -> None:
    assert copied(cls(text='{"a": 1}', response_format={})).value == {"a": 1}
    assert copied(cls(text='{"a": 1}')).value is None
    assert copied(cls(text="b", value="c")).value == "c"


def test_a_format_of_no_known_kind_gives_no_value_and_a_warning(caplog: pytest.LogCaptureFixture) -> None:
    assert ChatResponse(text="1", response_format=int).value is None
    assert "expected a pydantic model class" in caplog.text


# --------------------------------------------------------------------------------------------------------- questions


@pytest.mark.parametrize("cls", RESPONSES)
def test_questions_to_a_person_are_listed_and_can_be_raised(cls: Any) -> None:
    consent = Content.from_oauth_consent_request("https://example.org")
    response = cls(messages=[Message("assistant", ["a", QUESTION]), Message("assistant", [consent])])
    assert response.user_input_requests == [QUESTION, consent]
    with pytest.raises(UserInputRequiredException) as error:
        response.raise_for_user_input()
    assert error.value.contents == [QUESTION, consent]
    calm = cls(text="a")
    assert calm.user_input_requests == []
    assert calm.raise_for_user_input() is calm


@pytest.mark.parametrize("cls", UPDATES)
def test_questions_of_an_update_are_listed(cls: Any) -> None:
    assert cls(contents=["a", QUESTION]).user_input_requests == [QUESTION]
    assert cls(contents=["a"]).user_input_requests == []


# ----------------------------------------------------------------------------------------------------- small matters


def test_a_conversation_id_can_be_marked_as_made_here() -> None:
    response = ChatResponse(conversation_id="c")
    assert not response.has_internal_conversation_id()
    response.mark_internal_conversation_id()
    assert response.has_internal_conversation_id()
    assert ChatResponse.from_dict(response.to_dict()).has_internal_conversation_id()
    response.clear_internal_conversation_id()
    response.clear_internal_conversation_id()
    assert not response.has_internal_conversation_id()
    assert response.additional_properties == {}


def test_an_update_of_a_client_becomes_one_of_an_agent() -> None:
    update = ChatResponseUpdate(
        text="a",
        role="assistant",
        response_id="r",
        message_id="m",
        conversation_id="c",
        model="gpt",
        created_at="t",
        finish_reason="stop",
        continuation_token={},
        additional_properties={"x": 1},
    )
    mapped = map_chat_to_agent_update(update, "Ann")
    assert mapped == AgentResponseUpdate(
        text="a",
        role="assistant",
        author_name="Ann",
        response_id="r",
        message_id="m",
        created_at="t",
        finish_reason="stop",
        continuation_token={},
        additional_properties={"x": 1},
    )
    assert mapped.raw_representation is update
    assert mapped.contents is not update.contents
    assert map_chat_to_agent_update(ChatResponseUpdate(author_name="Bob"), "Ann").author_name == "Bob"
    assert map_chat_to_agent_update(ChatResponseUpdate(), None).author_name is None
    assert map_chat_to_agent_update(ChatResponseUpdate(), None, "agent-1").agent_id == "agent-1"


@pytest.mark.parametrize("cls", RESPONSES + UPDATES)
def test_data_of_another_type_are_refused_and_those_without_a_type_are_not(cls: Any) -> None:
    written = cls(text="a", response_id="r").to_dict()
    assert written["type"] == cls.TYPE
    assert cls.from_dict({name: value for name, value in written.items() if name != "type"}) == cls.from_dict(written)
    with raises(ValueError, "expects"):
        cls.from_dict(written | {"type": "message"})
    with raises(TypeError, "colour"):
        cls.from_dict(written | {"colour": "red"})


def test_what_the_dictionaries_hold() -> None:
    assert ChatResponseUpdate(text="a", role="assistant").to_dict() == {
        "type": "chat_response_update",
        "contents": [{"type": "text", "text": "a", "additional_properties": {}}],
        "role": "assistant",
    }
    response = AgentResponse(
        text="a", usage_details={"input_token_count": 1}, raw_representation=object(), response_format=City
    )
    assert json.loads(response.to_json()) == {
        "type": "agent_response",
        "messages": [Message("assistant", "a").to_dict()],
        "usage_details": {"input_token_count": 1},
        "additional_properties": {},
    }


@pytest.mark.parametrize("cls", RESPONSES + UPDATES)
def test_equal_are_those_of_one_class_that_say_the_same(cls: Any) -> None:
    assert cls(text="a", raw_representation=1) == cls(text="a", raw_representation=2)
    assert cls(text="a") != cls(text="b")
    assert cls(text="a") != cls(text="a", response_id="r")
    others = [other for other in (*RESPONSES, *UPDATES) if other is not cls]
    assert all(cls(text="a") != other(text="a") for other in others)
    with pytest.raises(TypeError):
        hash(cls())
    with pytest.raises(AttributeError):
        cls().colour = "red"


@pytest.mark.parametrize(
    "given", [Content.from_text("<b>"), Message("user", "<b>"), *(cls(text="<b>") for cls in RESPONSES + UPDATES)]
)
def test_all_of_them_are_displayed_in_a_notebook_with_their_text_escaped(given: Any) -> None:
    shown = given._repr_mimebundle_()
    assert "<b>" in shown["text/plain"]
    if importlib.util.find_spec("ipywidgets") is not None:  # else the text is the whole view
        assert "&lt;b&gt;" in shown["text/html"]
        assert "<b>" not in shown["text/html"]


# ---- a response as updates


@pytest.mark.parametrize("cls", RESPONSES)
def test_the_updates_of_a_response_combine_to_it(cls: Any):
    facts = {"conversation_id": "c", "model": "m"} if cls is ChatResponse else {"agent_id": "a"}
    response = cls(
        messages=[
            Message("assistant", [Content.from_text_reasoning(text="Hm."), CALL]),
            Message("tool", [Content.from_function_result("call-1", result="7")]),
            Message("assistant", ["Seven."], author_name="ada"),
            Message("assistant", ["Really."], author_name="ada"),
        ],
        response_id="r",
        created_at="now",
        finish_reason="stop",
        usage_details={"total_token_count": 3},
        continuation_token={"at": 1},
        additional_properties={"x": 1},
        **facts,
    )
    updates = response.to_updates()
    assert len(updates) == 4
    combined = cls.from_updates(updates)
    for message in combined.messages[2:]:
        message.message_id = None  # made, to keep two messages of one speaker apart
    assert combined == response


@pytest.mark.parametrize("cls", RESPONSES)
def test_a_response_without_messages_is_combined_from_its_updates(cls: Any):
    response = cls(messages=[], response_id="r", finish_reason="stop", usage_details={"total_token_count": 3})
    assert cls.from_updates(response.to_updates()) == response
    assert cls.from_updates(cls(messages=[]).to_updates()) == cls(messages=[])


def test_a_split_that_is_not_a_function_is_refused():
    wrong: Any = 3
    for response in (ChatResponse(text="a"), AgentResponse(text="a")):
        with raises(TypeError, "split is 3", "function"):
            response.to_updates(wrong)


@pytest.mark.parametrize("cls", RESPONSES)
def test_the_contents_of_a_message_can_be_split_over_updates(cls: Any):
    response = cls(messages=[Message("assistant", ["a", "b"])])
    assert [one.text for one in response.to_updates(lambda contents: [[one] for one in contents])] == ["a", "b"]
