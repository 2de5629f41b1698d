"""The targets of a chat: an agent with its session, or the runs of a workflow or a compiled graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from agentbench._copying import isolate_or_same
from agentbench._text.phrases import state_text, workflow_name
from agentbench.agents.agent.base_agent import BaseAgent
from agentbench.agents.history.history import HistoryProvider, InMemoryHistoryProvider
from agentbench.agents.sessions.session import AgentSession
from agentbench.checkpoints.manager import bare_storage
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import AgentResponse
from agentbench.notebook.cards.conversation.approvals import CallRequest
from agentbench.notebook.cards.conversation.model import pending_requests
from agentbench.notebook.cards.conversation.views import transcript
from agentbench.notebook.history.agent_turns import conversation_in_run
from agentbench.notebook.history.run_history import RunHistory
from agentbench.stategraph.compiled import CompiledGraph
from agentbench.workflows.events.events import count_unanswered
from agentbench.workflows.run.run import WorkflowRun
from agentbench.workflows.run.workflow import Workflow

OnChange = Callable[[], object]
_CONVERSATIONS = ("context", "messages")
"""The keys of the conversation in a graph's state: in `AgentState`, and in other classes."""


def talk_with(target: Any, session: Any, storage: Any, make_input: Any) -> Talk:
    """Return the conversation with a target; raises `TypeError` like `chat`."""
    if make_input is not None and not callable(make_input):
        msg = f"input={make_input!r} is not callable. Expected a function that converts the typed text to the input."
        raise TypeError(msg)
    # For a workflow as an agent, use the workflow: its requests have any type, an agent's are only approvals.
    if isinstance(target, BaseAgent) and isinstance(inside := getattr(target, "workflow", None), Workflow):
        target = inside
    if isinstance(target, (Workflow, CompiledGraph)):
        return RunTalk(target, session=session, storage=storage, make_input=make_input)
    if not (hasattr(target, "run") and hasattr(target, "create_session")):
        msg = f"chat() needs an agent, a workflow or a compiled graph, not {type(target).__name__}."
        raise TypeError(msg)
    if storage is not None:
        msg = "storage= is for workflows; an agent stores its conversation in its session. Pass session= instead."
        raise TypeError(msg)
    if session is not None and not isinstance(session, AgentSession):
        msg = f"session= must be an AgentSession, not {type(session).__name__}. Make one with agent.create_session()."
        raise TypeError(msg)
    return AgentTalk(target, session or target.create_session(), make_input=make_input)


@dataclass(frozen=True)
class _AgentMark:
    """A copy of a session, and the number of messages in each external history."""

    session: AgentSession
    counts: tuple[int, ...]


