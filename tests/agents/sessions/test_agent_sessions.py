"""Sessions and histories under real agents."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import (
    Agent,
    AgentSession,
    Call,
    ChatResponse,
    Content,
    ContextProvider,
    FileHistoryProvider,
    FunctionInvocationContext,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
    MiddlewareTermination,
    ScriptedChatClient,
    SessionContext,
    chat_middleware,
    function_middleware,
    tool,
)
from agentbench.exceptions import ChatClientInvalidResponseException
from tests.parts.errors import raises


def told(messages: Sequence[Message]) -> list[str]:
    """Messages in short: `user: hi`, `assistant: call c1`, `tool: result c1`."""
    return [f"{each.role}: {' '.join(map(short, each.contents))}" for each in messages]


def short(content: Content) -> str:
    if content.type == "text":
        return str(content.text)
    if content.type == "function_call":
        return f"call {content.name}"
    if content.type == "function_result":
        return f"result {content.result}"
    return content.type.replace("function_approval_", "")


def stored(session: AgentSession, source_id: str = "in_memory") -> list[str]:
    return told(session.state.get(source_id, {}).get("messages", []))


def seen_by(client: ScriptedChatClient) -> list[list[str]]:
    return [told(call.messages) for call in client.calls]


@tool
def double(x: int) -> int:
    """Double a number."""
    return 2 * x


class Note(ContextProvider):
    async def before_run(self, *, context: SessionContext, **kwargs: Any) -> None:
        context.extend_messages(self, [Message("system", ["note"])])


async def run(agent: Agent, question: Any, session: AgentSession, *, stream: bool = False) -> Any:
    if stream:
        return await agent.run(question, session=session, stream=True).get_final_response()
    return await agent.run(question, session=session)


# ---- concurrent runs ------------------------------------------------------------------------------------------------


class Slow(HistoryProvider):
    """A history that lets others in between reading and writing, as a database does."""

    def __init__(self, pauses: Sequence[int]) -> None:
        super().__init__("slow")
        self.pauses = [*pauses]
        self.kept: list[Message] = []

    async def pause(self) -> None:
        for _ in range(self.pauses.pop() if self.pauses else 0):
            await asyncio.sleep(0)

    async def get_messages(self, session_id: str | None, *, state: Any = None, **kwargs: Any) -> list[Message]:
        await self.pause()
        return list(self.kept)

    async def save_messages(
        self, session_id: str | None, messages: Sequence[Message], *, state: Any = None, **kwargs: Any
    ) -> None:
        before = list(self.kept)
        await self.pause()
        self.kept = [*before, *messages]


delays = st.lists(st.integers(0, 5), max_size=12)


@given(st.lists(st.tuples(st.integers(0, 4), st.integers(0, 6), st.booleans()), min_size=2, max_size=5), delays)
def test_runs_at_the_same_time_neither_lose_nor_mix_turns(
    plans: list[tuple[int, int, bool]], pauses: list[int]
) -> None:
    async def play() -> None:
        session, slow, memory = AgentSession(), Slow(pauses), InMemoryHistoryProvider()
        plan_of = {f"q{number}": plan for number, plan in enumerate(plans)}

        async def answer(messages: list[Message], options: Any) -> str:
            for _ in range(plan_of[messages[-1].text][1]):
                await asyncio.sleep(0)
            return f"a{messages[-1].text[1:]}"

        client = ScriptedChatClient([answer], on_exhausted="repeat_last")
        agent = Agent(client, context_providers=[slow, memory])

        async def one(question: str) -> None:
            wait, _, stream = plan_of[question]
            for _ in range(wait):
                await asyncio.sleep(0)
            assert (await run(agent, question, session, stream=stream)).text == f"a{question[1:]}"

        await asyncio.gather(*map(one, plan_of))
        for kept in (told(slow.kept), stored(session)):
            assert len(kept) == 2 * len(plans)
            turns = list(zip(kept[::2], kept[1::2], strict=True))
            assert sorted(turns) == [(f"user: q{number}", f"assistant: a{number}") for number in range(len(plans))]
        for call in seen_by(client):
            texts = [text.split()[-1] for text in call]
            # Whole turns of before, each seen twice since two histories are loaded, and one's own question.
            assert len(texts) % 4 == 1
            half = len(texts) // 2
            assert all(
                q[1:] == a[1:]
                for part in (texts[:half], texts[half:-1])
                for q, a in zip(part[::2], part[1::2], strict=True)
            )

    asyncio.run(play())


async def test_a_provider_and_a_tool_may_run_an_agent_on_the_same_session() -> None:
    session = AgentSession()
    inner = Agent(ScriptedChatClient(["summary"], on_exhausted="repeat_last"), name="inner")

    class Summary(ContextProvider):
        async def before_run(self, *, context: SessionContext, session: AgentSession, **kwargs: Any) -> None:
            answers = await asyncio.gather(*[inner.run(f"sum{number}", session=session) for number in range(2)])
            context.extend_instructions(self, [answer.text for answer in answers])

        async def after_run(self, *, session: AgentSession, **kwargs: Any) -> None:
            await inner.run("after", session=session)

    @tool
    async def ask(ctx: FunctionInvocationContext) -> str:
        """Ask the other agent."""
        return (await inner.run("from a tool", session=ctx.session)).text

    client = ScriptedChatClient([Call("ask", {}), "done"])
    agent = Agent(client, context_providers=[InMemoryHistoryProvider(), Summary("summary")], tools=[ask])
    response = await asyncio.wait_for(agent.run("q", session=session), 10)
    assert response.text.endswith("done")
    kept = stored(session)
    for question in ("sum0", "sum1", "from a tool", "after"):
        index = kept.index(f"user: {question}")
        assert kept[index + 1] == "assistant: summary"
    assert kept[-4:] == ["user: q", "assistant: call ask", "tool: result summary", "assistant: done"]


# ---- history around each call of the model ----------------------------------------


def by_call(client: Any, *providers: Any, **more: Any) -> Agent:
    return Agent(client, context_providers=providers, require_per_service_call_history_persistence=True, **more)


@pytest.mark.parametrize("stream", [False, True])
async def test_a_run_with_one_call_of_a_tool_stores_four_messages_as_they_come(stream: bool) -> None:
    session = AgentSession()
    at_tool: list[list[str]] = []

    @tool
    def look(x: int) -> int:
        """Look at the session."""
        at_tool.append(stored(session))
        return 2 * x

    client = ScriptedChatClient([Call("look", {"x": 4}), "eight", "bye"])
    agent = by_call(client, InMemoryHistoryProvider(), Note("n"), tools=[look])
    response = await run(agent, "4?", session, stream=stream)
    assert (response.text, response.response_id) == ("eight", None)
    assert at_tool == [["user: 4?", "assistant: call look"]]
    assert stored(session) == ["user: 4?", "assistant: call look", "tool: result 8", "assistant: eight"]
    assert session.service_session_id is None
    await run(agent, "thanks", session, stream=stream)
    assert seen_by(client) == [
        ["system: note", "user: 4?"],
        ["system: note", "user: 4?", "assistant: call look", "tool: result 8"],
        ["system: note", "user: 4?", "assistant: call look", "tool: result 8", "assistant: eight", "user: thanks"],
    ]
    assert all("conversation_id" not in (call.options or {}) for call in client.calls)


async def test_several_histories_are_loaded_and_saved_by_their_flags(tmp_path: Path) -> None:
    audit = FileHistoryProvider(tmp_path, load_messages=False, store_inputs=False)
    client, session = ScriptedChatClient([Call("double", {"x": 1}), "two"]), AgentSession(session_id="s")
    await by_call(client, InMemoryHistoryProvider(), audit, tools=[double]).run("1?", session=session)
    assert told(await audit.get_messages("s")) == ["assistant: call double", "assistant: two"]
    assert len(stored(session)) == 4


@pytest.mark.parametrize("stream", [False, True])
async def test_a_crash_loses_one_call(stream: bool) -> None:
    client = ScriptedChatClient([Call("double", {"x": 1}), ZeroDivisionError(), "two"])
    agent, session = by_call(client, InMemoryHistoryProvider(), tools=[double]), AgentSession()
    with pytest.raises(ZeroDivisionError):
        await run(agent, "1?", session, stream=stream)
    assert stored(session) == ["user: 1?", "assistant: call double"]
    await run(agent, "go on", session, stream=stream)
    # Services refuse calls without results.
    assert seen_by(client)[-1] == [
        "user: 1?",
        "assistant: call double",
        "tool: result Error: Tool call was not answered.",
        "user: go on",
    ]
    assert stored(session)[2:] == [
        "tool: result Error: Tool call was not answered.",
        "user: go on",
        "assistant: two",
    ]


@pytest.mark.parametrize("stream", [False, True])
async def test_an_id_that_the_service_gives_all_the_same_is_an_error(stream: bool) -> None:
    client = ScriptedChatClient([ChatResponse(messages=[Message("assistant", ["a"])], conversation_id="svc")])
    session = AgentSession()
    with raises(ChatClientInvalidResponseException, "svc"):
        await run(by_call(client, InMemoryHistoryProvider()), "q", session, stream=stream)
    assert session.service_session_id is None


async def test_a_result_that_ends_the_run_is_stored() -> None:
    @function_middleware
    async def stop(context: FunctionInvocationContext, call_next: Any) -> None:
        await call_next()
        raise MiddlewareTermination

    client = ScriptedChatClient([Call("double", {"x": 3}), "six"])
    agent, session = by_call(client, InMemoryHistoryProvider(), tools=[double], middleware=[stop]), AgentSession()
    await agent.run("3?", session=session)
    assert stored(session) == ["user: 3?", "assistant: call double", "tool: result 6"]
    await agent.run("so?", session=session)
    assert seen_by(client)[-1] == ["user: 3?", "assistant: call double", "tool: result 6", "user: so?"]


async def test_a_result_that_a_middleware_made_up_is_stored_around_runs_only() -> None:
    @function_middleware
    async def stop(context: FunctionInvocationContext, call_next: Any) -> None:
        if context.arguments["x"] == 3:
            raise MiddlewareTermination(result="made up")
        await call_next()

    for around, results in (("calls", "result 2"), ("run", "result made up result 2")):
        client = ScriptedChatClient([[Call("double", {"x": 3}), Call("double", {"x": 1})]])
        agent = Agent(
            client,
            tools=[double],
            middleware=[stop],
            context_providers=[InMemoryHistoryProvider()],
            require_per_service_call_history_persistence=around == "calls",
        )
        session = AgentSession()
        response = await agent.run("3 and 1?", session=session)

        assert [content.result for content in response.messages[-1].contents] == ["made up", "2"]
        assert stored(session)[2:] == [f"tool: {results}"]


@chat_middleware
async def try_twice(context: Any, call_next: Any) -> None:
    try:
        await call_next()
    except ZeroDivisionError:
        await call_next()


@pytest.mark.parametrize("around", ["agent", "client"])
async def test_chat_middleware_that_tries_again_stores_the_turn_once(around: str) -> None:
    middleware: dict[str, Any] = {around: [try_twice]}
    client = ScriptedChatClient(["a", ZeroDivisionError(), "b"], middleware=middleware.get("client"))
    agent = by_call(client, InMemoryHistoryProvider(), Note("n"), middleware=middleware.get("agent"))
    session = AgentSession()
    for question in ("q", "again"):
        await agent.run(question, session=session)
    assert stored(session) == ["user: q", "assistant: a", "user: again", "assistant: b"]


async def test_runs_at_the_same_time_may_store_their_histories_by_call() -> None:
    client, session = ScriptedChatClient(["a"], on_exhausted="repeat_last"), AgentSession()
    agent = by_call(client, InMemoryHistoryProvider())
    await asyncio.gather(*[agent.run(f"q{number}", session=session) for number in range(8)])
    kept = stored(session)
    assert sorted(kept[::2]) == [f"user: q{number}" for number in range(8)]
    assert kept[1::2] == ["assistant: a"] * 8
