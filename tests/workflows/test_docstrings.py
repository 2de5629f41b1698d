"""The examples in the docstrings of public classes run as they are written."""

import ast
import doctest
import inspect
from typing import Any, Never

import pytest

import agentbench
from agentbench import Agent, EchoChatClient
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.function_executor import FunctionExecutor
from agentbench.workflows.graph.edge_groups import SingleEdgeGroup

NAMES = (
    *("Executor", "handler", "response_handler", "executor", "FunctionExecutor", "RequestInfoMixin", "Approval"),
    *("ExecutorPolicy", "RunOptions", "WorkflowBuilder", "Case", "Default", "Edge", "EdgeGroup", "SingleEdgeGroup"),
    *("FanOutEdgeGroup", "FanInEdgeGroup", "SwitchCaseEdgeGroup", "SwitchCaseEdgeGroupCase", "InternalEdgeGroup"),
    *("SwitchCaseEdgeGroupDefault", "WorkflowGraphValidator", "validate_workflow_graph", "WorkflowViz"),
    *("WorkflowEvent", "WorkflowEventType", "WorkflowEventSource", "WorkflowRunState", "WorkflowErrorDetails"),
    *("SuperstepCompletionInfo", "AgentExecutor", "AgentExecutorRequest", "AgentExecutorResponse"),
    *("AgentHostExecutor", "AgentHostOptions", "TurnToken", "build_sequential", "bind_as_executor"),
    *("AgentWorkflowBuilder", "WorkflowExecutor", "SubWorkflowRequestMessage", "WorkflowAgent", "workflow", "step"),
    *("FunctionalWorkflowAgent", "FunctionalWorkflow", "StepWrapper", "RunContext", "get_run_context"),
)
PUBLIC = {name: getattr(each, name) for each in (agentbench, agentbench.orchestrations) for name in each.__all__}
# What the examples speak of without making it.
NODES = (
    "classify upper show reader archive inbox question search database report read summarise publish draft check a b"
)


def node(key: str) -> FunctionExecutor:
    return FunctionExecutor(lambda message: None, key, input=Any, output=Any, workflow_output=Any)


def blocks(name: str) -> list[str]:
    """The code in the docstrings of an object and of its methods."""
    found = PUBLIC[name]
    members = [found, *filter(inspect.isfunction, vars(found).values())] if inspect.isclass(found) else [found]
    docs = [inspect.getdoc(member) or "" for member in members]
    examples = map(doctest.DocTestParser().get_examples, docs)
    return ["".join(statement.source for statement in example) for example in examples if example]


@pytest.mark.parametrize("name", NAMES)
async def test_the_examples_of_a_public_object_run(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert blocks(name)
    for block in blocks(name):
        flow = WorkflowBuilder(start_executor=node("only")).build()
        names = {
            **PUBLIC,
            **{each: node(each) for each in NODES.split()},
            **{name: Agent(EchoChatClient(), name=name) for name in ("french", "spanish", "writer", "reviewer")},
            "Never": Never,
            "builder": WorkflowBuilder(start_executor=node("start")),
            **({"workflow": flow} if "@workflow" not in block else {}),
            "result": await flow.run("x"),
            "storage": agentbench.InMemoryCheckpointStorage(),
            "error": KeyError("k"),
            "groups": [SingleEdgeGroup("a", "b")],
        }
        code = compile(block, f"<example of {name}>", "exec", flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        waiting = eval(code, names)
        if waiting is not None:
            await waiting
