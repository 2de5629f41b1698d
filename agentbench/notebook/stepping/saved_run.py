"""A run saved as one file: a stepper page without a kernel, to step back and forth in."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import json
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path
from string import Template
from typing import Any

from agentbench._clock import iso_utc
from agentbench._text.escape import esc
from agentbench._text.phrases import workflow_name
from agentbench.checkpoints.access import load_checkpoint
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo, writers_of
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import WorkflowCheckpointException
from agentbench.notebook.history.sources import read_runs, run_on_engine
from agentbench.notebook.look.html import shorten
from agentbench.notebook.look.style import live_style, read_script
from agentbench.notebook.runtime import settings
from agentbench.notebook.stepping.answering import answer_html, require_site
from agentbench.notebook.stepping.driven_run import ancestors_of, input_checkpoint
from agentbench.notebook.stepping.model.messages import INPUT, INPUT_POSITION, RunFacts
from agentbench.notebook.stepping.page import SCRIPT, STYLE
from agentbench.notebook.stepping.recording import Course, record, report_of_checkpoint, reports_of
from agentbench.notebook.stepping.session import StepperSession
from agentbench.workflows.draw.shape import read_shape
from agentbench.workflows.run.execution import ABSENT
from agentbench.workflows.run.first_input import read_input
from agentbench.workflows.run.run import WorkflowRun
from agentbench.workflows.run.step_report import StepReport


def save_run(run: WorkflowRun, path: str | Path, editable: bool = False, site: str | None = None) -> Path:
    """Write the page of a run; `WorkflowRun.save` documents it."""
    require_site(site, editable=editable)
    infos = run.checkpoints
    if run.started_from is not None and run.storage is not None:
        infos = [*run_on_engine(ancestors_of(run.storage, run.started_from), run.storage), *infos]
    facts = RunFacts(
        run_id=run.run_id,
        status=str(run.status),
        superstep=run.superstep,
        requests=tuple(run.pending_requests),
        planned=() if run.is_over else run.plan_without_conditions(),
        error=run.error,
        pause_reason=run.pause_reason,
    )
    reports: list[StepReport] = []
    ancestor: WorkflowRun | None = run
    while ancestor is not None:
        reports = [*reports_of(read_runs(ancestor)[-1]), *reports]
        ancestor = ancestor.origin
    return _write(_page(_course(run.workflow, reports, facts, infos, run.storage), editable=editable, site=site), path)


def save_stepper(
    session: StepperSession, workflow: Any, path: str | Path, *, editable: bool = False, site: str | None = None
) -> Path:
    """Write the page of a stepper, with the supersteps that led to its current state."""
    return _write(stepper_page(session, workflow, editable=editable, site=site), path)


def stepper_page(session: StepperSession, workflow: Any, *, editable: bool = False, site: str | None = None) -> str:
    """Return the content of the page that `save_stepper` writes."""
    require_site(site, editable=editable)
    with session.reading() as model:
        reports, facts = [*session.earlier, *model.reports], model.facts
        infos = model.checkpoints.saved
    return _page(_course(workflow, reports, facts, infos, session.storage), editable=editable, site=site)


def _write(page: str, path: str | Path) -> Path:
    path = Path(path)
    path.write_text(page, encoding="utf-8", newline="\n")
    return path


def _course(
    workflow: Any,
    reports: Sequence[StepReport],
    facts: RunFacts,
    infos: Sequence[CheckpointInfo],
    storage: CheckpointStorage | None,
) -> Course:
    """Return the supersteps that led to the current state; `infos` are its checkpoints, oldest first."""
    reports = _without_undone(reports, infos)
    saved = [report.checkpoint for report in reports if report.checkpoint is not None]
    ancestors = list(takewhile(lambda info: info not in saved, infos))
    copies = [info for info in infos if info.forked_from is not None and info not in ancestors]
    checkpoints = {} if storage is None else run_on_engine(_load(storage, [*ancestors, *saved, *copies]), storage)
    shape = read_shape(workflow)
    edges = {(edge.source, edge.target) for edge in shape.edges}
    # A superstep without events is read from its checkpoints; the first one is where the stored chain begins.
    begins = 1 if ancestors and ancestors[0].previous_checkpoint_id is not None else 0
    loaded = [checkpoints.get(info.checkpoint_id) for info in ancestors]
    earlier = [
        report_of_checkpoint(checkpoint, before, edges)
        for checkpoint, before in zip(loaded[begins:], [None, *loaded][begins:], strict=False)
        if checkpoint is not None and writers_of(checkpoint.metadata)
    ]
    begins_after = ancestors[:begins] if earlier else ancestors
    message = read_input(infos[0].metadata) if infos and not begins_after else ABSENT
    if message is not ABSENT:
        begins_after, checkpoints[INPUT] = [INPUT_POSITION], input_checkpoint(message)
    return Course(
        name=workflow_name(workflow),
        shape=shape,
        reports=[*earlier, *reports],
        ancestors=begins_after,
        facts=facts,
        checkpoints=checkpoints,
        times=not settings.current().deterministic,
    )


def _without_undone(reports: Sequence[StepReport], infos: Sequence[CheckpointInfo]) -> list[StepReport]:
    """Omit supersteps that were undone by going back to an earlier checkpoint; a failed one has no checkpoint."""
    remaining: list[StepReport] = []
    before: StepReport | None = None
    for report in reports:
        follows = before is None or remaining[-1:] == [before]
        if report.checkpoint in infos or (report.checkpoint is None and follows):
            remaining.append(report)
        before = report
    return remaining


async def _load(storage: CheckpointStorage, infos: Sequence[CheckpointInfo]) -> dict[str, WorkflowCheckpoint]:
    checkpoints = {}
    for info in infos:
        with contextlib.suppress(WorkflowCheckpointException):  # then its state is not displayed
            checkpoints[info.checkpoint_id] = await load_checkpoint(storage, info)
    return checkpoints


def _page(course: Course, *, editable: bool, site: str | None) -> str:
    name = esc(course.name, limit=80)
    at_ns = next((event.time_ns for report in course.reports for event in report.events), None)
    when = f", {shorten(iso_utc(at_ns))}" if at_ns is not None and course.times else ""
    parts = [("stepper", SCRIPT), ("graph", read_script("svg.js", "graph_panel.js"))]
    parts += [("answer", read_script("saved_answer.js"))] if editable else []
    modules = [f"const {variable} = (() => {{\n{text}\n}})();" for variable, text in parts]
    script = "\n".join([*modules, read_script("saved_run.js")]).replace("export default", "return")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    return Template(read_script("saved_run.html")).substitute(
        title=f"{name}: a saved run",
        caption=f"A saved run of {name}{when}.",
        style=f"{STYLE}\n{live_style()}",
        hash=f"sha256-{digest}",
        run=json.dumps(record(course)).replace("<", "\\u003c"),
        script=script,
        answer=answer_html(course, site) if editable else "",
    )
