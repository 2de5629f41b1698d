"""A JupyterLab on loopback, with folders of its own, so that nothing of the person's is read or changed."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from agentbench.cli.lab import CONNECTION

ROOT = Path(__file__).parents[2]
START_S = 60

# The check whether JupyterLab must be built again starts a Node.js for every page. The announcements ask about news
# whenever their settings are not there yet, and that question covers the page.
PAGE_CONFIG = {
    "buildCheck": False,
    "exposeAppInBrowser": True,
    "disabledExtensions": {"@jupyterlab/apputils-extension:announcements": True},
}


@dataclass(frozen=True)
class Lab:
    """A running JupyterLab, as one test sees it.

    Attributes:
        base: Its address.
        token: What opens it.
        root: Where its files lie.
        folder: Where the notebooks of the test lie, somewhere below.
    """

    base: str
    token: str
    root: Path
    folder: Path

    @property
    def log(self) -> Path:
        """What it writes."""
        return self.root / "lab.log"

    def with_new_folder(self) -> Lab:
        """The same server, with an empty folder for notebooks."""
        return replace(self, folder=Path(tempfile.mkdtemp(prefix="test-", dir=self.root)))

    def file(self, name: str) -> Path:
        """A notebook of the test."""
        return self.folder / f"{name}.ipynb"

    def path(self, name: str) -> str:
        """A notebook of the test, as JupyterLab calls it."""
        return self.file(name).relative_to(self.root).as_posix()

    def write(self, name: str, cells: Sequence[str]) -> None:
        """Write a notebook of code cells; the last one is followed by one that says `cells finished`."""
        import nbformat

        sources = [*cells, "print('cells', 'finished')"]
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in sources],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(notebook, self.file(name))

    def end_kernels(self) -> None:
        """End all kernels, so that they take nothing from the next test."""
        for session in json.loads(self._ask("sessions")):
            self._ask(f"sessions/{session['id']}", method="DELETE")

    def _ask(self, what: str, method: str = "GET") -> bytes:
        headers = {"Authorization": f"token {self.token}"}
        asked = urllib.request.Request(f"{self.base}/api/{what}", method=method, headers=headers)
        with urllib.request.urlopen(asked, timeout=20) as answer:
            said: bytes = answer.read()
            return said


@contextlib.contextmanager
def running_lab(root: Path) -> Iterator[Lab]:
    """Start a server in an empty folder; it ends with the block, and its kernels with it."""
    port, token = _free_port(), secrets.token_hex(16)
    lab = Lab(f"http://127.0.0.1:{port}", token, root, root)
    with lab.log.open("w") as log, _started(root, port, token, log) as process:
        _wait_for(f"{lab.base}/api?token={token}", process)
        yield lab


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _started(folder: Path, port: int, token: str, log: Any) -> Iterator[subprocess.Popen[bytes]]:
    environment = dict(os.environ)
    for name in ("CONFIG", "DATA", "RUNTIME"):
        (folder / f".jupyter-{name.lower()}").mkdir()
        environment[f"JUPYTER_{name}_DIR"] = str(folder / f".jupyter-{name.lower()}")
    environment["JUPYTERLAB_SETTINGS_DIR"] = str(folder / ".lab-settings")
    environment["JUPYTERLAB_WORKSPACES_DIR"] = str(folder / ".lab-workspaces")
    environment["IPYTHONDIR"] = str(folder / ".ipython")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    page_config = folder / ".jupyter-config" / "labconfig" / "page_config.json"
    page_config.parent.mkdir()
    page_config.write_text(json.dumps(PAGE_CONFIG))
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        f"--ServerApp.kernel_websocket_connection_class={CONNECTION}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    process = subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)
    try:
        yield process
    finally:
        _stop(process)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + START_S
    while time.monotonic() < end:
        if process.poll() is not None:
            raise RuntimeError(f"JupyterLab ended early with status {process.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError(f"JupyterLab did not answer within {START_S} s at {url.partition('?')[0]}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process group that was started here, and no other process; kernels go with their server."""
    try:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(15)
    finally:
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(5)
