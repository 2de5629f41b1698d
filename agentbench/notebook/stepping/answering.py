"""The part of a saved run's page in which its reader edits values and answers questions, and downloads them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import urlsplit

from agentbench._secrets import secrets_in
from agentbench._text.escape import esc
from agentbench._text.redact import hide_secrets, line_preview
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.metadata import FORKED_FROM
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.notebook.look.html import Markup, element
from agentbench.notebook.look.style import read_script
from agentbench.notebook.stepping.recording import Course, displayed_checkpoints
from agentbench.revisions.answer_file import FORMAT, MOST_ITEMS
from agentbench.revisions.places import LONGEST_VALUE, fingerprint, json_text, questions_of, values_of


def require_site(site: str | None, *, editable: bool) -> None:
    """Refuse a site that is not a relative link, because the page must lead nowhere else."""
    if site is None:
        return
    parts = urlsplit(site)
    if not editable or parts.scheme or parts.netloc or not site.isprintable() or not site or site[0] in "/\\ ":
        msg = f"site is {site!r}; expected a relative link such as '../lab/', together with editable=True."
        raise ValueError(msg)


def answer_html(course: Course, site: str | None) -> str:
    """Return the section of the page, with what may be changed at each superstep as data."""
    if not course.checkpoints:
        msg = (
            "This run has no checkpoints, so a page of it cannot be edited: an answer is merged into a branch from a "
            "checkpoint. Start the run with checkpoint_storage=, or save the page without editable=True."
        )
        raise WorkflowCheckpointException(msg)
    lead = element("a", "Continue here", href=site, class_="abs-continue") if site else Markup("")
    sheet = json.dumps(_sheet(course)).replace("<", "\\u003c")
    return read_script("saved_answer.html").replace("$site", lead).replace("$sheet", sheet)


def _sheet(course: Course) -> dict[str, Any]:
    """Return what may be changed: frames refer to checkpoints, and these to places that are stored once."""
    values: list[object] = [event.data for report in course.reports for event in report.events]
    values += [part for checkpoint in course.checkpoints.values() for part in (checkpoint.state, checkpoint.messages)]
    secrets = secrets_in(values)
    places: dict[str, int] = {}

    def is_shown(part: Any) -> bool:
        return bool(hide_secrets(part, secrets) == part)

    def number(place: list[Any]) -> int:
        return places.setdefault(json.dumps(place), len(places))

    def of(checkpoint: WorkflowCheckpoint) -> dict[str, Any]:
        offered = [
            number(["edit", value.path, esc(value.path, into="line", limit=120), value.kind, value.before, [], ""])
            for value in values_of(checkpoint)
            if is_shown([value.path, value.before])
        ]
        for request_id, question in questions_of(checkpoint).items():
            asked = hide_secrets(line_preview(question.request.data, 400), secrets)
            who = esc(question.request.source_executor_id, into="line", limit=60)
            options = [json_text(option) for option in question.options]
            note = "Whoever merges the file is asked too: a file cannot approve." if question.is_approval else ""
            if is_shown(options):
                offered.append(number(["answer", request_id, f"{who} asks: {asked}", question.kind, "", options, note]))
        return {"run": fingerprint(checkpoint), "step": checkpoint.iteration_count, "places": offered}

    # A branch begins at the edited or migrated copy of a checkpoint, so that copy is what its reader changes.
    known = course.checkpoints
    copies = {(each.metadata.get(FORKED_FROM), each.iteration_count): key for key, each in known.items()}
    frames = displayed_checkpoints(course)
    for place, key in enumerate(frames):
        while key is not None and key in known:
            frames[place] = key
            key = copies.get((key, known[key].iteration_count))
    shown = [key for key in dict.fromkeys(frames) if key is not None and key in course.checkpoints]
    checkpoints = {key: of(course.checkpoints[key]) for key in shown}
    return {
        "format": FORMAT,
        "most": MOST_ITEMS,
        "longest": LONGEST_VALUE,
        "frames": frames,
        "checkpoints": checkpoints,
        "places": [*map(json.loads, places)],
    }
