"""The commands: `lab` opens the workbench, `demo` runs a workflow in the terminal, `doctor` looks what is installed."""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import io
import math
import os
import subprocess
import sys
import time
import urllib.parse
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from agentbench._bridge import run_sync
from agentbench._clock import CountingIds
from agentbench._extras import require
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import AgentFrameworkException, MissingExtraError
from agentbench.workflow.approval import Approval
from agentbench.workflow.events import WorkflowRunState
from agentbench.workflow.options import RunOptions
from agentbench.workflow.run import WorkflowRun

__all__ = ["main"]

FIRST_NOTEBOOK = "01_first_workflow.ipynb"
NO_NOTEBOOKS = (
    "The notebooks are not here: they are in the repository, not in the installed package. Clone it and run\n"
    '  pip install -e ".[notebook]" && agentbench lab\n'
    "in the clone, or name a notebook of your own: agentbench lab FILE.ipynb"
)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: Those of the command line by default.

    Returns:
        The exit status: 0 if all went well, 1 for an error that was told, 2 for arguments that are none, 130 if the
        person at the keyboard ended it.
    """
    given = _parser().parse_args(arguments)
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a terminal that lacks a sign shows another, and goes on
    command: Callable[[argparse.Namespace], int] = given.command
    try:
        return command(given)
    except (AgentFrameworkException, OSError, EOFError) as error:
        print(f"agentbench: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print(file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="agentbench", description="Agent workflows as graphs, run and seen.")
    version = f"agentbench {importlib.metadata.version('agentbench')}"
    parser.add_argument("--version", action="version", version=version)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    lab = commands.add_parser("lab", help="open JupyterLab on the first notebook, on this machine only")
    lab.add_argument(
        "notebook", nargs="?", help="a notebook file, or the beginning of a name in notebooks/, such as 02"
    )
    lab.add_argument("--no-browser", action="store_true", help="only print the address")
    lab.add_argument("--port", type=int, help="of the server (default: the first free one from 8888)")
    lab.set_defaults(command=_lab)

    demo = commands.add_parser(
        "demo",
        help="run the workflow of the first notebook here",
        description="Runs the workflow of the first notebook, asks whether its report is to be published, and writes a "
        "drawing of the graph and a table of the checkpoints. Where nobody can answer, because input is no "
        "terminal, the answer is yes.",
    )
    demo.add_argument(
        "--output", type=Path, default=Path("agentbench-demo"), metavar="DIR", help="default: %(default)s"
    )
    answer = demo.add_mutually_exclusive_group()
    answer.add_argument("--yes", dest="answer", action="store_const", const="yes", help="publish, without asking")
    answer.add_argument("--no", dest="answer", action="store_const", const="no", help="do not publish, without asking")
    answer.add_argument(
        "--ask", dest="answer", action="store_const", const="ask", help="ask, even if input is no terminal"
    )
    demo.add_argument(
        "--speed",
        type=_speed,
        metavar="N",
        help="supersteps a second, 0 for as fast as possible (default: 3 on a terminal, 0 elsewhere)",
    )
    demo.set_defaults(command=_demo)

    doctor = commands.add_parser("doctor", help="say which parts are installed, and what is missing")
    doctor.add_argument("--strict", action="store_true", help="exit with 1 if something is missing")
    doctor.set_defaults(command=_doctor)
    return parser


def _speed(text: str) -> float:
    try:
        speed = float(text)
    except ValueError:
        speed = math.nan
    if not 0 <= speed < math.inf:
        msg = f"{text!r} is no speed; expected supersteps a second, 0 or more"
        raise argparse.ArgumentTypeError(msg)
    return speed


# ---- lab -------------------------------------------------------------------------------------------------------------


def _lab(given: argparse.Namespace) -> int:
    notebook = _find_notebook(given.notebook)
    if importlib.util.find_spec("jupyterlab") is None:
        raise MissingExtraError("notebook", "jupyterlab", purpose="open a notebook")
    command = [sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1"]
    # A file as an argument would open in the browser, but the addresses that JupyterLab prints would not name it.
    command.append(f"--ServerApp.root_dir={notebook.parent}")
    command.append(f"--LabApp.default_url=/lab/tree/{urllib.parse.quote(notebook.name)}")
    # What is done here is nobody's business: JupyterLab would fetch news and look for updates.
    command += ["--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    if given.no_browser:
        command.append("--no-browser")
    if given.port is not None:
        command.append(f"--ServerApp.port={given.port}")
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    print(f"Opening {notebook.name} in JupyterLab. Ctrl-C, twice, ends it.", flush=True)
    if os.name != "nt":  # there the terminal would be given back while it is running
        os.execv(sys.executable, command)
    return subprocess.call(command)


def _find_notebook(wanted: str | None) -> Path:
    """The notebook that was asked for: a file, or one in the notebooks folder of the checkout or of this folder."""
    if wanted is not None and Path(wanted).is_file():
        return Path(wanted).resolve()
    folders = [Path(__file__).resolve().parents[1] / "notebooks", Path("notebooks").resolve()]
    for folder in folders:
        if (folder / FIRST_NOTEBOOK).is_file():
            break
    else:
        raise FileNotFoundError(NO_NOTEBOOKS)
    if wanted is None:
        return folder / FIRST_NOTEBOOK
    found = sorted(folder.glob(f"{wanted.removesuffix('.ipynb')}*.ipynb"))
    if len(found) != 1:
        there = ", ".join(path.stem for path in sorted(folder.glob("*.ipynb")))
        msg = f"{wanted!r} names {'no' if not found else 'more than one'} notebook. There are: {there}."
        raise FileNotFoundError(msg)
    return found[0]


# ---- demo ------------------------------------------------------------------------------------------------------------


def _demo(given: argparse.Namespace) -> int:
    for package in ("pandas", "vega_datasets", "graphviz"):
        require(package, extra="notebook", purpose="run the demo")
    from agentbench.notebook import checkpoints_frame, draw  # noqa: PLC0415 - not there without the extra
    from agentbench.notebook.demo import Years, build_workflow  # noqa: PLC0415 - likewise

    _make_folder(given.output)
    workflow, storage = build_workflow(), InMemoryCheckpointStorage()
    options = RunOptions(ids=CountingIds())
    run = workflow.start(Years(1970, 1982), checkpoint_storage=storage, options=options)
    print("What became of cars between 1970 and 1982?\n")
    bar = _Bar(workflow.executors, speed=given.speed)
    bar.drive(run)
    (request,) = run.pending_requests
    approved = _ask(request.data.question, request.data.details, given.answer)
    run_sync(run.send_response(request.request_id, Approval(approved)))
    bar.drive(run)
    for report in run_sync(run.result()).outputs:
        print(f"\n{report.table.to_string()}")

    drawing = draw(workflow).save(given.output / f"{workflow.name}.svg")
    checkpoints, table = checkpoints_frame(storage), given.output / "checkpoints.csv"
    checkpoints.to_csv(table, lineterminator="\n")
    print(f"\n{'Published' if approved else 'Not published'}. Written:")
    print(f"  {drawing}  the graph")
    print(f"  {table}  {len(checkpoints)} checkpoints")
    print("To step through it: agentbench lab")
    return 0


def _make_folder(folder: Path) -> None:
    """Make the folder of `--output`, or say what is in the way."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        is_file = isinstance(error, FileExistsError)
        problem = "it is a file; expected a folder, or a name that is free" if is_file else error.strerror
        msg = f"Nothing can be written to {str(folder)!r}: {problem}. Name another folder with --output DIR."
        raise type(error)(msg) from error


