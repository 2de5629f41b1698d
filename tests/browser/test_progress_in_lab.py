"""A long run under its bar in a real JupyterLab: what is shown, what Stop does, what stays."""

from __future__ import annotations

from typing import Any

SETUP = """
import asyncio, os
from agentbench import Executor, WorkflowBuilder, WorkflowContext, handler
from agentbench.notebook import progress

os.environ.pop('PYTEST_CURRENT_TEST', None)  # where outputs are compared there is no bar

class Split(Executor):
    @handler
    async def split(self, number: int, ctx: WorkflowContext[int]) -> None:
        await ctx.send_message(number)

class Work(Executor):
    @handler
    async def work(self, number: int, ctx: WorkflowContext[int]) -> None:
        if self.id != 'search' and number == 2:
            await asyncio.sleep(3600)
        await ctx.send_message(number)

class Join(Executor):
    @handler
    async def join(self, numbers: list[int], ctx: WorkflowContext[int, int]) -> None:
        await ctx.send_message(numbers[0] + 1)

def build(name):
    split, join = Split(id='split'), Join(id='join')
    workers = [Work(id=each) for each in ('search', 'review', 'translate')]
    return (WorkflowBuilder(start_executor=split, name=name).add_fan_out_edges(split, workers)
            .add_fan_in_edges(workers, join).add_edge(join, split).build())
"""


def test_a_long_run_shows_two_bars_and_stop_leaves_one_line(lab: Any, open_notebook: Any) -> None:
    lab.write("progress", [SETUP, "await progress(build('nightly').start(0), total=12)"])
    page = open_notebook("progress")
    page.run_all(finished=False)
    bars = page.panel.locator(".abp").get_by_role("progressbar")
    page.panel.locator(".abp").get_by_text("7 of 12 supersteps").wait_for()
    page.panel.locator(".abp").get_by_text("1 of 3 finished").wait_for()
    assert bars.first.get_attribute("aria-valuenow") == "7"
    assert "review, translate" in page.panel.locator(".abp").inner_text()
    page.shot("progress-total", page.panel.locator(".abp-box"))
    page.button("Stop").click()
    page.panel.get_by_text("nightly: cancelled, 7 of 12 supersteps").wait_for()
    page.panel.get_by_text("cells finished").last.wait_for()
    assert page.panel.locator(".abp").count() == 0
