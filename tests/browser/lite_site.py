"""A site of `agentbench site`, built once for its inputs and kept, and notebooks that are open in its JupyterLab."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import json
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agentbench.cli.site.server import make_server
from tests.browser.lab_server import ROOT
from tests.browser.notebook_page import Page

BUILD_S = 600
START_MS = 180_000  # to load Python into a page takes seconds of a processor, and tests share it
PACKAGES = (
    "jupyterlite-core",
    "jupyterlite-pyodide-kernel",
    "jupyterlab",
    "anywidget",
    "ipywidgets",
    "nbconvert",
    "pdoc",
)

# Runs some code cells, or all, up to an error. Whether that has ended is kept, because waiting for it has a limit and
# evaluating has none.
RUN = """
(numbers) => {
  window.ended = 0;
  const { content } = jupyterapp.shell.currentWidget;
  const code = content.widgets.filter((each) => each.model.type === "code");
  (async () => {
    for (const cell of numbers ? numbers.map((each) => code[each]) : code) {
      content.activeCellIndex = content.widgets.indexOf(cell);
      content.deselectAll();
      await jupyterapp.commands.execute("notebook:run-cell");
      if (cell.model.outputs.toJSON().some((each) => each.output_type === "error")) break;
    }
    window.ended = performance.now();
  })();
}
"""
# A kernel answers when Python is loaded; what is run before that waits for it.
READY = """
() => {
  window.ready = false;
  const { context, sessionContext } = jupyterapp.shell.currentWidget;
  (async () => {
    await context.ready;
    await sessionContext.ready;
    await sessionContext.session.kernel.info;
    window.ready = true;
  })();
}
"""
OUTPUTS = """
() => jupyterapp.shell.currentWidget.content.widgets.filter((each) => each.model.type === "code")
  .map((each) => each.model.outputs.toJSON())
"""
READ_FILE = """
async (path) => {
  const { content, format } = await jupyterapp.serviceManager.contents.get(path, { content: true });
  if (format !== "base64") return content;
  return new TextDecoder().decode(Uint8Array.from(atob(content), (each) => each.charCodeAt(0)));
}
"""


def write_notebook(path: Path, cells: Sequence[str]) -> Path:
    """Write a notebook of code cells."""
    import nbformat

    code = [nbformat.v4.new_code_cell(cell, id=f"cell-{number}") for number, cell in enumerate(cells)]
    nbformat.write(nbformat.v4.new_notebook(cells=code), path)
    return path


def built_site(cache: Path, pyodide: Path, notebooks: list[Path]) -> Path:
    """Return the folder of a site with notebooks. The one in `cache` is replaced if its inputs were others."""
    site, stamp, key = cache / "site", cache / "site.key", _key(pyodide, notebooks)
    if not (site.is_dir() and stamp.is_file() and stamp.read_text() == key):
        stamp.unlink(missing_ok=True)
        done = subprocess.run(
            [sys.executable, "-m", "agentbench", "site", str(site), *map(str, notebooks), "--pyodide", str(pyodide)],
            cwd=ROOT, capture_output=True, text=True, timeout=BUILD_S, check=False,
        )  # fmt: skip
        if done.returncode:
            raise RuntimeError(f"agentbench site failed:\n{done.stdout}{done.stderr}")
        _expose(site / "lab" / "jupyter-lite.json")
        stamp.write_text(key)
    return site


def _expose(path: Path) -> None:
    """Let scripts of tests reach the application of a page, which a site does not do."""
    config = json.loads(path.read_text(encoding="utf-8"))
    config["jupyter-config-data"]["exposeAppInBrowser"] = True
    path.write_text(json.dumps(config), encoding="utf-8")


def _key(pyodide: Path, notebooks: list[Path]) -> str:
    """Whatever a site is made of."""
    versions = [importlib.metadata.version(name) for name in PACKAGES]
    parts = hashlib.sha256(repr((sys.version, versions, [path.name for path in notebooks])).encode())
    folders = {path.parent for path in notebooks}
    files = [pyodide / "pyodide-lock.json", *(p for each in (ROOT / "agentbench", *folders) for p in each.rglob("*"))]
    for path in sorted(files):
        if path.is_file() and "__pycache__" not in path.parts:
            parts.update(f"{path.name}\0".encode() + path.read_bytes())
    return parts.hexdigest()


@contextlib.contextmanager
def serving(folder: Path) -> Iterator[str]:
    """Serve a site on this machine; yields its address."""
    server = make_server(folder)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@dataclass
class LitePage(Page):
    """A notebook in the JupyterLab of a site.

    Attributes:
        notebook: Its name, such as "lesson.ipynb".
    """

    notebook: str = ""

    def open(self) -> None:
        """Open the notebook, again if it is open, and wait for its Python."""
        self.page.goto(f"{self.base}/lab/lab/index.html?path={self.notebook}")
        self.wait_until_ready()

    def wait_until_ready(self) -> None:
        """Wait until the page can run cells."""
        self.page.wait_for_function("window.jupyterapp?.shell.currentWidget?.content?.model", timeout=START_MS)
        self.page.evaluate(READY)
        self.page.wait_for_function("window.ready", timeout=START_MS)

    @property
    def panel(self) -> Any:
        """The notebook itself, without menus and bars."""
        return self.page.locator(".jp-NotebookPanel:visible")

    def run(self, *numbers: int) -> str:
        """Run code cells by number, or all of them, up to an error; the text of the last one's outputs."""
        self.page.evaluate(RUN, list(numbers) or None)
        self.page.wait_for_function("window.ended", timeout=START_MS)
        outputs = self.outputs()
        return _text(outputs[numbers[-1] if numbers else -1])

    def outputs(self) -> list[list[dict[str, Any]]]:
        """The outputs of each code cell."""
        found: list[list[dict[str, Any]]] = self.page.evaluate(OUTPUTS)
        return found

    def errors(self) -> list[str]:
        """The errors of all cells."""
        return [
            f"code cell {number}: {output['ename']}: {output['evalue']}"
            for number, outputs in enumerate(self.outputs())
            for output in outputs
            if output["output_type"] == "error"
        ]

    def problems_of_site(self) -> list[str]:
        """What must not happen, without what JupyterLab asks of a server: its icon, and what cells wrote."""
        harmless = f"({self.base}/lab/api/", f"({self.base}/favicon.ico)"
        return [each for each in self.problems if not ("404" in each and any(address in each for address in harmless))]

    def read(self, path: str) -> str:
        """The text of a file, as JupyterLab has it."""
        text: str = self.page.evaluate(READ_FILE, path)
        return text


def _text(outputs: list[dict[str, Any]]) -> str:
    parts = []
    for output in outputs:
        if output["output_type"] == "stream":
            parts.append("".join(output["text"]))
        elif output["output_type"] == "error":
            parts.append(f"{output['ename']}: {output['evalue']}")
        else:
            parts.append("".join(output["data"].get("text/plain", "")))
    return "\n".join(parts)
