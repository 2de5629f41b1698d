"""Agents as the guides use them, through the front door alone: clients, providers, middleware, sessions, settings."""

import json
from collections.abc import AsyncIterable, Awaitable, Callable, Mapping, Sequence
from typing import Any, TypedDict

import pytest
from pydantic import BaseModel

from agentbench import (
    Agent,
    AgentFrameworkException,
    AgentResponse,
    AgentSession,
    BaseChatClient,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    ContextProvider,
    FunctionTool,
    Message,
    MiddlewareException,
    MiddlewareTermination,
    ResponseStream,
    ScriptedChatClient,
    SecretString,
    SessionContext,
    SupportsAgentRun,
    SupportsChatGetResponse,
    UserInputRequiredException,
    agent_middleware,
    load_settings,
    register_state_type,
    tool,
)
from agentbench.exceptions import (
    AgentContentFilterException,
    ChatClientContentFilterException,
    ChatClientInvalidAuthException,
    SettingNotFoundError,
)

# ------------------------------------------------------------------------------------------------ clients of one's own


class ParrotOptions(TypedDict, total=False):
    temperature: float
    loudness: str


class Parrot(BaseChatClient[ParrotOptions]):
    """Says what it hears, as a guide's first client does: one async hook for both ways of answering."""

    OTEL_PROVIDER_NAME = "parrot"

    async def _inner_get_response(
        self, *, messages: Sequence[Message], stream: bool, options: Mapping[str, Any], **kwargs: Any
    ) -> ChatResponse | ResponseStream[ChatResponseUpdate, ChatResponse]:
        heard = next((m.text for m in reversed(list(messages)) if m.role == "user"), "nothing")
        reply = f"Heard {heard}"
        if options.get("loudness") == "high":
            reply = reply.upper()
        if not stream:
            return ChatResponse(messages=[Message("assistant", [reply])])

        async def words() -> AsyncIterable[ChatResponseUpdate]:
            for word in reply.split():
                yield ChatResponseUpdate(role="assistant", contents=[{"type": "text", "text": word + " "}])

        return self._build_response_stream(words())


async def test_a_client_with_one_async_hook_answers_and_streams() -> None:
    client = Parrot()
    assert (await client.get_response([Message("user", ["hello you"])])).text == "Heard hello you"
    stream = client.get_response([Message("user", ["hello you"])], stream=True)
    assert [update.text async for update in stream] == ["Heard ", "hello ", "you "]
    opened = await client.get_response([Message("user", ["again"])], stream=True)
    assert (await opened.get_final_response()).text == "Heard again"


async def test_an_agent_of_such_a_client_answers_and_streams() -> None:
    def weather(city: str) -> str:
        """Tell the weather."""
        return f"Sunny in {city}"

    agent = Parrot().as_agent(
        name="weather_bot",
        instructions="Help with the weather.",
        tools=[FunctionTool(weather)],
        default_options={"temperature": 0.3, "loudness": "high"},
    )
    assert isinstance(agent, SupportsAgentRun)
    response = await agent.run("rain?")
    assert response.text == "HEARD RAIN?"
    assert response.messages[0].author_name == "weather_bot"
    stream = agent.run("rain?", stream=True)
    assert "".join([update.text async for update in stream]) == "HEARD RAIN? "


async def test_a_class_with_the_right_method_is_a_client() -> None:
    class Fixed:
        additional_properties: dict[str, Any] = {}

        def get_response(self, messages: Any, *, stream: bool = False, options: Any = None, **kwargs: Any) -> Any:
            async def respond() -> ChatResponse:
                return ChatResponse(messages=[Message("assistant", ["fixed"])])

            return respond()

    assert isinstance(Fixed(), SupportsChatGetResponse)
    assert isinstance(Parrot(), SupportsChatGetResponse)
    assert (await Agent(Fixed(), name="f").run("?")).text == "fixed"


# ------------------------------------------------------------------------------------------- what providers contribute


