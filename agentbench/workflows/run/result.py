"""The result of a run: its events, with outputs and requests."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from agentbench._display import Displayable, drawn_by
from agentbench._secrets import masked_repr
from agentbench.workflows.events.events import WorkflowEvent, WorkflowRunState

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.workflows.engine.carried_over import CarriedOver
    from agentbench.workflows.engine.event_log import EventLog

Events = Iterable[WorkflowEvent[Any]]


@drawn_by("agentbench.notebook.cards.run:result_bundle")
class WorkflowRunResult(list[WorkflowEvent[Any]], Displayable):
    """Events of a finished run, as a list without `started` and (unless requested) without `status`.

    Args:
        events: the events of the list.
        status_events: the status events, which the list may omit.

    Attributes:
        checkpoints: infos of the checkpoints that the run saved, in order.
        carried_over: shared state and open requests of earlier runs with which this run began; None if it began empty.

    Example:
        >>> result = await workflow.run("to be")
        >>> result.get_outputs(), result.get_final_state()
        ([2], <WorkflowRunState.IDLE: 'IDLE'>)
    """

    def __init__(self, events: Events = (), status_events: Events | None = None) -> None:
        super().__init__(events)
        self._status: list[WorkflowEvent[Any]] = list(status_events or ())
        self.checkpoints: list[CheckpointInfo] = []
        self.carried_over: CarriedOver | None = None

    @classmethod
    def from_log(
        cls, log: EventLog, *, include_status_events: bool = False, is_closed: bool = True
    ) -> WorkflowRunResult:
        """Return the result of a run; the events of a closed log, which no longer grows, are built on first access."""
        result = _UnreadRunResult()
        result._log, result._with_status = log, include_status_events  # noqa: SLF001 - its own
        if not is_closed:
            result.read()
        result.checkpoints = list(log.checkpoints)
        result.carried_over = log.carried_over
        return result

    def get_outputs(self) -> list[Any]:
        """Return the data of the `output` events, in order; a streamed answer of an agent becomes one response."""
        return [e.data for e in self._answers() if e.type == "output"]

    def get_intermediate_outputs(self) -> list[Any]:
        """Return the data of the `intermediate` (and legacy `data`) events, in order, like `get_outputs`."""
        return [e.data for e in self._answers() if e.type in ("intermediate", "data")]

    def _answers(self) -> list[WorkflowEvent[Any]]:
        if "agentbench.messages.update" not in sys.modules:  # no updates: do not import messages
            return self
        from agentbench.messages.joined_updates import join_updates  # noqa: PLC0415

        return join_updates(self)

    def get_request_info_events(self) -> list[WorkflowEvent[Any]]:
        """Return the requests that this run raised, in order."""
        return [e for e in self if e.type == "request_info"]

    @property
    def warnings(self) -> list[str]:
        """The texts of the `warning` events, in order: possible problems of a run that succeeded."""
        return [str(e.data) for e in self if e.type == "warning"]

    def status_timeline(self) -> list[WorkflowEvent[Any]]:
        """The status events, in order."""
        return list(self._status)

    def get_final_state(self) -> WorkflowRunState:
        """Return the state of the last status event. RuntimeError: the result has none, as if built by hand."""
        status = self.status_timeline()
        if not status or status[-1].state is None:
            msg = "This result has no status event. Pass status_events= when you build a result by hand."
            raise RuntimeError(msg)
        return status[-1].state

    @property
    def outputs(self) -> list[Any]:
        """The same as `get_outputs()`."""
        return self.get_outputs()

    @property
    def intermediate_outputs(self) -> list[Any]:
        """The same as `get_intermediate_outputs()`."""
        return self.get_intermediate_outputs()

    @property
    def final_state(self) -> WorkflowRunState:
        """The same as `get_final_state()`."""
        return self.get_final_state()

    def __repr__(self) -> str:
        outputs = self.get_outputs()
        state = self._status[-1].state if self._status else "no status"
        warned = f", warnings={self.warnings!r}" if self.warnings else ""
        return f"WorkflowRunResult({state}, {len(self)} events, outputs={masked_repr(outputs)}{warned})"


class _UnreadRunResult(WorkflowRunResult):
    """A result whose list is still in the log; it becomes a plain `WorkflowRunResult` on first access."""

    _log: EventLog
    _with_status: bool

    def read(self) -> None:
        """Build the events and become a plain result."""
        events = self._log.events()
        self._status = [e for e in events if e.type == "status"]
        hidden = ("started",) if self._with_status else ("started", "status")
        list.extend(self, (e for e in events if e.type not in hidden))
        self.__class__ = WorkflowRunResult  # type: ignore[assignment]  # same layout, nothing left to read
        del self._log, self._with_status

    def get_outputs(self) -> list[Any]:
        """Return the data of the `output` events, from the log unless some are updates of a streamed answer."""
        outputs = [e.data for e in self._log.outputs]
        if "agentbench.messages.update" not in sys.modules:
            return outputs
        from agentbench.messages.update import AgentResponseUpdate  # noqa: PLC0415

        if not any(isinstance(output, AgentResponseUpdate) for output in outputs):
            return outputs
        self.read()
        return WorkflowRunResult.get_outputs(self)

    def get_final_state(self) -> WorkflowRunState:
        """Return the state of the last status event, from the log."""
        if self._log.state is None:
            self.read()
            return WorkflowRunResult.get_final_state(self)
        return self._log.state

    def status_timeline(self) -> list[WorkflowEvent[Any]]:
        """The status events, in order."""
        self.read()
        return WorkflowRunResult.status_timeline(self)

    def __radd__(self, other: list[Any]) -> list[Any]:
        """Return `other + self`; without this method a list would read the other operand directly and find it empty."""
        self.read()
        return other + list(self)


def _reading_first(name: str) -> Callable[..., Any]:
    method = getattr(WorkflowRunResult, name)

    def read_then(self: WorkflowRunResult, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, _UnreadRunResult):  # otherwise it was read in the meantime: result.count(result[0])
            self.read()
        return method(self, *args, **kwargs)

    read_then.__name__ = name
    return read_then


# Every access to the list or its contents reads the log first, once.
_UNREAD = {"__new__", "__init__", "__getattribute__", "__hash__", "__sizeof__", "__class_getitem__", "__doc__"}
for _name in (vars(list).keys() | {"__reduce_ex__"}) - _UNREAD:
    setattr(_UnreadRunResult, _name, _reading_first(_name))
