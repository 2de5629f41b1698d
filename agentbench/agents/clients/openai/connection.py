"""The SDK's own client: made when it is first needed, one for each event loop, closed with that loop at the latest."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any

from agentbench._extras import require
from agentbench._secrets import is_secret_name
from agentbench.agents.clients.openai.errors import sdk_errors, translate_error
from agentbench.agents.clients.openai.settings import Target, validate_key, without_credentials
from agentbench.exceptions import ChatClientInvalidAuthException, MissingExtraError
from agentbench.observability import user_agent
from agentbench.settings import SecretString

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from typing_extensions import Self

DEFAULT_URL = "https://api.openai.com/v1"

# The SDK insists on a key, also for servers that need none, and where each request gets a key of its own.
_NO_KEY = "not-needed"

# Arguments of the SDK's methods that are not part of the request.
TRANSPORT_ARGUMENTS = ("extra_headers", "extra_query", "extra_body", "timeout")


class Connection:
    """Sends requests to one service.

    Args:
        target: Model, address and credentials.
        async_client: A client of the SDK that its owner closes; by default one is made for each event loop.
        default_headers: Sent with every request.
        timeout: For a request, in seconds; `None`: the SDK's default.
        max_retries: How often the SDK repeats a request that may succeed later; `None`: the SDK's default.

    Raises:
        MissingExtraError: The SDK is not installed.
    """

    def __init__(
        self,
        target: Target,
        *,
        async_client: AsyncOpenAI | None = None,
        default_headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
    ) -> None:
        if async_client is None:
            require("openai", extra="openai", purpose="call models of OpenAI-compatible services")
        self._target = target
        self._async_client = async_client
        self._headers = dict(default_headers or {})
        agent = user_agent()
        if agent is not None and not any(name.lower() == "user-agent" for name in self._headers):
            self._headers = {"User-Agent": agent, **self._headers}
        self._limits = {"timeout": timeout, "max_retries": max_retries}
        # Open connections belong to the loop in which they were opened: a script that calls asyncio.run() twice
        # needs two clients.
        self._of_loop: dict[asyncio.AbstractEventLoop, _Opened] = {}
        self._tokens: list[SecretString] = []  # the last few keys that came from a function
        self._parameters: dict[str, frozenset[str] | None] = {}

    @property
    def url(self) -> str:
        """The address of the service, without credentials."""
        if self._async_client is not None:
            return without_credentials(str(getattr(self._async_client, "base_url", DEFAULT_URL)))
        return self._target.base_url or DEFAULT_URL

    def sdk(self) -> AsyncOpenAI:
        """Return the SDK's client for the running loop."""
        if self._async_client is not None:
            return self._async_client
        loop = asyncio.get_running_loop()
        opened = self._of_loop.get(loop)
        if opened is None or opened.sdk.is_closed():
            for other in [other for other in self._of_loop if other.is_closed()]:
                del self._of_loop[other]
            opened = self._of_loop[loop] = _Opened(self._new_sdk())
        return opened.sdk

    def __deepcopy__(self, memo: dict[int, Any]) -> Connection:
        """A copied client goes on with the same connections."""
        return self

    async def close(self) -> None:
        """Close what was opened in the running loop. A later request opens it anew."""
        opened = self._of_loop.pop(asyncio.get_running_loop(), None)
        if opened is not None:
            await opened.aclose()

    def resource(self, path: str, since: str) -> Any:
        """Return a part of the SDK, such as `chat.completions`.

        Raises:
            MissingExtraError: The version of the SDK that is installed has no such part.
        """
        found: Any = self.sdk()
        try:
            for name in path.split("."):
                found = getattr(found, name)
        except AttributeError:
            problem = f"The installed openai package has no {path!r}; version {since} or newer has"
            raise MissingExtraError("openai", f"openai>={since}", problem=problem) from None
        return found

    async def call(self, method: Callable[..., Any], body: Mapping[str, Any], **transport: Any) -> Any:
        """Send one request and return the answer.

        Args:
            method: Of the SDK, such as `sdk.chat.completions.create`.
            body: The fields of the request, also those that the SDK does not know.
            **transport: How it is sent: `extra_headers`, `extra_query`, `extra_body`, `timeout`.

        Raises:
            ChatClientException: The request failed; see its subclasses.
        """
        arguments = self._as_arguments(method, body, transport)
        key = await self._fresh_key()
        if key is not None:
            arguments["extra_headers"] = {"Authorization": f"Bearer {key}", **(arguments.get("extra_headers") or {})}
        with self.translated_errors():
            answer = method(**arguments)
            return await answer if inspect.isawaitable(answer) else answer

    async def updates(self, stream: Any) -> AsyncGenerator[Any, None]:
        """Yield the events of a stream of the SDK; at the end, also by an error, the connection is released."""
        try:
            with self.translated_errors():
                async for update in stream:
                    yield update
        finally:
            close = getattr(stream, "close", None) or getattr(stream, "aclose", None)
            if close is not None:
                closing = close()
                if inspect.isawaitable(closing):
                    await closing

    @contextmanager
    def translated_errors(self) -> Iterator[None]:
        """Raise errors of the SDK as errors of ours. Cancellation and everything else passes."""
        try:
            yield
        except sdk_errors() as error:
            raise translate_error(error, url=self.url, secrets=self.secrets()) from error

    def secrets(self) -> tuple[str, ...]:
        """Return the secrets that errors must not contain."""
        target = self._target
        known = [] if target.api_key is None or callable(target.api_key) else [str(target.api_key)]
        if target.basic is not None:
            known += [str(target.basic), target.basic.partition(" ")[2]]
        known += [str(value) for name, value in self._headers.items() if is_secret_name(name)]
        return tuple(str(secret) for secret in (*known, *self._tokens) if secret)

    def _new_sdk(self) -> AsyncOpenAI:
        target = self._target
        headers = dict(self._headers)
        if target.basic is not None:
            headers["Authorization"] = str(target.basic)
        key = _NO_KEY if target.api_key is None or callable(target.api_key) else target.api_key
        optional = {"organization": target.org_id, "base_url": target.base_url, **self._limits}
        sdk = require("openai", extra="openai", purpose="call models of OpenAI-compatible services")
        made: AsyncOpenAI = sdk.AsyncOpenAI(
            api_key=key,
            default_headers=headers,
            **{name: value for name, value in optional.items() if value is not None},
        )
        return made

    async def _fresh_key(self) -> str | None:
        """The key from the function `api_key`, if it is one."""
        if not callable(self._target.api_key):
            return None
        returned = self._target.api_key()
        key: object = await returned if inspect.isawaitable(returned) else returned
        try:
            token = str(validate_key(key)) if isinstance(key, str) else ""
        except ValueError as error:
            raise ChatClientInvalidAuthException(str(error)) from None
        if not token:
            message = f"The function api_key returned {type(key).__name__}, or nothing. Expected a key as text."
            raise ChatClientInvalidAuthException(message)
        if token not in self._tokens:
            self._tokens = [*self._tokens[-7:], SecretString(token)]
        return token

    def _as_arguments(
        self, method: Callable[..., Any], body: Mapping[str, Any], transport: Mapping[str, Any]
    ) -> dict[str, Any]:
        """Sort the fields of a request into those that a method of the SDK has a parameter for, and others."""
        name = getattr(method, "__qualname__", repr(method))
        if name not in self._parameters:
            self._parameters[name] = _parameter_names(method)
        known = self._parameters[name]
        arguments = dict(transport)
        others = {}
        for key, value in body.items():
            if known is None or key in known:
                arguments[key] = value
            else:
                others[key] = value
        if others:
            if known is not None and "extra_body" not in known:
                missing = " and no ".join(sorted(others))
                problem = f"The installed openai package is too old: its {name} has no {missing}"
                raise MissingExtraError("openai", "openai", problem=problem)
            arguments["extra_body"] = {**others, **(arguments.get("extra_body") or {})}
        return arguments


class Connected:
    """The base of clients with a connection: its `repr` has model and address alone, and closing it closes that."""

    model: str
    _connection: Connection

    def service_url(self) -> str:
        """Return the address of the API, without credentials."""
        return self._connection.url

    async def close(self) -> None:
        """Close the connections that the client has opened; a client of the SDK that was passed in stays open."""
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, url={self.service_url()!r})"


class _Opened:
    """A client of the SDK that is closed in the loop in which it was opened: now, or when that loop is shut down.

    `asyncio.run()` ends with closing the generators that are still open, so one of them closes the client.
    """

    def __init__(self, sdk: AsyncOpenAI) -> None:
        self.sdk = sdk
        self._keeper = _close_at_end(sdk)
        with suppress(StopIteration):  # it does not wait before it yields, and now the loop knows of it
            self._keeper.__anext__().send(None)

    async def aclose(self) -> None:
        await self._keeper.aclose()


async def _close_at_end(sdk: AsyncOpenAI) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await sdk.close()


def _parameter_names(method: Callable[..., Any]) -> frozenset[str] | None:
    """The parameters of a method; `None` if it takes any."""
    parameters = inspect.signature(method).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters)
