"""Tools as data."""

from __future__ import annotations

import pickle
from typing import Any

from agentbench.agents.tools.function_tool import FunctionTool
from tests.parts.errors import raises


def add(a: int, b: int = 2) -> int:
    """Add numbers."""
    return a + b


def other(a: str) -> str:
    return a


def test_a_tool_as_data_has_all_but_function_and_private_state() -> None:
    tool = FunctionTool(add, kind="maths", max_invocations=3, additional_properties={"k": 1}, result_parser=str)
    tool(1)
    assert tool.to_dict() == {
        "type": "function_tool",
        "name": "add",
        "description": "Add numbers.",
        "approval_mode": "never_require",
        "kind": "maths",
        "max_invocations": 3,
        "additional_properties": {"k": 1},
        "invocation_count": 1,
        "invocation_exception_count": 0,
        "input_model": tool.parameters(),
    }


async def test_with_its_function_it_works_as_before() -> None:
    tool = FunctionTool(add, max_invocations=3)
    tool(1)
    made = FunctionTool.from_dict(tool.to_dict(), dependencies={"function_tool": {"func": add}})
    assert made.to_dict() == tool.to_dict()
    assert (await made.invoke(arguments={"a": "1"}))[0].text == "3"  # it still converts
    assert made.invocation_count == 2


def test_without_function_it_is_declared() -> None:
    made = FunctionTool.from_dict(FunctionTool(add).to_dict())
    assert made.declaration_only
    assert made.parameters() == FunctionTool(add).parameters()


async def test_with_another_function_the_stored_schema_counts() -> None:
    made = FunctionTool.from_dict(FunctionTool(add).to_dict(), dependencies={"function_tool": {"func": other}})
    assert made.parameters() == FunctionTool(add).parameters()
    with raises(TypeError, "'x'"):
        await made.invoke(arguments={"a": "x"})


def test_dependencies_may_be_for_one_tool_only() -> None:
    data = [FunctionTool(func).to_dict() for func in (add, other)]
    dependencies: Any = {"function_tool": {"name:add": {"func": add}}}
    made = [FunctionTool.from_dict(one, dependencies=dependencies) for one in data]
    assert [one.declaration_only for one in made] == [False, True]


async def test_a_tool_of_a_module_function_can_be_pickled() -> None:
    tool = FunctionTool(add, max_invocations=2)
    await tool.invoke(a=1)
    again = pickle.loads(pickle.dumps(tool))
    assert (again.invocation_count, again.parameters()) == (1, tool.parameters())
    assert (await again.invoke(a="5"))[0].text == "7"
