"""Mistakes of users are told where they are made: what was given, what was expected, how to mend it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import BaseModel

from agentbench.agents.agent.agent import Agent, RawAgent
from agentbench.agents.clients.scripted.offline import EchoChatClient
from agentbench.agents.history.history import InMemoryHistoryProvider
from agentbench.agents.middleware.contexts import agent_middleware
from agentbench.agents.sessions.agent_protocol import ContextProvider
from agentbench.agents.sessions.session import AgentSession
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.messages.response import AgentResponse, ChatResponse
from tests.parts.errors import raises
from tests.parts.tools import passing


def made(**arguments: Any) -> Agent:
    return Agent(EchoChatClient(), **arguments)


def add(a: int, b: int) -> int:
    return a + b


class Forgetful(ContextProvider):
    def __init__(self) -> None:
        pass


# ------------------------------------------------------------------------------------------------------------ sessions


@pytest.mark.parametrize(
    ("given", "told"),
    [
        ("abc", "agent.create_session(session_id='abc')"),
        (AgentSession(session_id="s").to_dict(), "AgentSession.from_dict(...)"),
        (AgentSession, "agent.create_session()"),
    ],
    ids=["its id", "as stored", "the class"],
)
def test_what_is_no_session_is_refused_at_the_call(given: Any, told: str) -> None:
    for agent in (Agent(EchoChatClient()), RawAgent(EchoChatClient())):
        with raises(TypeError, told):
            agent.run("q", session=given, stream=True)


@pytest.mark.parametrize(
    ("given", "error", "told"),
    [
        ('{"session_id": "s"}', TypeError, "stored session"),
        ({"session_id": "s", "type": "workflow"}, ValueError, "workflow"),
    ],
    ids=["text", "another type"],
)
def test_a_mapping_that_is_no_stored_session_is_refused(given: Any, error: type[Exception], told: str) -> None:
    with raises(error, told):
        AgentSession.from_dict(given)


# -------------------------------------------------------------------------------------------------------- of an agent


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"instructions": 5}, "5"),
        ({"default_options": {"instructions": 5}}, "5"),
        ({"default_options": "x"}, "default_options"),
        ({"context_providers": [5]}, "source_id"),
        ({"context_providers": [InMemoryHistoryProvider]}, "InMemoryHistoryProvider"),
        ({"context_providers": [Forgetful()]}, "__init__(source_id)"),
        ({"function_invocation_configuration": "x"}, "function_invocation_configuration"),
    ],
    ids=str,
)
def test_an_agent_refuses_what_is_of_a_wrong_type(arguments: dict[str, Any], told: str) -> None:
    with raises(TypeError, told):
        made(**arguments)


def test_one_context_provider_needs_no_list() -> None:
    memory = InMemoryHistoryProvider()
    assert made(context_providers=memory).context_providers == [memory]
    assert made(context_providers=iter([memory])).context_providers == [memory]


@pytest.mark.parametrize("name", ["options", "function_invocation_kwargs", "client_kwargs"])
def test_agents_and_clients_refuse_text_in_the_place_of_a_mapping(name: str) -> None:
    arguments: Any = {name: "ada"}
    for call in (made().run, made(middleware=[passing]).run, EchoChatClient().get_response):
        with raises(TypeError, name, "ada"):
            call("q", **arguments)


# ---------------------------------------------------------------------------------------------- limits, rules, options


def test_a_limit_of_a_tool_is_a_whole_number() -> None:
    for name, limit in (
        ("max_invocations", "3"),
        ("max_invocation_exceptions", 2.5),
        ("max_invocations_per_run", True),
    ):
        arguments: Any = {name: limit}
        with raises(TypeError, name, " is ", repr(limit)):
            FunctionTool(add, **arguments)


@pytest.mark.parametrize(("name", "proposal"), [("my tool!", "my_tool"), ("!", "tool")])
def test_a_name_that_no_service_takes_is_refused_with_a_better_one(name: str, proposal: str) -> None:
    makers: list[Callable[..., Any]] = [lambda name: FunctionTool(add, name=name), made(name="inner").as_tool]
    for make in makers:
        with raises(ValueError, proposal, ""):
            make(name=name)


CONFIGURED: list[tuple[dict[str, Any], type[Exception], str]] = [
    ({"max_function_calls": 1.5}, TypeError, "max_function_calls"),
    ({"max_duration_seconds": "3"}, TypeError, "max_duration_seconds"),
    ({"strict_max_function_calls": "yes"}, TypeError, "strict_max_function_calls"),
    ({"max_iterations": 0}, ValueError, "max_iterations"),
    ({"max_iteration": 3}, ValueError, "max_iterations"),
    ({"max_function_calls": 0}, ValueError, "max_function_calls"),
    ({"max_consecutive_errors_per_request": -1}, ValueError, "max_consecutive_errors_per_request"),
    ({"max_duration_seconds": 0}, ValueError, "max_duration_seconds"),
    ({"error_scope": "run"}, ValueError, "error_scope"),
    ({"approval_scope": ""}, ValueError, "approval_scope"),
]


@pytest.mark.parametrize(("configuration", "error", "told"), CONFIGURED, ids=str)
def test_a_configuration_is_checked_by_agents_and_clients(
    configuration: dict[str, Any], error: type[Exception], told: str
) -> None:
    for make in (made, EchoChatClient):
        with raises(error, told):
            make(function_invocation_configuration=configuration)


class City(BaseModel):
    name: str


FORMS: list[tuple[Any, str]] = [
    (City(name="Oslo"), "type City"),
    ("json", "'json'"),
    (int, "class int"),
]


@pytest.mark.parametrize(("form", "told"), FORMS, ids=[told for _, told in FORMS])
def test_what_describes_no_form_of_an_answer_is_refused_at_the_call(form: Any, told: str) -> None:
    run: Callable[..., object] = made().run
    with raises(TypeError, told):
        run("q", options={"response_format": form})
    with raises(TypeError, told):
        EchoChatClient().get_response("q", options={"response_format": form})
    with raises(TypeError, told):
        made(default_options={"response_format": form})


# ------------------------------------------------------------------------------------------------------------- keywords


class Own(Agent):
    pass


KEYWORDS: list[tuple[Callable[..., Any], str, str]] = [
    (
        Agent,
        "instruction",
        "instructions",
    ),
    (Own, "tool", "tools"),
    (Agent, "temperature", "options={'temperature'"),
    (Agent(EchoChatClient()).run, "temperature", "options={'temperature'"),
    (Own(EchoChatClient()).run, "sesion", "session"),
    (RawAgent(EchoChatClient()).run, "response_format", "options={'response_format'"),
]


@pytest.mark.parametrize(("call", "keyword", "told"), KEYWORDS, ids=[keyword for _, keyword, _ in KEYWORDS])
def test_an_unknown_keyword_names_what_was_called_and_what_was_meant(
    call: Callable[..., Any], keyword: str, told: str
) -> None:
    with raises(TypeError, told):
        call(EchoChatClient(), **{keyword: 1})


def test_an_unknown_keyword_of_a_service_names_its_class() -> None:
    from agentbench.openai import OpenAIChatClient

    client: Callable[..., Any] = OpenAIChatClient
    with raises(TypeError, "OpenAIChatClient()", "baseurl", "base_url"):
        client("m", baseurl="http://127.0.0.1:1")


# ----------------------------------------------------------------------------------------------------------- middleware


def setting(result: Any) -> Any:
    @agent_middleware
    async def replace(context: Any, call_next: Any) -> None:
        context.result = result

    return replace


@pytest.mark.parametrize("result", ["hello", ChatResponse(text="a")], ids=["text", "chat"])
async def test_a_middleware_sets_a_response_of_an_agent_as_the_result_of_a_run(result: Any) -> None:
    with raises(TypeError, "AgentResponse"):
        await made(middleware=[setting(result)]).run("q")


async def test_a_middleware_whose_return_value_is_ignored_is_warned_of() -> None:
    @agent_middleware
    async def forgetful(context: Any, call_next: Any) -> Any:
        return AgentResponse(text="mine")

    with pytest.warns(
        RuntimeWarning, match=r"forgetful returned a value \(of type AgentResponse\), .* set context\.result"
    ):
        assert await made(middleware=[forgetful]).run("q") is None


async def test_what_comes_next_takes_no_arguments() -> None:
    @agent_middleware
    async def like_others(context: Any, call_next: Any) -> None:
        await call_next(context)

    with raises(TypeError, "call_next()"):
        await made(middleware=[like_others]).run("q")


def test_a_misspelt_argument_of_a_tool_becomes_an_attribute_with_a_warning() -> None:
    with pytest.warns(RuntimeWarning, match=r"FunctionTool.*'descripton'.*'description'"):
        made_tool: Any = FunctionTool(add, descripton="x")
    assert made_tool.descripton == "x"
    other: Any = FunctionTool(add, owner="me")
    assert other.owner == "me"


@pytest.mark.parametrize(("name", "mend"), [("parameters", "input_model="), ("invoke", "another name")])
def test_an_argument_of_a_tool_cannot_replace_one_of_its_methods(name: str, mend: str) -> None:
    keywords: dict[str, Any] = {name: {}}
    with raises(TypeError, f"{name}=", mend):
        FunctionTool(name="ask", **keywords)
