"""Make a tool of a function by a line above it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, overload

from agentbench.agents.tools.function_tool import ApprovalMode, FunctionTool, ResultParser
from agentbench.agents.tools.input_schema import InputModel


@overload
def tool(func: Callable[..., Any], **options: Any) -> FunctionTool: ...


@overload
def tool(
    func: None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    schema: InputModel = None,
    approval_mode: ApprovalMode | None = None,
    kind: str | None = None,
    max_invocations: int | None = None,
    max_invocation_exceptions: int | None = None,
    max_invocations_per_run: int | None = None,
    additional_properties: dict[str, Any] | None = None,
    result_parser: ResultParser | None = None,
) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(
    func: Callable[..., Any] | None = None,
    *,
    description: str | None = None,
    schema: InputModel = None,
    **options: Any,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a function: `@tool`, `@tool(...)` or `tool(func, ...)`.

    Args:
        func: The function.
        description: By default the function's docstring.
        schema: What describes the arguments, if not the signature: a pydantic model class, or a JSON schema.
        **options: As for `FunctionTool`: `name`, `approval_mode`, `kind`, `max_invocations`,
            `max_invocation_exceptions`, `max_invocations_per_run`, `additional_properties`, `result_parser`.

    Example:
        ```python
        @tool(approval_mode="always_require")
        def delete_file(path: Annotated[str, "relative to the project"]) -> str:
            "Delete a file."
        ```
    """

    def make(func: Callable[..., Any]) -> FunctionTool:
        return FunctionTool(func, description=description or "", input_model=schema, **options)

    return make if func is None else make(func)
