"""Whole answers: of a chat client, and of an agent."""

from __future__ import annotations

import typing
from collections.abc import AsyncIterable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic

from agentbench._copying import register_frozen
from agentbench._display import drawn_by, shortened
from agentbench.exceptions import UserInputRequiredException
from agentbench.messages.content.content import Content
from agentbench.messages.fold import fold_updates
from agentbench.messages.message import Message
from agentbench.messages.record import Record
from agentbench.messages.structured import parse_value
from agentbench.messages.update import (
    AgentResponseUpdate,
    ChatResponseUpdate,
    ContinuationToken,
    FinishReason,
    FinishReasonLiteral,
)
from agentbench.messages.usage import UsageDetails

if TYPE_CHECKING:
    from typing_extensions import Self, TypeVar

    ValueT = TypeVar("ValueT", default=Any)
else:  # defaults came with Python 3.13, and only readers of types ask for them
    ValueT = typing.TypeVar("ValueT")

_Messages = Sequence[Message | Mapping[str, Any]] | Message | Mapping[str, Any] | None
_NO_VALUE: Final = ...  # stays itself when it is copied or pickled, unlike an object()
_INTERNAL_CONVERSATION_ID: Final = "_internal_conversation_id"


class Response(Record, Generic[ValueT]):
    """What answers of chat clients and of agents have in common."""

    __slots__ = ("_value", "_value_is_given", "messages", "response_format")

    messages: list[Message]
    response_format: Any
    _value: Any
    _value_is_given: bool

    def _set_up(self, messages: Any, text: str | None, value: Any, response_format: Any) -> None:
        self.messages = _as_messages(messages)
        if text is not None:
            self.messages.append(Message("assistant", [Content.from_text(text)]))
        self.response_format = response_format
        self._value_is_given = value is not None
        self._value = value if value is not None else _NO_VALUE

    @property
    def text(self) -> str:
        """What the messages say."""
        raise NotImplementedError

    @property
    def value(self) -> ValueT | None:
        """The answer in the form that was asked for; read when it is first wanted.

        Raises:
            ValueError: The text is no JSON, or does not fit the model (pydantic's `ValidationError`).
        """
        if self._value is _NO_VALUE:
            self._value = parse_value(self.text, self.response_format)
        return self._value  # type: ignore[no-any-return]

    @value.setter
    def value(self, value: ValueT | None) -> None:
        self._value, self._value_is_given = value, value is not None

    @property
    def given_value(self) -> ValueT | None:
        """The value that was handed in, not read from the text."""
        return self._value if self._value_is_given else None

    def try_value(self, default: ValueT | None = None) -> ValueT | None:
        """Return the answer in the form that was asked for, or `default` where the text is not in that form."""
        try:
            return self.value
        except ValueError:
            return default

    @property
    def user_input_requests(self) -> list[Content]:
        """The contents that ask a person something, in order."""
        return [content for message in self.messages for content in message.contents if content.user_input_request]

    def raise_for_user_input(self) -> Self:
        """Return the response, unless it asks a person something.

        Raises:
            UserInputRequiredException: It does; the questions are its `contents`.
        """
        requests = self.user_input_requests
        if requests:
            raise UserInputRequiredException(requests)
        return self

    def _compared(self) -> Any:
        return self.set_fields(), self.given_value

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        shown = [shortened(self.text)] if self.text else []
        shown.append(f"messages={len(self.messages)}")
        for name in self.FIELDS:
            value = getattr(self, name)
            if name not in {"messages", "additional_properties"} and value is not None:
                shown.append(f"{name}={shortened(value)}")
        if self.additional_properties:
            shown.append(f"additional_properties={shortened(self.additional_properties)}")
        return f"{type(self).__name__}({', '.join(shown)})"

    additional_properties: dict[str, Any]


