"""The short ways of the engine (one task, one target, one message) do what the general ways do."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from unittest import mock

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbench import InMemoryCheckpointStorage
from agentbench.checkpoints import list_infos
from agentbench.checkpoints.parts.chain_memory import ChainMemory
from agentbench.checkpoints.parts.joining import join_parts
from agentbench.stategraph.running import boundary, routing
from agentbench.workflows.engine.runner import SuperstepRunner
from agentbench.workflows.graph.routing import Router
from tests.stategraph.laws.graphs import RandomGraph, answers, course

CONFIG = {"thread_id": "t", "recursion_limit": 40}


@contextmanager
def general_ways() -> Iterator[None]:
    """Let the engine take the general way everywhere."""
    end_superstep = boundary._Call.end_superstep

    deliver = SuperstepRunner._deliver

    def deliver_in_tasks(self: Any, plan: Any, superstep: int) -> Any:
        sends = deliver(self, plan, superstep)
        self._deliveries = _NotAlone(self._deliveries)
        return sends

    def end_in_general(self: Any, deliveries: Any) -> Any:
        return end_superstep(self, _NotAlone(deliveries))

    with (
        mock.patch.object(Router, "_plan_lone", return_value=None),
        mock.patch.object(SuperstepRunner, "_deliver", deliver_in_tasks),
        mock.patch.object(routing, "_route_to_one", return_value=None),
        mock.patch.object(boundary._Call, "end_superstep", end_in_general),
        mock.patch.object(ChainMemory, "join", lambda self, text, fetch: join_parts(text, fetch)),
    ):
        yield


class _NotAlone(list[Any]):
    """A list of one that says it has more, for the code that asks for the number only to take a short way."""

    def __len__(self) -> int:
        return 2


async def events_and_course(seed: int, fails: int) -> tuple[Any, ...]:
    """Run a graph to its end, streamed, with a node that fails at first; return what can be observed.

    Events are sorted, because nodes side by side end in any order.
    """
    storage, begun = InMemoryCheckpointStorage(), set()

    def note(line: str) -> None:
        if line == f"begin n{fails}" and line not in begun:
            begun.add(line)
            raise ValueError(line)

    app = RandomGraph(seed, note).compile(storage)
    events: list[Any] = []
    errors: list[str] = []
    data: Any = "go"
    for _ in range(30):
        asked: list[Any] = []
        try:
            async for event in app.astream(data, CONFIG, stream_mode="events"):
                events.append((event.type, event.executor_id, event.iteration))
                if event.type == "request_info":
                    asked.append(event.data)
        except Exception as error:  # noqa: BLE001 - compared below
            errors.append(f"{type(error).__name__}: {error}")
            data = None if seed % 2 else "a new turn"
            continue
        if not asked:
            break
        data = answers(asked)
    infos = await list_infos(storage, workflow_name=app.threads.chain("t"))
    saved = [(info.seq, info.source, info.iteration, info.n_messages, info.n_requests) for info in infos]
    return sorted(events, key=repr), errors, saved, await asyncio.to_thread(course, app, CONFIG)


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**9), fails=st.integers(0, 12))
def test_random_graphs_do_the_same_by_the_short_ways_and_by_the_general_ones(seed: int, fails: int) -> None:
    short = asyncio.run(events_and_course(seed, fails))
    with general_ways():
        general = asyncio.run(events_and_course(seed, fails))

    assert short == general
