"""What a site contains: notebooks, and the files and modules that they use."""

from __future__ import annotations

import ast
import re
import sys
import warnings
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final
from urllib.parse import unquote

from agentbench.exceptions import SiteError

_PICTURE: Final = re.compile(r"""!\[[^\]]*\]\(([^)\s]+)|<img[^>]*\ssrc=["']([^"']+)""")
_HIDDEN: Final = ("__pycache__", "node_modules")
_UNREADABLE: Final = frozenset("%#?:")
"""JupyterLite puts names into addresses without quoting them."""
_CAPACITY_MB: Final = 50
"""A folder that holds more than this is not taken because a notebook names it."""


@dataclass(frozen=True)
class Code:
    """Python code of a site.

    Attributes:
        file: The name of the file in the site: a notebook or a module.
        cell: The number of its code cell, from 1, or `None` for a module.
        tree: The parsed code.
    """

    file: str
    cell: int | None
    tree: ast.Module


@dataclass
class Contents:
    """The notebooks of a site and what they use.

    Attributes:
        notebooks: The notebooks by their names in the site, as nbformat reads them.
        files: The other files by their names in the site.
        code: The code of the cells and of the modules.
        problems: Sentences about what cannot be included.
    """

    notebooks: dict[str, Any] = field(default_factory=dict)
    files: dict[str, Path] = field(default_factory=dict)
    code: list[Code] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)

    @property
    def imports(self) -> set[str]:
        """The names of the top-level modules that the code imports."""
        return {name for code in self.code for name in imported_modules(code.tree)}


def collect(notebooks: list[Path]) -> Contents:
    """Read notebooks, and find the files and modules that they use. These must lie below the notebook's folder.

    Raises:
        SiteError: A notebook does not exist or cannot be read, or two have the same name.
    """
    contents = Contents()
    for path in notebooks:
        notebook = _read(path)
        if path.name in contents.notebooks:
            msg = f"Two notebooks are called {path.name}"
            raise SiteError(msg, "Rename one: in the site they lie in one folder.")
        contents.notebooks[path.name] = notebook
        folder = path.resolve().parent
        n_code = 0
        for cell in notebook.cells:
            if cell.cell_type == "markdown":
                for match in _PICTURE.finditer(cell.source):
                    _add_named(contents, path.name, folder, unquote(match[1] or match[2]))
            elif cell.cell_type == "code":
                n_code += 1
                _add_code(contents, path.name, n_code, folder, cell.source)
    for name in (*contents.notebooks, *contents.files):
        if found := sorted(_UNREADABLE.intersection(name)):
            contents.problems.append(f"JupyterLite cannot open {name!r}, because of {' and '.join(found)}. Rename it.")
    return contents


def imported_modules(tree: ast.Module) -> Iterator[str]:
    """Yield the top-level module of each import."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name.split(".")[0]
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module.split(".")[0]


def _read(path: Path) -> Any:
    import nbformat  # noqa: PLC0415 - `agentbench --help` does not need it

    try:
        return nbformat.read(path, as_version=4)  # type: ignore[no-untyped-call]
    except FileNotFoundError:
        msg = f"There is no notebook {path}"
        raise SiteError(msg, "Pass the names of .ipynb files.") from None
    except (OSError, ValueError, nbformat.ValidationError) as error:
        msg = f"{path} is not a notebook: {error}"
        raise SiteError(msg, "Pass the names of .ipynb files.") from error


def _add_code(contents: Contents, file: str, cell: int | None, folder: Path, source: str | bytes) -> None:
    from IPython.core.inputtransformer2 import TransformerManager

    if isinstance(source, str):  # a cell
        source = TransformerManager().transform_cell(source)
    try:
        with warnings.catch_warnings(action="ignore"):
            tree = ast.parse(source)
    except (SyntaxError, ValueError):
        return  # a cell may show a mistake
    contents.code.append(Code(file, cell, tree))
    for module in imported_modules(tree):
        _add_module(contents, folder, module)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            _add_named(contents, file, folder, node.value)


def _add_module(contents: Contents, folder: Path, name: str) -> None:
    """Add a module or a package that lies beside the notebook, with what it uses in turn."""
    package = folder / name
    if name in sys.stdlib_module_names:
        return
    if (package / "__init__.py").is_file() or (package.is_dir() and any(package.glob("*.py"))):
        files = _files_below(package)
    else:
        files = [path for path in [folder / f"{name}.py"] if path.is_file()]
    for path in files:
        inside = path.relative_to(folder).as_posix()
        if _add_file(contents, inside, path) and path.suffix == ".py":
            _add_code(contents, inside, None, folder, path.read_bytes())


def _add_named(contents: Contents, user: str, folder: Path, name: str) -> None:
    """Add a file or folder if a text in the code is its name."""
    if not 0 < len(name) < 256 or "\0" in name or "\n" in name or "://" in name:
        return
    try:
        path = (folder / name).resolve()
        if not path.exists() or path == folder:
            return
    except OSError:  # too long for a name
        return
    if not path.is_relative_to(folder):
        if path.is_file() and not path.is_relative_to("/dev"):
            contents.problems.append(
                f"{user} names {name!r}, which is outside of the notebook's folder and not included. Copy it there."
            )
        return
    inside = path.relative_to(folder)
    if _is_hidden(inside) or path.suffix == ".ipynb":
        return
    files = _files_below(path) if path.is_dir() else [path]
    if sum(file.stat().st_size for file in files) > _CAPACITY_MB * 1e6:
        contents.problems.append(f"{user} names {name!r}, which has more than {_CAPACITY_MB} MB and is not included.")
        return
    for file in files:
        _add_file(contents, file.relative_to(folder).as_posix(), file)


def _add_file(contents: Contents, name: str, path: Path) -> bool:
    """Add a file and return whether it is new."""
    known = contents.files.setdefault(name, path)
    if known != path and known.read_bytes() != path.read_bytes():
        msg = f"Two notebooks use different files called {name}"
        raise SiteError(msg, "Rename one, or build two sites.")
    return known is path


def _files_below(folder: Path) -> list[Path]:
    """Return the files of a folder, without hidden and generated ones, and links to these or out of the folder."""
    root = folder.resolve()
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.is_file()
        and not _is_hidden(path.relative_to(folder))
        and path.resolve().is_relative_to(root)
        and not _is_hidden(path.resolve().relative_to(root))
    ]


def _is_hidden(inside: Path) -> bool:
    return any(part.startswith(".") or part in _HIDDEN for part in inside.parts)
