"""From a Python type to the shape of its form."""

import collections.abc
import dataclasses
import types
import typing
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any, Union, get_args, get_origin

from agentbench.notebook.forms.fields.field import NO_VALUE, FormField, field_for
from agentbench.notebook.forms.fields.shapes import (
    Check,
    Const,
    Group,
    Leaf,
    Member,
    OneOf,
    Pairs,
    Part,
    Rows,
    Shape,
    lazily,
)

__all__ = ["shape_of_field", "shape_of_type", "type_name"]

_SEQUENCES = (list, collections.abc.Sequence, collections.abc.MutableSequence)
_SETS = (set, collections.abc.Set, collections.abc.MutableSet)
_MAPPINGS = (dict, collections.abc.Mapping, collections.abc.MutableMapping)
# Qualifiers of TypedDict, by name: not all of them are in every Python.
_QUALIFIERS = frozenset({"Required", "NotRequired", "ReadOnly"})


@dataclass(frozen=True)
class _Peeled:
    """A type without what is around it: `Annotated`, aliases, `None` among its alternatives."""

    base: Any
    metadata: tuple[Any, ...]
    nullable: bool


def shape_of_type(annotation: Any, *, label: str = "", help: str = "") -> Shape:  # noqa: A002 - what it is called
    """Make the shape of a type; what has no form of its own is typed as JSON.

    Args:
        annotation: Any type that pydantic can check.
        label: What the person reads above it.
        help: The help text, besides the limits.

    Raises:
        NotebookError: If pydantic knows no way to check a value of this type.
    """
    peeled = _peel(annotation)
    made = None
    try:
        made = _union(peeled, annotation) or _container(peeled, annotation) or _group(peeled.base, annotation)
    except (NameError, TypeError):  # a type named in it is not defined here, or is none
        made = None
    if made is None:
        return shape_of_field(field_for(annotation, label=label), help=help)
    return replace(made, label=label, help=help or made.help, nullable=peeled.nullable, check=Check(annotation))


def shape_of_field(field: FormField, *, help: str = "") -> Leaf:  # noqa: A002 - as above
    """Return a field as a leaf."""
    own = field.help if field.kind != "json" or not help else ""
    text = ". ".join(each for each in (help.rstrip("."), own) if each)
    field = replace(field, help=text)
    return Leaf(label=field.label, help=text, nullable=field.nullable, required=field.required, field=field)


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


def _peel(annotation: Any) -> _Peeled:
    metadata: tuple[Any, ...] = ()
    nullable = False
    while True:
        origin = get_origin(annotation)
        if hasattr(annotation, "__supertype__"):  # NewType
            annotation = annotation.__supertype__
        elif type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        elif hasattr(annotation, "__metadata__"):
            metadata += tuple(annotation.__metadata__)
            annotation = annotation.__origin__
        elif origin in (Union, types.UnionType) and type(None) in get_args(annotation):
            nullable = True
            others = [each for each in get_args(annotation) if each is not type(None)]
            annotation = Union[tuple(others)]  # noqa: UP007 - of a computed number of members
        else:
            return _Peeled(annotation, metadata, nullable)


# ---- several types --------------------------------------------------------------------------------------------------


def _union(peeled: _Peeled, annotation: Any) -> OneOf | None:
    if get_origin(peeled.base) not in (Union, types.UnionType):
        return None
    members = get_args(peeled.base)
    names = _tags(peeled, members) or [type_name(each) for each in members]
    if len(set(names)) < len(names):
        names = [f"{name} ({at})" for at, name in enumerate(names, 1)]
    return OneOf(members=tuple(Member(name, _maker(each)) for name, each in zip(names, members, strict=True)))


def _maker(annotation: Any) -> Callable[[], Shape]:
    return lazily(lambda: shape_of_type(annotation))


def _tags(peeled: _Peeled, members: Sequence[Any]) -> list[str]:
    """Return the tags of a discriminated union's members; none for other unions."""
    name = next((found for each in peeled.metadata if (found := getattr(each, "discriminator", None))), None)
    if isinstance(name, str):
        tags = [_tag_of(member, name) for member in members]
        return [tag for tag in tags if tag] if all(tags) else []
    tagged = [_named_tag(member) for member in members]
    return [tag for tag in tagged if tag] if all(tagged) else []


