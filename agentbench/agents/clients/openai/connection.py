"""The SDK client, created on first use, one per event loop, closed with the loop at the latest; its events."""

from __future__ import annotations

import asyncio
import inspect
import operator
import re
import sys
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Self
from urllib.parse import parse_qsl, urlsplit

from agentbench._call_limiter import sending
from agentbench._extras import require
from agentbench._secrets import is_secret_parameter, mask_text
from agentbench.agents.clients.openai.errors import (
    ReportedFailureError,
    answer_errors,
    secret_pattern,
    translate_error,
)
from agentbench.agents.clients.openai.settings import find_target, validate_key, without_credentials
from agentbench.agents.clients.openai.wire import WireRequest, field
from agentbench.exceptions import ChatClientInvalidAuthException, MissingExtraError
from agentbench.observability.user_agent import USER_AGENT_KEY, prepend_agent_framework_to_user_agent

if TYPE_CHECKING:
    from openai import AsyncOpenAI


class Events:
    """Yields the events of a stream; unlike in the HTTP library, comments do not restart the timeout."""

    def __init__(self, stream: Any, timeout_s: Any) -> None:
        self._stream = stream
        self._pull = stream.__aiter__().__anext__
        self._timeout_s: float | None = timeout_s if isinstance(timeout_s, (int, float)) else None
        self._waits_since: float | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._is_late = False

    def __aiter__(self) -> Events:
        return self

    async def __anext__(self) -> Any:
        if self._timeout_s is None:
            return await self._pull()
        loop = asyncio.get_running_loop()
        self._waits_since = loop.time()
        if self._timer is None:
            self._timer = loop.call_later(self._timeout_s, self._check, self._timeout_s)
        try:
            return await self._pull()
        except Exception as error:
            if self._is_late:
                message = f"no event arrived within {self._timeout_s:g} seconds"
                raise TimeoutError(message) from error
            raise
        finally:
            self._waits_since = None

    def _check(self, timeout_s: float) -> None:
        """Close the stream if its reader has waited too long; otherwise check again later."""
        loop = asyncio.get_running_loop()
        waited_s = 0.0 if self._waits_since is None else loop.time() - self._waits_since
        self._is_late = waited_s >= timeout_s
        if self._is_late:
            self._timer = None
            self._closing = asyncio.ensure_future(self._close())
        else:
            self._timer = loop.call_later(timeout_s - waited_s, self._check, timeout_s)

    async def aclose(self) -> None:
        """Release the connection."""
        if self._timer is not None:
            self._timer.cancel()
        await self._close()

    async def _close(self) -> None:
        close = getattr(self._stream, "close", None) or getattr(self._stream, "aclose", None)
        if close is not None:
            closing = close()
            if inspect.isawaitable(closing):
                await closing


# ---- the connection


DEFAULT_URL = "https://api.openai.com/v1"

# Headers that the SDK adds. Their values are not secrets but words such as "python".
_OF_THE_SDK = ("accept", "content-type", "x-stainless-")

# Arguments of the SDK's methods that are not part of the request.
TRANSPORT_ARGUMENTS = ("extra_headers", "extra_query", "extra_body", "timeout")


