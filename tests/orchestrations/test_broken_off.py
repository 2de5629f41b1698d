"""Whatever breaks a run off that waits for a person, and whatever is answered wrongly: the run can still be used."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentExecutor,
    AgentHostExecutor,
    AgentHostOptions,
    AgentResponse,
    AgentSession,
    ChatResponse,
    Content,
    Executor,
    Message,
    RunContext,
    TurnToken,
    WorkflowBuilder,
    WorkflowContext,
    WorkflowExecutor,
    executor,
    handler,
    response_handler,
    step,
    tool,
    workflow,
)
from agentbench.agents.model.client import BaseChatClient
from tests.parts.errors import raises

KINDS = ("responds", "in turns", "nested", "function")
GRAPHS = KINDS[:3]


class Secretary(BaseChatClient[Any]):
    """Calls `send` twice for each text of the user, and thanks for the results; fails or waits when it is told to."""

    def __init__(self) -> None:
        super().__init__()
        self.failures: list[Exception] = []
        self.is_slow = False

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> ChatResponse[Any]:
        contents = [content for message in messages for content in message.contents]
        asked = sum(message.role == "user" and bool(message.text) for message in messages)
        results = {c.call_id for c in contents if c.type == "function_result"}
        ids = [f"{asked}-{to}" for to in ("Ada", "Bob")]
        if self.is_slow:
            await asyncio.sleep(60)
        if results >= set(ids):
            if self.failures:
                raise self.failures.pop()
            return ChatResponse(messages=[Message("assistant", ["all sent"])])
        calls = [Content.from_function_call(one, "send", arguments={"to": one}) for one in ids]
        return ChatResponse(messages=[Message("assistant", calls)])


class Desk:
    """An agent that asks a person, as a node of this kind, or in a function."""

    def __init__(self, kind: str, *, sibling: bool = False) -> None:
        self.sent: list[str] = []
        self.kind = kind
        self.client = Secretary()
        self.sibling_fails = False

        @tool(approval_mode="always_require")
        async def send(to: str) -> str:
            "Send a letter."
            self.sent.append(to)
            return f"sent to {to}"

        self.agent = Agent(self.client, name="secretary", tools=[send])
        self.input: Any = "Invite them."
        self.workflow: Any = self.function() if kind == "function" else self.graph(sibling)

    def graph(self, sibling: bool) -> Any:
        node: Any = AgentExecutor(self.agent)
        if self.kind == "in turns":
            node = AgentHostExecutor(self.agent, AgentHostOptions(emit_agent_response_events=True))
            self.input = [Message("user", ["Invite them."]), TurnToken()]
        elif self.kind == "nested":
            inner = WorkflowBuilder(node, name="inner").build()
            node = WorkflowExecutor(inner, "inner", allow_direct_output=True, propagate_request=True)
        if not sibling:
            return WorkflowBuilder(node).build()

        @executor(id="spread")
        async def spread(text: str, ctx: WorkflowContext[Any]) -> None:
            await ctx.send_message(self.input)

        return WorkflowBuilder(spread).add_edge(spread, node).add_edge(spread, Sibling(self)).build()

    def function(self) -> Any:
        @step
        async def turn(conversation: Any, message: Message) -> tuple[Any, AgentResponse]:
            session = AgentSession.from_dict(conversation) if conversation else AgentSession()
            response = await self.agent.run(message, session=session)
            return session.to_dict(), response

        @workflow
        async def talk(text: str, ctx: RunContext) -> str:
            conversation, response = await turn(None, Message("user", [text]))
            while requests := response.user_input_requests:
                answers = [await ctx.request_info(request, Content) for request in requests]
                conversation, response = await turn(conversation, Message("user", answers))
            return response.text

        return talk

    async def ask(self) -> list[Any]:
        """The open requests, after a first run."""
        result = await self.workflow.run(self.input)
        return list(result.get_request_info_events())

    async def approve_all(self, requests: list[Any]) -> list[str]:
        """Approve these requests and those that come of it, and return what is said then."""
        said: list[str] = []
        while requests:
            result = await self.workflow.run(responses={one: approval(one) for one in requests})
            requests = result.get_request_info_events()
            said += [text for one in result.get_outputs() if (text := one if isinstance(one, str) else one.text)]
        return said


class Sibling(Executor):
    """Asks a person in the same superstep as the agent; fails when it is told to."""

    def __init__(self, desk: Desk) -> None:
        super().__init__("sibling")
        self.desk = desk

    @handler
    async def on_message(self, message: object, ctx: WorkflowContext) -> None:
        if self.desk.sibling_fails:
            raise ConnectionError
        await ctx.request_info("And you?", str)

    @response_handler
    async def on_answer(self, question: str, answer: str, ctx: WorkflowContext) -> None:
        if self.desk.sibling_fails:
            raise ConnectionError


def approval(request: Any) -> Any:
    return "fine" if isinstance(request.data, str) else request.data.to_function_approval_response(True)


@pytest.fixture(params=KINDS)
def desk(request):
    return Desk(request.param)


async def test_a_run_that_is_cancelled_at_an_answer_takes_it_again(desk):
    requests = await desk.ask()
    desk.client.is_slow = True
    if desk.kind == "function":
        requests = (await desk.workflow.run(responses={requests[0]: approval(requests[0])})).get_request_info_events()
    task = asyncio.ensure_future(desk.workflow.run(responses={one: approval(one) for one in requests}))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    desk.client.is_slow = False
    assert await desk.approve_all(requests) == ["all sent"]
    assert sorted(set(desk.sent)) == ["1-Ada", "1-Bob"]


@pytest.mark.parametrize("n_events", range(1, 8))
@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_a_reader_that_leaves_before_the_end_may_ask_again(desk, n_events):
    stream: AsyncIterator[Any] = desk.workflow.run(desk.input, stream=True)
    async for _ in stream:
        n_events -= 1
        if not n_events:
            break
    await stream.aclose()  # type: ignore[attr-defined]
    requests = await desk.ask()
    if (
        desk.kind == "in turns"
    ):  # where a turn that waits takes in what comes: the run may have been ahead of its reader
        requests = list(desk.workflow.run_state.requests.values())
    assert await desk.approve_all(requests) == ["all sent"]
    assert len(desk.sent) == len(set(desk.sent))


async def test_a_model_that_fails_after_its_tools_ran_does_not_run_them_again(desk):
    desk.client.failures = [ConnectionError("the model is away")]
    requests = await desk.ask()
    with raises(ConnectionError, "model"):
        await desk.approve_all(requests)
    still_open = list(desk.workflow.run_state.requests.values())
    assert await desk.approve_all(still_open) == ["all sent"]
    times = 2 if desk.kind == "function" else 1  # where the step that failed has kept nothing
    assert sorted(desk.sent) == sorted(["1-Ada", "1-Bob"] * times)


async def test_a_second_answer_finds_nothing_to_answer(desk):
    requests = await desk.ask()
    assert await desk.approve_all(requests) == ["all sent"]
    with raises((RuntimeError, ValueError), "open"):
        await desk.workflow.run(responses={requests[0]: approval(requests[0])})
    assert await desk.approve_all(await desk.ask()) == ["all sent"]


@pytest.mark.parametrize(
    "wrong",
    [
        pytest.param(lambda request: {"nobody": approval(request)}, id="unknown id"),
        pytest.param(lambda request: {request: 5}, id="wrong type"),
    ],
)
async def test_a_wrong_answer_is_refused_and_the_request_stays_open(desk, wrong):
    requests = await desk.ask()
    with pytest.raises(ValueError, match=requests[0].request_id):
        await desk.workflow.run(responses=wrong(requests[0]))
    assert await desk.approve_all(requests) == ["all sent"]
    assert desk.sent == ["1-Ada", "1-Bob"]


async def test_an_answer_to_another_question_is_refused_and_the_request_stays_open(desk):
    requests = await desk.ask()
    for wrong in (Content.from_text("yes"), approval(requests[-1]) if len(requests) > 1 else Content.from_text("no")):
        with raises(ValueError, "request.data.to_function_approval_response"):
            await desk.workflow.run(responses={requests[0]: wrong})
    assert await desk.approve_all(requests) == ["all sent"]


# --------------------------------------------------------------------------------------------------- siblings that fail


@pytest.mark.parametrize("kind", GRAPHS)
async def test_requests_of_a_superstep_that_failed_are_asked_again_and_answered(kind):
    desk = Desk(kind, sibling=True)
    desk.sibling_fails = True
    with pytest.raises(ConnectionError):
        await desk.workflow.run("go")
    desk.sibling_fails = False
    requests = (await desk.workflow.run("go")).get_request_info_events()
    assert await desk.approve_all(requests) == ["all sent"]


@pytest.mark.parametrize("together", [True, False])
@pytest.mark.parametrize("kind", GRAPHS)
async def test_an_answer_counts_again_where_another_node_failed_in_its_superstep(kind, together):
    desk = Desk(kind, sibling=True)
    requests = (await desk.workflow.run("go")).get_request_info_events()
    requests.sort(key=lambda request: isinstance(request.data, str))  # the one of the sibling last
    if not together:
        await desk.workflow.run(responses={requests[0]: approval(requests[0])})
        requests = requests[1:]
    desk.sibling_fails = True
    with pytest.raises(ConnectionError):
        await desk.approve_all(requests)
    desk.sibling_fails = False
    said = [text for one in requests for text in await desk.approve_all([one])]
    if kind != "nested":  # which may have come to its end, and be put back
        assert sorted(desk.sent) == ["1-Ada", "1-Bob"]
    assert said == ["all sent"]
    assert (await desk.workflow.run("go")).get_request_info_events()
