"""From a Python type to its field."""

import collections.abc
import dataclasses
import types
import typing
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Annotated, Any, NamedTuple, Union, get_args, get_origin

from agentbench.notebook.forms.fields import NO_VALUE, Checker, Field, Part, field_for, title_of

__all__ = ["field_of_type", "pairs_of", "type_name"]

_ROWS: dict[Any, type] = {
    list: list, collections.abc.Sequence: list, collections.abc.MutableSequence: list, tuple: tuple,
    set: set, collections.abc.Set: set, collections.abc.MutableSet: set, frozenset: frozenset,
}  # fmt: skip
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
# Qualifiers of TypedDict, by name: not all of them are in every Python.
_QUALIFIERS = frozenset({"Required", "NotRequired", "ReadOnly"})


def field_of_type(annotation: Any, *, label: str = "", help: str = "") -> Field:  # noqa: A002 - what it is called
    """Make the field of a type; a type without fields of its own is typed as JSON.

    Raises:
        NotebookError: Pydantic cannot validate values of this type.
    """
    base, metadata, nullable = _peel(annotation)
    try:
        made = _union(base, metadata) or _container(base, metadata, annotation) or _group(base, annotation)
    except (NameError, TypeError):  # a type named in it is not defined here, or is none
        made = None
    if made is None:
        made = field_for(annotation, label=label)
        own = "" if help and made.kind == "json" else made.help
        return replace(made, help=". ".join(filter(None, [help.rstrip("."), own])))
    checker = Checker(annotation)
    return replace(
        made, label=label, help=help or made.help, nullable=nullable, check=checker.make, accepts=checker.accepts
    )


def type_name(annotation: Any) -> str:
    """Return a type as people write it."""
    if get_origin(annotation) is Annotated:
        return type_name(get_args(annotation)[0])
    if isinstance(annotation, type) and not get_args(annotation):
        return annotation.__name__
    text = str(annotation).replace("typing.", "")
    for each in _inside(annotation):
        if isinstance(each, type) and not get_args(each) and each.__module__ != "builtins":
            text = text.replace(f"{each.__module__}.{each.__qualname__}", each.__name__)
    return text


def _inside(annotation: Any) -> list[Any]:
    return [annotation, *(inner for each in get_args(annotation) for inner in _inside(each))]


def _peel(annotation: Any) -> tuple[Any, tuple[Any, ...], bool]:
    """Return a type without `Annotated`, aliases and `None` around it, the metadata, and whether `None` was there."""
    metadata: tuple[Any, ...] = ()
    nullable = False
    while True:
        if hasattr(annotation, "__supertype__"):  # NewType
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        elif hasattr(annotation, "__metadata__"):
            metadata += tuple(annotation.__metadata__)
            annotation = annotation.__origin__
        elif get_origin(annotation) in (Union, types.UnionType) and type(None) in get_args(annotation):
            nullable = True
            others = [each for each in get_args(annotation) if each is not type(None)]
            annotation = Union[tuple(others)]  # noqa: UP007 - of a computed number of members
        else:
            return annotation, metadata, nullable


# ---- several types --------------------------------------------------------------------------------------------------


def _union(base: Any, metadata: Sequence[Any]) -> Field | None:
    if get_origin(base) not in (Union, types.UnionType):
        return None
    members = get_args(base)
    tag = next((found for each in metadata if (found := getattr(each, "discriminator", None))), None)
    names = [_tag_of(member, tag) if isinstance(tag, str) else _tag_metadata(member) for member in members]
    if not all(names):
        names = [type_name(each) for each in members]
    if len(set(names)) < len(names):
        names = [f"{name} ({at})" for at, name in enumerate(names, 1)]
    parts = [
        Part(name, name, cache(lambda each=each: field_of_type(each)))
        for name, each in zip(names, members, strict=True)
    ]
    return Field(kind="union", parts=lambda: parts)


def _tag_of(member: Any, name: str) -> str:
    try:
        hint = typing.get_type_hints(_peel(member)[0])[name]
    except (NameError, TypeError, KeyError):
        return ""
    return " | ".join(str(getattr(value, "value", value)) for value in get_args(_peel(hint)[0]))


def _tag_metadata(member: Any) -> str:
    return next((each.tag for each in getattr(member, "__metadata__", ()) if type(each).__name__ == "Tag"), "")


# ---- many of one type -----------------------------------------------------------------------------------------------


def _container(base: Any, metadata: Sequence[Any], annotation: Any) -> Field | None:
    origin, inner = get_origin(base) or base, get_args(base)
    least, most = _limits(metadata)
    if origin is tuple and inner and inner[-1] is not Ellipsis:
        if inner == ((),):
            return None
        slots = [_Slot(str(at), each, label=f"{at + 1}.") for at, each in enumerate(inner)]
        return Field(kind="group", parts=_parts_of(slots), makes=tuple, of=annotation)
    if origin in _ROWS:
        makes, each = _ROWS[origin], inner[0] if inner else Any
        return Field(
            kind="rows", item=cache(lambda: field_of_type(each)), makes=makes, least=least, most=most,
            unique=makes in (set, frozenset),
        )  # fmt: skip
    if origin in _MAPPINGS:
        key, value = inner if len(inner) == 2 else (str, Any)
        key_field = field_of_type(key, label="Key")
        if key_field.is_leaf and key_field.kind not in ("json", "file"):
            return pairs_of(key_field, lambda: field_of_type(value), least, most)
    return None


