"""Reads the content of a form from a request: kind, question, context, options and deadline.

These keys or attributes of the request's data are read:

=====================================  =================================================================================
`prompt`, `question`, `message`,       the question; a string as data is the question itself
`title`
`context`, `details`                   the text below the question; by default all other fields
`options`, `choices`                   a list of values, of (label, value) pairs, or a mapping from labels to values
`allow_other`                          true: a text other than the options is possible
`reason_required`                      true: a rejection needs a reason
`arguments` with `editable` true       the arguments that "edit and approve" edits
`deadline`, `expires_at`               a datetime or ISO 8601 text (without a zone: UTC)
=====================================  =================================================================================
"""

import types
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from enum import Enum
from typing import Any, Literal, Protocol, TypeGuard, Union, get_args, get_origin

from agentbench._secrets import is_secret_name, mask_secrets
from agentbench._signatures import text_reader
from agentbench._text.redact import fields_of, message_text, preview, question_of, server_question
from agentbench.agents.sessions.tool_approvals import always_response
from agentbench.messages.content.content import STANDING, Content, question_in
from agentbench.notebook.runtime.bundles import has_display
from agentbench.workflows.executors.approval import Approval, TextAnswer

RequestKind = Literal["approval", "question", "choice", "text", "message", "form"]

_PROMPTS = ("prompt", "question", "message", "title")
_CONTEXTS = ("context", "details")
_OPTIONS = ("options", "choices")
_DEADLINES = ("deadline", "expires_at")
_SWITCHES = ("allow_other", "reason_required", "editable")


Answer = Callable[[Any, Any], object]
"""Makes the answer to an approval from the decision and the edited arguments or `None`.

The decision is True or False; of a call of an agent it may also be the scope of a standing approval.
"""


class FormRequest(Protocol):
    """The fields of a `request_info` event that forms read."""

    data: Any

    @property
    def request_id(self) -> str:
        """Id of the request."""

    @property
    def source_executor_id(self) -> str:
        """Id of the requesting executor."""

    @property
    def response_type(self) -> Any:
        """Type of the answer."""


@dataclass(frozen=True)
class Option:
    """One option of a choice: its label and its value."""

    label: str
    value: object


@dataclass(frozen=True, kw_only=True)
class FormQuestion:
    """A request, prepared for display.

    Attributes:
        prompt: The question, as its author wrote it.
        context: The other fields of the data as text, secrets masked; may be empty.
        answer: Makes the answer to an approval or to a server's question.
        can_stand: Whether an approval can also be for later calls of the agent.
        objects: Fields with their own display, by name; not in the context.
        options: Options to choose from; empty unless `kind` is `choice`.
        words: The labels of a form that is answered with messages.
        arguments: Arguments that "edit and approve" edits, `None` if they are not editable.
        deadline: Latest time for an answer, in UTC.
    """

    executor: str
    kind: RequestKind
    prompt: str
    context: str
    objects: tuple[tuple[str, object], ...]
    response_type: Any
    answer: Answer
    can_stand: bool
    options: tuple[Option, ...]
    allow_other: bool
    reason_required: bool
    words: TextAnswer
    arguments: object
    deadline: datetime | None


