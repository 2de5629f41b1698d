"""From a JSON Schema to its field, also for Python types, whose schema pydantic makes.

A part of the schema that has no field is typed as JSON, with a note which keyword is the reason; `strict` raises.
Values of a JSON Schema alone are plain JSON values: dicts, lists, texts, numbers. Its texts and numbers are validated
one by one; those of a Python type by the type as a whole.
"""

import base64
import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, get_origin

from agentbench.exceptions import UnsupportedSchema
from agentbench.notebook.forms.fields import (
    NO_VALUE,
    YES_NO,
    Field,
    Part,
    help_text,
    json_field,
    time_help,
    title_of,
)
from agentbench.notebook.forms.questions import Option
from agentbench.notebook.forms.text_values import FieldError

if TYPE_CHECKING:
    from agentbench.notebook.forms.schema import TypeSchema

__all__ = ["field_of_schema", "field_of_type", "type_name"]

Schema = Mapping[str, Any]

# Keywords that do not restrict the values.
_NOTES = frozenset(
    ["title", "description", "default", "examples", "example", "deprecated", "readOnly", "writeOnly", "multiline"]
) | frozenset(["discriminator", "$schema", "$id", "$comment", "$defs", "definitions", "$anchor"])
_STRUCTURE = frozenset(["type", "enum", "const", "$ref", "oneOf", "anyOf", "allOf", "format"])
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
    "boolean": frozenset(),
    "null": frozenset(),
}
_LONG_TEXT = 120
_TIMES = {"date": "date", "date-time": "datetime", "time": "time"}
_PYTHON_NAMES = {
    "string": "str", "integer": "int", "number": "float", "boolean": "bool", "object": "dict", "array": "list",
    "date-time": "datetime", "decimal": "Decimal", "uuid": "UUID", "path": "Path", "duration": "timedelta",
    "binary": "bytes", "password": "secret",
}  # fmt: skip


def field_of_schema(schema: Schema, *, strict: bool = False) -> Field:
    """Make the field of a JSON Schema; `$ref` is followed within it.

    Raises:
        UnsupportedSchema: With `strict`, for the first keyword that has no field.
    """
    return _Reader(schema, strict).field(schema, "", "")


def field_of_type(annotation: Any) -> Field:
    """Make the field of a Python type; a type without fields of its own is typed as JSON.

    Raises:
        NotebookError: Pydantic cannot validate values of this type.
    """
    from agentbench.notebook.forms.schema import TypeSchema

    types = TypeSchema(annotation)
    return replace(
        _Reader(types.schema, strict=False, types=types).field(types.schema, "", ""), validate=types.validate
    )


def type_name(annotation: Any) -> str:
    """Return a type as people write it."""
    if get_origin(annotation) is Annotated:
        return type_name(annotation.__origin__)
    text = annotation.__name__ if type(annotation) is type else str(annotation)
    return re.sub(r"<class '(.*)'>", r"\1", re.sub(r"[\w.<>]+\.(?=\w)", "", text))


