"""The content of a stepper's open tab: made when something has changed, from checkpoints that are loaded on demand."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import replace
from functools import partial

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.diff import CheckpointDiff, diff_checkpoints
from agentbench.notebook.graph.shape import GraphShape
from agentbench.notebook.runtime import settings
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.session import StepperSession
from agentbench.notebook.stepping.view.tabs import NO_CONTENT, Content, Sources, content_of
from agentbench.notebook.text.escape import esc

__all__ = ["StepperTabs"]

_MOST_LOADED = 4  # loaded checkpoints
_MOST_CONTENTS = 4  # a page's message may cross with the next content sent to it


class StepperTabs:
    """The tabs beside the graph; `on_loaded` is called when a checkpoint was loaded, from any thread."""

    def __init__(self, session: StepperSession, shape: GraphShape, on_loaded: Callable[[], object]) -> None:
        self._session = session
        self._shape = shape
        self._on_loaded = on_loaded
        self.open = "state"
        self.selected: str | None = None  # the executor in the Node tab
        self._loaded: dict[str, WorkflowCheckpoint | str] = {}  # by id; a text says why it could not be loaded
        self._loading: set[str] = set()
        self._made_of: object = None
        self._contents: tuple[Content, ...] = (NO_CONTENT,)  # the newest last

    @property
    def content(self) -> Content:
        """The newest content."""
        return self._contents[-1]

    def content_at(self, stamp: int) -> Content:
        """Return the content with a stamp; `LookupError` if it is no longer stored."""
        for content in self._contents:
            if content.stamp == stamp:
                return content
        raise LookupError(stamp)

    def update(self) -> None:
        """Make the content of the open tab again, if something has changed. On the loop of the runs."""
        with self._session.reading() as model:
            self._load(model)
            viewed = None if model.line.viewing is None else model.line.displayed_id
            events = self._session.handle.event_count if self._session.handle and self.open == "events" else 0
            made_of = (self.open, self.selected, model.revision, tuple(self._loaded), events)
            if made_of != self._made_of:
                self._made_of = made_of
                content = replace(self._make(model, viewed), stamp=self.content.stamp + 1)
                self._contents = (*self._contents, content)[-_MOST_CONTENTS:]

    def _load(self, model: StepperModel) -> None:
        """Start to load the checkpoints that the open tab needs and does not have."""
        wanted = self._compared_ids(model) if self.open == "diff" else []
        if model.line.viewing is not None:
            wanted.append(model.line.past[model.line.viewing].info.checkpoint_id)
        for each in wanted:
            if each not in self._loaded and each not in self._loading:
                self._loading.add(each)
                loading = self._session.start(self._session.storage.load(each))
                loading.add_done_callback(partial(self._take, each))

    def _take(self, checkpoint_id: str, done: Future[WorkflowCheckpoint]) -> None:
        self._loading.discard(checkpoint_id)
        if done.cancelled():
            return
        error = done.exception()
        if error is None:
            self._loaded[checkpoint_id] = done.result()
        else:
            text = f"{checkpoint_id} cannot be loaded: {type(error).__name__}: {error}"
            self._loaded[checkpoint_id] = esc(text, into="line", limit=400)
            self._session.note_down(text)
        while len(self._loaded) > _MOST_LOADED:
            self._loaded.pop(next(iter(self._loaded)))
        self._on_loaded()

    def _make(self, model: StepperModel, viewed: str | None) -> Content:
        checkpoint = None if viewed is None else self._loaded.get(viewed, "Loading the checkpoint …")
        if isinstance(checkpoint, str):
            return Content(checkpoint)
        handle = self._session.handle
        sources = Sources(
            self._shape,
            handle.state if handle is not None and self.open == "state" else {},
            checkpoint=checkpoint,
            events=handle.events if handle is not None and self.open == "events" else (),
            selected=self.selected,
            difference=self._difference(model) if self.open == "diff" else None,
            times=not settings.current().deterministic,
        )
        return content_of(self.open, model, sources)

    def _compared_ids(self, model: StepperModel) -> list[str]:
        """The displayed checkpoint and the one before; nothing while there are not two."""
        at = model.line.displayed
        return [past.info.checkpoint_id for past in model.line.past[at - 1 : at + 1]] if at else []

    def _difference(self, model: StepperModel) -> CheckpointDiff | None:
        """How the displayed checkpoint differs from the one before; `None` while one of the two is being loaded."""
        loaded = [self._loaded.get(each) for each in self._compared_ids(model)]
        found = [each for each in loaded if isinstance(each, WorkflowCheckpoint)]
        return diff_checkpoints(*found) if len(found) == 2 else None
