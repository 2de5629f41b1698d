"""The wrapped client of a cassette: passed in, or made when something has to be recorded."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterable, Callable, Mapping, Sequence
from typing import Any

from agentbench.agents.model.client import BaseChatClient
from agentbench.agents.model.network import is_offline, needs_network, require_network
from agentbench.agents.model.replies import ChatStream, response_of, stream_of
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream

__all__ = ["Original"]


class Original:
    """The client whose answers are recorded.

    A `BaseChatClient` is called at its own hook, below its layers, because those of the cassette's client already run;
    any other client through `get_response`.

    Args:
        source: A client, a function without arguments that makes one, or `None`.

    Attributes:
        client: The client, `None` if there is none yet.
        factory: The function, `None` if there is none.

    Raises:
        TypeError: `source` is none of these.
    """

    def __init__(self, source: Any) -> None:
        self._lock = threading.Lock()
        self.client: Any = source if _is_client(source) else None
        self.factory: Callable[[], Any] | None = source if self.client is None else None
        if self.factory is not None and not callable(self.factory):
            raise _no_client(source, "client is")

    @property
    def exists(self) -> bool:
        """Whether there is a client, or a way to make one."""
        return self.client is not None or self.factory is not None

    @property
    def is_out_of_reach(self) -> bool:
        """Whether this process is offline, and the client needs the network or is still to be made."""
        return is_offline() and (self.client is None or needs_network(self.client))

    def get(self) -> Any:
        """Return the client; it is made now if it was not yet.

        Raises:
            TypeError: The function returned no client.
        """
        with self._lock:
            if self.client is None and self.factory is not None:
                made = self.factory()
                if not _is_client(made):
                    raise _no_client(made, "the function that makes the client returned")
                self.client = made
            return self.client

    async def respond(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: Mapping[str, Any]
    ) -> ChatResponse[Any]:
        """Return the client's answer as a whole, also where the client streams it.

        Raises:
            ChatClientException: The client needs the network, and this process is to stay off it.
        """
        return await response_of(self._call(messages, options, kwargs, stream=False), self._stream_builder(options))

    async def open(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: Mapping[str, Any]
    ) -> ChatStream:
        """Return the client's answer as a stream; errors are those of `respond`."""
        return await stream_of(self._call(messages, options, kwargs, stream=True), self._stream_builder(options))

    def _call(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: Mapping[str, Any], *, stream: bool
    ) -> Any:
        client = self.get()
        require_network(client)
        if isinstance(client, BaseChatClient):
            return client._inner_get_response(  # noqa: SLF001 - the hook is what is recorded
                messages=list(messages), stream=stream, options=dict(options), **kwargs
            )
        arguments = {"options": dict(options), "client_kwargs": dict(kwargs), "stream": stream}
        return client.get_response(list(messages), **{name: value for name, value in arguments.items() if value})

    def _stream_builder(self, options: Mapping[str, Any]) -> Callable[[AsyncIterable[Any]], ChatStream]:
        response_format = options.get("response_format")

        def build_stream(updates: AsyncIterable[Any]) -> ChatStream:
            if isinstance(self.client, BaseChatClient):
                return self.client._build_response_stream(updates, response_format=response_format)  # noqa: SLF001 - as above
            return ResponseStream(
                updates, finalizer=lambda found: ChatResponse.from_updates(found, output_format_type=response_format)
            )

        return build_stream


def _is_client(source: object) -> bool:
    # A class has the method too, and is a function that makes a client.
    return not isinstance(source, type) and callable(getattr(source, "get_response", None))


def _no_client(source: object, what: str) -> TypeError:
    return TypeError(
        f"{what} {type(source).__name__}; expected a chat client, or a function without arguments that makes one."
    )