def read_request(request: FormRequest) -> FormQuestion:
    """Read a `request_info` event."""
    data, response_type, executor = question_of(request.data), request.response_type, request.source_executor_id
    schema = getattr(request.data, "response_schema", None)
    if response_type is object and isinstance(schema, Mapping):
        response_type = schema
    kind = request_kind(data, response_type)
    answer: Answer = _answer_plainly
    if _is_call(data) and (server_request := question_in(data)) is not None:
        data, response_type, answer = _read_question(data, server_request)
    elif _is_call(data) and data.function_call is not None:
        data, answer = _read_call(data, data.function_call, is_editable=unwrap_optional(response_type) is not bool)
    found = _found(data, _PROMPTS)
    prompt = data if isinstance(data, str) else found if isinstance(found, str) and found else default_prompt(executor)
    context, objects = _context(data, kind)
    words = text_answer(data, response_type)
    if kind == "message" and prompt == default_prompt(executor):
        message = message_text(data)
        if words.prompt:
            prompt, context = words.prompt, message or context
        elif message:
            prompt, context = message, ""
    editable = kind == "approval" and _found(data, ("editable",))
    return FormQuestion(
        executor=executor,
        kind=kind,
        prompt=prompt,
        context=context,
        objects=objects,
        response_type=response_type,
        answer=answer,
        can_stand=isinstance(request.data, Content) and STANDING in request.data.additional_properties,
        options=_options(data, response_type) if kind == "choice" else (),
        allow_other=bool(_found(data, ("allow_other",))),
        reason_required=bool(_found(data, ("reason_required",))),
        words=words,
        arguments=_found(data, ("arguments",)) if editable else None,
        deadline=_deadline(_found(data, _DEADLINES)),
    )


def _answer_plainly(approved: bool, _: Any) -> object:
    return approved


def _read_call(request: Content, call: Content, *, is_editable: bool) -> tuple[dict[str, Any], Answer]:
    """Return the question about an agent's tool call and its answer function; masked secrets keep their values."""
    arguments = call.parse_arguments() or {}
    secret = {name: value for name, value in arguments.items() if is_secret_name(name)}
    visible = {name: value for name, value in arguments.items() if name not in secret}

    def answer(decision: Any, edited: Any) -> object:
        changed = None if edited is None or edited == visible else {**edited, **secret}
        if not isinstance(decision, bool):
            return always_response(request, decision, changed)
        return request.to_function_approval_response(decision, arguments=changed) if is_editable else decision

    capabilities = ", ".join(map(str, request.additional_properties.get("capabilities", ())))
    question = f"May it call {call.name}?" + (f" It can: {capabilities}." if capabilities else "")
    data: dict[str, Any] = {"question": question, "context": arguments}
    if not is_editable:
        return data, answer
    return {**data, "arguments": visible, "editable": bool(visible) and mask_secrets(visible) is visible}, answer


def _read_question(request: Content, server_request: Mapping[str, Any]) -> tuple[dict[str, Any], Any, Answer]:
    """Return a server's question, the schema of its answer, and its answer function."""
    schema = server_request.get("requestedSchema") or {}

    def answer(accepted: bool, values: Any) -> object:
        return request.to_function_approval_response(accepted, arguments=values if accepted else None)

    facts = {name: server_request[name] for name in ("url", "problem") if name in server_request}
    return {"question": server_question(request), **facts}, schema, answer


def request_kind(data: object, response_type: Any) -> RequestKind:
    """Return the kind of form of a request; `form` means a form made from the response type."""
    base = unwrap_optional(response_type)
    if _is_call(data) and question_in(data) is not None:
        return "question"
    if base is bool or base is Approval or _is_call(data):
        return "approval"
    if _options(data, response_type):
        return "choice"
    if base is not object and text_reader(base) is not None:
        return "message"
    return "text" if base is str else "form"


def text_answer(data: object, response_type: Any) -> TextAnswer:
    """Return the labels of a form that is answered with messages: from the request, the answer type, or defaults."""
    answer: TextAnswer | None = None
    for source in (type(data), unwrap_optional(response_type)):
        answer = answer or getattr(source, "_text_answer_", None)
    return answer or TextAnswer()


def _is_call(data: object) -> TypeGuard[Content]:
    """Whether a request asks a person to approve the tool call of an agent."""
    return isinstance(data, Content) and data.type == "function_approval_request"


def unwrap_optional(annotation: Any) -> Any:
    """Remove `Annotated` and `None` from a type; unions of several other types stay whole."""
    if hasattr(annotation, "__metadata__"):
        return unwrap_optional(annotation.__origin__)
    members = get_args(annotation) if get_origin(annotation) in (Union, types.UnionType) else ()
    others = [member for member in members if member is not type(None)]
    return unwrap_optional(others[0]) if len(others) == 1 else annotation


