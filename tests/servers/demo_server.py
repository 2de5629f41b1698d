"""A server of the Model Context Protocol for tests: `python demo_server.py stdio`, or `http PORT`, or `websocket PORT`.

It works with both majors of the package `mcp`, and imports nothing else of this project.
"""

# mypy: ignore-errors

from __future__ import annotations

import os
import sys
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp import types
from pydantic import BaseModel

try:
    from mcp.server.mcpserver import Context, Image
    from mcp.server.mcpserver import MCPServer as Server
    from mcp.server.mcpserver.exceptions import ToolError
except ImportError:  # 1.x
    from mcp.server.fastmcp import Context, Image
    from mcp.server.fastmcp import FastMCP as Server
    from mcp.server.fastmcp.exceptions import ToolError

PNG = b"\x89PNG\r\n\x1a\n"

server: Any = Server("demo", instructions="For tests.", log_level="ERROR")


def send(model: Any, **fields: Any) -> Any:
    """Make a protocol object by its names on the wire, which both majors share."""
    return model.model_validate(fields)


@server.tool(annotations=send(types.ToolAnnotations, readOnlyHint=True))
def add(a: int, b: int = 1) -> int:
    """Add two numbers."""
    return a + b


@server.tool()
def fail(text: str) -> str:
    """Raise an error."""
    raise ToolError(text)


@server.tool(name="odd name/here")
def odd() -> str:
    """Have a name that no model takes."""
    return "odd"


@server.tool()
def nothing() -> None:
    """Take nothing and return nothing."""


@server.tool()
def picture() -> Any:
    """Return a picture."""
    return Image(data=PNG, format="png")


@server.tool()
def everything() -> Any:
    """Return every kind of content."""
    text = {"uri": "demo://a", "mimeType": "text/plain", "text": "inside"}
    blob = {"uri": "demo://b", "blob": "AAEC"}
    return [
        send(types.TextContent, type="text", text="one"),
        send(types.AudioContent, type="audio", data="AAEC", mimeType="audio/wav"),
        send(types.ResourceLink, type="resource_link", name="a", uri="demo://a", mimeType="text/plain"),
        send(types.EmbeddedResource, type="resource", resource=text),
        send(types.EmbeddedResource, type="resource", resource=blob),
    ]


@server.tool()
def arguments(token: str = "", city: str = "") -> str:
    """Return what it was given."""
    return f"token={token} city={city}"


@server.tool()
def header(ctx: Context) -> str:
    """Return the header X-Who of the request."""
    return str(ctx.request_context.request.headers.get("x-who"))


@server.tool()
def meta(ctx: Context) -> str:
    """Return the names in the metadata of the request."""
    given = ctx.request_context.meta
    found = given if isinstance(given, dict) or given is None else given.model_dump(exclude_none=True)
    return ",".join(sorted(found or {}))


@server.tool()
def environment(name: str) -> str:
    """Return an environment variable of the server."""
    return os.environ.get(name, "")


@server.tool()
async def sleep(seconds: float) -> str:
    """Take a while."""
    await anyio.sleep(seconds)
    return "awake"


@server.tool()
async def progress(steps: int, ctx: Context) -> str:
    """Report how far it is."""
    for step in range(steps):
        await ctx.report_progress(step + 1, steps, f"step {step + 1}")
    return "done"


@server.tool()
async def log(level: str, text: str, ctx: Context) -> str:
    """Send a message to the log of the client."""
    await ctx.session.send_log_message(level=level, data=text, related_request_id=ctx.request_id)
    return "logged"


@server.tool()
async def ask(question: str, ctx: Context) -> str:
    """Ask the model of the client."""
    message = {"role": "user", "content": {"type": "text", "text": question}}
    answer = await ctx.session.create_message(
        messages=[send(types.SamplingMessage, **message)],
        max_tokens=20,
        system_prompt="Be brief.",
        temperature=0.5,
        stop_sequences=["END"],
        related_request_id=ctx.request_id,
    )
    return f"{answer.role} {answer.model}: {answer.content.text}"


class Day(BaseModel):
    day: str


@server.tool()
async def choose(ctx: Context) -> str:
    """Ask a person."""
    answer = await ctx.elicit("Which day?", Day)
    return f"{answer.action}: {answer.data.day if answer.action == 'accept' else ''}"


def _more(size: int = 1) -> str:
    """Be there only later."""
    return "more" * size


def _more_with_units(size: int, unit: str) -> str:
    """Be another one."""
    return f"{size} {unit}"


@server.tool()
async def change(kind: str, ctx: Context) -> str:
    """Add, replace or remove the tool `more`, and tell the client."""
    if kind in ("remove", "replace"):
        server.remove_tool("more")
    if kind in ("add", "replace"):
        server.add_tool(_more if kind == "add" else _more_with_units, name="more")
    await ctx.session.send_tool_list_changed()
    return kind


@server.tool()
def die() -> str:
    """End the process of the server."""
    os._exit(3)


@server.prompt()
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Say hello to {name}."


@server.resource("demo://a", mime_type="text/plain")
def note() -> str:
    """A note."""
    return "inside"


SKILL = "---\nname: tides\ndescription: About tides.\n---\nRead table.csv.\n"


@server.resource("skill://tides/SKILL.md", mime_type="text/markdown")
def tides() -> str:
    return SKILL


@server.resource("skill://tides/table.csv", mime_type="text/csv", description="High water.")
def table() -> str:
    return "Bergen,12:00"


@server.resource("skill://broken/SKILL.md", mime_type="text/markdown")
def broken() -> str:
    return "no front matter"


@server.resource("skill://picture/SKILL.md", mime_type="image/png")
def no_text() -> bytes:
    return PNG


@asynccontextmanager
async def _streams(websocket: Any) -> Any:
    """Yield the two streams of a server on a WebSocket."""
    from mcp.shared.message import SessionMessage

    adapter = getattr(types, "jsonrpc_message_adapter", None)
    read = adapter.validate_json if adapter else types.JSONRPCMessage.model_validate_json
    incoming, received = anyio.create_memory_object_stream(0)
    outgoing, to_send = anyio.create_memory_object_stream(0)

    async def take() -> None:
        async with incoming:
            async for text in websocket:
                await incoming.send(SessionMessage(read(text)))

    async def give() -> None:
        async for message in to_send:
            await websocket.send(message.message.model_dump_json(by_alias=True, exclude_none=True))

    async with anyio.create_task_group() as tasks:
        tasks.start_soon(take)
        tasks.start_soon(give)
        yield received, outgoing
        tasks.cancel_scope.cancel()


async def _serve_websocket(port: int) -> None:
    from websockets.asyncio.server import serve

    lowlevel = getattr(server, "_lowlevel_server", None) or server._mcp_server

    async def handle(websocket: Any) -> None:
        async with _streams(websocket) as (reading, writing):
            await lowlevel.run(reading, writing, lowlevel.create_initialization_options())

    async with serve(handle, "127.0.0.1", port, subprotocols=["mcp"]):
        await anyio.sleep_forever()


def main() -> None:
    kind, *rest = sys.argv[1:]
    if kind == "stdio":
        server.run(transport="stdio")
    elif kind == "websocket":
        anyio.run(_serve_websocket, int(rest[0]))
    elif hasattr(server.settings, "port"):  # 1.x
        server.settings.port = int(rest[0])
        server.run(transport="streamable-http")
    else:
        server.run(transport="streamable-http", port=int(rest[0]))


if __name__ == "__main__":
    main()
