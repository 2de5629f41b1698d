"""Where a run that records its model calls sees them: each request passes through the recorder in force."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from agentbench.messages.message import Message
    from agentbench.messages.response import ChatResponse


class CallRecorder(Protocol):
    """Answers a request from a recording, or sends it and keeps the answer. Its errors are those of the request."""

    def covers(self, client: Any) -> bool:
        """Whether the calls of a client are recorded."""

    async def respond(
        self,
        client: Any,
        messages: Sequence[Message],
        options: Mapping[str, Any],
        send: Callable[[], Awaitable[ChatResponse[Any]]],
    ) -> ChatResponse[Any]:
        """Return the answer to a request; `send` sends it to the model."""

    async def open(
        self, client: Any, messages: Sequence[Message], options: Mapping[str, Any], send: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Return the streamed answer to a request."""


recorder: Final[ContextVar[CallRecorder | None]] = ContextVar("agentbench_call_recorder", default=None)
"""The recorder of the handler that is being called; None for runs that record nothing, and while a request is sent."""
