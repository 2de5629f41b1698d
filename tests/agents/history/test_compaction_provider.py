"""Compaction in the conversations of an agent."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentSession,
    Call,
    CharacterEstimatorTokenizer,
    CompactionProvider,
    ContextWindowCompactionStrategy,
    InMemoryHistoryProvider,
    Message,
    ScriptedChatClient,
    SelectiveToolCallCompactionStrategy,
    SlidingWindowStrategy,
    SummarizationStrategy,
    TokenBudgetComposedStrategy,
    ToolResultCompactionStrategy,
    TruncationStrategy,
    included_messages,
    included_token_count,
    tool,
)
from tests.agents.agent_runs import BOTH, Notes, answer
from tests.parts.nightly import NIGHTLY, nightly


@tool
def weather(day: int) -> str:
    return f"fog on day {day} " + "." * 200


def texts(messages: Any) -> list[str]:
    return [message.text or message.contents[0].type for message in messages]


def sent(client: ScriptedChatClient) -> list[str]:
    return texts(client.calls[-1].messages)


async def turns(agent: Agent, session: AgentSession, count: int, *, stream: bool = False) -> None:
    for number in range(count):
        await answer(agent, f"q{number}", session=session, stream=stream)


@BOTH
async def test_the_model_gets_the_window_and_the_session_all(stream: bool):
    client = ScriptedChatClient("a", on_exhausted="repeat_last")
    agent = Agent(client, context_providers=[
        InMemoryHistoryProvider(), CompactionProvider(before_strategy=SlidingWindowStrategy(keep_last_groups=3))
    ])  # fmt: skip
    session = agent.create_session()
    await turns(agent, session, 4, stream=stream)
    assert sent(client) == ["q2", "a", "q3"]
    stored = session.state["in_memory"]["messages"]
    assert texts(stored) == ["q0", "a", "q1", "a", "q2", "a", "q3", "a"]
    assert included_messages(stored) == stored


async def test_a_summary_reaches_the_model_and_is_made_once():
    summaries = ScriptedChatClient(["first summary", "second summary"])
    client = ScriptedChatClient("a", on_exhausted="repeat_last")
    strategy = SummarizationStrategy(client=summaries, target_count=3, threshold=4)
    agent = Agent(client, context_providers=[InMemoryHistoryProvider(), CompactionProvider(before_strategy=strategy)])
    session = agent.create_session()
    await turns(agent, session, 5)
    assert sent(client) == ["first summary", "q3", "a", "q4"]
    await turns(agent, session, 1)
    assert len(summaries.calls) == 1
    summary = client.calls[-1].messages[0]
    assert summary.role == "assistant"
    assert summary.additional_properties["_attribution"]["source_id"] == "compaction"
    await turns(agent, session, 1)
    assert sent(client)[0] == "second summary"
    assert "first summary" in summaries.calls[-1].messages[-1].text
    assert len(summaries.calls) == 2


async def test_sources_keep_their_messages():
    client = ScriptedChatClient("a", on_exhausted="repeat_last")
    notes = Notes("notes", [], messages=["remember the milk"])
    agent = Agent(client, context_providers=[
        InMemoryHistoryProvider(), notes, CompactionProvider(before_strategy=SlidingWindowStrategy(keep_last_groups=4))
    ])  # fmt: skip
    session = agent.create_session()
    await turns(agent, session, 3)
    assert sent(client) == ["q1", "a", "remember the milk", "q2"]
    sources = [one.additional_properties["_attribution"]["source_id"] for one in client.calls[-1].messages[:3]]
    assert sources == ["in_memory", "in_memory", "notes"]


@BOTH
@pytest.mark.parametrize("per_call", [False, True])
async def test_the_list_that_grows_in_a_run_is_shortened_too(stream: bool, per_call: bool):
    client = ScriptedChatClient([*(Call("weather", {"day": day}) for day in range(3)), "done"])
    strategy = ToolResultCompactionStrategy(max_chars_per_result=8)
    agent = Agent(
        client,
        tools=weather,
        context_providers=[InMemoryHistoryProvider(), CompactionProvider(before_strategy=strategy)],
        require_per_service_call_history_persistence=per_call,
    )
    session = agent.create_session()
    await answer(agent, "q", session=session, stream=stream)
    short = [f"[Tool results: weather: fog on d… ({len('ay 0 ') + 200} more characters)]"] * 2
    assert sent(client) == ["q", *short, "function_call", "function_result"]
    stored = session.state["in_memory"]["messages"]
    assert texts(stored) == ["q", *["function_call", "function_result"] * 3, "done"]


async def test_after_a_run_what_is_stored_is_marked_and_a_history_may_leave_it_out():
    client = ScriptedChatClient("a", on_exhausted="repeat_last")
    history = InMemoryHistoryProvider(skip_excluded=True)
    provider = CompactionProvider(after_strategy=SlidingWindowStrategy(keep_last_groups=2))
    agent = Agent(client, context_providers=[history, provider])
    session = agent.create_session()
    await turns(agent, session, 2)
    before = list(session.state["in_memory"]["messages"])
    await turns(agent, session, 1)
    stored = session.state["in_memory"]["messages"]
    assert texts(stored) == ["q0", "a", "q1", "a", "q0", "a"]
    assert texts(included_messages(stored)) == ["q1", "a", "q0", "a"]
    assert "_excluded" not in before[0].additional_properties
    assert stored[2] is before[2]
    await turns(agent, session, 1)
    assert sent(client) == ["q1", "a", "q0", "a", "q0"]


async def test_marks_and_summaries_survive_a_saved_session():
    client = ScriptedChatClient([Call("weather", {"day": 1}), "a", "b", "c"])
    agent = Agent(client, tools=weather, context_providers=[
        InMemoryHistoryProvider(skip_excluded=True),
        CompactionProvider(after_strategy=ToolResultCompactionStrategy(keep_last_tool_call_groups=0)),
    ])  # fmt: skip
    session = agent.create_session()
    await turns(agent, session, 2)
    session = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    call, summary = session.state["in_memory"]["messages"][2], session.state["in_memory"]["messages"][1]
    assert call.additional_properties["_group"]["_summarized_by_summary_id"] == summary.message_id
    await turns(agent, session, 1)
    assert sent(client)[:3] == ["q0", summary.text, "a"]
    assert summary.text.startswith("[Tool results: weather: fog on day 1")


async def test_a_call_that_waits_for_a_person_is_never_left_out():
    asked = tool(lambda: "done", name="erase", description="Erase.", approval_mode="always_require")
    client = ScriptedChatClient([Call("erase", {}), "erased"])
    agent = Agent(client, tools=asked, context_providers=[
        InMemoryHistoryProvider(),
        CompactionProvider(before_strategy=TruncationStrategy(max_n=1, compact_to=1),
                           after_strategy=SlidingWindowStrategy(keep_last_groups=1)),
    ])  # fmt: skip
    session = agent.create_session()
    response = await agent.run("Erase it.", session=session)
    [request] = response.user_input_requests
    session = AgentSession.from_dict(json.loads(json.dumps(session.to_dict())))
    response = await agent.run(request.to_function_approval_response(True), session=session)
    assert response.text == "erased"
    assert sent(client) == ["Erase it.", "function_call", "function_result"]


async def test_without_strategies_nothing_is_copied():
    client = ScriptedChatClient("a", on_exhausted="repeat_last")
    agent = Agent(client, context_providers=[InMemoryHistoryProvider(), CompactionProvider()])
    session = agent.create_session()
    await turns(agent, session, 2)
    assert client.calls[-1].messages[0].additional_properties.keys() <= {"_attribution"}


async def test_the_conversation_of_a_service_is_left_to_it():
    client = ScriptedChatClient([{"text": "a", "conversation_id": "there"}, "b"])
    agent = Agent(
        client, context_providers=[CompactionProvider(before_strategy=SlidingWindowStrategy(keep_last_groups=1))]
    )
    session = agent.get_session("there")
    await agent.run(["q0", "q1", "q2"], session=session)
    assert sent(client) == ["q0", "q1", "q2"]


async def test_messages_that_were_edited_meanwhile_are_read_anew():
    client = ScriptedChatClient("a", on_exhausted="repeat_last")
    provider = CompactionProvider(before_strategy=SlidingWindowStrategy(keep_last_groups=10))
    agent = Agent(client, context_providers=[InMemoryHistoryProvider(), provider])
    session = agent.create_session()
    await turns(agent, session, 2)
    session.state["in_memory"]["messages"] = [Message("user", "another story")]
    await turns(agent, session, 1)
    assert sent(client) == ["another story", "q0"]


class Counting(CharacterEstimatorTokenizer):
    counted = 0

    def count_tokens(self, text: str) -> int:
        self.counted += 1
        return super().count_tokens(text)


TURNS = 1_000 if NIGHTLY else 300


@pytest.mark.parametrize(
    "name", ["truncation", "window", nightly("tool calls"), nightly("tool results"), "summary", "budget", "context"]
)
async def test_hundreds_of_turns_stay_inside_their_budget(name: str):
    tokenizer = Counting()
    budget = 1_000

    def within(*strategies: Any) -> Any:
        return TokenBudgetComposedStrategy(token_budget=budget, tokenizer=tokenizer, strategies=strategies)

    summaries = ScriptedChatClient("They talked.", on_exhausted="repeat_last")
    strategy = {
        "truncation": lambda: TruncationStrategy(max_n=budget, compact_to=budget // 2, tokenizer=tokenizer),
        "window": lambda: within(SlidingWindowStrategy(keep_last_groups=12)),
        "tool calls": lambda: within(SelectiveToolCallCompactionStrategy()),
        "tool results": lambda: within(ToolResultCompactionStrategy(max_chars_per_result=20)),
        "summary": lambda: within(SummarizationStrategy(client=summaries, target_count=6, threshold=4)),
        "budget": lambda: within(),
        "context": lambda: ContextWindowCompactionStrategy(
            max_context_window_tokens=budget, max_output_tokens=0, tokenizer=tokenizer
        ),
    }[name]()
    largest = 0

    def reply(messages: Any, options: Any) -> Any:
        nonlocal largest
        largest = max(largest, included_token_count(messages))
        assert any(message.text == question for message in messages)
        return Call("weather", {"day": 1}) if question.endswith("0") and messages[-1].role == "user" else "answer"

    agent = Agent(ScriptedChatClient(reply, on_exhausted="repeat_last"), tools=weather, context_providers=[
        InMemoryHistoryProvider(), CompactionProvider(before_strategy=strategy)
    ])  # fmt: skip
    session = agent.create_session()
    for number in range(TURNS):
        question = f"question {number}"
        assert (await agent.run(question, session=session)).text == "answer"
    assert 0 < largest <= budget
    # Each message is counted when it comes and once more as the next run finds it in the history; never all of them.
    assert tokenizer.counted < 6 * TURNS
    assert len(session.state["in_memory"]["messages"]) == 2 * TURNS + 2 * TURNS // 10


async def test_a_context_of_few_parts_is_enough():
    class Context:
        def __init__(self) -> None:
            self.context_messages = {"h": [Message("user", str(number)) for number in range(5)]}

        def get_messages(self) -> list[Message]:
            return [message for messages in self.context_messages.values() for message in messages]

    context = Context()
    provider = CompactionProvider(before_strategy=SlidingWindowStrategy(keep_last_groups=2))
    await provider.before_run(context=context)
    assert texts(context.get_messages()) == ["3", "4"]
    await provider.after_run(context=context)
    await CompactionProvider(after_strategy=SlidingWindowStrategy(keep_last_groups=2)).after_run(context=context)
