"""A known key is looked for wherever something is shown, and found nowhere."""

from __future__ import annotations

import copy
import logging
import pickle
from collections.abc import Iterator
from typing import Any

import pytest

from agentbench.exceptions import ChatClientException
from agentbench.openai import OpenAIChatClient, OpenAIEmbeddingClient
from agentbench.settings import SecretString
from tests.parts.secrets import everything_is_logged, texts_of
from tests.servers import openai_wire as wire
from tests.servers.openai_server import Answer, OpenAIServer, raw, reply, stream

openai = pytest.importorskip("openai", reason="openai is not installed (extra openai)")

KEY = "sk-very-secret-1234567890"
PASSWORD = "pass-very-secret-0987654321"


@pytest.fixture(autouse=True)
def loud(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with everything_is_logged(caplog):
        yield


def assert_hidden(texts: Iterator[str], caplog: pytest.LogCaptureFixture) -> None:
    found = [text for text in (*texts, caplog.text) for secret in (KEY, PASSWORD) if secret in text]
    assert found == []
    assert any(record.name.startswith("openai") for record in caplog.records), "the SDK's logs are not captured"


ECHO = wire.error(f"Incorrect API key provided: {KEY}.", "invalid_api_key", given=[KEY])

ANSWERS = {
    "answer": reply(wire.completion()),
    "repeats-the-key": reply(ECHO, 401),
    "repeats-the-key-as-text": raw(f"no such key: {KEY}".encode(), "text/plain", 403),
    "repeats-the-key-in-a-stream": stream(wire.chunk("a"), ECHO),
    "server-error": reply(wire.error(), 500),
    "no-json": raw(b"{nope", "application/json"),
    "broken-stream": stream(wire.chunk("a"), cut=True),
}


def key_function() -> str:
    return KEY


CASES = [
    *[pytest.param(key_function, name, streaming) for name in ANSWERS for streaming in (False, True)],
    *[pytest.param(key, "repeats-the-key", False) for key in (KEY, SecretString(KEY), f" {KEY}\n")],
]


@pytest.mark.parametrize(("key", "name", "streaming"), CASES, ids=range(len(CASES)))
async def test_the_key_appears_nowhere(
    server: OpenAIServer, key: Any, name: str, streaming: bool, caplog: pytest.LogCaptureFixture
) -> None:
    answer = ANSWERS[name]
    server.answer(Answer(answer.parts, answer.status, answer.headers, answer.chunked, answer.cut))
    shown: list[str] = []
    async with OpenAIChatClient("m", base_url=server.url, api_key=key, max_retries=0) as client:
        try:
            if streaming:
                shown.append(repr(await client.get_response("x", stream=True).get_final_response()))
            else:
                shown.append(repr(await client.get_response("x")))
        except ChatClientException as error:
            shown += texts_of(error)
        shown += [repr(client), str(client), repr(vars(client)), repr(client.to_dict()), repr(client.as_agent())]
        shown += [repr(vars(client._ab_connection)), repr(client._ab_connection.target)]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert_hidden(iter(shown), caplog)


@pytest.mark.parametrize("failing", [False, True])
async def test_a_password_in_the_address_appears_nowhere(
    server: OpenAIServer, failing: bool, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer(reply(wire.error(), 500) if failing else reply(wire.completion()))
    shown: list[str] = []
    url = server.url.replace("http://", f"http://me:{PASSWORD}@")
    async with OpenAIChatClient("m", base_url=url, max_retries=0) as client:
        try:
            await client.get_response("x")
        except ChatClientException as error:
            shown += texts_of(error)
        shown += [repr(client), repr(vars(client)), repr(client.to_dict()), client.service_url()]
    assert_hidden(iter(shown), caplog)


HEADERS = {
    "a secret name": {"Api-Key": KEY, "X-Team": "a"},
    "another name": {"X-Tenant": KEY},
    "a scheme before it": {"Authorization": f"Token {KEY}"},
    "a part of it": {"Cookie": f"theme=dark; id={KEY}"},
}


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize("headers", HEADERS.values(), ids=HEADERS)
@pytest.mark.parametrize("place", ["client", "request", "sdk", "tool"])
async def test_the_value_of_a_header_that_was_sent_is_masked_in_errors(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture, headers: dict[str, str], place: str, *, streaming: bool
) -> None:
    server.answer(stream(wire.chunk("a"), ECHO) if streaming else reply(ECHO, 401))
    settings: dict[str, Any] = {"base_url": server.url, "max_retries": 0}
    options: dict[str, Any] = {}
    if place == "client":
        settings["default_headers"] = headers
    elif place == "sdk":
        settings = {"async_client": openai.AsyncOpenAI(api_key="k", default_headers=headers, **settings)}
    elif place == "request":
        options["extra_headers"] = headers
    else:
        options["tools"] = [OpenAIChatClient.get_mcp_tool(name="docs", url="https://docs.example", headers=headers)]
    async with OpenAIChatClient("m", **settings) as client:
        answer: Any = client.get_response("x", stream=streaming, options=options)
        with pytest.raises(ChatClientException) as caught:
            await (answer.get_final_response() if streaming else answer)
        await client.client.close()
    sent = server.requests[0]
    assert KEY in repr(sent.headers) + repr(sent.body)
    assert pickle.dumps(caught.value).count(KEY.encode()) == 0
    assert str(caught.value).count("API key provided") == 1
    assert_hidden(texts_of(caught.value), caplog)


async def test_a_pickle_of_an_error_leaves_the_request_behind_also_with_dask(server: OpenAIServer) -> None:
    pytest.importorskip("distributed")  # it has errors pickled with their causes
    server.answer(reply(ECHO, 401))
    async with OpenAIChatClient("m", base_url=server.url, api_key=KEY, max_retries=0) as client:
        with pytest.raises(ChatClientException) as caught:
            await client.get_response("x")
    assert pickle.dumps(caught.value).count(KEY.encode()) == 0
    assert pickle.dumps(copy.copy(caught.value)).count(KEY.encode()) == 0


async def test_the_key_of_an_embedding_client_appears_nowhere(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer(reply(ECHO, 401))
    async with OpenAIEmbeddingClient("m", base_url=server.url, api_key=KEY, max_retries=0) as client:
        with pytest.raises(ChatClientException) as caught:
            await client.get_embeddings(["x"])
        assert KEY not in repr(client) + repr(vars(client))
    assert_hidden(texts_of(caught.value), caplog)


async def test_no_text_of_a_conversation_is_logged_above_debug(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer(reply(wire.completion("the answer")))
    async with OpenAIChatClient("m", base_url=server.url, api_key=KEY, max_retries=0) as client:
        await client.get_response("the question")
    told = " ".join(record.getMessage() for record in caplog.records if record.levelno > logging.DEBUG)
    assert "the answer" not in told
    assert "the question" not in told


@pytest.mark.parametrize("status", [401, 500])
@pytest.mark.parametrize("through_an_agent", [False, True])
async def test_an_error_can_leave_the_process_and_leaves_the_key_behind(
    server: OpenAIServer, *, status: int, through_an_agent: bool
) -> None:
    server.answer(reply(ECHO, status))
    async with OpenAIChatClient("m", base_url=server.url, api_key=KEY, max_retries=0) as client:
        with pytest.raises(ChatClientException) as caught:
            await (client.as_agent().run("hello") if through_an_agent else client.get_response("hello"))
    error = caught.value
    assert error.inner_exception is not None
    written = pickle.dumps(error)
    assert KEY.encode() not in written
    again = pickle.loads(written)
    assert (type(again), str(again), again.status_code) == (type(error), str(error), status)
    assert str(again.inner_exception).startswith(f"openai.{type(error.inner_exception).__name__}: ")
    assert pickle.loads(pickle.dumps(again)).args[1].args == again.inner_exception.args
    for copied in (copy.copy(error), copy.deepcopy(error)):
        assert (type(copied), str(copied), copied.status_code) == (type(error), str(error), status)
        assert copied.inner_exception is error.inner_exception
        assert copied.args == error.args
