"""An event in a cell: its type, executor, superstep and a preview of its data."""

from typing import Any

from agentbench.notebook.history.step_rows import request_rows
from agentbench.notebook.look.html import Page, Table
from agentbench.notebook.text.phrases import state_text
from agentbench.notebook.text.redact import line_preview

__all__ = ["event_bundle"]


def event_bundle(event: Any) -> dict[str, Any]:
    """The view of an event."""
    facts: list[tuple[str, object]] = [
        ("executor", event.source_id),
        ("superstep", event.iteration if event.superstep is None else event.superstep),
    ]
    if event.state is not None:
        facts.append(("state", state_text(event.state)))
    if event.type == "request_info":
        facts += [("request", event.request_id), ("answer type", request_rows([event])[0][-1])]
    if event.details is not None:
        facts += [("error", event.details.error_type), ("message", event.details.message)]
    elif event.type == "executor_completed" and isinstance(event.data, list):
        facts += [("result", line_preview(each, 400)) for each in event.data]
    elif event.data is not None:
        facts.append(("data", line_preview(event.data, 400)))
    table = Table("Event", ("field", "value"), [fact for fact in facts if fact[1] not in (None, "")])
    look = "failed" if event.type in ("failed", "executor_failed") else "idle"
    return Page("WorkflowEvent", state=str(event.type), look=look, tables=[table]).bundle()
