"""Embedding clients, and the embeddings that they return."""

from __future__ import annotations

import typing
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from datetime import datetime
from functools import wraps
from typing import (
    TYPE_CHECKING,
    Any,
    ClassVar,
    Generic,
    Protocol,
    Self,
    SupportsIndex,
    TypedDict,
    overload,
    runtime_checkable,
)

from agentbench.agents.model.settings import require_network
from agentbench.agents.telemetry.layers import embeddings_in_span

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    from agentbench.messages.usage import UsageDetails

    EmbeddingInputT = TypeVar("EmbeddingInputT", default=str)
    InputContraT = TypeVar("InputContraT", contravariant=True, default=str)
    EmbeddingT = TypeVar("EmbeddingT", default=list[float])
    OptionsT = TypeVar("OptionsT", default="EmbeddingGenerationOptions")
else:  # defaults need Python 3.13
    EmbeddingInputT = typing.TypeVar("EmbeddingInputT")
    InputContraT = typing.TypeVar("InputContraT", contravariant=True)
    EmbeddingT = typing.TypeVar("EmbeddingT")
    OptionsT = typing.TypeVar("OptionsT")


class EmbeddingGenerationOptions(TypedDict, total=False):
    """Options of an embedding model. Unknown keys are passed on to the client.

    Example:
        from agentbench import EmbeddingGenerationOptions

        options: EmbeddingGenerationOptions = {"model": "small", "dimensions": 256}
    """

    model: str
    dimensions: int


_DEFAULTS: dict[Any, Any] = {
    **dict.fromkeys((EmbeddingInputT, InputContraT), str),
    EmbeddingT: list[float],
    OptionsT: EmbeddingGenerationOptions,
}


def _with_defaults(cls: Any, parameters: Any) -> tuple[Any, ...]:
    """Return the type parameters of a class, with defaults for missing ones."""
    found = parameters if isinstance(parameters, tuple) else (parameters,)
    return (*found, *(_DEFAULTS[one] for one in cls.__parameters__[len(found) :] if one in _DEFAULTS))


@dataclass(slots=True, eq=False)
class Embedding(Generic[EmbeddingT]):
    """The embedding vector of one value.

    Args:
        vector: Usually a list of floats.
        model: Name of the model.
        dimensions: Number of dimensions; by default the length of the vector, unless it is text.
        created_at: Creation time, in the service's format or as a `datetime`.
        additional_properties: Additional values that the application stores with it.

    Example:
        embedding = Embedding([0.1, 0.2], model="tiny")
        assert embedding.dimensions == 2
    """

    vector: EmbeddingT
    _: KW_ONLY
    model: str | None = None
    dimensions: int | None = None
    created_at: str | datetime | None = None
    additional_properties: dict[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.additional_properties = dict(self.additional_properties or {})
        if self.dimensions is None and hasattr(self.vector, "__len__") and not isinstance(self.vector, str):
            self.dimensions = len(self.vector)

    def __repr__(self) -> str:
        model = "" if self.model is None else f", model={self.model!r}"
        return f"Embedding(dimensions={self.dimensions}{model})"


class GeneratedEmbeddings(list[Embedding[EmbeddingT]], Generic[EmbeddingT, OptionsT]):
    """The embeddings of several values, in the same order.

    Args:
        embeddings: One embedding per value.
        options: Options of the call.
        usage: Token counts.
        additional_properties: Additional values that the application stores with it.

    Example:
        embeddings = GeneratedEmbeddings([Embedding([0.1]), Embedding([0.2])], usage={"input_token_count": 2})
        vectors = [embedding.vector for embedding in embeddings]
    """

    def __init__(
        self,
        embeddings: Iterable[Embedding[EmbeddingT]] | None = None,
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
    def __getitem__(self, index: SupportsIndex) -> Embedding[EmbeddingT]: ...

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    def __getitem__(self, index: SupportsIndex | slice) -> Embedding[EmbeddingT] | Self:
        found = super().__getitem__(index)
        if isinstance(found, Embedding):
            return found
        # The usage is for all embeddings, so a slice has none.
        return type(self)(found, options=self.options, additional_properties=self.additional_properties)

    def __repr__(self) -> str:
        return f"GeneratedEmbeddings({super().__repr__()})"


@runtime_checkable
class SupportsGetEmbeddings(Protocol[InputContraT, EmbeddingT, OptionsT]):
    """An embedding client: any object with these members. `isinstance` checks only their names.

    Attributes:
        additional_properties: Additional values that the application stores with the client.

    Example:
        if isinstance(client, SupportsGetEmbeddings):
            embeddings = await client.get_embeddings(["owls", "cats"])
    """

    additional_properties: dict[str, Any]

    def __class_getitem__(cls, parameters: Any) -> Any:
        return super().__class_getitem__(_with_defaults(cls, parameters))  # type: ignore[misc]

    def get_embeddings(
        self, values: Sequence[InputContraT], *, options: OptionsT | None = None
    ) -> Awaitable[GeneratedEmbeddings[EmbeddingT, OptionsT]]:
        """Return the embeddings of values, in the same order."""


class BaseEmbeddingClient(ABC, Generic[EmbeddingInputT, EmbeddingT, OptionsT]):
    """The base class of embedding clients. A subclass implements `get_embeddings`.

    A call without values returns an empty list without calling the subclass. If telemetry is set up, each call is a
    span `embeddings <model>` with the `OTEL_PROVIDER_NAME` of the subclass.

    Args:
        additional_properties: Additional values that the application stores with the client.

    Example:
        class Lengths(BaseEmbeddingClient):
            async def get_embeddings(self, values, *, options=None):
                return GeneratedEmbeddings([Embedding([float(len(value))]) for value in values])


        embeddings = await Lengths().get_embeddings(["a", "bc"])
    """

    OTEL_PROVIDER_NAME: ClassVar[str] = "unknown"
    NEEDS_NETWORK: ClassVar[bool] = False
    """Whether the service is on another machine. If so, calls raise while `AGENTBENCH_OFFLINE` is set."""

    def __class_getitem__(cls, parameters: Any) -> Any:
        return super().__class_getitem__(_with_defaults(cls, parameters))  # type: ignore[misc]

    def __init__(self, *, additional_properties: Mapping[str, Any] | None = None) -> None:
        self.additional_properties: dict[str, Any] = dict(additional_properties or {})

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = cls.__dict__.get("get_embeddings")
        if callable(own) and not getattr(own, "__isabstractmethod__", False):
            cls.get_embeddings = _wrap(own)  # type: ignore[method-assign, assignment]

    @abstractmethod
    async def get_embeddings(
        self, values: Sequence[EmbeddingInputT], *, options: OptionsT | None = None
    ) -> GeneratedEmbeddings[EmbeddingT, OptionsT]:
        """Return the embeddings of values, in the same order.

        Raises:
            ChatClientException: The service is on another machine, and `AGENTBENCH_OFFLINE` is set.
        """

    def service_url(self) -> str:
        """Return the URL of the service."""
        return "Unknown"


def _wrap(get_embeddings: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    """Wrap a subclass's method to handle empty input, the offline check and the span."""

    @wraps(get_embeddings)
    async def wrapper(self: Any, values: Sequence[Any], *, options: Any = None, **more: Any) -> Any:
        if not len(values):
            return GeneratedEmbeddings[Any, Any](options=options)

        async def call() -> Any:
            require_network(self)
            return await get_embeddings(self, values, options=options, **more)

        return await embeddings_in_span(self, values, options, call)

    return wrapper
