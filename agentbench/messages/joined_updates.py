"""Join the streamed updates among the outputs of a run into responses."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Iterable
from typing import Any

from agentbench.messages.response import AgentResponse
from agentbench.messages.update import AgentResponseUpdate


def join_updates(events: Iterable[Any]) -> list[Any]:
    """Replace the updates of each answer by one event whose data is the response.

    Updates are grouped by executor, task, executor call (if `executor_invoked` events are present) and agent, so that
    answers of parallel agents and consecutive answers stay separate.
    """
    groups: dict[Any, list[Any]] = {}
    calls: Counter[str | None] = Counter()
    for place, event in enumerate(events):
        key: Any = place
        if event.type == "executor_invoked":
            calls[event.executor_id] += 1
        elif isinstance(event.data, AgentResponseUpdate):
            executor_id = event.executor_id
            key = (executor_id, calls[executor_id], event.type, event.task_id, event.data.agent_id)
        groups.setdefault(key, []).append(event)
    joined = []
    for key, (one, *others) in groups.items():
        if isinstance(key, tuple):
            one = copy.copy(one)
            one.data = AgentResponse.from_updates([one.data, *(event.data for event in others)])
        joined.append(one)
    return joined
