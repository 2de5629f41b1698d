"""The adapters by which the engine turns agents and similar objects into executors."""

from __future__ import annotations

from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
from agentbench.orchestrations.agent_executor import AgentExecutor
from agentbench.orchestrations.host_executor import AgentHostExecutor
from agentbench.workflows.builder.nodes import AgentMode
from agentbench.workflows.executors.executor import Executor


def agent_node(agent: SupportsAgentRun, *, agent_mode: AgentMode = "respond") -> Executor:
    """Return the node of an agent."""
    return AgentHostExecutor(agent) if agent_mode == "turns" else AgentExecutor(agent)
