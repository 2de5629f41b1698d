"""What a function is called with, after its arguments were checked by a pydantic model."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict

from agentbench.agents.tools.function_tool import FunctionTool
from tests.parts.errors import raises


class Place(BaseModel):
    city: str
    days: int = 1


def seen_by(func: Any = None, **options: Any) -> tuple[FunctionTool, list[dict[str, Any]]]:
    """A tool whose function writes down what it is called with."""
    calls: list[dict[str, Any]] = []

    def note(**named: Any) -> None:
        calls.append(named)

    return FunctionTool(func or note, name="note", **options), calls


async def called_with(func: Any, arguments: dict[str, Any]) -> Any:
    return await FunctionTool(func).invoke(arguments=arguments, skip_parsing=True)


# ----------------------------------------------------------------------------------------------------------- conversion


async def test_nested_models_arrive_as_models() -> None:
    def f(place: Place, others: list[Place], by_name: dict[str, Place], maybe: Place | None = None) -> tuple[Any, ...]:
        return place, others, by_name, maybe

    raw = {"city": "Oslo", "days": "3"}
    place = Place(city="Oslo", days=3)
    given_ = {"place": raw, "others": [raw], "by_name": {"a": raw}, "maybe": raw}
    assert await called_with(f, given_) == (place, [place], {"a": place}, place)


async def test_the_function_gets_its_own_default_and_not_a_copy() -> None:
    box: list[int] = []

    def f(items: list[int] = box) -> bool:
        return items is box

    assert await called_with(f, {}) is True


# -------------------------------------------------------------------------------------------------------- explicit null


async def test_a_null_for_an_optional_parameter_means_its_default() -> None:
    def f(a: int | None = 5, b: int = 6) -> tuple[Any, ...]:
        return a, b

    assert await called_with(f, {"a": None}) == (5, 6)
    assert await called_with(f, {"a": None, "b": None}) == (5, 6)


async def test_a_null_is_passed_when_the_parameter_has_no_default() -> None:
    def f(a: int | None) -> tuple[Any, ...]:
        return ("got", a)

    assert await called_with(f, {"a": None}) == ("got", None)


# -------------------------------------------------------------------------------------------------------- a given model


async def test_an_input_model_describes_checks_and_fills_in() -> None:
    tool, calls = seen_by(input_model=Place)
    assert tool.parameters() == Place.model_json_schema()
    assert tool.input_model is Place
    await tool.invoke(arguments={"city": "Oslo", "zzz": 1})
    await tool.invoke(arguments=Place(city="Rome", days=2))
    assert calls == [{"city": "Oslo", "days": 1}, {"city": "Rome", "days": 2}]


async def test_nulls_of_an_input_model_are_passed_only_to_parameters_without_default() -> None:
    class Arguments(BaseModel):
        a: int | None = None
        b: int | None = None

    def f(a: int | None, b: int | None = 7) -> tuple[Any, ...]:
        return a, b

    result = await FunctionTool(f, input_model=Arguments).invoke(arguments={}, skip_parsing=True)
    assert result == (None, 7)


async def test_a_model_that_allows_more_hands_it_on() -> None:
    class Open(BaseModel):
        model_config = ConfigDict(extra="allow")
        a: int

    tool, calls = seen_by(input_model=Open)
    await tool.invoke(arguments={"a": "1", "b": "2"})
    assert calls == [{"a": 1, "b": "2"}]


async def test_a_model_that_forbids_more_refuses_it() -> None:
    class Closed(BaseModel):
        model_config = ConfigDict(extra="forbid")
        a: int

    tool, _ = seen_by(input_model=Closed)
    with raises(TypeError, "2"):
        await tool.invoke(arguments={"a": 1, "b": 2})


# --------------------------------------------------------------------------------------------------------------- errors


async def test_an_error_names_every_place() -> None:
    def f(place: Place, n: int) -> None: ...

    with pytest.raises(TypeError) as caught:
        await FunctionTool(f).invoke(arguments={"place": {"city": 1}, "n": "x"})
    assert str(caught.value) == (
        "Invalid arguments for tool 'f': place.city: Input should be a valid string, not 1; "
        "n: Input should be a valid integer, unable to parse string as an integer, not 'x'."
    )


@given(
    st.dictionaries(
        st.sampled_from(["a", "b", "c", "d"]),
        st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.integers()),
    )
)
def test_any_arguments_of_a_model_fit_or_are_a_type_error(arguments: dict[str, Any]) -> None:
    def f(a: int, b: str = "x", c: list[int] | None = None) -> None: ...

    fits: dict[str, Any] = {"a": int, "b": str, "c": list}
    try:
        valid = FunctionTool(f).validate_arguments(arguments)
    except TypeError:
        return
    assert "a" in valid
    assert all(type(value) is fits[name] for name, value in valid.items())
