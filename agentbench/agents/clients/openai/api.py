"""The interface of an API: how a request is made, and how an answer is read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate


class WireRequest(NamedTuple):
    """A request that is ready to be sent.

    Attributes:
        method: Of the SDK's part for this API.
        body: Its arguments.
    """

    method: str
    body: dict[str, Any]


class UpdateReader(Protocol):
    """Reads the events of one stream, in order."""

    @property
    def ended(self) -> bool:
        """Whether the service has reported that the answer is complete."""
        ...

    @property
    def failure(self) -> Any:
        """The failure that the service reports, if it does."""
        ...

    def read(self, event: Any, /) -> ChatResponseUpdate | None:
        """Return the update that an event of the stream means, if any."""
        ...


class Api(Protocol):
    """One of the two ways to call a model.

    Attributes:
        path: Of the SDK's part for it.
        since: The version of the SDK that first had this part.
        stores: Whether the service stores answers by default.
    """

    path: str
    since: str
    stores: bool

    def request(
        self, messages: Sequence[Message], options: Mapping[str, Any], *, model: str, instruction_role: str | None
    ) -> WireRequest:
        """Return a request.

        Raises:
            ChatClientInvalidRequestException: There is nothing to send.
        """
        ...

    def response(self, answer: Any, options: Mapping[str, Any]) -> ChatResponse[Any] | None:
        """Read an answer; `None` if it is none."""
        ...

    def failure(self, answer: Any) -> Any:
        """The failure that the service reports, if it does."""
        ...

    def reader(self, options: Mapping[str, Any]) -> UpdateReader:
        """Return the reader for a stream."""
        ...

    def stream_body(self, request: WireRequest) -> dict[str, Any]:
        """Return the arguments of a request for a stream."""
        ...
