"""`chat()`: a chat panel for an agent, a workflow or a compiled graph, with forks."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any

from agentbench import _bridge
from agentbench._text.escape import esc
from agentbench._text.phrases import count_text
from agentbench.exceptions import WidgetsUnavailable
from agentbench.messages.message import Message
from agentbench.notebook.cards.conversation.views import Transcript
from agentbench.notebook.chat_panel.talks import OnChange, Talk, talk_with
from agentbench.notebook.runtime.bundles import show_as_one
from agentbench.notebook.runtime.pacing import Pacer
from agentbench.notebook.runtime.stand_in import StandIn, WidgetDisplay, needs_widgets
from agentbench.notebook.runtime.waiting import wait
from agentbench.notebook.stepping.options import kernel_loop

if TYPE_CHECKING:
    from agentbench.notebook.chat_panel.page import ChatPage
    from agentbench.notebook.forms.inbox import RequestForms
    from agentbench.workflows.run.run import WorkflowRun

_READY, _WORKING, _ASKS = "ready", "working", "waiting for your answer"


def chat(
    target: Any,
    *,
    session: Any = None,
    storage: Any = None,
    input: Callable[[str], Any] | None = None,  # noqa: A002 - published signature
) -> Chat:
    """Return a chat panel for an agent, a workflow or a compiled graph. Nothing runs until a message is sent.

    The answer appears as it is streamed, with tool calls folded. Calls that need approval have buttons, and requests
    of workflows and graphs are forms. **Fork** at a turn opens a second panel that continues from there, with a copy of
    an agent's session, or from the checkpoint of a workflow or graph.

    Args:
        target: An agent, a workflow, or a compiled graph. A workflow receives each message as further input of one run;
            after a failed or stopped run, a new run starts.
        session: For an agent its session, by default a new one; for a graph its thread, as an id or a configuration.
        storage: Checkpoint storage for a workflow; by default its own, otherwise one in memory.
        input: Converts the typed text to the input. By default the input is the text, or a message with the text.

    Raises:
        TypeError: The target is none of these, does not accept a text, or does not use `session` or `storage`.

    Example:
        talk = chat(agent)
        talk  # the panel
        talk.send("How much rain fell in Bergen?")
    """
    return Chat(talk_with(target, session, storage, input))


class Chat(WidgetDisplay):
    """A chat panel, made by `chat`. Every action of the panel has a method with the same effect.

    `text` is the conversation as plain text, `messages` are its messages, `close` frees its resources.

    Raises:
        RuntimeError: By `send` and `fork`, while the chat is working or after `close`.
        ValueError: By `send`, for an empty text or while a request is open.

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
        self._turns: list[tuple[int, Any]] = []
        """For each finished turn: the number of messages, and the data for a fork."""
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
        """The messages of the conversation, including the answer being streamed."""
        return self._talk.messages

    @property
    def pending(self) -> list[Any]:
        """The open requests, oldest first; `respond` answers one."""
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
        """The number of finished turns, which can be forked."""
        return len(self._turns)

    def send(self, text: str) -> None:
        """Send a message and wait until the answer is complete or a request is open; raises the errors of the run."""
        _bridge.require_blocking("send")
        _bridge.wait_sync(self._begin(text), name="Chat.send()")

    async def asend(self, text: str) -> None:
        """Like `send`, awaited."""
        await wait(self._begin(text))

    def respond(self, request: Any, value: Any) -> None:
        """Answer a request, passed as an object or by its id, and wait like `send`.

        Raises:
            ValueError: The request is not open, or the answer has the wrong type.
        """
        _bridge.require_blocking("respond")
        request_id = request if isinstance(request, str) else request.request_id
        if request_id not in [each.request_id for each in self.pending]:
            msg = f"There is no open request {request_id!r}. Open: {[each.request_id for each in self.pending]}."
            raise ValueError(msg)
        _bridge.wait_sync(_bridge.submit(self._talk.answer(request_id, value), loop=self._loop), name="Chat.respond()")
        _bridge.wait_sync(self._start(self._talk.resume), name="Chat.respond()")

    def stop(self) -> None:
        """Stop the current answer. Returns immediately."""
        if self._work is not None:
            self._work.cancel()

    def fork(self, turn: int = -1) -> Chat:
        """Return a new chat that continues from the end of a turn, by default the last one; this chat does not change.

        Raises:
            IndexError: The turn does not exist.
            ValueError: The conversation cannot be restored to this turn; the message says why.
        """
        _bridge.require_blocking("fork")
        return _bridge.wait_sync(_bridge.submit(self._fork(turn), loop=self._loop), name="Chat.fork()")

    async def _fork(self, turn: int, on_close: Callable[[Chat], object] | None = None) -> Chat:
        if self._busy or self._closed:
            msg = f"This chat is {self.status}. Fork it when its answer is complete."
            raise RuntimeError(msg)
        if not -len(self._turns) <= turn < len(self._turns):
            msg = f"Turn {turn} does not exist: the chat has {count_text(len(self._turns), 'turn')}, counted from 0."
            raise IndexError(msg)
        turn %= len(self._turns)
        count, mark = self._turns[turn]
        talk = await self._talk.fork(mark, self.messages[:count])
        other = Chat(talk, f"{self._title}, fork of turn {turn + 1}", on_close=on_close)
        other._turns = [(count, await other._talk.mark())]
        return other

    def _begin(self, text: str) -> _bridge.EngineFuture[None]:
        typed: object = text
        if not isinstance(typed, str) or not typed.strip():
            msg = f"send() needs a non-empty text, not {text!r}."
            raise ValueError(msg)
        if self.pending:
            msg = f"{self._talk.name} waits for an answer. Call respond(...), or use the form of the request."
            raise ValueError(msg)
        return self._start(lambda on_change: self._talk.send(text, on_change))

    def _start(self, work: Callable[[OnChange], Awaitable[None]]) -> _bridge.EngineFuture[None]:
        with self._lock:
            if self._busy or self._closed:
                msg = f"This chat is {self.status}. " + ("Make a new one." if self._closed else "Wait, or call stop().")
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
        """The conversation as plain text."""
        return f"{self!r}\n{self._transcript.text}"

    @property
    def _transcript(self) -> Transcript:
        facts = () if self.status == _READY else (self.status,)
        return Transcript(tuple(self.messages), facts=facts)

    @property
    def widget(self) -> Any:
        """The chat as an ipywidget, created once.

        Raises:
            WidgetsUnavailable: ipywidgets or anywidget is missing.
        """
        if self._box is None:
            with needs_widgets("chat.send() and print(chat.text) work without widgets"):
                import ipywidgets

                from agentbench.notebook.chat_panel.page import ChatPage
                from agentbench.notebook.forms.inbox import RequestForms
            calls: dict[str, Callable[[Any], object]] = {
                "send": self._on_send,
                "stop": lambda _: self.stop(),
                "fork": self._on_fork,
            }
            calls["close"] = lambda _: None if self._on_close is None else self._on_close(self)
            self._page = ChatPage(f"Chat with {self._title}", calls)
            self._forms = RequestForms(self._on_answer, can_withdraw=self._talk.can_withdraw)
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
            forks = {} if self._busy else {count: turn for turn, (count, _) in enumerate(self._turns)}
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
        # The form first reports that its answer was accepted.
        asyncio.get_running_loop().call_soon(lambda: self._start(self._talk.resume))

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
        """Stop the answer, and free the panel, its forks and the conversation. May be called twice."""
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
        return show_as_one(self, lambda: self._transcript)

    def _bundle_without_widgets(self, error: WidgetsUnavailable) -> dict[str, Any]:
        return {**self._transcript._repr_mimebundle_(), "text/plain": f"{self.text}\n{error}"}

    def __repr__(self) -> str:
        return f"Chat({esc(self._title, into='line', limit=80)}, {count_text(len(self._turns), 'turn')}, {self.status})"