class OpenAIConnection:
    """Sends requests to one service; see `find_target` for `model_fields` and `settings`."""

    def __init__(
        self,
        model: str | None,
        model_fields: Sequence[str],
        *,
        async_client: AsyncOpenAI | None = None,
        default_headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
        **settings: Any,
    ) -> None:
        self.target = find_target(model, model_fields, connected=async_client is not None, **settings)
        if async_client is None:
            require("openai", extra="openai", purpose="call models of OpenAI-compatible services")
        self._async_client = async_client
        self._headers = dict(default_headers or {})
        if not any(name.lower() == USER_AGENT_KEY.lower() for name in self._headers):
            prepend_agent_framework_to_user_agent(self._headers)
        self._limits = {"timeout": timeout, "max_retries": max_retries}
        # Open connections belong to an event loop: a script that calls asyncio.run() twice needs two clients.
        self._of_loop: dict[asyncio.AbstractEventLoop, tuple[AsyncOpenAI, AsyncGenerator[None, None]]] = {}
        self._of_no_loop: AsyncOpenAI | None = None

    @property
    def url(self) -> str:
        """The URL of the service without credentials; keys are masked."""
        if self._async_client is not None:
            return mask_text(without_credentials(str(getattr(self._async_client, "base_url", DEFAULT_URL))))
        return mask_text(self.target.base_url or DEFAULT_URL)

    def sdk(self) -> AsyncOpenAI:
        """Return the SDK client of the running loop; a client made without a loop belongs to the next loop."""
        if self._async_client is not None:
            return self._async_client
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            self._of_no_loop = self._of_no_loop or self._new_sdk()
            return self._of_no_loop
        sdk, _ = self._of_loop.get(loop, (None, None))
        if sdk is None or sdk.is_closed():
            for other in [other for other in self._of_loop if other.is_closed()]:
                del self._of_loop[other]
            sdk, self._of_no_loop = self._of_no_loop or self._new_sdk(), None
            # asyncio.run() closes all open generators at its end, so a generator closes the client.
            closing = _close_at_end(sdk)
            with suppress(StopIteration):  # it yields without waiting, and the loop now knows it
                closing.__anext__().send(None)
            self._of_loop[loop] = sdk, closing
        return sdk

    def __deepcopy__(self, memo: dict[int, Any]) -> OpenAIConnection:
        """Return this object, because copied clients share their connections."""
        return self

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without open SDK clients, which are created again after unpickling."""
        return {**vars(self), "_of_loop": {}, "_of_no_loop": None}

    async def close(self) -> None:
        """Close the connections of the running loop. A later request opens new ones."""
        _, closing = self._of_loop.pop(asyncio.get_running_loop(), (None, None))
        if closing is not None:
            await closing.aclose()

    def _method(self, path: str, name: str) -> Callable[..., Any]:
        """Return a method of the SDK; old versions have no `responses`."""
        sdk = self.sdk()
        if sending.get():  # the SDK's own retries would hide rejections from the limiter
            sdk = sdk.with_options(max_retries=0)
        try:
            return operator.attrgetter(f"{path}.{name}")(sdk)  # type: ignore[no-any-return]
        except AttributeError:
            problem = f"The installed openai package does not have {path!r}, which needs version 1.66 or newer"
            raise MissingExtraError("openai", "openai>=1.66", problem=problem) from None

    async def call(self, path: str, request: WireRequest, transport: Mapping[str, Any]) -> Any:
        """Send a request and return the answer; the body may have fields that the SDK does not know."""
        method, arguments = self._method(path, request.method), dict(transport)
        accepted = _parameter_names(getattr(method, "__func__", method))
        others = (
            {} if accepted is None else {name: value for name, value in request.body.items() if name not in accepted}
        )
        arguments |= {name: value for name, value in request.body.items() if name not in others}
        if others:
            arguments["extra_body"] = {**others, **(arguments.get("extra_body") or {})}
        answer = method(**arguments)
        return await answer if inspect.isawaitable(answer) else answer

    async def open(self, path: str, request: WireRequest, transport: Mapping[str, Any]) -> Events:
        """Send a request for a stream and return its events."""
        timeout = transport.get("timeout", getattr(self.sdk(), "timeout", None))
        return Events(await self.call(path, request, transport), getattr(timeout, "read", timeout))

    @contextmanager
    def translate_errors(self, body: Mapping[str, Any], transport: Mapping[str, Any]) -> Iterator[None]:
        """Convert errors of the SDK and of parsing its answer to ours, which do not show the headers sent."""
        try:
            yield
        except answer_errors() as error:
            cause = None if isinstance(error, ReportedFailureError) else error
            secrets = self._secrets(body, transport)
            raise translate_error(error, url=self.url, secrets=secrets, sent=body) from cause

    def _secrets(self, body: Mapping[str, Any], transport: Mapping[str, Any]) -> re.Pattern[str] | None:
        """Return a pattern for the header values of the request and of the service's tools."""
        target, headers = self.target, [*self._headers.items(), *(transport.get("extra_headers") or {}).items()]
        sdk = getattr(self._async_client, "default_headers", None) or {}
        headers += [(name, value) for name, value in sdk.items() if not name.lower().startswith(_OF_THE_SDK)]
        for tool in body.get("tools") or ():
            headers += (field(tool, "headers") or {}).items()
        secrets = [str(key) for key in (target.api_key, target.basic) if isinstance(key, str)]
        query = parse_qsl(urlsplit(str(target.base_url or getattr(self._async_client, "base_url", ""))).query)
        secrets += [value for name, value in query if is_secret_parameter(name)]
        return secret_pattern(secrets, [(str(name), value) for name, value in headers if isinstance(value, str)])

    def _new_sdk(self) -> AsyncOpenAI:
        target = self.target
        headers = dict(self._headers)
        if target.basic is not None:
            headers["Authorization"] = str(target.basic)
        # The SDK requires a key, even for servers that need none or when each request gets a new one.
        key = "not-needed" if target.api_key is None or callable(target.api_key) else target.api_key
        optional = {"organization": target.org_id, "base_url": target.base_url, **self._limits}
        sdk = require("openai", extra="openai", purpose="call models of OpenAI-compatible services")
        if sys.platform == "emscripten":
            from agentbench.agents.clients.openai.fetch import fetching_client  # noqa: PLC0415 - only in a browser

            optional["http_client"] = fetching_client(sdk)
        made: AsyncOpenAI = sdk.AsyncOpenAI(
            api_key=key,
            default_headers=headers,
            **{name: value for name, value in optional.items() if value is not None},
        )
        return made

    async def transport(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Return the transport arguments with a value, and the key from the function `api_key`."""
        transport = {name: value for name, value in arguments.items() if value is not None}
        if not callable(self.target.api_key):
            return transport
        returned = self.target.api_key()
        key: object = await returned if inspect.isawaitable(returned) else returned
        try:
            token = str(validate_key(key)) if isinstance(key, str) else ""
        except ValueError as error:
            raise ChatClientInvalidAuthException(str(error)) from None
        if not token:
            message = f"The function api_key returned {type(key).__name__} or an empty text. Expected a key as text."
            raise ChatClientInvalidAuthException(message)
        transport["extra_headers"] = {"Authorization": f"Bearer {token}", **(transport.get("extra_headers") or {})}
        return transport


class Connected:
    """The base class of clients with a connection. `repr` shows model and URL; closing the client closes it."""

    model: str
    _ab_connection: OpenAIConnection

    @property
    def client(self) -> AsyncOpenAI:
        """The SDK client, for other functions of the service: `await client.client.files.create(...)`."""
        return self._ab_connection.sdk()

    def service_url(self) -> str:
        """Return the URL of the API without credentials."""
        return self._ab_connection.url

    async def close(self) -> None:
        """Close the connections that the client opened; an SDK client that you passed stays open."""
        await self._ab_connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, url={self.service_url()!r})"


async def _close_at_end(sdk: AsyncOpenAI) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await sdk.close()


@lru_cache(maxsize=32)
def _parameter_names(method: Callable[..., Any]) -> frozenset[str] | None:
    parameters = inspect.signature(method).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters)
