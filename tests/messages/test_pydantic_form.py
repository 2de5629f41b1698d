"""Messages in fields of pydantic models."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter, ValidationError

from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse


class State(BaseModel):
    messages: list[Message] = []
    content: Content | None = None
    answer: AgentResponse[Any] | None = None


def test_instances_pass_through_uncopied() -> None:
    message, content, answer = Message("user", "a"), Content.from_text("a"), AgentResponse[Any](text="a")
    state = State(messages=[message], content=content, answer=answer)
    assert state.messages[0] is message
    assert state.content is content
    assert state.answer is answer


def test_dictionaries_are_read_and_json_holds_them() -> None:
    message = Message("user", ["a"], message_id=1, delta=True)
    state = State(messages=[message.to_dict()], content={"type": "text", "text": "c"})  # type: ignore[list-item, arg-type]
    assert state.messages == [message]
    dumped = state.model_dump(mode="json")
    assert dumped["messages"] == [message.to_dict()]
    assert dumped["content"] == Content.from_text("c").to_dict()
    again = State.model_validate_json(state.model_dump_json())
    assert again == state
    assert again.messages[0].message_id == 1


def test_dumped_as_python_values_the_message_stays_itself() -> None:
    message = Message("user", "a")
    assert State(messages=[message]).model_dump()["messages"][0] is message


@pytest.mark.parametrize(
    "given", ["a text", 5, None, {"type": "message"}, {"role": "user", "contents": [{"no": "type"}]}]
)
def test_what_is_no_message_is_a_validation_error(given: Any) -> None:
    with pytest.raises(ValidationError):
        State(messages=[given])


def test_a_json_schema_can_be_made() -> None:
    assert State.model_json_schema()["properties"]["messages"]["type"] == "array"
    assert TypeAdapter(Message).json_schema()["type"] == "object"
