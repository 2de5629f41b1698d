"""What the reader of an editable page may change at a checkpoint: its editable values and its open questions.

The page shows exactly these, and a file that comes back may name nothing else. Both sides call the functions of this
module, so a place that was not on the page (an engine key, a masked value, a negative index) does not exist here.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any, Literal, get_args, get_origin

from agentbench._secrets import is_secret_name, mask_secrets, secrets_in
from agentbench._signatures import text_reader
from agentbench._text.redact import fields_of, hide_secrets
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.difference.changes import path_text
from agentbench.checkpoints.editing import make_edit
from agentbench.exceptions import InvalidEdit
from agentbench.messages.content.content import Content
from agentbench.workflows.executors.approval import Approval
from agentbench.workflows.executors.message import MessageType

PlaceKind = Literal["text", "whole", "number", "truth", "choice", "json"]

_MOST_PLACES = 300
_MOST_DEPTH = 8
LONGEST_VALUE = 20_000
"""Characters of a value as JSON; a longer one is shortened in the page and cannot be edited in it."""


@dataclass(frozen=True, kw_only=True)
class EditableValue:
    """One value that the page offers for editing: `before` is its JSON text, as the file must repeat it."""

    path: str
    kind: PlaceKind
    before: str


@dataclass(frozen=True, kw_only=True)
class OpenQuestion:
    """One open request: how the page asks it, and whether it asks for an approval, which no file can give."""

    request: Any
    kind: PlaceKind
    options: tuple[Any, ...] = ()
    is_approval: bool = False


def json_text(value: object) -> str:
    """Return a plain value as JSON text: the form in which the page and the file hold it."""
    return json.dumps(value, ensure_ascii=False, allow_nan=False)


def values_of(checkpoint: WorkflowCheckpoint) -> list[EditableValue]:
    """Return the editable values of a checkpoint; those that contain one of its secrets are omitted."""
    requests = [request.data for request in checkpoint.pending_request_info_events.values()]
    secrets = secrets_in([checkpoint.state, checkpoint.messages, *requests])
    found: list[EditableValue] = []
    for path, value in _plain_values(checkpoint):
        text = json_text(value)
        if len(text) > LONGEST_VALUE or hide_secrets(text, secrets) != text:
            continue
        try:
            is_usual = make_edit(checkpoint, path, value).path == path
        except InvalidEdit:
            continue
        if is_usual:
            found.append(EditableValue(path=path, kind=kind_of(value), before=text))
        if len(found) == _MOST_PLACES:
            break
    return found


def kind_of(value: object) -> PlaceKind:
    """Return the kind of input for a plain value."""
    if isinstance(value, bool):
        return "truth"
    kinds: dict[type, PlaceKind] = {str: "text", int: "whole", float: "number"}
    return kinds.get(type(value), "json")


def _plain_values(checkpoint: WorkflowCheckpoint) -> Iterator[tuple[str, Any]]:
    for key, value in checkpoint.state.items():
        if not key.startswith("_"):
            yield from _within((key,), value, "")
    name = "pending_messages" if "messages" in checkpoint.state else "messages"
    queue = [message for sent in checkpoint.messages.values() for message in sent]
    for number, message in enumerate(queue):
        if message.type is MessageType.STANDARD:  # a response may be an approval
            yield from _within((number,), message.data, name)


def _within(steps: tuple[Any, ...], value: Any, root: str) -> Iterator[tuple[str, Any]]:
    if is_secret_name(steps[-1]) or len(steps) > _MOST_DEPTH:
        return
    if is_plain(value) and mask_secrets(value) is value:
        yield root + (f"[{steps[0]}]" + _below(steps[1:]) if root else path_text(steps)), value
    if isinstance(value, (list, tuple)):
        inner: list[tuple[Any, Any]] = list(enumerate(value))
    elif _is_ours(value) or _is_approval_data(value):
        return
    else:
        inner = list(value.items() if isinstance(value, Mapping) else fields_of(value))
    for step, item in inner[:_MOST_PLACES]:
        yield from _within((*steps, step), item, root)


def _below(steps: tuple[Any, ...]) -> str:
    text = path_text(steps)
    return f".{text}" if text and not text.startswith("[") else text


def is_plain(value: object, depth: int = 0) -> bool:
    """Whether a value is JSON without a conversion, so that the file can contain it without knowing its class."""
    if depth > _MOST_DEPTH or _is_approval_data(value):
        return False
    if type(value) is dict:
        return all(type(key) is str and is_plain(item, depth + 1) for key, item in value.items())
    if type(value) is list:
        return all(is_plain(item, depth + 1) for item in value)
    if type(value) is float:
        return value - value == 0  # finite
    if type(value) is str:
        return value.isascii() or not any("\ud800" <= sign <= "\udfff" for sign in value)
    return type(value) in (int, bool, type(None))


def _is_ours(value: object) -> bool:
    """Whether a value is of this library, such as a message, whose fields alone do not say what it means."""
    return type(value).__module__.partition(".")[0] == "agentbench"


def _is_approval_data(value: object) -> bool:
    return isinstance(value, Mapping) and "function_approval" in str(value.get("type"))


def holds_approval(value: object, depth: int = 0) -> bool:
    """Return whether a value is or contains an approval of any form."""
    if (
        isinstance(value, Approval)
        or "function_approval" in str(getattr(value, "type", ""))
        or _is_approval_data(value)
    ):
        return True
    if depth > _MOST_DEPTH or isinstance(value, (str, bytes)):
        return False
    items = value if isinstance(value, (list, tuple, set, frozenset)) else (item for _, item in fields_of(value))
    return any(holds_approval(item, depth + 1) for item in items)


# --- questions --------------------------------------------------------------------------------------------------------


def questions_of(checkpoint: WorkflowCheckpoint) -> dict[str, OpenQuestion]:
    """Return the open requests of a checkpoint by id."""
    return {key: _question(request) for key, request in checkpoint.pending_request_info_events.items()}


def _question(request: Any) -> OpenQuestion:
    base = _unwrapped(request.response_type)
    if asks_approval(request):
        return OpenQuestion(request=request, kind="truth", is_approval=True)
    options = _options(request.data, base)
    if options:
        return OpenQuestion(request=request, kind="choice", options=options)
    kinds: dict[Any, PlaceKind] = {str: "text", int: "whole", float: "number"}
    is_text = base is not object and text_reader(base) is not None
    return OpenQuestion(request=request, kind="text" if is_text else kinds.get(base, "json"))


def asks_approval(request: Any) -> bool:
    """Return whether a request asks a person to approve something: a tool call, or a plain yes or no."""
    return holds_approval(request.data) or any(
        kind is bool or (isinstance(kind, type) and issubclass(kind, (Approval, Content)))
        for kind in _types_in(request.response_type)
    )


def _types_in(annotation: Any) -> Iterator[Any]:
    yield annotation
    if get_origin(annotation) is not Literal:
        for part in get_args(annotation):
            yield from _types_in(part)


def _unwrapped(annotation: Any) -> Any:
    parts = [part for part in get_args(annotation) if part is not type(None)]
    is_wrapped = hasattr(annotation, "__metadata__") or len(parts) < len(get_args(annotation))
    return (
        _unwrapped(parts[0]) if is_wrapped and (len(parts) == 1 or hasattr(annotation, "__metadata__")) else annotation
    )


def _options(data: object, base: Any) -> tuple[Any, ...]:
    fields = dict(fields_of(data))
    offered = next((fields[name] for name in ("options", "choices") if fields.get(name)), None)
    if isinstance(offered, (list, tuple)) and not fields.get("allow_other"):
        return tuple(offered) if all(type(each) in (str, int, float) for each in offered) else ()
    if get_origin(base) is Literal:
        return get_args(base)
    if isinstance(base, type) and issubclass(base, Enum):
        return tuple(each.value for each in base if is_plain(each.value))
    return ()


def fingerprint(checkpoint: WorkflowCheckpoint) -> str:
    """Return the hash of a run up to a checkpoint, over its chain, its graph and the ids of its last checkpoints.

    It covers no values: a secret could be guessed from a hash, and the file repeats each value that it changes.
    """
    ids = [checkpoint.workflow_name, checkpoint.graph_signature_hash]
    ids += [checkpoint.previous_checkpoint_id or "", checkpoint.checkpoint_id]
    return hashlib.sha256(json_text(ids).encode("utf-8", "backslashreplace")).hexdigest()
