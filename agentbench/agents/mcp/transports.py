"""The transports: a child process (stdio), streamable HTTP, and a WebSocket."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from contextvars import ContextVar
from typing import Any
from urllib.parse import urlsplit

from agentbench._extras import NO_PROCESSES, not_in_browser
from agentbench._secrets import is_secret_name, mask_text
from agentbench.agents.mcp.connection import opening
from agentbench.agents.mcp.package import module, new_http_client, websocket_streams
from agentbench.agents.mcp.tool import MCPTool

_LONGEST_ADDRESS = 200


class MCPStdioTool(MCPTool):
    """A Model Context Protocol server that runs as a child process.

    An agent connects to the server on its first run and closes the connection when the agent is closed. The connection
    uses the engine's event loop, so it can be opened with `await` in one cell and used through `run_sync` or a stepper
    in another. Result parsers run on the caller's event loop. `client` and the callbacks for requests of the server run
    on the engine's event loop.

    Args:
        name: The name of the server in errors and logs.
        command: The program to start.
        args: The arguments of the program.
        env: Environment variables, in addition to the few that every server gets.
        encoding: The encoding of the server's output; by default UTF-8.
        errlog: The file for the server's error output; by default this process's own error output.
        **kwargs: `cwd` and `encoding_error_handler` of the process, and these arguments, which every transport has:

            - `description`: A description of the server.
            - `approval_mode`: `always_require`, `never_require`, or an `MCPSpecificApproval`.
            - `allowed_tools`: The names of the tools and prompts to expose; `None` exposes all, an empty list none.
            - `tool_name_prefix`: A prefix for each name, joined with `_`, so that two servers can have tools with the
              same name.
            - `load_tools`, `load_prompts`: Whether the tools and prompts become functions; both are true by default.
            - `parse_tool_results`: Converts a `CallToolResult` to text or contents.
            - `parse_prompt_results`: Converts a `GetPromptResult` to text.
            - `request_timeout`: The maximum seconds for an answer; by default there is no limit.
            - `session`: An open `ClientSession` to use instead of starting a server. It stays on the event loop that
              runs when the tool is created.
            - `runtime_arguments`: The names of the keyword arguments of a run (`function_invocation_kwargs`) that are
              sent to tools whose schema declares them. The model does not see these arguments, and no other arguments
              of the run are sent.
            - `client`: The chat client that answers the server's requests to a model (sampling).
            - `sampling_approval_callback`: Called with the parameters of each such request; may be async. The request
              is sent to the model only if it returns `True`; without a callback every request is denied.
            - `elicitation_callback`: Called with the parameters of a question to a person; may be async. It returns the
              answer as a mapping of fields, or `None` to decline. Without a callback, the agent's run ends with a
              request to a person. Answer it with `request.to_function_approval_response(True, arguments={...})`, or
              pass `False` to decline. The tool is then called again, and the server gets the answer when it repeats
              its question.
            - `limits`: New values for limits on what the server may send, by name. The attribute `limits` of the tool
              lists all of them.
            - `max_host_payload_size_bytes`: A new value for the limit of the same name.
            - `use_progressive_disclosure`: Whether the model gets only one tool, which finds the others and offers them
              for the rest of the run. This keeps the descriptions of a server with many tools out of the context.
            - `additional_properties`: Values that the application wants to store with the tool.

    Raises:
        ValueError: `approval_mode` or the name of a limit is unknown, or a limit is not positive.
        TypeError: `allowed_tools` or `runtime_arguments` is a string instead of a collection.
        NotInBrowserError: This Python runs in a browser.

    Example:
        async with MCPStdioTool("files", sys.executable, args=["server.py"], tool_name_prefix="fs") as files:
            agent = Agent(client, tools=files)
            print(await agent.run("List the notebooks."))
    """

    def __init__(
        self,
        name: str,
        command: str,
        *,
        args: Sequence[str] | None = None,
        env: Mapping[str, str] | None = None,
        encoding: str | None = None,
        errlog: Any = None,
        **kwargs: Any,
    ) -> None:
        instead = "Use MCPStreamableHTTPTool with the address of a server that allows requests from pages (CORS)."
        not_in_browser("MCP servers over stdio", reason=NO_PROCESSES, instead=instead)
        process = {key: kwargs.pop(key) for key in ("cwd", "encoding_error_handler") if key in kwargs}
        super().__init__(name, **kwargs)
        self.command, self.args, self.env = command, list(args or ()), None if env is None else dict(env)
        self.encoding, self._ab_errlog, self._ab_process = encoding, errlog, process

    @property
    def address(self) -> str:
        """The command line, with secrets masked, cut if it is long."""
        line = self.whole_address
        return line if len(line) <= _LONGEST_ADDRESS else f"{line[:_LONGEST_ADDRESS]}…"

    @property
    def whole_address(self) -> str:
        """The command line, with secrets masked."""
        words, hides_next = [], False
        for word in (self.command, *self.args):
            option, equals, _ = word.partition("=")
            is_secret = word.startswith("-") and is_secret_name(option)
            words.append(f"{option}=***" if is_secret and equals else "***" if hides_next else mask_text(word))
            hides_next = is_secret and not equals
        return " ".join(" ".join(words).split())

    def get_mcp_client(self) -> AbstractAsyncContextManager[Any]:
        """Return a context manager that starts the process."""
        stdio = module("client.stdio")
        encoding = {} if self.encoding is None else {"encoding": self.encoding}
        parameters = stdio.StdioServerParameters(
            command=self.command, args=self.args, env=self.env, **encoding, **self._ab_process
        )
        return self._ab_start_process(stdio, parameters)

    @asynccontextmanager
    async def _ab_start_process(self, stdio: Any, parameters: Any) -> AsyncIterator[Any]:
        with nullcontext(self._ab_errlog) if self._ab_errlog is not None else _error_file() as errors:
            async with stdio.stdio_client(parameters, errlog=errors) as streams:
                yield streams


def _error_file() -> Any:
    """Return a context manager of the file for errors: `sys.stderr`, or the null device if that has no file number.

    In a notebook, `sys.stderr` is not a real file.
    """
    try:
        sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):
        return open(os.devnull, "w")
    return nullcontext(sys.stderr)


_headers: ContextVar[Mapping[str, str] | None] = ContextVar("agentbench_mcp_headers", default=None)


class MCPStreamableHTTPTool(MCPTool):
    """A Model Context Protocol server that is reached by streamable HTTP.

    Args:
        name: The name of the server in errors and logs.
        url: The address of the server.
        terminate_on_close: Whether closing the connection ends the session on the server; true by default.
        http_client: An HTTP client of the package that `mcp` uses, with headers or credentials for each request. It is
            used on the engine's event loop, so it must not have been used on another one.
        header_provider: Called for each tool call with the keyword arguments of the run. The headers that it returns
            are added to the requests of that call.
        **kwargs: The arguments that every transport has; `MCPStdioTool` documents them.

    Raises:
        ValueError: `approval_mode` is unknown.
        TypeError: `allowed_tools` is a string instead of a collection.

    Example:
        docs = MCPStreamableHTTPTool(
            "docs",
            "https://example.com/mcp",
            header_provider=lambda run: {"Authorization": f"Bearer {run['token']}"},
        )
        agent = Agent(client, tools=docs)
        await agent.run("Look it up.", function_invocation_kwargs={"token": token})
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        terminate_on_close: bool | None = None,
        http_client: Any = None,
        header_provider: Callable[[dict[str, Any]], Mapping[str, str]] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(name, **_common_arguments(kwargs))
        self.url, self.terminate_on_close = url, terminate_on_close
        self.http_client, self.header_provider = http_client, header_provider
        self._ab_headers_of: dict[Any, Mapping[str, str]] = {}

    @property
    def address(self) -> str:
        """The address, without credentials and query."""
        return _plain_address(self.url)

    @property
    def whole_address(self) -> str:
        """The address, with secrets masked."""
        return mask_text(self.url)

    def get_mcp_client(self) -> AbstractAsyncContextManager[Any]:
        """Return a context manager that opens the transport."""
        return self._ab_open_transport(module("client.streamable_http").streamable_http_client)

    @asynccontextmanager
    async def _ab_open_transport(self, open_transport: Callable[..., Any]) -> AsyncIterator[Any]:
        client = self.http_client
        async with new_http_client(opening.get().end) if client is None else nullcontext(client) as client:
            hooks = client.event_hooks["request"]
            if self.header_provider is not None and self._ab_add_headers not in hooks:
                client.event_hooks = {**client.event_hooks, "request": [*hooks, self._ab_add_headers]}
            terminate = self.terminate_on_close is not False
            async with open_transport(self.url, http_client=client, terminate_on_close=terminate) as streams:
                reading, writing, *_ = streams
                yield reading, _HeaderStream(writing, self._ab_headers_of)

    async def _ab_in_session(
        self, send: Callable[[Any], Awaitable[Any]], runtime: Mapping[str, Any] | None = None
    ) -> Any:
        if self.header_provider is None or runtime is None:
            return await super()._ab_in_session(send, runtime)
        token = _headers.set(headers := _CallHeaders(self.header_provider(dict(runtime))))
        try:
            return await super()._ab_in_session(send, runtime)
        finally:
            _headers.reset(token)
            self._ab_headers_of.pop(headers.request_id, None)

    async def _ab_add_headers(self, request: Any) -> None:
        """Add the headers of a call to its request, and remove them if the request is redirected to another host."""
        if request.method != "POST" or not self._ab_headers_of:
            return
        headers = self._ab_headers_of.get(_request_id(request.content))
        if headers is None:
            return
        ours = urlsplit(self.url)
        if (request.url.scheme, request.url.netloc.decode()) == (ours.scheme, ours.netloc.rpartition("@")[2]):
            request.headers.update(headers)
        else:
            for name in headers:
                request.headers.pop(name, None)


