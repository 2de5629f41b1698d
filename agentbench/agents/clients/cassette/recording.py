"""The recorded model calls and answers of one run, in the form of a cassette: kept, given again, and saved."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Coroutine, Iterable, Mapping, Sequence
from contextvars import ContextVar
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentbench._display import Displayable, drawn_by, shorten
from agentbench.agents.clients.cassette.cassette import Cassette
from agentbench.agents.clients.cassette.client import CassetteChatClient, response_for
from agentbench.agents.clients.cassette.lines import StoredCall, header_line, pruned_lines
from agentbench.agents.clients.cassette.recorded_call import NewCall, NewCalls, RecordedCall, check_new_calls
from agentbench.agents.clients.cassette.request import (
    Matcher,
    Plain,
    Redaction,
    SecretFinder,
    plain_answer,
    plain_message,
    plain_options,
    plain_tools,
    prompt_of,
)
from agentbench.agents.clients.scripted.script import PerMessage
from agentbench.agents.clients.scripted.scripted import AnsweringChatClient
from agentbench.agents.model.recording import recorder
from agentbench.agents.model.request import response_as_stream
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.metadata import RUN_ID, SEQ, recorded_chain
from agentbench.exceptions import UnrecordedCallError
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate
from agentbench.serialization.plain import are_equal
from agentbench.workflows.executors.recorder import GivenAnswer, RunScene
from agentbench.workflows.graph.boundary import PauseReason

if TYPE_CHECKING:
    from agentbench.checkpoints.storage import CheckpointStorage

_place: Final[ContextVar[tuple[str, int]]] = ContextVar("agentbench_recorded_place", default=("", 0))
"""The executor whose handler is being called, and its superstep."""

_may_wait: Final[ContextVar[bool]] = ContextVar("agentbench_may_wait", default=True)
"""Whether a request may wait for permission; not while a run only looks ahead."""


@drawn_by("agentbench.notebook.cards.cassette:recording")
class ModelRecording(Displayable):
    """The model calls of one run, and the answers that people gave; masked as in cassettes.

    A run that is started with `RunOptions(record=True)` makes one, `run.recording`. A run that is started with a
    recording takes from it the answers to equal requests, each once, in the recorded order; other requests are sent,
    or not, as `new_calls` says. Tools are really called.

    Args:
        given: The recorded calls that answer requests.
        answers: Answers of people, which the run gives again to equal requests of the same executor, each once.
        new_calls: What happens to a request without a recorded answer: `"allow"` sends it, `"refuse"` raises
            `UnrecordedCallError`, a number sends so many, and `"ask"` stops the run until it is allowed.
        everything: Record all clients; with False only those that are not offline, such as scripted ones.
        limit: The size in bytes at which it stops recording.

    Attributes:
        calls: The calls of the run so far, in the order in which they ended; a fork includes those before it.
        answers: The answers that people gave in the run.
        new_calls: As above.

    Example:
        >>> run = workflow.start("a late parcel", options=RunOptions(record=True))
        >>> await run.result()
        >>> run.recording
        ModelRecording(2 calls)
        >>> run.recording.save("late_parcel.jsonl")  # a cassette, which CassetteChatClient reads too
    """

    def __init__(
        self,
        given: Iterable[RecordedCall | StoredCall] = (),
        answers: Iterable[GivenAnswer] = (),
        *,
        new_calls: NewCalls = "allow",
        everything: bool = True,
        limit: int = 50_000_000,
    ) -> None:
        self.new_calls: NewCalls = check_new_calls(new_calls)
        self.recorded: list[RecordedCall] = []
        self.answers: list[GivenAnswer] = []
        self.everything = everything
        self.limit = self._room = limit
        self._matcher = Matcher(None, Redaction(()))
        self._given: dict[str, list[RecordedCall]] = {}
        for each in given:
            self._give(each if isinstance(each, RecordedCall) else RecordedCall("", 0, each))
        self._answers = list(answers)
        self._replays = bool(self._given or self._answers) or new_calls != "allow"
        self._refused: dict[tuple[str, int], UnrecordedCallError] = {}
        self._waiting: list[NewCall] = []
        self._scene: RunScene | None = None
        self._n_inherited = 0
        self._n_saved = 0
        self._last_saved: str | None = None
        self._find_secrets = SecretFinder()
        self._forms: dict[frozenset[str], tuple[Redaction, PerMessage[Plain]]] = {}

    @property
    def calls(self) -> list[StoredCall]:
        """The calls of the run so far, in the order in which they ended."""
        return [each.call for each in self.recorded]

    # ---- as a file -------------------------------------------------------------------------------

    def save(self, path: str | os.PathLike[str]) -> Path:
        """Write the calls as a cassette, and return its path; an existing file is replaced."""
        calls = [
            StoredCall(number, 0, call.request, call.response, call.updates)
            for number, call in enumerate(self.calls, start=1)
        ]
        model = calls[0].request["options"].get("model") if calls else None
        header = json.loads(header_line(client="ModelRecording", model=model if isinstance(model, str) else None))
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.writelines(f"{line}\n" for line in pruned_lines(header, calls))
        return Path(path)

    @classmethod
    def load(cls, path: str | os.PathLike[str], *, new_calls: NewCalls = "refuse") -> ModelRecording:
        """Return a recording that answers from a cassette.

        Raises:
            FileNotFoundError: There is no such file.
            ValueError: A line of the file is not part of a cassette.
        """
        if not os.path.exists(path):
            msg = f"The cassette {os.fspath(path)!r} was not found."
            raise FileNotFoundError(msg)
        cassette = Cassette(os.fspath(path))
        cassette.read()
        return cls(cassette.lines.calls, new_calls=new_calls)

    @classmethod
    async def of_run(cls, storage: CheckpointStorage, chain: str, run_id: str) -> ModelRecording:
        """Return what a run has recorded next to its chain, also in another process; empty if it recorded nothing."""
        recording = cls()
        for checkpoint_id in await storage.list_checkpoint_ids(workflow_name=recorded_chain(chain, run_id)):
            state = (await storage.load(checkpoint_id)).state
            if "rewound_to" in state:
                await recording.rewind(state["rewound_to"], state["open"])
            elif "answer" in state:
                recording.answers.append(GivenAnswer(**state["answer"]))
            else:
                number = len(recording.recorded) + 1
                call = StoredCall(number, 0, state["request"], state.get("response"), state.get("updates"))
                recording.recorded.append(RecordedCall(state["executor_id"], state["superstep"], call))
        return recording

    # ---- for the run -----------------------------------------------------------------------------

    @property
    def new_call(self) -> NewCall | None:
        """The request that has waited longest for permission; None if none does."""
        return next((call for call in self._waiting if not call.is_allowed), None)

    def begin(self, scene: RunScene) -> None:
        """Begin to record a run."""
        self._scene = scene

    def successor(self, superstep: int) -> ModelRecording:
        """Return a recording for a fork of the run after a superstep: the calls up to there.

        The fork of a redone run is redone too, under the same rule for new calls, until all of them are allowed.
        """
        if self.new_calls == "allow":
            following = ModelRecording(everything=self.everything, limit=self.limit)
        else:
            unused, answers = self.unused
            calls = [*(each for each in self.own if each.superstep > superstep), *unused]
            rules: dict[str, Any] = {"everything": self.everything, "limit": self.limit}
            following = ModelRecording(calls, answers, new_calls=self.new_calls, **rules)
        following.inherit(each for each in self.recorded if each.superstep <= superstep)
        return following

    def inherit(self, earlier: Iterable[RecordedCall]) -> None:
        """Begin with the calls of the supersteps before a branch, which belong to earlier runs."""
        self.recorded = [*earlier]
        self._n_inherited = len(self.recorded)

    async def rewind(self, superstep: int, open_requests: Collection[str]) -> None:
        """Go back to the end of a superstep: forget what came later, or give it again if this recording answers."""
        calls = [each for each in self.own if each.superstep > superstep]
        answers = [each for each in self.answers if each.is_after(superstep, open_requests)]
        self.answers = [each for each in self.answers if not each.is_after(superstep, open_requests)]
        inherited = [each for each in self.recorded[: self._n_inherited] if each.superstep <= superstep]
        kept = [each for each in self.own if each.superstep <= superstep]
        self.recorded, self._n_inherited = [*inherited, *kept], len(inherited)
        if self._replays:
            self._answers = [*answers, *self._answers]
            for each in reversed(calls):
                self._give(each, first=True)
        await self._store({"rewound_to": superstep, "open": [*open_requests]})

    @property
    def own(self) -> list[RecordedCall]:
        """The calls of this run, without those of the runs that it continues."""
        return self.recorded[self._n_inherited :]

    @property
    def unused(self) -> tuple[list[RecordedCall], list[GivenAnswer]]:
        """The calls and answers that were not given again so far."""
        return [each for calls in self._given.values() for each in calls], self._answers

    @property
    def asks(self) -> bool:
        """Whether a request may wait for permission."""
        return self.new_calls == "ask"

    async def around(
        self, executor_id: str, superstep: int, call: Coroutine[Any, Any, Any], *, may_wait: bool = True
    ) -> Any:
        """Await a handler, or conditions, whose model calls are recorded."""
        if recorder.get() not in (None, self):
            return await call  # a run inside a handler of a run that records: that one records its calls
        where = (executor_id, superstep)
        recording, place, waits = recorder.set(self), _place.set(where), _may_wait.set(may_wait)
        try:
            return await call
        finally:
            recorder.reset(recording)
            _place.reset(place)
            _may_wait.reset(waits)
            if (refused := self._refused.pop(where, None)) is not None:
                raise refused  # also if the handler has caught it, such as the tool loop of an agent

    def allow(self, which: str) -> None:
        """Let the waiting request (`this`) or all requests (`all`) be sent."""
        if which == "all":
            self.new_calls = "allow"
            for call in self._waiting:
                call.is_allowed = True
        elif which != "this":
            msg = f"which is {which!r}; expected 'this' or 'all'."
            raise ValueError(msg)
        elif (waiting := self.new_call) is not None:
            waiting.is_allowed = True

    def answer_again(self, executor_id: str, request: Any) -> GivenAnswer | None:
        """Return the answer that was given to an equal request before, each once."""
        for place, answer in enumerate(self._answers):
            if answer.executor_id == executor_id and are_equal(answer.request, request):
                self.answers.append(self._answers.pop(place))
                return answer
        return None

    async def note_answer(self, answer: GivenAnswer) -> None:
        """Keep the answer of a person."""
        self.answers.append(answer)
        await self._store({"answer": {each.name: getattr(answer, each.name) for each in fields(answer)}})

    # ---- as the recorder of model calls ----------------------------------------------------------

    def covers(self, client: Any) -> bool:
        """Whether the calls of a client are recorded."""
        return self.everything or not isinstance(client, (AnsweringChatClient, CassetteChatClient))

    async def respond(
        self,
        client: Any,
        messages: Sequence[Message],
        options: Mapping[str, Any],
        send: Callable[[], Awaitable[ChatResponse[Any]]],
    ) -> ChatResponse[Any]:
        """Return the recorded answer to a request, or send it and keep the answer."""
        request, redaction = self._stored_form(client, messages, options)
        if (call := self._serve(request)) is not None:
            await self._keep(call)
            return response_for(call, options)
        response: ChatResponse[Any] = await self._send(request, send)
        await self._keep_answer(request, redaction.answer({"response": plain_answer(response)}))
        return response

    async def open(
        self, client: Any, messages: Sequence[Message], options: Mapping[str, Any], send: Callable[[], Awaitable[Any]]
    ) -> Any:
        """Return the recorded answer to a request as a stream, or send it and keep the updates when it has ended."""
        request, redaction = self._stored_form(client, messages, options)
        if (call := self._serve(request)) is not None:
            await self._keep(call)
            if call.updates is None:
                return response_as_stream(response_for(call, options))
            updates = [ChatResponseUpdate.from_dict(json.loads(json.dumps(update))) for update in call.updates]
            return ResponseStream(_each(updates), finalizer=lambda _: response_for(call, options))
        stream = await self._send(request, send)
        read: list[Plain] = []

        async def read_and_keep() -> AsyncIterator[ChatResponseUpdate]:
            while True:
                unset = recorder.set(None)  # a client may call another client when its stream is read
                try:
                    update = await anext(stream, None)
                finally:
                    recorder.reset(unset)
                if update is None:
                    break
                read.append(plain_answer(update))
                yield update
            await self._keep_answer(request, redaction.answer({"updates": read}))

        following = ResponseStream(read_and_keep(), finalizer=lambda _: stream.get_final_response())
        return following.with_cleanup_hook(stream.aclose)

    def _stored_form(
        self, client: Any, messages: Sequence[Message], options: Mapping[str, Any]
    ) -> tuple[Plain, Redaction]:
        secrets = self._find_secrets(client)
        if secrets not in self._forms:
            redaction = Redaction(secrets)
            self._forms[secrets] = redaction, PerMessage(lambda message: redaction.updates([plain_message(message)])[0])
        redaction, form = self._forms[secrets]
        tools = plain_tools(options.get("tools"))
        plain = plain_options(options, model=getattr(client, "model", None))
        return {"messages": form(messages), **redaction.value({"tools": tools, "options": plain})}, redaction

    def _give(self, each: RecordedCall, *, first: bool = False) -> None:
        calls = self._given.setdefault(self._matcher.key(each.call.request), [])
        calls.insert(0 if first else len(calls), each)

    def _serve(self, request: Plain) -> StoredCall | None:
        """Return a recorded call with an equal request, if possible of the same executor."""
        calls = self._given.get(self._matcher.key(request)) if self._given else None
        if not calls:
            return None
        executor_id, _ = _place.get()
        place = next((place for place, each in enumerate(calls) if each.executor_id == executor_id), 0)
        return calls.pop(place).call

    async def _send(self, request: Plain, send: Callable[[], Awaitable[Any]]) -> Any:
        await self._require_permission(request)
        unset = recorder.set(None)  # a client may call another client
        try:
            return await send()
        finally:
            recorder.reset(unset)

    async def _require_permission(self, request: Plain) -> None:
        executor_id, superstep = _place.get()
        if self.new_calls == "allow":
            return
        if isinstance(self.new_calls, int) and self.new_calls > 0:
            self.new_calls -= 1
            return
        if self.new_calls == "ask" and self._scene is not None and _may_wait.get():
            call = NewCall(executor_id, request)
            self._waiting.append(call)
            try:
                while not call.is_allowed:
                    await self._scene.hold(PauseReason(repr(call).strip("<>"), "new_call"))
            finally:
                self._waiting.remove(call)
            return
        msg = (
            f"{executor_id or 'A condition'} makes a model call that was not recorded: {shorten(prompt_of(request))}. "
            "It was not sent. Pass new_calls='allow', 'ask' or a number to send new calls."
        )
        error = UnrecordedCallError(msg, executor_id=executor_id, request=request)
        raise self._refused.setdefault((executor_id, superstep), error)

    async def _keep_answer(self, request: Plain, answer: Plain) -> None:
        await self._keep(StoredCall(len(self.recorded) + 1, 0, request, **answer))

    async def _keep(self, call: StoredCall) -> None:
        executor_id, superstep = _place.get()
        answer = {"response": call.response} if call.updates is None else {"updates": call.updates}
        was_full, self._room = self._room < 0, self._room - len(json.dumps([call.request["messages"][-1:], answer]))
        if self._room < 0:
            if self._scene is not None and not was_full:
                self._scene.warn("The recording of model calls has reached record_limit; later calls are not recorded.")
            return
        self.recorded.append(RecordedCall(executor_id, superstep, call))
        await self._store({"executor_id": executor_id, "superstep": superstep, "request": call.request, **answer})

    async def _store(self, state: dict[str, Any]) -> None:
        """Save what was recorded next to the chain of the run; the run goes on if that fails."""
        scene = self._scene
        if scene is None or scene.storage is None:
            return
        self._n_saved += 1
        checkpoint = WorkflowCheckpoint(
            recorded_chain(scene.chain, scene.run_id),
            "",
            previous_checkpoint_id=self._last_saved,
            state=state,
            metadata={SEQ: self._n_saved, RUN_ID: scene.run_id},
        )
        try:
            self._last_saved = await scene.storage.save(checkpoint)
        except Exception as error:  # noqa: BLE001 - a storage raises anything
            scene.warn(f"A recorded call or answer was not saved: {type(error).__name__}: {error}")

    def __repr__(self) -> str:
        calls, answers = len(self.recorded), len(self.answers)
        parts = [f"{calls} call{'' if calls == 1 else 's'}"]
        if answers:
            parts.append(f"{answers} answer{'' if answers == 1 else 's'}")
        return f"ModelRecording({', '.join(parts)})"


async def _each(updates: Sequence[ChatResponseUpdate]) -> AsyncIterator[ChatResponseUpdate]:
    for update in updates:
        yield update
