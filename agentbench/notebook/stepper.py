"""The stepper: a run in a notebook, one superstep at a time, forward, back and sideways.

Everything that a button does can be done by code, in cells that are compared by nbval too:

    panel = stepper(workflow, "hello")      # the last expression of a cell shows it
    panel.step()                            # one superstep; its report
    panel.respond(panel.pending[0].request_id, True)
    await panel.arun()                      # to the end, waiting for a person where the run asks one
"""

from __future__ import annotations

import asyncio
import re
import weakref
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal, get_args

from agentbench import _bridge
from agentbench._bridge import EngineFuture
from agentbench._clock import Clock, IdSource
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import NestedLoopError, StepperStateError, WidgetsUnavailable
from agentbench.notebook import settings
from agentbench.notebook.activity import Activity
from agentbench.notebook.shape import read_shape
from agentbench.notebook.stepper_messages import (
    BackAsked,
    CloseAsked,
    ForwardAsked,
    GotoAsked,
    PauseAsked,
    RunAsked,
    StepAsked,
    StepperStatus,
    Stimulus,
    StopAsked,
    Until,
)
from agentbench.notebook.stepper_model import StepperModel
from agentbench.notebook.stepper_screen import Layout, StepperScreen, in_kernel, show_in_cell
from agentbench.notebook.stepper_session import StepperSession
from agentbench.notebook.waiting import wait
from agentbench.workflow.events import WorkflowEvent
from agentbench.workflow.options import RunOptions
from agentbench.workflow.report import StepReport
from agentbench.workflow.result import WorkflowRunResult
from agentbench.workflow.run import WorkflowRun

if TYPE_CHECKING:
    from agentbench.notebook.graph_view import GraphView

__all__ = ["Stepper", "stepper"]

Unsubscribe = Callable[[], None]
Loop = Literal["engine", "kernel"]

# Names that a builder gives to a workflow that got none.
_UNNAMED = re.compile(r"^Workflow(Builder)?-[0-9a-f-]{36}$")


def stepper(  # noqa: PLR0913 - published signature
    workflow: Any,
    input: Any = None,  # noqa: A002 - likewise
    *,
    storage: CheckpointStorage | None = None,
    checkpoint: CheckpointInfo | str | None = None,
    layout: Layout = "auto",
    height: int = 420,
    loop: Loop | None = None,
    name: str | None = None,
    max_supersteps: int = 1000,
    autosave: bool = True,
    clock: Clock | None = None,
    ids: IdSource | None = None,
    options: RunOptions | None = None,
) -> Stepper:
    """Make a stepper for a run of a workflow; nothing is executed yet.

    Args:
        workflow: The workflow. If another stepper holds it, that one is closed: an instance runs once at a time.
        input: What the start executors get.
        storage: Where checkpoints go; by default the workflow's own storage, else one in memory, so that Back works.
        checkpoint: Go on from this checkpoint instead of starting afresh.
        layout: `auto` stacks on narrow pages, `wide` never, `stacked` always; `graph` leaves out the tabs, `minimal`
            shows header and controls only.
        height: Of graph and tabs, in pixels.
        loop: `engine`, or `kernel` for workflows that hold objects bound to the notebook's loop; nothing moves then
            while a cell runs. By default what `configure(loop=)` says.
        name: What the header says. A new stepper of the same name closes the old one.
        max_supersteps: After so many a run pauses.
        autosave: Whether `arun` ends with a static picture, for notebooks that are read without a kernel.
        clock: Source of times of this run.
        ids: Source of ids of this run.
        options: Further options of the run, in place of `clock` and `ids`.

    Raises:
        ValueError: Neither `input` nor `checkpoint` is given.
        GraphMismatchError: The checkpoint belongs to another graph; `differences` says how they differ.
        WorkflowCheckpointException: The checkpoint cannot be loaded.
        TypeError: `workflow` is none.

    Example:
        ```python
        panel = stepper(workflow, "hello")
        panel.step()
        ```
    """
    return Stepper(
        workflow,
        input,
        storage=storage,
        checkpoint=checkpoint,
        layout=layout,
        height=height,
        loop=loop,
        name=name,
        max_supersteps=max_supersteps,
        autosave=autosave,
        clock=clock,
        ids=ids,
        options=options,
    )


