"""A form as one JSON text: converts the fields to JSON, and edited JSON back to the fields.

Only places with different JSON are written, so that content that JSON cannot express (a half-typed number, or the
chosen type of an ambiguous text) stays. Secrets and files are not in the text; their values stay.
"""

import json
from typing import Any

from agentbench.notebook.forms.fields import NO_VALUE, Raw, holds, input_of, json_of
from agentbench.notebook.forms.text_values import FieldError, JsonError, WrittenNumber, read_json, write_json
from agentbench.notebook.forms.values import ValuePlace


def json_of_place(place: ValuePlace) -> Any:
    """Return the content of the fields as JSON values, `NO_VALUE` if empty. Texts that are not values stay texts.

    Raises `JsonError` if two keys of a dict are the same.
    """
    field = place.field
    if place.is_none:
        return None
    if field.is_leaf:
        return _leaf_json(place)
    if field.kind == "const":
        return json_of(field.options[0].value)
    if field.kind == "union":
        return json_of_place(place.part(place.picked))
    if field.kind == "pairs":
        found: dict[str, Any] = {}
        for key, value in (row.children for row in place.children):
            name = "" if key.text is NO_VALUE else str(key.text or "")
            if name in found:
                msg = f"The key {name!r} occurs twice. Use each key once."
                raise JsonError(msg)
            found[name] = _or_null(value)
        return found
    if place.is_closed:
        return NO_VALUE
    if field.kind == "rows" or field.positional:
        return [_or_null(child) for child in place.children]
    parts = zip(field.parts(), place.children, strict=True)
    known = {part.key: item for part, child in parts if (item := json_of_place(child)) is not NO_VALUE}
    return {**{key: json_of(item) for key, item in place.extra.items()}, **known}


def _or_null(place: ValuePlace) -> Any:
    item = json_of_place(place)
    return None if item is NO_VALUE else item


def _leaf_json(place: ValuePlace) -> Any:
    field, text = place.field, place.text
    if text is NO_VALUE or field.secret or field.kind == "file":
        return NO_VALUE
    if field.kind == "choice":
        return next((json_of(each.value) for each in field.options if each.label == text), text)
    if field.kind not in ("number", "json"):
        return text
    try:
        input_of(field, text)
        read = read_json(text)
    except FieldError:
        return text  # 1,5 or nan
    # JSON drops the zero of 0.10; a decimal keeps it.
    return text if field.kind == "number" and isinstance(read, float) and repr(float(read)) != text else read


def apply_json(place: ValuePlace, new: Any) -> None:
    """Write a JSON value into the fields of a place, only where it differs.

    Raises `JsonError` if a part has no field; other parts may have been written by then.
    """
    kind = place.field.kind
    if kind == "const" or _is_same(place, new):
        return
    if place.field.is_leaf or new is None:
        place.write(_leaf_text(place, new) if place.field.is_leaf else None)
    elif kind == "union":
        order = sorted(place.field.parts(), key=lambda part: part.name != place.picked)
        place.write(next((part.name for part in order if holds(part.field(), new)), place.picked))
        apply_json(place.again().children[0], new)
    elif kind == "rows":
        _expect(place, new, list)
        place.write(str(len(new)))
        for row, item in zip(place.again().children, new, strict=True):
            _apply_item(row, item)
    elif kind == "pairs":
        _apply_pairs(place, new)
    else:
        _apply_group(place, new)


def _apply_item(place: ValuePlace, new: Any) -> None:
    if new is not None or place.is_none or json_of_place(place) is not NO_VALUE:  # an empty row is null in JSON
        apply_json(place, new)


def _is_same(place: ValuePlace, new: Any) -> bool:
    try:
        return repr(json_of_place(place)) == repr(new)  # includes types, order and digits
    except JsonError:  # two equal keys
        return False


def _apply_pairs(place: ValuePlace, new: Any) -> None:
    _expect(place, new, dict)
    before = {str(row.children[0].text): row.name for row in place.children}
    old = len(place.row_names)
    place.write(str(old + len(new)))
    spare = iter(place.row_names[old:])
    place.texts.rows[place.key] = tuple(before.get(key) or next(spare) for key in new)
    for row, (key, item) in zip(place.again().children, new.items(), strict=True):
        if row.children[0].text != key:
            row.children[0].write(key)
        _apply_item(row.children[1], item)


def _apply_group(place: ValuePlace, new: Any) -> None:
    keys = [part.key for part in place.field.parts()]
    positional = place.field.positional
    _expect(place, new, list if positional else dict)
    if positional:
        if len(new) != len(keys):
            msg = f"{_name(place)} must have {len(keys)} items, not {len(new)}."
            raise JsonError(msg)
        new = dict(zip(keys, new, strict=True))
    extra = {key: item for key, item in new.items() if key not in keys}
    if extra and not place.field.open_ended:
        msg = f"{_name(place)} has no field {next(iter(extra))!r}. Fields: {', '.join(map(repr, keys))}."
        raise JsonError(msg)
    if repr(extra) != repr(place.extra):
        place.texts.extra[place.key] = extra
    if place.is_none or place.is_closed:
        place.write("")
        place = place.again()
    for key, child in zip(keys, place.children, strict=True):
        if key in new:
            (_apply_item if positional else apply_json)(child, new[key])
        elif json_of_place(child) is not NO_VALUE:
            child.clear()


def _expect(place: ValuePlace, new: Any, kind: type) -> None:
    if not isinstance(new, kind):
        msg = f"{_name(place)} must be {'a list' if kind is list else 'an object'}, not {json.dumps(new)[:80]}."
        raise JsonError(msg)


def _name(place: ValuePlace) -> str:
    while place.parent is not None and place.parent.field.kind == "union":
        place = place.parent
    return "The form" if place.parent is None else place.path


def _leaf_text(place: ValuePlace, new: Any) -> Raw:
    field = place.field
    for option in field.options:
        if repr(json_of(option.value)) == repr(new):
            return option.label
    if field.kind == "json":
        return write_json(new)
    if new is None or isinstance(new, str):
        return new
    return new.text if isinstance(new, WrittenNumber) else json.dumps(new, ensure_ascii=False)
