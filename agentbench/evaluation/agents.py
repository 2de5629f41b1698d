"""`evaluate_agent`: scores the answers of an agent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentbench.evaluation.checks import EvalCheck
from agentbench.evaluation.items import ConversationSplitter, EvalItem, ExpectedToolCall
from agentbench.evaluation.local import Evaluator, as_evaluators, score_items
from agentbench.evaluation.map_items import (
    Path,
    ResumeFile,
    as_list,
    function_tools,
    map_items,
    per_query,
    repeat,
    repeated_keys,
)
from agentbench.evaluation.results import EvalResults
from agentbench.messages.inputs import AgentRunInputs, normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.observability.feature_stages import ExperimentalFeature, experimental


@experimental(feature_id=ExperimentalFeature.EVALS)
async def evaluate_agent(  # noqa: PLR0913 - the published signature
    *,
    agent: Any = None,
    queries: Iterable[AgentRunInputs] | str | None = None,
    expected_output: Iterable[str] | str | None = None,
    expected_tool_calls: Iterable[Any] | ExpectedToolCall | None = None,
    responses: Iterable[AgentResponse | str] | AgentResponse | str | None = None,
    evaluators: Evaluator | EvalCheck | Sequence[Evaluator | EvalCheck],
    eval_name: str | None = None,
    context: str | None = None,
    conversation_split: ConversationSplitter | None = None,
    num_repetitions: int = 1,
    max_concurrency: int = 1,
    resume_file: Path | None = None,
    progress: bool | None = None,
) -> list[EvalResults]:
    """Run an agent on queries, each without a session, and score its answers; or score existing answers.

    If a run raises, its item counts as an error, and the other runs continue.

    Args:
        agent: The agent. It is not needed to score existing answers.
        queries: One or more queries.
        expected_output: The correct answer to each query, for checks that compare.
        expected_tool_calls: A list of tool calls for each query. A flat list belongs to a single query.
        responses: Existing answers, one for each query; then nothing is run.
        evaluators: One or more evaluators or checks. Adjacent checks form one `LocalEvaluator`.
        eval_name: The name of this evaluation. With several evaluators, the name of each is appended.
        context: Background information for checks.
        conversation_split: Splits a conversation into query and response.
        num_repetitions: The number of times that all queries are run.
        max_concurrency: The maximum number of concurrent runs.
        resume_file: A file to which each answer and the scores of local evaluators are written at once. What it
            contains is not run again, except errors. Delete it to start again.
        progress: Whether to show a progress bar; by default only in notebooks.

    Returns:
        The results of each evaluator, in order.

    Raises:
        ValueError: There is nothing to evaluate, both `agent` and `responses` are missing, or the numbers of values
            differ.
        TypeError: An evaluator is neither an evaluator nor a check.

    Example:
        >>> checks = [keyword_check("paris")]
        >>> [results] = await evaluate_agent(agent=agent, queries="Capital of France?", evaluators=checks)
        >>> results.raise_for_status()
    """
    chosen = as_evaluators(evaluators, progress)
    query_list = as_list(queries, (str, Message))
    if not query_list:
        msg = "evaluate_agent() has nothing to evaluate. Pass queries=, also with responses=."
        raise ValueError(msg)
    if responses is None and agent is None:
        msg = "queries= needs agent= to answer them, or responses= with the answers."
        raise ValueError(msg)
    outputs = per_query("expected_output", expected_output, (str,), query_list)
    calls = per_query("expected_tool_calls", _call_lists(expected_tool_calls), (), query_list)

    def make_item(index: int, answer: Sequence[Message], error: Exception | None = None) -> EvalItem:
        conversation = [*normalize_messages(query_list[index]), *answer]
        return EvalItem(conversation, None, context, outputs[index], calls[index], conversation_split, error)

    if responses is not None:
        answers = per_query("responses", responses, (str, AgentResponse), query_list)
        items = [
            make_item(index, [Message("assistant", [answer])] if isinstance(answer, str) else answer.messages)
            for index, answer in enumerate(answers)
        ]
    else:
        name, stored = getattr(agent, "name", None), ResumeFile(resume_file)

        async def ask(place: tuple[int, str]) -> EvalItem:
            index, key = place
            if messages := stored.get(key):
                return make_item(index, [Message.from_dict(message) for message in messages])
            try:
                response = await agent.run(query_list[index])
            except Exception as error:  # noqa: BLE001 - the other runs continue, and the results contain the error
                return make_item(index, (), error)
            stored.put(key, [message.to_dict() for message in response.messages])
            return make_item(index, response.messages)

        keys = repeated_keys("answer", name, repeat(query_list, num_repetitions))
        places = [(place % len(query_list), key) for place, key in enumerate(keys)]
        label = eval_name or name or "Agent"
        items = await map_items(ask, places, limit=max_concurrency, name=f"{label}: answers", progress=progress)
    tools = [] if agent is None else function_tools(agent)  # after the runs, its MCP servers are connected
    for item in items:
        item.tools = tools
    eval_name = eval_name or f"Eval: {getattr(agent, 'name', None) or 'agent'}"
    return await score_items(items, chosen, eval_name, resume_file)


def _call_lists(expected: Any) -> list[list[ExpectedToolCall]] | None:
    if expected is None:
        return None
    calls = as_list(expected, (ExpectedToolCall,))
    return [calls] if calls and all(isinstance(call, ExpectedToolCall) for call in calls) else calls
