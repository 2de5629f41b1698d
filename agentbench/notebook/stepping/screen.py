"""The screen of a stepper: reads the model and redraws the pages after a change."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text
from agentbench._text.redact import line_preview
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import WidgetsUnavailable
from agentbench.notebook.cells.workbench import older_code
from agentbench.notebook.graph.text import shape_text
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.kernel import after_each_cell, cell_number, in_kernel, show_in_cell
from agentbench.notebook.runtime.pacing import Pacer
from agentbench.notebook.runtime.stand_in import StandIn, needs_widgets
from agentbench.notebook.stepping.model.messages import IN_FLIGHT
from agentbench.notebook.stepping.options import Options
from agentbench.notebook.stepping.session import StepperSession
from agentbench.notebook.stepping.tab_loader import StepperTabs
from agentbench.notebook.stepping.view.screen_state import UNANSWERED, ScreenState, screen_of
from agentbench.revisions.current_code import changed_parts
from agentbench.workflows.draw.shape import read_shape

if TYPE_CHECKING:
    from agentbench.notebook.graph.view import GraphView
    from agentbench.notebook.stepping.page import StepperPage

_INSTEAD = "the run is displayed as a picture and text instead"
_LISTED = 20  # maximum number of requests in the text
_SHORT_STEP_S = 0.03  # a superstep shorter than this is only drawn as finished, to avoid flicker


class StepperScreen:
    """The display of a stepper: a panel, a picture and a text."""

    def __init__(self, session: StepperSession, workflow: Any, options: Options, stand_in: StandIn) -> None:
        self._session = session
        self._stand_in = stand_in
        self._workflow = workflow
        self._options = options
        self.page: StepperPage | None = None  # set when the panel is first displayed
        self._display: Any = None
        self._end_watch: Callable[[], None] = lambda: None
        self._looked_at: tuple[int, str] | None = None
        self._changed: tuple[str, ...] = ()
        self._shown_in: int | None = None  # the cell of the picture
        self._shape = read_shape(workflow)
        self._tabs = StepperTabs(session, read_shape(workflow, expand=True), self.touch)
        self._pacer = Pacer(partial(session.call_on_loop, self._draw), later=session.call_later)

    @property
    def state(self) -> ScreenState:
        """The current content of the screen."""
        storage = self._session.storage
        changed = self.look_for_changes()
        with self._session.reading() as model:
            screen = screen_of(
                model,
                tab=self._tabs.open,
                content=self._tabs.content,
                drafts=() if self.page is None else self.page.drafts,
                times=not settings.current().deterministic,
                older=[*dict.fromkeys([*older_code(self._workflow), *changed])],
                storage="" if isinstance(storage, InMemoryCheckpointStorage) else line_preview(storage, 120),
            )
            running = model.activity.running if model.status in IN_FLIGHT else ()
        listening = tuple(each for each in running if each in self._session.agents_with_queue) if running else ()
        return replace(screen, listening=listening)

    def look_for_changes(self) -> tuple[str, ...]:
        """Return the parts whose code changed since the run began; looks at most once per executed cell."""
        run, cell = self._session.handle, cell_number()
        if run is None or cell is None:
            return ()
        if (cell, run.run_id) != self._looked_at:
            self._looked_at = (cell, run.run_id)
            try:
                self._changed = changed_parts(run)
            except Exception as error:  # noqa: BLE001 - a look-up touches variables and classes of the user
                self._session.note_down(f"Changed code could not be looked up: {type(error).__name__}: {error}")
                self._changed = ()
        with self._session.reading() as model:
            model.changed = self._changed
        return self._changed

    @property
    def text(self) -> str:
        """The screen as plain text."""
        screen = self.state
        states = {element: state for element, state in screen.states.items() if isinstance(element, str)}
        lines = [screen.header.line, shape_text(self._shape, states)]
        if screen.banner.tone in ("error", "note", "ask") or self._changed or screen.header.sign == UNANSWERED:
            lines.append(screen.banner.text)
        for request in screen.requests[:_LISTED]:
            asker = esc(request.source_executor_id, into="line", limit=60)
            lines.append(f"‖ {asker} asks {line_preview(request.data)}; answer {request.request_id}")
        if len(screen.requests) > _LISTED:
            lines.append(f"‖ and {count_text(len(screen.requests) - _LISTED, 'more request')}")
        lines += [f"● breakpoint {text}{' (reached)' if reached else ''}" for _, text, reached in screen.breakpoints]
        with self._session.reading() as model:
            lines += [f"edit, not applied yet: {edit}" for edit in model.edits]
        return "\n".join(lines)

    @property
    def picture(self) -> GraphView:
        """A static picture of the run as displayed."""
        from agentbench.notebook.graph.view import draw

        with self._session.reading() as model:
            return draw(self._workflow, run=model.states)

    def snapshot(self) -> GraphView:
        """Return a static picture of the run as displayed; in a notebook it replaces the previous one."""
        picture = self.picture
        if not in_kernel():
            return picture
        if self._display is None:
            self._display, self._shown_in = show_in_cell(picture, display_id=True), cell_number()
        else:
            self._display.update(picture)
        return replace(picture, shown_in=self._shown_in)

    @property
    def widget(self) -> Any:
        """The panel, created once.

        Raises:
            WidgetsUnavailable: ipywidgets or anywidget is not installed, or live panels are off.
        """
        if self.page is None:
            if not settings.current().live_graph:
                raise WidgetsUnavailable(_INSTEAD, problem="Live panels are disabled by configure(live_graph=False)")
            with needs_widgets(_INSTEAD):
                from agentbench.notebook.stepping.page import StepperPage
                from agentbench.notebook.stepping.saved_run import stepper_page
            self.page = StepperPage(
                self._session,
                self._tabs,
                self._workflow,
                self._options,
                state=lambda: self.state,
                redraw=self.touch,
                saved_page=partial(stepper_page, self._session, self._workflow),
            )
            self._pacer.touch()
            self._end_watch = after_each_cell(self.touch)  # the cell may have changed the code of the run
        return self.page.widget

    def touch(self) -> None:
        """Schedule a redraw after a change. Callable from any thread; returns immediately."""
        if self.page is not None:
            self._pacer.touch(_SHORT_STEP_S if self._session.model.status in IN_FLIGHT else 0.0)

    def _draw(self) -> None:
        """Draw on the loop of the runs, so that reading the run is free of races."""
        if self.page is not None:
            self.page.draw()
            if self._session.model.status not in IN_FLIGHT:
                self._stand_in.touch()

    def close(self) -> None:
        """Close the panel. May be called twice."""
        page, self.page = self.page, None
        self._end_watch()
        self._pacer.close()
        self._stand_in.close()
        if page is not None:
            page.close()
