"""A checkpoint: the saved state of a workflow after a superstep, sufficient to continue from it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, field, fields
from typing import Any, TypeAlias

from agentbench._clock import iso_utc, runtime_defaults
from agentbench._display import Displayable, drawn_by
from agentbench._secrets import masked_repr
from agentbench.exceptions import UnstorableValueError, WorkflowCheckpointException

CheckpointID: TypeAlias = str


def id_of(checkpoint: object) -> CheckpointID:
    """Return the id of a checkpoint, from an id, an info or a checkpoint."""
    found = getattr(checkpoint, "checkpoint_id", checkpoint)
    if not isinstance(found, str):
        msg = f"The checkpoint is a {type(checkpoint).__name__}; expected its id, or a CheckpointInfo."
        raise TypeError(msg)
    return found


def _new_id() -> CheckpointID:
    return runtime_defaults().ids.new_id("cp")


def _now() -> str:
    return iso_utc(runtime_defaults().clock.time_ns())


class _ReadLater(Displayable):
    """A checkpoint whose larger fields are read on first access, by `_read(name)`; until then their slots are empty."""

    __slots__ = ("_read",)

    _read: Callable[[str], Mapping[str, Any]] | None

    def __getattr__(self, name: str) -> Any:
        read = None if name == "_read" else getattr(self, "_read", None)
        if read is None or name not in FIELDS:
            message = f"{type(self).__name__!r} object has no attribute {name!r}"
            raise AttributeError(message)
        for each, value in read(name).items():
            setattr(self, each, value)
        return object.__getattribute__(self, name)

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), tuple(getattr(self, name) for name in FIELDS)


@drawn_by("agentbench.notebook.cards.checkpoint:checkpoint_bundle")
@dataclass(slots=True, repr=False)
class WorkflowCheckpoint(_ReadLater):
    """The complete state for continuing a workflow after a superstep, in this process or in another one.

    It belongs to a workflow's definition, not to an instance: any workflow with the same graph can continue from it.
    Two checkpoints are equal if all fields are. The timestamp has six fractional digits and ends in `+00:00`, so that
    it sorts by time as text.

    Attributes:
        workflow_name: The name of the chain; checkpoints with the same name form a chain.
        graph_signature_hash: Identifies the graph that created it.
        checkpoint_id: Its own id.
        previous_checkpoint_id: The checkpoint from which the run continued, across forks and resumed runs too.
        timestamp: The creation time: ISO 8601, UTC.
        messages: Messages for the next superstep, by the id of the sending executor.
        state: The committed state; the executors' own state is under `_executor_state`.
        pending_request_info_events: Open requests, by id.
        iteration_count: The number of the superstep after which it was saved, counted from 0: in superstep 0 the start
            executors get the input.
        metadata: Any data; the engine's own keys are in `agentbench.checkpoints.info`.
        version: The version of this format.

    Example:
        >>> checkpoint = await storage.get_latest(workflow_name="report")
        >>> print(checkpoint.iteration_count, checkpoint.state)
        >>> text = checkpoint.to_json()  # for a storage of your own, or another process
        >>> assert WorkflowCheckpoint.from_json(text).checkpoint_id == checkpoint.checkpoint_id
    """

    workflow_name: str
    graph_signature_hash: str
    checkpoint_id: CheckpointID = field(default_factory=_new_id)
    previous_checkpoint_id: CheckpointID | None = None
    timestamp: str = field(default_factory=_now)
    messages: dict[str, list[Any]] = field(default_factory=dict)
    state: dict[str, Any] = field(default_factory=dict)
    pending_request_info_events: dict[str, Any] = field(default_factory=dict)
    iteration_count: int = 0
    metadata: dict[str, Any] = field(default_factory=dict)
    version: str = "1.0"

    def __repr__(self) -> str:
        """Describe the fields that are already known: displaying a checkpoint must not read it, and must not fail."""
        iteration, messages, requests = map(self._value, ("iteration_count", "messages", "pending_request_info_events"))
        facts = [
            repr(self._value("checkpoint_id")),
            f"workflow_name={self._value('workflow_name')!r}",
            "" if iteration is ... else f"iteration_count={iteration!r}",
            "" if messages is ... else f"messages={_count(messages)}",
            "" if requests is ... else f"requests={_count(requests)}",
            "…not read yet" if ... in (messages, requests) else "",
        ]
        return f"{type(self).__name__}({', '.join(filter(None, facts))})"

    def _value(self, name: str) -> Any:
        """Return the value of a field, or an ellipsis if it has not been read yet."""
        try:
            return object.__getattribute__(self, name)
        except AttributeError:
            return ...

    @classmethod
    def read_later(cls, known: Mapping[str, Any], read: Callable[[str], Mapping[str, Any]]) -> WorkflowCheckpoint:
        """Build a checkpoint from known fields; `read` returns a complete one on first access to the others."""
        checkpoint = object.__new__(cls)
        for name, value in known.items():
            setattr(checkpoint, name, value)
        object.__setattr__(checkpoint, "_read", read)  # a slot of the base, which mypy does not see
        return checkpoint

    def to_json(self) -> str:
        """Return one line of JSON, which `from_json` reads. UnstorableValueError: `register_state_type()` may help."""
        from agentbench.serialization.search import explain_unstorable  # noqa: PLC0415 - most checkpoints stay in memory
        from agentbench.serialization.writer import JsonWriter  # noqa: PLC0415 - as above

        try:
            return JsonWriter().write(self.to_dict())
        except (UnstorableValueError, RecursionError) as error:
            raise explain_unstorable(self) from error

    @classmethod
    def from_json(cls, text: str | bytes | bytearray | memoryview) -> WorkflowCheckpoint:
        """Build a checkpoint from the result of `to_json`.

        Args:
            text: The text, or its bytes in UTF-8, as many database clients return it.

        Raises:
            WorkflowCheckpointException: The text is damaged, is not a checkpoint, has a format that this version does
                not know, or contains instances of classes that are unknown in this process: import their modules first.
            TypeError: The argument is neither text nor bytes.
        """
        from agentbench.serialization.reader import JsonReader  # noqa: PLC0415 - as above

        data = JsonReader().read(_decode(text))
        if not isinstance(data, dict):
            message = f"The text holds a {type(data).__name__}, expected a checkpoint as to_json() writes it."
            raise WorkflowCheckpointException(message)
        checkpoint = cls.from_dict(data)
        checkpoint.require_known_version()
        return checkpoint

    def require_known_version(self) -> None:
        """Reject a different format version; only the number before the point has to match."""
        version: object = self.version
        if not isinstance(version, str) or version.partition(".")[0] != _KNOWN_FORMAT:
            message = (
                f"Checkpoint {self.checkpoint_id!r} has version {version!r}; this version of agentbench knows "
                f"{_KNOWN_FORMAT}.x. Read it with the version that wrote it, or a later one."
            )
            raise WorkflowCheckpointException(message)

    def to_dict(self) -> dict[str, Any]:
        """Return the fields by name, in order; the values are the checkpoint's own, not copies."""
        return {name: getattr(self, name) for name in FIELDS}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> WorkflowCheckpoint:
        """Build a checkpoint from the result of `to_dict`.

        Args:
            data: Values by field name. `workflow_name` and `graph_signature_hash` are required; every other field has a
                default. The values are not copied; messages and request events may have the form of their own
                `to_dict()`, as some storages write them.

        Raises:
            WorkflowCheckpointException: A field is missing, unknown, or not a dictionary where one is expected.
        """
        unknown = [key for key in data if key not in FIELDS]
        missing = [name for name in _REQUIRED if name not in data]
        if unknown or missing:
            message = (
                f"These fields do not form a checkpoint: {_names(missing)} missing, {_names(unknown)} unknown. "
                f"Expected the fields of to_dict(): {', '.join(FIELDS)}."
            )
            raise WorkflowCheckpointException(message)
        for name in _DICTIONARIES:
            if not isinstance(data.get(name, {}), Mapping):
                message = f"{name} is a {type(data[name]).__name__}; expected a dictionary."
                raise WorkflowCheckpointException(message)
        for source, sent in data.get("messages", {}).items():
            if not isinstance(sent, list):
                message = f"messages[{source!r}] is a {type(sent).__name__}; expected a list."
                raise WorkflowCheckpointException(message)
        return cls(**{**data, **_rebuilt(data)})