@drawn_by("agentbench.notebook.conversation.views:response_bundle")
class ChatResponse(Response[ValueT]):
    """What a chat client answers.

    Args:
        messages: Messages or dictionaries; also a single one.
        text: A text, put behind as a message of the assistant.
        response_id: Of the answer.
        conversation_id: Under which the service keeps the conversation.
        model: Which model answered.
        created_at: When, as the service wrote it.
        finish_reason: Why it ended: `stop`, `length`, `tool_calls`, `content_filter`, or any other text.
        usage_details: Numbers of tokens.
        value: The answer as a value. Given here, it wins over the text.
        response_format: The form that was asked for: a pydantic model class, or a JSON schema.
        continuation_token: What to hand back to continue an answer that is still being made.
        additional_properties: Whatever else belongs to it.
        raw_representation: What the service sent. Never written, never compared.
    """

    __slots__ = (
        "_resolved_inputs",
        "additional_properties",
        "continuation_token",
        "conversation_id",
        "created_at",
        "finish_reason",
        "model",
        "raw_representation",
        "response_id",
        "usage_details",
    )
    TYPE: ClassVar[str] = "chat_response"
    FIELDS: ClassVar[tuple[str, ...]] = (
        *("messages", "response_id", "conversation_id", "model", "created_at", "finish_reason", "usage_details"),
        *("continuation_token", "additional_properties"),
    )

    def __init__(  # noqa: PLR0913 - a record: one parameter per field
        self,
        *,
        messages: _Messages = None,
        text: str | None = None,
        response_id: str | None = None,
        conversation_id: str | None = None,
        model: str | None = None,
        created_at: str | None = None,
        finish_reason: FinishReasonLiteral | FinishReason | str | None = None,
        usage_details: UsageDetails | None = None,
        value: ValueT | None = None,
        response_format: Any = None,
        continuation_token: ContinuationToken | Mapping[str, Any] | None = None,
        additional_properties: Mapping[str, Any] | None = None,
        raw_representation: Any = None,
    ) -> None:
        self._set_up(messages, text, value, response_format)
        self.response_id = response_id
        self.conversation_id = conversation_id
        self.model = model
        self.created_at = created_at
        self.finish_reason = finish_reason
        self.usage_details = usage_details
        self.continuation_token = continuation_token
        self.additional_properties = {} if additional_properties is None else dict(additional_properties)
        self.raw_representation = raw_representation
        # Input messages, each with what is to be remembered in its place, where answers to approvals replaced it.
        self._resolved_inputs: list[tuple[Message, list[Message]]] | None = None

    @property
    def text(self) -> str:
        """What the messages say, one below the other, without blank ends."""
        return "\n".join([message.text for message in self.messages]).strip()

    @classmethod
    def from_updates(cls, updates: Iterable[ChatResponseUpdate], *, output_format_type: Any = None) -> Self:
        """Fold a stream's updates into the response that they make.

        Args:
            updates: In their order. They are not changed.
            output_format_type: The form that was asked for.
        """
        latest = ("response_id", "created_at", "model", "conversation_id", "finish_reason")
        return cls(response_format=output_format_type, **fold_updates(updates, latest))

    @classmethod
    async def from_update_generator(
        cls, updates: AsyncIterable[ChatResponseUpdate], *, output_format_type: Any = None
    ) -> Self:
        """Wait for a stream's updates and fold them; see `from_updates`."""
        return cls.from_updates([update async for update in updates], output_format_type=output_format_type)

    def mark_internal_conversation_id(self) -> None:
        """Note that the conversation id was made here, and says nothing to the service."""
        self.additional_properties[_INTERNAL_CONVERSATION_ID] = True

    def clear_internal_conversation_id(self) -> None:
        """Take that note back."""
        self.additional_properties.pop(_INTERNAL_CONVERSATION_ID, None)

    def has_internal_conversation_id(self) -> bool:
        """Tell whether the conversation id was made here."""
        return bool(self.additional_properties.get(_INTERNAL_CONVERSATION_ID))


@drawn_by("agentbench.notebook.conversation.views:response_bundle")
class AgentResponse(Response[ValueT]):
    """What an agent answers; its fields are those of `ChatResponse`, but for model and conversation.

    Args:
        agent_id: Which agent answered.
    """

    __slots__ = (
        "additional_properties",
        "agent_id",
        "continuation_token",
        "created_at",
        "finish_reason",
        "raw_representation",
        "response_id",
        "usage_details",
    )
    TYPE: ClassVar[str] = "agent_response"
    FIELDS: ClassVar[tuple[str, ...]] = (
        *("messages", "response_id", "agent_id", "created_at", "finish_reason", "usage_details", "continuation_token"),
        "additional_properties",
    )

    def __init__(  # noqa: PLR0913 - a record: one parameter per field
        self,
        *,
        messages: _Messages = None,
        text: str | None = None,
        response_id: str | None = None,
        agent_id: str | None = None,
        created_at: str | None = None,
        finish_reason: FinishReasonLiteral | FinishReason | str | None = None,
        usage_details: UsageDetails | None = None,
        value: ValueT | None = None,
        response_format: Any = None,
        continuation_token: ContinuationToken | Mapping[str, Any] | None = None,
        raw_representation: Any = None,
        additional_properties: Mapping[str, Any] | None = None,
    ) -> None:
        self._set_up(messages, text, value, response_format)
        self.response_id = response_id
        self.agent_id = agent_id
        self.created_at = created_at
        self.finish_reason = finish_reason
        self.usage_details = usage_details
        self.continuation_token = continuation_token
        self.raw_representation = raw_representation
        self.additional_properties = {} if additional_properties is None else dict(additional_properties)

    @property
    def text(self) -> str:
        """What the messages say, with nothing between them."""
        return "".join([message.text for message in self.messages])

    @classmethod
    def from_updates(
        cls, updates: Iterable[AgentResponseUpdate], *, output_format_type: Any = None, value: Any = None
    ) -> Self:
        """Fold a stream's updates into the response that they make.

        Args:
            updates: In their order. They are not changed.
            output_format_type: The form that was asked for.
            value: The answer as a value. Given here, it wins over the text.
        """
        latest = ("response_id", "agent_id", "created_at", "finish_reason")
        return cls(response_format=output_format_type, value=value, **fold_updates(updates, latest))

    @classmethod
    async def from_update_generator(
        cls, updates: AsyncIterable[AgentResponseUpdate], *, output_format_type: Any = None
    ) -> Self:
        """Wait for a stream's updates and fold them; see `from_updates`."""
        return cls.from_updates([update async for update in updates], output_format_type=output_format_type)


def _as_messages(given: Any) -> list[Message]:
    if given is None:
        return []
    if type(given) is not list and (isinstance(given, (Message, Mapping, str)) or not isinstance(given, Iterable)):
        given = (given,)
    return [item if isinstance(item, Message) else _as_message(item) for item in given]


def _as_message(item: Any) -> Message:
    if isinstance(item, Mapping):
        return Message.from_dict(item)
    problem = f"{item!r} is of type {type(item).__name__}."
    text = f"{problem} Expected a Message, or a dictionary with a role; for a text, text=."
    raise TypeError(text)


register_frozen(ChatResponse)
register_frozen(AgentResponse)
