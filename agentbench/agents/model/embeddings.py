"""Clients of embedding models, and what they give."""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Protocol,
    SupportsIndex,
    TypedDict,
    overload,
    runtime_checkable,
)

from agentbench.agents.model.network import require_network
from agentbench.agents.telemetry.layers import embeddings_in_span

if TYPE_CHECKING:
    from typing_extensions import Self, TypeVar

    from agentbench.messages.usage import UsageDetails

    InputT = TypeVar("InputT", default=Any)
    VectorT = TypeVar("VectorT", default=Any)
    OptionsT = TypeVar("OptionsT", default=Any)
else:  # defaults came with Python 3.13, and only readers of types ask for them
    InputT = typing.TypeVar("InputT")
    VectorT = typing.TypeVar("VectorT")
    OptionsT = typing.TypeVar("OptionsT")


class EmbeddingGenerationOptions(TypedDict, total=False):
    """What a caller may ask of an embedding model. Further keys are handed on to the client."""

    model: str
    dimensions: int


class Embedding(Generic[VectorT]):
    """The vector of one value.

    Args:
        vector: Usually a list of floats.
        model: Which model made it.
        dimensions: How many numbers it has; by default the length of the vector.
        created_at: When, as the service wrote it.
        additional_properties: Whatever else belongs to it.
    """

    __slots__ = ("additional_properties", "created_at", "dimensions", "model", "vector")

    def __init__(
        self,
        vector: VectorT,
        *,
        model: str | None = None,
        dimensions: int | None = None,
        created_at: str | None = None,
        additional_properties: Mapping[str, Any] | None = None,
    ) -> None:
        self.vector = vector
        self.model = model
        self.dimensions: int | None = len(vector) if dimensions is None and hasattr(vector, "__len__") else dimensions
        self.created_at = created_at
        self.additional_properties: dict[str, Any] = dict(additional_properties or {})

    def __repr__(self) -> str:
        model = "" if self.model is None else f", model={self.model!r}"
        return f"Embedding(dimensions={self.dimensions}{model})"


class GeneratedEmbeddings(list[Embedding[VectorT]], Generic[VectorT, OptionsT]):
    """The embeddings of several values, in their order.

    Args:
        embeddings: One for each value.
        options: Of the call.
        usage: Numbers of tokens.
        additional_properties: Whatever else belongs to it.
    """

    def __init__(
        self,
        embeddings: Iterable[Embedding[VectorT]] | None = None,
        *,
        options: OptionsT | None = None,
        usage: UsageDetails | None = None,
        additional_properties: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(embeddings or ())
        self.options = options
        self.usage = usage
        self.additional_properties: dict[str, Any] = dict(additional_properties or {})

    @overload
    def __getitem__(self, index: SupportsIndex) -> Embedding[VectorT]: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Embedding[VectorT] | Self:
        found = super().__getitem__(index)
        if isinstance(found, Embedding):
            return found
        # What was used was used by all of them, so a part does not tell it.
        return type(self)(found, options=self.options, additional_properties=self.additional_properties)

    def __repr__(self) -> str:
        return f"GeneratedEmbeddings({super().__repr__()})"


@runtime_checkable
class SupportsGetEmbeddings(Protocol):
    """Whatever makes embeddings; `isinstance` asks only whether the names are there.

    Attributes:
        additional_properties: Whatever else belongs to the client.
    """

    additional_properties: dict[str, Any]

    def get_embeddings(self, values: Sequence[Any], *, options: Any = None) -> Awaitable[GeneratedEmbeddings[Any, Any]]:
        """Return the embeddings of values, in their order."""
        ...


class BaseEmbeddingClient(ABC, Generic[InputT, VectorT, OptionsT]):
    """The base of embedding clients. A call without values gives an empty list, and the subclass is not asked.

    Where telemetry is set up, a call is a span `embeddings <model>`, with the subclass' `OTEL_PROVIDER_NAME`.

    Args:
        additional_properties: Whatever else belongs to the client.
    """

    OTEL_PROVIDER_NAME: ClassVar[str] = "unknown"
    NEEDS_NETWORK: ClassVar[bool] = False
    """Whether the service is elsewhere, so that the client refuses to work while `AGENTBENCH_OFFLINE` is set."""

    def __init__(self, *, additional_properties: Mapping[str, Any] | None = None) -> None:
        self.additional_properties: dict[str, Any] = dict(additional_properties or {})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("get_embeddings")
        if callable(own) and not getattr(own, "__isabstractmethod__", False):
            cls.get_embeddings = _guarded(own)  # type: ignore[method-assign, assignment]

    @abstractmethod
    async def get_embeddings(
        self, values: Sequence[InputT], *, options: OptionsT | None = None
    ) -> GeneratedEmbeddings[VectorT, OptionsT]:
        """Return the embeddings of values, in their order.

        Raises:
            ChatClientException: The service is elsewhere while the environment asks to stay off the network.
        """

    def service_url(self) -> str:
        """The address of the service."""
        return "Unknown"


def _guarded(get_embeddings: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Do what every client has to do before and while it asks its service."""

    @wraps(get_embeddings)
    async def guarded(self: Any, values: Sequence[Any], *, options: Any = None, **more: Any) -> Any:
        if not len(values):
            return GeneratedEmbeddings[Any, Any](options=options)

        async def ask() -> Any:
            require_network(self)
            return await get_embeddings(self, values, options=options, **more)

        return await embeddings_in_span(self, values, options, ask)

    return guarded
