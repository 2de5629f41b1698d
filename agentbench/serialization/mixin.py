"""Objects that convert themselves to dictionaries and JSON, and can be created from them."""

from __future__ import annotations

import copy
import inspect
import json
import logging
import re
from collections.abc import Collection, Iterator, Mapping, MutableMapping
from datetime import date, time
from typing import Any, ClassVar, Final, Protocol, Self, runtime_checkable

from agentbench._copying import slots_of
from agentbench._signatures.class_cache import cached_on_class
from agentbench.serialization.plain import OMIT, copy_plain

_log = logging.getLogger("agentbench")

_MISSING: Final = object()
_UNCHANGING: Final = frozenset({type(None), str, bool, int, float, bytes})
_Dependencies = Mapping[str, Mapping[str, Any]]
_slots_of = cached_on_class(slots_of)


@runtime_checkable
class SerializationProtocol(Protocol):
    """An object that can be converted to a dictionary and created from one.

    Example:
        from agentbench import Message, SerializationProtocol

        assert isinstance(Message("user", ["Hello"]), SerializationProtocol)
    """

    def to_dict(self, **kwargs: Any) -> dict[str, Any]:
        """Return the object as a dictionary."""

    @classmethod
    def from_dict(cls, data: MutableMapping[str, Any], /, **kwargs: Any) -> Any:
        """Create an object from a dictionary."""


