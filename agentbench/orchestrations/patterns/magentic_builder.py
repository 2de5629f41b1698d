"""`MagenticBuilder`: a team with a manager that plans and monitors the progress."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from agentbench.orchestrations.patterns.group_chat_messages import ParticipantRegistry
from agentbench.orchestrations.patterns.magentic_manager import (
    MagenticManagerBase,
    StandardMagenticManager,
    require_limits,
)
from agentbench.orchestrations.patterns.magentic_orchestrator import MagenticAgentExecutor, MagenticOrchestrator
from agentbench.orchestrations.patterns.participants import Participants
from agentbench.orchestrations.patterns.pattern_builder import PatternBuilder, require_names
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage

logger = logging.getLogger("agentbench")

DEFAULT_MAX_ROUND_COUNT = 100
DEFAULT_MAX_RESET_COUNT = 10

_UNSET: Any = object()


class MagenticBuilder(PatternBuilder):
    """Builds a workflow for a team whose manager plans, gives turns, monitors the progress, and replans without it.

    Args:
        participants: Agents with names, and executors that take the messages of group chats and `MagenticResetSignal`.
        manager: Your own manager.
        manager_factory: A function that creates one, called by each `build()`.
        manager_agent: The agent of a `StandardMagenticManager`.
        manager_agent_factory: A function that creates that agent.
        task_ledger, task_ledger_facts_prompt, task_ledger_plan_prompt, task_ledger_full_prompt: See
            `StandardMagenticManager`; only with an agent.
        task_ledger_facts_update_prompt, task_ledger_plan_update_prompt: As above.
        progress_ledger_prompt, final_answer_prompt: As above.
        max_stall_count: Number of turns without progress before replanning; only with an agent, like the ones above.
        max_reset_count: Maximum number of new plans; by default 10, `None` for no limit.
        max_round_count: Maximum number of turns; by default 100, `None` for no limit.
        enable_plan_review: Whether a person is asked about each plan.
        checkpoint_storage: The default storage for the checkpoints of runs.
        output_from: Participants, or their ids, whose answers are outputs besides the last message; or `"all"`.
        intermediate_output_from: Participants whose answers are intermediate outputs; or `"all"` or `"all_other"`.
        name: The name of the workflow.

    Raises:
        TypeError: A participant is neither an agent nor an executor.
        ValueError: There are no participants, one has no name, an id appears twice, or there are two managers.

    Example:
        >>> builder = MagenticBuilder(participants=[searcher, writer], manager_agent=boss).with_plan_review()
        >>> result = await builder.build().run("Which bridges of Bergen are older than 1900?")
        >>> (request,) = result.get_request_info_events()
        >>> result = await workflow.run(responses={request.request_id: request.data.approve()})
    """

    def __init__(  # noqa: PLR0913 - the published signature
        self,
        *,
        participants: Sequence[Any],
        manager: MagenticManagerBase | None = None,
        manager_factory: Callable[[], MagenticManagerBase] | None = None,
        manager_agent: Any = None,
        manager_agent_factory: Callable[[], Any] | None = None,
        task_ledger: Any = None,
        task_ledger_facts_prompt: str | None = None,
        task_ledger_plan_prompt: str | None = None,
        task_ledger_full_prompt: str | None = None,
        task_ledger_facts_update_prompt: str | None = None,
        task_ledger_plan_update_prompt: str | None = None,
        progress_ledger_prompt: str | None = None,
        final_answer_prompt: str | None = None,
        max_stall_count: int = _UNSET,
        max_reset_count: int | None = _UNSET,
        max_round_count: int | None = _UNSET,
        enable_plan_review: bool = False,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        output_from: Any = None,
        intermediate_output_from: Any = None,
        name: str | None = None,
    ) -> None:
        super().__init__(checkpoint_storage, output_from, intermediate_output_from, name)
        sources = [manager, manager_factory, manager_agent, manager_agent_factory]
        if sum(source is not None for source in sources) > 1:
            msg = "Pass only one of manager=, manager_factory=, manager_agent= and manager_agent_factory=."
            raise ValueError(msg)
        self._manager, self._manager_factory, self._agent, self._agent_factory = sources
        self._settings = {
            "task_ledger": task_ledger,
            "task_ledger_facts_prompt": task_ledger_facts_prompt,
            "task_ledger_plan_prompt": task_ledger_plan_prompt,
            "task_ledger_full_prompt": task_ledger_full_prompt,
            "task_ledger_facts_update_prompt": task_ledger_facts_update_prompt,
            "task_ledger_plan_update_prompt": task_ledger_plan_update_prompt,
            "progress_ledger_prompt": progress_ledger_prompt,
            "final_answer_prompt": final_answer_prompt,
        }
        limits: dict[str, Any] = {
            "max_stall_count": max_stall_count, "max_reset_count": max_reset_count, "max_round_count": max_round_count,
        }  # fmt: skip
        self._settings = {key: value for key, value in self._settings.items() if value is not None}
        limits = {key: value for key, value in limits.items() if value is not _UNSET}
        require_limits(**limits)
        self._settings |= limits
        if self._settings and (manager or manager_factory):
            logger.warning("A custom manager has its own settings; %s has no effect.", ", ".join(self._settings))
        self._members = list(participants)
        self._reviews_plans = enable_plan_review
        self._participants()  # raises for invalid participants

    def with_plan_review(self, enable: bool = True) -> Self:
        """Ask a person about each plan, by a request with a `MagenticPlanReviewRequest`."""
        self._reviews_plans = enable
        return self

    def _participants(self) -> Participants:
        require_names(self._members)
        return Participants(self._members, MagenticAgentExecutor)

    def build(self) -> Workflow:
        """Return a new workflow with new nodes.

        Raises:
            ValueError: The manager is missing, or an unknown participant is named.
        """
        participants = self._participants()
        manager = self._make_manager()
        registry = ParticipantRegistry(participants.nodes)
        orchestrator = MagenticOrchestrator(manager, registry, require_plan_signoff=self._reviews_plans)
        max_iterations = 100 if manager.max_round_count is None else 100_000  # then the number of turns limits it
        builder = self._begin(orchestrator, participants, always=[orchestrator], max_iterations=max_iterations)
        for node in participants.nodes:
            builder.add_edge(orchestrator, node).add_edge(node, orchestrator)
        return builder.build()

    def _make_manager(self) -> MagenticManagerBase:
        if self._manager is not None or self._manager_factory is not None:
            manager: MagenticManagerBase = self._manager or self._manager_factory()
            return manager
        agent = self._agent if self._agent_factory is None else self._agent_factory()
        if agent is None:
            msg = "A Magentic team needs a manager: manager_agent=, manager=, or a factory of one."
            raise ValueError(msg)
        defaults = {"max_reset_count": DEFAULT_MAX_RESET_COUNT, "max_round_count": DEFAULT_MAX_ROUND_COUNT}
        return StandardMagenticManager(agent, **(defaults | self._settings))
