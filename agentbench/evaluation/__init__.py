"""Evaluation of agents and workflows: items, checks, evaluators and results."""

from agentbench._lazy import Door

_door = Door(
    globals(),
    """
    agentbench.exceptions: EvalNotPassedError RunFailedError
    checks: CheckResult EvalCheck evaluator keyword_check tool_call_args_match tool_called_check
        tool_calls_present
    comparison: EvalComparison ItemChange compare_evaluations
    converter: AgentEvalConverter
    agents: evaluate_agent
    workflows: evaluate_workflow
    items: ConversationSplit ConversationSplitter EvalItem ExpectedToolCall
    local: Evaluator LocalEvaluator
    results: EvalItemResult EvalResults EvalScoreResult RubricScore
    """,
)
__all__ = _door.names
__getattr__, __dir__ = _door.load, _door.listing
