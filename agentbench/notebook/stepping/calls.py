"""How the calls of a stepper are carried out: submitted to the loop of the run, and waited for or awaited."""

from __future__ import annotations

from typing import Any

from agentbench import _bridge
from agentbench._bridge import EngineFuture
from agentbench.notebook.runtime.waiting import wait
from agentbench.notebook.stepping.model.messages import Stimulus
from agentbench.notebook.stepping.reading import StepperReading

__all__ = ["StepperCalls"]


class StepperCalls(StepperReading):
    """Sends requests to the session, waits for them, and raises their errors."""

    def _raise_error(self) -> None:
        """Raise what a fork, a restore or a plan raised; the run itself has not failed."""
        error, self._session.error = self._session.error, None
        if error is not None:
            raise error

    def _wait_for(self, stimulus: Stimulus, call: str) -> int:
        __tracebackhide__ = True  # of IPython
        self._require_blocking(call)
        taken = len(self._session.model.reports)
        with _bridge.cancelled_with_caller():  # an interrupt may come before the waiting begins
            self._wait_if_possible(self._session.begin(stimulus))
        return taken

    async def _await(self, stimulus: Stimulus, *, through: bool = False) -> int:
        taken = len(self._session.model.reports)
        future = self._session.begin(stimulus, through=through)
        if future is not None:
            await wait(future)
        return taken

    def _wait_if_possible(self, future: EngineFuture[Any] | None) -> None:
        __tracebackhide__ = True
        if future is not None and not self._screen.on_own_loop:
            _bridge.wait_sync(future)
