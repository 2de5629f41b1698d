"""The embedding client."""

from __future__ import annotations

import base64
import os
import struct
import typing
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Generic, Literal, cast

from agentbench.agents.clients.openai.connection import TRANSPORT_ARGUMENTS, Connected, OpenAIConnection
from agentbench.agents.clients.openai.errors import NO_VECTORS
from agentbench.agents.clients.openai.settings import ApiKey
from agentbench.agents.clients.openai.wire import WireRequest, field, items, number, text, usage_of
from agentbench.agents.model.embeddings import (
    BaseEmbeddingClient,
    Embedding,
    EmbeddingGenerationOptions,
    GeneratedEmbeddings,
)

if TYPE_CHECKING:
    from openai import AsyncOpenAI
    from typing_extensions import TypeVar

    OptionsT = TypeVar("OptionsT", default=EmbeddingGenerationOptions)
else:  # defaults need Python 3.13, and only type checkers use them
    OptionsT = typing.TypeVar("OptionsT")


class OpenAIEmbeddingOptions(EmbeddingGenerationOptions, total=False):
    """Options of OpenAI-compatible services, in addition to `EmbeddingGenerationOptions`.

    Attributes:
        encoding_format: Encoding of the vectors; the client reads both.
        user: Id of the user, for the service's abuse detection.

    Example:
        from agentbench.openai import OpenAIEmbeddingOptions

        options: OpenAIEmbeddingOptions = {"dimensions": 256, "encoding_format": "float"}
    """

    encoding_format: Literal["float", "base64"]
    user: str


class OpenAIEmbeddingClient(Connected, BaseEmbeddingClient[str, list[float], OptionsT], Generic[OptionsT]):
    """Calls embedding models of OpenAI or any OpenAI-compatible server.

    Args:
        model: The model; by default `OPENAI_EMBEDDING_MODEL`.
        additional_properties: Additional values that the application stores with the client.
        otel_provider_name: Name of the service in spans; by default `openai`.

    The other arguments and the errors are the same as for `OpenAIChatClient`.

    Example:
        from agentbench.openai import OpenAIEmbeddingClient

        client = OpenAIEmbeddingClient("text-embedding-3-small")  # the key from OPENAI_API_KEY
        vectors = await client.get_embeddings(["a cat", "a dog"])
        print(vectors[0].dimensions)
    """

    OTEL_PROVIDER_NAME: ClassVar[str] = "openai"
    NEEDS_NETWORK: ClassVar[bool] = True

    def __init__(  # noqa: PLR0913 - one argument per setting
        self,
        model: str | None = None,
        *,
        api_key: ApiKey | None = None,
        org_id: str | None = None,
        base_url: str | None = None,
        default_headers: Mapping[str, str] | None = None,
        async_client: AsyncOpenAI | None = None,
        env_file_path: str | os.PathLike[str] | None = None,
        env_file_encoding: str | None = None,
        additional_properties: Mapping[str, Any] | None = None,
        otel_provider_name: str | None = None,
        timeout: float | None = None,
        max_retries: int | None = None,
    ) -> None:
        super().__init__(additional_properties=additional_properties)
        self._ab_connection = OpenAIConnection(
            model,
            ("embedding_model",),
            api_key=api_key,
            org_id=org_id,
            base_url=base_url,
            env_file_path=env_file_path,
            env_file_encoding=env_file_encoding,
            async_client=async_client,
            default_headers=default_headers,
            timeout=timeout,
            max_retries=max_retries,
        )
        self.model = self._ab_connection.target.model
        self.otel_provider_name = otel_provider_name

    async def get_embeddings(
        self, values: Sequence[str], *, options: OptionsT | None = None
    ) -> GeneratedEmbeddings[list[float], OptionsT]:
        """Return the vectors of one or several texts, in order; raise a `ChatClientException` on failure."""
        sent = [values] if isinstance(values, str) else list(values)
        fields = {name: value for name, value in cast("Mapping[str, Any]", options or {}).items() if value is not None}
        transport = await self._ab_connection.transport({name: fields.pop(name, None) for name in TRANSPORT_ARGUMENTS})
        # Base64 needs a third of the bytes. If requested explicitly, the SDK leaves decoding, which may fail, to us.
        body = {"model": self.model, "encoding_format": "base64", **fields, "input": sent}
        with self._ab_connection.translate_errors(body, transport):
            answer = await self._ab_connection.call("embeddings", WireRequest("create", body), transport)
            found = list(_embeddings(answer))
            if len(found) != len(sent):
                raise ValueError(NO_VECTORS.format(found=len(found), texts=len(sent)))
        return GeneratedEmbeddings(found, options=options, usage=usage_of(answer))


def _embeddings(answer: Any) -> Iterator[Embedding[list[float]]]:
    model = text(answer, "model")
    for entry in sorted(items(answer, "data"), key=lambda entry: number(entry, "index") or 0):
        vector = _vector(field(entry, "embedding"))
        if vector:
            yield Embedding(vector, model=model)


def _vector(sent: Any) -> list[float]:
    if isinstance(sent, (list, tuple)):
        return list(sent)
    try:
        packed = base64.b64decode(sent, validate=True)
        return list(struct.unpack(f"<{len(packed) // 4}f", packed))
    except (TypeError, ValueError, struct.error):
        return []
