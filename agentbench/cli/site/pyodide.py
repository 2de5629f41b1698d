"""Python for the page: Pyodide, the packages it is loaded with, and the lock file that names them."""

from __future__ import annotations

import contextlib
import json
import shutil
import urllib.request
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agentbench.cli.site.wheels import Wheel, download, normalize, write_own_wheel
from agentbench.exceptions import SiteError

_LOCK: Final = "pyodide-lock.json"
_RUNTIME: Final = ("pyodide.mjs", "pyodide.asm.mjs", "pyodide.asm.wasm", "python_stdlib.zip")
_KERNEL: Final = ("comm", "ipykernel", "ipython", "jedi", "micropip", "piplite", "pyodide-kernel")
"""What the kernel needs. What is not loaded at the start, it would install one by one."""
_WIDGETS: Final = ("anywidget", "graphviz", "ipywidgets", "mistune")
"""What graphs, forms and panels need."""
_ON_DEMAND: Final = ("jsonschema", "matplotlib", "openai", "pandas", "pyyaml", "sqlalchemy")
"""What some features need. It is loaded at the first use."""
_TIMEOUT_S: Final = 30.0


class Pyodide:
    """A distribution of Pyodide.

    Args:
        where: Its URL, or a folder with its files. A folder may lack packages, as the one in npm does.

    Attributes:
        packages: The entries of its lock file, by normalized name.
        python_version: The version of Python, such as "3.14.2".
    """

    def __init__(self, where: str) -> None:
        self.url = where.rstrip("/").removesuffix("/pyodide.mjs") if "://" in where else None
        self.folder = None if self.url else Path(where)
        try:
            self._lock: dict[str, Any] = json.loads(self._read_lock())
            packages, info = self._lock["packages"], self._lock["info"]
            self.packages: dict[str, dict[str, Any]] = {normalize(name): entry for name, entry in packages.items()}
            self.python_version: str = info["python"]
            self._platform = f"pyemscripten_{info['abi_version']}_wasm32"
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            problem = f"There is no Pyodide at {where}: {error!r}"
            fix = "Pass --pyodide with a folder that has Pyodide's files, or with its URL."
            raise SiteError(problem, fix) from error

    def _read_lock(self) -> bytes:
        if self.folder is None:
            with urllib.request.urlopen(f"{self.url}/{_LOCK}", timeout=_TIMEOUT_S) as answer:
                return bytes(answer.read())
        for name in _RUNTIME:
            (self.folder / name).stat()  # raises FileNotFoundError
        return (self.folder / _LOCK).read_bytes()

    def _has(self, name: str) -> bool:
        entry = self.packages.get(name)
        return entry is not None and (self.folder is None or (self.folder / entry["file_name"]).is_file())

    def install(self, target: Path, wheels: Iterable[Path], imported: set[str], downloads: Path) -> PagePython:
        """Write everything into a folder of the site.

        Args:
            target: The folder.
            wheels: More wheels to use instead of Pyodide's own: those of the kernel.
            imported: Names of modules that the notebooks import.
            downloads: A folder for wheels from PyPI.
        """
        target.mkdir(parents=True)
        local = {wheel.name: wheel for wheel in (write_own_wheel(downloads), *map(Wheel, wheels))}
        roots = ["agentbench", *_KERNEL, *_WIDGETS]
        self._download(roots, local, downloads)
        on_demand = {*_ON_DEMAND, *self._providers(imported)}
        for name in on_demand:
            with contextlib.suppress(SiteError):  # no wheel for the browser, which is reported where it is imported
                self._download([name], local, downloads)
        at_start = self._closure(roots, local)
        entries = {} if self.url is None else {name: self._online(entry) for name, entry in self.packages.items()}
        for name in {*at_start, *self._closure(on_demand, local)}:
            if name in local:
                entries[name] = local[name].copy_to(target).lock_entry(self.python_version)
            elif self.folder is not None and self._has(name):
                entries[name] = self.packages[name]
                shutil.copy(self.folder / entries[name]["file_name"], target)
        if self.folder is not None:
            for name in _RUNTIME:
                shutil.copy(self.folder / name, target)
        (target / _LOCK).write_text(json.dumps({**self._lock, "packages": entries}), encoding="utf-8")
        return PagePython(entries, at_start)

    def _online(self, entry: dict[str, Any]) -> dict[str, Any]:
        return {**entry, "file_name": f"{self.url}/{entry['file_name']}"}

    def _download(self, names: Iterable[str], local: dict[str, Wheel], folder: Path) -> None:
        """Add wheels of packages that Pyodide lacks, and of what they require, to `local`."""
        names = list(names)
        # More than one round: pip also looks at this machine to decide what a package requires, and not at a browser.
        while missing := [name for name in self._closure(names, local) if name not in local and not self._has(name)]:
            wheels = download(missing, folder, python_version=self.python_version, platform=self._platform)
            for wheel in wheels:
                if not self._has(wheel.name):
                    local.setdefault(wheel.name, wheel)

    def _closure(self, names: Iterable[str], local: dict[str, Wheel]) -> list[str]:
        """Return packages and what they need, as far as that is known."""
        found: dict[str, None] = {}
        todo = list(names)
        while todo:
            name = normalize(todo.pop())
            if name not in found:
                found[name] = None
                if name in local:
                    todo += local[name].requirements(self.python_version)
                elif name in self.packages:
                    todo += self.packages[name]["depends"]
        return list(found)

    def _providers(self, imported: set[str]) -> set[str]:
        """Return the packages that provide modules."""
        return {name for name, entry in self.packages.items() if not imported.isdisjoint(entry["imports"])}


@dataclass(frozen=True)
class PagePython:
    """Python as the page loads it.

    Attributes:
        entries: The packages that the page can load, by name.
        at_start: The names of those that it loads before the first cell.
    """

    entries: dict[str, dict[str, Any]]
    at_start: list[str]

    @property
    def modules(self) -> set[str]:
        """The names of the modules that a cell can import, besides the standard library."""
        return {module for entry in self.entries.values() for module in entry["imports"]}
