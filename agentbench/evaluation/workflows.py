"""A workflow's answers to queries, scored as a whole and agent by agent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentbench.evaluation.checks import EvalCheck
from agentbench.evaluation.inputs import as_list, function_tools, per_query, repeat, repeated_keys
from agentbench.evaluation.items import ConversationSplitter, EvalItem
from agentbench.evaluation.local import Evaluator
from agentbench.evaluation.map_items import map_items
from agentbench.evaluation.results import EvalResults
from agentbench.evaluation.resume_file import Path, ResumeFile
from agentbench.evaluation.scoring import as_evaluators, score_items
from agentbench.evaluation.workflow_runs import Run, as_messages, plain_run, read_run, stored_run
from agentbench.messages.message import Message
from agentbench.orchestrations.agent_node import AgentNode
from agentbench.workflows.run.result import WorkflowRunResult
from agentbench.workflows.run.workflow import Workflow


async def evaluate_workflow(  # noqa: PLR0913 - the published signature
    *,
    workflow: Workflow,
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
    resume_file: Path | None = None,
    progress: bool | None = None,
) -> list[EvalResults]:
    """Run a workflow on queries, each in a separate clone, and score its answers; or score an existing run.

    If a run raises or has no output, its item is an error, and the others continue.

    Args:
        workflow: The workflow.
        workflow_result: The result of a run of it; then nothing is run.
        queries: One input or many.
        expected_output: The right answer to each query, for checks that compare. Agents inside the workflow have none.
        evaluators: An evaluator or a check, or several; checks beside each other form one `LocalEvaluator`.
        eval_name: Name of this evaluation; with several evaluators the name of each is appended.
        include_overall: Whether the last output of the workflow is scored.
        include_per_agent: Whether each turn of each agent is scored, against what the agent was asked.
        conversation_split: Where query and response are cut.
        num_repetitions: How often all queries are run.
        max_concurrency: Most runs at once.
        resume_file: A file that gets each run, and the scores of local evaluators, as they are there. What is in it is
            not run again, errors are; delete it for a fresh evaluation.
        progress: Whether there is a progress bar; by default in notebooks.

    Returns:
        The results of each evaluator, in order, with `sub_results` by the ids of agents.

    Raises:
        ValueError: There is nothing to evaluate, or numbers of values differ.
        TypeError: An evaluator is neither an evaluator nor a check.

    Example:
        >>> [results] = await evaluate_workflow(workflow=workflow, queries=["Write about rain."], evaluators=is_brief)
        >>> results.sub_results["writer"].passed
        1
    """
    chosen = as_evaluators(evaluators, progress)
    asked = [] if queries is None else as_list(queries, (str, Message))
    if workflow_result is None and not asked:
        msg = "evaluate_workflow() has nothing to evaluate: it needs queries=, or workflow_result= of a run."
        raise ValueError(msg)
    outputs = per_query("expected_output", None if expected_output is None else as_list(expected_output, (str,)), asked)
    made_up = workflow.name.startswith("WorkflowBuilder-")
    name = eval_name or f"Eval: {'workflow' if made_up else workflow.name}"
    agents = {
        executor_id: executor.agent
        for executor_id, executor in workflow.executors.items()
        if isinstance(executor, AgentNode) and not executor_id.startswith("_")
    }
    if workflow_result is not None:
        runs = [read_run(workflow_result, asked[0] if asked else None, agents)]
    else:
        stored = ResumeFile(resume_file)

        async def ask(place: tuple[Any, str]) -> Run:
            query, key = place
            if known := stored.get(key):
                return stored_run(known)
            try:
                result = await workflow.clone().run(query)
            except Exception as error:  # noqa: BLE001 - the others continue, and the results name it
                return Run(as_messages(query), None, [], error)
            found = read_run(result, query, agents)
            if found.answered is None:
                found.error = ValueError(f"The run gave no output. It ended as {result.get_final_state()}.")
            else:
                stored.put(key, plain_run(found))
            return found

        queries = repeat(asked, num_repetitions)
        places = list(zip(queries, repeated_keys("run", [*workflow.executors], map(as_messages, queries)), strict=True))
        runs = await map_items(ask, places, limit=max_concurrency, name=f"{name}: runs", progress=progress)

    overall = _overall_items(runs, outputs, conversation_split) if include_overall else []
    parts = _items_by_agent(runs, agents, conversation_split) if include_per_agent else {}
    if not overall and not parts:
        msg = f"{name} has nothing to evaluate: no run gave an output, and no agent answered."
        raise ValueError(msg)

    part_results = await asyncio.gather(
        *(score_items(items, chosen, f"{name}, {part}", resume_file) for part, items in parts.items())
    )
    found = (
        await score_items(overall, chosen, name, resume_file) if overall else [_empty(each, name) for each in chosen]
    )
    for index, results in enumerate(found):
        results.sub_results = {part: each[index] for part, each in zip(parts, part_results, strict=True)}
        if not overall:
            _add_up(results)
    return found


def _overall_items(
    runs: Sequence[Run], outputs: Sequence[str | None], split: ConversationSplitter | None
) -> list[EvalItem]:
    items = []
    for index, run in enumerate(runs):
        if run.answered is not None or run.error is not None:
            item = EvalItem([*run.asked, *(run.answered or ())], split_strategy=split, error=run.error)
            item.expected_output = outputs[index % len(outputs)] if outputs else None
            items.append(item)
    return items


def _items_by_agent(
    runs: Sequence[Run], agents: Mapping[str, Any], split: ConversationSplitter | None
) -> dict[str, list[EvalItem]]:
    parts: dict[str, list[EvalItem]] = {}
    for turn in (turn for run in runs for turn in run.turns):
        tools = function_tools(agents[turn.executor_id])
        item = EvalItem([*turn.asked, *turn.answered], tools, split_strategy=split)
        parts.setdefault(turn.executor_id, []).append(item)
    return parts


def _empty(evaluator: Evaluator, name: str) -> EvalResults:
    return EvalResults(provider=evaluator.name, eval_id="workflow", run_id=name)


def _add_up(results: EvalResults) -> None:
    """Give an evaluation without items the counts of its parts."""
    parts = list(results.sub_results.values())
    results.result_counts = {
        "passed": sum(part.passed for part in parts),
        "failed": sum(part.failed for part in parts),
        "errored": sum(part.errored for part in parts),
    }
    if any(part.status != "completed" for part in parts):
        results.status = "partial"
