"""Content of messages under alternative names: blocks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, cast

from agentbench.messages.content.content import Content

if TYPE_CHECKING:
    from agentbench.messages.content.media import Annotation


def TextBlock(text: str, annotations: Sequence[Mapping[str, Any]] | None = None) -> Content:  # noqa: N802 - used like a class
    """Make text content for a message.

    Args:
        text: The text.
        annotations: The sources that it cites, each an `AnnotationRef` or an `Annotation`.

    Example:
        >>> Message(role="user", content=[TextBlock(text="Hello")]).text
        'Hello'
    """
    return Content.from_text(text, annotations=cast("Sequence[Annotation] | None", annotations))


class AnnotationRef(dict[str, Any]):
    """A source that a text cites: an `Annotation`, a dictionary whose entries are also attributes.

    An attribute without a value is None. The dictionary contains only values, `page` and `index` in its
    `additional_properties`.

    Args:
        url: The address of the source.
        file_id: The id of the file.
        page: The number of the page.
        index: The position in a list of sources.
        title: The title of the source.

    Example:
        >>> source = AnnotationRef(url="https://example.org/owls", title="Owls")
        >>> TextBlock("Owls see well.", [source]).annotations[0].title
        'Owls'
    """

    def __init__(
        self,
        url: str | None = None,
        file_id: str | None = None,
        page: int | None = None,
        index: int | None = None,
        title: str | None = None,
    ) -> None:
        given = {"title": title, "url": url, "file_id": file_id}
        places = {name: value for name, value in (("page", page), ("index", index)) if value is not None}
        more = {"additional_properties": places} if places else {}
        super().__init__(type="citation", **{name: value for name, value in given.items() if value is not None}, **more)

    def __getattr__(self, name: str) -> Any:
        if name in ("page", "index"):
            return self.get("additional_properties", {}).get(name)
        if name in ("type", "title", "url", "file_id", "additional_properties"):
            return self.get(name)
        raise AttributeError(name)


class TokenUsages(dict[str, Any]):
    """The token counts of a message, for `Message(usages=...)`: a dictionary, whose entries are also attributes.

    Args:
        completion_tokens: Tokens of the answer.
        prompt_tokens: Tokens of the messages, options and tools.
        total_tokens: Sum of both; by default it is computed.
        reasoning_tokens: Tokens of the answer that are reasoning.
        **more: Further counts.

    Example:
        >>> TokenUsages(completion_tokens=3, prompt_tokens=12).total_tokens
        15
    """

    def __init__(
        self,
        completion_tokens: int = 0,
        prompt_tokens: int = 0,
        total_tokens: int | None = None,
        reasoning_tokens: int = 0,
        **more: int,
    ) -> None:
        total = completion_tokens + prompt_tokens if total_tokens is None else total_tokens
        super().__init__(
            completion_tokens=completion_tokens,
            prompt_tokens=prompt_tokens,
            total_tokens=total,
            reasoning_tokens=reasoning_tokens,
            **more,
        )

    def __getattr__(self, name: str) -> Any:
        if name not in self:
            raise AttributeError(name)
        return self[name]


def ToolCallBlock(  # noqa: N802
    id: str,  # noqa: A002
    name: str,
    args: Mapping[str, Any] | str | None = None,
    tool_type: str | None = None,
) -> Content:
    """Make content for a model's call of a tool.

    Args:
        id: Id of the call; the result of the call has the same id.
        name: Name of the tool.
        args: Arguments by name, or as JSON text.
        tool_type: A kind of tool, such as `"web_search"`; kept in the additional properties.

    Example:
        >>> ToolCallBlock(id="call_1", name="get_weather", args={"city": "Oslo"}).name
        'get_weather'
    """
    facts = None if tool_type is None else {"tool_type": tool_type}
    return Content.from_function_call(id, name, arguments=args, additional_properties=facts)


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
