"""A server of the Model Context Protocol as tools: its connection, its lists, calls of its tools and prompts."""

from __future__ import annotations

import asyncio
import logging
import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from agentbench._bridge import await_on, home_loop, running_loop
from agentbench._display import Displayable, drawn_by
from agentbench.agents.mcp.connection import (
    Connection,
    ConnectionLostError,
    SessionOnLoop,
    WatchedStream,
    first_cause,
    opening,
)
from agentbench.agents.mcp.contents import contents_of, prompt_text
from agentbench.agents.mcp.listing import NEVER_SENT, Kind, Listed, function_of
from agentbench.agents.mcp.naming import (
    ApprovalMode,
    MCPSpecificApproval,
    approval_of,
    normalize_prefix,
    tool_name_of,
)
from agentbench.agents.mcp.package import (
    capabilities,
    is_connection_lost,
    is_session_unknown,
    make,
    make_session,
    notification_method,
    protocol_error,
    uri_of,
    wire,
)
from agentbench.agents.mcp.sampling import answer_sampling
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import MissingExtraError, NestedLoopError, ToolException, ToolExecutionException
from agentbench.messages.content.content import Content
from agentbench.observability import is_tracing

if TYPE_CHECKING:
    from typing_extensions import Self

logger = logging.getLogger("agentbench")

_METHOD_NOT_FOUND = -32601
_LEVELS = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "emergency": logging.CRITICAL,
}


