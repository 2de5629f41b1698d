"""Which part of a value is to blame when the whole could not be copied or stored: slow, for failures only."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from types import FunctionType, MemberDescriptorType, ModuleType
from typing import Any, Final

from agentbench.exceptions import UnstorableValueError
from agentbench.serialization.registry import type_of_class
from agentbench.serialization.writer import JsonWriter

#: As deep as a path can still be read.
_DEEPEST_PATH: Final = 20
_LONGEST_KEY: Final = 60


def find_part(value: object, is_bad: Callable[[object], bool]) -> tuple[str, object]:
    """Descend to the innermost part that is bad, or as deep as a path can still be read. Never raises.

    Args:
        value: Bad itself.
        is_bad: Judges a value with all that is in it; must not raise.

    Returns:
        The path, such as `state['notes'][3].payload`, and the part; the value itself has the path `""`.
    """
    path, part = "", value
    passed = {id(value)}
    for _ in range(_DEEPEST_PATH):
        for step, inner in _parts_of(part):
            if id(inner) not in passed and is_bad(inner):
                passed.add(id(inner))
                path, part = path + step, inner
                break
        else:
            break
    return path.removeprefix("."), part


def find_unstorable(value: object) -> tuple[str, object]:
    """Return the path and the innermost part of a value that has no stored form; see `find_part`."""
    return find_part(value, lambda part: _problem_with(part) is not None)


def explain_unstorable(value: object) -> UnstorableValueError:
    """Return the error to raise when a value could not be written: the part to blame, its path, and what to do."""
    path, part = find_unstorable(value)
    problem = _problem_with(part)
    if isinstance(problem, UnstorableValueError):
        return UnstorableValueError(problem.value_type, problem.reason, path=path)
    reason = "It contains itself. Break the cycle." if _is_cyclic(part) else "It is nested too deeply. Make it flatter."
    return UnstorableValueError(type(part), reason, path=path)


def _problem_with(value: object) -> Exception | None:
    try:
        JsonWriter().write(value)
    except Exception as error:  # noqa: BLE001 - whatever foreign code raises is a problem, and none of ours
        return error
    return None


def _is_cyclic(value: object) -> bool:
    """Tell whether a value leads back to itself, as far down as it is looked into."""
    level, seen = [value], {id(value)}
    for _ in range(_DEEPEST_PATH):
        below = [inner for part in level for _, inner in _parts_of(part)]
        if any(inner is value for inner in below):
            return True
        level = [inner for inner in below if id(inner) not in seen]
        seen.update(map(id, level))
    return False


def _parts_of(value: Any) -> Iterator[tuple[str, Any]]:
    try:
        yield from _items_of(value)
        yield from _attributes_of(value)
    except Exception:  # noqa: BLE001 - foreign containers and descriptors may raise anything; what was seen so far counts
        return


def _items_of(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield f"[{_shown(key)}]", item
            if type(key) is not str:
                yield f" key {_shown(key)}", key
    elif isinstance(value, (list, tuple, deque)):
        for index, item in enumerate(value):
            yield f"[{index}]", item
    elif isinstance(value, (set, frozenset)):
        for item in value:
            yield f" member {_shown(item)}", item


def _attributes_of(value: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(value, (type, FunctionType, ModuleType)):
        return
    kind = type_of_class(type(value))
    if kind is not None and isinstance(encoded := kind.encode(value), dict):
        for name, item in encoded.items():
            yield f".{name}", item
        return
    slots = [
        name
        for cls in type(value).__mro__
        if "__slots__" in vars(cls)
        for name, member in vars(cls).items()
        if isinstance(member, MemberDescriptorType)
    ]
    for name in [*getattr(value, "__dict__", ()), *slots]:
        if hasattr(value, name):
            yield f".{name}", getattr(value, name)


def _shown(key: object) -> str:
    try:
        text = repr(key)
    except Exception:  # noqa: BLE001 - a broken __repr__ of user code must not hide the error
        text = " at 0x"
    if " at 0x" in text:  # an address differs from run to run
        text = f"<{type(key).__name__}>"
    return text if len(text) <= _LONGEST_KEY else text[: _LONGEST_KEY - 1] + "…"
