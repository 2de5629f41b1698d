"""Messages that reach an agent while it runs: each is delivered and stored once."""

from __future__ import annotations

import asyncio
import copy
import json
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentContext,
    AgentLoopMiddleware,
    AgentResponse,
    AgentSession,
    Call,
    ChatContext,
    ChatResponse,
    CompactionProvider,
    Content,
    FileHistoryProvider,
    FunctionInvocationContext,
    InMemoryHistoryProvider,
    Message,
    MessageInjectionMiddleware,
    ScriptedChatClient,
    SlidingWindowStrategy,
    SummarizationStrategy,
    TruncationStrategy,
    agent_middleware,
    chat_middleware,
    enqueue_messages,
    tool,
)
from tests.agents.agent_runs import BOTH, answer
from tests.agents.fake_clients import Model
from tests.parts.errors import raises

PER_CALL = pytest.mark.parametrize("per_call", [False, True], ids=["around the run", "around each call"])


def told(messages: Sequence[Message]) -> list[str]:
    return [f"{message.role}: {message.text or message.contents[0].type}" for message in messages]


def stored(session: AgentSession) -> list[str]:
    return told(session.state.get("in_memory", {}).get("messages", []))


def queued(session: AgentSession) -> list[str]:
    return told(session.state.get("message_injection", {}).get("messages", []))


@tool
def work(context: FunctionInvocationContext) -> str:
    """Does the work, while somebody thinks of something else."""
    enqueue_messages(context.session, "And wash up.")
    return "done"


def injected(*answers: Any, per_call: bool = False, **more: Any) -> tuple[Agent, ScriptedChatClient, AgentSession]:
    client = ScriptedChatClient([*answers])
    agent = Agent(
        client,
        name="cook",
        tools=[work],
        middleware=[MessageInjectionMiddleware(), *more.pop("middleware", [])],
        context_providers=[InMemoryHistoryProvider()],
        require_per_service_call_history_persistence=per_call,
        **more,
    )
    return agent, client, AgentSession()


# ------------------------------------------------------------------------------------------------------------- delivery


@BOTH
@PER_CALL
async def test_the_next_model_call_gets_the_messages_and_the_conversation_keeps_their_places(
    stream: bool, per_call: bool
) -> None:
    agent, client, session = injected(Call("work"), "All done.", "Bye.", per_call=per_call)
    enqueue_messages(session, "With salt.")

    response = await answer(agent, "Cook.", stream=stream, session=session)

    first = ["user: Cook.", "user: With salt."]
    second = [*first, "assistant: function_call", "tool: function_result", "user: And wash up."]
    assert [told(call.messages) for call in client.calls] == [first, second]
    assert told(response.messages) == ["assistant: function_call", "tool: function_result", "assistant: All done."]
    assert stored(session) == [*second, "assistant: All done."]
    assert [each.author_name for each in session.state["in_memory"]["messages"] if each.role == "user"] == [None] * 3
    assert "message_injection" not in session.state
    await agent.run("Bye.", session=session)
    assert told(client.calls[-1].messages) == [*second, "assistant: All done.", "user: Bye."]


async def test_a_message_that_comes_after_the_last_call_waits_for_the_next_run() -> None:
    agent, client, session = injected("one", "two")

    @agent_middleware
    async def late(context: AgentContext, call_next: Any) -> None:
        await call_next()
        enqueue_messages(session, "Late.")

    await agent.run("q", session=session, middleware=[late])
    assert queued(session) == ["user: Late."]
    await agent.run("r", session=session)

    assert told(client.calls[1].messages) == ["user: q", "assistant: one", "user: r", "user: Late."]
    assert not queued(session)


