"""The common base of nodes that run an agent: its conversation, its calls, and its requests to a person."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from agentbench._clock import runtime_defaults
from agentbench._copying import isolate_or_same
from agentbench.agents.agent.as_tool import run_streamed
from agentbench.agents.sessions.agent_protocol import SupportsAgentRun, resolve_agent_id
from agentbench.agents.sessions.session import AgentSession
from agentbench.exceptions import UserInputRequiredException
from agentbench.messages.answers import ANSWER, answers_in, without_answers
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.messages.update import AgentResponseUpdate
from agentbench.workflows.engine.run_kwargs import (
    RUN_KWARGS,
    RUN_KWARGS_KINDS,
    all_kwargs_inside,
    kwargs_for,
    workflow_inside,
)
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import HandlerSpec
from agentbench.workflows.executors.message import WITHDRAWN, Withdrawn

if TYPE_CHECKING:
    from agentbench.agents.middleware.loop import AgentRound
    from agentbench.workflows.engine.active_run import ActiveRun

logger = logging.getLogger("agentbench")

OnUpdate = Callable[[AgentResponseUpdate], Awaitable[None]]


class AgentReply(NamedTuple):
    """The result of one call of an agent: its response, and the requests to a person in it, by id."""

    response: AgentResponse
    requests: dict[str, Content]
    was_raised: bool = False
    """Whether the agent raised its requests, so that the response was created here from the requests alone."""


class AgentNode(Executor):
    """The base of nodes that run an agent.

    The session, the messages that wait for the agent, and the open requests are fields of the node: checkpoints contain
    them, and each started run and each clone has its own. All of them share the agent itself.

    Args:
        agent: Any object that satisfies `SupportsAgentRun`.
        session: The agent's conversation. Nodes with the same session share the conversation.
        id: The id of the node; by default the agent's name, or the id that its author chose.

    Raises:
        TypeError: The first argument is not an agent.
        ValueError: There is neither an id, nor a name or an id of the agent.
    """

    serialize = True  # a conversation has one turn at a time

    def __init__(
        self,
        agent: SupportsAgentRun,
        *,
        session: AgentSession | None = None,
        id: str | None = None,  # noqa: A002 - the public name
    ) -> None:
        if not hasattr(agent, "create_session"):
            msg = (
                f"{agent!r} is of type {type(agent).__name__}, not an agent. Expected an Agent, or the result "
                "of as_agent(name=...) of a chat client or a workflow."
            )
            raise TypeError(msg)
        super().__init__(resolve_agent_id(agent) if id is None else id)
        self.agent = agent
        self.session = agent.create_session() if session is None else session
        self.shares_with = self.session
        """One object for all nodes that share a session, and for their `fresh()` copies."""
        self.reset()

    @property
    def description(self) -> str | None:
        """The description of the agent."""
        return self.agent.description

    @property
    def asks_person(self) -> bool:
        """Whether a tool of the agent needs approval or an outside result; False for agents of other libraries."""
        options = getattr(self.agent, "default_options", {"tools": [None]})
        tools = [*(options.get("tools") or ()), *getattr(self.agent, "mcp_tools", ())]
        return any(
            getattr(tool, "approval_mode", None) != "never_require" or getattr(tool, "declaration_only", False)
            for tool in tools
        )

    def reset(self) -> None:
        """Drop the messages that wait for the agent, and its open requests; the session stays."""
        self._ab_cache: list[Message] = []
        self._ab_pending: dict[str, Content] = {}
        self._ab_answers: list[Content] = []
        """Answers to other requests of the same turn, while some are pending."""
        self._ab_all_answers: Message | None = None
        """All answers of a turn, from the last one until the agent gets them."""

    # ---- calls and requests ----------------------------------------------------------------------

    async def _ab_call_agent(
        self, messages: list[Message], ctx: WorkflowContext[Any, Any], on_update: OnUpdate | None = None
    ) -> AgentReply:
        """Run the agent in its session, with the keyword arguments of the run."""
        if not messages:
            logger.warning("Agent node %r runs its agent without a message.", self.id)
        kwargs = {"session": self.session, **self._ab_run_arguments(), **run_kwargs(self, ctx)}
        answers, self._ab_all_answers = self._ab_all_answers, None
        return await call_agent(self.agent, messages, ctx, kwargs, on_update, answers=answers)

    def _ab_run_arguments(self) -> dict[str, Any]:
        """Return further arguments for runs of the agent."""
        return {}

    def find_response_handler(self, request: Any, answer: Any) -> HandlerSpec | None:
        """Return the response handler, which for a request of the agent also takes the withdrawal."""
        if answer is WITHDRAWN and isinstance(request, Content):
            return self._ab_responses.find(request, request)
        return super().find_response_handler(request, answer)

    async def _ab_add_answer(self, request: Content, answer: Content | Withdrawn) -> Message | None:
        """Store the response to a request, if there is one; after the last one, return the message with all responses.

        If all requests were withdrawn, there is none, and the agent does not continue.
        """
        request_id = request_id_of(request)
        withdraw = getattr(self.agent, "_ab_withdraw", None)  # an agent that is a workflow waits for the request, too
        if answer is WITHDRAWN and withdraw is not None:
            await withdraw(request_id, self.session)
        given = [] if answer is WITHDRAWN else [answer]
        if answer is not WITHDRAWN and not request.is_answered_by(answer):
            response = f"a {answer.type} for {request_id_of(answer)!r}"
            msg = f"The response to {request.type} {request_id!r} of {self.id!r} is {response}. {request.answer_hint}"
            raise ValueError(msg)
        pending = {key: request for key, request in self._ab_pending.items() if key != request_id}
        answers = [*(one for one in self._ab_answers if request_id_of(one) != request_id), *given]
        if pending or not answers:
            self._ab_pending, self._ab_answers = pending, answers
            return None
        # Stored until the agent has received them: if it fails, the requests are open again.
        self._ab_all_answers = message_of_answers(answers)
        return self._ab_all_answers

    def on_rolled_back(self, open_requests: Mapping[str, WorkflowEvent[Any]]) -> None:
        """Wait for responses to the requests that are open; responses to others stay."""
        self._ab_pending = _by_id([event.data for event in open_requests.values() if isinstance(event.data, Content)])
        self._ab_answers = [answer for answer in self._ab_answers if request_id_of(answer) not in self._ab_pending]

    # ---- one node, several runs ------------------------------------------------------------------

    def fresh(self) -> Self:
        """Return a node with the same agent, but its own session and cache."""
        clone = copy.copy(self)
        clone.session = self.agent.create_session()
        clone.reset()
        return clone

    def on_fresh(self, executors: Mapping[str, Executor]) -> None:
        """Share one session with the nodes whose originals share one."""
        nodes = [one for one in executors.values() if isinstance(one, AgentNode)]
        self.session = next(one.session for one in nodes if one.shares_with is self.shares_with)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        memo[id(self.agent)] = self.agent  # it has no run state, and its client may hold connections
        clone = memo[id(self)] = copy.copy(self)
        clone.__dict__.update(copy.deepcopy(self.__dict__, memo))
        return clone

    # ---- checkpoints -----------------------------------------------------------------------------

    async def on_checkpoint_save(self) -> dict[str, Any]:
        """Return the session, the waiting messages, the open requests, and the responses to others of the same turn."""
        session = self.session
        return {
            "cache": [*self._ab_cache],
            # Like `session.to_dict()`, except for the state: checkpoints store values, and append-only lists only once.
            "agent_session": {
                "session_id": session.session_id,
                "service_session_id": session.service_session_id,
                "state": isolate_or_same(session.state),
            },
            "pending_agent_requests": {**self._ab_pending},
            "pending_responses_to_agent": [*self._ab_answers] if self._ab_pending else [],
        }

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        """Restore the result of `on_checkpoint_save`; missing parts are empty."""
        self._ab_cache = [*state.get("cache", ())]
        self._ab_pending = {**state.get("pending_agent_requests", {})}
        self._ab_answers = [*state.get("pending_responses_to_agent", ())]
        session = self._ab_restore_session(state.get("agent_session"))
        # In place, because other nodes may share it.
        vars(self.session).clear()
        vars(self.session).update(vars(session))

    def _ab_restore_session(self, saved: Any) -> AgentSession:
        try:
            if saved is None or "type" in saved:  # the result of to_dict()
                return self.agent.create_session() if saved is None else AgentSession.from_dict(saved)
            session = AgentSession(session_id=saved["session_id"], service_session_id=saved["service_session_id"])
            session.state = {**saved["state"]}
        except (KeyError, TypeError, ValueError) as error:
            logger.warning(
                "The session of agent node %r cannot be restored (%s: %s); its conversation starts over.",
                self.id,
                type(error).__name__,
                error,
            )
            return self.agent.create_session()
        return session


def run_kwargs(node: Any, ctx: WorkflowContext[Any, Any]) -> dict[str, Any]:
    """Return the keyword arguments of the workflow's run for the agent of a node, by kind."""
    stored = ctx.get_state(RUN_KWARGS)
    if not stored:
        return {}
    inner = workflow_inside(node)
    found = (
        {kind: kwargs_for(stored, ctx.executor_id, kind) for kind in RUN_KWARGS_KINDS}
        if inner is None
        else all_kwargs_inside(stored, ctx.executor_id, inner.executors)
    )
    return {kind: kwargs for kind, kwargs in found.items() if kwargs}


