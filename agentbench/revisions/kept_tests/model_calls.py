"""The model calls of a run: its recording, or the certainty that no call needs one."""

from __future__ import annotations

from collections.abc import Iterator
from types import FunctionType, MethodType, ModuleType
from typing import TYPE_CHECKING, Any, Final

from agentbench.agents.clients.cassette.recording import ModelRecording
from agentbench.exceptions import KeepTestError

if TYPE_CHECKING:
    from agentbench.workflows.run.run import WorkflowRun

_DEEPEST: Final = 6
_MOST_OBJECTS: Final = 20_000


def recording_of(run: WorkflowRun) -> Any:
    """Return the recording of a run that called a model; `None` if all its clients are scripted ones and the like.

    Raises:
        KeepTestError: The workflow has another client, and the run recorded nothing.
    """
    recording = run.recording
    if recording is not None:
        return recording if recording.calls else None
    recorder = ModelRecording(everything=False)
    client = next(
        (each for each in _clients(list(run.workflow.graph.executors.values())) if recorder.covers(each)), None
    )
    if client is not None:
        msg = (
            f"The workflow calls a model through {type(client).__name__}, and the answers of this run were not "
            "recorded. Run it with workflow.start(..., options=RunOptions(record=True)), and keep that run."
        )
        raise KeepTestError(msg, names=[type(client).__name__])
    return None


def _clients(start: Any) -> Iterator[Any]:
    """Yield the chat clients that objects and the functions in them refer to."""
    queue: list[tuple[Any, int]] = [(start, 0)]
    seen: set[int] = set()
    while queue and len(seen) < _MOST_OBJECTS:
        value, depth = queue.pop(0)
        if depth > _DEEPEST or id(value) in seen or value is None or isinstance(value, (str, bytes, int, float)):
            continue
        seen.add(id(value))
        if not isinstance(value, type) and callable(getattr(value, "get_response", None)):
            yield value
        queue += [(part, depth + 1) for part in _parts(value)]


def _parts(value: Any) -> list[Any]:
    if isinstance(value, (list, tuple, set, frozenset)):
        return list(value)
    if isinstance(value, dict):
        return list(value.values())
    if isinstance(value, MethodType):
        return [value.__func__, value.__self__]
    if isinstance(value, FunctionType):
        names = [*value.__code__.co_names]
        parts = [value.__globals__[name] for name in names if name in value.__globals__]
        return [*parts, *(cell.cell_contents for cell in value.__closure__ or () if _is_filled(cell))]
    if isinstance(value, (type, ModuleType)):
        own = value.__module__ if isinstance(value, type) else "builtins"
        is_user_class = isinstance(value, type) and not own.startswith(("agentbench", "builtins"))
        return [each for each in vars(value).values() if isinstance(each, FunctionType)] if is_user_class else []
    return [type(value), *getattr(value, "__dict__", {}).values()]


def _is_filled(cell: Any) -> bool:
    try:
        return cell.cell_contents is not None
    except ValueError:
        return False
