"""The client of embedding models."""

from __future__ import annotations

import base64
import os
import struct
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, cast

from agentbench.agents.clients.openai.connected import Connected
from agentbench.agents.clients.openai.connection import TRANSPORT_ARGUMENTS, Connection
from agentbench.agents.clients.openai.errors import NO_VECTORS, unusable
from agentbench.agents.clients.openai.settings import ApiKey, find_target
from agentbench.agents.clients.openai.wire import counts, field, items, number, text
from agentbench.agents.model.embeddings import (
    BaseEmbeddingClient,
    Embedding,
    EmbeddingGenerationOptions,
    GeneratedEmbeddings,
)
from agentbench.agents.telemetry.layers import EmbeddingSpans

if TYPE_CHECKING:
    from openai import AsyncOpenAI

    from agentbench.messages.usage import UsageDetails

Vectors = GeneratedEmbeddings[list[float], EmbeddingGenerationOptions]

_COUNTS = (("input_token_count", "prompt_tokens"), ("total_token_count", "total_tokens"))


class EmbeddingRequests(Connected, BaseEmbeddingClient[str, list[float], EmbeddingGenerationOptions]):
    """Asks for embeddings, without a span around it."""

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
        timeout: float | None = None,
        max_retries: int | None = None,
    ) -> None:
        super().__init__(additional_properties=additional_properties)
        target = find_target(
            model,
            ("embedding_model",),
            api_key=api_key,
            org_id=org_id,
            base_url=base_url,
            env_file_path=env_file_path,
            env_file_encoding=env_file_encoding,
            connected=async_client is not None,
        )
        self.model = target.model
        self._connection = Connection(
            target, given=async_client, default_headers=default_headers, timeout=timeout, max_retries=max_retries
        )

    async def get_embeddings(
        self, values: Sequence[str], *, options: EmbeddingGenerationOptions | None = None
    ) -> Vectors:
        """Return the vectors of texts.

        Args:
            values: The texts; also a single one.
            options: `model`, `dimensions`, and whatever else the service knows.

        Returns:
            One embedding per text, in order.

        Raises:
            ChatClientException: It went wrong; see its subclasses.
        """
        sent = [values] if isinstance(values, str) else list(values)
        asked = {name: value for name, value in (options or {}).items() if value is not None}
        transport = {name: asked.pop(name) for name in TRANSPORT_ARGUMENTS if name in asked}
        method = self._connection.resource("embeddings", "1.60").create
        # A third of the bytes of decimal numbers. Asked for by name, it is not unpacked by the SDK, which cannot tell
        # a wrong answer.
        body = {"model": self.model, "encoding_format": "base64", **asked, "input": sent}
        answer = await self._connection.call(method, body, **transport)
        found = list(_embeddings(answer))
        if len(found) != len(sent):
            raise unusable(NO_VECTORS.format(found=len(found), asked=len(sent)), url=self.service_url())
        usage = cast("UsageDetails | None", counts(field(answer, "usage"), _COUNTS) or None)
        return GeneratedEmbeddings(found, options=options, usage=usage)


def _embeddings(answer: Any) -> Iterator[Embedding[list[float]]]:
    model = text(answer, "model")
    for entry in sorted(items(answer, "data"), key=lambda entry: number(entry, "index") or 0):
        vector = _vector(field(entry, "embedding"))
        if vector:
            yield Embedding(vector, model=model)


def _vector(sent: Any) -> list[float]:
    """The numbers, which come as such or packed; nothing if they are neither."""
    if isinstance(sent, (list, tuple)):
        return list(sent)
    try:
        packed = base64.b64decode(sent, validate=True)
        return list(struct.unpack(f"<{len(packed) // 4}f", packed))
    except (TypeError, ValueError, struct.error):
        return []


class OpenAIEmbeddingClient(EmbeddingSpans, EmbeddingRequests):
    """Asks embedding models of OpenAI, and of every service that is compatible with it.

    The model is taken from `OPENAI_EMBEDDING_MODEL`. Key, organisation and address are found as `OpenAIChatClient`
    finds them.

    Args:
        model: The model.
        api_key: The key, or a function that gives it before each request.
        org_id: The organisation that pays.
        base_url: The address of the API; by default that of OpenAI.
        default_headers: Sent with every request.
        async_client: A client of the SDK to be used as it is; key, address and limits are then its own.
        env_file_path: A file of settings.
        env_file_encoding: Of that file.
        additional_properties: Whatever else belongs to the client.
        timeout: For a request, in seconds; by default the SDK's.
        max_retries: How often the SDK repeats a request that may succeed later; by default the SDK's.
        otel_provider_name: The name of the service in spans; by default `openai`.

    Raises:
        SettingNotFoundError: There is no model, or no key.
        MissingExtraError: The `openai` package is not installed.

    Example:
        ```python
        vectors = await OpenAIEmbeddingClient("text-embedding-3-small").get_embeddings(["a cat", "a dog"])
        vectors[0].dimensions
        ```
    """
