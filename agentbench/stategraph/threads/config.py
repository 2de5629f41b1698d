"""The configuration of a call: the thread that it continues, and its other settings."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any, get_args

from agentbench._clock import iso_utc, runtime_defaults
from agentbench._limits import require_limit, require_seconds
from agentbench.stategraph.running.plan import OnBusy, OnGraphChange

_DEFAULTS: Mapping[str, Any] = {
    "recursion_limit": 25, "user_id": "anonymous", "tags": (), "metadata": {}, "on_busy": "raise",
    "on_graph_change": "raise",
}  # fmt: skip
_TYPES: Mapping[str, tuple[type, str]] = {
    "metadata": (Mapping, "a mapping"),
    "interrupt_before": (Collection, "the name of a node, or a list of names"),
    "interrupt_after": (Collection, "the name of a node, or a list of names"),
}


def flat_config(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return a flat configuration. Settings may be under `configurable`; those beside it take precedence.

    Raises:
        TypeError: It is not a mapping, or the thread id is neither text nor a whole number.
        ValueError: The thread id cannot be encoded.
    """
    _require("config", config, Mapping, "a mapping such as {'thread_id': 'order-7'}")
    flat = {**(config or {})}
    nested = flat.pop("configurable", None)
    _require("configurable", nested, Mapping, "a mapping such as {'thread_id': 'order-7'}")
    flat = {**(nested or {}), **flat}
    thread_id = flat.get("thread_id")
    _require("thread_id", thread_id, (str, int), "text or a whole number")
    try:
        str(thread_id).encode()
    except UnicodeEncodeError as error:
        message = f"thread_id is {thread_id!r}, which cannot be encoded: {error.reason}."
        raise ValueError(message) from error
    return flat


def thread_config(config: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flat configuration that names a thread; `ValueError` if it names none, else like `flat_config`."""
    flat = flat_config(config)
    if flat.get("thread_id") is None:
        message = f"{dict(config or {})} names no thread. Write: {{'thread_id': ...}}."
        raise ValueError(message)
    return flat


def read_config(config: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return the configuration of a call with its defaults.

    Raises:
        TypeError: It is not a mapping, or a setting has the wrong type.
        ValueError: A setting has an invalid value.
    """
    read = {**_DEFAULTS, **flat_config(config)}
    defaults = runtime_defaults()
    require_limit("recursion_limit", read["recursion_limit"], least=1)
    require_seconds("node_timeout", read.get("node_timeout"), none="no limit")
    for name, choices in (("on_busy", get_args(OnBusy)), ("on_graph_change", get_args(OnGraphChange))):
        if read[name] not in choices:
            message = f"{name} is {read[name]!r}; expected one of {', '.join(map(repr, choices))}."
            raise ValueError(message)
    for name, (type_, expected) in _TYPES.items():
        _require(name, read.get(name), type_, expected)
    read.setdefault("run_id", defaults.ids.new_id("run"))
    read.setdefault("timestamp", iso_utc(defaults.clock.time_ns()))
    return read


def _require(name: str, value: object, type_: type | tuple[type, ...], expected: str) -> None:
    if value is not None and not isinstance(value, type_):
        message = f"{name} is {value!r}, of type {type(value).__name__}; expected {expected}."
        raise TypeError(message)
