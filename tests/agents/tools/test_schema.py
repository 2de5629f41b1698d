"""The schema that a signature gives."""

from __future__ import annotations

import enum
import functools
import gc
import weakref
from typing import TYPE_CHECKING, Annotated, Any, Optional

import pytest
from pydantic import BaseModel, Field

from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.tools.function_tool import FunctionTool
from tests.parts.errors import raises

if TYPE_CHECKING:
    import agentbench as ab


class Place(BaseModel):
    city: str
    country: str = "NO"


class Unit(enum.Enum):
    METRE = "m"
    MILE = "mi"


def properties_of(func: Any, **options: Any) -> dict[str, Any]:
    found: dict[str, Any] = FunctionTool(func, **options).parameters()["properties"]
    return found


def test_descriptions_constraints_defaults_and_required_are_in_the_schema() -> None:
    def add(a: Annotated[int, "first"], b: Annotated[int, Field(ge=0)] = 2) -> int:
        return a + b

    assert FunctionTool(add).parameters() == {
        "properties": {
            "a": {"description": "first", "title": "A", "type": "integer"},
            "b": {"default": 2, "minimum": 0, "title": "B", "type": "integer"},
        },
        "required": ["a"],
        "title": "add_input",
        "type": "object",
    }


def test_tools_of_one_function_and_name_share_what_is_costly_to_make() -> None:
    def f(a: int) -> None: ...

    first = FunctionTool(f)
    assert FunctionTool(f, description="other").input_model is first.input_model
    assert FunctionTool(f, name="g").parameters()["title"] == "g_input"
    assert FunctionTool(f, input_model={}).parameters() == {}
    assert FunctionTool(f).parameters() == first.parameters()


def test_what_was_read_keeps_no_function_alive() -> None:
    def a_function_that_was_a_tool() -> weakref.ref[Any]:
        def f(a: int, b: Any = object()) -> None: ...  # noqa: B008

        FunctionTool(f).parameters()
        return weakref.ref(f)

    gone = a_function_that_was_a_tool()
    gc.collect()
    assert gone() is None


def test_without_annotation_the_type_is_that_of_the_default_or_text() -> None:
    def f(
        plain,
        number=3,
        flag=True,
        share=0.5,
        words=(),
        names=[],  # noqa: B006 - never changed
        table={},  # noqa: B006 - never changed
        unit=Unit.MILE,
        nothing=None,
    ) -> None: ...

    found = properties_of(f)
    types = {name: schema.get("type") for name, schema in found.items()}
    assert types == {
        "plain": "string",
        "number": "integer",
        "flag": "boolean",
        "share": "number",
        "words": "array",
        "names": "array",
        "table": "object",
        "unit": None,
        "nothing": None,
    }
    assert "#/$defs/Unit" in str(found["unit"])
    assert found["nothing"]["anyOf"] == [{"type": "string"}, {"type": "null"}]


def test_self_cls_star_arguments_and_the_context_are_left_out() -> None:
    def f(self, cls, a: int, *args: Any, ctx: FunctionInvocationContext, b: int = 1, **kwargs: Any) -> None: ...

    assert list(properties_of(f)) == ["a", "b"]


def test_text_and_field_together_keep_the_description_of_the_field() -> None:
    def f(
        a: Annotated[int, "text", Field(description="field", le=3)], b: Annotated[int, Field(le=3), "text"]
    ) -> None: ...

    found = properties_of(f)
    assert found["a"] == {"description": "field", "maximum": 3, "title": "A", "type": "integer"}
    assert found["b"] == {"description": "text", "maximum": 3, "title": "B", "type": "integer"}


async def test_a_field_as_default_is_understood_and_filled_in() -> None:
    def f(a: int = Field(description="first"), b: int = Field(default=2, ge=0)) -> int:
        return a + b

    schema = FunctionTool(f).parameters()
    assert schema["required"] == ["a"]
    assert schema["properties"]["b"] == {"default": 2, "minimum": 0, "title": "B", "type": "integer"}
    assert (await FunctionTool(f).invoke(a=1))[0].text == "3"


async def test_a_default_that_json_cannot_say_is_not_in_the_schema_and_still_used() -> None:
    marker = object()

    def f(a: Any = marker) -> bool:
        return a is marker

    tool = FunctionTool(f)
    assert tool.parameters() == {"properties": {"a": {"title": "A"}}, "title": "f_input", "type": "object"}
    assert (await tool.invoke())[0].text == "true"


