"""`StreamEmitter`: how a tool tells those who watch the run what it is doing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Any, Final, Literal, Protocol

from agentbench._signatures.forms import flatten_union, unwrap
from agentbench.serialization.plain import text_of


class Watcher(Protocol):
    """Those who watch the run."""

    def show(self, data: Any) -> None:
        """Show them data of the executor that is running, from any thread."""


watcher: Final[ContextVar[Any]] = ContextVar("agentbench_watcher", default=None)
"""The `Watcher` of the running executor; `None` if nobody watches the run."""


class ToolReport(dict[str, Any]):
    """The data that a tool emitted, with `status`, `tool_name`, `tool_call_id` and `message`.

    Attributes:
        event: The kind of chunk in the stream of a state graph.
    """

    event: Literal["message", "error", "updates"]


class StreamEmitter:
    """Reports the progress of a tool while it runs. Its methods may be called from any thread.

    A tool gets an emitter in a parameter with the annotation `StreamEmitter | None`, which models do not see. The
    parameter is `None` if nobody watches the run, as in `invoke` of a state graph. Streams of state graphs, steppers
    and runs with `RunOptions(observe=True)` are watched. Each report is an event of type `custom`; a stream of a state
    graph yields it as a `StreamChunk`. A message that is not text, such as an error, is converted by `str`.

    Args:
        show: A function that gets each report.
        tool_name: The name of the tool.
        tool_call_id: The id of the call.

    Example:
        >>> def count_rows(path: str, emit: StreamEmitter | None = None) -> int:
        ...     for n, row in enumerate(open(path)):
        ...         if emit is not None and n % 1000 == 0:
        ...             emit.progress(f"{n} rows", data={"n": n})
        ...     return n
    """

    def __init__(self, show: Callable[[Any], None], tool_name: str, tool_call_id: str | None = None) -> None:
        self._show = show
        self.tool_name, self.tool_call_id = tool_name, tool_call_id

    def __repr__(self) -> str:
        return f"StreamEmitter({self.tool_name!r}, {self.tool_call_id!r})"

    def __call__(self, data: Any) -> None:
        """Emit any value, as the `emit` of a node does."""
        self._show(data)

    def progress(self, message: object, data: Mapping[str, Any] | None = None) -> None:
        """Emit a line about the progress of the call, with further data; the status is `tool_progress`."""
        self._report("updates", "tool_progress", data, _text(message))

    def error(self, message: object, data: Mapping[str, Any] | None = None) -> None:
        """Emit a line about a failure, with further data; the status is `tool_failed`. The call goes on."""
        self._report("error", "tool_failed", data, _text(message))

    def message(self, message: object, data: Mapping[str, Any] | None = None) -> None:
        """Emit a text that people should read, with further data; the status is `tool_message`."""
        self._report("message", "tool_message", data, _text(message))

    def update(self, data: Mapping[str, Any]) -> None:
        """Emit data alone; the status is `tool_progress`, unless the data have another one."""
        self._report("updates", "tool_progress", data)

    def _report(self, event: Any, status: str, data: Mapping[str, Any] | None, message: str | None = None) -> None:
        said = {} if message is None else {"message": message}
        call = {"tool_name": self.tool_name, "tool_call_id": self.tool_call_id}
        report = ToolReport({"status": status} | dict(data or {}) | call | said)
        report.event = event
        self._show(report)


def emitter_of(tool_name: str, tool_call_id: str | None) -> StreamEmitter | None:
    """Return the emitter for a call of a tool; `None` if nobody watches the run."""
    observer: Watcher | None = watcher.get()
    return None if observer is None else StreamEmitter(observer.show, tool_name, tool_call_id)


def is_emitter(annotation: Any) -> bool:
    """Return whether a parameter with this annotation gets a `StreamEmitter`."""
    return any(unwrap(member) is StreamEmitter for member in flatten_union(annotation))


def _text(message: object) -> str:
    return message if isinstance(message, str) else text_of(message)
