"""The value of what was typed, and the problems with it: each place is read, then the type around makes the value."""

from typing import Any

from agentbench.notebook.forms.fields import NO_NONE, NO_VALUE
from agentbench.notebook.forms.text_values import FieldError
from agentbench.notebook.forms.values import Place

__all__ = ["Problems", "read"]

# Each problem with the key of its place.
Problems = list[tuple[str, str]]


def read(place: Place, problems: Problems, *, whole: bool = True) -> Any:
    """Return the value of a place, `NO_VALUE` if there is none or something is wrong.

    Args:
        place: The place.
        problems: Gets each problem with the key of its place.
        whole: Whether the type makes the value; else the input of the type around is returned.
    """
    field = place.field
    if place.is_none:
        if field.nullable or not field.required:
            return None if field.nullable else NO_VALUE
        return _refuse(place, problems, NO_NONE)
    if place.is_unchanged:
        return place.value
    before = len(problems)
    value = _read_leaf(place, problems, whole=whole) if field.is_leaf else _read_box(place, problems)
    done = field.check is None or value is NO_VALUE or len(problems) > before
    return value if done or not whole else _make(place, value, problems)


def _refuse(place: Place, problems: Problems, why: str) -> Any:
    problems.append((place.key, why))
    return NO_VALUE


def _read_leaf(place: Place, problems: Problems, *, whole: bool) -> Any:
    field, text = place.field, place.text
    # An empty text that is optional is a value; of a number it is none.
    if text is NO_VALUE or (not field.required and field.kind != "text" and not text.strip()):
        return _refuse(place, problems, "An answer is needed here.") if field.required else NO_VALUE
    try:
        return field.read(text, whole=whole)
    except FieldError as error:
        return _refuse(place, problems, str(error))


def _read_box(place: Place, problems: Problems) -> Any:
    field, inner = place.field, place.field.check is None  # without a type around, the parts are the value
    if field.kind == "const":
        return field.options[0].value
    if field.kind == "union":
        # A value, not its parts: the union around must not guess between members again.
        return read(place.part(place.picked), problems)
    if field.item is not None:
        rows = _read_rows if field.kind == "rows" else _read_pairs
        value = rows(place, problems, inner)
        count = len(place.row_names)
        if count < field.least:
            return _refuse(
                place, problems, f"At least {field.least} needed; there {'is' if count == 1 else 'are'} {count}."
            )
        if field.most is not None and count > field.most:
            return _refuse(place, problems, f"At most {field.most} allowed; there are {count}.")
        return value
    if place.is_closed:
        return _refuse(place, problems, "Open this and fill it in.") if field.required else NO_VALUE
    found = {
        part.key: read(child, problems, whole=inner)
        for part, child in zip(field.parts(), place.children, strict=True)
        if child.present or child.field.required
    }
    found = {key: item for key, item in found.items() if item is not NO_VALUE}
    return {**place.extra, **found} if field.makes is dict else field.makes(found.values())


def _read_rows(place: Place, problems: Problems, whole: bool) -> Any:
    items = [read(row, problems, whole=whole) for row in place.children]
    for at, item in enumerate(items):
        if place.field.unique and item is not NO_VALUE and item in items[:at]:
            _refuse(place.children[at], problems, f"Row {items.index(item) + 1} has the same value.")
    if any(item is NO_VALUE for item in items):
        return NO_VALUE
    try:
        return place.field.makes(items)
    except TypeError:  # the parts are not hashable, but the value made of them may be
        return items


def _read_pairs(place: Place, problems: Problems, whole: bool) -> Any:
    found: dict[Any, object] = {}
    for row in place.children:
        key, value = row.children
        name, item = read(key, problems), read(value, problems, whole=whole)
        if name in found:
            _refuse(key, problems, "This key is there twice.")
        if name is not NO_VALUE:
            found[name] = item
    return NO_VALUE if any(item is NO_VALUE for item in found.values()) else found


def _make(place: Place, value: object, problems: Problems) -> Any:
    from pydantic import ValidationError

    assert place.field.check is not None
    try:
        return place.field.check(value)
    except ValidationError as error:
        for each in error.errors(include_url=False, include_input=False):
            at = place
            for part in each["loc"]:
                at = _step(at, part) or at
            _refuse(at, problems, each["msg"].removeprefix("Value error, "))
    except Exception as error:  # noqa: BLE001 - a validator of the user's
        _refuse(place, problems, f"{type(error).__name__}: {error}")
    return NO_VALUE


def _step(place: Place, part: object) -> Place | None:
    """Return the place that a part of an error's location names; `None` if it only names a type."""
    kind, children = place.field.kind, place.children
    if kind == "union":
        return None if part == place.picked else _step(place.part(place.picked), part)
    if kind == "pairs":
        return next((row for row in children if part in (read(row.children[0], []), row.children[0].text)), None)
    if kind == "pair":
        return children[0] if part == "[key]" else _step(children[1], part)
    if kind == "rows":
        return next((row for at, row in enumerate(children) if at == part), None)
    names = {str(at): part.name for at, part in enumerate(place.field.parts())}
    if place.field.makes is dict:
        names = {name: each.name for each in place.field.parts() for name in (each.name, each.key)}
    return next((child for child in children if child.name == names.get(str(part))), None)
