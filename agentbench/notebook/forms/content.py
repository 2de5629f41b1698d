"""What is on a form except the typed texts: titles, fields and buttons, made from a type or from a request.

Every text goes through `esc`, and the page writes it with `textContent`: nothing here becomes markup.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from agentbench.exceptions import NotebookError
from agentbench.notebook.forms.fields import NO_VALUE, ROOT, Field, Part, Raw, json_field, text_of
from agentbench.notebook.forms.from_schema import field_of_schema, field_of_type, type_name
from agentbench.notebook.forms.model import FormModel
from agentbench.notebook.forms.questions import Option, Question, default_prompt, unwrap_optional
from agentbench.notebook.forms.text_values import FILE_LIMIT, JsonError, read_json
from agentbench.notebook.forms.values import Place
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.bundles import display_of
from agentbench.notebook.text.escape import PREVIEW_LIMIT, esc
from agentbench.notebook.text.redact import preview
from agentbench.workflows.executors.approval import Approval

__all__ = ["Action", "FormContent", "content_for_request", "content_for_type", "object_text"]

_APPROVED, _REASON, _EDITED = "approved", "reason", "edited"
_APPROVE, _REJECT = Option("Approve", True), Option("Reject", False)

# Up to four options are a row of buttons; more than thirty are searched, not listed.
_BUTTONS = 4
_LISTED = 30
# Groups below this depth are folded at first.
_DEEP = 3

Node = dict[str, Any]


@dataclass(frozen=True)
class Action:
    """A button that ends a form."""

    name: str
    label: str
    #: Raw texts by path that replace those of fields when it is pressed; the fields themselves do not change.
    sets: Mapping[str, Raw]
    tone: str = "plain"
    #: A field that stays hidden until this is pressed; then the button goes.
    reveals: str | None = None
    #: The label once a revealed field was changed.
    if_changed: str = ""


_SEND = (Action("submit", "Send", {}, tone="yes"),)


@dataclass(frozen=True)
class FormContent:
    """Everything on a form except the typed texts; its name has no value in it."""

    name: str
    title: str
    actions: tuple[Action, ...]
    prompt: str = ""
    context: str = ""
    #: What is displayed below the context as it is in a cell, by name.
    objects: tuple[tuple[str, object], ...] = ()
    deadline: datetime | None = None
    #: Fields that only buttons set.
    hidden: frozenset[str] = frozenset()
    #: Whether a run waits for the answer.
    waits: bool = False
    #: Whether the whole answer is one of several options.
    chooses: bool = False
    as_json: bool = False
    #: The source of the question, in words.
    origin: str = ""
    asked_ns: int | None = None

    def page(self) -> dict[str, Any]:
        """Return what the page needs besides the fields to build the form, as JSON values."""
        # The page counts from then by its own clock, which a deterministic clock does not match.
        asked_ns = None if settings.current().deterministic else self.asked_ns
        displays = [(name, value, display_of(value)) for name, value in self.objects]
        texts = [self.context, *(object_text(name, value) for name, value, found in displays if found is None)]
        return {
            "title": _line(self.title),
            "prompt": esc(self.prompt, into="text"),
            "context": esc("\n".join(filter(None, texts)), into="text"),
            "displays": [(_line(name), *found) for name, _, found in displays if found],
            "cut": [part for part in ("prompt", "context") if len(getattr(self, part)) > PREVIEW_LIMIT],
            "deadline": None if self.deadline is None else self.deadline.timestamp(),
            "deadlineText": self.deadline_text,
            "waits": self.waits,
            "repeats": not self.waits,
            "origin": _line(self.origin),
            "asked": None if asked_ns is None else asked_ns / 1e9,
            "json": self.as_json,
            "actions": [{"name": a.name, "tone": a.tone, "reveals": a.reveals} for a in self.actions],
        }

    def labels(self, model: FormModel) -> list[str]:
        """Return the texts of the buttons; one that sends a change says so."""
        edited = next((model.root.find(each.reveals) for each in self.actions if each.reveals), None)
        changed = edited is not None and edited.touched and edited.text != edited.field.suggestion
        return [_line(each.if_changed if changed and each.if_changed else each.label, 60) for each in self.actions]

    @property
    def deadline_text(self) -> str | None:
        """The deadline for people."""
        return None if self.deadline is None else f"{self.deadline:%Y-%m-%d %H:%M:%S} UTC"

    def action(self, name: object) -> Action | None:
        """Return the button of that name, `None` if there is none."""
        return next((action for action in self.actions if action.name == name), None)

    # ---- fields -----------------------------------------------------------------------------------------------------

    def nodes(self, model: FormModel) -> list[Node]:
        """Return the fields as the page needs them; a plain group around all needs no frame."""
        root = model.root
        places = [root] if root.key else root.children
        return [self._node(place, 1) for place in places if place.key not in self.hidden]

    def _node(self, place: Place, depth: int, label: str = "") -> Node:
        """Return the node of one place and all below it; `label` is for places without a name of their own."""
        field = place.field
        label = field.label or label
        reveals = any(each.reveals == place.key for each in self.actions) and not place.touched
        node: Node = {
            "path": place.key,
            "label": _line(label),
            "help": _line(field.help, 300),
            "optional": not field.required and field.default is NO_VALUE and not reveals,
            "none": None,
            "hiddenAtFirst": reveals,
        }
        # An empty number is left out without a checkbox.
        if field.nullable or (field.omits and (not field.is_leaf or field.kind == "text")):
            node["none"] = {"label": "none" if field.nullable else "not set", "on": place.is_none}
        if field.is_leaf:
            return {**node, **self._leaf(place)}
        if field.kind == "const":
            return {**node, "kind": "const", "text": _line(field.options[0].label)}
        if field.kind == "group":
            inside = [self._node(each, depth + 1) for each in place.children if not _repeats_its_tag(place, each)]
            folded = depth > _DEEP and not place.touched
            return {**node, "kind": "group", "closed": place.is_closed, "folded": folded, "children": inside}
        if field.kind == "pair":
            pair = [self._node(each, depth + 1, each.name.capitalize()) for each in place.children]
            return {**node, "kind": "pair", "children": pair}
        if field.kind == "union":
            inside = [] if place.is_none else [self._node(each, depth, each.name) for each in place.children]
            control = "toggle" if len(field.labels) <= _BUTTONS else "select"
            labels = [_line(each, 80) for each in field.labels]
            picked = field.labels.index(place.picked)
            return {
                **node, "kind": "oneof", "options": labels, "picked": picked, "control": control, "children": inside
            }  # fmt: skip
        inside = [self._node(each, depth + 1, f"{label} {at}") for at, each in enumerate(place.children, 1)]
        assert field.item is not None
        item = field.item()
        lines = item.kind == "text" and not item.secret
        return {**node, "kind": "rows", "children": inside, "most": field.most, "lines": lines}

    def _leaf(self, place: Place) -> Node:
        field = place.field
        return {
            "kind": "leaf",
            "control": self._control(place),
            "inputmode": ("numeric" if field.makes is int else "decimal") if field.kind == "number" else None,
            # The page sends back the position, since a label may be cut here.
            "options": [_line(option.label) for option in field.options],
            "other": field.allow_other,
            "maxLength": field.max_length,
            "counts": field.kind == "text" and (field.multiline or field.max_length is not None),
            "suggestion": field.suggestion,
            "zone": field.zone,
            "limit": FILE_LIMIT if field.kind == "file" else None,
            "kept": place.is_unchanged and place.text is NO_VALUE,
        }

    def _control(self, place: Place) -> str:
        field = place.field
        if field.kind == "choice":
            if len(field.options) > _LISTED:
                return "combo"
            if self.chooses:
                return "radio"
            if place.value is not NO_VALUE and not field.nullable and [o.value for o in field.options] == [True, False]:
                return "check"
            return "select" if len(field.options) > _BUTTONS else "toggle"
        if field.secret:
            return "password"
        if field.kind not in ("text", "number"):
            return field.kind
        # A field of one line would drop the ends of others.
        texts = (place.text, place.value)
        tall = any(isinstance(text, str) and not {"\n", "\r"}.isdisjoint(text) for text in texts)
        return "area" if field.multiline or (field.kind == "text" and tall) else "line"


def object_text(name: str, value: object) -> str:
    """Return an object of a question as text, where it is not displayed."""
    return f"{name}: {preview(value)}" if name else preview(value)


def _line(text: str, limit: int = 200) -> str:
    return esc(text, into="line", limit=limit)


def _repeats_its_tag(group: Place, below: Place) -> bool:
    """Whether a constant repeats the type of a union that was chosen."""
    is_member = group.parent is not None and group.parent.field.kind == "union"
    return is_member and below.field.kind == "const" and below.field.options[0].label in (group.name, f'"{group.name}"')


# ---- forms of types -------------------------------------------------------------------------------------------------


def content_for_type(
    type_or_schema: Any, *, value: Any = NO_VALUE, title: str | None, submit: str, strict: bool = False
) -> tuple[FormContent, FormModel]:
    """Make the form for a value of a type or of a JSON Schema; see `form`."""
    field = _field_of(type_or_schema, strict=strict)
    is_schema = isinstance(type_or_schema, Mapping)
    name = str(type_or_schema.get("title") or "JSON") if is_schema else type_name(type_or_schema)
    content = FormContent(
        name=f"for {_line(name, 80)}",
        title=title or (field.label if is_schema else f"Value: {name}"),
        prompt=field.help if field.kind == "group" else "",
        actions=(Action("submit", submit, {}, tone="yes"),),
        as_json=True,
    )
    return content, FormModel(field, value=NO_VALUE if value is None and not field.nullable else value)


def _field_of(type_or_schema: Any, *, strict: bool = False, label: str = "Answer") -> Field:
    if isinstance(type_or_schema, Mapping):
        field = field_of_schema(type_or_schema, strict=strict)
        return replace(field, label=field.label or label)
    return replace(field_of_type(type_or_schema), label=label)


# ---- forms of requests ----------------------------------------------------------------------------------------------

_Parts = tuple[tuple[Action, ...], frozenset[str], FormModel]


def content_for_request(question: Question) -> tuple[FormContent, FormModel]:
    """Make the form that answers a request."""
    try:
        actions, hidden, model = _request_parts(question)
    except NotebookError as error:  # the run validates the response
        actions, hidden, model = _SEND, frozenset(), FormModel(json_field(f"JSON. {error}", label="Your answer"))
    has_prompt = question.prompt != default_prompt(question.executor)
    content = FormContent(
        name=f"{question.kind} from {question.executor}",
        title=f"Question from {question.executor}" if has_prompt else question.prompt,
        actions=actions,
        prompt=question.prompt if has_prompt else "",
        context=question.context,
        objects=question.objects,
        deadline=question.deadline,
        hidden=hidden,
        waits=True,
        chooses=question.kind == "choice",
        as_json=question.kind == "form",
    )
    return content, model


def _request_parts(question: Question) -> _Parts:
    if question.kind == "approval":
        return _approval(question)
    if question.kind == "choice":
        field = replace(
            _field_of(question.response_type, label="Your choice"),
            kind="choice", help="", options=question.options, allow_other=question.allow_other,
        )  # fmt: skip
        if len(field.options) > _BUTTONS or field.allow_other or field.nullable:
            return _SEND, frozenset(), FormModel(field)
        buttons = [Action(f"choose-{at}", each.label, {ROOT: each.label}) for at, each in enumerate(field.options)]
        return tuple(buttons), frozenset({ROOT}), FormModel(field)
    field = _field_of(question.response_type, label="Your answer")
    return _SEND, frozenset(), FormModel(replace(field, multiline=True) if question.kind == "text" else field)


def _approval(question: Question) -> _Parts:
    must = question.reason_required
    fields = {_APPROVED: Field(kind="choice", label="Decision", options=(_APPROVE, _REJECT))}
    if unwrap_optional(question.response_type)[0] is Approval:
        # A reason that a rejection needs is not labelled optional, though an approval does not need it.
        fields[_REASON] = Field(
            kind="text", label="Reason", required=must, default="" if must else NO_VALUE,
            help="Needed when you reject." if must else "",
        )  # fmt: skip
    editor = _editor(question.arguments)
    if editor is not None and _REASON in fields:
        fields[_EDITED] = editor
    parts = [Part(name, name, field.itself) for name, field in fields.items()]

    def build(values: Mapping[str, Any]) -> Any:
        if _REASON not in fields:
            return question.answer(values[_APPROVED])
        # Edited arguments are not part of a rejection.
        edited = values.get(_EDITED) if values[_APPROVED] else None
        return Approval(values[_APPROVED], values.get(_REASON) or "", edited)

    def check(values: Mapping[str, Any]) -> dict[str, str]:
        missing = must and not values[_APPROVED] and not (values.get(_REASON) or "").strip()
        return {_REASON: "Say why, so that the workflow can act on it."} if missing else {}

    yes, no = {_APPROVED: _APPROVE.label}, {_APPROVED: _REJECT.label}
    edits = _EDITED in fields
    actions = (
        Action("reject", _REJECT.label, {**no, _EDITED: None} if edits else no, tone="no"),
        *([Action("edit", "Edit arguments", yes, reveals=_EDITED)] if edits else []),
        Action("approve", _APPROVE.label, yes, tone="yes", if_changed="Approve with changes" if edits else ""),
    )
    model = FormModel(Field(kind="group", parts=lambda: parts), build=build, check=check)
    return actions, frozenset({_APPROVED}), model


def _editor(arguments: object) -> Field | None:
    """Return the field to edit arguments in; `None` if there are none, or they have no text form."""
    if arguments is None:
        return None
    field = _field_of(dict[str, Any] if isinstance(arguments, Mapping) else type(arguments), label="Arguments")
    if field.kind == "group":
        return replace(field, required=False, default=arguments)
    text = json_field("JSON", label="Arguments", required=False, validate=field.validate)
    suggestion = text_of(text, arguments) or ""
    try:
        read_json(suggestion)
    except JsonError:  # they contain objects that JSON cannot represent
        return None
    return replace(text, suggestion=suggestion)
