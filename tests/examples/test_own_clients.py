"""Clients of one's own as programs write them: in layers, with type parameters, edited between requests."""

import json
from collections import Counter
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Generic, TypedDict, TypeVar

import pytest
from pydantic import BaseModel

from agentbench import (
    DEFAULT_MAX_ITERATIONS,
    Agent,
    AgentSession,
    BaseChatClient,
    ChatContext,
    ChatMiddleware,
    ChatMiddlewareLayer,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    ContextProvider,
    FunctionInvocationContext,
    FunctionInvocationLayer,
    FunctionTool,
    Message,
    MiddlewareException,
    MiddlewareTermination,
    RawAgent,
    ResponseStream,
    ScriptedChatClient,
    SecretString,
    SessionContext,
    load_settings,
    register_state_type,
    tool,
)
from agentbench.exceptions import SettingNotFoundError
from agentbench.observability import ChatTelemetryLayer, OtelAttr
from tests.agents.telemetry.conftest import Spans, spans  # noqa: F401 - a fixture

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

    async def undeclared(context, call_next):
        seen.append(type(context).__name__)
        await call_next()

    client.chat_middleware, client.function_middleware = undeclared, [undeclared]
    await ask(client)
    assert seen == ["ChatContext", "FunctionInvocationContext", "ChatContext"]
    assert client.middleware == [undeclared]

    client.chat_middleware = [around_tool]
    with pytest.raises(MiddlewareException, match="around_tool"):
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


# ---- whole programs --------------------------------------------------------------------------------


class ShopOptions(TypedDict, total=False):
    model: str
    temperature: float
    tone: str


class ShopSettings(TypedDict, total=False):
    api_key: SecretString | None
    base_url: str | None
    timeout: float | None


