"""`stepper()` makes a `Stepper` from a workflow, an input or a checkpoint, and options."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any, cast

from agentbench._clock import Clock, IdSource
from agentbench.agents.clients.cassette.recording import ModelRecording
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.manager import CheckpointManager, bare_storage
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.notebook.stepping.model.break_places import Where
from agentbench.notebook.stepping.options import Layout, Loop, Options, kernel_loop
from agentbench.notebook.stepping.stepper import Stepper
from agentbench.stategraph.compiled import CompiledGraph
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.persist.migration import migrate_checkpoint
from agentbench.workflows.run.run import WorkflowRun
from agentbench.workflows.run.workflow import Workflow


def stepper(  # noqa: PLR0913 - published signature
    workflow: Any,
    input: Any = None,  # noqa: A002 - published signature
    config: Mapping[str, Any] | None = None,
    *,
    context: Any = None,
    storage: CheckpointStorage | CheckpointManager | None = None,
    checkpoint: CheckpointInfo | str | None = None,
    breakpoints: Where | Iterable[Where] = (),
    layout: Layout = "auto",
    height: int = 420,
    loop: Loop | None = None,
    name: str | None = None,
    max_supersteps: int = 1000,
    autosave: bool = True,
    force: bool = False,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    options: RunOptions | None = None,
) -> Stepper:
    """Make a stepper for a run of a workflow: a panel with the graph, buttons, state and log. Nothing is executed yet.

    Args:
        workflow: The workflow, or a compiled state graph. A stepper that already drives this instance is closed: an
            instance runs once at a time.
        input: Message for the start executors; for a state graph, the argument of `invoke`.
        config: For a state graph, the config of `invoke`: `thread_id` and other settings of the run.
        context: For a state graph, the context of `invoke`.
        storage: Checkpoint storage; by default the workflow's own, otherwise one in memory, so that Back works.
            A state graph always uses its own.
        checkpoint: Resume from this checkpoint instead of starting with `input`.
        breakpoints: Where the run pauses: one place or several, each a `where` of `Stepper.break_at`.
        layout: `auto` stacks the parts on narrow pages, `wide` never does, `stacked` always does; `graph` omits the
            tabs, `minimal` has only header and controls.
        height: Height of graph and tabs in pixels.
        loop: `engine`, or `kernel` for workflows that hold objects bound to the notebook's loop; then the run
            waits while a cell runs. By default the setting `configure(loop=)`.
        name: Name in the header. A new stepper of the same name closes the old one.
        max_supersteps: A run pauses after this number of supersteps.
        autosave: Whether `arun` ends with a new picture, so that the saved notebook is readable without a kernel.
        force: Accept a checkpoint of another graph. A copy is adapted to this graph and saved: values without a place
            in this graph are dropped, with a line in the log. The original does not change.
        clock: Source of the run's times.
        ids: Source of the run's ids.
        options: Further options of the run, instead of `clock` and `ids`. By default the requests and answers of models
            that are not offline are recorded, see `RunOptions.record`.

    Raises:
        ValueError: Neither `input` nor `checkpoint` is passed, a breakpoint names no executor, or `layout`, `loop` or
            `max_supersteps` is not one of the possible values.
        GraphMismatchError: The checkpoint belongs to another graph; `differences` says how they differ.
        WorkflowCheckpointException: The checkpoint cannot be loaded.
        TypeError: `workflow` is neither a workflow nor a compiled state graph.

    Example:
        panel = stepper(workflow, "hello", breakpoints=["review"])
        panel.run()
    """
    if input is None and checkpoint is None and not isinstance(workflow, CompiledGraph):
        msg = "stepper() needs an input or a checkpoint. Pass input=, or checkpoint= with a checkpoint's id."
        raise ValueError(msg)
    chosen = Options(name, layout, height, kernel_loop(loop), max_supersteps, autosave)
    given_storage = bare_storage(storage, "storage")
    graph = workflow if isinstance(workflow, CompiledGraph) else None
    if graph is not None:
        workflow, given_storage = graph.workflow, graph.storage
    elif given_storage is None and isinstance(workflow, Workflow):
        given_storage = workflow.storage
    target = InMemoryCheckpointStorage() if given_storage is None else given_storage
    options = options or RunOptions(clock=clock, ids=ids)
    if options.record is None:
        options = replace(options, record=ModelRecording(everything=False, limit=options.record_limit))

    async def start(note_down: Callable[[str], object]) -> WorkflowRun:
        if graph is not None:
            return await graph.astart(input, config, context=context, record=options.record)
        begin = checkpoint
        if force and checkpoint is not None:
            begin, left_out = await migrate_checkpoint(
                target, checkpoint, workflow.graph, clock=options.clock, ids=options.ids
            )
            for line in left_out:
                note_down(line)
        run: WorkflowRun = workflow.start(input, checkpoint_storage=target, resume_from=begin, options=options)
        return run

    is_one = isinstance(breakpoints, (str, int, type)) or callable(breakpoints)
    places = cast("Iterable[Where]", (breakpoints,) if is_one else breakpoints)
    return Stepper(workflow, start, chosen, storage=target, breakpoints=places)
