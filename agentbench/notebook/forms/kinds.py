"""Makes forms for a value of a type and for each kind of request."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, get_origin

from agentbench._signatures import text_reader
from agentbench.exceptions import NotebookError
from agentbench.notebook.forms.content import BUTTONS, Action, FormContent, line
from agentbench.notebook.forms.fields import NO_VALUE, ROOT, Field, FieldPart, json_field, text_of
from agentbench.notebook.forms.from_schema import field_of_schema, field_of_type, type_name
from agentbench.notebook.forms.model import FormModel
from agentbench.notebook.forms.questions import FormQuestion, Option, default_prompt, unwrap_optional
from agentbench.notebook.forms.text_values import FieldError, JsonError, read_json
from agentbench.workflows.executors.approval import Approval

_APPROVED, _REASON, _EDITED = "approved", "reason", "edited"
_APPROVE, _REJECT = Option("Approve", True), Option("Reject", False)
_ALWAYS: dict[str, Option] = {
    "always-tool": Option("Always approve this tool", "tool"),
    "always-arguments": Option("Always approve with these arguments", "arguments"),
}
_SEND = (Action("submit", "Send", {}, tone="yes"),)


def model_for_type(type_or_schema: Any, *, value: Any, title: str | None, submit: str, strict: bool) -> FormModel:
    """Make the form for a value of a type or of a JSON Schema; see `form`."""
    if isinstance(type_or_schema, Mapping):
        field = field_of_schema(type_or_schema, strict=strict)
        field = replace(field, label=field.label or "Answer")
        name, title = str(type_or_schema.get("title") or "JSON"), title or field.label
    else:
        field, name = replace(field_of_type(type_or_schema), label="Answer"), type_name(type_or_schema)
    content = FormContent(
        name=f"for {line(name, 80)}",
        title=title or f"Value: {name}",
        prompt=field.help if field.kind == "group" else "",
        actions=(Action("submit", submit, {}, tone="yes"),),
        as_json=True,
    )
    return FormModel(content, field, value=NO_VALUE if value is None and not field.nullable else value)


def model_for_request(question: FormQuestion) -> FormModel:
    """Make the form that answers a request."""
    has_prompt = question.prompt != default_prompt(question.executor)
    content = FormContent(
        name=f"{question.kind} from {question.executor}",
        title=f"Question from {question.executor}" if has_prompt else question.prompt,
        actions=_SEND,
        prompt=question.prompt if has_prompt else "",
        context=question.context,
        objects=question.objects,
        deadline=question.deadline,
        waits=True,
        chooses=question.kind == "choice",
        as_json=question.kind == "form",
        as_message=question.kind == "message",
    )
    make = {"approval": _approval, "choice": _choice, "message": _message, "question": _question}.get(
        question.kind, _value
    )
    try:
        return make(question, content)
    except NotebookError as error:  # the run validates the response
        return FormModel(content, json_field(f"JSON. {error}", label="Your answer"))


def _value(question: FormQuestion, content: FormContent) -> FormModel:
    schema = question.response_type
    field = field_of_schema(schema) if isinstance(schema, Mapping) else field_of_type(schema)
    field = replace(field, label="Your answer")
    return FormModel(content, replace(field, multiline=True) if question.kind == "text" else field)


def _message(question: FormQuestion, content: FormContent) -> FormModel:
    words, base = question.words, unwrap_optional(question.response_type)
    make, actions = text_reader(base), [Action("submit", words.send, {}, tone="yes")]
    if words.without:
        actions.append(Action("done", words.without, {ROOT: None}))

    def require_text(text: str) -> str:
        if not text.strip():
            instead = f", or press {words.without}" if words.without else ""
            msg = f"Type a message{instead}."
            raise FieldError(msg)
        return text

    def build(text: str | None) -> Any:
        if text is not None and make is not None:
            return make(text)
        return (get_origin(base) or base)() if words.without else None

    optional = base is not question.response_type
    field = Field(
        kind="text", label=words.label, multiline=True, default="", validate=require_text,
        nullable=bool(words.without) or optional,
    )  # fmt: skip
    return FormModel(replace(content, actions=tuple(actions)), field, build=build)


def _question(question: FormQuestion, content: FormContent) -> FormModel:
    """Return the form of a server's question, which can be declined."""
    schema = question.response_type
    has_fields = bool(schema.get("properties"))
    try:
        field = field_of_schema(schema) if has_fields else Field(kind="group", parts=list)
    except NotebookError as error:
        field = json_field(f"JSON. {error}", label="Your answer")
    field = replace(field, label="Your answer", nullable=True)
    send = Action("submit", "Send" if has_fields else "Accept", {}, tone="yes")
    actions = (Action("decline", "Decline", {ROOT: None}, tone="no"), send)

    def build(values: Any) -> Any:
        return question.answer(values is not None, values)

    return FormModel(replace(content, actions=actions), field, build=build)


