"""What one run asks of the model: the agent's options, those of its providers and those of the call, put together.

Pure: nothing is awaited, and nothing that is given is changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentbench._copying import isolate_or_same
from agentbench.agents.tools.collection import enter_tool, normalize_tools

_UNITED_ELSEWHERE = frozenset({"instructions", "tools", "additional_function_arguments"})
_MERGED_BY_KEY = frozenset({"metadata", "logit_bias"})
_IMMUTABLE = frozenset({str, int, float, bool, type(None)})
_CONTAINERS = (dict, list, set)


def merged_options(
    defaults: Mapping[str, Any],
    given: Mapping[str, Any] | None,
    *,
    instructions: Sequence[str] = (),
    conversation_id: str | None = None,
) -> dict[str, Any]:
    """Put the options of a run over those of its agent.

    Args:
        defaults: The agent's; values are copied, since a client may change what it gets.
        given: Those of the run; lists and dictionaries are copied. A value of `None` counts as not given.
        instructions: What the providers add; they stand between the agent's and the run's.
        conversation_id: Of the session; it beats the option.

    Returns:
        Without `tools` and `additional_function_arguments`, which travel on their own ways, and without `None`.
    """
    merged = {
        key: value if type(value) in _IMMUTABLE else isolate_or_same(value)
        for key, value in defaults.items()
        if value is not None and key not in _UNITED_ELSEWHERE
    }
    if given:
        _lay_over(merged, given)
    told = joined_instructions(defaults.get("instructions"), instructions, given and given.get("instructions"))
    if told:
        merged["instructions"] = told
    if conversation_id:
        merged["conversation_id"] = conversation_id
    return merged


def _lay_over(merged: dict[str, Any], given: Mapping[str, Any]) -> None:
    for key, value in given.items():
        if value is None or key in _UNITED_ELSEWHERE:
            continue
        before = merged.get(key)
        if isinstance(value, _CONTAINERS):
            value = isolate_or_same(value)
        if key in _MERGED_BY_KEY and isinstance(before, Mapping) and isinstance(value, Mapping):
            merged[key] = {**before, **value}
        else:
            merged[key] = value


def joined_instructions(*parts: str | Iterable[str] | None) -> str | None:
    """All instructions as one text, a line break between each two; `None` where there are none."""
    said: list[str] = []
    for part in parts:
        if part:
            said += (part,) if isinstance(part, str) else filter(None, part)
    return "\n".join(said) or None


def function_arguments(
    given: Mapping[str, Any] | None, options: Mapping[str, Any] | None
) -> dict[str, Any] | Mapping[str, Any] | None:
    """The runtime arguments of tools: those of the run and, stronger, the option `additional_function_arguments`."""
    more = options and options.get("additional_function_arguments")
    return {**(given or {}), **more} if more else given


def united_tools(known: Sequence[Any], *more: Any) -> list[Any]:
    """All tools of a run, each once.

    Args:
        known: The agent's, as tools.
        *more: Those of providers and of the run: anything that `normalize_tools` takes. A function that a known tool
            was made of is that tool.

    Raises:
        ValueError: If two different tools have one name.
    """
    if not any(more):
        return list(known)
    united = list(known)
    by_name: dict[str, Any] = {}
    for tool in known:
        enter_tool(by_name, tool)
    for tools in more:
        for tool in normalize_tools(tools):
            if enter_tool(by_name, tool) and not any(each is tool for each in united):
                united.append(tool)
    return united
