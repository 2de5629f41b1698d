"""Complete answers of chat clients and agents."""

from __future__ import annotations

import json
import logging
import typing
from collections.abc import AsyncIterable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Final, Generic, Self, TypeAlias, cast

from agentbench._copying import register_frozen
from agentbench._display import drawn_by, shorten
from agentbench._secrets import masked_repr
from agentbench.exceptions import UserInputRequiredException
from agentbench.messages.content.content import Content
from agentbench.messages.fold import fold_updates
from agentbench.messages.message import Message
from agentbench.messages.record import Record
from agentbench.messages.update import (
    AgentResponseUpdate,
    ChatResponseUpdate,
    ContinuationToken,
    FinishReason,
    FinishReasonLiteral,
    ids_apart,
)
from agentbench.messages.usage import UsageDetails

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    ValueT = TypeVar("ValueT", default=Any)
else:  # defaults need Python 3.13, and only type checkers use them
    ValueT = typing.TypeVar("ValueT")

_log = logging.getLogger("agentbench")

_Messages = Sequence[Message | Mapping[str, Any]] | Message | Mapping[str, Any] | None
_NO_VALUE: Final = ...  # keeps its identity when copied or pickled, unlike an object()
_FOLDED: Final = frozenset({"messages", "usage_details", "continuation_token", "additional_properties"})
"""The fields that are not simply copied from the latest update."""
_IN_LAST_UPDATE: Final = _FOLDED | {"finish_reason"}
"""The fields that are not in every update of a response."""
_INTERNAL_CONVERSATION_ID: Final = "_internal_conversation_id"
_HINT: Final = (
    "This text was parsed for `value` with response_format. "
    "`text` has the unparsed text, and `try_value()` returns a default if it does not fit."
)


SplitContents: TypeAlias = Callable[[list[Content]], Iterable[list[Content]]]


def _whole(contents: list[Content]) -> list[list[Content]]:
    return [contents]