def _choice(question: FormQuestion, content: FormContent) -> FormModel:
    field = replace(
        field_of_type(question.response_type), label="Your choice",
        kind="choice", help="", options=question.options, allow_other=question.allow_other,
    )  # fmt: skip
    if len(field.options) <= BUTTONS and not field.allow_other and not field.nullable:
        buttons = [Action(f"choose-{at}", each.label, {ROOT: each.label}) for at, each in enumerate(field.options)]
        content = replace(content, actions=tuple(buttons), hidden=frozenset({ROOT}))
    return FormModel(content, field)


def _approval(question: FormQuestion, content: FormContent) -> FormModel:
    must = question.reason_required
    always = _ALWAYS if question.can_stand else {}
    fields = {_APPROVED: Field(kind="choice", label="Decision", options=(_APPROVE, _REJECT, *always.values()))}
    if unwrap_optional(question.response_type) is Approval:
        # A rejection needs the reason, so it is not labelled optional, although an approval does not need it.
        fields[_REASON] = Field(
            kind="text", label="Reason", required=must, default="" if must else NO_VALUE,
            help="Needed when you reject." if must else "",
        )  # fmt: skip
    editor = None if question.arguments is None else _editor(question.arguments)
    if editor is not None:
        fields[_EDITED] = editor
    parts = [FieldPart(name, name, field.itself) for name, field in fields.items()]

    def build(values: Mapping[str, Any]) -> Any:
        # A rejection ignores edited arguments.
        edited = values.get(_EDITED) if values[_APPROVED] else None
        if _REASON not in fields:
            return question.answer(values[_APPROVED], edited)
        return Approval(values[_APPROVED], values.get(_REASON) or "", edited)

    def check(values: Mapping[str, Any]) -> dict[str, str]:
        missing = must and not values[_APPROVED] and not (values.get(_REASON) or "").strip()
        return {_REASON: "Give a reason for the rejection."} if missing else {}

    yes, no = {_APPROVED: _APPROVE.label}, {_APPROVED: _REJECT.label}
    edits = _EDITED in fields
    actions = (
        Action("reject", _REJECT.label, {**no, _EDITED: None} if edits else no, tone="no"),
        *([Action("edit", "Edit arguments", yes, reveals=_EDITED)] if edits else []),
        Action("approve", _APPROVE.label, yes, tone="yes", if_changed="Approve with changes" if edits else ""),
        *(Action(name, option.label, {_APPROVED: option.label}, tone="later") for name, option in always.items()),
    )
    content = replace(content, actions=actions, hidden=frozenset({_APPROVED}))
    return FormModel(content, Field(kind="group", parts=lambda: parts), build=build, check=check)


def _editor(arguments: object) -> Field | None:
    """Return the field to edit arguments in; `None` if they have no text form."""
    field = field_of_type(dict[str, Any] if isinstance(arguments, Mapping) else type(arguments))
    if field.kind == "group":
        return replace(field, label="Arguments", required=False, default=arguments)
    text = json_field("JSON", label="Arguments", required=False, validate=field.validate)
    suggestion = text_of(text, arguments) or ""
    try:
        read_json(suggestion)
    except JsonError:  # they contain objects that JSON cannot represent
        return None
    return replace(text, suggestion=suggestion)
