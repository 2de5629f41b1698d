"""The Responses API over a real connection."""

from __future__ import annotations

import asyncio
from importlib.util import find_spec
from typing import Any

import pytest

from agentbench.agents.tools.decorator import tool
from agentbench.exceptions import (
    ChatClientException,
    ChatClientInvalidRequestException,
    ChatClientInvalidResponseException,
)
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.openai import OpenAIChatClient, OpenAIChatCompletionClient, OpenAIResponsesClient
from tests.servers import openai_wire as wire
from tests.servers.openai_server import Gate, OpenAIServer, happened, reply, stream

openai = pytest.importorskip("openai", reason="openai is not installed (extra openai)")
pytestmark = pytest.mark.skipif(
    find_spec("openai.resources.responses") is None, reason="openai is older than its Responses API (1.66)"
)

CREATED = {"type": "response.created", "response": wire.response(status="in_progress")}


def client_of(server: OpenAIServer, **settings: Any) -> OpenAIResponsesClient:
    return OpenAIResponsesClient("m", base_url=server.url, max_retries=0, **settings)


def delta(text: str) -> dict[str, Any]:
    return {"type": "response.output_text.delta", "item_id": "msg_1", "output_index": 0, "delta": text}


def streamed(*events: dict[str, Any], **fields: Any) -> Any:
    ended = {"type": "response.completed", "response": wire.response(**fields)}
    return stream(*wire.events(CREATED, *events, ended), done=False)


@tool
def look(where: str) -> list[Content]:
    """Look somewhere."""
    return [Content.from_text(where), Content.from_data(b"x", "image/png")]


@pytest.mark.parametrize("cls", [OpenAIResponsesClient, OpenAIChatClient])
async def test_a_question_is_sent_and_answered(server: OpenAIServer, cls: Any) -> None:
    server.answer(reply(wire.response(wire.output_message("Hi."), usage=wire.response_usage(3, 1))))
    async with cls("m", api="responses", base_url=server.url, max_retries=0) as client:
        response = await client.get_response("Hello", options={"instructions": "Be brief.", "max_tokens": 9})
    assert (response.text, response.conversation_id) == ("Hi.", "resp_1")
    assert server.requests[0].path == "/v1/responses"
    assert server.bodies[0] == {
        "model": "m",
        "instructions": "Be brief.",
        "input": [{"type": "message", "role": "user", "content": "Hello"}],
        "max_output_tokens": 9,
    }


async def test_instructions_may_be_a_message_of_a_chosen_role(server: OpenAIServer) -> None:
    server.answer(reply(wire.response(wire.output_message("Hi."))))
    async with client_of(server, instruction_role="developer") as client:
        await client.get_response("Hello", options={"instructions": "Be brief."})
    assert "instructions" not in server.bodies[0]
    assert server.bodies[0]["input"][0] == {"type": "message", "role": "developer", "content": "Be brief."}


async def test_the_service_stores_the_conversation_of_a_session(server: OpenAIServer) -> None:
    answers = [wire.response(wire.output_message(text), id=f"resp_{text}") for text in ("1", "2")]
    server.answer(*map(reply, answers))
    async with client_of(server) as client:
        agent = client.as_agent()
        session = agent.create_session()
        await agent.run("one", session=session)
        await agent.run("two", session=session)
    assert session.service_session_id == "resp_2"
    assert server.bodies[1]["previous_response_id"] == "resp_1"
    assert server.bodies[1]["input"] == [{"type": "message", "role": "user", "content": "two"}]


async def test_a_conversation_that_is_not_stored_is_sent_whole(server: OpenAIServer) -> None:
    server.answer(*(reply(wire.response(wire.output_message(text))) for text in ("1", "2")))
    async with client_of(server) as client:
        agent = client.as_agent(default_options={"store": False})
        session = agent.create_session()
        await agent.run("one", session=session)
        await agent.run("two", session=session)
    assert session.service_session_id is None
    assert server.bodies[1]["store"] is False
    assert [item["content"] for item in server.bodies[1]["input"]] == ["one", "1", "two"]


async def test_a_server_that_does_not_store_is_believed(server: OpenAIServer) -> None:
    server.answer(reply(wire.response(wire.output_message("1"), store=False)))
    async with client_of(server) as client:
        assert (await client.get_response("x")).conversation_id is None


async def test_an_agents_tool_may_show_an_image(server: OpenAIServer) -> None:
    server.answer(
        reply(wire.response(wire.output_call("c1", "look", '{"where": "up"}'), id="resp_1")),
        reply(wire.response(wire.output_message("A bird."), id="resp_2")),
    )
    async with client_of(server) as client:
        response = await client.as_agent(tools=[look, client.get_web_search_tool()]).run("What is up?")
    assert response.text == "A bird."
    first, second = server.bodies
    assert first["tools"][0]["type"] == "function"
    assert first["tools"][0]["strict"] is False
    assert first["tools"][1] == {"type": "web_search"}
    assert second["previous_response_id"] == "resp_1"
    (output,) = second["input"]
    assert (output["type"], output["call_id"]) == ("function_call_output", "c1")
    assert [part["type"] for part in output["output"]] == ["input_text", "input_image"]


