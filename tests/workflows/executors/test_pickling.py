"""Executors and the parts of a graph travel to another process, where a workflow of them runs."""

import pickle
import subprocess
import sys

FLOW = '''
from typing import Literal

from agentbench import (
    Case, Default, Edge, Executor, FanInEdgeGroup, FanOutEdgeGroup, FunctionExecutor, SingleEdgeGroup,
    SwitchCaseEdgeGroup, SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault, WorkflowContext, executor, handler,
    response_handler,
)


class Add(Executor):
    def __init__(self, id, n, **limits):
        super().__init__(id, **limits)
        self.n = n

    @handler
    async def add(self, value: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(value + self.n)

    @response_handler
    async def on_answer(self, asked: str, answer: bool, ctx: WorkflowContext) -> None: ...


class Locked(Add):
    """Has a field that cannot be pickled, and leaves it out in the usual way."""

    def __init__(self, id, n):
        super().__init__(id, n)
        self.lock = object.__subclasses__

    def __getstate__(self):
        return {key: value for key, value in self.__dict__.items() if key != "lock"}


@executor
async def double(value: int, ctx: WorkflowContext[int | Literal["none"]]) -> None:
    await ctx.send_message(2 * value)


@executor(id="increment", output=int, send_result=True, retries=2)
def add_one(value: int) -> int:
    return value + 1


def total(values: list[int], ctx: WorkflowContext[int, int]) -> None:
    ctx.yield_output(sum(values))


def is_small(value):
    return value < 10


def both(value, ids):
    return ids


def parts():
    nodes = [Add("start", 1, timeout=5), double, add_one, FunctionExecutor(total, "total"), Locked("locked", 0)]
    edges = [
        SingleEdgeGroup("start", "locked", is_small),
        FanOutEdgeGroup("locked", ["double", "increment"], both),
        FanInEdgeGroup(["double", "increment"], "total"),
    ]
    switch = SwitchCaseEdgeGroup(
        "a", [SwitchCaseEdgeGroupCase(is_small, "b"), SwitchCaseEdgeGroupDefault("c")]
    )
    return nodes, edges, [switch, Case(is_small, double), Default(add_one), Edge("a", "b", is_small)]
'''

OTHER_PROCESS = """
import asyncio, pickle, sys
from agentbench import WorkflowBuilder

nodes, edges, (switch, case, default, edge) = pickle.load(sys.stdin.buffer)
builder = WorkflowBuilder(start_executor=nodes[0])
for node in nodes:
    builder.add_executor(node)
for group in edges:
    builder.add_edge_group(group)
result = asyncio.run(builder.build().run(3))
chosen = asyncio.run(switch.select(5)).target_id, asyncio.run(edge.should_route(50))
limits = nodes[0].policy.timeout, nodes[2].policy.retries
print(result.outputs, chosen, limits, case.target is nodes[1], default.target is nodes[2], nodes[0].output_types)
"""


def test_executors_and_edges_run_in_another_process(tmp_path, monkeypatch):
    (tmp_path / "flow_to_pickle.py").write_text(FLOW)
    monkeypatch.syspath_prepend(tmp_path)
    data = pickle.dumps(__import__("flow_to_pickle").parts())
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", OTHER_PROCESS],
        input=data,
        capture_output=True,
        cwd=tmp_path,
        timeout=60,
        check=False,
    )
    assert done.stderr.decode() == ""
    assert done.stdout.decode().strip() == "[13] ('b', False) (5, 2) True True [<class 'int'>]"