class AgentTalk:
    """The conversation with an agent."""

    can_withdraw: ClassVar[bool] = False  # the agent cannot go on while a call is neither approved nor rejected

    def __init__(
        self,
        agent: Any,
        session: AgentSession,
        history: Sequence[Message] | None = None,
        *,
        make_input: Callable[[str], Any] | None = None,
    ) -> None:
        self.name = str(agent.name or "agent")
        self.agent, self.session = agent, session
        self._make_input = make_input
        self._history = list(transcript(session).messages if history is None else history)
        self._updates: list[Any] = []
        self._answers: dict[str, Content] = {}
        self._forms: dict[str, CallRequest] = {}
        self.ending = ""

    @property
    def messages(self) -> list[Message]:
        """The messages of the conversation, including the answer being streamed."""
        updates = self._updates[:]
        return [*self._history, *(AgentResponse.from_updates(updates).messages if updates else ())]

    @property
    def requests(self) -> list[CallRequest]:
        """The calls that wait for approval."""
        waiting = [(content, author) for content, author in pending_requests(self._history) if content.id]
        for content, author in waiting:
            # The same object each time, because a form belongs to its request.
            self._forms.setdefault(str(content.id), CallRequest(str(content.id), author, content, Content))
        return [self._forms[str(content.id)] for content, _ in waiting if content.id not in self._answers]

    async def send(self, text: str, on_change: OnChange) -> None:
        """Send a text to the agent and follow its answer."""
        message = Message("user", [text])
        self._history.append(message)
        await self._run(message if self._make_input is None else self._make_input(text), on_change)

    async def answer(self, request_id: str, value: Any) -> None:
        """Store the approval or rejection of a call: True, False, or a response content."""
        request = self._forms[request_id].data
        response = request.to_function_approval_response(value) if isinstance(value, bool) else value
        if getattr(response, "type", None) != "function_approval_response" or response.id != request_id:
            msg = f"The answer to an approval request must be True or False, not {value!r}."
            raise ValueError(msg)
        self._answers[request_id] = response

    async def resume(self, on_change: OnChange) -> None:
        """Send the approvals to the agent, once there is one for every call."""
        if self._answers and not self.requests:
            message = Message("user", list(self._answers.values()))
            self._answers = {}
            self._history.append(message)
            await self._run(message, on_change)

    async def _run(self, run_input: Any, on_change: OnChange) -> None:
        on_change()
        stream = self.agent.run(run_input, session=self.session, stream=True)
        try:
            async for update in stream:
                self._updates.append(update)
                on_change()
            response = await stream.get_final_response()
        except BaseException:
            self._history, self._updates = self.messages, []  # keep the partial answer readable
            raise
        self._updates = []
        self._history += [*self._approved_results(), *response.messages]

    def _approved_results(self) -> list[Message]:
        """Return the results of approved calls, which are in the session but not in the response."""
        contents = [content for message in self._history for content in message.contents]
        open_calls = {each.call_id for each in contents if each.type == "function_call"}
        open_calls -= {each.call_id for each in contents if each.type == "function_result"}
        return [
            message
            for message in transcript(self.session).messages
            if any(each.type == "function_result" and each.call_id in open_calls for each in message.contents)
        ]

    @property
    def _external_histories(self) -> list[HistoryProvider]:
        providers = getattr(self.agent, "context_providers", None) or ()
        return [
            each
            for each in providers
            if isinstance(each, HistoryProvider) and not isinstance(each, InMemoryHistoryProvider)
        ]

    async def mark(self) -> _AgentMark:
        """Return a copy of the session for a later fork."""
        copy = AgentSession(service_session_id=self.session.service_session_id)
        copy.state = isolate_or_same(self.session.state)
        return _AgentMark(copy, tuple([len(await self._load_messages(each)) for each in self._external_histories]))

    async def _load_messages(self, provider: HistoryProvider) -> list[Message]:
        state = self.session.state.get(provider.source_id)
        return list(await provider.get_messages(self.session.session_id, state=state))

    async def fork(self, mark: _AgentMark, messages: Sequence[Message]) -> AgentTalk:
        """Return a new conversation that continues from a copy of the session."""
        service_id = mark.session.service_session_id
        is_earlier = len(messages) < len(self._history)
        if service_id is not None and service_id == self.session.service_session_id and is_earlier:
            msg = (
                "The model's service stores this conversation and cannot return to an earlier turn. Fork the "
                "latest turn, or use an agent whose session stores the history."
            )
            raise ValueError(msg)
        session = AgentSession(service_session_id=service_id)
        session.state = isolate_or_same(mark.session.state)
        for provider, count in zip(self._external_histories, mark.counts, strict=True):
            stored = (await self._load_messages(provider))[:count]
            await provider.save_messages(session.session_id, stored, state=session.state.get(provider.source_id))
        return AgentTalk(self.agent, session, messages, make_input=self._make_input)

    async def close(self) -> None:
        """Do nothing, because there are no resources."""


