# Typed stub of the lazy names; written by tests/tools/write_stub.py, not by hand.

from agentbench._lazy import Door
from agentbench.evaluation.agents import evaluate_agent as evaluate_agent
from agentbench.evaluation.checks import CheckResult as CheckResult
from agentbench.evaluation.checks import EvalCheck as EvalCheck
from agentbench.evaluation.checks import evaluator as evaluator
from agentbench.evaluation.checks import keyword_check as keyword_check
from agentbench.evaluation.checks import tool_call_args_match as tool_call_args_match
from agentbench.evaluation.checks import tool_called_check as tool_called_check
from agentbench.evaluation.checks import tool_calls_present as tool_calls_present
from agentbench.evaluation.comparison import EvalComparison as EvalComparison
from agentbench.evaluation.comparison import ItemChange as ItemChange
from agentbench.evaluation.comparison import compare_evaluations as compare_evaluations
from agentbench.evaluation.converter import AgentEvalConverter as AgentEvalConverter
from agentbench.evaluation.items import ConversationSplit as ConversationSplit
from agentbench.evaluation.items import ConversationSplitter as ConversationSplitter
from agentbench.evaluation.items import EvalItem as EvalItem
from agentbench.evaluation.items import ExpectedToolCall as ExpectedToolCall
from agentbench.evaluation.local import Evaluator as Evaluator
from agentbench.evaluation.local import LocalEvaluator as LocalEvaluator
from agentbench.evaluation.results import EvalItemResult as EvalItemResult
from agentbench.evaluation.results import EvalResults as EvalResults
from agentbench.evaluation.results import EvalScoreResult as EvalScoreResult
from agentbench.evaluation.results import RubricScore as RubricScore
from agentbench.evaluation.workflows import evaluate_workflow as evaluate_workflow
from agentbench.exceptions import EvalNotPassedError as EvalNotPassedError
from agentbench.exceptions import RunFailedError as RunFailedError

_door: Door
__all__: list[str]