class Response(Record, Generic[ValueT]):
    """The common base of answers of chat clients and agents."""

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

    @classmethod
    def from_updates(
        cls,
        updates: Iterable[ChatResponseUpdate | AgentResponseUpdate],
        *,
        output_format_type: Any = None,
        value: Any = None,
    ) -> Self:
        """Combine a stream's updates into a response; the updates are not changed.

        `output_format_type` is the requested format. `value` is the parsed answer; it overrides the text.
        """
        latest = [name for name in cls.FIELDS if name not in _FOLDED]
        make: Any = cls  # the subclasses define the constructors
        return make(response_format=output_format_type, value=value, **fold_updates(updates, latest))  # type: ignore[no-any-return]

    @classmethod
    async def from_update_generator(
        cls, updates: AsyncIterable[ChatResponseUpdate | AgentResponseUpdate], *, output_format_type: Any = None
    ) -> Self:
        """Read a stream's updates and combine them; see `from_updates`."""
        return cls.from_updates([update async for update in updates], output_format_type=output_format_type)

    def _to_updates(self, update_class: Any, split: SplitContents) -> list[Any]:
        if not callable(cast("object", split)):
            message = f"split is {shorten(split)}. Expected a function that distributes a list of contents over lists."
            raise TypeError(message)
        facts = {name: getattr(self, name) for name in self.FIELDS if name not in _IN_LAST_UPDATE}
        updates = [
            update_class(
                contents=contents,
                role=message.role,
                author_name=message.author_name,
                message_id=message_id,
                raw_representation=message.raw_representation,
                **facts,
            )
            for message, message_id in zip(self.messages, ids_apart(self.messages), strict=True)
            for contents in split(message.contents)
        ] or [update_class(**facts)]
        last = updates[-1]
        last.finish_reason, last.continuation_token = self.finish_reason, self.continuation_token
        last.additional_properties = dict(self.additional_properties) or None
        if self.usage_details is not None:
            last.contents = [*last.contents, Content.from_usage(self.usage_details)]
        return updates

    @property
    def text(self) -> str:
        """The texts of the messages, joined without a separator."""
        return "".join([message.text for message in self.messages])

    @property
    def value(self) -> ValueT | None:
        """The answer in the format `response_format`; parsed from the text on first access.

        Raises:
            ValueError: The text is not JSON, or does not fit the model (pydantic's `ValidationError`).
        """
        if self._value is _NO_VALUE:
            self._value = self._read_value()
        return self._value  # type: ignore[no-any-return]

    @value.setter
    def value(self, value: ValueT | None) -> None:
        self._value, self._value_is_given = value, value is not None

    @property
    def given_value(self) -> ValueT | None:
        """The value that was passed to the constructor or assigned, not parsed from the text."""
        return self._value if self._value_is_given else None

    def _read_value(self) -> Any:
        """Return the value of the last answer in the requested format: a model may write text before a tool call."""
        form, whole = self.response_format, self.text
        if form is None or not whole:
            return None
        if not isinstance(form, Mapping) and not (isinstance(form, type) and hasattr(form, "model_validate_json")):
            _log.warning(
                "response_format is %r; expected a pydantic model class or a JSON schema. The value is None.", form
            )
            return None
        answers = [text for message in self.messages if message.role == "assistant" and (text := message.text)]
        problem: ValueError | None = None
        for text in [*reversed(answers), whole]:
            try:
                return _parse_value(text, form)
            except ValueError as error:
                problem = problem or error
        assert problem is not None
        problem.add_note(_HINT)
        raise problem

    def try_value(self, default: ValueT | None = None) -> ValueT | None:
        """Return the answer in the format `response_format`, or `default` if the text does not fit."""
        try:
            return self.value
        except ValueError:
            return default

    @property
    def user_input_requests(self) -> list[Content]:
        """The user input requests in the contents, in order."""
        return [content for message in self.messages for content in message.contents if content.user_input_request]

    def raise_for_user_input(self) -> Self:
        """Return the response, or raise `UserInputRequiredException` if it contains user input requests."""
        requests = self.user_input_requests
        if requests:
            raise UserInputRequiredException(requests)
        return self

    def _comparison_key(self) -> Any:
        return self.set_fields(), self.given_value

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        parts = [shorten(self.text)] if self.text else []
        parts.append(f"messages={len(self.messages)}")
        for name in self.FIELDS:
            value = getattr(self, name)
            if name not in {"messages", "additional_properties"} and value is not None:
                parts.append(f"{name}={shorten(value)}")
        if self.additional_properties:
            parts.append(f"additional_properties={shorten(self.additional_properties)}")
        return f"{type(self).__name__}({', '.join(parts)})"

    additional_properties: dict[str, Any]
    finish_reason: Any
    continuation_token: Any
    usage_details: UsageDetails | None


@drawn_by("agentbench.notebook.cards.conversation.views:response_bundle")
class ChatResponse(Response[ValueT]):
    """The answer of a chat client.

    Args:
        messages: Messages or dictionaries, or a single one.
        text: A text, added as an assistant message.
        response_id: Id of the answer.
        conversation_id: Id of the conversation that the service stores.
        model: Name of the model.
        created_at: Time of the answer, in the service's format.
        finish_reason: Reason for the end: `stop`, `length`, `tool_calls`, `content_filter`, or any other text.
        usage_details: Token counts.
        value: The parsed answer; it takes precedence over the text.
        response_format: The requested format: a pydantic model class, or a JSON schema.
        continuation_token: Token to pass back to continue an answer that is not complete.
        additional_properties: Additional values by name.
        raw_representation: The object that the service sent. Not serialized and not compared.

    Raises:
        TypeError: A message has an unsupported type.

    Example:
        from agentbench import ChatResponse

        response = ChatResponse(text='{"city": "Oslo"}', response_format={"type": "object"}, finish_reason="stop")
        print(response.text, response.value["city"])
    """

    TYPE: ClassVar[str] = "chat_response"
    FIELDS: ClassVar[tuple[str, ...]] = (
        *("messages", "response_id", "conversation_id", "model", "created_at", "finish_reason", "usage_details"),
        *("continuation_token", "additional_properties"),
    )
    __slots__ = (*FIELDS[1:], "_resolved_inputs", "raw_representation")  # `messages` is a slot of the base class

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
        # Input messages that approval answers replaced, each with the messages to store instead.
        self._resolved_inputs: list[tuple[Message, list[Message]]] | None = None

    @property
    def text(self) -> str:
        """The texts of the messages, joined with line breaks and stripped."""
        return "\n".join([message.text for message in self.messages]).strip()

    def to_updates(self, split: SplitContents = _whole) -> list[ChatResponseUpdate]:
        """Return updates that `from_updates` combines to this response.

        They do not contain a given `value`, `response_format`, and the additional properties of messages.

        Args:
            split: Distributes the contents of a message over several updates; by default there is one per message.

        Raises:
            TypeError: `split` is not a function.

        Example:
            response = ChatResponse(text="Good morning", finish_reason="stop")
            assert ChatResponse.from_updates(response.to_updates()) == response
        """
        return self._to_updates(ChatResponseUpdate, split)

    def mark_internal_conversation_id(self) -> None:
        """Mark the conversation id as created locally and unknown to the service."""
        self.additional_properties[_INTERNAL_CONVERSATION_ID] = True

    def clear_internal_conversation_id(self) -> None:
        """Remove the mark of `mark_internal_conversation_id`."""
        self.additional_properties.pop(_INTERNAL_CONVERSATION_ID, None)

    def has_internal_conversation_id(self) -> bool:
        """Return whether the conversation id was created locally."""
        return bool(self.additional_properties.get(_INTERNAL_CONVERSATION_ID))


