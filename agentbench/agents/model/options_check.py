"""Options of a call, checked before a service sees them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agentbench.agents.arguments import check_mapping, describe
from agentbench.agents.tools.collection import validate_tools

_RANGES: Final[Mapping[str, tuple[float, float]]] = {
    "frequency_penalty": (-2.0, 2.0),
    "presence_penalty": (-2.0, 2.0),
    "temperature": (0.0, 2.0),
    "top_p": (0.0, 1.0),
}


async def validate_chat_options(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return a copy of options with numbers as floats and tools as `validate_tools` gives them.

    Raises:
        TypeError: A number is of another type.
        ValueError: A number is out of its range: temperature 0 to 2, top_p 0 to 1, penalties -2 to 2, max_tokens more
            than 0.
    """
    check_mapping("options", options, '{"temperature": 0.2}')
    checked = dict(options)
    for name, (least, most) in _RANGES.items():
        value = checked.get(name)
        if value is None:
            continue
        if isinstance(value, bool) or not hasattr(value, "__float__"):
            message = f"The option {name} is {describe(value)}. Expected a number from {least:g} to {most:g}."
            raise TypeError(message)
        if not least <= value <= most:
            message = f"The option {name} is {value!r}. Expected a number from {least:g} to {most:g}."
            raise ValueError(message)
        checked[name] = float(value)
    max_tokens = checked.get("max_tokens")
    if isinstance(max_tokens, bool) or (max_tokens is not None and not hasattr(max_tokens, "__float__")):
        message = f"The option max_tokens is {describe(max_tokens)}. Expected a whole number."
        raise TypeError(message)
    if max_tokens is not None and max_tokens <= 0:
        message = f"The option max_tokens is {max_tokens!r}. Expected more than 0, or None for the model's own limit."
        raise ValueError(message)
    if checked.get("tools") is not None:
        checked["tools"] = await validate_tools(checked["tools"])
    return checked
