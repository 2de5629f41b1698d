"""JupyterLab as static files, by JupyterLite."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Final

from agentbench.cli.site.contents import Contents
from agentbench.exceptions import SiteError

_EXTENSIONS: Final = ("@jupyter-widgets/jupyterlab-manager", "@jupyterlite/pyodide-kernel-extension", "anywidget")
_KERNEL: Final = _EXTENSIONS[1]
_KERNEL_SPEC: Final = {"name": "python", "display_name": "Python (Pyodide)", "language": "python"}
_PLUGIN: Final = f"{_KERNEL}:kernel"
_FALLBACK_FONTS: Final = ("*.eot", "*.svg", "*.ttf")
"""Forms of the icon fonts for browsers that cannot run WebAssembly, let alone Python."""


def build_lab(out: Path, contents: Contents, scratch: Path) -> None:
    """Write JupyterLab with notebooks and files into a folder.

    Raises:
        SiteError: JupyterLite failed.
    """
    folder = scratch / "contents"
    for name, path in contents.files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, folder / name)
    folder.mkdir(exist_ok=True)
    for name, notebook in contents.notebooks.items():
        # With the kernel of this machine, JupyterLab would ask for another. It expects each text in one piece, where
        # files of notebooks have lists of lines.
        for_page = {**notebook, "metadata": {**notebook["metadata"], "kernelspec": _KERNEL_SPEC}}
        (folder / name).write_text(json.dumps(for_page), encoding="utf-8")
    settings = {
        "LiteBuildConfig": {
            "apps": ["lab"],
            "contents": [str(folder)],
            # Only these: others of this machine may need a server, or fetch from elsewhere.
            "federated_extensions": [str(_extension(name)) for name in _EXTENSIONS],
            "ignore_sys_prefix": ["federated_extensions", "settings_overrides"],
            "no_sourcemaps": True,
            "no_unused_shared_packages": True,
            "output_dir": str(out),
        }
    }
    lite = scratch / "lite"
    lite.mkdir()
    (lite / "jupyter_lite_config.json").write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "jupyterlite_core", "build"]
    done = subprocess.run(command, cwd=lite, capture_output=True, text=True, check=False)
    if done.returncode or not (out / "jupyter-lite.json").is_file():
        msg = f"JupyterLite failed: {(done.stdout + done.stderr).strip()[-2000:]}"
        raise SiteError(msg, "Repair this first.")
    for pattern in _FALLBACK_FONTS:
        for path in (out / "build").glob(pattern):
            path.unlink()


def kernel_wheels() -> list[Path]:
    """Return the wheels of the kernel in the page."""
    # The kernel also brings ipywidgets 7's half of widgetsnbextension.
    found = (_extension(_KERNEL) / "static" / "pypi").glob("*.whl")
    return [path for path in sorted(found) if not path.name.startswith("widgetsnbextension-3")]


def configure_lab(out: Path, *, pyodide_url: str, lock_url: str, packages: list[str], offline: bool) -> None:
    """Tell the page where Python is (relative to `out`, or absolute) and what to load with it."""
    path = out / "jupyter-lite.json"
    config = json.loads(path.read_text(encoding="utf-8"))
    config["jupyter-config-data"].setdefault("litePluginSettings", {})[_PLUGIN] = {
        "pyodideUrl": pyodide_url,
        "disablePyPIFallback": offline,
        "loadPyodideOptions": {"lockFileURL": lock_url, "packages": packages},
    }
    path.write_text(json.dumps(config, indent=2, sort_keys=True), encoding="utf-8")


def _extension(name: str) -> Path:
    from jupyter_core.paths import jupyter_path  # noqa: PLC0415 - `agentbench --help` does not need it

    for folder in jupyter_path("labextensions"):
        if (Path(folder) / name / "package.json").is_file():
            return Path(folder) / name
    msg = f"JupyterLab's extension {name} is not installed"
    raise SiteError(msg, 'Run: pip install "agentbench[site]"')
