"""Build a site: all its parts, in a folder of their own until they are complete."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from agentbench.cli.site.contents import collect
from agentbench.cli.site.index import write_index
from agentbench.cli.site.lab import build_lab, configure_lab, kernel_wheels
from agentbench.cli.site.problems import find_problems
from agentbench.cli.site.pyodide import Pyodide
from agentbench.cli.site.reference import write_reference
from agentbench.cli.site.tour import write_tour
from agentbench.exceptions import SiteError
from agentbench.observability.instruments import VERSION

_MARK: Final = "agentbench-site.json"
"""A file by which a site is recognized, so that only a site is ever replaced."""
_PYTHON: Final = "static/python"


@dataclass(frozen=True)
class Site:
    """A site that was built.

    Attributes:
        folder: Where it is.
        notebooks: The names of its notebooks.
        files: The names of the files that the notebooks use.
        problems: Sentences about what will not work in the browser.
        n_bytes: The size of all its files.
        n_bytes_of_python: The part of it that is Pyodide and its packages.
    """

    folder: Path
    notebooks: list[str]
    files: list[str]
    problems: list[str]
    n_bytes: int
    n_bytes_of_python: int


def build_site(out: Path, notebooks: list[Path], *, pyodide: str | None = None) -> Site:
    """Build a site.

    Args:
        out: The folder to write. An older site in it is replaced.
        notebooks: The notebook files.
        pyodide: URL or folder of Pyodide; `None` is the public URL that the installed kernel names.

    Raises:
        SiteError: `out` cannot be replaced, a notebook cannot be read, or Pyodide or a package cannot be fetched.
    """
    target = out.resolve()  # JupyterLite runs in another folder; and a link stays a link
    _require_replaceable(target, notebooks)
    contents = collect(notebooks)
    python = Pyodide(pyodide or _public_url())
    target.parent.mkdir(parents=True, exist_ok=True)
    # Beside OUT, so that the finished site only has to be renamed.
    with tempfile.TemporaryDirectory(prefix=f".{target.name}-", dir=target.parent) as folder:
        scratch, site = Path(folder), Path(folder) / "site"
        site.mkdir()
        (scratch / "wheels").mkdir()
        build_lab(site / "lab", contents, scratch)
        page = python.install(site / "lab" / _PYTHON, kernel_wheels(), contents.imports, scratch / "wheels")
        configure_lab(
            site / "lab",
            pyodide_url=f"{python.url or './' + _PYTHON}/pyodide.mjs",
            lock_url=f"./{_PYTHON}/pyodide-lock.json",
            packages=page.at_start,
            offline=python.url is None,
        )
        titles = write_tour(site / "tour", contents)
        write_reference(site / "reference")
        write_index(site, titles)
        (site / _MARK).write_text(json.dumps({"agentbench": VERSION, "notebooks": sorted(titles)}), encoding="utf-8")
        if target.exists():
            target.rename(scratch / "old")  # deleted with the scratch folder, when the new site is in its place
        site.rename(target)
    return Site(
        folder=out,
        notebooks=sorted(titles),
        files=sorted(contents.files),
        problems=find_problems(contents, page.modules),
        n_bytes=_size(out),
        n_bytes_of_python=_size(out / "lab" / _PYTHON),
    )


def _require_replaceable(out: Path, notebooks: list[Path]) -> None:
    if out.exists() and not (out / _MARK).is_file() and (not out.is_dir() or any(out.iterdir())):
        msg = f"{out} exists and is not a site"
        raise SiteError(msg, "Name a new or empty folder.")
    for path in (Path.cwd(), *(notebook.resolve() for notebook in notebooks)):
        if path.is_relative_to(out):
            msg = f"{out} would be replaced, and {path} is in it"
            raise SiteError(msg, "Name another folder for the site, and run this outside of it.")


def _public_url() -> str:
    from jupyterlite_pyodide_kernel.constants import PYODIDE_CDN_URL  # noqa: PLC0415 - `agentbench --help` does not need it

    return str(PYODIDE_CDN_URL)


def _size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