def pairs_of(key: Field, value: typing.Callable[[], Field], least: int, most: int | None) -> Field:
    """Make the field of a mapping: any number of pairs of key and value."""
    parts = [Part("key", "key", lambda: replace(key, label="Key")), Part("value", "value", cache(value))]
    pair = Field(kind="pair", parts=lambda: parts, makes=tuple)
    return Field(kind="pairs", item=lambda: pair, least=least, most=most)


def _limits(metadata: Sequence[Any]) -> tuple[int, int | None]:
    every = [inner for around in metadata for inner in (around, *getattr(around, "metadata", ()))]
    least = [found for each in every if (found := getattr(each, "min_length", None)) is not None]
    most = [found for each in every if (found := getattr(each, "max_length", None)) is not None]
    return max(least, default=0), min(most, default=None)


# ---- named fields ---------------------------------------------------------------------------------------------------


class _Slot(NamedTuple):
    """A named place of a class."""

    name: str
    annotation: Any
    default: object = NO_VALUE
    required: bool = True
    omits: bool = False
    key: str = ""
    label: str = ""
    help: str = ""

    def field(self) -> Field:
        made = field_of_type(self.annotation, label=self.label or title_of(self.name), help=self.help)
        if len(made.options) == 1 and not made.nullable and self.default in (NO_VALUE, made.options[0].value):
            return replace(made, kind="const", help="")
        omits = self.omits and not self.required and not made.nullable
        return replace(made, required=self.required, default=self.default, omits=omits)


def _parts_of(slots: Sequence[_Slot]) -> typing.Callable[[], Sequence[Part]]:
    return cache(lambda: [Part(slot.name, slot.key or slot.name, cache(slot.field)) for slot in slots])


def _group(base: Any, annotation: Any) -> Field | None:
    owner = get_origin(base) or base
    if not isinstance(owner, type):
        return None
    fields = getattr(base, "__pydantic_fields__", None) or getattr(base, "model_fields", None)
    config = getattr(base, "model_config", None) or getattr(owner, "__pydantic_config__", None) or {}
    if isinstance(fields, Mapping) and fields:
        if list(fields) == ["root"] and callable(getattr(base, "model_validate", None)):
            return None  # a RootModel is what its root is; JSON says it
        slots = list(_pydantic_slots(fields))
        if not all(slot.key for slot in slots):
            return None
        owner = base
    elif dataclasses.is_dataclass(owner):
        slots = list(_dataclass_slots(owner))
    elif typing.is_typeddict(owner) or type(owner).__name__ == "_TypedDictMeta":
        slots = [
            _Slot(name, _unqualify(hint), required=name in owner.__required_keys__, omits=True)  # type: ignore[attr-defined]
            for name, hint in _hints(owner).items()
        ]
    elif issubclass(owner, tuple) and hasattr(owner, "_fields") and owner is base:
        defaults = getattr(owner, "_field_defaults", {})
        slots = [_Slot(n, hint, defaults.get(n, NO_VALUE), n not in defaults) for n, hint in _hints(owner).items()]
    else:
        return None
    return Field(
        kind="group", parts=_parts_of(slots), of=owner, help=_doc(owner), open_ended=config.get("extra") == "allow"
    )


def _pydantic_slots(fields: Mapping[str, Any]) -> Iterator[_Slot]:
    for name, info in fields.items():
        if getattr(info, "init", None) is False:
            continue
        default, required = info.default, info.is_required()
        if required or info.default_factory is not None:
            default = NO_VALUE if required else _default_from(info.default_factory)
        yield _Slot(
            name, _annotation_of(info), default, required,
            key=_key_of(name, info), label=info.title or "", help=info.description or "",
        )  # fmt: skip


def _annotation_of(info: Any) -> Any:
    from pydantic import Field as FieldInfo

    # The field's own info would bring its default and its alias, which mean nothing here.
    metadata = list(info.metadata)
    if info.discriminator is not None:
        metadata.append(FieldInfo(discriminator=info.discriminator))
    if isinstance(info.json_schema_extra, dict):
        metadata.append(FieldInfo(json_schema_extra=info.json_schema_extra))
    return Annotated[(info.annotation, *metadata)] if metadata else info.annotation


def _default_from(factory: Any) -> object:
    # Other factories count or look at a clock: the type calls them when it makes the value.
    return factory() if factory in (list, dict, set, tuple, frozenset) else NO_VALUE


def _key_of(name: str, info: Any) -> str:
    alias = info.validation_alias or info.alias or name
    if isinstance(alias, str):
        return alias
    return next((each for each in getattr(alias, "choices", ()) if isinstance(each, str)), "")


def _dataclass_slots(owner: Any) -> Iterator[_Slot]:
    hints = _hints(owner)
    for each in dataclasses.fields(owner):
        default: object = each.default if each.default is not dataclasses.MISSING else NO_VALUE
        required = default is NO_VALUE
        if each.default_factory is not dataclasses.MISSING:
            default, required = _default_from(each.default_factory), False
        if each.init:
            yield _Slot(each.name, hints[each.name], default, required)


def _unqualify(hint: Any) -> Any:
    """Return `Required[X]` and other qualified types as X; annotations inside stay."""
    while getattr(get_origin(hint), "_name", None) in _QUALIFIERS:
        (hint,) = get_args(hint)
    return hint


def _hints(owner: Any) -> dict[str, Any]:
    import typing_extensions

    # Those of typing_extensions know the qualifiers of newer Pythons.
    return typing_extensions.get_type_hints(owner, include_extras=True)


def _doc(owner: Any) -> str:
    """Return the first line of a class's own docstring; a dataclass without one has its signature there."""
    text = (vars(owner).get("__doc__") or "") if isinstance(owner, type) else ""
    line = next(iter(text.strip().splitlines()), "")
    return "" if line.startswith(f"{owner.__name__}(") else line
