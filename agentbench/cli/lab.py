"""`agentbench lab`: opens the first notebook in JupyterLab, on this machine only."""

from __future__ import annotations

import argparse
import importlib.util
import os
import subprocess
import sys
import urllib.parse
from pathlib import Path

from agentbench.cli.commands import Commands, parse_port
from agentbench.exceptions import MissingExtraError

CONNECTION = "agentbench.notebook.runtime.lab_connection.PromptConnection"
"""Socket option of the connection between kernel and page: short messages, such as clicks, are sent without delay."""
FIRST_NOTEBOOK = "01_first_workflow.ipynb"
NO_NOTEBOOKS = (
    "There are no notebooks here: they are in the repository, not in the installed package. Clone it and run\n"
    '  pip install -e ".[notebook]" && agentbench lab\n'
    "in the clone, or name your own notebook: agentbench lab FILE.ipynb"
)


def add_lab(commands: Commands) -> None:
    """Add the command to the parser of all commands."""
    lab = commands.add_parser(
        "lab",
        help="open the first notebook in JupyterLab, on this machine only",
        description="Opens a notebook in JupyterLab, by default the first lesson. Only this machine can connect to it.",
    )
    lab.add_argument(
        "notebook", nargs="?", help="a notebook file, or the beginning of the name of a lesson, such as 02"
    )
    lab.add_argument("--no-browser", action="store_true", help="only print the address")
    lab.add_argument("--port", type=parse_port, help="port of the server (default: the first free port from 8888)")
    lab.set_defaults(command=_lab)


def _lab(options: argparse.Namespace) -> int:
    notebook = _find_notebook(options.notebook)
    if importlib.util.find_spec("jupyterlab") is None:
        raise MissingExtraError("notebook", "jupyterlab", purpose="open a notebook")
    command = [sys.executable, "-m", "jupyterlab", "--ServerApp.ip=127.0.0.1"]
    # A file argument would open in the browser, but the addresses that JupyterLab prints would not include it.
    command.append(f"--ServerApp.root_dir={notebook.parent}")
    command.append(f"--LabApp.default_url=/lab/tree/{urllib.parse.quote(notebook.name)}")
    # By default JupyterLab fetches news and checks for updates; the settings in our folder disable the prompts, too.
    paths = [str(Path(__file__).parent / "jupyter"), os.environ.get("JUPYTER_CONFIG_PATH")]
    os.environ["JUPYTER_CONFIG_PATH"] = os.pathsep.join(filter(None, paths))
    command += ["--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    command.append(f"--ServerApp.kernel_websocket_connection_class={CONNECTION}")
    if options.no_browser:
        command.append("--no-browser")
    if options.port is not None:
        command += [f"--ServerApp.port={options.port}", "--ServerApp.port_retries=0"]  # fail if this port is taken
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    print(f"Opening {notebook.name} in JupyterLab. Press Ctrl-C twice to stop it.", flush=True)
    if os.name != "nt":  # on Windows the terminal would return while it is running
        os.execv(sys.executable, command)
    return subprocess.call(command)


def _find_notebook(wanted: str | None) -> Path:
    """Find a notebook: a file, or one in the notebooks folder of the checkout or of the current folder."""
    if wanted is not None and Path(wanted).is_file():
        return Path(wanted).resolve()
    folder = find_notebooks_folder()
    if wanted is None:
        return folder / FIRST_NOTEBOOK
    if wanted.isdecimal():
        wanted = wanted.zfill(2)
    found = sorted(folder.glob(f"{wanted.removesuffix('.ipynb')}*.ipynb"))
    if len(found) != 1:
        there = ", ".join(path.stem for path in sorted(folder.glob("*.ipynb")))
        msg = f"{wanted!r} names {'no' if not found else 'more than one'} notebook. Notebooks: {there}."
        raise FileNotFoundError(msg)
    return found[0]


def find_notebooks_folder() -> Path:
    """Find the folder of the lessons, in the checkout or below the current folder.

    Raises:
        FileNotFoundError: The installed package has no lessons.
    """
    for folder in (Path(__file__).resolve().parents[2] / "notebooks", Path("notebooks").resolve()):
        if (folder / FIRST_NOTEBOOK).is_file():
            return folder
    raise FileNotFoundError(NO_NOTEBOOKS)
