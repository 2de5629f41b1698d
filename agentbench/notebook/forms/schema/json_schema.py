"""From a JSON Schema to the shape of its form. Values are plain JSON values: dicts, lists, texts, numbers.

A part of the schema that has no field is typed as JSON, with a note which keyword is the reason; `strict` raises.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

from agentbench.exceptions import UnsupportedSchema
from agentbench.notebook.forms.fields.field import NO_VALUE, FieldError, FormField, field_for
from agentbench.notebook.forms.fields.help import help_text
from agentbench.notebook.forms.fields.shapes import Const, Group, Leaf, Member, OneOf, Pairs, Part, Rows, Shape, lazily
from agentbench.notebook.forms.schema.types import shape_of_field
from agentbench.notebook.history.questions import Option

__all__ = ["shape_of_schema"]

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


def shape_of_schema(schema: Schema, *, strict: bool = False) -> Shape:
    """Make the shape of a JSON Schema.

    Args:
        schema: The schema; `$ref` is followed within it.
        strict: Whether a keyword that has no field is an error.

    Raises:
        UnsupportedSchema: With `strict`, for the first keyword that has no field.
    """
    return _Reader(schema, strict).shape(schema, "", "")


@dataclass(frozen=True)
class _Reader:
    """Reads parts of one schema."""

    root: Schema
    strict: bool

    def shape(self, schema: Any, path: str, label: str) -> Shape:
        """Return the shape of a part of the schema; `path` is its place."""
        try:
            made = self._make(schema, path)
        except (UnsupportedSchema, RecursionError) as error:
            # A reference that leads to itself and nowhere else has no end.
            unsupported = error if isinstance(error, UnsupportedSchema) else UnsupportedSchema("$ref", path)
            if self.strict:
                raise unsupported from None
            made = _json_leaf(f"The schema's `{unsupported.keyword}` has no field: type JSON. It is not checked here.")
        whole = schema if isinstance(schema, Mapping) else {}
        label = str(whole.get("title") or label)
        about = help_text({"description": whole.get("description")})
        default = whole.get("default", NO_VALUE)
        if isinstance(made, Leaf):
            text = ". ".join(each for each in (about.rstrip("."), made.field.help) if each)
            return replace(
                made, label=label, help=text, default=default, field=replace(made.field, label=label, help=text)
            )
        return replace(made, label=label, help=about or made.help, default=default)

    def _make(self, schema: Any, path: str) -> Shape:
        if schema is True or schema == {}:
            return _json_leaf("Any JSON")
        if not isinstance(schema, Mapping):
            keyword = "false" if schema is False else str(schema)[:40]
            raise UnsupportedSchema(keyword, path)
        if "$ref" in schema:
            return self._reference(schema, path)
        if "allOf" in schema:
            return self._make(self._merge(schema, path), path)
        for keyword in ("oneOf", "anyOf"):
            if keyword in schema:
                return self._union(schema, keyword, path)
        self._require_known(schema, path)
        if "const" in schema:
            return Const(value=schema["const"], text=json.dumps(schema["const"], ensure_ascii=False))
        if "enum" in schema:
            return _enum(schema["enum"], path)
        return self._of_type(schema, path)

    def _require_known(self, schema: Schema, path: str) -> None:
        kinds = _kinds(schema)
        known = _NOTES | _STRUCTURE | frozenset().union(*(_OF_TYPE.get(kind, frozenset()) for kind in kinds))
        for keyword in schema:
            if keyword not in known and not keyword.startswith("x-"):
                raise UnsupportedSchema(keyword, path)

    def _of_type(self, schema: Schema, path: str) -> Shape:
        kinds = _kinds(schema)
        nullable = "null" in kinds
        others = [kind for kind in kinds if kind != "null"]
        if not others:
            return Const(value=None, text="null") if nullable else _json_leaf("Any JSON")
        if len(others) > 1:
            members = [Member(kind, self._maker({**schema, "type": kind}, path)) for kind in others]
            return OneOf(members=tuple(members), nullable=nullable)
        makes: dict[str, Callable[[Schema, str], Shape]] = {
            "object": self._object,
            "array": self._array,
            "string": _string,
            "integer": _number,
            "number": _number,
            "boolean": lambda *_: shape_of_field(field_for(bool)),
        }
        if others[0] not in makes:
            raise UnsupportedSchema("type", path)
        made = makes[others[0]]({**schema, "type": others[0]}, path)
        if isinstance(made, Leaf):
            return replace(made, nullable=nullable, field=replace(made.field, nullable=nullable))
        return replace(made, nullable=nullable)

    def _maker(self, schema: Any, path: str, label: str = "") -> Callable[[], Shape]:
        if self.strict and not (isinstance(schema, Mapping) and "$ref" in schema):
            made = self.shape(schema, path, label)  # now, so that `strict` raises when the form is made
            return lambda: made
        return lazily(lambda: self.shape(schema, path, label))

    # ---- one of several, all of several -----------------------------------------------------------------------------

    def _reference(self, schema: Schema, path: str) -> Shape:
        target = self._target(schema["$ref"], path)
        besides = {key: value for key, value in schema.items() if key != "$ref"}
        if besides.keys() - _NOTES:
            return self._make({"allOf": [target, besides]}, path)
        made = self.shape(target, path, "")
        if isinstance(made, Group):
            # The same type for all places that refer to it, to notice one inside itself.
            return replace(made, of=_Place(str(schema["$ref"])))
        return made

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

    def _union(self, schema: Schema, keyword: str, path: str) -> Shape:
        rest = {key: value for key, value in schema.items() if key not in (keyword, *_NOTES)}
        members = [{"allOf": [rest, each]} if rest else each for each in schema[keyword]]
        resolved = [self._resolve(each, path) for each in members]
        nullable = any(each.get("type") == "null" or each == {"const": None} for each in resolved)
        others = [
            (member, known)
            for member, known in zip(members, resolved, strict=True)
            if known.get("type") != "null" and known != {"const": None}
        ]
        if len(others) == 1:
            made = self.shape(others[0][0], path, "")
            made = replace(made, nullable=True) if nullable else made
            return (
                replace(made, field=replace(made.field, nullable=True)) if nullable and isinstance(made, Leaf) else made
            )
        if others and all(set(known) <= {"const", "title", "description"} and "const" in known for _, known in others):
            options = tuple(Option(str(known.get("title", known["const"])), known["const"]) for _, known in others)
            return shape_of_field(_choice(options, nullable=nullable))
        labels = _labels([known for _, known in others], schema.get("discriminator"))
        made_members = [
            Member(label, self._maker(member, path)) for label, (member, _) in zip(labels, others, strict=True)
        ]
        if not made_members:
            raise UnsupportedSchema(keyword, path)
        return OneOf(members=tuple(made_members), nullable=nullable)

    def _resolve(self, schema: Any, path: str) -> Schema:
        steps = 0
        while isinstance(schema, Mapping) and "$ref" in schema and steps < 20:
            name = str(schema["$ref"]).rsplit("/", 1)[-1]
            target = self._target(schema["$ref"], path)
            schema = {"title": name, **target} if isinstance(target, Mapping) else target
            steps += 1
        return schema if isinstance(schema, Mapping) else {}

    def _merge(self, schema: Schema, path: str) -> Schema:
        """Return the parts of `allOf` as one schema; two different values of one keyword are not supported."""
        whole: dict[str, Any] = {}
        besides = {key: value for key, value in schema.items() if key != "allOf"}
        for each in (*(self._resolve(part, path) for part in schema["allOf"]), besides):
            inner = self._merge(each, path) if "allOf" in each else each
            for key, value in inner.items():
                if key == "properties":
                    whole[key] = {**whole.get(key, {}), **value}
                elif key == "required":
                    whole[key] = [*whole.get(key, []), *value]
                elif key in whole and key not in _NOTES and whole[key] != value:
                    keyword = "allOf"
                    raise UnsupportedSchema(keyword, path)
                else:
                    whole[key] = value
        return whole

    # ---- objects and arrays -----------------------------------------------------------------------------------------

    def _object(self, schema: Schema, path: str) -> Shape:
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", True)
        if not properties:
            key = shape_of_field(field_for(str, label="Key"))
            item = self._maker(others, f"{path}/additionalProperties")
            least, most = schema.get("minProperties", 0), schema.get("maxProperties")
            return Pairs(key=key, item=item, least=least, most=most)
        needed = set(schema.get("required", ()))
        if isinstance(others, Mapping) and others:
            keyword = "additionalProperties"
            raise UnsupportedSchema(keyword, path)

        def parts() -> Sequence[Part]:
            return [self._part(name, each, name in needed, f"{path}/{name}") for name, each in properties.items()]

        made = parts() if self.strict else None
        return Group(parts=lambda: made or parts(), open_ended=others is not False)

    def _part(self, name: str, schema: Any, required: bool, path: str) -> Part:
        shape = self.shape(schema, path, _title(name))
        if isinstance(shape, Const) and not required:  # whether it is set is a choice
            only = replace(_choice((Option(shape.text, shape.value),), nullable=False), label=shape.label)
            shape = replace(shape_of_field(only), help=shape.help, default=shape.default)
        if isinstance(shape, Leaf):
            shape = replace(shape, field=replace(shape.field, required=required))
        omits = not required and not shape.nullable and shape.default is NO_VALUE
        return Part(name, name, replace(shape, required=required, omits=omits))

    def _array(self, schema: Schema, path: str) -> Shape:
        fixed = schema.get("prefixItems")
        if fixed is not None:
            parts = [
                Part(str(at), str(at), self.shape(each, f"{path}/{at}", f"{at + 1}.")) for at, each in enumerate(fixed)
            ]
            if schema.get("items", True) is not False and schema.get("maxItems") != len(fixed):
                keyword = "prefixItems"
                raise UnsupportedSchema(keyword, path)
            return Group(
                parts=lambda: [replace(part) for part in parts], makes="list", of=_Place(f"{path}/prefixItems")
            )
        return Rows(
            item=self._maker(schema.get("items", True), f"{path}/items"),
            least=schema.get("minItems", 0),
            most=schema.get("maxItems"),
            unique=bool(schema.get("uniqueItems")),
        )


@dataclass(frozen=True)
class _Place:
    """A place in a schema, which identifies the type of its values."""

    ref: str


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
        tagged = member.get("properties", {}).get(tag, {}) if tag else {}
        kind = member.get("type")
        labels.append(
            str(tagged.get("const") or member.get("title") or (kind if isinstance(kind, str) else f"form {at}"))
        )
    return [f"{label} ({at})" if labels.count(label) > 1 else label for at, label in enumerate(labels, 1)]


def _json_leaf(about: str) -> Leaf:
    return shape_of_field(replace(field_for(Any), help=about))


def _enum(values: Any, path: str) -> Shape:
    if not isinstance(values, Sequence) or not values or isinstance(values, str):
        keyword = "enum"
        raise UnsupportedSchema(keyword, path)
    labels = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
    if len(set(labels)) < len(labels):
        labels = [json.dumps(value, ensure_ascii=False) for value in values]
    options = tuple(Option(label, value) for label, value in zip(labels, values, strict=True) if value is not None)
    return shape_of_field(_choice(options, nullable=None in values))


def _choice(options: tuple[Option, ...], *, nullable: bool) -> FormField:
    field = field_for(Any, options=options)

    def is_one(value: object) -> bool:
        return any(option.value == value and type(option.value) is type(value) for option in options)

    return replace(field, nullable=nullable, accepts=is_one)


def _string(schema: Schema, path: str) -> Shape:
    from pydantic import AwareDatetime, Field, SecretStr

    if schema.get("contentEncoding") not in (None, "base64"):
        keyword = "contentEncoding"
        raise UnsupportedSchema(keyword, path)
    if schema.get("contentEncoding") == "base64":
        file = field_for(bytes)
        return shape_of_field(_texts(file, lambda text: file.parse(text) and text))
    if schema.get("writeOnly") or schema.get("format") == "password":
        secret = field_for(SecretStr)
        return shape_of_field(replace(_texts(secret, secret.parse), accepts=lambda value: isinstance(value, str)))
    limits: dict[str, Any] = {
        "min_length": schema.get("minLength"),
        "max_length": schema.get("maxLength"),
        "pattern": schema.get("pattern"),
        "json_schema_extra": {"multiline": True} if schema.get("multiline") else None,
    }
    known = _formats(AwareDatetime)
    base: Any = known.get(str(schema.get("format")), str)
    if base is str and any(limits.values()):
        base = Annotated[str, Field(**{key: value for key, value in limits.items() if value is not None})]
    field = field_for(base)
    return shape_of_field(field if base is str else _texts(field, field.parse))


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


def _texts(field: FormField, check: Callable[[str], object]) -> FormField:
    """Return a field whose values are the typed texts themselves, checked by `check`."""

    def parse(text: str) -> object:
        text = text if field.kind == "text" else text.strip()
        check(text)
        return text

    def is_one(value: object) -> bool:
        try:
            return isinstance(value, str) and bool(parse(value) or True)
        except FieldError:
            return False

    return replace(field, parse=parse, to_input=None, to_text=str, accepts=is_one)


def _number(schema: Schema, path: str) -> Shape:
    from pydantic import Field

    names = {
        "minimum": "ge",
        "maximum": "le",
        "exclusiveMinimum": "gt",
        "exclusiveMaximum": "lt",
        "multipleOf": "multiple_of",
    }
    limits = {argument: schema[name] for name, argument in names.items() if name in schema}
    if any(isinstance(limit, bool) for limit in limits.values()):  # as drafts before the sixth wrote it
        keyword = next(name for name in names if isinstance(schema.get(name), bool))
        raise UnsupportedSchema(keyword, path)
    base: Any = int if schema["type"] == "integer" else float
    field = field_for(Annotated[base, Field(**limits)] if limits else base)
    if base is int:
        return shape_of_field(field)

    def parse(text: str) -> object:
        checked = field.parse(text)
        try:
            return int(text)  # 5 is a whole number in JSON, and large ones keep their digits
        except ValueError:
            return checked

    def is_one(value: object) -> bool:
        return isinstance(value, (int, float)) and not isinstance(value, bool) and field.accepts(float(value))

    return shape_of_field(replace(field, parse=parse, to_input=None, accepts=is_one))


def _title(name: str) -> str:
    text = name.replace("_", " ").strip() or name
    return text[:1].upper() + text[1:]
