"""What a first small run loads: nothing that it can do without. This is what a newcomer waits for."""

import subprocess
import sys

SCRIPT = """
import asyncio, sys
before = {name for name in NAMES if name in sys.modules}
from agentbench import Executor, WorkflowBuilder, WorkflowContext, handler

class Show(Executor):
    @handler
    async def show(self, text: str, ctx: WorkflowContext[str, str]) -> None:
        await ctx.yield_output(text)

workflow = WorkflowBuilder(start_executor=Show(id="show")).build()
assert asyncio.run(workflow.run("hello")).get_outputs() == ["hello"]
print(*sorted(name for name in NAMES if name in sys.modules and name not in before))
"""

NOT_NEEDED = [
    "IPython",
    "agentbench.agents",
    "agentbench.checkpoints.info",
    "agentbench.checkpoints.storage",
    "agentbench.messages",
    "agentbench.notebook",
    "agentbench.orchestrations",
    "agentbench.settings",
    "agentbench.workflows.graph.boundary",
    "agentbench.workflows.persist.writer",
    "agentbench.workflows.run.run",
    "datetime",
    "decimal",
    "hashlib",
    "ipaddress",
    "json",
    "opentelemetry",
    "pathlib",
    "pydantic",
    "typing_extensions",
    "urllib.parse",
    "uuid",
    "zoneinfo",
]


def test_a_first_run_loads_nothing_that_it_can_do_without():
    script = f"NAMES = {NOT_NEEDED!r}\n{SCRIPT}"

    loaded = subprocess.run([sys.executable, "-c", script], check=True, capture_output=True, text=True).stdout.split()

    assert loaded == []
