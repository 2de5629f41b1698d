"""Wrong uses of `run_many` and of batches: each is named by one error, before anything runs where that can be known."""

from __future__ import annotations

import asyncio
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Never

import pytest

from agentbench import Executor, Workflow, WorkflowBuilder, WorkflowContext, executor, handler, response_handler
from agentbench.batch import Batch, Budget, RowStatus, run_many
from agentbench.exceptions import BatchError, BatchInputError, BatchNotFoundError
from agentbench.stategraph import AgentState, StateGraph
from tests.parts.errors import raises
from tests.tools.refresh_notebooks import ROOT


class Echo(Executor):
    """Yields its input."""

    @handler
    async def echo(self, value: object, ctx: WorkflowContext[Never, object]) -> None:
        await ctx.yield_output(value)


class Ask(Executor):
    """Asks a person."""

    @handler
    async def ask(self, text: str, ctx: WorkflowContext[Never, bool]) -> None:
        await ctx.request_info(text, bool)

    @response_handler
    async def take(self, question: str, answer: bool, ctx: WorkflowContext[Never, bool]) -> None:
        await ctx.yield_output(answer)


class Opaque:
    """Can be neither copied nor stored."""

    def __init__(self) -> None:
        self.lock = threading.Lock()


def echoing() -> Workflow:
    return WorkflowBuilder(start_executor=Echo("echo"), name="echoing").build()


def read_generator() -> Iterator[int]:
    inputs = (number for number in range(3))
    assert list(inputs) == [0, 1, 2]
    return inputs


async def build_later() -> Workflow:
    return echoing()


@pytest.mark.parametrize(
    ("inputs", "kind", "culprit"),
    [
        ("a text", TypeError, "'a text'"),
        ({"a": 1}, TypeError, "{'a': 1}"),
        (None, TypeError, "None"),
        (7, TypeError, "7"),
        (read_generator(), ValueError, "generator"),
    ],
    ids=["text", "mapping", "none", "number", "read-generator"],
)
def test_what_is_no_list_of_inputs_is_named(inputs: Any, kind: type[Exception], culprit: str) -> None:
    with raises(kind, culprit):
        run_many(echoing(), inputs)


