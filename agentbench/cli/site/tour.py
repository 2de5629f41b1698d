"""The notebooks as HTML pages, each with a link to its live form."""

from __future__ import annotations

import hashlib
import html
import re
import shutil
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from agentbench.cli.site.contents import Contents

_BAR: Final = """<nav class="ab-bar"><a href="../index.html">agentbench</a> <a href="index.html">All notebooks</a>
<a class="ab-live" href="{live}">Open it live</a></nav>"""
_BAR_STYLE: Final = '<link rel="icon" href="data:,"><link rel="stylesheet" href="bar.css">'
_POLICY: Final = """<meta http-equiv="Content-Security-Policy" content="script-src 'none'; object-src 'none'">"""
_PICTURES: Final = (".gif", ".jpeg", ".jpg", ".png", ".svg", ".webp")
_SCRIPT: Final = re.compile(r"<script\b.*?</script\s*>", flags=re.DOTALL | re.IGNORECASE)
_STYLE: Final = re.compile(r"<style[^>]*>(.{2000,}?)</style>", flags=re.DOTALL)


def write_tour(folder: Path, contents: Contents) -> dict[str, str]:
    """Write a page for each notebook and return the titles of the notebooks by name.

    The pages show the stored outputs and run no script: a notebook may be somebody else's.
    """
    from nbconvert import HTMLExporter  # noqa: PLC0415 - `agentbench --help` does not need it

    folder.mkdir()
    shutil.copyfile(Path(__file__).parent / "bar.css", folder / "bar.css")
    # Not embedded by nbconvert, which would also take hidden files and files from elsewhere.
    for name, path in contents.files.items():
        if path.suffix.lower() in _PICTURES:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, folder / name)
    exporter = HTMLExporter()  # type: ignore[no-untyped-call]
    titles = {}
    for name, notebook in contents.notebooks.items():
        page, _ = exporter.from_notebook_node(notebook, resources={"metadata": {"name": Path(name).stem}})
        head, _, rest = _SCRIPT.sub("", page).partition("</head>")
        bar = _BAR.format(live=html.escape(live_link(name, start="../")))
        body = rest.index(">", rest.index("<body")) + 1
        page = f"{head.replace('<head>', f'<head>{_POLICY}', 1)}{_BAR_STYLE}</head>{rest[:body]}{bar}{rest[body:]}"
        (folder / page_name(name)).write_text(_share_styles(page, folder), encoding="utf-8")
        titles[name] = _title(notebook) or name
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


def _title(notebook: Any) -> str | None:
    for cell in notebook.cells:
        found = re.search(r"^#\s+(.+)$", cell.source, flags=re.MULTILINE) if cell.cell_type == "markdown" else None
        if found:
            return found[1].strip().replace("`", "")
    return None
