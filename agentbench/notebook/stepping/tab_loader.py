"""The content of a stepper's open tab: made when something has changed, from checkpoints that are loaded on demand."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.diff import CheckpointDiff, diff_checkpoints
from agentbench.notebook.graph.shape import GraphShape
from agentbench.notebook.runtime import settings
from agentbench.notebook.stepping.model.messages import RunFacts
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.session import StepperSession
from agentbench.notebook.stepping.view.tabs import Content, Sources, content_of
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.value_tree import ValueTree

__all__ = ["StepperTabs"]

_MOST_LOADED = 4  # loaded checkpoints
_LOADING = Content("Loading the checkpoint …", ValueTree())


class StepperTabs:
    """The tabs beside the graph.

    Args:
        session: The session of the displayed run.
        shape: Its graph.
        on_loaded: Called when a checkpoint was loaded, from any thread.

    Attributes:
        open: Name of the open tab.
        selected: Id of the executor in the Node tab.
    """

    def __init__(self, session: StepperSession, shape: GraphShape, on_loaded: Callable[[], object]) -> None:
        self._session = session
        self._shape = shape
        self._on_loaded = on_loaded
        self.open = "state"
        self.selected: str | None = None
        self._loaded: dict[str, WorkflowCheckpoint] = {}
        self._loading: set[str] = set()
        self._lost: dict[str, str] = {}  # why checkpoints could not be loaded
        self._compared: tuple[tuple[str, ...], CheckpointDiff | None] = ((), None)
        self._made: tuple[object, Content] = (None, _LOADING)
        self._made_at: RunFacts | None = None

    @property
    def content(self) -> Content:
        """The content of the open tab; the same object until it changes. Called on the loop of the runs."""
        with self._session.reading() as model:
            viewed = None if model.viewing is None else model.past[model.viewing].info.checkpoint_id
            lost = self._lost.get(viewed or "")
            if viewed is not None and viewed not in self._loaded:
                self._load(viewed)
                return _LOADING if lost is None else self._failed_load(lost)
            difference = self._difference(model) if self.open == "diff" else None
            handle = self._session.handle
            events = handle.events if handle is not None and self.open == "events" else []
            can_edit = "edit" in model.allowed
            made_of = (
                *(self.open, viewed, len(model.reports), self.selected, len(events), can_edit),
                *(difference is None, model.line.displayed_id, model.edits, model.board.all, str(model.status)),
            )
            if self._made[0] != made_of or self._made_at is not model.facts:
                live: dict[str, Any] = handle.state if handle is not None and self.open == "state" else {}
                sources = Sources(
                    self._shape,
                    live,
                    checkpoint=None if viewed is None else self._loaded[viewed],
                    events=events,
                    selected=self.selected,
                    difference=difference,
                    times=not settings.current().deterministic,
                )
                self._made = (made_of, content_of(self.open, model, sources))
                self._made_at = model.facts
            return self._made[1]

    def _difference(self, model: StepperModel) -> CheckpointDiff | None:
        """How the displayed checkpoint differs from the one before; `None` while one of the two is being loaded."""
        if not model.displayed:
            return None
        pair = tuple(past.info.checkpoint_id for past in model.past[model.displayed - 1 : model.displayed + 1])
        missing = [each for each in pair if each not in self._loaded]
        if pair != self._compared[0]:
            for each in missing:
                self._load(each)
            if missing:
                return None
            self._compared = (pair, diff_checkpoints(*(self._loaded[each] for each in pair)))
        return self._compared[1]

    def _failed_load(self, lost: str) -> Content:
        if self._made[0] != lost:
            self._made = (lost, Content(lost, ValueTree()))
        return self._made[1]

    def _load(self, checkpoint_id: str) -> None:
        if checkpoint_id in self._loading or checkpoint_id in self._lost:
            return
        self._loading.add(checkpoint_id)
        loading = self._session.start(self._session.checkpoint(checkpoint_id))
        loading.add_done_callback(lambda done: self._take(checkpoint_id, done))

    def _take(self, checkpoint_id: str, done: Future[WorkflowCheckpoint]) -> None:
        self._loading.discard(checkpoint_id)
        if done.cancelled():
            return
        error = done.exception()
        if error is not None:
            lost = f"{checkpoint_id} cannot be loaded: {type(error).__name__}: {error}"
            self._lost[checkpoint_id] = esc(lost, into="line", limit=400)
            self._session.note_down(lost)
            return
        self._loaded[checkpoint_id] = done.result()
        while len(self._loaded) > _MOST_LOADED:
            self._loaded.pop(next(iter(self._loaded)))
        self._on_loaded()
