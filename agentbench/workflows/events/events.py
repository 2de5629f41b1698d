"""The event class of runs, with its types, the states of a run, and error details."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from enum import Enum, StrEnum
from typing import TYPE_CHECKING, Any, Generic, Self, TypeVar

from agentbench._display import Displayable, drawn_by
from agentbench._secrets import mask_text, masked_repr
from agentbench._signatures import type_from_dict, type_name, type_to_dict

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo

DataT = TypeVar("DataT", covariant=True)


class WorkflowEventType(StrEnum):
    """The event types of the library. `WorkflowEvent.type` is a plain string and may be any other text too.

    A member equals its text, so `event.type` can be compared with either.

    Example:
        >>> outputs = [event.data for event in result if event.type == WorkflowEventType.OUTPUT]
    """

    STARTED = "started"
    STATUS = "status"
    FAILED = "failed"
    OUTPUT = "output"
    INTERMEDIATE = "intermediate"
    DATA = "data"
    REQUEST_INFO = "request_info"
    WARNING = "warning"
    ERROR = "error"
    SUPERSTEP_STARTED = "superstep_started"
    SUPERSTEP_COMPLETED = "superstep_completed"
    EXECUTOR_INVOKED = "executor_invoked"
    EXECUTOR_COMPLETED = "executor_completed"
    EXECUTOR_FAILED = "executor_failed"
    EXECUTOR_BYPASSED = "executor_bypassed"
    GROUP_CHAT = "group_chat"
    HANDOFF_SENT = "handoff_sent"
    MAGENTIC_ORCHESTRATOR = "magentic_orchestrator"
    CUSTOM = "custom"
    CHECKPOINT_SAVED = "checkpoint_saved"
    MESSAGE_DROPPED = "message_dropped"
    STATE_UPDATED = "state_updated"
    STATE_EDITED = "state_edited"
    GRAPH_ROUTED = "graph_routed"
    MODEL_USAGE = "model_usage"
    LOG = "log"
    SUB_WORKFLOW = "sub_workflow"


class WorkflowEventSource(StrEnum):
    """The origin of an event: the engine, or the code of an executor.

    Example:
        >>> own = [event for event in result if event.origin == WorkflowEventSource.EXECUTOR]
    """

    FRAMEWORK = "FRAMEWORK"
    EXECUTOR = "EXECUTOR"


# Bound here because enum members are slow to read before Python 3.12, and each event has one.
_FRAMEWORK, _EXECUTOR = WorkflowEventSource.FRAMEWORK, WorkflowEventSource.EXECUTOR


class WorkflowRunState(StrEnum):
    """The states of a run; a `status` event reports each change. A member equals its name as text.

    Example:
        >>> if result.final_state == WorkflowRunState.IDLE_WITH_PENDING_REQUESTS:
        ...     requests = result.get_request_info_events()
    """

    STARTED = "STARTED"
    IN_PROGRESS = "IN_PROGRESS"
    IN_PROGRESS_PENDING_REQUESTS = "IN_PROGRESS_PENDING_REQUESTS"
    IDLE = "IDLE"
    IDLE_WITH_PENDING_REQUESTS = "IDLE_WITH_PENDING_REQUESTS"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"


@dataclass
class WorkflowErrorDetails:
    """An error in a form that can be displayed, logged and stored.

    Attributes:
        error_type: Name of the exception's class.
        message: The text of the exception.
        traceback: The formatted traceback.
        executor_id: The executor whose handler raised.
        extra: Further facts.

    Example:
        >>> details = WorkflowErrorDetails.from_exception(error, executor_id="reader")
    """

    error_type: str
    message: str
    traceback: str | None = field(default=None, repr=False)
    executor_id: str | None = None
    extra: dict[str, Any] | None = None

    @classmethod
    def from_exception(
        cls, exc: BaseException, *, executor_id: str | None = None, extra: dict[str, Any] | None = None
    ) -> WorkflowErrorDetails:
        """Describe an exception and its traceback, with secrets masked. Never raises."""
        import traceback  # noqa: PLC0415 - only failures need it

        message, text = f"<{type(exc).__name__} that cannot be printed>", None
        with suppress(Exception):  # a broken __str__ of user code must not hide the error it describes
            message = mask_text("\n".join([str(exc), *getattr(exc, "__notes__", ())]))
        with suppress(Exception):
            text = mask_text("".join(traceback.format_exception(exc)))
        return cls(type(exc).__name__, message, text, executor_id, extra)


@dataclass(frozen=True)
class SuperstepCompletionInfo:
    """The end of a superstep; the data of `superstep_completed` events if checkpoints are on.

    Attributes:
        checkpoint: The saved checkpoint; None if the save failed.
        has_pending_messages: Whether messages are queued for another superstep.
        has_pending_requests: Whether requests wait for an answer.
        activated_executors: Ids of the executors that ran, in the order of their first delivery.

    Example:
        >>> async for event in workflow.run("x", stream=True, checkpoint_storage=storage):
        ...     if event.completion_info is not None:
        ...         print(event.completion_info.checkpoint)
    """

    checkpoint: CheckpointInfo | None
    has_pending_messages: bool
    has_pending_requests: bool
    activated_executors: list[str] = field(default_factory=list)


class EventStamps:
    """Where and when an event of an observed run happened."""

    __slots__ = (
        "attempt", "duration_s", "order", "parent_span_id", "path", "run_id", "seq", "span_id", "superstep", "task_id",
        "time_ns", "worker",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - a record: one parameter per field
        self,
        seq: int,
        run_id: str,
        superstep: int,
        time_ns: int,
        task_id: str | None = None,
        order: int | None = None,
        duration_s: float | None = None,
        span_id: str | None = None,
        parent_span_id: str | None = None,
        attempt: int | None = None,
        path: tuple[str, ...] | None = None,
        worker: str | None = None,
    ) -> None:
        self.seq, self.run_id, self.superstep, self.time_ns = seq, run_id, superstep, time_ns
        self.task_id, self.order, self.duration_s = task_id, order, duration_s
        self.span_id, self.parent_span_id = span_id, parent_span_id
        self.attempt, self.path, self.worker = attempt, path, worker

    def to_dict(self) -> dict[str, Any]:
        """Return the stamps that are set, by name."""
        pairs = ((name, getattr(self, name)) for name in sorted(EventStamps.__slots__))
        return {name: value for name, value in pairs if value is not None}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> EventStamps:
        """Read the output of `to_dict`; other keys are ignored."""
        return cls(**{name: data[name] for name in EventStamps.__slots__ if name in data})


def _stamp(name: str, doc: str) -> Any:
    def read(self: WorkflowEvent[Any]) -> Any:
        stamps = self._stamps
        return None if stamps is None else getattr(stamps, name)

    return property(read, doc=doc)


def _of_request(place: int, name: str, doc: str) -> Any:
    def read(self: WorkflowEvent[Any]) -> Any:
        if self._request is None:
            msg = f"'{self.type}' events have no {name}; only 'request_info' events do. Check event.type first."
            raise RuntimeError(msg)
        return self._request[place]

    return property(read, doc=f"{doc} RuntimeError on other events.")


class UnansweredWarning(str):
    """The text of the warning for a run that ended while `n_requests` requests inside its nodes were unanswered."""

    n_requests: int

    def __new__(cls, text: str, n_requests: int) -> Self:
        """Create the text with the number of requests."""
        made = super().__new__(cls, text)
        made.n_requests = n_requests
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.n_requests)


class WithdrawnWarning(str):
    """The text of the warning for a request that was withdrawn, with its `request_id`."""

    request_id: str

    def __new__(cls, text: str, request_id: str) -> Self:
        """Create the text with the id of the request."""
        made = super().__new__(cls, text)
        made.request_id = request_id
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.request_id)


def count_unanswered(events: Iterable[WorkflowEvent[Any]]) -> int:
    """Return how many requests a run left unanswered, according to its last such warning."""
    texts = [event.data for event in events if isinstance(event.data, UnansweredWarning) and not event.executor_id]
    return texts[-1].n_requests if texts else 0


@drawn_by("agentbench.notebook.cards.run:event_bundle")
class WorkflowEvent(Generic[DataT], Displayable):
    """One event of a run.

    Fields that a type does not use are None. Reading one of the four request fields raises `RuntimeError` on every
    event other than `request_info`. User code can create events of its own types, and `warning` and `error` events, for
    `ctx.add_event`.

    Args:
        type: A plain string, equal to the matching `WorkflowEventType`.
        data: The payload of the event, such as a yielded value.
        origin: The engine or an executor; executor by default.
        state: For `status` events: the new state.
        details: For failures: the error.
        executor_id: The executor that the event is about.
        request_id: For requests: the id to answer.
        source_executor_id: For requests: the executor that gets the response.
        request_type: For requests: the type of the data.
        response_type: For requests: the type of the expected response.
        iteration: For `superstep_started` and `superstep_completed`: the number of the superstep. Supersteps are
            counted from 0, but superstep 0, in which the start executors get the input, has no events of these types.

    Example:
        >>> async for event in workflow.run("hello", stream=True):
        ...     if event.type == "output":
        ...         print(event.executor_id, event.data)
    """

    __slots__ = (
        "__weakref__", "_request", "_stamps", "data", "details", "executor_id", "iteration", "origin", "state", "type",
    )  # fmt: skip

    def __init__(  # noqa: PLR0913 - the published signature
        self,
        type: str,  # noqa: A002 - the name is part of the public surface
        data: DataT = None,  # type: ignore[assignment]  # without data it is None for every DataT
        *,
        origin: WorkflowEventSource | None = None,
        state: WorkflowRunState | None = None,
        details: WorkflowErrorDetails | None = None,
        executor_id: str | None = None,
        request_id: str | None = None,
        source_executor_id: str | None = None,
        request_type: Any = None,
        response_type: Any = None,
        iteration: int | None = None,
    ) -> None:
        self.type = type.value if isinstance(type, Enum) else type
        self.data = data
        self.origin = _EXECUTOR if origin is None else origin
        self.state = state
        self.details = details
        self.executor_id = executor_id
        self.iteration = iteration
        self._stamps: EventStamps | None = None
        self._request = (
            (request_id, source_executor_id, request_type, response_type) if self.type == "request_info" else None
        )

    # ---- factories -------------------------------------------------------------------------------

    @classmethod
    def _of_framework(cls, type: str, data: Any = None, **fields: Any) -> WorkflowEvent[Any]:  # noqa: A002
        return WorkflowEvent(type, data, origin=_FRAMEWORK, **fields)

    @classmethod
    def started(cls, data: Any = None) -> WorkflowEvent[Any]:
        """Create the first event of a run."""
        return cls._of_framework("started", data)

    @classmethod
    def status(cls, state: WorkflowRunState, data: Any = None) -> WorkflowEvent[Any]:
        """Create the event for a change of the run's state."""
        return cls._of_framework("status", data, state=state)

    @classmethod
    def failed(cls, details: WorkflowErrorDetails, data: Any = None) -> WorkflowEvent[Any]:
        """Create the event for a run that ended with an error."""
        return cls._of_framework("failed", data, details=details)

    @classmethod
    def warning(cls, message: str, executor_id: str | None = None) -> WorkflowEvent[str]:
        """Create a warning about an executor or the run, which continues."""
        return WorkflowEvent("warning", message, executor_id=executor_id)

    @classmethod
    def withdrawn(cls, request: WorkflowEvent[Any]) -> WorkflowEvent[str]:
        """Create the warning that a request was withdrawn, so that its executor gets no response."""
        executor_id, request_id = request.source_executor_id, request.request_id
        text = f"Request {request_id!r} of {executor_id!r} was withdrawn, so its response handler is not called."
        return WorkflowEvent("warning", WithdrawnWarning(text, request_id), executor_id=executor_id)

    @classmethod
    def error(cls, exception: Exception) -> WorkflowEvent[Exception]:
        """Create the event for a non-fatal error that user code or a sub-workflow reports."""
        return WorkflowEvent("error", exception)

    @classmethod
    def emit(cls, executor_id: str, data: Any) -> WorkflowEvent[Any]:
        """Create a `data` event, the legacy form of `intermediate`."""
        warnings.warn(
            "WorkflowEvent.emit() is deprecated; use ctx.yield_output() with intermediate_output_from=.",
            DeprecationWarning,
            stacklevel=2,
        )
        return WorkflowEvent("data", data, executor_id=executor_id)

    @classmethod
    def request_info(
        cls, request_id: str, source_executor_id: str, request_data: Any, response_type: Any
    ) -> WorkflowEvent[Any]:
        """Create a request to the outside, which waits for a value of `response_type`."""
        return WorkflowEvent(
            "request_info",
            request_data,
            request_id=request_id,
            source_executor_id=source_executor_id,
            request_type=type(request_data),
            response_type=response_type,
        )

    @classmethod
    def superstep_started(cls, iteration: int, data: Any = None) -> WorkflowEvent[Any]:
        """Create the event for the start of superstep `iteration`."""
        return cls._of_framework("superstep_started", data, iteration=iteration)

    @classmethod
    def superstep_completed(cls, iteration: int, data: Any = None) -> WorkflowEvent[Any]:
        """Create the event for the end of superstep `iteration`, after its checkpoint (if any) was saved."""
        return cls._of_framework("superstep_completed", data, iteration=iteration)

    @classmethod
    def executor_invoked(cls, executor_id: str, data: Any = None) -> WorkflowEvent[Any]:
        """Create the event for the start of a handler; `data` is a copy of its input."""
        return cls._of_framework("executor_invoked", data, executor_id=executor_id)

    @classmethod
    def executor_completed(cls, executor_id: str, data: Any = None) -> WorkflowEvent[Any]:
        """Create the event for the end of a handler; `data` lists what it sent, then what it yielded, or is None."""
        return cls._of_framework("executor_completed", data, executor_id=executor_id)

    @classmethod
    def executor_failed(cls, executor_id: str, details: WorkflowErrorDetails) -> WorkflowEvent[Any]:
        """Create the event for a handler that raised; `data` and `details` are the same object."""
        return cls._of_framework("executor_failed", details, executor_id=executor_id, details=details)

    @classmethod
    def executor_bypassed(cls, executor_id: str, data: Any = None) -> WorkflowEvent[Any]:
        """Create the event for a cached step result that replaced a call."""
        return cls._of_framework("executor_bypassed", data, executor_id=executor_id)

    # ---- request fields --------------------------------------------------------------------------

    request_id: str = _of_request(0, "request_id", "Id of the request.")
    source_executor_id: str = _of_request(1, "source_executor_id", "Executor that gets the response.")
    request_type: Any = _of_request(2, "request_type", "Type of the request's data.")
    response_type: Any = _of_request(3, "response_type", "Type of the expected response.")

    @property
    def source_id(self) -> str | None:
        """The executor that an event of any type is about; None for events of the run. Never raises."""
        return self.executor_id if self._request is None else self._request[1]

    @property
    def completion_info(self) -> SuperstepCompletionInfo | None:
        """The data of `superstep_completed` events if checkpoints are on, otherwise None."""
        return self.data if isinstance(self.data, SuperstepCompletionInfo) else None

    # ---- stamps ----------------------------------------------------------------------------------

    seq = _stamp("seq", "Position in the run's order of emission, from 1; None in plain runs.")
    run_id = _stamp("run_id", "Id of the run; None in plain runs.")
    superstep = _stamp("superstep", "Superstep of the event, 0 for the start executor; None in plain runs.")
    time_ns = _stamp("time_ns", "Nanoseconds since the epoch by the run's clock; None in plain runs.")
    task_id = _stamp("task_id", "Delivery to which the event belongs, '<superstep>:<executor>:<k>'.")
    order = _stamp("order", "Position of that delivery in the superstep's plan; independent of timing.")
    duration_s = _stamp("duration_s", "Elapsed seconds of the operation that ended.")
    attempt = _stamp("attempt", "Attempt of the call, from 1, of an executor with retries or on workers.")
    worker = _stamp("worker", "Address of the worker that ran the handler; None for handlers that run here.")
    span_id = _stamp("span_id", "Tracing span of the event, when tracing is on.")
    parent_span_id = _stamp("parent_span_id", "Parent of that span.")
    path = _stamp("path", "Ids of the nodes around an event of a sub-workflow, the outermost first.")

    # ---- forms -----------------------------------------------------------------------------------

    def to_dict(self) -> dict[str, Any]:
        """Return a request in a form that `from_dict` can read; `ValueError` for other events."""
        if self._request is None:
            msg = f"Only 'request_info' events convert to a dict; this is {self.type!r}. Use to_json_dict() for logs."
            raise ValueError(msg)
        return {
            "type": self.type,
            "data": self.data,
            "request_id": self.request_id,
            "source_executor_id": self.source_executor_id,
            "request_type": type_to_dict(self.request_type),
            "response_type": type_to_dict(self.response_type),
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WorkflowEvent[Any]:
        """Read a request that `to_dict` wrote; `TypeError` if its type is unknown or does not match its data."""
        payload, request_type = data["data"], type_from_dict(data["request_type"])
        if request_type is not type(payload):
            msg = (
                f"The stored request type {data['request_type']!r} is not the type of the data, "
                f"{type(payload).__qualname__!r}. The request was changed or was stored by other code."
            )
            raise TypeError(msg)
        return cls.request_info(
            data["request_id"], data["source_executor_id"], payload, type_from_dict(data["response_type"])
        )

    def to_json_dict(self) -> dict[str, Any]:
        """Return every field that is set as JSON values, for logs; lossy if a value has no JSON form."""
        from agentbench.serialization.plain import OF_LOGS, to_plain  # noqa: PLC0415 - logs need it, runs do not

        out: dict[str, Any] = {"type": self.type, "origin": str(self.origin)}
        for name in ("executor_id", "iteration", "state", "details", "data"):
            value = getattr(self, name)
            if value is not None and not (name == "data" and value is self.details):
                out[name] = to_plain(value, mask=True, limits=OF_LOGS)
        if self.type == "request_info":
            out["request_id"] = self.request_id
            out["source_executor_id"] = self.source_executor_id
            out["request_type"] = type_name(self.request_type)
            out["response_type"] = type_name(self.response_type)
        if self._stamps is not None:
            out.update(self._stamps.to_dict())
        return out

    def __repr__(self) -> str:
        fields = {
            "request_id": self._request and repr(self._request[0]),
            "executor": None if self.source_id is None else repr(self.source_id),
            "iteration": self.iteration,
            "state": self.state,
            "data": None if self.data is None else masked_repr(self.data),
        }
        parts = [repr(self.type), *[f"{name}={value}" for name, value in fields.items() if value is not None]]
        return f"WorkflowEvent({', '.join(parts)})"
