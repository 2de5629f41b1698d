"""The decorator that makes a tool from a function."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any, TypedDict, Unpack, overload

from agentbench.agents.tools.function_tool import ApprovalMode, FunctionTool, ResultParser
from agentbench.agents.tools.input_schema import InputModel


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
    tags: Iterable[str] | str
    provider: str | None
    capabilities: Iterable[str] | str
    metadata: dict[str, Any] | None


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
    tags: Iterable[str] | str = (),
    provider: str | None = None,
    capabilities: Iterable[str] | str = (),
    metadata: dict[str, Any] | None = None,
) -> FunctionTool | Callable[[Callable[..., Any]], FunctionTool]:
    """Make a tool from a function: `@tool`, `@tool(...)` or `tool(func, ...)`.

    A tool with `approval_mode="always_require"` runs only after a person has approved the call, in a `user` message in
    the input of a run. An approved call runs at least once: if the process is killed after the call but before its
    result is stored, and the same answer is passed again, the tool runs again. The result is in the session as soon as
    the tool has returned, in a history when the run ends, and in the history of an agent with
    `require_per_service_call_history_persistence=True` before the model is called. A tool that must not run twice needs
    its own key, such as an order number.

    Args:
        func: The function.
        name: Name of the tool; by default the function's.
        description: Description for the model; by default the function's docstring.
        schema: A pydantic model class or JSON schema of the arguments, used instead of the signature.
        approval_mode: `"always_require"` if a person has to approve each call; by default `"never_require"`.
        kind: Any tag, such as `"shell"`.
        max_invocations: Maximum number of calls until `reset()`.
        max_invocation_exceptions: Maximum number of failed calls until `reset()`.
        max_invocations_per_run: Maximum number of calls per agent run.
        additional_properties: Additional values that the application stores with the tool.
        result_parser: Converts the function's result to text or contents; `SKIP_PARSING` keeps it unchanged.
        tags: Labels by which agents (`tools_tags=`) and tool nodes choose tools.
        provider: The service behind the tool, for information.
        capabilities: What the tool can do, such as `"writes files"`; approval forms show it.
        metadata: Another name for `additional_properties`.

    Returns:
        The tool; without `func`, a decorator that returns the tool.

    Raises:
        TypeError: `func` is not a function, or `schema` does not describe arguments.
        ValueError: A limit is less than 1, the approval mode is unknown, or the function has two context parameters.

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
        tags=tags,
        provider=provider,
        capabilities=capabilities,
        metadata=metadata,
    )
    return make if func is None else make(func)
