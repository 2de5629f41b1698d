"""What a kept test compares: the outputs, path, state and open questions of a run, as values that are equal each time.

Values become plain JSON values with secrets masked. Ids and times that the run itself made differ from run to run, so
they are replaced by `<id 1>` and `<time>`. Ids and times that were in the input or an answer stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Final

from agentbench._secrets import mask_text
from agentbench.serialization.plain import to_plain
from agentbench.workflows.run.result import WorkflowRunResult

if TYPE_CHECKING:
    from agentbench.workflows.events.events import WorkflowEvent
    from agentbench.workflows.run.run import WorkflowRun

Window = tuple[float, float]
"""From when to when a run made its times, in Unix seconds."""
ASSERTED: Final = ("outputs", "path", "state", "questions", "error")
"""The attributes of `Replayed` that a kept test compares."""

_UUID: Final = re.compile(r"\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b")
_TIME: Final = re.compile(r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d:\d\d)?")
_SLACK_S: Final = 1.0


@dataclass(frozen=True)
class Replayed:
    """What a replayed run did, as plain values that are the same in every run.

    Attributes:
        outputs: The outputs, in order; those of one superstep by the id of the executor.
        path: For each superstep the ids of the executors that ran, sorted.
        state: The shared state at the end.
        questions: The open requests, each as the executor's id and its data.
        error: The class and the text of the error that ended the run; None if it did not fail.

    Example:
        from agentbench.testing import replay

        replayed = replay(workflow, input="to be")
        assert replayed.outputs == [2]
    """

    outputs: list[Any]
    path: list[list[str]]
    state: dict[str, Any]
    questions: list[Any]
    error: str | None = None


class Normalizer:
    """Makes plain values in which the ids and times of one run are replaced, numbered in order of appearance."""

    def __init__(self, *, ids: Iterable[str], windows: Sequence[Window], outside: Any) -> None:
        text = str(to_plain(outside))
        self._text_outside = text
        known = sorted((re.escape(each) for each in ids if each and each not in text), key=len, reverse=True)
        self._id = re.compile("|".join([*(rf"(?<![\w-]){each}(?![\w-])" for each in known), _UUID.pattern]))
        self._windows = windows
        self._numbers: dict[str, int] = {}

    def __call__(self, value: Any) -> Any:
        """Return the comparable form of a value."""
        return self._replace(to_plain(value, mask=True))

    def _replace(self, value: Any) -> Any:
        if isinstance(value, str):
            return _TIME.sub(self._time, self._id.sub(self._number, value))
        if isinstance(value, float):
            return "<time>" if self._is_in_run(value) and str(value) not in self._text_outside else value
        if isinstance(value, list):
            return [self._replace(item) for item in value]
        if isinstance(value, dict):
            return {self._replace(key): self._replace(item) for key, item in value.items()}
        return value

    def _number(self, match: re.Match[str]) -> str:
        found = match.group()
        if found in self._text_outside:
            return found
        return f"<id {self._numbers.setdefault(found, len(self._numbers) + 1)}>"

    def _time(self, match: re.Match[str]) -> str:
        found = match.group()
        try:
            moment = datetime.fromisoformat(found)
        except ValueError:
            return found
        # Code writes times without a zone in local time or in UTC.
        readings = [moment] if moment.tzinfo else [moment.replace(tzinfo=UTC), moment.astimezone()]
        is_own = found not in self._text_outside and any(self._is_in_run(each.timestamp()) for each in readings)
        return "<time>" if is_own else found

    def _is_in_run(self, seconds: float) -> bool:
        return any(first - _SLACK_S <= seconds <= last + _SLACK_S for first, last in self._windows)


def facts_of(run: WorkflowRun, *, outside: Any, windows: Sequence[Window] = ()) -> Replayed:
    """Return what a run did.

    Args:
        run: A run at rest.
        outside: The input and the answers; ids and times in them are not replaced.
        windows: When the run made its times, besides the times of its events.
    """
    events = run.events
    ids = [run.run_id, *(info.checkpoint_id for info in run.checkpoints)]
    ids += [event.request_id for event in events if event.type == "request_info"]
    plain = Normalizer(ids=ids, windows=[*windows, *windows_of(events)], outside=outside)
    return Replayed(
        outputs=plain(WorkflowRunResult(_outputs_in_order(events)).get_outputs()),
        path=path_of(events),
        state=plain(run.state),
        questions=[[event.source_executor_id, plain(event.data)] for event in run.pending_requests],
        error=None if run.error is None else plain(f"{type(run.error).__name__}: {mask_text(str(run.error))}"),
    )


def windows_of(events: Iterable[WorkflowEvent[Any]]) -> list[Window]:
    """Return the window of the times of some events; none if they have no times."""
    times = [event.time_ns / 1e9 for event in events if event.time_ns]
    return [(min(times), max(times))] if times else []


def _outputs_in_order(events: Iterable[WorkflowEvent[Any]]) -> list[WorkflowEvent[Any]]:
    """Return the outputs, those of one superstep by executor: which of them is first is up to chance."""
    superstep = 0
    found: list[tuple[int, str, WorkflowEvent[Any]]] = []
    for event in events:
        superstep += event.type == "superstep_started"
        if event.type == "output":
            found.append((superstep, event.executor_id or "", event))
    return [event for _, _, event in sorted(found, key=lambda each: each[:2])]


def question_of(request: Any, run_id: str, windows: Sequence[Window] = ()) -> Any:
    """Return the data of a request as a plain value."""
    return Normalizer(ids=[run_id], windows=windows, outside=[])(request)


def path_of(events: Iterable[WorkflowEvent[Any]]) -> list[list[str]]:
    """Return the ids of the executors that ran, for each superstep; sorted, because those of one run side by side."""
    path: list[list[str]] = [[]]
    for event in events:
        if event.type == "superstep_started":
            path.append([])
        elif event.type == "executor_invoked" and event.executor_id is not None:
            path[-1].append(event.executor_id)
    return [sorted(executors) for executors in path if executors]
