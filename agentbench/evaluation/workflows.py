"""`evaluate_workflow`: runs a workflow and scores its answers and those of its agents."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench.batch.rows import BatchRow
from agentbench.evaluation.checks import EvalCheck
from agentbench.evaluation.converter import function_tools
from agentbench.evaluation.items import ConversationSplitter, EvalItem
from agentbench.evaluation.local import Evaluator, as_evaluators, score_items
from agentbench.evaluation.queries import as_list, error_of, per_query, rows_of
from agentbench.evaluation.results import EvalResults
from agentbench.evaluation.turns import Run, agents_of, as_answer, as_messages, read_run
from agentbench.messages.message import Message
from agentbench.observability.feature_stages import ExperimentalFeature, experimental
from agentbench.workflows.run.result import WorkflowRunResult
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from sqlalchemy import URL

    from agentbench.batch.batch import Batch


def _run_of(row: BatchRow, *, has_turns: bool) -> Run:
    """Create a run from a row of a `WorkflowTarget`, or of any batch, which does not have the turns of agents."""
    answer, turns, error = None, (), error_of(row)
    if error is None and has_turns:
        answer, turns, state = row.output
        if answer is None:
            error = ValueError(f"The run has no output. Its final state is {state}.")
    elif error is None:
        answer = as_answer(row.output)
    return Run(as_messages(row.input), answer, turns, error)


@experimental(feature_id=ExperimentalFeature.EVALS)
async def evaluate_workflow(  # noqa: PLR0913 - the published signature
    *,
    workflow: Workflow | None = None,
    workflow_result: WorkflowRunResult | None = None,
    queries: Iterable[Any] | str | None = None,
    expected_output: Iterable[str] | str | None = None,
    evaluators: Evaluator | EvalCheck | Sequence[Evaluator | EvalCheck],
    eval_name: str | None = None,
    include_overall: bool = True,
    include_per_agent: bool = True,
    conversation_split: ConversationSplitter | None = None,
    num_repetitions: int = 1,
    max_concurrency: int = 1,
    into: str | os.PathLike[str] | URL | None = None,
    batch: Batch | None = None,
    progress: bool | None = None,
) -> list[EvalResults]:
    """Run a workflow on queries, each in a separate clone, and score its answers; or score an existing run.

    If a run raises or has no output, its item counts as an error, and the other runs continue.

    Args:
        workflow: The workflow. It is not needed to score a batch.
        workflow_result: The result of an existing run; then nothing is run.
        queries: One or more inputs.
        expected_output: The correct answer to each query, or for each row of `batch`, for checks that compare. It does
            not apply to agents inside the workflow.
        evaluators: One or more evaluators or checks. Adjacent checks form one `LocalEvaluator`.
        eval_name: The name of this evaluation. With several evaluators, the name of each is appended.
        include_overall: Whether to score the last output of the workflow.
        include_per_agent: Whether to score each turn of each agent, with the agent's input as the query.
        conversation_split: Splits a conversation into query and response.
        num_repetitions: The number of times that all queries are run.
        max_concurrency: The maximum number of concurrent runs.
        into: A file or the URL of a database, as in `run_many`, in which each run is kept at once, in the batch
            `eval_name`. A second call runs only what failed or is missing, and everything if the workflow's code
            changed. Scores are computed again by every call.
        batch: A batch whose outputs are scored, each with the input of its row as the query; then nothing is run. The
            item of a row without an output, which failed, waits or has not ended, is an error. There are no results of
            agents, because rows do not have their turns.
        progress: Whether to show a progress bar; by default only in notebooks.

    Returns:
        The results of each evaluator, in order. Their `sub_results` contain the results of the agents by id.

    Raises:
        ValueError: There is nothing to evaluate, `batch` is combined with queries, or the numbers of values differ.
        TypeError: An evaluator is neither an evaluator nor a check.

    Example:
        >>> [results] = await evaluate_workflow(workflow=workflow, queries=["Write about rain."], evaluators=is_brief)
        >>> results.sub_results["writer"].passed
        1
    """
    chosen = as_evaluators(evaluators, progress)
    rows = None if batch is None else await rows_of(batch, queries=queries, workflow_result=workflow_result, into=into)
    query_list = as_list(queries, (str, Message)) if rows is None else [row.input for row in rows]
    named = workflow if batch is None else batch
    if named is None or (workflow_result is None and not query_list):
        msg = (
            "evaluate_workflow() has nothing to evaluate. Pass workflow= with queries= or workflow_result=, "
            "or batch= with rows."
        )
        raise ValueError(msg)
    outputs = per_query("expected_output", expected_output, (str,), query_list)
    is_generated = named.name.startswith("WorkflowBuilder-")
    name = eval_name or f"Eval: {'workflow' if is_generated else named.name}"
    agents = {} if workflow is None else agents_of(workflow)
    if rows is not None:
        runs = [_run_of(row, has_turns=False) for row in rows]
    elif workflow_result is not None:
        runs = [read_run(workflow_result, query_list[0] if query_list else None, agents)]
    else:
        assert workflow is not None
        from agentbench.evaluation.runs import WorkflowTarget, run_queries  # noqa: PLC0415 - loads pydantic

        rows = await run_queries(
            WorkflowTarget(workflow, name, {}),
            query_list,
            as_messages,
            into,
            times=num_repetitions,
            limit=max_concurrency,
            progress=progress,
        )
        runs = [_run_of(row, has_turns=True) for row in rows]

    overall = _overall_items(runs, outputs, conversation_split) if include_overall else []
    parts = _items_by_agent(runs, agents, conversation_split) if include_per_agent else {}
    if not overall and not parts:
        msg = f"{name} has nothing to evaluate: no run has an output, and no agent answered."
        raise ValueError(msg)

    part_results = await asyncio.gather(
        *(score_items(items, chosen, f"{name}, {part}") for part, items in parts.items())
    )
    empty = [EvalResults(provider=evaluator.name, eval_id="workflow", run_id=name) for evaluator in chosen]
    overall_results = await score_items(overall, chosen, name) if overall else empty
    for index, results in enumerate(overall_results):
        results.sub_results = {part: scored[index] for part, scored in zip(parts, part_results, strict=True)}
        if not overall:
            _add_up(results)
    return overall_results


def _overall_items(
    runs: Sequence[Run], outputs: Sequence[str | None], split: ConversationSplitter | None
) -> list[EvalItem]:
    items = []
    for index, run in enumerate(runs):
        if run.answer is not None or run.error is not None:
            item = EvalItem([*run.query, *(run.answer or ())], split_strategy=split, error=run.error)
            item.expected_output = outputs[index % len(outputs)] if outputs else None
            items.append(item)
    return items


def _items_by_agent(
    runs: Sequence[Run], agents: Mapping[str, Any], split: ConversationSplitter | None
) -> dict[str, list[EvalItem]]:
    parts: dict[str, list[EvalItem]] = {}
    for executor_id, query, answer in (turn for run in runs for turn in run.turns):
        tools = function_tools(agents[executor_id])
        item = EvalItem([*query, *answer], tools, split_strategy=split)
        parts.setdefault(executor_id, []).append(item)
    return parts


def _add_up(results: EvalResults) -> None:
    """Set the counts of an evaluation without items to the sums of its parts."""
    parts = list(results.sub_results.values())
    outcomes = ("passed", "failed", "errored")
    results.result_counts = {outcome: sum(getattr(part, outcome) for part in parts) for outcome in outcomes}
    if any(part.status != "completed" for part in parts):
        results.status = "partial"
