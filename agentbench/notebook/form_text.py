"""A form in words: for places without widgets, and for what is said once it was answered."""

from enum import Enum

from agentbench.notebook.escaping import esc
from agentbench.notebook.form_content import FormContent
from agentbench.notebook.form_fields import FormField
from agentbench.notebook.form_model import FormModel, FormState
from agentbench.notebook.redaction import line_preview
from agentbench.workflow.approval import Approval

__all__ = ["answer_text", "form_text", "problems_text"]

_NAMED_OPTIONS = 8


def form_text(content: FormContent, model: FormModel, *, request: bool) -> str:
    """What is asked, and the code that answers it. Nothing that was typed is in it."""
    lines = [esc(content.title, into="line")]
    lines += [esc(part, into="text") for part in (content.prompt, content.context) if part]
    if content.deadline_text:
        lines.append(f"Answer before {content.deadline_text}.")
    if model.state is FormState.ANSWERED:
        return "\n".join([*lines, answer_text(model, request=request)])
    lines.append(f"This form is {model.state}. By code:")
    lines += [f"  {_code(field)}" for field in model.fields.values()]
    return "\n".join([*lines, "  form.submit()"])


def answer_text(model: FormModel, *, request: bool) -> str:
    """One line about an answer that was taken, secrets masked; empty before."""
    if model.state is not FormState.ANSWERED:
        return ""
    when = f" at {_clock_time(model.answered_at)}" if model.answered_at else ""
    if not model.answered_here:
        return f"Already answered{when}, elsewhere. What was typed here was not used."
    return f"{'Answered here' if request else 'Submitted'}{when}: {_said(model)}"


def problems_text(model: FormModel) -> str:
    """`1 problem`, `2 problems`, or nothing."""
    count = len(model.shown_errors)
    return f"{count} problem{'' if count == 1 else 's'}" if count else ""


def _said(model: FormModel) -> str:
    answer = model.answer
    if isinstance(answer, Approval):
        words = ["approved" if answer.approved else "rejected"]
        if answer.edited is not None:
            words.append(f"with {line_preview(answer.edited)}")
        return " ".join(words) + (f" ({line_preview(answer.reason)})" if answer.reason else "")
    fields = list(model.fields.values())
    # The label that was chosen says more than a value's repr.
    label = fields[0].write(answer) if len(fields) == 1 and fields[0].kind == "choice" else None
    return line_preview(answer.name if isinstance(answer, Enum) else answer) if label is None else line_preview(label)


def _clock_time(at: str) -> str:
    """`2024-01-01T12:03:04.000000+00:00` as `12:03:04 UTC on 2024-01-01`; other texts as they are."""
    day, separator, time = at.partition("T")
    return f"{time[:8]} UTC on {day}" if separator and at.endswith("+00:00") else esc(at, into="line", limit=60)


def _code(field: FormField) -> str:
    notes = [] if field.required else ["optional"]
    if field.options:
        labels = [repr(esc(option.label, into="line")) for option in field.options[:_NAMED_OPTIONS]]
        notes.append(" or ".join(labels) + (" or …" if len(field.options) > _NAMED_OPTIONS else ""))
    notes += [field.help] if field.help else []
    return f"form.set_raw({field.path!r}, ...)" + (f"  # {'; '.join(notes)}" if notes else "")
