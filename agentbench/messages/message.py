"""One message of a conversation."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, Literal, NewType, Self

from agentbench._clock import runtime_defaults
from agentbench._copying import register_frozen
from agentbench._display import drawn_by, shorten
from agentbench._secrets import masked_repr
from agentbench.exceptions import ContentError
from agentbench.messages.content.content import Content
from agentbench.messages.record import Record
from agentbench.serialization.callable_text import CallableText, plain_if_callable
from agentbench.serialization.plain import to_plain, write_plain

Role = NewType("Role", str)
RoleLiteral = Literal["system", "user", "assistant", "tool"]

_log = logging.getLogger("agentbench")

_NS_PER_S = 1_000_000_000


@drawn_by("agentbench.notebook.cards.conversation.views:message_bundle")
class Message(Record):
    r"""One message of a conversation, as a list of contents.

    Messages are equal if role, author, id and contents are equal; times are not compared. A new message has neither id
    nor time: both are set when it enters the state of a graph.

    Args:
        role: Role of the speaker: `system`, `user`, `assistant`, `tool`, or any other text.
        contents: Contents, texts or dictionaries, or a single one of these.
        text: A text, added after the contents.
        author_name: Name of the speaker, if several have the same role.
        message_id: Id, as text or a number.
        delta: Whether this is a piece of a streamed message.
        timestamp: Its time, in seconds since 1970-01-01T00:00:00Z.
        usages: Token counts of the message.
        additional_properties: Additional values by name. Keys that begin with `_` are not compared.
        raw_representation: The object that the service sent. Not serialized and not compared.
        content: Alias of `contents`.
        metadata: Alias of `additional_properties`.
        raw: Alias of `raw_representation`.

    Raises:
        TypeError: The role is not text, a content has an unsupported type, or a field is passed under both names.
        ValueError: A content is a dictionary without a `type`.

    Example:
        from agentbench import Content, Message

        png = b"\x89PNG\r\n\x1a\n"
        Message("user", "What is the weather in Oslo?")
        Message("user", ["What is this?", Content.from_data(png, "image/png")])
    """

    __hash__: ClassVar[None]

    TYPE: ClassVar[str] = "message"
    FIELDS: ClassVar[tuple[str, ...]] = (
        *("role", "contents", "author_name", "message_id", "delta", "timestamp", "usages"),
        "additional_properties",
    )
    __slots__ = (*FIELDS, "raw_representation")

    def __init__(  # noqa: PLR0913 - a record: one parameter per field
        self,
        role: RoleLiteral | str,
        contents: Sequence[Content | str | Mapping[str, Any] | None] | Content | Mapping[str, Any] | None = None,
        *,
        text: str | None = None,
        author_name: str | None = None,
        message_id: str | int | None = None,
        delta: bool = False,
        timestamp: float | None = None,
        usages: Mapping[str, Any] | None = None,
        additional_properties: Mapping[str, Any] | None = None,
        raw_representation: Any = None,
        content: Any = None,
        metadata: Mapping[str, Any] | None = None,
        raw: Any = None,
    ) -> None:
        if content is not None:
            contents = _only("content", content, "contents", contents)
        if metadata is not None:
            additional_properties = _only("metadata", metadata, "additional_properties", additional_properties)
        if raw is not None:
            raw_representation = _only("raw", raw, "raw_representation", raw_representation)
        self.role: str = role if type(role) is str else _plain_role(role)
        self.contents: list[Content] = as_contents(contents)
        if text is not None:
            self.contents.append(Content.from_text(text))
        self.author_name: str | None = plain_if_callable(author_name)
        self.message_id: str | int | None = plain_if_callable(message_id)
        self.delta = delta
        self.timestamp = timestamp
        self.usages = usages
        self.additional_properties: dict[str, Any] = (
            {} if additional_properties is None else dict(additional_properties)
        )
        self.raw_representation: Any = raw_representation

    # -------------------------------------------------------------------------------------------------- constructors

    @property
    def id(self) -> str | int | None:
        """The same as `message_id`."""
        return self.message_id

    @classmethod
    def text_message(cls, content: str, role: str = "user", message_id: str | int | None = None) -> Self:
        """Make a message from text, with an id and a time."""
        return cls(role, [Content.from_text(content)], message_id=message_id).stamp()

    @classmethod
    def _from_text_(cls, text: str) -> Self:
        """Make a user message from the text with which a person answers a request."""
        return cls("user", [text])

    @classmethod
    def tool_message(
        cls, content: Any, message_id: str | int | None = None, meta: Mapping[str, Any] | None = None
    ) -> Self:
        """Make a message from tool results, with an id and a time."""
        return cls("tool", content, message_id=message_id, additional_properties=meta).stamp()

    @classmethod
    def from_dict(
        cls, data: Mapping[str, Any], /, *, dependencies: Mapping[str, Mapping[str, Any]] | None = None
    ) -> Self:
        """Make a message from a dictionary made by `to_dict`; its `"type"` is ignored."""
        arguments = {**data}
        arguments.pop("type", None)
        return super().from_dict(arguments, dependencies=dependencies)

    def stamp(self) -> Self:
        """Set an id and a time if the message has none, and return the message."""
        if self.message_id is None:
            self.message_id = runtime_defaults().ids.new_id("message")
        if self.timestamp is None:
            self.timestamp = runtime_defaults().clock.time_ns() / _NS_PER_S
        return self

    # --------------------------------------------------------------------------------------------------------- views

    @property
    def text(self) -> str:
        """The texts of the contents, joined with spaces. Calling it returns it: `message.text()`."""
        return CallableText(" ".join([content.text or "" for content in self.contents if content.type == "text"]))

    def as_text(self) -> str:
        """Return `text`."""
        return self.text

    @property
    def content(self) -> list[Content]:
        """The same list as `contents`."""
        return self.contents

    @content.setter
    def content(self, contents: Any) -> None:
        self.contents = as_contents(contents)

    @property
    def metadata(self) -> dict[str, Any]:
        """The same dictionary as `additional_properties`."""
        return self.additional_properties

    @metadata.setter
    def metadata(self, metadata: dict[str, Any]) -> None:
        self.additional_properties = metadata

    @property
    def raw(self) -> Any:
        """The same object as `raw_representation`."""
        return self.raw_representation

    @raw.setter
    def raw(self, raw: Any) -> None:
        self.raw_representation = raw

    @property
    def tools_calls(self) -> list[dict[str, Any]] | None:
        """The tool calls in the format of chat services; `None` if there are none."""
        calls = [_as_tool_call(content) for content in self.contents if content.type == "function_call"]
        return calls or None

    # ------------------------------------------------------------------------------------------------------- as a value

    def set_fields(self) -> dict[str, Any]:
        """Return the fields that are not `None`; `delta` only if it is true."""
        fields = super().set_fields()
        if not self.delta:
            del fields["delta"]
        return fields

    def __copy__(self) -> Self:
        cls = type(self)
        if cls is not Message:
            return super().__copy__()
        # Field by field, because messages are copied in every turn and a loop takes four times as long.
        clone = cls.__new__(cls)
        clone.role = self.role
        clone.contents = self.contents
        clone.author_name = self.author_name
        clone.message_id = self.message_id
        clone.delta = self.delta
        clone.timestamp = self.timestamp
        clone.usages = self.usages
        clone.additional_properties = self.additional_properties
        clone.raw_representation = self.raw_representation
        return clone

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Message):
            return NotImplemented
        return self is other or (
            self.role == other.role
            and self.message_id == other.message_id
            and self.author_name == other.author_name
            and self.delta == other.delta
            and self.contents == other.contents
            and _public(self.additional_properties) == _public(other.additional_properties)
        )

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        parts = [repr(self.role)]
        if len(self.contents) == 1 and self.contents[0].type == "text":
            parts.append(shorten(self.contents[0].text))
        else:
            parts.append(f"[{', '.join(map(repr, self.contents))}]")
        named = {"author_name": self.author_name, "message_id": self.message_id}
        parts.extend(f"{name}={value!r}" for name, value in named.items() if value is not None)
        if self.delta:
            parts.append("delta=True")
        return f"Message({', '.join(parts)})"


def copy_messages(messages: Iterable[Any]) -> list[Message]:
    """Copy messages with their lists of contents and additional properties; the contents are shared."""
    copies = []
    for message in messages:
        if not isinstance(message, Message):  # a list of texts is a likely mistake
            problem = f"{masked_repr(message)} is not a message. Expected a list of messages: Message('user', ['...'])."
            raise TypeError(problem)
        copied = message.__copy__()
        copied.contents = [*message.contents]
        copied.additional_properties = {**message.additional_properties}
        copies.append(copied)
    return copies


def _only(alias: str, value: Any, name: str, other: Any) -> Any:
    if other is not None:
        message = f"{alias}= and {name}= are the same field. Pass only one of them."
        raise TypeError(message)
    return value


def _plain_role(role: Any) -> str:
    value = getattr(role, "value", role)  # roles may be enums
    if isinstance(value, str):
        return str(value)
    message = f"The role has type {type(role).__name__}. Expected text: Message('user', ['Good morning'])."
    raise TypeError(message)


def _public(properties: Mapping[str, Any]) -> Mapping[str, Any]:
    return {key: value for key, value in properties.items() if not str(key).startswith("_")} if properties else {}


def _as_tool_call(call: Content) -> dict[str, Any]:
    arguments = call.arguments
    text = arguments if isinstance(arguments, str) else write_plain(to_plain(arguments or {}))
    return {"id": call.call_id, "type": "function", "function": {"name": call.name, "arguments": text}}


def as_contents(source: Any) -> list[Content]:
    """Convert one or several contents, texts or typed dictionaries to a new list of contents."""
    if type(source) is list:
        for item in source:
            if type(item) is not Content:
                break
        else:
            return source.copy()
    elif source is None:
        return []
    elif isinstance(source, (str, bytes, Content, Mapping)) or not isinstance(source, Iterable):
        source = (source,)
    contents: list[Content] = []
    for item in source:
        if isinstance(item, Content):
            contents.append(item)
        elif item is not None:
            contents += _to_contents(item)
    return contents


def _to_contents(item: Any) -> list[Content]:
    if isinstance(item, str):
        return [Content.from_text(item)]
    if not isinstance(item, Mapping):
        expected = "Expected a Content, text, or a dictionary with a type."
        message = f"{masked_repr(item)} has type {type(item).__name__}. {expected}"
        raise TypeError(message)
    try:
        return [Content.from_dict(item)]
    except ContentError as error:
        _log.warning("A content of type %r is skipped, because it cannot be read.", item.get("type"))
        _log.debug("A content cannot be read: %s", error)
        return []


register_frozen(Message)
