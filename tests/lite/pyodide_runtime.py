"""Python for the browser, run by Node.js: Pyodide from npm, packages from PyPI, fetched once and kept."""

from __future__ import annotations

import hashlib
import json
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from jupyterlite_pyodide_kernel.constants import PYODIDE_VERSION as PYODIDE

from agentbench._files.lock import FolderLock
from agentbench.cli.site.wheels import download
from agentbench.exceptions import SiteError

NODE = "26.10.0"
"""A Node.js that can suspend calls (JSPI). Those of Linux distributions are older, so it is taken from npm as well."""
PACKAGES = (
    *("hypothesis>=6.100", "pydantic>=2.8", "pytest>=8.4", "python-dotenv>=1.0", "sqlalchemy>=2.0", "tzdata"),
    *("openai>=3", "httpx2-jsfetch"),  # which pip takes for a dependency only where it runs in a browser itself
)
"""Packages that the tests need, and that publish wheels for Pyodide or wheels without compiled code."""

_PATIENCE_S = 300


class MissingRuntimeError(Exception):
    """The runtime cannot be fetched here; the text says why."""


class Runtime(NamedTuple):
    """Where the parts of the runtime are."""

    node: Path
    pyodide: Path
    packages: Path


def fetch_runtime(cache: Path) -> Runtime:
    """Return the runtime, from a folder in `cache` that is named after its inputs and is complete if it exists."""
    key = hashlib.sha256(repr((PYODIDE, NODE, PACKAGES, sys.platform)).encode()).hexdigest()[:16]
    folder = cache / f"pyodide-{PYODIDE}-{key}"
    cache.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(str(cache / "fetching.lock"), patience_s=4 * _PATIENCE_S)
    lock.acquire()  # the tests in Node.js and those in a browser may begin in the same moment
    if not folder.exists():
        with tempfile.TemporaryDirectory(dir=cache, prefix="fetching-") as name:
            made = Path(name, "runtime")
            made.mkdir()
            npm = shutil.which("npm")
            if npm is None:
                raise MissingRuntimeError("npm is not installed")
            options = ("--no-audit", "--no-fund", "--prefix", str(made))
            _call(npm, "install", *options, f"pyodide@{PYODIDE}", f"node@{NODE}")
            _install_packages(_in(made))
            made.rename(folder)
    lock.close()
    return _in(folder)


def _in(folder: Path) -> Runtime:
    modules = folder / "node_modules"
    program = "node.exe" if sys.platform == "win32" else "node"
    return Runtime(modules / "node" / "bin" / program, modules / "pyodide", folder / "packages")


def _install_packages(runtime: Runtime) -> None:
    info = json.loads((runtime.pyodide / "pyodide-lock.json").read_text("utf-8"))["info"]
    platform = f"pyemscripten_{info['abi_version']}_{info['arch']}"
    with tempfile.TemporaryDirectory() as folder:
        try:
            wheels = download(PACKAGES, Path(folder), python_version=info["python"], platform=platform)
        except SiteError as error:
            raise MissingRuntimeError(str(error)) from error
        for wheel in wheels:
            with zipfile.ZipFile(wheel.path) as archive:
                archive.extractall(runtime.packages)


def _call(*command: str) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except subprocess.TimeoutExpired as error:
        raise MissingRuntimeError(f"{command[0]} did not end within {_PATIENCE_S} s") from error
    if done.returncode:
        raise MissingRuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-2000:]}")