@drawn_by("agentbench.notebook.cards.mcp:server_bundle")
class MCPTool(Displayable):
    """The base of connections to servers of the Model Context Protocol; a transport adds `get_mcp_client()`.

    The arguments, which are those of all transports, are documented at `MCPStdioTool`.
    """

    def __init__(  # noqa: PLR0913 - the public signature
        self,
        name: str,
        *,
        description: str | None = None,
        approval_mode: ApprovalMode | MCPSpecificApproval | None = None,
        allowed_tools: Collection[str] | None = None,
        tool_name_prefix: str | None = None,
        load_tools: bool = True,
        load_prompts: bool = True,
        parse_tool_results: Callable[[Any], str | list[Content]] | None = None,
        parse_prompt_results: Callable[[Any], str] | None = None,
        session: Any = None,
        request_timeout: float | None = None,
        client: Any = None,
        additional_properties: dict[str, Any] | None = None,
    ) -> None:
        if isinstance(approval_mode, str) and approval_mode not in ("always_require", "never_require"):
            msg = f"approval_mode is {approval_mode!r}; expected 'always_require', 'never_require', or names by mode."
            raise ValueError(msg)
        if isinstance(allowed_tools, str):
            msg = f"allowed_tools is {allowed_tools!r}; expected a collection of names: [{allowed_tools!r}]."
            raise TypeError(msg)
        self.name, self.description = name, description or ""
        self.approval_mode, self.allowed_tools = approval_mode, allowed_tools
        self.tool_name_prefix = normalize_prefix(tool_name_prefix)
        self.load_tools_flag, self.load_prompts_flag = load_tools, load_prompts
        self.parse_tool_results, self.parse_prompt_results = parse_tool_results, parse_prompt_results
        self.request_timeout, self.client = request_timeout, client
        self.additional_properties = additional_properties
        self._given_session = session
        self._loop_of_session = session.loop if type(session) is SessionOnLoop else running_loop()
        self._connection: Connection | None = None
        self._capabilities: dict[str, Any] = {}
        self._lists: dict[Kind, dict[str, Listed]] = {"tools": {}, "prompts": {}}
        self._reloads: dict[Kind, asyncio.Task[None]] = {}
        self._has_ping = True
        self._locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()

    # ------------------------------------------------------------------------------------------------------ connection

    def get_mcp_client(self) -> AbstractAsyncContextManager[Any]:
        """Return what opens the transport: a context manager of a stream to read and a stream to write."""
        raise NotImplementedError

    @property
    def address(self) -> str:
        """Where the server is, without secrets, for errors and displays."""
        return self.name

    @property
    def is_connected(self) -> bool:
        """Whether there is an open session."""
        return self._connection is not None and self._connection.is_open

    def _is_reachable(self) -> bool:
        return self._connection is not None and self._connection.is_reachable

    @property
    def session(self) -> Any:
        """The `ClientSession`, for use on any event loop; None when not connected."""
        return None if self._connection is None else self._connection.session

    async def connect(self, *, reset: bool = False) -> None:
        """Open the connection and load the lists; nothing happens if it is open.

        Args:
            reset: Close it first, if it is open.

        Raises:
            ToolExecutionException: The server cannot be reached, or does not speak the protocol.
            MissingExtraError: A package of the extra `mcp` is missing.
        """
        await await_on(self._loop(), self._connect(reset=reset))

    async def _connect(self, *, reset: bool) -> None:
        async with self._lock():
            if self._is_reachable() and not reset:
                return
            await self._open()
            try:
                for kind in self._kinds():
                    await self._load(kind)
            except BaseException as error:
                await self._shut()
                if isinstance(error, Exception) and not isinstance(error, ToolException):
                    raise self._failure("listing", error) from error
                raise

    async def close(self) -> None:
        """Close the connection, if there is one. A later call of a function opens it again."""
        await await_on(self._loop(), self._close())

    async def _close(self) -> None:
        async with self._lock():
            await self._shut()

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _loop(self) -> asyncio.AbstractEventLoop:
        """Return the loop on which the connection lives: that of the session that was passed, else the engine's."""
        if self._given_session is None:
            return home_loop()
        self._loop_of_session = self._loop_of_session or asyncio.get_running_loop()
        return self._loop_of_session

    def _lock(self) -> asyncio.Lock:
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    async def _shut(self) -> None:
        for task in self._reloads.values():
            if task is not asyncio.current_task() and not task.get_loop().is_closed():
                task.get_loop().call_soon_threadsafe(task.cancel)
        self._reloads.clear()
        connection, self._connection = self._connection, None
        if connection is not None:
            await connection.close()

    async def _open(self) -> None:
        await self._shut()
        connection = Connection()
        try:
            await connection.open(self._open_session)
        except (ToolException, MissingExtraError):
            raise
        except Exception as error:
            raise self._failure("connecting", error) from error
        self._connection = connection
        level = logger.level
        if level and "logging" in self._capabilities:
            name = next((name for name, number in _LEVELS.items() if number >= level), "emergency")
            try:
                with warnings.catch_warnings():  # the protocol gives logs up, in years
                    warnings.simplefilter("ignore")
                    request = connection.session.set_logging_level(name)
                await connection.run(lambda: request)
            except Exception:
                logger.warning("The server %s does not take the log level %r.", self.name, name, exc_info=True)

    async def _open_session(self, stack: AsyncExitStack) -> Any:
        session = self._given_session
        if session is None:
            reading, writing, *_ = await stack.enter_async_context(self.get_mcp_client())
            callbacks: dict[str, Any] = {
                "logging_callback": self.logging_callback, "message_handler": self.message_handler,
            }  # fmt: skip
            if self.client is not None:
                callbacks["sampling_callback"] = self.sampling_callback
                callbacks["sampling_capabilities"] = make("SamplingCapability", {"tools": {}})
            watched = WatchedStream(reading, opening.get().end)
            session = await stack.enter_async_context(make_session(watched, writing, self.request_timeout, **callbacks))
        self._capabilities = await capabilities(session)
        return session

    def _failure(self, doing: str, error: BaseException) -> ToolExecutionException:
        cause = first_cause(error)
        text = str(cause) or type(cause).__name__
        message = f"The MCP server {self.name!r} ({self.address}) failed while {doing}: {text}"
        return ToolExecutionException(message, inner_exception=error if isinstance(error, Exception) else None)

    # ------------------------------------------------------------------------------------------------------------ lists

    @property
    def functions(self) -> list[FunctionTool]:
        """The tools and prompts of the server that `allowed_tools` allows, as functions."""
        listed = [each for found in self._lists.values() for each in found.values()]
        allowed = self.allowed_tools
        return [each.function for each in listed if allowed is None or each.name.is_in(allowed)]

    async def load_tools(self) -> None:
        """Load the list of tools again: new, changed and removed ones; those that stay are the same objects."""
        await self._reload("tools")

    async def load_prompts(self) -> None:
        """Load the list of prompts again."""
        await self._reload("prompts")

    def _kinds(self) -> list[Kind]:
        wanted: dict[Kind, bool] = {"tools": self.load_tools_flag, "prompts": self.load_prompts_flag}
        return [kind for kind, is_wanted in wanted.items() if is_wanted and self._capabilities.get(kind) is not None]

    async def _reload(self, kind: Kind) -> None:
        if not self.is_connected:
            await self.connect()
        else:
            await await_on(self._loop(), self._reload_here(kind))

    async def _reload_here(self, kind: Kind) -> None:
        if self._has_ping:
            try:
                await self._in_session(lambda session: session.send_ping())
            except Exception as error:  # noqa: BLE001 - a new connection shows whether it is serious
                if getattr(getattr(error, "error", error), "code", None) == _METHOD_NOT_FOUND:
                    self._has_ping = False
                else:
                    async with self._lock():
                        await self._open()
        await self._load(kind)

    async def _load(self, kind: Kind) -> None:
        known = self._lists[kind]
        found: dict[str, Listed] = {}
        taken: set[str] = set()
        async for listing in self._pages(kind):
            name = tool_name_of(str(listing["name"]), self.tool_name_prefix)
            if name.exposed in taken:
                logger.warning(
                    "The server %s has two %s named %r; only the first is used.", self.name, kind, name.exposed
                )
                continue
            taken.add(name.exposed)
            before = known.get(name.original)
            try:
                unchanged = before is not None and before.listing == listing
                if not (before and unchanged):
                    mode = approval_of(name, self.approval_mode)
                    before = Listed(name, listing, function_of(kind, name, listing, mode, self._answer))
                found[name.original] = before
            except (TypeError, ValueError):
                logger.warning(
                    "The server %s lists %r in a form that cannot be used.", self.name, name.original, exc_info=True
                )
        self._lists[kind] = found

    async def list_resources(self) -> list[dict[str, Any]]:
        """Return the resources of the server as it lists them: `uri`, `name`, `description`, `mimeType`; maybe none."""
        if self._capabilities.get("resources") is None:
            return []
        return [listing async for listing in self._pages("resources")]

    async def read_resource(self, uri: str) -> str:
        """Return a resource of the server as text.

        Args:
            uri: Its address.

        Raises:
            ToolExecutionException: The server refuses, or the connection was lost.
            ValueError: It is no text.
        """
        result = await self._request(
            f"reading {uri!r}", lambda session: session.read_resource(uri_of(uri)), {}, may_repeat=True
        )
        parts = wire(result)["contents"]
        if any("text" not in part for part in parts):
            msg = f"{uri!r} of the server {self.name!r} is no text."
            raise ValueError(msg)
        return "\n".join(part["text"] for part in parts)

    async def _pages(self, kind: Kind | Literal["resources"]) -> AsyncIterator[dict[str, Any]]:
        cursors: set[str | None] = set()
        cursor: str | None = None
        while cursor not in cursors:  # else a server leads round in a circle
            cursors.add(cursor)
            params = make("PaginatedRequestParams", {"cursor": cursor}) if cursor else None
            page = wire(await self._in_session(lambda session: getattr(session, f"list_{kind}")(params=params)))  # noqa: B023
            for listing in page.get(kind) or ():
                yield listing
            cursor = page.get("nextCursor")
            if cursor is None:
                return
        logger.warning("The server %s lists its %s in a circle; the rest is left out.", self.name, kind)

    # ------------------------------------------------------------------------------------------------------------ calls

    async def _answer(
        self, kind: Kind, name: str, arguments: dict[str, Any], runtime: Mapping[str, Any]
    ) -> str | list[Content]:
        """Call a function of the server with arguments of the model, and the keyword arguments of the run at hand."""
        return await (self._prompt if kind == "prompts" else self._call)(name, arguments, runtime)

    async def call_tool(self, tool_name: str, **kwargs: Any) -> str | list[Content]:
        """Call a tool of the server.

        Args:
            tool_name: Its name on the server.
            **kwargs: Its arguments. Names that belong to runs of agents are sent only if the tool declares them.

        Returns:
            What `parse_tool_results` returns, else contents.

        Raises:
            ToolExecutionException: The tool failed, the connection was lost, or tools are not loaded.
        """
        if not self.load_tools_flag:
            msg = f"{self.name!r} was made with load_tools=False, so that its tools cannot be called."
            raise ToolExecutionException(msg)
        listed = self._lists["tools"].get(tool_name)
        declared = (listed.listing.get("inputSchema") or {}).get("properties", {}) if listed else {}
        arguments = {key: value for key, value in kwargs.items() if key not in NEVER_SENT or key in declared}
        return await self._call(tool_name, arguments, kwargs)

    async def get_prompt(self, prompt_name: str, **kwargs: Any) -> str:
        """Return a prompt of the server.

        Args:
            prompt_name: Its name on the server.
            **kwargs: Its arguments.

        Raises:
            ToolExecutionException: The server refuses, the connection was lost, or prompts are not loaded.
        """
        if not self.load_prompts_flag:
            msg = f"{self.name!r} was made with load_prompts=False, so that its prompts cannot be used."
            raise ToolExecutionException(msg)
        return await self._prompt(prompt_name, kwargs, kwargs)

    async def _call(self, name: str, arguments: dict[str, Any], runtime: Mapping[str, Any]) -> str | list[Content]:
        listed = self._lists["tools"].get(name)
        listing = listed.listing if listed else {}
        notes = listing.get("annotations") or {}
        meta = {**(listing.get("_meta") or {}), **_trace_headers(listing.get("_meta") or {})}

        def send(session: Any) -> Awaitable[Any]:
            progress = partial(self.progress_callback, name)
            return session.call_tool(name, arguments, progress_callback=progress, meta=meta or None)  # type: ignore[no-any-return]

        result = await self._request(
            f"calling the tool {name!r}",
            send,
            runtime,
            may_repeat=bool(notes.get("readOnlyHint") or notes.get("idempotentHint")),
        )
        plain = wire(result)
        if plain.get("isError"):
            texts = [str(part.get("text", "")) for part in plain.get("content") or () if part.get("type") == "text"]
            raise ToolExecutionException("\n".join(texts) or f"The tool {name!r} failed, and does not say why.")
        parse = self.parse_tool_results
        return contents_of(plain.get("content") or ()) if parse is None else parse(result)

    async def _prompt(self, name: str, arguments: Mapping[str, Any], runtime: Mapping[str, Any]) -> str:
        given = {key: str(value) for key, value in arguments.items()}

        def send(session: Any) -> Awaitable[Any]:
            return session.get_prompt(name, given)  # type: ignore[no-any-return]

        result = await self._request(f"getting the prompt {name!r}", send, runtime, may_repeat=True)
        parse = self.parse_prompt_results
        return prompt_text(wire(result)["messages"]) if parse is None else parse(result)

    async def _request(
        self,
        doing: str,
        send: Callable[[Any], Awaitable[Any]],
        runtime: Mapping[str, Any],
        *,
        may_repeat: bool,
    ) -> Any:
        """Send a request; if the connection is lost before the server can have acted, connect again and repeat it."""
        try:
            if not self._is_reachable():
                await self.connect()
            connection = self._connection
            try:
                return await self._in_session(send, runtime)
            except Exception as error:
                was_sent = isinstance(error, (ConnectionLostError, protocol_error())) and not is_session_unknown(error)
                if not is_connection_lost(error) or (was_sent and not may_repeat):
                    raise
                logger.info("The connection to the MCP server %s was lost; it is opened again.", self.name)
                await await_on(self._loop(), self._reopen(connection))
                return await self._in_session(send, runtime)
        except (ToolException, MissingExtraError, NestedLoopError):
            raise
        except Exception as error:
            if isinstance(error, protocol_error()) and not is_connection_lost(error):
                raise ToolExecutionException(str(error), inner_exception=error) from error
            raise self._failure(doing, error) from error

    async def _reopen(self, lost: Connection | None) -> None:
        async with self._lock():
            if self._connection is lost or not self._is_reachable():
                await self._open()

    async def _in_session(self, send: Callable[[Any], Awaitable[Any]], runtime: Mapping[str, Any] | None = None) -> Any:
        """Send a request in the event loop of the connection; a transport may look at the arguments of the run."""
        connection = self._connection
        if connection is None or not connection.is_reachable:
            msg = f"The MCP server {self.name!r} is not connected. Expected connect() before, or a call of a function."
            raise ToolExecutionException(msg)
        session = connection.session
        return await connection.run(lambda: send(session))

    # ------------------------------------------------------------------------------------------- what the server begins

    async def sampling_callback(self, context: Any, params: Any) -> Any:
        """Let `client` answer a server that asks the model.

        Args:
            context: The context of the request.
            params: Its parameters: messages and options.
        """
        return await answer_sampling(self.client, params)

    async def logging_callback(self, params: Any) -> None:
        """Log a message of the server.

        Args:
            params: Its level, its logger and its data.
        """
        found = wire(params)
        logger.log(_LEVELS.get(found.get("level", ""), logging.INFO), "%s: %s", self.name, found.get("data"))

    async def progress_callback(
        self, tool_name: str, progress: float, total: float | None, message: str | None
    ) -> None:
        """Log how far a call is.

        Args:
            tool_name: The tool that runs.
            progress: How much is done.
            total: Of how much, if that is known.
            message: What it does.
        """
        share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        logger.info("%s, %s: %s%s", self.name, tool_name, share, f", {message}" if message else "")

    async def message_handler(self, message: Any) -> None:
        """Take what the server sends by itself: a changed list is loaded again, in the background.

        Args:
            message: A notification, a request, or an error of the stream.
        """
        method = notification_method(message)
        for kind in self._kinds():
            if method == f"notifications/{kind}/list_changed":
                if (before := self._reloads.get(kind)) is not None:
                    before.cancel()
                self._reloads[kind] = asyncio.ensure_future(self._reload_quietly(kind))

    async def _reload_quietly(self, kind: Kind) -> None:
        try:
            await self._reload(kind)
        except Exception:
            logger.warning("The changed list of %s of the server %s cannot be loaded.", kind, self.name, exc_info=True)

    def __repr__(self) -> str:
        state = f"{len(self.functions)} functions" if self.is_connected else "not connected"
        return f"{type(self).__name__}({self.name!r}, {self.address}, {state})"


def _trace_headers(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return the W3C headers of the current span that the metadata does not have yet."""
    if not is_tracing():
        return {}
    found: dict[str, str] = {}
    with suppress(ImportError):
        from opentelemetry import propagate

        propagate.inject(found)
    return {name: value for name, value in found.items() if name not in meta}
