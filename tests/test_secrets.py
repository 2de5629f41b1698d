"""A known secret goes through the whole library, is really used, and is then looked for wherever something shows.

What a person writes into the conversation is content, not a credential: the last tests keep the two apart.
"""

# ruff: noqa: F811  fixtures are imported
from __future__ import annotations

import base64
import gc
import json
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.parts.secrets import everything_is_logged, texts_of

pytest.importorskip("openai", reason="openai is not installed (extra openai)")
pytest.importorskip("dotenv", reason="python-dotenv is not installed (extra settings)")
from agentbench import (
    Agent,
    AgentSession,
    FileCheckpointStorage,
    FileHistoryProvider,
    FunctionInvocationContext,
    Message,
    ScriptedChatClient,
    SecretString,
    WorkflowBuilder,
    WorkflowContext,
    agent_middleware,
    chat_middleware,
    executor,
    function_middleware,
    tool,
)
from agentbench.agents.clients.scripted.script import Call
from agentbench.agents.middleware.contexts import AgentContext, ChatContext
from agentbench.exceptions import ChatClientException
from agentbench.observability import OBSERVABILITY_SETTINGS
from agentbench.openai import OpenAIChatClient
from agentbench.testing import CassetteChatClient
from tests.agents.telemetry.conftest import Points, Spans, points, sensitive, spans, switches  # noqa: F401 - fixtures
from tests.servers import openai_wire as wire
from tests.servers.openai_server import Answer, OpenAIServer, reply, stream

KEY = "sk-very-secret-key-0a1b2c3d4e"
TOKEN = "tok-very-secret-token-9z8y7x"
HEADER = "hdr-very-secret-header-5k6l7m"
SECRETS = (KEY, TOKEN, HEADER)
logger = logging.getLogger("tests.secrets")


# ---------------------------------------------------------------------------------------------------------- around it


