"""A real JupyterLab on loopback, one for all tests, and a real Chromium, one for a module.

To load JupyterLab takes seconds of a processor, to open a notebook in it a tenth of one, so a loaded page is lent from
test to test. A test has a folder, a notebook and a kernel of its own, and a page of its own where it asks for one.

`AGENTBENCH_SHOTS=folder` makes tests write screenshots there. After a failure the page and the server's log are kept.
"""

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
from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
WAIT_MS = 60_000
STATUS_BAR = "#jp-bottom-panel, #jp-main-statusbar"

# The check whether JupyterLab must be built again starts a Node.js for every page.
PAGE_CONFIG = {"buildCheck": False, "exposeAppInBrowser": True}
OPEN = "async path => { await jupyterapp.commands.execute('docmanager:open', {path, factory: 'Notebook'}) }"
CLOSE_ALL = "() => [...jupyterapp.shell.widgets('main')].forEach(each => each.dispose())"

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

    def path(self, name: str) -> str:
        """A notebook of the test, as JupyterLab calls it."""
        return (self.folder / f"{name}.ipynb").relative_to(self.root).as_posix()

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
        (_settings(self.root) / "themes.jupyterlab-settings").write_text(f'{{"theme": "{theme}"}}')


@dataclass
class NotebookPage:
    """One notebook, open in a browser.

    Attributes:
        page: Playwright's page.
        problems: Errors that scripts of the page raised.
    """

    page: Any
    problems: list[str] = field(default_factory=list)

    def wait_until_ready(self) -> None:
        """Wait for the notebook and its kernel."""
        self.panel.locator(".jp-Notebook .jp-CodeCell").first.wait_for()
        # The kernel must be connected, or the run command is lost without a word. Only the status bar tells it truly.
        self.page.locator(STATUS_BAR).get_by_text("| Idle").first.wait_for()

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


class LoadedPages:
    """The loaded pages of a module, by theme; they end with it, so that no module profits from another's widgets."""

    def __init__(self, browser: Any) -> None:
        self._browser = browser
        self._free: dict[bool, NotebookPage] = {}

    def open(self, lab: Lab, path: str, *, dark: bool, own: bool, size: dict[str, int]) -> NotebookPage:
        """Open a notebook on a page that is free, or on a new one."""
        shown = None if own else self._free.pop(dark, None)
        if shown is not None:
            shown.page.set_viewport_size(size)
            shown.page.mouse.move(0, 0)
            shown.page.evaluate(OPEN, path)
            return shown
        lab.set_theme(dark=dark)
        shown = NotebookPage(self._browser.new_context(viewport=size).new_page())
        shown.page.set_default_timeout(WAIT_MS)
        shown.page.on("pageerror", lambda error: shown.problems.append(str(error)))
        # One document alone; `reset` ignores a saved layout.
        shown.page.goto(f"{lab.base}/doc/tree/{path}?reset&token={lab.token}", wait_until="commit")
        return shown

    def take_back(self, shown: NotebookPage, *, dark: bool, clean: bool) -> None:
        """Lend a page again after a test that left nothing behind; end any other."""
        if clean and dark not in self._free and not shown.page.is_closed():
            shown.page.evaluate(CLOSE_ALL)
            # A kernel that died, say, leaves a dialog.
            if not shown.problems and shown.page.locator(".jp-Dialog").count() == 0:
                self._free[dark] = shown
                return
        shown.page.context.close()


@pytest.fixture(scope="session")
def server(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    pytest.importorskip("jupyterlab")
    root = tmp_path_factory.mktemp("lab")
    settings = _settings(root)
    settings.mkdir(parents=True)
    # Without these a question about news covers the page.
    (settings / "notification.jupyterlab-settings").write_text('{"fetchNews": "false", "checkForUpdates": false}')
    port, token = _free_port(), secrets.token_hex(16)
    lab = Lab(f"http://127.0.0.1:{port}", token, root, root)
    with lab.log.open("w") as log, _started(root, port, token, log) as process:
        _wait_for(f"{lab.base}/api?token={token}", process)
        yield lab


@pytest.fixture
def lab(server: Lab) -> Iterator[Lab]:
    """The server, with a new folder for the test; kernels end with it."""
    yield replace(server, folder=Path(tempfile.mkdtemp(prefix="test-", dir=server.root)))
    server.end_kernels()


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Any]:
    # Not for the session: while Playwright runs, no other test of this thread could have an event loop.
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, headless=True, args=CHROMIUM_FLAGS)
        try:
            yield running
        finally:
            running.close()


@pytest.fixture(scope="module")
def loaded_pages(browser: Any) -> LoadedPages:
    return LoadedPages(browser)


@pytest.fixture
def open_notebook(
    lab: Lab, loaded_pages: LoadedPages, request: pytest.FixtureRequest
) -> Iterator[Callable[..., NotebookPage]]:
    """Open a notebook of the lab: `open_notebook(name, dark=False, width=1280)`; asserts that no script failed.

    With `own=True` nobody else ever has the page: for tests that reload it, listen to it, attack it or end a kernel.
    """
    opened: list[tuple[NotebookPage, bool, bool]] = []

    def open_it(
        name: str, *, dark: bool = False, own: bool = False, width: int = 1280, height: int = 1000
    ) -> NotebookPage:
        size = {"width": width, "height": height}
        shown = loaded_pages.open(lab, lab.path(name), dark=dark, own=own, size=size)
        opened.append((shown, dark, own))
        shown.wait_until_ready()
        return shown

    problems: list[str] = []
    with contextlib.ExitStack() as last:  # all of it happens, whatever fails on the way
        yield open_it
        failed = request.node.stash.get(FAILED, True)
        for number, (shown, dark, own) in enumerate(opened):
            last.callback(problems.extend, shown.problems)
            last.callback(loaded_pages.take_back, shown, dark=dark, clean=not (failed or own))
            if failed:
                kept = lab.folder / f"failed-{request.node.name}-{number}.png"
                last.callback(_keep, shown, kept, lab.log, request.node)
    assert problems == []


def _keep(shown: NotebookPage, picture: Path, log: Path, node: pytest.Item) -> None:
    shown.page.screenshot(path=str(picture))
    told = f"The page as it was: {picture}. The server's log: {log}."
    node.add_report_section("teardown", "browser", told)


def _settings(folder: Path) -> Path:
    return folder / ".lab-settings" / "@jupyterlab" / "apputils-extension"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@contextlib.contextmanager
def _started(folder: Path, port: int, token: str, log: Any) -> Iterator[subprocess.Popen[bytes]]:
    """A JupyterLab with folders of its own, so that nothing of the person's is read or changed."""
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
