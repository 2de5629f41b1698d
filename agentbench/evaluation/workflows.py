"""`evaluate_workflow`: runs a workflow and scores its answers and those of its agents."""

from __future__ import annotations

import asyncio
from collections import defaultdict, deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentbench.evaluation.checks import EvalCheck
from agentbench.evaluation.items import ConversationSplitter, EvalItem
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
from agentbench.messages.joined_updates import join_updates
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.observability.feature_stages import ExperimentalFeature, experimental
from agentbench.orchestrations.agent_executor import AgentExecutorRequest, AgentExecutorResponse
from agentbench.orchestrations.agent_node import AgentNode
from agentbench.workflows.run.result import WorkflowRunResult
from agentbench.workflows.run.workflow import Workflow


@dataclass
class AgentTurn:
    """The input and the answer of one agent in a workflow."""

    executor_id: str
    query: list[Message]
    answer: list[Message]


@dataclass
class Run:
    """The scored parts of a run: its answer, if there is one, and the turns of its agents."""

    query: list[Message]
    answer: list[Message] | None
    turns: list[AgentTurn]
    error: Exception | None = None


def read_run(result: WorkflowRunResult, query: Any, agents: Mapping[str, Any]) -> Run:
    """Extract the scored parts from the result of a run."""
    turns = []
    inputs: defaultdict[str | None, deque[Any]] = defaultdict(deque)
    first: Any = query
    for event in result:
        if event.type == "executor_invoked":
            first = event.data if first is None else first
            inputs[event.executor_id].append(event.data)
        elif event.type == "executor_completed" and event.executor_id is not None and event.executor_id in agents:
            received = inputs[event.executor_id].popleft() if inputs[event.executor_id] else None
            turns += [_turn(event.executor_id, received, data) for data in _answers(event.data)]
    outputs = [event.data for event in join_updates([event for event in result if event.type == "output"])]
    return Run(as_messages(first), as_messages(outputs[-1], "assistant") if outputs else None, turns)


def _answers(data: Any) -> list[Any]:
    """Return the answers in the data of an agent node. A node may send and yield the same answer."""
    sent = data if isinstance(data, list) else [data]
    full = [value for value in sent if isinstance(value, AgentExecutorResponse)]
    return full or [value for value in sent if isinstance(value, AgentResponse)]


def _turn(executor_id: str, received: Any, data: Any) -> AgentTurn:
    response = data if isinstance(data, AgentResponse) else data.agent_response
    conversation = None if isinstance(data, AgentResponse) else data.full_conversation
    query = [message for message in conversation or () if message.role == "user"]
    return AgentTurn(executor_id, query or as_messages(received), list(response.messages))


def as_messages(value: Any, role: str = "user") -> list[Message]:
    """Convert a value to messages. A value that is not a message becomes the text of one."""
    if isinstance(value, Message):
        return [value]
    if isinstance(value, (AgentResponse, AgentExecutorRequest)):
        return list(value.messages)
    if isinstance(value, AgentExecutorResponse):
        return list(value.conversation)
    if isinstance(value, list) and value and all(isinstance(item, Message) for item in value):
        return list(value)
    return [Message(role, [str(value)])]


def plain_run(run: Run) -> list[Any]:
    """Convert a run to JSON values."""

    def plain(messages: list[Message] | None) -> list[Any] | None:
        return None if messages is None else [message.to_dict() for message in messages]

    turns = [[turn.executor_id, plain(turn.query), plain(turn.answer)] for turn in run.turns]
    return [plain(run.query), plain(run.answer), turns]


def stored_run(stored: list[Any]) -> Run:
    """Create a run from the result of `plain_run`."""

    def messages(plain: list[Any]) -> list[Message]:
        return [Message.from_dict(message) for message in plain]

    query, answer, turns = stored
    return Run(messages(query), messages(answer), [AgentTurn(turn[0], *map(messages, turn[1:])) for turn in turns])


