"""A form as plain text, for places without widgets, and the line about its answer."""

import json
from collections.abc import Sequence
from enum import Enum

from agentbench._secrets import mask_secrets
from agentbench._text.escape import esc
from agentbench._text.redact import decision_text, line_preview
from agentbench.messages.content.content import Content
from agentbench.notebook.forms.content import Action, object_text
from agentbench.notebook.forms.fields import ROOT, text_of
from agentbench.notebook.forms.model import FormModel, FormState
from agentbench.notebook.forms.text_values import read_json
from agentbench.notebook.forms.values import ValuePlace
from agentbench.notebook.history.agent_turns import messages_in_answer
from agentbench.workflows.executors.approval import Approval

_NAMED_OPTIONS = 8
_NAMED_FIELDS = 40


def form_text(model: FormModel, *, can_withdraw: bool = False) -> str:
    """Return the question and the code that answers it, without the typed texts."""
    content = model.content
    lines = [esc(content.title, into="line")]
    lines += [esc(part, into="text") for part in (content.prompt, content.context) if part]
    lines += [esc(object_text(name, value), into="text") for name, value in content.objects]
    if content.deadline_text:
        lines.append(f"Answer before {content.deadline_text}.")
    if model.state in (FormState.ANSWERED, FormState.WITHDRAWN):
        return "\n".join([*lines, answer_text(model)])
    if not model.live:
        return "\n".join([*lines, f"This form is {model.state}."])
    lines.append("To answer by code:" if content.waits else "By code:")
    places = list(model.root.walk())
    lines += [f"  {line}" for place in places[:_NAMED_FIELDS] if (line := _code(place))]
    if len(places) > _NAMED_FIELDS:
        lines.append(f"  # and {len(places) - _NAMED_FIELDS} more fields")
    lines.append("  form.submit()")
    lines += [f"  form.press({each.name!r})  # {each.label}" for each in content.actions if _has_no_text(each)]
    if can_withdraw:
        lines.append("  form.withdraw()  # to go on without an answer")
    return "\n".join(lines)


def answer_text(model: FormModel) -> str:
    """Return one line about the accepted answer, secrets masked, or about the withdrawal; empty before."""
    if model.state not in (FormState.ANSWERED, FormState.WITHDRAWN):
        return ""
    at = model.answered_at or ""
    day, _, time = at.partition("T")
    # 2024-01-01T12:03:04.000000+00:00, or the other side's own format
    when = f"{time[:8]} UTC on {day}" if at.endswith("+00:00") else esc(at, into="line", limit=60)
    when = f" at {when}" if at else ""
    if model.state is FormState.WITHDRAWN:
        return f"Withdrawn {'here' if model.answered_here else 'elsewhere'}{when}: the run goes on without an answer."
    if not model.answered_here:
        answer = "" if model.answer is None else f" {_answer_preview(model)}."
        return f"Already answered elsewhere{when}.{answer} The text typed here was not used."
    return f"{'Answered here' if model.content.waits else 'Submitted'}{when}: {_answer_preview(model)}"


def _answer_preview(model: FormModel) -> str:
    answer = model.answer
    if isinstance(answer, Approval):
        words = ["approved" if answer.approved else "rejected"]
        if answer.edited is not None:
            words.append(f"with {line_preview(answer.edited)}")
        return " ".join(words) + (f" ({line_preview(answer.reason)})" if answer.reason else "")
    if isinstance(answer, Content) and answer.approved is not None:
        return decision_text(answer)
    messages = messages_in_answer(answer) if model.content.as_message else None
    if messages is not None:
        without = next((each.label for each in model.content.actions if _has_no_text(each)), "")
        return line_preview(" ".join(each.text for each in messages)) if messages else without
    field = model.root.field
    if field.kind == "group" and len(field.labels) == 1:  # only a decision
        field = field.parts()[0].field()
    # The label of an option is more readable than the repr of its value.
    label = text_of(field, answer) if field.kind == "choice" else None
    return line_preview(answer.name if isinstance(answer, Enum) else answer) if label is None else line_preview(label)


def _has_no_text(action: Action) -> bool:
    """Whether a button answers without the text in the box."""
    return action.sets.get(ROOT, "") is None


def _code(place: ValuePlace) -> str:
    """Return the line of code that types into a place; empty for groups."""
    field, path = place.field, place.path
    if field.item is not None:
        first = f"{path}[{len(place.row_names)}]" + (".key" if field.kind == "pairs" else "")
        return f"form.set_raw({first!r}, ...)  # another row"
    if field.kind == "union":
        return f"form.set_raw({path!r}, ...)  # {_names(field.labels)}"
    if not field.is_leaf:
        return f"form.set_raw({path!r}, '')  # opens it" if place.is_none or place.is_closed else ""
    notes = [] if field.required else ["optional"]
    notes += [_names([option.label for option in field.options])] if field.options else []
    notes += [esc(field.help.rstrip("."), into="line", limit=200)] if field.help else []
    if field.suggestion:
        now = json.dumps(mask_secrets(read_json(field.suggestion)), ensure_ascii=False)
        notes.append(f"now: {esc(now, into='line', limit=200)}")
    return f"form.set_raw({path!r}, ...)" + (f"  # {'; '.join(notes)}" if notes else "")


def _names(labels: Sequence[str]) -> str:
    listed = [repr(esc(label, into="line")) for label in labels[:_NAMED_OPTIONS]]
    return " or ".join(listed) + (" or …" if len(labels) > _NAMED_OPTIONS else "")