class Stepper:
    """A run that a person steps, in a panel and by code alike; made by `stepper`.

    Attributes:
        name: What the header says.
        workflow: What is stepped.
    """

    def __init__(  # noqa: PLR0913 - the arguments of `stepper`
        self,
        workflow: Any,
        input: Any = None,  # noqa: A002 - as in stepper()
        *,
        storage: CheckpointStorage | None = None,
        checkpoint: CheckpointInfo | str | None = None,
        layout: Layout = "auto",
        height: int = 420,
        loop: Loop | None = None,
        name: str | None = None,
        max_supersteps: int = 1000,
        autosave: bool = True,
        clock: Clock | None = None,
        ids: IdSource | None = None,
        options: RunOptions | None = None,
    ) -> None:
        if layout not in get_args(Layout):
            msg = f"layout={layout!r} is not possible. Choose one of {', '.join(get_args(Layout))}."
            raise ValueError(msg)
        kept = storage or getattr(workflow, "checkpoint_storage", None) or InMemoryCheckpointStorage()
        own_loop = _kernel_loop(loop)
        shape = read_shape(workflow)
        self.name = name or _name_of(workflow)
        self.workflow = workflow
        self._limit, self._autosave = max_supersteps, autosave
        self._listeners: dict[str, list[Callable[[Any], object]]] = {}
        activity = Activity([node.id for node in shape.nodes], [(edge.source, edge.target) for edge in shape.edges])
        self._session = StepperSession(
            StepperModel(self.name, activity), kept, loop=own_loop, on_change=self._changed, on_event=self._emit
        )
        self._screen = StepperScreen(self._session, workflow, layout=layout, height=height, limit=max_supersteps)
        _close_older(workflow, name)
        options = options or RunOptions(clock=clock, ids=ids)

        async def start() -> WorkflowRun:
            run: WorkflowRun = workflow.start(input, checkpoint_storage=kept, resume_from=checkpoint, options=options)
            return run

        opening = self._session.open(start, checkpoint)
        self._wait_if_possible(self._session.start(opening))
        if name is not None:
            _by_name[name] = self
        _by_workflow[id(workflow)] = self

    # ---- how it stands -----------------------------------------------------------------------------------------------

    @property
    def handle(self) -> WorkflowRun:
        """The run being driven. Its coroutines belong on the loop of the stepper: `run_sync(stepper.handle.plan())`."""
        if self._session.handle is None:
            msg = "The run is not open yet. With loop='kernel' it opens at the first await: await stepper.astep()."
            raise RuntimeError(msg)
        return self._session.handle

    @property
    def status(self) -> StepperStatus:
        """What the stepper is doing; equal to its plain text, such as `"paused"`."""
        return self._session.model.status

    @property
    def superstep(self) -> int | None:
        """The last finished superstep, `None` before the first."""
        return self._session.model.facts.superstep

    @property
    def run_id(self) -> str:
        """Id of the run; another one after a fork."""
        return self._session.model.facts.run_id

    @property
    def checkpoint_id(self) -> str | None:
        """The checkpoint that is shown: the last one, or an earlier one after `back()`."""
        with self._session.reading() as model:
            return None if model.shown is None else model.past[model.shown].info.checkpoint_id

    @property
    def checkpoints(self) -> list[CheckpointInfo]:
        """The checkpoints that lead to now, oldest first, those of earlier runs before a fork included."""
        with self._session.reading() as model:
            return [past.info for past in model.past]

    @property
    def state(self) -> dict[str, Any]:
        """Shared state as it is shown: of now, or of the checkpoint being viewed."""
        with self._session.reading() as model:
            viewing = None if model.viewing is None else model.past[model.viewing].info.checkpoint_id
        if viewing is None:
            return self.handle.state
        self._require_blocking("run.fork")
        loaded = _bridge.wait_sync(self._session.start(self._session.checkpoint(viewing)))
        return {key: value for key, value in loaded.state.items() if not key.startswith("_")}

    @property
    def pending(self) -> list[WorkflowEvent[Any]]:
        """The requests that wait for an answer, oldest first; `respond` answers them."""
        return list(self._session.model.facts.requests)

    @property
    def reports(self) -> list[StepReport]:
        """The reports of all supersteps taken here, those before a fork included."""
        return list(self._session.model.reports)

    @property
    def result(self) -> WorkflowRunResult | None:
        """What the run left behind, once it is done; `None` before."""
        if self.status is not StepperStatus.DONE:
            return None
        events = self.handle.events
        result = WorkflowRunResult(
            (event for event in events if event.type not in ("started", "status")),
            [event for event in events if event.type == "status"],
        )
        result.checkpoints = self.handle.checkpoints
        return result

    @property
    def error(self) -> BaseException | None:
        """What made the run fail, if it did."""
        return self._session.model.facts.error

    # ---- stepping and running ----------------------------------------------------------------------------------------

    def step(self, n: int = 1) -> StepReport:
        """Take one superstep, whatever the number of executors in it; or `n`, or fewer if the run ends before.

        While an earlier checkpoint is shown, a new run goes on from there; the old one is kept. After a failure the
        superstep is taken again from the last checkpoint.

        Returns:
            The report of the last superstep. An executor that raised is in its `failures`, and in `error`.

        Raises:
            StepperStateError: Not possible now: the run is over, or waits for a person with nothing queued.
            StepperClosed: The stepper was closed.
            NestedLoopError: On the engine thread, in a function given to `on`; use `await stepper.astep()`.
        """
        return self._stepped(self._wait_for(_steps(n), "stepper.astep"))

    async def astep(self, n: int = 1) -> StepReport:
        """As `step`, for cells that await."""
        return self._stepped(await self._await(_steps(n)))

    def run(self, *, until: Until | None = None, speed: float | None = None) -> StepperStatus:
        """Take supersteps until the run is over, waits for a person, or pauses.

        It never waits for a person: no click could reach a blocked kernel. It returns with status `waiting` and shows
        the form; `arun` waits.

        Args:
            until: Number of the superstep after which to stop, or a function of a report that tells when.
            speed: Supersteps a second, for demonstrations; as fast as possible by default.

        Raises:
            StepperStateError: Not possible now.
            StepperClosed: The stepper was closed.
            NestedLoopError: On the engine thread; use `await stepper.arun()`.
        """
        self._wait_for(self._run_asked(until, speed), "stepper.arun")
        if self.status is StepperStatus.WAITING and not self._screen.shown and in_kernel():
            self.show()
        return self.status

    async def arun(self, *, until: Until | None = None, speed: float | None = None) -> StepperStatus:
        """As `run`, and where the run asks a person it waits for the answer and goes on. The stop button ends it."""
        await self._await(self._run_asked(until, speed, through=True), through=True)
        if self._autosave and self._screen.shown and in_kernel():
            self.snapshot()
        return self.status

    def pause(self) -> None:
        """Stop after the superstep in flight; `run` and `step` go on."""
        self._session.ask(PauseAsked())
        self._session.nudge()

    def stop(self) -> None:
        """End the run. Its checkpoints stay: `back()` shows them, and a step from one goes on as a new run."""
        self._wait_if_possible(self._session.begin(StopAsked()))

    def respond(self, request_id: str, value: Any) -> None:
        """Answer a request; the run takes it up in its next superstep.

        Raises:
            ValueError: There is no such request, or the answer is not of its type; it stays open.
            RequestAlreadyAnswered: It was answered before.
            StepperClosed: The stepper was closed.
        """
        self._require_blocking("stepper.arespond")
        _bridge.wait_sync(self._screen.answer(request_id, value))

    async def arespond(self, request_id: str, value: Any) -> None:
        """As `respond`, for cells that await."""
        await wait(self._screen.answer(request_id, value))

    # ---- looking back ------------------------------------------------------------------------------------------------

    def back(self, n: int = 1) -> None:
        """Show the checkpoint `n` before the one shown. Nothing is executed or deleted."""
        self._session.ask(BackAsked(n))

    def forward(self, n: int = 1) -> None:
        """Show the checkpoint `n` after the one shown; the last one is the present."""
        self._session.ask(ForwardAsked(n))

    def goto(self, checkpoint_id: str) -> None:
        """Show this checkpoint. Nothing is executed or deleted.

        Raises:
            LookupError: It is not among `checkpoints`.
        """
        self._session.ask(GotoAsked(checkpoint_id))

    # ---- listening ---------------------------------------------------------------------------------------------------

    def on(self, kind: str, fn: Callable[[Any], object]) -> Unsubscribe:
        """Call `fn` when something happens; on the engine thread, so it must be quick and must not wait.

        Args:
            kind: `status` (a `StepperStatus`), `step` (a `StepReport`), `answer` (request id, value), `event` (every
                `WorkflowEvent`), or the type of an event, such as `output` or `request_info`.
            fn: Gets the object. What it raises becomes a line of the log.

        Returns:
            A function that ends it.
        """
        self._listeners.setdefault(kind, []).append(fn)

        def stop() -> None:
            if fn in self._listeners.get(kind, ()):
                self._listeners[kind].remove(fn)

        return stop

    def _changed(self) -> None:
        self._screen.touch()

    def _emit(self, kind: str, what: Any) -> None:
        for fn in tuple(self._listeners.get(kind, ())):
            self._tell(kind, fn, what)

    def _tell(self, kind: str, fn: Callable[[Any], object], what: Any) -> None:
        try:
            fn(what)
        except Exception as error:  # noqa: BLE001 - user code must not end the run that it watches
            self._session.note_down(f"a function given to on({kind!r}) raised {type(error).__name__}: {error}")

    def frames(self) -> Any:
        """The run as tables: checkpoints, messages, state, events and so on."""
        from agentbench.notebook.frames import Frames

        return Frames(self.handle)

    # ---- the panel ---------------------------------------------------------------------------------------------------

    @property
    def text(self) -> str:
        """The panel in words: one header line, the graph with its states, and what is asked."""
        return self._screen.text

    def show(self) -> None:
        """Show the panel here; all panels of one stepper stay in step. Without widgets: print it as text."""
        if in_kernel():
            show_in_cell(self)
        else:
            print(self.text)  # noqa: T201 - what it is for

    def snapshot(self) -> GraphView:
        """A static picture of how things stand; in a notebook it is also shown, in place of the one before."""
        return self._screen.snapshot()

    def close(self) -> None:
        """Take the panel off the page and let go of the workflow. May be called twice."""
        future = self._session.begin(CloseAsked())
        self._screen.close()
        self._wait_if_possible(future)

    def __repr__(self) -> str:
        at = "no superstep yet" if self.superstep is None else f"superstep {self.superstep}"
        return f"Stepper({self.name}, {at}, {self.status})"

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """The panel, and one fixed line of text: what it shows is never part of a stored output."""
        if self.status is StepperStatus.CLOSED:
            return {"text/plain": repr(self)}
        try:
            bundle: dict[str, Any] = self._screen.widget._repr_mimebundle_() or {}
        except WidgetsUnavailable as error:
            return {"text/plain": f"{self.text}\n{error}"}
        return {**bundle, "text/plain": repr(self)}

    # ---- how calls are carried out -----------------------------------------------------------------------------------

    def _run_asked(self, until: Until | None, speed: float | None, *, through: bool = False) -> RunAsked:
        if speed is not None and not speed > 0:
            msg = f"speed={speed!r} is not possible. Expected supersteps a second, above 0, or None."
            raise ValueError(msg)
        return RunAsked(until=until, limit=self._limit, speed=speed, through=through, confirmed=True)

    def _stepped(self, taken: int) -> StepReport:
        """The report of what was just done, given how many there were before."""
        error, self._session.error = self._session.error, None
        if error is not None:
            raise error
        reports = self.reports
        if len(reports) <= taken:  # went on from a checkpoint at which the run waits for a person
            with self._session.reading() as model:
                raise StepperStateError(str(model.status), model.allowed, "step")
        return reports[-1]

    def _wait_for(self, stimulus: Stimulus, call: str) -> int:
        self._require_blocking(call)
        taken = len(self._session.model.reports)
        self._wait_if_possible(self._session.begin(stimulus))
        return taken

    async def _await(self, stimulus: Stimulus, *, through: bool = False) -> int:
        taken = len(self._session.model.reports)
        future = self._session.begin(stimulus, through=through)
        if future is not None:
            await wait(future)
        return taken

    def _require_blocking(self, call: str) -> None:
        if self._screen.on_own_loop:
            raise NestedLoopError(call, "the stepper runs on the loop of this very thread")
        _bridge.require_blocking(call)

    def _wait_if_possible(self, future: EngineFuture[Any] | None) -> None:
        if future is not None and not self._screen.on_own_loop:
            _bridge.wait_sync(future)


