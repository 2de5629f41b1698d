"""Updates: the pieces of a streamed answer."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Literal, NewType, TypedDict

from agentbench import _clock
from agentbench._copying import register_frozen
from agentbench._display import drawn_by, shorten
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message, as_contents
from agentbench.messages.record import Record

FinishReason = NewType("FinishReason", str)
FinishReasonLiteral = Literal["stop", "length", "tool_calls", "content_filter"]

_Contents = Sequence[Content | str | Mapping[str, Any] | None] | Content | Mapping[str, Any] | str | None


_new = object.__new__


class ContinuationToken(TypedDict, total=False):
    """A token for continuing an answer. Pass it back to the service unchanged.

    Example:
        response = await client.get_response("Write a long report.", options={"background": True})
        while response.continuation_token is not None:
            options = {"continuation_token": response.continuation_token}
            response = await client.get_response("Write a long report.", options=options)
    """


class ResponseUpdate(Record):
    """The common base of updates of chat clients and agents."""

    __slots__ = ()

    contents: list[Content]
    role: str | None

    @property
    def text(self) -> str:
        """The texts of the contents, joined without a separator."""
        return "".join([content.text or "" for content in self.contents if content.type == "text"])

    @property
    def user_input_requests(self) -> list[Content]:
        """The user input requests in the contents, in order."""
        return [content for content in self.contents if content.user_input_request]

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        parts = []
        if self.contents:
            only_text = len(self.contents) == 1 and self.contents[0].type == "text"
            parts.append(shorten(self.text) if only_text else f"[{', '.join(map(repr, self.contents))}]")
        for name in self.FIELDS:
            value = getattr(self, name)
            if name != "contents" and value is not None:
                parts.append(f"{name}={shorten(value)}")
        return f"{type(self).__name__}({', '.join(parts)})"


@drawn_by("agentbench.notebook.cards.conversation.views:update_bundle")
class ChatResponseUpdate(ResponseUpdate):
    """A piece of a chat client's streamed answer.

    Args:
        contents: Contents, texts or dictionaries, or a single one of these.
        text: A text, added after the contents.
        role: Role of the speaker; `None` means the same as in the previous update.
        author_name: Name of the speaker, if several have the same role.
        response_id: Id of the whole answer.
        message_id: Id of the message within the answer. A new id starts a new message.
        conversation_id: Id of the conversation that the service stores.
        model: Name of the model.
        created_at: Time of the answer, in the service's format.
        finish_reason: Reason for the end of the answer; set in the last update.
        continuation_token: Token to pass back to continue an answer that is not complete.
        additional_properties: Additional values by name, or `None`.
        raw_representation: The object that the service sent. Not serialized and not compared.

    Raises:
        TypeError: A content has an unsupported type.
        ValueError: A content is a dictionary without a `type`.

    Example:
        from agentbench import ChatResponse, ChatResponseUpdate

        updates = [ChatResponseUpdate(text="Good ", role="assistant"), ChatResponseUpdate(text="morning")]
        print(ChatResponse.from_updates(updates).text)
    """

    TYPE: ClassVar[str] = "chat_response_update"
    FIELDS: ClassVar[tuple[str, ...]] = (
        *("contents", "role", "author_name", "response_id", "message_id", "conversation_id", "model", "created_at"),
        *("finish_reason", "continuation_token", "additional_properties"),
    )
    __slots__ = (*FIELDS, "raw_representation")

    def __init__(  # noqa: PLR0913 - a record: one parameter per field
        self,
        *,
        contents: _Contents = None,
        text: str | None = None,
        role: str | None = None,
        author_name: str | None = None,
        response_id: str | None = None,
        message_id: str | None = None,
        conversation_id: str | None = None,
        model: str | None = None,
        created_at: str | None = None,
        finish_reason: FinishReasonLiteral | FinishReason | str | None = None,
        continuation_token: ContinuationToken | Mapping[str, Any] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any = None,
    ) -> None:
        self.contents = as_contents(contents)
        if text is not None:
            self.contents.append(Content.from_text(text))
        self.role = role
        self.author_name = author_name
        self.response_id = response_id
        self.message_id = message_id
        self.conversation_id = conversation_id
        self.model = model
        self.created_at = created_at
        self.finish_reason = finish_reason
        self.continuation_token = continuation_token
        self.additional_properties = additional_properties
        self.raw_representation = raw_representation


@drawn_by("agentbench.notebook.cards.conversation.views:update_bundle")
class AgentResponseUpdate(ResponseUpdate):
    """A piece of an agent's streamed answer.

    Args:
        contents: Contents, texts or dictionaries, or a single one of these.
        text: A text, added after the contents.
        role: Role of the speaker; `None` means the same as in the previous update.
        author_name: Name of the speaker, if several have the same role.
        agent_id: Id of the agent.
        response_id: Id of the whole answer.
        message_id: Id of the message within the answer. A new id starts a new message.
        created_at: Time of the answer, in the service's format.
        finish_reason: Reason for the end of the answer; set in the last update.
        continuation_token: Token to pass back to continue an answer that is not complete.
        additional_properties: Additional values by name, or `None`.
        raw_representation: The update of the chat client. Not serialized and not compared.

    Raises:
        TypeError: A content has an unsupported type.
        ValueError: A content is a dictionary without a `type`.

    Example:
        from agentbench import AgentResponse, AgentResponseUpdate

        updates = [AgentResponseUpdate(text="Good ", agent_id="host"), AgentResponseUpdate(text="morning")]
        print(AgentResponse.from_updates(updates).text)
    """

    TYPE: ClassVar[str] = "agent_response_update"
    FIELDS: ClassVar[tuple[str, ...]] = (
        *("contents", "role", "author_name", "agent_id", "response_id", "message_id", "created_at", "finish_reason"),
        *("continuation_token", "additional_properties"),
    )
    __slots__ = (*FIELDS, "raw_representation")

    def __init__(  # noqa: PLR0913 - a record: one parameter per field
        self,
        *,
        contents: _Contents = None,
        text: str | None = None,
        role: str | None = None,
        author_name: str | None = None,
        agent_id: str | None = None,
        response_id: str | None = None,
        message_id: str | None = None,
        created_at: str | None = None,
        finish_reason: FinishReasonLiteral | FinishReason | str | None = None,
        continuation_token: ContinuationToken | Mapping[str, Any] | None = None,
        additional_properties: dict[str, Any] | None = None,
        raw_representation: Any = None,
    ) -> None:
        self.contents = as_contents(contents)
        if text is not None:
            self.contents.append(Content.from_text(text))
        self.role = role
        self.author_name = author_name
        self.agent_id = agent_id
        self.response_id = response_id
        self.message_id = message_id
        self.created_at = created_at
        self.finish_reason = finish_reason
        self.continuation_token = continuation_token
        self.additional_properties = additional_properties
        self.raw_representation = raw_representation


def map_chat_to_agent_update(
    update: ChatResponseUpdate, agent_name: str | None, agent_id: str | None = None
) -> AgentResponseUpdate:
    """Convert a client's update to an agent's; the client's update becomes the raw representation.

    The author is the agent's name if the update has none.

    Example:
        from agentbench import ChatResponseUpdate, Content, map_chat_to_agent_update

        update = ChatResponseUpdate(contents=[Content.from_text("Hi")], role="assistant")
        update = map_chat_to_agent_update(update, "writer")
        assert (update.text, update.author_name) == ("Hi", "writer")
    """
    # Skips the constructor, because one is made per token and the contents have been checked already.
    mapped = _new(AgentResponseUpdate)
    mapped.contents = update.contents.copy()
    mapped.role = update.role
    mapped.author_name = update.author_name or agent_name
    mapped.agent_id = agent_id
    mapped.response_id = update.response_id
    mapped.message_id = update.message_id
    mapped.created_at = update.created_at
    mapped.finish_reason = update.finish_reason
    mapped.continuation_token = update.continuation_token
    mapped.additional_properties = update.additional_properties
    mapped.raw_representation = update
    return mapped


def ids_apart(messages: Sequence[Message]) -> list[Any]:
    """Return the ids of messages for their updates, with new ids where adjacent messages would be joined."""
    ids: list[Any] = [message.message_id for message in messages]
    for at in range(1, len(messages)):
        if messages[at].role == messages[at - 1].role and not (ids[at - 1] and ids[at] and ids[at] != ids[at - 1]):
            ids[at - 1] = ids[at - 1] or _clock.runtime_defaults().ids.new_id("message")
            ids[at] = _clock.runtime_defaults().ids.new_id("message")
    return ids


register_frozen(ChatResponseUpdate)
register_frozen(AgentResponseUpdate)
