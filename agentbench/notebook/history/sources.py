"""The sources of frames, normalized: runs with their events, checkpoints, infos of checkpoints.

Storages are asynchronous; they are read on the engine thread, once per frame.
"""

import warnings
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime, timezone
from typing import Any, Generic, TypeVar

from agentbench.checkpoints.access import list_infos, list_workflow_names
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.metadata import RUN_ID
from agentbench.checkpoints.storage import CheckpointStorage, SupportsCheckpointInfos
from agentbench.notebook.history.contents import Contents, Everything, Pages
from agentbench.notebook.history.loop_bound import run_on_engine
from agentbench.workflows.events.events import WorkflowEvent

__all__ = [
    "Chosen",
    "Read",
    "Run",
    "Since",
    "read_all_checkpoints",
    "read_checkpoints",
    "read_infos",
    "read_runs",
    "time_ns",
]

# A superstep, or a time as datetime or ISO 8601 text.
Since = int | datetime | str

Event = WorkflowEvent[Any]

S = TypeVar("S")
T = TypeVar("T")
K = TypeVar("K", CheckpointInfo, WorkflowCheckpoint)

_EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


@dataclass(frozen=True)
class Chosen:
    """The filter of a frame: which part of its sources it has rows of.

    Attributes:
        workflow_name: Only this chain of a storage.
        run_id: Only this run.
        since: Only what happened from this superstep or time on.
        limit: At most so many rows, the last ones.
    """

    workflow_name: str | None = None
    run_id: str | None = None
    since: Since | None = None
    limit: int | None = None

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 0:
            msg = f"limit is {self.limit}; expected 0 or more, or None for all."
            raise ValueError(msg)
        if isinstance(self.since, str) and time_ns(self.since) is None:
            msg = f"since is {self.since!r}; expected a superstep (a number), a datetime or ISO 8601 text."
            raise ValueError(msg)

    def last(self, rows: list[T]) -> list[T]:
        """Return the rows within `limit`."""
        return rows if self.limit is None else rows[max(0, len(rows) - self.limit) :]

    def gather(self, newest_first: Iterable[S], rows_of: Callable[[S], list[T]]) -> list[T]:
        """Return the rows of each source within `limit`, in order; reads no more sources than that takes."""
        found: list[list[T]] = []
        count = 0
        for each in newest_first if self.limit != 0 else ():
            rows = rows_of(each)
            found.append(rows)
            count += len(rows)
            if self.limit is not None and count >= self.limit:
                break
        return self.last([row for rows in reversed(found) for row in rows])

    def includes(self, superstep: int, at: str | int | None) -> bool:
        """Whether something at this superstep and time (text, nanoseconds, `None`: unknown) is within `since`."""
        if self.since is None:
            return True
        if isinstance(self.since, int):
            return superstep >= self.since
        at_ns = time_ns(at) if isinstance(at, str) else at
        first_ns = time_ns(self.since)
        return at_ns is not None and first_ns is not None and at_ns >= first_ns


@dataclass(frozen=True)
class Run:
    """A run, read from its handle or its result.

    Attributes:
        run_id: Its id; `None` for a result without stamps.
        events: Its events, in order of emission.
        infos: The checkpoints that it saved.
        status: Its status, if known.
        error: The error that made it fail.
        open_requests: Ids of its pending requests; `None` if that is unknown.
        storage: The storage of its checkpoints.
    """

    run_id: str | None
    events: Sequence[Event]
    infos: Sequence[CheckpointInfo] = ()
    status: str | None = None
    error: str | None = None
    open_requests: frozenset[str] | None = None
    storage: CheckpointStorage | None = None


@dataclass(frozen=True)
class Read(Generic[T]):
    """Checkpoints, or infos of them.

    Attributes:
        rows: Those of a frame, each once, in the order of their storage.
        by_id: These and the others of their chains, which may be their ancestors.
    """

    rows: Sequence[T]
    by_id: Mapping[str, T]


@dataclass
class _Parts:
    """The sources, sorted by their types."""

    runs: list[Run] = field(default_factory=list)
    storages: list[CheckpointStorage] = field(default_factory=list)
    checkpoints: list[WorkflowCheckpoint] = field(default_factory=list)
    infos: list[CheckpointInfo] = field(default_factory=list)
    run_ids: set[str] = field(default_factory=set)

    @property
    def is_empty(self) -> bool:
        return not (self.runs or self.storages or self.checkpoints or self.infos)

    @property
    def read_storages(self) -> list[CheckpointStorage]:
        """The storages that are read, each as often as it is a source."""
        return [*self.storages, *(run.storage for run in self.runs if run.storage is not None)]

    @property
    def has_content(self) -> bool:
        return bool(self.storages or self.checkpoints or any(run.storage is not None for run in self.runs))

    def includes(self, run_id: str | None) -> bool:
        """Whether the checkpoints of a run are wanted: ids among the sources filter the content of storages."""
        return not self.run_ids or run_id in self.run_ids or any(run.run_id == run_id for run in self.runs)