class SerializationMixin:
    """Adds `to_dict`, `from_dict`, `to_json` and `from_json` over the public attributes of a class.

    Attributes:
        DEFAULT_EXCLUDE: Names of attributes that are never written.
        INJECTABLE: Names of attributes that are never written but passed in on reading, such as clients.

    Example:
        from agentbench import EchoChatClient, SerializationMixin


        class Greeter(SerializationMixin):
            INJECTABLE = {"client"}

            def __init__(self, *, greeting, client=None):
                self.greeting, self.client = greeting, client


        data = Greeter(greeting="Hello", client=EchoChatClient()).to_dict()
        Greeter.from_dict(data, dependencies={"greeter": {"client": EchoChatClient()}})
    """

    __slots__ = ()

    DEFAULT_EXCLUDE: ClassVar[Collection[str]] = frozenset()
    INJECTABLE: ClassVar[Collection[str]] = frozenset()

    def to_dict(self, *, exclude: Collection[str] | None = None, exclude_none: bool = True) -> dict[str, Any]:
        """Return the public attributes by name, after the `"type"`, without the excluded ones.

        Objects with their own `to_dict` are converted by it, also within lists and dictionaries. Values without a JSON
        form are left out, with a log line.
        """

        def convert(value: Any) -> Any:
            if isinstance(value, (str, int, float)):
                return value
            if isinstance(value, SerializationMixin):
                return value.to_dict(exclude_none=exclude_none)
            if hasattr(value, "to_dict") and hasattr(value, "from_dict") and not isinstance(value, type):
                return value.to_dict()  # isinstance(value, SerializationProtocol) takes ten times as long
            return str(value) if isinstance(value, (date, time)) else OMIT

        left_out = {*self.DEFAULT_EXCLUDE, *self.INJECTABLE, *(exclude or ())}
        found: dict[str, Any] = {} if "type" in left_out else {"type": self._get_type_identifier()}
        for name, value in _attributes_of(self):
            if name.startswith("_") or name in left_out or name in found or (exclude_none and value is None):
                continue
            written = OMIT if isinstance(value, (date, time)) else copy_plain(value, convert)
            if written is OMIT:
                _log.debug("%s.%s is a %s and is not written.", type(self).__name__, name, type(value).__name__)
            else:
                found[name] = written
        return found

    def to_json(self, *, exclude: Collection[str] | None = None, exclude_none: bool = True, **json_kwargs: Any) -> str:
        """Return `to_dict` as JSON; further arguments are those of `json.dumps`."""
        return json.dumps(self.to_dict(exclude=exclude, exclude_none=exclude_none), **json_kwargs)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], /, *, dependencies: _Dependencies | None = None) -> Self:
        """Create an instance by calling the constructor with a dictionary in the form of `to_dict`.

        Args:
            data: The attributes by name; a `"type"` is optional.
            dependencies: Arguments that are not written, by type: `{"greeter": {"client": client}}`; for a single
                instance:
                `{"greeter": {"greeting:Hello": {"client": client}}}`. Dictionaries are merged into those in `data`.

        Raises:
            ValueError: The data is of another type.
            TypeError: The constructor does not accept one of the names.
        """
        arguments = dict(data)
        type_ = arguments.pop("type", None)
        known = type_identifiers(cls)
        if type_ is not None and type_ not in known:
            message = f"The data is of type {type_!r}. {cls.__name__}.from_dict() expects {known[0]!r}."
            raise ValueError(message)
        if dependencies:
            for identifier in dict.fromkeys(known if type_ is None else [type_, *known]):
                cls._ab_inject(arguments, dependencies.get(identifier, {}))
        return cls(**arguments)

    @classmethod
    def _ab_inject(cls, arguments: dict[str, Any], dependencies: Mapping[str, Any]) -> None:
        for name, value in _dependencies_of(arguments, dependencies):
            if name not in cls.INJECTABLE:
                _log.debug("%s takes %r, which is not among its INJECTABLE.", cls.__name__, name)
            before = arguments.get(name)
            if isinstance(before, Mapping) and isinstance(value, Mapping):
                arguments[name] = {**before, **value}
            else:
                arguments[name] = value

    @classmethod
    def from_json(cls, text: str | bytes, /, *, dependencies: _Dependencies | None = None) -> Self:
        """Create an instance from JSON; see `from_dict`."""
        return cls.from_dict(json.loads(text), dependencies=dependencies)

    @classmethod
    def _get_type_identifier(cls) -> str:
        return type_identifiers(cls)[0]

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Copy everything except `raw_representation`, which is shared."""
        cls = type(self)
        duplicate = cls.__new__(cls)
        memo[id(self)] = duplicate
        for name, value in dict(_attributes_of(self)).items():
            shared = type(value) in _UNCHANGING or name == "raw_representation"
            object.__setattr__(duplicate, name, value if shared else copy.deepcopy(value, memo))
        return duplicate


@cached_on_class
def type_identifiers(cls: type) -> tuple[str, ...]:
    """Return the possible texts of `"type"` for a class: the one that is written first, then older spellings."""
    values = [inspect.getattr_static(cls, name, None) for name in ("type", "TYPE")]  # descriptors are not evaluated
    own = [value for value in values if isinstance(value, str)]
    letter_by_letter = re.sub(r"(?<!^)(?=[A-Z])", "_", cls.__name__).lower()
    return tuple(dict.fromkeys([*own[:1], snake_case(cls.__name__), letter_by_letter]))


def snake_case(name: str) -> str:
    """Return a class name in snake case: `HTTPThing` becomes `http_thing`."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def _attributes_of(instance: object) -> Iterator[tuple[str, Any]]:
    for name in _slots_of(type(instance)):
        value = getattr(instance, name, _MISSING)
        if value is not _MISSING:
            yield name, value
    yield from list(getattr(instance, "__dict__", {}).items())


def _dependencies_of(arguments: Mapping[str, Any], dependencies: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the dependencies of all instances of a type, then those of this instance."""
    for key, value in dependencies.items():
        if ":" not in key:
            yield key, value
    for key, value in dependencies.items():
        field, colon, wanted = key.partition(":")
        if colon and isinstance(value, Mapping) and str(arguments.get(field, _MISSING)) == wanted:
            yield from value.items()


def pydantic_schema(cls: Any) -> Any:
    """Return pydantic's schema for a class with `to_dict` and `from_dict`: instances pass, other values are read."""
    from pydantic_core import core_schema as schemas  # noqa: PLC0415 - only users of pydantic need it

    def from_dict(data: dict[str, Any]) -> Any:
        try:
            return cls.from_dict(data)
        except TypeError as error:  # pydantic reports only ValueErrors as field errors
            raise ValueError(str(error)) from error

    read = schemas.no_info_after_validator_function(from_dict, schemas.dict_schema())
    return schemas.json_or_python_schema(
        json_schema=read,
        python_schema=schemas.union_schema([schemas.is_instance_schema(cls), read]),
        serialization=schemas.plain_serializer_function_ser_schema(
            lambda value: value.to_dict(), when_used="json", return_schema=schemas.dict_schema()
        ),
    )
