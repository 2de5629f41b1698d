"""Merge the options and tools of one run from the agent, its providers and the call."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from agentbench._copying import isolate_or_same
from agentbench.agents.tools.collection import enter_tool, normalize_tools

_MERGED_ELSEWHERE = frozenset({"instructions", "tools", "additional_function_arguments"})
_MERGED_BY_KEY = frozenset({"metadata", "logit_bias"})
_IMMUTABLE = frozenset({str, int, float, bool, type(None)})
_CONTAINERS = (dict, list, set)


def merge_options(
    defaults: Mapping[str, Any],
    options: Mapping[str, Any] | None,
    *,
    instructions: Sequence[str] = (),
    conversation_id: str | None = None,
) -> dict[str, Any]:
    """Merge a run's options over its agent's; providers' instructions come between those of agent and run."""
    merged = {
        key: value if type(value) in _IMMUTABLE else isolate_or_same(value)
        for key, value in defaults.items()
        if value is not None and key not in _MERGED_ELSEWHERE
    }
    for key, value in options.items() if options else ():
        if value is None or key in _MERGED_ELSEWHERE:
            continue
        before = merged.get(key)
        copied = isolate_or_same(value) if isinstance(value, _CONTAINERS) else value
        if key in _MERGED_BY_KEY and isinstance(before, Mapping) and isinstance(copied, Mapping):
            copied = {**before, **copied}
        merged[key] = copied
    text = join_instructions(defaults.get("instructions"), instructions, options and options.get("instructions"))
    if text:
        merged["instructions"] = text
    if conversation_id:
        merged["conversation_id"] = conversation_id
    return merged


def join_instructions(*parts: str | Iterable[str] | None) -> str | None:
    """Join instructions with line breaks; return `None` if there are none."""
    texts: list[str] = []
    for part in parts:
        if part:
            texts += (part,) if isinstance(part, str) else filter(None, part)
    return "\n".join(texts) or None


def merge_tools(known: Sequence[Any], *more: Any) -> list[Any]:
    """Return all tools of a run without duplicates; a function is the same as a known tool made from it."""
    merged = list(known)
    if not any(more):
        return merged
    by_name: dict[str, Any] = {}
    for tool in known:
        enter_tool(by_name, tool)
    for tools in more:
        for tool in normalize_tools(tools):
            if enter_tool(by_name, tool) and not any(each is tool for each in merged):
                merged.append(tool)
    return merged
