"""The work of a Magentic team: plan, give turns, judge the progress, replan if there is none, answer."""

from __future__ import annotations

import copy
import logging
from collections.abc import Sequence
from typing import Any, ClassVar, Self

from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.orchestrations.agent_executor import AgentExecutorRequest
from agentbench.orchestrations.patterns.group_chat_messages import (
    GroupChatParticipantMessage,
    GroupChatRequestMessage,
    GroupChatRequestSentEvent,
    ParticipantRegistry,
)
from agentbench.orchestrations.patterns.group_chat_orchestrator import BaseGroupChatOrchestrator, OrchestratorContext
from agentbench.orchestrations.patterns.magentic_manager import MagenticManagerBase
from agentbench.orchestrations.patterns.magentic_messages import (
    MAGENTIC_MANAGER_NAME,
    MagenticContext,
    MagenticOrchestratorEvent,
    MagenticOrchestratorEventType,
    MagenticPlanReviewRequest,
    MagenticPlanReviewResponse,
    MagenticProgressLedger,
    MagenticResetSignal,
)
from agentbench.orchestrations.patterns.participants import ParticipantExecutor
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.handlers import handler, response_handler

logger = logging.getLogger("agentbench")

_MOST_RESETS_IN_A_ROW = 10

MagenticContextOfRun = WorkflowContext[
    AgentExecutorRequest | GroupChatRequestMessage | GroupChatParticipantMessage | MagenticResetSignal,
    AgentResponse,
]


class MagenticAgentExecutor(ParticipantExecutor):
    """A node with an agent of a Magentic team; it clears its conversation when there is a new plan.

    Args:
        agent: The agent.

    Example:
        from agentbench.orchestrations import MagenticAgentExecutor

        node = MagenticAgentExecutor(researcher)
    """

    signature_key: ClassVar[str | None] = "MagenticAgentExecutor"

    def __init__(self, agent: Any) -> None:
        super().__init__(agent)

    @handler
    async def from_reset(self, signal: MagenticResetSignal, ctx: WorkflowContext[Any]) -> None:
        """Start over, with a new session."""
        self.reset()
        vars(self.session).clear()  # in place, because other nodes may share it
        vars(self.session).update(vars(self.agent.create_session()))


