"""The same graph and input give the same course, whatever the sleeps, the worker threads and the event loop."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbench.stategraph import START
from tests.stategraph.laws.graphs import RandomGraph, answers, course, to_the_end, values_of

CONFIG = {"thread_id": "t", "recursion_limit": 60}


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**9), pauses=st.integers(0, 10**9))
@pytest.mark.nightly
def test_the_course_of_a_graph_depends_on_its_input_alone(seed: int, pauses: int) -> None:
    def graph(**options: Any) -> Any:
        rng = Random(pauses + len(options))
        return RandomGraph(seed, pause=lambda: rng.choice([0.0, 0.0, 0.001, 0.004])).compile(**options)

    async def awaited(app: Any) -> None:
        result = await app.ainvoke("go", CONFIG)
        while result.interrupts:
            result = await app.ainvoke(answers(result.interrupts), CONFIG)

    quiet, noisy, narrow, here = RandomGraph(seed).compile(), graph(), graph(max_concurrency=1), graph(debug=True)
    for app in (quiet, noisy, narrow):
        to_the_end(app, CONFIG)  # on the engine's own loop
    asyncio.run(awaited(here))  # on a loop of the caller

    expected = course(quiet, CONFIG)
    assert expected[0][1] == "input"
    for app in (noisy, narrow, here):
        assert course(app, CONFIG) == expected


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 10**9), place=st.integers(0, 30))
def test_a_replay_of_any_checkpoint_ends_as_the_run_did(seed: int, place: int) -> None:
    app = RandomGraph(seed).compile()
    result = to_the_end(app, CONFIG)
    history = app.get_state_history(CONFIG)
    chosen = [snapshot for snapshot in history if snapshot.next and snapshot.metadata["source"] in ("input", "step")]
    if not chosen:
        return

    again = to_the_end(app, {**CONFIG, **chosen[place % len(chosen)].config}, None)

    assert values_of(again.state) == values_of(result.state)


def test_two_hundred_runs_with_reversed_sleeps_are_one() -> None:
    from agentbench.stategraph import StateGraph
    from tests.stategraph.laws.graphs import Trace

    def app(order: list[int]) -> Any:
        graph = StateGraph(Trace)
        for place, delay in enumerate(order):

            async def node(state: Trace, place: int = place, delay: int = delay) -> dict[str, Any]:
                for _ in range(delay):
                    await asyncio.sleep(0)
                return {"notes": [f"n{place}"]}

            graph.add_node(f"n{place}", node).add_edge(START, f"n{place}")
        return graph.compile()

    found = set()
    for number in range(200):
        order = Random(number).sample(range(6), 6)
        found.add(tuple(app(order).invoke("go", CONFIG).state.notes))

    assert found == {("n0", "n1", "n2", "n3", "n4", "n5")}
