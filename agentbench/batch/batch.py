"""A batch as a person holds it: await it, iterate over it, read its rows, answer its questions, open its runs."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from agentbench._bridge import EngineFuture, can_suspend, run_sync, running_loop, submit, threads_available, wait_sync
from agentbench._display import Displayable, call_view, drawn_by
from agentbench._workers import run_in_thread
from agentbench.batch.driving.driver import Driver
from agentbench.batch.driving.tally import EndedRow, Tally
from agentbench.batch.ended_keys import EndedKeys
from agentbench.batch.inputs import Start
from agentbench.batch.rows import BatchProgress, BatchRow, RowStatus, Traffic
from agentbench.batch.running.starts import copy_for_run
from agentbench.batch.store.store import BatchStore
from agentbench.batch.views import Question, RowView
from agentbench.checkpoints.fork import fork_checkpoint
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import BatchError, BatchNotFoundError
from agentbench.workflows.run.responses import check_responses

if TYPE_CHECKING:
    import pandas as pd

    from agentbench.batch.running.targets import Target
    from agentbench.workflows.run.run import WorkflowRun
    from agentbench.workflows.run.workflow import Workflow

_STOP_S: Final = 10.0
"""How long an interrupted call waits for the runs to end."""
MakeDriver = Callable[[Callable[[EndedRow], None]], Awaitable[Driver[Any]]]


@drawn_by("agentbench.notebook.batches.cards:batch_bundle")
class Batch(Displayable):
    """Many runs of one workflow, made by `run_many`: their rows, questions and runs.

    A batch runs when it is awaited, iterated, or `result()` is called; in a notebook at once. Iteration yields rows in
    the order in which they end: finished and failed ones. Rows that wait for a person do not hold it up; they are in
    `batch.waiting`.

    Attributes:
        name: The name of the batch.
        store: Its rows, for other parts of the library.
        display: What shows its progress, for other parts of the library.

    Example:
        >>> batch = run_many(workflow, questions, into="answers.db")
        >>> await batch
        >>> batch.frame().status.value_counts()
    """

    def __init__(
        self, store: BatchStore, target: Target | None, make_driver: MakeDriver | None, total: int | None
    ) -> None:
        self.name, self.store = store.name, store
        self._target, self._make_driver, self._total = target, make_driver, total
        self._driver: Driver[Any] | None = None
        self._run: EngineFuture[None] | None = None
        self._is_over = True
        """Whether the run has ended, so that a driver for further rows needs another run."""
        self._goes_on = False
        """Whether rows were opened while the driver was ending, so that another driver follows in the same run."""
        self._is_cancelled = False
        self._loop: asyncio.AbstractEventLoop | None = None
        self._state, self._reason = "ready", ""
        self._listeners: list[Callable[[], object]] = []
        self._readers: list[EndedKeys] = []
        self._lock = threading.Lock()
        self.display: Any = None

    # ---- running -----------------------------------------------------------------------------------------------------

    def __await__(self) -> Generator[Any, None, Batch]:
        return self._wait().__await__()

    async def _wait(self) -> Batch:
        run = self._begin(asyncio.get_running_loop())
        try:
            if is_in_notebook():  # there an idle event loop does not notice the stop button
                await call_view("agentbench.notebook.runtime.waiting:wait", run)
            else:
                await asyncio.wrap_future(run)
        except asyncio.CancelledError:
            self.cancel()
            raise
        finally:
            self._end_display()
        return self

    def result(self) -> Batch:
        """Run the batch to its end, in synchronous code, and return it.

        Raises:
            BatchStoppedError: It stopped because of failed rows, as `on_error=` asked.
            BatchInputError: An input or its key cannot be used.
        """
        self._require_other_loop("result()", "await batch")
        try:
            run_sync(_outcome(self._begin(None)))
        except KeyboardInterrupt:
            self._interrupt()
            raise
        finally:
            self._end_display()
        return self

    def start(self) -> Batch:
        """Begin in the background, on the thread of the engine, unless it has begun; notebooks do this themselves."""
        self._begin(None)
        return self

    def _begin(self, loop: asyncio.AbstractEventLoop | None) -> EngineFuture[None]:
        """Start the driver on a loop, by default the engine's; return the future of its end."""
        with self._lock:
            if self._run is not None and not self._run.done() and self._loop is not None and self._loop.is_closed():
                msg = (
                    f"The event loop that ran batch {self.name!r} was closed before the batch had ended, as by a "
                    "second asyncio.run(). Await the batch in one loop, or call run_many() again, which continues it."
                )
                raise BatchError(msg)
            if self._run is None or self._run.cancelled():
                if self._make_driver is None:
                    msg = f"The batch {self.name!r} was opened to be read. Call run_many() with its workflow to run it."
                    raise BatchError(msg)
                self._run = self._submit(None if is_in_notebook() else loop)
            return self._run

    def _submit(self, loop: asyncio.AbstractEventLoop | None) -> EngineFuture[None]:
        self._state, self._reason = "running", ""
        self._loop, self._is_over, self._is_cancelled = loop, False, False
        return submit(self._drive(), loop=loop)

    async def _drive(self) -> None:
        self._loop = asyncio.get_running_loop()
        try:
            while not self._is_over:
                await self._drive_once()
                with self._lock:
                    self._is_over = not self._goes_on
        finally:
            self._is_over = True
            for reader in list(self._readers):
                reader.close()
            self._tell()

    async def _drive_once(self) -> None:
        assert self._make_driver is not None
        self._state, self._reason, self._goes_on = "running", "", False
        state = "done"
        try:
            former = self._driver
            self._driver = await self._make_driver(self._note)
            if self._is_cancelled:  # before there was a driver
                self._driver.cancel()
            await self._driver.drive(None if former is None else former.tally.skipped)
            if self._driver.is_cancelled or self._driver.reason:
                state = "cancelled" if self._driver.is_cancelled else "stopped"
            self._reason = self._driver.reason
        except BaseException as error:
            state = "cancelled" if isinstance(error, asyncio.CancelledError) else "stopped"
            self._reason = str(error)
            raise
        finally:
            await run_in_thread(self.store.give_up_claims)
            self._state = state

    def _require_other_loop(self, call: str, instead: str) -> None:
        """Raise if a call would wait for the event loop that it was made on, which runs the batch."""
        if not can_suspend() and (self._runs_here() or not threads_available()):
            msg = f"The batch {self.name!r} runs on this event loop, which {call} would block. Write `{instead}`."
            raise BatchError(msg)

    def _runs_here(self) -> bool:
        loop = running_loop()
        return loop is not None and loop is self._loop and self._run is not None and not self._run.done()

    def _interrupt(self) -> None:
        """Stop after Ctrl-C, and let the runs end, because the program may end next."""
        self.cancel()
        if self._run is not None:
            self._run.wait_until_done(_STOP_S)

    def _end_display(self) -> None:
        display, self.display = self.display, None
        if display is not None:
            display.close()

    def _note(self, row: EndedRow) -> None:
        for reader in self._readers:
            if row.status is not RowStatus.WAITING:
                reader.put(row.key)
        self._tell()

    def _tell(self) -> None:
        for listener in list(self._listeners):
            with suppress(Exception):  # a broken view must not end a batch
                listener()

    def listen(self, listener: Callable[[], object]) -> Callable[[], None]:
        """Call `listener()` after each change, on the thread of the batch; return a function that removes it."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener) if listener in self._listeners else None

    def cancel(self) -> None:
        """Stop the runs at their last checkpoints; `resume()` or another call of `run_many` continues them."""
        with self._lock:
            if self._is_over:
                return
            self._is_cancelled, self._goes_on = True, False
        if self._driver is not None:
            self._driver.cancel()

    def resume(self) -> Batch:
        """Continue a batch that was cancelled or that stopped; await it for the outcome."""
        return self.retry(RowStatus.CANCELLED)

    def retry(self, status: RowStatus = RowStatus.FAILED, keys: Sequence[str] | None = None) -> Batch:
        """Open rows with this status again and run them, failed ones from their last checkpoints.

        Args:
            status: `failed` or `cancelled`.
            keys: Only these rows; by default all.

        Raises:
            ValueError: It is another status: open rows run anyway, waiting ones need answers, and finished ones run
                again only with `run_many(..., changed="rerun")`, or under other keys.
        """
        if status not in (RowStatus.FAILED, RowStatus.CANCELLED):
            msg = (
                f"status is {str(status)!r}; expected 'failed' or 'cancelled'. Open rows run anyway, waiting ones need "
                "answers, and finished ones run again if their code has changed: run_many(..., changed='rerun')."
            )
            raise ValueError(msg)
        self.store.reopen(RowStatus(status), keys)
        self._continue()
        return self

    def _continue(self) -> None:
        """Let the driver look for open rows, and start another one if it has ended or is ending."""
        with self._lock:
            if self._run is None:
                return
            if self._is_over:
                self._run = self._submit(self._loop if self._loop is not None and self._loop.is_running() else None)
            elif self._driver is not None and not self._driver.wake():
                self._goes_on, self._is_cancelled = True, False

    # ---- iterating ---------------------------------------------------------------------------------------------------

    async def __aiter__(self) -> AsyncGenerator[BatchRow, None]:
        reader = EndedKeys()
        self._readers.append(reader)
        try:
            run = self._begin(asyncio.get_running_loop())
            if run.done():
                reader.close()
            for key in await run_in_thread(self.store.ended_keys):
                reader.put(key)
            while (keys := await reader.take()) is not None:
                for row in await run_in_thread(self._rows_of, keys):
                    yield row
            await asyncio.wrap_future(run)
            for row in await run_in_thread(self._rows_of, await run_in_thread(self.store.ended_keys), reader.seen):
                yield row
        finally:
            self._readers.remove(reader)

    def __iter__(self) -> Iterator[BatchRow]:
        self._require_other_loop("`for`", "async for row in batch")
        rows = self.__aiter__()
        end = object()
        try:
            self._begin(None)
            while (row := run_sync(anext(rows, end))) is not end:
                yield row  # type: ignore[misc]
        except KeyboardInterrupt:
            self._interrupt()
            raise
        finally:
            run_sync(rows.aclose())

    def _rows_of(self, keys: Sequence[str], seen: set[str] | None = None) -> list[BatchRow]:
        wanted = [key for key in keys if seen is None or key not in seen]
        found: list[BatchRow] = []
        for start in range(0, len(wanted), 200):
            part = wanted[start : start + 200]
            by_key = {row.key: row for row in self.store.rows(keys=part)}
            found += [by_key[key] for key in part if key in by_key]
        return found

    # ---- reading -----------------------------------------------------------------------------------------------------

    @property
    def workflow(self) -> Workflow | None:
        """The workflow; None if the batch was opened without one."""
        return None if self._target is None else self._target.workflow

    @property
    def progress(self) -> BatchProgress:
        """A snapshot of the numbers, from any thread."""
        driver = self._driver
        if driver is None:
            tally = Tally(None)
            tally.load(self.store)
            ended = sum(tally.counts.values())
            total = ended if self._total is None else max(self._total, ended)
            return tally.progress(total, name=self.name, state=self._state, reason=self._reason)
        return driver.tally.progress(
            driver.reader.distinct,
            name=self.name,
            duplicates=driver.reader.duplicates,
            concurrency=driver.concurrency,
            rejected=driver.rejected,
            state=self._state,
            reason=self._reason or driver.reason,
        )

    def rows(
        self,
        status: RowStatus | str | None = None,
        *,
        error: str | None = None,
        path: str | None = None,
        keys: Sequence[str] | None = None,
        limit: int | None = None,
        offset: int = 0,
        newest: bool = False,
    ) -> list[BatchRow]:
        """Return rows in the order of the inputs; an input that equals an earlier one has no row of its own.

        Args:
            status: Only rows with this status.
            error: Only rows that failed with an error of this class.
            path: Only rows whose runs took this path.
            keys: Only rows with these keys.
            limit: Maximum number of rows.
            offset: Number of rows to leave out at the beginning.
            newest: Only rows that have ended, the last one first, instead of the order of the inputs.
        """
        wanted = None if status is None else RowStatus(status)
        return self.store.rows(wanted, error=error, path=path, keys=keys, limit=limit, offset=offset, newest=newest)

    def row(self, key: str) -> BatchRow:
        """Return the row with this key. BatchNotFoundError: there is none."""
        found = self.store.rows(keys=[key])
        if not found:
            there = ", ".join(repr(row.key) for row in self.store.rows(limit=3, with_values=False)) or "none"
            msg = f"The batch {self.name!r} has no row {key!r}. Its first keys: {there}."
            raise BatchNotFoundError(msg, name=key)
        return found[0]

    def traffic(self) -> list[Traffic]:
        """Return what passed each node and each edge of the graph, row by row."""
        return self.store.traffic()

    def repeats(self) -> dict[int, str]:
        """Return the positions of inputs that equal an earlier one, each with the key of that one's row."""
        return self.store.repeats()

    @property
    def failed(self) -> RowView:
        """The failed rows."""
        return RowView(self, RowStatus.FAILED)

    @property
    def waiting(self) -> RowView:
        """The rows that wait for a person."""
        return RowView(self, RowStatus.WAITING)

    def frame(
        self, *, status: RowStatus | str | None = None, expand: str | Sequence[str] | None = None
    ) -> pd.DataFrame:
        """Return the rows as a DataFrame, one row per input in the order of the inputs.

        Args:
            status: Only rows with this status.
            expand: `input`, `output` or both: turn the fields of inputs or outputs into columns.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        made: pd.DataFrame = call_view(
            "agentbench.notebook.batches.frame:batch_frame", self, status=status, expand=expand
        )
        return made

    def explore(self) -> Any:
        """Return a map of all runs: the graph with its traffic, the paths through it, and the rows.

        Raises:
            MissingExtraError: The notebook extra is not installed.
        """
        return call_view("agentbench.notebook.batches.explore:explore", self)

    def compare(self, other: Batch) -> Any:
        """Compare the rows with those of another batch, key by key; the result shows what changed, and where first."""
        from agentbench.batch.comparison import compare_rows  # noqa: PLC0415 - few batches are compared

        return compare_rows(self.rows(), other.rows())

    # ---- questions ---------------------------------------------------------------------------------------------------

    def questions(self, key: str | None = None) -> list[Question]:
        """Return the open questions of all runs, in the order of the inputs, or those of one row."""
        return [Question(name, request) for name, requests in self.store.questions(key) for request in requests or ()]

    def inbox(self) -> Any:
        """Return the open questions of all runs as forms; equal questions can be answered together.

        Raises:
            MissingExtraError: The notebook extra is not installed.
        """
        return call_view("agentbench.notebook.batches.inbox:batch_inbox", self)

    async def answer(self, key: str | Callable[[Question], Any], answers: Mapping[str, Any] | None = None) -> int:
        """Answer questions. An answered run continues at once if the batch has begun, otherwise at the next call.

        Args:
            key: The key of a row; or a function that gets each `Question` and returns its answer, or None for none.
            answers: The answers by request id.

        Returns:
            The number of rows that were answered.

        Raises:
            BatchNotFoundError: There is no row with this key.
            ValueError: An answer fits no open question of the row, which keeps waiting.
        """
        return await run_in_thread(self._answer_all, key, answers)

    def answer_now(self, key: str | Callable[[Question], Any], answers: Mapping[str, Any] | None = None) -> int:
        """Do the same as `answer`, from synchronous code."""
        return self._answer_all(key, answers)

    def _answer_all(self, key: str | Callable[[Question], Any], answers: Mapping[str, Any] | None) -> int:
        given: dict[str, dict[str, Any]] = {}
        if isinstance(key, str):
            if not answers:
                msg = f"answers is {answers!r}; expected {{request_id: answer}}, with ids of batch.questions({key!r})."
                raise ValueError(msg)
            given = {key: dict(answers)}
        else:
            for question in self.questions():
                value = key(question)
                if value is not None:
                    given.setdefault(question.key, {})[question.request.request_id] = value
        count = 0
        try:
            for name, values in given.items():
                count += self._answer_one(name, values)
        finally:  # also those before an answer that does not fit
            if count:
                self._continue()
        return count

    def _answer_one(self, key: str, answers: dict[str, Any]) -> bool:
        open_requests = {each.request.request_id: each.request for each in self.questions(key)}
        if not open_requests:
            msg = (
                f"Row {key!r} of batch {self.name!r} asks nothing: it is {self.row(key).status}. See batch.questions()."
            )
            raise ValueError(msg)
        graph = None if self._target is None else self._target.workflow.graph
        return self.store.answer(key, check_responses(open_requests, answers, graph))

    # ---- single runs -------------------------------------------------------------------------------------------------

    def open(self, key: str, *, rerun: bool = False) -> WorkflowRun:
        """Return a handle on the run of a row, at its last checkpoint: step it, go back, fork it.

        What is done with the handle changes neither the row nor the row's checkpoints: it works on a copy.

        Args:
            key: The key of the row.
            rerun: Begin again from the row's input, for rows that keep no checkpoints.

        Raises:
            BatchNotFoundError: There is no such row.
            BatchError: The row keeps no checkpoints, or the batch was opened without its workflow.
        """
        row = self.row(key)
        if self._target is None:
            msg = f"The batch {self.name!r} was opened without its workflow. Call run_many() with it to open runs."
            raise BatchError(msg)
        target = self._target.of(row.input)
        chain = target.opened_chain(key)
        start = row.input if isinstance(row.input, Start) else None
        if rerun and start is not None and start.checkpoint is not None:
            copied = run_sync(copy_for_run(start, target.workflow.graph, chain, ""))
            memory = InMemoryCheckpointStorage()
            run_sync(memory.save(copied))
            return target.open(key, None, copied, memory)
        if rerun:
            return target.open(key, row.input if start is None else start.input, None, InMemoryCheckpointStorage())
        storage, last = self.store.database.storage, row.checkpoint_id
        if row.status in (RowStatus.OPEN, RowStatus.CANCELLED):  # not written to the row before the run has ended
            latest = run_sync(storage.get_latest(workflow_name=self._target.chain(key)))
            last = None if latest is None else latest.checkpoint_id
        if last is None:
            msg = (
                f"Row {key!r} keeps no checkpoints, because it is {row.status} (checkpoints='failed' keeps those of "
                "failed runs). Run it again with open(key, rerun=True), or pass checkpoints='all' to run_many()."
            )
            raise BatchError(msg)
        fork = run_sync(fork_checkpoint(storage, last, workflow_name=chain))
        checkpoint = run_sync(storage.load(fork.checkpoint_id))
        return target.open(key, None, checkpoint, storage)

    def keep_as_tests(
        self,
        keys: Sequence[str],
        folder: str | os.PathLike[str],
        workflow: str | None = None,
        *,
        overwrite: bool = False,
    ) -> list[Path]:
        """Write one test for each of these rows into a folder, like `WorkflowRun.keep_as_test`.

        Each row runs once more from its input, so its clients must work offline: for a row whose workflow calls a
        model, start the workflow on `row.input` with `RunOptions(record=True)`, and keep that run.

        Args:
            keys: The keys of finished or failed rows.
            folder: Where the tests are written; each is named after the key of its row.
            workflow: `"module:name"` of the workflow, or a name that a cell defines.
            overwrite: Replace tests of these names.

        Returns:
            The paths of the tests.

        Raises:
            BatchNotFoundError: There is no such row.
            BatchError: The batch was opened without its workflow.
            KeepTestError: A row cannot be kept, such as one that gives another output when it runs again.

        Example:
            >>> batch.keep_as_tests(["parcel-3", "parcel-8"], "tests/kept")
            [PosixPath('tests/kept/test_parcel_3.py'), PosixPath('tests/kept/test_parcel_8.py')]
        """
        kept: list[Path] = call_view(
            "agentbench.revisions.kept_tests.batches:keep_rows", self, keys, folder, workflow, overwrite=overwrite
        )
        return kept

    def close(self) -> None:
        """Stop the batch, wait for it, and close its database; on the batch's own event loop, without waiting."""
        self.cancel()
        self._end_display()
        if self._run is not None and self._runs_here():
            self._run.add_done_callback(lambda _: self.store.close())
            return
        if self._run is not None and not self._run.done():
            with suppress(Exception):  # whoever awaits it gets its error
                wait_sync(self._run)
        self.store.close()

    def __repr__(self) -> str:
        progress = self.progress
        parts = [f"{count:,} {status}" for status, count in progress.counts.items() if count]
        reason = f"; {progress.reason}" if progress.reason else ""
        return f"Batch({self.name!r}, {', '.join(parts) or 'no rows yet'}; {progress.state}{reason})"


def is_in_notebook() -> bool:
    """Return whether this process is the kernel of a notebook."""
    ipython = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


async def _outcome(run: EngineFuture[None]) -> None:
    await asyncio.wrap_future(run)