class MagenticOrchestrator(BaseGroupChatOrchestrator):
    """Leads a team by a manager that plans, instructs one participant after the other, and judges the progress.

    Args:
        manager: The manager.
        participant_registry: The participants.
        require_plan_signoff: Whether a person is asked about each plan.

    Example:
        from agentbench.orchestrations import MagenticBuilder

        builder = MagenticBuilder(participants=[researcher, writer], manager_agent=planner)
        workflow = builder.build()  # its start is a MagenticOrchestrator
    """

    signature_key: ClassVar[str | None] = "MagenticOrchestrator"

    MANAGER_NAME: ClassVar[str] = MAGENTIC_MANAGER_NAME
    """The name under which the orchestrator speaks."""

    def __init__(
        self,
        manager: MagenticManagerBase,
        participant_registry: ParticipantRegistry,
        *,
        require_plan_signoff: bool = False,
    ) -> None:
        self.manager, self.require_plan_signoff = manager, require_plan_signoff
        super().__init__("magentic_orchestrator", participant_registry, name=self.MANAGER_NAME)

    @property
    def asks_person(self) -> bool:
        """Whether a person is asked about plans."""
        return self.require_plan_signoff

    def begin(self, messages: Sequence[Message]) -> None:
        """Begin a task."""
        super().begin(messages)
        self.terminated = False
        self.context = MagenticContext("")
        self.plan: Message | None = None
        self.progress: MagenticProgressLedger | None = None

    async def choose(self, ctx: OrchestratorContext) -> Message:
        """Not used: the manager chooses in its own loop."""
        raise NotImplementedError

    # ---- the plan --------------------------------------------------------------------------------

    async def _ab_start(self, messages: list[Message], ctx: Any) -> None:
        if self.terminated:
            msg = "This team has finished its task. Begin another in a new run: workflow.start(...), or build() again."
            raise RuntimeError(msg)
        if len(messages) != 1 or not messages[0].text.strip():
            msg = f"A Magentic team takes one task, as one message with text; got {len(messages)} messages."
            raise ValueError(msg)
        self.begin(messages)
        descriptions = dict(self.participant_registry.participants)
        self.context = MagenticContext(messages[0].text, participant_descriptions=descriptions)
        plan = await self.manager.plan(self.context)
        await self._ab_propose(plan, MagenticOrchestratorEventType.PLAN_CREATED, ctx)

    async def _ab_propose(
        self, plan: Message, kind: MagenticOrchestratorEventType, ctx: Any, *, is_stalled: bool = False
    ) -> None:
        self.plan = plan
        await self._ab_report(MagenticOrchestratorEvent(kind, plan), ctx, "magentic_orchestrator")
        if self.require_plan_signoff:
            request = MagenticPlanReviewRequest(plan, self.progress, is_stalled)
            await ctx.request_info(request, MagenticPlanReviewResponse)
        else:
            await self._ab_work_on(plan, ctx)

    @response_handler
    async def from_review(
        self, request: MagenticPlanReviewRequest, response: MagenticPlanReviewResponse, ctx: MagenticContextOfRun
    ) -> None:
        """Work on an approved plan, or replan."""
        if not response.review:
            await self._ab_work_on(request.plan, ctx)
            return
        self.context.chat_history += [request.plan, *response.review]
        plan = await self.manager.replan(self.context)
        await self._ab_propose(plan, MagenticOrchestratorEventType.REPLANNED, ctx, is_stalled=request.is_stalled)

    async def _ab_work_on(self, plan: Message, ctx: Any) -> None:
        """Send the task and the plan to all participants, and begin."""
        self.context.chat_history.append(plan)
        await self._ab_broadcast([Message("user", [self.context.task]), plan], ctx)
        await self._ab_give_turns(ctx)

    # ---- the work --------------------------------------------------------------------------------

    async def _ab_take_answer(self, author: str, messages: Sequence[Message], ctx: Any) -> None:
        texts = await self._ab_add_answer(author, messages, ctx)
        self.context.chat_history += texts
        await self._ab_broadcast(texts, ctx, author)
        await self._ab_give_turns(ctx)

    async def _ab_give_turns(self, ctx: Any) -> None:
        """Judge the progress; then give the turn, replan, or answer."""
        context, manager = self.context, self.manager
        if manager.max_round_count is not None and context.round_count >= manager.max_round_count:
            await self.end(self.MAX_ROUNDS_MET_MESSAGE, ctx)
            return
        context.round_count += 1
        try:
            self.progress = progress = await manager.create_progress_ledger(context)
        except Exception:
            if context.reset_count >= _MOST_RESETS_IN_A_ROW and context.round_count == context.reset_count + 1:
                raise  # it has never succeeded, so a new plan does not help
            logger.warning("The progress of a Magentic team cannot be determined; it makes a new plan.", exc_info=True)
            await self._ab_plan_anew(ctx)
            return
        kind = MagenticOrchestratorEventType.PROGRESS_LEDGER_UPDATED
        await self._ab_report(MagenticOrchestratorEvent(kind, progress), ctx, "magentic_orchestrator")
        if progress.is_request_satisfied.answer:
            await self._ab_answer_task(ctx)
            return
        is_stalled = not progress.is_progress_being_made.answer or bool(progress.is_in_loop.answer)
        context.stall_count = context.stall_count + 1 if is_stalled else max(0, context.stall_count - 1)
        if context.stall_count > manager.max_stall_count:
            await self._ab_plan_anew(ctx)
            return
        speaker, participants = progress.next_speaker.answer, self.participant_registry.participants
        if not isinstance(speaker, str):
            speaker = next(iter(participants))
        if speaker not in participants:
            logger.warning(
                "The manager of a Magentic team names %r, who is not a participant; the task is answered now.", speaker
            )
            await self._ab_answer_task(ctx)
            return
        instruction = str(progress.instruction_or_question.answer)
        context.chat_history.append(Message("assistant", [instruction], author_name=self.name))
        self.round_index += 1
        await self._ab_report(GroupChatRequestSentEvent(self.round_index, speaker, progress.next_speaker.reason), ctx)
        await self._ab_give_turn(speaker, ctx, instruction)

    async def _ab_plan_anew(self, ctx: Any) -> None:
        context, limit = self.context, self.manager.max_reset_count
        if limit is not None and context.reset_count >= limit:
            await self.end(
                f"The plan was made anew {context.reset_count} times, and max_reset_count allows no more.", ctx
            )
            return
        context.reset()
        for name in self.participant_registry.participants:
            await ctx.send_message(MagenticResetSignal(), name)
        plan = await self.manager.replan(context)
        await self._ab_propose(plan, MagenticOrchestratorEventType.REPLANNED, ctx, is_stalled=True)

    async def _ab_answer_task(self, ctx: Any) -> None:
        answer = await self.manager.prepare_final_answer(self.context)
        self.conversation.append(answer)
        self.terminated = True
        await ctx.yield_output(AgentResponse(messages=[answer]))

    async def end(self, text: str, ctx: Any) -> None:
        """End the work at a limit."""
        self.terminated = True
        await super().end(text, ctx)

    # ---- runs and checkpoints --------------------------------------------------------------------

    def fresh(self) -> Self:
        """Return the orchestrator before a task, with a manager in its initial state."""
        clone = super().fresh()
        clone.manager = copy.copy(self.manager)
        clone.manager.on_checkpoint_restore({})
        return clone

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Return the work up to now: task, history, plan, progress, and the state of the manager."""
        return {
            **await super().on_checkpoint_save(),
            "terminated": self.terminated,
            "magentic_context": self.context.to_dict(),
            "task_ledger": self.plan,
            "progress_ledger": None if self.progress is None else self.progress.to_dict(),
            "manager_state": self.manager.on_checkpoint_save(),
        }

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Restore the result of `on_checkpoint_save`."""
        await super().on_checkpoint_restore(state)
        self.terminated, self.plan = state["terminated"], state["task_ledger"]
        self.context = MagenticContext.from_dict(state["magentic_context"])
        progress = state["progress_ledger"]
        self.progress = None if progress is None else MagenticProgressLedger.from_dict(progress)
        self.manager.on_checkpoint_restore(state["manager_state"])
