"""One run of a workflow agent, and the common base of such agents."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

from agentbench._clock import runtime_defaults
from agentbench._signatures import is_instance_of
from agentbench.agents.agent.base_agent import BaseAgent
from agentbench.agents.arguments import check_run_arguments
from agentbench.agents.history.history import HistoryProvider, InMemoryHistoryProvider, RunHooks
from agentbench.agents.sessions.session import AgentSession, SessionTurn
from agentbench.agents.sessions.session_context import SessionContext
from agentbench.checkpoints.checkpoint import id_of
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.manager import bare_storage
from agentbench.exceptions import AgentInvalidRequestException, AgentInvalidResponseException
from agentbench.messages.answers import ANSWER, answers_in, without_answers
from agentbench.messages.content.content import ALWAYS_APPROVE, EDITED_ARGUMENTS, Content
from agentbench.messages.inputs import normalize_messages
from agentbench.messages.joined_updates import join_updates
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import AgentResponseUpdate
from agentbench.orchestrations.agent_node import request_id_of
from agentbench.orchestrations.workflow_events import (
    EventUpdates,
    RequestInfoFunctionArgs,
    response_of,
)
from agentbench.workflows.engine.run_kwargs import WorkflowInvocationKwargs
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.run.responses import id_of_request, withdrawals

WorkflowT = TypeVar("WorkflowT", bound=Any)


class BaseWorkflowAgent(BaseAgent, Generic[WorkflowT]):
    """An agent that is a workflow; see `WorkflowAgent`."""

    def __init__(self, workflow: WorkflowT, **settings: Any) -> None:
        super().__init__(**settings)
        self.workflow: WorkflowT = workflow
        self.waiting: dict[str | None, WorkflowT] = {}
        """The clones whose requests are pending, by the id of their session; None for the clone without a session."""
        self._ab_own_history: InMemoryHistoryProvider | None = None

    @property
    def pending_requests(self) -> dict[str, WorkflowEvent[Any]]:
        """The requests to which the next run has to respond, by id."""
        return {key: one for clone in self.waiting.values() for key, one in clone.run_state.requests.items()}

    def waiting_for(self, session: AgentSession | None, answered: Collection[object]) -> WorkflowT | None:
        """Return the clone that waits in this session, or for responses with one of these ids."""
        clone = self.waiting.get(None if session is None else session.session_id)
        if clone is not None and clone.run_state.requests:
            return clone
        clones = self.waiting.values()
        return next((one for one in clones if not _ids_of(one.run_state.requests).isdisjoint(answered)), None)

    async def cancel_pending_requests(
        self, request_ids: Any = None, *, session: AgentSession | None = None
    ) -> AgentResponse[Any]:
        """Withdraw pending requests, so that the next run need not respond to them.

        Args:
            request_ids: One request or id, or several; None for all that are pending in the session.
            session: The conversation whose requests are pending.

        Returns:
            What the workflow said after the withdrawal, usually nothing; see `Workflow.cancel_pending_requests`.

        Raises:
            ValueError: One of them is not pending.

        Example:
            >>> response = await agent.run("Shall we?", session=session)
            >>> response = await agent.cancel_pending_requests(session=session)
            >>> agent.pending_requests
            {}
        """
        several = isinstance(request_ids, Iterable) and not isinstance(request_ids, (str, Content))
        one_or_more: Iterable[Any] = request_ids if several else () if request_ids is None else (request_ids,)
        ids = [request_id_of(one) if isinstance(one, Content) else id_of_request(one) for one in one_or_more]
        clone = self.waiting_for(session, ids)
        requests = {} if clone is None else clone.run_state.requests
        of_agents = _requests_of_agents(requests)
        chosen = withdrawals(requests, None if request_ids is None else [of_agents.get(one, one) for one in ids])
        response_id = runtime_defaults().ids.new_id("response")
        if clone is None or not chosen:
            return response_of((), response_id)
        response = response_of(await clone.cancel_pending_requests(list(chosen)), response_id)
        if not clone.run_state.requests:
            self.waiting = {key: one for key, one in self.waiting.items() if one is not clone}
        return response

    async def _ab_withdraw(self, request_id: str, session: AgentSession) -> None:
        """Withdraw a request that was withdrawn in the workflow around this agent, unless the process has changed."""
        if any(request_id in _ids_of(clone.run_state.requests) for clone in self.waiting.values()):
            await self.cancel_pending_requests(request_id, session=session)

    def input_of(self, messages: list[Message]) -> Any:
        """Return the workflow's input for messages: the messages themselves."""
        return messages

    def run_turn(
        self,
        messages: Any,
        *,
        stream: bool,
        session: AgentSession | None,
        **arguments: Any,
    ) -> Any:
        """Return an awaitable of the response, or the stream of its updates."""
        kwargs = (arguments["function_invocation_kwargs"], arguments["client_kwargs"])
        check_run_arguments(
            session, None, *(None if isinstance(one, WorkflowInvocationKwargs) else one for one in kwargs)
        )
        turn = _Turn(self, messages, session, arguments)
        if not stream:
            return turn.respond()
        return ResponseStream(turn.updates(), finalizer=lambda _: turn.response)

    def providers_for(self, session: AgentSession | None) -> list[Any]:
        """Return the context providers of a run; in a session, one of them loads its history."""
        if session is None:
            return [provider for provider in self.context_providers if provider is not self._ab_own_history]
        if not any(
            isinstance(provider, HistoryProvider) and provider.load_messages for provider in self.context_providers
        ):
            self._ab_own_history = InMemoryHistoryProvider()
            self.context_providers.insert(0, self._ab_own_history)
        return self.context_providers


