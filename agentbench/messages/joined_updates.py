"""The streamed updates among the outputs of a run, as the answers that they make."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from typing import Any

from agentbench.messages.response import AgentResponse
from agentbench.messages.update import AgentResponseUpdate


def join_updates(events: Iterable[Any]) -> list[Any]:
    """Return events with the updates of one answer as one event, whose data is the response that they make.

    Updates belong together by executor, task, call of the executor (as far as `executor_invoked` events are there) and
    agent, so that answers of agents at work side by side come apart, and answers that follow each other.
    """
    found: dict[Any, list[Any]] = {}
    calls: Counter[str | None] = Counter()
    for place, event in enumerate(events):
        key: Any = place
        if event.type == "executor_invoked":
            calls[event.executor_id] += 1
        elif isinstance(event.data, AgentResponseUpdate):
            executor_id = event.executor_id
            key = (executor_id, calls[executor_id], event.type, event.task_id, event.data.agent_id)
        found.setdefault(key, []).append(event)
    joined = []
    for key, (one, *others) in found.items():
        if isinstance(key, tuple):
            one = copy.copy(one)
            one.data = AgentResponse.from_updates([one.data, *(event.data for event in others)])
        joined.append(one)
    return joined