def _tag_of(member: Any, name: str) -> str | None:
    base = _peel(member).base
    try:
        hint = typing.get_type_hints(base)[name]
    except (NameError, TypeError, KeyError):
        return None
    values = get_args(_peel(hint).base)
    return " | ".join(str(getattr(value, "value", value)) for value in values) or None


def _named_tag(member: Any) -> str | None:
    return next((each.tag for each in getattr(member, "__metadata__", ()) if type(each).__name__ == "Tag"), None)


# ---- many of one type -----------------------------------------------------------------------------------------------


def _container(peeled: _Peeled, annotation: Any) -> Shape | None:
    base, inner = get_origin(peeled.base) or peeled.base, get_args(peeled.base)
    least, most = _limits(peeled.metadata)
    if base is tuple and inner and inner[-1] is not Ellipsis:
        if inner == ((),):
            return None
        parts = [Part(str(at), str(at), shape_of_type(each, label=f"{at + 1}.")) for at, each in enumerate(inner)]
        return Group(parts=lambda: parts, makes="tuple", of=annotation)
    if not isinstance(base, type) or base is str or base is bytes:
        return None
    item = inner[0] if inner else Any
    if base in _SEQUENCES or base is tuple:
        makes: type[Any] = tuple if base is tuple else list
        return Rows(item=_maker(item), makes=makes, least=least, most=most)
    if base in _SETS or base is frozenset:
        makes = frozenset if base is frozenset else set
        return Rows(item=_maker(item), makes=makes, least=least, most=most, unique=True)
    if base in _MAPPINGS:
        key = shape_of_type(inner[0] if inner else str, label="Key")
        value = inner[1] if len(inner) == 2 else Any
        if isinstance(key, Leaf) and key.field.kind not in ("json", "file"):
            return Pairs(key=key, item=_maker(value), least=least, most=most)
    return None


def _limits(metadata: Sequence[Any]) -> tuple[int, int | None]:
    least, most = 0, None
    for each in (inner for around in metadata for inner in (around, *getattr(around, "metadata", ()))):
        least = max(least, getattr(each, "min_length", None) or 0)
        longest = getattr(each, "max_length", None)
        if longest is not None:
            most = longest if most is None else min(most, longest)
    return least, most


# ---- named places ---------------------------------------------------------------------------------------------------


def _group(base: Any, annotation: Any) -> Group | None:
    origin = get_origin(base) or base
    if not isinstance(origin, type):
        return None
    fields = getattr(base, "__pydantic_fields__", None) or getattr(base, "model_fields", None)
    if isinstance(fields, Mapping) and fields:
        return _pydantic_group(base, fields)
    if dataclasses.is_dataclass(origin):
        return _group_of(origin, _dataclass_slots(origin))
    if typing.is_typeddict(origin) or type(origin).__name__ == "_TypedDictMeta":
        return _group_of(origin, _typeddict_slots(origin))
    if issubclass(origin, tuple) and hasattr(origin, "_fields") and get_origin(base) is None:
        defaults = getattr(origin, "_field_defaults", {})
        slots = [_Slot(name, hint, defaults.get(name, NO_VALUE)) for name, hint in _hints(origin).items()]
        return _group_of(origin, slots)
    return None


@dataclass(frozen=True)
class _Slot:
    """A named place of a class, before its shape."""

    name: str
    annotation: Any
    default: object = NO_VALUE
    required: bool | None = None
    omits: bool = False
    key: str = ""
    label: str = ""
    help: str = ""

    def part(self) -> Part:
        shape = shape_of_type(self.annotation, label=self.label or _title(self.name), help=self.help)
        required = self.default is NO_VALUE if self.required is None else self.required
        if isinstance(shape, Leaf):
            shape = _const(shape, self.default) or replace(shape, field=replace(shape.field, required=required))
        omits = not required and not shape.nullable and self.omits
        shape = replace(shape, required=required, default=self.default, omits=omits)
        return Part(self.name, self.key or self.name, shape)


def _group_of(owner: type, slots: Sequence[_Slot]) -> Group:
    extra = getattr(owner, "__pydantic_config__", None) or {}
    open_ended = isinstance(extra, Mapping) and extra.get("extra") == "allow"
    return Group(parts=lambda: [slot.part() for slot in slots], of=owner, help=_doc(owner), open_ended=open_ended)


