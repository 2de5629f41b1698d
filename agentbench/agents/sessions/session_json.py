"""Convert the state of a session to JSON values and back.

Objects become dictionaries with their class in `"type"` and, exactly, in `"__qualname__"`. Python's built-in types have
the same tagged form as in checkpoints. User dictionaries that look like one of these forms are wrapped, so that they
are read as dictionaries.
"""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Mapping
from contextlib import suppress
from enum import Enum
from inspect import signature
from typing import Any, Final, Literal

from agentbench._secrets import find_secret, is_secret_class
from agentbench.exceptions import UnstorableValueError
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse, ChatResponse
from agentbench.messages.update import AgentResponseUpdate, ChatResponseUpdate
from agentbench.serialization.class_types import is_model
from agentbench.serialization.json_text import from_json, to_json
from agentbench.serialization.registry import type_of_tag
from agentbench.serialization.standard_types import STANDARD_DECODERS
from agentbench.serialization.state_types import (
    identifier_of,
    note_identifier,
    register_library_class,
    registered_form,
    stored_name,
    type_of_identifier,
)
from agentbench.serialization.writer import TAG

_log = logging.getLogger("agentbench")

_NAME: Final = "__qualname__"
_FIELD_TYPE: Final = "__field_type__"
_WHOLE: Final = "__value__"
_RESERVED: Final = frozenset({_NAME, _FIELD_TYPE, _WHOLE})
_PLAIN: Final = "plain"
"""Tag of a user dictionary that looks like one of our forms."""

_SECRET: Final = "{} is a secret ({}). Keep secrets in the environment, not in a session."
_AS_THEY_ARE: Final = frozenset({str, bool, type(None)})
_LARGEST_INT: Final = 1 << 4096
_OF_TABLES: Final = frozenset({"numpy", "pandas"})
"""Types whose `to_dict()` has another purpose."""

_Place = Literal["state", "content", "model"]
"""The container of a value: the state itself, the result of `to_dict()`, or the dump of a pydantic model."""

for _cls in (Message, Content, ChatResponse, ChatResponseUpdate, AgentResponse, AgentResponseUpdate):
    register_library_class(_cls, f"agentbench.{_cls.__name__}", *(("message",) if _cls is Message else ()))


def _place(path: Any) -> str:
    """Return the place of a value, such as `session.state['notes'][0]`; a path is a container's path and a key."""
    steps = []
    while not isinstance(path, str):
        path, step = path
        steps.append(f"[{step!r}]")
    return path + "".join(reversed(steps))


def _unwritable(path: Any, reason: str) -> TypeError:
    return TypeError(f"{_place(path)} cannot be serialized. {reason}")


