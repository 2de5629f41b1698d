"""Write `agentbench/__init__.pyi`, the typed twin of the lazy front door, from the table in `agentbench/__init__.py`.

Run `python tests/tools/write_stub.py` after a change of the table; `--check` only says whether the twin is in step.
"""

from __future__ import annotations

import sys
from pathlib import Path

import agentbench

STUB = Path(agentbench.__file__).with_name("__init__.pyi")

WIDTH = 120

HEAD = '''\
"""Typed twin of the lazy front door; written by tests/tools/write_stub.py, not by hand."""

from typing import Any

'''

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


def stub_text() -> str:
    """The text that the twin should have."""
    imports = [f"from agentbench import {name} as {name}" for name in agentbench._SUBMODULES]
    homes = sorted((module, *_ruff_order(name), name) for name, module in agentbench._MODULE_OF.items())
    imports += [_import(module, name) for module, _, _, name in homes]
    aliases = [f"{alias} = {name}" for alias, name in sorted(agentbench._ALIASES.items())]
    return HEAD + "\n".join([*imports, "", *aliases]) + "\n" + TAIL


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
    wanted = stub_text()
    if "--check" in arguments:
        if STUB.read_text(encoding="utf-8") == wanted:
            return 0
        print("agentbench/__init__.pyi is out of step. Run: python tests/tools/write_stub.py")
        return 1
    STUB.write_text(wanted, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
