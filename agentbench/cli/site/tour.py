"""The notebooks as HTML pages, each with a link to its live form."""

from __future__ import annotations

import hashlib
import html
import re
import shutil
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

_BAR: Final = """<nav class="ab-bar"><a href="../index.html">agentbench</a> <a href="index.html">All notebooks</a>
<a class="ab-live" href="{live}">Open it live</a></nav>"""
_STYLE: Final = re.compile(r"<style[^>]*>(.{2000,}?)</style>", flags=re.DOTALL)


def write_tour(folder: Path, notebooks: dict[str, Path]) -> dict[str, str]:
    """Write a page for each notebook and return the titles of the notebooks by name."""
    from nbconvert import HTMLExporter  # noqa: PLC0415 - `agentbench --help` does not need it

    folder.mkdir()
    # No scripts from elsewhere: the page shows the stored outputs and needs no network.
    exporter = HTMLExporter(  # type: ignore[no-untyped-call]
        embed_images=True, jquery_url="", mathjax_url="", mermaid_js_url="", require_js_url="", widget_renderer_url=""
    )
    shutil.copyfile(Path(__file__).parent / "bar.css", folder / "bar.css")
    titles = {}
    for name, path in notebooks.items():
        page, _ = exporter.from_filename(str(path))
        bar = _BAR.format(live=html.escape(live_link(name, start="../")))
        head, _, rest = page.partition("</head>")
        body = rest.index(">", rest.index("<body")) + 1
        page = f'{head}<link rel="stylesheet" href="bar.css"></head>{rest[:body]}{bar}{rest[body:]}'
        (folder / page_name(name)).write_text(_share_styles(page, folder), encoding="utf-8")
        titles[name] = _title(path) or name
    return titles


def page_name(name: str) -> str:
    """Return the name of the page of a notebook. `index.html` is the list of the notebooks."""
    stem = Path(name).stem
    return f"{stem}{'_' * (stem.casefold() == 'index')}.html"


def live_link(name: str, *, start: str = "") -> str:
    """Return the address of a notebook in JupyterLab, relative to the site; `start` leads to the site's folder."""
    return f"{start}lab/lab/index.html?path={quote(name)}"


def _share_styles(page: str, folder: Path) -> str:
    """Move long styles to files that the pages share: they are most of a page."""

    def move(match: re.Match[str]) -> str:
        name = hashlib.sha256(match[1].encode()).hexdigest()[:12] + ".css"
        (folder / name).write_text(match[1], encoding="utf-8")
        return f'<link rel="stylesheet" href="{name}">'

    return _STYLE.sub(move, page)


def _title(path: Path) -> str | None:
    import nbformat  # noqa: PLC0415 - as above

    notebook: Any = nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    for cell in notebook.cells:
        found = re.search(r"^#\s+(.+)$", cell.source, flags=re.MULTILINE) if cell.cell_type == "markdown" else None
        if found:
            return found[1].strip()
    return None
