"""Finds the part of a value that has no stored form: a slow search, used only after a failure."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

from agentbench._display import shorten
from agentbench.exceptions import UnstorableValueError
from agentbench.serialization.class_types import class_type, is_model
from agentbench.serialization.registry import type_of_class
from agentbench.serialization.writer import JsonWriter

_DEEPEST_PATH: Final = 20
"""The greatest depth of a readable path."""


def find_part(
    value: object, has_problem: Callable[[object], object], parts_of: Callable[[Any], Iterable[tuple[str, Any]]]
) -> tuple[str, object]:
    """Return the path and value of the innermost part with a problem, or of the deepest part with a readable path."""
    path, part = "", value
    passed = {id(value)}
    for _ in range(_DEEPEST_PATH):
        for step, inner in parts_of(part):
            if id(inner) not in passed and has_problem(inner):
                passed.add(id(inner))
                path, part = path + step, inner
                break
        else:
            break
    return path.removeprefix("."), part


def explain_unstorable(value: object) -> UnstorableValueError:
    """Return the error for a value that could not be written: the part, its path, and what to do."""
    path, part = find_part(value, _problem_with, _parts_of)
    problem = _problem_with(part)
    if isinstance(problem, UnstorableValueError):
        return UnstorableValueError(problem.value_type, problem.reason, path=path)
    reason = "It contains itself or is nested too deeply. Break the cycle, or flatten it."
    return UnstorableValueError(type(part), reason, path=path)


def _problem_with(value: object) -> Exception | None:
    try:
        JsonWriter().write(value)
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything, and each error is a problem
        return error
    return None


def _parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    try:
        yield from items_of(value)
        yield from _attributes_of(value)
    except Exception:  # noqa: BLE001 - foreign containers and descriptors may raise anything; the parts before count
        return


def items_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a mapping or built-in container, each with its step of a path, and keys that are not texts."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield f"[{shorten(key)}]", item
            if type(key) is not str:
                yield f" key {shorten(key)}", key
    elif isinstance(value, (list, tuple, deque)):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    elif isinstance(value, (set, frozenset)):
        for item in value:
            yield f" member {shorten(item)}", item


def _attributes_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the stored attributes of an instance; none if its class itself has no stored form."""
    cls: Any = type(value)
    kind = type_of_class(cls) or class_type(cls)
    encoded = kind.encode(value) if kind else None
    if isinstance(encoded, dict):
        attributes = vars(value) if is_model(cls) else encoded
        for name, item in attributes.items():
            yield f".{name}", item