class _Turn:
    """One run of the agent: hooks before, the workflow, hooks after."""

    def __init__(
        self,
        agent: BaseWorkflowAgent[Any],
        messages: Any,
        session: AgentSession | None,
        arguments: Mapping[str, Any],
    ) -> None:
        self._agent = agent
        self._input = normalize_messages(messages)
        self._session = session
        self._arguments = {key: value for key, value in arguments.items() if value is not None}
        self._response_id = runtime_defaults().ids.new_id("response")
        self._workflow: Any
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
        """Yield the updates as they arrive; afterwards `response` is set."""
        updates, events = EventUpdates(self._response_id), list[WorkflowEvent[Any]]()
        try:
            arguments = await self._prepare()
            stream = self._workflow.run(stream=True, **arguments)
            try:
                async for event in stream:
                    events.append(event)
                    for update in updates.of(event):
                        yield update
            finally:
                await stream.aclose()
        except BaseException as error:
            await self._report_failure(error)
            raise
        self.response = response_of(join_updates(events), self._response_id)
        await self._finish()

    async def _prepare(self) -> dict[str, Any]:
        """Call the hooks; return the arguments for the workflow."""
        agent, messages = self._agent, self._input
        arguments = dict(self._arguments)
        contents = [content for message in messages for content in message.contents]
        answered = {*arguments.get("responses", ()), *(one.id for one in contents), *(one.call_id for one in contents)}
        waiting = agent.waiting_for(self._session, answered - {None})
        self._workflow = waiting or agent.workflow.clone()
        stored = messages
        if "responses" not in arguments:
            requests = None if waiting is None else waiting.run_state.requests
            if waiting is None and messages and "checkpoint_id" in arguments:
                requests = await self._requests_at(arguments["checkpoint_id"])
            if requests is not None:
                arguments["responses"], stored = _responses(requests, messages)
            elif unknown := _answers_to_nothing(messages):
                raise AgentInvalidRequestException(_unknown_request(unknown))
        if providers := agent.providers_for(self._session):
            session = self._session = self._session or AgentSession()
            self._context = SessionContext(
                session_id=session.session_id,
                service_session_id=session.service_session_id,
                input_messages=messages,
                options={},
            )
            self._context._stored_inputs = stored  # noqa: SLF001 - read-only for users
            self._hooks = RunHooks(agent, session, self._context, providers)
            async with SessionTurn(session):
                await self._hooks.before()
            messages = self._context.get_messages(include_input=True)
        if waiting is not None:
            arguments.pop("checkpoint_id", None)
        elif "checkpoint_id" not in arguments:
            arguments["message"] = agent.input_of(without_answers(messages, "a history"))
        return arguments

    async def _requests_at(self, checkpoint: CheckpointInfo | str) -> Mapping[str, WorkflowEvent[Any]]:
        """Return the requests that were open at a checkpoint."""
        storage = bare_storage(self._arguments.get("checkpoint_storage")) or self._workflow.storage
        if storage is None:
            msg = "checkpoint_id= needs a storage: pass checkpoint_storage= here or to the workflow."
            raise AgentInvalidRequestException(msg)
        return (await storage.load(id_of(checkpoint))).pending_request_info_events

    async def _finish(self) -> None:
        agent, workflow = self._agent, self._workflow
        agent.waiting = {key: one for key, one in agent.waiting.items() if one is not workflow}
        if workflow.run_state.requests:
            agent.waiting[None if self._session is None else self._session.session_id] = workflow
        if self._hooks is not None and self._session is not None:
            self._context._response = self.response  # noqa: SLF001 - read-only for users
            async with SessionTurn(self._session):
                await self._hooks.after()

    async def _report_failure(self, error: BaseException) -> None:
        if self._hooks is not None and self._session is not None and not isinstance(error, GeneratorExit):
            async with SessionTurn(self._session):
                await self._hooks.on_error(error)


def _ids_of(requests: Mapping[str, WorkflowEvent[Any]]) -> set[str]:
    """Return the ids by which requests are answered: their own, and those of inner agents."""
    return {*requests, *_requests_of_agents(requests)}


