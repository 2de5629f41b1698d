"""`evaluate_agent`: scores the answers of an agent."""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from agentbench.evaluation.checks import EvalCheck
from agentbench.evaluation.converter import function_tools
from agentbench.evaluation.items import ConversationSplitter, EvalItem, ExpectedToolCall
from agentbench.evaluation.local import Evaluator, as_evaluators, score_items
from agentbench.evaluation.queries import as_list, error_of, per_query, rows_of
from agentbench.evaluation.results import EvalResults
from agentbench.evaluation.turns import as_answer, as_messages
from agentbench.messages.inputs import AgentRunInputs, normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.observability.feature_stages import ExperimentalFeature, experimental

if TYPE_CHECKING:
    from sqlalchemy import URL

    from agentbench.batch.batch import Batch


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
    into: str | os.PathLike[str] | URL | None = None,
    batch: Batch | None = None,
    progress: bool | None = None,
) -> list[EvalResults]:
    """Run an agent on queries, each without a session, and score its answers; or score existing answers.

    If a run raises, its item counts as an error, and the other runs continue.

    Args:
        agent: The agent. It is not needed to score existing answers.
        queries: One or more queries.
        expected_output: The correct answer to each query, or for each row of `batch`, for checks that compare.
        expected_tool_calls: A list of tool calls for each query. A flat list belongs to a single query.
        responses: Existing answers, one for each query; then nothing is run.
        evaluators: One or more evaluators or checks. Adjacent checks form one `LocalEvaluator`.
        eval_name: The name of this evaluation. With several evaluators, the name of each is appended.
        context: Background information for checks.
        conversation_split: Splits a conversation into query and response.
        num_repetitions: The number of times that all queries are run.
        max_concurrency: The maximum number of concurrent runs.
        into: A file or the URL of a database, as in `run_many`, in which each answer is kept at once, in the batch
            `eval_name`. A second call asks only what failed or has no answer yet, and everything if the agent's code
            changed. Scores are computed again by every call.
        batch: A batch whose outputs are scored, each with the input of its row as the query; then nothing is run. The
            item of a row without an output, which failed, waits or has not ended, is an error.
        progress: Whether to show a progress bar; by default only in notebooks.

    Returns:
        The results of each evaluator, in order.

    Raises:
        ValueError: There is nothing to evaluate, `agent`, `responses` and `batch` are missing, `batch` is combined with
            queries, or the numbers of values differ.
        TypeError: An evaluator is neither an evaluator nor a check.

    Example:
        >>> checks = [keyword_check("paris")]
        >>> [results] = await evaluate_agent(agent=agent, queries="Capital of France?", evaluators=checks)
        >>> results.raise_for_status()
    """
    chosen = as_evaluators(evaluators, progress)
    rows = None if batch is None else await rows_of(batch, queries=queries, responses=responses, into=into)
    query_list = as_list(queries, (str, Message)) if rows is None else [as_messages(row.input) for row in rows]
    if not query_list:
        msg = "evaluate_agent() has nothing to evaluate. Pass queries=, also with responses=, or batch= with rows."
        raise ValueError(msg)
    if responses is None and agent is None and rows is None:
        msg = "queries= needs agent= to answer them, or responses= with the answers."
        raise ValueError(msg)
    outputs = per_query("expected_output", expected_output, (str,), query_list)
    calls = per_query("expected_tool_calls", _call_lists(expected_tool_calls), (), query_list)

    def make_item(index: int, answer: Sequence[Message], error: Exception | None = None) -> EvalItem:
        conversation = [*normalize_messages(query_list[index]), *answer]
        return EvalItem(conversation, None, context, outputs[index], calls[index], conversation_split, error)

    name = getattr(agent, "name", None) or (None if batch is None else batch.name)
    eval_name = eval_name or f"Eval: {name or 'agent'}"
    if responses is not None:
        answers = per_query("responses", responses, (str, AgentResponse), query_list)
        items = [
            make_item(index, [Message("assistant", [answer])] if isinstance(answer, str) else answer.messages)
            for index, answer in enumerate(answers)
        ]
    else:
        if rows is None:
            from agentbench.evaluation.runs import AgentTarget, run_queries  # noqa: PLC0415 - loads pydantic

            rows = await run_queries(
                AgentTarget(agent, eval_name),
                query_list,
                normalize_messages,
                into,
                times=num_repetitions,
                limit=max_concurrency,
                progress=progress,
            )
        items = []
        for place, row in enumerate(rows):
            error = error_of(row)
            answer = [] if error else row.output if batch is None else as_answer(row.output)
            items.append(make_item(place % len(query_list), answer, error))
    tools = [] if agent is None else function_tools(agent)  # after the runs, its MCP servers are connected
    for item in items:
        item.tools = tools
    return await score_items(items, chosen, eval_name)


def _call_lists(expected: Any) -> list[list[ExpectedToolCall]] | None:
    if expected is None:
        return None
    calls = as_list(expected, (ExpectedToolCall,))
    return [calls] if calls and all(isinstance(call, ExpectedToolCall) for call in calls) else calls
