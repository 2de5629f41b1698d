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
    """The client whose answers are recorded: `source`, or what it returns where it is a function that makes one.

    Attributes:
        client: The client, `None` if there is none yet.
        factory: The function, `None` if there is none.
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
        """Return the client; it is made now if it was not yet."""
        with self._lock:
            if self.client is None and self.factory is not None:
                made = self.factory()
                if not _is_client(made):
                    raise _no_client(made, "the function that makes the client returned")
                self.client = made
            return self.client

    async def answer(
        self, messages: Sequence[Message], options: Mapping[str, Any], kwargs: Mapping[str, Any], *, stream: bool
    ) -> Any:
        """Return the client's answer as one `ChatResponse` or as a stream, in whichever form the client gives it.

        A `BaseChatClient` is called at its own hook, below its layers, because those of the cassette's client already
        run; any other client through `get_response`.
        """
        client, response_format = self.get(), options.get("response_format")
        require_network(client)
        is_base = isinstance(client, BaseChatClient)

        def build_stream(updates: AsyncIterable[Any]) -> ChatStream:
            if is_base:
                built: ChatStream = client._build_response_stream(updates, response_format=response_format)  # noqa: SLF001
                return built
            return ResponseStream(
                updates, finalizer=lambda found: ChatResponse.from_updates(found, output_format_type=response_format)
            )

        if is_base:
            reply = client._inner_get_response(  # noqa: SLF001 - the hook is what is recorded
                messages=list(messages), stream=stream, options=dict(options), **kwargs
            )
        else:
            arguments = {"options": dict(options), "client_kwargs": dict(kwargs), "stream": stream}
            reply = client.get_response(list(messages), **{name: value for name, value in arguments.items() if value})
        return await (stream_of if stream else response_of)(reply, build_stream)


def _is_client(source: object) -> bool:
    # A class has the method too, and is a function that makes a client.
    return not isinstance(source, type) and callable(getattr(source, "get_response", None))


def _no_client(source: object, what: str) -> TypeError:
    return TypeError(
        f"{what} {type(source).__name__}; expected a chat client, or a function without arguments that makes one."
    )
