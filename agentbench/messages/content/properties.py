"""Additional properties in namespaces, so that several libraries can add values without collisions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, cast


def get_namespaced_value(properties: Mapping[str, Any] | None, namespace: str, key: str, default: Any = None) -> Any:
    """Return a value of a namespace of additional properties, or the default if there is none.

    Args:
        properties: The additional properties, or None.
        namespace: The name of the namespace: a key of the properties, whose value is a dictionary.
        key: The key in this dictionary.
        default: The value to return if there is no such namespace or key.

    Example:
        >>> get_namespaced_value({"shop": {"order": 7}}, "shop", "order")
        7
    """
    values = (properties or {}).get(namespace)
    return values.get(key, default) if isinstance(values, Mapping) else default


def with_namespaced_value(properties: Mapping[str, Any] | None, namespace: str, key: str, value: Any) -> dict[str, Any]:
    """Return a copy of additional properties with a value in a namespace. Other values of the namespace stay.

    Args:
        properties: The additional properties, or None.
        namespace: The name of the namespace: a key of the properties, whose value is a dictionary.
        key: The key in this dictionary.
        value: The value.

    Example:
        >>> with_namespaced_value({"shop": {"order": 7}}, "shop", "paid", True)
        {'shop': {'order': 7, 'paid': True}}
    """
    return merge_additional_properties(properties, {namespace: {key: value}})


def merge_additional_properties(*properties: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return additional properties together. Later values win; the values of a namespace are merged.

    Args:
        properties: Additional properties, or None. They are not changed.

    Raises:
        TypeError: One of them is not a dictionary.

    Example:
        >>> merge_additional_properties({"shop": {"order": 7}, "lang": "en"}, None, {"shop": {"paid": True}})
        {'shop': {'order': 7, 'paid': True}, 'lang': 'en'}
    """
    merged: dict[str, Any] = {}
    for part in properties:
        if not (part is None or isinstance(cast("object", part), Mapping)):
            message = f"Additional properties are {part!r}; expected a dictionary or None."
            raise TypeError(message)
        for name, value in (part or {}).items():
            before = merged.get(name)
            if isinstance(before, Mapping) and isinstance(value, Mapping):
                value = {**before, **value}
            merged[name] = value
    return merged