def test_a_default_within_a_model_that_json_cannot_say_is_left_out_without_a_warning() -> None:
    marker = object()

    class Inner(BaseModel):
        a: Any = marker

    def f(inner: Inner) -> None: ...

    assert FunctionTool(f).parameters()["$defs"]["Inner"]["properties"]["a"] == {"title": "A"}


@pytest.mark.parametrize("name", ["schema", "_private"])
async def test_names_that_pydantic_keeps_for_itself_are_allowed(name: str) -> None:
    names: dict[str, Any] = {}
    exec(f"def f({name}: int, model_size: int = 1): return {name} + model_size", names)
    tool = FunctionTool(names["f"])
    schema = tool.parameters()
    assert list(schema["properties"]) == [name, "model_size"]
    assert schema["required"] == [name]
    assert schema["properties"][name]["type"] == "integer"
    assert (await tool.invoke(arguments={name: "2"}))[0].text == "3"
    with raises(TypeError, name):
        await tool.invoke(arguments={})


# -------------------------------------------------------------------------------------------------- annotations as text


def test_classes_of_the_function_around_are_found() -> None:
    class Local(BaseModel):
        x: int

    def f(a: Local, b: list[Local] | None = None) -> None: ...

    tool = FunctionTool(f)
    assert tool.parameters()["$defs"]["Local"]["title"] == "Local"


def tool_of_a_class_that_is_defined_later() -> FunctionTool:
    def f(a: DefinedLater) -> int:
        return a.x

    return FunctionTool(f)


async def test_a_class_that_is_defined_after_the_tool_is_found_at_first_use(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(globals(), "DefinedLater")
    tool = tool_of_a_class_that_is_defined_later()
    with raises(TypeError, "DefinedLater"):
        tool.parameters()
    monkeypatch.undo()
    assert (await tool.invoke(arguments={"a": {"x": 4}}))[0].text == "4"


class DefinedLater(BaseModel):
    x: int


# ---------------------------------------------------------------------------------------------------- context parameter


def test_the_context_is_known_in_every_spelling() -> None:
    def plain(a: int, c: FunctionInvocationContext) -> None: ...
    def in_union(a: int, c: FunctionInvocationContext | None = None) -> None: ...
    def optional(a: int, c: Optional[FunctionInvocationContext] = None) -> None: ...  # noqa: UP045
    def annotated(a: int, c: Annotated[FunctionInvocationContext, "injected"]) -> None: ...
    def dotted(a: int, c: ab.FunctionInvocationContext) -> None: ...
    def dotted_union(a: int, c: ab.FunctionInvocationContext | None) -> None: ...

    for func in (plain, in_union, optional, annotated, dotted, dotted_union):
        assert list(properties_of(func)) == ["a"], func.__name__


def test_two_context_parameters_are_refused() -> None:
    def f(one: FunctionInvocationContext, two: FunctionInvocationContext) -> None: ...

    with raises(ValueError, "2"):
        FunctionTool(f)


async def test_an_unannotated_ctx_is_the_context_when_the_arguments_are_described() -> None:
    def f(a, ctx) -> list[Any]:
        return [a, type(ctx).__name__]

    class Arguments(BaseModel):
        a: int

    tool = FunctionTool(f, input_model=Arguments)
    assert (await tool.invoke(arguments={"a": 1}))[0].text == '[1, "FunctionInvocationContext"]'
    assert list(properties_of(f)) == ["a", "ctx"]


# ------------------------------------------------------------------------------------------------------------ no schema


def test_the_error_of_a_type_without_schema_names_the_ways_out() -> None:
    class Connection: ...

    def f(words, query: str, connection: Connection) -> None: ...

    tool = FunctionTool(f)
    with pytest.raises(TypeError) as caught:
        tool.parameters()
    assert "Parameter 'connection' of tool 'f' has the type" in str(caught.value)
    assert "functools.partial" in str(caught.value)
    assert caught.value.__cause__ is not None
    assert "pydantic-core" not in str(caught.value)
    bound = FunctionTool(functools.partial(f, connection=Connection()))
    assert list(bound.parameters()["properties"]) == ["words", "query"]


def test_the_error_of_a_field_that_does_not_fit_its_type_names_the_reason() -> None:
    class Other(BaseModel):
        x: int

    def annotated(place: Annotated[Place | Other, Field(discriminator="kind")]) -> None: ...
    def default(place: Place | Other = Field(discriminator="kind")) -> None: ...  # noqa: B008 - as users write it

    with raises(TypeError, "place", "annotated", "Place"):
        FunctionTool(annotated).parameters()
    with raises(TypeError, "default", "JSON", "Place"):
        FunctionTool(default).parameters()
