"""Which error is raised where: every situation of agents, clients, tools and middleware that has one of its own."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentbench.agents.agent.agent import Agent
from agentbench.agents.clients.scripted.scripted import ScriptedChatClient
from agentbench.agents.history.history import InMemoryHistoryProvider
from agentbench.agents.middleware.bases import AgentMiddleware
from agentbench.agents.model.client import BaseChatClient
from agentbench.agents.sessions.session import AgentSession
from agentbench.agents.sessions.session_context import SessionContext
from agentbench.agents.tools.decorator import tool
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import (
    AgentContentFilterException,
    AgentFrameworkException,
    AgentInvalidAuthException,
    AgentInvalidRequestException,
    AgentInvalidResponseException,
    ChatClientContentFilterException,
    ChatClientException,
    ChatClientInvalidAuthException,
    ChatClientInvalidRequestException,
    ChatClientInvalidResponseException,
    ContentError,
    MiddlewareException,
    ToolException,
)
from agentbench.messages.content.content import Content
from agentbench.messages.options import validate_tool_mode


@tool(max_invocations=1)
def once(a: int = 0) -> int:
    return a


class Answering(BaseChatClient[Any]):
    """Answers with whatever it was given, also with what is no answer."""

    def __init__(self, answer: Any) -> None:
        super().__init__()
        self._answer = answer

    async def _inner_get_response(self, **_: Any) -> Any:
        return self._answer


class Remote(Answering):
    NEEDS_NETWORK = True

    def service_url(self) -> str:
        return "https://models.example.com"


class Watching(AgentMiddleware):
    async def process(self, context: Any, call_next: Any) -> None:
        await call_next()


class Unusable:
    """A client of another make whose answer is none."""

    def __init__(self) -> None:
        self.additional_properties: dict[str, Any] = {}

    async def get_response(self, messages: Any, **_: Any) -> Any:
        return "no answer"


async def exhaust() -> None:
    exhausted = FunctionTool(lambda: 1, name="f", max_invocations=1)
    await exhausted.invoke()
    await exhausted.invoke()


def agent_with_two_histories() -> Any:
    agent = Agent(
        ScriptedChatClient(["a"]),
        context_providers=[InMemoryHistoryProvider()],
        require_per_service_call_history_persistence=True,
    )
    return agent.run("q", session=AgentSession(service_session_id="svc"))


SITUATIONS: dict[str, tuple[Callable[[], Any], type[Exception]]] = {
    "a client returns nothing usable": (
        lambda: Answering(5).get_response("q"),
        ChatClientInvalidResponseException,
    ),
    "a client of another make returns nothing usable": (
        lambda: Agent(Unusable()).run("q"),
        AgentInvalidResponseException,
    ),
    "two places keep the history": (agent_with_two_histories, AgentInvalidRequestException),
    "a declared tool is invoked": (lambda: FunctionTool(name="f").invoke(), ToolException),
    "a declared tool is called": (lambda: FunctionTool(name="f")(), ToolException),
    "a tool is used up": (exhaust, ToolException),
    "arguments do not fit": (lambda: once.invoke(arguments={"a": "x"}), TypeError),
    "middleware of no kind": (
        lambda: Agent(ScriptedChatClient([]), middleware=[lambda: None]),  # type: ignore[list-item]
        MiddlewareException,
    ),
    "agent middleware from a provider": (
        lambda: SessionContext(input_messages=[]).extend_middleware("p", Watching()),
        MiddlewareException,
    ),
    "an address that is none": (lambda: Content.from_uri("abc"), ContentError),
    "a tool mode that is none": (lambda: validate_tool_mode("maybe"), ContentError),
    "an option out of range": (
        lambda: Answering("")._validate_options({"temperature": 9}),
        ValueError,
    ),
    "two tools of one name": (
        lambda: Agent(ScriptedChatClient(["a"]), tools=[once]).run("q", tools=[FunctionTool(lambda: 1, name="once")]),
        ValueError,
    ),
    "a configuration that is none": (
        lambda: ScriptedChatClient([], function_invocation_configuration={"max_iterations": 0}),
        ValueError,
    ),
    "a script is at its end": (lambda: ScriptedChatClient([]).get_response("q"), ChatClientException),
}


@pytest.mark.parametrize("situation", SITUATIONS)
async def test_each_situation_has_its_error(situation: str) -> None:
    cause, error = SITUATIONS[situation]

    async def happen() -> None:
        made = cause()
        if hasattr(made, "__await__"):
            await made

    with pytest.raises(error) as caught:
        await happen()
    assert str(caught.value)


async def test_the_network_is_refused_while_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_OFFLINE", "1")
    with pytest.raises(ChatClientException, match="AGENTBENCH_OFFLINE"):
        await Remote("").get_response("q")


# ------------------------------------------------------------------------------------------------- the ladder of a user


async def outcome(run: Callable[[], Awaitable[Any]]) -> str:
    """What a person writes around a run: from the most precise error to the root, with one `try` inside another."""
    try:
        try:
            await run()
        except ChatClientInvalidAuthException:
            return "refresh the credentials"
        except AgentContentFilterException:
            return "say sorry"
    except AgentFrameworkException as exc:
        return f"log: {exc}"
    return "fine"


PAIRS = [
    (ChatClientInvalidAuthException, AgentInvalidAuthException, "refresh the credentials"),
    (ChatClientContentFilterException, AgentContentFilterException, "say sorry"),
    (ChatClientInvalidRequestException, AgentInvalidRequestException, "log: m"),
    (ChatClientInvalidResponseException, AgentInvalidResponseException, "log: m"),
]


@pytest.mark.parametrize("stream", [False, True], ids=["whole", "streamed"])
@pytest.mark.parametrize(("clients", "agents", "done"), PAIRS, ids=lambda value: getattr(value, "__name__", value))
async def test_a_nested_ladder_around_a_run_meets_the_right_rung(
    clients: type[ChatClientException], agents: type[Exception], done: str, stream: bool
) -> None:
    async def run() -> Any:
        agent = Agent(ScriptedChatClient([clients("m")]))
        return await (agent.run("q", stream=True).get_final_response() if stream else agent.run("q"))

    assert await outcome(run) == done
    for family in (clients, agents):
        with pytest.raises(family) as caught:
            await run()
        assert type(caught.value.__cause__) is clients
        assert str(caught.value) == "m"


async def test_a_run_that_is_well_meets_no_rung() -> None:
    assert await outcome(lambda: Agent(ScriptedChatClient(["a"])).run("q")) == "fine"


async def test_cancelling_a_run_is_no_error_of_the_tree() -> None:
    task = asyncio.ensure_future(outcome(lambda: Agent(ScriptedChatClient(["a"], delay=60)).run("q", stream=False)))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
