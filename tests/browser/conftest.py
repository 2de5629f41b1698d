"""A real JupyterLab on loopback and a real Chromium, one of each for all tests of this folder.

A test has a folder, a notebook and a kernel of its own, and a page of its own where it asks for one.

`AGENTBENCH_SHOTS=folder` makes tests write screenshots there. After a failure the page and the server's log are kept.
"""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browser.lab_server import Lab, running_lab
from tests.browser.notebook_page import NotebookPage, Pages, running_browser

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
                last.callback(_keep, shown, kept, lab.log, request.node)
    assert problems == []


def _keep(shown: NotebookPage, picture: Path, log: Path, node: pytest.Item) -> None:
    shown.page.screenshot(path=str(picture))
    told = f"The page as it was: {picture}. The server's log: {log}."
    node.add_report_section("teardown", "browser", told)


@pytest.fixture
def flow_beside_the_notebooks(lab: Lab) -> None:
    """Cells of the test import `review_flow`."""
    shutil.copy(HERE / "review_flow.py", lab.folder)
