"""What each strategy leaves of a conversation, what of that a model gets, and the laws of all of them."""

from __future__ import annotations

import asyncio
import logging
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
    annotate_message_groups,
    apply_compaction,
    included_messages,
    included_token_count,
)
from tests.parts.errors import raises

TOKENIZER = CharacterEstimatorTokenizer()


def called(number: int, result: Any = "fog") -> list[Message]:
    """Return a call of a tool and its result."""
    call = Content.from_function_call(f"c{number}", "weather", arguments={"day": number})
    return [Message("assistant", [call]), Message("tool", [Content.from_function_result(f"c{number}", result=result)])]


def talk(turns: int, *, system: bool = True) -> list[Message]:
    """Return a conversation of turns with a call of a tool each."""
    messages = [Message("system", "Be brief.")] if system else []
    for number in range(turns):
        messages += [Message("user", f"q{number}"), *called(number), Message("assistant", f"a{number}")]
    return messages


def shown(messages: list[Message]) -> list[str]:
    return [message.text or message.contents[0].type for message in included_messages(messages)]


async def test_truncation_cuts_from_the_oldest_once_the_limit_is_passed():
    strategy = TruncationStrategy(max_n=10, compact_to=5)
    messages = talk(2)
    assert not await strategy(messages)
    messages += talk(1, system=False)
    assert await strategy(messages)
    assert shown(messages) == ["Be brief.", "q0", "function_call", "function_result", "a0"]
    assert {message.additional_properties.get("_exclude_reason") for message in messages} == {None, "truncation"}
    assert not await strategy(messages)


async def test_truncation_without_preserved_system_messages():
    messages = talk(1)
    assert await TruncationStrategy(max_n=1, compact_to=1, preserve_system=False)(messages)
    assert shown(messages) == ["a0"]


async def test_the_window_slides():
    messages = [*talk(1), Message("system", "Now in French."), Message("user", "q1")]
    assert await SlidingWindowStrategy(keep_last_groups=2)(messages)
    assert shown(messages) == ["Be brief.", "a0", "Now in French.", "q1"]
    assert not await SlidingWindowStrategy(keep_last_groups=2)(messages)
    assert await SlidingWindowStrategy(keep_last_groups=1, preserve_system=False)(messages)
    assert shown(messages) == ["q1"]


@pytest.mark.parametrize(("keep", "left"), [(0, 0), (1, 1), (5, 3)])
async def test_older_calls_of_tools_are_left_out(keep: int, left: int):
    messages = talk(3)
    changed = await SelectiveToolCallCompactionStrategy(keep_last_tool_call_groups=keep)(messages)
    assert changed == (left < 3)
    assert shown(messages).count("function_call") == shown(messages).count("function_result") == left


async def test_older_results_become_one_short_message_each():
    messages = [*talk(1), *called(1, "y" * 600), *called(2)]
    assert await ToolResultCompactionStrategy(max_chars_per_result=10)(messages)
    texts = shown(messages)
    assert texts[:4] == ["Be brief.", "q0", "[Tool results: weather: fog]", "a0"]
    assert texts[4] == "[Tool results: weather: yyyyyyyyyy… (590 more characters)]"
    assert texts[5:] == ["function_call", "function_result"]


async def test_a_summary_and_what_it_stands_for_name_each_other():
    messages = talk(1)
    messages[2].message_id = "call"
    annotate_message_groups(messages)
    group = messages[2].additional_properties["_group"]["id"]
    await ToolResultCompactionStrategy(keep_last_tool_call_groups=0)(messages)
    stored = [Message.from_dict(message.to_dict()) for message in messages]
    summary = stored[2]
    assert summary.message_id == f"tool_summary_{group}"
    marks = summary.additional_properties["_group"]
    assert (marks["_summary_of_message_ids"], marks["_summary_of_group_ids"]) == (["call"], [group])
    assert (marks["kind"], marks["index"]) == ("assistant_text", 2)
    assert [one.additional_properties["_group"]["_summarized_by_summary_id"] for one in stored[3:5]] == [
        summary.message_id
    ] * 2
    assert [one.additional_properties["_exclude_reason"] for one in stored[3:5]] == ["tool_result_compaction"] * 2


@pytest.mark.parametrize(
    ("group", "text"),
    [
        ([Message("assistant", [Content.from_function_call("1", "f")])], "no results"),
        ([Message("tool", [Content.from_function_result("1", result="r")])], "r"),
        (
            [
                Message("assistant", [Content.from_function_call("1", "f"), Content.from_function_call("2", "g")]),
                Message("tool", [Content.from_function_result("1", result={"a": 1})]),
                Message("tool", [Content.from_function_result("2", exception="it broke")]),
            ],
            'f: {"a": 1}; g: Error: it broke',
        ),
    ],
)
async def test_what_a_short_message_says(group: list[Message], text: str):
    messages = [*group, Message("user", "q")]
    await ToolResultCompactionStrategy(keep_last_tool_call_groups=0)(messages)
    assert messages[0].text == f"[Tool results: {text}]"