@pytest.fixture(autouse=True)
def loud(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    with everything_is_logged(caplog):
        yield


@pytest.fixture(autouse=True)
def nothing_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("OPENAI_", "AGENTBENCH_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)


@pytest.fixture
def server() -> Iterator[OpenAIServer]:
    with OpenAIServer() as running:
        yield running


@pytest.fixture
def telemetry(sensitive: None, spans: Spans, points: Points) -> Callable[[], list[str]]:
    """Telemetry with contents allowed; gives what spans and metrics say, one text each."""

    def told() -> list[str]:
        gc.collect()
        assert spans.names()
        return [*(span.to_json() for span in spans.all()), points.text()]

    return told


# -------------------------------------------------------------------------------------------------------- what is shown


def shown_by(*things: object) -> Iterator[str]:
    """Whatever an object may be printed, rendered or inspected as."""
    for thing in things:
        yield repr(thing)
        yield str(thing)
        yield repr(getattr(thing, "__dict__", None))
        to_dict = getattr(thing, "to_json_dict", getattr(thing, "to_dict", None))
        if callable(to_dict):
            yield repr(to_dict())
        bundle = getattr(thing, "_repr_mimebundle_", None)
        if callable(bundle):
            yield repr(bundle())
        html = getattr(thing, "_repr_html_", None)
        if callable(html):
            yield str(html())


def written_in(folder: Path) -> Iterator[str]:
    """All files of a folder, names and contents."""
    for path in sorted(folder.rglob("*")):
        yield str(path.relative_to(folder))
        if path.is_file():
            yield path.read_bytes().decode("utf-8", "replace")


def spellings(secret: str) -> set[str]:
    """A secret as it is, and in the forms in which it may travel."""
    encoded = base64.b64encode(secret.encode()).decode()
    return {secret, secret.upper(), quote(secret, safe=""), encoded.rstrip("="), json.dumps(secret)[1:-1], secret[::-1]}


def assert_nowhere(shown: Iterable[str], secrets: Iterable[str] = SECRETS) -> None:
    wanted = [spelling for secret in secrets for spelling in spellings(secret)]
    found = [(spelling, text[:2000]) for text in shown for spelling in wanted if spelling in text]
    assert found == []


# ------------------------------------------------------------------------------------------------------ what is used


class Used:
    """What the tools of a run were really handed."""

    def __init__(self) -> None:
        self.tokens: list[str] = []


def tools_of(used: Used) -> list[Any]:
    @tool
    def fetch(place: str, ctx: FunctionInvocationContext) -> str:
        """Fetches with a credential that the run hands over, unseen by the model."""
        token = ctx.kwargs["token"]
        used.tokens.append(token.get_secret_value())
        logger.debug("fetching %r with %r in %r", place, token, ctx)
        return f"fetched {place}"

    @tool
    def fail(ctx: FunctionInvocationContext) -> str:
        """Fails, and says what it had."""
        problem = f"refused with {ctx.kwargs!r}"
        raise PermissionError(problem)

    hosted = {
        "type": "function",
        "function": {"name": "elsewhere", "parameters": {"type": "object", "properties": {}}},
        "headers": {"Authorization": SecretString(HEADER)},
    }
    return [fetch, fail, hosted]


def watchers() -> list[Any]:
    """Middleware of each kind that logs all it can see."""

    @agent_middleware
    async def around_agent(context: AgentContext, call_next: Any) -> None:
        logger.debug("agent before %r %r", context, vars_of(context))
        await call_next()
        logger.debug("agent after %r", context.result)

    @chat_middleware
    async def around_chat(context: ChatContext, call_next: Any) -> None:
        logger.debug("chat before %r %r", context, vars_of(context))
        await call_next()
        logger.debug("chat after %r", context.result)

    @function_middleware
    async def around_function(context: FunctionInvocationContext, call_next: Any) -> None:
        logger.debug("function before %r %r", context, vars_of(context))
        await call_next()
        logger.debug("function after %r", context.result)

    return [around_agent, around_chat, around_function]


def vars_of(context: Any) -> dict[str, Any]:
    names = [name for cls in type(context).__mro__ for name in getattr(cls, "__slots__", ())]
    return {name: getattr(context, name, None) for name in [*names, *getattr(context, "__dict__", ())]}


def answers(*, streaming: bool) -> list[Answer]:
    """Two calls of tools in one round, then words."""
    calls = [("c1", "fetch", '{"place": "Oslo"}'), ("c2", "fail", "{}")]
    if not streaming:
        called = [wire.call(*each) for each in calls]
        first = wire.completion(None, finish="tool_calls", tool_calls=called, usage=wire.usage(5, 2))
        return [reply(first), reply(wire.completion("Done.", usage=wire.usage(10, 20)))]
    deltas = [wire.chunk(tool_calls=[wire.call(*each, index=index)]) for index, each in enumerate(calls)]
    return [
        stream(*deltas, wire.chunk(finish="tool_calls")),
        stream(wire.chunk("Do"), wire.chunk("ne."), wire.chunk(finish="stop")),
    ]


# ---------------------------------------------------------------------------------------------------- the ways of a key


def by_argument(server: OpenAIServer, **_: Any) -> OpenAIChatClient:
    return OpenAIChatClient("m", base_url=server.url, api_key=KEY, max_retries=0)


def by_secret(server: OpenAIServer, **_: Any) -> OpenAIChatClient:
    return OpenAIChatClient("m", base_url=server.url, api_key=SecretString(KEY), max_retries=0)


def by_function(server: OpenAIServer, **_: Any) -> OpenAIChatClient:
    return OpenAIChatClient("m", base_url=server.url, api_key=lambda: KEY, max_retries=0)


def by_coroutine(server: OpenAIServer, **_: Any) -> OpenAIChatClient:
    async def key() -> str:
        return KEY

    return OpenAIChatClient("m", base_url=server.url, api_key=key, max_retries=0)


def by_environment(server: OpenAIServer, monkeypatch: pytest.MonkeyPatch, **_: Any) -> OpenAIChatClient:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    return OpenAIChatClient("m", base_url=server.url, max_retries=0)


def by_file(server: OpenAIServer, secret_folder: Path, **_: Any) -> OpenAIChatClient:
    path = secret_folder / ".env"
    path.write_text(f"OPENAI_API_KEY={KEY}\nOPENAI_BASE_URL={server.url}\nOPENAI_CHAT_MODEL=m\n")
    return OpenAIChatClient(env_file_path=str(path), max_retries=0)


WAYS = [by_argument, by_secret, by_function, by_coroutine, by_environment, by_file]


@pytest.fixture(params=WAYS, ids=lambda way: way.__name__)
def client(
    request: pytest.FixtureRequest,
    server: OpenAIServer,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path_factory: pytest.TempPathFactory,
) -> OpenAIChatClient:
    made: OpenAIChatClient = request.param(
        server, monkeypatch=monkeypatch, secret_folder=tmp_path_factory.mktemp("secret")
    )
    return made


@pytest.mark.parametrize(("streaming", "recorded"), [(False, False), (True, True)], ids=["direct", "recorded stream"])
async def test_a_run_with_everything_shows_no_credential_anywhere(
    server: OpenAIServer,
    client: OpenAIChatClient,
    telemetry: Callable[[], list[str]],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
    streaming: bool,
    recorded: bool,
) -> None:
    server.answer(*answers(streaming=streaming))
    used = Used()
    model: Any = CassetteChatClient(tmp_path / "tape.jsonl", client) if recorded else client
    agent = Agent(
        model,
        "Fetch.",
        name="nm",
        tools=tools_of(used),
        middleware=watchers(),
        context_providers=[FileHistoryProvider(tmp_path / "history")],
        function_invocation_configuration={"include_detailed_errors": True},
    )
    session = agent.create_session(session_id="s1")
    shown: list[str] = []
    async with client:
        keywords: dict[str, Any] = {
            "session": session,
            "function_invocation_kwargs": {"token": SecretString(TOKEN)},
            "options": {"metadata": {"team": "a"}},
        }
        if streaming:
            pulled = agent.run("Fetch Oslo.", stream=True, **keywords)
            updates = [update async for update in pulled]
            response = await pulled.get_final_response()
            shown += shown_by(pulled, *updates)
        else:
            response = await agent.run("Fetch Oslo.", **keywords)
        shown += shown_by(
            client, model, agent, session, response, response.raw_representation, *response.messages, *agent.middleware
        )
        shown += shown_by(*agent.default_options["tools"][:2], *agent.context_providers)
        shown.append(repr(agent.default_options))

    assert response.text.endswith("Done.")
    assert {request.headers["authorization"] for request in server.requests} == {f"Bearer {KEY}"}
    assert all(HEADER in json.dumps(body) for body in server.bodies), "the tool of the service has lost its header"
    assert used.tokens == [TOKEN]
    (tmp_path / "session.json").write_text(json.dumps(session.to_dict()))
    shown += [*written_in(tmp_path), *telemetry(), caplog.text]
    assert any(record.name.startswith("openai") for record in caplog.records), "the SDK's logs are not captured"
    assert any("function before" in record.getMessage() for record in caplog.records)
    assert ("tape.jsonl" in shown) is recorded
    assert_nowhere(shown)


async def test_a_service_that_repeats_the_key_in_its_refusal_is_not_repeated(
    server: OpenAIServer,
    client: OpenAIChatClient,
    telemetry: Callable[[], list[str]],
    caplog: pytest.LogCaptureFixture,
    tmp_path: Path,
) -> None:
    server.answer(reply(wire.error(f"Incorrect API key provided: {KEY}.", "invalid_api_key", given=[KEY]), 401))
    model = CassetteChatClient(tmp_path / "tape.jsonl", client)
    agent = Agent(
        model, name="nm", middleware=watchers(), context_providers=[FileHistoryProvider(tmp_path / "history")]
    )
    session = agent.create_session(session_id="s1")
    async with client:
        with pytest.raises(ChatClientException) as caught:
            await agent.run("q", stream=True, session=session).get_final_response()
        shown = [*texts_of(caught.value), *shown_by(client, model, agent, session)]
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    assert_nowhere([*shown, *written_in(tmp_path), *telemetry(), caplog.text])


async def test_a_workflow_with_an_agent_in_it_saves_no_credential(
    server: OpenAIServer, telemetry: Callable[[], list[str]], caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    server.answer(*answers(streaming=False))
    used = Used()
    client = by_secret(server)
    agent = Agent(client, name="nm", tools=tools_of(used))
    storage = FileCheckpointStorage(tmp_path / "checkpoints")

    @executor
    async def ask(text: str, ctx: WorkflowContext[list[Message]]) -> None:
        session = agent.create_session(session_id="s1")
        response = await agent.run(text, session=session, function_invocation_kwargs={"token": SecretString(TOKEN)})
        ctx.set_state("session", session.to_dict())
        await ctx.send_message(response.messages)

    @executor
    async def end(messages: list[Message], ctx: WorkflowContext[Any, str]) -> None:
        await ctx.yield_output(messages[-1].text)

    async with client:
        workflow = WorkflowBuilder(start_executor=ask).add_edge(ask, end).build()
        result = await workflow.run("Fetch Oslo.", checkpoint_storage=storage)
    assert result.outputs == ["Done."]
    assert used.tokens == [TOKEN]
    checkpoints = await storage.list_checkpoints(workflow_name=workflow.name)
    assert checkpoints
    shown = [*shown_by(workflow, result, storage, *result, *checkpoints), *written_in(tmp_path)]
    assert any("Fetch Oslo." in text for text in shown)
    assert_nowhere([*shown, *telemetry(), caplog.text])


async def test_views_of_the_notebook_show_no_credential(
    server: OpenAIServer, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    pytest.importorskip("ipywidgets", reason="ipywidgets is not installed (extra notebook)")
    formatters = pytest.importorskip("IPython.core.formatters", reason="IPython is not installed")
    server.answer(*answers(streaming=False))
    client = by_argument(server)
    model = CassetteChatClient(tmp_path / "tape.jsonl", client)
    agent = Agent(model, name="nm", tools=tools_of(Used()))
    session = agent.create_session(session_id="s1")
    session.state["connection"] = {"api_key": SecretString(KEY), "parts": [SecretString(TOKEN)]}
    async with client:
        response = await agent.run(
            "Fetch Oslo.", session=session, function_invocation_kwargs={"token": SecretString(TOKEN)}
        )
    things = [client, model, agent, session, response, *response.messages, *agent.default_options["tools"]]
    rendered = [formatters.DisplayFormatter().format(thing) for thing in [*things, things, {"a": things}]]
    assert any("text/html" in data for data, _ in rendered)
    assert_nowhere([*map(repr, rendered), caplog.text])


# -------------------------------------------------------------------------------------------- arguments that are secret


@pytest.mark.parametrize("streaming", [False, True], ids=["whole", "streamed"])
async def test_an_argument_marked_secret_is_masked_where_the_call_is_shown(
    telemetry: Callable[[], list[str]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    streaming: bool,
) -> None:
    """The model wrote it, so it is part of the conversation; nothing that shows the call of the tool repeats it."""
    given: list[Any] = []
    contexts: list[str] = []

    @tool
    def login(user: str, password: SecretString, pin: SecretString | None = None) -> str:
        """Logs in."""
        given.extend([password, pin])
        problem = f"no such user {user!r} with {password!r}"
        raise PermissionError(problem)

    @function_middleware
    async def watch(context: FunctionInvocationContext, call_next: Any) -> None:
        contexts.extend([repr(context), repr(dict(context.arguments))])
        await call_next()

    model = ScriptedChatClient([Call("login", {"user": "u", "password": KEY, "pin": TOKEN}), "done"])
    agent = Agent(model, tools=[login], middleware=[watch])
    await (agent.run("q", stream=True).get_final_response() if streaming else agent.run("q"))
    assert given == [KEY, TOKEN]
    assert {type(value) for value in given} == {SecretString}
    assert_nowhere([*contexts, caplog.text])
    *found, _ = telemetry()
    (span,) = (text for text in found if json.loads(text)["name"] == "execute_tool login")
    assert_nowhere([span])
    assert json.loads(span)["attributes"]["gen_ai.tool.call.arguments"].count("•••") == 2


# -------------------------------------------------------------------------------------------- what is content after all


async def test_what_a_person_writes_is_content_and_stays_where_content_is(
    telemetry: Callable[[], list[str]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    agent = Agent(ScriptedChatClient(["I will not repeat it."]), context_providers=[FileHistoryProvider(tmp_path)])
    session = AgentSession(session_id="s1")
    await agent.run(f"My key is {KEY}", session=session)
    assert KEY in "".join(written_in(tmp_path))
    assert KEY in "".join(telemetry())
    written = logging.Formatter()
    assert_nowhere(written.format(record) for record in caplog.records if record.levelno > logging.DEBUG)


async def test_without_leave_what_a_person_writes_is_in_no_span_and_no_metric(
    telemetry: Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OBSERVABILITY_SETTINGS, "SENSITIVE_DATA_ENABLED", False)
    agent = Agent(ScriptedChatClient([Call("look", {"key": TOKEN}), HEADER]), f"Mind {HEADER}", tools=[tool(_look)])
    await agent.run(f"My key is {KEY}")
    assert_nowhere(telemetry())


def _look(key: str) -> str:
    return key


_look.__name__ = "look"


async def test_a_cassette_refuses_a_prompt_that_holds_the_clients_key(
    server: OpenAIServer, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    server.answer(reply(wire.completion("Done.")))
    client = by_argument(server)
    model = CassetteChatClient(tmp_path / "tape.jsonl", client)
    async with client:
        with pytest.raises(ChatClientException) as caught:
            await model.get_response(f"My key is {KEY}")
    assert_nowhere([*texts_of(caught.value), *written_in(tmp_path)], [KEY])
