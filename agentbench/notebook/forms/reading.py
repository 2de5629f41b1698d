"""Converts typed texts to a value and collects problems: reads each place, then builds the enclosing type."""

from typing import Any

from agentbench.checkpoints.difference.changes import path_text
from agentbench.notebook.forms.fields import NO_VALUE, input_of
from agentbench.notebook.forms.text_values import FieldError
from agentbench.notebook.forms.values import ValuePlace, is_in

# Problems, each with the key of its place.
Problems = list[tuple[str, str]]


def read(place: ValuePlace, problems: Problems) -> Any:
    """Return the value of a place, `NO_VALUE` if it is empty or invalid; adds to `problems`."""
    field = place.field
    if place.is_none:
        if field.nullable or not field.required:
            return None if field.nullable else NO_VALUE
        return _refuse(place, problems, "None is not accepted here.")
    value = place.value if place.is_unchanged else (_read_leaf if field.is_leaf else _read_box)(place, problems)
    return value if field.validate is None or value is NO_VALUE else _validate(place, value, problems)


def _refuse(place: ValuePlace, problems: Problems, why: str) -> Any:
    problems.append((place.key, why))
    return NO_VALUE


def _read_leaf(place: ValuePlace, problems: Problems) -> Any:
    field, text = place.field, place.text
    # An empty optional text is a value; an empty number is not.
    if text is NO_VALUE or (not field.required and field.kind != "text" and not text.strip()):
        return _refuse(place, problems, "This field is required.") if field.required else NO_VALUE
    try:
        return input_of(field, text)
    except FieldError as error:
        return _refuse(place, problems, str(error))


def _read_box(place: ValuePlace, problems: Problems) -> Any:
    field = place.field
    if field.kind == "const":
        return field.options[0].value
    if field.kind == "union":
        return read(place.part(place.picked), problems)
    if field.item is not None:
        value = (_read_rows if field.kind == "rows" else _read_pairs)(place, problems)
        count = len(place.row_names)
        if count < field.least:
            are = "is" if count == 1 else "are"
            return _refuse(place, problems, f"At least {field.least} needed; there {are} {count}.")
        if field.most is not None and count > field.most:
            return _refuse(place, problems, f"At most {field.most} allowed; there are {count}.")
        return value
    if place.is_closed:
        return _refuse(place, problems, "Open this and fill it in.") if field.required else NO_VALUE
    if field.positional:
        return [read(child, problems) for child in place.children]
    found = {
        part.key: read(child, problems)
        for part, child in zip(field.parts(), place.children, strict=True)
        if child.present or child.field.required
    }
    return {**place.extra, **{key: item for key, item in found.items() if item is not NO_VALUE}}


def _read_rows(place: ValuePlace, problems: Problems) -> list[Any]:
    items = [read(row, problems) for row in place.children]
    for at, item in enumerate(items):
        if place.field.unique and item is not NO_VALUE and item in items[:at]:
            _refuse(place.children[at], problems, f"Row {items.index(item) + 1} has the same value.")
    return items


def _read_pairs(place: ValuePlace, problems: Problems) -> dict[Any, Any]:
    found: dict[Any, Any] = {}
    for row in place.children:
        key, value = row.children
        name, item = read(key, problems), read(value, problems)
        if name in found and name is not NO_VALUE:
            _refuse(key, problems, "This key occurs twice.")
        found[name] = item
    return found


def _validate(place: ValuePlace, value: object, problems: Problems) -> Any:
    """Validate a value by its type, even if parts are missing, to find the problems of the other parts."""
    from pydantic import ValidationError

    assert place.field.validate is not None
    wrong = [key for key, _ in problems if is_in(key, place.key)]
    try:
        made = place.field.validate(value)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False):
            at, loc = place, list(each["loc"])
            while loc and at.field.kind != "json":
                at = _step(at, loc.pop(0)) or at
            at = at.children[1] if at.field.kind == "pair" else at
            where = "".join(f"{part}: " for part in [path_text(tuple(loc))] if part)
            if not any(is_in(key, at.key) or is_in(at.key, key) for key in wrong):
                _refuse(at, problems, where + each["msg"].removeprefix("Value error, "))
        return NO_VALUE
    except Exception as error:  # noqa: BLE001 - a validator of the user's
        problem = str(error) if isinstance(error, FieldError) else f"{type(error).__name__}: {error}"
        return NO_VALUE if wrong else _refuse(place, problems, problem)
    return NO_VALUE if wrong else made


def _step(place: ValuePlace, part: object) -> ValuePlace | None:
    """Return the place of one part of an error's location; `None` if that part is only a type."""
    kind, children = place.field.kind, place.children
    if kind == "union":
        return None if part == place.picked else _step(place.part(place.picked), part)
    if kind == "pairs":
        return next((row for row in children if part in (read(row.children[0], []), row.children[0].text)), None)
    if kind == "pair":
        return children[0] if part == "[key]" else _step(children[1], part)
    if kind == "rows":
        return next((row for at, row in enumerate(children) if at == part), None)
    names = zip(place.field.parts(), children, strict=False)
    return next((child for at, (each, child) in enumerate(names) if part in (each.name, each.key, at)), None)
