"""Reads from a request what its form displays: kind, question, context, options and deadline.

The request's data is the user's own. These keys or attributes of it are read:

=====================================  =================================================================================
`prompt`, `question`, `message`,       the question; a string as data is the question itself
`title`
`context`, `details`                   the text below it; without one, all other fields
`options`, `choices`                   a list of values, of (label, value) pairs, or a mapping from labels to values
`allow_other`                          true: another text than the options is possible
`reason_required`                      true: a rejection needs a reason
`arguments` with `editable` true       what "edit and approve" edits
`deadline`, `expires_at`               a datetime or ISO 8601 text (without a zone: UTC)
=====================================  =================================================================================
"""

import types
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timezone
from enum import Enum
from typing import Any, Literal, Protocol, Union, get_args, get_origin

from agentbench.notebook.text.redact import fields_of, mask_secrets, preview
from agentbench.workflows.executors.approval import Approval

__all__ = [
    "Option",
    "Question",
    "Request",
    "RequestKind",
    "default_prompt",
    "label_options",
    "options_of_type",
    "read_request",
    "request_kind",
    "unwrap_optional",
]

RequestKind = Literal["approval", "choice", "text", "form"]

_PROMPTS = ("prompt", "question", "message", "title")
_CONTEXTS = ("context", "details")
_OPTIONS = ("options", "choices")
_DEADLINES = ("deadline", "expires_at")
_SWITCHES = ("allow_other", "reason_required", "editable")
_MISSING: Any = object()


class Request(Protocol):
    """The fields of a `request_info` event that are read."""

    data: Any

    @property
    def request_id(self) -> str:
        """Id that the answer names."""

    @property
    def source_executor_id(self) -> str:
        """Executor that asks."""

    @property
    def response_type(self) -> Any:
        """Type of the answer."""


@dataclass(frozen=True)
class Option:
    """One thing to choose: what it is called and what choosing it returns."""

    label: str
    value: object


@dataclass(frozen=True)
class Question:
    """A request in the form in which it is displayed.

    Attributes:
        request_id: Id that the answer names.
        executor: Executor that asks.
        kind: Which form it gets.
        prompt: The question, as its author wrote it.
        context: The other fields of the data as text, secrets masked; may be empty.
        options: What to choose from; empty unless `kind` is `choice`.
        allow_other: Whether another text than the options is possible.
        reason_required: Whether a rejection needs a reason.
        arguments: What "edit and approve" edits, `None` if nothing may be edited.
        deadline: Latest time for an answer, in UTC.
        response_type: Type of the answer.
    """

    request_id: str
    executor: str
    kind: RequestKind
    prompt: str
    context: str
    response_type: Any
    options: tuple[Option, ...] = ()
    allow_other: bool = False
    reason_required: bool = False
    arguments: object = None
    deadline: datetime | None = None


def read_request(request: Request) -> Question:
    """Read a `request_info` event."""
    data, response_type = request.data, request.response_type
    kind = request_kind(data, response_type)
    return Question(
        request_id=request.request_id,
        executor=request.source_executor_id,
        kind=kind,
        prompt=_prompt_of(data, request.source_executor_id),
        context=_context(data, kind),
        response_type=response_type,
        options=_options(data, response_type) if kind == "choice" else (),
        allow_other=bool(_found(data, ("allow_other",), False)),
        reason_required=bool(_found(data, ("reason_required",), False)),
        arguments=_found(data, ("arguments",), None)
        if kind == "approval" and _found(data, ("editable",), False)
        else None,
        deadline=_deadline(_found(data, _DEADLINES, None)),
    )


def request_kind(data: object, response_type: Any) -> RequestKind:
    """Return which of the four forms a request gets; `form` is the one made from the response type."""
    base, _ = unwrap_optional(response_type)
    if base is bool or base is Approval:
        return "approval"
    if _options(data, response_type):
        return "choice"
    return "text" if base is str else "form"


