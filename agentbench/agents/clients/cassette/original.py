"""The real client behind a cassette: given, or made when it is first needed; asked at its hook."""

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
    """Where answers come from that are not recorded yet.

    A `BaseChatClient` is asked at its own hook, below its layers, because those of the cassette's client already run;
    any other client through `get_response`.

    Args:
        source: A client, a function without arguments that makes one, or `None`.

    Raises:
        TypeError: It is none of these.
    """

    def __init__(self, source: Any) -> None:
        self._lock = threading.Lock()
        self._factory: Callable[[], Any] | None = None
        self.client: Any = None
        if _is_client(source):
            self.client = source
        elif callable(source):
            self._factory = source
        elif source is not None:
            raise _no_client(source, "client is")

    @property
    def exists(self) -> bool:
        """Whether there is a client, or a way to make one."""
        return self.client is not None or self._factory is not None

    @property
    def is_out_of_reach(self) -> bool:
        """Whether this process is offline, and the client needs the network or is still to be made."""
        return is_offline() and (self.client is None or needs_network(self.client))

    @property
    def holders(self) -> tuple[object, ...]:
        """What may hold secrets."""
        return self.client, self._factory

    def get(self) -> Any:
        """The client; made now if it was not yet.

        Raises:
            TypeError: What was made is no client.
        """
        with self._lock:
            if self.client is None and self._factory is not None:
                made = self._factory()
                if not _is_client(made):
                    raise _no_client(made, "the function that makes the client returned")
                self.client = made
            return self.client

    async def respond(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: Mapping[str, Any]
    ) -> ChatResponse[Any]:
        """Ask the client for an answer, in whatever form it gives it.

        Raises:
            ChatClientException: The client needs the network, and this process is to stay off it.
        """
        reply = self._ask(messages, options, kwargs, stream=False)
        return await response_of(reply, self._builder(options))

    async def open(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: Mapping[str, Any]
    ) -> ChatStream:
        """Ask the client for a streamed answer; likewise."""
        reply = self._ask(messages, options, kwargs, stream=True)
        return await stream_of(reply, self._builder(options))

    def _ask(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: Mapping[str, Any], *, stream: bool
    ) -> Any:
        client = self.get()
        require_network(client)
        if isinstance(client, BaseChatClient):
            return client._inner_get_response(  # noqa: SLF001 - the hook is what is recorded
                messages=list(messages), stream=stream, options=dict(options), **kwargs
            )
        given: dict[str, Any] = {"options": dict(options)} if options else {}
        if kwargs:
            given["client_kwargs"] = dict(kwargs)
        if stream:
            given["stream"] = True
        return client.get_response(list(messages), **given)

    def _builder(self, options: Mapping[str, Any]) -> Callable[[AsyncIterable[Any]], ChatStream]:
        response_format = options.get("response_format")

        def build_stream(updates: AsyncIterable[Any]) -> ChatStream:
            if isinstance(self.client, BaseChatClient):
                return self.client._build_response_stream(updates, response_format=response_format)  # noqa: SLF001 - likewise
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
