"""Tools with plain parameters do without pydantic, and nobody can tell the difference."""

from __future__ import annotations

import inspect
import keyword
from typing import Annotated, Any
from unittest import mock

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel

from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import ToolArgumentsError

OF_PYDANTIC = [name for name in {*dir(BaseModel), *dir(type(BaseModel))} if not name.startswith("_")]
HALF = "\ud800"
VALUES = {
    str: st.text() | st.just(HALF),
    int: st.integers() | st.just(2**70),
    float: st.floats(),
    bool: st.booleans(),
}
NAMES = st.sampled_from(
    ["city", "max_days", "a_", "a__b", "_private", "größe", "model_name", "x1y", *sorted(OF_PYDANTIC)]
)
DESCRIPTIONS = st.sampled_from(["", "two\nlines", " spaces ", HALF])


@st.composite
def parameters(draw: st.DrawFn) -> inspect.Parameter:
    type_ = draw(st.sampled_from(list(VALUES)))
    described = draw(st.booleans())
    return inspect.Parameter(
        draw(NAMES.filter(lambda name: not keyword.iskeyword(name))),
        inspect.Parameter.KEYWORD_ONLY,
        annotation=Annotated[type_, draw(DESCRIPTIONS)] if described else type_,
        default=draw(st.just(inspect.Parameter.empty) | VALUES[type_]),
    )


def tool_of(found: list[inspect.Parameter], name: str) -> FunctionTool:
    def function(**_: Any) -> None: ...

    function.__signature__ = inspect.Signature(found)  # type: ignore[attr-defined]
    function.__annotations__ = {each.name: each.annotation for each in found}
    return FunctionTool(function, name=name)


def outcome(tool: FunctionTool, arguments: dict[str, Any]) -> tuple[Any, ...]:
    """The schema, what is made of some arguments, and what a user is told about those that do not fit."""
    try:
        valid = tool.validate_arguments(arguments)
    except ToolArgumentsError as error:
        return repr(tool.parameters()), str(error)
    return repr(tool.parameters()), repr(valid)


@given(st.data())
def test_schema_arguments_and_errors_are_those_of_pydantic(data: st.DataObject) -> None:
    found = data.draw(st.lists(parameters(), max_size=4, unique_by=lambda each: each.name))
    name = data.draw(st.sampled_from(["find", "a.b-c:d"]))
    anything = st.one_of(*VALUES.values(), st.none(), st.lists(st.integers()), st.just("3"), st.just(2.0))
    arguments = data.draw(
        st.fixed_dictionaries(
            {}, optional={each.name: VALUES[bare(each)] | anything for each in found} | {"unknown": anything}
        )
    )

    ours = outcome(tool_of(found, name), arguments)

    with mock.patch("agentbench.agents.tools.input_schema.plain_parameters", return_value=None):
        assert outcome(tool_of(found, name), arguments) == ours


def bare(parameter: inspect.Parameter) -> type:
    return getattr(parameter.annotation, "__origin__", parameter.annotation)  # type: ignore[no-any-return]


@pytest.mark.parametrize("name", sorted(OF_PYDANTIC))
async def test_a_parameter_may_have_the_name_of_an_attribute_of_pydantic_models(name: str) -> None:
    parameter = inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=int)

    tool = tool_of([parameter], "find")

    assert list(tool.parameters()["properties"]) == [name]
    assert tool.validate_arguments({name: 1}) == {name: 1}