async def test_an_agent_streams_a_call_and_the_answer(server: OpenAIServer) -> None:
    item = wire.output_call("c1", "look", "")
    server.answer(
        streamed(
            {"type": "response.output_item.added", "output_index": 0, "item": item},
            {"type": "response.function_call_arguments.delta", "output_index": 0, "item_id": "fc_1", "delta": '{"whe'},
            {
                "type": "response.function_call_arguments.delta",
                "output_index": 0,
                "item_id": "fc_1",
                "delta": 're": "up"}',
            },
            usage=wire.response_usage(1, 2),
        ),
        streamed(delta("A "), delta("bird."), usage=wire.response_usage(10, 20)),
    )
    async with client_of(server) as client:
        running = client.as_agent(tools=[look]).run("What is up?", stream=True)
        assert "".join([update.text async for update in running]) == "A bird."
        response = await running.get_final_response()
    assert response.messages[-1].text == "A bird."
    assert response.usage_details is not None
    assert response.usage_details["total_token_count"] == 33
    assert [body["stream"] for body in server.bodies] == [True, True]
    assert "stream_options" not in server.bodies[0]


@pytest.mark.parametrize("how", ["whole", "failed", "error"])
async def test_a_failure_of_the_service_is_an_error(server: OpenAIServer, how: str) -> None:
    failed = wire.response(status="failed", error={"code": "invalid_prompt", "message": "It broke."})
    events: dict[str, dict[str, Any]] = {
        "failed": {"type": "response.failed", "response": failed},
        "error": {"type": "error", "code": "invalid_prompt", "message": "It broke.", "param": None},
    }
    server.answer(reply(failed) if how == "whole" else stream(*wire.events(CREATED, events[how]), done=False))
    async with client_of(server) as client:
        with pytest.raises(ChatClientException) as caught:
            await (
                client.get_response("x")
                if how == "whole"
                else client.get_response("x", stream=True).get_final_response()
            )
    assert type(caught.value) is ChatClientInvalidRequestException


async def test_structured_output_gives_the_value(server: OpenAIServer) -> None:
    answer = wire.response(wire.output_message('{"a": 1}'))
    server.answer(reply(answer), streamed(delta('{"a"'), delta(": 1}")))
    schema = {"type": "object", "title": "A", "properties": {"a": {"type": "integer"}}, "required": ["a"]}
    async with client_of(server) as client:
        asked = await client.get_response("x", options={"response_format": schema})
        updates = client.get_response("x", stream=True, options={"response_format": schema})
        assert asked.value == (await updates.get_final_response()).value == {"a": 1}
    assert server.bodies[0]["text"]["format"] == {
        "type": "json_schema",
        "name": "A",
        "schema": {**schema, "additionalProperties": False},
        "strict": True,
    }


async def test_an_answer_in_the_background_is_fetched_with_its_token(server: OpenAIServer) -> None:
    server.answer(
        reply(wire.response(status="queued", background=True)),
        reply(wire.response(status="in_progress", background=True)),
        reply(wire.response(wire.output_message("Done."), background=True)),
    )
    async with client_of(server) as client:
        response = await client.get_response("x", options={"background": True})
        while response.continuation_token is not None:
            assert response.messages == []
            response = await client.get_response([], options={"continuation_token": response.continuation_token})
    assert response.text == "Done."
    assert [(request.method, request.path) for request in server.requests] == [
        ("POST", "/v1/responses"),
        ("GET", "/v1/responses/resp_1"),
        ("GET", "/v1/responses/resp_1"),
    ]
    assert server.bodies[0]["background"] is True


@pytest.mark.skipif(openai.__version__.startswith("1.6"), reason="openai is too old to fetch a stream once more")
async def test_a_broken_stream_of_an_answer_in_the_background_goes_on_where_it_broke(server: OpenAIServer) -> None:
    begun = {"type": "response.created", "response": wire.response(status="queued", background=True)}
    ended = {"type": "response.completed", "response": wire.response(background=True)}
    first, second, third, last = wire.events(begun, delta("Hel"), delta("lo"), ended)
    server.answer(stream(first, second, cut=True), stream(third, last, done=False))
    async with client_of(server) as client:
        broken = client.get_response("x", stream=True, options={"background": True})
        with pytest.raises(ChatClientException):
            await broken.get_final_response()
        token = broken.updates[-1].continuation_token
        rest = await client.get_response([], stream=True, options={"continuation_token": token}).get_final_response()
    assert rest.text == "lo"
    assert rest.response_id == rest.conversation_id == "resp_1"
    path, _, query = server.requests[1].path.partition("?")
    assert (path, set(query.split("&"))) == ("/v1/responses/resp_1", {"stream=true", "starting_after=1"})


