"""Answers of a model that no service would take back: the session goes on after them."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    FileHistoryProvider,
    FunctionTool,
    InMemoryHistoryProvider,
    Message,
    tool,
)

HALF, OTHER_HALF = "\ud83d", "\ude00"
NESTED = '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}"


class Service(BaseChatClient):
    """A service that is sent JSON in UTF-8, and answers with contents, each in an update of its own."""

    def __init__(self, *answers: list[Content]) -> None:
        super().__init__()
        self.answers = list(answers)
        self.texts: list[str] = []

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> Any:
        json.dumps([message.to_dict() for message in messages], ensure_ascii=False).encode()
        self.texts = [message.text for message in messages]
        contents = self.answers.pop(0) if self.answers else [Content.from_text("fine")]

        async def updates() -> AsyncIterator[ChatResponseUpdate]:
            for content in contents:
                yield ChatResponseUpdate(role="assistant", contents=[content])

        return updates() if stream else ChatResponse(messages=[Message("assistant", contents)])


@tool
def echo(x: str) -> str:
    return f"{x}{HALF}"


@pytest.fixture(params=["session", "file", "calls"])
def make_agent(request: pytest.FixtureRequest, tmp_path: Path) -> Any:
    def agent(service: Service, *tools: FunctionTool) -> Agent:
        history = FileHistoryProvider(tmp_path) if request.param == "file" else InMemoryHistoryProvider()
        by_call = request.param == "calls"
        return Agent(
            service, tools=tools, context_providers=[history], require_per_service_call_history_persistence=by_call
        )

    return agent


async def run(agent: Agent, session: AgentSession, *, stream: bool) -> Any:
    if stream:
        return await agent.run("q", session=session, stream=True).get_final_response()
    return await agent.run("q", session=session)


@pytest.mark.parametrize(
    ("pieces", "stream", "text"),
    [
        (["hi ", HALF, OTHER_HALF, "!"], True, "hi \U0001f600!"),
        ([f"{HALF}{OTHER_HALF}"], True, "\U0001f600"),
        ([f"{HALF}{OTHER_HALF}"], False, "\U0001f600"),
        ([HALF], True, "\ufffd"),
        ([HALF], False, "\ufffd"),
    ],
)
async def test_halves_of_a_surrogate_pair_end_no_session(
    make_agent: Any, pieces: list[str], stream: bool, text: str
) -> None:
    service = Service([*map(Content.from_text, pieces)])
    agent, session = make_agent(service), AgentSession()

    response = await run(agent, session, stream=stream)
    again = await run(agent, session, stream=stream)

    assert (response.text, again.text) == (text, "fine")
    assert service.texts == ["q", text, "q"]
    json.dumps(session.to_dict(), ensure_ascii=False).encode()


@pytest.mark.parametrize("stream", [False, True])
async def test_halves_in_arguments_and_results_end_no_session(make_agent: Any, stream: bool) -> None:
    call = Content.from_function_call("c1", "echo", arguments=f'{{"x": "{HALF}"}}')
    service = Service([call])
    agent, session = make_agent(service, echo), AgentSession()

    response = await run(agent, session, stream=stream)
    again = await run(agent, session, stream=stream)

    assert [one.contents[0].result for one in response.messages if one.role == "tool"] == ["\ufffd\ufffd"]
    assert (response.text, again.text) == ("fine", "fine")


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("approval", ["never_require", "always_require"])
async def test_arguments_that_are_nested_too_deeply_end_no_session(
    make_agent: Any, approval: Any, stream: bool
) -> None:
    act = FunctionTool(lambda x: "acted", name="act", approval_mode=approval)
    service = Service([Content.from_function_call("c1", "act", arguments=NESTED)])
    agent, session = make_agent(service, act), AgentSession()

    response = await run(agent, session, stream=stream)
    if approval == "always_require":
        (request,) = response.user_input_requests
        response = await agent.run(
            Message("user", [request.to_function_approval_response(approved=True)]), session=session
        )
    again = await run(agent, session, stream=stream)

    assert (response.text, again.text, act.invocation_count) == ("fine", "fine", 0)
    stored = json.loads(json.dumps(session.to_dict()))
    assert (await run(agent, AgentSession.from_dict(stored), stream=stream)).text == "fine"
