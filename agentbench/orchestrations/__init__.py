"""Agents and workflows together: agents as nodes of workflows, workflows made of agents, and the patterns of both.

The patterns are found when they are first touched: a workflow with one agent loads none of them.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from agentbench._arguments import name_arguments
from agentbench.orchestrations.agent_executor import AgentExecutor, AgentExecutorRequest, AgentExecutorResponse
from agentbench.orchestrations.host_executor import AgentHostExecutor, AgentHostOptions, TurnToken, bind_as_executor
from agentbench.orchestrations.sequential import AgentWorkflowBuilder, build_sequential
from agentbench.orchestrations.workflow_agent import FunctionalWorkflowAgent, WorkflowAgent

if TYPE_CHECKING:
    from agentbench.orchestrations.patterns.concurrent_builder import ConcurrentBuilder as ConcurrentBuilder
    from agentbench.orchestrations.patterns.group_chat_builder import DEFAULT_ORCHESTRATOR_ID as DEFAULT_ORCHESTRATOR_ID
    from agentbench.orchestrations.patterns.group_chat_builder import GroupChatBuilder as GroupChatBuilder
    from agentbench.orchestrations.patterns.group_chat_manager import (
        AgentBasedGroupChatOrchestrator as AgentBasedGroupChatOrchestrator,
    )
    from agentbench.orchestrations.patterns.group_chat_manager import (
        AgentOrchestrationOutput as AgentOrchestrationOutput,
    )
    from agentbench.orchestrations.patterns.group_chat_messages import (
        GroupChatParticipantMessage as GroupChatParticipantMessage,
    )
    from agentbench.orchestrations.patterns.group_chat_messages import (
        GroupChatRequestMessage as GroupChatRequestMessage,
    )
    from agentbench.orchestrations.patterns.group_chat_messages import (
        GroupChatRequestSentEvent as GroupChatRequestSentEvent,
    )
    from agentbench.orchestrations.patterns.group_chat_messages import (
        GroupChatResponseMessage as GroupChatResponseMessage,
    )
    from agentbench.orchestrations.patterns.group_chat_messages import (
        GroupChatResponseReceivedEvent as GroupChatResponseReceivedEvent,
    )
    from agentbench.orchestrations.patterns.group_chat_messages import (
        GroupChatSelectionFunction as GroupChatSelectionFunction,
    )
    from agentbench.orchestrations.patterns.group_chat_messages import GroupChatState as GroupChatState
    from agentbench.orchestrations.patterns.group_chat_messages import OrchestrationState as OrchestrationState
    from agentbench.orchestrations.patterns.group_chat_messages import ParticipantRegistry as ParticipantRegistry
    from agentbench.orchestrations.patterns.group_chat_messages import TerminationCondition as TerminationCondition
    from agentbench.orchestrations.patterns.group_chat_orchestrator import (
        BaseGroupChatOrchestrator as BaseGroupChatOrchestrator,
    )
    from agentbench.orchestrations.patterns.group_chat_orchestrator import (
        GroupChatOrchestrator as GroupChatOrchestrator,
    )
    from agentbench.orchestrations.patterns.helpers import (
        clean_conversation_for_handoff as clean_conversation_for_handoff,
    )
    from agentbench.orchestrations.patterns.helpers import create_completion_message as create_completion_message
    from agentbench.orchestrations.patterns.magentic_builder import MagenticBuilder as MagenticBuilder
    from agentbench.orchestrations.patterns.magentic_manager import MagenticManagerBase as MagenticManagerBase
    from agentbench.orchestrations.patterns.magentic_manager import StandardMagenticManager as StandardMagenticManager
    from agentbench.orchestrations.patterns.magentic_messages import MAGENTIC_MANAGER_NAME as MAGENTIC_MANAGER_NAME
    from agentbench.orchestrations.patterns.magentic_messages import (
        ORCH_MSG_KIND_INSTRUCTION as ORCH_MSG_KIND_INSTRUCTION,
    )
    from agentbench.orchestrations.patterns.magentic_messages import ORCH_MSG_KIND_NOTICE as ORCH_MSG_KIND_NOTICE
    from agentbench.orchestrations.patterns.magentic_messages import (
        ORCH_MSG_KIND_TASK_LEDGER as ORCH_MSG_KIND_TASK_LEDGER,
    )
    from agentbench.orchestrations.patterns.magentic_messages import ORCH_MSG_KIND_USER_TASK as ORCH_MSG_KIND_USER_TASK
    from agentbench.orchestrations.patterns.magentic_messages import MagenticContext as MagenticContext
    from agentbench.orchestrations.patterns.magentic_messages import (
        MagenticOrchestratorEvent as MagenticOrchestratorEvent,
    )
    from agentbench.orchestrations.patterns.magentic_messages import (
        MagenticOrchestratorEventType as MagenticOrchestratorEventType,
    )
    from agentbench.orchestrations.patterns.magentic_messages import (
        MagenticPlanReviewRequest as MagenticPlanReviewRequest,
    )
    from agentbench.orchestrations.patterns.magentic_messages import (
        MagenticPlanReviewResponse as MagenticPlanReviewResponse,
    )
    from agentbench.orchestrations.patterns.magentic_messages import MagenticProgressLedger as MagenticProgressLedger
    from agentbench.orchestrations.patterns.magentic_messages import (
        MagenticProgressLedgerItem as MagenticProgressLedgerItem,
    )
    from agentbench.orchestrations.patterns.magentic_messages import MagenticResetSignal as MagenticResetSignal
    from agentbench.orchestrations.patterns.magentic_orchestrator import MagenticAgentExecutor as MagenticAgentExecutor
    from agentbench.orchestrations.patterns.magentic_orchestrator import MagenticOrchestrator as MagenticOrchestrator
    from agentbench.orchestrations.patterns.participant_executor import (
        AgentRequestInfoResponse as AgentRequestInfoResponse,
    )
    from agentbench.orchestrations.patterns.sequential_builder import SequentialBuilder as SequentialBuilder

_NAMES_OF = {
    "concurrent_builder": ("ConcurrentBuilder",),
    "group_chat_builder": (
        "DEFAULT_ORCHESTRATOR_ID",
        "GroupChatBuilder",
    ),
    "group_chat_manager": (
        "AgentBasedGroupChatOrchestrator",
        "AgentOrchestrationOutput",
    ),
    "group_chat_messages": (
        "GroupChatParticipantMessage",
        "GroupChatRequestMessage",
        "GroupChatRequestSentEvent",
        "GroupChatResponseMessage",
        "GroupChatResponseReceivedEvent",
        "GroupChatSelectionFunction",
        "GroupChatState",
        "OrchestrationState",
        "ParticipantRegistry",
        "TerminationCondition",
    ),
    "group_chat_orchestrator": (
        "BaseGroupChatOrchestrator",
        "GroupChatOrchestrator",
    ),
    "handoff_builder": ("HandoffBuilder",),
    "handoff_executor": ("HandoffAgentExecutor",),
    "handoff_messages": ("HandoffAgentUserRequest", "HandoffConfiguration", "HandoffSentEvent"),
    "helpers": (
        "clean_conversation_for_handoff",
        "create_completion_message",
    ),
    "magentic_builder": ("MagenticBuilder",),
    "magentic_manager": (
        "MagenticManagerBase",
        "StandardMagenticManager",
    ),
    "magentic_messages": (
        "MAGENTIC_MANAGER_NAME",
        "MagenticContext",
        "MagenticOrchestratorEvent",
        "MagenticOrchestratorEventType",
        "MagenticPlanReviewRequest",
        "MagenticPlanReviewResponse",
        "MagenticProgressLedger",
        "MagenticProgressLedgerItem",
        "MagenticResetSignal",
        "ORCH_MSG_KIND_INSTRUCTION",
        "ORCH_MSG_KIND_NOTICE",
        "ORCH_MSG_KIND_TASK_LEDGER",
        "ORCH_MSG_KIND_USER_TASK",
    ),
    "magentic_orchestrator": (
        "MagenticAgentExecutor",
        "MagenticOrchestrator",
    ),
    "participant_executor": ("AgentRequestInfoResponse",),
    "sequential_builder": ("SequentialBuilder",),
}
_MODULE_OF = {name: module for module, names in _NAMES_OF.items() for name in names}

__all__ = [
    *_MODULE_OF,
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


def __getattr__(name: str) -> Any:
    if name not in _MODULE_OF:
        msg = f"module {__name__!r} has no attribute {name!r}"
        raise AttributeError(msg)
    return name_arguments(getattr(import_module(f"{__name__}.patterns.{_MODULE_OF[name]}"), name))


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
