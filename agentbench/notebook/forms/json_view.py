"""A form as one JSON text: the content of the fields as JSON, and an edited JSON back into the fields.

Only the differences between two versions of the text are written, so that fields that JSON cannot express (a number
that is half typed, one of two types of a text) do not change with others. Secrets and files are not in the text; their
values stay.
"""

import json
from typing import Any

from agentbench.notebook.forms.fields.field import NO_VALUE, FieldError, FormField
from agentbench.notebook.forms.text_values.json_text import JsonError, WrittenNumber, read_json
from agentbench.notebook.forms.values.drafts import ConstDraft, Draft, LeafDraft
from agentbench.notebook.forms.values.fit import holds_json, json_of
from agentbench.notebook.forms.values.groups import GroupDraft, OneOfDraft
from agentbench.notebook.forms.values.rows import ManyDraft, PairsDraft, RowsDraft

__all__ = ["apply_json", "json_of_draft", "require_fields", "write_json"]


def write_json(value: Any) -> str:
    """Return the text of a JSON value; empty for `NO_VALUE`."""
    return "" if value is NO_VALUE else json.dumps(value, indent=2, ensure_ascii=False)


# ---- out of the fields ----------------------------------------------------------------------------------------------


def json_of_draft(draft: Draft[Any]) -> Any:
    """Return the content of the fields as JSON values, `NO_VALUE` if empty. Texts that are not values stay texts.

    Raises:
        JsonError: Two keys of a dict are the same.
    """
    if draft.is_none:
        return None
    if isinstance(draft, LeafDraft):
        return _leaf_out(draft)
    if isinstance(draft, ConstDraft):
        return json_of(draft.shape.value)
    if isinstance(draft, OneOfDraft):
        return json_of_draft(draft.member)
    if isinstance(draft, PairsDraft):
        return _pairs_out(draft)
    if isinstance(draft, RowsDraft):
        return [None if item is NO_VALUE else item for item in map(json_of_draft, draft.rows)]
    assert isinstance(draft, GroupDraft)
    return _group_out(draft)


def _leaf_out(draft: LeafDraft) -> Any:
    field, text = draft.field, draft.text
    if text is NO_VALUE or field.secret or field.kind == "file":
        return NO_VALUE
    if field.kind == "choice":
        option = next((each for each in field.options if each.label == text), None)
        return text if option is None else json_of(option.value)
    if field.kind not in ("number", "json"):
        return text
    try:
        field.parse(text)
        read = read_json(text)
    except (FieldError, ValueError):
        return text  # 1,5 or nan
    # 0.10 is 0.1 to JSON, but not to a decimal.
    return text if field.kind == "number" and isinstance(read, float) and repr(float(read)) != text else read


def _pairs_out(draft: PairsDraft) -> dict[str, Any]:
    out: dict[str, Any] = {}
    for row in draft.rows:
        key = "" if row.name.text in (NO_VALUE, None) else str(row.name.text)
        if key in out:
            msg = f"The key {key!r} is there twice. Give each key once."
            raise JsonError(msg)
        item = json_of_draft(row.item)
        out[key] = None if item is NO_VALUE else item
    return out


def _group_out(draft: GroupDraft) -> Any:
    if draft.closed:
        return NO_VALUE
    out = {part.key: json_of_draft(below) for part, below in draft.parts}
    if draft.shape.makes != "dict":
        return [None if item is NO_VALUE else item for item in out.values()]
    extra = {key: json_of(item) for key, item in draft.extra.items()}
    return {**extra, **{key: item for key, item in out.items() if item is not NO_VALUE}}


# ---- back into the fields -------------------------------------------------------------------------------------------


def apply_json(draft: Draft[Any], old: Any, new: Any) -> None:
    """Write an edited version of the text into the fields.

    Args:
        draft: The place of the text.
        old: The version that is in the fields, `NO_VALUE` for none.
        new: The edited version.

    Raises:
        JsonError: There are no fields for it; nothing is changed.
    """
    require_fields(draft, new)
    _apply(draft, old, new)


def require_fields(draft: Draft[Any], new: Any) -> None:
    """Raise `JsonError` unless there are fields for all of a JSON value. Texts fit anywhere: fields check them."""
    _require(draft, new, "")


def _same(one: Any, other: Any) -> bool:
    if type(one) is not type(other):
        return False
    if isinstance(one, dict):
        return list(one) == list(other) and all(_same(one[key], other[key]) for key in one)
    if isinstance(one, list):
        return len(one) == len(other) and all(map(_same, one, other))
    if isinstance(one, WrittenNumber):
        return bool(one.text == other.text)
    return bool(one == other)


