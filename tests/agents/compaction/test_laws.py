"""Laws of all strategies, over generated conversations."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import (
    CharacterEstimatorTokenizer,
    Content,
    ContextWindowCompactionStrategy,
    Message,
    ScriptedChatClient,
    SelectiveToolCallCompactionStrategy,
    SlidingWindowStrategy,
    SummarizationStrategy,
    TokenBudgetComposedStrategy,
    ToolResultCompactionStrategy,
    TruncationStrategy,
    apply_compaction,
    included_messages,
    included_token_count,
)

TOKENIZER = CharacterEstimatorTokenizer()

STRATEGIES: dict[str, Callable[[], Any]] = {
    "truncation": lambda: TruncationStrategy(max_n=6, compact_to=3),
    "truncation by tokens": lambda: TruncationStrategy(max_n=200, compact_to=100, tokenizer=TOKENIZER),
    "window": lambda: SlidingWindowStrategy(keep_last_groups=2),
    "tool calls": lambda: SelectiveToolCallCompactionStrategy(keep_last_tool_call_groups=0),
    "tool results": lambda: ToolResultCompactionStrategy(keep_last_tool_call_groups=0),
    "summary": lambda: SummarizationStrategy(
        client=ScriptedChatClient("summary", on_exhausted="repeat_last"), target_count=2
    ),
    "budget": lambda: TokenBudgetComposedStrategy(
        token_budget=150, tokenizer=TOKENIZER, strategies=[ToolResultCompactionStrategy()]
    ),
    "context window": lambda: ContextWindowCompactionStrategy(max_context_window_tokens=300, max_output_tokens=50),
}


@st.composite
def conversations(draw: st.DrawFn) -> list[Message]:
    """Draw a conversation: calls in parallel, reasoning apart, results late or in one message, an open end."""
    messages = [Message("system", "s")] if draw(st.booleans()) else []
    number = 0
    for _ in range(draw(st.integers(0, 6))):
        messages.append(Message("user", draw(st.sampled_from(["q", "question " * 20]))))
        for _ in range(draw(st.integers(0, 2))):
            ids = [f"c{number + one}" for one in range(draw(st.integers(1, 3)))]
            number += len(ids)
            if draw(st.booleans()):
                messages.append(Message("assistant", [Content.from_text_reasoning(text="hm")]))
            messages.append(Message("assistant", [Content.from_function_call(one, "f", arguments={}) for one in ids]))
            results = [Content.from_function_result(one, result="r" * draw(st.sampled_from([1, 300]))) for one in ids]
            together = draw(st.booleans())
            messages += [Message("tool", results)] if together else [Message("tool", [one]) for one in results]
        if draw(st.booleans()):
            messages.append(Message("assistant", "a"))
    return messages


def of_type(messages: list[Message], kind: str) -> list[str]:
    return [str(one.call_id) for message in messages for one in message.contents if one.type == kind]


@pytest.mark.parametrize("name", STRATEGIES)
@given(messages=conversations())
def test_calls_and_results_stay_together_and_an_open_turn_stays(name: str, messages: list[Message]):
    contents = [list(message.contents) for message in messages]
    originals = list(messages)
    sent = asyncio.run(apply_compaction(messages, strategy=STRATEGIES[name]()))
    assert sorted(of_type(sent, "function_call")) == sorted(of_type(sent, "function_result"))
    assert bool(sent) == bool(originals)
    if originals and originals[-1].role in ("user", "tool"):
        question = [message for message in originals if message.role == "user"][-1]
        assert any(message is question for message in sent)
        assert any(message is originals[-1] for message in sent)
    assert [list(message.contents) for message in originals] == contents
    kept = {id(message) for message in messages}
    assert all(id(message) in kept for message in originals)


@pytest.mark.parametrize("name", STRATEGIES)
@given(messages=conversations())
def test_a_strategy_that_is_applied_twice_finds_its_work_done(name: str, messages: list[Message]):
    strategy = STRATEGIES[name]()
    asyncio.run(strategy(messages))
    after = included_messages(messages)
    again = [Message.from_dict(message.to_dict()) for message in messages]
    asyncio.run(strategy(again))
    assert [message.to_dict() for message in included_messages(again)] == [message.to_dict() for message in after]


@given(messages=conversations())
def test_what_is_left_of_a_budget_fits_into_it(messages: list[Message]):
    asyncio.run(STRATEGIES["budget"]()(messages))
    assert included_token_count(messages) <= 150
