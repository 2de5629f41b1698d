"""Arguments checked by a JSON schema that was given as it is."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench.agents.tools.function_tool import FunctionTool

SCHEMA = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "share": {"type": "number"},
        "flag": {"type": "boolean"},
        "items": {"type": "array"},
        "table": {"type": "object"},
        "maybe": {"type": ["integer", "null"]},
        "size": {"enum": ["s", "m", 1]},
        "open": {},
        "strange": {"type": "no such type"},
        "odd": True,
    },
    "required": ["text"],
    "additionalProperties": False,
}


def note(**named: Any) -> dict[str, Any]:
    return named


TOOL = FunctionTool(note, input_model=SCHEMA)


async def called_with(**arguments: Any) -> Any:
    return await TOOL.invoke(arguments={"text": "t", **arguments}, skip_parsing=True)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("count", 2.0),
        ("table", {"a": {"b": 1}}),
        ("maybe", None),
        ("size", 1),
        ("strange", 1),
    ],
)
async def test_what_fits_is_handed_on_as_it_is(name: str, value: Any) -> None:
    found = await called_with(**{name: value})
    assert found == {"text": "t", name: value}
    assert found[name] is value


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("text", 1, "text: expected string, not 1"),
        ("count", 1.5, "count: expected integer, not 1.5"),
        ("share", False, "share: expected number, not False"),
        ("maybe", "x", "maybe: expected integer or null, not 'x'"),
        ("size", True, "size: expected one of 's', 'm', 1, not True"),
        ("zzz", 1, "zzz"),
    ],
)
async def test_what_does_not_fit_is_a_type_error_and_nothing_is_converted(name: str, value: Any, said: str) -> None:
    with pytest.raises(TypeError) as caught:
        await called_with(**{name: value})
    assert f"Invalid arguments for tool 'note': {said}" in str(caught.value)


def test_later_changes_of_a_schema_have_no_effect() -> None:
    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    tool = FunctionTool(note, input_model=schema)
    schema["properties"] = {}
    tool.parameters()["properties"].clear()
    assert tool.parameters() == {"type": "object", "properties": {"a": {"type": "integer"}}}


async def test_more_arguments_than_described_reach_only_a_function_that_takes_them() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}

    def narrow(a: int) -> int:
        return a

    assert await FunctionTool(narrow, input_model=schema).invoke(arguments={"a": 1, "b": 2}, skip_parsing=True) == 1
    wide = await FunctionTool(note, input_model=schema).invoke(arguments={"a": 1, "b": 2}, skip_parsing=True)
    assert wide == {"a": 1, "b": 2}