def read_runs(source: object, chosen: Chosen, *, events_wanted: bool = False) -> list[Run]:
    """Return the runs among the sources; with `events_wanted`, emit a warning if there are only other sources."""
    parts = _sort_sources(source)
    if events_wanted and not parts.runs and not parts.is_empty:
        warnings.warn("Storages and checkpoints have no events. Pass the run or its result.", stacklevel=3)
    return [run for run in parts.runs if chosen.run_id in (None, run.run_id)]


def read_infos(source: object, chosen: Chosen) -> Read[CheckpointInfo]:
    """Return the infos of all checkpoints of the sources."""
    parts = _sort_sources(source)
    return run_on_engine(_infos(parts, chosen), *parts.read_storages)


def read_checkpoints(source: object, chosen: Chosen, *, content_wanted: bool = False) -> Contents:
    """Return the checkpoints of the sources; with `content_wanted`, emit a warning if only infos are available.

    Of the checkpoints of one storage no more than `chosen` needs is read.
    """
    parts = _sort_sources(source)
    if content_wanted and not parts.is_empty and not parts.has_content:
        warnings.warn("A run without a storage has no checkpoints. Pass checkpoint_storage= to it.", stacklevel=3)
    is_one = (
        not parts.checkpoints and len(parts.read_storages) == 1 and len({chosen.run_id, *parts.run_ids} - {None}) <= 1
    )
    if chosen.limit is not None and is_one:
        (storage,) = parts.read_storages
        if isinstance(storage, SupportsCheckpointInfos):
            return Pages(storage, _page_filters(parts, chosen, run_on_engine(_chains(parts, chosen), storage)))
    return _everything(parts, chosen)


def read_all_checkpoints(source: object, chosen: Chosen) -> Everything:
    """Return all checkpoints of the sources; the limit does not count."""
    return _everything(_sort_sources(source), chosen)


def _everything(parts: _Parts, chosen: Chosen) -> Everything:
    read = run_on_engine(_checkpoints(parts, chosen), *parts.read_storages)
    return Everything(read.rows, read.by_id)


def time_ns(time: datetime | str) -> int | None:
    """Return nanoseconds since 1970, UTC; a time without a zone is one in UTC. `None` for text that is no time."""
    if isinstance(time, str):
        try:  # Python 3.10 does not read the letter Z
            time = datetime.fromisoformat(f"{time[:-1]}+00:00" if time.endswith(("Z", "z")) else time)
        except ValueError:  # written by another program
            return None
    time = time.replace(tzinfo=timezone.utc) if time.tzinfo is None else time
    past = time - _EPOCH
    return ((past.days * 86_400 + past.seconds) * 1_000_000 + past.microseconds) * 1000


# ---- sorting ----------------------------------------------------------------------------------------------------


def _sort_sources(source: object) -> _Parts:
    parts = _Parts()
    for each in _flat(source):
        # A handle has a storage and is none; of a manager, its storage is the source.
        if isinstance(each, Run):
            parts.runs.append(each)
        elif isinstance(each, WorkflowCheckpoint):
            parts.checkpoints.append(each)
        elif isinstance(each, CheckpointInfo):
            parts.infos.append(each)
        elif isinstance(each, str):
            parts.run_ids.add(each)
        else:
            parts.storages.append(each)
    if parts.run_ids and parts.is_empty:
        raise _unknown_source(min(parts.run_ids))
    return parts


def _flat(source: object) -> Iterable[Any]:
    """Return every single source in a source."""
    handle = getattr(source, "handle", None)
    if handle is not None and _is_handle(handle):
        yield _of_handle(handle)
    elif _is_handle(source):
        yield _of_handle(source)
    elif isinstance(source, (WorkflowCheckpoint, CheckpointInfo, Run, CheckpointStorage)):
        yield source
    elif isinstance(inner := getattr(source, "storage", None), CheckpointStorage):
        yield inner
    elif _is_events(source):
        yield _of_events(source)
    elif isinstance(source, Iterable) and not isinstance(source, (str, bytes)):
        for each in source:
            if isinstance(each, str):
                yield each
            else:
                yield from _flat(each)
    else:
        raise _unknown_source(source)


def _unknown_source(source: object) -> TypeError:
    name = repr(source)[:80] if isinstance(source, str) else type(source).__name__
    msg = (
        f"No frame can be made from {name}. Expected a checkpoint storage, a run (workflow.start()), a result (await "
        "workflow.run()), a stepper, or a list of them. A run's id goes with its storage: [storage, id], or run_id=..."
    )
    return TypeError(msg)


