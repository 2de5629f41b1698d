"""The expected values of kept tests: runs the tests, finds the values that changed, and rewrites them in the file."""

from __future__ import annotations

import ast
import importlib.util
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

from agentbench.exceptions import KeepTestError
from agentbench.revisions.kept_tests.facts import ASSERTED, Replayed
from agentbench.revisions.kept_tests.literals import expected_source

_VARIABLE: Final = "replayed"
Listen = Callable[[Callable[[Replayed], object]], Callable[[], None]]
"""Registers a function that is called with the result of each replay; the result removes it."""


class Expected(NamedTuple):
    """A value that a test expects, and where it is in the file: lines and columns in bytes, as `ast` counts them."""

    attribute: str
    value: Any
    start: tuple[int, int]
    end: tuple[int, int]


class Change(NamedTuple):
    """A value that is not what the test expects."""

    attribute: str
    before: Any
    after: Any


@dataclass
class KeptTest:
    """A test function of a file, what it expects, and after `run_kept_tests` what its run did.

    Attributes:
        path: The file.
        name: The function.
        expected: The expected values.
        changes: The values that differ.
        error: Why the test could not be run to its end, in words; None if it could.
    """

    path: Path
    name: str
    expected: list[Expected]
    changes: list[Change] = field(default_factory=list)
    error: str | None = None


def find_kept_tests(paths: Iterable[Path]) -> list[KeptTest]:
    """Return the kept tests in files, and in the files named `test_*.py` of folders. No file is executed."""
    files = [each for path in paths for each in (sorted(path.rglob("test_*.py")) if path.is_dir() else [path])]
    found: list[KeptTest] = []
    for file in files:
        source = file.read_bytes()  # files of other people may have another encoding
        if f"{_VARIABLE}.".encode() not in source:
            continue
        try:
            tree = ast.parse(source, str(file))
        except SyntaxError as error:
            msg = f"{file} is not valid Python: {error}. Repair it, or pass the paths of the other tests."
            raise KeepTestError(msg) from error
        functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
        kept = [KeptTest(file, node.name, list(_expected_in(node))) for node in functions]
        found += [test for test in kept if test.expected]
    return found


def _expected_in(function: ast.FunctionDef) -> Iterator[Expected]:
    """Yield the values of the lines `assert replayed.outputs == …`."""
    for node in function.body:
        match node:
            case ast.Assert(
                test=ast.Compare(
                    left=ast.Attribute(value=ast.Name(id=name), attr=attribute), ops=[ast.Eq()], comparators=[value]
                )
            ) if name == _VARIABLE and attribute in ASSERTED:
                try:
                    read = ast.literal_eval(value)
                except ValueError:  # a person has written something else here
                    continue
                end = (value.end_lineno or value.lineno, value.end_col_offset or 0)
                yield Expected(attribute, read, (value.lineno, value.col_offset), end)


def run_kept_tests(tests: Iterable[KeptTest], listen: Listen) -> None:
    """Run each test once, and enter what it found. This executes the files, as pytest does."""
    for test in tests:
        replays: list[Replayed] = []
        stop = listen(replays.append)
        try:
            with _importable(test.path.parent):
                getattr(_load(test.path), test.name)()
        except AssertionError as error:
            if not replays:
                test.error = str(error)
        except Exception as error:  # noqa: BLE001 - any error of the workflow or the file
            test.error = f"{type(error).__name__}: {error}"
        finally:
            stop()
        if replays:
            found = [(each, getattr(replays[-1], each.attribute)) for each in test.expected]
            test.changes = [Change(each.attribute, each.value, now) for each, now in found if each.value != now]


def _load(path: Path) -> Any:
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None  # it ends in .py
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # dataclasses look up their module
    spec.loader.exec_module(module)
    return module


@contextmanager
def _importable(folder: Path) -> Iterator[None]:
    """Let modules of this folder and of the current one be imported, as pytest does."""
    added = [str(folder.resolve()), str(Path.cwd())]
    sys.path[:0] = added
    try:
        yield
    finally:
        for each in added:
            sys.path.remove(each)


def rewrite(tests: Iterable[KeptTest]) -> list[Path]:
    """Replace the expected values that changed, and return the files that were written. All else stays as it is."""
    by_file: dict[Path, list[tuple[Expected, Any]]] = {}
    for test in tests:
        after = {change.attribute: change.after for change in test.changes}
        pairs = [(each, after[each.attribute]) for each in test.expected if each.attribute in after]
        if pairs:
            by_file.setdefault(test.path, []).extend(pairs)
    for path, pairs in by_file.items():
        lines = path.read_bytes().splitlines(keepends=True)
        for expected, value in sorted(pairs, key=lambda pair: pair[0].start, reverse=True):  # the last one first
            (first, left), (last, right) = expected.start, expected.end
            source = expected_source(value, left).encode()
            lines[first - 1 : last] = [lines[first - 1][:left] + source + lines[last - 1][right:]]
        path.write_bytes(b"".join(lines))
    return list(by_file)