def _require(draft: Draft[Any], new: Any, path: str) -> None:
    if new is None or isinstance(draft, (LeafDraft, ConstDraft)):
        return
    if isinstance(draft, OneOfDraft):
        at = _member_for(draft, new)
        _require(draft.at(draft.picked if at is None else at), new, path)
    elif isinstance(draft, RowsDraft):
        row = draft.make()
        for at, item in enumerate(_expect(new, list, "a list", path)):
            _require(row, item, f"{path}.{at}")
    elif isinstance(draft, PairsDraft):
        row = draft.make()
        for key, item in _expect(new, dict, "an object", path).items():
            _require(row.item, item, f"{path}.{key}")
    elif isinstance(draft, GroupDraft):
        _require_group(draft, new, path)


def _require_group(draft: GroupDraft, new: Any, path: str) -> None:
    parts = {part.key: below for part, below in draft.parts}
    if draft.shape.makes != "dict":
        items = _expect(new, list, "a list", path)
        if len(items) != len(parts):
            msg = f"{_where(path)} is a list of {len(parts)}, not of {len(items)}."
            raise JsonError(msg)
        entries = dict(zip(parts, items, strict=True))
    else:
        entries = _expect(new, dict, "an object", path)
    for key, item in entries.items():
        if key in parts:
            _require(parts[key], item, f"{path}.{key}")
        elif not draft.shape.open_ended:
            msg = f"{_where(path)} has no field {key!r}. Its fields are: {', '.join(map(repr, parts))}."
            raise JsonError(msg)


def _expect(new: Any, kind: type, kind_text: str, path: str) -> Any:
    if not isinstance(new, kind):
        msg = f"{_where(path)} is {kind_text}, not {json.dumps(new)[:80]}."
        raise JsonError(msg)
    return new


def _where(path: str) -> str:
    return path.removeprefix(".") or "The form"


def _apply(draft: Draft[Any], old: Any, new: Any) -> None:
    if old is not NO_VALUE and _same(old, new):
        return
    if isinstance(draft, LeafDraft):
        draft.set_raw(_leaf_text(draft.field, new))
    elif new is None and not isinstance(draft, ConstDraft):
        draft.set_raw(None)
    elif isinstance(draft, OneOfDraft):
        _apply_one(draft, old, new)
    elif isinstance(draft, ManyDraft):
        _apply_many(draft, old, new)
    elif isinstance(draft, GroupDraft):
        _apply_group(draft, old, new)


def _apply_one(draft: OneOfDraft, old: Any, new: Any) -> None:
    at = _member_for(draft, new)
    same = at is None or at == draft.picked
    if not same:
        draft.set_raw(draft.shape.labels[at or 0])
    draft.set_raw("")
    _apply(draft.member, old if same else NO_VALUE, new)


def _member_for(draft: OneOfDraft, new: Any) -> int | None:
    """Return the member for an edited value, first the one that is picked; `None` if none accepts it."""
    order = sorted(range(len(draft.shape.members)), key=lambda at: at != draft.picked)
    return next((at for at in order if holds_json(draft.shape.members[at].shape(), new)), None)


def _apply_many(draft: Any, old: Any, new: Any) -> None:
    draft.set_raw(str(len(new)))
    if isinstance(draft, PairsDraft):
        before = {str(row.name.text): row for row in draft.rows}
        draft.rows = [before.get(key) or draft.make() for key in new]
        for row, (key, item) in zip(draft.rows, new.items(), strict=True):
            if row.name.text != key:
                row.name.set_raw(key)
            _apply(row.item, old.get(key, NO_VALUE) if isinstance(old, dict) else NO_VALUE, item)
        return
    earlier = old if isinstance(old, list) else []
    for at, (row, item) in enumerate(zip(draft.rows, new, strict=True)):
        _apply(row, earlier[at] if at < len(earlier) else NO_VALUE, item)


def _apply_group(draft: GroupDraft, old: Any, new: Any) -> None:
    draft.set_raw("")
    keys = [part.key for part, _ in draft.parts]
    if draft.shape.makes != "dict":
        old = dict(zip(keys, old, strict=False)) if isinstance(old, list) else {}
        new = dict(zip(keys, new, strict=True))
    earlier = old if isinstance(old, dict) else {}
    for part, below in draft.parts:
        if part.key in new:
            _apply(below, earlier.get(part.key, NO_VALUE), new[part.key])
        elif part.key in earlier:
            below.clear()
            below.touched = True
    changed = {key: item for key, item in new.items() if key not in keys}
    draft.extra = {key: draft.extra[key] if _same(earlier.get(key), item) else item for key, item in changed.items()}


def _leaf_text(field: FormField, new: Any) -> str | None:
    """Return the text of a JSON value in a field."""
    if field.kind == "choice":
        for option in field.options:
            if _same(json_of(option.value), new):
                return option.label
    if field.kind == "json":
        return write_json(new)
    if new is None:
        return None
    if isinstance(new, WrittenNumber):
        return new.text
    return new if isinstance(new, str) else json.dumps(new, ensure_ascii=False)
