"""Take the README's picture of the stepper: `python -m tests.tools.readme_picture`.

A cell of a real JupyterLab in a real Chromium, in the light theme and with two pixels per dot, so that it is sharp.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
from pathlib import Path

from tests.browser.lab_server import ROOT, running_lab
from tests.browser.notebook_page import Pages, running_browser

PICTURE = ROOT / "agentbench" / "cli" / "site" / "stepper.png"
SIZE = {"width": 1180, "height": 1200}
SETUP = "from refund_flow import workflow\nimport agentbench.notebook"
CELL = 'workflow.stepper("My desk lamp (order 1042) arrived broken. Can I have my money back?")'


def take(path: Path, chromium: str) -> None:
    """Run the workflow up to its question and write the picture of the cell."""
    with contextlib.ExitStack() as running:
        root = Path(running.enter_context(tempfile.TemporaryDirectory(ignore_cleanup_errors=True)))
        lab = running.enter_context(running_lab(root))
        shutil.copy(ROOT / "tests" / "browser" / "refund_flow.py", lab.folder)
        lab.write("refund", [SETUP, CELL])
        pages = Pages(running.enter_context(running_browser(chromium)), scale=2)
        shown = pages.open(lab, lab.path("refund"), dark=False, own=True, size=SIZE)
        shown.wait_until_ready()
        shown.run_all()
        shown.press("Run")
        shown.button("Approve").wait_for()
        shown.panel.get_by_text("Fit", exact=True).click()
        # Selecting the next cell hides the toolbar of this one.
        shown.panel.locator(".jp-Cell").nth(2).locator(".jp-InputPrompt").click()
        shown.page.mouse.move(0, 0)
        shown.page.evaluate("document.activeElement.blur()")
        shown.settle()
        shown.panel.locator(".jp-Cell").nth(1).screenshot(path=str(path))
        lab.end_kernels()


if __name__ == "__main__":
    take(PICTURE, os.environ.get("CHROMIUM", "/usr/bin/chromium"))
