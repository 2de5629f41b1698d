"""What every client of an OpenAI-compatible service does with its connection."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agentbench.agents.clients.openai.connection import Connection

if TYPE_CHECKING:
    from typing_extensions import Self


class Connected:
    """Shows model and address, and nothing else; closes what it has opened."""

    model: str
    _connection: Connection

    def service_url(self) -> str:
        """The address of the API, without credentials."""
        return self._connection.url

    async def close(self) -> None:
        """Close connections that the client has opened; a client of the SDK that it was given stays open."""
        await self._connection.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    def __repr__(self) -> str:
        return f"{type(self).__name__}(model={self.model!r}, url={self.service_url()!r})"