class RawShopClient(BaseChatClient[OptionsT], Generic[OptionsT]):
    """Looks an order up with the first tool, then says what the tool said."""

    OTEL_PROVIDER_NAME = "shop"

    def __init__(self, *, api_key: SecretString | str | None = None, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        settings = load_settings(ShopSettings, env_prefix="SHOP_", required_fields=["api_key"], api_key=api_key)
        self._api_key = settings["api_key"]
        self._base_url = settings["base_url"] or "https://shop.example"
        self.timeout = settings["timeout"]

    def service_url(self) -> str:
        return self._base_url

    def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> Awaitable[ChatResponse] | ResponseStream[ChatResponseUpdate, ChatResponse]:
        last = messages[-1]
        if last.role == "tool":
            contents = [Content.from_text(f"{options.get('tone', 'Plainly')}: {last.contents[0].result}")]
        elif options.get("tools"):
            contents = [Content.from_function_call("c1", "find_order", arguments={"number": last.text.split()[-1]})]
        else:
            contents = [Content.from_text("Which order?")]

        async def updates() -> AsyncIterable[ChatResponseUpdate]:
            for content in contents:
                yield ChatResponseUpdate(role="assistant", contents=[content], model="shop-1")

        async def whole() -> ChatResponse:
            return ChatResponse(messages=[Message("assistant", contents)], model="shop-1", response_id="r")

        return self._build_response_stream(updates()) if stream else whole()


class ShopClient(
    FunctionInvocationLayer[OptionsT],
    ChatMiddlewareLayer[OptionsT],
    ChatTelemetryLayer[OptionsT],
    RawShopClient[OptionsT],
    Generic[OptionsT],
):
    """The same with the loop of tools, middleware and spans."""


class Orders:
    """Kept in a session under its own dictionary."""

    def __init__(self, found: list[str]) -> None:
        self.found = found

    def to_dict(self) -> dict[str, Any]:
        return {"type": "orders", "found": list(self.found)}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Orders":
        return cls(found=data["found"])


class Customer(BaseModel):
    name: str
    visits: int = 0

    @classmethod
    def _get_type_identifier(cls) -> str:
        return "shop_customer"


register_state_type(Orders)
register_state_type(Customer)


class CustomerProvider(ContextProvider):
    def __init__(self) -> None:
        super().__init__(source_id="customer")

    async def before_run(self, *, session: AgentSession, context: SessionContext, **kwargs: Any) -> None:
        customer = session.state.setdefault("profile", Customer(name="Ada"))
        customer.visits += 1
        context.extend_instructions(self.source_id, f"{customer.name} is here for the {customer.visits}. time.")
        context.metadata["customer"] = customer.name

    async def after_run(self, *, session: AgentSession, context: SessionContext, **kwargs: Any) -> None:
        orders = session.state.setdefault("orders", Orders([]))
        calls = [content for message in context.response.messages for content in message.contents]
        orders.found += [f"{context.metadata['customer']}: {c.call_id}" for c in calls if c.type == "function_call"]


@pytest.mark.parametrize("stream", [False, True])
async def test_a_shop_with_its_own_client_remembers_its_customer(
    stream: bool,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    spans: Spans,  # noqa: F811
) -> None:
    monkeypatch.setenv("SHOP_TIMEOUT", "2.5")
    with pytest.raises(SettingNotFoundError, match="SHOP_API_KEY"):
        ShopClient()
    client = ShopClient[ShopOptions](api_key="sk-shop")
    assert client.timeout == 2.5
    seen: list[str] = []

    @tool
    def find_order(number: str) -> str:
        """Find an order."""
        return f"order {number} is on its way"

    async def audit(context: FunctionInvocationContext, call_next: Callable[[], Awaitable[None]]) -> None:
        await call_next()
        seen.append(f"{context.function.name}: {context.result[0].text}")

    class Redact(ChatMiddleware):
        async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
            context.terminate = False  # type: ignore[attr-defined]
            seen.append(str(context.options.get("instructions")))
            await call_next()

    client.function_middleware.append(audit)
    client.chat_middleware = [Redact()]
    agent = client.as_agent(
        name="clerk",
        instructions="Be brief.",
        tools=[find_order],
        context_providers=[CustomerProvider()],
        default_options={"tone": "Kindly", "model": "shop-1"},
    )
    session = AgentSession()
    for number in ("7", "8"):
        run: Any = agent.run(f"Where is {number}", session=session, stream=stream)
        response = await run.get_final_response() if stream else await run
        assert response.text == f"Kindly: order {number} is on its way"
        saved = tmp_path / "session.json"
        saved.write_text(json.dumps(session.to_dict()))
        session = AgentSession.from_dict(json.loads(saved.read_text()))

    assert session.state["profile"] == Customer(name="Ada", visits=2)
    assert session.state["orders"].found == ["Ada: c1", "Ada: c1"]
    hello, again = "Be brief.\nAda is here for the 1. time.", "Be brief.\nAda is here for the 2. time."
    first, second = (f"find_order: order {number} is on its way" for number in (7, 8))
    assert [text.replace("'", "") for text in seen] == [hello, first, hello, again, second, again]
    assert "sk-shop" not in repr(client) + saved.read_text() + spans.text()
    chats = [span.attributes for span in spans.all() if span.attributes[OtelAttr.OPERATION] == "chat"]
    assert {(each[OtelAttr.PROVIDER_NAME], each[OtelAttr.ADDRESS]) for each in chats} == {("shop", "shop.example")}
    assert Counter(spans.names()) == {"invoke_agent clerk": 2, "chat shop-1": 4, "execute_tool find_order": 2}


async def test_tools_are_metered_by_middleware_that_is_changed_between_runs(spans: Spans) -> None:  # noqa: F811
    def add(a: int, b: int = 1) -> dict[str, int]:
        """Add numbers."""
        return {"sum": a + b}

    metered = FunctionTool(add, name="add", max_invocations=4)
    assert (await metered.invoke(arguments={"a": 1}))[0].text == '{"sum": 2}'
    assert await metered.invoke(a=2, b=2, skip_parsing=True) == {"sum": 4}
    with pytest.raises(TypeError, match="'no'"):
        await metered.invoke(arguments={"a": "no"})
    assert spans.names() == ["execute_tool add"] * 2

    class Caller(FunctionInvocationLayer[Any], ChatMiddlewareLayer[Any], ChatTelemetryLayer[Any], BaseChatClient[Any]):
        calls = 0

        async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kw: Any) -> ChatResponse:
            self.calls += 1
            if options.get("tool_choice") == "none":
                return ChatResponse(messages=[Message("assistant", [f"after {self.calls}"])])
            call = Content.from_function_call(f"c{self.calls}", "add", arguments=json.dumps({"a": self.calls}))
            return ChatResponse(messages=[Message("assistant", [call])])

    client = Caller()
    client.function_invocation_configuration["max_iterations"] = 2
    assert (await client.get_response("q", options={"tools": [metered]})).text == "after 3"
    assert metered.invocation_count == 4

    async def stub(context: FunctionInvocationContext, call_next: Any) -> None:
        context.result = (
            f"stubbed {context.arguments['a'] if isinstance(context.arguments, dict) else context.arguments.a}"
        )
        raise MiddlewareTermination("no real tools here", result=context.result)

    client.function_middleware = [stub]
    response = await client.get_response("q", options={"tools": [metered]})
    assert [content.result for m in response.messages for content in m.contents if m.role == "tool"] == ["stubbed 4"]
    assert metered.invocation_count == 4
