"""Agents and workflows together: agents as nodes of workflows, workflows made of agents, and orchestration patterns.

A workflow with one agent imports none of the patterns.
"""

from agentbench._lazy import Door

_door = Door(
    globals(),
    """
    agent_executor: AgentExecutor AgentExecutorCheckpointState AgentExecutorRequest AgentExecutorResponse
    host_executor: AIAgentHostExecutor=AgentHostExecutor AIAgentHostOptions=AgentHostOptions AgentHostExecutor
        AgentHostOptions TurnToken bind_as_executor
    patterns.concurrent_builder: ConcurrentBuilder
    patterns.group_chat_builder: DEFAULT_ORCHESTRATOR_ID GroupChatBuilder
    patterns.group_chat_manager: AgentBasedGroupChatOrchestrator AgentOrchestrationOutput
    patterns.group_chat_messages: GroupChatParticipantMessage GroupChatRequestMessage GroupChatRequestSentEvent
        GroupChatResponseMessage GroupChatResponseReceivedEvent GroupChatSelectionFunction GroupChatState
        OrchestrationState ParticipantRegistry TerminationCondition
    patterns.group_chat_orchestrator: BaseGroupChatOrchestrator GroupChatOrchestrator
    patterns.handoff_builder: HandoffBuilder
    patterns.handoff_executor: HandoffAgentExecutor HandoffAgentUserRequest HandoffConfiguration
        HandoffSentEvent
    patterns.pattern_builder: clean_conversation_for_handoff create_completion_message
    patterns.magentic_builder: MagenticBuilder
    patterns.magentic_manager: MagenticManagerBase StandardMagenticManager
    patterns.magentic_messages: MAGENTIC_MANAGER_NAME MagenticContext MagenticOrchestratorEvent
        MagenticOrchestratorEventType MagenticPlanReviewRequest MagenticPlanReviewResponse
        MagenticProgressLedger MagenticProgressLedgerItem MagenticResetSignal ORCH_MSG_KIND_INSTRUCTION
        ORCH_MSG_KIND_NOTICE ORCH_MSG_KIND_TASK_LEDGER ORCH_MSG_KIND_USER_TASK
    patterns.magentic_orchestrator: MagenticAgentExecutor MagenticOrchestrator
    patterns.participants: AgentRequestInfoResponse
    patterns.sequential_builder: AgentWorkflowBuilder SequentialBuilder build_sequential
    functional_agent: FunctionalWorkflowAgent
    workflow_agent: WorkflowAgent
    """,
)
__all__ = _door.names
__getattr__, __dir__ = _door.load, _door.listing
