"""Converts a JSON Schema to a field; pydantic makes the schema of Python types.

A part of the schema without a field is typed as JSON, with a note that names the keyword; `strict` raises instead.
Values of a plain JSON Schema are JSON values (dicts, lists, texts, numbers), and each text and number is validated
separately. Values of a Python type are validated by the type as a whole.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, get_origin

from agentbench.exceptions import UnsupportedSchema
from agentbench.notebook.forms.fields import (
    NO_VALUE,
    YES_NO,
    Field,
    FieldPart,
    help_text,
    json_field,
    time_help,
    title_of,
)
from agentbench.notebook.forms.questions import Option
from agentbench.notebook.forms.text_values import FieldError

if TYPE_CHECKING:
    from agentbench.notebook.forms.schema import TypeSchema

Schema = Mapping[str, Any]

# Keywords that do not restrict the values, and those of them that apply to a whole, not to one of its members.
_OF_WHOLE = frozenset(["title", "description", "default", "discriminator", "$schema", "$id", "$defs", "definitions"])
_NOTES = _OF_WHOLE | frozenset(
    ["examples", "example", "deprecated", "readOnly", "writeOnly", "multiline", "$comment", "$anchor"]
)
_STRUCTURE = frozenset(["type", "enum", "const", "oneOf", "anyOf", "format"])
_LIMITS_OF_NUMBERS = {
    "minimum": "ge", "maximum": "le", "exclusiveMinimum": "gt", "exclusiveMaximum": "lt", "multipleOf": "multiple_of",
}  # fmt: skip
_LIMITS_OF_TEXTS = {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}
_OF_TYPE = {
    "string": frozenset([*_LIMITS_OF_TEXTS, "contentEncoding", "contentMediaType"]),
    "integer": frozenset(_LIMITS_OF_NUMBERS),
    "number": frozenset(_LIMITS_OF_NUMBERS),
    "object": frozenset(["properties", "required", "additionalProperties", "minProperties", "maxProperties"]),
    "array": frozenset(["items", "prefixItems", "minItems", "maxItems", "uniqueItems"]),
}
_LONG_TEXT = 120
_TIMES = {"date": "date", "date-time": "datetime", "time": "time"}
_PYTHON_NAMES = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict", "array": "list",
    "date-time": "datetime", "decimal": "Decimal", "uuid": "UUID", "path": "Path", "duration": "timedelta",
    "binary": "bytes", "password": "secret",
}  # fmt: skip


def field_of_schema(schema: Schema, *, strict: bool = False) -> Field:
    """Make the field of a JSON Schema; with `strict`, the first keyword without a field raises `UnsupportedSchema`."""
    return _SchemaReader(schema, strict=strict).field(schema, "", "")


def field_of_type(annotation: Any) -> Field:
    """Make the field of a Python type, or a JSON field; raises `NotebookError` if pydantic cannot validate the type."""
    from agentbench.notebook.forms.schema import TypeSchema

    types = TypeSchema(annotation)
    return replace(_SchemaReader(types.schema, types=types).field(types.schema, "", ""), validate=types.validate)


def type_name(annotation: Any) -> str:
    """Return a type as it is written in code."""
    if get_origin(annotation) is Annotated:
        return type_name(annotation.__origin__)
    text = annotation.__name__ if type(annotation) is type else str(annotation)
    return re.sub(r"<class '(.*)'>", r"\1", re.sub(r"[\w.<>]+\.(?=\w)", "", text))


@dataclass(frozen=True)
class _SchemaReader:
    root: Schema
    types: "TypeSchema | None" = None
    strict: bool = False
    followed: set[str] = field(default_factory=set)
    """The references that were followed to find what is unsupported."""

    def field(self, schema: Any, path: str, label: str) -> Field:
        """Return the field of a part of the schema; `path` is its place."""
        notes: Schema = schema if isinstance(schema, Mapping) else {}
        try:
            notes = self._normal(schema, path)
            made = self._make(notes, path)
        except UnsupportedSchema as error:
            if self.strict:
                raise
            made = json_field(f"The schema's `{error.keyword}` has no field, so type JSON. It is not validated here.")
        about = help_text({"description": notes.get("description")})
        if made.is_leaf:
            about = ". ".join(filter(None, [about.rstrip("."), made.help]))
        elif self.types is not None:
            about = about.partition("\n")[0]  # first line of a docstring
        label = str(notes.get("title") or label)
        return replace(made, label=label, help=about or made.help, default=notes.get("default", NO_VALUE))

    def _later(self, schema: Any, make: Callable[[], Field]) -> Callable[[], Field]:
        """Return a factory for a field; `strict` also makes the field now, so that errors are raised early."""
        made = cache(make)
        ref = schema.get("$ref", schema.get("x-ref")) if isinstance(schema, Mapping) else None
        if self.strict and ref not in self.followed:
            self.followed.update([ref] if ref else [])
            made()
        return made

    # ---- references and `allOf` -------------------------------------------------------------------------------------

    def _normal(self, schema: Any, path: str, refs: tuple[str, ...] = ()) -> Schema:
        """Resolve the reference and the `allOf` of a schema and merge them with its other keywords.

        The title of the referenced schema becomes `x-name`, the reference `x-ref`.
        """
        if schema is True:
            return {}
        if not isinstance(schema, Mapping):
            raise UnsupportedSchema("false" if schema is False else str(schema)[:40], path)
        ref, parts = schema.get("$ref"), list(schema.get("allOf", ()))
        if ref is None and not parts:
            return schema
        if ref in refs:  # circular reference
            raise UnsupportedSchema("$ref", path)
        every = [self._normal(each, path, (*refs, ref) if ref else refs) for each in parts]
        if ref is not None:
            target = dict(self._normal(self._target(ref, path), path, (*refs, ref)))
            name = target.pop("title", ref.rpartition("/")[2])
            every.insert(0, {**target, "x-ref": ref, "x-name": name})
        return _merge([*every, {key: value for key, value in schema.items() if key not in ("$ref", "allOf")}], path)

    def _target(self, ref: object, path: str) -> Any:
        at: Any = self.root
        if not isinstance(ref, str) or not ref.startswith("#"):
            raise UnsupportedSchema("$ref", path)
        for part in filter(None, ref[1:].split("/")):
            at = at.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(at, Mapping) else None
        if at is None:
            raise UnsupportedSchema("$ref", path)
        return at

    # ---- the kinds --------------------------------------------------------------------------------------------------

    def _make(self, schema: Schema, path: str) -> Field:
        if "x-invalid" in schema:
            return json_field()
        for keyword in ("oneOf", "anyOf"):
            if keyword in schema:
                others = {name: item for name, item in schema.items() if name not in (keyword, *_NOTES)}
                others = {name: item for name, item in others.items() if name[:2] != "x-"}
                return self._union(
                    schema, [{"allOf": [others, each]} if others else each for each in schema[keyword]], path
                )
        kinds = _kinds(schema)
        keywords = frozenset().union(*(_OF_TYPE.get(kind, frozenset()) for kind in kinds)) | _NOTES | _STRUCTURE
        for keyword in schema:
            if self.types is None and keyword not in keywords and not keyword.startswith("x-"):
                raise UnsupportedSchema(keyword, path)
        if "enum" in schema or "const" in schema:
            return self._choice_field(schema, path)
        if not kinds:
            return json_field()
        if len(kinds) > 1:
            return self._union(schema, [_alone(schema, kind) for kind in kinds], path)
        makes: dict[str, Callable[[Schema, str], Field]] = {
            "object": self._object,
            "array": self._array,
            "string": self._text,
            "integer": self._number,
            "number": self._number,
            "boolean": lambda *_: self._choice(YES_NO),
            "null": lambda *_: Field(kind="const", options=(Option("null", None),)),
        }
        if kinds[0] not in makes:
            raise UnsupportedSchema("type", path)
        return makes[kinds[0]]({**schema, "type": kinds[0]}, path)

    def _union(self, schema: Schema, members: Sequence[Any], path: str) -> Field:
        every = [self._normal(each, path) for each in members]
        others = [each for each in every if each.get("type") != "null" and each != {"const": None}]
        nullable = len(others) < len(every)
        if not others:
            raise UnsupportedSchema("anyOf", path)
        if len(others) == 1:
            made = self.field(others[0], path, "")
            return replace(made, nullable=made.nullable or nullable)
        if all("const" in each and set(each) <= {"const", "title", "description"} for each in others):
            options = [Option(str(each.get("title", each["const"])), each["const"]) for each in others]
            return replace(self._choice(options), nullable=nullable)
        tag = (schema.get("discriminator") or {}).get("propertyName")
        labels = [self._label(each, tag) or f"form {at}" for at, each in enumerate(others, 1)]
        labels = [f"{label} ({at})" if labels.count(label) > 1 else label for at, label in enumerate(labels, 1)]
        parts = [FieldPart(label, label, self._member(each, path)) for label, each in zip(labels, others, strict=True)]
        return Field(kind="union", parts=lambda: parts, nullable=nullable)

    def _member(self, schema: Schema, path: str) -> Callable[[], Field]:
        def make() -> Field:
            made = self.field(schema, path, "")
            if self.types is None or "x-member" not in schema:
                return made
            member = self.types.member(schema["x-member"])
            return replace(made, label="", validate=member.validate, accepts=member.accepts)

        return self._later(schema, make)

    def _label(self, member: Schema, tag: object) -> str:
        constant = self._normal(member.get("properties", {}).get(tag, True), "").get("const")
        return str(member.get("x-tag") or constant or self._name(member))

    def _name(self, schema: Schema) -> str:
        kind, form = schema.get("type"), schema.get("format")
        title = schema.get("title") or schema.get("x-name")
        if title or self.types is None:
            return str(title or (kind if isinstance(kind, str) else ""))
        if "x-options" in schema:
            return " | ".join(option.label for option in schema["x-options"])
        name = _PYTHON_NAMES.get(str(form)) or str(form or _PYTHON_NAMES.get(str(kind), "Any"))
        inner = schema.get({"list": "items", "dict": "additionalProperties"}.get(name, ""))
        if not isinstance(inner, Mapping):
            return name
        return f"{name}[{'str, ' if name == 'dict' else ''}{self._name(self._normal(inner, ''))}]"

    # ---- objects and arrays -----------------------------------------------------------------------------------------

    def _object(self, schema: Schema, path: str) -> Field:
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", self.types is None)
        if not properties and (self.types is None or "additionalProperties" in schema):
            return self._pairs(schema, others, path)
        if self.types is None and isinstance(others, Mapping) and others:
            keyword = "additionalProperties"
            raise UnsupportedSchema(keyword, path)
        needed = schema.get("required", ())
        parts = [self._part(name, each, name in needed, f"{path}/{name}") for name, each in properties.items()]
        return Field(kind="group", parts=lambda: parts, open_ended=others is not False, of=schema.get("x-ref"))

    def _part(self, name: str, schema: Any, required: bool, path: str) -> FieldPart:
        key = schema.get("x-key", name) if isinstance(schema, Mapping) else name
        if not key:  # a path of names
            keyword = "validation_alias"
            raise UnsupportedSchema(keyword, path)

        def make() -> Field:
            made = self.field(schema, path, title_of(name))
            unset = made.default is NO_VALUE
            if made.kind == "const" and not required and (unset or made.default is None):
                made = replace(made, kind="choice")  # choose between unset and set
            return replace(made, required=required, omits=not required and not made.nullable and unset)

        return FieldPart(name, str(key), self._later(schema, make))

    def _pairs(self, schema: Schema, values: Any, path: str) -> Field:
        key = self.field(schema.get("propertyNames", {"type": "string"}), path, "Key")
        if not key.is_leaf or key.kind in ("json", "file"):
            return json_field()
        path = f"{path}/additionalProperties"
        value = self._later(values, lambda: self.field(values, path, ""))
        parts = [FieldPart("key", "key", replace(key, label="Key").itself), FieldPart("value", "value", value)]
        pair = Field(kind="pair", parts=lambda: parts)
        least, most = schema.get("minProperties", 0), schema.get("maxProperties")
        return Field(kind="pairs", item=pair.itself, least=least, most=most)

    def _array(self, schema: Schema, path: str) -> Field:
        fixed, names, items = schema.get("prefixItems"), schema.get("x-names"), schema.get("items", True)
        if fixed is None:
            return Field(
                kind="rows", item=self._later(items, lambda: self.field(items, f"{path}/items", "")),
                least=schema.get("minItems", 0), most=schema.get("maxItems"), unique=bool(schema.get("uniqueItems")),
            )  # fmt: skip
        if items is not False and schema.get("maxItems") != len(fixed):
            keyword = "prefixItems"
            raise UnsupportedSchema(keyword, path)
        if names is not None:
            named = dict(zip(names, fixed, strict=True))
            return self._object({"properties": named, "required": names[: schema.get("minItems", 0)]}, path)
        made = [self.field(each, f"{path}/{at}", f"{at + 1}.") for at, each in enumerate(fixed)]
        parts = [FieldPart(str(at), str(at), each.itself) for at, each in enumerate(made)]
        return Field(kind="group", parts=lambda: parts, positional=True, of=("prefixItems", path))

    # ---- fields of one text -----------------------------------------------------------------------------------------

    def _choice_field(self, schema: Schema, path: str) -> Field:
        values = schema.get("enum", [schema.get("const")])
        if not isinstance(values, Sequence) or not values or isinstance(values, str):
            keyword = "enum"
            raise UnsupportedSchema(keyword, path)
        labels = [value if isinstance(value, str) else json.dumps(value, ensure_ascii=False) for value in values]
        if len(set(labels)) < len(labels) or "const" in schema:
            labels = [json.dumps(value, ensure_ascii=False) for value in values]
        options = [Option(label, value) for label, value in zip(labels, values, strict=True)]
        if "x-options" not in schema and "enum" in schema:
            options = [option for option in options if option.value is not None]
        choice = self._choice(schema.get("x-options") or options)
        if len(choice.options) == 1:
            return replace(choice, kind="const")
        return replace(choice, nullable="x-options" not in schema and None in values)

    def _choice(self, options: Sequence[Option]) -> Field:
        def check(value: object) -> object:
            if any(option.value == value and type(option.value) is type(value) for option in options):
                return value
            msg = f"{value!r} is not one of the options."
            raise FieldError(msg)

        return Field(kind="choice", options=tuple(options), validate=check if self.types is None else None)

    def _text(self, schema: Schema, path: str) -> Field:
        form, encoding, longest = schema.get("format"), schema.get("contentEncoding"), schema.get("maxLength")
        if encoding not in (None, "base64"):
            keyword = "contentEncoding"
            raise UnsupportedSchema(keyword, path)
        if encoding or (form == "binary" and self.types is not None):
            content = _base64 if self.types is None else None
            return Field(kind="file", help="A file of at most 5 MB", validate=content)
        check = _check(schema) if self.types is None else None
        if form in _TIMES:
            zone = schema.get("x-zone") or ("aware" if form == "date-time" and self.types is None else "either")
            kind: Any = _TIMES[form]
            return Field(kind=kind, zone=zone, help=time_help(kind, zone), validate=check)
        return Field(
            kind="text", help=_limits(schema), max_length=longest, makes=schema.get("x-class", str), validate=check,
            secret=bool(schema.get("writeOnly")) or form == "password",
            multiline=bool(schema.get("multiline")) or (longest or 0) > _LONG_TEXT,
        )  # fmt: skip

    def _number(self, schema: Schema, path: str) -> Field:
        for name in _LIMITS_OF_NUMBERS:
            if isinstance(schema.get(name), bool):  # JSON Schema before draft 6
                raise UnsupportedSchema(name, path)
        makes: Any = int if schema["type"] == "integer" else Decimal if schema.get("format") == "decimal" else float
        if self.types is not None:
            return Field(kind="number", help=_limits(schema), makes=makes)
        # 5 is a whole number in JSON, and large ones keep their digits.
        makes = makes if makes is int else _whole_or_float
        return Field(kind="number", help=_limits(schema), makes=makes, validate=_check(schema))


def _merge(schemas: Sequence[Schema], path: str) -> Schema:
    """Merge schemas that apply together; raises if one keyword has two different values."""
    whole: dict[str, Any] = {}
    for key, value in (item for each in schemas for item in each.items()):
        if key == "properties":
            whole[key] = {**whole.get(key, {}), **value}
        elif key == "required":
            whole[key] = [*whole.get(key, []), *value]
        elif key in whole and key not in _NOTES and key[:2] != "x-" and whole[key] != value:
            raise UnsupportedSchema("allOf", path)
        else:
            whole[key] = value
    return whole


def _kinds(schema: Schema) -> list[str]:
    kind = schema.get("type")
    if kind is not None:
        return [kind] if isinstance(kind, str) else [str(each) for each in kind]
    # Without a type, the keywords determine it.
    return [name for name in ("object", "array", "string", "number") if _OF_TYPE[name] & set(schema)][:1]


def _alone(schema: Schema, kind: str) -> Schema:
    """Restrict a schema of several types to one of them."""
    others = frozenset().union(*_OF_TYPE.values()) - _OF_TYPE.get(kind, frozenset())
    return {**{name: item for name, item in schema.items() if name not in _OF_WHOLE | others}, "type": kind}


def _limits(schema: Schema) -> str:
    return help_text({key: value for key, value in schema.items() if key != "description"})


def _whole_or_float(text: str) -> float:
    try:
        return int(text)
    except ValueError:
        return float(text)


def _base64(content: Any) -> str:
    return base64.b64encode(content).decode("ascii") if isinstance(content, bytes) else str(content)


def _check(schema: Schema) -> Callable[[Any], Any]:
    """Return the validation of one text or number, without conversion."""
    from datetime import date, time
    from ipaddress import IPv4Address, IPv6Address
    from uuid import UUID

    from pydantic import AnyUrl, AwareDatetime, TypeAdapter
    from pydantic import Field as Limits

    types: dict[str, Any] = {
        "date": date, "time": time, "date-time": AwareDatetime, "uuid": UUID, "uri": AnyUrl, "url": AnyUrl,
        "ipv4": IPv4Address, "ipv6": IPv6Address,
    }  # fmt: skip
    names, base = _LIMITS_OF_TEXTS, types.get(str(schema.get("format")), str)
    if schema["type"] != "string":
        names, base = _LIMITS_OF_NUMBERS, int if schema["type"] == "integer" else float
    limits: dict[str, Any] = {argument: schema[name] for name, argument in names.items() if name in schema}
    adapter: TypeAdapter[Any] = TypeAdapter(
        Annotated[base, Limits(**limits)] if limits and base in (str, int, float) else base
    )

    def check(value: Any) -> Any:
        made = adapter.validate_python(value)
        return made if schema["type"] == "integer" or not isinstance(value, (str, int)) else value

    return check
