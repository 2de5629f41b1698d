"""Converts types to JSON values and back, by name and structure.

A class or other named type becomes the text `"module.qualname"`, with the names of its definition; a class of the
library becomes its public path, such as `"agentbench.Message"`. Everything built from types becomes a dictionary with
one of the keys `union`, `literal` or `origin` (with `args`). `Annotated` metadata is dropped, and `typing.List[int]`
comes back as `list[int]`.

Decoding imports nothing except public names of the library, and runs nothing: a name is looked up in the plain
namespaces of the loaded modules, and must denote a type there.
"""

from __future__ import annotations

import enum
import operator
import sys
import types
from collections.abc import Callable, Mapping
from typing import Annotated, Any, Literal, NoReturn, cast, get_args

from agentbench._lazy import find_public
from agentbench._signatures.forms import (
    NoneType,
    TypeLike,
    is_type_form,
    is_union,
    origin_of,
    type_address,
    type_arguments,
    union_of,
)

TypeData = Any
"""JSON values: text for a named type, otherwise a dictionary; inside `args` also lists (parameters of a callable)."""

_Find = Callable[[str], TypeLike]

_ELLIPSIS = "..."
_MOST: Mapping[str, int] = {"union": 200, "literal": 10_000, "args": 200}
"""Creating larger ones takes minutes."""
_RENAMED: Mapping[str, TypeLike] = {"typing.Never": NoReturn}
_SCALARS = (str, int, bool, NoneType)


def type_to_dict(type_: TypeLike) -> TypeData:
    """Return a type as JSON values; TypeError if it is not a type, or a `Literal` contains a value that JSON lacks."""
    if type_ is Ellipsis:
        return _ELLIPSIS
    if type_ is None:
        return type_to_dict(NoneType)
    if isinstance(type_, list):
        return [type_to_dict(item) for item in type_]
    if origin_of(type_) is Annotated:
        return type_to_dict(get_args(type_)[0])
    if origin_of(type_) is Literal:
        return {"literal": [_literal_to_data(value) for value in get_args(type_)]}
    if is_union(type_):
        return {"union": [type_to_dict(member) for member in get_args(type_)]}
    origin, args = _generic_parts(type_)
    address = type_address(origin)
    return address if args is None else {"origin": address, "args": [type_to_dict(arg) for arg in args]}


def find_loaded_type(address: str) -> TypeLike:
    """Return the type named `"module.qualname"` or `"module:qualname"` in a loaded module, or raise TypeError."""
    public = find_public(address)
    if public is not None and is_type_form(public):
        return public
    for module_name, path in _splits(address):
        found = _look_up(module_name, path)
        if found is not None and is_type_form(found):
            return found
    if address in _RENAMED:
        return _RENAMED[address]
    message = (
        f"Type {address!r} is not known here. Expected a type in a loaded module, and not one defined inside a "
        "function. Import its module first, then decode again."
    )
    raise TypeError(message)


def type_from_dict(data: TypeData, find: _Find = find_loaded_type) -> TypeLike:
    """Return the type described by `type_to_dict` or `"module:qualname"`, using `find`; otherwise raise `TypeError`."""
    if isinstance(data, str):
        return Ellipsis if data == _ELLIPSIS else find(data)
    if isinstance(data, list):
        return [type_from_dict(item, find) for item in data]
    if not isinstance(data, Mapping):
        raise _malformed_error(data)
    for key, most in _MOST.items():
        if len(data.get(key, ())) > most:
            message = f"A type has at most {most:,} members in its {key}; found {len(data[key]):,}."
            raise TypeError(message)
    if isinstance(data.get("union"), list):
        return union_of(tuple(type_from_dict(member, find) for member in data["union"]))
    if isinstance(data.get("literal"), list):
        return operator.getitem(Literal, tuple(_literal_from_data(value, find) for value in data["literal"]))
    if not isinstance(data.get("origin"), str):
        raise _malformed_error(data)
    origin = find(data["origin"])
    args = tuple(type_from_dict(arg, find) for arg in data.get("args", ()))
    return origin[args[0] if len(args) == 1 else args]


def _generic_parts(type_: TypeLike) -> tuple[TypeLike, tuple[TypeLike, ...] | None]:
    # A parametrised pydantic model is a separate class, whose name is in no module.
    metadata = getattr(type_, "__pydantic_generic_metadata__", None)
    if isinstance(metadata, dict) and metadata.get("origin") is not None:
        return metadata["origin"], metadata["args"]
    return origin_of(type_) or type_, type_arguments(type_)


def _literal_to_data(value: object) -> object:
    if isinstance(value, enum.Enum):
        return {"enum": type_address(type(value)), "name": value.name}
    if isinstance(value, bytes):
        return {"hex": value.hex()}
    if type(value) in _SCALARS:
        return value
    message = f"Literal value {value!r} cannot be written. Expected text, bytes, int, bool, None or an enum member."
    raise TypeError(message)


def _literal_from_data(data: TypeData, find: _Find) -> object:
    if not isinstance(data, Mapping):
        return data
    if isinstance(data.get("hex"), str):
        try:
            return bytes.fromhex(data["hex"])
        except ValueError as error:
            raise _malformed_error(data) from error
    cls = find(str(data.get("enum")))
    if isinstance(cls, type) and issubclass(cls, enum.Enum) and data.get("name") in cls.__members__:
        return cls.__members__[str(data["name"])]
    raise _malformed_error(data)


def _malformed_error(data: object) -> TypeError:
    return TypeError(f"{data!r} does not describe a type or a value of a Literal. Expected a result of type_to_dict.")


def _splits(address: str) -> list[tuple[str, str]]:
    """Return the ways to split an address into module and name, the longest module first."""
    module_name, colon, path = address.partition(":")
    if colon:
        return [(module_name, path)]
    parts = address.split(".")
    return [(".".join(parts[:at]), ".".join(parts[at:])) for at in range(len(parts) - 1, 0, -1)]


def _look_up(module_name: str, path: str) -> object:
    found: object = sys.modules.get(module_name)
    for name in path.split("."):
        found = _namespace_of(found).get(name)
    if found is None and module_name == "builtins":  # a class such as `function`, which is only in `types`
        classes = (value for value in vars(types).values() if isinstance(value, type))
        return next((cls for cls in classes if cls.__module__ == "builtins" and cls.__qualname__ == path), None)
    return found


def _namespace_of(owner: object) -> Mapping[str, object]:
    # Plain namespaces only, because getattr could run code of a module or a proxy, and with it an import.
    if isinstance(owner, type):
        return cast("Mapping[str, object]", type.__getattribute__(owner, "__dict__"))
    return object.__getattribute__(owner, "__dict__") if issubclass(type(owner), types.ModuleType) else {}
