"""Time travel with a stepper: looking back, going on from there, edits and breakpoints."""

from __future__ import annotations

from numbers import Integral
from typing import Any

from agentbench.checkpoints.checkpoint import id_of
from agentbench.checkpoints.editing import Edit
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.runtime.waiting import wait
from agentbench.notebook.stepping.calls import StepperCalls
from agentbench.notebook.stepping.model.messages import (
    BackRequested,
    BranchRequested,
    EditsDiscarded,
    ForwardRequested,
    GotoRequested,
    ShowAgainRequested,
)
from agentbench.workflows.run.break_places import Breakpoint, StatePredicate, Where

__all__ = ["StepperTravel", "require_count", "require_speed"]


class StepperTravel(StepperCalls):
    """The part of `Stepper` that goes back in time, and on from there."""

    # ---- looking back ------------------------------------------------------------------------------------------------

    def back(self, n: int = 1) -> None:
        """Show the checkpoint `n` before the displayed one. Nothing is executed or deleted.

        Raises:
            ValueError: `n` is no whole number above 0.
        """
        self._session.dispatch(BackRequested(require_count(n, "n", "1 or more checkpoints")))

    def forward(self, n: int = 1) -> None:
        """Show the checkpoint `n` after the displayed one; the last one is the present. Raises what `back` raises."""
        self._session.dispatch(ForwardRequested(require_count(n, "n", "1 or more checkpoints")))

    def goto(self, checkpoint: CheckpointInfo | str) -> None:
        """Show this checkpoint, named by its info or its id. Nothing is executed or deleted.

        Raises:
            LookupError: It is not among `checkpoints`.
        """
        self._session.dispatch(GotoRequested(id_of(checkpoint)))

    def show_again(self, *, speed: float = 2.0) -> None:
        """Show the stored checkpoints one after the other, from the displayed one to the present; nothing is executed.

        In the present it begins with the first checkpoint. `pause()` ends it where it is, and so does any other call.
        To execute again, call `step()` or `run()` at an earlier checkpoint: that makes a new run.

        Args:
            speed: Checkpoints a second.

        Raises:
            StepperStateError: Not possible now.
            StepperClosed: The stepper was closed.
            NestedLoopError: On the engine thread; use `await stepper.ashow_again()`.
        """
        self._wait_for(ShowAgainRequested(require_speed(speed, "checkpoints")), "stepper.ashow_again")

    async def ashow_again(self, *, speed: float = 2.0) -> None:
        """As `show_again`, for cells that await."""
        await self._await(ShowAgainRequested(require_speed(speed, "checkpoints")))

    def branch(self, checkpoint: CheckpointInfo | str | None = None) -> None:
        """Go on here as a new run, with the staged edits; nothing is executed yet, the old run stays stored.

        Args:
            checkpoint: Where the new run begins, its info or its id, `None` for the displayed checkpoint.

        Raises:
            StepperStateError: Not possible now: a superstep is in flight, or nothing is saved yet.
            LookupError: The checkpoint is not among `checkpoints`.
            StepperClosed: The stepper was closed.
        """
        self._wait_for(BranchRequested(None if checkpoint is None else id_of(checkpoint)), "stepper.abranch")
        self._raise_error()

    async def abranch(self, checkpoint: CheckpointInfo | str | None = None) -> None:
        """As `branch`, for cells that await."""
        await self._await(BranchRequested(None if checkpoint is None else id_of(checkpoint)))
        self._raise_error()

    # ---- edits -------------------------------------------------------------------------------------------------------

    def edit(self, path: str, value: Any) -> Edit:
        """Change a value of the displayed checkpoint, in a new run: staged now, applied by Step, Run or a fork.

        The checkpoint itself stays as it is. The value must fit the type that its dataclass or model declares, else
        that of the present value, and it must be serializable.

        Args:
            path: `score`, `draft.title`, `items.0` in the shared state; `messages[0]`, `messages[0].title` among the
                messages that wait.
            value: The new value.

        Raises:
            InvalidEdit: The path leads nowhere, or the value does not fit; nothing is staged then.
            StepperStateError: Nothing can be edited now.
            StepperClosed: The stepper was closed.
        """
        return self._wait("stepper.aedit", lambda: self._session.start(self._session.stage(path, value)))

    async def aedit(self, path: str, value: Any) -> Edit:
        """As `edit`, for cells that await."""
        return await wait(self._session.start(self._session.stage(path, value)))

    def discard_edits(self, path: str | None = None) -> None:
        """Drop the staged edits of the displayed checkpoint, or only the one of a path."""
        self._session.dispatch(EditsDiscarded(path))

    # ---- breakpoints -------------------------------------------------------------------------------------------------

    def break_at(self, where: Where, *, when: StatePredicate | None = None, once: bool = False) -> Breakpoint:
        """Pause `run()` and `step(n)` at a place, always between two supersteps; `step()` takes its one all the same.

        Args:
            where: An executor id, or `before:ID`: before a superstep in which it is called. `after:ID`: after one.
                A number: before that superstep. A class: before a message of that type is delivered. A function of
                the shared state: wherever it returns true. `failure`: an executor has raised. `request`: a person has
                to answer.
            when: A further condition: a function of the shared state.
            once: Whether it is gone after it was reached.

        Returns:
            The breakpoint; if the same one is set already, that one. A function that raises pauses the run too, and
            the panel displays its error.

        Raises:
            ValueError: There is no such executor, or the number is negative.
            TypeError: A run cannot pause at `where`.
            StepperClosed: The stepper was closed.
        """
        return self._session.break_at(where, when=when, once=once)

    def clear(self, where: Where | Breakpoint | None = None) -> None:
        """Remove breakpoints: one, those at a place, the one with an id, or all of them.

        Raises:
            ValueError: `where` names neither an executor nor a breakpoint.
            StepperClosed: The stepper was closed.
        """
        self._session.clear(where)


def require_count(count: int, name: str, expected: str) -> int:
    """Return a count as an `int`.

    Args:
        count: The argument of the caller.
        name: Its name, for the error.
        expected: The possible values, for the error.

    Raises:
        ValueError: `count` is no whole number, or is below 1.
    """
    value: Any = count
    if isinstance(value, bool) or not isinstance(value, Integral) or count < 1:
        msg = f"{name}={count!r} is not possible. Expected {expected}."
        raise ValueError(msg)
    return int(count)


def require_speed(speed: float, what: str) -> float:
    """Return a speed unless it is not above 0.

    Raises:
        ValueError: `speed` is not above 0.
    """
    if not speed > 0:
        msg = f"speed={speed!r} is not possible. Expected {what} a second, above 0."
        raise ValueError(msg)
    return speed
