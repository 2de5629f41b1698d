"""The keywords that every client takes for what runs around its model."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypedDict

if TYPE_CHECKING:
    from agentbench.agents.compaction.protocols import CompactionStrategy, TokenizerProtocol
    from agentbench.agents.loop.configuration import FunctionInvocationConfiguration
    from agentbench.agents.middleware.bases import MiddlewareInput

__all__ = ["ClientLayers"]


class ClientLayers(TypedDict, total=False):
    """As the constructor of `BaseChatClient` takes them."""

    middleware: MiddlewareInput
    function_invocation_configuration: FunctionInvocationConfiguration | Mapping[str, Any] | None
    compaction_strategy: CompactionStrategy | None
    tokenizer: TokenizerProtocol | None
    additional_properties: Mapping[str, Any] | None
    otel_provider_name: str | None
