"""Run the notebooks and write them in one fixed form; with `--check`, only say which would change.

Two runs of a notebook give the same file, so a changed notebook is a changed document. What may differ between two runs
(`tests/nbval_sanitize.cfg`) is not a change.

    python tests/tools/refresh_notebooks.py [--check] [NOTEBOOK ...]
"""

from __future__ import annotations

import argparse
import copy
import difflib
import json
import platform
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = ROOT / "notebooks"
SANITIZE = ROOT / "tests" / "nbval_sanitize.cfg"
CELL_TIMEOUT_S = 120
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
LINED = ("application/javascript", "image/svg+xml")  # besides text: the data that is stored line by line
# What a front end writes when the kernel of ipykernel has started: without it a notebook that was only opened counts as
# changed. The version is that of the Python that ran it.
METADATA: dict[str, dict[str, Any]] = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {
        "codemirror_mode": {"name": "ipython", "version": 3},
        "file_extension": ".py",
        "mimetype": "text/x-python",
        "name": "python",
        "nbconvert_exporter": "python",
        "pygments_lexer": "ipython3",
    },
}

Notebook = dict[str, Any]


def normalised(notebook: Notebook) -> Notebook:
    """The notebook without what depends on who ran it, where and when: widget ids, timings, kernel and front end."""
    version = notebook["metadata"].get("language_info", {}).get("version", platform.python_version())
    metadata = {**METADATA, "language_info": {**METADATA["language_info"], "version": version}}
    cells = [_normalised_cell(cell, number) for number, cell in enumerate(notebook["cells"], 1)]
    return {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": 5}


def _normalised_cell(cell: dict[str, Any], number: int) -> dict[str, Any]:
    kept = {key: value for key, value in cell["metadata"].items() if key in ("tags", "jupyter", "slideshow")}
    plain = {
        "cell_type": cell["cell_type"],
        "id": cell.get("id", f"cell-{number:02d}"),
        "metadata": kept,
        "source": _lines("".join(cell["source"])),
    }
    if cell["cell_type"] == "code":
        plain["execution_count"] = cell["execution_count"]
        plain["outputs"] = [_normalised_output(output) for output in cell["outputs"]]
    if "attachments" in cell:
        plain["attachments"] = cell["attachments"]
    return plain


def _normalised_output(output: dict[str, Any]) -> dict[str, Any]:
    plain = copy.deepcopy(output)
    if "data" in plain:
        plain["data"].pop(WIDGET_VIEW, None)
        plain["data"] = {
            kind: _stored(kind, "".join(data)) if isinstance(data, (str, list)) else data
            for kind, data in plain["data"].items()
        }
    if "text" in plain:
        plain["text"] = _lines("".join(plain["text"]))
    if "metadata" in plain:
        plain["metadata"].pop(WIDGET_VIEW, None)
    return plain


def _stored(kind: str, data: str) -> str | list[str]:
    """JupyterLab stores text as a list of lines, and other data, such as a PNG, as one string."""
    return _lines(data) if kind.startswith("text/") or kind in LINED else data


def _lines(text: str) -> list[str]:
    return text.splitlines(keepends=True)


def text_of(notebook: Notebook) -> str:
    """The bytes of a notebook file, as text."""
    return json.dumps(notebook, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def sanitizer(config: str | None = None) -> Callable[[str], str]:
    """A function that makes equal what may differ between two runs, by the patterns that nbval uses."""
    config = SANITIZE.read_text(encoding="utf-8") if config is None else config
    patterns = re.findall(r"^regex: (.*)$\n^replace: (.*)$", config, flags=re.MULTILINE)

    def sanitize(text: str) -> str:
        for pattern, replacement in patterns:
            text = re.sub(pattern, replacement, text)
        return text

    return sanitize


def comparable(notebook: Notebook) -> str:
    """The notebook as text, with outputs sanitised and those that are not to be compared left out."""
    sanitize = sanitizer()
    notebook = copy.deepcopy(notebook)
    notebook["metadata"]["language_info"].pop("version")
    for cell in notebook["cells"]:
        if cell["cell_type"] == "code":
            cell["outputs"] = [] if outputs_are_free(cell) else json.loads(sanitize(json.dumps(cell["outputs"])))
    return text_of(notebook)


def outputs_are_free(cell: dict[str, Any]) -> bool:
    """Whether a cell says that its outputs differ from run to run, by a comment or by a tag that nbval heeds."""
    lines = [line.strip() for line in "".join(cell["source"]).splitlines()]
    comments = [line.lstrip("#").strip() for line in lines if line.startswith("#")]
    return "NBVAL_IGNORE_OUTPUT" in comments or "nbval-ignore-output" in cell["metadata"].get("tags", [])


def executed(path: Path) -> Notebook:
    """Run a notebook in a fresh kernel, in its own folder, and return it in the fixed form."""
    import nbformat
    from nbclient import NotebookClient

    notebook = nbformat.read(path, as_version=4)
    client = NotebookClient(
        notebook,
        timeout=CELL_TIMEOUT_S,
        kernel_name="python3",
        resources={"metadata": {"path": str(path.parent)}},
        coalesce_streams=True,
        store_widget_state=False,
        record_timing=False,
    )
    client.execute()
    return normalised(json.loads(nbformat.writes(notebook)))


def refresh(path: Path, *, check: bool) -> Iterator[str]:
    """Run one notebook and write it if it changed; yields what is to be said about it."""
    before = path.read_text(encoding="utf-8")
    stored = normalised(json.loads(before))
    after = executed(path)
    changed = comparable(stored) != comparable(after)
    # Where only what may differ differs, the stored outputs stay.
    wanted = text_of(after if changed else stored)
    if wanted == before:
        return
    if not check:
        path.write_text(wanted, encoding="utf-8", newline="\n")
        yield f"{path.name}: written"
        return
    yield f"{path.name}: {'outputs or cells changed' if changed else 'not in the fixed form'}"
    old, new = (comparable(stored), comparable(after)) if changed else (before, wanted)
    yield from list(difflib.unified_diff(old.splitlines(), new.splitlines(), "stored", "now", lineterm="", n=2))[:60]


def main(arguments: list[str]) -> int:
    """Refresh or check; 1 if the check finds a change."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="write nothing; fail if a notebook would change")
    parser.add_argument("notebooks", nargs="*", type=Path, help="default: all of them")
    given = parser.parse_args(arguments)
    said = 0
    for path in given.notebooks or sorted(NOTEBOOKS.glob("*.ipynb")):
        for line in refresh(path, check=given.check):
            print(line)
            said += 1
    if given.check and said:
        print("Run: python tests/tools/refresh_notebooks.py")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