def unwrap_optional(annotation: Any) -> tuple[Any, bool]:
    """Strip `Annotated` and `None` off a type.

    Returns:
        The type within, and whether `None` was among its alternatives. Unions of several other types stay whole.
    """
    if hasattr(annotation, "__metadata__"):
        return unwrap_optional(annotation.__origin__)
    if get_origin(annotation) in (Union, types.UnionType):
        members = get_args(annotation)
        others = [member for member in members if member is not type(None)]
        if len(others) == 1 and len(members) == 2:
            return unwrap_optional(others[0])[0], True
    return annotation, False


def options_of_type(annotation: Any) -> tuple[Option, ...]:
    """List the options of a `Literal` or an `Enum`; none for other types."""
    base, _ = unwrap_optional(annotation)
    if get_origin(base) is Literal:
        return label_options(get_args(base))
    if isinstance(base, type) and issubclass(base, Enum):
        return tuple(Option(member.name, member) for member in base)
    return ()


def _options(data: object, response_type: Any) -> tuple[Option, ...]:
    found = _found(data, _OPTIONS, None)
    if isinstance(found, Mapping):
        return tuple(Option(str(label), value) for label, value in found.items())
    if isinstance(found, Iterable) and not isinstance(found, (str, bytes)):
        items = list(found)
        if items and all(isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) for item in items):
            return tuple(Option(label, value) for label, value in items)
        return label_options(items)
    return options_of_type(response_type)


def label_options(values: Iterable[object]) -> tuple[Option, ...]:
    """Return an option for each value, called by its name or text."""
    items = list(values)
    labels = [value.name if isinstance(value, Enum) else str(value) for value in items]
    if len(set(labels)) < len(labels):
        labels = [repr(value) for value in items]  # Literal[1, "1"]
    return tuple(Option(label, value) for label, value in zip(labels, items, strict=True))


def _found(data: object, names: Iterable[str], default: Any) -> Any:
    """The first of these keys or attributes that is there."""
    for name in names:
        value = data.get(name, _MISSING) if isinstance(data, Mapping) else _attribute(data, name)
        if value is not _MISSING:
            return value
    return default


def _attribute(data: object, name: str) -> Any:
    # Methods such as str.title are no data.
    value = getattr(data, name, _MISSING)
    return _MISSING if callable(value) else value


def _prompt_of(data: object, executor: str) -> str:
    if isinstance(data, str):
        return data
    found = _found(data, _PROMPTS, None)
    if isinstance(found, str) and found:
        return found
    return default_prompt(executor)


def default_prompt(executor: str) -> str:
    """The question of a request whose data has none."""
    return f"{executor} needs an answer"


def _context(data: object, kind: RequestKind) -> str:
    if data is None or isinstance(data, str):
        return ""
    found = _found(data, _CONTEXTS, None)
    if found is not None:
        return _value_text(mask_secrets(found))
    prompt = next((name for name in _PROMPTS if isinstance(_found(data, (name,), None), str)), None)
    hidden = {prompt, *_CONTEXTS, *_DEADLINES, *_SWITCHES} | (set(_OPTIONS) if kind == "choice" else set())
    fields = {name: mask_secrets(value, key=name) for name, value in fields_of(data)}
    if fields:
        rest = {name: value for name, value in fields.items() if name not in hidden}
        return _value_text(rest) if rest else ""
    return _value_text(mask_secrets(data))


def _value_text(value: object, indent: str = "") -> str:
    """A value as text of any length, since the form can unfold all of it; inner mappings are below their name."""
    if not isinstance(value, Mapping) or not value:
        return value if isinstance(value, str) else preview(value, limit=100_000)
    lines = []
    for name, item in value.items():
        inner = isinstance(item, Mapping) and item
        lines.append(f"{indent}{name}:" if inner else f"{indent}{name}: {_value_text(item)}")
        if inner:
            lines.append(_value_text(item, indent + "  "))
    return "\n".join(lines)


def _deadline(value: object) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(f"{value[:-1]}+00:00" if value.endswith(("Z", "z")) else value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=timezone.utc) if value.tzinfo is None else value.astimezone(timezone.utc)
