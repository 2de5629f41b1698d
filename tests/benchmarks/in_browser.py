"""How long a person waits in a page: `python -m tests.benchmarks.in_browser`.

A real JupyterLab in a real Chromium. Times are taken inside the page, from the click to the second frame drawn after
the change (the first one may have been under way), and medians are told. The machine should have nothing else to do.

    python -m tests.benchmarks.in_browser               # all of it: about a minute
    python -m tests.benchmarks.in_browser --clicks 50   # steadier medians
"""

from __future__ import annotations

import argparse
import contextlib
import os
import statistics
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.benchmarks.gates import Row, Target, lines
from tests.browser.lab_server import Lab, running_lab
from tests.browser.notebook_page import NotebookPage, Pages, running_browser

CLICKS = 25
SIZE = {"width": 1280, "height": 1000}
NOTEBOOK = Path(__file__).parents[2] / "agentbench" / "notebook"

SETUP = """
import asyncio, time
from IPython.display import display
from agentbench.notebook import stepper
from tests.benchmarks.engine_workloads import ring
display(stepper(ring(5), 0))
"""
STEPPER = "panel = stepper(ring({nodes}), 0, max_supersteps=10**9)\ndisplay(panel)"

# Does something, waits until what is looked for is there, then for two frames; the milliseconds.
TIMED = """
(doIt, isThere, argument) => new Promise((resolve) => {
  const began = performance.now();
  const watcher = new MutationObserver(() => {
    if (!isThere(argument)) return;
    watcher.disconnect();
    requestAnimationFrame(() => requestAnimationFrame(() => resolve(performance.now() - began)));
  });
  watcher.observe(document.body, { subtree: true, childList: true, characterData: true, attributes: true });
  doIt(argument);
})
"""
LAST = "[...document.querySelectorAll('.abs-frame')].at(-1)"
STEP = f"() => {LAST}.querySelector('[data-command=step]').click()"
# Header and graph both tell of the superstep: who was done in it is marked.
STEPPED = f"""
([superstep, name]) => {LAST}.querySelector('.abs-superstep').textContent === `superstep ${{superstep}}`
  && {LAST}.querySelector(`.ab_node[data-name="${{name}}"].ab_s_done`) !== null
"""
RUN_CELL = "() => jupyterapp.commands.execute('notebook:run-cell')"
# A panel that is new, with its graph and its words.
SHOWN = """
() => [...document.querySelectorAll('.abs-frame:not([data-seen])')].some(
  each => each.querySelector('.ab_node') && each.querySelector('.abs-superstep')?.textContent)
"""
MARK = "() => document.querySelectorAll('.abs-frame').forEach(each => { each.dataset.seen = '' })"
INTERRUPT = "() => jupyterapp.commands.execute('notebook:interrupt-kernel')"
INTERRUPTED = """
() => [...document.querySelectorAll('.jp-OutputArea-output')].some(each => /Interrupt|Cancelled/.test(each.textContent))
"""

TARGETS = {
    "page step 50": Target(100, 50, is_ratio=False),
    "page step 500": Target(200, 80, is_ratio=False),
    "page display": Target(400, 400, is_ratio=False),
    "page await": Target(500, 500, is_ratio=False),
    "page sync wait": Target(500, 500, is_ratio=False),
}


def row(name: str, what: str, took: Sequence[float]) -> Row:
    """The median of some times, and how far they spread."""
    told = f"{what}; {len(took)} times, {min(took):.0f}..{max(took):.0f}"
    return Row(name, told, "ms", statistics.median(took), demanded=TARGETS[name])


class Traffic:
    """Counts what the page gets over its web sockets."""

    def __init__(self, page: Any) -> None:
        self.bytes = 0
        page.on("websocket", lambda socket: socket.on("framereceived", self._got))

    def _got(self, payload: Any) -> None:
        self.bytes += len(payload if isinstance(payload, bytes) else payload.encode())


def open_page(pages: Pages, lab: Lab, name: str, cells: Sequence[str]) -> NotebookPage:
    """A page on which the cells were run."""
    lab.write(name, cells)
    shown = pages.open(lab, lab.path(name), dark=False, own=True, size=SIZE)
    shown.wait_until_ready()
    shown.run_all()
    return shown


def timed(shown: NotebookPage, act: str, seen: str, argument: object = None) -> float:
    """Milliseconds from an action to the picture of what it led to."""
    took: float = shown.page.evaluate(f"argument => ({TIMED})({act}, {seen}, argument)", argument)
    return took


