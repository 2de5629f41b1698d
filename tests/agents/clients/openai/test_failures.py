"""What goes wrong over a real connection, asked with and without streaming."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from agentbench import Message
from agentbench.exceptions import (
    ChatClientContentFilterException,
    ChatClientException,
    ChatClientInvalidAuthException,
    ChatClientInvalidRequestException,
    ChatClientInvalidResponseException,
    OpenAIContentFilterException,
)
from agentbench.openai import OpenAIChatClient
from tests.servers import openai_wire as wire
from tests.servers.openai_server import Answer, Gate, KeepAlive, OpenAIServer, happened, raw, reply, stream

openai = pytest.importorskip("openai", reason="openai is not installed (extra openai)")

AUTH, REQUEST, RESPONSE = (
    ChatClientInvalidAuthException,
    ChatClientInvalidRequestException,
    ChatClientInvalidResponseException,
)
NEW_ENOUGH = find_spec("openai.resources.responses") is not None
APIS = pytest.mark.parametrize("api", ["chat_completions", "responses"] if NEW_ENOUGH else ["chat_completions"])
BOTH = pytest.mark.parametrize(
    ("api", "streaming"), [("chat_completions", False), ("responses" if NEW_ENOUGH else "chat_completions", True)]
)


async def failure(server: OpenAIServer, *, streaming: bool = False, **settings: Any) -> ChatClientException:
    """Ask once and return what was raised."""
    async with OpenAIChatClient("m", base_url=server.url, **{"max_retries": 0, **settings}) as client:
        with pytest.raises(ChatClientException) as caught:
            await (
                client.get_response("x", stream=True).get_final_response() if streaming else client.get_response("x")
            )
    return caught.value


@BOTH
@pytest.mark.parametrize(
    ("status", "expected", "retryable"),
    [(400, REQUEST, False), (401, AUTH, False), (503, ChatClientException, True)],
)
async def test_each_status_has_its_error(
    server: OpenAIServer, status: int, expected: type[ChatClientException], retryable: bool, streaming: bool, api: str
) -> None:
    server.answer(reply(wire.error("It went wrong."), status))
    found = await failure(server, streaming=streaming, api=api)
    assert type(found) is expected
    assert (found.status_code, found.is_retryable, found.retry_after) == (status, retryable, None)
    assert "It went wrong." in str(found)
    assert server.url in str(found)
    assert isinstance(found.inner_exception, openai.APIStatusError)
    assert found.__cause__ is found.inner_exception


async def test_a_refusal_of_assistant_messages_in_a_row_names_the_option_for_it(server: OpenAIServer) -> None:
    server.answer(reply(wire.error("Cannot have 2 or more assistant messages at the end of the list."), 400))
    conversation = [Message("user", ["x"]), Message("assistant", ["a"]), Message("assistant", ["b"])]
    async with OpenAIChatClient("m", base_url=server.url) as client:
        with pytest.raises(REQUEST) as caught:
            await client.get_response(conversation)
    assert "reassign_other_agents_as_users=True" in str(caught.value)


async def test_the_error_of_a_content_filter_has_its_result(server: OpenAIServer) -> None:
    result = {"violence": {"filtered": True, "severity": "high"}}
    inner = {"code": "ResponsibleAIPolicyViolation", "content_filter_result": result}
    server.answer(reply(wire.error("Filtered.", "content_filter", param="prompt", innererror=inner), 400))
    found = await failure(server)
    assert isinstance(found, ChatClientContentFilterException)
    assert isinstance(found, OpenAIContentFilterException)
    assert (found.param, found.content_filter_code) == ("prompt", "ResponsibleAIPolicyViolation")
    assert found.content_filter_result == result
    assert found.status_code == 400


@APIS
@pytest.mark.parametrize(
    "answer",
    [
        raw(b"{nope", "application/json"),
        raw(b"<html>", "text/html"),
        reply({"id": "x", "choices": []}),
    ],
    ids=["no-json", "html", "no-choices"],
)
async def test_what_is_no_answer_is_an_invalid_response(server: OpenAIServer, answer: Answer, api: str) -> None:
    server.answer(Answer(answer.parts, answer.status, answer.headers))
    assert type(await failure(server, api=api)) is RESPONSE


@APIS
@pytest.mark.parametrize(
    ("reported", "expected", "retryable"),
    [
        ({"message": "model overloaded", "code": 429}, ChatClientException, True),
        ({"message": "model overloaded", "code": 401}, ChatClientInvalidAuthException, False),
        ("model overloaded", ChatClientException, False),
    ],
)
async def test_an_error_that_comes_as_an_answer_has_the_services_words(
    server: OpenAIServer, api: str, reported: Any, expected: type[ChatClientException], retryable: bool
) -> None:
    server.answer(reply({"error": reported}))
    found = await failure(server, api=api)
    assert type(found) is expected
    assert found.is_retryable is retryable
    assert "model overloaded" in str(found)


@APIS
@pytest.mark.parametrize(
    "answer",
    [
        raw(b"<html>", "text/html"),
        stream(b"data: {nope\n\n"),
        stream(b"data: null\n\n", b"data: 3\n\n"),
    ],
    ids=["html", "no-json", "nothing"],
)
async def test_what_is_no_stream_is_an_invalid_response(server: OpenAIServer, answer: Answer, api: str) -> None:
    server.answer(Answer(answer.parts, answer.status, answer.headers, answer.chunked))
    assert type(await failure(server, streaming=True, api=api)) is RESPONSE


@BOTH
@pytest.mark.parametrize("cause", ["deep", "long"])
async def test_an_answer_that_cannot_be_read_is_an_invalid_response(
    server: OpenAIServer, api: str, streaming: bool, cause: str
) -> None:
    body = b"[" * 20_000 + b"]" * 20_000 if cause == "deep" else b'{"id": ' + b"9" * 5_000 + b"}"
    server.answer(stream(b"data: " + body + b"\n\n") if streaming else raw(body, "application/json"))
    found = await failure(server, streaming=streaming, api=api)
    assert type(found) is RESPONSE
    assert server.url in str(found)


@pytest.mark.parametrize("created", [1_704_164_645_000, 10**30, float("nan"), -(10**18), "soon"])
async def test_a_time_that_is_none_is_left_out(server: OpenAIServer, created: Any) -> None:
    server.answer(
        reply({**wire.completion(), "created": created}),
        stream({**wire.chunk("Hello.", finish="stop"), "created": created}),
    )
    async with OpenAIChatClient("m", base_url=server.url, max_retries=0) as client:
        whole = await client.get_response("x")
        streamed = await client.get_response("x", stream=True).get_final_response()
    assert [(one.text, one.created_at) for one in (whole, streamed)] == [("Hello.", None)] * 2


@pytest.mark.parametrize(
    ("message", "problem"),
    [
        ({"content": 42}, "int"),
        ({"content": [{"type": "image"}]}, "list"),
        ({"content": None, "tool_calls": {"id": "c"}}, "tool_calls"),
    ],
)
async def test_a_content_that_is_no_text_is_no_empty_answer(server: OpenAIServer, message: Any, problem: str) -> None:
    server.answer(reply(wire.completion(**message)), stream(wire.chunk(**message)))
    for streaming in (False, True):
        found = await failure(server, streaming=streaming)
        assert type(found) is RESPONSE
        assert problem in str(found)


@pytest.mark.parametrize(("choice", "problem"), [(5, "int"), ({"message": "Hi", "delta": "Hi"}, "str")])
async def test_a_choice_that_is_no_object_is_no_empty_answer(server: OpenAIServer, choice: Any, problem: str) -> None:
    server.answer(reply({**wire.completion(), "choices": [choice]}), stream({**wire.chunk("Hi"), "choices": [choice]}))
    for streaming in (False, True):
        found = await failure(server, streaming=streaming)
        assert type(found) is RESPONSE
        assert problem in str(found)


async def test_a_content_in_parts_is_one_text(server: OpenAIServer) -> None:
    server.answer(reply(wire.completion([{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo"}])))  # type: ignore[arg-type]
    async with OpenAIChatClient("m", base_url=server.url) as client:
        assert (await client.get_response("x")).text == "Hello"


@APIS
async def test_a_stream_that_ends_within_a_call_runs_no_tool(server: OpenAIServer, api: str) -> None:
    runs: list[str] = []

    def delete(path: str = "/") -> None:
        runs.append(path)

    item = wire.output_call("c1", "delete", "{}")
    pieces: list[Any] = [wire.chunk(tool_calls=[wire.call("c1", "delete", "{}", 0)])]
    if api == "responses":
        begun = {"type": "response.created", "response": wire.response(status="in_progress")}
        added = {"type": "response.output_item.added", "output_index": 0, "item": {**item, "arguments": ""}}
        pieces = wire.events(begun, added, {"type": "response.output_item.done", "output_index": 0, "item": item})
    server.answer(stream(*pieces))
    async with OpenAIChatClient("m", base_url=server.url, max_retries=0, api=api) as client:  # type: ignore[arg-type]
        answer = client.get_response("x", stream=True, options={"tools": [delete]})
        with pytest.raises(ChatClientException) as caught:
            await answer.get_final_response()
    assert caught.value.is_retryable
    assert runs == []


async def test_comments_that_keep_a_connection_alive_do_not_outlast_the_timeout(server: OpenAIServer) -> None:
    answer = server.answer(stream(wire.chunk("a"), KeepAlive()))
    found = await failure(server, streaming=True, timeout=0.5)
    assert found.is_retryable
    assert "did not answer in time" in str(found)
    await happened(answer.closed_by_client)


async def test_half_of_a_character_cannot_be_sent(server: OpenAIServer) -> None:
    async with OpenAIChatClient("m", base_url=server.url, max_retries=0) as client:
        with pytest.raises(ChatClientInvalidRequestException):
            await client.get_response("cut off: \ud83d")
    assert server.requests == []


async def test_a_stream_that_breaks_off_can_be_tried_again(server: OpenAIServer) -> None:
    server.answer(stream(wire.chunk("a"), cut=True))
    async with OpenAIChatClient("m", base_url=server.url, max_retries=0) as client:
        updates = client.get_response("x", stream=True)
        assert (await updates.__anext__()).text == "a"
        with pytest.raises(ChatClientException) as caught:
            await updates.__anext__()
        assert type(caught.value) is ChatClientException
        assert caught.value.is_retryable
        assert caught.value.__cause__ is caught.value.inner_exception is not None
        with pytest.raises(ChatClientException) as again:
            await updates.get_final_response()
        assert again.value is caught.value


async def test_an_error_within_a_stream_is_raised(server: OpenAIServer) -> None:
    server.answer(stream(wire.chunk("a"), wire.error("It broke.", "content_filter")))
    found = await failure(server, streaming=True)
    assert type(found) is OpenAIContentFilterException
    assert "It broke." in str(found)


async def test_a_server_that_is_not_there_can_be_tried_again() -> None:
    with OpenAIServer() as server:
        url = server.url
    async with OpenAIChatClient("m", base_url=url, max_retries=0) as client:
        with pytest.raises(ChatClientException) as caught:
            await client.get_response("x")
    assert type(caught.value) is ChatClientException
    assert (caught.value.is_retryable, caught.value.status_code) == (True, None)
    assert isinstance(caught.value.inner_exception, openai.APIConnectionError)


async def test_the_timeout_is_passed_on(server: OpenAIServer) -> None:
    gate = Gate()
    server.answer(Answer((gate,), headers={"content-type": "application/json"}, chunked=True))
    found = await failure(server, timeout=0.01)
    assert found.is_retryable
    assert isinstance(found.inner_exception, openai.APITimeoutError)


async def test_the_timeout_of_one_request_is_passed_on(server: OpenAIServer) -> None:
    server.answer(Answer((Gate(),), headers={"content-type": "application/json"}, chunked=True))
    async with OpenAIChatClient("m", base_url=server.url, max_retries=0) as client:
        with pytest.raises(ChatClientException) as caught:
            await client.get_response("x", options={"timeout": 0.01})
    assert isinstance(caught.value.inner_exception, openai.APITimeoutError)


async def test_the_number_of_retries_is_passed_on(server: OpenAIServer) -> None:
    busy = [reply(wire.error(), 503, retry_after_ms="1") for _ in range(3)]
    server.answer(*busy)
    assert (await failure(server, max_retries=2)).status_code == 503
    assert len(server.requests) == 3


# ------------------------------------------------------------------------------------------ errors of the SDK's parsers


async def test_errors_of_the_caller_pass_untouched() -> None:
    class Failing:
        base_url = "http://fake/v1"

        async def create(self, **arguments: Any) -> Any:
            raise ZeroDivisionError

    fake = Failing()
    fake.chat = fake.completions = fake  # type: ignore[attr-defined]
    with pytest.raises(ZeroDivisionError):
        await OpenAIChatClient("m", async_client=fake).get_response("x")  # type: ignore[arg-type]
