"""Pure functions that edit a checkpoint: edits are checked when staged, and apply to runs that continue from it."""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from agentbench._copying import isolate
from agentbench._display import Displayable, drawn_by
from agentbench._signatures.reading import readable_by_pydantic
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.difference.changes import CheckpointChange, path_text
from agentbench.checkpoints.paths import Place, find_place, replace_at
from agentbench.exceptions import InvalidEdit, UnstorableValueError

_MESSAGE = re.compile(r"(pending_messages|messages)\[(0|[1-9][0-9]*)\]\.?(.+)?", re.ASCII | re.DOTALL)
_INPUT = "input"


@drawn_by("agentbench.notebook.history.changes:edit_bundle")
@dataclass(frozen=True, slots=True, repr=False)
class Edit(Displayable):
    """One staged change of a value, created by `Stepper.edit`.

    Its text is a line such as `~ draft.title: 'Cats' -> 'Dogs'`, with secrets masked.

    Attributes:
        path: The place: `score`, `draft.title`, `items[0]` in the shared state; `messages[0]`, `messages[0].title` in
            the queued messages, or `pending_messages[0]` if the state has a key `messages`; `input` in a checkpoint
            before superstep 0.
        before: The value in the checkpoint.
        after: The new value.

    Example:
        edit = panel.edit("draft.title", "Dogs")
        print(edit.path, edit.before, edit.after)
    """

    path: str
    before: Any
    after: Any
    steps: tuple[Any, ...] = field(default=(), compare=False)

    @property
    def change(self) -> CheckpointChange:
        """The edit as one line of a diff."""
        return CheckpointChange(self.path, "changed", self.before, self.after, self.steps)

    def __str__(self) -> str:
        return str(self.change)

    def __repr__(self) -> str:
        return f"Edit({str(self.change)[2:]})"


@drawn_by("agentbench.notebook.history.changes:edits_bundle")
class StagedEdits(list[Edit], Displayable):
    """Edits in the order in which they are applied; displayed as a diff."""

    __slots__ = ()

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "No edits are staged."

    def __repr__(self) -> str:
        return f"StagedEdits({', '.join(str(edit)[2:] for edit in self)})"


class StepperEdits:
    """The staged edits of one stepper, by checkpoint."""

    def __init__(self) -> None:
        self._staged: dict[str, dict[str, Edit]] = {}

    def of(self, checkpoint_id: str | None) -> tuple[Edit, ...]:
        """Return the staged edits of a checkpoint, in the order in which they are applied."""
        return tuple(self._staged.get(checkpoint_id or "", {}).values())

    def stage(self, checkpoint_id: str, edit: Edit) -> None:
        """Add an edit, replacing one with the same path."""
        staged = self._staged.setdefault(checkpoint_id, {})
        staged.pop(edit.path, None)
        staged[edit.path] = edit

    def discard(self, checkpoint_id: str | None, path: str | None = None) -> None:
        """Drop the edits of a checkpoint, or the edit of one path."""
        if path is None:
            self._staged.pop(checkpoint_id or "", None)
        else:
            staged = self._staged.get(checkpoint_id or "", {})
            for each in [each for each in staged if _with_dots(each) == _with_dots(path)]:
                del staged[each]


@dataclass(frozen=True, slots=True)
class Updates:
    """The changes of a fork: whole values of the shared state, and the whole message queue if a message was edited."""

    state: dict[str, Any]
    messages: dict[str, list[Any]] | None


def make_edit(
    checkpoint: WorkflowCheckpoint, path: str, value: Any, staged: Iterable[Edit] = (), further: Container[str] = ()
) -> Edit:
    """Create an edit of a checkpoint.

    A value must fit the type that its dataclass or model declares, or else the type of the current value; texts of
    numbers and similar values are converted as by pydantic. The value must be storable.

    Args:
        checkpoint: The checkpoint being edited; it is not changed.
        path: The place of the value.
        value: The new value.
        staged: Edits that are applied before this one.
        further: Keys of the state that may have no value yet.

    Raises:
        InvalidEdit: The path does not exist, or the value does not fit.
    """
    root = _after(checkpoint, [edit for edit in staged if edit.path != path])
    try:
        is_new = path in further and path not in root[_STATE]
        place = Place((_STATE, path), None, None) if is_new else _find(root, path)
    except LookupError as error:
        raise InvalidEdit(path, str(error.args[0])) from None
    usual = _usual_path(root, place.steps)
    if usual not in (path, None):  # one edit per place, however its path is written
        return make_edit(checkpoint, usual, value, staged)
    after = _fitting(path, value, place)
    _require_storable(path, after, place.value)
    return Edit(path, place.value, isolate(after), place.steps)


