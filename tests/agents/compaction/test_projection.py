"""What of a marked conversation a model gets."""

from __future__ import annotations

import logging
from collections.abc import Callable

import pytest

from agentbench.agents.compaction.projection import apply_compaction, included_messages
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message

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