def clicks(pages: Pages, lab: Lab, nodes: int, count: int) -> Iterator[Row]:
    """Steps in a panel, and what each of them sends."""
    lab = lab.with_new_folder()
    lab.write("steps", [SETUP, STEPPER.format(nodes=nodes)])
    shown = pages.open(lab, lab.path("steps"), dark=False, own=True, size=SIZE)
    traffic = Traffic(shown.page)
    shown.page.reload()  # so that the web socket is seen, too
    shown.wait_until_ready()
    shown.run_all()
    shown.page.locator(".abs-frame .ab_node").last.wait_for(state="attached")
    shown.page.locator(".abs-frame").last.locator("[data-command=step]").wait_for()
    took, sent = [], []
    for superstep in range(count + 3):
        before = traffic.bytes
        milliseconds = timed(shown, STEP, STEPPED, [superstep, f"h{superstep % nodes}"])
        if superstep >= 3:  # the first ones warm up
            took.append(milliseconds)
            sent.append(traffic.bytes - before)
    shown.page.close()
    lab.end_kernels()
    name, what = f"page step {nodes}", f"click on Step to paint, {nodes} nodes"
    yield row(name, what, took)
    yield Row(f"page bytes {nodes}", f"what a step sends, {nodes} nodes", "KB", statistics.median(sent) / 1024)


def first_display(pages: Pages, lab: Lab, count: int) -> Row:
    """A cell that shows a panel, run again and again."""
    lab = lab.with_new_folder()
    shown = open_page(pages, lab, "first", [SETUP, STEPPER.format(nodes=50)])
    cell = shown.panel.locator(".jp-CodeCell").nth(1)
    took = []
    for _ in range(count):
        cell.locator(".cm-content").click()
        shown.page.evaluate(MARK)
        took.append(timed(shown, RUN_CELL, SHOWN))
    shown.page.close()
    lab.end_kernels()
    return row("page display", "running a cell to the paint of its panel, 50 nodes", took)


WAITS = {
    "await": "panel = stepper(build(), 'cats')\nawait panel.arun()",
    "sync wait": "from agentbench.notebook import run_sync\nrun_sync(asyncio.sleep(60))",
}


def interrupts(pages: Pages, lab: Lab, count: int) -> Iterator[Row]:
    """The stop button, while a cell awaits and while one waits."""
    for kind, source in WAITS.items():
        lab = lab.with_new_folder()
        began = "print('wait', 'ing', sep='')\n"
        lab.write("stop", [SETUP, f"from tests.browser.review_flow import build\n{began}{source}"])
        shown = pages.open(lab, lab.path("stop"), dark=False, own=True, size=SIZE)
        shown.wait_until_ready()
        took = []
        for _ in range(count):
            shown.page.evaluate("() => jupyterapp.commands.execute('notebook:clear-all-cell-outputs')")
            shown.run_all(finished=False)
            shown.panel.get_by_text("waiting", exact=True).wait_for()
            took.append(timed(shown, INTERRUPT, INTERRUPTED))
            shown.wait_until_ready()
        shown.page.close()
        lab.end_kernels()
        yield row(f"page {kind}", "stop button to the end of its cell", took)


def scripts() -> Iterator[Row]:
    """What a page loads once."""
    for kind in ("js", "css"):
        size = sum(path.stat().st_size for path in NOTEBOOK.glob(f"*/static/*.{kind}"))
        yield Row(f"all {kind}", "everything of ours that a page may load", "KB", size / 1024)


def measured(chromium: str, count: int) -> Iterator[Row]:
    """All rows."""
    with contextlib.ExitStack() as running:
        root = Path(running.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        lab = running.enter_context(running_lab(root))
        pages = Pages(running.enter_context(running_browser(chromium)))
        for nodes in (50, 500):
            yield from clicks(pages, lab, nodes, count)
        yield first_display(pages, lab, max(5, count // 3))
        yield from interrupts(pages, lab, max(5, count // 5))
    yield from scripts()


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clicks", type=int, default=CLICKS, help=f"of each kind (default {CLICKS})")
    given = parser.parse_args(arguments)
    rows = []
    for row in measured(os.environ.get("CHROMIUM", "/usr/bin/chromium"), given.clicks):
        sys.stderr.write(f"{row.name}\n")
        rows.append(row)
    sys.stdout.write("\n".join(lines(rows)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
