"""Embeddings over a real connection."""

from __future__ import annotations

import base64
import struct
from typing import Any

import pytest

from agentbench.exceptions import (
    ChatClientException,
    ChatClientInvalidAuthException,
    ChatClientInvalidResponseException,
)
from agentbench.openai import OpenAIEmbeddingClient
from tests.parts.errors import raises
from tests.servers import openai_wire as wire
from tests.servers.openai_server import OpenAIServer, raw, reply

pytest.importorskip("openai", reason="openai is not installed (extra openai)")


def client_of(server: OpenAIServer, **settings: Any) -> OpenAIEmbeddingClient:
    return OpenAIEmbeddingClient("m", base_url=server.url, max_retries=0, **settings)


async def test_texts_become_vectors_in_their_order(server: OpenAIServer) -> None:
    body = wire.embeddings([1.0, 2.0], [3.0, 4.0], tokens=5)
    body["data"].reverse()
    server.answer(reply(body))
    async with client_of(server) as client:
        found = await client.get_embeddings(["a", "b"], options={"dimensions": 2, "model": "other"})
    assert [embedding.vector for embedding in found] == [[1.0, 2.0], [3.0, 4.0]]
    assert [(embedding.model, embedding.dimensions) for embedding in found] == [("served-embedding", 2)] * 2
    assert found.usage == {"input_token_count": 5, "total_token_count": 5}
    assert found.options == {"dimensions": 2, "model": "other"}
    request = server.requests[0]
    assert request.path == "/v1/embeddings"
    assert {key: request.body[key] for key in ("input", "model", "dimensions")} == {
        "input": ["a", "b"],
        "model": "other",
        "dimensions": 2,
    }
    assert request.headers["user-agent"].startswith("agentbench-python/")


async def test_vectors_that_come_packed_are_unpacked(server: OpenAIServer) -> None:
    body = wire.embeddings([])
    body["data"][0]["embedding"] = base64.b64encode(struct.pack("<2f", 1.5, -2.0)).decode()
    server.answer(reply(body))
    async with client_of(server) as client:
        assert [embedding.vector for embedding in await client.get_embeddings(["a"])] == [[1.5, -2.0]]


async def test_without_values_nothing_is_sent(server: OpenAIServer) -> None:
    async with client_of(server) as client:
        assert await client.get_embeddings([]) == []
    assert server.requests == []


async def test_options_that_the_sdk_does_not_know_are_sent_all_the_same(server: OpenAIServer) -> None:
    server.answer(reply(wire.embeddings([1.0])))
    options: Any = {"truncate": "END", "dimensions": None, "extra_headers": {"X-A": "b"}}
    async with client_of(server) as client:
        await client.get_embeddings(["a"], options=options)
    assert server.bodies[0]["truncate"] == "END"
    assert "dimensions" not in server.bodies[0]
    assert server.requests[0].headers["x-a"] == "b"


@pytest.mark.parametrize(
    "answer",
    [
        lambda: reply(wire.embeddings([1.0])),
        lambda: reply({}),
        lambda: reply({"data": [{"embedding": "!"}, {"embedding": None}]}),
        lambda: raw(b"<html>", "text/html"),
    ],
    ids=["too-few", "empty", "no-numbers", "html"],
)
async def test_what_is_no_answer_is_an_invalid_response(server: OpenAIServer, answer: Any) -> None:
    server.answer(answer())
    async with client_of(server) as client:
        with pytest.raises(ChatClientInvalidResponseException):
            await client.get_embeddings(["a", "b"])


async def test_errors_are_those_of_chat_clients(server: OpenAIServer) -> None:
    server.answer(reply(wire.error(), 401), reply(wire.error(), 429, retry_after="2"))
    async with client_of(server) as client:
        with pytest.raises(ChatClientInvalidAuthException):
            await client.get_embeddings(["a"])
        with pytest.raises(ChatClientException) as caught:
            await client.get_embeddings(["a"])
    assert (caught.value.retry_after, caught.value.is_retryable) == (2.0, True)


async def test_offline_nothing_is_sent_to_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_OFFLINE", "1")
    client = OpenAIEmbeddingClient("m", api_key="sk-1")
    with raises(ChatClientException, "AGENTBENCH_OFFLINE"):
        await client.get_embeddings(["a"])
