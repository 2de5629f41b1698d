"""Take pictures of everything that a notebook shows: `python -m tests.browser.shots FOLDER`.

A real JupyterLab in a real Chromium: every state of a stepper, forms of every kind, graphs, tables and plots; each in
light and dark, on a wide and on a narrow page, with few nodes and with many. Files are named after what they show:
`stepper-waiting-5-dark-narrow.png`.

    python -m tests.browser.shots shots                         # all of them: a few minutes
    python -m tests.browser.shots shots --only "form-*" --light # some
"""

from __future__ import annotations

import argparse
import contextlib
import fnmatch
import os
import signal
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

from tests.browser.lab_server import Lab, running_lab
from tests.browser.notebook_page import NotebookPage, Pages, running_browser
from tests.browser.scenes import OVERLAYS, SCENES, SETUP, Scene

WIDTHS = {"wide": 1280, "narrow": 700}
NODES = (5, 500)
HEIGHT = 1400
PATIENCE_MS = 20_000


def chosen(patterns: Sequence[str], nodes: Sequence[int]) -> Iterator[tuple[Scene, int]]:
    """The scenes whose names fit one of the patterns, each with the sizes that it comes in."""
    for scene in SCENES:
        if not patterns or any(fnmatch.fnmatch(scene.name, pattern) for pattern in patterns):
            yield from ((scene, count) for count in nodes if scene.sized or count == min(nodes))


def open_scene(pages: Pages, lab: Lab, scene: Scene, nodes: int) -> NotebookPage:
    """Run the cell of a scene in a new notebook."""
    name = f"{scene.name}-{nodes}"
    lab.write(name, [SETUP, scene.cell.replace("NODES", str(nodes))])
    size = {"width": WIDTHS["wide"], "height": HEIGHT}
    shown = pages.open(lab, lab.path(name), dark=False, own=False, size=size)
    shown.page.set_default_timeout(PATIENCE_MS)
    shown.wait_until_ready()
    shown.run_all()
    return shown


def take(shown: NotebookPage, scene: Scene, stem: Path, themes: Sequence[bool]) -> Iterator[Path]:
    """Take the pictures of one scene."""
    what = shown.panel.locator(".jp-Cell").nth(1).locator(scene.shown).last
    what.wait_for()
    if scene not in OVERLAYS:
        shown.press(*scene.press)
    for dark in themes:
        shown.use_theme(dark=dark)
        shown.page.emulate_media(color_scheme="dark" if dark else "light")
        for width, pixels in WIDTHS.items():
            shown.page.set_viewport_size({"width": pixels, "height": HEIGHT})
            if scene in OVERLAYS:  # what lies above a page closes when the page changes
                shown.page.keyboard.press("Escape")
                shown.press(*scene.press)
            shown.settle()
            path = stem.with_name(f"{stem.name}-{'dark' if dark else 'light'}-{width}.png")
            what.screenshot(path=str(path))
            yield path


def take_all(folder: Path, wanted: Sequence[tuple[Scene, int]], themes: Sequence[bool], chromium: str) -> list[str]:
    """Take pictures of these scenes; returns what could not be shown, and why."""
    from playwright.sync_api import Error

    folder.mkdir(parents=True, exist_ok=True)
    failed: list[str] = []
    with contextlib.ExitStack() as running:
        root = Path(running.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        server = running.enter_context(running_lab(root))
        pages = Pages(running.enter_context(running_browser(chromium)))
        for scene, nodes in wanted:
            name = f"{scene.name}-{nodes}" if scene.sized else scene.name
            problems: list[str] = []
            shown: NotebookPage | None = None
            try:
                shown = open_scene(pages, server.with_new_folder(), scene, nodes)
                for path in take(shown, scene, folder / name, themes):
                    print(path, flush=True)
            except (Error, AssertionError) as error:
                problems.append(str(error).splitlines()[0])
            if shown is not None:
                problems += shown.problems
                pages.take_back(shown, clean=not problems)
            server.end_kernels()
            failed += [f"{name}: {problem}" for problem in problems]
    return failed


def main(arguments: Sequence[str] | None = None) -> int:
    """Take the pictures; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the pictures go")
    parser.add_argument("--only", nargs="*", default=[], metavar="NAME", help="names of scenes, * fits anything")
    parser.add_argument("--nodes", nargs="*", type=int, default=NODES, help="sizes of graphs")
    parser.add_argument("--light", action="store_true", help="no dark ones")
    given = parser.parse_args(arguments)
    wanted = list(chosen(given.only, given.nodes))
    if not wanted:
        parser.error(f"no scene is called so; there are {', '.join(scene.name for scene in SCENES)}")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # JupyterLab and the browser are ended on the way out
    themes = [False] if given.light else [False, True]
    failed = take_all(given.folder, wanted, themes, os.environ.get("CHROMIUM", "/usr/bin/chromium"))
    for line in failed:
        print(f"not shown: {line}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
