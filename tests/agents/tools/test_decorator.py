"""Tools made by a line above a function."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from agentbench.agents.tools.decorator import tool
from agentbench.agents.tools.results import SKIP_PARSING


def add(a: int, b: int = 1) -> int:
    """Add numbers."""
    return a + b


def test_with_arguments() -> None:
    @tool(
        name="plus",
        description="Sum.",
        approval_mode="always_require",
        kind="maths",
        max_invocations=3,
        max_invocation_exceptions=2,
        max_invocations_per_run=1,
        additional_properties={"k": 1},
        result_parser=SKIP_PARSING,
    )
    def subtract(a: int) -> int:
        return -a

    assert (subtract.name, subtract.description, subtract.approval_mode) == ("plus", "Sum.", "always_require")
    assert (subtract.kind, subtract.additional_properties) == ("maths", {"k": 1})
    assert (subtract.max_invocations, subtract.max_invocation_exceptions, subtract.max_invocations_per_run) == (3, 2, 1)
    assert subtract.result_parser is SKIP_PARSING


def test_as_a_plain_call() -> None:
    assert tool()(add).name == "add"
    made = tool(add, name="plus")
    assert (made.name, made.description, made.func) == ("plus", "Add numbers.", add)


def test_a_schema_describes_the_arguments() -> None:
    class Numbers(BaseModel):
        a: int

    schema: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "integer"}}}
    assert tool(add, schema=Numbers).input_model is Numbers
    assert tool(schema=schema)(add).parameters() == schema
