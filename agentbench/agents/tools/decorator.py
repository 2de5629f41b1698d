"""Make a tool of a function by a line above it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypedDict, overload

from agentbench.agents.tools.function_tool import ApprovalMode, FunctionTool, ResultParser
from agentbench.agents.tools.input_schema import InputModel

if TYPE_CHECKING:
    from typing_extensions import Unpack


class ToolSettings(TypedDict, total=False):
    """The keywords of `tool`."""

    name: str | None
    description: str | None
    schema: InputModel
    approval_mode: ApprovalMode | None
    kind: str | None
    max_invocations: int | None
    max_invocation_exceptions: int | None
    max_invocations_per_run: int | None
    additional_properties: dict[str, Any] | None
    result_parser: ResultParser | None


@overload
def tool(func: Callable[..., Any], **settings: Unpack[ToolSettings]) -> FunctionTool: ...


@overload
def tool(func: None = None, **settings: Unpack[ToolSettings]) -> Callable[[Callable[..., Any]], FunctionTool]: ...


def tool(  # noqa: PLR0913 - the public signature
    func: Callable[..., Any] | None = None,
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
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool of a function: `@tool`, `@tool(...)` or `tool(func, ...)`.

    A tool with `approval_mode="always_require"` is called only after a message of the role `user` in the input of a run
    answers the request to approve that call. An approved call is made at least once: if the process is killed after the
    call and before its result is stored, and the same answer is passed again, then the tool is called again. The result
    is in the session as soon as the tool has returned, in a history when the run ends, and in a history of an agent
    with `require_per_service_call_history_persistence=True` before the model is called. Tools that must not run twice
    need a key of their own, such as an order number.

    Args:
        func: The function.
        name: By default the function's.
        description: For the model; by default the function's docstring.
        schema: Describes the arguments instead of the signature: a pydantic model class, or a JSON schema.
        approval_mode: `"always_require"`: a person has to agree to each call; see below. By default `"never_require"`.
        kind: A free tag, such as `"shell"`.
        max_invocations: How often it may be called until `reset()`.
        max_invocation_exceptions: How often it may raise until `reset()`.
        max_invocations_per_run: How often it may be called in one run of an agent.
        additional_properties: Anything that the application wants to store with the tool.
        result_parser: Turns the function's result into text or contents; `SKIP_PARSING` leaves it as it is.

    Returns:
        The tool; without `func` a decorator that returns it.

    Raises:
        TypeError: It is no function, or `schema` describes no arguments.
        ValueError: A limit is less than 1, the approval mode is unknown, or there are two context parameters.

    Example:
        @tool(approval_mode="always_require")
        def delete_file(path: Annotated[str, "relative to the project"]) -> str:
            "Delete a file."
    """
    make = partial(
        FunctionTool,
        name=name,
        description=description or "",
        approval_mode=approval_mode,
        kind=kind,
        max_invocations=max_invocations,
        max_invocation_exceptions=max_invocation_exceptions,
        max_invocations_per_run=max_invocations_per_run,
        additional_properties=additional_properties,
        input_model=schema,
        result_parser=result_parser,
    )
    return make if func is None else make(func)