def updates_of(checkpoint: WorkflowCheckpoint, edits: Sequence[Edit]) -> Updates:
    """Return the values of a checkpoint after edits, by whole keys of the state."""
    root = _after(checkpoint, edits)
    keys = dict.fromkeys(edit.steps[1] for edit in edits if edit.steps[0] == _STATE)
    queue: dict[str, list[Any]] | None = None
    if any(edit.steps[0] == _MESSAGES for edit in edits):
        queue = {}
        for message in root[_MESSAGES]:
            queue.setdefault(message.source_id, []).append(message)
    return Updates({key: root[_STATE][key] for key in keys}, queue)


# --- the place of an edit ---------------------------------------------------------------------------------------------

# A checkpoint is edited as one value of two parts.
_STATE, _MESSAGES = "state", "messages"
_HAS_INPUT = "has_input"  # before superstep 0 the only message is the input of the run


def _after(checkpoint: WorkflowCheckpoint, edits: Iterable[Edit]) -> dict[str, Any]:
    root: dict[str, Any] = {
        _STATE: {key: value for key, value in checkpoint.state.items() if not key.startswith("_")},
        _MESSAGES: [message for queued in checkpoint.messages.values() for message in queued],
        _HAS_INPUT: checkpoint.iteration_count < 0 and _INPUT not in checkpoint.state,
    }
    for edit in edits:
        if edit.steps[0] == _STATE:
            root[_STATE].setdefault(edit.steps[1], None)
        root = replace_at(root, edit.steps, edit.after)
    return root


def _with_dots(path: str) -> str:
    return re.sub(r"\[(\w+)\]", r".\1", path)


def _usual_path(root: Mapping[str, Any], steps: tuple[Any, ...]) -> str | None:
    """Return a path in this package's notation; `None` if that cannot be followed, as for cut keys."""
    if steps[0] == _STATE:
        path = path_text(steps[1:])
    elif root[_HAS_INPUT]:
        path = path_text((_INPUT, *steps[3:]))
    else:
        path = path_text(("pending_messages" if _MESSAGES in root[_STATE] else _MESSAGES, steps[1], *steps[3:]))
    try:
        return path if _find(root, path).steps == steps else None
    except LookupError:
        return None


def _find(root: Mapping[str, Any], path: str) -> Place:
    value: object = path
    if not isinstance(value, str):
        msg = f"a path is text, such as 'draft.title', not a {type(value).__name__}"
        raise LookupError(msg)
    if root[_HAS_INPUT] and re.match(rf"{_INPUT}(?![^.[])", path):
        path = path.replace(_INPUT, "pending_messages[0]", 1)
    of_message = _MESSAGE.fullmatch(path)
    if of_message is None or (of_message[1] == _MESSAGES and _MESSAGES in root[_STATE]):
        place = find_place(root[_STATE], path)
        return place._replace(steps=(_STATE, *place.steps))
    number, rest = int(of_message[2]), of_message[3]
    waiting = root[_MESSAGES]
    if number >= len(waiting):
        msg = f"the message does not exist; {len(waiting)} are queued here, counted from 0"
        raise LookupError(msg)
    data, to_data = waiting[number].data, (_MESSAGES, number, "data")
    if rest is None:
        return Place(to_data, data, None)
    place = find_place(data, rest)
    return place._replace(steps=(*to_data, *place.steps))


# --- the value of an edit ---------------------------------------------------------------------------------------------


def _fitting(path: str, value: Any, place: Place) -> Any:
    wanted = place.declared if place.declared is not None else type(place.value)
    if wanted is type(None):
        return value
    from pydantic import PydanticUserError, TypeAdapter, ValidationError

    try:
        adapter = TypeAdapter(readable_by_pydantic(wanted))
    except PydanticUserError as error:
        if isinstance(value, type(place.value)):
            return value
        problem = f"it is of type {type(value).__name__}, expected {type(place.value).__name__}"
        raise InvalidEdit(path, problem) from error
    try:
        return adapter.validate_python(value)
    except ValidationError as error:
        problems = "; ".join(_problem_text(each) for each in error.errors(include_url=False, include_context=False))
        raise InvalidEdit(path, problems) from None  # pydantic's text would repeat the value, which may be a secret


def _problem_text(problem: Any) -> str:
    where = path_text(problem["loc"])
    return f"{where}: {problem['msg']}" if where else str(problem["msg"])


def _require_storable(path: str, value: Any, before: Any) -> None:
    from agentbench.serialization.json_text import to_json  # noqa: PLC0415 - needed by edits alone

    try:
        to_json(value)
    except UnstorableValueError as error:
        if _is_storable_as_it_is(value, before):
            return
        raise InvalidEdit(path, str(error)) from error


def _is_storable_as_it_is(value: Any, before: Any) -> bool:
    """Return whether the previous value was not serializable either, though the storage held it."""
    from agentbench.serialization.json_text import to_json  # noqa: PLC0415 - needed by edits alone

    if type(value) is not type(before) or not _can_be_copied(value):
        return False
    try:
        to_json(before)
    except UnstorableValueError:
        return True
    return False


def _can_be_copied(value: Any) -> bool:
    try:
        isolate(value)
    except Exception:  # noqa: BLE001 - copying runs foreign methods, which raise anything
        return False
    return True
