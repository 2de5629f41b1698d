"""The common base of messages, responses and updates: named fields that are serialized, compared and copied."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, ClassVar, Self

from agentbench._display import Displayable
from agentbench.messages.content.fields import convert_content
from agentbench.serialization.mixin import SerializationMixin, pydantic_schema
from agentbench.serialization.plain import copy_plain


class Record(SerializationMixin, Displayable):
    """A record of named fields, compared by these fields. It is mutable and therefore has no hash."""

    __slots__ = ()
    __hash__: ClassVar[None]  # type: ignore[assignment]

    TYPE: ClassVar[str]
    additional_properties: Any
    FIELDS: ClassVar[tuple[str, ...]]
    """The fields that are serialized, in this order."""

    _STORED: ClassVar[tuple[str, ...]] = ()
    """All attributes that store data; they are copied."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        cls._STORED = tuple(dict.fromkeys([*cls._STORED, *vars(cls).get("__slots__", ())]))

    def __copy__(self) -> Self:
        """Copy the fields, but not their values."""
        cls = type(self)
        duplicate = cls.__new__(cls)
        for name in cls._STORED:
            setattr(duplicate, name, getattr(self, name))
        if hasattr(self, "__dict__"):  # a subclass without slots
            duplicate.__dict__.update(self.__dict__)
        return duplicate

    def set_fields(self) -> dict[str, Any]:
        """Return the fields that are not `None`; values are not copied."""
        return {name: value for name in self.FIELDS if (value := getattr(self, name)) is not None}

    def to_dict(self, *, exclude: Collection[str] | None = None, exclude_none: bool = True) -> dict[str, Any]:
        """Return the fields as a dictionary of JSON values; objects that JSON cannot represent stay as they are."""
        fields = self.set_fields() if exclude_none else {name: getattr(self, name) for name in self.FIELDS}
        data: dict[str, Any] = {"type": self.TYPE}
        for name, value in fields.items():
            data[name] = value if type(value) is str else copy_plain(value, convert_content)
        return {name: value for name, value in data.items() if name not in exclude} if exclude else data

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or self._comparison_key() == other._comparison_key()

    def _comparison_key(self) -> Any:
        return self.set_fields()

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        """Let pydantic accept instances as they are and read dictionaries in the form of `to_dict`."""
        return pydantic_schema(cls)
