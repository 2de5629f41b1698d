"""A notebook, open in a real Chromium.

To load JupyterLab takes seconds of a processor, to open a notebook in it a tenth of one, so a loaded page is lent from
test to test, and its theme is changed as a person would change it. All pages share what the browser has fetched.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.browser.lab_server import Lab

WAIT_MS = 60_000
RAISED = "[data-mime-type='application/vnd.jupyter.stderr']"
STATUS_BAR = "#jp-bottom-panel, #jp-main-statusbar"

OPEN = "async path => { await jupyterapp.commands.execute('docmanager:open', {path, factory: 'Notebook'}) }"
CLOSE_ALL = "() => [...jupyterapp.shell.widgets('main')].forEach(each => each.dispose())"
THEME = "async theme => { await jupyterapp.commands.execute('apputils:change-theme', {theme}) }"
SAVE = "() => jupyterapp.commands.execute('docmanager:save')"
# Transitions and the style sheet of a theme come a moment later than the command that asks for them.
IN_THEME = "light => document.body.dataset.jpThemeLight === light"
# Animations without end, such as a pulse, never settle.
SETTLED = """
() => document.getAnimations().every(
  each => each.playState !== 'running' || each.effect?.getComputedTiming().iterations === Infinity)
"""

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

# anywidget's word for a widget that its kernel closed before the page had read it, or that a busy page read too slowly.
# Nothing is missing on the page then.
CLOSED_UNREAD = "[anywidget] Failed to initialize model"
# JupyterLab loads the extension for Python in the page too, where the extra `site` is installed. It is made for
# JupyterLite and ends with this error; nothing of agentbench depends on it.
ONLY_FOR_LITE = "Shared module @jupyterlite/services doesn't exist"


@dataclass
class Page:
    """A page with panels, open in a browser.

    Attributes:
        page: Playwright's page.
        base: The address of its server.
        unread: Errors about widgets that were closed before the page had read them.
        problems: What must not happen on a page: errors of scripts, errors on the console, questions of the browser,
            addresses beyond this machine.
    """

    page: Any
    base: str
    problems: list[str] = field(default_factory=list)
    unread: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.page.set_default_timeout(WAIT_MS)
        self.page.on("pageerror", self._raised)
        self.page.on("console", self._heard)
        self.page.on("dialog", self._asked)
        self.page.on("request", self._requested)

    @property
    def panel(self) -> Any:
        """The cells with their outputs, without what is around them."""
        raise NotImplementedError

    def button(self, name: str) -> Any:
        """A button in the notebook, by what is written on it."""
        return self.panel.get_by_role("button", name=name, exact=True)

    def press(self, *names: str, within: Any = None) -> None:
        """Press buttons or items of menus, one after the other, by what is written on them."""
        around = within or self.panel
        for name in names:
            button = around.get_by_role("button", name=name, exact=True)
            button.or_(around.get_by_role("menuitem", name=name, exact=True)).first.click()

    def settle(self) -> None:
        """Wait until nothing moves any more."""
        self.page.wait_for_function(SETTLED)

    def shot(self, name: str, what: Any = None) -> None:
        """Write a screenshot if somebody wants them."""
        folder = os.environ.get("AGENTBENCH_SHOTS")
        if folder:
            Path(folder).mkdir(parents=True, exist_ok=True)
            (what or self.page).screenshot(path=str(Path(folder) / f"{name}.png"))

    def _raised(self, error: Any) -> None:
        told = str(error.stack or error)
        (self.unread if CLOSED_UNREAD in told else self.problems).append(f"error of a script: {told}")

    def _heard(self, message: Any) -> None:
        if message.type == "error" and not any(text in message.text for text in (CLOSED_UNREAD, ONLY_FOR_LITE)):
            self.problems.append(f"error on the console: {message.text} ({message.location.get('url')})")

    def _asked(self, dialog: Any) -> None:
        # JupyterLab asks before it leaves a page with changes; that is no business of what is tested.
        if dialog.type != "beforeunload":
            self.problems.append(f"the browser asked: {dialog.message}")
        dialog.accept()

    def _requested(self, request: Any) -> None:
        own = (self.base, self.base.replace("http", "ws", 1), "data:", "blob:", "about:")
        if not request.url.startswith(own):
            self.problems.append(f"asked beyond this machine: {request.url}")


@dataclass
class NotebookPage(Page):
    """One notebook in JupyterLab."""

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
            raised = self.panel.locator(RAISED).filter(has_text="Traceback")
            self.panel.get_by_text("cells finished").or_(raised).last.wait_for()
            for told in raised.all_inner_texts():
                raise AssertionError(told.strip().splitlines()[-1])

    def interrupt(self) -> None:
        """Press the stop button of the notebook."""
        self.page.locator("[data-command='notebook:interrupt-kernel'], [title^='Interrupt the kernel']").first.click()

    def save(self) -> None:
        """Save the notebook; the answer of the server says that it was."""
        saving = lambda answer: "/api/contents/" in answer.url and answer.request.method == "PUT"  # noqa: E731
        with self.page.expect_response(saving):
            self.page.evaluate(SAVE)

    def use_theme(self, *, dark: bool) -> None:
        """Change to the dark or the light theme, if it is not that one."""
        light = "false" if dark else "true"
        if not self.page.evaluate(IN_THEME, light):
            self.page.evaluate(THEME, "JupyterLab Dark" if dark else "JupyterLab Light")
            self.page.wait_for_function(IN_THEME, arg=light)


class Pages:
    """The pages of a browser; a page that is left clean is used again."""

    def __init__(self, browser: Any, scale: int = 1) -> None:
        self.context = browser.new_context(device_scale_factor=scale)
        self._free: list[NotebookPage] = []

    def open(self, lab: Lab, path: str, *, dark: bool, own: bool, size: dict[str, int]) -> NotebookPage:
        """Open a notebook on a page that is free, or on a new one."""
        if not own and self._free:
            shown = self._free.pop()
            shown.page.bring_to_front()  # a page in the background draws nothing
            shown.page.set_viewport_size(size)
            shown.page.mouse.move(0, 0)
            shown.use_theme(dark=dark)
            shown.page.evaluate(OPEN, path)
            return shown
        shown = NotebookPage(self.context.new_page(), lab.base)
        shown.page.set_viewport_size(size)
        # One document alone; `reset` ignores a saved layout.
        shown.page.goto(f"{lab.base}/doc/tree/{path}?reset&token={lab.token}", wait_until="commit")
        shown.panel.wait_for()
        shown.use_theme(dark=dark)
        return shown

    def take_back(self, shown: NotebookPage, *, clean: bool) -> None:
        """Keep a page for the next test after one that left nothing behind; end any other."""
        if shown.page.is_closed():
            return
        if clean and not shown.problems and not self._free:
            shown.page.evaluate(CLOSE_ALL)
            # A kernel that died, say, leaves a dialog.
            if shown.page.locator(".jp-Dialog").count() == 0:
                self._free.append(shown)
                return
        shown.page.close()


@contextlib.contextmanager
def running_browser(chromium: str) -> Iterator[Any]:
    """A Chromium without a window. While it runs, this thread can have no event loop of its own."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=chromium, headless=True, args=CHROMIUM_FLAGS)
        try:
            yield running
        finally:
            running.close()
