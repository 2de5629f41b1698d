"""The fields of a piece of content: storing, serializing and comparing them.

Text, which is most of a stream, has its own slot; all other fields share one namespace.
"""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import attrgetter
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypedDict, Unpack, cast

from agentbench._display import Displayable, shorten
from agentbench._secrets import mask_secrets, mask_text
from agentbench.exceptions import ContentError
from agentbench.messages.content.media import Annotation, data_uri, detect_media_type_from_base64, size_of_data_uri
from agentbench.messages.usage import UsageDetails
from agentbench.serialization.callable_text import plain_if_callable
from agentbench.serialization.mixin import SerializationMixin, pydantic_schema
from agentbench.serialization.plain import copy_plain

_log = logging.getLogger("agentbench")


class ContentFields(TypedDict, total=False):
    """Arguments of the constructor besides text; the attributes of `ContentRecord` have the same names."""

    protected_data: str | None
    uri: str | None
    media_type: str | None
    message: str | None
    error_code: str | None
    error_details: str | None
    usage_details: UsageDetails | None
    call_id: str | None
    name: str | None
    arguments: str | Mapping[str, Any] | None
    exception: str | None
    result: Any
    items: Sequence[ContentRecord] | None
    file_id: str | None
    vector_store_id: str | None
    inputs: Sequence[ContentRecord] | None
    outputs: Any
    image_id: str | None
    commands: list[str] | None
    timeout_ms: int | None
    max_output_length: int | None
    status: str | None
    stdout: str | None
    stderr: str | None
    exit_code: int | None
    timed_out: bool | None
    tool_name: str | None
    server_name: str | None
    output: Any
    id: str | None
    function_call: ContentRecord | None
    user_input_request: bool | None
    approved: bool | None
    consent_link: str | None


class CommonFields(TypedDict, total=False):
    """Fields of every type of content."""

    annotations: Sequence[Annotation] | None
    additional_properties: Mapping[str, Any] | None
    raw_representation: Any


KINDS: Final = frozenset(
    {
        *("text", "text_reasoning", "data", "uri", "error", "function_call", "function_result", "usage"),
        *("hosted_file", "hosted_vector_store", "code_interpreter_tool_call", "code_interpreter_tool_result"),
        *("image_generation_tool_call", "image_generation_tool_result", "mcp_server_tool_call"),
        *("mcp_server_tool_result", "search_tool_call", "search_tool_result", "shell_tool_call", "shell_tool_result"),
        *("shell_command_output", "function_approval_request", "function_approval_response", "oauth_consent_request"),
    }
)
_MAY_HOLD_CONTENTS: Final = frozenset({"function_call", "inputs", "items", "outputs", "output", "result"})
_OWN_FIELDS: Final = frozenset(ContentFields.__annotations__)
FIELDS: Final = ("text", *ContentFields.__annotations__)
"""The names of all fields except the common ones."""
_KEYS: Final = frozenset({*FIELDS, "annotations", "raw_representation"})
STORED: Final = ("_rare", "additional_properties", "annotations", "raw_representation", "text", "type")
"""All attributes that store data."""


class SetFields(SimpleNamespace):
    """The fields that are set, except the text. None of them is `None`; a field that is not set reads as `None`."""


NO_FIELDS: Final = SetFields()
"""Shared by all contents that have only a text; never changed."""


