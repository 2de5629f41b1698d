"""The participants of a pattern, and whose answers are its outputs."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.update import AgentResponseUpdate
from agentbench.orchestrations.agent_executor import AgentExecutor, AgentExecutorResponse, AgentNodeContext
from agentbench.orchestrations.agent_node import AgentReply, OnUpdate
from agentbench.orchestrations.host_executor import reassign_to_user
from agentbench.workflows.builder.nodes import as_executor
from agentbench.workflows.events.events import WorkflowEvent, WorkflowEventSource
from agentbench.workflows.executors.approval import TextAnswer
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import response_handler

logger = logging.getLogger("agentbench")


class Participants:
    """The nodes of the participants, created again for each build.

    Args:
        members: Agents and executors, each once.
        make: Creates the node of an agent.

    Raises:
        TypeError: One is neither an agent nor an executor.
        ValueError: There are no participants, or one of them or an id appears twice.
    """

    def __init__(self, members: Sequence[Any], make: Callable[[Any], Executor]) -> None:
        self.members = list(members)
        self.nodes: list[Executor] = [_node(member, make) for member in self.members]
        ids = [node.id for node in self.nodes]
        if not ids:
            msg = "There are no participants. Pass agents or executors: participants=[writer, reviewer]."
            raise ValueError(msg)
        if len({id(member) for member in self.members}) < len(ids):
            msg = (
                "A participant appears twice. For two turns of one agent, use two nodes: AgentExecutor(agent, id=...)."
            )
            raise ValueError(msg)
        if twice := [node_id for node_id in ids if ids.count(node_id) > 1]:
            msg = f"Two participants have the name {twice[0]!r}. Use different names, or nodes with different ids."
            raise ValueError(msg)

    def find(self, wanted: Any, keyword: str) -> Executor:
        """Return the node of a participant, which is named by the agent or executor itself, or by its id.

        Raises:
            ValueError: It is not a participant.
        """
        for member, node in zip(self.members, self.nodes, strict=True):
            if wanted is member or wanted is node or (isinstance(wanted, str) and wanted == node.id):
                return node
        msg = f"{keyword} names {wanted!r}, which is not a participant. Expected some of: {', '.join(self.ids)}."
        raise ValueError(msg)

    @property
    def ids(self) -> list[str]:
        """The ids, in order."""
        return [node.id for node in self.nodes]

    def designate(
        self,
        output_from: Any,
        intermediate_output_from: Any,
        *,
        default: Sequence[Executor] = (),
        always: Sequence[Executor] = (),
    ) -> dict[str, Any]:
        """Return the arguments of a `WorkflowBuilder` that designate whose answers are outputs.

        Args:
            output_from: `None`, `"all"`, or participants.
            intermediate_output_from: `None`, `"all"`, `"all_other"`, or participants.
            default: The nodes whose answers are outputs if `output_from` is `None`.
            always: Further nodes whose answers are always outputs.

        Raises:
            ValueError: The text or a participant is unknown, a participant is named twice, or none is named.
        """
        if (
            output_from is not None
            and not output_from
            and intermediate_output_from is not None
            and not intermediate_output_from
        ):
            msg = "output_from and intermediate_output_from are both empty. Expected participants in one of them."
            raise ValueError(msg)
        chosen = self._select("output_from", output_from, ("all",), [])
        others = [node for node in self.nodes if node not in chosen]
        between = self._select("intermediate_output_from", intermediate_output_from, ("all", "all_other"), others)
        if both := [node.id for node in chosen if node in between]:
            msg = f"{', '.join(both)} is in output_from and in intermediate_output_from. Expected one of them."
            raise ValueError(msg)
        if output_from is None:
            chosen = [node for node in default if node not in between]
        return {"output_from": [*chosen, *always], "intermediate_output_from": between}

    def _select(self, keyword: str, chosen: Any, words: Sequence[str], others: list[Executor]) -> list[Executor]:
        if chosen is None:
            return []
        if isinstance(chosen, str) and chosen not in self.ids:
            if chosen not in words:
                msg = f"{keyword} is {chosen!r}; expected {' or '.join(map(repr, words))}, or a list of participants."
                raise ValueError(msg)
            return [*self.nodes] if chosen == "all" else others
        nodes = [
            self.find(participant, keyword)
            for participant in (chosen if not isinstance(chosen, str) and isinstance(chosen, Iterable) else [chosen])
        ]
        if len({*map(id, nodes)}) < len(nodes):
            msg = f"{keyword} names a participant twice."
            raise ValueError(msg)
        return nodes


def _node(participant: Any, make: Callable[[Any], Executor]) -> Executor:
    if isinstance(participant, Executor):
        return participant
    node = as_executor(participant)
    return make(participant) if isinstance(node, AgentExecutor) else node


# ---- an agent as a participant


@dataclass
class AgentRequestInfoResponse:
    """A person's response to the answer of an agent: an approval, or requested changes.

    A text is accepted instead, and means the same as `from_strings` with that text.

    Args:
        messages: Messages for the agent, which answers again; an empty list approves.

    Example:
        >>> await workflow.run(responses={request.request_id: AgentRequestInfoResponse.from_strings(["Shorter."])})
    """

    messages: list[Message] = field(default_factory=list)

    _text_answer_: ClassVar = TextAnswer(
        prompt="Is this answer good?", label="What to change", without="Approve as it is"
    )

    @classmethod
    def _from_text_(cls, text: str) -> AgentRequestInfoResponse:
        return cls.from_strings([text])

    @classmethod
    def approve(cls) -> AgentRequestInfoResponse:
        """Return the approval: the answer is passed on."""
        return cls()

    @classmethod
    def from_strings(cls, texts: Sequence[str]) -> AgentRequestInfoResponse:
        """Return texts of a user for the agent."""
        return cls([Message("user", [text]) for text in texts])

    @classmethod
    def from_messages(cls, messages: Sequence[Message]) -> AgentRequestInfoResponse:
        """Return messages for the agent."""
        return cls(list(messages))


class ParticipantExecutor(AgentExecutor):
    """A node of an agent in a pattern.

    Args:
        agent: The agent.
        reviewed: Whether a person is asked about each answer. An answer is an intermediate output until it is approved.
        collects_errors: Whether a failure of the agent is passed on as an answer with its error.
        reassigns: Whether the agent sees the answers of other agents as messages of the user.
        adds_user_turn: Whether the agent gets a message of the user if its input ends with one of an assistant.
        **settings: Arguments of `AgentExecutor`.
    """

    signature_key: ClassVar[str | None] = AgentExecutor.signature_key

    def __init__(
        self,
        agent: Any,
        *,
        reviewed: bool = False,
        collects_errors: bool = False,
        reassigns: bool = False,
        adds_user_turn: bool = False,
        **settings: Any,
    ) -> None:
        super().__init__(agent, **settings)
        self.adds_user_turn = adds_user_turn
        self.reviewed, self.collects_errors, self.reassigns = reviewed, collects_errors, reassigns

    @property
    def asks_person(self) -> bool:
        """Whether a person is asked about each answer, or a tool needs approval."""
        return self.reviewed or super().asks_person

    async def _ab_call_agent(
        self, messages: list[Message], ctx: WorkflowContext[Any, Any], on_update: OnUpdate | None = None
    ) -> AgentReply:
        if self.reassigns:
            messages = reassign_to_user(messages, self)
        if self.adds_user_turn and messages and messages[-1].role == "assistant":
            messages = [*messages, Message("user", ["It is your turn."])]
        try:
            return await super()._ab_call_agent(messages, ctx, on_update)
        except Exception as error:
            if not self.collects_errors:
                raise
            logger.warning("Agent %r failed; the others continue.", self.id, exc_info=True)
            content = Content.from_error(message=str(error), error_code=type(error).__name__)
            message = Message("assistant", [content], author_name=self.agent.name)
            return AgentReply(AgentResponse(messages=[message]), {})

    async def _ab_yield_output(self, output: AgentResponse | AgentResponseUpdate, ctx: AgentNodeContext) -> None:
        if self.reviewed:
            emit_intermediate(output, ctx)
        else:
            await super()._ab_yield_output(output, ctx)

    async def _ab_pass_on(self, response: AgentResponse, ctx: AgentNodeContext) -> None:
        if self.reviewed:
            draft = AgentExecutorResponse(self.id, response, [*self._ab_full_conversation])
            await ctx.request_info(draft, AgentRequestInfoResponse)
        else:
            await self._ab_deliver(response, ctx)

    async def _ab_deliver(self, response: AgentResponse, ctx: AgentNodeContext) -> None:
        """Send on an answer that needs no further review."""
        await super()._ab_pass_on(response, ctx)

    @response_handler
    async def from_review(
        self, draft: AgentExecutorResponse, review: AgentRequestInfoResponse, ctx: AgentNodeContext
    ) -> None:
        """Pass an approved answer on, or let the agent answer again; the conversation stays complete."""
        if review.messages:
            await self._ab_take_turn(self._ab_take_in(review.messages), ctx, goes_on=True)
            return
        await ctx.yield_output(draft.agent_response)
        await self._ab_deliver(draft.agent_response, ctx)


def emit_intermediate(data: Any, ctx: WorkflowContext[Any, Any]) -> None:
    """Emit an intermediate output, whatever the designation of the node."""
    event = WorkflowEvent("intermediate", data, origin=WorkflowEventSource.FRAMEWORK, executor_id=ctx.executor_id)
    run: Any = ctx._run  # noqa: SLF001 - the engine's side of the context
    run.log.append(event, ctx._delivery)  # noqa: SLF001 - as above
