"""`chat()`: a conversation with an agent, a workflow or a compiled graph in a cell, and forks of it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from agentbench import _bridge
from agentbench.exceptions import WidgetsUnavailable
from agentbench.messages.message import Message
from agentbench.notebook.cards.conversation.views import Transcript
from agentbench.notebook.chat_panel.talks import OnChange, Talk, talk_with
from agentbench.notebook.runtime.bundles import shown_as_one
from agentbench.notebook.runtime.pacing import Pacer
from agentbench.notebook.runtime.stand_in import StandIn
from agentbench.notebook.runtime.waiting import wait
from agentbench.notebook.stepping.options import kernel_loop
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text

if TYPE_CHECKING:
    from agentbench.notebook.chat_panel.page import ChatPage
    from agentbench.notebook.forms.inbox import RequestForms
    from agentbench.workflows.run.run import WorkflowRun

__all__ = ["Chat", "chat"]

_READY, _WORKING, _ASKS = "ready", "working", "waiting for your answer"


def chat(
    target: Any,
    *,
    session: Any = None,
    storage: Any = None,
    input: Callable[[str], Any] | None = None,  # noqa: A002 - published signature
) -> Chat:
    """Return a panel to talk with an agent, a workflow or a compiled graph. Nothing runs until a message is sent.

    The answer appears as it is streamed, with tool calls folded. Calls that need approval have buttons, and questions
    of workflows and graphs are forms. **Fork** at a turn opens a second panel that goes on from there: with a copy of
    the session of an agent, or from the checkpoint of a workflow or graph.

    Args:
        target: An agent, a workflow, or a compiled graph. A workflow gets each message as further input of one run,
            and a new run after one that failed or was stopped.
        session: The session of an agent, by default a new one; of a graph its thread, as an id or a configuration.
        storage: Where the checkpoints of a workflow go; by default its own storage, else one in memory.
        input: Makes the input of the typed text. By default it is the text, or the text as a message.

    Raises:
        TypeError: The target cannot talk, does not take a text, or has no use for `session` or `storage`.

    Example:
        talk = chat(agent)
        talk  # the panel
        talk.send("How much rain fell in Bergen?")
    """
    return Chat(talk_with(target, session, storage, input))


class Chat:
    """A conversation in a cell; made by `chat`. Everything that a person does there has a method with the same effect.

    `text` is the conversation in words, `messages` are its messages, `close` frees what it holds.

    Raises:
        RuntimeError: By `send` and `fork`, while an answer is on its way or after `close`.
        ValueError: By `send` for an empty text or while a question is open.

    Example:
        talk = chat(agent)
        talk.send("Name a river.")
        other = talk.fork()
        other.send("Another one.")
        print(other.text)
    """

    def __init__(self, talk: Talk, title: str = "", *, on_close: Callable[[Chat], object] | None = None) -> None:
        self._talk = talk
        self._title = title or talk.name
        self._loop = kernel_loop(None)
        self._lock = threading.RLock()
        self._work: _bridge.EngineFuture[None] | None = None
        self._status, self._problem = _READY, ""
        self._busy = self._closed = False
        #: For each turn that is over: how many messages there were, and what a fork needs.
        self._turns: list[tuple[int, Any]] = []
        self._page: ChatPage | None = None
        self._forms: RequestForms | None = None
        self._box: Any = None
        self._forks: list[Chat] = []
        self._on_close = on_close
        self._pacer = Pacer(self._draw)
        self._stand_in = StandIn(self, lambda: self._transcript._repr_mimebundle_())

    # ---- the conversation -------------------------------------------------------------------------------------------

    @property
    def messages(self) -> list[Message]:
        """What was said so far, with the answer that is being streamed."""
        return self._talk.messages

    @property
    def pending(self) -> list[Any]:
        """The open questions, oldest first; `respond` answers one."""
        return [] if self._busy else list(self._talk.requests)

    @property
    def status(self) -> str:
        """The status: `ready`, `working`, `waiting for your answer`, `failed: …`, `stopped` or `closed`."""
        if self._closed or self._busy:
            return "closed" if self._closed else _WORKING
        return _ASKS if self._talk.requests else self._problem or self._talk.ending or self._status

    @property
    def run(self) -> WorkflowRun | None:
        """The latest run of a workflow or graph; `None` for agents, and before the first message."""
        return getattr(self._talk, "run", None)

    @property
    def turns(self) -> int:
        """The number of turns that are over, which `fork` takes."""
        return len(self._turns)

    def send(self, text: str) -> None:
        """Send a message, and wait until the answer is complete or a question is open; raises what went wrong."""
        _bridge.require_blocking("send")
        _bridge.wait_sync(self._begin(text), name="Chat.send()")

    async def asend(self, text: str) -> None:
        """Send a message; see `send`."""
        await wait(self._begin(text))

    def respond(self, request: Any, value: Any) -> None:
        """Answer a question, named by itself or its id, and wait as `send` does.

        Raises:
            ValueError: There is no such question, or the answer is of another type than it needs.
        """
        _bridge.require_blocking("respond")
        request_id = request if isinstance(request, str) else request.request_id
        if request_id not in [each.request_id for each in self.pending]:
            msg = f"No open question has the id {request_id!r}. Open: {[each.request_id for each in self.pending]}."
            raise ValueError(msg)
        _bridge.wait_sync(_bridge.submit(self._talk.answer(request_id, value), loop=self._loop), name="Chat.respond()")
        _bridge.wait_sync(self._start(self._talk.go_on), name="Chat.respond()")

    def stop(self) -> None:
        """Stop the answer that is on its way. Returns at once."""
        if self._work is not None:
            self._work.cancel()

    def fork(self, turn: int = -1) -> Chat:
        """Return a chat that goes on from the end of a turn, the last one by default; this one stays as it is.

        Raises:
            IndexError: There is no such turn.
            ValueError: The conversation cannot be taken back to it; the text says why.
        """
        _bridge.require_blocking("fork")
        return _bridge.wait_sync(_bridge.submit(self._fork(turn), loop=self._loop), name="Chat.fork()")

    async def _fork(self, turn: int, on_close: Callable[[Chat], object] | None = None) -> Chat:
        if self._busy or self._closed:
            msg = f"This chat is {self.status}. Fork it when its answer is complete."
            raise RuntimeError(msg)
        if not -len(self._turns) <= turn < len(self._turns):
            msg = f"There is no turn {turn}: {count_text(len(self._turns), 'turn')} so far, counted from 0."
            raise IndexError(msg)
        turn %= len(self._turns)
        said, mark = self._turns[turn]
        talk = await self._talk.fork(mark, self.messages[:said])
        other = Chat(talk, f"{self._title}, fork of turn {turn + 1}", on_close=on_close)
        other._turns = [(said, await other._talk.mark())]
        return other

    def _begin(self, text: str) -> _bridge.EngineFuture[None]:
        typed: object = text
        if not isinstance(typed, str) or not typed.strip():
            msg = f"send() takes a text that is not empty, not {text!r}."
            raise ValueError(msg)
        if self.pending:
            msg = f"{self._talk.name} waits for an answer: use respond(...), or the form of the question."
            raise ValueError(msg)
        return self._start(lambda on_change: self._talk.send(text, on_change))

    def _start(self, work: Callable[[OnChange], Awaitable[None]]) -> _bridge.EngineFuture[None]:
        with self._lock:
            if self._busy or self._closed:
                msg = f"This chat is {self.status}. " + ("Make another one." if self._closed else "Wait, or stop() it.")
                raise RuntimeError(msg)
            self._busy = True
            self._work = _bridge.submit(self._drive(work), loop=self._loop)
            return self._work

    async def _drive(self, work: Callable[[OnChange], Awaitable[None]]) -> None:
        self._status, self._problem = _READY, ""
        try:
            await work(self._pacer.touch)
            self._turns.append((len(self.messages), await self._talk.mark()))
        except asyncio.CancelledError:
            self._status = "stopped"
            await self._talk.close()
            raise
        except Exception as error:
            self._problem = f"failed: {esc(f'{type(error).__name__}: {error}', into='line', limit=400)}"
            raise
        finally:
            self._busy = False
            self._pacer.touch()
            self._stand_in.touch()

    # ---- display ----------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The conversation in words."""
        return f"{self!r}\n{self._transcript.text}"

    @property
    def _transcript(self) -> Transcript:
        facts = () if self.status == _READY else (self.status,)
        return Transcript(tuple(self.messages), facts=facts)

    @property
    def widget(self) -> Any:
        """The chat as an ipywidget; always the same one.

        Raises:
            WidgetsUnavailable: ipywidgets or anywidget is missing.
        """
        if self._box is None:
            try:
                import ipywidgets

                from agentbench.notebook.chat_panel.page import ChatPage
                from agentbench.notebook.forms.inbox import RequestForms
            except ModuleNotFoundError as error:
                instead = "chat.send() and print(chat.text) need none"
                raise WidgetsUnavailable(instead, problem=f"{error.name} is not installed") from error
            calls: dict[str, Callable[[Any], object]] = {
                "send": self._on_send,
                "stop": lambda _: self.stop(),
                "fork": self._on_fork,
            }
            calls["close"] = lambda _: None if self._on_close is None else self._on_close(self)
            self._page = ChatPage(f"Chat with {self._title}", calls)
            self._forms = RequestForms(self._on_answer)
            self._box = ipywidgets.VBox([self._page.panel, self._forms.box])
            self._draw()
        return self._box

    def _draw(self) -> None:
        from agentbench.notebook.chat_panel.page import rows_of

        page, forms = self._page, self._forms
        if page is None or forms is None:
            return
        with self._lock:
            status, pending = self.status, self.pending
            forks = {} if self._busy else {said: turn for turn, (said, _) in enumerate(self._turns)}
            around = {
                "title": esc(self._title, into="line", limit=80),
                "status": status,
                "busy": self._busy,
                "asks": bool(pending),
                "tone": "bad" if self._problem and not self._busy else "ask" if pending or self._talk.ending else "",
                "closable": self._on_close is not None,
                "closed": self._closed,
            }
            page.draw(rows_of(self.messages, forks), around)
            forms.show(pending, count_text(len(pending), "question"), len(self.messages))

    def _on_send(self, text: Any) -> None:
        if isinstance(text, str) and text.strip() and not self._busy and not self.pending and not self._closed:
            self._begin(text)

    async def _take(self, request_id: str, value: Any) -> None:
        await self._talk.answer(request_id, value)
        # The form says first that its answer was accepted.
        asyncio.get_running_loop().call_soon(lambda: self._start(self._talk.go_on))

    def _on_answer(self, request_id: str, value: Any) -> object:
        return _bridge.submit(self._take(request_id, value), loop=self._loop)

    def _on_fork(self, turn: Any) -> None:
        if isinstance(turn, int) and 0 <= turn < len(self._turns):
            _bridge.submit(self._show_fork(turn), loop=self._loop)

    async def _show_fork(self, turn: int) -> None:
        try:
            other = await self._fork(turn, self._remove)
        except Exception as error:  # noqa: BLE001 - a person reads it
            self._problem = f"not forked: {esc(error, into='line', limit=400)}"
            self._draw()
            return
        self._forks.append(other)
        self._box.children = [*self._box.children, other.widget]

    def _remove(self, other: Chat) -> None:
        self._forks.remove(other)
        self._box.children = [each for each in self._box.children if each is not other._box]
        other.close()

    def close(self) -> None:
        """Stop, and free the panel, its forks and what the conversation holds. May be called twice."""
        from agentbench.notebook.runtime.widgets import close_all

        with self._lock:
            closed, self._closed = self._closed, True
        if closed:
            return
        self.stop()
        self._pacer.close()
        self._stand_in.update()
        self._stand_in.close()
        for each in self._forks:
            each.close()
        if self._forms is not None:
            self._forms.close()
        if self._box is not None:
            close_all(self._box)
        _bridge.submit(self._talk.close(), loop=self._loop)
        self._box = self._page = self._forms = None
        self._forks.clear()

    def _display_(self) -> Any:  # marimo calls it
        return shown_as_one(self, lambda: self._transcript)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        try:
            bundle = self.widget._repr_mimebundle_()
        except WidgetsUnavailable as error:
            return {**self._transcript._repr_mimebundle_(), "text/plain": f"{self.text}\n{error}"}
        return self._stand_in.bundle(bundle, include)

    def __repr__(self) -> str:
        return f"Chat({esc(self._title, into='line', limit=80)}, {count_text(len(self._turns), 'turn')}, {self.status})"
