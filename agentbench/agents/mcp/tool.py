"""`MCPTool`: the tools and prompts of a Model Context Protocol server as functions for an agent."""

from __future__ import annotations

import asyncio
import logging
import warnings
import weakref
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from functools import partial
from math import inf
from typing import Any, Literal, Self

from agentbench._bridge import await_on, home_loop, running_loop
from agentbench._display import Displayable, drawn_by
from agentbench._limits import require_seconds
from agentbench.agents.mcp.connection import (
    Connection,
    ConnectionLostError,
    SessionOnLoop,
    first_cause,
    opening,
)
from agentbench.agents.mcp.contents import contents_of_result, prompt_text
from agentbench.agents.mcp.finder import tool_finder
from agentbench.agents.mcp.inbound import CheckedStream, Elicitation, Sampling, ServerLog, level_name
from agentbench.agents.mcp.limits import MCPLimits
from agentbench.agents.mcp.listing import (
    NEVER_SENT,
    ApprovalMode,
    Kind,
    Listings,
    MCPSpecificApproval,
    normalize_prefix,
    read_pages,
)
from agentbench.agents.mcp.package import (
    capabilities,
    error_data,
    is_connection_lost,
    is_session_unknown,
    make,
    make_session,
    notification_method,
    protocol_error,
    uri_of,
    wire,
)
from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import (
    MCPLimitError,
    MissingExtraError,
    NestedLoopError,
    ToolException,
    ToolExecutionException,
    ToolResultError,
)
from agentbench.messages.content.content import Content
from agentbench.observability.switches import is_tracing

logger = logging.getLogger("agentbench")

_METHOD_NOT_FOUND = -32601


