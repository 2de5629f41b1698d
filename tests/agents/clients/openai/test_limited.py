"""Rejections of a real service: handled by the limiter where one is in force, by the SDK elsewhere."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench._call_limiter import CallLimiter, in_force
from agentbench.exceptions import ChatClientException
from agentbench.openai import OpenAIChatCompletionClient, OpenAIEmbeddingClient
from tests.benchmarks.limit_workloads import limited_calls
from tests.servers import openai_wire as wire
from tests.servers.openai_server import Answer, OpenAIServer, reply, stream

pytest.importorskip("openai", reason="openai is not installed (extra openai)")


def rejection() -> Answer:
    return reply({"error": {"message": "Too many requests."}}, 429, retry_after_ms="1")


def test_calls_beyond_the_limit_of_a_service_are_all_answered_in_the_end() -> None:
    adaptive = limited_calls(calls=150, allowed=6, seconds=0.03, retry_after=0.01)
    fixed = limited_calls(calls=30, allowed=6, seconds=0.005, retry_after=0.01, fixed=True)

    assert 0 < adaptive.rejected < 0.3  # on a slow machine requests arrive one by one, and more seem to be allowed
    assert adaptive.rejected_late < 0.1  # one more than allowed is tried at times
    assert fixed.rejected == 0


@pytest.mark.parametrize("streaming", [False, True])
async def test_under_a_limiter_the_sdk_sends_nothing_again(server: OpenAIServer, streaming: bool) -> None:
    limiter = CallLimiter()
    good = stream(wire.chunk("yes"), wire.chunk(finish="stop")) if streaming else reply(wire.completion("yes"))
    server.answer(rejection(), rejection(), rejection(), good)
    token = in_force.set(limiter)
    async with OpenAIChatCompletionClient("m", base_url=server.url) as client:
        asked: Any = client.get_response("x", stream=True).get_final_response() if streaming else None
        response = await (asked or client.get_response("x"))
    in_force.reset(token)

    assert response.text == "yes"
    assert (limiter.calls, limiter.rejected, len(server.requests)) == (4, 3, 4)
    assert {request.headers.get("x-stainless-retry-count") for request in server.requests} == {"0"}


async def test_without_a_limiter_the_sdk_sends_again_as_often_as_it_was_told(server: OpenAIServer) -> None:
    server.answer(*[rejection() for _ in range(4)])
    async with OpenAIChatCompletionClient("m", base_url=server.url, max_retries=3) as client:
        with pytest.raises(ChatClientException) as caught:
            await client.get_response("x")

    assert caught.value.status_code == 429
    assert len(server.requests) == 4


async def test_embeddings_are_not_limited_and_keep_the_retries_of_the_sdk(server: OpenAIServer) -> None:
    vectors = {"object": "list", "model": "m", "data": [{"object": "embedding", "index": 0, "embedding": [1.0]}]}
    server.answer(rejection(), reply(vectors))
    token = in_force.set(CallLimiter())
    async with OpenAIEmbeddingClient("m", base_url=server.url) as client:
        await client.get_embeddings(["x"])
    in_force.reset(token)

    assert len(server.requests) == 2