def _requests_of_agents(requests: Mapping[str, WorkflowEvent[Any]]) -> dict[str, str]:
    """Return the ids of requests of inner agents, which are contents with ids of their own, by these ids."""
    return {request_id_of(one.data): key for key, one in requests.items() if isinstance(one.data, Content)}


def _responses(
    requests: Mapping[str, WorkflowEvent[Any]], messages: Sequence[Message]
) -> tuple[dict[str, Any], list[Message]]:
    """Return the responses in messages, by request id, and the form in which histories store them.

    Histories store an approval as the result of the call that represents the request. The request of an agent inside
    the workflow may be answered as its own and as the workflow's; of two different answers, the rejection wins.
    """
    responses: dict[str, Any] = {}
    stored: list[Message] = []
    for message in messages:
        of_message: dict[str, Any] = {}
        for content in message.contents:
            key, answer = _response(content, message.role, requests)
            if getattr(responses.get(key), "type", None) != ANSWER or responses[key].approved:
                responses[key] = answer
            of_message[key] = responses[key]
        results = [
            Content.from_function_result(key, result=one.approved if isinstance(one, Content) else one)
            for key, one in of_message.items()
        ]
        stored.append(Message("tool", results) if answers_in([message]) else message)
    if unknown := [request_id for request_id in responses if request_id not in requests]:
        raise AgentInvalidRequestException(_unknown_request(unknown, requests))
    if not responses:
        raise AgentInvalidResponseException(_response_help(requests))
    return responses, stored


def _answers_to_nothing(messages: Sequence[Message]) -> list[str]:
    """Return the ids of requests that messages answer although none is open: approvals, or a result at the end."""
    calls = {one.call_id for message in messages for one in message.contents if one.type == "function_call"}
    last = messages[-1].contents if messages else ()
    is_answer = bool(last) and all(one.type == "function_result" and one.call_id not in calls for one in last)
    return [request_id_of(one) for one in (*answers_in(messages), *(last if is_answer else ()))]


def _unknown_request(ids: Collection[str], requests: Collection[str] = ()) -> str:
    state = f"open requests are {', '.join(map(repr, requests))}" if requests else "no request is open"
    return (
        f"The messages answer {', '.join(map(repr, ids))}, but {state}. To continue a conversation of another process, "
        "pass checkpoint_id= of the checkpoint at which the workflow asked."
    )


def _response(content: Content, role: str, requests: Mapping[str, WorkflowEvent[Any]]) -> tuple[str, Any]:
    expected = {ANSWER: "user", "function_result": "tool"}.get(content.type, role)
    if role != expected:
        msg = f"A {content.type} is in a message of the role {role!r}. Expected Message({expected!r}, [...])."
        raise AgentInvalidResponseException(msg)
    agents = _requests_of_agents(requests)
    if request_id_of(content) in agents:
        return agents[request_id_of(content)], content
    if content.type == "function_result":
        return _result(content, requests.get(str(content.call_id)))
    if content.type != ANSWER or content.function_call is None:
        msg = f"A content is of type {content.type!r}. {_response_help(requests)}"
        raise AgentInvalidResponseException(msg)
    arguments: Any = content.function_call.arguments
    try:
        read = RequestInfoFunctionArgs.from_json if isinstance(arguments, str) else RequestInfoFunctionArgs.from_dict
        answer = read(arguments)
    except ValueError as error:
        raise AgentInvalidResponseException(str(error), error) from error
    question = requests[answer.request_id].data if answer.request_id in agents.values() else None
    is_response = isinstance(answer.data, Content) and answer.data.type == ANSWER
    if question is not None and question.type == "function_approval_request" and not is_response:
        # Edited arguments are those of the inner agent's call: people see that call, not the one that represents it.
        edited = content.additional_properties.get(EDITED_ARGUMENTS)
        response = question.to_function_approval_response(bool(content.approved), arguments=edited)
        if ALWAYS_APPROVE in content.additional_properties:
            response.additional_properties[ALWAYS_APPROVE] = content.additional_properties[ALWAYS_APPROVE]
        return answer.request_id, response
    if not content.approved:
        msg = f"Request {content.id!r} was rejected, but it needs a response: approve it, with the response as data."
        raise AgentInvalidResponseException(msg)
    return answer.request_id, answer.data


def _result(content: Content, request: WorkflowEvent[Any] | None) -> tuple[str, Any]:
    result: Any = content.result
    if request is not None and isinstance(request.data, Content) and request.data.type == "function_call":
        result = Content.from_function_result(request_id_of(request.data), result=result)
    elif request is not None and not is_instance_of(result, request.response_type):
        with suppress(TypeError, ValueError):  # results are texts; other values are written as JSON
            result = json.loads(result)
    return str(content.call_id), result


def _response_help(requests: Mapping[str, object]) -> str:
    return (
        f"Requests of the workflow are pending: {', '.join(requests)}. Respond to one with Message('tool', "
        f"[Content.from_function_result({next(iter(requests))!r}, result=...)]), or with an approval whose argument "
        "data is the response."
    )
