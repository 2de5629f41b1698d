"""Write the typed twins of the lazy front doors: `__init__.pyi` beside `agentbench/__init__.py` and the notebook's.

Run `python -m tests.tools.write_stub` after a change of a table; `--check` only says whether the twins are in step.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from pathlib import Path

import agentbench
import agentbench.notebook

WIDTH = 120

HEAD = '"""Typed twin of the lazy front door; written by tests/tools/write_stub.py, not by hand."""\n\n'

TAIL = """\

__version__: str
__all__: list[str]
_ALIASES: dict[str, str]
_MODULE_OF: dict[str, str]
_NAMES_OF: dict[str, tuple[str, ...]]
_SUBMODULES: tuple[str, ...]

def load_ipython_extension(ip: Any) -> None: ...
def unload_ipython_extension(ip: Any) -> None: ...
"""


def stubs() -> dict[Path, str]:
    """The texts that the twins should have, by file."""
    modules = [f"from agentbench import {name} as {name}" for name in agentbench._SUBMODULES]
    aliases = [f"{alias} = {name}" for alias, name in sorted(agentbench._ALIASES.items())]
    package = [*modules, *_imports(agentbench._MODULE_OF), "", *aliases]
    layer = [*_imports(agentbench.notebook._MODULE_OF), "", "__all__: list[str]", "_MODULE_OF: dict[str, str]"]
    return {
        Path(agentbench.__file__).with_name("__init__.pyi"): f"{HEAD}from typing import Any\n\n{_lines(package)}{TAIL}",
        Path(str(agentbench.notebook.__file__)).with_name("__init__.pyi"): HEAD + _lines(layer),
    }


def _lines(lines: list[str]) -> str:
    return "\n".join(lines) + "\n"


def _imports(module_of: Mapping[str, str]) -> list[str]:
    homes = sorted((module, *_ruff_order(name), name) for name, module in module_of.items())
    return [_import(module, name) for module, _, _, name in homes]


def _import(module: str, name: str) -> str:
    line = f"from {module} import {name} as {name}"
    return line if len(line) <= WIDTH else f"from {module} import (\n    {name} as {name},\n)"


def _ruff_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as the linter sorts imports."""
    if name.isupper():
        return 0, name.lower()
    return (1 if name[0].isupper() else 2), name.lower()


def main(arguments: list[str]) -> int:
    """Write or check; 1 if the check fails."""
    late = {path: text for path, text in stubs().items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in late.items():
        if "--check" in arguments:
            print(f"{path.parent.name}/__init__.pyi is out of step. Run: python -m tests.tools.write_stub")
        else:
            path.write_text(text, encoding="utf-8", newline="\n")
    return 1 if late and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
