"""The mixins, over a client that does everything itself and over one that does nothing."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    AgentSession,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    FunctionInvocationLayer,
    Message,
    ResponseStream,
    chat_middleware,
    function_middleware,
    tool,
)
from agentbench.observability import ChatTelemetryLayer
from tests.agents.loop.scripts import MODES, Script, call, results, says


class Plain:
    """A client of another make: its own `get_response`, and no more."""

    def __init__(self, *answers: Any) -> None:
        self.additional_properties: dict[str, Any] = {}
        self.answers = list(answers)
        self.seen: list[list[str]] = []
        self.keywords: list[dict[str, Any]] = []

    def get_response(self, messages: Any, *, stream: bool = False, options: Any = None, **more: Any) -> Any:
        self.seen.append([message.role for message in messages])
        self.keywords.append(more)
        answer = self.answers.pop(0)

        async def whole() -> Any:
            return answer

        async def updates() -> Any:
            for message in answer.messages:
                yield ChatResponseUpdate(contents=message.contents, role=message.role)

        return ResponseStream(updates(), finalizer=ChatResponse.from_updates) if stream else whole()


class OverPlain(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, Plain):
    pass


class OtherWayRound(ChatMiddlewareLayer, FunctionInvocationLayer, Plain):
    pass


class OverBase(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, Script):
    pass


@tool
def act() -> str:
    return "acted"


async def ask(mode: str, client: Any, **keywords: Any) -> ChatResponse[Any]:
    if mode == "whole":
        whole: ChatResponse[Any] = await client.get_response([Message("user", "q")], **keywords)
        return whole
    stream = client.get_response([Message("user", "q")], stream=True, **keywords)
    assert [update async for update in stream]
    streamed: ChatResponse[Any] = await stream.get_final_response()
    return streamed


def watching(trace: list[str], name: str) -> list[Any]:
    @chat_middleware
    async def chat(context: Any, call_next: Any) -> None:
        trace.append(f"{name} chat")
        await call_next()

    @function_middleware
    async def function(context: Any, call_next: Any) -> None:
        trace.append(f"{name} tool")
        await call_next()

    return [chat, function]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("make", [OverBase, OverPlain])
async def test_a_stack_of_mixins_does_each_thing_once(mode: str, make: Any) -> None:
    act.reset()
    trace: list[str] = []
    client = make(says(call("1", "act")), says("end"))
    client.middleware = watching(trace, "own")

    response = await ask(
        mode, client, options={"tools": [act]}, client_kwargs={"middleware": watching(trace, "run"), "key": 1}
    )

    assert results(response) == ["acted"]
    assert act.invocation_count == 1
    chats = ["own chat", "run chat"]
    assert trace == [*chats, "own tool", "run tool", *chats]
    assert len(client.seen) == 2


async def test_keywords_of_mixins_reach_a_client_that_does_not_know_them() -> None:
    class Knows(Script):
        def __init__(self, *answers: Any) -> None:
            super().__init__(*answers)

    class Stack(FunctionInvocationLayer, ChatMiddlewareLayer, ChatTelemetryLayer, Knows):
        pass

    trace: list[str] = []
    client = Stack(
        says(call("1", "act")),
        says("end"),
        middleware=watching(trace, "own"),
        function_invocation_configuration={"max_iterations": 1},
        otel_provider_name="me",
    )

    await ask("streamed", client, options={"tools": [act]})

    assert trace == ["own chat", "own tool", "own chat"]
    assert client.options[1]["tool_choice"] == "none"
    assert client.otel_provider_name == "me"
    assert isinstance(client, BaseChatClient)


async def test_over_a_plain_client_only_arguments_with_a_value_are_passed_on() -> None:
    client = OverPlain(says("hi"), says("hi"))

    await ask("streamed", client, compaction_strategy=None)
    await ask("streamed", client, client_kwargs={"session": None, "key": 1}, tokenizer="mine")

    assert client.keywords == [{}, {"client_kwargs": {"key": 1}, "tokenizer": "mine"}]


@pytest.mark.parametrize("make", [OverPlain, OtherWayRound])
async def test_a_limit_holds_over_a_plain_client_too(make: Any) -> None:
    trace: list[str] = []
    client = make(
        *(says(call(str(n), "act")) for n in range(5)),
        middleware=watching(trace, "own"),
        function_invocation_configuration={"max_iterations": 2},
    )

    await ask("streamed", client, options={"tools": [act]}, middleware=watching(trace, "call"))

    assert len(client.seen) == 3
    assert trace.count("own tool") == trace.count("call tool") == 2


async def test_the_session_and_runtime_arguments_reach_tools_over_a_plain_client() -> None:
    from agentbench.agents.middleware.contexts import FunctionInvocationContext

    seen: dict[str, Any] = {}

    def look(ctx: FunctionInvocationContext) -> str:
        seen.update(ctx.kwargs)
        return "ok"

    client = OverPlain(says(call("1", "look")), says("end"))
    session = AgentSession()

    await ask(
        "streamed",
        client,
        options={"tools": [look]},
        function_invocation_kwargs={"a": 1},
        client_kwargs={"session": session},
    )

    assert seen == {"a": 1, "session": session}
    assert client.keywords == [{}, {}]