@experimental(feature_id=ExperimentalFeature.EVALS)
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

    If a run raises or has no output, its item counts as an error, and the other runs continue.

    Args:
        workflow: The workflow.
        workflow_result: The result of an existing run; then nothing is run.
        queries: One or more inputs.
        expected_output: The correct answer to each query, for checks that compare. It does not apply to agents
            inside the workflow.
        evaluators: One or more evaluators or checks. Adjacent checks form one `LocalEvaluator`.
        eval_name: The name of this evaluation. With several evaluators, the name of each is appended.
        include_overall: Whether to score the last output of the workflow.
        include_per_agent: Whether to score each turn of each agent, with the agent's input as the query.
        conversation_split: Splits a conversation into query and response.
        num_repetitions: The number of times that all queries are run.
        max_concurrency: The maximum number of concurrent runs.
        resume_file: A file to which each run and the scores of local evaluators are written at once. What it contains
            is not run again, except errors. Delete it to start again.
        progress: Whether to show a progress bar; by default only in notebooks.

    Returns:
        The results of each evaluator, in order. Their `sub_results` contain the results of the agents by id.

    Raises:
        ValueError: There is nothing to evaluate, or the numbers of values differ.
        TypeError: An evaluator is neither an evaluator nor a check.

    Example:
        >>> [results] = await evaluate_workflow(workflow=workflow, queries=["Write about rain."], evaluators=is_brief)
        >>> results.sub_results["writer"].passed
        1
    """
    chosen = as_evaluators(evaluators, progress)
    query_list = as_list(queries, (str, Message))
    if workflow_result is None and not query_list:
        msg = "evaluate_workflow() has nothing to evaluate. Pass queries=, or workflow_result= of a run."
        raise ValueError(msg)
    outputs = per_query("expected_output", expected_output, (str,), query_list)
    is_generated = workflow.name.startswith("WorkflowBuilder-")
    name = eval_name or f"Eval: {'workflow' if is_generated else workflow.name}"
    agents = {
        executor_id: executor.agent
        for executor_id, executor in workflow.executors.items()
        if isinstance(executor, AgentNode) and not executor_id.startswith("_")
    }
    if workflow_result is not None:
        runs = [read_run(workflow_result, query_list[0] if query_list else None, agents)]
    else:
        stored = ResumeFile(resume_file)

        async def ask(place: tuple[Any, str]) -> Run:
            query, key = place
            if values := stored.get(key):
                return stored_run(values)
            try:
                result = await workflow.clone().run(query)
            except Exception as error:  # noqa: BLE001 - the other runs continue, and the results contain the error
                return Run(as_messages(query), None, [], error)
            run = read_run(result, query, agents)
            if run.answer is None:
                run.error = ValueError(f"The run has no output. Its final state is {result.get_final_state()}.")
            else:
                stored.put(key, plain_run(run))
            return run

        queries = repeat(query_list, num_repetitions)
        places = list(zip(queries, repeated_keys("run", [*workflow.executors], map(as_messages, queries)), strict=True))
        runs = await map_items(ask, places, limit=max_concurrency, name=f"{name}: runs", progress=progress)

    overall = _overall_items(runs, outputs, conversation_split) if include_overall else []
    parts = _items_by_agent(runs, agents, conversation_split) if include_per_agent else {}
    if not overall and not parts:
        msg = f"{name} has nothing to evaluate: no run has an output, and no agent answered."
        raise ValueError(msg)

    part_results = await asyncio.gather(
        *(score_items(items, chosen, f"{name}, {part}", resume_file) for part, items in parts.items())
    )
    empty = [EvalResults(provider=evaluator.name, eval_id="workflow", run_id=name) for evaluator in chosen]
    overall_results = await score_items(overall, chosen, name, resume_file) if overall else empty
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
    for turn in (turn for run in runs for turn in run.turns):
        tools = function_tools(agents[turn.executor_id])
        item = EvalItem([*turn.query, *turn.answer], tools, split_strategy=split)
        parts.setdefault(turn.executor_id, []).append(item)
    return parts


def _add_up(results: EvalResults) -> None:
    """Set the counts of an evaluation without items to the sums of its parts."""
    parts = list(results.sub_results.values())
    outcomes = ("passed", "failed", "errored")
    results.result_counts = {outcome: sum(getattr(part, outcome) for part in parts) for outcome in outcomes}
    if any(part.status != "completed" for part in parts):
        results.status = "partial"
