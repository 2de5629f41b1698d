"""A real Chromium for all tests of this folder, with two kinds of pages.

`open_cells` shows panels on a plain page, with cells that run in this process: for everything that panels do by
themselves. `open_notebook` shows a notebook in a real JupyterLab on loopback, one for all tests, each with a folder, a
notebook and a kernel of its own: for what panels do together with it, its kernel and its files.

`AGENTBENCH_SHOTS=folder` makes tests write screenshots there. After a failure the page and the server's log are kept.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Generator, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.browser.lab_server import Lab, running_lab
from tests.browser.notebook_page import NotebookPage, Page, Pages, running_browser
from tests.browser.plain_page import PlainPage, open_plain
from tests.browser.review_flow import held
from tests.notebook.conftest import own_settings as own_settings  # a fixture

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    # A page, a server and a kernel are three programs that do not wait for each other: one second try, which is counted
    # and shown as a rerun. What is really wrong fails twice.
    can_try_again = config.pluginmanager.hasplugin("rerunfailures")
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if can_try_again:
                item.add_marker(pytest.mark.flaky(reruns=1))


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    if report.when == "call":
        item.stash[FAILED] = report.failed
    return report


FAILED = pytest.StashKey[bool]()


# What was started for a test of this folder and is kept for the next one.
STARTED = contextlib.ExitStack()
KEPT: dict[str, Any] = {}


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    # Not with the session: while Playwright runs, no other test of this thread could have an event loop.
    if HERE in item.path.parents and (nextitem is None or HERE not in nextitem.path.parents):
        KEPT.clear()
        STARTED.close()


@pytest.fixture
def lab(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """The server, with a new folder for the test; kernels end with it."""
    pytest.importorskip("jupyterlab")
    if "lab" not in KEPT:
        KEPT["lab"] = STARTED.enter_context(running_lab(tmp_path_factory.mktemp("lab")))
    server: Lab = KEPT["lab"]
    yield server.with_new_folder()
    server.end_kernels()


@pytest.fixture
def pages(chromium: str) -> Pages:
    if "pages" not in KEPT:
        KEPT["pages"] = Pages(STARTED.enter_context(running_browser(chromium)))
    kept: Pages = KEPT["pages"]
    return kept


@pytest.fixture
def open_notebook(lab: Lab, pages: Pages, request: pytest.FixtureRequest) -> Iterator[Callable[..., NotebookPage]]:
    """Open a notebook of the lab: `open_notebook(name, dark=False, width=1280)`; asserts that nothing went wrong.

    With `own=True` nobody else ever has the page: for tests that reload it, listen to it, attack it or end a kernel.
    """
    opened: list[tuple[NotebookPage, bool]] = []

    def open_it(
        name: str, *, dark: bool = False, own: bool = False, width: int = 1280, height: int = 1000
    ) -> NotebookPage:
        size = {"width": width, "height": height}
        shown = pages.open(lab, lab.path(name), dark=dark, own=own, size=size)
        opened.append((shown, own))
        shown.wait_until_ready()
        return shown

    problems: list[str] = []
    with contextlib.ExitStack() as last:  # all of it happens, whatever fails on the way
        yield open_it
        failed = request.node.stash.get(FAILED, True)
        for number, (shown, own) in enumerate(opened):
            last.callback(problems.extend, shown.problems)
            last.callback(pages.take_back, shown, clean=not (failed or own))
            if failed:
                kept = lab.folder / f"failed-{request.node.name}-{number}.png"
                last.callback(_keep, shown, kept, request.node, f" The server's log: {lab.log}.")
    assert problems == []


@pytest.fixture
def open_cells(
    pages: Pages, own_settings: None, tmp_path: Path, request: pytest.FixtureRequest
) -> Iterator[Callable[..., PlainPage]]:
    """Run cells on a plain page: `open_cells(cells, dark=False, width=1280)`; asserts that nothing went wrong."""
    opened: list[PlainPage] = []

    def open_it(
        cells: Sequence[str], *, dark: bool = False, finished: bool = True, width: int = 1280, height: int = 1000
    ) -> PlainPage:
        size = {"width": width, "height": height}
        shown = last.enter_context(open_plain(pages.context, cells, dark=dark, finished=finished, size=size))
        opened.append(shown)
        return shown

    with contextlib.ExitStack() as last:
        yield open_it
        if request.node.stash.get(FAILED, True):
            for number, shown in enumerate(opened):
                _keep(shown, tmp_path / f"failed-{number}.png", request.node)
    held.clear()
    assert [problem for shown in opened for problem in shown.problems] == []


def _keep(shown: Page, picture: Path, node: pytest.Item, more: str = "") -> None:
    shown.page.screenshot(path=str(picture))
    node.add_report_section("teardown", "browser", f"The page as it was: {picture}.{more}")
