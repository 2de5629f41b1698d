"""What the client needs to know about an API: how a request is made, and how an answer is read."""

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
    """Reads what one stream brings, in order."""

    @property
    def ended(self) -> bool:
        """Whether the service has said that the answer is complete."""
        ...

    @property
    def failure(self) -> Any:
        """What the service reports as its failure, if it does."""
        ...

    def read(self, event: Any, /) -> ChatResponseUpdate | None:
        """Return the update that a piece of the stream stands for, if any."""
        ...


class Api(Protocol):
    """One of the two ways to ask a model.

    Attributes:
        path: Of the SDK's part for it.
        since: The version of the SDK that first had this part.
        stores: Whether the service keeps answers unless it is told not to.
    """

    path: str
    since: str
    stores: bool

    def request(
        self, messages: Sequence[Message], options: Mapping[str, Any], *, model: str, instruction_role: str | None
    ) -> WireRequest:
        """Make a request.

        Raises:
            ChatClientInvalidRequestException: There is nothing to send.
        """
        ...

    def response(self, answer: Any, options: Mapping[str, Any]) -> ChatResponse[Any] | None:
        """Read an answer; `None` if it is none."""
        ...

    def failure(self, answer: Any) -> Any:
        """What the service reports as its failure, if it does."""
        ...

    def reader(self, options: Mapping[str, Any]) -> UpdateReader:
        """Return the reader for a stream."""
        ...

    def stream_body(self, request: WireRequest) -> dict[str, Any]:
        """The arguments that make a request one for a stream."""
        ...
