"""The SDK's own client: made when it is first needed, one for each event loop, closed with that loop at the latest."""

from __future__ import annotations

import asyncio
import inspect
import operator
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from agentbench._extras import require
from agentbench._secrets import is_secret_name
from agentbench.agents.clients.openai.errors import reported_error, sdk_errors, translate_error
from agentbench.agents.clients.openai.settings import find_target, validate_key, without_credentials
from agentbench.exceptions import ChatClientException, ChatClientInvalidAuthException, MissingExtraError
from agentbench.observability.user_agent import USER_AGENT_KEY, prepend_agent_framework_to_user_agent
from agentbench.settings import SecretString

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from typing_extensions import Self

DEFAULT_URL = "https://api.openai.com/v1"

# Arguments of the SDK's methods that are not part of the request.
TRANSPORT_ARGUMENTS = ("extra_headers", "extra_query", "extra_body", "timeout")


class Connection:
    """Sends requests to one service. Arguments that are `None` leave the choice to the SDK.

    `model_fields` are the settings that may name the model; for the other `settings` see `find_target`.
    """

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
        # Open connections belong to the loop in which they were opened: a script that calls asyncio.run() twice
        # needs two clients.
        self._of_loop: dict[asyncio.AbstractEventLoop, tuple[AsyncOpenAI, AsyncGenerator[None, None]]] = {}
        self._of_no_loop: AsyncOpenAI | None = None
        self._tokens: list[SecretString] = []  # the last few keys that came from a function

    @property
    def url(self) -> str:
        """The address of the service, without credentials."""
        if self._async_client is not None:
            return without_credentials(str(getattr(self._async_client, "base_url", DEFAULT_URL)))
        return self.target.base_url or DEFAULT_URL

    def sdk(self) -> AsyncOpenAI:
        """Return the SDK's client for the running loop; one that was made while none ran is that of the next loop."""
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
            # asyncio.run() ends with closing the generators that are still open, so one of them closes the client.
            closing = _close_at_end(sdk)
            with suppress(StopIteration):  # it does not wait before it yields, and now the loop knows of it
                closing.__anext__().send(None)
            self._of_loop[loop] = sdk, closing
        return sdk

    def __deepcopy__(self, memo: dict[int, Any]) -> Connection:
        """A copied client goes on with the same connections."""
        return self

    async def close(self) -> None:
        """Close what was opened in the running loop. A later request opens it anew."""
        _, closing = self._of_loop.pop(asyncio.get_running_loop(), (None, None))
        if closing is not None:
            await closing.aclose()

    def resource(self, path: str) -> Any:
        """Return a part of the SDK, such as `chat.completions`; of those used here, `responses` came last."""
        try:
            return operator.attrgetter(path)(self.sdk())
        except AttributeError:
            problem = f"The installed openai package has no {path!r}; version 1.66 or newer has"
            raise MissingExtraError("openai", "openai>=1.66", problem=problem) from None

    async def call(self, method: Callable[..., Any], body: Mapping[str, Any], **transport: Any) -> Any:
        """Send one request by a method of the SDK and return the answer; `body` may have fields that are new to it."""
        arguments = dict(transport)
        known = _parameter_names(getattr(method, "__func__", method))
        others = {} if known is None else {name: value for name, value in body.items() if name not in known}
        arguments |= {name: value for name, value in body.items() if name not in others}
        if others:
            arguments["extra_body"] = {**others, **(arguments.get("extra_body") or {})}
        key = await self._fresh_key()
        if key is not None:
            arguments["extra_headers"] = {"Authorization": f"Bearer {key}", **(arguments.get("extra_headers") or {})}
        with self._translate_errors():
            answer = method(**arguments)
            return await answer if inspect.isawaitable(answer) else answer

    async def updates(self, stream: Any) -> AsyncGenerator[Any, None]:
        """Yield the events of a stream of the SDK; at the end, also by an error, the connection is released."""
        try:
            with self._translate_errors():
                async for update in stream:
                    yield update
        finally:
            close = getattr(stream, "close", None) or getattr(stream, "aclose", None)
            if close is not None:
                closing = close()
                if inspect.isawaitable(closing):
                    await closing

    @contextmanager
    def _translate_errors(self) -> Iterator[None]:
        """Raise errors of the SDK as errors of ours. Cancellation and everything else passes."""
        try:
            yield
        except sdk_errors() as error:
            raise translate_error(error, url=self.url, secrets=self._secrets()) from error

    def reported_error(self, report: Any) -> ChatClientException:
        """Return our error for a failure that the service reports as part of an answer."""
        return reported_error(report, url=self.url, secrets=self._secrets())

    def _secrets(self) -> tuple[str, ...]:
        """The secrets that errors must not contain."""
        target = self.target
        known = [] if target.api_key is None or callable(target.api_key) else [str(target.api_key)]
        if target.basic is not None:
            known += [str(target.basic), target.basic.partition(" ")[2]]
        known += [str(value) for name, value in self._headers.items() if is_secret_name(name)]
        return tuple(str(secret) for secret in (*known, *self._tokens) if secret)

    def _new_sdk(self) -> AsyncOpenAI:
        target = self.target
        headers = dict(self._headers)
        if target.basic is not None:
            headers["Authorization"] = str(target.basic)
        # The SDK insists on a key, also for servers that need none, and where each request gets a key of its own.
        key = "not-needed" if target.api_key is None or callable(target.api_key) else target.api_key
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
        if not callable(self.target.api_key):
            return None
        returned = self.target.api_key()
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


class Connected:
    """The base of clients with a connection: its `repr` has model and address alone, and closing it closes that."""

    model: str
    _connection: Connection

    @property
    def client(self) -> AsyncOpenAI:
        """The SDK's client, for what else the service has: `await client.client.files.create(...)`."""
        return self._connection.sdk()

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


async def _close_at_end(sdk: AsyncOpenAI) -> AsyncGenerator[None, None]:
    try:
        yield
    finally:
        await sdk.close()


@lru_cache(maxsize=32)
def _parameter_names(method: Callable[..., Any]) -> frozenset[str] | None:
    """The parameters of a method; `None` if it takes any."""
    parameters = inspect.signature(method).parameters.values()
    if any(parameter.kind is parameter.VAR_KEYWORD for parameter in parameters):
        return None
    return frozenset(parameter.name for parameter in parameters)
