"""What stands on a form: texts, fields and buttons, made from a type or from a request, as plain values for the page.

Every text goes through `esc`, and the page writes it with `textContent`: nothing here becomes markup.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from agentbench.notebook.escaping import PREVIEW_LIMIT, esc
from agentbench.notebook.form_fields import ROOT, FormField, field_for
from agentbench.notebook.form_model import Action, FormModel
from agentbench.notebook.request_reading import Option, Question, unwrapped
from agentbench.workflow.approval import Approval

__all__ = ["FormContent", "content_for_request", "content_for_type"]

_BUTTONS = 4
_LISTED = 30

_APPROVED, _REASON, _EDITED = "approved", "reason", "edited"
_APPROVE, _REJECT = Option("Approve", True), Option("Reject", False)


@dataclass(frozen=True)
class FormContent:
    """Everything on a form but what is typed.

    Attributes:
        name: What it is, for `repr`; never a value.
        title: The heading.
        actions: The buttons, left to right.
        prompt: The question, in full.
        context: What stands below it, in full.
        deadline: Last moment for an answer, in UTC.
        hidden: Fields that only buttons set.
        waits: Whether a run waits for the answer.
        repeats: Whether an accepted answer may be changed.
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

    def page(self, model: FormModel) -> dict[str, Any]:
        """Everything that the page needs to build the form, as JSON values."""
        return {
            "title": esc(self.title, into="line", limit=200),
            "prompt": esc(self.prompt, into="text"),
            "context": esc(self.context, into="text"),
            "cut": [part for part in ("prompt", "context") if len(getattr(self, part)) > PREVIEW_LIMIT],
            "deadline": None if self.deadline is None else self.deadline.timestamp(),
            "deadlineText": self.deadline_text,
            "waits": self.waits,
            "repeats": self.repeats,
            "fields": [self._field(field) for path, field in model.fields.items() if path not in self.hidden],
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
        """The button of that name."""
        return next((action for action in self.actions if action.name == name), None)

    def _field(self, field: FormField) -> dict[str, Any]:
        return {
            "path": field.path,
            "label": field.label,
            "control": self._control(field),
            "inputmode": ("numeric" if field.whole else "decimal") if field.kind == "number" else None,
            "help": esc(field.help, into="line", limit=300),
            # The page sends back the position, since a label may be cut here.
            "options": [esc(option.label, into="line", limit=200) for option in field.options],
            "other": field.allow_other,
            "nullable": field.nullable,
            "maxLength": field.max_length,
            "counts": field.kind == "text" and (field.multiline or field.max_length is not None),
            "suggestion": field.suggestion,
            "hiddenAtFirst": any(action.reveals == field.path for action in self.actions),
        }

    def _control(self, field: FormField) -> str:
        if field.kind == "choice":
            if len(field.options) > _LISTED:
                return "combo"
            if self.repeats and len(field.options) > _BUTTONS:
                return "select"
            return "toggle" if self.repeats else "radio"
        if field.secret:
            return "password"
        if field.kind == "json":
            return "json"
        return "area" if field.multiline else "line"


def content_for_type(annotation: Any, *, value: Any, title: str | None, submit: str) -> tuple[FormContent, FormModel]:
    """Make the form for one value of a type, `value` standing in it unless it is `None`."""
    field = field_for(annotation)
    if value is not None:
        field = field.with_value(value)
    name = _type_name(annotation)
    content = FormContent(
        name=f"for {name}",
        title=title or f"A value of type {name}",
        actions=(Action("submit", submit, {}, tone="yes"),),
        repeats=True,
    )
    return content, FormModel([field], _only)


def content_for_request(question: Question) -> tuple[FormContent, FormModel]:
    """Make the form that answers a request."""
    make = {"approval": _approval, "choice": _choice, "text": _typed, "form": _typed}[question.kind]
    actions, hidden, model = make(question)
    content = FormContent(
        name=f"{question.kind} from {question.executor}",
        title=f"{question.executor} asks",
        actions=actions,
        prompt=question.prompt,
        context=question.context,
        deadline=question.deadline,
        hidden=hidden,
        waits=True,
    )
    return content, model


_Parts = tuple[tuple[Action, ...], frozenset[str], FormModel]


def _approval(question: Question) -> _Parts:
    decision = field_for(bool, path=_APPROVED, label="Decision", options=(_APPROVE, _REJECT))
    if unwrapped(question.response_type)[0] is bool:
        return _decisions({}), frozenset({_APPROVED}), FormModel([decision], _only)
    must = question.reason_required
    reason = field_for(str, path=_REASON, label="Reason" if must else "Reason (optional)")
    reason = replace(reason, required=False, help="Needed when you reject." if must else "")
    fields = [decision, reason]
    unedited: dict[str, str | None] = {}
    edits: tuple[Action, ...] = ()
    editor = _editor(question.arguments)
    if editor is not None:
        fields.append(editor)
        unedited = {_EDITED: None}
        edits = (Action("edit", "Edit and approve", {_APPROVED: _APPROVE.label}, reveals=_EDITED),)
    reject, approve = _decisions(unedited)
    check = _reason_given if must else None
    return (reject, *edits, approve), frozenset({_APPROVED}), FormModel(fields, _as_approval, check=check)


def _editor(arguments: object) -> FormField | None:
    """The field in which arguments are edited; none if there are none, or they have no text form."""
    if arguments is None:
        return None
    annotation: Any = dict[str, Any] if isinstance(arguments, Mapping) else type(arguments)
    field = field_for(annotation, path=_EDITED, label="Arguments")
    try:
        suggestion = field.to_text(arguments)
    except ValueError:  # they hold objects that JSON cannot say
        return None
    return replace(field, required=False, suggestion=suggestion)


def _decisions(besides: Mapping[str, str | None]) -> tuple[Action, Action]:
    return (
        Action("reject", _REJECT.label, {_APPROVED: _REJECT.label, **besides}, tone="no"),
        Action("approve", _APPROVE.label, {_APPROVED: _APPROVE.label, **besides}, tone="yes"),
    )


def _choice(question: Question) -> _Parts:
    field = field_for(
        question.response_type, label="Your choice", options=question.options, allow_other=question.allow_other
    )
    model = FormModel([field], _only)
    if len(field.options) > _BUTTONS or field.allow_other or field.nullable:
        return _send(), frozenset(), model
    buttons = tuple(Action(f"choose-{n}", o.label, {ROOT: o.label}) for n, o in enumerate(field.options))
    return buttons, frozenset({ROOT}), model


def _typed(question: Question) -> _Parts:
    field = field_for(question.response_type, label="Your answer", multiline=question.kind == "text")
    return _send(), frozenset(), FormModel([field], _only)


def _send() -> tuple[Action, ...]:
    return (Action("submit", "Send", {}, tone="yes"),)


def _only(values: Mapping[str, Any]) -> Any:
    (value,) = values.values()
    return value


def _as_approval(values: Mapping[str, Any]) -> Approval:
    approved = values[_APPROVED]
    # An edit that was begun is no part of a rejection.
    edited = values.get(_EDITED) if approved else None
    return Approval(approved, values[_REASON] or "", edited)


def _reason_given(values: Mapping[str, Any]) -> dict[str, str]:
    if values[_APPROVED] or (values[_REASON] or "").strip():
        return {}
    return {_REASON: "Say why, so that the workflow can act on it."}


def _type_name(annotation: Any) -> str:
    return annotation.__name__ if isinstance(annotation, type) else str(annotation).replace("typing.", "")
