"""A tool shows what a model may fill in, whether a person is asked, and how often it was called."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from agentbench import FunctionTool
from agentbench.notebook.cards.tool import tool


class Place(BaseModel):
    city: str = Field(description="as on a map")
    near: list[Place] | None = None


def book(
    place: Annotated[Place, "where to"],
    days: Annotated[int, Field(ge=1, le=30)] = 3,
    stops: Annotated[int, Field(gt=0)] | None = None,
    travel: Literal["train", "boat"] = "train",
    api_key: str = "sk-123",
) -> str:
    """Book a trip.

    Asks back when a place is not known.
    """
    return f"{place.city} {days} {stops} {travel} {api_key}"


def lines(shown: Any) -> list[str]:
    return tool(shown)["text/plain"].splitlines()


def test_everything_that_a_model_may_fill_in_is_listed() -> None:
    assert lines(FunctionTool(book)) == [
        "book: no approval needed, not called yet",
        "  Book a trip.",
        "  Asks back when a place is not known.",
        "arguments",
        "  place       Place                   required  Where to",
        "  place.city  string                  required  As on a map",
        "  place.near  array of Place or null  null",
        "  days        integer                 3         At least 1, at most 30",
        "  stops       integer or null         null      More than 0",
        '  travel      "train" or "boat"       "train"',
        "  api_key     string                  •••",
    ]


def test_the_badge_tells_whether_a_person_has_to_answer() -> None:
    assert lines(FunctionTool(book, approval_mode="always_require"))[0] == "book: needs approval, not called yet"
    assert "ab_is_waiting" in tool(FunctionTool(book, approval_mode="always_require"))["text/html"]
    assert lines(FunctionTool(name="ask", kind="handoff")) == ["ask: declared only, handoff, not called yet"]


def test_calls_failures_and_limits_are_listed() -> None:
    made = FunctionTool(
        book, max_invocations=5, max_invocation_exceptions=2, max_invocations_per_run=1, name="b", description="x"
    )
    made.invocation_count, made.invocation_exception_count = 3, 1
    assert lines(made)[0] == ("b: no approval needed, 3 calls, at most 5, 1 failed, at most 2, at most 1 call per run")


def test_types_are_described_in_words() -> None:
    for part, words in [
        ({}, "anything"),
        ({"type": ["integer", "null"]}, "integer or null"),
        ({"type": "array", "items": {"type": "number"}}, "array of number"),
        ({"type": "array", "items": {}}, "array"),
        ({"anyOf": [{"type": "string"}, {"type": "integer"}]}, "string or integer"),
        ({"enum": ["a", 1]}, '"a" or 1'),
        ({"const": "a"}, '"a"'),
        ({"type": "string", "format": "date"}, "date"),
        ({"$ref": "#/$defs/Gone"}, "anything"),
        ({"$ref": "#/$defs/Unit"}, "Unit"),
        ({"allOf": [{"$ref": "#/$defs/Unit"}]}, "Unit"),
    ]:
        made = FunctionTool(name="f", input_model={"$defs": {"Unit": {"type": "string"}}, "properties": {"a": part}})
        assert lines(made)[-1].split("  ")[1:] == ["a", words, "optional"]


def test_a_type_that_contains_itself_is_listed_once() -> None:
    json_type = {"anyOf": [{"type": "string"}, {"type": "array", "items": {"$ref": "#/$defs/Json"}}]}
    schema = {"$defs": {"Json": json_type}, "properties": {"a": {"$ref": "#/$defs/Json"}}}
    assert lines(FunctionTool(name="f", input_model=schema))[-1].split() == ["a", "Json", "optional"]


def test_a_tool_without_schema_tells_why() -> None:
    class Connection: ...

    def f(connection: Connection) -> None: ...

    shown = lines(FunctionTool(f))
    assert shown[0] == "f: no schema, not called yet"
    assert shown[1].startswith("  Parameter 'connection' of tool 'f' has the type ")