@drawn_by("agentbench.notebook.cards.tool:server_bundle")
class MCPTool(Displayable):
    """Base class of the connections to Model Context Protocol servers. A transport implements `get_mcp_client()`.

    The arguments are the same for all transports; `MCPStdioTool` documents them.

    Example:
        from agentbench import Agent, MCPStdioTool

        async with MCPStdioTool("files", command="mcp-server-files", args=["."]) as files:
            await Agent(client, tools=[files]).run("Which files are there?")
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
        sampling_approval_callback: Callable[[Any], Any] | None = None,
        elicitation_callback: Callable[[Any], Any] | None = None,
        runtime_arguments: Collection[str] = (),
        limits: Mapping[str, float] | None = None,
        max_host_payload_size_bytes: float | None = None,
        use_progressive_disclosure: bool = False,
        additional_properties: dict[str, Any] | None = None,
    ) -> None:
        if isinstance(approval_mode, str) and approval_mode not in ("always_require", "never_require"):
            msg = f"approval_mode is {approval_mode!r}; expected 'always_require', 'never_require' or a mapping."
            raise ValueError(msg)
        for argument, names in (("allowed_tools", allowed_tools), ("runtime_arguments", runtime_arguments)):
            if isinstance(names, str):
                msg = f"{argument} is {names!r}; expected a collection of names: [{names!r}]."
                raise TypeError(msg)
        self.name, self.description = name, description or ""
        self.approval_mode, self.allowed_tools = approval_mode, allowed_tools
        self.tool_name_prefix = normalize_prefix(tool_name_prefix)
        self.load_tools_flag, self.load_prompts_flag = load_tools, load_prompts
        self.parse_tool_results, self.parse_prompt_results = parse_tool_results, parse_prompt_results
        require_seconds("request_timeout", request_timeout, none="no limit")
        self.request_timeout, self.client = request_timeout, client
        self.sampling_approval_callback, self.elicitation_callback = sampling_approval_callback, elicitation_callback
        self.runtime_arguments = tuple(runtime_arguments)
        payload = max_host_payload_size_bytes
        payload_limit = {} if payload is None else {"max_host_payload_size_bytes": payload}
        self.limits = MCPLimits().with_values({**(limits or {}), **payload_limit})
        self.use_progressive_disclosure = use_progressive_disclosure
        self.additional_properties = additional_properties
        self._ab_given_session = session
        self._ab_loop_of_session = session.loop if type(session) is SessionOnLoop else running_loop()
        self._ab_connection: Connection | None = None
        self._ab_capabilities: dict[str, Any] = {}
        self._ab_listings = Listings(name, self.tool_name_prefix, self.runtime_arguments, self.limits, self._ab_answer)
        self._ab_finder = tool_finder(
            name, self.tool_name_prefix, lambda: self._ab_listings.functions(self.allowed_tools)
        )
        self._ab_sampling = Sampling(name, self.limits)
        self._ab_elicitation = Elicitation(name, elicitation_callback, self.limits)
        self._ab_log = ServerLog(name, self.limits)
        self._ab_reloads: dict[Kind, asyncio.Task[None]] = {}
        self._ab_changed: set[Kind] = set()
        self._ab_has_ping = True
        self._ab_locks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = weakref.WeakKeyDictionary()

    # ------------------------------------------------------------------------------------------------------ connection

    def get_mcp_client(self) -> AbstractAsyncContextManager[Any]:
        """Return a context manager that opens the transport: a read stream and a write stream."""
        raise NotImplementedError

    @property
    def address(self) -> str:
        """The location of the server without secrets, for errors and displays."""
        return self.name

    @property
    def whole_address(self) -> str:
        """The address in full length, with secrets masked: servers with the same one are the same server."""
        return self.address

    @property
    def is_connected(self) -> bool:
        """Whether there is an open session."""
        return self._ab_connection is not None and self._ab_connection.is_open

    def _ab_is_reachable(self) -> bool:
        return self._ab_connection is not None and self._ab_connection.is_reachable

    @property
    def session(self) -> Any:
        """The `ClientSession`, for use on any event loop; None when not connected."""
        return None if self._ab_connection is None else self._ab_connection.session

    async def connect(self, *, reset: bool = False) -> None:
        """Open the connection and load the lists. Do nothing if the connection is open.

        Args:
            reset: Close an open connection first.

        Raises:
            MCPLimitError: The server exceeds a limit on its lists or on the time to connect.
            ToolExecutionException: The server cannot be reached, or does not speak the protocol.
            MissingExtraError: A package of the extra `mcp` is missing.
        """
        await await_on(self._ab_loop(), self._ab_connect(reset=reset))

    async def _ab_connect(self, *, reset: bool) -> None:
        async with self._ab_lock():
            if self._ab_is_reachable() and not reset:
                return
            await self._ab_open()
            try:
                async with self._ab_in_time():
                    for kind in self._ab_kinds():
                        await self._ab_load(kind)
            except BaseException as error:
                await self._ab_shut()
                if isinstance(error, Exception) and not isinstance(error, ToolException):
                    raise self._ab_failure("listing", error) from error
                raise

    @asynccontextmanager
    async def _ab_in_time(self) -> AsyncIterator[None]:
        seconds = self.limits.connect_s
        try:
            async with asyncio.timeout(None if seconds == inf else seconds) as limit:
                yield
        except TimeoutError:
            if not limit.expired():
                raise
            raise MCPLimitError(self.name, "no complete answer in time", "connect_s", seconds) from None

    async def close(self) -> None:
        """Close the connection if it is open. A later call of a function opens it again."""
        await await_on(self._ab_loop(), self._ab_close())

    async def _ab_close(self) -> None:
        async with self._ab_lock():
            await self._ab_shut()

    async def __aenter__(self) -> Self:
        await self.connect()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def _ab_loop(self) -> asyncio.AbstractEventLoop:
        """Return the event loop of the connection: the loop of a session that was passed, or the loop of the engine."""
        if self._ab_given_session is None:
            return home_loop()
        self._ab_loop_of_session = self._ab_loop_of_session or asyncio.get_running_loop()
        return self._ab_loop_of_session

    def _ab_lock(self) -> asyncio.Lock:
        return self._ab_locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    async def _ab_shut(self) -> None:
        for task in self._ab_reloads.values():
            if task is not asyncio.current_task() and not task.get_loop().is_closed():
                task.get_loop().call_soon_threadsafe(task.cancel)
        self._ab_reloads.clear()
        connection, self._ab_connection = self._ab_connection, None
        if connection is not None:
            await connection.close()

    async def _ab_open(self) -> None:
        await self._ab_shut()
        connection = Connection()
        try:
            async with self._ab_in_time():
                await connection.open(self._ab_open_session)
        except (ToolException, MissingExtraError):
            raise
        except Exception as error:
            raise self._ab_failure("connecting", error) from error
        self._ab_connection = connection
        level = logger.level
        if level and "logging" in self._ab_capabilities:
            name = level_name(level)
            try:
                with warnings.catch_warnings():  # newer versions warn that the protocol deprecates logging
                    warnings.simplefilter("ignore")
                    request = connection.session.set_logging_level(name)
                await connection.run(lambda: request)
            except Exception:
                logger.warning("The server %s does not accept the log level %r.", self.name, name, exc_info=True)

    async def _ab_open_session(self, stack: AsyncExitStack) -> Any:
        session = self._ab_given_session
        if session is None:
            reading, writing, *_ = await stack.enter_async_context(self.get_mcp_client())
            callbacks: dict[str, Any] = {
                "logging_callback": self.logging_callback, "message_handler": self.message_handler,
                "elicitation_callback": self._ab_answer_question,
            }  # fmt: skip
            if self.client is not None:
                callbacks["sampling_callback"] = self.sampling_callback
                callbacks["sampling_capabilities"] = make("SamplingCapability", {"tools": {}})
            checked = CheckedStream(reading, opening.get().end, self.name, self.limits)
            session = await stack.enter_async_context(make_session(checked, writing, self.request_timeout, **callbacks))
        self._ab_capabilities = await capabilities(session)
        return session

    def _ab_failure(self, doing: str, error: BaseException) -> ToolExecutionException:
        if isinstance(limit := error_data(error), MCPLimitError):
            return limit
        cause = first_cause(error)
        text = self.limits.log_text(str(cause) or type(cause).__name__)
        message = f"The MCP server {self.name!r} ({self.address}) failed while {doing}: {text}"
        return ToolExecutionException(message, inner_exception=error if isinstance(error, Exception) else None)

    # ------------------------------------------------------------------------------------------------------------ lists

    @property
    def functions(self) -> list[FunctionTool]:
        """The tools and prompts of the server that `allowed_tools` allows, as functions.

        With `use_progressive_disclosure` only the tool with which a model finds them.
        """
        return [self._ab_finder] if self.use_progressive_disclosure else self._ab_listings.functions(self.allowed_tools)

    async def load_tools(self) -> None:
        """Load the list of tools again. Unchanged tools keep their function objects."""
        await self._ab_reload("tools")

    async def load_prompts(self) -> None:
        """Load the list of prompts again."""
        await self._ab_reload("prompts")

    def _ab_kinds(self) -> list[Kind]:
        wanted: dict[Kind, bool] = {"tools": self.load_tools_flag, "prompts": self.load_prompts_flag}
        return [kind for kind, is_wanted in wanted.items() if is_wanted and self._ab_capabilities.get(kind) is not None]

    async def _ab_reload(self, kind: Kind) -> None:
        if not self.is_connected:
            await self.connect()
        else:
            await await_on(self._ab_loop(), self._ab_reload_here(kind))

    async def _ab_reload_here(self, kind: Kind) -> None:
        if self._ab_has_ping:
            try:
                await self._ab_in_session(lambda session: session.send_ping())
            except Exception as error:  # noqa: BLE001 - opening a new connection shows whether the server is still there
                if getattr(getattr(error, "error", error), "code", None) == _METHOD_NOT_FOUND:
                    self._ab_has_ping = False
                else:
                    async with self._ab_lock():
                        await self._ab_open()
        await self._ab_load(kind)

    async def _ab_load(self, kind: Kind) -> None:
        self._ab_listings.address = self.whole_address
        self._ab_listings.update(kind, await self._ab_read_list(kind), self.approval_mode)

    async def list_resources(self) -> list[dict[str, Any]]:
        """Return the resources that the server lists, with `uri`, `name`, `description` and `mimeType`."""
        if self._ab_capabilities.get("resources") is None:
            return []
        return await self._ab_read_list("resources")

    async def read_resource(self, uri: str) -> str:
        """Return a resource of the server as text.

        Args:
            uri: The address of the resource.

        Raises:
            ToolExecutionException: The server refused the request, or the connection was lost.
            ValueError: The resource is not text.
        """
        result = await self._ab_request(
            f"reading {uri!r}", lambda session: session.read_resource(uri_of(uri)), {}, may_repeat=True
        )
        parts = wire(result)["contents"]
        if any("text" not in part for part in parts):
            msg = f"{uri!r} of the server {self.name!r} is not text."
            raise ValueError(msg)
        return "\n".join(part["text"] for part in parts)

    async def _ab_read_list(self, kind: Kind | Literal["resources"]) -> list[dict[str, Any]]:
        def get_page(params: Any) -> Awaitable[Any]:
            return self._ab_in_session(lambda session: getattr(session, f"list_{kind}")(params=params))

        return await read_pages(self.name, kind, self.limits, get_page)

    # ------------------------------------------------------------------------------------------------------------ calls

    async def _ab_answer(
        self, kind: Kind, name: str, arguments: dict[str, Any], invocation: FunctionInvocationContext
    ) -> str | list[Content]:
        """Call a tool or prompt of the server, with or without a run of an agent."""
        if kind == "prompts":
            return await self._ab_prompt(name, arguments, invocation.kwargs)
        return await self._ab_call(name, arguments, invocation.kwargs, invocation.metadata)

    async def call_tool(self, tool_name: str, **kwargs: Any) -> str | list[Content]:
        """Call a tool of the server.

        Args:
            tool_name: The name of the tool on the server.
            **kwargs: Its arguments. Names that are reserved for runs, such as `session`, are sent only if the tool
                declares them.

        Returns:
            The result of `parse_tool_results` if that is set, otherwise contents.

        Raises:
            ToolResultError: The tool failed.
            ToolExecutionException: The connection was lost, or the tool was created with `load_tools=False`.
        """
        if not self.load_tools_flag:
            msg = f"Cannot call tools of {self.name!r}: it was created with load_tools=False."
            raise ToolExecutionException(msg)
        declared = (self._ab_listings.listing_of("tools", tool_name).get("inputSchema") or {}).get("properties", {})
        arguments = {key: value for key, value in kwargs.items() if key not in NEVER_SENT or key in declared}
        return await self._ab_call(tool_name, arguments, kwargs, {})

    async def get_prompt(self, prompt_name: str, **kwargs: Any) -> str:
        """Return a prompt of the server.

        Args:
            prompt_name: The name of the prompt on the server.
            **kwargs: Its arguments.

        Raises:
            ToolExecutionException: The server refused the request, the connection was lost, or the tool was created
                with `load_prompts=False`.
        """
        if not self.load_prompts_flag:
            msg = f"Cannot get prompts of {self.name!r}: it was created with load_prompts=False."
            raise ToolExecutionException(msg)
        return await self._ab_prompt(prompt_name, kwargs, kwargs)

    async def _ab_call(
        self, name: str, arguments: dict[str, Any], runtime: Mapping[str, Any], metadata: Mapping[str, Any]
    ) -> str | list[Content]:
        listing = self._ab_listings.listing_of("tools", name)
        notes = listing.get("annotations") or {}
        meta = {**(listing.get("_meta") or {}), **_trace_headers(listing.get("_meta") or {})}

        async def send(session: Any) -> Any:
            progress = partial(self.progress_callback, name)
            return await self._ab_elicitation.during(
                lambda: session.call_tool(name, arguments, progress_callback=progress, meta=meta or None), metadata
            )

        with self._ab_sampling.count_requests():
            result = await self._ab_request(
                f"calling the tool {name!r}",
                send,
                runtime,
                may_repeat=bool(notes.get("readOnlyHint") or notes.get("idempotentHint")),
            )
        parse = self.parse_tool_results
        contents = contents_of_result(name, wire(result), self.limits)
        return contents if parse is None else parse(result)

    async def _ab_prompt(self, name: str, arguments: Mapping[str, Any], runtime: Mapping[str, Any]) -> str:
        texts = {key: str(value) for key, value in arguments.items()}

        def send(session: Any) -> Awaitable[Any]:
            return session.get_prompt(name, texts)  # type: ignore[no-any-return]

        result = await self._ab_request(f"getting the prompt {name!r}", send, runtime, may_repeat=True)
        parse = self.parse_prompt_results
        return prompt_text(wire(result)["messages"]) if parse is None else parse(result)

    async def _ab_request(
        self,
        doing: str,
        send: Callable[[Any], Awaitable[Any]],
        runtime: Mapping[str, Any],
        *,
        may_repeat: bool,
    ) -> Any:
        """Send a request; if the connection was lost before the server can have acted on it, reconnect and repeat."""
        try:
            if not self._ab_is_reachable():
                await self.connect()
            connection = self._ab_connection
            try:
                return await self._ab_in_session(send, runtime)
            except Exception as error:
                was_sent = isinstance(error, (ConnectionLostError, protocol_error())) and not is_session_unknown(error)
                if not is_connection_lost(error) or (was_sent and not may_repeat):
                    raise
                logger.info("The connection to the MCP server %s was lost; reconnecting.", self.name)
                await await_on(self._ab_loop(), self._ab_reopen(connection))
                return await self._ab_in_session(send, runtime)
        except (ToolException, MissingExtraError, NestedLoopError):
            raise
        except Exception as error:
            is_report = isinstance(error, protocol_error()) and not is_connection_lost(error)
            if is_report and not isinstance(error_data(error), MCPLimitError):
                raise ToolResultError(self.limits.log_text(str(error)), error) from error
            raise self._ab_failure(doing, error) from error

    async def _ab_reopen(self, lost: Connection | None) -> None:
        async with self._ab_lock():
            if self._ab_connection is lost or not self._ab_is_reachable():
                await self._ab_open()

    async def _ab_in_session(
        self, send: Callable[[Any], Awaitable[Any]], runtime: Mapping[str, Any] | None = None
    ) -> Any:
        """Send a request on the event loop of the connection; transports may use `runtime`, the run's arguments."""
        connection = self._ab_connection
        if connection is None or not connection.is_reachable:
            msg = f"The MCP server {self.name!r} is not connected. Call connect() first."
            raise ToolExecutionException(msg)
        session = connection.session
        return await connection.run(lambda: send(session))

    # ------------------------------------------------------------------------------------------- requests of the server

    async def sampling_callback(self, context: Any, params: Any) -> Any:
        """Answer a sampling request with `client` if `sampling_approval_callback` approves it.

        Args:
            context: The context of the request.
            params: The parameters of the request: messages and options.
        """
        return await self._ab_sampling.answer(params, self.client, self.sampling_approval_callback)

    async def _ab_answer_question(self, context: Any, params: Any) -> Any:
        return await self._ab_elicitation.answer(params)

    async def logging_callback(self, params: Any) -> None:
        """Log a message of the server.

        Args:
            params: The level, logger and data of the message.
        """
        fields = wire(params)
        self._ab_log.log(fields.get("level"), fields.get("data"))

    async def progress_callback(
        self, tool_name: str, progress: float, total: float | None, message: str | None
    ) -> None:
        """Log the progress of a tool call.

        Args:
            tool_name: The name of the tool that runs.
            progress: The amount that is done.
            total: The total amount, if it is known.
            message: A description of the current step.
        """
        share = f"{progress:g}" if total is None else f"{progress:g} of {total:g}"
        self._ab_log.log("info", f"{tool_name}: {share}{f', {message}' if message else ''}")

    async def message_handler(self, message: Any) -> None:
        """Handle a notification of the server: reload a changed list in the background.

        Args:
            message: A notification, a request, or an error of the stream.
        """
        method = notification_method(message)
        for kind in self._ab_kinds():
            if method == f"notifications/{kind}/list_changed":
                self._ab_changed.add(kind)
                if (reload := self._ab_reloads.get(kind)) is None or reload.done():
                    self._ab_reloads[kind] = asyncio.ensure_future(self._ab_reload_quietly(kind))

    async def _ab_reload_quietly(self, kind: Kind) -> None:
        """Reload a list until no change arrives during the reload; several changes cause one reload."""
        while kind in self._ab_changed:
            self._ab_changed.discard(kind)
            try:
                await self._ab_reload(kind)
            except Exception as error:  # noqa: BLE001 - the old list remains in use
                shown = self.limits.log_text(str(error))
                logger.warning("Cannot reload the changed list of %s of the server %s: %s", kind, self.name, shown)
            await asyncio.sleep(self.limits.reload_interval_s)

    def __repr__(self) -> str:
        state = f"{len(self.functions)} functions" if self.is_connected else "not connected"
        return f"{type(self).__name__}({self.name!r}, {self.address}, {state})"


def _trace_headers(meta: Mapping[str, Any]) -> dict[str, str]:
    """Return the W3C trace headers of the current span that are missing in the metadata."""
    if not is_tracing():
        return {}
    headers: dict[str, str] = {}
    with suppress(ImportError):
        from opentelemetry import propagate

        propagate.inject(headers)
    return {name: value for name, value in headers.items() if name not in meta}
