"""`WorkflowAgent`: a workflow as an agent."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, Unpack, overload

from agentbench._clock import runtime_defaults
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import AgentResponseUpdate
from agentbench.orchestrations.workflow_events import (
    REQUEST_INFO_FUNCTION_NAME,
    RequestInfoFunctionArgs,
    merge_updates,
)
from agentbench.orchestrations.workflow_turn import BaseWorkflowAgent
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from agentbench.agents.sessions.session import AgentSession
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.engine.run_kwargs import WorkflowInvocationKwargs


class RunArguments(TypedDict, total=False):
    """Further keyword arguments of `WorkflowAgent.run()`; see there."""

    checkpoint_id: CheckpointInfo | str | None
    checkpoint_storage: CheckpointStorage | CheckpointManager | None
    function_invocation_kwargs: Mapping[str, Any] | WorkflowInvocationKwargs | None
    client_kwargs: Mapping[str, Any] | WorkflowInvocationKwargs | None
    tools: Any


class WorkflowAgent(BaseWorkflowAgent[Workflow]):
    """A workflow as an agent; usually created by `workflow.as_agent()`.

    The workflow's outputs are messages, whose author is the id of the executor that yielded them. A request of the
    workflow is a call of the function `request_info`, together with a request to approve it; a request of an agent
    inside the workflow is such a call too, whose argument `data` is that request. While one is pending, the next run
    has to respond, with a function result or with an approval whose argument `data` is the response.

    Each conversation begins in a clone of the workflow, so that runs do not share its state; a session holds the
    conversation.

    Args:
        workflow: A workflow whose start executor takes `list[Message]`.
        id: The id of the agent.
        name: The name of the agent; by default the workflow's.
        description: A description; by default the workflow's.
        context_providers: Called around each run. In a session, an in-memory history is added if none loads messages.
        settings: Arguments of `BaseAgent`.

    Raises:
        ValueError: The start executor does not take `list[Message]`.

    Example:
        >>> team = build_sequential(writer, reviewer).as_agent(name="team")
        >>> response = await team.run("Write a slogan for a bike.")
        >>> print(response.text)
    """

    REQUEST_INFO_FUNCTION_NAME: ClassVar[str] = REQUEST_INFO_FUNCTION_NAME
    RequestInfoFunctionArgs = RequestInfoFunctionArgs

    def __init__(
        self,
        workflow: Workflow,
        *,
        id: str | None = None,  # noqa: A002 - the public name
        name: str | None = None,
        description: str | None = None,
        context_providers: Any = None,
        **settings: Any,
    ) -> None:
        if not all(executor.accepts_type(list[Message]) for executor in workflow.start_executors):
            msg = (
                f"The start executor of workflow {workflow.name!r} does not take list[Message], the input of agents. "
                "Add a handler for that type to it, or start with an executor that has one."
            )
            raise ValueError(msg)
        super().__init__(
            workflow,
            id=id or f"WorkflowAgent_{runtime_defaults().ids.new_id('agent')[-8:]}",
            name=name or workflow.name,
            description=description or workflow.description,
            context_providers=context_providers,
            **settings,
        )
        self.id_is_generated = id is None

    @overload
    def run(
        self,
        messages: Any = None,
        *,
        stream: Literal[False] = False,
        session: AgentSession | None = None,
        **more: Unpack[RunArguments],
    ) -> Awaitable[AgentResponse[Any]]: ...
    @overload
    def run(
        self,
        messages: Any = None,
        *,
        stream: Literal[True],
        session: AgentSession | None = None,
        **more: Unpack[RunArguments],
    ) -> ResponseStream[AgentResponseUpdate, AgentResponse[Any]]: ...
    def run(  # noqa: PLR0913 - the public signature
        self,
        messages: Any = None,
        *,
        stream: bool = False,
        session: AgentSession | None = None,
        checkpoint_id: CheckpointInfo | str | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        function_invocation_kwargs: Mapping[str, Any] | WorkflowInvocationKwargs | None = None,
        client_kwargs: Mapping[str, Any] | WorkflowInvocationKwargs | None = None,
        tools: Any = None,
    ) -> Any:
        """Respond to pending requests, continue from a checkpoint, or run the workflow on new messages.

        Args:
            messages: The input; while requests are pending, their responses.
            stream: Return a stream of updates instead of an awaitable response.
            session: The conversation to which this turn belongs.
            checkpoint_id: Continue from this checkpoint of the workflow.
            checkpoint_storage: The storage to load checkpoints from and save them to in this run.
            function_invocation_kwargs: Arguments for the tools of agents in the workflow, as in `Workflow.run`.
            client_kwargs: Arguments for their model clients.
            tools: Tools for all agents in the workflow beside their own, in this run; as in `Workflow.run`.

        Raises:
            AgentInvalidResponseException: When awaited: requests are pending, and the messages contain something other
                than responses to them, or a rejection.
            AgentInvalidRequestException: When awaited: a response to a request that is not pending, or an update
                yielded by a run that is not streamed.
        """
        return self.run_turn(
            messages,
            stream=stream,
            session=session,
            checkpoint_id=checkpoint_id,
            checkpoint_storage=checkpoint_storage,
            function_invocation_kwargs=function_invocation_kwargs,
            client_kwargs=client_kwargs,
            tools=tools,
        )

    @staticmethod
    def merge_updates(updates: Sequence[AgentResponseUpdate], response_id: str) -> AgentResponse[Any]:
        """Return one response from the updates of several agents, which may be interleaved."""
        return merge_updates(updates, response_id)