async def test_a_model_summarizes_the_oldest_part():
    client = ScriptedChatClient(["  They talked about fog. "])
    messages = talk(3)
    assert await SummarizationStrategy(client=client, target_count=4, threshold=2)(messages)
    assert shown(messages) == ["Be brief.", "They talked about fog.", "q2", "function_call", "function_result", "a2"]
    prompt, question = client.calls[0].messages
    assert (prompt.role, question.role) == ("system", "user")
    assert question.text.splitlines()[:3] == [
        "1. [user] q0",
        "2. [assistant] function_call",
        "3. [tool] function_result",
    ]
    assert len(messages[1].additional_properties["_group"]["_summary_of_group_ids"]) == 6
    assert not await SummarizationStrategy(client=client)(messages)


async def test_a_call_of_a_tool_is_summarized_as_a_whole_and_the_newest_stays():
    messages = [Message("user", "q"), *called(1), *called(2)]
    messages += [Message("tool", [Content.from_function_result("c2", result="more")])] * 3
    assert await SummarizationStrategy(client=ScriptedChatClient(["s"]), target_count=2, threshold=None)(messages)
    assert shown(messages) == ["s", "function_call", *["function_result"] * 4]


@pytest.mark.parametrize("reply", ["", "  \n ", ConnectionError("no network")])
async def test_without_a_summary_nothing_changes(reply: Any, caplog: pytest.LogCaptureFixture):
    messages = talk(3)
    with caplog.at_level(logging.WARNING, "agentbench"):
        assert not await SummarizationStrategy(client=ScriptedChatClient([reply]))(messages)
    assert len(included_messages(messages)) == len(messages)
    assert "not summarized" in caplog.text


async def test_a_budget_applies_one_strategy_after_the_other_until_it_fits():
    asked: list[str] = []

    def noting(name: str, strategy: Any) -> Any:
        async def apply(messages: list[Message]) -> bool:
            asked.append(name)
            return bool(await strategy(messages))

        return apply

    tools = noting("tools", SelectiveToolCallCompactionStrategy(keep_last_tool_call_groups=0))
    window = noting("window", SlidingWindowStrategy(keep_last_groups=1))
    messages = talk(4)
    annotate_message_groups(messages, tokenizer=TOKENIZER)
    total = included_token_count(messages)
    for early_stop, expected in ((True, ["tools"]), (False, ["tools", "window"])):
        asked.clear()
        strategy = TokenBudgetComposedStrategy(
            token_budget=total - 1, tokenizer=TOKENIZER, strategies=[tools, window], early_stop=early_stop
        )
        assert await strategy(talk(4))
        assert asked == expected
    assert not await TokenBudgetComposedStrategy(token_budget=total, tokenizer=TOKENIZER, strategies=[tools])(talk(4))
    reserving = TokenBudgetComposedStrategy(token_budget=total, tokenizer=TOKENIZER, strategies=[], reserved_tokens=1)
    assert await reserving(talk(4))


async def test_a_budget_is_met_even_if_nothing_is_left():
    messages = [Message("system", "s" * 4_000), Message("user", "q"), Message("assistant", "a")]
    strategy = TokenBudgetComposedStrategy(token_budget=100, tokenizer=TOKENIZER, strategies=[])
    assert await strategy(messages)
    assert shown(messages) == []
    reasons = [message.additional_properties["_exclude_reason"] for message in messages]
    assert reasons == ["token_budget_fallback_strict", "token_budget_fallback", "token_budget_fallback"]


async def test_a_context_window_shortens_results_first_and_then_truncates():
    strategy = ContextWindowCompactionStrategy(
        max_context_window_tokens=1_200, max_output_tokens=200, keep_last_tool_call_groups=1
    )
    assert strategy.input_budget_tokens == 1_000
    messages = [Message("user", "q"), *called(1, "x" * 2_000), *called(2)]
    assert await strategy(messages)
    assert shown(messages)[1].startswith("[Tool results: weather: xxx")
    assert included_token_count(messages) < 500
    messages += [Message("user", "z" * 2_000), Message("assistant", "z" * 1_400)]
    assert await strategy(messages)
    assert included_token_count(messages) <= 800
    assert "truncation" in {message.additional_properties.get("_exclude_reason") for message in messages}


