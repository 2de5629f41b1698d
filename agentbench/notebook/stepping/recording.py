"""A recorded run: the stepper page after each superstep, as plain data without duplicate parts."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agentbench._secrets import secrets_in
from agentbench._text.escape import esc
from agentbench._text.phrases import count_text
from agentbench._text.redact import hide_secrets, line_preview, question_of
from agentbench._text.value_tree import ValueTree
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.diff import CheckpointDiff, diff_checkpoints
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.notebook.graph.view import GraphView, draw
from agentbench.notebook.graph_panel.live import LOOKS, panel_note
from agentbench.notebook.history.activity import Activity, Element, course_of
from agentbench.notebook.history.log import LogLine, lines_of_report
from agentbench.notebook.history.run_history import BEGINNINGS, RunHistory
from agentbench.notebook.stepping.model.messages import RunFacts, StepEnded, StepperStatus
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.view.screen_state import SIGNS, ScreenState, screen_of, side_message, view_message
from agentbench.notebook.stepping.view.tabs import TABS, Sources, TabContent, content_of, split_displays
from agentbench.workflows.draw.shape import GraphShape
from agentbench.workflows.events.events import SuperstepCompletionInfo, WorkflowEvent, WorkflowRunState
from agentbench.workflows.executors.message import WORKFLOW_SOURCE
from agentbench.workflows.run.step_report import PlannedDelivery, StepReport

_FULL_LIMIT = 20_000  # characters of a text
_ABOVE_LIMIT = 200  # characters next to a value whose parts follow below
_ROWS = 2000  # maximum of a tab, approximately
_LEAST_ROWS = 20  # minimum of a level
_OF_VIEW = ("header", "status", "announcement", "banner")
_OF_SIDE = ("title", "facts", "changes", "displays")
_NOT_KNOWN = TabContent("The state is not known: this run saved no checkpoints", ValueTree())


@dataclass(frozen=True, kw_only=True)
class Course:
    """The supersteps that led to the current state of a run, and the run itself."""

    name: str
    """Name of the workflow."""
    shape: GraphShape
    reports: Sequence[StepReport]
    ancestors: Sequence[CheckpointInfo]
    """Checkpoints that led to the first superstep."""
    facts: RunFacts
    checkpoints: Mapping[str, WorkflowCheckpoint]
    """Checkpoints by id, without those that cannot be loaded."""
    times: bool
    """Whether to show durations."""


def reports_of(history: RunHistory) -> list[StepReport]:
    """Return the supersteps of a run in order of execution, including repeated ones."""
    supersteps: list[list[int]] = [[]]
    has_begun = False
    for place, event in enumerate(history.events):
        if has_begun and event.type in ("started", "superstep_started"):
            supersteps.append([])
            has_begun = False
        has_begun = has_begun or event.type in BEGINNINGS
        supersteps[-1].append(place)
    begun = supersteps if has_begun else supersteps[:-1]
    return [
        StepReport(history.numbers[places[-1]], [history.events[place] for place in places], None) for places in begun
    ]


def report_of_checkpoint(
    checkpoint: WorkflowCheckpoint, before: WorkflowCheckpoint | None, edges: Collection[tuple[str, str]]
) -> StepReport:
    """Reconstruct the report of a superstep without events from its checkpoint and the previous one."""
    info = CheckpointInfo.of(checkpoint)
    waiting = [] if before is None else [message for sent in before.messages.values() for message in sent]
    asked_before = {} if before is None else before.pending_request_info_events
    events: list[WorkflowEvent[Any]] = [WorkflowEvent.superstep_started(info.iteration)]
    for executor in info.writers:
        got = [
            message.data
            for message in waiting
            if message.target_id == executor or (message.target_id is None and (message.source_id, executor) in edges)
        ]
        events.append(WorkflowEvent.executor_invoked(executor, got[0] if len(got) == 1 else None))
    for executor in info.writers:
        sent = [message.data for message in checkpoint.messages.get(executor, ())]
        events.append(WorkflowEvent.executor_completed(executor, sent))
    requests = checkpoint.pending_request_info_events
    events += [request for request_id, request in requests.items() if request_id not in asked_before]
    if not info.n_messages:
        ended = WorkflowRunState.IDLE_WITH_PENDING_REQUESTS if requests else WorkflowRunState.IDLE
        events.append(WorkflowEvent.status(ended))
    return StepReport(
        info.iteration, events, None, SuperstepCompletionInfo(info, bool(info.n_messages), bool(requests))
    )


# --- the model, superstep by superstep --------------------------------------------------------------------------------


def _replay(course: Course) -> Iterator[StepperModel]:
    """Yield the model of a stepper at the start and after each of these supersteps."""
    edges = [(edge.source, edge.target) for edge in course.shape.edges]
    model = StepperModel(course.name, Activity([node.id for node in course.shape.nodes], edges))
    reports, now = course.reports, course.facts
    at = course.ancestors[-1].iteration if course.ancestors else -1
    planned = _deliveries_of(reports[0], (), edges) if reports else now.planned
    model.start(RunFacts(run_id=now.run_id, superstep=None if at < 0 else at, planned=planned), course.ancestors)
    yield model
    still_open = {request.request_id for request in now.requests}
    waiting: dict[str, Any] = {}
    saved: list[CheckpointInfo] = []
    for place, report in enumerate(reports):
        planned = model.facts.planned or _deliveries_of(report, (), edges)
        model.take_answer(replace(model.facts, status="IN_PROGRESS", requests=(), planned=planned))
        model.step()
        for event in report.events:
            model.see(event)
        for executor in report.invoked:  # an executor that waits for an answer and is called receives it
            mine = (key for key, request in waiting.items() if request.source_executor_id == executor)
            waiting.pop(next((key for key in mine if key not in still_open), ""), None)
        waiting |= {request.request_id: request for request in report.requests}
        saved += [] if report.checkpoint is None else [report.checkpoint]
        facts = replace(now, superstep=report.superstep, checkpoints=tuple(saved))
        if place < len(reports) - 1:
            states = [str(event.state) for event in report.events if event.type == "status"]
            status = states[-1] if states else "IN_PROGRESS"
            goes_on = status.startswith("IN_PROGRESS")
            planned = _deliveries_of(reports[place + 1], report.events, edges) if goes_on else ()
            requests = tuple(waiting.values())
            facts = replace(facts, status=status, planned=planned, requests=requests, error=None, pause_reason=None)
        model.end_step(StepEnded(report, facts))
        yield model


def displayed_checkpoints(course: Course) -> list[str | None]:
    """Return the id of the checkpoint that each frame of the page displays."""
    return [model.checkpoints.displayed_id for model in _replay(course)]


def _deliveries_of(
    report: StepReport, before: Sequence[WorkflowEvent[Any]], edges: Sequence[tuple[str, str]]
) -> Sequence[PlannedDelivery]:
    """Return the deliveries of a superstep from its events, and the senders from the previous events."""
    sent = {event.source_id for event in before if event.type == "executor_completed" and event.data}
    deliveries = []
    for order, (target, message) in enumerate(report.delivered):
        sources = tuple(source for source, to in edges if to == target and source in sent) or (WORKFLOW_SOURCE,)
        deliveries.append(PlannedDelivery(", ".join(sources), target, message, order, sources))
    return deliveries


# --- the displayed parts ----------------------------------------------------------------------------------------------


class _Parts:
    """Plain data without duplicate parts."""

    def __init__(self, secrets: Sequence[str]) -> None:
        self.secrets = secrets
        self.all: list[Any] = []
        self._places: dict[str, int] = {}

    def place(self, part: Any) -> int:
        """Return the index of a part; add it if it is new."""
        place = self._places.setdefault(json.dumps(part), len(self.all))
        if place == len(self.all):
            self.all.append(part)
        return place

    def place_of_level(self, tree: ValueTree, path: tuple[int, ...] = (), room: int = _ROWS) -> int:
        """Return the index of a level of values: the indexes of its rows, each with that of the level below it.

        `room` is divided among the rows that open, so that large and self-referencing values are cut off.
        """
        level = tree.level(path)
        rows = level.rows[: max(room, _LEAST_ROWS)]
        below = (room - len(rows)) // (1 + sum(row.opens for row in rows))
        places = []
        for number, row in enumerate(rows):
            here = (*path, number)
            opened = self.place_of_level(tree, here, below) if row.opens and below > 0 else None
            full = self.place(self.hide(tree.full_text(here))[:_FULL_LIMIT]) if row.cut else None
            text = self.hide(row.text) if opened is None else esc(self.hide(row.text), into="text", limit=_ABOVE_LIMIT)
            cells = (self.hide(row.name), row.kind, text, row.note, opened is not None, row.cut, 0)
            places.append(self.place((*cells, opened, full)))
        if missing := level.more + len(level.rows) - len(rows):
            places.append(self.place((f"… {missing:,} more are not in this file", "", "", "", False, False, 0)))
        return self.place(places)

    def place_of_tab(self, screen: ScreenState, content: TabContent) -> int:
        """Return the index of the content of a tab."""
        side = side_message(replace(screen, content=content))
        side["displays"] = [self.place(self.hide(display)) for display in content.displays]
        side_parts = {name: self.hide(side[name]) for name in _OF_SIDE}
        return self.place(side_parts | {"rows": self.place_of_level(content.tree)})

    def hide(self, part: Any) -> Any:
        """Return a copy of texts in which the secrets of the run are masked."""
        return hide_secrets(part, self.secrets)


def record(course: Course) -> dict[str, Any]:
    """Return the data of a saved run's page: graph, log, parts, and a frame per superstep that refers to parts."""
    values: list[object] = [event.data for report in course.reports for event in report.events]
    values += [request.data for request in course.facts.requests]
    values += [part for checkpoint in course.checkpoints.values() for part in (checkpoint.state, checkpoint.messages)]
    parts = _Parts(secrets_in(values))
    picture = draw(course.shape)
    nodes_drawn = picture.shape.node_of
    history = RunHistory(events=[event for report in course.reports for event in report.events])
    folded = {step.number: step.state for step in history.supersteps}
    is_known = bool(course.checkpoints) or all(event.seq is not None for event in history.events)
    frames: list[dict[str, Any]] = []
    asks = bool(course.facts.requests) or any(report.requests for report in course.reports)
    log: list[LogLine] = []
    states: dict[Element, str] = {}
    nodes: dict[str, int] = {}
    busy: set[str | None] = set()
    for model in _replay(course):
        screen = _screen(model, course)
        view = view_message(screen)
        log += screen.log[len(screen.log) - screen.log_total + len(log) :]
        badges = screen.badges
        before, states = states, course_of([states], model.states)
        painted = replace(picture, states=states).element_states
        sources = Sources(
            course.shape,
            _state(model, course, folded),
            checkpoint=course.checkpoints.get(model.checkpoints.displayed_id or "")
            if model.checkpoints.at_input
            else None,
            events=model.reports[-1].events if model.reports else (),
            difference=_difference(model, course),
            times=course.times,
            states=states,
        )
        tabs = {name: content_of(name, model, sources) for name, _ in TABS}
        if asks:
            tabs["request"] = _requests(model)
        if not is_known:
            tabs["state"] = _NOT_KNOWN
        was_busy, busy = busy, {event.source_id for event in sources.events}
        busy.update(planned.target for planned in model.facts.planned)
        for element, node in nodes_drawn.items():  # only new states, because a run may be long
            is_new = node.id in busy or node.id in was_busy or states.get(node.id) != before.get(node.id)
            if is_new or not frames:
                content = content_of("node", model, replace(sources, selected=node.id))
                nodes[element] = parts.place_of_tab(screen, content)
        frames.append(
            {
                "label": screen.header.superstep,
                "view": parts.place({name: view[name] for name in _OF_VIEW} | {"banner": parts.hide(view["banner"])}),
                "states": parts.place(painted),
                "badges": parts.place({key: badges[node.id] for key, node in nodes_drawn.items() if node.id in badges}),
                "tabs": {name: parts.place_of_tab(screen, content) for name, content in tabs.items()},
                "nodes": dict(nodes),
                "total": len(log),
            }
        )
    return {
        "graph": _graph(picture),
        "tabs": [*TABS, ("request", "Request")] if asks else TABS,
        "tab": "request" if course.facts.requests else "state",
        "parts": parts.all,
        "frames": frames,
        "log": [(line.kind, parts.hide(line.text)) for line in log],
    }


