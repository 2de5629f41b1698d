"""Pure functions for a place in a value: its path, value and declared type, and copies with another value there."""

from __future__ import annotations

import ast
import copy
import dataclasses
import re
from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple, get_type_hints

from agentbench._plain_text import plain_line

_NUMBER = re.compile(r"0|[1-9][0-9]*", re.ASCII)
# A step in brackets: a position or a key in Python notation, or the id of an item, as in `[message_id='m3']`.
_TEXT = r"""'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*\""""
_BRACKETS = re.compile(rf"\[(?:(?P<id>\w+)=)?(?P<value>-?[0-9]+|{_TEXT})\]", re.ASCII)
_NAMED = 12  # names in an error


class Place(NamedTuple):
    """A place in a value.

    Attributes:
        steps: The keys, positions and field names of the path.
        value: The value at this place.
        declared: The type that the surrounding class declares for it; `None` if none is declared.
    """

    steps: tuple[Any, ...]
    value: Any
    declared: Any


def find_place(root: Any, path: str) -> Place:
    """Follow a path such as `draft.title`, `items[0].name`, `users['a b']` or `findings[id='rain'].text`.

    A step may also be written after a dot: `items.0.name`. Keys with dots are found too; the longest key with which the
    path can be followed is tried first.

    Raises:
        LookupError: The path does not exist; the text says where it ends and which names exist there.
    """
    steps: list[Any] = []
    value, declared, rest = root, None, path
    while rest:
        step, rest = _next_step(value, rest, path)
        declared = _declared_type(value, step)
        value = _item(value, step)
        steps.append(step)
    if not steps:
        msg = "the path is empty"
        raise LookupError(msg)
    return Place(tuple(steps), value, declared)


def replace_at(root: Any, steps: tuple[Any, ...], value: Any) -> Any:
    """Return a copy of a value with another value at a place; everything off the path is shared."""
    if not steps:
        return value
    first, *others = steps
    return _with_item(root, first, replace_at(_item(root, first), tuple(others), value))


# --- one step ---------------------------------------------------------------------------------------------------------


def _next_step(value: Any, rest: str, path: str) -> tuple[Any, str]:
    """Return the next key (the longest with which the path can be followed) and the rest of the path."""
    steps = list(_steps_from(value, rest))
    for step, tail in steps:
        if _leads_on(_item(value, step), tail):
            return step, tail
    if steps:
        return steps[0]
    inner_names = _names_in(value)
    so_far = path[: len(path) - len(rest)].rstrip(".")
    where = f"{so_far!r}, a {type(value).__name__}," if so_far else "the state"
    missing = rest[: next(_ends(rest, 1))]
    if not inner_names:
        msg = f"{where} has no {missing!r}, and no values inside. Write paths as `draft.title` or `items[0].name`"
        raise LookupError(msg)
    names = ", ".join(plain_line(name, 40) for name in list(inner_names)[:_NAMED])
    more = f" and {len(inner_names) - _NAMED} more" if len(inner_names) > _NAMED else ""
    msg = f"{where} has no {missing!r}; it has {names}{more}. Write paths as `draft.title` or `items[0].name`"
    raise LookupError(msg)


def _leads_on(value: Any, rest: str) -> bool:
    return not rest or any(_leads_on(_item(value, step), tail) for step, tail in _steps_from(value, rest))


def _steps_from(value: Any, rest: str) -> Iterator[tuple[Any, str]]:
    """Return each possible first step of a path, the longest first, with the rest of the path."""
    names = _names_in(value)
    for end in reversed([*_ends(rest, 0)]):
        head, tail = rest[:end], rest[end + 1 :] if rest[end : end + 1] == "." else rest[end:]
        if head in names:
            yield head, tail
        elif _NUMBER.fullmatch(head) and int(head) in names:
            yield int(head), tail
    in_brackets = _BRACKETS.match(rest)
    if in_brackets is None:
        return
    step, tail = ast.literal_eval(in_brackets["value"]), rest[in_brackets.end() :].removeprefix(".")
    if in_brackets["id"] is None:
        steps = [step] if step in names else []
    elif isinstance(value, (list, tuple)):
        steps = [at for at, item in enumerate(value) if _id_of(item, in_brackets["id"]) == step]
    else:
        steps = []
    yield from ((step, tail) for step in steps)


def _ends(rest: str, start: int) -> Iterator[int]:
    """Return the positions at which the first step of a path may end."""
    yield from (at for at, sign in enumerate(rest) if at >= start and (sign == "." or (sign == "[" and at)))
    yield len(rest)


def _id_of(item: Any, name: str) -> Any:
    return item.get(name) if isinstance(item, Mapping) else getattr(item, name, None)


def _names_in(value: Any) -> Any:
    """Return the possible steps from a value."""
    if isinstance(value, Mapping):
        return value
    if isinstance(value, tuple) and hasattr(value, "_fields"):
        return dict.fromkeys([*value._fields, *range(len(value))])
    if isinstance(value, (list, tuple)):
        return range(len(value))
    return dict.fromkeys(_fields_of(value))


def _fields_of(value: Any) -> list[str]:
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return [field.name for field in dataclasses.fields(value)]
    return list(getattr(type(value), "model_fields", ()))


def _item(value: Any, step: Any) -> Any:
    if isinstance(value, Mapping) or (isinstance(value, (list, tuple)) and isinstance(step, int)):
        return value[step]
    return getattr(value, step)


def _with_item(value: Any, step: Any, item: Any) -> Any:
    if isinstance(value, Mapping):
        changed: Any = copy.copy(value)  # preserves the class of a dict, such as a defaultdict
        changed[step] = item
        return changed
    if isinstance(value, list):
        return [item if place == step else each for place, each in enumerate(value)]
    if isinstance(value, tuple):
        return _tuple_with(value, step, item)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        if all(field.init for field in dataclasses.fields(value)):
            return dataclasses.replace(value, **{step: item})
        changed = copy.copy(value)
        object.__setattr__(changed, step, item)
        return changed
    return value.model_copy(update={step: item})


def _tuple_with(value: Any, step: Any, item: Any) -> Any:
    fields = getattr(value, "_fields", ())
    place = step if isinstance(step, int) else fields.index(step)
    items = [item if at == place else each for at, each in enumerate(value)]
    return type(value)(*items) if fields else tuple(items)


def _declared_type(value: Any, step: Any) -> Any:
    """Return the type that a class declares for its field; `None` if there is none or it cannot be evaluated."""
    model_field = getattr(type(value), "model_fields", {}).get(step)
    if model_field is not None:
        return Annotated[model_field.annotation, model_field]
    if not isinstance(step, str) or isinstance(value, Mapping):
        return None
    try:
        return get_type_hints(type(value), include_extras=True).get(step)
    except Exception:  # noqa: BLE001 - evaluating annotations runs user code; the present value's type serves as well
        return None
