"""Read by the type checker, never run: what `get_response` gives, by how it is asked."""

from __future__ import annotations

from collections.abc import Awaitable, Sequence
from typing import Any, TypedDict, assert_type

from agentbench import (
    BaseChatClient,
    BaseEmbeddingClient,
    ChatResponse,
    ChatResponseUpdate,
    Embedding,
    EmbeddingGenerationOptions,
    EmbeddingInputT,
    EmbeddingT,
    FinalT,
    GeneratedEmbeddings,
    Message,
    ResponseStream,
    SupportsChatGetResponse,
    UpdateT,
)


class MyOptions(TypedDict, total=False):
    temperature: float


class Bare(BaseChatClient):
    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        return ChatResponse(text="hi")


class Named(BaseChatClient["MyOptions"]):
    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        return ChatResponse(text="hi")


Stream = ResponseStream[ChatResponseUpdate, ChatResponse[Any]]


async def asked(client: Bare, either: bool) -> None:
    assert_type(await client.get_response("hi"), ChatResponse[Any])
    assert_type(await client.get_response([Message("user", "hi")], stream=False), ChatResponse[Any])
    assert_type(client.get_response("hi", stream=True, options={"temperature": 1}), Stream)
    assert_type(client.get_response("hi", stream=either), Awaitable[ChatResponse[Any]] | Stream)
    async for update in client.get_response("hi", stream=True):
        assert_type(update, ChatResponseUpdate)
    client.get_response("hi", sesion=None)  # type: ignore[call-overload]


def taken(client: SupportsChatGetResponse[Any]) -> None: ...


def handed_over() -> None:
    taken(Bare())
    taken(Named())


def without_brackets(
    client: SupportsChatGetResponse, base: BaseChatClient, one: Embedding, more: GeneratedEmbeddings
) -> BaseEmbeddingClient[str]:
    assert_type(client, SupportsChatGetResponse[Any])
    assert_type(base, BaseChatClient[Any])
    assert_type(one, Embedding[list[float]])
    found = GeneratedEmbeddings([Embedding([1.0])])
    assert_type(found, GeneratedEmbeddings[list[float], EmbeddingGenerationOptions])
    more.extend(found)
    return Vectors()


class Vectors(BaseEmbeddingClient[str, list[float], EmbeddingGenerationOptions]):
    async def get_embeddings(
        self, values: Sequence[str], *, options: EmbeddingGenerationOptions | None = None
    ) -> GeneratedEmbeddings[list[float], EmbeddingGenerationOptions]:
        return GeneratedEmbeddings([Embedding([1.0])])


async def embedded(client: Vectors) -> None:
    found = await client.get_embeddings(["a"])
    assert_type(found[0].vector, list[float])
    assert_type(found[:1], GeneratedEmbeddings[list[float], EmbeddingGenerationOptions])


class AnyVectors(BaseEmbeddingClient[EmbeddingInputT, EmbeddingT]):
    """A generic subclass over the public type variables."""


class Watched(ResponseStream[UpdateT, FinalT]):
    """Another one."""


def defaults(vectors: AnyVectors, stream: Watched) -> None:
    assert_type(vectors, AnyVectors[str, list[float]])
    assert_type(stream, Watched[Any, Any])