class Clock(ContextProvider):
    def __init__(self) -> None:
        super().__init__(source_id="clock")

    async def before_run(
        self, *, agent: SupportsAgentRun, session: AgentSession, context: SessionContext, state: dict[str, Any]
    ) -> None:
        state["asked"] = state.get("asked", 0) + 1
        context.extend_messages(self, [Message("system", ["It is noon."])])


class Language(ContextProvider):
    def __init__(self) -> None:
        super().__init__(source_id="language")

    async def before_run(self, *, context: SessionContext, **kwargs: Any) -> None:
        context.metadata["language"] = "de" if "hallo" in context.input_messages[-1].text else "en"


class Localized(ContextProvider):
    def __init__(self) -> None:
        super().__init__(source_id="localized")

    async def before_run(self, *, context: SessionContext, **kwargs: Any) -> None:
        context.extend_instructions(self.source_id, f"Respond in {context.metadata.get('language')}.")


async def test_providers_add_messages_and_instructions_and_keep_state() -> None:
    client = ScriptedChatClient(["Mahlzeit", "Tag"])
    agent = client.as_agent(name="a", instructions="Be kind.", context_providers=[Clock(), Language(), Localized()])
    session = AgentSession()
    await agent.run("hallo", session=session)
    await agent.run("hallo again", session=session)
    first, second = client.calls
    assert first.options["instructions"] == "Be kind.\nRespond in de."
    assert [m.text for m in first.messages if m.role == "system"][-1] == "It is noon."
    assert [m.text for m in second.messages if m.role != "system"] == ["hallo", "Mahlzeit", "hallo again"]
    assert session.state["clock"]["asked"] == 2


async def test_messages_of_providers_say_where_they_are_from() -> None:
    context = SessionContext(input_messages=[Message("user", ["q"])])
    provider, plain = Clock(), Message("system", ["note"])
    context.extend_messages(provider, [plain])
    context.extend_messages("custom", [plain])
    first, second = context.get_messages()
    assert first.additional_properties["_attribution"] == {"source_id": "clock", "source_type": "Clock"}
    assert second.additional_properties["_attribution"] == {"source_id": "custom"}
    assert "_attribution" not in plain.additional_properties
    assert [m.text for m in context.get_messages(exclude_sources={"custom"}, include_input=True)] == ["note", "q"]


# ---------------------------------------------------------------------------------------------------------- middleware


class Cached(ChatMiddleware):
    """Answers a conversation that it knows without the model."""

    def __init__(self) -> None:
        self.cache: dict[str, Any] = {}

    async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
        key = str(context.messages)
        if key in self.cache:
            context.result = self.cache[key]
            hit = "cache hit"
            raise MiddlewareTermination(hit)
        await call_next()
        self.cache[key] = context.result


async def test_a_cache_in_front_of_the_model_ends_the_pipeline_early() -> None:
    client = ScriptedChatClient(["only once", "another"])
    agent = client.as_agent(name="cached", middleware=[Cached()])
    long = "Summarize this report. " * 10
    assert [(await agent.run(f"{long}1")).text for _ in range(3)] == ["only once"] * 3
    assert (await agent.run(f"{long}2")).text == "another"
    assert len(client.calls) == 2


async def test_a_provider_brings_chat_middleware_and_no_agent_middleware() -> None:
    seen: list[str] = []

    class Audit(ChatMiddleware):
        async def process(self, context: ChatContext, call_next: Callable[[], Awaitable[None]]) -> None:
            seen.append(context.messages[-1].text)
            await call_next()

    class Audited(ContextProvider):
        async def before_run(self, *, context: SessionContext, **kwargs: Any) -> None:
            context.extend_middleware(self.source_id, Audit())

    agent = ScriptedChatClient(["a"]).as_agent(name="audited", context_providers=[Audited("audit")])
    await agent.run("who asks?")
    assert seen == ["who asks?"]

    @agent_middleware
    async def outside(context: Any, call_next: Any) -> None:
        await call_next()

    with pytest.raises(MiddlewareException):
        SessionContext(input_messages=[]).extend_middleware("audit", outside)


