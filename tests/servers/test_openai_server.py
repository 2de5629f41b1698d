"""The test server itself: what tests rely on."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from typing import Any

import pytest

from tests.servers import openai_wire as wire
from tests.servers.openai_server import Answer, Gate, OpenAIServer, happened, reply, stream


def post(server: OpenAIServer, body: Any) -> Any:
    headers = {"Content-Type": "application/json", "X-Name": "value"}
    request = urllib.request.Request(f"{server.url}/chat/completions", json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=60) as response:
        return response.read()


def connected(server: OpenAIServer) -> socket.socket:
    client = socket.create_connection(("127.0.0.1", server.port), timeout=60)
    client.sendall(b"POST /v1/x HTTP/1.1\r\nContent-Length: 2\r\n\r\n{}")
    return client


def test_answers_come_in_order_and_requests_are_kept() -> None:
    with OpenAIServer() as server:
        server.answer(reply(wire.completion("1")), reply(wire.completion("2")))
        answers = [json.loads(post(server, {"number": number})) for number in (1, 2)]
    assert [answer["choices"][0]["message"]["content"] for answer in answers] == ["1", "2"]
    assert server.bodies == [{"number": 1}, {"number": 2}]
    assert server.requests[0].headers["x-name"] == "value"
    assert (server.requests[0].method, server.requests[0].path) == ("POST", "/v1/chat/completions")


def test_an_empty_script_is_an_error_and_not_a_wait() -> None:
    with OpenAIServer() as server, pytest.raises(urllib.error.HTTPError, match="418") as caught:
        post(server, {})
    with caught.value as error:
        assert b"no further answer" in error.read()


def test_a_stream_is_events_and_an_end() -> None:
    with OpenAIServer() as server:
        server.answer(stream(wire.chunk("a"), {"type": "error", "message": "m"}))
        text = post(server, {}).decode()
    first, second, third, rest = text.split("\n\n")
    assert json.loads(first.removeprefix("data: ")) == wire.chunk("a")
    assert second.startswith("event: error\ndata: ")
    assert (third, rest) == ("data: [DONE]", "")


async def test_it_is_noticed_that_a_client_has_gone() -> None:
    gate = Gate()
    with OpenAIServer() as server:
        answer = server.answer(stream(wire.chunk("a"), gate, wire.chunk("b")))
        with connected(server):
            await happened(gate.reached)
            assert not answer.closed_by_client.done()
        await happened(answer.closed_by_client)


async def test_a_gate_holds_the_stream_until_it_is_opened() -> None:
    gate = Gate()
    with OpenAIServer() as server:
        server.answer(Answer((b"before ", gate, b"after")))
        with connected(server) as client:
            await happened(gate.reached)
            assert b"after" not in client.recv(1000)
            gate.open()
            assert client.recv(1000) == b"after"


def test_a_broken_stream_has_no_end() -> None:
    with OpenAIServer() as server:
        server.answer(stream(wire.chunk("a"), cut=True))
        with connected(server) as client:
            received = b""
            while piece := client.recv(1000):
                received += piece
    assert b"chunked" in received
    assert not received.endswith(b"0\r\n\r\n")