class RunTalk:
    """The conversation with a workflow, whose run receives each text as input, or with a thread of a compiled graph."""

    can_withdraw: ClassVar[bool] = True

    def __init__(
        self,
        target: Workflow | CompiledGraph[Any],
        *,
        session: Any = None,
        storage: Any = None,
        make_input: Callable[[str], Any] | None = None,
        history: Sequence[Message] = (),
        run: WorkflowRun | None = None,
    ) -> None:
        self.target, self._make_input = target, make_input
        self._graph = target if isinstance(target, CompiledGraph) else None
        workflow: Workflow = target.workflow if isinstance(target, CompiledGraph) else target
        self.workflow, self.name = workflow, workflow_name(workflow)
        self.run = run
        self._history = list(history)
        self._typed: list[tuple[int, Message]] = []
        """The typed messages, each with the number of messages recorded at the time."""
        if self._graph is None:
            if session is not None:
                msg = "session= is for agents and graphs; a workflow stores its state in its run. Omit session=."
                raise TypeError(msg)
            self._storage = bare_storage(storage) or workflow.storage or InMemoryCheckpointStorage()
            if make_input is None and self._input_of("text") is None:
                takes = ", ".join(getattr(each, "__name__", str(each)) for each in workflow.input_types)
                msg = (
                    f"Workflow {self.name!r} accepts {takes}, not text. Pass input=, a function that converts the text."
                )
                raise TypeError(msg)
        elif storage is not None:
            msg = "A compiled graph uses its own storage. Omit storage=, or pass it to compile()."
            raise TypeError(msg)
        else:
            config = {"thread_id": session} if isinstance(session, (str, int)) else session
            self.config: Mapping[str, Any] = config or {"thread_id": AgentSession().session_id}

    def _input_of(self, text: str) -> Any:
        """Convert a text to an input that the start executors accept; `None` if they accept none."""
        if self._make_input is not None:
            return self._make_input(text)
        if self._graph is not None:
            return {"messages": text}
        message, starts = Message("user", [text]), self.workflow.graph.start_executors
        forms: tuple[Any, ...] = (text, message, [message])
        return next((each for each in forms if all(start.find_handler(each) for start in starts)), None)

    @property
    def messages(self) -> list[Message]:
        """The messages of the conversation, from the state of a graph or the events of a run."""
        messages = self._run_messages()
        for at, message in reversed(self._typed):  # until it is recorded; later inputs of a run never are
            if not any(each.role == "user" and each.text == message.text for each in messages[at:]):
                messages.insert(at, message)
        return messages

    def _run_messages(self) -> list[Message]:
        if self.run is None:
            return [*self._history]
        if self._graph is not None:
            state = self.run.state
            for name in _CONVERSATIONS:
                if isinstance(state.get(name), list):
                    return [each for each in state[name] if isinstance(each, Message)]
        conversation = conversation_in_run(RunHistory(events=self.run.events))
        # A restored run emits its open requests again.
        return [*self._history, *(conversation[1:] if conversation[:1] == self._history[-1:] else conversation)]

    @property
    def requests(self) -> list[Any]:
        """The open requests of the run."""
        return [] if self.run is None else self.run.pending_requests

    @property
    def ending(self) -> str:
        """The status of the run if it ended with unanswered requests."""
        unanswered = 0 if self.run is None else count_unanswered(self.run.events)
        return state_text(self.run.status, unanswered) if self.run is not None and unanswered else ""

    async def send(self, text: str, on_change: OnChange) -> None:
        """Send a text to the run, or start a new run, and follow it until it is idle."""
        run_input = self._input_of(text)
        if self._graph is not None:
            run = await self._graph.astart(run_input, self.config)
        elif self.run is not None and await self.run.try_send_message(run_input):
            run = self.run
        else:
            run = self.workflow.start(run_input, checkpoint_storage=self._storage)
        if run is not self.run:
            self._history, self._typed = self.messages, []
        self.run = run
        self._typed.append((len(self._run_messages()), Message("user", [text])))
        await self.resume(on_change)

    async def answer(self, request_id: str, value: Any) -> None:
        """Send the answer to a request."""
        assert self.run is not None
        await self.run.respond(request_id, value)

    async def resume(self, on_change: OnChange) -> None:
        """Drive the run until it is idle or waits for answers."""
        on_change()
        assert self.run is not None
        async for _ in self.run.watch_stream():
            on_change()

    async def mark(self) -> Any:
        """Return the checkpoint of this point."""
        return None if self.run is None else self.run.last_checkpoint

    async def fork(self, mark: Any, messages: Sequence[Message]) -> RunTalk:
        """Return a new conversation with a run that starts from the checkpoint."""
        if mark is None or self.run is None:
            msg = "No checkpoint was saved at this turn, so it cannot be forked."
            raise ValueError(msg)
        if self._graph is not None:
            if mark.n_requests:
                msg = "This turn ended with a question of the graph. Fork the next turn, or the previous one."
                raise ValueError(msg)
            config = await self._graph.afork({**self.config, "checkpoint_id": mark.checkpoint_id})
            thread = {**self.config, "thread_id": config["thread_id"]}
            thread.pop("checkpoint_id", None)
            return RunTalk(self._graph, session=thread, make_input=self._make_input, history=messages)
        run = await self.run.fork(mark)
        async for _ in run.watch_stream():
            pass  # only restores the run, because the turn was finished
        return RunTalk(self.target, storage=self._storage, make_input=self._make_input, history=messages, run=run)

    async def close(self) -> None:
        """Cancel the run, if any."""
        if self.run is not None:
            await self.run.cancel()


Talk: TypeAlias = AgentTalk | RunTalk
"""The target of a chat; its coroutines run on the loop of the chat, one at a time."""
