"""Short phrases for all views: counts, durations, and the names of runs and workflows."""

import re
from collections.abc import Sequence

from agentbench._text.escape import esc

_UUID = re.compile(r"^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$")
# Generated names of unnamed workflows.
_MADE_UP = re.compile(r"^Workflow(Builder)?-[0-9a-f-]{36}$")


def run_name(run_id: str) -> str:
    """Return the name of a run: random ids are shortened to their first part."""
    short = run_id.partition("-")[0] if _UUID.match(run_id) else run_id
    return esc(short, into="line", limit=60) if short.startswith("run") else f"run {esc(short, into='line', limit=60)}"


def run_names(run_ids: Sequence[str], most: int = 3) -> str:
    """Return the names of the first runs in one line."""
    return ", ".join([*map(run_name, run_ids[:most]), *(["…"] if len(run_ids) > most else [])]) or "a run"


def workflow_name(workflow: object) -> str:
    """Return the name of a workflow; `workflow` for a generated name."""
    name = str(getattr(workflow, "name", None) or "workflow")
    return "workflow" if _MADE_UP.match(name) else name


def count_text(count: int, noun: str) -> str:
    """`1 message`, `2 messages`."""
    return f"{count:,} {noun}" if count == 1 else f"{count:,} {noun}s"


_STATES = {
    "STARTED": "started",
    "IN_PROGRESS": "running",
    "IN_PROGRESS_PENDING_REQUESTS": "running",
    "IDLE": "finished",
    "IDLE_WITH_PENDING_REQUESTS": "waiting for an answer",
    "FAILED": "failed",
    "CANCELLED": "cancelled",
}


def state_text(state: object, unanswered: int = 0) -> str:
    """Return the state of a run in a few words, with its number of unanswered requests."""
    text = _STATES.get(str(state), str(state).lower())
    return f"{text}, {count_text(unanswered, 'question')} unanswered" if unanswered and text == "finished" else text


def duration_text(seconds: float) -> str:
    """Return a duration as readable text: `0.3 ms`, `412 ms`, `1.8 s`, `2 min 5 s`, `1 h 2 min`."""
    if seconds < 0.01:
        return f"{seconds * 1000:.1f} ms"
    if seconds < 1:
        return f"{seconds * 1000:.0f} ms"
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60:,} h {minutes % 60} min"