@drawn_by("agentbench.notebook.cards.conversation.views:response_bundle")
class AgentResponse(Response[ValueT]):
    """The answer of an agent.

    Args:
        messages: Messages or dictionaries, or a single one.
        text: A text, added as an assistant message.
        response_id: Id of the answer.
        agent_id: Id of the agent.
        created_at: Time of the answer, in the service's format.
        finish_reason: Reason for the end: `stop`, `length`, `tool_calls`, `content_filter`, or any other text.
        usage_details: Token counts, summed over the model calls.
        value: The parsed answer; it takes precedence over the text.
        response_format: The requested format: a pydantic model class, or a JSON schema.
        continuation_token: Token to pass back to continue an answer that is not complete.
        raw_representation: The response of the chat client. Not serialized and not compared.
        additional_properties: Additional values by name.

    Attributes:
        rounds: The rounds of an `AgentLoopMiddleware`, each an `AgentRound`. Not serialized and not compared.

    Raises:
        TypeError: A message has an unsupported type.

    Example:
        from agentbench import Agent, EchoChatClient, run_sync

        response = run_sync(Agent(EchoChatClient()).run("Hello"))
        print(response.text, response.usage_details)
    """

    TYPE: ClassVar[str] = "agent_response"
    FIELDS: ClassVar[tuple[str, ...]] = (
        *("messages", "response_id", "agent_id", "created_at", "finish_reason", "usage_details", "continuation_token"),
        "additional_properties",
    )
    __slots__ = (*FIELDS[1:], "raw_representation", "rounds")

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
        self.rounds: tuple[Any, ...] = ()
        self.additional_properties = {} if additional_properties is None else dict(additional_properties)

    def to_updates(self, split: SplitContents = _whole) -> list[AgentResponseUpdate]:
        """Return updates that `from_updates` combines to this response.

        They do not contain a given `value`, `response_format`, and the additional properties of messages.

        Args:
            split: Distributes the contents of a message over several updates; by default there is one per message.

        Raises:
            TypeError: `split` is not a function.

        Example:
            response = AgentResponse(text="Good morning", agent_id="host")
            assert AgentResponse.from_updates(response.to_updates()) == response
        """
        return self._to_updates(AgentResponseUpdate, split)


def _as_messages(messages: Any) -> list[Message]:
    if messages is None:
        return []
    if type(messages) is not list and (
        isinstance(messages, (Message, Mapping, str)) or not isinstance(messages, Iterable)
    ):
        messages = (messages,)
    return [item if isinstance(item, Message) else _as_message(item) for item in messages]


def _as_message(item: Any) -> Message:
    if isinstance(item, Mapping):
        return Message.from_dict(item)
    expected = "Expected a Message or a dictionary with a role. Pass text as text=."
    text = f"{masked_repr(item)} has type {type(item).__name__}. {expected}"
    raise TypeError(text)


def _parse_value(text: str, response_format: Any) -> Any:
    """Parse the text as an instance of the model, or as JSON."""
    if isinstance(response_format, Mapping):
        return json.loads(text)
    return response_format.model_validate_json(text)


register_frozen(ChatResponse)
register_frozen(AgentResponse)
