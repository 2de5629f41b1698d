"""`SequentialBuilder`: participants run one after the other, each with the conversation up to then."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, ClassVar

from agentbench.messages.message import Message
from agentbench.orchestrations.host_executor import AgentHostExecutor, AgentHostOptions
from agentbench.orchestrations.patterns.concurrent_builder import ConcurrentBuilder
from agentbench.orchestrations.patterns.participants import ParticipantExecutor, Participants
from agentbench.orchestrations.patterns.pattern_builder import ReviewedPatternBuilder, require_messages
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage


class InputConversation(Executor):
    """Converts the input to messages: a text, a message, or a list of both."""

    signature_key: ClassVar[str | None] = "InputConversation"

    def __init__(self) -> None:
        super().__init__("input-conversation")

    @handler
    async def from_text(self, text: str, ctx: WorkflowContext[list[Message]]) -> None:
        """Receive a text of the user."""
        await ctx.send_message([Message("user", [text])])

    @handler
    async def from_message(self, message: Message, ctx: WorkflowContext[list[Message]]) -> None:
        """Receive a message."""
        await ctx.send_message([message])

    @handler
    async def from_messages(self, messages: list[str | Message], ctx: WorkflowContext[list[Message]]) -> None:
        """Receive several messages, at least one."""
        await ctx.send_message(require_messages(messages, self.id))


class SequentialBuilder(ReviewedPatternBuilder):
    """Builds a workflow in which each participant continues the conversation of the ones before it.

    Args:
        participants: Agents and executors, in order. An executor takes `list[Message]` at the beginning and an
            `AgentExecutorResponse` after an agent, and sends one of both.
        checkpoint_storage: The default storage for the checkpoints of runs.
        chain_only_agent_responses: Agents get only the previous answer instead of the whole conversation.
        output_from: Participants, or their ids, whose answers are outputs; or `"all"`. By default the last one.
        intermediate_output_from: Participants whose answers are intermediate outputs; or `"all"` or `"all_other"`.
        name: The name of the workflow.
        reassign_other_agents_as_users: Agents see the answers of others as messages of the user. Some servers, such as
            llama.cpp and vLLM, reject a conversation that ends with several assistant messages; these need it.
        ensure_trailing_user_turn: An agent whose input ends with an answer of another agent also gets a short message
            of the user, for models that refuse a conversation that ends with an assistant message.

    Raises:
        TypeError: A participant is neither an agent nor an executor.
        ValueError: There are no participants, or one of them or an id appears twice.

    Example:
        >>> workflow = SequentialBuilder(participants=[writer, reviewer]).with_request_info(agents=[writer]).build()
        >>> result = await workflow.run("Draft a haiku")
    """

    def __init__(  # noqa: PLR0913 - the published signature
        self,
        *,
        participants: Sequence[Any],
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        chain_only_agent_responses: bool = False,
        output_from: Any = None,
        intermediate_output_from: Any = None,
        name: str | None = None,
        reassign_other_agents_as_users: bool = False,
        ensure_trailing_user_turn: bool = False,
    ) -> None:
        super().__init__(checkpoint_storage, output_from, intermediate_output_from, name)
        self._members = list(participants)
        self._mode: Any = "last_agent" if chain_only_agent_responses else "full"
        self._reassigns, self._adds_user_turn = reassign_other_agents_as_users, ensure_trailing_user_turn
        self._participants()  # raises for invalid participants

    def _participants(self) -> Participants:
        return Participants(
            self._members,
            lambda agent: ParticipantExecutor(
                agent,
                context_mode=self._mode,
                reviewed=self._is_reviewed(agent),
                reassigns=self._reassigns,
                adds_user_turn=self._adds_user_turn,
            ),
        )

    def build(self) -> Workflow:
        """Return a new workflow with new nodes.

        Raises:
            ValueError: `output_from` and the like, or `with_request_info(agents=...)`, name an unknown participant.
        """
        participants = self._participants()
        self._check_review(participants)
        nodes: list[Executor] = [InputConversation(), *participants.nodes]
        builder = self._begin(nodes[0], participants, default=nodes[-1:])
        for source, target in pairwise(nodes):
            builder.add_edge(source, target)
        return builder.build()


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
    """Return a workflow in which each participant continues the conversation of the ones before it.

    Args:
        participants: Agents and executors in order; also as one list.
        name: The name of the workflow.
        chain_only_agent_responses: Agents get only the previous answer instead of the whole conversation.
        checkpoint_storage: The default storage for the checkpoints of runs.
        output_from: Participants, or their names, whose answers are outputs; or `"all"`. By default the last one's;
            with `options`, all outputs that the agents emit.
        intermediate_output_from: Participants, or their names, whose answers are intermediate outputs; or
            `"all_other"` or `"all"`.
        reassign_other_agents_as_users: Agents see answers of others as messages of the user.
        options: Agents work in turns, see `AgentHostExecutor`: nothing runs until a `TurnToken` arrives.

    Raises:
        TypeError: A participant is neither an agent nor an executor, or an argument cannot be combined with `options`.
        ValueError: There are no participants, or one of them or an id appears twice.

    Example:
        >>> workflow = build_sequential(writer, reviewer)
        >>> result = await workflow.run("Draft a haiku")
    """
    if options is not None and (chain_only_agent_responses or reassign_other_agents_as_users):
        msg = (
            "chain_only_agent_responses and reassign_other_agents_as_users cannot be combined with options=. Set "
            "forward_incoming_messages=False or reassign_other_agents_as_users in the options."
        )
        raise TypeError(msg)

    if options is None:
        return SequentialBuilder(
            participants=_as_sequence(participants),
            checkpoint_storage=checkpoint_storage,
            chain_only_agent_responses=chain_only_agent_responses,
            output_from=output_from,
            intermediate_output_from=intermediate_output_from,
            reassign_other_agents_as_users=reassign_other_agents_as_users,
            name=name,
        ).build()
    chain = Participants(_as_sequence(participants), lambda agent: AgentHostExecutor(agent, options))
    builder = WorkflowBuilder(name=name, start_executor=chain.nodes[0], checkpoint_storage=checkpoint_storage)
    for source, target in pairwise(chain.nodes):
        builder.add_edge(source, target)
    if output_from is not None or intermediate_output_from is not None:
        chosen = chain.designate(output_from, intermediate_output_from)
        builder.output_from(*chosen["output_from"]).intermediate_output_from(*chosen["intermediate_output_from"])
    return builder.build()


def _as_sequence(participants: Sequence[Any]) -> Sequence[Any]:
    if len(participants) == 1 and isinstance(participants[0], Iterable):
        return tuple(participants[0])
    return participants


class AgentWorkflowBuilder:
    """The patterns as methods, under the name used by other libraries.

    Example:
        >>> workflow = AgentWorkflowBuilder.build_sequential(writer, reviewer)
    """

    build_sequential = staticmethod(build_sequential)

    @staticmethod
    def build_concurrent(*participants: Any, aggregator: Any = None, **options: Any) -> Workflow:
        """Return a workflow in which all participants answer at once; `options` are those of `ConcurrentBuilder`."""
        builder = ConcurrentBuilder(participants=_as_sequence(participants), **options)
        return (builder if aggregator is None else builder.with_aggregator(aggregator)).build()