async def call_agent(
    agent: SupportsAgentRun,
    messages: list[Message],
    ctx: WorkflowContext[Any, Any],
    kwargs: dict[str, Any],
    on_update: OnUpdate | None = None,
    *,
    answers: Message | None = None,
) -> AgentReply:
    """Run an agent; with `on_update`, stream it and pass on each update. Observed runs report its token usage.

    Only `answers`, a person's answers to requests of this agent, approve calls. Other approvals in its messages and in
    its output are dropped with a warning.
    """
    if answers_in(messages):
        messages = await _without_approvals(messages, ctx, () if answers is None else answers.contents)
    if tools := ctx.get_runtime_tools():
        kwargs = await _with_tools(kwargs, tools, agent, ctx)
    requests: dict[str, Content] = {}
    run: ActiveRun = ctx._run  # type: ignore[assignment]  # noqa: SLF001 - only observed runs report what was used
    clock = run.options.clock or runtime_defaults().clock
    began_ns = clock.perf_ns() if run.log.observed else 0

    try:
        if on_update is None:
            reply: AgentResponse | None = await agent.run(messages, stream=False, **kwargs)
            response = reply or AgentResponse()  # none if a middleware ended the run without a response
        else:
            response = await run_streamed(agent, messages, _taking(requests, agent, on_update), **kwargs)
    except UserInputRequiredException as raised:
        message = Message("assistant", raised.contents, author_name=agent.name)
        return AgentReply(AgentResponse(messages=[message]), _by_id(raised.contents), was_raised=True)
    if answers_in(response.messages):
        response = copy.copy(response)
        response.messages = await _without_approvals(response.messages, ctx)
    if run.log.observed:
        used = {
            "model": getattr(response.raw_representation, "model", None),
            "usage_details": response.usage_details,
            "latency_ms": (clock.perf_ns() - began_ns) / 1e6,
        }
        rounds: Sequence[AgentRound] = getattr(response, "rounds", ())  # agents of other libraries have none
        if len(rounds) > 1 or any(one.verdict for one in rounds):
            used["rounds"] = [_round_facts(one, is_first=one is rounds[0]) for one in rounds]
        await ctx.add_event(WorkflowEvent("model_usage", used, executor_id=ctx.executor_id))
    requests.update(_by_id(response.user_input_requests))
    return AgentReply(response, _by_id(map(_innermost, requests.values())))


