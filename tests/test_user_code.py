"""Tracebacks in a notebook, in a real kernel: the user's frames and the sentence, without the library's."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agentbench._user_code import shorten_tracebacks

jupyter_client = pytest.importorskip("jupyter_client")
pytest.importorskip("ipykernel")

SETUP = """
import asyncio
from typing import Any
from typing import Never
from agentbench import Agent, Executor, EchoChatClient, WorkflowBuilder, WorkflowContext, executor, handler, run_sync
from agentbench.stategraph import AgentState, StateGraph

@executor(id="number")
async def number(n: int, ctx: WorkflowContext[int, int]) -> None:
    await ctx.yield_output(1 // n)

@executor(id="text")
async def text(t: str, ctx: WorkflowContext[Never, str]) -> None: ...

workflow = WorkflowBuilder(start_executor=number).build()
graph = StateGraph(AgentState).add_node("a", lambda state: {}["missing"]).set_entry_point("a").compile()
"""

#: A mistake, and the error that a person reads.
MISTAKES = {
    "edge of wrong types": ("WorkflowBuilder().add_edge(number, text).build()", "TypeCompatibilityError"),
    "edge from a number": ("WorkflowBuilder().add_edge(5, text)", "TypeError"),
    "handler without context": ("class Bad(Executor):\n    @handler\n    async def f(self, x): ...", "ValueError"),
    "wrong input": ("await workflow.run('x')", "RuntimeError"),
    "wrong input in a thread": ("run_sync(workflow.run('x'))", "RuntimeError"),
    "no input": ("workflow.run()", "ValueError"),
    "division by zero": ("await workflow.run(0)", "ZeroDivisionError"),
    "division by zero in a thread": ("run_sync(workflow.run(0))", "ZeroDivisionError"),
    "division by zero in a stream": ("async for _ in workflow.run(0, stream=True): pass", "ZeroDivisionError"),
    "a step": ("await workflow.start(0).step()", "ZeroDivisionError"),
    "a panel without input": ("workflow.stepper()", "ValueError"),
    "config": ("graph.invoke('hi', 'thread')", "TypeError|.*Error"),
    "a node": ("graph.invoke('hi', {'thread_id': 't'})", "GraphNodeError|.*Error"),
    "an agent": ("await Agent(EchoChatClient(), name='a').run('x', session=5)", ".*Error|.*Exception"),
}

Cell = Callable[[str], tuple[str, list[str]]]


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cell]:
    """Run a cell; returns the name of its error, and the lines that are shown, without colours."""
    folder = str(tmp_path_factory.mktemp("kernel"))
    environment = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    environment |= {"PYTHONPATH": str(Path(__file__).parents[1]), "IPYTHONDIR": folder}
    manager, client = jupyter_client.manager.start_new_kernel(kernel_name="python3", env=environment, cwd=folder)

    def run(code: str) -> tuple[str, list[str]]:
        errors: list[Any] = []

        def note(message: Any) -> None:
            if message["msg_type"] == "error":
                errors.append(message["content"])

        client.execute_interactive(code, timeout=60, output_hook=note)
        if not errors:
            return "", []
        shown = re.sub(r"\x1b\[[\d;]*m", "", "\n".join(errors[-1]["traceback"]))
        return errors[-1]["ename"], shown.splitlines()

    try:
        assert run(SETUP) == ("", [])
        yield run
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_in_a_cell_is_shown_in_a_few_lines_with_only_the_users_code(cell, mistake):
    code, error = MISTAKES[mistake]
    name, lines = cell(code)
    assert re.fullmatch(error, name)
    assert not [line for line in lines if "agentbench/" in line or "asyncio/" in line or "site-packages" in line]
    above = next(place for place, line in enumerate(lines) if line.startswith(f"{name}: "))
    assert above <= 22 if "zero" in mistake or "node" in mistake else above <= 12, lines


def test_frames_of_a_package_that_the_user_called_stay(cell):
    name, lines = cell(
        "import json\n@executor(id='j')\nasync def j(t: str, ctx: WorkflowContext) -> None:\n    json.loads(t)\n"
        "await WorkflowBuilder(start_executor=j).build().run('{')"
    )
    assert name == "JSONDecodeError"
    assert any("json/decoder.py" in line for line in lines)


def test_a_variable_of_the_environment_shows_all_frames(cell):
    name, lines = cell("import os; os.environ['AGENTBENCH_FULL_TRACEBACK'] = '1'\nawait workflow.run('x')")
    cell("del os.environ['AGENTBENCH_FULL_TRACEBACK']")
    assert name == "RuntimeError"
    assert any("invocation.py" in line for line in lines)


def test_a_handler_of_exceptions_that_the_user_has_set_stays(tmp_path):
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1]), "IPYTHONDIR": str(tmp_path)}
    code = (
        "from IPython.core.interactiveshell import InteractiveShell\n"
        "shell = InteractiveShell.instance()\n"
        "shell.set_custom_exc((KeyError,), lambda *_, tb_offset=None: ['mine'])\n"
        "import agentbench\n"
        "assert shell.custom_exceptions == (KeyError,)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, timeout=60)


def test_the_error_behind_an_error_is_shortened_too():
    def fails() -> None:
        from agentbench import WorkflowBuilder

        try:
            WorkflowBuilder(max_iterations=-1)
        except ValueError as error:
            raise RuntimeError("behind") from error

    with pytest.raises(RuntimeError) as caught:
        fails()
    shorten_tracebacks(caught.value)
    assert caught.value.__cause__ is not None
    trace = caught.value.__cause__.__traceback__
    files = []
    while trace is not None:
        files.append(trace.tb_frame.f_code.co_filename)
        trace = trace.tb_next
    assert set(files) == {__file__}
