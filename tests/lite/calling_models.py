"""Calls of models by the page's fetch: tests that run in Pyodide, in this order, against the script of the server that
`test_models_in_node.py` starts, and nowhere else.
"""

from __future__ import annotations

import asyncio
import importlib
from typing import Any

import pytest

from agentbench.exceptions import ChatClientException, ChatClientInvalidAuthException
from agentbench.openai import OpenAIChatClient
from tests.parts.errors import raises

KEY = "sk-nobody-reads-this"


def client(url: str | None = None, **settings: Any) -> OpenAIChatClient[Any]:
    service: str = importlib.import_module("js").process.env.AGENTBENCH_TEST_SERVICE
    return OpenAIChatClient("m", base_url=url or service, api_key=KEY, max_retries=0, **settings)


async def test_an_answer() -> None:
    assert (await client().get_response("x")).text == "Grüße aus Bergen"


async def test_the_pieces_of_a_stream_arrive_while_the_model_writes() -> None:
    called = client()
    seen = []
    async for update in called.get_response("x", stream=True):
        seen.append(update.text)
        if len(seen) == 1:
            await called.get_response("go on")  # opens the gate before the second piece
    assert "".join(seen) == "Hello"


async def test_a_refused_key_is_not_repeated() -> None:
    with raises(ChatClientInvalidAuthException, status_code=401) as caught:
        await client().get_response("x")
    assert KEY not in str(caught.value)


async def test_a_rate_limit_says_when_to_call_again() -> None:
    with raises(ChatClientException, status_code=429, is_retryable=True, retry_after=3.0):
        await client().get_response("x")


async def test_a_refused_connection_names_the_reasons_that_a_browser_may_have() -> None:
    with raises(ChatClientException, "CORS", "https://", status_code=None, is_retryable=True):
        await client("http://127.0.0.1:1023/v1").get_response("x")


async def test_an_answer_that_does_not_come_in_time_ends_its_request() -> None:
    with raises(ChatClientException, "in time", is_retryable=True):
        await client(timeout=0.05).get_response("x")


@pytest.mark.parametrize("streaming", [False, True])
async def test_a_cancelled_call_ends_its_request(*, streaming: bool) -> None:
    called = client()
    answer: Any = called.get_response("x", stream=streaming)
    calling = asyncio.ensure_future(answer.get_final_response() if streaming else answer)
    await asyncio.sleep(0.1)
    calling.cancel()
    with pytest.raises(asyncio.CancelledError):
        await calling


async def test_a_stream_that_is_left_ends_its_request() -> None:
    stream: Any = client().get_response("x", stream=True)
    async for _ in stream:
        break
    await stream.aclose()
