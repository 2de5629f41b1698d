"""Agents and workflows together: agents as nodes of workflows, and workflows made of agents."""

from agentbench.orchestrations.agent_executor import AgentExecutor, AgentExecutorRequest, AgentExecutorResponse

__all__ = ["AgentExecutor", "AgentExecutorRequest", "AgentExecutorResponse"]
