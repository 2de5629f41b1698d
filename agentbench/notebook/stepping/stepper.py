"""The stepper: a run in a notebook, one superstep at a time, forward, back and sideways.

Everything that a button does can be done by code, also in cells that nbval compares:

    panel = stepper(workflow, "hello")      # the last expression of a cell shows it
    panel.step()                            # one superstep; its report
    panel.respond(panel.pending[0], True)
    await panel.arun()                      # to the end, waiting for a person at each request
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, get_args

from agentbench import _bridge
from agentbench._clock import Clock, IdSource
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.manager import CheckpointManager, bare_storage
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import StepperStateError, WidgetsUnavailable
from agentbench.notebook.graph.shape import read_shape
from agentbench.notebook.history.activity import Activity
from agentbench.notebook.runtime import settings
from agentbench.notebook.runtime.kernel import in_kernel, show_in_cell
from agentbench.notebook.runtime.listeners import StepperListeners, Unsubscribe
from agentbench.notebook.runtime.waiting import wait
from agentbench.notebook.stepping.model.messages import (
    USUAL_LIMIT,
    CloseRequested,
    PauseRequested,
    RunRequested,
    StepperStatus,
    StepRequested,
    StopRequested,
    Until,
)
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.open_steppers import close_older, register
from agentbench.notebook.stepping.screen import Layout, StepperScreen
from agentbench.notebook.stepping.session import Start, StepperSession
from agentbench.notebook.stepping.travel import StepperTravel, require_count, require_speed
from agentbench.notebook.text.escape import esc
from agentbench.notebook.text.phrases import workflow_name
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.persist.migration import migrate_checkpoint
from agentbench.workflows.run.break_places import Where
from agentbench.workflows.run.execution import id_of_request
from agentbench.workflows.run.report import StepReport
from agentbench.workflows.run.run import WorkflowRun
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from agentbench.notebook.graph.view import GraphView

__all__ = ["Stepper", "stepper"]

Loop = Literal["engine", "kernel"]


def stepper(  # noqa: PLR0913 - published signature
    workflow: Any,
    input: Any = None,  # noqa: A002 - published signature
    *,
    storage: CheckpointStorage | CheckpointManager | None = None,
    checkpoint: CheckpointInfo | str | None = None,
    breakpoints: Where | Iterable[Where] = (),
    layout: Layout = "auto",
    height: int = 420,
    loop: Loop | None = None,
    name: str | None = None,
    max_supersteps: int = USUAL_LIMIT,
    autosave: bool = True,
    force: bool = False,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    options: RunOptions | None = None,
) -> Stepper:
    """Make a stepper for a run of a workflow: a panel with the graph, buttons, state and log. Nothing is executed yet.

    Args:
        workflow: The workflow. A stepper that already drives this instance is closed: an instance runs once at a time.
        input: Message for the start executors.
        storage: Where checkpoints go; by default the workflow's own storage, else one in memory, so that Back works.
        checkpoint: Go on from this checkpoint instead of starting afresh.
        breakpoints: Where the run is to pause: one place, or several, each as `Stepper.break_at` takes it.
        layout: `auto` stacks on narrow pages, `wide` never, `stacked` always; `graph` leaves out the tabs, `minimal`
            has header and controls only.
        height: Of graph and tabs, in pixels.
        loop: `engine`, or `kernel` for workflows that hold objects bound to the notebook's loop; nothing moves then
            while a cell runs. By default the setting `configure(loop=)`.
        name: Text of the header. A new stepper of the same name closes the old one.
        max_supersteps: After so many a run pauses.
        autosave: Whether `arun` ends with a static picture, for notebooks that are read without a kernel.
        force: Go on from a checkpoint of another graph too. A copy is fitted to this graph and saved beside it: what
            this graph has no place for is left out, with a line in the log. The original stays as it is.
        clock: Source of times of this run.
        ids: Source of ids of this run.
        options: Further options of the run, in place of `clock` and `ids`.

    Raises:
        ValueError: Neither `input` nor `checkpoint` is passed, a breakpoint names no executor, or `layout`, `loop` or
            `max_supersteps` is not one of the possible values.
        GraphMismatchError: The checkpoint belongs to another graph; `differences` says how they differ.
        WorkflowCheckpointException: The checkpoint cannot be loaded.
        TypeError: `workflow` is no workflow.

    Example:
        panel = stepper(workflow, "hello", breakpoints=["review"])
        panel.run()
    """
    most = require_count(max_supersteps, "max_supersteps", "1 or more")
    how = _How(name, layout, height, _kernel_loop(loop), most, autosave)
    if layout not in get_args(Layout):
        msg = f"layout={layout!r} is not possible. Choose one of {', '.join(get_args(Layout))}."
        raise ValueError(msg)
    target = _storage_for(workflow, storage)
    options = options or RunOptions(clock=clock, ids=ids)

    async def start(note_down: Callable[[str], object]) -> WorkflowRun:
        begin = checkpoint
        if force and checkpoint is not None:
            begin, left_out = await migrate_checkpoint(
                target, checkpoint, workflow.graph, clock=options.clock, ids=options.ids
            )
            for line in left_out:
                note_down(line)
        run: WorkflowRun = workflow.start(input, checkpoint_storage=target, resume_from=begin, options=options)
        return run

    return Stepper(workflow, start, how, storage=target, breakpoints=breakpoints)


def _storage_for(workflow: Any, storage: CheckpointStorage | CheckpointManager | None) -> CheckpointStorage:
    found = bare_storage(storage, "storage")
    if found is None and isinstance(workflow, Workflow):
        found = workflow.storage
    return InMemoryCheckpointStorage() if found is None else found


@dataclass(frozen=True, slots=True)
class _How:
    """Options of a stepper that do not depend on the workflow."""

    name: str | None
    layout: Layout
    height: int
    loop: asyncio.AbstractEventLoop | None
    limit: int
    autosave: bool
    shows_itself: bool = True  # not for forks: a loop over many of them would fill the cell with panels


class Stepper(StepperTravel):
    """A run that a person steps, in a panel and by code alike; made by `stepper`, which documents the arguments.

    The last expression of a cell displays the panel. Every call that waits has a twin that is awaited, named with `a`:
    `step` and `astep`. Calls raise `StepperStateError` when the run's `status` does not allow them (`allowed` lists
    those that it does), and `StepperClosed` after `close`.

    Attributes:
        name: Text of the header.
        workflow: The workflow being stepped.

    Example:
        panel = stepper(workflow, "hello")
        report = panel.step()  # one superstep
        panel.run()  # to the end, a breakpoint or a request
        if panel.pending:
            panel.respond(panel.pending[0], True)
        panel.back()  # display the checkpoint before; step() goes on from there as a new run
    """

    def __init__(
        self,
        workflow: Any,
        start: Start,
        how: _How,
        *,
        storage: CheckpointStorage,
        breakpoints: Where | Iterable[Where] = (),
    ) -> None:
        shape = read_shape(workflow)
        self.name = how.name or workflow_name(workflow)
        self.workflow = workflow
        self._how = how
        activity = Activity([node.id for node in shape.nodes], [(edge.source, edge.target) for edge in shape.edges])
        self._listeners = StepperListeners(lambda line: self._session.note_down(line))
        self._session = StepperSession(
            StepperModel(self.name, activity),
            storage,
            loop=how.loop,
            on_change=lambda: self._screen.touch(),
            on_event=self._listeners.emit,
        )
        self._screen = StepperScreen(self._session, workflow, layout=how.layout, height=how.height, limit=how.limit)
        for where in _places(breakpoints):
            self._session.break_at(where)
        close_older(workflow, how.name)
        self._opening = self._session.start(self._session.open(start))
        self._wait_if_possible(self._opening)
        register(self, how.name)

    @property
    def max_supersteps(self) -> int:
        """The most supersteps of one `run()`; the run pauses after them."""
        return self._how.limit

    # ---- stepping and running ----------------------------------------------------------------------------------------

    def step(self, n: int = 1) -> StepReport:
        """Take one superstep, with all of its executors; or `n`, or fewer if the run ends before.

        While an earlier checkpoint is displayed, a new run goes on from there; the old one stays stored. After a
        failure the superstep is taken again from the last checkpoint.

        Returns:
            The report of the last superstep. An executor that raised is in its `failures`, and in `error`.

        Raises:
            StepperStateError: Not possible now: the run is over, or waits for a person with nothing queued.
            StepperClosed: The stepper was closed.
            NestedLoopError: On the engine thread, in a listener added by `on`; use `await stepper.astep()`.
        """
        return self._last_report(self._wait_for(_steps(n), "stepper.astep"))

    async def astep(self, n: int = 1) -> StepReport:
        """As `step`, for cells that await."""
        return self._last_report(await self._await(_steps(n)))

    def run(self, *, until: Until | None = None, speed: float | None = None) -> StepperStatus:
        """Take supersteps until the run is over, waits for a person, or pauses.

        It never waits for a person: no click could reach a blocked kernel. It returns with status `waiting` and shows
        the panel with the form, except for a fork whose panel is not displayed; `arun` waits.

        Args:
            until: When to stop before the end: the number of the superstep after which; `request`, when a person has
                to answer; `breakpoint`, at the next one; or a predicate on a report. Breakpoints pause the run with
                any `until`.
            speed: Supersteps a second, for demonstrations; as fast as possible by default.

        Raises:
            StepperStateError: Not possible now.
            StepperClosed: The stepper was closed.
            NestedLoopError: On the engine thread; use `await stepper.arun()`.
        """
        self._wait_for(self._run_request(until, speed), "stepper.arun")
        hidden = self._how.shows_itself and not self._screen.displayed
        if self.status is StepperStatus.WAITING and hidden and in_kernel():
            self.show()
        return self.status

    async def arun(self, *, until: Until | None = None, speed: float | None = None) -> StepperStatus:
        """As `run`, but wait for the answer to each request and go on. The stop button ends it."""
        await self._await(self._run_request(until, speed, through=True), through=True)
        if self._how.autosave and self._screen.displayed and in_kernel():
            self.snapshot()
        return self.status

    def pause(self) -> None:
        """Stop after the superstep in flight; `run` and `step` go on."""
        self._session.dispatch(PauseRequested())
        self._session.cut_rest_short()

    def stop(self) -> None:
        """End the run. Its checkpoints stay: `branch()` resumes from the last one as a new run, `back()` shows them."""
        self._wait_if_possible(self._session.begin(StopRequested()))

    def respond(self, request: WorkflowEvent[Any] | str, value: Any) -> None:
        """Answer a request, named by its event or its id; the run takes it up in its next superstep.

        Raises:
            ValueError: There is no such request, or the answer is not of its type; it stays open.
            RequestAlreadyAnswered: The request was answered before.
            StepperClosed: The stepper was closed.
        """
        self._wait("stepper.arespond", lambda: self._screen.answer(id_of_request(request), value))

    async def arespond(self, request: WorkflowEvent[Any] | str, value: Any) -> None:
        """As `respond`, for cells that await."""
        await wait(self._screen.answer(id_of_request(request), value))

    # ---- sideways ----------------------------------------------------------------------------------------------------

    def fork(
        self,
        checkpoint: CheckpointInfo | str | None = None,
        *,
        edits: Mapping[str, Any] | None = None,
        input: Any = None,  # noqa: A002 - as in stepper()
        workflow: Any = None,
    ) -> Stepper:
        """Make a stepper for a new run from a checkpoint; this one goes on displaying its run, which stays as it is.

        Args:
            checkpoint: Where the new run begins, its info or its id, `None` for the displayed checkpoint.
            edits: New values by path, as `edit` takes them; by default the staged edits of that checkpoint.
            input: Further input for the start executors.
            workflow: Instance for the new run. By default a copy of this one, with executors of its own where they
                can be copied; executors that hold locks, files and the like are shared. This stepper's own instance
                serves the new run alone: this stepper is closed then.

        Raises:
            StepperStateError: Not possible now: a superstep is in flight, or nothing is saved yet.
            LookupError: The checkpoint is not among `checkpoints`.
            InvalidEdit: A value does not fit its place.
            GraphMismatchError: `workflow` has another graph.
            StepperClosed: The stepper was closed.
        """
        twin = workflow or _twin(self.handle.workflow)
        work = partial(self._new_run, checkpoint, edits, input, twin)
        return self._with_run(self._wait("stepper.afork", lambda: self._session.start(work())))

    async def afork(
        self,
        checkpoint: CheckpointInfo | str | None = None,
        *,
        edits: Mapping[str, Any] | None = None,
        input: Any = None,  # noqa: A002 - as in stepper()
        workflow: Any = None,
    ) -> Stepper:
        """As `fork`, for cells that await."""
        twin = workflow or _twin(self.handle.workflow)
        made = self._with_run(await wait(self._session.start(self._new_run(checkpoint, edits, input, twin))))
        await wait(made._opening)  # noqa: SLF001 - another one of this class
        return made

    async def _new_run(
        self, checkpoint: CheckpointInfo | str | None, edits: Mapping[str, Any] | None, message: Any, workflow: Any
    ) -> WorkflowRun:
        more = {} if message is None else {"message": message}
        return await self._session.fork(checkpoint, edits, workflow=workflow, **more)

    def _with_run(self, handle: WorkflowRun) -> Stepper:
        async def start(_: object) -> WorkflowRun:
            return handle

        made = Stepper(
            handle.workflow, start, replace(self._how, name=None, shows_itself=False), storage=self._session.storage
        )
        made.name = made._session.model.name = self.name
        made._session.inherit(self.breakpoints)
        return made

    # ---- listening ---------------------------------------------------------------------------------------------------

    def on(self, kind: str, fn: Callable[[Any], object]) -> Unsubscribe:
        """Call `fn` at each event of a kind; on the loop of the run, so it must be quick and must not wait.

        Args:
            kind: `status` (a `StepperStatus`), `step` (a `StepReport`), `answer` (request id, value), `edit` (an
                `Edit` that a new run begins with), `event` (every `WorkflowEvent`), or the type of an event, such as
                `output` or `request_info`.
            fn: Called with the object. An exception that it raises becomes a line of the log.

        Returns:
            A function that removes the listener.

        Raises:
            TypeError: `fn` cannot be called.
        """
        listener: object = fn
        if not callable(listener):
            msg = f"fn={listener!r} cannot be called. Expected a function with one argument: on({kind!r}, print)."
            raise TypeError(msg)
        return self._listeners.add(kind, fn)

    # ---- the panel ---------------------------------------------------------------------------------------------------

    def show(self) -> None:
        """Show the panel here; all panels of one stepper stay in step. Without widgets: print it as text."""
        if in_kernel():
            show_in_cell(self)
        else:
            print(self.text)  # noqa: T201 - what it is for

    def snapshot(self) -> GraphView:
        """Return a static picture of the run as displayed; a notebook shows it in place of the one before."""
        return self._screen.snapshot()

    def close(self) -> None:
        """Take the panel off the page and release the workflow. May be called twice."""
        future = self._session.begin(CloseRequested())
        self._screen.close()
        self._wait_if_possible(future)

    def __repr__(self) -> str:
        at = "no superstep yet" if self.superstep is None else f"superstep {self.superstep}"
        with self._session.reading() as model:
            viewing = "" if model.viewing is None else f", viewing {model.viewing + 1} of {len(model.past)}"
        return f"Stepper({esc(self.name, into='line', limit=80)}, {at}, {self.status}{viewing})"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """The panel, and one fixed line of text: what the panel displays is never part of a stored output."""
        if self.status is StepperStatus.CLOSED:
            return {"text/plain": repr(self)}
        try:
            bundle: dict[str, Any] = self._screen.widget._repr_mimebundle_() or {}
        except WidgetsUnavailable as error:
            return {**self._screen.picture._repr_mimebundle_(), "text/plain": f"{self.text}\n{error}"}
        return {**bundle, "text/plain": repr(self)}

    # ---- how calls are carried out -----------------------------------------------------------------------------------

    def _run_request(self, until: Until | None, speed: float | None, *, through: bool = False) -> RunRequested:
        if speed is not None:
            require_speed(speed, "supersteps")
        if not (until is None or _is_number(until) or until in ("request", "breakpoint") or callable(until)):
            msg = (
                f"until={until!r} is not possible. Expected the number of a superstep, 'request', 'breakpoint', a "
                "function of a report, or None."
            )
            raise ValueError(msg)
        return RunRequested(until=until, limit=self._how.limit, speed=speed, through=through, confirmed=True)

    def _last_report(self, taken: int) -> StepReport:
        """The report of the superstep just taken; `taken` is the number of reports before it."""
        self._raise_error()
        reports = self._session.model.reports
        if len(reports) <= taken:  # went on from a checkpoint at which the run waits for a person
            with self._session.reading() as model:
                raise StepperStateError(str(model.status), model.allowed, "step")
        return reports[-1]


def _steps(count: int) -> StepRequested:
    count = require_count(count, "n", "1 or more supersteps; back() shows earlier ones")
    return StepRequested(count, confirmed=True)


def _is_number(until: object) -> bool:
    return isinstance(until, int) and not isinstance(until, bool) and until >= 0


def _places(breakpoints: Where | Iterable[Where]) -> Iterable[Where]:
    if isinstance(breakpoints, (str, int, type)) or callable(breakpoints):
        return (breakpoints,)
    return breakpoints


def _twin(workflow: Any) -> Any:
    """Return another instance of a workflow, with executors of its own where they can be copied."""
    try:
        return workflow.clone(copy_executors=True)
    except Exception:  # noqa: BLE001 - copying executors runs foreign code; sharing them is what clone() does by default
        return workflow.clone()


def _kernel_loop(wanted: str | None) -> asyncio.AbstractEventLoop | None:
    """The loop that the runs are bound to, `None` for the engine thread's."""
    if wanted is None:
        wanted = "kernel" if settings.current().loop == "kernel" else "engine"
    if wanted not in get_args(Loop):
        msg = f"loop={wanted!r} is not possible. Choose 'engine' or 'kernel'."
        raise ValueError(msg)
    if wanted == "engine" and _bridge.threads_available():
        return None
    return asyncio.get_running_loop()