# ------------------------------------------------------------------------------------------------------------ sessions


class Preferences(BaseModel):
    language: str = "en"
    turns: int = 0


class Searches:
    def __init__(self, queries: list[str]) -> None:
        self.queries = queries

    def to_dict(self) -> dict[str, Any]:
        return {"type": "past_searches", "queries": self.queries}

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> "Searches":
        return cls(data["queries"])


register_state_type(Preferences)
register_state_type(Searches)


def test_a_session_brings_back_typed_values() -> None:
    session = AgentSession()
    session.state["preferences"] = Preferences(language="de", turns=5)
    session.state["searches"] = Searches(["gulls"])
    raw = json.dumps(session.to_dict())
    restored = AgentSession.from_dict(json.loads(raw))
    assert restored.session_id == session.session_id
    assert restored.state["preferences"] == Preferences(language="de", turns=5)
    assert restored.state["searches"].queries == ["gulls"]


async def test_a_session_goes_on_in_what_came_back_from_json() -> None:
    client = ScriptedChatClient(["Hello Ada", "You are Ada"])
    agent = client.as_agent(name="memory")
    session = agent.create_session()
    await agent.run("I am Ada", session=session)
    later = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    assert (await agent.run("Who am I?", session=later)).text == "You are Ada"
    assert [m.text for m in client.calls[-1].messages] == ["I am Ada", "Hello Ada", "Who am I?"]


# ------------------------------------------------------------------------------------------------------------ settings


class StoreSettings(TypedDict, total=False):
    host: str | None
    port: int | None
    api_key: SecretString | None


def test_settings_come_from_arguments_and_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STORE_HOST", "db.example")
    monkeypatch.setenv("STORE_PORT", "5432")
    settings = load_settings(StoreSettings, env_prefix="STORE_", required_fields=["host"], api_key="sk-real-key")
    assert (settings["host"], settings["port"]) == ("db.example", 5432)
    assert settings["api_key"] == "sk-real-key"
    assert "sk-real-key" not in repr(settings)
    monkeypatch.delenv("STORE_HOST")
    with pytest.raises(SettingNotFoundError, match="STORE_HOST"):
        load_settings(StoreSettings, env_prefix="STORE_", required_fields=["host"])


# -------------------------------------------------------------------------------------------------------------- errors


@pytest.mark.parametrize(
    ("raised", "caught"),
    [
        (ChatClientInvalidAuthException("expired"), "credentials"),
        (ChatClientContentFilterException("blocked"), "content"),
        (AgentFrameworkException("else"), "anything"),
    ],
)
async def test_a_ladder_of_excepts_finds_each_failure(raised: Exception, caught: str) -> None:
    agent = ScriptedChatClient([raised]).as_agent(name="failing")
    try:
        await agent.run("?")
    except ChatClientInvalidAuthException:
        found = "credentials"
    except AgentContentFilterException:
        found = "content"
    except AgentFrameworkException:
        found = "anything"
    assert found == caught


async def test_a_question_to_a_person_can_be_raised() -> None:
    @tool(approval_mode="always_require")
    def transfer(amount: int) -> str:
        return f"sent {amount}"

    call = Content.from_function_call("c1", "transfer", arguments={"amount": 5})
    client = ScriptedChatClient([[call], [call], "Sent."])
    agent = client.as_agent(name="bank", tools=[transfer])
    with pytest.raises(UserInputRequiredException) as caught:
        await agent.run("send 5", raise_on_user_input=True)
    assert [item.type for item in caught.value.contents] == ["function_approval_request"]

    session = agent.create_session()
    response: AgentResponse = await agent.run("send 5", session=session)
    (request,) = response.user_input_requests
    done = await agent.run(Message("user", [request.to_function_approval_response(True)]), session=session)
    assert done.text == "Sent."
    assert client.calls[-1].messages[-1].contents[0].result == "sent 5"
