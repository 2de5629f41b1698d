"""A real JupyterLab on loopback and a real Chromium, one of each for a module.

`AGENTBENCH_SHOTS=folder` makes tests write screenshots there. After a failure the page and the server's log are kept.
"""

from __future__ import annotations

import json
import os
import secrets
import signal
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
WAIT_MS = 60_000

CHROMIUM_FLAGS = [
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
if hasattr(os, "geteuid") and os.geteuid() == 0:
    CHROMIUM_FLAGS.append("--no-sandbox")  # containers and CI run as root


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if Path(__file__).parent in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


FAILED = pytest.StashKey[bool]()


@dataclass
class Lab:
    """A running JupyterLab.

    Attributes:
        base: Its address.
        token: What opens it.
        folder: Where its notebooks lie.
        log: What it writes.
    """

    base: str
    token: str
    folder: Path
    log: Path

    def write(self, name: str, cells: Sequence[str]) -> None:
        """Write a notebook of code cells; the last one is followed by one that says `cells finished`."""
        import nbformat

        sources = [*cells, "print('cells', 'finished')"]
        notebook = nbformat.v4.new_notebook(
            cells=[nbformat.v4.new_code_cell(source) for source in sources],
            metadata={"kernelspec": {"name": "python3", "display_name": "Python 3"}},
        )
        nbformat.write(notebook, self.folder / f"{name}.ipynb")

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

    def set_theme(self, *, dark: bool) -> None:
        """Choose the theme of pages that are opened from now on."""
        theme = "JupyterLab Dark" if dark else "JupyterLab Light"
        (_settings(self.folder) / "themes.jupyterlab-settings").write_text(f'{{"theme": "{theme}"}}')


@dataclass
class NotebookPage:
    """One notebook, open in a browser.

    Attributes:
        page: Playwright's page.
        problems: Errors that scripts of the page raised.
    """

    page: Any
    problems: list[str] = field(default_factory=list)

    @property
    def panel(self) -> Any:
        """The notebook itself, without menus and bars."""
        return self.page.locator(".jp-NotebookPanel:visible")

    def run_all(self, *, finished: bool = True) -> None:
        """Run all cells; wait for the last one unless told otherwise."""
        self.page.get_by_role("menuitem", name="Run", exact=True).click()
        self.page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        if finished:
            self.panel.get_by_text("cells finished").last.wait_for()

    def button(self, name: str) -> Any:
        """A button in the notebook, by what is written on it."""
        return self.panel.get_by_role("button", name=name, exact=True)

    def shot(self, name: str, what: Any = None) -> None:
        """Write a screenshot if somebody wants them."""
        folder = os.environ.get("AGENTBENCH_SHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            (what or self.page).screenshot(path=str(Path(folder) / f"{name}.png"))


@pytest.fixture(scope="module")
def lab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    pytest.importorskip("jupyterlab")
    folder = tmp_path_factory.mktemp("lab")
    settings = _settings(folder)
    settings.mkdir(parents=True)
    # Without these a question about news covers the page.
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    port, token = _free_port(), secrets.token_hex(16)
    server = Lab(f"http://127.0.0.1:{port}", token, folder, folder / "lab.log")
    server.set_theme(dark=False)
    with server.log.open("w") as log:
        process = _start(folder, port, token, log)
        try:
            _wait_for(f"{server.base}/api?token={token}", process)
            yield server
        finally:
            _stop(process)


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, headless=True, args=CHROMIUM_FLAGS)
        yield running
        running.close()


@pytest.fixture
def open_notebook(lab: Lab, browser: Any, request: pytest.FixtureRequest) -> Iterator[Any]:
    """Open a notebook of the lab: `open_notebook(name, dark=False, width=1280)`; asserts that no script failed."""
    opened: list[tuple[Any, NotebookPage]] = []

    def open_it(name: str, *, dark: bool = False, width: int = 1280, height: int = 1000) -> NotebookPage:
        lab.set_theme(dark=dark)
        context = browser.new_context(viewport={"width": width, "height": height})
        shown = NotebookPage(context.new_page())
        opened.append((context, shown))
        page = shown.page
        page.set_default_timeout(WAIT_MS)
        page.on("pageerror", lambda error: shown.problems.append(str(error)))
        # One document alone; `reset` ignores a saved layout.
        page.goto(f"{lab.base}/doc/tree/{name}.ipynb?reset&token={lab.token}")
        shown.panel.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        # The kernel must be connected, or the run command is lost without a word. Only the status bar tells it truly.
        page.locator("#jp-bottom-panel, #jp-main-statusbar").get_by_text("| Idle").first.wait_for()
        return shown

    yield open_it
    failed = request.node.stash.get(FAILED, True)
    problems: list[str] = []
    for number, (context, shown) in enumerate(opened):
        if failed:
            kept = lab.folder / f"failed-{request.node.name}-{number}.png"
            shown.page.screenshot(path=str(kept))
            told = f"The page as it was: {kept}. The server's log: {lab.log}."
            request.node.add_report_section("teardown", "browser", told)
        problems += shown.problems
        context.close()
    lab.end_kernels()
    assert problems == []


def _settings(folder: Path) -> Path:
    return folder / ".lab-settings" / "@jupyterlab" / "apputils-extension"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _start(folder: Path, port: int, token: str, log: Any) -> subprocess.Popen[bytes]:
    """Start JupyterLab with folders of its own, so that nothing of the person's is read or changed."""
    environment = dict(os.environ)
    for name in ("CONFIG", "DATA", "RUNTIME"):
        (folder / f".jupyter-{name.lower()}").mkdir()
        environment[f"JUPYTER_{name}_DIR"] = str(folder / f".jupyter-{name.lower()}")
    environment["JUPYTERLAB_SETTINGS_DIR"] = str(folder / ".lab-settings")
    environment["JUPYTERLAB_WORKSPACES_DIR"] = str(folder / ".lab-workspaces")
    environment["IPYTHONDIR"] = str(folder / ".ipython")
    environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    command = [
        sys.executable, "-m", "jupyterlab", "--no-browser", "--ip=127.0.0.1", f"--port={port}",
        "--ServerApp.port_retries=0", f"--IdentityProvider.token={token}", f"--ServerApp.root_dir={folder}",
    ]  # fmt: skip
    if hasattr(os, "geteuid") and os.geteuid() == 0:
        command.append("--allow-root")
    return subprocess.Popen(command, cwd=folder, env=environment, stdout=log, stderr=log, start_new_session=True)


def _wait_for(url: str, process: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + WAIT_MS / 1000
    while time.monotonic() < end:
        if process.poll() is not None:
            pytest.fail(f"JupyterLab ended early with status {process.returncode}")
        try:
            with urllib.request.urlopen(url, timeout=2) as answer:
                if answer.status == 200:
                    return
        except OSError:
            time.sleep(0.1)
    pytest.fail(f"JupyterLab did not answer at {url}")


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End the process group that was started here, and no other process."""
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGTERM)
        try:
            process.wait(15)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait(5)
