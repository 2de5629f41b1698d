"""The texts, fields and buttons of a form, made from a type or from a request, as plain values for the page.

Every text goes through `esc`, and the page writes it with `textContent`: nothing here becomes markup.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from agentbench.exceptions import NotebookError
from agentbench.notebook.forms.fields.field import (
    NO_VALUE,
    ROOT,
    adapter_of,
    field_for,
    json_field,
    json_text,
    schema_of,
)
from agentbench.notebook.forms.fields.shapes import Group, Leaf, Part, Shape
from agentbench.notebook.forms.model import Action, FormModel
from agentbench.notebook.forms.nodes import BUTTONS, Nodes
from agentbench.notebook.forms.schema.json_schema import shape_of_schema
from agentbench.notebook.forms.schema.types import shape_of_field, shape_of_type, type_name
from agentbench.notebook.history.questions import Option, Question, default_prompt, unwrap_optional
from agentbench.notebook.runtime import settings
from agentbench.notebook.text.escape import PREVIEW_LIMIT, esc
from agentbench.workflows.executors.approval import Approval

__all__ = ["FormContent", "content_for_request", "content_for_type"]

_APPROVED, _REASON, _EDITED = "approved", "reason", "edited"
_APPROVE, _REJECT = Option("Approve", True), Option("Reject", False)


@dataclass(frozen=True)
class FormContent:
    """Everything on a form except the typed texts.

    Attributes:
        name: Its name for `repr`, without any value.
        title: The heading.
        actions: The buttons, left to right.
        prompt: The question, in full.
        context: The text below the question, in full.
        deadline: Latest time of an answer, in UTC.
        hidden: Fields that only buttons set.
        waits: Whether a run waits for the answer.
        repeats: Whether an accepted answer may be edited again.
        chooses: Whether the whole answer is one of several options.
        as_json: Whether the page offers to edit the form as JSON.
        origin: The source of the question, in words; may be empty.
        asked_ns: Time of the request, in nanoseconds since 1970; `None` if the page does not display it.
    """

    name: str
    title: str
    actions: tuple[Action, ...]
    prompt: str = ""
    context: str = ""
    deadline: datetime | None = None
    hidden: frozenset[str] = frozenset()
    waits: bool = False
    repeats: bool = False
    chooses: bool = False
    as_json: bool = False
    origin: str = ""
    asked_ns: int | None = None

    def page(self, model: FormModel) -> dict[str, Any]:
        """Return everything that the page needs to build the form, as JSON values."""
        # The page counts from then by its own clock, which a deterministic clock does not match.
        asked_ns = None if settings.current().deterministic else self.asked_ns
        return {
            "title": esc(self.title, into="line", limit=200),
            "prompt": esc(self.prompt, into="text"),
            "context": esc(self.context, into="text"),
            "cut": [part for part in ("prompt", "context") if len(getattr(self, part)) > PREVIEW_LIMIT],
            "deadline": None if self.deadline is None else self.deadline.timestamp(),
            "deadlineText": self.deadline_text,
            "waits": self.waits,
            "repeats": self.repeats,
            "origin": esc(self.origin, into="line", limit=300),
            "asked": None if asked_ns is None else asked_ns / 1e9,
            "fields": self.nodes(model),
            "json": self.as_json,
            "actions": [
                {"name": a.name, "label": esc(a.label, into="line", limit=60), "tone": a.tone, "reveals": a.reveals}
                for a in self.actions
            ],
        }

    @property
    def deadline_text(self) -> str | None:
        """The deadline for people."""
        return None if self.deadline is None else f"{self.deadline:%Y-%m-%d %H:%M:%S} UTC"

    def action(self, name: object) -> Action | None:
        """Return the button of that name, `None` if there is none."""
        return next((action for action in self.actions if action.name == name), None)

    def nodes(self, model: FormModel) -> list[dict[str, Any]]:
        """Return the fields as the page needs them."""
        return self._nodes.top(model.root)

    @property
    def _nodes(self) -> Nodes:
        revealed = frozenset(action.reveals for action in self.actions if action.reveals)
        return Nodes(radio=self.chooses, revealed=revealed, hidden=self.hidden)


def content_for_type(
    type_or_schema: Any, *, value: Any = NO_VALUE, title: str | None, submit: str, strict: bool = False
) -> tuple[FormContent, FormModel]:
    """Make the form for a value of a type or of a JSON Schema.

    Args:
        type_or_schema: The type, or the schema as a mapping.
        value: The initial value; `None` only if the type accepts it.
        title: The heading.
        submit: The text of the button.
        strict: For schemas: whether a keyword that has no field is an error.
    """
    shape = _shape(type_or_schema, strict=strict)
    is_schema = isinstance(type_or_schema, Mapping)
    name = str(type_or_schema.get("title") or "JSON") if is_schema else type_name(type_or_schema)
    content = FormContent(
        name=f"for {esc(name, into='line', limit=80)}",
        title=title or (shape.label if is_schema and shape.label else f"Value: {name}"),
        prompt=shape.help if isinstance(shape, Group) else "",
        actions=(Action("submit", submit, {}, tone="yes"),),
        repeats=True,
        as_json=True,
    )
    model = FormModel(shape, _itself)
    if value is not NO_VALUE and (value is not None or shape.nullable):
        model.fill(value)
    return content, model


def _shape(type_or_schema: Any, *, strict: bool = False, label: str = "Answer") -> Shape:
    if isinstance(type_or_schema, Mapping):
        shape = shape_of_schema(type_or_schema, strict=strict)
        return replace(shape, label=shape.label or label) if not isinstance(shape, Leaf) else _with_label(shape, label)
    if not isinstance(shape := shape_of_type(type_or_schema, label=label), Leaf):
        schema_of(type_or_schema, adapter_of(type_or_schema))  # raises for undefined names, before a person types
    return shape


def _with_label(leaf: Leaf, label: str) -> Leaf:
    label = leaf.label or label
    return replace(leaf, label=label, field=replace(leaf.field, label=label))


def content_for_request(question: Question) -> tuple[FormContent, FormModel]:
    """Make the form that answers a request."""
    make = {"approval": _approval, "choice": _choice, "text": _typed_answer, "form": _typed_answer}[question.kind]
    try:
        actions, hidden, model = make(question)
    except NotebookError as error:
        actions, hidden, model = _any_json(question, error)
    has_prompt = question.prompt != default_prompt(question.executor)
    content = FormContent(
        name=f"{question.kind} from {question.executor}",
        title=f"{question.executor} asks" if has_prompt else question.prompt,
        actions=actions,
        prompt=question.prompt if has_prompt else "",
        context=question.context,
        deadline=question.deadline,
        hidden=hidden,
        waits=True,
        chooses=question.kind == "choice",
        as_json=question.kind == "form",
    )
    return content, model


_Parts = tuple[tuple[Action, ...], frozenset[str], FormModel]


def _approval(question: Question) -> _Parts:
    decision = field_for(bool, path=_APPROVED, label="Decision", options=(_APPROVE, _REJECT))
    if unwrap_optional(question.response_type)[0] is bool:
        return _decisions({}), frozenset({_APPROVED}), FormModel([decision], _only)
    must = question.reason_required
    reason = replace(
        field_for(str, path=_REASON, label="Reason"), required=False, help="Needed when you reject." if must else ""
    )
    # A reason that a rejection needs is not labelled optional, though an approval does not need it.
    leaves = (shape_of_field(decision), replace(shape_of_field(reason), required=must))
    parts = [Part(each.field.path, each.field.path, each) for each in leaves]
    unedited: dict[str, str | None] = {}
    edits: tuple[Action, ...] = ()
    editor = _editor(question.arguments)
    if editor is not None:
        parts.append(Part(_EDITED, _EDITED, editor))
        unedited = {_EDITED: None}
        edits = (Action("edit", "Edit and approve", {_APPROVED: _APPROVE.label}, reveals=_EDITED),)
    reject, approve = _decisions(unedited)
    check = _check_reason if must else None
    model = FormModel(Group(parts=lambda: parts), _as_approval, check=check)
    return (reject, *edits, approve), frozenset({_APPROVED}), model


def _editor(arguments: object) -> Shape | None:
    """Return the shape to edit arguments in; `None` if there are none, or they have no text form."""
    if arguments is None:
        return None
    if not isinstance(arguments, Mapping) and isinstance(shape := shape_of_type(type(arguments)), Group):
        return replace(shape, label="Arguments", required=False, default=arguments)
    annotation: Any = dict[str, Any] if isinstance(arguments, Mapping) else type(arguments)
    try:
        suggestion = json_text(adapter_of(annotation), arguments)
    except ValueError:  # they contain objects that JSON cannot represent
        return None
    text = json_field(annotation, path=_EDITED, label="Arguments")
    return shape_of_field(replace(text, required=False, suggestion=suggestion, help="JSON"))


def _decisions(besides: Mapping[str, str | None]) -> tuple[Action, Action]:
    return (
        Action("reject", _REJECT.label, {_APPROVED: _REJECT.label, **besides}, tone="no"),
        Action("approve", _APPROVE.label, {_APPROVED: _APPROVE.label, **besides}, tone="yes"),
    )


def _choice(question: Question) -> _Parts:
    chosen = field_for(
        question.response_type, label="Your choice", options=question.options, allow_other=question.allow_other
    )
    model = FormModel(shape_of_field(chosen), _itself)
    if len(chosen.options) > BUTTONS or chosen.allow_other or chosen.nullable:
        return _send(), frozenset(), model
    buttons = tuple(Action(f"choose-{n}", o.label, {ROOT: o.label}) for n, o in enumerate(chosen.options))
    return buttons, frozenset({ROOT}), model


def _typed_answer(question: Question) -> _Parts:
    if question.kind == "text":
        text = field_for(question.response_type, label="Your answer", multiline=True)
        return _send(), frozenset(), FormModel(shape_of_field(text), _itself)
    return _send(), frozenset(), FormModel(_shape(question.response_type, label="Your answer"), _itself)


def _any_json(question: Question, problem: NotebookError) -> _Parts:
    """Return a field for a response type without a form: the run validates the response."""
    text = replace(json_field(Any, label="Your answer"), help=f"JSON. {problem}")
    return _send(), frozenset(), FormModel(shape_of_field(text), _itself)


def _send() -> tuple[Action, ...]:
    return (Action("submit", "Send", {}, tone="yes"),)


def _itself(value: Any) -> Any:
    return value


def _only(values: Mapping[str, Any]) -> Any:
    (value,) = values.values()
    return value


def _as_approval(values: Mapping[str, Any]) -> Approval:
    approved = values[_APPROVED]
    # Edited arguments are not part of a rejection.
    edited = values.get(_EDITED) if approved else None
    return Approval(approved, values.get(_REASON) or "", edited)


def _check_reason(values: Mapping[str, Any]) -> dict[str, str]:
    if values[_APPROVED] or (values.get(_REASON) or "").strip():
        return {}
    return {_REASON: "Say why, so that the workflow can act on it."}