def _ask(question: str, details: str, answer: str | None) -> bool:
    """The answer of the person at the terminal, or the one that was given in advance."""
    print(f"\n{details}\n")
    if answer in ("yes", "no"):
        print(f"{question} {answer}")
        return answer == "yes"
    if answer is None and not sys.stdin.isatty():
        print(f"{question} yes (taken for granted: input is no terminal, so nobody can answer)")
        return True
    while True:
        try:
            said = input(f"{question} [y/n] ").strip().lower()
        except EOFError:
            print()
            msg = "The question was not answered: input is at its end. Answer with --yes or --no."
            raise EOFError(msg) from None
        if said in ("y", "yes", "n", "no"):
            return said.startswith("y")


class _Bar:
    """A line for every superstep, and on a terminal a bar below them.

    Args:
        executors: Ids of those that are expected to run.
        speed: Supersteps a second, 0 for as fast as possible; by default slow enough to be seen on a terminal.
    """

    WIDTH = 32

    def __init__(self, executors: Iterable[str], *, speed: float | None) -> None:
        self._waiting = set(executors)
        self._total = len(self._waiting)
        self._live = sys.stdout.isatty()
        if speed is None:
            speed = 3 if self._live else 0
        self._pause_s = 1 / speed if speed else 0

    def drive(self, run: WorkflowRun) -> None:
        """Step a run until it is over or waits for a person."""
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


# ---- doctor ----------------------------------------------------------------------------------------------------------


def _doctor(given: argparse.Namespace) -> int:
    from agentbench.notebook.doctor import doctor  # noqa: PLC0415 - looks at everything, so it loads a lot

    report = doctor()
    print(report.text)
    return 1 if given.strict and not report.ok else 0
