"""The JSON Schema of a Python type, with additional keywords for forms that start with `x-`."""

from collections.abc import Callable
from functools import cached_property, partial
from typing import Any

from pydantic import ConfigDict, PydanticSchemaGenerationError, PydanticUserError, TypeAdapter
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import SchemaValidator

from agentbench._secrets import is_secret_class
from agentbench._signatures.reading import readable_by_pydantic
from agentbench.exceptions import NotebookError
from agentbench.notebook.forms.fields import NO_VALUE, title_of
from agentbench.notebook.forms.questions import Option, label_options

# Other factories may depend on a counter or a clock, so the type calls them when it makes the value.
_EMPTY = (list, dict, set, tuple, frozenset)

Schema = dict[str, Any]


class TypeSchema:
    """A type as its JSON Schema, and the validation of its values.

    Raises `NotebookError` if pydantic cannot validate this type or it refers to an undefined type.
    """

    def __init__(self, annotation: Any) -> None:
        annotation = readable_by_pydantic(annotation)
        try:
            try:
                adapter = TypeAdapter(annotation)
            except PydanticSchemaGenerationError:
                adapter = TypeAdapter(annotation, config=ConfigDict(arbitrary_types_allowed=True))
            self._generator = _Generator(by_alias=False)
            self.schema: Schema = self._generator.generate(adapter.core_schema)
        except PydanticUserError as error:
            msg = f"No form can be made for {annotation!r}: {error.message}"
            raise NotebookError(msg, error) from error
        # Not strict: the parts already have the exact types, but strict models would require instances.
        self.validate: Callable[[Any], Any] = partial(adapter.validate_python, strict=False)

    def member(self, number: int) -> "UnionMember":
        """Return one member of a union, which is validated separately."""
        return UnionMember(self._generator.members[number], self._generator.shared)


class UnionMember:
    """A member of a union: validated directly, without guessing by the union; raises `ValidationError`."""

    def __init__(self, core: Any, shared: list[Any]) -> None:
        self._core, self._shared = core, shared

    @cached_property
    def _validator(self) -> SchemaValidator:
        # Shared definitions, so that a type may contain itself.
        return SchemaValidator({"type": "definitions", "schema": self._core, "definitions": self._shared})

    def validate(self, value: Any) -> Any:
        """Return the value of the input."""
        return self._validator.validate_python(value, strict=False)

    def accepts(self, value: Any) -> bool:
        """Whether a value is of the type, without any conversion."""
        return self._validator.isinstance_python(value, strict=True)


class _Generator(GenerateJsonSchema):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.members: list[Any] = []
        self.shared: list[Any] = []

    def sort(self, value: Schema, parent_key: str | None = None) -> Schema:
        return value

    def get_title_from_name(self, name: str) -> str:
        return title_of(name)

    def handle_invalid_for_json_schema(self, schema: Any, error_info: str) -> Schema:
        cls = schema.get("cls")
        return {"type": "string", "format": "password", "x-class": cls} if is_secret_class(cls) else {"x-invalid": True}

    def enum_schema(self, schema: Any) -> Schema:
        options = tuple(Option(member.name, member) for member in schema["members"])
        return {**super().enum_schema(schema), "x-options": options}

    def literal_schema(self, schema: Any) -> Schema:
        return {**super().literal_schema(schema), "x-options": label_options(schema["expected"])}

    def bytes_schema(self, schema: Any) -> Schema:
        return {"type": "string", "format": "binary"}

    def datetime_schema(self, schema: Any) -> Schema:
        zone = schema.get("tz_constraint")
        return {"type": "string", "format": "date-time", "x-zone": zone if isinstance(zone, str) else "either"}

    def decimal_schema(self, schema: Any) -> Schema:
        made = {"type": "number", "format": "decimal"}
        self.update_with_validations(made, schema, self.ValidationsMapping.numeric)
        return made

    def dict_schema(self, schema: Any) -> Schema:
        keys = self.generate_inner(schema.get("keys_schema", {"type": "str"}))
        values = self.generate_inner(schema.get("values_schema", {"type": "any"}))
        made = {"type": "object", "propertyNames": keys, "additionalProperties": values}
        self.update_with_validations(made, schema, self.ValidationsMapping.object)
        return made

    def named_tuple_schema(self, schema: Any) -> Schema:
        return {**super().named_tuple_schema(schema), "x-names": [each["name"] for each in schema["fields"]]}

    def p_arguments_schema(self, arguments: Any, var_args_schema: Any) -> Schema:  # named tuples, in older versions
        names = [each["name"] for each in arguments]
        return {**super().p_arguments_schema(arguments, var_args_schema), "x-names": names}

    def model_schema(self, schema: Any) -> Schema:
        return {} if schema.get("root_model") else super().model_schema(schema)

    def field_is_present(self, field: Any) -> bool:
        return field.get("init") is not False and super().field_is_present(field)

    def model_field_schema(self, schema: Any) -> Schema:
        alias = schema.get("validation_alias")
        if isinstance(alias, list):  # a path, or several
            paths = alias if isinstance(alias[0], list) else [alias]
            alias = next((path[0] for path in paths if len(path) == 1), "")
        inner = self.generate_inner(schema["schema"])
        return inner if alias is None else {**inner, "x-key": alias}

    dataclass_field_schema = typed_dict_field_schema = model_field_schema

    def default_schema(self, schema: Any) -> Schema:
        default, factory = schema.get("default", NO_VALUE), schema.get("default_factory")
        default = factory() if factory in _EMPTY else default
        return {**self.generate_inner(schema["schema"]), **({} if default is NO_VALUE else {"default": default})}

    def union_schema(self, schema: Any) -> Schema:
        members: list[Schema] = []
        known: list[Schema] = []
        for choice in (each[0] if isinstance(each, tuple) else each for each in schema["choices"]):
            made = self.generate_inner(choice)
            # Skip unknown classes, which no text can represent, and merge members with the same texts.
            if "x-invalid" not in made and made not in known:
                known.append(made)
                members.append(self._member(choice, made))
        return members[0] if len(members) == 1 else {"anyOf": members} if members else {}

    def tagged_union_schema(self, schema: Any) -> Schema:
        tags: dict[int, tuple[list[str], Any]] = {}
        for tag, choice in schema["choices"].items():
            tags.setdefault(id(choice), ([], choice))[0].append(str(getattr(tag, "value", tag)))
        every = [{**self._member(each, self.generate_inner(each)), "x-tag": " | ".join(t)} for t, each in tags.values()]
        return {"oneOf": every}

    def _member(self, choice: Any, made: Schema) -> Schema:
        self.members.append(choice)
        return {**made, "x-member": len(self.members) - 1}

    def definitions_schema(self, schema: Any) -> Schema:
        self.shared += schema["definitions"]
        return super().definitions_schema(schema)