def _options(data: object, response_type: Any) -> tuple[Option, ...]:
    options = _found(data, _OPTIONS)
    if isinstance(options, Mapping):
        return tuple(Option(str(label), value) for label, value in options.items())
    if isinstance(options, Iterable) and not isinstance(options, (str, bytes)):
        items = list(options)
        if all(isinstance(item, tuple) and len(item) == 2 and isinstance(item[0], str) for item in items):
            return tuple(Option(label, value) for label, value in items)
        return label_options(items)
    base = unwrap_optional(response_type)
    if get_origin(base) is Literal:
        return label_options(get_args(base))
    return label_options(base) if isinstance(base, type) and issubclass(base, Enum) else ()


def label_options(values: Iterable[object]) -> tuple[Option, ...]:
    """Return an option for each value, labelled by its name or text."""
    items = list(values)
    labels = [value.name if isinstance(value, Enum) else str(value) for value in items]
    if len(set(labels)) < len(labels):
        labels = [repr(value) for value in items]  # Literal[1, "1"]
    return tuple(Option(label, value) for label, value in zip(labels, items, strict=True))


def _found(data: object, names: Iterable[str]) -> Any:
    """Return the first of these keys or attributes that exists, otherwise `None`."""
    for name in names:
        if isinstance(data, Mapping):
            if name in data:
                return data[name]
        elif hasattr(data, name):
            value = getattr(data, name)
            if isinstance(value, str) or not callable(value):  # skip methods such as str.title
                return value
    return None


def default_prompt(executor: str) -> str:
    """Return the question of a request whose data has none."""
    return f"{executor} needs an answer"


def _context(data: object, kind: RequestKind) -> tuple[str, tuple[tuple[str, object], ...]]:
    """Return the text below the question, and the objects with their own display."""
    if data is None or isinstance(data, str):
        return "", ()
    if _is_object(data):
        return "", (("", data),)
    context = _found(data, _CONTEXTS)
    others: dict[str, object] = {}
    if context is None:
        prompt = next((name for name in _PROMPTS if isinstance(_found(data, (name,)), str)), None)
        hidden = {prompt, *_CONTEXTS, *_DEADLINES, *_SWITCHES, *(_OPTIONS if kind == "choice" else ())}
        fields = dict(fields_of(data))
        others = {name: mask_secrets(value, key=name) for name, value in fields.items() if name not in hidden}
        if fields and not others:
            return "", ()
    others = others or {"": mask_secrets(data if context is None else context)}
    objects = tuple((name, value) for name, value in others.items() if _is_object(value))
    text = {name: value for name, value in others.items() if not _is_object(value)}
    return (_value_text(text.get("", text)) if text else ""), objects


def _is_object(value: object) -> bool:
    """Whether a value has its own display in a cell and contains no secrets."""
    if type(value).__module__.partition(".")[0] in ("builtins", "agentbench"):  # ours need the theme of the page
        return False
    return has_display(value) and all(mask_secrets(item, key=name) is item for name, item in fields_of(value))


def _value_text(value: object, indent: str = "") -> str:
    """Return a value as text of any length, because forms can unfold it; inner mappings are indented."""
    if not isinstance(value, Mapping) or not value:
        return value if isinstance(value, str) else preview(value, limit=100_000)
    lines = []
    for name, item in value.items():
        inside = isinstance(item, Mapping) and item
        lines.append(f"{indent}{name}:" + ("\n" if inside else " ") + _value_text(item, indent + "  "))
    return "\n".join(lines)


def _deadline(value: object) -> datetime | None:
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(f"{value[:-1]}+00:00" if value.endswith(("Z", "z")) else value)
        except ValueError:
            return None
    if not isinstance(value, datetime):
        return None
    return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)