@BOTH
@pytest.mark.parametrize("outermost", ["loop", "injection"])
async def test_each_round_of_a_loop_gets_messages(stream: bool, outermost: str) -> None:
    session = AgentSession()

    def ask(context: AgentContext) -> str:
        enqueue_messages(session, "Really.")
        return "Go on."

    both = [AgentLoopMiddleware(max_iterations=2, message=ask), MessageInjectionMiddleware()]
    agent = Agent(ScriptedChatClient(["a", "b"]), middleware=both if outermost == "loop" else both[::-1])

    response = await answer(agent, "q", stream=stream, session=session)

    assert stored(session) == ["user: q", "assistant: a", "user: Go on.", "user: Really.", "assistant: b"]
    assert told(response.messages) == ["assistant: b"]
    assert not queued(session)


async def test_messages_may_come_from_threads() -> None:
    agent, client, session = injected("ok")
    threads = [threading.Thread(target=enqueue_messages, args=(session, f"{number}")) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    await agent.run("q", session=session)

    assert sorted(told(client.calls[0].messages)[1:]) == sorted(f"user: {number}" for number in range(20))


async def test_a_run_without_a_session_and_an_agent_without_the_middleware_leave_the_queue_alone() -> None:
    agent, client, session = injected("one", "two")
    enqueue_messages(session, "With salt.")

    await agent.run("q")
    await Agent(client).run("q", session=session)

    assert [told(call.messages) for call in client.calls] == [["user: q"], ["user: q"]]
    assert queued(session) == ["user: With salt."]


# ------------------------------------------------------------------------------------------------------------ only once


@BOTH
@PER_CALL
async def test_a_failed_run_leaves_the_messages_for_the_next_one(stream: bool, per_call: bool) -> None:
    agent, client, session = injected(Call("work"), ValueError("busy"), "All done.", per_call=per_call)
    enqueue_messages(session, "With salt.")

    with raises(ValueError, "busy"):
        await answer(agent, "Cook.", stream=stream, session=session)
    await answer(agent, "Cook.", stream=stream, session=session)

    for message in ("user: With salt.", "user: And wash up."):
        assert told(client.calls[-1].messages).count(message) == stored(session).count(message) == 1
    assert not queued(session)


@PER_CALL
async def test_a_stream_that_is_closed_early_loses_no_message(per_call: bool) -> None:
    agent, client, session = injected(Call("work"), "All done.", "Well.", per_call=per_call)
    enqueue_messages(session, "With salt.")

    async with agent.run("Cook.", stream=True, session=session) as stream:
        async for update in stream:
            if update.text:
                break
    await agent.run("Continue.", session=session)

    for message in ("user: With salt.", "user: And wash up."):
        assert told(client.calls[-1].messages).count(message) == stored(session).count(message) == 1
    assert not queued(session)


async def test_a_repeated_model_call_gets_the_messages_again_and_they_are_stored_once() -> None:
    @chat_middleware
    async def twice(context: ChatContext, call_next: Any) -> None:
        await call_next()
        await call_next()

    session = AgentSession()
    client = ScriptedChatClient(["lost", "kept"], middleware=[twice])
    agent = Agent(client, middleware=[MessageInjectionMiddleware()])
    enqueue_messages(session, "With salt.")

    await agent.run("q", session=session)

    assert [told(call.messages) for call in client.calls] == [["user: q", "user: With salt."]] * 2
    assert stored(session) == ["user: q", "user: With salt.", "assistant: kept"]


@BOTH
async def test_runs_of_one_session_at_the_same_time_do_not_deliver_a_message_twice(stream: bool) -> None:
    both_run = asyncio.Barrier(2)

    async def reply(*_: Any) -> str:
        await both_run.wait()
        return "ok"

    agent, client, session = injected(reply, reply)
    enqueue_messages(session, "With salt.")

    await asyncio.gather(*(answer(agent, "q", stream=stream, session=session) for _ in range(2)))

    assert [message for call in client.calls for message in told(call.messages)].count("user: With salt.") == 1
    assert stored(session).count("user: With salt.") == 1
    assert not queued(session)


async def test_a_message_with_a_fallback_instead_of_an_answer_stays_in_the_queue() -> None:
    @agent_middleware
    async def fall_back(context: AgentContext, call_next: Any) -> None:
        try:
            await call_next()
        except ValueError:
            context.result = AgentResponse(text="Sorry.")

    agent, client, session = injected(ValueError("busy"), "ok", middleware=[fall_back])
    enqueue_messages(session, "With salt.")

    await agent.run("q", session=session)
    await agent.run("r", session=session)

    assert told(client.calls[-1].messages) == ["user: r", "user: With salt."]


@pytest.mark.parametrize("strategy", ["window", "truncation", "summary", "own"])
async def test_a_message_that_a_lost_run_stored_is_not_delivered_again_although_compaction_drops_it(
    strategy: str, tmp_path: Path
) -> None:
    async def only_the_input(messages: list[Message]) -> bool:
        for message in messages[:-1]:
            message.additional_properties["_excluded"] = True
        return True

    strategies: dict[str, Any] = {
        "window": SlidingWindowStrategy(keep_last_groups=1),
        "truncation": TruncationStrategy(max_n=1, compact_to=1),
        "summary": SummarizationStrategy(client=ScriptedChatClient(["They cook."] * 2), target_count=1, threshold=0),
        "own": only_the_input,
    }
    client = ScriptedChatClient(["one", "two"])
    history = FileHistoryProvider(tmp_path)
    agent = Agent(
        client,
        middleware=[MessageInjectionMiddleware()],
        context_providers=[history, CompactionProvider(before_strategy=strategies[strategy])],
    )
    session = AgentSession(session_id="s")
    enqueue_messages(session, "With salt.")
    older = json.dumps(session.to_dict())
    await agent.run("Cook.", session=session)

    session = AgentSession.from_dict(json.loads(older))
    await agent.run("And now?", session=session)

    assert told(await history.get_messages("s")) == [
        *("user: Cook.", "user: With salt.", "assistant: one"),
        *("user: And now?", "assistant: two"),
    ]
    assert "With salt." not in [message.text for message in client.calls[1].messages]
    assert not queued(session)


async def test_enqueueing_a_message_again_does_nothing() -> None:
    agent, client, session = injected("one", "two")
    (message,) = enqueue_messages(session, Message("user", ["With salt."], message_id=7))

    assert (message.message_id, enqueue_messages(session, message)) == ("7", [])
    await agent.run("q", session=session)
    enqueue_messages(session, message)  # the conversation has it already
    await agent.run("r", session=session)

    assert told(client.calls[1].messages).count("user: With salt.") == 1
    assert not queued(session)


async def test_a_stored_or_copied_session_has_the_queue_but_no_claims() -> None:
    sessions: list[AgentSession] = []

    @tool
    def save(context: FunctionInvocationContext) -> str:
        stored_session = json.loads(json.dumps(context.session.to_dict()))
        sessions.extend([AgentSession.from_dict(stored_session), copy.deepcopy(context.session)])
        return "saved"

    agent, client, session = injected(Call("save"), *["ok"] * 3)
    enqueue_messages(session, "With salt.")
    await agent.run("q", session=session, tools=[save])

    for one in sessions:
        await agent.run("again", session=one)

    assert [told(call.messages) for call in client.calls[-2:]] == [["user: again", "user: With salt."]] * 2


# -------------------------------------------------------------------------------- conversations stored by the service


class Service(Model):
    """Stores conversations: each answer has an id, which continues the conversation up to there."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(*answers)
        self.conversations: dict[str | None, list[str]] = {None: []}

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        before = self.conversations[options.get("conversation_id")]
        response = self.answers.pop(0)
        if isinstance(response, Exception):
            raise response
        conversation_id = f"resp_{len(self.conversations)}"
        contents = [response] if isinstance(response, (str, Content)) else response
        answered = Message("assistant", contents)
        self.conversations[conversation_id] = [*before, *told(messages), *told([answered])]
        return ChatResponse(messages=[answered], conversation_id=conversation_id)


@BOTH
async def test_a_service_gets_each_message_once_in_its_conversation(stream: bool) -> None:
    service = Service(Content.from_function_call("c1", "work", arguments={}), "All done.", "Bye.")
    agent = Agent(service, tools=[work], middleware=[MessageInjectionMiddleware()])
    session = AgentSession()
    enqueue_messages(session, "With salt.")

    await answer(agent, "Cook.", stream=stream, session=session)
    await answer(agent, "Bye.", stream=stream, session=session)

    conversation = service.conversations[session.service_session_id]
    assert [message for message in conversation if message.startswith("user")] == [
        "user: Cook.",
        "user: With salt.",
        "user: And wash up.",
        "user: Bye.",
    ]
    assert not queued(session)


async def test_a_service_gets_the_messages_of_a_failed_run_in_the_conversation_that_continues() -> None:
    call = Content.from_function_call("c1", "work", arguments={})
    service = Service("Hello.", call, ValueError("busy"), "All done.")
    agent = Agent(service, tools=[work], middleware=[MessageInjectionMiddleware()])
    session = AgentSession()
    await agent.run("Hello.", session=session)
    enqueue_messages(session, "With salt.")

    with raises(ValueError, "busy"):
        await agent.run("Cook.", session=session)
    await agent.run("Cook.", session=session)

    conversation = service.conversations[session.service_session_id]
    assert conversation.count("user: With salt.") == conversation.count("user: And wash up.") == 1
    assert not queued(session)


async def test_a_stored_session_knows_what_the_conversation_of_the_service_contains() -> None:
    saved: list[Any] = []

    @tool
    def save(context: FunctionInvocationContext) -> str:
        saved.append(json.loads(json.dumps(context.session.to_dict())))
        return "saved"

    calls = [Content.from_function_call(f"c{number}", "save", arguments={}) for number in range(2)]
    service = Service(*calls, ValueError("the process ends here"), "All done.", "All done.")
    agent = Agent(service, tools=[save], middleware=[MessageInjectionMiddleware()])
    session = AgentSession()
    enqueue_messages(session, "With salt.")
    with raises(ValueError):
        await agent.run("Cook.", session=session)

    for stored_session in saved:
        restored = AgentSession.from_dict(stored_session)
        await agent.run("Continue.", session=restored)
        assert service.conversations[restored.service_session_id].count("user: With salt.") == 1
        assert not queued(restored)


# ------------------------------------------------------------------------------------------------------------- refusals


paid: list[str] = []


@tool(approval_mode="always_require")
def pay() -> str:
    paid.append("5")
    return "paid"


CALL = Content.from_function_call("c1", "pay", arguments={})
REQUEST = Content.from_function_approval_request("a1", CALL)
APPROVAL = REQUEST.to_function_approval_response(approved=True)
FORBIDDEN = [CALL, Content.from_function_result("c1", result="paid"), REQUEST, APPROVAL]


@pytest.mark.parametrize("content", FORBIDDEN, ids=[content.type for content in FORBIDDEN])
async def test_calls_results_and_approvals_are_refused_and_ignored_in_an_edited_queue(content: Content) -> None:
    paid.clear()
    agent, client, session = injected(Call("pay", call_id="c1"), *["ok"] * 3)
    with raises(ValueError, "approval"):
        enqueue_messages(session, Message("user", ["Please.", content]))

    (request,) = (await agent.run("q", session=session, tools=[pay])).user_input_requests
    own = request.to_function_approval_response(approved=True) if content is APPROVAL else content
    session.state["message_injection"] = {"messages": [Message("user", ["Please.", own], message_id="m1")]}
    await agent.run("Please.", session=session, tools=[pay])

    assert told(client.calls[-1].messages).count("user: Please.") == 1
    assert not paid


def test_a_wrong_session_or_message_is_an_error() -> None:
    with raises(TypeError, "session"):
        enqueue_messages("s1", "With salt.")  # type: ignore[arg-type]
    with raises(TypeError):
        enqueue_messages(AgentSession(), 5)  # type: ignore[arg-type]