@pytest.mark.parametrize(
    ("options", "kind", "culprit"),
    [
        ({"keys": ["a"]}, BatchInputError, "keys"),
        ({"keys": "ab"}, TypeError, "keys"),
        ({"limits": {"ecko": 1}}, ValueError, "'ecko'"),
        ({"limits": {"echo": 0}}, ValueError, "'echo'"),
        ({"concurrency": 0}, ValueError, "concurrency"),
        ({"concurrency": "fast"}, ValueError, "'fast'"),
        ({"on_error": "ignore"}, ValueError, "'ignore'"),
        ({"on_error": 2}, ValueError, "on_error"),
        ({"checkpoints": "some"}, ValueError, "'some'"),
        ({"changed": "maybe"}, ValueError, "'maybe'"),
        ({"retry": -1}, ValueError, "retry"),
        ({"timeout": 0}, ValueError, "timeout"),
        ({"budget": 1000}, TypeError, "budget"),
        ({"run_kwargs": {"nope": 1}}, TypeError, "'nope'"),
        ({"run_kwargs": {"client_kwargs": 1}}, TypeError, "'client_kwargs'"),
        ({"options": {"max_iterations": 3}}, TypeError, "options"),
        ({"into": None, "backend": "processes"}, ValueError, "into"),
        ({"into": "sqlite:///:memory:"}, ValueError, "into"),
        ({"into": 5}, TypeError, "into"),
        ({"into": "rows.db", "backend": "dask"}, ValueError, "'dask'"),
        ({"into": "rows.db", "backend": object()}, ValueError, "backend"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_an_argument_that_cannot_be_is_named(options: Any, kind: type[Exception], culprit: str, tmp_path: Path) -> None:
    if options.get("into") == "rows.db":
        options = {**options, "into": str(tmp_path / "rows.db")}
    with raises(kind, culprit):
        run_many(echoing(), ["a", "b"], **options)
    assert list(tmp_path.iterdir()) == []


def test_a_budget_of_nothing_is_named() -> None:
    with raises(ValueError, "tokens"):
        Budget(tokens=0)


@pytest.mark.parametrize(
    ("workflow", "culprit"),
    [
        (lambda: WorkflowBuilder(start_executor=Echo("echo")), "build()"),
        (lambda: StateGraph(AgentState), "compile()"),
        (lambda: Workflow, "class Workflow"),
        (lambda: lambda size: echoing(), "'size'"),
        (lambda: lambda: None, "None"),
        (lambda: build_later, "coroutine"),
    ],
    ids=["builder", "state-graph", "class", "factory-with-arguments", "factory-of-none", "async-factory"],
)
def test_what_cannot_be_run_is_named(workflow: Callable[[], Any], culprit: str) -> None:
    with raises(TypeError, "workflow", culprit):
        run_many(workflow(), [1])


def test_a_place_that_is_no_database_is_named_and_stays_as_it_is(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("not a database")
    with raises(ValueError, "folder", str(tmp_path)):
        run_many(echoing(), [1], into=tmp_path)
    with raises(ValueError, "notes.txt"):
        run_many(echoing(), [1], into=notes)
    assert notes.read_text() == "not a database"
    assert sorted(tmp_path.iterdir()) == [notes]


def test_a_server_that_is_not_there_is_named_without_its_password() -> None:
    pytest.importorskip("psycopg")
    with socket.socket() as taken:  # bound but not listening, so that nobody else listens there
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
        with raises(ConnectionError, port) as caught:
            run_many(echoing(), [1], into=f"postgresql://me:hunter2@127.0.0.1:{port}/work")
    assert "hunter2" not in str(caught.value)


@pytest.mark.parametrize(
    ("keys", "position"),
    [(lambda value: [value], 0), (lambda value: 1 // (2 - value), 1), (iter(["a"]), 1), (["a", None, "c"], 1)],
    ids=["list", "raises", "too-few", "none"],
)
async def test_an_input_without_a_key_is_named_by_its_place(keys: Any, position: int) -> None:
    with raises(BatchInputError, position=position):
        await run_many(echoing(), [1, 2, 3], keys=keys)


@pytest.mark.parametrize("keys", [None, ["a", "b"]], ids=["no-keys", "keys"])
async def test_an_input_that_cannot_be_stored_is_named_with_its_class(tmp_path: Path, keys: Any) -> None:
    batch = run_many(echoing(), [1, Opaque()], into=tmp_path / "rows.db", keys=keys)
    with raises(BatchInputError, "Opaque", "register_state_type", position=1):
        await batch
    batch.close()


async def test_an_output_that_cannot_be_stored_fails_its_row_alone(tmp_path: Path) -> None:
    calls: list[int] = []

    @executor(id="make")
    async def make(number: int, ctx: WorkflowContext[Never, object]) -> None:
        calls.append(number)
        await ctx.yield_output(Opaque() if number == 1 else number)

    workflow = WorkflowBuilder(start_executor=make, name="making").build()
    batch = await run_many(workflow, [1, 2], into=tmp_path / "rows.db")
    failed, finished = batch.rows()
    assert failed.error is not None
    assert failed.error.type == "UnstorableValueError"
    assert "Opaque" in failed.error.message
    assert "register_state_type" in failed.error.message
    assert finished.status is RowStatus.FINISHED
    assert sorted(calls) == [1, 2]  # the same call would fail again
    batch.close()
    kept = await run_many(workflow, [1])
    assert isinstance(kept.rows()[0].output, Opaque)
    kept.close()


async def test_a_row_that_is_not_there_or_asks_nothing_is_named() -> None:
    batch = await run_many(echoing(), [1], keys=["a"])
    with raises(BatchNotFoundError, "'a'", name="b"):
        batch.open("b")
    with raises(BatchNotFoundError, name="b"):
        await batch.answer("b", {"request": True})
    with raises(ValueError, "'a'", "finished"):
        await batch.answer("a", {"request": True})
    batch.close()


@pytest.mark.parametrize(
    ("answers", "culprit"),
    [(lambda known: {known: "perhaps"}, "bool"), (lambda known: {"other": True}, "'other'"), (lambda known: {}, "{}")],
    ids=["type", "id", "none"],
)
async def test_a_row_keeps_waiting_after_an_answer_that_does_not_fit(
    answers: Callable[[str], dict[str, Any]], culprit: str
) -> None:
    batch = await run_many(WorkflowBuilder(start_executor=Ask("ask")).build(), ["sure?"], keys=["a"])
    known = batch.questions()[0].request.request_id
    with raises(ValueError, culprit):
        await batch.answer("a", answers(known))
    assert batch.row("a").status is RowStatus.WAITING
    batch.close()


def test_a_batch_whose_loop_was_closed_says_so() -> None:
    @executor(id="hang")
    async def hang(number: int, ctx: WorkflowContext) -> None:
        await asyncio.Event().wait()

    batch = run_many(WorkflowBuilder(start_executor=hang, name="hanging").build(), [1])

    async def wait() -> Batch:
        return await batch

    loop = asyncio.new_event_loop()
    waiting = loop.create_task(wait())
    loop.run_until_complete(asyncio.sleep(0.05))
    tasks = asyncio.all_tasks(loop)
    loop.close()
    with raises(BatchError, "'hanging'", "loop"):
        asyncio.run(wait())
    for task in {waiting, *tasks}:  # nobody will await them
        task._log_destroy_pending = False  # type: ignore[attr-defined]


def test_a_script_without_a_guard_says_what_to_write(tmp_path: Path) -> None:
    pytest.importorskip("distributed")
    script = tmp_path / "script.py"
    script.write_text(
        "from agentbench import WorkflowBuilder\n"
        "from agentbench.batch import run_many\n"
        "from tests.batch.test_wrong_uses import echoing\n"
        "run_many(echoing(), [1], into='rows.db', backend='processes').result()\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    last = done.stderr.strip().splitlines()[-1]
    assert "BatchError" in last
    assert "if __name__ == '__main__':" in last