def _round_facts(one: AgentRound, *, is_first: bool) -> dict[str, Any]:
    """Return the messages and the verdict of a round of a loop; the input of the first one is that of the node."""
    messages = [*([] if is_first else one.input), *one.response.messages]
    return {"messages": messages, "verdict": one.verdict and one.verdict.model_dump()}


async def _with_tools(
    kwargs: dict[str, Any], tools: list[Any], agent: SupportsAgentRun, ctx: WorkflowContext[Any, Any]
) -> dict[str, Any]:
    """Return the arguments for a run of the agent with the tools of the workflow's run, or warn if it takes none."""
    parameters = inspect.signature(agent.run).parameters.values()
    if any(one.name == "tools" or one.kind is one.VAR_KEYWORD for one in parameters):
        return {**kwargs, "tools": [*kwargs.get("tools", ()), *tools]}
    text = (
        f"The agent of {ctx.executor_id!r} does not get the tools of this run, because its run() has no parameter "
        "tools. Add one to it, or pass the tools when you create the agent."
    )
    await ctx.add_event(WorkflowEvent.warning(text, ctx.executor_id))
    return kwargs


def _taking(requests: dict[str, Content], agent: SupportsAgentRun, on_update: OnUpdate) -> OnUpdate:
    """Return a function that receives an agent's updates, records their requests and passes them to `on_update`.

    They are passed on without approvals. Approvals of an inner agent become parts of this agent's answer.
    """

    # Not a coroutine function: it is called for each update, and a coroutine of its own would be one more to run.
    def take(update: AgentResponseUpdate) -> Awaitable[None]:
        has_answers = False
        for content in update.contents:
            if content.user_input_request:
                requests.update(_by_id([content]))
            if content.type == ANSWER:
                has_answers = True
        if has_answers or (update.agent_id and update.agent_id != agent.id):
            update = copy.copy(update)
            update.contents = [one for one in update.contents if one.type != ANSWER]
            update.agent_id = update.agent_id and agent.id
        return on_update(update)

    return take


def message_of_answers(answers: list[Content]) -> Message:
    """Return a person's answers to requests of an agent as the input of its next run."""
    return Message("tool" if all(one.type == "function_result" for one in answers) else "user", answers)


async def _without_approvals(
    messages: Sequence[Message], ctx: WorkflowContext[Any, Any], accepted: Sequence[Content] = ()
) -> list[Message]:
    remaining = without_answers(
        messages, f"the conversation of node {ctx.executor_id!r}", keep := set(map(id, accepted))
    )
    if any(id(one) not in keep for one in answers_in(messages)):
        text = (
            f"An approval in the conversation of {ctx.executor_id!r} was dropped. Only a person's answer to a request "
            "of this agent approves a tool call."
        )
        await ctx.add_event(WorkflowEvent.warning(text, ctx.executor_id))
    return remaining


def request_id_of(request: Content) -> str:
    """Return the id by which a response finds its request."""
    return request.id or request.call_id or ""


def _innermost(request: Content) -> Content:
    """Return the request of an inner agent that a request of a workflow agent repeats, or the request itself."""
    call = request.function_call
    data = None if call is None else (call.parse_arguments() or {}).get("data")
    return data if isinstance(data, Content) and data.user_input_request else request


def _by_id(requests: Iterable[Content]) -> dict[str, Content]:
    return {request_id_of(request): request for request in requests}
