"""What people do with a run besides driving it; upper layers do the work, found by name."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from agentbench._display import Displayable, call_view

if TYPE_CHECKING:
    from agentbench.workflows.run.run import WorkflowRun


class RunRevisions(Displayable):
    """The methods of `WorkflowRun` that save, redo, compare and keep a run."""

    def save(self, path: str | Path, *, editable: bool = False, site: str | None = None) -> Path:
        """Write this run to one HTML file, in which anyone can step back and forth through it.

        The file needs no kernel and no network, and need not be trusted. It contains the graph with its states, the
        messages, events, outputs and log after each superstep, and the shared state from the run's checkpoints or else
        from its events. Values under secret names are masked. The run may be over, paused or waiting. A run that began
        at a checkpoint includes the earlier supersteps too: a fork takes them from its original run, other runs from
        the stored checkpoints, which contain no outputs and no logs.

        Args:
            path: The path of the file; an existing file is replaced.
            editable: Let the reader edit values and answer open questions, and download them as a file for `merge`.
                This needs checkpoints. Masked values and values over 20,000 characters cannot be edited.
            site: Relative link from the file to a deployed site, such as `"../lab/"`: an editable page then offers
                "Continue here".

        Returns:
            The path.

        Raises:
            MissingExtraError: The notebook extra is not installed.
            WorkflowCheckpointException: The page should be editable, but this run has no checkpoints.
            ValueError: `site` is not a relative link, or the page is not editable.

        Example:
            >>> run = workflow.start("a report on rain", checkpoint_storage=InMemoryCheckpointStorage())
            >>> await run.result()
            >>> run.save("run.html")  # open it in a browser, or send it
            PosixPath('run.html')
        """
        written: Path = call_view("agentbench.notebook.stepping.saved_run:save_run", self, path, editable, site)
        return written

    async def redo(
        self,
        since: int | None = None,
        workflow: Any = None,
        new_calls: Literal["ask", "allow", "refuse"] | int = "ask",
    ) -> WorkflowRun:
        """Branch off before a superstep with the current code, on the recorded answers of models and people.

        The new run takes the answer to each model request that was recorded from the recording, each once, and gives
        the answers of people again to equal requests of the same executor; other requests stay open. Tools and
        embedding models are really called, as is a chat client that does not derive from `BaseChatClient` and that a
        handler calls without an agent. All handlers run in this process, with `"ask"` without time limits. To have the
        answers of models recorded, start the run with `RunOptions(record=True)`; steppers record models that are not
        offline. This run and its checkpoints do not change.

        Args:
            since: The superstep from which to redo, counted from 0: it is executed again. By default the first one in
                which an executor with changed code took part.
            workflow: The workflow with the new code, with an equal graph. By default the current code is looked up
                by the names of classes, functions and variables.
            new_calls: What happens to a model request that was not recorded: `"ask"` stops the run before it is sent
                (`run.new_call` is the request, `run.allow_new_calls("this")` or `("all")` lets it be sent when the run
                goes on, `run.stop()` ends the run); `"allow"` sends it; `"refuse"` raises an error, for scripts; a
                number sends so many and refuses the next.

        Returns:
            The new run. Nothing has run yet. `compare(run, redone)` shows both.

        Raises:
            RedoError: No code has changed, or none that ran, or that is not known; or the current code of a part cannot
                be found.
            GraphMismatchError: The new workflow has another graph; `workflow.migrate` converts checkpoints.
            UnrecordedCallError: By driving the new run: a request was refused.
            WorkflowCheckpointException: There is no checkpoint of the superstep before `since`.
            TypeError: `workflow` is not a workflow.
            ValueError: `new_calls` has another value, or `since` is not a number of a superstep.

        Example:
            >>> run = workflow.start("a late parcel", checkpoint_storage=storage, options=RunOptions(record=True))
            >>> await run.result()
            >>> redone = await run.redo(workflow=make_workflow())  # after a change of the code
            >>> await redone.result()
        """
        redone: WorkflowRun = await call_view("agentbench.revisions.redo:redo", self, since, workflow, new_calls)
        return redone

    async def what_if(
        self,
        *,
        at: int,
        variants: Mapping[str, Mapping[str, Any]],
        repeat: int = 5,
        concurrency: int | str = "auto",
        budget: Any = None,
        prices: Mapping[str, Any] | None = None,
        progress: bool | None = None,
    ) -> Any:
        """Run branches of this run under changed conditions, several times each, and compare how they end.

        Before superstep `at` everything comes from the checkpoint. From `at` on all branches call their models, the
        unchanged ones included, which are always run under the name "as it was": the summary compares each variant
        with how much they vary by themselves. The branches run through `run_many`, in memory; this run and its
        storage do not change. Nothing is written to the run's own agents either: variants get copies of them.

        Args:
            at: The superstep from which branches run: they begin at the last checkpoint before it. With 0 they begin at
                the input of the run, which needs no storage.
            variants: What is changed, by name of the variant, a dictionary with some of these entries:
                `state`: new values of keys of the state, as in `fork(state_updates=)`.
                `messages`: lists of messages by the id of the executor that sent them, as in `fork(messages=)`.
                `client`: a chat client by the id of an agent node.
                `instructions`: a text by the id of an agent node.
                `answers`: an answer by open request or its id, or by the id of an executor, for all of its requests
                from `at` on. Other open requests keep the answers that the run got before `at`.
                `workflow`: another workflow with the same graph.
            repeat: The number of branches of each variant; with more than 1, "as it was" runs twice as often, because
                every variant is compared with it. With 1 or 2, chance cannot be separated from effect; 20 find more
                than four of five effects of 40 percentage points.
            concurrency: How many branches may be in progress, or `"auto"`, as in `run_many`.
            budget: Limits of all branches together, a `Budget`. Variants take turns, so that a budget that ends early
                leaves them with the same number of branches.
            prices: Prices of models per million tokens, as in `run_many`.
            progress: Whether to show the number of branches and the progress; by default the number, and the progress
                in notebooks only.

        Returns:
            A `WhatIf`: `rows`, `frame()`, `summary()`, `plot()`. A branch that failed or waits for an answer is an
            outcome like others.

        Raises:
            WorkflowCheckpointException: The run has no checkpoints, and `at` is not 0.
            VariantError: A variant names an executor, a request or an entry that does not exist.
            ValueError: `at` or `repeat` is out of range, or changed values do not fit the graph.
            TypeError: A variant or an entry is not a dictionary.

        Example:
            >>> run = workflow.start("a report on rain", checkpoint_storage=InMemoryCheckpointStorage())
            >>> await run.result()
            >>> result = await run.what_if(at=1, variants={"short": {"state": {"tone": "short"}}}, repeat=20)
            >>> print(result.summary())
        """
        further = concurrency, budget, prices, progress
        return await call_view("agentbench.revisions.what_if.what_if:what_if", self, at, variants, repeat, *further)

    async def merge(self, path: str | Path) -> Any:
        """Read what the reader of an editable page of this run sent back. Nothing is applied before `Merge.apply()`.

        The file is data: nothing in it is executed, and it can change only what the page offered for editing, as long
        as the values are those that the reader saw. Approvals in it are not applied; they become `Merge.questions`.

        Args:
            path: The downloaded file, such as `answer.json`.

        Returns:
            A `Merge`: the changes, which display themselves; `await merge.apply()` makes the branch.

        Raises:
            MergeError: The file is not of this format, is for a different run, or changes what it may not.

        Example:
            >>> run.save("run.html", editable=True)  # send it, and get answer.json back
            >>> merge = await run.merge("answer.json")
            >>> branch = await merge.apply()
        """
        return await call_view("agentbench.revisions.merge:merge", self, path)

    def keep_as_test(self, path: str | Path, workflow: str | None = None, *, overwrite: bool = False) -> Path:
        """Write a test that repeats this run without a model and compares outputs, path, state and open questions.

        The test gives the same input and answers. If the run called a model, its recorded answers are written beside
        the test, in a file of the same name that ends in `.jsonl`. A workflow of a module is imported from it. For one
        from cells, the test contains the source of the cells that define it. Ids and times that the run made are not
        compared. `agentbench tests update` shows later changes and rewrites the expected values.

        Args:
            path: `test_NAME.py` for a file of pytest; a name that ends in `.ipynb` for a notebook, which gets one more
                cell with a recording of its own.
            workflow: `"module:name"` of the workflow or of a function without arguments that makes it, or a name that
                a cell defines. By default the variable that holds the workflow.
            overwrite: Replace a file of pytest of this name and its recording.

        Returns:
            The path.

        Raises:
            KeepTestError: The run cannot be repeated, a name or a recording is missing, the test would contain a
                secret, or the file exists. Nothing is written.

        Example:
            >>> run = workflow.start("a parcel is late")
            >>> await run.result()
            >>> run.keep_as_test("tests/test_late_parcel.py")
            PosixPath('tests/test_late_parcel.py')
        """
        written: Path = call_view(
            "agentbench.revisions.kept_tests.keep:keep_as_test", self, path, workflow, overwrite=overwrite
        )
        return written
