"""`GroupChatBuilder`: a conversation with a speaker selection."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Self

from agentbench._limits import require_limit
from agentbench.orchestrations.patterns.group_chat_messages import (
    GroupChatSelectionFunction,
    ParticipantRegistry,
    TerminationCondition,
)
from agentbench.orchestrations.patterns.group_chat_orchestrator import (
    BaseGroupChatOrchestrator,
    GroupChatOrchestrator,
)
from agentbench.orchestrations.patterns.participants import ParticipantExecutor, Participants
from agentbench.orchestrations.patterns.pattern_builder import ReviewedPatternBuilder, require_names
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage

logger = logging.getLogger("agentbench")

DEFAULT_ORCHESTRATOR_ID = "group_chat_orchestrator"
DEFAULT_MAX_ROUNDS = 40

_UNSET: Any = object()


class GroupChatBuilder(ReviewedPatternBuilder):
    """Builds a workflow in which participants talk, and an orchestrator (a function or an agent) selects the speaker.

    All participants receive all messages, as texts. The last message is the output.

    Args:
        participants: Agents with names, and executors that take the messages of group chats.
        participant_factories: Functions that create the participants, called by each `build()`.
        orchestrator_agent: An agent that selects the speaker; or a function that creates one.
        orchestrator: Your own orchestrator; or a function of a `ParticipantRegistry` that creates one.
        selection_func: A function of a `GroupChatState` that returns the name of the next speaker.
        orchestrator_name: The author of the last message.
        termination_condition: A condition that ends the conversation.
        max_rounds: Maximum number of turns: by default 40 unless there is a condition; `None` for no limit.
        checkpoint_storage: The default storage for the checkpoints of runs.
        output_from: Participants, or their ids, whose answers are outputs besides the last message; or `"all"`.
        intermediate_output_from: Participants whose answers are intermediate outputs; or `"all"` or `"all_other"`.
        retry_attempts: How often a selecting agent is asked again after an unusable answer; by default twice.
        name: The name of the workflow.

    Raises:
        TypeError: A participant is neither an agent nor an executor.
        ValueError: There are no participants, two kinds of them or of orchestrators, an agent without a name, or an id
            that appears twice.

    Example:
        >>> def in_turn(state):
        ...     return [*state.participants][state.current_round % len(state.participants)]
        >>> workflow = GroupChatBuilder(participants=[ada, bob], selection_func=in_turn, max_rounds=4).build()
    """

    def __init__(  # noqa: PLR0913 - the published signature
        self,
        *,
        participants: Sequence[Any] | None = None,
        participant_factories: Sequence[Callable[[], Any]] | None = None,
        orchestrator_agent: Any = None,
        orchestrator: Any = None,
        selection_func: GroupChatSelectionFunction | None = None,
        orchestrator_name: str | None = None,
        termination_condition: TerminationCondition | None = None,
        max_rounds: int | None = _UNSET,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        output_from: Any = None,
        intermediate_output_from: Any = None,
        retry_attempts: int | None = None,
        name: str | None = None,
    ) -> None:
        super().__init__(checkpoint_storage, output_from, intermediate_output_from, name)
        if (participants is None) == (participant_factories is None):
            msg = "Pass either participants= or participant_factories=."
            raise ValueError(msg)
        sources = [orchestrator_agent, orchestrator, selection_func]
        if sum(source is not None for source in sources) > 1:
            msg = "Pass only one of orchestrator_agent=, orchestrator= and selection_func=."
            raise ValueError(msg)
        self._members = None if participants is None else list(participants)
        self._factories = list(participant_factories or ())
        self._agent, self._orchestrator, self._function = sources
        require_limit("retry_attempts", retry_attempts, none="2")
        self._orchestrator_name, self._retries = orchestrator_name, retry_attempts
        self._condition, self._max_rounds = termination_condition, max_rounds
        if max_rounds is not _UNSET:
            self.with_max_rounds(max_rounds)
        if self._members is not None:
            self._participants(self._members)  # raises for invalid participants

    def with_termination_condition(self, termination_condition: TerminationCondition) -> Self:
        """Set a condition that ends the conversation."""
        self._condition = termination_condition
        return self

    def with_max_rounds(self, max_rounds: int | None) -> Self:
        """Set the maximum number of turns; `None` for no limit."""
        require_limit("max_rounds", max_rounds, least=1, none="any number")
        self._max_rounds = max_rounds
        return self

    def _participants(self, participants: Sequence[Any]) -> Participants:
        require_names(participants)
        return Participants(participants, lambda agent: ParticipantExecutor(agent, reviewed=self._is_reviewed(agent)))

    def build(self) -> Workflow:
        """Return a new workflow with new nodes.

        Raises:
            ValueError: The orchestrator is missing, or an unknown participant is named.
            TypeError: A factory returned an object of the wrong type.
        """
        participants = self._participants(
            [factory() for factory in self._factories] if self._members is None else self._members
        )
        self._check_review(participants)
        orchestrator = self._make_orchestrator(ParticipantRegistry(participants.nodes))
        max_iterations = 100_000  # the number of turns limits it
        builder = self._begin(orchestrator, participants, always=[orchestrator], max_iterations=max_iterations)
        for node in participants.nodes:
            builder.add_edge(orchestrator, node).add_edge(node, orchestrator)
        return builder.build()

    def _make_orchestrator(self, registry: ParticipantRegistry) -> BaseGroupChatOrchestrator:
        limits: dict[str, Any] = {"max_rounds": self._limit(), "termination_condition": self._condition}
        if self._function is not None:
            return GroupChatOrchestrator(
                DEFAULT_ORCHESTRATOR_ID, registry, self._function, name=self._orchestrator_name, **limits
            )
        if self._agent is not None:
            from agentbench.orchestrations.patterns.group_chat_manager import (  # noqa: PLC0415 - it loads pydantic
                AgentBasedGroupChatOrchestrator,
            )

            agent = self._agent if hasattr(self._agent, "create_session") else self._agent()
            if not hasattr(agent, "create_session"):
                msg = f"orchestrator_agent returned {agent!r}; expected an agent."
                raise TypeError(msg)
            return AgentBasedGroupChatOrchestrator(
                agent, registry, name=self._orchestrator_name, retry_attempts=self._retries, **limits
            )
        made = self._orchestrator
        if made is None:
            msg = "A group chat needs a speaker selection: selection_func=, orchestrator_agent= or orchestrator=."
            raise ValueError(msg)
        if not isinstance(made, BaseGroupChatOrchestrator):
            made = made(registry)
        if not isinstance(made, BaseGroupChatOrchestrator):
            msg = f"orchestrator returned {made!r}; expected a BaseGroupChatOrchestrator."
            raise TypeError(msg)
        if self._condition is not None or self._max_rounds is not _UNSET:
            logger.warning("A custom orchestrator has its own limits; those of the builder have no effect.")
        return made

    def _limit(self) -> int | None:
        if self._max_rounds is not _UNSET:
            return self._max_rounds
        if self._condition is not None:
            return None
        logger.info("The group chat ends after %d turns; with_max_rounds() changes that.", DEFAULT_MAX_ROUNDS)
        return DEFAULT_MAX_ROUNDS
