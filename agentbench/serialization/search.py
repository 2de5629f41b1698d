"""Which part of a value has no stored form: a slow search, for failures only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

from agentbench.exceptions import UnstorableValueError
from agentbench.serialization.class_types import class_type, is_model
from agentbench.serialization.registry import type_of_class
from agentbench.serialization.writer import JsonWriter

#: As deep as a path can still be read.
_DEEPEST_PATH: Final = 20
_LONGEST_KEY: Final = 60


def find_part(
    value: object, has_problem: Callable[[object], object], parts_of: Callable[[Any], Iterable[tuple[str, Any]]]
) -> tuple[str, object]:
    """Return the path and the value of the innermost part with a problem, or as deep as a path can still be read."""
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
    """Return the error to raise when a value could not be written: the part, its path, and what to do."""
    path, part = find_part(value, _problem_with, _parts_of)
    problem = _problem_with(part)
    if isinstance(problem, UnstorableValueError):
        return UnstorableValueError(problem.value_type, problem.reason, path=path)
    reason = "It contains itself. Break the cycle." if _is_cyclic(part) else "It is nested too deeply. Make it flatter."
    return UnstorableValueError(type(part), reason, path=path)


def _problem_with(value: object) -> Exception | None:
    try:
        JsonWriter().write(value)
    except Exception as error:  # noqa: BLE001 - foreign code may raise anything, and each error is a problem
        return error
    return None


def _is_cyclic(value: object) -> bool:
    """Return whether a value contains itself within the searched depth."""
    level, visited = [value], {id(value)}
    for _ in range(_DEEPEST_PATH):
        below = [inner for part in level for _, inner in _parts_of(part)]
        if any(inner is value for inner in below):
            return True
        level = [inner for inner in below if id(inner) not in visited]
        visited.update(map(id, level))
    return False


def _parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    try:
        yield from items_of(value)
        yield from _attributes_of(value)
    except Exception:  # noqa: BLE001 - foreign containers and descriptors may raise anything; the parts before count
        return


def items_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the items of a built-in container, keys that are no texts too, each with its step of a path."""
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"[{_key_text(key)}]", item
            if type(key) is not str:
                yield f" key {_key_text(key)}", key
    elif isinstance(value, (list, tuple, deque)):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    elif isinstance(value, (set, frozenset)):
        for item in value:
            yield f" member {_key_text(item)}", item


def _attributes_of(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the stored attributes of an instance; none if its class itself has no stored form."""
    cls: Any = type(value)
    kind = type_of_class(cls) or class_type(cls)
    encoded = kind.encode(value) if kind else None
    if isinstance(encoded, dict):
        attributes = vars(value) if is_model(cls) else encoded
        for name, item in attributes.items():
            yield f".{name}", item


def _key_text(key: object) -> str:
    try:
        text = repr(key)
    except Exception:  # noqa: BLE001 - a broken __repr__ of user code must not hide the error
        text = " at 0x"
    if " at 0x" in text:  # an address differs from run to run
        text = f"<{type(key).__name__}>"
    return text if len(text) <= _LONGEST_KEY else text[: _LONGEST_KEY - 1] + "…"
