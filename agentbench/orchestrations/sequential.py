"""`build_sequential`: agents one after the other."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from agentbench.messages.message import Message
from agentbench.orchestrations.agent_executor import AgentExecutor
from agentbench.orchestrations.agent_node import AgentReply, OnUpdate
from agentbench.orchestrations.host_executor import AgentHostExecutor, AgentHostOptions, reassigned
from agentbench.workflows.builder.nodes import as_executor
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage


def build_sequential(
    *participants: Any,
    name: str | None = None,
    chain_only_agent_responses: bool = False,
    checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
    output_from: Any = None,
    intermediate_output_from: Any = None,
    reassign_other_agents_as_users: bool = False,
    options: AgentHostOptions | None = None,
) -> Workflow:
    """Return a workflow in which each participant goes on from what the one before it said.

    Args:
        participants: Agents and executors in their order; also one list of them.
        name: Of the workflow.
        chain_only_agent_responses: Agents get the answer before them alone, in place of the whole conversation.
        checkpoint_storage: Where runs save their checkpoints by default.
        output_from: Participants, or their names, whose answers are outputs; or `"all"`. By default the last one's;
            with `options` all that these emit.
        intermediate_output_from: Participants, or their names, whose answers are intermediate outputs; or
            `"all_other"` or `"all"`.
        reassign_other_agents_as_users: Agents see answers of others as messages of the user.
        options: Agents work in turns, see `AgentHostExecutor`: nothing runs before a `TurnToken` comes.

    Raises:
        TypeError: A participant is neither an agent nor an executor, or a keyword does not go with `options`.
        ValueError: There is no participant, or one of them or one id is there twice.

    Example:
        >>> workflow = build_sequential(writer, reviewer)
        >>> result = await workflow.run("Draft a haiku")
    """
    if options is not None and (chain_only_agent_responses or reassign_other_agents_as_users):
        msg = (
            "chain_only_agent_responses and reassign_other_agents_as_users do not go with options=. Set "
            "forward_incoming_messages=False or reassign_other_agents_as_users in the options."
        )
        raise TypeError(msg)

    def node(participant: Any) -> Any:
        if as_executor(participant) is participant:
            return participant
        if options is not None:
            return AgentHostExecutor(participant, options)
        make = ReassigningAgentExecutor if reassign_other_agents_as_users else AgentExecutor
        return make(participant, context_mode="last_agent" if chain_only_agent_responses else "full")

    nodes = [node(one) for one in _each_once(participants)]
    builder = WorkflowBuilder(name=name, start_executor=nodes[0], checkpoint_storage=checkpoint_storage)
    for source, target in pairwise(nodes):
        builder.add_edge(source, target)
    if output_from is None and intermediate_output_from is None and options is None:
        output_from = nodes[-1]
    if output_from is not None:
        builder.output_from(*_entries(output_from))
    if intermediate_output_from is not None:
        builder.intermediate_output_from(*_entries(intermediate_output_from))
    return builder.build()


def _each_once(participants: Sequence[Any]) -> Sequence[Any]:
    if len(participants) == 1 and isinstance(participants[0], Iterable):
        participants = tuple(participants[0])
    if not participants:
        msg = "build_sequential() needs at least one participant: build_sequential(writer, reviewer)."
        raise ValueError(msg)
    if len({id(one) for one in participants}) < len(participants):
        msg = "A participant is there twice. For two turns of one agent make two nodes: AgentExecutor(agent, id=...)."
        raise ValueError(msg)
    return participants


def _entries(designation: Any) -> Sequence[Any]:
    return designation if isinstance(designation, (list, tuple)) else (designation,)


class ReassigningAgentExecutor(AgentExecutor):
    """An agent node whose agent sees answers of others as messages of the user."""

    signature_key: ClassVar[str | None] = AgentExecutor.signature_key

    async def _call_agent(
        self, messages: list[Message], ctx: WorkflowContext[Any, Any], on_update: OnUpdate | None = None
    ) -> AgentReply:
        return await super()._call_agent(reassigned(messages, self), ctx, on_update)


class AgentWorkflowBuilder:
    """The patterns as methods, under the name that other dialects have for them.

    Example:
        >>> workflow = AgentWorkflowBuilder.build_sequential(writer, reviewer)
    """

    build_sequential = staticmethod(build_sequential)

    @staticmethod
    def build_concurrent(*participants: Any, aggregator: Any = None, **options: Any) -> Workflow:
        """Return a workflow in which all answer at once; `options` are those of `ConcurrentBuilder`."""
        from agentbench.orchestrations.patterns.concurrent_builder import ConcurrentBuilder  # noqa: PLC0415 - on demand

        builder = ConcurrentBuilder(participants=_each_once(participants), **options)
        return (builder if aggregator is None else builder.with_aggregator(aggregator)).build()
