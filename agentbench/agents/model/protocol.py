"""What a chat client has to offer, and the factories of tools that services host."""

from __future__ import annotations

import typing
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from agentbench.agents.compaction.protocols import CompactionStrategy, TokenizerProtocol
    from agentbench.messages.message import Message
    from agentbench.messages.response import ChatResponse
    from agentbench.messages.stream import ResponseStream
    from agentbench.messages.update import ChatResponseUpdate

    OptionsContraT = TypeVar("OptionsContraT", contravariant=True, default=Any)
else:  # defaults came with Python 3.13, and only readers of types ask for them
    OptionsContraT = typing.TypeVar("OptionsContraT", contravariant=True)


@runtime_checkable
class SupportsChatGetResponse(Protocol[OptionsContraT]):
    """Whatever answers messages. Nothing of ours need be inherited; `isinstance` asks only whether the names are there.

    Attributes:
        additional_properties: Whatever else belongs to the client.
    """

    additional_properties: dict[str, Any]

    def get_response(
        self,
        messages: Sequence[Message],
        *,
        stream: bool = False,
        options: OptionsContraT | None = None,
        compaction_strategy: CompactionStrategy | None = None,
        tokenizer: TokenizerProtocol | None = None,
        function_invocation_kwargs: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
    ) -> Awaitable[ChatResponse[Any]] | ResponseStream[ChatResponseUpdate, ChatResponse[Any]]:
        """Answer messages: an awaitable of the response, or with `stream` a stream of its updates.

        Callers pass only arguments that have a value.
        """
        ...


@runtime_checkable
class SupportsCodeInterpreterTool(Protocol):
    """A client whose service runs code."""

    @staticmethod
    def get_code_interpreter_tool(**kwargs: Any) -> Any:
        """Return the tool, to be put among others."""
        ...


@runtime_checkable
class SupportsWebSearchTool(Protocol):
    """A client whose service searches the web."""

    @staticmethod
    def get_web_search_tool(**kwargs: Any) -> Any:
        """Return the tool, to be put among others."""
        ...


@runtime_checkable
class SupportsImageGenerationTool(Protocol):
    """A client whose service draws images."""

    @staticmethod
    def get_image_generation_tool(**kwargs: Any) -> Any:
        """Return the tool, to be put among others."""
        ...


@runtime_checkable
class SupportsMCPTool(Protocol):
    """A client whose service talks to MCP servers."""

    @staticmethod
    def get_mcp_tool(**kwargs: Any) -> Any:
        """Return the tool, to be put among others."""
        ...


@runtime_checkable
class SupportsFileSearchTool(Protocol):
    """A client whose service searches files that it keeps."""

    @staticmethod
    def get_file_search_tool(**kwargs: Any) -> Any:
        """Return the tool, to be put among others."""
        ...
