"""Agents evaluated: queries, answers that are there, repetitions, errors, limits, interruptions."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentResponse,
    ConversationSplit,
    EvalItem,
    EvalNotPassedError,
    EvalResults,
    ExpectedToolCall,
    LocalEvaluator,
    Message,
    ScriptedChatClient,
    evaluate_agent,
    evaluator,
    keyword_check,
    tool,
    tool_call_args_match,
    tool_calls_present,
)
from agentbench.batch import run_many
from agentbench.testing import Call
from tests.parts.errors import raises

CAPITALS = {"France": "Paris", "Italy": "Rome"}


@evaluator
def is_expected(response: str, expected_output: str) -> bool:
    return response == expected_output


@tool
def lookup(country: str) -> str:
    """Look up the capital of a country."""
    return CAPITALS[country]


def scripted(*answers: Any, **given: Any) -> Agent:
    return Agent(ScriptedChatClient([*answers], on_exhausted="repeat_last"), name="geo", **given)


class Service:
    """An evaluator that keeps what it gets."""

    name = "service"

    def __init__(self) -> None:
        self.items: list[EvalItem] = []
        self.eval_name = ""

    async def evaluate(self, items: Sequence[EvalItem], *, eval_name: str = "") -> EvalResults:
        self.items, self.eval_name = list(items), eval_name
        return EvalResults(provider=self.name, run_id=eval_name, result_counts={"passed": len(items)})


async def test_an_agent_passes_its_gate_and_does_not():
    agent = scripted([Call("lookup", {"country": "France"})], "Paris.", tools=lookup)
    wanted = ExpectedToolCall("lookup", {"country": "France"})
    [results] = await evaluate_agent(
        agent=agent,
        queries="Capital of France?",
        expected_tool_calls=wanted,
        evaluators=[keyword_check("paris"), tool_calls_present, tool_call_args_match],
    )
    results.raise_for_status()
    assert (results.run_id, results.total) == ("Eval: geo", 1)
    assert [message.role for message in results.items[0].conversation or ()] == [
        "user",
        "assistant",
        "tool",
        "assistant",
    ]
    [results] = await evaluate_agent(agent=scripted("No idea"), queries=["?"], evaluators=keyword_check("paris"))
    with pytest.raises(EvalNotPassedError):
        results.raise_for_status()


async def test_expected_values_follow_their_queries_in_every_repetition():
    service = Service()
    [results] = await evaluate_agent(
        agent=scripted("a", "b", "c", "d"),
        queries=(query for query in ("one", "two")),
        expected_output=("1", "2"),
        expected_tool_calls=[[ExpectedToolCall("x")], []],
        evaluators=service,
        context="numbers",
        conversation_split=ConversationSplit.FULL,
        num_repetitions=2,
    )
    assert results.passed == 4
    assert [(each.query, each.response, each.expected_output) for each in service.items] == [
        ("one", "a", "1"), ("two", "b", "2"), ("one", "c", "1"), ("two", "d", "2"),
    ]  # fmt: skip
    assert [len(each.expected_tool_calls or []) for each in service.items] == [1, 0, 1, 0]
    assert {(each.context, each.split_strategy) for each in service.items} == {("numbers", ConversationSplit.FULL)}


async def test_answers_that_are_there_are_scored_without_a_run():
    responses: list[AgentResponse | str] = [AgentResponse(messages=[Message("assistant", ["Paris"])]), "Rome"]
    [results] = await evaluate_agent(
        queries=["France", "Italy"], responses=responses, expected_output=["Paris", "Paris"], evaluators=is_expected
    )
    assert [each.status for each in results.items] == ["pass", "fail"]


async def test_checks_beside_each_other_are_one_evaluator():
    service = Service()
    found = await evaluate_agent(
        agent=scripted("Paris", tools=lookup),
        queries="France",
        evaluators=[keyword_check("paris"), keyword_check("rome"), service, LocalEvaluator(is_expected, name="mine")],
        eval_name="capitals",
    )
    assert [each.run_id for each in found] == ["capitals (Local)", "capitals (service)", "capitals (mine)"]
    assert [len(each.per_evaluator) for each in found] == [1, 0, 1]
    assert found[0].items[0].scores[1].passed is False
    assert [each.name for each in service.items[0].tools or ()] == ["lookup"]


@pytest.mark.parametrize(
    ("arguments", "error", "text"),
    [
        ({}, ValueError, "nothing to evaluate"),
        ({"queries": ["a"]}, ValueError, "agent="),
        ({"responses": ["a"]}, ValueError, "queries="),
        ({"queries": ["a"], "responses": ["a", "b"]}, ValueError, "2"),
        ({"agent": 1, "queries": ["a"], "expected_output": ["a", "b"]}, ValueError, "expected_output"),
        ({"agent": 1, "queries": ["a"], "expected_tool_calls": [[], []]}, ValueError, "expected_tool_calls"),
        ({"agent": 1, "queries": ["a"], "num_repetitions": 0}, ValueError, "num_repetitions"),
        ({"agent": 1, "queries": ["a"], "evaluators": []}, ValueError, "evaluators is empty"),
        ({"agent": 1, "queries": ["a"], "evaluators": ["paris"]}, TypeError, "paris"),
    ],
)
async def test_what_cannot_be_evaluated(arguments, error, text):
    with raises(error, text):
        await evaluate_agent(**{"evaluators": is_expected, **arguments})


class Flaky:
    """An agent that answers with the query, and fails where it is told to."""

    name = "flaky"

    def __init__(self, *fails: str) -> None:
        self.fails, self.asked, self.at_once, self.most = set(fails), list[str](), 0, 0
        self._news = asyncio.Event()

    async def has_asked(self, number: int) -> None:
        """Wait until so many queries were asked."""
        while len(self.asked) < number:
            await self._news.wait()
            self._news.clear()

    async def run(self, query: str) -> AgentResponse[Any]:
        self.asked.append(query)
        self._news.set()
        self.at_once += 1
        self.most = max(self.most, self.at_once)
        await asyncio.sleep(0)
        self.at_once -= 1
        if query in self.fails:
            raise ConnectionError("down")
        return AgentResponse(messages=[Message("assistant", [query])])


async def test_a_run_that_fails_is_an_error_of_its_item_alone():
    [results] = await evaluate_agent(agent=Flaky("b"), queries=["a", "b", "c"], evaluators=keyword_check())
    assert [each.status for each in results.items] == ["pass", "error", "pass"]
    assert (results.items[1].error_code, results.items[1].error_message) == ("ConnectionError", "response: down")
    assert results.items[1].input_text == "b"


async def test_queries_run_one_by_one_unless_more_are_allowed():
    agent = Flaky()
    for limit in (1, 5):
        agent.most = 0
        await evaluate_agent(
            agent=agent, queries=map(str, range(50)), evaluators=keyword_check(), max_concurrency=limit
        )
        assert agent.most == limit


async def test_an_interrupted_evaluation_asks_only_what_is_missing_and_scores_everything(tmp_path):
    queries, judged = [str(number % 400) for number in range(1000)], []
    agent = Flaky("7")

    @evaluator
    def judge(response: str) -> bool:
        judged.append(response)
        return True

    def evaluation(limit: int) -> Any:
        return evaluate_agent(
            agent=agent, queries=queries, evaluators=judge, max_concurrency=limit, into=tmp_path / "answers.db"
        )

    running = asyncio.ensure_future(evaluation(1))
    await agent.has_asked(500)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert judged == []
    [results] = await evaluation(16)
    assert results.result_counts == {"passed": 997, "failed": 0, "errored": 3}
    assert [each.output_text for each in results.items] == ["" if query == "7" else query for query in queries]
    assert len(agent.asked) <= 1000 + 1 + 2  # the one that was cut off, and those that failed, again
    agent.asked.clear()
    judged.clear()
    agent.fails.clear()
    [results] = await evaluation(16)
    assert (results.passed, agent.asked, len(judged)) == (1000, ["7"] * 3, 1000)


async def test_answers_survive_the_file_with_their_calls(tmp_path):
    path = tmp_path / "answers.db"
    agent = scripted([Call("lookup", {"country": "France"})], "Paris.", tools=lookup)
    first, again = [
        (await evaluate_agent(agent=agent, queries="France", evaluators=keyword_check("paris"), into=path))[0]
        for _ in range(2)
    ]
    assert first.items[0].conversation == again.items[0].conversation
    assert len(agent.client.calls) == 2
    assert path.stat().st_mode & 0o077 == 0


async def test_an_agent_that_was_changed_is_asked_again_but_only_what_the_call_asks(tmp_path):
    def evaluation(agent: Agent, *queries: str) -> Any:
        return evaluate_agent(
            agent=agent, queries=queries, evaluators=keyword_check("paris"), into=tmp_path / "answers.db"
        )

    await evaluation(scripted("Paris", instructions="Be brief."), "France", "Italy")
    polite = scripted("Paris, please", instructions="Be polite.")
    for _ in range(2):
        [results] = await evaluation(polite, "France")
        assert results.items[0].output_text == "Paris, please"
    assert len(polite.client.calls) == 1


async def test_the_answers_in_a_batch_are_scored_without_a_run():
    batch = await run_many(scripted("Paris", "Rome"), ["France", "Italy"], name="capitals", concurrency=1)
    [results] = await evaluate_agent(batch=batch, expected_output=["Paris", "Paris"], evaluators=is_expected)
    assert (results.run_id, [each.status for each in results.items]) == ("Eval: capitals", ["pass", "fail"])
    assert [each.input_text for each in results.items] == ["France", "Italy"]
    with raises(ValueError, "queries="):
        await evaluate_agent(batch=batch, queries="France", evaluators=is_expected)
