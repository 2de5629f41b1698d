"""The protocols of chat clients and of factories for hosted tools."""

from __future__ import annotations

import typing
from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from agentbench.agents.compaction.grouping import CompactionStrategy, TokenizerProtocol
    from agentbench.messages.message import Message
    from agentbench.messages.response import ChatResponse
    from agentbench.messages.stream import ResponseStream
    from agentbench.messages.update import ChatResponseUpdate

    OptionsContraT = TypeVar("OptionsContraT", contravariant=True, default=Any)
else:  # defaults need Python 3.13, and only type checkers use them
    OptionsContraT = typing.TypeVar("OptionsContraT", contravariant=True)


@runtime_checkable
class SupportsChatGetResponse(Protocol[OptionsContraT]):
    """A chat client: any object with these members, without inheritance. `isinstance` checks only their names.

    Attributes:
        additional_properties: Additional values that the application stores with the client.

    Example:
        class Parrot:
            additional_properties = {}

            async def get_response(self, messages, *, stream=False, options=None, **kwargs):
                return ChatResponse(text=messages[-1].text)


        assert isinstance(Parrot(), SupportsChatGetResponse)
        agent = Agent(Parrot())
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
        """Return an awaitable of the response; with `stream=True`, a stream of updates.

        The arguments are the same as in `BaseChatClient.get_response`; callers omit those without a value.
        """


@runtime_checkable
class SupportsCodeInterpreterTool(Protocol):
    """A client whose service runs code.

    Example:
        if isinstance(client, SupportsCodeInterpreterTool):
            tools = [client.get_code_interpreter_tool()]
    """

    @staticmethod
    def get_code_interpreter_tool(**kwargs: Any) -> Any:
        """Return the tool, for the `tools` of an agent or of a request."""


@runtime_checkable
class SupportsWebSearchTool(Protocol):
    """A client whose service searches the web.

    Example:
        if isinstance(client, SupportsWebSearchTool):
            tools = [client.get_web_search_tool()]
    """

    @staticmethod
    def get_web_search_tool(**kwargs: Any) -> Any:
        """Return the tool, for the `tools` of an agent or of a request."""


@runtime_checkable
class SupportsImageGenerationTool(Protocol):
    """A client whose service generates images.

    Example:
        if isinstance(client, SupportsImageGenerationTool):
            tools = [client.get_image_generation_tool()]
    """

    @staticmethod
    def get_image_generation_tool(**kwargs: Any) -> Any:
        """Return the tool, for the `tools` of an agent or of a request."""


@runtime_checkable
class SupportsMCPTool(Protocol):
    """A client whose service calls MCP servers.

    Example:
        if isinstance(client, SupportsMCPTool):
            tools = [client.get_mcp_tool(name="docs", url="https://example.org/mcp")]
    """

    @staticmethod
    def get_mcp_tool(**kwargs: Any) -> Any:
        """Return the tool, for the `tools` of an agent or of a request."""


@runtime_checkable
class SupportsFileSearchTool(Protocol):
    """A client whose service searches files that it stores.

    Example:
        if isinstance(client, SupportsFileSearchTool):
            tools = [client.get_file_search_tool(vector_store_ids=["vs_1"])]
    """

    @staticmethod
    def get_file_search_tool(**kwargs: Any) -> Any:
        """Return the tool, for the `tools` of an agent or of a request."""
