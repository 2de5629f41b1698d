"""What a stepper has on the page: made when it is first shown, drawn when something has changed."""

from __future__ import annotations

import asyncio
import contextlib
import sys
import threading
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal

from agentbench._bridge import EngineFuture, engine_thread
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.notebook import settings
from agentbench.notebook.pacing import Pacer
from agentbench.notebook.shape import read_shape
from agentbench.notebook.shape_text import shape_text
from agentbench.notebook.stepper_content import Content, content_of
from agentbench.notebook.stepper_messages import (
    IN_FLIGHT,
    BackAsked,
    ForwardAsked,
    GotoAsked,
    LiveAsked,
    PauseAsked,
    RunAsked,
    StepAsked,
    Stimulus,
    StopAsked,
)
from agentbench.notebook.stepper_session import StepperSession
from agentbench.notebook.stepper_view import StepperView, view_of
from agentbench.notebook.value_tree import ValueTree

if TYPE_CHECKING:
    from agentbench.notebook.graph_view import GraphView

__all__ = ["Layout", "StepperScreen", "in_kernel", "show_in_cell"]

Layout = Literal["auto", "wide", "stacked", "graph", "minimal"]

_SHORT_STEP_S = 0.03  # a superstep that is over by then is shown only as over: nothing flickers
_LOADING = Content("Loading the checkpoint …", ValueTree())


