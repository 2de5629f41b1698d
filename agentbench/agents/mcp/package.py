"""All imports of the package `mcp`, and the differences between its major versions 1 and 2.

Protocol objects are read and created as JSON, whose names both versions share: `wire(result)["isError"]`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from typing import Any

from agentbench._extras import require

_CONNECTION_CLOSED, _INVALID_REQUEST, _INTERNAL_ERROR = -32000, 32600, -32603
_PURPOSE = "talk to a server of the Model Context Protocol"


def module(name: str) -> Any:
    """Return a module of the package; raise MissingExtraError if the package is not installed."""
    return require(f"mcp.{name}", extra="mcp", purpose=_PURPOSE)


def _is_version_1() -> bool:
    return hasattr(module("client.session").ClientSession, "get_server_capabilities")


def wire(value: Any) -> dict[str, Any]:
    """Return the JSON of a protocol object."""
    fields: dict[str, Any] = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    return fields


def make(name: str, fields: Mapping[str, Any]) -> Any:
    """Create a protocol object of a type from its JSON fields."""
    return getattr(module("types"), name).model_validate(dict(fields))


def make_session(reading: Any, writing: Any, timeout_s: float | None, **callbacks: Any) -> Any:
    """Create a `ClientSession` on a read stream and a write stream."""
    timeout = timedelta(seconds=timeout_s) if timeout_s is not None and _is_version_1() else timeout_s
    return module("client.session").ClientSession(reading, writing, read_timeout_seconds=timeout, **callbacks)


async def capabilities(session: Any) -> dict[str, Any]:
    """Return the capabilities of a server; initialize the session if necessary."""
    if hasattr(session, "get_server_capabilities"):
        server_capabilities = session.get_server_capabilities()
    else:
        server_capabilities = session.server_capabilities
    if server_capabilities is None:
        server_capabilities = (await session.initialize()).capabilities
    return wire(server_capabilities)


def listing_problem(kind: str, listings: list[Any]) -> str | None:
    """Return why a page of a list is invalid; `None` if it is valid."""
    try:
        make(f"List{kind.capitalize()}Result", {kind: listings})
        if not _is_version_1():  # 2.x also validates against the protocol version
            methods = require("mcp_types.methods", extra="mcp", purpose=_PURPOSE)
            methods.validate_server_result(f"{kind}/list", "2025-11-25", {kind: listings})
    except ValueError as error:
        first = error.errors(include_url=False, include_context=False)[0]  # type: ignore[attr-defined]
        return f"{'.'.join(map(str, first['loc'][2:]))}: {first['msg']}"
    return None


def error_response(request_id: Any, error: Exception) -> Any:
    """Create an error response to one of our requests; the error itself becomes the `data` of the response."""
    types = module("types")
    data = {"code": _INTERNAL_ERROR, "message": str(error), "data": error}
    failed = types.JSONRPCError(jsonrpc="2.0", id=request_id, error=make("ErrorData", data))
    return types.JSONRPCMessage(failed) if isinstance(types.JSONRPCMessage, type) else failed


def as_received(message: Any) -> Any:
    """Wrap a protocol message the way a transport passes it to the session."""
    return module("shared.message").SessionMessage(message)


def parse_problem(error: Exception) -> tuple[str, str]:
    """Return why a line of a server cannot be parsed, and the line; two empty texts for other errors."""
    first = error.errors(include_url=False)[0] if hasattr(error, "errors") else {}
    line = first.get("input")
    return (first["msg"], line) if isinstance(line, str) else ("", "")


def error_data(error: BaseException) -> Any:
    """Return the data of an error of the protocol."""
    return getattr(getattr(error, "error", error), "data", None)


def uri_of(uri: str) -> Any:
    """Convert an address to the type that the session expects."""
    if not _is_version_1():
        return uri
    return require("pydantic", extra="mcp", purpose=_PURPOSE).AnyUrl(uri)


def notification_method(message: Any) -> str | None:
    """Return the method of a notification; None for other messages, such as stream errors."""
    method = getattr(getattr(message, "root", message), "method", None)
    return method if isinstance(method, str) and method.startswith("notifications/") else None


def protocol_error() -> type[Exception]:
    """Return the class of the errors that a server reports."""
    errors = module("shared.exceptions")
    error_class: type[Exception] = errors.McpError if hasattr(errors, "McpError") else errors.MCPError
    return error_class


def is_connection_lost(error: BaseException) -> bool:
    """Return whether an error means that the connection is lost or the server does not know the session."""
    anyio = require("anyio", extra="mcp", purpose=_PURPOSE)
    if isinstance(error, (anyio.ClosedResourceError, anyio.BrokenResourceError, anyio.EndOfStream, ConnectionError)):
        return True
    return _code(error) == _CONNECTION_CLOSED or is_session_unknown(error)


def is_session_unknown(error: BaseException) -> bool:
    """Return whether a server refused a request because it has ended the session or was restarted."""
    return abs(_code(error)) == _INVALID_REQUEST and "session" in str(error).lower()


def _code(error: BaseException) -> int:
    code = getattr(getattr(error, "error", error), "code", None)
    return code if isinstance(code, int) else 0


def new_http_client(on_lost: Callable[[], None]) -> Any:
    """Create an HTTP client with the HTTP package that the installed `mcp` uses. It follows redirects.

    Args:
        on_lost: Called when a request got no response or only part of one; without it, 1.x would wait forever.
    """
    transport = module("client.streamable_http")
    http: Any = getattr(transport, "httpx2", None) or transport.httpx

    class Client(http.AsyncClient):  # type: ignore[misc]
        async def send(self, request: Any, **options: Any) -> Any:
            try:
                response = await super().send(request, **options)
            except http.TransportError:
                on_lost()
                raise
            if request.method == "POST" and not response.is_stream_consumed:
                response.stream = Body(response.stream)
            return response

    class Body(http.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, stream: Any) -> None:
            self._stream = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            try:
                async for piece in self._stream:
                    yield piece
            except http.TransportError:
                on_lost()
                raise

        async def aclose(self) -> None:
            await self._stream.aclose()

    return Client(follow_redirects=True, timeout=http.Timeout(30, read=300))


@asynccontextmanager
async def websocket_streams(url: str, options: Mapping[str, Any]) -> AsyncIterator[tuple[Any, Any]]:
    """Open a WebSocket with one message in each text frame. 2.x has no such transport, and 1.x deprecates its own."""
    anyio = require("anyio", extra="mcp", purpose=_PURPOSE)
    websockets = require("websockets.asyncio.client", extra="mcp", purpose=_PURPOSE)
    types = module("types")
    adapter = getattr(types, "jsonrpc_message_adapter", None)
    read = (
        types.JSONRPCMessage.model_validate_json if adapter is None else partial(adapter.validate_json, by_name=False)
    )
    wrap = module("shared.message").SessionMessage
    incoming, reading = anyio.create_memory_object_stream(0)
    writing, outgoing = anyio.create_memory_object_stream(0)

    async def receive(socket: Any) -> None:
        async with incoming:
            async for text in socket:
                try:
                    message = wrap(read(text))
                except ValueError as error:
                    message = error
                await incoming.send(message)

    async def send(socket: Any) -> None:
        async for message in outgoing:
            await socket.send(message.message.model_dump_json(by_alias=True, exclude_unset=True))

    socket_opens = websockets.connect(url, subprotocols=["mcp"], **options)
    async with incoming, reading, writing, outgoing, socket_opens as socket, anyio.create_task_group() as tasks:
        tasks.start_soon(receive, socket)
        tasks.start_soon(send, socket)
        yield reading, writing
        tasks.cancel_scope.cancel()
