"""Messages in short forms, as nodes and inputs of graphs write them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any

from typing_extensions import TypedDict

from agentbench.messages.message import Message
from agentbench.stategraph.reducers import add_messages


class MessagesState(TypedDict):
    """A state with the messages of a conversation, to which `add_messages` adds those that nodes return.

    Example:
        from agentbench.stategraph import START, MessagesState, StateGraph

        def greet(state: MessagesState) -> dict:
            return {"messages": [("ai", f"You said {state['messages'][-1].text!r}.")]}

        app = StateGraph(MessagesState).add_node(greet).add_edge(START, "greet").compile()
        print(app.invoke({"messages": [("user", "Hello")]})["messages"][-1].text)
    """

    messages: Annotated[list[Message], add_messages]


_ROLES: Mapping[Any, str] = {
    "user": "user", "human": "user", "assistant": "assistant", "ai": "assistant", "system": "system", "tool": "tool",
    "developer": "system",
}  # fmt: skip


def to_messages(value: Any) -> Any:
    """Return a message, or a list with several, in which the short forms are messages with an id.

    The short forms are text (of the user), a pair such as `("ai", text)`, and a dictionary with `role` and `content`.
    Other values are returned unchanged.
    """
    if isinstance(value, str):
        return Message.text_message(value)
    if isinstance(value, Mapping):
        return _from_mapping(value) if "role" in value or "type" in value else value
    if isinstance(value, tuple) and len(value) == 2 and isinstance(value[0], str) and value[0] in _ROLES:
        return Message(_ROLES[value[0]], [value[1]]).stamp()
    if isinstance(value, (list, tuple)) and not all(isinstance(item, Message) for item in value):
        return [to_messages(item) for item in value]
    return value


def _from_mapping(given: Mapping[str, Any]) -> Message:
    fields = {**given}
    role = fields.pop("role", None) or fields.pop("type", None)
    if "id" in fields:
        fields["message_id"] = fields.pop("id")
    return Message.from_dict({**fields, "role": _ROLES.get(role, role)}).stamp()
