"""The page of a stepper: made when it is first displayed, drawn again when something has changed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from agentbench._bridge import EngineFuture, engine_thread
from agentbench.checkpoints.editing import Edit
from agentbench.exceptions import NotebookError, WidgetsUnavailable
from agentbench.notebook.cells.workbench import older_code
from agentbench.notebook.graph.shape import read_shape
from agentbench.notebook.graph.text import shape_text
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.kernel import in_kernel, show_in_cell
from agentbench.notebook.runtime.pacing import Pacer
from agentbench.notebook.stepping.model.break_offers import Offer, message_types, offers_of, where_of
from agentbench.notebook.stepping.model.commands import COMMANDS
from agentbench.notebook.stepping.model.messages import IN_FLIGHT
from agentbench.notebook.stepping.options import Options
from agentbench.notebook.stepping.session import StepperSession
from agentbench.notebook.stepping.tab_loader import StepperTabs
from agentbench.notebook.stepping.view.tabs import Content
from agentbench.notebook.stepping.view.view import StepperView, view_of
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import count_text
from agentbench.notebook.text.redact import line_preview
from agentbench.workflows.events.events import WorkflowEvent

if TYPE_CHECKING:
    from agentbench.notebook.graph.view import GraphView
    from agentbench.notebook.stepping.page import StepperPage

__all__ = ["StepperScreen"]

_INSTEAD = "a picture and a text stand in for the panel"
_TAB_OF = {"edit": "state", "see_edits": "diff", "see_output": "output"}  # commands that only open a tab
_LISTED = 20  # requests in the text
_SHORT_STEP_S = 0.03  # a superstep that ends within this time is only drawn as finished: nothing flickers


class StepperScreen:
    """Between a session and its pages: reads the one, draws the others, and takes what people press.

    Args:
        session: The session being displayed and driven.
        workflow: The graph.
        options: Layout, height and limit.
    """

    def __init__(self, session: StepperSession, workflow: Any, options: Options) -> None:
        self._session = session
        self._workflow = workflow
        self._options = options
        self._page: StepperPage | None = None
        self._panel: Any = None
        self._display: Any = None
        self._closed = False
        self._shape = read_shape(workflow)
        self._tabs = StepperTabs(session, self._shape, self.touch)
        self._ringed: tuple[str, ...] = ()
        self._pacer = Pacer(partial(self.soon, self._draw), later=self._call_later)

    # ---- the view ----------------------------------------------------------------------------------------------------

    @property
    def view(self) -> StepperView:
        """The current view of the model."""
        with self._session.reading() as model:
            return view_of(model, times=not settings.current().deterministic, older=older_code(self._workflow))

    @property
    def text(self) -> str:
        """The view in words."""
        view = self.view
        states = {element: state for element, state in view.states.items() if isinstance(element, str)}
        lines = [view.header.line, shape_text(self._shape, states)]
        if view.banner.tone in ("error", "note"):
            lines.append(view.banner.text)
        lines += map(_request_line, view.requests[:_LISTED])
        if len(view.requests) > _LISTED:
            lines.append(f"⏸ and {count_text(len(view.requests) - _LISTED, 'more request')}")
        lines += [f"● breakpoint {each.text}{' (reached)' if each.reached else ''}" for each in view.breakpoints]
        with self._session.reading() as model:
            lines += [f"edit staged: {edit}" for edit in model.edits]
        return "\n".join(lines)

    @property
    def tab(self) -> str:
        """Name of the open tab."""
        return self._tabs.open

    @property
    def log_total(self) -> int:
        """How many lines were ever written to the log."""
        return self._session.model.log_total

    @property
    def content(self) -> Content:
        """The content of the open tab; the same object until it changes. Called on the loop of the runs."""
        self._tabs.load()
        return self._tabs.content

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The breakpoints that a person may choose from. Called on the loop of the runs."""
        handle = self._session.handle
        types = message_types(getattr(self._workflow, "executors", {}))
        return offers_of(self._session.model.activity.nodes, types, () if handle is None else handle.state)

    # ---- what people press -------------------------------------------------------------------------------------------

    def press(self, name: str, value: object = None) -> None:
        """Do what a button or a line of a menu does.

        Args:
            name: Name of the command.
            value: The input typed with it.

        Raises:
            StepperStateError: The command is not allowed now.
            ValueError: Its value makes no sense now, such as a run to a breakpoint when there is none.
        """
        if name in _TAB_OF:
            self.open_tab(_TAB_OF[name])
        elif name == "break":
            if self._tabs.selected is not None:
                self.break_node(self._tabs.selected, "before", on=None)
        elif name in COMMANDS and (act := COMMANDS[name].act) is not None:
            self._session.begin(lambda model: act(model, value))

    def show_checkpoint(self, checkpoint_id: str) -> None:
        """Show a checkpoint; raises what `Stepper.goto` raises."""
        self._session.dispatch(lambda model: model.go_to(checkpoint_id))

    def open_tab(self, name: str) -> None:
        """Open a tab."""
        self._tabs.open = name
        self.touch()

    def select(self, executor_id: str | None) -> None:
        """Show a node in its tab."""
        self._tabs.selected = executor_id
        if executor_id is not None:
            self._tabs.open = "node"
        self.touch()

    def break_at(self, sort: str, choice: int, value: object, *, once: bool) -> None:
        """Set one of the `offers`.

        Raises:
            LookupError: It is not among the offers.
            ValueError: The typed input cannot be read; the text names the expected form.
        """
        self._session.break_at(where_of(self.offers, sort, choice, value), once=once)

    def unbreak(self, breakpoint_id: str) -> None:
        """Take a breakpoint away; nothing if it is not there."""
        if any(each.id == breakpoint_id for each in self._session.model.board.all):
            self._session.clear(breakpoint_id)

    def break_node(self, executor_id: str, kind: str, *, on: bool | None) -> None:
        """Set or remove a breakpoint before or after an executor; `None` for the opposite of what is."""
        with self._session.reading() as model:
            there = [each for each in model.board.all if (each.kind, each.where) == (kind, executor_id)]
        if on is None:
            on = not there
        if on and not there:
            self._session.break_at(f"{kind}:{executor_id}")
        for each in () if on else there:
            self._session.clear(each)

    def stage(self, path: str, value: Any, checkpoint_id: str | None) -> EngineFuture[Edit]:
        """Check and stage an edit of the checkpoint on the page; the future ends with the edit or its error."""
        return self._session.start(self._session.stage(path, value, checkpoint_id))

    def discard(self, path: str, checkpoint_id: str | None) -> None:
        """Drop the staged edit of a path; nothing if there is none."""
        self._session.dispatch(lambda model: model.discard_edits(path, checkpoint_id))

    def _rings_set(self, executor_ids: tuple[str, ...]) -> None:
        """A person has set or removed breakpoints in the picture."""
        before, self._ringed = self._ringed, executor_ids
        for each in set(executor_ids) - set(before):
            self._break_quietly(each, on=True)
        for each in set(before) - set(executor_ids):
            self._break_quietly(each, on=False)

    def _break_quietly(self, executor_id: str, *, on: bool) -> None:
        try:
            for kind in ("before",) if on else ("before", "after"):
                self.break_node(executor_id, kind, on=on)
        except (NotebookError, ValueError) as error:
            self._session.note_down(str(error))

    @property
    def rings(self) -> tuple[str, ...]:
        """Executors with a breakpoint before or after them."""
        with self._session.reading() as model:
            found = [str(each.where) for each in model.board.all if each.kind in ("before", "after")]
        return tuple(dict.fromkeys(found))

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
        """Call a function on the loop of the runs, where reading a run races with nothing."""
        with contextlib.suppress(RuntimeError):  # the loop was closed: the process ends
            self._loop.call_soon_threadsafe(call)

    def _call_later(self, delay_s: float, call: Callable[[], None]) -> None:
        def arm() -> None:
            self._loop.call_later(delay_s, call)

        self.soon(arm)

    def touch(self) -> None:
        """Draw again soon, since the model has changed. From any thread; returns at once."""
        if self._page is not None:
            self._pacer.touch(_SHORT_STEP_S if self._session.model.status in IN_FLIGHT else 0.0)

    def _draw(self) -> None:
        page = self._page
        if page is None or self._closed:
            return
        if self._panel is not None and self.rings != self._ringed:
            self._ringed = self.rings
            self._panel.set_breakpoints(self._ringed)
        page.draw(len(self._session.model.reports))

    @property
    def displayed(self) -> bool:
        """Whether a panel was made."""
        return self._page is not None

    @property
    def widget(self) -> Any:
        """The panel. The same one at each reading.

        Raises:
            WidgetsUnavailable: ipywidgets or anywidget is not installed, or live panels are off.
        """
        if self._page is None:
            self._page = self._make_page()
            self._pacer.touch()
        return self._page.widget

    def _make_page(self) -> StepperPage:
        if not settings.current().live_graph:
            raise WidgetsUnavailable(_INSTEAD, problem="Live panels are off, by configure(live_graph=False)")
        try:
            from agentbench.notebook.graph_panel.panel import make_graph_panel
            from agentbench.notebook.stepping.page import StepperPage
        except ModuleNotFoundError as error:
            raise WidgetsUnavailable(_INSTEAD, problem=f"{error.name} is not installed") from error
        panel = None
        if self._options.layout != "minimal":
            panel = self._panel = make_graph_panel(self._workflow, height=self._options.height)
            panel.on_select(self.select)
            panel.on_breakpoints(self._rings_set)
            panel.expect_page()
        name = f"Stepper {self._session.model.name}"
        return StepperPage(self, name, panel, layout=self._options.layout, height=self._options.height)

    @property
    def picture(self) -> GraphView:
        """A static picture of the run as displayed."""
        from agentbench.notebook.graph.view import draw

        with self._session.reading() as model:
            return draw(self._workflow, run=model.states)

    def snapshot(self) -> GraphView:
        """Return a static picture of the run as displayed; a notebook shows it in place of the one before."""
        picture = self.picture
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


def _request_line(request: WorkflowEvent[Any]) -> str:
    asker = esc(request.source_executor_id, into="line", limit=60)
    return f"⏸ {asker} asks {line_preview(request.data)}; answer {request.request_id}"