def _rebuilt(data: Mapping[str, Any]) -> dict[str, Any]:
    """Convert messages and events from dictionaries to objects; the engine's types are found by name, not imported."""
    rebuilt: dict[str, Any] = {}
    messages, requests = data.get("messages"), data.get("pending_request_info_events")
    if isinstance(messages, dict) and any(isinstance(m, dict) for sent in messages.values() for m in sent):
        rebuilt["messages"] = {
            source: [_of_type("workflow_message", m) for m in sent] for source, sent in messages.items()
        }
    if isinstance(requests, dict) and any(isinstance(event, dict) for event in requests.values()):
        rebuilt["pending_request_info_events"] = {
            key: _of_type("workflow_event", event) for key, event in requests.items()
        }
    return rebuilt


def _of_type(tag: str, value: Any) -> Any:
    from agentbench.serialization.registry import type_of_tag  # noqa: PLC0415 - as above

    if not isinstance(value, dict):
        return value
    kind: Any = type_of_tag(tag)
    try:
        return kind.cls.from_dict(value)
    except (KeyError, TypeError, ValueError) as error:
        why = f"{type(error).__name__}: {str(error).rstrip('.')}"
        message = f"Cannot read a {kind.cls.__name__} from {masked_repr(value)}: {why}."
        raise WorkflowCheckpointException(message, error) from error


def _decode(text: str | bytes | bytearray | memoryview) -> str:
    try:
        return text if isinstance(text, str) else bytes(text).decode()
    except UnicodeDecodeError as error:
        message = f"The bytes are not UTF-8 text: {error}. Expected the encoded result of to_json()."
        raise WorkflowCheckpointException(message, error) from error


def _names(keys: list[Any]) -> str:
    return ", ".join(map(repr, keys)) or "none"


def _count(queued: Any) -> str:
    """Return the number of items, in lists by name or by name alone; for a damaged field, its type."""
    try:
        return str(sum(len(each) if isinstance(each, list) else 1 for each in queued.values()))
    except Exception:  # noqa: BLE001 - a repr must not fail, however odd the field is
        return f"<{type(queued).__name__}>"


_KNOWN_FORMAT = "1"
FIELDS = tuple(each.name for each in fields(WorkflowCheckpoint))
_DICTIONARIES = ("messages", "state", "pending_request_info_events", "metadata")
_REQUIRED = tuple(
    each.name for each in fields(WorkflowCheckpoint) if each.default is MISSING and each.default_factory is MISSING
)