class _CallHeaders(dict[str, str]):
    """The headers of one call, and the id of its request."""

    request_id: Any = None


class _HeaderStream:
    """A write stream that records the headers of each request. This works because the task of the call writes to it."""

    def __init__(self, stream: Any, headers_of: dict[Any, Mapping[str, str]]) -> None:
        self._stream, self._headers_of = stream, headers_of

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    async def send(self, message: Any) -> None:
        headers = _headers.get()
        request_id = getattr(getattr(message.message, "root", message.message), "id", None)
        if isinstance(headers, _CallHeaders) and request_id is not None and headers.request_id is None:
            headers.request_id = request_id
            self._headers_of[request_id] = headers
        await self._stream.send(message)

    async def __aenter__(self) -> Any:
        return await self._stream.__aenter__()

    async def __aexit__(self, *error: Any) -> Any:
        return await self._stream.__aexit__(*error)


def _request_id(body: bytes) -> Any:
    try:
        message = json.loads(body)
    except ValueError:
        return None
    return message.get("id") if isinstance(message, dict) else None


class MCPWebsocketTool(MCPTool):
    """A Model Context Protocol server that is reached by a WebSocket.

    The protocol no longer includes this transport; use it for servers that still offer it.

    Args:
        name: The name of the server in errors and logs.
        url: The address of the server, which begins with `ws://` or `wss://`.
        **kwargs: The arguments that every transport has, which `MCPStdioTool` documents. Others go to the WebSocket.

    Raises:
        ValueError: `approval_mode` is unknown.
        TypeError: `allowed_tools` is a string instead of a collection.

    Example:
        async with MCPWebsocketTool("docs", "ws://127.0.0.1:8080") as docs:
            print(docs.functions)
    """

    def __init__(self, name: str, url: str, **kwargs: Any) -> None:
        common = _common_arguments(kwargs)
        super().__init__(name, **common)
        self.url = url
        self._ab_options = {key: value for key, value in kwargs.items() if key not in common}

    @property
    def address(self) -> str:
        """The address, without credentials and query."""
        return _plain_address(self.url)

    @property
    def whole_address(self) -> str:
        """The address, with secrets masked."""
        return mask_text(self.url)

    def get_mcp_client(self) -> AbstractAsyncContextManager[Any]:
        """Return a context manager that opens the WebSocket."""
        return websocket_streams(self.url, self._ab_options)


_COMMON = frozenset(MCPTool.__init__.__annotations__) - {"name", "return"}


def _common_arguments(kwargs: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in kwargs.items() if key in _COMMON}


def _plain_address(url: str) -> str:
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"
