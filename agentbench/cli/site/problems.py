"""What cannot work in a browser: found in the code of the notebooks when the site is built."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from typing import Final

from agentbench.cli.site.contents import Code, Contents, imported_modules

_NO_PROCESSES: Final = "a page cannot start other programs"
_NO_THREADS: Final = "a page has no threads"
_NO_SERVERS: Final = "a page cannot connect to such a server"
_MODULES: Final = {
    "subprocess": _NO_PROCESSES,
    "multiprocessing": _NO_PROCESSES,
    "distributed": _NO_SERVERS,
    "dask": _NO_SERVERS,
    "psycopg": _NO_SERVERS,
    "redis": _NO_SERVERS,
    "tkinter": "it is not in the browser's Python",
    "curses": "it is not in the browser's Python",
    "dbm": "it is not in the browser's Python",
    "venv": _NO_PROCESSES,
    "ensurepip": _NO_PROCESSES,
}
_NAMES: Final = {
    "MCPStdioTool": _NO_PROCESSES,
    "MCPWebsocketTool": _NO_SERVERS,
    "RedisCheckpointStorage": _NO_SERVERS,
    "subprocess_script_runner": _NO_PROCESSES,
    "ProcessPoolExecutor": _NO_PROCESSES,
    "Thread": _NO_THREADS,
    "ThreadPoolExecutor": _NO_THREADS,
    "to_thread": _NO_THREADS,
    "run_in_executor": _NO_THREADS,
}
_FRAMES: Final = ("frame", "explore")
_MAGICS: Final = {"system": _NO_PROCESSES, "getoutput": _NO_PROCESSES}
_CELL_MAGICS: Final = ("bash", "sh", "script", "cmd", "perl", "ruby")
_BLOCKING: Final = ("run_sync", "wait")


def find_problems(contents: Contents, modules: set[str]) -> list[str]:
    """Return a sentence for each thing in the code that cannot work in a browser.

    Args:
        contents: The notebooks and the modules beside them.
        modules: The names of the modules that the page can import, besides the standard library and those beside.
    """
    beside = {name.split("/")[0].removesuffix(".py") for name in contents.files if name.endswith(".py")}
    cells: dict[tuple[str, str], list[str]] = {}
    for code in contents.code:
        for problem in dict.fromkeys(_problems_of(code, modules | beside)):
            cells.setdefault((code.file, problem), []).extend([] if code.cell is None else [str(code.cell)])
    found = []
    for (file, problem), numbers in cells.items():
        place = f", code cell{'s' * (len(numbers) > 1)} {', '.join(numbers)}" if numbers else ""
        found.append(f"{file}{place}: {problem}.")
    return contents.problems + found


def _problems_of(code: Code, modules: set[str]) -> Iterator[str]:
    for name in imported_modules(code.tree):
        if name in _MODULES:
            yield f"{name} does not work, because {_MODULES[name]}"
        elif name not in modules and name not in sys.stdlib_module_names:
            yield f"{name} is not available, so the import fails"
    frames_work = "pandas" in modules
    for node in ast.walk(code.tree):
        if isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in _NAMES:
                yield f"{name} does not work, because {_NAMES[name]}"
            elif not frames_work and (name in _FRAMES or name.endswith("_frame")):
                yield "a frame needs pandas, which is not available"
        elif isinstance(node, ast.Call):
            yield from _problems_of_call(node)


def _problems_of_call(call: ast.Call) -> Iterator[str]:
    function = call.func
    name = function.attr if isinstance(function, ast.Attribute) else getattr(function, "id", "")
    first = call.args[0].value if call.args and isinstance(call.args[0], ast.Constant) else None
    if isinstance(function, ast.Attribute) and ast.unparse(function.value) == "get_ipython()":
        if name in _MAGICS or (name == "run_cell_magic" and first in _CELL_MAGICS):
            yield f"this command does not run, because {_NO_PROCESSES}"
    elif name == "run_many":
        for keyword in call.keywords:
            if keyword.arg == "backend" and ast.unparse(keyword.value) != "'here'":
                yield f"a batch on a cluster does not run, because {_NO_PROCESSES}"
    elif isinstance(first, str) and first.startswith(("postgresql", "redis")) and "://" in first:
        yield f"{name}({first.split('://')[0]}://...) does not work, because {_NO_SERVERS}"
    elif name in _BLOCKING and isinstance(function, ast.Name):
        yield f"{name}(...) works only in browsers that let Python wait, such as Chrome; write await instead"
