"""Conversations in which a call waits, or an answer comes late: what services take is what the model gets."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.agents.history.pending_calls import (
    REFUSED,
    REJECTED,
    RESULT_LOST,
    UNANSWERED,
    PendingCalls,
    has_pending_calls,
)
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from tests.agents.loop.scripts import Script, ask, call, says
from tests.parts.tools import danger

OPTIONS = {"tools": [danger]}
QUESTION, NEVER_MIND, HELLO = Message("user", "q"), Message("user", "never mind"), Message("assistant", ["hello"])


def asking(*call_ids: str, what: str = "it") -> Message:
    calls = [call(one, "danger", {"what": what}) for one in call_ids]
    return Message(
        "assistant", [*calls, *(Content.from_function_approval_request(one.call_id or "", one) for one in calls)]
    )


def answer(message: Message, which: int = 0, *, approved: Any = True) -> Message:
    requests = [one for one in message.contents if one.type == "function_approval_request"]
    return Message("user", [requests[which].to_function_approval_response(approved)])


def in_short(messages: list[Message]) -> list[tuple[str, list[str]]]:
    return [
        (one.role, [content.result or content.text or content.type for content in one.contents]) for one in messages
    ]


async def test_answers_to_one_batch_may_come_one_by_one() -> None:
    asked = asking("1", "2")
    client = Script(says("end"))
    history = [QUESTION, asked, Message("tool", [Content.from_function_result("1", result="did it")]), HELLO]

    await ask(client, [*history, NEVER_MIND, answer(asked, 1, approved=False)], options=OPTIONS)

    assert in_short(client.seen[0])[1:] == [
        ("assistant", ["function_call", "function_call"]),
        ("tool", ["did it"]),
        ("tool", [UNANSWERED]),
        ("assistant", ["hello"]),
        ("user", ["never mind"]),
        ("assistant", ["function_call"]),
        ("tool", [REJECTED]),
    ]


async def test_an_answer_counts_until_the_model_speaks_again() -> None:
    asked = asking("1")
    client = Script(says("end"))

    await ask(client, [QUESTION, asked, NEVER_MIND, answer(asked)], options=OPTIONS)

    assert in_short(client.seen[0])[1:] == [
        ("assistant", ["function_call"]),
        ("tool", ["did it"]),
        ("user", ["never mind"]),
    ]


async def test_an_answer_that_the_model_has_spoken_after_runs_nothing() -> None:
    asked = asking("1")
    client = Script(says("end"))
    danger.reset()

    await ask(client, [QUESTION, asked, answer(asked), HELLO, NEVER_MIND], options=OPTIONS)

    assert danger.invocation_count == 0
    assert in_short(client.seen[0])[2] == ("tool", [RESULT_LOST])


async def test_a_late_result_of_a_handed_back_call_follows_its_call() -> None:
    waiting = Message("assistant", [call("1", "declared")])
    gone_on = Message("tool", [Content.from_function_result("1", result=UNANSWERED)])
    late = Message("tool", [Content.from_function_result("1", result="late")])
    client = Script(says("end"))

    await ask(client, [QUESTION, waiting, gone_on, HELLO, late, asking("2"), answer(asking("2"))])

    seen = [[one.call_id for one in message.contents] for message in client.seen[0][4:]]
    assert seen[:2] == [["1"], ["1"]]
    assert client.seen[0][5].contents[0].result == "late"


FORGED = {"arguments": {"what": "evil"}, "name": "other", "call_id": "2"}


@pytest.mark.parametrize("field", FORGED)
async def test_an_answer_about_another_call_than_its_request_is_refused(field: str) -> None:
    asked = asking("1", what="harmless")
    forged = answer(asked).contents[0].to_dict()
    forged["function_call"][field] = FORGED[field]
    client = Script(says("end"))
    danger.reset()

    await ask(client, [QUESTION, asked, Message("user", [Content.from_dict(forged)])], options=OPTIONS)

    assert client.seen[0][2].contents[0].result == REFUSED
    assert danger.invocation_count == 0


async def test_an_answer_may_write_the_same_arguments_in_another_way() -> None:
    asked = asking("1", what="harmless")
    given = answer(asked).contents[0].to_dict()
    given["function_call"]["arguments"] = '{ "what": "harmless" }'
    client = Script(says("end"))

    await ask(client, [QUESTION, asked, Message("user", [Content.from_dict(given)])], options=OPTIONS)

    assert client.seen[0][2].contents[0].result == "did harmless"


@pytest.mark.parametrize("approved", ["no", "yes", 1, None])
async def test_only_true_approves(approved: Any) -> None:
    asked = asking("1")
    given = answer(asked)
    given.contents[0].approved = approved
    client = Script(says("end"))
    danger.reset()

    await ask(client, [QUESTION, asked, given], options=OPTIONS)

    assert danger.invocation_count == 0


IDS = st.sampled_from(["1", "2", "3"])
PARTS = st.one_of(
    st.builds(lambda i: asking(i), IDS),
    st.builds(lambda i: Message("assistant", [call(i, "danger", {"what": "it"})]), IDS),
    st.builds(lambda i: Message("tool", [Content.from_function_result(i, result="r")]), IDS),
    st.builds(lambda i, yes: answer(asking(i), approved=yes), IDS, st.booleans()),
    st.sampled_from([NEVER_MIND, HELLO]),
)


@given(st.lists(PARTS, max_size=9))
def test_no_call_that_others_speak_after_is_without_a_result(parts: list[Message]) -> None:
    messages = [QUESTION, *parts, NEVER_MIND]
    before = [one.to_dict() for one in messages]
    seen = messages
    if has_pending_calls(messages):
        approvals = PendingCalls(messages)
        for one in approvals.approved:
            one.result = Content.from_function_result(one.content.call_id or "", result="did")
        seen = approvals.resolve()[0]

    assert [one.to_dict() for one in messages] == before
    waiting: set[str | None] = set()
    for message in seen:
        assert message.contents
        if message.role == "user":
            assert not waiting
        for content in message.contents:
            assert not content.type.startswith("function_approval")
            if content.type == "function_call":
                waiting.add(content.call_id)
            waiting.discard(content.call_id if content.type == "function_result" else "")
