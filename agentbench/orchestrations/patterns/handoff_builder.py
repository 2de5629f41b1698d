"""`HandoffBuilder`: agents that hand a conversation over to each other."""

from __future__ import annotations

import copy
import logging
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, Self

from agentbench.agents.agent.agent import RawAgent
from agentbench.agents.sessions.agent_protocol import resolve_agent_id
from agentbench.agents.tools.collection import tool_name
from agentbench.orchestrations.patterns.group_chat_messages import TerminationCondition
from agentbench.orchestrations.patterns.handoff_executor import (
    HandoffAgentExecutor,
    HandoffConfiguration,
    handoff_tool_name,
)
from agentbench.orchestrations.patterns.participants import Participants
from agentbench.orchestrations.patterns.pattern_builder import PatternBuilder
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage

logger = logging.getLogger("agentbench")


class HandoffBuilder(PatternBuilder):
    """Builds a workflow in which agents hand the conversation over by calling a tool, `handoff_to_<name>`.

    The agent that has the conversation talks to the user: after each answer without a handoff, the workflow raises a
    request with a `HandoffAgentUserRequest`. All agents receive all messages, as texts.

    Args:
        name: The name of the workflow.
        participants: Agents that store their history around each model call:
            `Agent(..., require_per_service_call_history_persistence=True)`.
        description: The description of the workflow.
        checkpoint_storage: The default storage for the checkpoints of runs.
        termination_condition: A condition that ends the conversation.
        output_from: Participants, or their ids, whose answers are outputs; by default all.
        intermediate_output_from: Participants whose answers are intermediate outputs; or `"all"` or `"all_other"`.
        enable_history_persistence: For agents without that setting, use copies with the setting turned on.

    Raises:
        TypeError: A participant is not an `Agent`.

    Example:
        >>> builder = HandoffBuilder(participants=[triage, refunds, orders]).with_start_agent(triage)
        >>> workflow = builder.add_handoff(triage, [refunds, orders]).build()
        >>> result = await workflow.run("I want my money back.")
    """

    def __init__(  # noqa: PLR0913 - the published signature
        self,
        *,
        name: str | None = None,
        participants: Sequence[Any] | None = None,
        description: str | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        termination_condition: TerminationCondition | None = None,
        output_from: Any = None,
        intermediate_output_from: Any = None,
        enable_history_persistence: bool = False,
    ) -> None:
        super().__init__(checkpoint_storage, output_from, intermediate_output_from, name)
        self._description, self._condition = description, termination_condition
        self._enables_history = enable_history_persistence
        self._returns_to_previous = True
        self._agents: dict[str, Any] = {}
        self._start: str | None = None
        self._handoffs: dict[str, dict[str, HandoffConfiguration]] = {}
        self._autonomous: dict[str, dict[str, Any]] = {}
        if participants is not None:
            self.participants(participants)

    def participants(self, participants: Sequence[Any]) -> Self:
        """Set the agents; call this only once.

        Raises:
            ValueError: Agents were already set, one of them or an id appears twice, or there are none.
            TypeError: A participant is not an `Agent`.
        """
        if self._agents:
            msg = "The participants are already set. Call participants() once, or pass participants=."
            raise ValueError(msg)
        agents = list(participants)
        for agent in agents:
            if not isinstance(agent, RawAgent):
                msg = f"{agent!r} is of type {type(agent).__name__}. Expected an Agent, which can get handoff tools."
                raise TypeError(msg)
        nodes = Participants(agents, lambda agent: HandoffAgentExecutor(agent, []))
        self._agents = dict(zip(nodes.ids, agents, strict=True))
        return self

    def with_start_agent(self, agent: Any) -> Self:
        """Choose the agent that gets the input.

        Raises:
            ValueError: The agent is not a participant.
        """
        self._start = self._id_of(agent)
        return self

    def add_handoff(self, source: Any, targets: Sequence[Any], *, description: str | None = None) -> Self:
        """Allow handoffs from one agent to others; without any call, all handoffs are allowed.

        Args:
            source: The agent, or its id.
            targets: The agents that can take over.
            description: When to hand over, for the model; by default the descriptions of the targets.

        Raises:
            ValueError: One is not a participant, or would hand over to itself.
        """
        handoffs = self._handoffs.setdefault(self._id_of(source), {})
        for target in targets:
            target_id = self._id_of(target)
            if target_id == self._id_of(source):
                msg = f"{target_id!r} cannot hand the conversation over to itself."
                raise ValueError(msg)
            if target_id in handoffs:
                logger.warning("The handoff from %r to %r already exists; the new one replaces it.", source, target_id)
            handoffs[target_id] = HandoffConfiguration(target=self._agents[target_id], description=description)
        return self

    def with_autonomous_mode(
        self,
        *,
        agents: Sequence[Any] | None = None,
        prompts: Mapping[str, str] | None = None,
        turn_limits: Mapping[str, int] | None = None,
    ) -> Self:
        """Let agents continue without the user.

        Args:
            agents: The agents, or their ids; by default all.
            prompts: The message that an agent gets instead of the user's, by id.
            turn_limits: How many of these messages an agent gets, by id, before the user is asked; by default 50.

        Raises:
            ValueError: An agent is not a participant, or a prompt or limit is for an agent without autonomous mode.
        """
        chosen = [*self._agents] if agents is None else [self._id_of(agent) for agent in agents]
        for keyword, names in (("prompts", prompts or {}), ("turn_limits", turn_limits or {})):
            for name in names:
                if self._id_of(name) not in chosen:
                    msg = f"{keyword} names {name!r}, which has no autonomous mode. Add it to agents=, or remove it."
                    raise ValueError(msg)
        for agent_id in chosen:
            self._autonomous[agent_id] = {
                "autonomous_mode": True,
                "autonomous_mode_prompt": (prompts or {}).get(agent_id),
                "autonomous_mode_turn_limit": (turn_limits or {}).get(agent_id),
            }
        return self

    def enable_return_to_previous(self, enabled: bool = True) -> Self:
        """Choose which agent gets the user's next message.

        Args:
            enabled: Whether it is the agent that asked the user, which is the default. With False it is always the
                start agent.

        Example:
            >>> builder = HandoffBuilder(participants=[triage, refunds]).with_start_agent(triage)
            >>> workflow = builder.add_handoff(triage, [refunds]).enable_return_to_previous(False).build()
        """
        self._returns_to_previous = enabled
        return self

    def with_termination_condition(self, termination_condition: TerminationCondition) -> Self:
        """Set a condition that ends the conversation."""
        self._condition = termination_condition
        return self

    def build(self) -> Workflow:
        """Return a new workflow with new nodes.

        Raises:
            ValueError: Participants or the start agent are missing, an agent does not store its history around each
                model call, or has a tool with the name of a handoff tool.
        """
        if not self._agents:
            msg = "There are no participants. Pass agents: HandoffBuilder(participants=[triage, refunds])."
            raise ValueError(msg)
        if self._start is None:
            msg = f"The start agent is missing. Choose one by with_start_agent(): {', '.join(self._agents)}."
            raise ValueError(msg)
        participants = Participants(list(self._agents.values()), self._node)
        nodes = {node.id: node for node in participants.nodes}
        start, everyone = nodes[self._start], participants.nodes
        builder = self._begin(start, participants, default=everyone, description=self._description)
        for node in participants.nodes:
            others = [other for other in participants.nodes if other is not node]
            if len(others) == 1:
                builder.add_edge(node, others[0])
            elif others:
                builder.add_fan_out_edges(node, others)
        return builder.build()

    def _node(self, agent: Any) -> HandoffAgentExecutor:
        agent_id = resolve_agent_id(agent)
        if not agent.require_per_service_call_history_persistence:
            if not self._enables_history:
                msg = (
                    f"The agent {agent_id!r} stores its history at the end of runs, and a handoff ends one in the "
                    "middle. Create it with require_per_service_call_history_persistence=True, or pass "
                    "enable_history_persistence=True to work with a copy that has it."
                )
                raise ValueError(msg)
            agent = copy.copy(agent)
            agent.require_per_service_call_history_persistence = True
        if self._handoffs:
            handoffs = [*self._handoffs.get(agent_id, {}).values()]
        else:
            handoffs = [
                HandoffConfiguration(target=target) for name, target in self._agents.items() if name != agent_id
            ]
        names = {tool_name(tool) for tool in agent.default_options.get("tools") or ()}
        if clash := [handoff.target_id for handoff in handoffs if handoff_tool_name(handoff.target_id) in names]:
            msg = f"The agent {agent_id!r} has a tool {handoff_tool_name(clash[0])!r}, a handoff's name. Rename it."
            raise ValueError(msg)
        return HandoffAgentExecutor(
            agent,
            handoffs,
            termination_condition=self._condition,
            user_response_target_id=None if self._returns_to_previous else self._start,
            **self._autonomous.get(agent_id, {}),
        )

    def _id_of(self, agent: Any) -> str:
        agent_id = (
            agent if isinstance(agent, str) else next((key for key, one in self._agents.items() if one is agent), None)
        )
        if agent_id not in self._agents:
            msg = f"{agent!r} is not a participant. Expected one of: {', '.join(self._agents) or 'none yet'}."
            raise ValueError(msg)
        return str(agent_id)
