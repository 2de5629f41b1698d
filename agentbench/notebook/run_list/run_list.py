"""`runs()`: a table of the past runs in a storage, which opens them in a stepper or for reading."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, run_name, state_text
from agentbench.checkpoints.access import load_checkpoint
from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.manager import require_storage
from agentbench.exceptions import AgentFrameworkException, WidgetsUnavailable
from agentbench.notebook.cards.checkpoint import checkpoint_bundle
from agentbench.notebook.frames.runs import status_of
from agentbench.notebook.history.sources import Chosen, read_infos, run_on_engine
from agentbench.notebook.look.html import Page, Table
from agentbench.notebook.runtime.stand_in import StandIn, WidgetDisplay, needs_widgets
from agentbench.notebook.stepping.start import stepper
from agentbench.notebook.stepping.stepper import Stepper
from agentbench.stategraph.compiled import CompiledGraph
from agentbench.workflows.run.workflow import Workflow

_HEAD = ("chain", "run", "started", "supersteps", "status", "questions")
_MOST = 200


def runs(storage: Any, workflow: Workflow | CompiledGraph[Any] | None = None) -> RunList:
    """Return a table of the runs in a storage, the latest first. A click opens a run; nothing is executed.

    Args:
        storage: The storage with the checkpoints of the runs.
        workflow: The workflow or compiled graph whose runs open in a stepper, which can continue them. Runs of other
            graphs open for reading; without `workflow`, all runs do.

    Raises:
        TypeError: `storage` is not a storage, or `workflow` is not a workflow.

    Example:
        past = runs(FileCheckpointStorage("runs"), workflow)
        past  # the table
        panel = past.open(past.rows[0].run_id)
    """
    return RunList(storage, workflow)


@dataclass(frozen=True)
class PastRun:
    """One run in a storage, described by its checkpoints.

    Attributes:
        run_id: The id of the run.
        chain: The chain of its checkpoints: the name of a workflow or of a graph's thread.
        started: Time of its first checkpoint: ISO 8601, UTC.
        supersteps: Number of supersteps with a checkpoint.
        status: Its state in words. A run with queued messages is `unfinished`: running, failed or interrupted.
        open_questions: Number of open requests in its last checkpoint.
        last: The last checkpoint.

    Example:
        from agentbench.notebook import runs

        for past in runs(storage).rows:
            print(past.run_id, past.supersteps)
    """

    run_id: str
    chain: str
    started: str
    supersteps: int
    status: str
    open_questions: int
    last: CheckpointInfo

    @property
    def cells(self) -> tuple[str, ...]:
        """The cells of the row."""
        started = f"{self.started[:10]} {self.started[11:16]}"
        questions = str(self.open_questions) if self.open_questions else ""
        return (
            self.chain,
            run_name(self.run_id).removeprefix("run "),
            started,
            str(self.supersteps),
            self.status,
            questions,
        )


class RunList(WidgetDisplay):
    """The runs in a storage as a table; made by `runs`. `refresh` reads them again, `close` frees the panel.

    Raises:
        KeyError: By `open`, for a run that is not in the table.

    Example:
        past = runs(storage, workflow)
        print(past.text)
        past.open(past.rows[0].run_id)
    """

    def __init__(self, storage: Any, workflow: Workflow | CompiledGraph[Any] | None = None) -> None:
        engine_workflow: Any = workflow.workflow if isinstance(workflow, CompiledGraph) else workflow
        self.workflow: Workflow | None = engine_workflow
        if engine_workflow is not None and not isinstance(engine_workflow, Workflow):
            msg = f"workflow= is a workflow or a compiled graph, not {type(workflow).__name__}."
            raise TypeError(msg)
        self.storage = require_storage(storage)
        self.rows: list[PastRun] = []
        self._panel: Any = None
        self._box: Any = None
        self._opened: Any = None
        self._stand_in = StandIn(self, lambda: self._card.bundle())
        self.refresh()

    def refresh(self) -> None:
        """Read the runs again and update the table."""
        written: dict[str, list[CheckpointInfo]] = {}
        for info in read_infos(self.storage, Chosen()).rows:
            if info.run_id is not None and info.forked_from is None:  # a fork copies earlier checkpoints
                written.setdefault(info.run_id, []).append(info)
        past_runs = [_past_run(run_id, infos) for run_id, infos in written.items()]
        self.rows = sorted(past_runs, key=lambda each: each.started, reverse=True)
        if self._panel is not None:
            self._panel.send(self._table())

    def open(self, run_id: str) -> Stepper | WorkflowCheckpoint:
        """Return a stepper at the end of a run if `workflow` has its graph, otherwise its last checkpoint."""
        row = next((each for each in self.rows if each.run_id == run_id), None)
        if row is None:
            msg = f"There is no run {run_id!r}. Runs: {', '.join(each.run_id for each in self.rows[:20]) or 'none'}."
            raise KeyError(msg)
        if self._matches(row):
            return stepper(self.workflow, storage=self.storage, checkpoint=row.last)
        return run_on_engine(load_checkpoint(self.storage, row.last), self.storage)

    def _matches(self, row: PastRun) -> bool:
        return self.workflow is not None and row.last.graph_signature_hash == self.workflow.graph.signature_hash

    # ---- display ----------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The table as plain text."""
        return self._card.text()

    @property
    def _card(self) -> Page:
        rows = [each.cells for each in self.rows[:_MOST]]
        return Page("Runs", facts=[count_text(len(self.rows), "run")], tables=[Table("Runs", _HEAD, rows)])

    @property
    def widget(self) -> Any:
        """The table as an ipywidget, created once.

        Raises:
            WidgetsUnavailable: ipywidgets or anywidget is missing.
        """
        if self._box is None:
            with needs_widgets("print(runs.text) and runs.open(...) work without widgets"):
                import ipywidgets

                from agentbench.notebook.run_list.page import RunListPanel
            self._panel = RunListPanel(self._on_message, name="Runs")
            self._box = ipywidgets.VBox([self._panel])
        return self._box

    def _table(self) -> dict[str, Any]:
        rows = [
            {
                "id": each.run_id,
                "cells": [esc(cell, into="line", limit=80) for cell in each.cells],
                "opens": "stepper" if self._matches(each) else "view",
                "asks": bool(each.open_questions),
            }
            for each in self.rows[:_MOST]
        ]
        return {"kind": "runs", "head": _HEAD, "rows": rows, "hidden": max(0, len(self.rows) - _MOST)}

    def _on_message(self, message: dict[str, Any]) -> None:
        if message["kind"] == "ready":
            self._panel.send(self._table() | {"view": message.get("view")})
        elif message["kind"] == "refresh":
            self.refresh()
        elif message["kind"] == "open" and any(each.run_id == message.get("id") for each in self.rows):
            self._show(message["id"])

    def _show(self, run_id: str) -> None:
        """Show a run below the table, replacing the previous one."""
        self._close_opened()
        view = {"kind": "view", "id": run_id, "html": "", "problem": ""}
        try:
            opened = self.open(run_id)
        except AgentFrameworkException as error:
            view["problem"] = esc(str(error), into="line", limit=400)
        else:
            if isinstance(opened, Stepper):
                self._opened = opened
                self._box.children = [self._panel, opened.widget]
            else:
                view["html"] = checkpoint_bundle(opened)["text/html"]
        self._panel.send(view)

    def _close_opened(self) -> None:
        opened, self._opened = self._opened, None
        if opened is not None:
            self._box.children = [self._panel]
            opened.close()

    def close(self) -> None:
        """Free the panel and the opened stepper. May be called twice."""
        from agentbench.notebook.runtime.widgets import close_all

        if self._box is None:
            return
        self._stand_in.close()
        self._close_opened()
        close_all(self._box)
        self._box = self._panel = None

    def _bundle_without_widgets(self, error: WidgetsUnavailable) -> dict[str, Any]:
        return {**self._card.bundle(), "text/plain": f"{self.text}\n{error}"}

    def __repr__(self) -> str:
        return f"RunList({count_text(len(self.rows), 'run')})"


def _past_run(run_id: str, infos: list[CheckpointInfo]) -> PastRun:
    first, last = infos[0], infos[-1]
    status = status_of(last)
    return PastRun(
        run_id=run_id,
        chain=last.workflow_name,
        started=first.timestamp,
        supersteps=len({info.iteration for info in infos}),
        status="unfinished" if status is None else state_text(status),
        open_questions=last.n_requests,
        last=last,
    )
