"""How long a person waits in a site of `agentbench site`, and how large it is: `python -m tests.benchmarks.in_site`.

The site is built as it is for people, with Python from npm, served on loopback and opened in a real Chromium that has
nothing of it in its cache. Times are taken inside the page. The machine should have nothing else to do. What was built
is kept in the folder of pytest's cache; `--clicks 50` gives steadier medians.
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
from tests.benchmarks.in_browser import STEP, STEPPED, TIMED
from tests.browser.lite_site import LitePage, built_site, serving, write_notebook
from tests.browser.notebook_page import running_browser
from tests.lite.pyodide_runtime import fetch_runtime
from tests.tools.refresh_notebooks import NOTEBOOKS

CACHE = NOTEBOOKS.parent / ".pytest_cache" / "d" / "lite"
CLICKS = 25
OPENINGS = 3
NODES = 50
SIZE = {"width": 1280, "height": 1000}
RING = f"""
from agentbench import Executor, WorkflowBuilder, WorkflowContext, handler
from agentbench.notebook import stepper

class Hop(Executor):
    @handler
    async def hop(self, number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(number + 1)

hops = [Hop(id=f"h{{number}}") for number in range({NODES})]
ring = WorkflowBuilder(name="ring", start_executor=hops[0]).add_chain(hops).add_edge(hops[-1], hops[0]).build()
stepper(ring, 0, max_supersteps=10**9)
"""
TARGETS = {
    "site first output": Target(25, 12, is_ratio=False),
    "site step": Target(150, 100, is_ratio=False),
    "site size": Target(30, 20, is_ratio=False),
    "site size with Python": Target(60, 45, is_ratio=False),
}


def row(name: str, what: str, unit: str, took: Sequence[float]) -> Row:
    """The median of some figures, and how far they spread."""
    told = f"{what}; {len(took)} times, {min(took):.1f}..{max(took):.1f}" if len(took) > 1 else what
    return Row(name, told, unit, statistics.median(took), demanded=TARGETS[name])


@contextlib.contextmanager
def opened(browser: Any, base: str, notebook: str) -> Iterator[LitePage]:
    """Open a notebook in a browser that has never seen the site."""
    with contextlib.closing(browser.new_context(viewport=SIZE)) as context:
        page = LitePage(context.new_page(), base, notebook=notebook)
        page.open()
        yield page


def first_output(browser: Any, base: str) -> Row:
    """From opening the first notebook to the graph below its second cell, which is run as soon as that is possible."""
    took = []
    for _ in range(OPENINGS):
        with opened(browser, base, "01_first_workflow.ipynb") as page:
            page.run(0, 1)
            took.append(page.page.evaluate("window.ended") / 1000)
    return row("site first output", "opening notebook 01, cold, to its first graph", "s", took)


def steps(browser: Any, base: str, count: int) -> Row:
    """Clicks on Step."""
    took = []
    with opened(browser, base, "steps.ipynb") as page:
        page.run(0)
        page.panel.locator(".abs-frame .ab_node").last.wait_for(state="attached")
        for superstep in range(count + 3):
            argument = [superstep, f"h{superstep % NODES}"]
            took.append(page.page.evaluate(f"argument => ({TIMED})({STEP}, {STEPPED}, argument)", argument))
    return row("site step", f"click on Step to paint, {NODES} nodes", "ms", took[3:])  # the first ones warm up


def sizes(site: Path) -> Iterator[Row]:
    """What a web host stores."""
    python = site / "lab" / "static" / "python"
    files = [path for path in site.rglob("*") if path.is_file()]
    whole = sum(path.stat().st_size for path in files) / 1e6
    without = whole - sum(path.stat().st_size for path in files if path.is_relative_to(python)) / 1e6
    yield row("site size", "files of the site without Python", "MB", [without])
    yield row("site size with Python", "all files", "MB", [whole])


def measured(chromium: str, count: int) -> Iterator[Row]:
    """All rows."""
    cache = CACHE / "measured"
    cache.mkdir(parents=True, exist_ok=True)
    pyodide = fetch_runtime(CACHE).pyodide
    with tempfile.TemporaryDirectory() as folder:
        notebooks = [*sorted(NOTEBOOKS.glob("*.ipynb")), write_notebook(Path(folder, "steps.ipynb"), [RING])]
        site = built_site(cache, pyodide, notebooks)
    yield from sizes(site)
    with serving(site) as base, running_browser(chromium) as browser:
        yield first_output(browser, base)
        yield steps(browser, base, count)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clicks", type=int, default=CLICKS, help=f"how many (default {CLICKS})")
    given = parser.parse_args(arguments)
    rows = list(measured(os.environ.get("CHROMIUM", "/usr/bin/chromium"), given.clicks))
    sys.stdout.write("\n".join(lines(rows)) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