def write_state(state: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the state to plain JSON values without sharing; a TypeError names a value that cannot be serialized."""
    return _write_root(state, "state", "session.state")


def write_values(content: Mapping[str, Any]) -> dict[str, Any]:
    """Convert the result of a message's `to_dict()` to plain JSON values, as `write_state` does."""
    return _write_root(content, "content", "message")


def _write_root(values: Mapping[Any, Any], where: _Place, root: str) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for key, value in values.items():
        try:
            written[_write_key(key, written, root)] = _write(value, where, (root, key))
        except RecursionError as error:
            message = f"{root}[{key!r}] contains itself, or is nested too deeply to be serialized."
            raise TypeError(message) from error
    return written


def _write(value: Any, where: _Place, path: Any) -> Any:
    cls = type(value)
    if cls in _AS_THEY_ARE:
        return value
    if cls is int:
        return value if -_LARGEST_INT < value < _LARGEST_INT else _to_tagged(value, path)
    if cls is float:
        return value if math.isfinite(value) else _to_tagged(value, path)
    if cls is dict:
        written = _write_values(value, where, path)
        return {TAG: _PLAIN, "v": written} if _meaning_of(written, where) is not None else written
    if cls in (list, tuple, set, frozenset):
        items = [_write(item, where, (path, index)) for index, item in enumerate(value)]
        return items if cls in (list, tuple) else sorted(items, key=json.dumps)  # same order in every process
    return _write_object(value, cls, where, path)


def _write_values(value: Mapping[Any, Any], where: _Place, path: Any) -> dict[str, Any]:
    written: dict[str, Any] = {}
    for key, item in value.items():
        name = key if type(key) is str and key not in written else _write_key(key, written, path)
        written[name] = item if type(item) in _AS_THEY_ARE else _write(item, where, (path, key))
    return written


def _write_key(key: Any, written: dict[str, Any], path: Any) -> str:
    name = key if type(key) is str else str(key.value if isinstance(key, Enum) else key)
    if name in written:
        reason = f"Two keys of the dictionary are both {name!r} as text, and JSON keys are text."
        raise _unwritable((path, key), reason)
    return name


def _write_object(value: Any, cls: Any, where: _Place, path: Any) -> Any:
    if registered_form(cls) is not None or cls.__module__.partition(".")[0] in _OF_TABLES:
        return _to_tagged(value, path)
    if callable(getattr(cls, "to_dict", None)):
        return _write_own_form(value, cls, where, path)
    if is_model(cls):
        content = value.model_dump(round_trip=True)
        written = _write_typed(content, cls, identifier_of(cls), "model", path)
        if isinstance(content, Mapping) and "type" in content and _WHOLE not in written:
            written[_FIELD_TYPE] = _write(content["type"], "model", (path, "type"))
        return written
    if where == "model" and not is_secret_class(cls):
        from pydantic_core import PydanticSerializationError, to_jsonable_python  # noqa: PLC0415 - there is a model

        try:
            return json.loads(to_json(value))
        except UnstorableValueError:
            with suppress(PydanticSerializationError):
                return to_jsonable_python(value)  # validation of the model restores the value
    return _to_tagged(value, path)


def refuse_secrets(value: Any) -> None:
    """Raise a TypeError with the place of the first secret in a state."""
    found = find_secret(value, "session.state")
    if found is not None:
        path, secret = found
        raise _unwritable(path, _SECRET.format("It", type(secret).__qualname__))


def _to_tagged(value: Any, path: Any) -> Any:
    try:
        return json.loads(to_json(value))
    except UnstorableValueError as error:
        kind, it = error.value_type, f"Its part {error.path}" if error.path else "It"
        if is_secret_class(kind):
            reason = _SECRET.format(it, kind.__qualname__)
        else:
            reason = (
                f"{it} has type {kind.__module__}.{kind.__qualname__}, which cannot be stored. Keep plain values "
                "there, make it a dataclass or a pydantic model at the top level of a module, give it to_dict() and "
                "from_dict(), or pass its class to register_state_type()."
            )
        raise _unwritable(path, reason) from error


def _write_own_form(value: Any, cls: Any, where: _Place, path: Any) -> Any:
    try:
        content = value.to_dict()
    except Exception as error:  # user code
        raise _unwritable(path, f"The to_dict() of {cls.__qualname__} raised {type(error).__name__}.") from error
    if not callable(getattr(cls, "from_dict", None)):
        return _write(content, where, path)
    identifier = content.get("type") if isinstance(content, Mapping) else None
    return _write_typed(
        content, cls, identifier if isinstance(identifier, str) else identifier_of(cls), "content", path
    )


def _write_typed(content: Any, cls: type, identifier: str, where: _Place, path: Any) -> dict[str, Any]:
    note_identifier(cls, identifier)
    name = stored_name(cls)
    if not isinstance(content, Mapping) or not _RESERVED.isdisjoint(content):
        return {"type": identifier, _WHOLE: _write(content, where, path), _NAME: name}
    written = _write_values(content, where, path)
    if where == "model":
        written["type"] = identifier
    return {**written, _NAME: name}  # without its own "type", the form is identified by name


def read_state(written: Mapping[str, Any]) -> dict[str, Any]:
    """Restore the state from the result of `write_state`; a ValueError names a value that cannot be read."""
    return _read_values(written, "state", "session.state")


def read_values(written: Mapping[str, Any]) -> dict[str, Any]:
    """Restore values from the result of `write_values`, as `read_state` does."""
    return _read_values(written, "content", "message")


def _read(value: Any, where: _Place, path: Any) -> Any:
    if isinstance(value, list):
        return [_read(item, where, (path, index)) for index, item in enumerate(value)]
    if not isinstance(value, dict):
        return value
    meaning = _meaning_of(value, where)
    if meaning is dict:
        value = value["v"]
    elif meaning == TAG:
        try:
            return from_json(json.dumps(value))
        except Exception as error:
            message = f"{_place(path)} cannot be read: {error}"
            raise ValueError(message) from error
    elif meaning is not None:
        return _read_typed(value, meaning, where, path)
    elif isinstance(name := value.get(_NAME), str):
        _log.warning(
            "%s stays a dictionary: the type %r is not registered. Call register_state_type() where the class is "
            "defined, and import that module before reading sessions.",
            _place(path),
            name,
        )
        where = "content"
    return _read_values(value, where, path)


def _meaning_of(value: dict[str, Any], where: _Place) -> Any:
    """Return how to read a dictionary: as a class, `TAG`, `dict` (wrapped) or `None` (as itself)."""
    tag = value.get(TAG)
    if isinstance(tag, str) and len(value) == 2 and "v" in value:
        if tag == _PLAIN:
            return dict if isinstance(value["v"], dict) else None
        return TAG if tag in STANDARD_DECODERS or type_of_tag(tag) is not None else None
    name, identifier = value.get(_NAME), value.get("type")
    identifier = identifier if isinstance(identifier, str) else None
    if isinstance(name, str):
        cls = type_of_identifier(identifier or name.rpartition(".")[2].lower(), name)
    else:
        cls = type_of_identifier(identifier) if where == "state" else None
    return cls if cls is not None and (callable(getattr(cls, "from_dict", None)) or is_model(cls)) else None


def _read_values(value: Mapping[str, Any], where: _Place, path: Any) -> dict[str, Any]:
    return {key: _read(item, where, (path, key)) for key, item in value.items()}


def _read_typed(value: dict[str, Any], cls: Any, where: _Place, path: Any) -> Any:
    try:
        return _make(cls, value, path)
    except Exception as error:
        name, kind = stored_name(cls), type(error).__name__
        if _NAME in value:
            message = (
                f"{_place(path)} cannot be read as {name}: {kind}. Expected what an instance of this version of the "
                "class wrote."
            )
            raise ValueError(message) from error
        # Without a name, it may be a user dictionary with a key "type".
        _log.warning("%s stays a dictionary: %s rejected it (%s).", _place(path), name, kind)
    return _read_values(value, where, path)


def _make(cls: Any, value: dict[str, Any], path: Any) -> Any:
    has_own_form = callable(getattr(cls, "from_dict", None))
    where: _Place = "content" if has_own_form else "model"
    if _WHOLE in value and _NAME in value:
        content = _read(value[_WHOLE], where, path)
    else:
        content = _read_values({key: item for key, item in value.items() if key != _NAME}, where, path)
        if not has_own_form:
            del content["type"]
            if _FIELD_TYPE in content:
                content["type"] = content.pop(_FIELD_TYPE)
    if has_own_form:
        return cls.from_dict(content)
    if "by_name" in signature(cls.model_validate).parameters:  # since pydantic 2.11
        return cls.model_validate(content, by_name=True, by_alias=True)
    return cls.model_validate(content)