def _graph(picture: GraphView) -> dict[str, Any]:
    """Return the constant traits of the graph's panel."""
    name = esc(picture.shape.name, into="line", limit=80)
    return {
        "svg": picture.live_svg,
        "label": f"Graph of {name}. Arrow keys move between nodes, Enter selects.",
        "note": panel_note(picture.shape),
        "looks": LOOKS,
    }


def _screen(model: StepperModel, course: Course) -> ScreenState:
    """Return the screen of a model without controls, because the run cannot be continued."""
    screen = screen_of(model, times=course.times)
    if model.status is StepperStatus.WAITING:
        questions = [
            f"{esc(request.source_executor_id, into='line', limit=60)} asks: {line_preview(request.data, 400)}"
            for request in model.facts.requests
        ]
        return replace(screen, banner=replace(screen.banner, text="; ".join(questions)))
    if model.status is StepperStatus.FAILED:
        lines = [line for report in model.reports[-1:] for line in lines_of_report(report)]
        errors = [line.text for line in lines if line.kind == "error"]
        error = model.facts.error
        text = "; ".join(errors) or f"The run failed: {type(error).__name__}: {esc(error, into='line', limit=400)}"
        return replace(screen, banner=replace(screen.banner, text=text))
    if model.status is StepperStatus.CANCELLED:
        return replace(screen, banner=replace(screen.banner, text="The run was stopped."))
    if model.status is StepperStatus.PAUSED and len(model.reports) < len(course.reports):  # not paused by a person
        header = replace(screen.header, sign=SIGNS[StepperStatus.RUNNING], status="in progress")
        words = f"{header.superstep}, {header.status}"
        return replace(screen, header=header, status=StepperStatus.RUNNING, announcement=words)
    return screen


def _requests(model: StepperModel) -> TabContent:
    """Return the open requests, each with the display of its payload."""
    requests = model.facts.requests
    questions = [
        (f"{esc(request.source_executor_id, into='line', limit=60)} asks", question_of(request.data))
        for request in requests
    ]
    displays, entries = split_displays(questions)
    return TabContent(
        count_text(len(questions), "request") if questions else "No request", ValueTree(entries), displays=displays
    )


def _state(model: StepperModel, course: Course, folded: Mapping[int, Mapping[str, Any]]) -> Mapping[str, Any]:
    """Return the shared state of the displayed checkpoint; without one, that of the events."""
    checkpoint = course.checkpoints.get(model.checkpoints.displayed_id or "")
    if checkpoint is not None:
        return checkpoint.state
    return folded.get(model.reports[-1].superstep, {}) if model.reports else {}


def _difference(model: StepperModel, course: Course) -> CheckpointDiff | None:
    """Return the difference between the displayed checkpoint and the previous one."""
    pair = [
        course.checkpoints[checkpoint_id]
        for checkpoint_id in model.checkpoints.compared_ids
        if checkpoint_id in course.checkpoints
    ]
    return diff_checkpoints(*pair) if len(pair) == 2 else None
