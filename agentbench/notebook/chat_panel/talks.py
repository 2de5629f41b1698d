"""The other side of a chat: an agent with its session, or the runs of a workflow or a compiled graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from agentbench._copying import isolate_or_same
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
from agentbench.notebook.text.phrases import state_text, workflow_name
from agentbench.stategraph.compiled import CompiledGraph
from agentbench.workflows.events.events import count_unanswered
from agentbench.workflows.run.run import WorkflowRun
from agentbench.workflows.run.workflow import Workflow

__all__ = ["AgentTalk", "RunTalk", "Talk", "talk_with"]

OnChange = Callable[[], object]
#: A conversation as the chat needs it; its coroutines run on the loop of the chat, one at a time.
Talk: TypeAlias = "AgentTalk | RunTalk"
#: The keys under which states of graphs hold their conversation: of `AgentState`, and of other classes.
_CONVERSATIONS = ("context", "messages")


def talk_with(target: Any, session: Any, storage: Any, make_input: Any) -> Talk:
    """Return the conversation with a target; raises `TypeError` as `chat` does."""
    if make_input is not None and not callable(make_input):
        msg = f"input={make_input!r} cannot be called. Expected a function that makes the input of the typed text."
        raise TypeError(msg)
    # Of a workflow as an agent the workflow itself: its questions are of any type, those of an agent are approvals.
    if isinstance(target, BaseAgent) and isinstance(inside := getattr(target, "workflow", None), Workflow):
        target = inside
    if isinstance(target, (Workflow, CompiledGraph)):
        return RunTalk(target, session=session, storage=storage, make_input=make_input)
    if not (hasattr(target, "run") and hasattr(target, "create_session")):
        msg = f"chat() takes an agent, a workflow or a compiled graph, not {type(target).__name__}."
        raise TypeError(msg)
    if storage is not None:
        msg = "storage= is for workflows; an agent stores its conversation in its session. Pass session=."
        raise TypeError(msg)
    if session is not None and not isinstance(session, AgentSession):
        msg = f"session= of an agent is an AgentSession, not {type(session).__name__}. See agent.create_session()."
        raise TypeError(msg)
    return AgentTalk(target, session or target.create_session(), make_input=make_input)


@dataclass(frozen=True)
class _AgentMark:
    """A session as it was, and how many messages each history that stores them elsewhere had."""

    session: AgentSession
    counts: tuple[int, ...]


class AgentTalk:
    """The conversation with an agent."""

    def __init__(
        self,
        agent: Any,
        session: AgentSession,
        said: Sequence[Message] | None = None,
        *,
        make_input: Callable[[str], Any] | None = None,
    ) -> None:
        self.name = str(agent.name or "agent")
        self.agent, self.session = agent, session
        self._make_input = make_input
        self._said = list(transcript(session).messages if said is None else said)
        self._updates: list[Any] = []
        self._answers: dict[str, Content] = {}
        self._forms: dict[str, CallRequest] = {}
        self.ending = ""

    @property
    def messages(self) -> list[Message]:
        """What was said so far, with the answer that is being streamed."""
        updates = self._updates[:]
        return [*self._said, *(AgentResponse.from_updates(updates).messages if updates else ())]

    @property
    def requests(self) -> list[CallRequest]:
        """The calls that wait for approval."""
        found = [(content, author) for content, author in pending_requests(self._said) if content.id]
        for content, author in found:
            # The same object each time: a form belongs to its request.
            self._forms.setdefault(str(content.id), CallRequest(str(content.id), author, content, Content))
        return [self._forms[str(content.id)] for content, _ in found if content.id not in self._answers]

    async def send(self, text: str, on_change: OnChange) -> None:
        """Send a text to the agent and follow its answer."""
        message = Message("user", [text])
        self._said.append(message)
        await self._run(message if self._make_input is None else self._make_input(text), on_change)

    async def answer(self, request_id: str, value: Any) -> None:
        """Take the approval or the rejection of a call: True, False, or the content that says so."""
        request = self._forms[request_id].data
        response = request.to_function_approval_response(value) if isinstance(value, bool) else value
        if getattr(response, "type", None) != "function_approval_response" or response.id != request_id:
            msg = f"The answer to a call that waits for approval is True or False, not {value!r}."
            raise ValueError(msg)
        self._answers[request_id] = response

    async def go_on(self, on_change: OnChange) -> None:
        """Send the approvals to the agent, once there is one for every call."""
        if self._answers and not self.requests:
            message = Message("user", list(self._answers.values()))
            self._answers = {}
            self._said.append(message)
            await self._run(message, on_change)

    async def _run(self, given: Any, on_change: OnChange) -> None:
        on_change()
        stream = self.agent.run(given, session=self.session, stream=True)
        try:
            async for update in stream:
                self._updates.append(update)
                on_change()
            response = await stream.get_final_response()
        except BaseException:
            self._said, self._updates = self.messages, []  # what was said before stays readable
            raise
        self._updates = []
        self._said += [*self._results_of_approved(), *response.messages]

    def _results_of_approved(self) -> list[Message]:
        """Return the results of calls that were approved, which the session has and a response has not."""
        contents = [content for message in self._said for content in message.contents]
        open_calls = {each.call_id for each in contents if each.type == "function_call"}
        open_calls -= {each.call_id for each in contents if each.type == "function_result"}
        return [
            message
            for message in transcript(self.session).messages
            if any(each.type == "function_result" and each.call_id in open_calls for each in message.contents)
        ]

    @property
    def _stored_elsewhere(self) -> list[HistoryProvider]:
        providers = getattr(self.agent, "context_providers", None) or ()
        return [
            each
            for each in providers
            if isinstance(each, HistoryProvider) and not isinstance(each, InMemoryHistoryProvider)
        ]

    async def mark(self) -> _AgentMark:
        """Return the session as it is now."""
        copy = AgentSession(service_session_id=self.session.service_session_id)
        copy.state = isolate_or_same(self.session.state)
        return _AgentMark(copy, tuple([len(await self._stored(each)) for each in self._stored_elsewhere]))

    async def _stored(self, provider: HistoryProvider) -> list[Message]:
        state = self.session.state.get(provider.source_id)
        return list(await provider.get_messages(self.session.session_id, state=state))

    async def fork(self, mark: _AgentMark, messages: Sequence[Message]) -> AgentTalk:
        """Return the conversation in a copy of the session as it was."""
        kept = mark.session.service_session_id
        if kept is not None and kept == self.session.service_session_id and len(messages) < len(self._said):
            msg = (
                "The service of the model stores this conversation and cannot go back to an earlier turn. Fork the "
                "latest turn, or use an agent whose session stores the history."
            )
            raise ValueError(msg)
        session = AgentSession(service_session_id=kept)
        session.state = isolate_or_same(mark.session.state)
        for provider, count in zip(self._stored_elsewhere, mark.counts, strict=True):
            stored = (await self._stored(provider))[:count]
            await provider.save_messages(session.session_id, stored, state=session.state.get(provider.source_id))
        return AgentTalk(self.agent, session, messages, make_input=self._make_input)

    async def close(self) -> None:
        """Nothing is held."""


class RunTalk:
    """The conversation with a workflow, whose run gets each text as input, or with a thread of a compiled graph."""

    def __init__(
        self,
        target: Workflow | CompiledGraph[Any],
        *,
        session: Any = None,
        storage: Any = None,
        make_input: Callable[[str], Any] | None = None,
        said: Sequence[Message] = (),
        run: WorkflowRun | None = None,
    ) -> None:
        self.target, self._make_input = target, make_input
        self._graph = target if isinstance(target, CompiledGraph) else None
        workflow: Workflow = target.workflow if isinstance(target, CompiledGraph) else target
        self.workflow, self.name = workflow, workflow_name(workflow)
        self.run = run
        self._said = list(said)
        #: What was typed, and how many messages were recorded then.
        self._typed: list[tuple[int, Message]] = []
        if self._graph is None:
            if session is not None:
                msg = "session= is for agents and graphs; a workflow has its state in its run. Leave it out."
                raise TypeError(msg)
            self._storage = bare_storage(storage) or workflow.storage or InMemoryCheckpointStorage()
            if make_input is None and self._input_of("text") is None:
                takes = ", ".join(getattr(each, "__name__", str(each)) for each in workflow.input_types)
                msg = (
                    f"Workflow {self.name!r} takes {takes}, not a text. Pass input=, a function from the text to that."
                )
                raise TypeError(msg)
        elif storage is not None:
            msg = "A compiled graph keeps its own storage. Leave storage= out, or pass it to compile()."
            raise TypeError(msg)
        else:
            given = {"thread_id": session} if isinstance(session, (str, int)) else session
            self.config: Mapping[str, Any] = given or {"thread_id": AgentSession().session_id}

    def _input_of(self, text: str) -> Any:
        """Return a text in the form that the start executors take; `None` if they take none."""
        if self._make_input is not None:
            return self._make_input(text)
        if self._graph is not None:
            return {"messages": text}
        message, starts = Message("user", [text]), self.workflow.graph.start_executors
        forms: tuple[Any, ...] = (text, message, [message])
        return next((each for each in forms if all(start.find_handler(each) for start in starts)), None)

    @property
    def messages(self) -> list[Message]:
        """What was said so far, in the state of a graph or by the events of a run."""
        said = self._recorded()
        for at, message in reversed(self._typed):  # until it is recorded, and further input of a run never is
            if not any(each.role == "user" and each.text == message.text for each in said[at:]):
                said.insert(at, message)
        return said

    def _recorded(self) -> list[Message]:
        if self.run is None:
            return [*self._said]
        if self._graph is not None:
            state = self.run.state
            for name in _CONVERSATIONS:
                if isinstance(state.get(name), list):
                    return [each for each in state[name] if isinstance(each, Message)]
        own = conversation_in_run(RunHistory(events=self.run.events))
        # A restored run emits its open questions again.
        return [*self._said, *(own[1:] if own[:1] == self._said[-1:] else own)]

    @property
    def requests(self) -> list[Any]:
        """The open requests of the run."""
        return [] if self.run is None else self.run.pending_requests

    @property
    def ending(self) -> str:
        """The status of the run, where questions inside it were left unanswered."""
        unanswered = 0 if self.run is None else count_unanswered(self.run.events)
        return state_text(self.run.status, unanswered) if self.run is not None and unanswered else ""

    async def send(self, text: str, on_change: OnChange) -> None:
        """Send a text into the run, or begin a new one, and follow it until it is idle."""
        given = self._input_of(text)
        if self._graph is not None:
            run = await self._graph.astart(given, self.config)
        elif self.run is not None and await self.run.try_send_message(given):
            run = self.run
        else:
            run = self.workflow.start(given, checkpoint_storage=self._storage)
        if run is not self.run:
            self._said, self._typed = self.messages, []
        self.run = run
        self._typed.append((len(self._recorded()), Message("user", [text])))
        await self.go_on(on_change)

    async def answer(self, request_id: str, value: Any) -> None:
        """Take the answer to a request."""
        assert self.run is not None
        await self.run.respond(request_id, value)

    async def go_on(self, on_change: OnChange) -> None:
        """Drive the run until it is idle or waits for answers."""
        on_change()
        assert self.run is not None
        async for _ in self.run.watch_stream():
            on_change()

    async def mark(self) -> Any:
        """Return the checkpoint of this point."""
        return None if self.run is None else self.run.last_checkpoint

    async def fork(self, mark: Any, messages: Sequence[Message]) -> RunTalk:
        """Return the conversation with a run that begins at the checkpoint."""
        if mark is None or self.run is None:
            msg = "No checkpoint was saved at this turn, so it cannot be forked."
            raise ValueError(msg)
        if self._graph is not None:
            if mark.n_requests:
                msg = "This turn ended with a question of the graph. Fork the turn after its answer, or the one before."
                raise ValueError(msg)
            config = await self._graph.afork({**self.config, "checkpoint_id": mark.checkpoint_id})
            thread = {**self.config, "thread_id": config["thread_id"]}
            thread.pop("checkpoint_id", None)
            return RunTalk(self._graph, session=thread, make_input=self._make_input, said=messages)
        run = await self.run.fork(mark)
        async for _ in run.watch_stream():
            pass  # only restores it: the turn was over
        return RunTalk(self.target, storage=self._storage, make_input=self._make_input, said=messages, run=run)

    async def close(self) -> None:
        """Cancel the run, if there is one."""
        if self.run is not None:
            await self.run.cancel()
