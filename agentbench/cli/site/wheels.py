"""Wheels for Python in the browser: our own, and those that pip downloads."""

from __future__ import annotations

import hashlib
import importlib.metadata
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from email.parser import HeaderParser
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import Any, Final

from agentbench.exceptions import SiteError

_UNUSED: Final = {"jedi": ("jedi/third_party/django-stubs/", "jedi/third_party/typeshed/stubs/")}
"""Folders of wheels that a page does not need: types of packages for completion. They are 4,800 of jedi's 5,600 files,
and the page writes each file of a wheel to its disk before the first cell runs."""
_WHEEL = "Wheel-Version: 1.0\nGenerator: agentbench\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


@dataclass(frozen=True)
class Wheel:
    """A wheel file and what it says about itself."""

    path: Path

    @cached_property
    def _metadata(self) -> Any:
        with zipfile.ZipFile(self.path) as archive:
            (name,) = (
                name for name in archive.namelist() if name.endswith(".dist-info/METADATA") and _depth(name) == 2
            )
            return HeaderParser().parsestr(archive.read(name).decode())

    @property
    def name(self) -> str:
        """The normalized name of the package."""
        return normalize(self._metadata["Name"])

    @property
    def version(self) -> str:
        """The version of the package."""
        return str(self._metadata["Version"])

    def requirements(self, python_version: str) -> list[str]:
        """Return the normalized names of what the package requires in the browser."""
        return requirements(self._metadata.get_all("Requires-Dist") or (), python_version)

    def imports(self) -> list[str]:
        """Return the names of its top-level modules."""
        with zipfile.ZipFile(self.path) as archive:
            roots = {PurePosixPath(name).parts[0] for name in archive.namelist()}
        modules = {root.removesuffix(".py") for root in roots if not root.endswith((".dist-info", ".data"))}
        return sorted(name for name in modules if name.isidentifier())

    def copy_to(self, folder: Path) -> Wheel:
        """Copy the wheel into a folder, without what a page does not need, and return the copy."""
        target = folder / self.path.name
        unused = _UNUSED.get(self.name, ())
        with zipfile.ZipFile(self.path) as source, zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as copy:
            for entry in source.infolist():
                if not entry.filename.startswith(unused):
                    copy.writestr(entry, source.read(entry), zipfile.ZIP_DEFLATED)
        return Wheel(target)

    def lock_entry(self, python_version: str) -> dict[str, Any]:
        """Return the entry for this wheel in a lock file of Pyodide that lies beside it."""
        return {
            "name": self.name,
            "version": self.version,
            "file_name": self.path.name,
            "install_dir": "site",
            "sha256": hashlib.sha256(self.path.read_bytes()).hexdigest(),
            "package_type": "package",
            "imports": self.imports(),
            "depends": self.requirements(python_version),
            "unvendored_tests": False,
        }


def normalize(name: str) -> str:
    """Return the form of a package's name that is used for comparison."""
    from packaging.utils import canonicalize_name  # noqa: PLC0415 - `agentbench --help` does not need it

    return canonicalize_name(name)


def requirements(specifications: Sequence[str], python_version: str, extra: str = "") -> list[str]:
    """Return the normalized names of the requirements that apply in the browser."""
    from packaging.requirements import Requirement  # noqa: PLC0415 - as above

    environment = {
        "extra": extra,
        "implementation_name": "cpython",
        "os_name": "posix",
        "platform_machine": "wasm32",
        "platform_python_implementation": "CPython",
        "platform_system": "Emscripten",
        "python_full_version": python_version,
        "python_version": ".".join(python_version.split(".")[:2]),
        "sys_platform": "emscripten",
    }
    found = map(Requirement, specifications)
    return [normalize(each.name) for each in found if each.marker is None or each.marker.evaluate(environment)]


def write_own_wheel(folder: Path) -> Wheel:
    """Write the wheel of the installed agentbench, whether it was installed from a checkout or not."""
    metadata = importlib.metadata.distribution("agentbench")
    package = Path(__file__).resolve().parents[2]
    stem = f"agentbench-{metadata.version}"
    path = folder / f"{stem}-py3-none-any.whl"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:

        def add(name: str, content: bytes) -> None:
            # A fixed date: the same files give the same wheel.
            archive.writestr(zipfile.ZipInfo(name), content, zipfile.ZIP_DEFLATED)

        for file in sorted(package.rglob("*")):
            hidden = any(part.startswith((".", "__pycache__")) for part in file.relative_to(package).parts)
            if file.is_file() and not hidden:
                add(file.relative_to(package.parent).as_posix(), file.read_bytes())
        add(f"{stem}.dist-info/METADATA", (metadata.read_text("METADATA") or "").encode())
        add(f"{stem}.dist-info/WHEEL", _WHEEL.encode())
        add(f"{stem}.dist-info/RECORD", b"")
    return Wheel(path)


def download(names: Sequence[str], folder: Path, *, python_version: str, platform: str) -> list[Wheel]:
    """Download packages for the browser, and what they require, with pip.

    Raises:
        SiteError: pip is missing, or a package has no wheel for the browser.
    """
    major, minor = python_version.split(".")[:2]
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--dest", str(folder)]
    command += ["--only-binary=:all:", "--implementation", "cp", "--python-version", f"{major}.{minor}"]
    command += ["--platform", platform, "--platform", "any", "--abi", f"cp{major}{minor}", "--abi", "none", *names]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        msg = f"pip cannot download {', '.join(names)} for the browser"
        raise SiteError(msg, _last_lines(done.stderr))
    return [Wheel(path) for path in sorted(folder.glob("*.whl"))]


def _last_lines(text: str) -> str:
    return "\n".join(line for line in text.strip().splitlines() if not line.startswith("WARNING"))[-2000:]


def _depth(name: str) -> int:
    return len(PurePosixPath(name).parts)
