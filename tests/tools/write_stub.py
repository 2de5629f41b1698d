"""Write the typed stubs of the packages whose names load lazily: `__init__.pyi` beside each `__init__.py`.

Run `python -m tests.tools.write_stub` after a change of a table; `--check` only says whether the stubs are in step.
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

from agentbench._lazy import Door, public_packages

WIDTH = 120

HEAD = "# Typed stub of the lazy names; written by tests/tools/write_stub.py, not by hand.\n\n"

TAIL = """
_door: Door
__all__: list[str]
"""

ROOT_TAIL = """__version__: str

def load_ipython_extension(ip: object) -> None: ...
def unload_ipython_extension(ip: object) -> None: ...
"""


def stubs() -> dict[Path, str]:
    """Return the text that each stub should have, by file."""
    packages = [importlib.import_module(name) for name in public_packages()]
    return {
        Path(str(package.__file__)).with_name("__init__.pyi"): _stub(package._door)
        for package in packages
        if hasattr(package, "_door")
    }


def _stub(door: Door) -> str:
    imports = {(door.package, part, f"{part} as {part}") for part in door.parts}
    imports.add(("agentbench._lazy", "Door", "Door"))
    aliases = []
    for name, (module, original) in door.homes.items():
        if name == original:
            imports.add((module, name, f"{name} as {name}"))
        else:
            aliases.append(f"{name} = {original}\n")
            if original not in door.homes:
                imports.add((module, original, original))
    ordered = sorted(imports, key=lambda line: (line[0], *_ruff_order(line[1])))
    lines = [_import(module, names) for module, _, names in ordered]
    tail = TAIL + ROOT_TAIL if door.package == "agentbench" else TAIL
    return HEAD + "".join([*lines, *(["\n"] if aliases else ()), *sorted(aliases)]) + tail


def _import(module: str, names: str) -> str:
    line = f"from {module} import {names}"
    return f"{line}\n" if len(line) <= WIDTH else f"from {module} import (\n    {names},\n)\n"


def _ruff_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then the rest, as the linter sorts imports."""
    if name.isupper():
        return 0, name.lower()
    return (1 if name[0].isupper() else 2), name.lower()


def main(arguments: list[str]) -> int:
    """Write or check the stubs; return 1 if the check fails."""
    late = {path: text for path, text in stubs().items() if not path.exists() or path.read_text("utf-8") != text}
    for path, text in late.items():
        if "--check" in arguments:
            print(f"{path.parent.name}/__init__.pyi is out of step. Run: python -m tests.tools.write_stub")
        else:
            path.write_text(text, encoding="utf-8", newline="\n")
    return 1 if late and "--check" in arguments else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
