"""The shared state of runs after each superstep, and its changes."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.difference.comparison import Comparison
from agentbench.checkpoints.metadata import RUN_ID, WRITERS
from agentbench.notebook.history.run_history import RunHistory
from agentbench.notebook.history.sources import Chosen, ancestors, read_checkpoints, read_runs


@dataclass(frozen=True)
class StateChange:
    """One key that was `set` or deleted (`del`), dotted for nested mappings.

    The executor is `None` if several ran and no event names the writer.
    """

    key: str
    value: object
    old: object
    op: str
    executor: str | None


@dataclass(frozen=True)
class StateAfter:
    """The state after a superstep and its changes; `checkpoint_id` is `None` if none was saved."""

    superstep: int
    at: str | int | None
    run_id: str | None
    state: Mapping[str, object]
    changes: Sequence[StateChange]
    checkpoint_id: str | None = None


def flatten_state(state: Mapping[str, Any], *, internal: bool = False) -> dict[str, object]:
    """Return a state as one level of dotted keys; empty mappings and those with non-text keys stay values."""
    flat: dict[str, object] = {}
    for key, value in state.items():
        if internal or not key.startswith("_"):
            _flatten(key, value, flat)
    return flat


def _flatten(key: str, value: Any, flat: dict[str, object]) -> None:
    if type(value) is dict and value and all(type(name) is str for name in value):
        for name, item in value.items():
            _flatten(f"{key}.{name}", item, flat)
    else:
        flat[key] = value


class StateBySuperstep:
    """The state after each requested superstep, read from the sources; `internal` includes keys that begin with `_`."""

    def __init__(self, source: Any, chosen: Chosen, *, internal: bool) -> None:
        self._chosen = chosen
        self._internal = internal
        self._runs = read_runs(source, chosen)
        self._writers = {
            (run.run_id, step.number, key): ", ".join(map(str, change["writers"]))
            for run in self._runs
            for step in run.supersteps
            for event in step.updates
            for key, change in event.data.items()
            if isinstance(change, Mapping) and change.get("writers")
        }
        self._read = read_checkpoints(source, chosen, content_wanted=not self._writers)
        self._flat: dict[str, dict[str, object]] = {}
        self.warn_about_problems = self._read.warn_about_problems

    def newest_first(self) -> Iterator[StateAfter]:
        """Yield the requested states, the last one first."""
        for run in reversed(self._runs):
            if run.storage is None:
                yield from reversed(list(self._of_events(run)))
        for checkpoint in reversed(self._read.rows):
            superstep, at = checkpoint.iteration_count, checkpoint.timestamp
            if self._chosen.includes(superstep, at) and (after := self._state(checkpoint)) is not None:
                before, is_next = self._before(checkpoint)
                run_id, ran = checkpoint.metadata.get(RUN_ID), list(checkpoint.metadata.get(WRITERS) or [])
                changes = self._changes(
                    before, after, (run_id, superstep), ran[0] if len(ran) == 1 and is_next else None
                )
                yield StateAfter(superstep, at, run_id, after, changes, checkpoint.checkpoint_id)

    def _of_events(self, run: RunHistory) -> Iterator[StateAfter]:
        """Yield the requested states of an observed run."""
        before: Mapping[str, object] = {}
        for step in run.supersteps:
            if step.updates:
                after, at = flatten_state(step.state, internal=self._internal), step.updates[-1].time_ns
                if self._chosen.includes(step.number, at):
                    changes = self._changes(before, after, (run.run_id, step.number))
                    yield StateAfter(step.number, at, run.run_id, after, changes)
                before = after

    def _before(self, checkpoint: WorkflowCheckpoint) -> tuple[Mapping[str, object], bool]:
        """Return the state before a checkpoint, if readable, and whether it is that of the previous superstep."""
        is_next = True
        for each in ancestors(self._read.by_id, checkpoint):
            if (state := self._state(each)) is not None:
                return state, is_next
            is_next = False
        return {}, is_next

    def _state(self, checkpoint: WorkflowCheckpoint) -> dict[str, object] | None:
        if checkpoint.checkpoint_id not in self._flat:
            if not self._read.can_read(checkpoint):
                return None
            self._flat[checkpoint.checkpoint_id] = flatten_state(checkpoint.state, internal=self._internal)
        return self._flat[checkpoint.checkpoint_id]

    def _changes(
        self,
        before: Mapping[str, Any],
        after: Mapping[str, Any],
        place: tuple[str | None, int],
        only: str | None = None,
    ) -> list[StateChange]:
        """Return the changes of a superstep; `only` is the writer if no event names one."""

        def writer(key: str) -> str | None:
            return self._writers.get((*place, key.partition(".")[0]), only)

        same = Comparison().same
        changes = [
            StateChange(key, value, before.get(key), "set", writer(key))
            for key, value in after.items()
            if key not in before or not same(before[key], value)
        ]
        return changes + [StateChange(k, None, old, "del", writer(k)) for k, old in before.items() if k not in after]
