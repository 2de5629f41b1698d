"""Forms of JSON Schemas: the same fields, and plain JSON values."""

from typing import Any

import pytest

from agentbench.exceptions import UnsupportedSchema
from agentbench.notebook import Form, form

ORDER: dict[str, Any] = {
    "title": "Order",
    "description": "What to buy.",
    "type": "object",
    "required": ["amount", "to", "kind"],
    "properties": {
        "amount": {"type": "integer", "minimum": 1, "maximum": 5},
        "price": {"type": "number"},
        "note": {"type": ["string", "null"]},
        "to": {"$ref": "#/$defs/Address"},
        "kind": {"enum": ["fast", "slow", 3]},
        "unit": {"const": "kg"},
        "tags": {"type": "array", "items": {"type": "string"}, "maxItems": 2, "uniqueItems": True},
        "limits": {"type": "object", "additionalProperties": {"type": "integer"}},
    },
    "$defs": {
        "Address": {
            "type": "object",
            "required": ["street"],
            "properties": {"street": {"type": "string", "title": "Street and number"}, "city": {"type": "string"}},
            "additionalProperties": False,
        }
    },
}


def fill(schema: dict[str, Any], raw: dict[str, str | None]) -> Form:
    made = form(schema)
    for path, text in raw.items():
        made.set_raw(path, text)
    return made


def test_an_object_is_filled_field_by_field_and_is_a_dict():
    made = fill(ORDER, {"amount": "3", "to.street": "Rue 1", "kind": "3", "tags[0]": "a", "note": None})
    assert made.value == {"amount": 3, "note": None, "to": {"street": "Rue 1"}, "kind": 3, "tags": ["a"]}
    made.set_raw("unit", '"kg"')
    assert made.value["unit"] == "kg"
    assert repr(made) == "Form(for Order, editing)"


def test_problems_with_limits_are_at_their_field():
    made = fill(ORDER, {"amount": "9", "to.street": "s", "kind": "fast"})
    for at in range(3):
        made.set_raw(f"tags.{at}", "same")
    made.validate()
    assert made.errors == {
        "amount": "Input should be less than or equal to 5",
        "tags": "At most 2 allowed; there are 3.",
        "tags[1]": "Row 1 has the same value.",
        "tags[2]": "Row 1 has the same value.",
    }


def test_one_of_several_is_chosen_by_title_tag_or_kind():
    def pet(kind: str, name: str, type_: str) -> dict[str, Any]:
        properties = {"kind": {"const": kind}, name: {"type": type_}}
        return {"type": "object", "properties": properties, "required": ["kind", name]}

    pets = {
        "discriminator": {"propertyName": "kind"},
        "oneOf": [{"$ref": "#/$defs/Cat"}, {"$ref": "#/$defs/Dog"}],
        "$defs": {"Cat": pet("cat", "lives", "integer"), "Dog": pet("dog", "name", "string")},
    }
    made = fill(pets, {"value.dog.name": "Rex"})
    assert made.value == {"kind": "dog", "name": "Rex"}
    assert form(pets, value={"kind": "dog", "name": "Bo"}).raw == {"value": "dog", "value.dog.name": "Bo"}
    made = fill({"type": ["integer", "string"]}, {"value.string": "5"})
    assert made.value == "5"
    assert form({"type": ["integer", "string"]}, value="5").raw == {"value": "string", "value.string": "5"}


def test_all_of_puts_objects_together():
    schema = {
        "allOf": [
            {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
            {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]},
        ]
    }
    assert fill(schema, {"a": "1", "b": "x"}).value == {"a": 1, "b": "x"}


def test_a_schema_inside_itself_is_opened_on_demand():
    tree = {"$ref": "#/$defs/Tree", "$defs": {"Tree": {
        "type": "object", "required": ["name"],
        "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/Tree"}}},
    }}}  # fmt: skip
    made = fill(tree, {"name": "a", "children[0].name": "b", "children.0.children.0.name": "c"})
    assert made.value == {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}


@pytest.mark.parametrize(
    ("schema", "keyword", "path"),
    [
        ({"type": "string", "not": {"const": "a"}}, "not", ""),
        ({"type": "object", "properties": {"a": {"type": "string", "minItems": 1}}}, "minItems", "/a"),
        ({"$ref": "https://example.org/schema"}, "$ref", ""),
        ({"$ref": "#/$defs/Nowhere"}, "$ref", ""),
        ({"$ref": "#"}, "$ref", ""),
        ({"type": "array", "items": {"if": {}}}, "if", "/items"),
        ({"allOf": [{"type": "integer"}, {"type": "string"}]}, "allOf", ""),
        ({"type": "integer", "minimum": 1, "exclusiveMinimum": True}, "exclusiveMinimum", ""),
        ({"type": "nothing"}, "type", ""),
        ({"enum": []}, "enum", ""),
    ],
    ids=str,
)  # fmt: skip
def test_a_keyword_without_a_field_is_json_with_a_note_or_an_error(schema: dict[str, Any], keyword: str, path: str):
    with pytest.raises(UnsupportedSchema) as caught:
        form(schema, strict=True)
    assert (caught.value.keyword, caught.value.path) == (keyword, path)
    made = form(schema)
    made.set_raw(
        "value[0]" if schema.get("type") == "array" else "a" if "properties" in schema else "value", '{"any": 1}'
    )
    assert '{"any": 1}' in made.raw.values()
    assert f"`{keyword}`" in made.text or schema.get("type") == "array"
    assert made.validate()


def test_other_properties_of_a_value_stay_where_the_schema_allows_them():
    schema = {"type": "object", "properties": {"n": {"type": "integer"}}}
    made = form(schema, value={"n": 1, "more": [True]})
    made.set_raw("n", "2")
    assert made.value == {"n": 2, "more": [True]}