@dataclass(frozen=True)
class _Reader:
    root: Schema
    strict: bool
    types: "TypeSchema | None" = None

    def field(self, schema: Any, path: str, label: str) -> Field:
        """Return the field of a part of the schema; `path` is its place."""
        try:
            made = self._make(schema, path)
        except (UnsupportedSchema, RecursionError) as error:
            # A reference that leads to itself and nowhere else has no end.
            unsupported = error if isinstance(error, UnsupportedSchema) else UnsupportedSchema("$ref", path)
            if self.strict:
                raise unsupported from None
            made = json_field(f"The schema's `{unsupported.keyword}` has no field: type JSON. It is not checked here.")
        notes = schema if isinstance(schema, Mapping) else {}
        about = help_text({"description": notes.get("description")})
        if made.is_leaf:
            about = ". ".join(filter(None, [about.rstrip("."), made.help]))
        elif self.types is not None:
            about = about.partition("\n")[0]  # of a docstring the first line
        label = str(notes.get("title") or label)
        return replace(made, label=label, help=about or made.help, default=notes.get("default", NO_VALUE))

    def _make(self, schema: Any, path: str) -> Field:
        if schema is True or schema == {} or "x-invalid" in schema:
            return json_field()
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
            if self.types is None and keyword not in known and not keyword.startswith("x-"):
                raise UnsupportedSchema(keyword, path)
        if "enum" in schema or "const" in schema:
            return self._listed(schema, path)
        return self._of_type(schema, kinds, path)

    def _of_type(self, schema: Schema, kinds: list[str], path: str) -> Field:
        others = [kind for kind in kinds if kind != "null"]
        nullable = "null" in kinds
        if not others:
            return Field(kind="const", options=(Option("null", None),)) if nullable else json_field()
        if len(others) > 1:
            parts = [Part(kind, kind, self._maker({**schema, "type": kind}, path)) for kind in others]
            return Field(kind="union", parts=lambda: parts, nullable=nullable)
        makes: dict[str, Callable[[Schema, str], Field]] = {
            "object": self._object,
            "array": self._array,
            "string": self._text,
            "integer": self._number,
            "number": self._number,
            "boolean": lambda *_: self._choice(YES_NO),
        }
        if others[0] not in makes:
            raise UnsupportedSchema("type", path)
        return replace(makes[others[0]]({**schema, "type": others[0]}, path), nullable=nullable)

    def _maker(self, schema: Any, path: str) -> Callable[[], Field]:
        make = cache(lambda: self.field(schema, path, ""))
        if self.strict and not (isinstance(schema, Mapping) and "$ref" in schema):
            make()  # now, so that `strict` raises when the form is made
        return make

    # ---- one of several, all of several -----------------------------------------------------------------------------

    def _reference(self, schema: Schema, path: str) -> Field:
        target = self._target(schema["$ref"], path)
        besides = {key: value for key, value in schema.items() if key != "$ref"}
        if any(key not in _NOTES and not key.startswith("x-") for key in besides):
            return self._make({"allOf": [target, besides]}, path)
        made = self.field(target, path, "")
        # The same type for all places that refer to it, to notice one inside itself.
        return replace(made, of=schema["$ref"]) if made.kind == "group" else made

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
        rest = {key: value for key, value in schema.items() if key not in (keyword, *_NOTES) and key[:2] != "x-"}
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
            return replace(self._choice(options), nullable=nullable)
        labels = self._labels(others, schema.get("discriminator"))
        parts = [Part(label, label, self._member(each, path)) for label, (each, _) in zip(labels, others, strict=True)]
        return Field(kind="union", parts=lambda: parts, nullable=nullable)

    def _member(self, schema: Schema, path: str) -> Callable[[], Field]:
        make, types = self._maker(schema, path), self.types
        if types is None or "x-member" not in schema:
            return make
        member = types.member(schema["x-member"])
        return cache(lambda: replace(make(), label="", validate=member.validate, accepts=member.accepts))

    def _labels(self, members: Sequence[tuple[Schema, Schema]], discriminator: object) -> list[str]:
        tag = discriminator.get("propertyName") if isinstance(discriminator, Mapping) else None
        labels = []
        for at, (member, known) in enumerate(members, 1):
            tagged = member.get("x-tag") or known.get("properties", {}).get(tag, {}).get("const")
            labels.append(str(tagged or self._name(known) or f"form {at}"))
        return [f"{label} ({at})" if labels.count(label) > 1 else label for at, label in enumerate(labels, 1)]

    def _name(self, schema: Schema) -> str:
        kind = schema.get("type")
        if "title" in schema or self.types is None:
            return str(schema.get("title") or (kind if isinstance(kind, str) else ""))
        if "x-options" in schema:
            return " | ".join(option.label for option in schema["x-options"])
        form = schema.get("format")
        name = _PYTHON_NAMES.get(str(form)) or str(form or _PYTHON_NAMES.get(str(kind), "Any"))
        inner = schema.get({"list": "items", "dict": "additionalProperties"}.get(name, ""))
        if not isinstance(inner, Mapping):
            return name
        return f"{name}[{'str, ' if name == 'dict' else ''}{self._name(self._resolve(inner, ''))}]"

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
        properties = schema.get("properties", {})
        others = schema.get("additionalProperties", self.types is None)
        if not properties and (self.types is None or "additionalProperties" in schema):
            return self._pairs(schema, others, path)
        if self.types is None and isinstance(others, Mapping) and others:
            keyword = "additionalProperties"
            raise UnsupportedSchema(keyword, path)
        needed = schema.get("required", ())
        parts = [
            Part(name, _key(name, each, path), self._part_maker(name, each, name in needed, f"{path}/{name}"))
            for name, each in properties.items()
        ]
        return Field(kind="group", parts=lambda: parts, open_ended=others is not False)

    def _pairs(self, schema: Schema, values: Any, path: str) -> Field:
        key = self.field(schema.get("propertyNames", {"type": "string"}), path, "Key")
        if not key.is_leaf or key.kind in ("json", "file"):
            return json_field()
        value = self._maker(values, f"{path}/additionalProperties")
        parts = [Part("key", "key", replace(key, label="Key").itself), Part("value", "value", value)]
        pair = Field(kind="pair", parts=lambda: parts)
        least, most = schema.get("minProperties", 0), schema.get("maxProperties")
        return Field(kind="pairs", item=pair.itself, least=least, most=most)

    def _part_maker(self, name: str, schema: Any, required: bool, path: str) -> Callable[[], Field]:
        make = cache(lambda: self._part(name, schema, required, path))
        if self.strict:
            make()
        return make

    def _part(self, name: str, schema: Any, required: bool, path: str) -> Field:
        made = self.field(schema, path, title_of(name))
        if made.kind == "const" and not required and made.default in (NO_VALUE, None):  # whether it is set is a choice
            made = replace(made, kind="choice")
        return replace(made, required=required, omits=not required and not made.nullable and made.default is NO_VALUE)

    def _array(self, schema: Schema, path: str) -> Field:
        fixed, names = schema.get("prefixItems"), schema.get("x-names")
        if fixed is None:
            return Field(
                kind="rows", item=self._maker(schema.get("items", True), f"{path}/items"),
                least=schema.get("minItems", 0), most=schema.get("maxItems"), unique=bool(schema.get("uniqueItems")),
            )  # fmt: skip
        if schema.get("items", True) is not False and schema.get("maxItems") != len(fixed):
            raise UnsupportedSchema("prefixItems", path)
        if names is not None:
            named = dict(zip(names, fixed, strict=True))
            return self._object({"properties": named, "required": names[: schema.get("minItems", 0)]}, path)
        made = [self.field(each, f"{path}/{at}", f"{at + 1}.") for at, each in enumerate(fixed)]
        parts = [Part(str(at), str(at), each.itself) for at, each in enumerate(made)]
        return Field(kind="group", parts=lambda: parts, positional=True, of=("prefixItems", path))

    # ---- fields of one text -----------------------------------------------------------------------------------------

    def _listed(self, schema: Schema, path: str) -> Field:
        values = schema.get("enum", [schema.get("const")])
        if not isinstance(values, Sequence) or not values or isinstance(values, str):
            raise UnsupportedSchema("enum", path)
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
            msg = f"{value!r} is not among the options."
            raise FieldError(msg)

        return Field(kind="choice", options=tuple(options), validate=check if self.types is None else None)

    def _text(self, schema: Schema, path: str) -> Field:
        form, longest = schema.get("format"), schema.get("maxLength")
        if schema.get("contentEncoding") not in (None, "base64"):
            raise UnsupportedSchema("contentEncoding", path)
        if schema.get("contentEncoding") == "base64" or (form == "binary" and self.types is not None):
            return Field(
                kind="file", help="A file of at most 5 MB", validate=None if self.types is not None else _base64
            )
        check = None if self.types is not None else _check(schema)
        if form in _TIMES:
            zone = schema.get("x-zone") or ("aware" if form == "date-time" and self.types is None else "either")
            about = time_help(_TIMES[form], zone)
            return Field(kind=_TIMES[form], zone=zone, help=about, validate=check)  # type: ignore[arg-type]
        return Field(
            kind="text", help=_limits(schema), max_length=longest, makes=schema.get("x-class", str), validate=check,
            secret=bool(schema.get("writeOnly")) or form == "password",
            multiline=bool(schema.get("multiline")) or (longest or 0) > _LONG_TEXT,
        )  # fmt: skip

    def _number(self, schema: Schema, path: str) -> Field:
        for name in _LIMITS_OF_NUMBERS:
            if isinstance(schema.get(name), bool):  # as drafts before the sixth wrote it
                raise UnsupportedSchema(name, path)
        makes: Any = int if schema["type"] == "integer" else Decimal if schema.get("format") == "decimal" else float
        if self.types is not None:
            return Field(kind="number", help=_limits(schema), makes=makes)
        makes = (
            makes if makes is int else _whole_or_float
        )  # 5 is a whole number in JSON, and large ones keep their digits
        return Field(kind="number", help=_limits(schema), makes=makes, validate=_check(schema))


def _kinds(schema: Schema) -> list[str]:
    kind = schema.get("type")
    if isinstance(kind, str):
        return [kind]
    if isinstance(kind, Sequence):
        return [str(each) for each in kind]
    # Without a type, the keywords of one show which it is.
    return [name for name in ("object", "array", "string", "number") if _OF_TYPE[name] & set(schema)][:1]


def _key(name: str, schema: Any, path: str) -> str:
    key = schema.get("x-key", name) if isinstance(schema, Mapping) else name
    if not key:  # a path of names
        raise UnsupportedSchema("validation_alias", path)
    return str(key)


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
    """Return the validation of one text or number, which stays what it is."""
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
    limits = limits if base in (str, int, float) else {}
    adapter: TypeAdapter[Any] = TypeAdapter(Annotated[base, Limits(**limits)] if limits else base)

    def check(value: Any) -> Any:
        made = adapter.validate_python(value)
        return made if schema["type"] == "integer" or not isinstance(value, (str, int)) else value

    return check
