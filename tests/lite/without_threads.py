"""What only a Python without threads can show: tests that run in Pyodide (see `selection.py`), and nowhere else."""

from __future__ import annotations

import asyncio
import contextvars
from contextlib import closing
from pathlib import Path
from typing import Any, TypedDict

import pytest

from agentbench import (
    Agent,
    EchoChatClient,
    FileCheckpointStorage,
    MCPStdioTool,
    SQLCheckpointStorage,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    run_sync,
    subprocess_script_runner,
)
from agentbench.batch import run_many
from agentbench.checkpoints import RedisCheckpointStorage
from agentbench.exceptions import NoBlockingError, NotInBrowserError
from agentbench.notebook import submit
from agentbench.stategraph import END, StateGraph
from tests.parts.errors import raises


async def answer(value: int = 42) -> int:
    await asyncio.sleep(0.001)
    return value


class Counted(TypedDict):
    seen: int


@executor(id="double")
def double(number: int, ctx: WorkflowContext[int, int]) -> None:
    ctx.yield_output(2 * number)


def test_a_synchronous_caller_gets_the_result() -> None:
    assert run_sync(answer()) == 42


def test_errors_of_the_work_are_raised_unchanged() -> None:
    error = KeyError("x")

    async def fail() -> None:
        raise error

    with pytest.raises(KeyError) as caught:
        run_sync(fail())
    assert caught.value is error


def test_work_that_outlasts_its_time_is_cancelled_before_the_caller_hears_of_it() -> None:
    ended: list[bool] = []

    async def for_ever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(True)

    with pytest.raises(TimeoutError, match="for_ever"):
        run_sync(for_ever(), timeout=0.01)
    assert ended == [True]


async def test_callers_that_wait_at_the_same_time_keep_their_context() -> None:
    variable: contextvars.ContextVar[int] = contextvars.ContextVar("variable")

    async def call(number: int) -> int:
        variable.set(number)
        return sum(run_sync(answer(variable.get())) for _ in range(3))

    assert await asyncio.gather(*map(call, range(5))) == [0, 3, 6, 9, 12]


def test_the_result_of_submitted_work_can_be_waited_for() -> None:
    future = submit(answer())
    assert not future.done()
    assert future.result() == 42


async def test_where_calls_cannot_be_suspended_the_error_names_the_await_form() -> None:
    from js import setTimeout  # type: ignore[import-not-found]
    from pyodide.ffi import create_once_callable  # type: ignore[import-not-found]

    errors: asyncio.Queue[Exception] = asyncio.Queue()

    def from_the_page() -> None:
        for call in (lambda: run_sync(answer()), lambda: submit(answer()).result()):
            try:
                call()
            except Exception as error:  # noqa: BLE001 - examined below
                errors.put_nowait(error)

    setTimeout(create_once_callable(from_the_page), 0)
    for _ in range(2):
        error = await errors.get()
        assert isinstance(error, NoBlockingError)
        assert error.call == "answer"


@pytest.mark.parametrize("kind", [FileCheckpointStorage, SQLCheckpointStorage])
async def test_a_run_with_a_sync_handler_is_saved_and_found_by_the_next_storage(kind: Any, tmp_path: Path) -> None:
    place = tmp_path / "saved.db"
    workflow = WorkflowBuilder(start_executor=double, checkpoint_storage=kind(place)).build()
    assert (await workflow.run(21)).get_outputs() == [42]
    assert len(await kind(place).list_checkpoints(workflow_name=workflow.name)) > 0


@pytest.mark.parametrize("into", [None, "rows.db"])
def test_a_batch_runs_to_its_end_for_a_synchronous_caller(into: str | None, tmp_path: Path) -> None:
    workflow = WorkflowBuilder(start_executor=double).build()
    place = None if into is None else tmp_path / into
    with closing(run_many(workflow, range(5), into=place)) as batch:
        assert [row.output for row in batch.result().rows()] == [0, 2, 4, 6, 8]
    with closing(run_many(workflow, range(3), into=tmp_path / "others.db")) as batch:
        assert sorted(row.output for row in batch) == [0, 2, 4]


def test_a_state_graph_and_an_agent_can_be_called_synchronously() -> None:
    graph = StateGraph(Counted)
    graph.add_node("count", lambda state: {"seen": state["seen"] + 1})
    graph.set_entry_point("count")
    graph.add_edge("count", END)
    app = graph.compile()
    assert app.invoke({"seen": 0}) == {"seen": 1}
    assert list(app.stream({"seen": 0}, stream_mode="updates")) == [{"count": {"seen": 1}}]
    assert run_sync(Agent(EchoChatClient()).run("owl")).text == "Echo: owl"


@pytest.mark.parametrize(
    ("make", "feature"),
    [
        (subprocess_script_runner, "Scripts as processes"),
        (lambda: MCPStdioTool("files", "python"), "MCP servers over stdio"),
        (lambda: SQLCheckpointStorage("postgresql://localhost/work"), "PostgreSQL servers"),
        (lambda: RedisCheckpointStorage("redis://localhost"), "Redis servers"),
        (lambda: run_many(Agent(EchoChatClient()), ["a"], into="r.db", backend="processes"), "Processes and clusters"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_cannot_work_in_a_browser_says_so(make: Any, feature: str) -> None:
    with raises(NotInBrowserError, feature=feature) as caught:
        make()
    assert caught.value.instead in str(caught.value)
