"""One piece of what is said: text, data, a call of a tool, its result, a question to a person."""

from __future__ import annotations

import copy
import json
import logging
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Final, cast

from agentbench._copying import register_frozen
from agentbench._display import drawn_by
from agentbench.exceptions import ContentError
from agentbench.messages.content.addition import add_contents
from agentbench.messages.content.factories import ContentFactories
from agentbench.messages.content.media import detect_media_type_from_base64
from agentbench.messages.content.record import FIELDS
from agentbench.messages.pydantic_form import core_schema
from agentbench.messages.wording import shortened, size_of_data_uri
from agentbench.serialization.mixin import SerializationMixin
from agentbench.serialization.plain import to_plain

if TYPE_CHECKING:
    from typing_extensions import Self

_log = logging.getLogger("agentbench")

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
_KNOWN_KEYS: Final = frozenset({*FIELDS, "annotations", "raw_representation"})


@drawn_by("agentbench.notebook.conversation.views:content_bundle")
class Content(ContentFactories):
    """One piece of a message, of any kind; what a kind does not have is `None`.

    Two contents are equal when their dictionaries are; they have no hash, since they can be changed until they are
    saved.

    Args:
        type: The kind, such as `"text"`. The factories make one of each.
        annotations: Sources that it cites.
        additional_properties: Whatever else belongs to it; always a fresh dictionary.
        raw_representation: What the service sent. Never written, never compared.
        **fields: The fields of the kind.

    Raises:
        TypeError: There is no field of such a name.

    Example:
        ```python
        Content.from_text("Good morning")
        Content.from_function_call("call-1", "get_weather", arguments='{"city": "Oslo"}')
        ```
    """

    __slots__ = ()
    __hash__: ClassVar[None]  # type: ignore[assignment]

    def to_dict(self, *, exclude_none: bool = True, exclude: Collection[str] | None = None) -> dict[str, Any]:
        """Return its fields as a dictionary that JSON can hold, if it can hold their values.

        Args:
            exclude_none: Leave out what is not set.
            exclude: Names of fields to leave out.
        """
        found: dict[str, Any] = {"type": self.type}
        if not exclude_none:
            found.update(dict.fromkeys(FIELDS))
        if self.text is not None:
            found["text"] = self.text
        for name, value in (self._rare or {}).items():
            found[name] = value if type(value) is str else to_plain(value, convert_content)
        if self.annotations is not None or not exclude_none:
            found["annotations"] = self.plain_annotations()
        found["additional_properties"] = (
            to_plain(self.additional_properties, convert_content) if self.additional_properties else {}
        )
        return {name: value for name, value in found.items() if name not in exclude} if exclude else found

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Make a content of what `to_dict` gave, or of what someone wrote in that form.

        Fields that are not known here become additional properties; a kind that is not known is kept as it is.

        Raises:
            ValueError: It has no `"type"`.
            ContentError: Its data are no bytes of a known form.
        """
        given: object = data
        values: dict[str, Any] = dict(given) if type(given) is dict or isinstance(given, Mapping) else {}
        kind = values.pop("type", None)
        if not isinstance(kind, str) or not kind:
            told = ", ".join(map(repr, values)) or shortened(data)
            message = f"A content has no type, only {told}. Expected a dictionary with a type: {{'type': 'text', ...}}."
            raise ValueError(message)
        if kind not in KINDS:
            _log.debug("Content of the unknown type %r is kept as it is.", kind)
        properties = dict(values.pop("additional_properties", None) or {})
        if kind == "data" and isinstance(values.get("data"), (bytes, bytearray)):
            values["uri"] = cls._from_bytes(values.pop("data"), values).uri
        if not _KNOWN_KEYS.issuperset(values):
            for name in [name for name in values if name not in _KNOWN_KEYS]:
                properties.setdefault(name, values.pop(name))
        if not _MAY_HOLD_CONTENTS.isdisjoint(values):
            cls._revive(values)
        return cls(kind, additional_properties=properties, **values)

    @classmethod
    def _from_bytes(cls, data: bytes, values: dict[str, Any]) -> Self:
        if not values.get("media_type"):
            values["media_type"] = detect_media_type_from_base64(data_bytes=bytes(data))
        if not values["media_type"]:
            message = "Data have no media type, and do not begin like any known kind. Give 'media_type': 'image/png'."
            raise ContentError(message)
        return cls.from_data(data, values["media_type"])

    @classmethod
    def _revive(cls, values: dict[str, Any]) -> None:
        call = values.get("function_call")
        if isinstance(call, Mapping):
            values["function_call"] = cls.from_dict(call)
        for name in ("inputs", "items"):
            if isinstance(values.get(name), (list, tuple)):
                values[name] = [cls.from_dict(item) if isinstance(item, Mapping) else item for item in values[name]]
        if "outputs" in values:
            values["outputs"] = cls._revived_output(values["outputs"], KINDS)
        for name in ("output", "result"):
            if name in values:
                values[name] = cls._revived_output(values[name], ())

    @classmethod
    def _revived_output(cls, value: Any, kinds: Collection[str]) -> Any:
        # What a service gave out may have a type of its own, and is no content then.
        if isinstance(value, (list, tuple)):
            return [cls._revived_output(item, kinds) for item in value]
        kind = value.get("type") if isinstance(value, Mapping) else None
        is_content = isinstance(kind, str) and (kind in kinds or "additional_properties" in value)
        return cls.from_dict(value) if is_content else value

    def plain_annotations(self) -> list[dict[str, Any]] | None:
        """The annotations without what services sent."""
        return None if self.annotations is None else [_plain_annotation(each) for each in self.annotations]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Content):
            return NotImplemented
        return self is other or (
            self.type == other.type
            and self.text == other.text
            and (self._rare or None) == (other._rare or None)
            and self.additional_properties == other.additional_properties
            and self.plain_annotations() == other.plain_annotations()
        )

    def __add__(self, other: object) -> Self:
        """Join with a content that continues this one, as in a stream.

        Raises:
            TypeError: The other is no content.
            AdditionItemMismatch: They are of different kinds, or of different calls or thoughts.
            ContentError: There is no sum of their kind.
        """
        if not isinstance(other, Content):
            return NotImplemented
        return add_contents(self, other)

    def __str__(self) -> str:
        if self.type == "text":
            return self.text or ""
        if self.type == "error":
            message = self.message or "Unknown error"
            return f"Error {self.error_code}: {message}" if self.error_code else message
        return f"Content(type={self.type})"

    def __repr__(self) -> str:
        return f"Content({', '.join(self._shown())})"

    def _shown(self) -> Iterator[str]:
        yield repr(self.type)
        for name, value in self.set_fields().items():
            if name == "uri" and isinstance(value, str) and value[:5].lower() == "data:":
                yield f"size_bytes={size_of_data_uri(value)}"
            elif name == "protected_data":
                yield "protected_data='…'"
            elif name == "items" and self.type == "function_result" and self._is_told_by_result():
                continue
            else:
                yield f"{name}={shortened(value)}"
        if self.annotations:
            yield f"annotations={len(self.annotations)}"
        if self.additional_properties:
            yield f"additional_properties={shortened(self.additional_properties)}"

    def _is_told_by_result(self) -> bool:
        return self.items is not None and all(item.type == "text" for item in self.items)

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
        duplicate._rare = None  # noqa: SLF001 - of the same class
        if self._rare:
            duplicate._rare = {  # noqa: SLF001
                name: value if type(value) is str else copy.deepcopy(value, memo) for name, value in self._rare.items()
            }
        if hasattr(self, "__dict__"):  # of a subclass
            duplicate.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return duplicate

    def parse_arguments(self) -> dict[str, Any] | None:
        """Return the arguments of a call by name.

        Returns:
            `None` for none, and `{"raw": ...}` for what is no JSON object.
        """
        arguments = self.arguments
        if arguments is None or isinstance(arguments, Mapping):
            return cast("dict[str, Any] | None", arguments)
        if not arguments:
            return {}
        try:
            found = json.loads(arguments)
        except ValueError:
            return {"raw": arguments}
        return found if isinstance(found, dict) else {"raw": found}

    def has_top_level_media_type(self, top_level_media_type: str) -> bool:
        """Tell whether the data are of a kind: `"image"`, `"audio"`, `"text"` or `"application"`.

        Raises:
            ContentError: The media type is not known.
        """
        if self.media_type is None:
            message = "This content has no media type to compare. Give one when it is made: media_type='image/png'."
            raise ContentError(message)
        return self.media_type.partition("/")[0].strip().lower() == top_level_media_type.lower()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Instances pass through pydantic as they are; dictionaries in the form of `to_dict` are read."""
        return core_schema(cls)


def convert_content(value: Any) -> Any:
    """Return a content, or another object of the library, as its dictionary; any other value as it is."""
    return value.to_dict() if isinstance(value, (Content, SerializationMixin)) else value


def _plain_annotation(annotation: Mapping[str, Any]) -> dict[str, Any]:
    return {
        name: to_plain(value, convert_content) for name, value in annotation.items() if name != "raw_representation"
    }


register_frozen(Content)