def _pydantic_group(base: Any, fields: Mapping[str, Any]) -> Group | None:
    if "root" in fields and callable(getattr(base, "model_validate", None)) and len(fields) == 1:
        return None  # a RootModel is what its root is; JSON says it
    keys = {name: _key_of(name, info) for name, info in fields.items()}
    if None in keys.values():
        return None
    slots = [
        _Slot(name, _annotation_of(info), *_default_of(info), key=keys[name] or name, label=info.title or "",
              help=info.description or "")
        for name, info in fields.items()
        if getattr(info, "init", None) is not False
    ]  # fmt: skip
    config = getattr(base, "model_config", None) or getattr(base, "__pydantic_config__", None) or {}
    return Group(
        parts=lambda: [slot.part() for slot in slots],
        of=base,
        help=_doc(base),
        open_ended=config.get("extra") == "allow",
    )


def _annotation_of(info: Any) -> Any:
    # The field's own info would bring its default and its alias, which mean nothing here.
    metadata = list(info.metadata)
    if info.discriminator is not None:
        from pydantic import Field

        metadata.append(Field(discriminator=info.discriminator))
    if isinstance(info.json_schema_extra, dict):
        from pydantic import Field

        metadata.append(Field(json_schema_extra=info.json_schema_extra))
    return Annotated[(info.annotation, *metadata)] if metadata else info.annotation


def _default_of(info: Any) -> tuple[object, bool]:
    """Return the default of a field, and whether a value is required."""
    if info.is_required():
        return NO_VALUE, True
    if info.default_factory is None:
        return info.default, False
    return _made_by(info.default_factory), False


def _made_by(factory: Any) -> object:
    # Other factories count or look at a clock: the type calls them when it makes the value.
    return factory() if factory in (list, dict, set, tuple, frozenset) else NO_VALUE


def _key_of(name: str, info: Any) -> str | None:
    alias = info.validation_alias or info.alias
    if alias is None or isinstance(alias, str):
        return alias or name
    choices = [each for each in getattr(alias, "choices", ()) if isinstance(each, str)]
    return choices[0] if choices else None


def _dataclass_slots(owner: type) -> list[_Slot]:
    hints = _hints(owner)
    slots = []
    for each in dataclasses.fields(owner):
        if not each.init:
            continue
        default: object = each.default if each.default is not dataclasses.MISSING else NO_VALUE
        required = default is NO_VALUE
        if each.default_factory is not dataclasses.MISSING:
            default, required = _made_by(each.default_factory), False
        slots.append(_Slot(each.name, hints[each.name], default, required))
    return slots


def _typeddict_slots(owner: Any) -> list[_Slot]:
    required = owner.__required_keys__
    hints = _hints(owner)
    return [_Slot(name, _unqualify(hint), NO_VALUE, name in required, omits=True) for name, hint in hints.items()]


def _unqualify(hint: Any) -> Any:
    """Return `Required[X]` and other qualified types as X; annotations inside stay."""
    while getattr(get_origin(hint), "_name", None) in _QUALIFIERS:
        (hint,) = get_args(hint)
    return hint


def _hints(owner: Any) -> dict[str, Any]:
    import typing_extensions

    # Those of typing_extensions know the qualifiers of newer Pythons.
    return typing_extensions.get_type_hints(owner, include_extras=True)


def _const(shape: Leaf, default: object) -> Const | None:
    """Return the shape of a type with one possible value, `None` for others."""
    options = shape.field.options
    if len(options) != 1 or shape.nullable or default not in (NO_VALUE, options[0].value):
        return None
    (only,) = options
    return Const(label=shape.label, value=only.value, text=only.label)


def _title(name: str) -> str:
    text = name.replace("_", " ").strip() or name
    return text[:1].upper() + text[1:]


def _doc(owner: Any) -> str:
    """Return the first line of a class's own docstring; a dataclass without one has its signature there."""
    text = (vars(owner).get("__doc__") or "") if isinstance(owner, type) else ""
    line = next(iter(text.strip().splitlines()), "")
    return "" if line.startswith(f"{owner.__name__}(") else line
