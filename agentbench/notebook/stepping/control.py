"""The calls of a page on a stepper: the interface between `StepperScreen` and the two kinds of pages."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, Protocol

from agentbench.notebook.stepping.model.break_offers import Offer
from agentbench.notebook.stepping.view.tabs import Content
from agentbench.notebook.stepping.view.view import StepperView

__all__ = ["StepperControl"]


class StepperControl(Protocol):
    """The calls of a page on a stepper. None of them waits."""

    @property
    def view(self) -> StepperView:
        """The current view."""

    @property
    def content(self) -> Content:
        """The content of the open tab."""

    @property
    def offers(self) -> tuple[Offer, ...]:
        """The breakpoints that a person may choose from."""

    @property
    def log_total(self) -> int:
        """How many lines were ever written to the log."""

    @property
    def tab(self) -> str:
        """Name of the open tab."""

    def press(self, name: str, value: object = None) -> None:
        """Do what a button or a line of a menu does, with what was typed."""

    def show_checkpoint(self, checkpoint_id: str) -> None:
        """Show a checkpoint; nothing if it is not there."""

    def open_tab(self, name: str) -> None:
        """Open a tab."""

    def break_at(self, sort: str, choice: int, value: object, *, once: bool) -> None:
        """Set a breakpoint that was offered."""

    def unbreak(self, breakpoint_id: str) -> None:
        """Take a breakpoint away."""

    def break_node(self, executor_id: str, kind: str, *, on: bool | None) -> None:
        """Set or remove a breakpoint before or after an executor; `None` for the opposite of what is."""

    def stage(self, path: str, value: Any, checkpoint_id: str | None) -> Future[Any]:
        """Check and stage an edit of a checkpoint; the future ends with the edit or its error."""

    def discard(self, path: str, checkpoint_id: str | None) -> None:
        """Drop the staged edit of a path of a checkpoint."""

    def answer(self, request_id: str, value: Any) -> object:
        """Send an answer; what it returns can be awaited."""

    def soon(self, call: Callable[[], None]) -> None:
        """Call a function on the loop of the runs, where reading a run races with nothing."""
