"""`WorkflowAgent`: a workflow as an agent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, TypedDict, overload

from agentbench._clock import runtime_defaults
from agentbench._signatures import is_instance_of
from agentbench.agents.agent.base_agent import BaseAgent
from agentbench.agents.history.history import HistoryProvider, InMemoryHistoryProvider
from agentbench.agents.history.run_hooks import RunHooks
from agentbench.agents.sessions.session import AgentSession
from agentbench.agents.sessions.session_context import SessionContext
from agentbench.agents.sessions.turn_lock import SessionTurn
from agentbench.exceptions import AgentInvalidRequestException, AgentInvalidResponseException
from agentbench.messages.content.content import Content
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import AgentResponseUpdate
from agentbench.orchestrations.workflow_events import (
    REQUEST_INFO_FUNCTION_NAME,
    RequestInfoFunctionArgs,
    merge_updates,
    response_of,
    updates_of,
)
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage


class RunArguments(TypedDict, total=False):
    """Further keyword arguments of `WorkflowAgent.run()`; see there."""

    checkpoint_id: CheckpointInfo | str | None
    checkpoint_storage: CheckpointStorage | CheckpointManager | None
    function_invocation_kwargs: Mapping[str, Any] | None
    client_kwargs: Mapping[str, Any] | None


class WorkflowAgent(BaseAgent):
    """A workflow as an agent; usually made by `workflow.as_agent()`.

    What the workflow yields are messages, signed with the id of the executor that yielded them. A request of the
    workflow is a call of the function `request_info`, together with the request to approve it; while one is pending,
    the next run has to respond, with a function result or with an approval whose argument `data` is the response.

    Each conversation begins in a clone of the workflow, so that runs do not share its state; a session holds the
    conversation.

    Args:
        workflow: Its start executor takes `list[Message]`.
        id: Identifies the agent.
        name: By default the workflow's.
        description: By default the workflow's.
        context_providers: Called around each run. In a session an in-memory history is added, if none loads messages.
        settings: As of `BaseAgent`.

    Raises:
        ValueError: The start executor does not take `list[Message]`.

    Example:
        >>> agent = workflow.as_agent(name="team")
        >>> response = await agent.run("Write a slogan for a bike.")
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
                f"The start executor of workflow {workflow.name!r} does not take list[Message], which is what an agent "
                "gets. Give it a handler for that type, or begin with one that has."
            )
            raise ValueError(msg)
        super().__init__(
            id=id or f"WorkflowAgent_{runtime_defaults().ids.new_id('agent')[-8:]}",
            name=name or workflow.name,
            description=description or workflow.description,
            context_providers=context_providers,
            **settings,
        )
        self.id_is_generated = id is None
        self.workflow = workflow
        # The clone whose requests are pending.
        self._waiting: Workflow | None = None
        self._own_history: InMemoryHistoryProvider | None = None

    @property
    def pending_requests(self) -> dict[str, WorkflowEvent[Any]]:
        """The requests that the next run has to respond to, by id."""
        return {} if self._waiting is None else dict(self._waiting.run_state.requests)

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
    def run(
        self,
        messages: Any = None,
        *,
        stream: bool = False,
        session: AgentSession | None = None,
        checkpoint_id: CheckpointInfo | str | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        function_invocation_kwargs: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Respond to pending requests, go on from a checkpoint, or run the workflow on new messages.

        Args:
            messages: The input; while requests are pending, their responses.
            stream: Return a stream of updates instead of an awaitable of the response.
            session: The conversation that this is a turn of.
            checkpoint_id: Go on from this checkpoint of the workflow.
            checkpoint_storage: Where checkpoints of this run are loaded from and saved to.
            function_invocation_kwargs: For the tools of agents in the workflow.
            client_kwargs: For their model clients.

        Raises:
            AgentInvalidResponseException: When awaited: requests are pending, and the messages hold something else
                than responses to them, or a rejection.
            AgentInvalidRequestException: When awaited: a response to a request that is not pending, or an update
                yielded by a run that is not streamed.
        """
        arguments = {
            "checkpoint_storage": checkpoint_storage,
            "function_invocation_kwargs": function_invocation_kwargs,
            "client_kwargs": client_kwargs,
        }
        turn = _Turn(self, messages, session, checkpoint_id, arguments)
        if not stream:
            return turn.respond()
        return ResponseStream(turn.updates(), finalizer=lambda _: turn.response)

    @staticmethod
    def merge_updates(updates: Sequence[AgentResponseUpdate], response_id: str) -> AgentResponse[Any]:
        """Return one response of the updates of several agents, which may have come interleaved."""
        return merge_updates(updates, response_id)

    # ---- of one turn -----------------------------------------------------------------------------

    def providers_for(self, session: AgentSession | None) -> list[Any]:
        """Return the context providers of a run; in a session with one that loads its history."""
        if session is None:
            return [each for each in self.context_providers if each is not self._own_history]
        if not any(isinstance(each, HistoryProvider) and each.load_messages for each in self.context_providers):
            self._own_history = InMemoryHistoryProvider()
            self.context_providers.insert(0, self._own_history)
        return self.context_providers

    def take_waiting(self) -> Workflow | None:
        """Return the clone whose requests are pending, if any."""
        return self._waiting if self.pending_requests else None

    def note_waiting(self, workflow: Workflow) -> None:
        """Remember a clone whose requests are pending, or that it has none any more."""
        if workflow.run_state.requests:
            self._waiting = workflow
        elif self._waiting is workflow:
            self._waiting = None


class _Turn:
    """One run of the agent: hooks before, the workflow, hooks after."""

    def __init__(
        self,
        agent: WorkflowAgent,
        messages: Any,
        session: AgentSession | None,
        checkpoint_id: Any,
        arguments: Mapping[str, Any],
    ) -> None:
        self._agent = agent
        self._input = normalize_messages(messages)
        self._session = session
        self._checkpoint_id = checkpoint_id
        self._arguments = {key: value for key, value in arguments.items() if value is not None}
        self._response_id = runtime_defaults().ids.new_id("response")
        self._workflow: Workflow
        self._hooks: RunHooks | None = None
        self._context: SessionContext
        self.response: AgentResponse[Any]

    async def respond(self) -> AgentResponse[Any]:
        """Return the response."""
        try:
            arguments = await self._prepare()
            self.response = response_of(await self._workflow.run(**arguments), self._response_id)
        except BaseException as error:
            await self._report_failure(error)
            raise
        await self._finish()
        return self.response

    async def updates(self) -> AsyncIterator[AgentResponseUpdate]:
        """Yield the updates as they come; then `response` is there."""
        received: list[AgentResponseUpdate] = []
        try:
            arguments = await self._prepare()
            stream = self._workflow.run(stream=True, **arguments)
            try:
                async for event in stream:
                    for update in updates_of(event, self._response_id):
                        received.append(update)
                        yield update
            finally:
                await stream.aclose()
        except BaseException as error:
            await self._report_failure(error)
            raise
        self.response = merge_updates(received, self._response_id)
        await self._finish()

    async def _prepare(self) -> dict[str, Any]:
        """Call the hooks; return the arguments for the workflow."""
        agent, messages = self._agent, self._input
        waiting = agent.take_waiting()
        responses = None if waiting is None else _responses(waiting.run_state.requests, messages)
        self._workflow = waiting or agent.workflow.clone()
        if providers := agent.providers_for(self._session):
            session = self._session = self._session or AgentSession()
            self._context = SessionContext(
                session_id=session.session_id,
                service_session_id=session.service_session_id,
                input_messages=messages,
                options={},
            )
            self._hooks = RunHooks(agent, session, self._context, providers)
            async with SessionTurn(session):
                await self._hooks.before()
            messages = self._context.get_messages(include_input=True)
        if responses is not None:
            return {**self._arguments, "responses": responses}
        if self._checkpoint_id is not None:
            return {**self._arguments, "checkpoint_id": self._checkpoint_id}
        return {**self._arguments, "message": messages}

    async def _finish(self) -> None:
        self._agent.note_waiting(self._workflow)
        if self._hooks is not None and self._session is not None:
            self._context._response = self.response  # noqa: SLF001 - read-only for users
            async with SessionTurn(self._session):
                await self._hooks.after()

    async def _report_failure(self, error: BaseException) -> None:
        if self._hooks is not None and self._session is not None and not isinstance(error, GeneratorExit):
            async with SessionTurn(self._session):
                await self._hooks.on_error(error)


def _responses(requests: Mapping[str, WorkflowEvent[Any]], messages: Sequence[Message]) -> dict[str, Any]:
    """Return the responses that messages hold, by the ids of their requests."""
    found = dict(_response(content, requests) for message in messages for content in message.contents)
    unknown = [request_id for request_id in found if request_id not in requests]
    if unknown:
        msg = f"No request {', '.join(map(repr, unknown))} is pending; pending are: {', '.join(requests)}."
        raise AgentInvalidRequestException(msg)
    if not found:
        raise AgentInvalidResponseException(_expected(requests))
    return found


def _response(content: Content, requests: Mapping[str, WorkflowEvent[Any]]) -> tuple[str, Any]:
    if content.type == "function_result":
        request_id = str(content.call_id)
        request = requests.get(request_id)
        if request is None or is_instance_of(content.result, request.response_type):
            return request_id, content.result
        try:
            return request_id, json.loads(content.result)  # results are texts; others are written as JSON
        except (TypeError, ValueError):
            return request_id, content.result
    if content.type != "function_approval_response" or content.function_call is None:
        msg = f"A content is of type {content.type!r}. {_expected(requests)}"
        raise AgentInvalidResponseException(msg)
    if not content.approved:
        msg = f"Request {content.id!r} was rejected, but it needs a response: approve it, with the response as data."
        raise AgentInvalidResponseException(msg)
    arguments: Any = content.function_call.arguments
    try:
        read = RequestInfoFunctionArgs.from_json if isinstance(arguments, str) else RequestInfoFunctionArgs.from_dict
        given = read(arguments)
    except ValueError as error:
        raise AgentInvalidResponseException(str(error), error) from error
    return given.request_id, given.data


def _expected(requests: Mapping[str, object]) -> str:
    return (
        f"Requests of the workflow are pending ({', '.join(requests)}). Respond with function results whose call_id is "
        "the id of the request, or with approvals whose argument data is the response."
    )