async def test_a_client_of_chat_completions_makes_answers_in_the_background_by_the_other_api(
    server: OpenAIServer,
) -> None:
    def look(place: str) -> str:
        return f"nothing in {place}"

    called = wire.response(wire.output_call("c1", "look", '{"place": "here"}'), background=True)
    server.answer(reply(wire.response(status="queued", background=True)), reply(called))
    server.answer(reply(wire.completion("Done.")), reply(wire.completion("Bye.")))
    async with OpenAIChatClient("m", base_url=server.url) as client:
        agent = client.as_agent(tools=[look])
        session = agent.create_session()
        begun = await agent.run("x", session=session, options={"background": True})
        done = await agent.run(session=session, options={"continuation_token": begun.continuation_token})
        assert done.text == "Done."
        assert (await agent.run("Bye", session=session)).text == "Bye."
    assert [(request.method, request.path) for request in server.requests] == [
        ("POST", "/v1/responses"),
        ("GET", "/v1/responses/resp_1"),
        ("POST", "/v1/chat/completions"),
        ("POST", "/v1/chat/completions"),
    ]
    async with OpenAIChatCompletionClient("m", base_url=server.url) as other:
        with pytest.raises(ChatClientInvalidRequestException):
            await other.get_response("x", options={"background": True})


async def test_a_reader_that_breaks_off_reads_on_with_the_token(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    begun = {"type": "response.created", "response": wire.response(status="queued", background=True)}
    ended = {"type": "response.completed", "response": wire.response(background=True)}
    first, second, third, last = wire.events(begun, delta("Hel"), delta("lo"), ended)
    cut = server.answer(stream(first, second, Gate()))
    server.answer(stream(third, last))
    async with OpenAIChatClient("m", base_url=server.url) as client:
        agent, token = client.as_agent(), None
        async for update in agent.run("x", stream=True, options={"background": True}):
            token = update.continuation_token
            if update.text:
                break
        rest = agent.run(stream=True, options={"continuation_token": token})
        assert (await rest.get_final_response()).text == "lo"
        await happened(cut.closed_by_client)
    assert caplog.text == ""


def test_a_program_that_ends_within_a_stream_closes_it_without_a_complaint(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture
) -> None:
    server.answer(stream(*wire.events(CREATED, delta("Hel")), Gate()))

    async def main() -> None:
        agent = client_of(server).as_agent()
        async for update in agent.run("x", stream=True, options={"background": True}):
            if update.text:
                break

    asyncio.run(main())
    assert caplog.text == ""


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    "item",
    [
        {"type": "message", "content": [{"type": "output_text", "text": {"value": "Hello."}}]},
        {"type": "code_interpreter_call", "id": "c", "outputs": [{"type": "image", "url": "no address"}]},
    ],
)
async def test_an_item_that_cannot_be_read_is_an_invalid_response(
    server: OpenAIServer, item: dict[str, Any], *, streaming: bool
) -> None:
    done = {"type": "response.output_item.done", "output_index": 0, "item": item}
    if item["type"] == "message":
        done = {"type": "response.output_text.delta", "delta": {"value": "Hello."}}
    server.answer(streamed(done) if streaming else reply(wire.response(item)))
    async with client_of(server) as client:
        answer: Any = client.get_response("x", stream=streaming)
        with pytest.raises(ChatClientInvalidResponseException):
            await (answer.get_final_response() if streaming else answer)


async def test_a_token_of_something_else_is_refused(server: OpenAIServer) -> None:
    async with client_of(server) as client:
        with pytest.raises(ChatClientInvalidRequestException):
            await client.get_response([], options={"continuation_token": {"page": 2}})
        with pytest.raises(ChatClientInvalidRequestException):
            await client.get_response([])
    assert server.requests == []


async def test_a_question_of_the_services_own_tool_is_answered(server: OpenAIServer) -> None:
    question = {"type": "mcp_approval_request", "id": "mcpr_1", "name": "f", "arguments": "{}", "server_label": "docs"}
    server.answer(reply(wire.response(question)), reply(wire.response(wire.output_message("Done."))))
    async with client_of(server) as client:
        agent = client.as_agent(tools=[client.get_mcp_tool(name="docs", url="https://docs.example")])
        session = agent.create_session()
        (request,) = (await agent.run("x", session=session)).user_input_requests
        answer = Message("user", [request.to_function_approval_response(True)])
        assert (await agent.run(answer, session=session)).text == "Done."
    assert server.bodies[1]["input"] == [
        {"type": "mcp_approval_response", "approval_request_id": "mcpr_1", "approve": True}
    ]
