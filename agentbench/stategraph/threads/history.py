"""The history of a thread: its checkpoints as snapshots, each loaded on access."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine, Generator, Iterator, Mapping, Sequence
from functools import wraps
from typing import Any, ParamSpec, overload

from agentbench._bridge import run_sync
from agentbench._display import Displayable, call_view, drawn_by
from agentbench.checkpoints.access import load_checkpoint
from agentbench.checkpoints.diff import CheckpointDiff
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.stategraph.running.plan import GraphPlan
from agentbench.stategraph.snapshots import StateSnapshot, config_of, values_diff
from agentbench.stategraph.threads.positions import snapshot_at

P = ParamSpec("P")


@drawn_by("agentbench.notebook.cards.state_graph:history_bundle")
class StateHistory(Sequence[StateSnapshot[Any]], Displayable):
    """The checkpoints of a thread, newest first. A snapshot is loaded on access.

    `history[0]` is the newest one; `history["cp-3f2a"]` is the one whose id begins with that text.

    Attributes:
        infos: Descriptions of the checkpoints, without their contents.

    Example:
        >>> history = app.get_state_history({"thread_id": "inc-7"})
        >>> print(history.tree())
        >>> history.diff(1, 0)
    """

    def __init__(self, plan: GraphPlan, storage: Any, thread_id: Any, infos: Sequence[CheckpointInfo]) -> None:
        self.plan = plan
        self.storage = storage
        self.thread_id = thread_id
        self.infos = infos

    def __len__(self) -> int:
        return len(self.infos)

    @overload
    def __getitem__(self, place: int | str) -> StateSnapshot[Any]: ...
    @overload
    def __getitem__(self, place: slice) -> StateHistory: ...
    def __getitem__(self, place: int | str | slice) -> StateSnapshot[Any] | StateHistory:
        if isinstance(place, slice):
            return StateHistory(self.plan, self.storage, self.thread_id, self.infos[place])
        return run_sync(self._load(self._find(place)))

    async def __aiter__(self) -> Any:
        """Yield the snapshots, newest first."""
        for info in self.infos:
            yield await self._load(info)

    def configs(self) -> Iterator[Mapping[str, Any]]:
        """Yield the configurations that name the checkpoints, without loading them."""
        return (config_of(self.plan, self.thread_id, info.checkpoint_id) for info in self.infos)

    def diff(self, before: int | str, after: int | str) -> CheckpointDiff:
        """Return the differences between the values of two checkpoints, each named by its position or id."""
        one, other = (
            run_sync(load_checkpoint(self.storage, self._find(place).checkpoint_id)) for place in (before, after)
        )
        return values_diff(one, other)

    def tree(self) -> str:
        """Return the branches of the thread as text, oldest checkpoint first."""
        if not self.infos:
            return "0 checkpoints"
        head = max(self.infos, key=lambda info: info.seq)
        plot = call_view(
            "agentbench.notebook.plots.lineage:lineage", self.storage, workflow_name=head.workflow_name, current=head
        )
        return str(plot.text)

    def to_frame(self, fields: Sequence[str] = (), *, full: bool = False) -> Any:
        """Return one row per checkpoint as a DataFrame, oldest first; without pandas as a list of dictionaries.

        Args:
            fields: Fields of the state to add as columns.
            full: Include columns that are empty in all rows, and whole ids of parents and threads.
        """
        return call_view("agentbench.notebook.frames.state_graph:history_frame", self, fields, full)

    def __repr__(self) -> str:
        return f"StateHistory(thread {self.thread_id!r}, {len(self)} checkpoints)"

    def _find(self, place: int | str) -> CheckpointInfo:
        if isinstance(place, int):
            return self.infos[place]
        matches = [info for info in self.infos if info.checkpoint_id.startswith(place)]
        if len(matches) != 1:
            message = f"{len(matches)} checkpoints of thread {self.thread_id!r} have an id that begins with {place!r}."
            raise KeyError(message)
        return matches[0]

    async def _load(self, info: CheckpointInfo) -> StateSnapshot[Any]:
        return await snapshot_at(self.plan, self.storage, info.checkpoint_id, self.thread_id)


class HistoryRead(Coroutine[Any, Any, StateHistory]):
    """A history that is being read: `await` returns it, and `async for` yields its snapshots, newest first.

    Example:
        >>> async for snapshot in app.aget_state_history({"thread_id": "inc-7"}):
        ...     print(snapshot.next)
    """

    def __init__(self, work: Coroutine[Any, Any, StateHistory]) -> None:
        self._work = work

    def __await__(self) -> Generator[Any, Any, StateHistory]:
        return self._work.__await__()

    async def __aiter__(self) -> AsyncIterator[StateSnapshot[Any]]:
        """Yield the snapshots."""
        async for snapshot in await self._work:
            yield snapshot

    def send(self, value: Any) -> Any:
        """Continue, as for any coroutine."""
        return self._work.send(value)

    def throw(self, *error: Any) -> Any:
        """Continue with an error, as for any coroutine."""
        return self._work.throw(*error)

    def close(self) -> None:
        """End without a result, as for any coroutine."""
        self._work.close()


def readable(method: Callable[P, Coroutine[Any, Any, StateHistory]]) -> Callable[P, HistoryRead]:
    """Let `async for` read the history that a method returns, without `await` before it."""

    @wraps(method)
    def call(*args: P.args, **kwargs: P.kwargs) -> HistoryRead:
        return HistoryRead(method(*args, **kwargs))

    return call
