"""Answers from outside, turned into the type that was asked for."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from agentbench._signatures.forms import TypeLike, fields_of, flatten_union, origin_of, unwrap
from agentbench._signatures.matching import is_instance_of


def coerce_answer(value: object, type_: TypeLike) -> object:
    """Turn an answer from outside into the type that was asked for, where that is safe.

    A fitting value stays as it is. `int` becomes `float`; a `dict` becomes a dataclass, its fields coerced alike, or
    a model with `model_validate`. Of a union the first member that fits wins. If nothing works the value comes back
    unchanged, for the caller to refuse.
    """
    if is_instance_of(value, type_):
        return value
    for member in flatten_union(type_):
        converted = _convert(value, member)
        if is_instance_of(converted, member):
            return converted
    return value


def _convert(value: object, member: TypeLike) -> object:
    form = unwrap(member)
    target = origin_of(form) or form
    if target is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if not isinstance(value, dict) or not isinstance(target, type):
        return value
    try:
        if hasattr(target, "model_validate"):
            return target.model_validate(value)
        return target(**_coerced_fields(value, target)) if dataclasses.is_dataclass(target) else value
    except Exception:  # noqa: BLE001  constructors and validators are user code; a refusal means "does not fit"
        return value


def _coerced_fields(value: Mapping[str, object], target: type) -> dict[str, object]:
    hints = fields_of(target)
    return {name: coerce_answer(item, hints.get(name, object)) for name, item in value.items()}
