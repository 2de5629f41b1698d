"""Resolves the sources of a view: runs, storages, checkpoints, infos, ids of runs, or a list of those.

Storages are asynchronous, so they are read on the engine thread, once per view.
"""

from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Generic, TypeVar

from agentbench._bridge import run_sync
from agentbench._limits import require_limit
from agentbench._user_code import warn_user
from agentbench.checkpoints.access import list_infos, list_workflow_names, load_checkpoint
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.metadata import RUN_ID, SOURCE, WRITERS
from agentbench.checkpoints.storage import CheckpointStorage, SupportsCheckpointInfos
from agentbench.exceptions import NestedLoopError, WorkflowCheckpointException
from agentbench.notebook.history.run_history import Event, RunHistory
from agentbench.workflows.events.events import WorkflowEvent

Since = int | datetime | str | None
"""A superstep, or a time as datetime or ISO 8601 text; `None` for all."""
Name = str | None
"""A name or id to filter by; `None` for all."""

S = TypeVar("S")
T = TypeVar("T")
K = TypeVar("K", CheckpointInfo, WorkflowCheckpoint)

# Error texts of storages whose client belongs to another event loop.
_COMPLAINTS = ("attached to a different loop", "bound to a different event loop", "Event loop is closed")
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Chosen:
    """The filter of a frame."""

    workflow_name: Name = None
    run_id: Name = None
    since: Since = None
    limit: int | None = None

    def __post_init__(self) -> None:
        require_limit("limit", self.limit, none="all")
        if isinstance(self.since, str) and time_ns(self.since) is None:
            msg = f"since is {self.since!r}; expected a superstep (a number), a datetime or ISO 8601 text."
            raise ValueError(msg)

    def last(self, rows: list[T]) -> list[T]:
        """Return the rows within `limit`."""
        return rows if self.limit is None else rows[max(0, len(rows) - self.limit) :]

    def gather(self, newest_first: Iterable[S], rows_of: Callable[[S], list[T]]) -> list[T]:
        """Return the rows of each source within `limit`, in order; reads only as many sources as needed."""
        lists: list[list[T]] = []
        count = 0
        for source in newest_first if self.limit != 0 else ():
            rows = rows_of(source)
            lists.append(rows)
            count += len(rows)
            if self.limit is not None and count >= self.limit:
                break
        return self.last([row for rows in reversed(lists) for row in rows])

    def includes(self, superstep: int, at: str | int | None) -> bool:
        """Whether this superstep and time (text, nanoseconds, `None`: unknown) are within `since`."""
        if self.since is None:
            return True
        if isinstance(self.since, int):
            return superstep >= self.since
        at_ns = time_ns(at) if isinstance(at, str) else at
        first_ns = time_ns(self.since)
        return at_ns is not None and first_ns is not None and at_ns >= first_ns


