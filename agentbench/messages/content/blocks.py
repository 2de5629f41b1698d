"""Content of messages under alternative names: blocks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from agentbench.messages.content.content import Content


def TextBlock(text: str) -> Content:  # noqa: N802 - used like a class
    """Make text content for a message.

    Args:
        text: The text.

    Example:
        >>> Message(role="user", content=[TextBlock(text="Hello")]).text
        'Hello'
    """
    return Content.from_text(text)


def ToolCallBlock(id: str, name: str, args: Mapping[str, Any] | str | None = None) -> Content:  # noqa: A002, N802
    """Make content for a model's call of a tool.

    Args:
        id: Id of the call; the result of the call has the same id.
        name: Name of the tool.
        args: Arguments by name, or as JSON text.

    Example:
        >>> ToolCallBlock(id="call_1", name="get_weather", args={"city": "Oslo"}).name
        'get_weather'
    """
    return Content.from_function_call(id, name, arguments=args)


def ToolResultBlock(  # noqa: N802
    call_id: str, output: Any = None, is_error: bool = False, status: Literal["completed", "failed"] | None = None
) -> Content:
    """Make content for the result of a tool.

    Args:
        call_id: Id of the call.
        output: Text, contents, or any value.
        is_error: Whether the tool failed.
        status: `"completed"` or `"failed"`, derived from `is_error` by default.

    Example:
        >>> ToolResultBlock(call_id="call_1", output="Fog").result
        'Fog'
    """
    failed = is_error or status == "failed"
    facts = {"is_error": failed, "status": status or ("failed" if failed else "completed")}
    exception = str(output) if failed else None
    return Content.from_function_result(call_id, result=output, exception=exception, additional_properties=facts)
