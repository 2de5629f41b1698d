"""The stepper: executes a run in a notebook superstep by superstep, goes back and forks, by buttons and by code."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from agentbench import _bridge
from agentbench._bridge import EngineFuture
from agentbench._text.escape import esc
from agentbench._text.phrases import workflow_name
from agentbench.checkpoints.checkpoint import id_of
from agentbench.checkpoints.editing import Edit, StagedEdits
from agentbench.checkpoints.info import CheckpointInfo
from agentbench.checkpoints.storage import CheckpointStorage
from agentbench.exceptions import NestedLoopError, StepperStateError, WidgetsUnavailable
from agentbench.notebook.history.activity import Activity
from agentbench.notebook.runtime.bundles import show_as_one
from agentbench.notebook.runtime.kernel import at_end_of_cell, in_kernel, show_in_cell
from agentbench.notebook.runtime.listeners import CallbackList, Unsubscribe
from agentbench.notebook.runtime.stand_in import StandIn
from agentbench.notebook.runtime.waiting import wait
from agentbench.notebook.stepping.model.break_places import Breakpoint, StatePredicate, Where
from agentbench.notebook.stepping.model.messages import StepperStatus, Until
from agentbench.notebook.stepping.model.model import StepperModel
from agentbench.notebook.stepping.options import Options, take_over
from agentbench.notebook.stepping.screen import StepperScreen
from agentbench.notebook.stepping.session import Start, StepperSession
from agentbench.workflows.draw.shape import read_shape
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.message import WITHDRAWN
from agentbench.workflows.run.responses import id_of_request
from agentbench.workflows.run.result import WorkflowRunResult
from agentbench.workflows.run.run import WorkflowRun
from agentbench.workflows.run.step_report import StepReport

if TYPE_CHECKING:
    from agentbench.notebook.frames.frames import Frames
    from agentbench.notebook.graph.view import GraphView

T = TypeVar("T")


class Stepper:
    """A run executed step by step, in a panel or by code; made by `stepper`, which documents the arguments.

    The last expression of a cell displays the panel. `astep` and `arun` are the async versions of `step` and `run`;
    with `loop="kernel"`, make other blocking calls in a thread: `await asyncio.to_thread(panel.fork)`. Calls raise
    `StepperStateError` when the run's `status` does not allow them (`allowed` lists the allowed calls), and
    `StepperClosed` after `close`.

    Attributes:
        name: Name in the header.
        workflow: The workflow being stepped.

    Example:
        class Publish(Executor):
            @handler
            async def ask(self, draft: str, ctx: WorkflowContext) -> None:
                await ctx.request_info(f"Publish {draft}?", Approval)

            @response_handler
            async def decide(self, question: str, answer: Approval, ctx: WorkflowContext[Never, str]) -> None:
                await ctx.yield_output("published" if answer else "rejected")

        panel = stepper(WorkflowBuilder(Publish(id="publish")).build(), "a draft")
        panel.run()  # to the end, a breakpoint or a request
        panel.respond(panel.pending[0], Approval(True))
        panel.step()  # one superstep
        panel.back()  # display the previous checkpoint; step() continues from there in a new run
    """

    def __init__(
        self,
        workflow: Any,
        start: Start,
        options: Options,
        *,
        storage: CheckpointStorage,
        breakpoints: Iterable[Where] = (),
    ) -> None:
        shape = read_shape(workflow)
        self.name = options.name or workflow_name(workflow)
        self.workflow = workflow
        self._options = options
        activity = Activity([node.id for node in shape.nodes], [(edge.source, edge.target) for edge in shape.edges])
        nests = any("subworkflow" in node.kinds for node in shape.nodes)
        self._listeners = CallbackList(lambda line: self._session.note_down(line))
        self._session = StepperSession(
            StepperModel(self.name, activity, options.limit, nests=nests),
            storage,
            loop=options.loop,
            on_change=lambda: self._screen.touch(),
            on_event=self._listeners.emit,
        )
        self._stand_in = StandIn(self, lambda: self._screen.picture._repr_mimebundle_())
        self._screen = StepperScreen(self._session, workflow, options, self._stand_in)
        for where in breakpoints:
            self.break_at(where)
        take_over(self, options.name)
        self._wait_for(self._session.start(self._session.open(start)))

    # ---- properties --------------------------------------------------------------------------------------------------

    @property
    def handle(self) -> WorkflowRun:
        """The run being driven. Call its coroutines on the loop of the stepper: `run_sync(stepper.handle.plan())`."""
        if self._session.handle is None:
            msg = "The run is not open yet. With loop='kernel' it opens at the first await: await stepper.astep()."
            raise RuntimeError(msg)
        return self._session.handle

    @property
    def status(self) -> StepperStatus:
        """The status of the stepper; equal to its plain text, such as `"paused"`."""
        return self._session.model.status

    @property
    def allowed(self) -> tuple[str, ...]:
        """The calls that are allowed now, in the order of the buttons; any other raises `StepperStateError`."""
        with self._session.reading() as model:
            return model.allowed

    @property
    def max_supersteps(self) -> int:
        """The maximum number of supersteps of one `run()`; the run pauses after them."""
        return self._options.limit

    @property
    def superstep(self) -> int | None:
        """The last finished superstep, `None` before the first."""
        return self._session.model.facts.superstep

    @property
    def run_id(self) -> str:
        """Id of the run; a fork changes it."""
        return self._session.model.facts.run_id

    @property
    def checkpoint_id(self) -> str | None:
        """Id of the displayed checkpoint: the last one, or an earlier one after `back()`; `"input"` at the input."""
        with self._session.reading() as model:
            return model.checkpoints.displayed_id

    @property
    def checkpoints(self) -> list[CheckpointInfo]:
        """The checkpoints that lead to the current state, oldest first, including those of runs before a fork."""
        with self._session.reading() as model:
            return model.checkpoints.saved

    @property
    def state(self) -> dict[str, Any]:
        """The displayed shared state: the current one, or that of the checkpoint being viewed."""
        viewed = self._session.model.checkpoints.viewed
        if viewed is None:
            return self.handle.state
        checkpoint = self._wait("state", lambda: self._session.start(self._session.load(viewed.checkpoint_id)))
        return {key: value for key, value in checkpoint.state.items() if not key.startswith("_")}

    @property
    def pending(self) -> list[WorkflowEvent[Any]]:
        """The open requests, oldest first; `respond` answers them."""
        return list(self._session.model.facts.requests)

    @property
    def breakpoints(self) -> list[Breakpoint]:
        """The breakpoints, in the order in which they were set."""
        return list(self._session.model.breakpoints.all)

    @property
    def hit(self) -> Breakpoint | None:
        """The breakpoint that paused the run, `None` while it runs and after other pauses."""
        return self._session.model.breakpoints.hit

    @property
    def reports(self) -> list[StepReport]:
        """The reports of all supersteps executed here, including those before a fork."""
        return list(self._session.model.reports)

    @property
    def result(self) -> WorkflowRunResult | None:
        """The result of the run once it is done, otherwise `None`."""
        return self.handle.result_so_far() if self.status is StepperStatus.DONE else None

    @property
    def error(self) -> BaseException | None:
        """The exception that made the run fail, otherwise `None`."""
        return self._session.model.facts.error

    @property
    def text(self) -> str:
        """The panel as plain text: one header line, the graph with its states, and the open requests."""
        return self._screen.text

    @property
    def widget(self) -> Any:
        """The panel as an ipywidget; raises `WidgetsUnavailable` where widgets are not available."""
        return self._screen.widget

    def frames(self) -> Frames:
        """The run as tables: checkpoints, messages, state, events and more."""
        from agentbench.notebook.frames.frames import Frames

        return Frames(self.handle)

    # ---- stepping and running ----------------------------------------------------------------------------------------

    def step(self, n: int = 1, *, inside: bool = False) -> StepReport:
        """Execute one superstep with all of its executors, or `n`; fewer if the run ends before.

        With `inside` it also stops after a superstep of a sub-workflow; the next step continues there. While an earlier
        checkpoint is displayed, a new run starts from it; the old run stays stored. After a failure the superstep is
        executed again from the last checkpoint.

        Returns:
            The report of the last superstep. An executor that raised is in its `failures`, and in `error`.
        """
        taken = len(self._session.model.reports)
        self._wait("step", lambda: self._begin_steps(n, inside), async_call="stepper.astep")
        return self._last_report(taken)

    async def astep(self, n: int = 1, *, inside: bool = False) -> StepReport:
        """Like `step`, awaited."""
        taken = len(self._session.model.reports)
        await wait(self._begin_steps(n, inside))
        return self._last_report(taken)

    def run(self, *, until: Until | None = None, speed: float | None = None) -> StepperStatus:
        """Execute supersteps until the run ends, waits for a person, or pauses.

        It never waits for a person, because a blocked kernel receives no clicks. It returns with status `waiting`, and
        the cell then displays the panel with its form (except for a fork whose panel is not displayed); `arun` waits.

        Args:
            until: Where to stop before the end: after the superstep of this number; at a `request` to a person; at the
                next `breakpoint`; or when a predicate on a report is true. Supersteps are counted from 0: in superstep
                0 the start executors get the input. Breakpoints pause the run with any `until`.
            speed: Supersteps per second, for demonstrations; as fast as possible by default.
        """
        self._wait("run", lambda: self._begin_run(until, speed), async_call="stepper.arun")
        self._stand_in.update()
        if self._options.shows_itself and in_kernel():
            at_end_of_cell(self._show_question)  # the cell may display the panel or answer by code
        return self.status

    def _show_question(self) -> None:
        if self.status is StepperStatus.WAITING and self._screen.page is None:
            self.show()

    async def arun(self, *, until: Until | None = None, speed: float | None = None) -> StepperStatus:
        """Like `run`, but wait for the answer to each request and continue. The stop button interrupts it."""
        await wait(self._begin_run(until, speed, through=True))
        if self._options.autosave and self._screen.page is not None and not self._stand_in.update():
            self.snapshot()
        return self.status

    def pause(self) -> None:
        """Pause after the superstep in flight; `run` and `step` resume."""
        self._session.dispatch(StepperModel.pause)
        self._session.end_wait()

    def stop(self) -> None:
        """End the run. Its checkpoints are kept: `branch()` resumes from the last one in a new run."""
        self._wait_for(self._session.begin(StepperModel.stop))

    def respond(self, request: WorkflowEvent[Any] | str, value: Any) -> None:
        """Answer a request, named by its event or its id; the run processes the answer in its next superstep.

        Raises:
            ValueError: The request is not open, or the answer has the wrong type; the request stays open.
            RequestAlreadyAnswered: The request was answered before.
        """
        self._wait("respond", lambda: self._session.answer(id_of_request(request), value))

    def withdraw(self, request: WorkflowEvent[Any] | str) -> None:
        """Withdraw a request, so that the run goes on without an answer; `WorkflowRun.cancel_pending_requests`.

        Raises:
            ValueError: The request is not open, or is an interrupt of a state graph.
            RequestAlreadyAnswered: The request was answered or withdrawn before.
        """
        self._wait("withdraw", lambda: self._session.answer(id_of_request(request), WITHDRAWN))

    # ---- looking back ------------------------------------------------------------------------------------------------

    def back(self, n: int = 1) -> None:
        """Show the checkpoint `n` before the displayed one; before the first is the input of the run.

        Nothing is executed or deleted. `step()` and `run()` from there start a new run.

        Raises:
            ValueError: `n` is not a whole number above 0.
        """
        self._session.dispatch(lambda model: model.go_back(n))

    def forward(self, n: int = 1) -> None:
        """Show the checkpoint `n` after the displayed one; the last one is the current state. Raises like `back`."""
        self._session.dispatch(lambda model: model.go_forward(n))

    def goto(self, checkpoint: CheckpointInfo | str) -> None:
        """Show this checkpoint, named by its info or its id, or the run's `"input"`. Nothing is executed or deleted.

        Raises:
            LookupError: It is not among `checkpoints`.
        """
        self._session.dispatch(lambda model: model.go_to(id_of(checkpoint)))

    def show_again(self, *, speed: float = 2.0) -> None:
        """Show the stored checkpoints one after another, `speed` per second, up to the current state.

        Nothing is executed. It starts with the displayed checkpoint, or with the first one. `pause()` and any other
        call end it. To execute again, call `step()` or `run()` at an earlier checkpoint: that makes a new run.
        """
        self._wait("show_again", lambda: self._session.begin(lambda model: model.show_again(speed)))

    # ---- sideways ----------------------------------------------------------------------------------------------------

    def fork(
        self,
        checkpoint: CheckpointInfo | str | None = None,
        *,
        edits: Mapping[str, Any] | None = None,
        input: Any = None,  # noqa: A002 - as in stepper()
        workflow: Any = None,
    ) -> Stepper:
        """Make a stepper for a new run from a checkpoint; this stepper and its run do not change.

        Args:
            checkpoint: Start of the new run, its info or its id, or `"input"`; `None` for the displayed checkpoint.
            edits: New values by path, as for `edit`; by default the staged edits of that checkpoint.
            input: Additional input for the start executors; at the input, the input of the new run.
            workflow: Instance for the new run. By default a copy of this workflow. Executors are copied where possible;
                those that hold locks, files and the like are shared. Pass this stepper's own instance to use it for the
                new run alone: this stepper is then closed.

        Raises:
            LookupError: The checkpoint is not among `checkpoints`.
            InvalidEdit: A value does not fit its place.
            GraphMismatchError: `workflow` has another graph.
        """
        more = {} if input is None else {"message": input}
        fork = partial(self._session.fork, checkpoint, edits, workflow, **more)
        handle = self._wait("fork", lambda: self._session.start(fork()))

        async def start(_: object) -> WorkflowRun:
            return handle

        options = replace(self._options, name=None, shows_itself=False)
        made = Stepper(handle.workflow, start, options, storage=self._session.storage)
        made.name = made._session.model.name = self.name
        made._session.earlier = [*self._session.earlier, *self.reports]
        made._session.dispatch(lambda model: model.breakpoints.inherit(self.breakpoints))
        return made

    def branch(self, checkpoint: CheckpointInfo | str | None = None) -> None:
        """Continue in a new run with the staged edits; nothing is executed yet, the old run stays stored.

        Args:
            checkpoint: Start of the new run, its info or its id, or `"input"`; `None` for the displayed checkpoint.

        Raises:
            LookupError: The checkpoint is not among `checkpoints`.
        """
        checkpoint_id = None if checkpoint is None else id_of(checkpoint)
        self._wait("branch", lambda: self._session.begin(lambda model: model.branch(checkpoint_id)))
        self._raise_error()

    def redo(
        self, since: int | None = None, workflow: Any = None, new_calls: Literal["ask", "allow", "refuse"] | int = "ask"
    ) -> None:
        """Do supersteps again with changed code, in a new run of this stepper, and run it.

        The old run stays stored: `compare(panel.before_redo, panel.handle)` shows both. Model requests are answered
        from the recording. At the first one that was not recorded the run pauses, and the panel asks.

        Args:
            since: The first superstep to do again; by default the first one in which changed code ran.
            workflow: The changed workflow; by default the current code is looked up.
            new_calls: What happens to requests that are not recorded, see `WorkflowRun.redo`.

        Raises:
            RedoError: No code has changed, or the current code of a changed part cannot be found.
        """
        self._screen.look_for_changes()
        self._wait("redo", lambda: self._session.begin(lambda model: model.redo(since, workflow, new_calls)))
        self._raise_error()

    @property
    def before_redo(self) -> WorkflowRun | None:
        """The run that the current one does again, `None` without a redo."""
        return self._session.before_redo

    # ---- edits -------------------------------------------------------------------------------------------------------

    def edit(self, path: str, value: Any) -> Edit:
        """Stage a changed value of the displayed checkpoint; Step, Run or a fork applies it in a new run.

        The checkpoint itself does not change. The value must fit the declared type of its dataclass or model field,
        otherwise the type of the current value, and it must be serializable.

        Args:
            path: `score`, `draft.title`, `items[0]` in the shared state; `messages[0]`, `messages[0].title` in queued
                messages, or `pending_messages[0]` if the state has a key `messages`; `input`, `input.title` at the
                input.
            value: The new value.

        Raises:
            InvalidEdit: The path does not exist, or the value does not fit. Nothing is staged.
        """
        return self._wait("edit", lambda: self._session.start(self._session.stage(path, value)))

    def edits(self) -> StagedEdits:
        """The staged edits of the displayed checkpoint, in the order in which they are applied; a cell shows a diff."""
        with self._session.reading() as model:
            return StagedEdits(model.edits)

    def discard_edits(self, path: str | None = None) -> None:
        """Drop the staged edits of the displayed checkpoint, or only the one of a path."""
        self._session.dispatch(lambda model: model.discard_edits(path))

    # ---- breakpoints and listeners -----------------------------------------------------------------------------------

    def break_at(self, where: Where, *, when: StatePredicate | None = None, once: bool = False) -> Breakpoint:
        """Pause `run()` and `step(n)` at a place, always between two supersteps; `step()` ignores it.

        Args:
            where: An executor id or `before:ID`: before a superstep in which it is called. `after:ID`: after one.
                A number: before that superstep, counted from 0. A class: before a message of that type is delivered. A
                function of the shared state: where it returns true. `failure`: after an executor has raised.
                `request`: when a person has to answer.
            when: A further condition: a function of the shared state.
            once: Whether to remove it after it was reached.

        Returns:
            The breakpoint; an identical one is returned if it exists. A function that raises also pauses the run, and
            the panel displays its error.

        Raises:
            ValueError: The executor does not exist, or the number is negative.
            TypeError: `where` is none of these.
        """
        return self._session.dispatch(lambda model: model.break_at(where, when=when, once=once))

    def clear(self, where: Where | Breakpoint | None = None) -> None:
        """Remove one breakpoint, those at a place, the one with an id, or all; `ValueError` if there is none."""
        self._session.dispatch(lambda model: model.clear(where))

    def on(self, kind: str, fn: Callable[[Any], object]) -> Unsubscribe:
        """Call `fn` at each event of a kind; returns a function that removes it.

        Args:
            kind: `status` (a `StepperStatus`), `step` (a `StepReport`), `answer` (request id, value), `edit` (an
                `Edit` that a new run begins with), `event` (every `WorkflowEvent`), or the type of an event, such as
                `output` or `request_info`.
            fn: Called with the object on the loop of the run, so it must be fast and must not block. An exception
                that it raises is logged.
        """
        return self._listeners.add(kind, fn)

    # ---- the panel ---------------------------------------------------------------------------------------------------

    def show(self) -> None:
        """Show the panel here; all panels of one stepper stay in sync. Without widgets, print it as text."""
        if in_kernel():
            show_in_cell(self)
        else:
            print(self.text)  # noqa: T201 - what it is for

    def snapshot(self) -> GraphView:
        """Return a static picture of the run as displayed; in a notebook it replaces the previous one."""
        return self._screen.snapshot()

    def save(self, path: str | Path, *, editable: bool = False, site: str | None = None) -> Path:
        """Save the supersteps that led to the current state, including those before a fork, like `WorkflowRun.save`."""
        from agentbench.notebook.stepping.saved_run import save_stepper

        return save_stepper(self._session, self.workflow, path, editable=editable, site=site)

    def keep_as_test(self, path: str | Path, workflow: str | None = None, *, overwrite: bool = False) -> Path:
        """Write a test that repeats this run and compares what it does, like `WorkflowRun.keep_as_test`."""
        return self.handle.keep_as_test(path, workflow, overwrite=overwrite)

    def close(self) -> None:
        """Close the panel and release the workflow; the last picture stays. May be called twice."""
        self._stand_in.update()
        future = self._session.begin(StepperModel.close)
        self._screen.close()
        self._wait_for(future)

    def __repr__(self) -> str:
        with self._session.reading() as model:
            viewing = (
                ""
                if model.checkpoints.viewed is None
                else f", viewing {model.checkpoints.place.removeprefix('checkpoint ')}"
            )
            return f"Stepper({esc(self.name, into='line', limit=80)}, {model.superstep_text}, {model.status}{viewing})"

    def _display_(self) -> Any:  # marimo calls it
        return show_as_one(self, lambda: self._screen.picture)

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> Any:
        """Return the panel and its text; a saved notebook contains only the picture."""
        if self.status is StepperStatus.CLOSED:
            return {"text/plain": repr(self)}
        try:
            return self._stand_in.bundle(self._screen.widget._repr_mimebundle_(), include)
        except WidgetsUnavailable as error:
            return {**self._screen.picture._repr_mimebundle_(), "text/plain": f"{self.text}\n{error}"}

    # ---- execution of calls ------------------------------------------------------------------------------------------

    def _wait(self, call: str, begin: Callable[[], EngineFuture[T]], *, async_call: str = "asyncio.to_thread") -> T:
        """Wait for the work that `begin` starts; raise if that would deadlock. An interrupt ends both."""
        __tracebackhide__ = True  # of IPython
        if self._session.on_own_loop:
            raise NestedLoopError(async_call, f"stepper.{call} would wait for the event loop of its own thread")
        _bridge.require_blocking(async_call)
        with _bridge.cancelled_with_caller():
            return _bridge.wait_sync(begin())

    def _wait_for(self, future: EngineFuture[Any]) -> None:
        """Wait for work, unless this thread's own loop does it."""
        if not self._session.on_own_loop:
            _bridge.wait_sync(future)

    def _raise_error(self) -> None:
        error, self._session.error = self._session.error, None
        if error is not None:
            raise error

    def _begin_steps(self, count: int, inside: bool) -> EngineFuture[None]:
        return self._session.begin(lambda model: model.step(count, inside=inside, confirmed=True))

    def _begin_run(self, until: Until | None, speed: float | None, *, through: bool = False) -> EngineFuture[None]:
        change = partial(StepperModel.run, until=until, speed=speed, through=through, confirmed=True)
        return self._session.begin(change, through=through)

    def _last_report(self, taken: int) -> StepReport:
        """Return the report of the last superstep; `taken` is the number of reports before it."""
        self._raise_error()
        reports, report = self._session.model.reports, self.handle.last_report
        if self._session.model.is_inside and report is not None:
            return report
        if len(reports) <= taken:  # continued from a checkpoint at which the run waits for a person
            with self._session.reading() as model:
                raise StepperStateError(str(model.status), model.allowed, "step")
        return reports[-1]