def time_ns(time: datetime | str) -> int | None:
    """Return nanoseconds since 1970, UTC; a time without a zone is read as UTC. `None` for other text."""
    if isinstance(time, str):
        try:
            time = datetime.fromisoformat(time.upper())
        except ValueError:  # written by another program
            return None
    time = time.replace(tzinfo=UTC) if time.tzinfo is None else time
    past = time - _EPOCH
    return ((past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds) * 1000


@dataclass
class Read(Generic[T]):
    """Checkpoints or their infos: the chosen rows in storage order, and all checkpoints of their chains by id."""

    rows: Sequence[T]
    by_id: Mapping[str, T]
    run_ids: Collection[str | None] = ()
    """The ids of the runs among the sources."""


@dataclass
class Contents(Read[WorkflowCheckpoint]):
    """Checkpoints with their content, if readable."""

    _problems: dict[str, WorkflowCheckpointException] = field(default_factory=dict)
    _n_read: int = 0

    def can_read(self, checkpoint: WorkflowCheckpoint) -> bool:
        """Load the content of a checkpoint; return whether it is readable, otherwise record the problem."""
        if checkpoint.checkpoint_id in self._problems:
            return False
        try:
            checkpoint.state  # noqa: B018 - loads the content
        except WorkflowCheckpointException as error:
            self._problems[checkpoint.checkpoint_id] = error
            return False
        self._n_read += 1
        return True

    def warn_about_problems(self) -> None:
        """Emit one warning about unreadable checkpoints, at the caller's line.

        Raises:
            WorkflowCheckpointException: No checkpoint could be read.
        """
        if not self._problems:
            return
        first = next(iter(self._problems.values()))
        if not self._n_read:
            raise first
        count = len(self._problems)
        what = "One checkpoint is omitted." if count == 1 else f"{count:,} checkpoints are omitted. The first:"
        warn_user(f"{what} {first}", UserWarning)


def read_runs(source: object, chosen: Chosen | None = None, *, events_wanted: bool = False) -> list[RunHistory]:
    """Return the runs among the sources; with `events_wanted`, warn if there are only other sources."""
    sources = _Sources(source)
    if events_wanted and not sources.runs and not sources.is_empty:
        warn_user("Storages and checkpoints have no events. Pass the run or its result.", UserWarning)
    return [run for run in sources.runs if chosen is None or chosen.run_id in (None, run.run_id)]


def read_infos(source: object, chosen: Chosen) -> Read[CheckpointInfo]:
    """Return the infos of all checkpoints of the sources."""
    sources = _Sources(source)
    infos = [
        *sources.infos,
        *map(CheckpointInfo.of, sources.checkpoints),
        *(i for run in sources.runs for i in run.infos),
    ]

    async def of_chain(storage: CheckpointStorage, chain: str) -> list[CheckpointInfo]:
        return await list_infos(storage, workflow_name=chain)

    rows, by_id = run_on_engine(_read(sources, chosen, infos, of_chain), *sources.all_storages)
    return Read(rows, by_id, {run.run_id for run in sources.runs})


def read_checkpoints(source: object, chosen: Chosen, *, content_wanted: bool = False) -> Contents:
    """Return the checkpoints of the sources; with `content_wanted`, warn if only infos are available.

    With a limit, contents are loaded on demand; without one, whole chains are loaded at once.
    """
    sources = _Sources(source)
    if content_wanted and not (sources.is_empty or sources.all_storages or sources.checkpoints):
        warn_user("This run has no checkpoint storage. Pass checkpoint_storage= to the run.", UserWarning)

    async def of_chain(storage: CheckpointStorage, chain: str) -> list[WorkflowCheckpoint]:
        if chosen.limit is None or not isinstance(storage, SupportsCheckpointInfos):
            return await storage.list_checkpoints(workflow_name=chain)
        return [_read_later(storage, info) for info in await list_infos(storage, workflow_name=chain)]

    return Contents(*run_on_engine(_read(sources, chosen, sources.checkpoints, of_chain), *sources.all_storages))


def ancestors(by_id: Mapping[str, K], each: K) -> Iterator[K]:
    """Yield the ancestors of a checkpoint, the latest first; stops at a cycle in a damaged storage."""
    passed = {each.checkpoint_id}
    before = by_id.get(each.previous_checkpoint_id or "")
    while before is not None and before.checkpoint_id not in passed:
        yield before
        passed.add(before.checkpoint_id)
        before = by_id.get(before.previous_checkpoint_id or "")


def find_storage(source: object) -> CheckpointStorage | None:
    """Return the only storage of a source, `None` if it has none or several."""
    storages = {} if source is None else {id(each): each for each in _Sources(source).all_storages}
    return next(iter(storages.values())) if len(storages) == 1 else None


# ---- sorting ----------------------------------------------------------------------------------------------------


class _Sources:
    """Sources by type; run ids among the sources filter the content of storages."""

    def __init__(self, source: object) -> None:
        self.runs: list[RunHistory] = []
        self.storages: list[CheckpointStorage] = []
        self.checkpoints: list[WorkflowCheckpoint] = []
        self.infos: list[CheckpointInfo] = []
        self.run_ids: set[str | None] = set()
        self._known: dict[type, list[Any]] = {
            RunHistory: self.runs,
            WorkflowCheckpoint: self.checkpoints,
            CheckpointInfo: self.infos,
        }
        self._add(source, in_list=False)
        self.is_empty = not (self.runs or self.storages or self.checkpoints or self.infos)
        self.all_storages = [*self.storages, *(run.storage for run in self.runs if run.storage is not None)]
        if self.run_ids and self.is_empty:
            raise _unknown_source(next(iter(self.run_ids)))
        if self.run_ids:
            self.run_ids |= {run.run_id for run in self.runs}

    def _add(self, source: Any, *, in_list: bool) -> None:
        handle = getattr(source, "handle", None) or source  # of a stepper
        if type(source) in self._known:
            self._known[type(source)].append(source)
        elif all(
            hasattr(handle, name) for name in ("events", "run_id", "pending_requests")
        ):  # has a storage but is not one
            self.runs.append(_of_handle(handle))
        elif isinstance(source, CheckpointStorage):
            self.storages.append(source)
        elif isinstance(inner := getattr(source, "storage", None), CheckpointStorage):  # of a manager
            self.storages.append(inner)
        elif _is_events(source):
            self.runs.append(_of_events(source))
        elif isinstance(source, str) and in_list:
            self.run_ids.add(source)
        elif isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
            for each in source:
                self._add(each, in_list=True)
        else:
            raise _unknown_source(source)


def _unknown_source(source: object) -> TypeError:
    name = repr(source)[:80] if isinstance(source, str) else type(source).__name__
    msg = (
        f"Cannot make a frame from {name}. Expected a checkpoint storage, a run (workflow.start()), a result (await "
        "workflow.run()), a stepper, or a list of them. Pass a run's id with its storage: [storage, id], or run_id=..."
    )
    return TypeError(msg)


def _is_events(source: object) -> bool:
    """Whether a source is a result, which may be empty, or a list of events only."""
    if hasattr(source, "status_timeline"):
        return True
    return isinstance(source, (list, tuple)) and bool(source) and all(isinstance(e, WorkflowEvent) for e in source)


def _of_handle(handle: Any) -> RunHistory:
    events = list(handle.events)
    return RunHistory(
        handle.run_id,
        events,
        infos=list(handle.checkpoints),
        status=str(handle.status),
        error=_error_of(events, handle.error),
        open_requests={event.request_id: event.source_executor_id for event in handle.pending_requests},
        storage=getattr(handle, "storage", None),
    )


def _of_events(result: Any) -> RunHistory:
    events: list[Event] = list(result)
    status: list[Event] = list(getattr(result, "status_timeline", list)())
    known = set(map(id, events)) if status else set()
    missing = [event for event in status if id(event) not in known]
    # Only stamped events can be ordered.
    if missing and all(event.seq is not None for event in (*events, *missing)):
        events = sorted([*events, *missing], key=lambda event: event.seq or 0)
    last = status or [event for event in events if event.type == "status"]
    run_id = next((event.run_id for event in events if event.run_id is not None), None)
    infos: list[CheckpointInfo] = list(getattr(result, "checkpoints", ()))
    return RunHistory(
        run_id if run_id is not None or not infos else infos[-1].run_id,
        events,
        infos=infos,
        status=str(last[-1].state) if last and last[-1].state is not None else None,
        error=_error_of(events, None),
    )


def _error_of(events: Iterable[Event], error: BaseException | None) -> str | None:
    if error is not None:
        return f"{type(error).__name__}: {error}"
    failed = [event.details for event in events if event.type == "failed" and event.details is not None]
    return f"{failed[-1].error_type}: {failed[-1].message}" if failed else None


# ---- reading ----------------------------------------------------------------------------------------------------


def run_on_engine(work: Coroutine[Any, Any, T], *storages: object) -> T:
    """Run a coroutine that reads storages on the engine thread, and wait for its result.

    Raises:
        NestedLoopError: A client in one of them belongs to another loop.
        Exception: Any error of the coroutine.
    """
    try:
        return run_sync(work)
    except Exception as error:
        cause: BaseException | None = error
        while cause is not None and not any(words in str(cause) for words in _COMPLAINTS):
            cause = cause.__cause__
        if cause is None or not storages:
            raise
        reason = (
            "its client belongs to one event loop, but frames are read on another one. Await the checkpoints "
            "first and pass them to the frame: checkpoints_frame(await storage.list_checkpoints(workflow_name=...))"
        )
        call = f"{type(storages[0]).__name__}.list_checkpoints"
        raise NestedLoopError(call, reason) from error


async def _read(
    sources: _Sources,
    chosen: Chosen,
    direct: Sequence[K],
    of_chain: Callable[[CheckpointStorage, str], Awaitable[list[K]]],
) -> tuple[list[K], dict[str, K]]:
    """Return the chosen checkpoints of the sources, and all checkpoints of their chains by id."""
    chains: list[tuple[CheckpointStorage, str, str | None]] = []
    for storage in sources.storages:
        names = [chosen.workflow_name] if chosen.workflow_name else await list_workflow_names(storage)
        chains += [(storage, name, None) for name in names]
    for run in sources.runs:
        if run.storage is not None:  # complete, unlike the handle's list, which a restore shortens
            chains += [(run.storage, name, run.run_id) for name in sorted({info.workflow_name for info in run.infos})]
    by_id: dict[str, K] = {}
    wanted = {each.checkpoint_id for each in direct}
    for storage, name, run_id in chains:
        for each in await of_chain(storage, name):
            by_id[each.checkpoint_id] = each
            if run_id is None or _run_of(each) == run_id:
                wanted.add(each.checkpoint_id)
    for each in direct:
        by_id.setdefault(each.checkpoint_id, each)

    def is_chosen(each: K) -> bool:
        run_id = _run_of(each)
        right_chain = chosen.workflow_name in (None, each.workflow_name)
        return right_chain and chosen.run_id in (None, run_id) and (not sources.run_ids or run_id in sources.run_ids)

    return [each for each in by_id.values() if each.checkpoint_id in wanted and is_chosen(each)], by_id


def _run_of(each: CheckpointInfo | WorkflowCheckpoint) -> Any:
    return each.run_id if isinstance(each, CheckpointInfo) else each.metadata.get(RUN_ID)


def _read_later(storage: CheckpointStorage, info: CheckpointInfo) -> WorkflowCheckpoint:
    """Return a checkpoint for an info; its content is loaded on demand."""
    fields = {
        "workflow_name": info.workflow_name,
        "checkpoint_id": info.checkpoint_id,
        "graph_signature_hash": info.graph_signature_hash,
        "previous_checkpoint_id": info.previous_checkpoint_id,
        "timestamp": info.timestamp,
        "iteration_count": info.iteration,
        "metadata": {**info.metadata, RUN_ID: info.run_id, SOURCE: info.source, WRITERS: list(info.writers)},
    }

    def read(_: str) -> Mapping[str, Any]:
        content = run_on_engine(load_checkpoint(storage, info.checkpoint_id), storage).to_dict()
        return {name: value for name, value in content.items() if name not in fields}

    return WorkflowCheckpoint.read_later(fields, read)