def _steps(count: int) -> StepAsked:
    if count < 1:
        msg = f"n={count!r} is not possible. Expected 1 or more supersteps; back() shows earlier ones."
        raise ValueError(msg)
    return StepAsked(count, confirmed=True)


def _name_of(workflow: Any) -> str:
    name = str(getattr(workflow, "name", None) or "workflow")
    return "workflow" if _UNNAMED.match(name) else name


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


# --- one at a time ----------------------------------------------------------------------------------------------------

# The steppers that are open, by the name they were given and by the workflow they hold.
_by_name: weakref.WeakValueDictionary[str, Stepper] = weakref.WeakValueDictionary()
_by_workflow: weakref.WeakValueDictionary[int, Stepper] = weakref.WeakValueDictionary()
_OVER = (StepperStatus.DONE, StepperStatus.FAILED, StepperStatus.CANCELLED, StepperStatus.CLOSED)


def _close_older(workflow: Any, name: str | None) -> None:
    """Close the stepper of the same name, and one that still holds this workflow: its cell was run again."""
    same_name = _by_name.get(name) if name is not None else None
    if same_name is not None:
        same_name.close()
    holder = _by_workflow.get(id(workflow))
    if holder is not None and holder.workflow is workflow and holder.status not in _OVER:
        holder.close()
