"""Who takes part in a run besides the providers of its agent: what remembers the conversation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agentbench.agents.history.history import HistoryProvider, InMemoryHistoryProvider


def loads_history(providers: Sequence[Any]) -> bool:
    """Whether one of the providers remembers what was said before."""
    return any(isinstance(each, HistoryProvider) and each.load_messages for each in providers)


def is_stored_by_service(client: Any, defaults: Mapping[str, Any], options: Mapping[str, Any]) -> bool:
    """Whether the model's service keeps the conversation: the option of the run, else of the agent, else its custom."""
    given = options.get("store")
    if given is None:
        given = defaults.get("store")
    return bool(getattr(client, "STORES_BY_DEFAULT", False) if given is None else given)


def auto_history(providers: Sequence[Any]) -> InMemoryHistoryProvider:
    """The provider that remembers where no other one does. What it remembers is in the session, so one is enough."""
    if providers and any(getattr(each, "source_id", None) == _AUTO.source_id for each in providers):
        # A history that only stores may have the usual name: the two must not write into one list.
        return _SECOND
    return _AUTO


_AUTO, _SECOND = InMemoryHistoryProvider(), InMemoryHistoryProvider("in_memory_auto")
