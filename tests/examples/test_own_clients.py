"""Clients of one's own as programs write them: in layers, with type parameters, edited between requests."""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Generic, TypedDict, TypeVar

import pytest

from agentbench import (
    DEFAULT_MAX_ITERATIONS,
    Agent,
    BaseChatClient,
    ChatContext,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    ChatTelemetryLayer,
    Content,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    Message,
    MiddlewareException,
    RawAgent,
    ScriptedChatClient,
    tool,
)

OptionsT = TypeVar("OptionsT", bound=Mapping[str, Any], covariant=True)


class CallerOptions(TypedDict, total=False):
    temperature: float
    calls: int


@tool
def ping() -> str:
    """Answer a ping."""
    return "pong"


class CallerClient(BaseChatClient[OptionsT], Generic[OptionsT]):
    """Calls the tool `ping` until it has `rounds` results or may not call, and counts its calls."""

    def __init__(self, *, rounds: int = 1, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.rounds, self.calls = rounds, 0

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Any:
        self.calls += 1
        done = sum(message.role == "tool" for message in messages) >= self.rounds
        done = done or options.get("tool_choice") == "none"
        content = Content.from_text("done") if done else Content.from_function_call(f"c{self.calls}", "ping")

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            yield ChatResponseUpdate(role="assistant", contents=[content])

        async def response() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", [content])])

        return self._build_response_stream(updates()) if stream else response()


class BareClient(CallerClient[OptionsT], Generic[OptionsT]):
    """One that does not call the constructor of its base."""

    def __init__(self, *, rounds: int = 1) -> None:
        self.rounds, self.calls = rounds, 0


class LayeredClient(
    FunctionInvocationLayer[OptionsT],
    ChatMiddlewareLayer[OptionsT],
    ChatTelemetryLayer[OptionsT],
    CallerClient[OptionsT],
    Generic[OptionsT],
):
    pass


class LayeredBareClient(
    ChatMiddlewareLayer[OptionsT], ChatTelemetryLayer[OptionsT], FunctionInvocationLayer[OptionsT], BareClient[OptionsT]
):
    pass


class Service:
    """A client of another make: it has a `get_response`, and nothing else."""

    def __init__(self, *, rounds: int = 1) -> None:
        self.additional_properties: dict[str, Any] = {}
        self._inner = BareClient[Any](rounds=rounds)

    @property
    def calls(self) -> int:
        return self._inner.calls

    def get_response(self, messages: Any, *, stream: bool = False, options: Any = None, **kwargs: Any) -> Any:
        return self._inner._inner_get_response(messages=messages, stream=stream, options=options or {})


class LayeredService(
    FunctionInvocationLayer[CallerOptions],
    ChatMiddlewareLayer[CallerOptions],
    ChatTelemetryLayer[CallerOptions],
    Service,
):
    pass


CLIENTS: list[Callable[..., Any]] = [
    CallerClient[CallerOptions],
    BareClient[CallerOptions],
    LayeredClient[CallerOptions],
    LayeredBareClient[CallerOptions],
    LayeredService,
]


@pytest.fixture(
    params=CLIENTS,
    ids=["base", "base without constructor", "layers", "layers without constructor", "layers over a service"],
)
def make_client(request: pytest.FixtureRequest) -> Callable[..., Any]:
    make: Callable[..., Any] = request.param
    return make


@pytest.fixture(params=[False, True], ids=["whole", "streamed"])
def ask(request: pytest.FixtureRequest) -> Callable[..., Any]:
    async def ask_client(client: Any, **keywords: Any) -> ChatResponse[Any]:
        messages = [Message("user", ["q"])]
        keywords["options"] = {"tools": [ping], **keywords.get("options", {})}
        if not request.param:
            whole: ChatResponse[Any] = await client.get_response(messages, **keywords)
            return whole
        stream = client.get_response(messages, stream=True, **keywords)
        assert [update async for update in stream]
        streamed: ChatResponse[Any] = await stream.get_final_response()
        return streamed

    return ask_client


async def test_agents_with_type_parameters_use_clients_in_layers() -> None:
    for agent in (
        Agent[CallerOptions](LayeredClient[CallerOptions](rounds=2), "Call the tool.", tools=[ping]),
        RawAgent[CallerOptions](client=LayeredService(rounds=2), tools=[ping]),
    ):
        response = await agent.run("q", options={"temperature": 0.5})

        assert response.text == "done"
        assert [message.role for message in response.messages] == ["assistant", "tool"] * 2 + ["assistant"]


async def test_the_configuration_is_edited_between_requests(make_client: Any, ask: Any) -> None:
    client, other = make_client(rounds=5), make_client(rounds=5)
    assert client.function_invocation_configuration == {
        "enabled": True,
        "max_iterations": DEFAULT_MAX_ITERATIONS,
        "max_function_calls": None,
        "max_consecutive_errors_per_request": 3,
        "terminate_on_unknown_calls": False,
        "additional_tools": [],
        "include_detailed_errors": False,
    }

    client.function_invocation_configuration["max_iterations"] = 3
    await ask(client)
    assert client.calls == 4

    client.function_invocation_configuration["additional_tools"].append(ping)
    assert (await ask(client)).messages[-1].contents[-1].type == "function_call"
    assert client.calls == 5

    client.function_invocation_configuration["enabled"] = False
    assert (await ask(client)).messages[-1].contents[-1].type == "function_call"
    assert client.calls == 6

    client.function_invocation_configuration["max_iterations"] = 0
    with pytest.raises(ValueError, match="max_iterations is 0"):
        await ask(client)
    client.function_invocation_configuration = {"max_rounds": 1}
    with pytest.raises(ValueError, match="max_rounds"):
        await ask(client)

    assert (await ask(other)).text == "done"
    assert other.calls == 6
    assert other.function_invocation_configuration["additional_tools"] == []


async def test_the_lists_of_middleware_are_edited_between_requests(make_client: Any, ask: Any) -> None:
    seen: list[str] = []

    async def around_model(context: ChatContext, call_next: Any) -> None:
        seen.append("model")
        await call_next()

    async def around_tool(context: FunctionInvocationContext, call_next: Any) -> None:
        seen.append(f"tool {context.function.name}")
        await call_next()

    async def of_request(context: ChatContext, call_next: Any) -> None:
        seen.append("request")
        await call_next()

    client, other = make_client(), make_client()
    assert client.chat_middleware == client.function_middleware == []

    client.chat_middleware = [around_model]
    client.function_middleware.append(around_tool)
    await ask(client, client_kwargs={"middleware": [of_request]})
    assert seen == ["model", "request", "tool ping", "model", "request"]
    assert client.middleware == [around_model, around_tool]

    seen.clear()
    client.chat_middleware.remove(around_model)
    client.function_middleware = []
    await ask(client)
    await ask(other)
    assert seen == []

    client.chat_middleware.append(around_tool)
    with pytest.raises(MiddlewareException, match=r"chat_middleware .* has .*around_tool"):
        await ask(client)


@pytest.mark.parametrize("make_client", [CLIENTS[0], CLIENTS[2], CLIENTS[3], CLIENTS[4]])
def test_middleware_of_the_constructor_is_in_the_list_of_its_kind(make_client: Any) -> None:
    async def chat(context: ChatContext, call_next: Any) -> None: ...

    async def function(context: FunctionInvocationContext, call_next: Any) -> None: ...

    client = make_client(middleware=[function, chat], function_invocation_configuration={"max_iterations": 2})

    assert (client.chat_middleware, client.function_middleware) == ([chat], [function])
    assert client.function_invocation_configuration["max_iterations"] == 2
    assert make_client().chat_middleware == []


async def test_middleware_sets_attributes_that_contexts_do_not_know() -> None:
    async def stop(context: ChatContext, call_next: Any) -> None:
        await call_next()
        context.terminate = True  # type: ignore[attr-defined]

    async def count(context: FunctionInvocationContext, call_next: Any) -> None:
        context.terminate = context.seen = True  # type: ignore[attr-defined]
        await call_next()

    client = LayeredClient[CallerOptions](middleware=[stop, count])
    assert (await client.get_response("q", options={"tools": [ping]})).text == "done"

    scripted = ScriptedChatClient(["hello"], middleware=[stop])
    assert (await Agent(scripted).run("hi")).text == "hello"
