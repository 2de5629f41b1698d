"""Conversion between the protocol's content blocks (as JSON) and the contents of messages."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agentbench.agents.mcp.limits import MCPLimits
from agentbench.exceptions import ToolResultError
from agentbench.messages.content.content import Content

_BINARY = "application/octet-stream"


def contents_of_result(tool_name: str, result: Mapping[str, Any], limits: MCPLimits) -> list[Content]:
    """Return the contents of a tool result.

    Raises:
        ToolResultError: The result reports a failure.
    """
    contents = contents_of(result.get("content") or (), result.get("structuredContent"))
    if not result.get("isError"):
        return contents
    text = "\n".join(content.text for content in contents if content.type == "text" and content.text)
    raise ToolResultError(
        f"The tool {tool_name!r} failed without an explanation." if text in ("", "null") else limits.log_text(text),
        contents=[content for content in contents if content.type != "text"],
    )


def contents_of(parts: Iterable[Mapping[str, Any]], structured: object = None) -> list[Content]:
    """Convert content blocks, and add the structured content as JSON unless a text block already repeats it.

    An empty result becomes the text `null`.
    """
    contents = [content_of(part) for part in parts]
    texts = [content.text or "" for content in contents if content.type == "text"]
    if structured is not None and not _repeats(texts, structured):
        contents.append(Content.from_text(json.dumps(structured, ensure_ascii=False)))
    return contents or [Content.from_text("null")]


def _repeats(texts: list[str], structured: object) -> bool:
    """Return whether the texts repeat the structured content. Servers wrap non-object values as `{"result": value}`."""
    is_wrapped = isinstance(structured, dict) and structured.keys() == {"result"}
    value = structured["result"] if isinstance(structured, dict) and is_wrapped else structured
    values = [_json(text) for text in texts]
    if is_wrapped and value is None:
        return True
    return value in (*texts, *values) or values == value or (is_wrapped and structured in values)


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def content_of(part: Mapping[str, Any]) -> Content:
    """Convert one content block; a block of an unknown type becomes its JSON text."""
    match part.get("type"):
        case "text":
            return Content.from_text(str(part.get("text", "")))
        case "image" | "audio":
            return Content.from_uri(_data_uri(str(part["data"]), part.get("mimeType")))
        case "resource_link":
            return Content.from_uri(
                str(part["uri"]),
                media_type=part.get("mimeType") or _BINARY,
                additional_properties=_facts(part, "name", "title", "description", "size"),
            )
        case "resource":
            resource = part["resource"]
            facts = _facts(resource, "uri", "mimeType")
            if "blob" in resource:
                data = _data_uri(str(resource["blob"]), resource.get("mimeType"))
                return Content.from_uri(data, additional_properties=facts)
            return Content.from_text(str(resource.get("text", "")), additional_properties=facts)
        case "tool_use":
            arguments = part.get("input") or {}
            return Content.from_function_call(str(part.get("id", "")), str(part.get("name", "")), arguments=arguments)
        case "tool_result":
            inner = contents_of(part.get("content") or ())
            return Content.from_function_result(str(part.get("toolUseId", "")), result=inner)
        case _:
            return Content.from_text(json.dumps(dict(part), ensure_ascii=False))


def part_of(content: Content) -> dict[str, Any] | None:
    """Convert a content to a content block; None if the protocol has no block for its type."""
    if content.type == "text":
        return {"type": "text", "text": content.text or ""}
    if content.type == "data" and content.uri:
        kind = (content.media_type or _BINARY).partition("/")[0]
        data = content.uri.partition(",")[2]
        if kind in ("image", "audio"):
            return {"type": kind, "data": data, "mimeType": content.media_type}
        resource = {"uri": content.uri, "blob": data, "mimeType": content.media_type}
        return {"type": "resource", "resource": resource}
    if content.type == "uri" and content.uri:
        link = {"type": "resource_link", "name": content.uri, "uri": content.uri}
        return {**link, "mimeType": content.media_type} if content.media_type else link
    return None


def prompt_text(messages: Iterable[Mapping[str, Any]]) -> str:
    """Return the messages of a prompt as text: a single message as it is, several as a JSON array."""
    contents = [content_of(message["content"]) for message in messages]
    texts = [content.text if content.type == "text" else content.uri or str(content) for content in contents]
    return str(texts[0]) if len(texts) == 1 else json.dumps(texts, ensure_ascii=False) if texts else ""


def _facts(part: Mapping[str, Any], *names: str) -> dict[str, Any]:
    return {name: part[name] for name in names if name in part}


def _data_uri(data: str, media_type: str | None) -> str:
    return data if data.startswith("data:") else f"data:{media_type or _BINARY};base64,{data}"