class ContentRecord(Displayable):
    """The fields of a piece of content. Fields that its type does not have are `None`."""

    if not TYPE_CHECKING:  # hidden from type checkers, which would expect slots for the properties added below
        __slots__ = STORED
    __hash__: ClassVar[None]  # type: ignore[assignment]

    type: str
    text: str | None
    protected_data: str | None
    uri: str | None
    media_type: str | None
    message: str | None
    error_code: str | None
    error_details: str | None
    usage_details: UsageDetails | None
    call_id: str | None
    name: str | None
    arguments: str | Mapping[str, Any] | None
    exception: str | None
    result: Any
    items: list[Self] | None
    file_id: str | None
    vector_store_id: str | None
    inputs: list[Self] | None
    outputs: Any
    image_id: str | None
    commands: list[str] | None
    timeout_ms: int | None
    max_output_length: int | None
    status: str | None
    stdout: str | None
    stderr: str | None
    exit_code: int | None
    timed_out: bool | None
    tool_name: str | None
    server_name: str | None
    output: Any
    id: str | None
    function_call: Self | None
    user_input_request: bool | None
    approved: bool | None
    consent_link: str | None
    annotations: list[Annotation] | None
    additional_properties: dict[str, Any]
    raw_representation: Any
    _rare: SetFields

    def __init__(
        self,
        type: str,  # noqa: A002 - the name of the field
        *,
        text: str | None = None,
        annotations: Sequence[Annotation] | None = None,
        additional_properties: Mapping[str, Any] | None = None,
        raw_representation: Any = None,
        **fields: Unpack[ContentFields],
    ) -> None:
        self.type = type
        self.text = plain_if_callable(text)
        self.annotations = None if annotations is None else list(annotations)
        self.additional_properties = {} if additional_properties is None else dict(additional_properties)
        self.raw_representation = raw_representation
        if not _OWN_FIELDS.issuperset(fields):
            unknown = ", ".join(repr(name) for name in fields if name not in _OWN_FIELDS)
            problem = f"Content has no field {unknown}. Its fields are {', '.join(FIELDS)}."
            raise TypeError(problem)
        approved: object = fields.get("approved")
        if not (approved is None or isinstance(approved, bool)):  # the text "no" is truthy
            problem = f"approved is {approved!r}. Expected True or False."
            raise TypeError(problem)
        rare = {name: plain_if_callable(value) for name, value in fields.items() if value is not None}
        self._rare = SetFields(**rare) if rare else NO_FIELDS

    # ------------------------------------------------------------------------------------------------- serialization

    def set_fields(self) -> dict[str, Any]:
        """Return the fields that are not `None`, without the common ones; values are not copied."""
        return vars(self._rare).copy() if self.text is None else {"text": self.text, **vars(self._rare)}

    def to_dict(self, *, exclude_none: bool = True, exclude: Collection[str] | None = None) -> dict[str, Any]:
        """Return the fields as a dictionary of JSON values; objects that JSON cannot represent stay as they are."""
        data: dict[str, Any] = {"type": self.type}
        if not exclude_none:
            data.update(dict.fromkeys(FIELDS))
        if self.text is not None:
            data["text"] = plain_if_callable(self.text)
        for name, value in vars(self._rare).items():
            data[name] = value if type(value) is str else copy_plain(value, convert_content)
        if self.annotations is not None or not exclude_none:
            data["annotations"] = self.plain_annotations()
        data["additional_properties"] = (
            copy_plain(self.additional_properties, convert_content) if self.additional_properties else {}
        )
        return {name: value for name, value in data.items() if name not in exclude} if exclude else data

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make a content from a dictionary made by `to_dict`; unknown fields become additional properties."""
        source: object = data
        values: dict[str, Any] = dict(source) if isinstance(source, Mapping) else {}
        kind = values.pop("type", None)
        if not isinstance(kind, str) or not kind:
            keys = ", ".join(map(repr, values)) or shorten(data)
            message = (
                f"A content dictionary has no type, only {keys}. Expected a dictionary like {{'type': 'text', ...}}."
            )
            raise ValueError(message)
        if kind not in KINDS:
            _log.debug("Unknown content type %r; its fields are kept unchanged.", kind)
        properties = dict(values.pop("additional_properties", None) or {})
        if kind == "data" and isinstance(values.get("data"), (bytes, bytearray)):
            _replace_bytes(values)
        if not _KEYS.issuperset(values):
            for name in [name for name in values if name not in _KEYS]:
                properties.setdefault(name, values.pop(name))
        if not _MAY_HOLD_CONTENTS.isdisjoint(values):
            cls._revive(values)
        return cls(kind, additional_properties=properties, **values)

    @classmethod
    def _revive(cls, values: dict[str, Any]) -> None:
        call = values.get("function_call")
        if isinstance(call, Mapping):
            values["function_call"] = cls.from_dict(call)
        for name in ("inputs", "items"):
            if isinstance(values.get(name), (list, tuple)):
                values[name] = [cls.from_dict(item) if isinstance(item, Mapping) else item for item in values[name]]
        for name, kinds in (("outputs", KINDS), ("output", ()), ("result", ())):
            if name in values:
                values[name] = cls._revive_output(values[name], kinds)

    @classmethod
    def _revive_output(cls, value: Any, kinds: Collection[str]) -> Any:
        # The output of a service may have a key "type" and still not be a content.
        if isinstance(value, (list, tuple)):
            return [cls._revive_output(item, kinds) for item in value]
        kind = value.get("type") if isinstance(value, Mapping) else None
        is_content = isinstance(kind, str) and (kind in kinds or "additional_properties" in value)
        return cls.from_dict(value) if is_content else value

    def plain_annotations(self) -> list[dict[str, Any]] | None:
        """Return the annotations as dictionaries, without raw representations."""
        if self.annotations is None:
            return None
        written = [{k: v for k, v in each.items() if k != "raw_representation"} for each in self.annotations]
        return cast("list[dict[str, Any]]", copy_plain(written, convert_content))

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic accept instances as they are and read dictionaries in the form of `to_dict`."""
        return pydantic_schema(cls)

    # ------------------------------------------------------------------------------------------------------ as a value

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ContentRecord):
            return NotImplemented
        return self is other or (
            self.type == other.type
            and self.text == other.text
            and self._rare == other._rare
            and self.additional_properties == other.additional_properties
            and self.plain_annotations() == other.plain_annotations()
        )

    def __str__(self) -> str:
        if self.type == "text":
            return self.text or ""
        if self.type == "error":
            message = self.message or "Unknown error"
            return f"Error {self.error_code}: {message}" if self.error_code else message
        return f"Content(type={self.type})"

    def __repr__(self) -> str:
        return f"Content({', '.join(self._repr_parts())})"

    def _repr_parts(self) -> Iterator[str]:
        yield repr(self.type)
        for name, value in self.set_fields().items():
            if name == "uri" and isinstance(value, str) and value[:5].lower() == "data:":
                yield f"size_bytes={size_of_data_uri(value)}"
            elif name == "protected_data":
                yield "protected_data='…'"
            elif name == "items" and self.type == "function_result" and all(item.type == "text" for item in value):
                continue  # `result` contains the same text
            else:
                shown = mask_text(str(value)) if name == "exception" else mask_secrets(value, key=name)
                yield f"{name}={shorten(shown)}"
        if self.annotations:
            yield f"annotations={len(self.annotations)}"
        if self.additional_properties:
            yield f"additional_properties={shorten(self.additional_properties)}"

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        cls = type(self)
        duplicate = cls.__new__(cls)
        memo[id(self)] = duplicate
        duplicate.type = self.type
        duplicate.text = self.text
        duplicate.raw_representation = self.raw_representation
        duplicate.annotations = None if self.annotations is None else copy.deepcopy(self.annotations, memo)
        properties = self.additional_properties
        duplicate.additional_properties = copy.deepcopy(properties, memo) if properties else {}
        duplicate._rare = NO_FIELDS  # noqa: SLF001 - of the same class
        if fields := vars(self._rare):
            duplicate._rare = SetFields(**copy.deepcopy(fields, memo))  # noqa: SLF001
        if hasattr(self, "__dict__"):  # a subclass without slots
            duplicate.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return duplicate

    def __getstate__(self) -> tuple[dict[str, Any] | None, dict[str, Any]]:
        stored = {name: getattr(self, name) for name in STORED}
        # The same form as in pickled checkpoints of earlier versions.
        return getattr(self, "__dict__", None), {**stored, "_rare": vars(self._rare) or None}

    def __setstate__(self, state: tuple[dict[str, Any] | None, dict[str, Any]]) -> None:
        attributes, stored = state
        for name, value in {**stored, "_rare": SetFields(**(stored["_rare"] or {}))}.items():
            setattr(self, name, value)
        if attributes:
            self.__dict__.update(attributes)

    def parse_arguments(self) -> dict[str, Any] | None:
        """Return the arguments of a call by name; `{"raw": ...}` if they are not a JSON object."""
        arguments = self.arguments
        if arguments is None or isinstance(arguments, Mapping):
            return cast("dict[str, Any] | None", arguments)
        if not arguments:
            return {}
        try:
            found = json.loads(arguments)
        except (ValueError, RecursionError):  # a model can nest arguments without limit
            return {"raw": arguments}
        return found if isinstance(found, dict) else {"raw": found}

    def has_top_level_media_type(self, top_level_media_type: str) -> bool:
        """Return whether the top-level media type is the one passed: `"image"`, `"audio"`, `"text"` and so on."""
        if self.media_type is None:
            message = "This content has no media type to compare. Pass one to the constructor: media_type='image/png'."
            raise ContentError(message)
        return self.media_type.partition("/")[0].strip().lower() == top_level_media_type.lower()


def _rare_field(name: str) -> property:
    def write(content: ContentRecord, value: Any) -> None:
        if value is None:
            vars(content._rare).pop(name, None)  # noqa: SLF001 - the accessors of the class
        elif content._rare is NO_FIELDS:  # noqa: SLF001
            content._rare = SetFields(**{name: value})  # noqa: SLF001
        else:
            setattr(content._rare, name, value)  # noqa: SLF001

    return property(attrgetter(f"_rare.{name}"), write)


for _name in _OWN_FIELDS:
    setattr(SetFields, _name, None)
    setattr(ContentRecord, _name, _rare_field(_name))


def convert_content(value: Any) -> Any:
    """Convert a content or another object of the library to its dictionary; return other values unchanged."""
    return value.to_dict() if isinstance(value, (ContentRecord, SerializationMixin)) else value


def _replace_bytes(values: dict[str, Any]) -> None:
    data = bytes(values.pop("data"))
    media_type = values.get("media_type") or detect_media_type_from_base64(data_bytes=data)
    if not media_type:
        message = "The media type of the data is missing and cannot be detected. Pass 'media_type': 'image/png'."
        raise ContentError(message)
    values.update(media_type=media_type, uri=data_uri(data, media_type))
