"""An agent's answers to many queries, scored."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from agentbench.evaluation.checks import EvalCheck
from agentbench.evaluation.inputs import as_list, function_tools, per_query, repeat, repeated_keys
from agentbench.evaluation.items import ConversationSplitter, EvalItem, ExpectedToolCall
from agentbench.evaluation.local import Evaluator
from agentbench.evaluation.map_items import map_items
from agentbench.evaluation.results import EvalResults
from agentbench.evaluation.resume_file import Path, ResumeFile
from agentbench.evaluation.scoring import as_evaluators, score_items
from agentbench.messages.inputs import AgentRunInputs, normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse


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
    """Run an agent on queries, each without a session, and score its answers; or score answers that are there.

    If a run raises, its item is an error, and the others continue.

    Args:
        agent: The agent. It is not needed for answers that are there.
        queries: One query or many.
        expected_output: The right answer to each query, for checks that compare.
        expected_tool_calls: A list of tool calls for each query; a flat list is that of one query.
        responses: Answers that are there, one for each query; nothing is run.
        evaluators: An evaluator or a check, or several; checks beside each other form one `LocalEvaluator`.
        eval_name: Name of this evaluation; with several evaluators the name of each is appended.
        context: Background for checks.
        conversation_split: Where query and response are cut.
        num_repetitions: How often all queries are run.
        max_concurrency: Most queries that run at once.
        resume_file: A file that gets each answer, and the scores of local evaluators, as they are there. What is in
            it is not run again, errors are; delete it for a fresh evaluation.
        progress: Whether there is a progress bar; by default in notebooks.

    Returns:
        The results of each evaluator, in order.

    Raises:
        ValueError: There is nothing to evaluate, `queries` come without `agent` or `responses`, or numbers of values
            differ.
        TypeError: An evaluator is neither an evaluator nor a check.

    Example:
        >>> checks = [keyword_check("paris")]
        >>> [results] = await evaluate_agent(agent=agent, queries="Capital of France?", evaluators=checks)
        >>> results.raise_for_status()
    """
    chosen = as_evaluators(evaluators, progress)
    asked = [] if queries is None else as_list(queries, (str, Message))
    answers = None if responses is None else as_list(responses, (str, AgentResponse))
    if not asked:
        msg = "evaluate_agent() has nothing to evaluate: it needs queries=, also with responses=."
        raise ValueError(msg)
    if answers is None and agent is None:
        msg = "queries= need agent= to answer them, or responses= with the answers."
        raise ValueError(msg)
    outputs = per_query("expected_output", None if expected_output is None else as_list(expected_output, (str,)), asked)
    calls = per_query("expected_tool_calls", _call_lists(expected_tool_calls), asked)

    def make_item(index: int, given: Sequence[Message], error: Exception | None = None) -> EvalItem:
        conversation = [*normalize_messages(asked[index]), *given]
        return EvalItem(conversation, None, context, outputs[index], calls[index], conversation_split, error)

    if answers is not None:
        answers = per_query("responses", answers, asked)
        items = [
            make_item(index, [Message("assistant", [answer])] if isinstance(answer, str) else answer.messages)
            for index, answer in enumerate(answers)
        ]
    else:
        name, stored = getattr(agent, "name", None), ResumeFile(resume_file)

        async def ask(place: tuple[int, str]) -> EvalItem:
            index, key = place
            if known := stored.get(key):
                return make_item(index, [Message.from_dict(each) for each in known])
            try:
                response = await agent.run(asked[index])
            except Exception as error:  # noqa: BLE001 - the others continue, and the results name it
                return make_item(index, (), error)
            stored.put(key, [each.to_dict() for each in response.messages])
            return make_item(index, response.messages)

        keys = repeated_keys("answer", name, repeat(asked, num_repetitions))
        places = [(place % len(asked), key) for place, key in enumerate(keys)]
        label = eval_name or name or "Agent"
        items = await map_items(ask, places, limit=max_concurrency, name=f"{label}: answers", progress=progress)
    tools = [] if agent is None else function_tools(agent)  # its servers are connected by now
    for item in items:
        item.tools = tools
    eval_name = eval_name or f"Eval: {getattr(agent, 'name', None) or 'agent'}"
    return await score_items(items, chosen, eval_name, resume_file)


def _call_lists(given: Any) -> list[list[ExpectedToolCall]] | None:
    if given is None:
        return None
    calls = as_list(given, (ExpectedToolCall,))
    return [calls] if calls and all(isinstance(each, ExpectedToolCall) for each in calls) else calls
