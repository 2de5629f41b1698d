"""State graphs: a loop of three nodes over a state with a growing list."""

from __future__ import annotations

import asyncio
import operator
from typing import Annotated, Any

from agentbench.stategraph import END, START, AgentState, StateGraph
from tests.benchmarks.workload import Await, Call, Workload

STEPS = 1000
TEXT = "x" * 200


class Talk(AgentState):
    said: Annotated[list[str], operator.add] = []
    n: int = 0


async def _say(state: Talk) -> dict[str, Any]:
    return {"said": [TEXT], "n": state.n + 1}


def _loop(steps: int, runs: int = 1) -> Any:
    def prepare(wait: Await) -> Call:
        graph = StateGraph(Talk)
        for name in "abc":
            graph.add_node(name, _say)
        graph.add_edge(START, "a").add_edge("a", "b").add_edge("b", "c")
        app = graph.add_conditional_edges("c", lambda state: "a" if state.n < steps else END, ["a", END]).compile(False)
        config = {"thread_id": "t", "recursion_limit": steps + 3}

        def call() -> None:
            for _ in range(runs):
                result = wait(app.ainvoke({"n": 0}, config))
                assert len(result.state.said) == result.step >= steps

        return call

    return prepare


def _bare(wait: Await) -> Call:
    async def say(said: list[str]) -> list[str]:
        return [TEXT]

    async def go() -> None:
        said: list[str] = []
        for _ in range(STEPS):
            (new,) = await asyncio.gather(asyncio.create_task(say(said)))
            said += new
        assert len(said) == STEPS

    return lambda: wait(go())


WORKLOADS = (
    Workload(
        name="W8",
        what="a step of a loop of three nodes of a state graph, each adding 200 bytes",
        unit="us",
        per_call=STEPS,
        agentbench=_loop(STEPS),
        bare=_bare,
    ),
    Workload(
        name="W8 growth",
        what="the same 1,000 steps in one run; bare: in ten runs of 100",
        unit="us",
        per_call=STEPS,
        agentbench=_loop(STEPS),
        bare=_loop(STEPS // 10, 10),
    ),
)
