"""Agents and workflows together: agents as nodes of workflows, and workflows made of agents."""

from agentbench.orchestrations.agent_executor import AgentExecutor, AgentExecutorRequest, AgentExecutorResponse
from agentbench.orchestrations.host_executor import AgentHostExecutor, AgentHostOptions, TurnToken, bind_as_executor
from agentbench.orchestrations.sequential import AgentWorkflowBuilder, build_sequential
from agentbench.orchestrations.workflow_agent import FunctionalWorkflowAgent, WorkflowAgent

__all__ = [
    "AgentExecutor",
    "AgentExecutorRequest",
    "AgentExecutorResponse",
    "AgentHostExecutor",
    "AgentHostOptions",
    "AgentWorkflowBuilder",
    "FunctionalWorkflowAgent",
    "TurnToken",
    "WorkflowAgent",
    "bind_as_executor",
    "build_sequential",
]
