"""`ConcurrentBuilder`: all participants answer the same question concurrently, and an aggregator combines them."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NoReturn, Self

from agentbench._workers import run_in_thread
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.orchestrations.agent_executor import AgentExecutorRequest, AgentExecutorResponse
from agentbench.orchestrations.patterns.participants import ParticipantExecutor, Participants
from agentbench.orchestrations.patterns.pattern_builder import ReviewedPatternBuilder, require_messages
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage

logger = logging.getLogger("agentbench")


class Dispatcher(Executor):
    """Sends the same request to all participants."""

    signature_key: ClassVar[str | None] = "Dispatcher"

    def __init__(self) -> None:
        super().__init__("dispatcher")

    @handler
    async def from_request(self, request: AgentExecutorRequest, ctx: WorkflowContext[AgentExecutorRequest]) -> None:
        """Receive a request."""
        await ctx.send_message(request)

    @handler
    async def from_text(self, text: str, ctx: WorkflowContext[AgentExecutorRequest]) -> None:
        """Receive a text of the user."""
        await ctx.send_message(AgentExecutorRequest([Message("user", [text])]))

    @handler
    async def from_message(self, message: Message, ctx: WorkflowContext[AgentExecutorRequest]) -> None:
        """Receive a message."""
        await ctx.send_message(AgentExecutorRequest([message]))

    @handler
    async def from_messages(self, messages: list[str | Message], ctx: WorkflowContext[AgentExecutorRequest]) -> None:
        """Receive several messages, at least one."""
        await ctx.send_message(AgentExecutorRequest(require_messages(messages, self.id)))


class Alone(Executor):
    """Wraps the only answer in a list for the aggregator."""

    signature_key: ClassVar[str | None] = "Alone"

    def __init__(self) -> None:
        super().__init__("alone")

    @handler
    async def wrap(self, response: AgentExecutorResponse, ctx: WorkflowContext[list[AgentExecutorResponse]]) -> None:
        """Receive the answer."""
        await ctx.send_message([response])


class LastMessages(Executor):
    """Combines the last message of each participant in one response."""

    signature_key: ClassVar[str | None] = "LastMessages"

    def __init__(self) -> None:
        super().__init__("aggregator")

    @handler
    async def gather(self, results: list[AgentExecutorResponse], ctx: WorkflowContext[NoReturn, AgentResponse]) -> None:
        """Receive all answers, in the order of the participants."""
        messages: list[Message] = []
        for result in results:
            said = [message for message in result.agent_response.messages if message.role == "assistant"]
            if said:
                messages.append(said[-1])
            else:
                logger.warning("Participant %r did not answer and is left out.", result.executor_id)
        if not messages:
            names = ", ".join(result.executor_id for result in results)
            msg = f"No participant answered; expected an assistant message from one of: {names}."
            raise RuntimeError(msg)
        await ctx.yield_output(AgentResponse(messages=messages))


class CallbackAggregator(Executor):
    """Combines the answers by calling a function."""

    signature_key: ClassVar[str | None] = "CallbackAggregator"

    def __init__(self, function: Callable[..., Any]) -> None:
        name = getattr(function, "__name__", "aggregator")
        super().__init__("aggregator" if name == "<lambda>" else name)
        self._ab_function = function
        self._ab_takes_context = len(inspect.signature(function).parameters) > 1

    @handler
    async def gather(self, results: list[AgentExecutorResponse], ctx: WorkflowContext[NoReturn, Any]) -> None:
        """Receive all answers, in the order of the participants."""
        arguments = (results, ctx) if self._ab_takes_context else (results,)
        if inspect.iscoroutinefunction(self._ab_function):
            result = await self._ab_function(*arguments)
        else:
            result = await run_in_thread(self._ab_function, *arguments)
            result = await result if inspect.isawaitable(result) else result
        if result is not None:
            await ctx.yield_output(result)


class ConcurrentBuilder(ReviewedPatternBuilder):
    """Builds a workflow in which all participants answer the same question concurrently, and one node combines them.

    Args:
        participants: Agents and executors; an executor takes an `AgentExecutorRequest` and sends an
            `AgentExecutorResponse`.
        checkpoint_storage: The default storage for the checkpoints of runs.
        output_from: Participants, or their ids, whose answers are outputs besides the combined one; or `"all"`.
        intermediate_output_from: Participants whose answers are intermediate outputs; or `"all"` or `"all_other"`.
        on_error: With `"raise"`, a participant that fails fails the run. With `"collect"`, its answer is the error.
        name: The name of the workflow.

    Raises:
        TypeError: A participant is neither an agent nor an executor.
        ValueError: There are no participants, one of them or an id appears twice, or `on_error` is unknown.

    Example:
        >>> workflow = ConcurrentBuilder(participants=[optimist, pessimist]).build()
        >>> (response,) = (await workflow.run("Will it rain?")).outputs
    """

    def __init__(
        self,
        *,
        participants: Sequence[Any],
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        output_from: Any = None,
        intermediate_output_from: Any = None,
        on_error: Literal["raise", "collect"] = "raise",
        name: str | None = None,
    ) -> None:
        super().__init__(checkpoint_storage, output_from, intermediate_output_from, name)
        if on_error not in ("raise", "collect"):
            msg = f"on_error is {on_error!r}; expected 'raise' or 'collect'."
            raise ValueError(msg)
        self._members, self._collects = list(participants), on_error == "collect"
        self._aggregator: Any = None
        self._participants()  # raises for invalid participants

    def with_aggregator(self, aggregator: Executor | Callable[..., Any]) -> Self:
        """Choose how the answers are combined.

        Args:
            aggregator: An executor that takes `list[AgentExecutorResponse]`; or a function of that list, and optionally
                of a context. Its result is the output; if it returns `None`, it has yielded the output itself.

        Raises:
            TypeError: It is neither.
            ValueError: There is already an aggregator.
        """
        if self._aggregator is not None:
            msg = "There is already an aggregator. Call with_aggregator() only once."
            raise ValueError(msg)
        candidate: object = aggregator
        if not isinstance(candidate, Executor) and not callable(candidate):
            msg = f"{aggregator!r} is not an aggregator. Expected an executor, or a function of the answers."
            raise TypeError(msg)
        self._aggregator = aggregator
        return self

    def _participants(self) -> Participants:
        return Participants(
            self._members,
            lambda agent: ParticipantExecutor(agent, reviewed=self._is_reviewed(agent), collects_errors=self._collects),
        )

    def build(self) -> Workflow:
        """Return a new workflow with new nodes.

        Raises:
            ValueError: `output_from` and the like, or `with_request_info(agents=...)`, name an unknown participant.
        """
        participants = self._participants()
        self._check_review(participants)
        dispatcher, chosen = Dispatcher(), self._aggregator
        aggregator = (
            chosen if isinstance(chosen, Executor) else CallbackAggregator(chosen) if chosen else LastMessages()
        )
        builder = self._begin(dispatcher, participants, always=[aggregator])
        nodes = participants.nodes
        if len(nodes) == 1:
            alone = Alone()
            builder.add_edge(dispatcher, nodes[0]).add_edge(nodes[0], alone).add_edge(alone, aggregator)
        else:
            builder.add_fan_out_edges(dispatcher, nodes).fan_in(nodes, aggregator, mode="barrier")
        return builder.build()