def _is_handle(source: object) -> bool:
    return hasattr(source, "events") and hasattr(source, "run_id") and hasattr(source, "pending_requests")


def _is_events(source: object) -> bool:
    """Whether a source is a result, which may be empty, or a list of events only."""
    if hasattr(source, "status_timeline"):
        return True
    return isinstance(source, (list, tuple)) and bool(source) and all(isinstance(e, WorkflowEvent) for e in source)


def _of_handle(handle: Any) -> Run:
    events = list(handle.events)
    return Run(
        handle.run_id,
        events,
        infos=list(handle.checkpoints),
        status=str(handle.status),
        error=_error_of(events, handle.error),
        open_requests=frozenset(event.request_id for event in handle.pending_requests),
        storage=getattr(handle, "storage", None),
    )


def _of_events(result: Any) -> Run:
    events: list[Event] = list(result)
    status: list[Event] = list(getattr(result, "status_timeline", list)())
    known = set(map(id, events))
    missing = [event for event in status if id(event) not in known]
    # Only stamped events can be put in their places.
    if missing and all(event.seq is not None for event in (*events, *missing)):
        events = sorted([*events, *missing], key=lambda event: event.seq or 0)
    last = status or [event for event in events if event.type == "status"]
    run_id = next((event.run_id for event in events if event.run_id is not None), None)
    infos: list[CheckpointInfo] = list(getattr(result, "checkpoints", ()))
    return Run(
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


async def _chains(parts: _Parts, chosen: Chosen) -> list[str]:
    """Return the chains of the only storage."""
    if parts.runs:  # more than the handle's own list is in its chains, but no other chain
        return sorted({info.workflow_name for info in parts.runs[0].infos})
    return await list_workflow_names(parts.storages[0]) if chosen.workflow_name is None else [chosen.workflow_name]


def _page_filters(parts: _Parts, chosen: Chosen, chains: Iterable[str]) -> list[tuple[str, str | None]]:
    """Return the chains to read, each with the run whose checkpoints are read."""
    own = parts.runs[0].run_id if parts.runs else None
    if None not in (own, chosen.run_id) and own != chosen.run_id:
        return []
    only = min(parts.run_ids) if parts.run_ids else None
    chosen_chains = [chain for chain in chains if chosen.workflow_name in (None, chain)]
    return [(chain, own or chosen.run_id or only) for chain in chosen_chains]


async def _infos(parts: _Parts, chosen: Chosen) -> Read[CheckpointInfo]:
    infos = [*parts.infos, *map(CheckpointInfo.of, parts.checkpoints), *(i for run in parts.runs for i in run.infos)]

    async def of_chain(storage: CheckpointStorage, chain: str) -> list[CheckpointInfo]:
        return await list_infos(storage, workflow_name=chain)

    return await _read(parts, chosen, infos, of_chain)


async def _checkpoints(parts: _Parts, chosen: Chosen) -> Read[WorkflowCheckpoint]:
    async def of_chain(storage: CheckpointStorage, chain: str) -> list[WorkflowCheckpoint]:
        return await storage.list_checkpoints(workflow_name=chain)

    return await _read(parts, chosen, parts.checkpoints, of_chain)


async def _read(
    parts: _Parts,
    chosen: Chosen,
    direct: Sequence[K],
    of_chain: Callable[[CheckpointStorage, str], Awaitable[list[K]]],
) -> Read[K]:
    everything: dict[str, K] = {}
    wanted: set[str] = set()
    for storage in parts.storages:
        only = chosen.workflow_name
        for chain in await list_workflow_names(storage) if only is None else [only]:
            read = await of_chain(storage, chain)
            everything |= {each.checkpoint_id: each for each in read}
            wanted |= {each.checkpoint_id for each in read}
    for run in parts.runs:
        if run.storage is None:
            continue
        # More than the handle's own list, which a restore cuts back.
        for chain in sorted({info.workflow_name for info in run.infos}):
            read = await of_chain(run.storage, chain)
            everything |= {each.checkpoint_id: each for each in read}
            wanted |= {each.checkpoint_id for each in read if _run_of(each) == run.run_id}
    wanted |= {each.checkpoint_id for each in direct}
    for each in direct:
        everything.setdefault(each.checkpoint_id, each)
    rows = [each for each in everything.values() if each.checkpoint_id in wanted and _is_chosen(each, parts, chosen)]
    return Read(rows, everything)


def _is_chosen(each: CheckpointInfo | WorkflowCheckpoint, parts: _Parts, chosen: Chosen) -> bool:
    run_id = _run_of(each)
    if chosen.workflow_name not in (None, each.workflow_name):
        return False
    return chosen.run_id in (None, run_id) and parts.includes(run_id)


def _run_of(each: CheckpointInfo | WorkflowCheckpoint) -> Any:
    return each.run_id if isinstance(each, CheckpointInfo) else each.metadata.get(RUN_ID)
