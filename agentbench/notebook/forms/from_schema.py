"""From a JSON Schema to its field. Values are plain JSON values: dicts, lists, texts, numbers.

A part of the schema that has no field is typed as JSON, with a note which keyword is the reason; `strict` raises.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Annotated, Any

from agentbench.exceptions import UnsupportedSchema
from agentbench.notebook.forms.fields import NO_VALUE, Field, Part, field_for, help_text, title_of
from agentbench.notebook.forms.from_type import pairs_of
from agentbench.notebook.forms.text_values import FieldError
from agentbench.notebook.history.questions import Option

__all__ = ["field_of_schema"]

Schema = Mapping[str, Any]

# Keywords that do not restrict the values.
_NOTES = frozenset(
    ["title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "multiline"]
) | frozenset(["discriminator", "$schema", "$id", "$comment", "$defs", "definitions", "$anchor"])
_STRUCTURE = frozenset(["type", "enum", "const", "$ref", "oneOf", "anyOf", "allOf", "format"])
_OF_TYPE = {
    "string": frozenset(["minLength", "maxLength", "pattern", "contentEncoding", "contentMediaType"]),
    "integer": frozenset(["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"]),
    "object": frozenset(["properties", "required", "additionalProperties", "minProperties", "maxProperties"]),
    "array": frozenset(["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]),
    "boolean": frozenset(),
    "null": frozenset(),
}
_OF_TYPE["number"] = _OF_TYPE["integer"]


def field_of_schema(schema: Schema, *, strict: bool = False) -> Field:
    """Make the field of a JSON Schema; `$ref` is followed within it.

    Raises:
        UnsupportedSchema: With `strict`, for the first keyword that has no field.
    """
    return _Reader(schema, strict).field(schema, "", "")


@dataclass(frozen=True)
class _Reader:
    """Reads parts of one schema."""

    root: Schema
    strict: bool

    def field(self, schema: Any, path: str, label: str) -> Field:
        """Return the field of a part of the schema; `path` is its place."""
        try:
            made = self._make(schema, path)
        except (UnsupportedSchema, RecursionError) as error:
            # A reference that leads to itself and nowhere else has no end.
            unsupported = error if isinstance(error, UnsupportedSchema) else UnsupportedSchema("$ref", path)
            if self.strict:
                raise unsupported from None
            made = _json(f"The schema's `{unsupported.keyword}` has no field: type JSON. It is not checked here.")
        notes = schema if isinstance(schema, Mapping) else {}
        about = help_text({"description": notes.get("description")})
        if made.is_leaf:
            about = ". ".join(filter(None, [about.rstrip("."), made.help]))
        label = str(notes.get("title") or label)
        return replace(made, label=label, help=about or made.help, default=notes.get("default", NO_VALUE))

    def _make(self, schema: Any, path: str) -> Field:
        if schema is True or schema == {}:
            return _json("Any JSON")
        if not isinstance(schema, Mapping):
            raise UnsupportedSchema("false" if schema is False else str(schema)[:40], path)
        if "$ref" in schema:
            return self._reference(schema, path)
        if "allOf" in schema:
            return self._make(self._merge(schema, path), path)
        for keyword in ("oneOf", "anyOf"):
            if keyword in schema:
                return self._union(schema, keyword, path)
        kinds = _kinds(schema)
        known = _NOTES | _STRUCTURE | frozenset().union(*(_OF_TYPE.get(kind, frozenset()) for kind in kinds))
        for keyword in schema:
            if keyword not in known and not keyword.startswith("x-"):
                raise UnsupportedSchema(keyword, path)
        if "const" in schema:
            return _const(schema["const"])
        return _enum(schema["enum"], path) if "enum" in schema else self._of_type(schema, kinds, path)

    def _of_type(self, schema: Schema, kinds: list[str], path: str) -> Field:
        others = [kind for kind in kinds if kind != "null"]
        nullable = "null" in kinds
        if not others:
            return _const(None) if nullable else _json("Any JSON")
        if len(others) > 1:
            parts = [Part(kind, kind, self._maker({**schema, "type": kind}, path)) for kind in others]
            return Field(kind="union", parts=lambda: parts, nullable=nullable)
        makes: dict[str, Callable[[Schema, str], Field]] = {
            "object": self._object,
            "array": self._array,
            "string": _string,
            "integer": _number,
            "number": _number,
            "boolean": lambda *_: field_for(bool),
        }
        if others[0] not in makes:
            raise UnsupportedSchema("type", path)
        return replace(makes[others[0]]({**schema, "type": others[0]}, path), nullable=nullable)

    def _maker(self, schema: Any, path: str, label: str = "") -> Callable[[], Field]:
        make = cache(lambda: self.field(schema, path, label))
        if self.strict and not (isinstance(schema, Mapping) and "$ref" in schema):
            make()  # now, so that `strict` raises when the form is made
        return make

    # ---- one of several, all of several -----------------------------------------------------------------------------

    def _reference(self, schema: Schema, path: str) -> Field:
        target = self._target(schema["$ref"], path)
        besides = {key: value for key, value in schema.items() if key != "$ref"}
        if besides.keys() - _NOTES:
            return self._make({"allOf": [target, besides]}, path)
        made = self.field(target, path, "")
        # The same type for all places that refer to it, to notice one inside itself.
        return replace(made, of=("$ref", schema["$ref"])) if made.kind == "group" else made

    def _target(self, ref: object, path: str) -> Any:
        at: Any = self.root
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise UnsupportedSchema("$ref", path)
        for part in filter(None, ref[1:].split("/")):
            name = part.replace("~1", "/").replace("~0", "~")
            at = at.get(name) if isinstance(at, Mapping) else None
        if not isinstance(at, (Mapping, bool)):
            raise UnsupportedSchema("$ref", path)
        return at

    def _union(self, schema: Schema, keyword: str, path: str) -> Field:
        rest = {key: value for key, value in schema.items() if key not in (keyword, *_NOTES)}
        members = [{"allOf": [rest, each]} if rest else each for each in schema[keyword]]
        every = [(member, self._resolve(member, path)) for member in members]
        others = [(each, known) for each, known in every if known.get("type") != "null" and known != {"const": None}]
        nullable = len(others) < len(every)
        if not others:
            raise UnsupportedSchema(keyword, path)
        if len(others) == 1:
            made = self.field(others[0][0], path, "")
            return replace(made, nullable=made.nullable or nullable)
        if all(set(known) <= {"const", "title", "description"} and "const" in known for _, known in others):
            options = [Option(str(known.get("title", known["const"])), known["const"]) for _, known in others]
            return _choice(options, nullable=nullable)
        labels = _labels([known for _, known in others], schema.get("discriminator"))
        parts = [Part(label, label, self._maker(each, path)) for label, (each, _) in zip(labels, others, strict=True)]
        return Field(kind="union", parts=lambda: parts, nullable=nullable)

    def _resolve(self, schema: Any, path: str) -> Schema:
        for _ in range(20):
            if not isinstance(schema, Mapping) or "$ref" not in schema:
                break
            target = self._target(schema["$ref"], path)
            name = str(schema["$ref"]).rsplit("/", 1)[-1]
            schema = {"title": name, **target} if isinstance(target, Mapping) else target
        return schema if isinstance(schema, Mapping) else {}

    def _merge(self, schema: Schema, path: str) -> Schema:
        """Return the parts of `allOf` as one schema; two different values of one keyword are not supported."""
        whole: dict[str, Any] = {}
        besides = {key: value for key, value in schema.items() if key != "allOf"}
        for each in (*(self._resolve(part, path) for part in schema["allOf"]), besides):
            for key, value in (self._merge(each, path) if "allOf" in each else each).items():
                if key == "properties":
                    whole[key] = {**whole.get(key, {}), **value}
                elif key == "required":
                    whole[key] = [*whole.get(key, []), *value]
                elif key in whole and key not in _NOTES and whole[key] != value:
                    raise UnsupportedSchema("allOf", path)
                else:
                    whole[key] = value
        return whole

    # ---- objects and arrays -----------------------------------------------------------------------------------------

    def _object(self, schema: Schema, path: str) -> Field:
        properties, needed = schema.get("properties", {}), schema.get("required", ())
        others = schema.get("additionalProperties", True)
        if not properties:
            item = self._maker(others, f"{path}/additionalProperties")
            return pairs_of(field_for(str), item, schema.get("minProperties", 0), schema.get("maxProperties"))
        if isinstance(others, Mapping) and others:
            keyword = "additionalProperties"
            raise UnsupportedSchema(keyword, path)
        parts = [
            Part(name, name, self._part_maker(name, each, name in needed, f"{path}/{name}"))
            for name, each in properties.items()
        ]
        return Field(kind="group", parts=lambda: parts, open_ended=others is not False)

    def _part_maker(self, name: str, schema: Any, required: bool, path: str) -> Callable[[], Field]:
        make = cache(lambda: self._part(name, schema, required, path))
        if self.strict:
            make()
        return make

    def _part(self, name: str, schema: Any, required: bool, path: str) -> Field:
        made = self.field(schema, path, title_of(name))
        if made.kind == "const" and not required:  # whether it is set is a choice
            only = _choice(made.options, nullable=False)
            made = replace(only, label=made.label, help=made.help, default=made.default)
        return replace(made, required=required, omits=not required and not made.nullable and made.default is NO_VALUE)

    def _array(self, schema: Schema, path: str) -> Field:
        fixed = schema.get("prefixItems")
        if fixed is None:
            return Field(
                kind="rows", makes=list, item=self._maker(schema.get("items", True), f"{path}/items"),
                least=schema.get("minItems", 0), most=schema.get("maxItems"), unique=bool(schema.get("uniqueItems")),
            )  # fmt: skip
        if schema.get("items", True) is not False and schema.get("maxItems") != len(fixed):
            raise UnsupportedSchema("prefixItems", path)
        made = [self.field(each, f"{path}/{at}", f"{at + 1}.") for at, each in enumerate(fixed)]
        parts = [Part(str(at), str(at), each.itself) for at, each in enumerate(made)]
        return Field(kind="group", parts=lambda: parts, makes=list, of=("prefixItems", path))


def _kinds(schema: Schema) -> list[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, Sequence):
        return [str(each) for each in kind]
    # Without a type, the keywords of one show which it is.
    return [name for name in ("object", "array", "string", "number") if _OF_TYPE[name] & set(schema)][:1]


def _labels(members: Sequence[Schema], discriminator: object) -> list[str]:
    tag = discriminator.get("propertyName") if isinstance(discriminator, Mapping) else None
    labels = []
    for at, member in enumerate(members, 1):
        tagged = member.get("properties", {}).get(tag, {}).get("const")
        kind = member.get("type")
        labels.append(str(tagged or member.get("title") or (kind if isinstance(kind, str) else f"form {at}")))
    return [f"{label} ({at})" if labels.count(label) > 1 else label for at, label in enumerate(labels, 1)]


# ---- fields of one text ---------------------------------------------------------------------------------------------


def _const(value: object) -> Field:
    return Field(kind="const", options=(Option(json.dumps(value, ensure_ascii=False), value),))


def _json(about: str) -> Field:
    return replace(field_for(Any), help=about)


def _enum(values: Any, path: str) -> Field:
    if not isinstance(values, Sequence) or not values or isinstance(values, str):
        raise UnsupportedSchema("enum", path)
    labels = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
    if len(set(labels)) < len(labels):
        labels = [json.dumps(value, ensure_ascii=False) for value in values]
    options = [Option(label, value) for label, value in zip(labels, values, strict=True) if value is not None]
    return _choice(options, nullable=None in values)


def _choice(options: Sequence[Option], *, nullable: bool) -> Field:
    def is_one(value: object) -> bool:
        return any(option.value == value and type(option.value) is type(value) for option in options)

    return replace(field_for(Any, options=options), nullable=nullable, accepts=is_one)


def _string(schema: Schema, path: str) -> Field:
    from pydantic import AwareDatetime, SecretStr
    from pydantic import Field as Limits

    if schema.get("contentEncoding") not in (None, "base64"):
        raise UnsupportedSchema("contentEncoding", path)
    if schema.get("contentEncoding") == "base64":
        return _texts(field_for(bytes))
    if schema.get("writeOnly") or schema.get("format") == "password":
        return replace(_texts(field_for(SecretStr)), accepts=lambda value: isinstance(value, str))
    names = {"min_length": "minLength", "max_length": "maxLength", "pattern": "pattern"}
    limits: dict[str, Any] = {argument: schema[name] for argument, name in names.items() if name in schema}
    if schema.get("multiline"):
        limits["json_schema_extra"] = {"multiline": True}
    base = _formats(AwareDatetime).get(str(schema.get("format")), str)
    if base is not str:
        return _texts(field_for(base))
    return field_for(Annotated[str, Limits(**limits)] if limits else str)


def _formats(aware: Any) -> dict[str, Any]:
    """Return the types of formats that are checked; texts of other formats are plain texts."""
    from datetime import date, time
    from ipaddress import IPv4Address, IPv6Address
    from uuid import UUID

    from pydantic import AnyUrl

    return {
        "date": date, "time": time, "date-time": aware, "uuid": UUID, "uri": AnyUrl, "url": AnyUrl,
        "ipv4": IPv4Address, "ipv6": IPv6Address,
    }  # fmt: skip


def _texts(field: Field) -> Field:
    """Return a field whose values are the typed texts themselves, checked as the field does."""

    def parse(text: str) -> object:
        text = text if field.kind == "text" else text.strip()
        field.parse(text)
        return text

    def is_one(value: object) -> bool:
        try:
            return isinstance(value, str) and bool(parse(value) or True)
        except FieldError:
            return False

    return replace(field, parse=parse, plain=None, to_text=str, accepts=is_one)


def _number(schema: Schema, path: str) -> Field:
    from pydantic import Field as Limits

    names = {
        "minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt",
        "multipleOf": "multiple_of",
    }  # fmt: skip
    limits = {argument: schema[name] for name, argument in names.items() if name in schema}
    for name in names:
        if isinstance(schema.get(name), bool):  # as drafts before the sixth wrote it
            raise UnsupportedSchema(name, path)
    base: Any = int if schema["type"] == "integer" else float
    field = field_for(Annotated[base, Limits(**limits)] if limits else base)
    if base is int:
        return field

    def parse(text: str) -> object:
        checked = field.parse(text)
        try:
            return int(text)  # 5 is a whole number in JSON, and large ones keep their digits
        except ValueError:
            return checked

    def is_one(value: object) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and field.accepts(float(value))

    return replace(field, parse=parse, plain=None, accepts=is_one)
