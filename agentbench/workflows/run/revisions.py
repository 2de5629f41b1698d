"""What people do with a run besides driving it; upper layers do the work, found by name."""

from __future__ import annotations

from pathlib import Path

from agentbench._display import Displayable, call_view


class RunRevisions(Displayable):
    """The methods of `WorkflowRun` that save, redo, compare and keep a run."""

    def save(self, path: str | Path) -> Path:
        """Write this run to one HTML file, in which anyone can step back and forth through it.

        The file needs no kernel and no network, and need not be trusted. It contains the graph with its states, the
        messages, events, outputs and log after each superstep, and the shared state from the run's checkpoints or else
        from its events. Values under secret names are masked. The run may be over, paused or waiting. A run that began
        at a checkpoint includes the earlier supersteps too: a fork takes them from its original run, other runs from
        the stored checkpoints, which contain no outputs and no logs.

        Args:
            path: The path of the file; an existing file is replaced.

        Returns:
            The path.

        Raises:
            MissingExtraError: The notebook extra is not installed.

        Example:
            >>> run = workflow.start("a report on rain", checkpoint_storage=InMemoryCheckpointStorage())
            >>> await run.result()
            >>> run.save("run.html")  # open it in a browser, or send it
            PosixPath('run.html')
        """
        written: Path = call_view("agentbench.notebook.stepping.saved_run:save_run", self, path)
        return written
