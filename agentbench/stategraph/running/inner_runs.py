"""Runs of inner graphs: the task around a run stores it, asks its questions, and continues it with the answers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from agentbench.stategraph.interrupts import QUESTIONS, BreakpointRequest, Continue, Interrupt, TaskQuestions, ask_all
from agentbench.stategraph.running.plan import GraphOptions, graph_options
from agentbench.workflows.engine.active_run import RunState
from agentbench.workflows.engine.event_log import EventLog
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.context import BlockingContext
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.nested import inner_log
from agentbench.workflows.persist.snapshot import Snapshot, restore, snapshot

_OF_THE_OUTER_CALL = ("interrupt_before", "interrupt_after", "checkpoint_id", "node_timeout")
"""Settings of a call that name nodes or checkpoints of the outer graph."""


def inherited_config(outer: GraphOptions) -> dict[str, Any]:
    """Return the part of a call's configuration that also applies to a graph inside one of its tasks."""
    return {key: value for key, value in outer.config.items() if key not in _OF_THE_OUTER_CALL}


async def stored_run(graph: Graph, run_state: RunState) -> dict[str, Any]:
    """Return a run in the form for the results of a task."""
    saved = await snapshot(graph, run_state)
    return {field.name: getattr(saved, field.name) for field in fields(saved)}


async def restore_run(
    graph: Graph, run_state: RunState, stored: Mapping[str, Any], prefix: str = ""
) -> dict[str, Any] | None:
    """Restore a run from its stored form, and return the answers to its questions; None if it has asked none.

    Raises:
        GraphInterrupt: Some of its questions have no answer yet.
    """
    await restore(graph, run_state, Snapshot(**stored))
    return answers_to(run_state, prefix) or None


def answers_to(run_state: RunState, prefix: str = "") -> dict[str, Any]:
    """Ask the questions of an inner run, and return the answers by the ids of its requests.

    The prefix distinguishes the questions from those of other runs in the same task.
    """
    asked = ask_all({f"{prefix}{key}": _question(request) for key, request in run_state.requests.items()})
    answers = {key.removeprefix(prefix): answer for key, answer in asked.items()}
    for key, answer in answers.items():
        if isinstance(run_state.requests[key].data, BreakpointRequest) and not isinstance(answer, Continue):
            answers[key] = Continue(answer if isinstance(answer, Mapping) else None)
    return answers


def _question(request: WorkflowEvent[Any]) -> dict[str, Any]:
    """Return a request of an inner run as arguments of `interrupt`."""
    asked = request.data
    if isinstance(asked, Interrupt):
        return {name: getattr(asked, name) for name in ("value", "message", "reason", "response_schema")}
    if isinstance(asked, BreakpointRequest):
        value = {"next": [*asked.next], "changed": [*asked.changed]}
        return {"value": value, "message": "; ".join(asked.reasons), "reason": "breakpoint"}
    return {"value": asked, "response_schema": request.response_type}


_CALLED = "graph "
"""The beginning of the keys in the results of a task under which the runs that it has called are stored."""


def drop_called_runs(done: dict[str, Any], stored: Mapping[str, Any]) -> None:
    """Remove the runs that a task has called since its results were stored: a retry may call them with other input."""
    for key in [key for key in done if key.startswith(_CALLED) and key not in stored]:
        del done[key]


class CalledRun:
    """A run of a graph that the code of a task calls; the calls of a task are distinguished by their order.

    On a named thread it is stored in the task even after its end, so that it is not repeated when the task runs again.
    """

    def __init__(self, questions: TaskQuestions) -> None:
        place = ":".join(part for part in (questions.scope, questions.tool_call_id) if part is not None)
        count = questions.called_graphs.get(place, 0)
        questions.called_graphs[place] = count + 1
        self.run_state = RunState()
        self.outer = graph_options(questions.ctx._run.options)  # noqa: SLF001 - the engine's side of the context
        self._done = questions.done
        self._prefix = f"{_CALLED}{count}:"
        self._key = f"{self._prefix}{place}"
        self._questions, self._count = questions, count

    @classmethod
    def find(cls) -> CalledRun | None:
        """Return a new run for a call of a graph here; None outside the tasks to which such runs belong."""
        questions = QUESTIONS.get()
        return cls(questions) if questions is not None and questions.owns_called_graphs else None

    @property
    def is_stored(self) -> bool:
        """Whether an earlier attempt at the task has begun the run."""
        return self._key in self._done

    @property
    def is_shown(self) -> bool:
        """Whether a stream of the outer graph shows the run."""
        return self.outer.call_record.shows_called

    def new_log(self) -> EventLog:
        """Return a log that reports the run to the outer one."""
        node, ctx = self._questions.node, self._questions.ctx
        loop = self._questions.loop or (ctx.loop if isinstance(ctx, BlockingContext) else None)
        return inner_log(ctx._run, node, lambda event: None, call=self._count, loop=loop)  # noqa: SLF001 - as above

    async def restore(self, graph: Graph) -> dict[str, Any] | None:
        """Restore the run from the task, and return the answers to its questions; see `restore_run`."""
        return await restore_run(graph, self.run_state, self._done[self._key], self._prefix)

    async def store(self, graph: Graph, error: BaseException | None) -> None:
        """Store the run in the task, if it has to continue there or the thread of the outer graph is saved anyway."""
        has_asked = self.is_stored or bool(self.run_state.requests)
        has_begun = error is None or bool(self.run_state.messages)
        if has_asked or (self.outer.is_named and has_begun):
            self._done[self._key] = await stored_run(graph, self.run_state)

    def require_answers(self) -> None:
        """Let the task ask the open questions of the run; `GraphInterrupt` if there are any."""
        answers_to(self.run_state, self._prefix)
