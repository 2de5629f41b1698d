"""What a run asks of the object that records it. The engine knows no models; the agents' layer records their calls."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

if TYPE_CHECKING:
    from agentbench.checkpoints.storage import CheckpointStorage

_Result = TypeVar("_Result")


@dataclass(frozen=True, slots=True)
class GivenAnswer:
    """The answer that a person gave to a request of a run; `run.answers` lists them.

    Attributes:
        executor_id: The executor that made the request.
        request: The data of the request.
        value: The answer; `Withdrawn.WITHDRAWN` if the request was withdrawn.
        request_id: The id of the request.
        superstep: The last superstep that had ended by then.

    Example:
        >>> [answer.value for answer in run.answers]
        [True]
    """

    executor_id: str
    request: Any
    value: Any
    request_id: str
    superstep: int

    def is_after(self, superstep: int, open_requests: Collection[str]) -> bool:
        """Whether it was given after the checkpoint of a superstep, in which these requests are open."""
        return self.superstep > superstep or self.request_id in open_requests


class RunScene(NamedTuple):
    """What a recorder gets of its run."""

    run_id: str
    chain: str
    storage: CheckpointStorage | None
    hold: Callable[[Any], Awaitable[None]]
    """Waits inside a superstep, for a `PauseReason`, until the driver of the run goes on."""
    warn: Callable[[str], object]


class RunRecorder(Protocol):
    """Records a run; `agentbench.revisions.ModelRecording` is the one that there is."""

    @property
    def new_call(self) -> Any:
        """The request that waits for permission; None if none does."""

    def begin(self, scene: RunScene) -> None:
        """Begin to record a run."""

    @property
    def asks(self) -> bool:
        """Whether a model call may wait for permission."""

    def around(
        self, executor_id: str, superstep: int, call: Coroutine[Any, Any, _Result], *, may_wait: bool = True
    ) -> Coroutine[Any, Any, _Result]:
        """Wrap the call of a handler; without an executor that of conditions or of the boundary hook.

        With `may_wait=False`, model calls that would wait for permission raise `UnrecordedCallError`.
        """

    def allow(self, which: str) -> None:
        """Let a waiting request, or all requests, be sent."""

    async def note_answer(self, answer: GivenAnswer) -> None:
        """Record the answer of a person."""

    def answer_again(self, executor_id: str, request: Any) -> GivenAnswer | None:
        """Return the answer that was given to an equal request before, each once."""

    async def rewind(self, superstep: int, open_requests: Collection[str]) -> None:
        """Go back to the checkpoint of a superstep, in which these requests are open."""

    def successor(self, superstep: int) -> RunRecorder:
        """Return a recorder for a fork of the run after a superstep."""
