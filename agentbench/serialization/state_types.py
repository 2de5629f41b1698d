"""User classes that are stored by `register_state_type`."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from typing import Any, Final, TypedDict, TypeVar, Unpack, overload

from agentbench.exceptions import UnknownStoredTypeError
from agentbench.serialization.class_names import as_plain, class_name, moved_from_main, refuse_other, register_class
from agentbench.serialization.class_types import find_class_type
from agentbench.serialization.mixin import snake_case
from agentbench.serialization.registry import StateType, store_as

C = TypeVar("C", bound=type)

_log = logging.getLogger("agentbench")

_WRITTEN_AS_THEY_ARE: Final = frozenset({str, int, float, bool, type(None), list, dict, set, frozenset})
"""Types that the writer writes without a registered form."""
_BY_NAME: Final[dict[str, StateType]] = {}
_BY_IDENTIFIER: Final[dict[str, dict[str, type]]] = {}
"""The classes of each text of a `"type"` field, by stored name; the latest is the last."""
_BY_STORED_NAME: Final[dict[str, type]] = {}
"""The same classes by stored name."""
_OTHER_NAMES: Final[dict[type, str]] = {}
"""Classes that are not stored by their qualified names."""
_WITH_FORM: Final[dict[type, StateType]] = {}
"""Classes with their own form: `encode` and `decode`."""


class _Form(TypedDict, total=False):
    identifier: str | None
    encode: Callable[[Any], Any] | None
    decode: Callable[[Any], Any] | None
    frozen: bool


@overload
def register_state_type(cls: C, **form: Unpack[_Form]) -> C: ...


@overload
def register_state_type(cls: None = None, **form: Unpack[_Form]) -> Callable[[C], C]: ...


def register_state_type(
    cls: Any = None,
    *,
    identifier: str | None = None,
    encode: Callable[[Any], Any] | None = None,
    decode: Callable[[Any], Any] | None = None,
    frozen: bool = False,
) -> Any:
    """Register a class, so that its instances can be saved in checkpoints and sessions.

    Every process that reads them has to register it too. `register_checkpoint_type` is another name of this function.

    Dataclasses, pydantic models, named tuples and enums at the top level of an imported module need no registration.
    Classes defined inside a function need it, and so do all other classes, which must have `to_dict()` and the class
    method `from_dict(data)` unless `encode` and `decode` are passed. Subclasses must be registered separately. The
    function works as a decorator, with and without arguments.

    A program or notebook saves its own class as `__main__.Car`. Once the class has moved to a module, that name is read
    as the registered class `Car`; if there are several, register one with `identifier="__main__.Car"`.

    Args:
        cls: The class.
        identifier: The stored name; by default the qualified name.
        encode: Converts an instance to a simpler value, which can be stored.
        decode: Converts that value to an instance.
        frozen: Whether instances never change once they are saved, so that checkpoints need not compare them again.

    Raises:
        TypeError: The class cannot be stored without `encode` and `decode`, only one of them is passed, one cannot be
            called, or the class is a JSON type, such as `int`.
        ValueError: Another class is stored by this identifier.

    Example:
        from agentbench import register_state_type


        @register_state_type
        class SearchHistory:
            def __init__(self, queries):
                self.queries = queries

            def to_dict(self):
                return {"type": "search_history", "queries": self.queries}

            @classmethod
            def from_dict(cls, data):
                return cls(data["queries"])
    """
    if cls is None:
        return lambda decorated: register_state_type(
            decorated, identifier=identifier, encode=encode, decode=decode, frozen=frozen
        )
    if not isinstance(cls, type):
        message = f"register_state_type() cannot register {cls!r}. Expected a class."
        raise TypeError(message)
    _require_form(cls, encode, decode)
    kind = _kind_of(cls, identifier, encode, decode)
    store_as(kind, frozen=frozen)
    if encode is None:
        _WITH_FORM.pop(cls, None)
    else:
        _WITH_FORM[cls] = kind
    if identifier is not None:
        _OTHER_NAMES[cls] = identifier
    name = stored_name(cls)
    for each in _identifiers_of(cls, identifier):
        known = _BY_IDENTIFIER.get(each, {})
        others = {other: found for other, found in known.items() if other != name}
        if others and name not in known:
            _log.warning("Type %r now means %s; it meant %s before.", each, name, next(reversed(others)))
        _BY_IDENTIFIER[each] = {**others, name: cls}
    _BY_STORED_NAME[name] = cls
    return cls


def _require_form(cls: type, encode: object, decode: object) -> None:
    if cls in _WRITTEN_AS_THEY_ARE:
        message = f"{cls.__qualname__} is stored without registration. Register one of your own classes."
        raise TypeError(message)
    if callable(encode) is not callable(decode) or (encode is None) is not (decode is None):
        message = (
            f"encode and decode of {cls.__qualname__} are {encode!r} and {decode!r}. Pass two functions, or neither."
        )
        raise TypeError(message)


def register_library_class(cls: type, name: str, *identifiers: str) -> None:
    """Register a library class by a name that stays the same when the class moves, and by its `"type"` texts."""
    _OTHER_NAMES[cls] = name
    _BY_STORED_NAME[name] = cls
    for identifier in identifiers:
        note_identifier(cls, identifier)


def note_identifier(cls: type, identifier: str) -> None:
    """Register a class by the `"type"` that an instance has just written; registered classes take precedence."""
    known, name = _BY_IDENTIFIER.get(identifier, {}), stored_name(cls)
    if known.get(name) is cls:
        return
    if known and name not in known:
        _log.warning("Type %r is written by %s and by %s.", identifier, next(reversed(known)), name)
    _BY_IDENTIFIER[identifier] = {**known, name: cls} if name in known else {name: cls, **known}
    _BY_STORED_NAME[name] = cls


def stored_name(cls: type) -> str:
    """Return the name that distinguishes a class from others with the same `"type"`."""
    return _OTHER_NAMES.get(cls) or class_name(cls)


def identifier_of(cls: type) -> str:
    """Return the `"type"` that is written for instances whose own form has none."""
    return next(_identifiers_of(cls, _OTHER_NAMES.get(cls)))


def registered_form(cls: type) -> StateType | None:
    """Return the form with `encode` and `decode` of a class."""
    return _WITH_FORM.get(cls)


def type_of_identifier(identifier: str | None, name: str | None = None) -> type | None:
    """Return a class by its stored name, or else the last one registered for the text of the `"type"` field."""
    if name in _BY_STORED_NAME:
        return _BY_STORED_NAME[name]
    found = _BY_IDENTIFIER.get(identifier or "")
    return next(reversed(found.values())) if found else None


def read_registered(found: Any) -> Any:
    """Read an instance of a registered class."""
    name, content = found
    kind = _BY_NAME.get(name)
    if kind is None:
        by_class = {each.cls: each for each in _BY_NAME.values()}
        moved = moved_from_main(str(name), by_class)
        if moved is None:
            return as_plain(UnknownStoredTypeError(str(name)), "registered", name, content)
        kind = by_class[moved]
    return kind.decode(content)


def _kind_of(
    cls: Any, identifier: str | None, encode: Callable[[Any], Any] | None, decode: Callable[[Any], Any] | None
) -> StateType:
    if encode is None or decode is None:
        register_class(cls, identifier)
        kind = find_class_type(cls)
        if kind is not None:
            return kind
        encode, decode = getattr(cls, "to_dict", None), getattr(cls, "from_dict", None)
    if not callable(encode) or not callable(decode):
        message = (
            f"{class_name(cls)} has no stored form. Make it a dataclass or a pydantic model, write "
            "to_dict() and from_dict() in it, or pass encode and decode."
        )
        raise TypeError(message)
    name = identifier or class_name(cls)
    refuse_other(cls, name, _BY_NAME[name].cls if name in _BY_NAME else None)
    _BY_NAME[name] = StateType(cls, name, encode, decode)
    return StateType(cls, "registered", encode, read_registered, name)


def _identifiers_of(cls: Any, identifier: str | None) -> Iterator[str]:
    if identifier is not None:
        yield identifier
    own = getattr(cls, "_get_type_identifier", None)
    if callable(own):
        yield str(own())
    yield cls.__name__.lower()
    for attribute in ("type", "TYPE"):
        value = getattr(cls, attribute, None)
        if isinstance(value, str):
            yield value
    yield snake_case(cls.__name__)
