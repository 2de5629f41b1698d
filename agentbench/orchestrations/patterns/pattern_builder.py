"""The common base of pattern builders."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Self

from agentbench.orchestrations.patterns.participants import Participants

if TYPE_CHECKING:
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage


class PatternBuilder:
    """The base of builders; `build()` may be called several times."""

    def __init__(
        self,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None,
        output_from: Any,
        intermediate_output_from: Any,
        name: str | None,
    ) -> None:
        self._storage, self._name = checkpoint_storage, name
        self._output_from, self._intermediate_from = output_from, intermediate_output_from
        self._reviewed: list[Any] | None = []

    def with_request_info(self, *, agents: Sequence[Any] | None = None) -> Self:
        """Ask a person about each answer of agents, before the other participants get it.

        The workflow then raises a request with the `AgentExecutorResponse`, which expects an
        `AgentRequestInfoResponse`. An answer is an intermediate output until it is approved.

        Args:
            agents: The agents, or their ids; by default all of them.
        """
        self._reviewed = None if agents is None else list(agents)
        return self

    def with_checkpointing(self, checkpoint_storage: CheckpointStorage | CheckpointManager) -> Self:
        """Save checkpoints of runs in a storage by default."""
        self._storage = checkpoint_storage
        return self

    def _is_reviewed(self, agent: Any) -> bool:
        return self._reviewed is None or any(
            each is agent or (isinstance(each, str) and each in (agent.name, agent.id)) for each in self._reviewed
        )

    def _check_review(self, participants: Participants) -> None:
        for each in self._reviewed or ():
            participants.find(each, "with_request_info(agents=...)")