class StepperScreen:
    """Between a session and its pages: reads the one, draws the others, and takes what people press.

    Args:
        session: What is shown and driven.
        workflow: The graph.
        layout: Which parts there are, and how they lie.
        height: Of graph and tabs, in pixels.
        limit: Most supersteps of a run that a button starts.
    """

    def __init__(self, session: StepperSession, workflow: Any, *, layout: Layout, height: int, limit: int) -> None:
        self._session = session
        self._workflow = workflow
        self._layout: Layout = layout
        self._height, self._limit = height, limit
        self._page: Any = None
        self._display: Any = None
        self._closed = False
        self._tab = "state"
        self._selected: str | None = None
        self._loaded: WorkflowCheckpoint | None = None
        self._made: tuple[object, Content] = (None, _LOADING)
        self._soon_lock, self._touching_later = threading.Lock(), False
        self._pacer = Pacer(partial(self.soon, self._draw), later=self._call_later)

    # ---- what is shown -----------------------------------------------------------------------------------------------

    @property
    def view(self) -> StepperView:
        """What is to be shown now."""
        with self._session.reading() as model:
            return view_of(model, times=not settings.current().deterministic)

    @property
    def text(self) -> str:
        """The same in words."""
        view = self.view
        states = {element: state for element, state in view.states.items() if isinstance(element, str)}
        lines = [view.header.line, shape_text(read_shape(self._workflow), states)]
        lines += [f"⏸ {request.source_executor_id} asks; answer {request.request_id}" for request in view.requests]
        return "\n".join(lines)

    @property
    def tab(self) -> str:
        """Name of the open tab."""
        return self._tab

    @property
    def log_total(self) -> int:
        """How many lines were ever written to the log."""
        return self._session.model.log_total

    @property
    def content(self) -> Content:
        """What the open tab holds; the same object until it changes. Called on the loop of the runs."""
        handle = self._session.handle
        with self._session.reading() as model:
            viewed = None if model.viewing is None else model.past[model.viewing].info.checkpoint_id
            if viewed is not None and (self._loaded is None or self._loaded.checkpoint_id != viewed):
                self._load(viewed)
                return _LOADING
            events = handle.events if handle is not None and self._tab == "events" else []
            made_of = (self._tab, viewed, id(model.facts), len(model.reports), self._selected, len(events))
            if self._made[0] != made_of:
                content = content_of(
                    self._tab,
                    model,
                    live_state={} if handle is None else handle.state,
                    checkpoint=self._loaded if viewed is not None else None,
                    events=events,
                    selected=self._selected,
                )
                self._made = (made_of, content)
            return self._made[1]

    def _load(self, checkpoint_id: str) -> None:
        loading = self._session.start(self._session.checkpoint(checkpoint_id))

        def loaded(done: Future[WorkflowCheckpoint]) -> None:
            if done.cancelled():
                return
            error = done.exception()
            if error is not None:
                self._session.note_down(f"{checkpoint_id} cannot be shown: {type(error).__name__}: {error}")
                return
            self._loaded = done.result()
            self.touch()

        loading.add_done_callback(loaded)

    # ---- what people press -------------------------------------------------------------------------------------------

    def press(self, name: str) -> None:
        """Do what a button does.

        Raises:
            StepperStateError: It can do nothing now.
        """
        stimulus = self._stimulus(name)
        if stimulus is not None:
            self._session.begin(stimulus)

    def _stimulus(self, name: str) -> Stimulus | None:
        model = self._session.model
        if name == "confirm":
            return None if model.confirming is None else replace(model.confirming, confirmed=True)
        if name == "cancel":
            return None if model.viewing is None else GotoAsked(model.past[model.viewing].info.checkpoint_id)
        stimuli: dict[str, Stimulus] = {
            "step": StepAsked(),
            "run": RunAsked(limit=self._limit, through=True),
            "pause": PauseAsked(),
            "stop": StopAsked(),
            "back": BackAsked(),
            "forward": ForwardAsked(),
            "live": LiveAsked(),
        }
        return stimuli.get(name)

    def show_checkpoint(self, checkpoint_id: str) -> None:
        """Show a checkpoint; raises what `Stepper.goto` raises."""
        self._session.ask(GotoAsked(checkpoint_id))

    def open_tab(self, name: str) -> None:
        """Open a tab."""
        self._tab = name
        self.touch()

    def select(self, executor_id: str | None) -> None:
        """Show a node in its tab."""
        self._selected = executor_id
        if executor_id is not None:
            self._tab = "node"
        self.touch()

    def answer(self, request_id: str, value: Any) -> EngineFuture[None]:
        """Send an answer; the future ends when the engine has taken it."""
        with self._session.reading() as model:
            model.require_open()
        return self._session.start(self._session.answer(request_id, value))

    # ---- drawing -----------------------------------------------------------------------------------------------------

    @property
    def _loop(self) -> asyncio.AbstractEventLoop:
        return self._session.loop or engine_thread().loop

    @property
    def on_own_loop(self) -> bool:
        """Whether the caller runs on the loop of the runs, where waiting for it would never end."""
        try:
            return asyncio.get_running_loop() is self._loop
        except RuntimeError:
            return False

    def soon(self, call: Callable[[], None]) -> None:
        """Call a function on the loop of the runs, where reading a run disturbs nobody."""
        with contextlib.suppress(RuntimeError):  # the loop was closed: the process ends
            self._loop.call_soon_threadsafe(call)

    def _call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        def arm() -> None:
            self._loop.call_later(delay_s, call)

        self.soon(arm)

    def touch(self) -> None:
        """Something has changed. From any thread; returns at once."""
        if self._page is None:
            return
        if self._session.model.status not in IN_FLIGHT:
            self._pacer.touch()
            return
        with self._soon_lock:
            waiting, self._touching_later = self._touching_later, True
        if not waiting:
            self._call_later(_SHORT_STEP_S, self._touch_now)

    def _touch_now(self) -> None:
        with self._soon_lock:
            self._touching_later = False
        self._pacer.touch()

    def _draw(self) -> None:
        page = self._page
        if page is not None and not self._closed:
            page.draw(len(self._session.model.reports))

    @property
    def shown(self) -> bool:
        """Whether there is a panel."""
        return self._page is not None

    @property
    def widget(self) -> Any:
        """The panel. The same one at each reading.

        Raises:
            WidgetsUnavailable: ipywidgets is not installed.
        """
        if self._page is None:
            self._page = self._make_page()
            self._pacer.touch()
        return self._page.widget

    def _make_page(self) -> Any:
        from agentbench.notebook.panel import make_graph_panel

        panel = None
        if self._layout != "minimal":
            panel = make_graph_panel(self._workflow, height=self._height)
            panel.on_select(self.select)
            panel.expect_page()
        name = f"Stepper {self._session.model.name}"
        try:
            if not settings.current().live_graph:
                raise ModuleNotFoundError(name="anywidget")
            from agentbench.notebook.stepper_page import StepperPage
        except ModuleNotFoundError:
            from agentbench.notebook.stepper_plain import PlainPage

            return PlainPage(self, panel, height=self._height)
        return StepperPage(self, name, panel, layout=self._layout, height=self._height)

    def snapshot(self) -> GraphView:
        """A static picture of now; in a notebook it is shown, in place of the one before."""
        from agentbench.notebook.graph_view import draw

        picture = draw(self._workflow, run=dict(self.view.states))
        if in_kernel():
            if self._display is None:
                self._display = show_in_cell(picture, display_id=True)
            else:
                self._display.update(picture)
        return picture

    def close(self) -> None:
        """Take everything off the page. May be called twice."""
        page = self._page
        if page is not None and not self._closed:
            self._closed = True
            self._pacer.close()
            page.close()


def show_in_cell(what: object, **options: Any) -> Any:
    """Display something in the cell that runs now."""
    import IPython.display

    display: Any = IPython.display.display
    return display(what, **options)


def in_kernel() -> bool:
    """Whether this is a notebook kernel, which can show widgets. Loads nothing."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None
