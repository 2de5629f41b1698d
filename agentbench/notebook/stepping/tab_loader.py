"""The content of a stepper's open tab: updated after changes, from checkpoints that are loaded on demand."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import replace
from typing import Any

from agentbench._text.escape import esc
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.diff import diff_checkpoints
from agentbench.notebook.runtime import settings
from agentbench.notebook.stepping.model.messages import INPUT
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.session import StepperSession
from agentbench.notebook.stepping.view.tabs import NO_CONTENT, Sources, TabContent, content_of
from agentbench.workflows.draw.shape import GraphShape

_MOST_LOADED = 4  # maximum number of loaded checkpoints
_MOST_CONTENTS = 8  # a message from a page may refer to content that was just replaced


class StepperTabs:
    """The tabs beside the graph; `on_loaded` is called from any thread after a checkpoint was loaded."""

    def __init__(self, session: StepperSession, shape: GraphShape, on_loaded: Callable[[], object]) -> None:
        self._session = session
        self._shape = shape
        self._on_loaded = on_loaded
        self.open = "state"
        self.selected: str | None = None  # the executor in the Node tab
        self._loads: dict[tuple[str, str], Future[WorkflowCheckpoint]] = {}  # by id; runs differ in their inputs
        self._made_of: object = None
        self._contents: tuple[TabContent, ...] = (NO_CONTENT,)  # the newest last

    @property
    def content(self) -> TabContent:
        """The newest content."""
        return self._contents[-1]

    def content_at(self, stamp: int) -> TabContent:
        """Return the content with this stamp; raise `LookupError` if it is no longer stored."""
        for content in self._contents:
            if content.stamp == stamp:
                return content
        raise LookupError(stamp)

    def update(self) -> None:
        """Update the content of the open tab after a change; call on the loop of the runs."""
        with self._session.reading() as model:
            compared = model.checkpoints.compared_ids if self.open == "diff" else []
            shows_stored = model.checkpoints.viewed is not None or model.checkpoints.at_input
            viewed = [model.checkpoints.displayed_id or ""] if shows_stored else []
            loaded = {checkpoint_id: self._load(checkpoint_id) for checkpoint_id in (*compared, *viewed)}
            problem = next((value for value in loaded.values() if isinstance(value, str)), "")
            events = self._session.handle.event_count if self._session.handle and self.open == "events" else 0
            made_of = (self.open, self.selected, model.revision, problem, events)
            if made_of != self._made_of:
                self._made_of = made_of
                content = TabContent(problem) if problem else self._make(model, loaded, viewed, compared)
                self._contents = (*self._contents, replace(content, stamp=self.content.stamp + 1))[-_MOST_CONTENTS:]

    def _load(self, checkpoint_id: str) -> Any:
        """Return a checkpoint, or the text to show while it is loading or if it cannot be loaded."""
        key = checkpoint_id, self._session.model.facts.run_id if checkpoint_id == INPUT else ""
        if key not in self._loads:
            self._loads = dict([*self._loads.items()][1 - _MOST_LOADED :])
            self._loads[key] = self._session.start(self._session.load(checkpoint_id))
            self._loads[key].add_done_callback(lambda _: self._on_loaded())
        loading = self._loads[key]
        if not loading.done():
            return "Loading the checkpoint …"
        error = loading.exception()
        text = f"{checkpoint_id} cannot be loaded: {type(error).__name__}: {error}"
        return loading.result() if error is None else esc(text, into="line", limit=400)

    def _make(
        self, model: StepperModel, loaded: Mapping[str, Any], viewed: Sequence[str], compared: Sequence[str]
    ) -> TabContent:
        handle = self._session.handle
        sources = Sources(
            self._shape,
            handle.state if handle is not None and self.open == "state" else {},
            checkpoint=loaded[viewed[0]] if viewed else None,
            events=handle.events if handle is not None and self.open == "events" else (),
            selected=self.selected,
            difference=diff_checkpoints(*(loaded[checkpoint_id] for checkpoint_id in compared)) if compared else None,
            fields=getattr(handle and handle.workflow.boundary_hook, "field_names", ()),
            times=not settings.current().deterministic,
        )
        return content_of(self.open, model, sources)