@pytest.mark.parametrize(
    "make",
    [
        lambda: TruncationStrategy(max_n=0, compact_to=0),
        lambda: TruncationStrategy(max_n=2, compact_to=3),
        lambda: SlidingWindowStrategy(keep_last_groups=0),
        lambda: SelectiveToolCallCompactionStrategy(keep_last_tool_call_groups=-1),
        lambda: ToolResultCompactionStrategy(max_chars_per_result=0),
        lambda: SummarizationStrategy(client=None, target_count=0),
        lambda: SummarizationStrategy(client=None, threshold=-1),
        lambda: TokenBudgetComposedStrategy(token_budget=0, tokenizer=TOKENIZER, strategies=[]),
        lambda: TokenBudgetComposedStrategy(token_budget=5, tokenizer=TOKENIZER, strategies=[], reserved_tokens=5),
        lambda: ContextWindowCompactionStrategy(max_context_window_tokens=5, max_output_tokens=5),
        lambda: ContextWindowCompactionStrategy(max_context_window_tokens=5, max_output_tokens=-1),
        lambda: ContextWindowCompactionStrategy(
            max_context_window_tokens=5, max_output_tokens=0, tool_eviction_threshold=0.9
        ),
        lambda: ContextWindowCompactionStrategy(
            max_context_window_tokens=5, max_output_tokens=0, truncation_threshold=1.1
        ),
    ],
)
def test_numbers_that_make_no_sense_are_refused(make: Any):
    with raises(ValueError):
        make()


async def test_an_open_call_is_sent_whole_and_not_said_twice():
    messages = [*talk(1), Message("user", "q1"), *called(1)]
    sent = await apply_compaction(messages, strategy=ToolResultCompactionStrategy(keep_last_tool_call_groups=0))
    assert [message.text or message.contents[0].type for message in sent] == [
        *("Be brief.", "q0", "[Tool results: weather: fog]", "a0", "q1", "function_call", "function_result")
    ]


CALL = Content.from_function_call("1", "f")
RESULT = Content.from_function_result("1", result="r")


class LeavesOut:
    """Excludes the groups that a rule names."""

    def __init__(self, rule: Callable[[dict[str, object]], bool]) -> None:
        self.rule = rule

    async def __call__(self, messages: list[Message]) -> bool:
        for message in messages:
            if self.rule(message.additional_properties["_group"]):
                message.additional_properties.update(_excluded=True, _exclude_reason="rule")
        return True


EVERYTHING = LeavesOut(lambda group: True)


def finished_turn() -> list[Message]:
    return [Message("user", "old"), Message("assistant", [CALL]), Message("tool", [RESULT]), Message("assistant", "ok")]


async def test_without_a_strategy_the_list_itself_comes_back() -> None:
    messages = finished_turn()

    assert await apply_compaction(messages, strategy=None) is messages
    assert all(message.additional_properties == {} for message in messages)


async def test_excluded_messages_are_left_out_and_stay_in_the_list() -> None:
    messages = [*finished_turn(), Message("user", "new")]

    seen = await apply_compaction(messages, strategy=LeavesOut(lambda group: group["kind"] == "tool_call"))

    assert [message.text for message in seen] == ["old", "ok", "new"]
    assert len(messages) == 5
    assert included_messages(messages) == seen


async def test_a_finished_turn_may_be_dropped_and_the_question_that_is_open_may_not(
    caplog: pytest.LogCaptureFixture,
) -> None:
    messages = [*finished_turn(), Message("user", "new")]

    with caplog.at_level(logging.WARNING, "agentbench"):
        seen = await apply_compaction(messages, strategy=EVERYTHING)

    assert [message.text for message in seen] == ["new"]
    assert "_exclude_reason" not in messages[-1].additional_properties
    assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_the_calls_of_an_open_turn_are_sent_with_their_results_and_the_question() -> None:
    other = [
        Message("assistant", [Content.from_function_call("0", "f")]),
        Message("tool", [Content.from_function_result("0")]),
    ]
    messages = [
        *finished_turn(),
        Message("user", "new"),
        *other,
        Message("assistant", [CALL]),
        Message("tool", [RESULT]),
    ]

    seen = await apply_compaction(messages, strategy=EVERYTHING)

    assert [one is other for one, other in zip(seen, [messages[4], *messages[7:]], strict=True)] == [True] * 3
    assert len(await apply_compaction(messages[-2:], strategy=EVERYTHING)) == 2


async def test_a_conversation_that_ends_with_the_assistant_has_no_open_turn_but_is_never_empty() -> None:
    messages = finished_turn()

    assert [message.text for message in await apply_compaction(messages, strategy=EVERYTHING)] == ["ok"]


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
