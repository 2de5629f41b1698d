"""`agentbench demo`: the workflow of the first notebook, run in the terminal."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from agentbench._bridge import run_sync
from agentbench._extras import require
from agentbench.checkpoints.file import FileCheckpointStorage
from agentbench.cli.commands import Commands, ask
from agentbench.workflows.events.events import WorkflowRunState
from agentbench.workflows.executors.approval import Approval
from agentbench.workflows.run.run import WorkflowRun

if TYPE_CHECKING:
    from agentbench.cli.demo_workflow import Trend


def add_demo(commands: Commands) -> None:
    """Add the command to the parser of all commands."""
    demo = commands.add_parser(
        "demo",
        help="run the workflow of the first notebook in the terminal",
        description="Runs the workflow of the first notebook, asks you whether to publish its report, and saves a "
        "drawing of the graph, the checkpoints, and a table of the checkpoints. If the input is not a terminal, the "
        "answer is yes.",
    )
    demo.add_argument(
        "--output",
        type=Path,
        default=Path("agentbench-demo"),
        metavar="DIR",
        help="folder for the files (default: %(default)s)",
    )
    answer = demo.add_mutually_exclusive_group()
    answer.add_argument("--yes", dest="answer", action="store_const", const="yes", help="publish without asking")
    answer.add_argument("--no", dest="answer", action="store_const", const="no", help="reject without asking")
    answer.add_argument(
        "--ask", dest="answer", action="store_const", const="ask", help="ask, even if the input is not a terminal"
    )
    demo.add_argument(
        "--speed",
        type=float,
        metavar="N",
        help="supersteps per second; 0 means no delay (default: 3 on a terminal, 0 elsewhere)",
    )
    demo.set_defaults(command=_demo)


def _demo(arguments: argparse.Namespace) -> int:
    for package in ("pandas", "graphviz"):
        require(package, extra="notebook", purpose="run the demo")
    # Imported here: the engine is not needed to report what is missing.
    from agentbench.cli.demo_workflow import Years, build_workflow  # noqa: PLC0415
    from agentbench.notebook import checkpoints_frame, draw  # noqa: PLC0415

    arguments.output.mkdir(parents=True, exist_ok=True)
    workflow, storage = build_workflow(), FileCheckpointStorage(arguments.output)
    run = workflow.start(Years(1970, 1982), checkpoint_storage=storage)
    print("How did cars change between 1970 and 1982?\n")
    bar = _Bar(workflow.executors, speed=arguments.speed)
    bar.drive(run)
    (request,) = run.pending_requests
    approved = _ask(request.data.question, request.data.details, arguments.answer)
    run_sync(run.respond(request, Approval(approved)))
    bar.drive(run)
    for report in run_sync(run.result()).outputs:
        _print_table(report.trends)

    drawing = draw(workflow).save(arguments.output / f"{workflow.name}.svg")
    checkpoints, table = checkpoints_frame(storage, run_id=run.run_id, full=True), arguments.output / "checkpoints.csv"
    checkpoints.to_csv(table, lineterminator="\n")
    print(f"\n{'Published' if approved else 'Not published'}. Files:")
    print(f"  {drawing}  the graph")
    print(f"  {table}  {len(checkpoints)} checkpoints")
    print("To step through this workflow in a notebook, run: agentbench lab")
    return 0


def _print_table(trends: Sequence[Trend]) -> None:
    """Print one line for each year, with a column for each measure."""
    print("\n    ", *(f"{f'{trend.name} ({trend.unit})':>24}" for trend in trends))
    for year in trends[0].by_year:
        print(year, *(f"{trend.by_year[year]:>24}" for trend in trends))


def _ask(question: str, details: str, answer: str | None) -> bool:
    """Return the user's answer, or that of `--yes` or `--no`."""
    print(f"\n{details}\n")
    if answer in ("yes", "no"):
        print(f"{question} {answer}")
        return answer == "yes"
    if answer is None and not sys.stdin.isatty():
        print(f"{question} yes (the default, because the input is not a terminal)")
        return True
    reply = ask(question)
    if reply is None:
        msg = "The question was not answered: the input has ended. Answer with --yes or --no."
        raise EOFError(msg)
    return reply


class _Bar:
    """Prints a line for every superstep, and a progress bar on a terminal; `speed` is in supersteps per second."""

    WIDTH = 32

    def __init__(self, executors: Iterable[str], *, speed: float | None) -> None:
        self._waiting = set(executors)
        self._total = len(self._waiting)
        self._live = sys.stdout.isatty()
        if speed is None:
            speed = 3 if self._live else 0
        self._pause_s = 1 / speed if speed > 0 else 0

    def drive(self, run: WorkflowRun) -> None:
        """Step a run until it ends or waits for an answer."""
        going = True
        while going:
            self._draw()
            time.sleep(self._pause_s)
            report = run_sync(run.step())
            self._waiting.difference_update(report.invoked)
            self._clear()
            print(f"superstep {report.superstep}: {', '.join(report.invoked)}", flush=True)
            going = report.status is WorkflowRunState.IN_PROGRESS

    def _draw(self) -> None:
        if self._live:
            done = self._total - len(self._waiting)
            filled = self.WIDTH * done // self._total
            print(f"[{'#' * filled:-<{self.WIDTH}}] {done} of {self._total} executors", end="", flush=True)

    def _clear(self) -> None:
        if self._live:
            print("\r\x1b[K", end="")
