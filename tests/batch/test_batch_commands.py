"""`agentbench batch`: what a person reads, answers and exports in a terminal, without the workflow."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any, Never

import pytest

from agentbench import Executor, Workflow, WorkflowBuilder, WorkflowContext, handler, response_handler
from agentbench.batch import RowStatus, open_batch, run_many
from agentbench.cli import main
from agentbench.exceptions import BatchError, BatchNotFoundError
from tests.parts.errors import raises


@dataclass
class Verdict:
    """An answer with fields."""

    ok: bool


class Review(Executor):
    """Ends at once, fails, or asks, by its input."""

    @handler
    async def review(self, text: str, ctx: WorkflowContext[Never, str]) -> None:
        if text == "broken":
            msg = "no\x1b[2J sense"
            raise ValueError(msg)
        if text == "ask":
            await ctx.request_info({"prompt": "Publish it?", "api_key": "sk-123"}, Verdict)
        elif text == "name":
            await ctx.request_info("Which name?", str)
            await ctx.request_info("Which title?", str)
        else:
            await ctx.yield_output(f'{text}, "fine"')

    @response_handler
    async def publish(self, question: dict[str, str], answer: Verdict, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"published: {answer.ok}")

    @response_handler
    async def use(self, question: str, answer: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output(f"{question} {answer}")


def reviewing() -> Workflow:
    return WorkflowBuilder(start_executor=Review("review"), name="review").build()


@pytest.fixture
def into(tmp_path: Path) -> str:
    into = str(tmp_path / "rows.db")
    texts = ["good", "broken", "ask", "name"]
    run_many(reviewing(), texts, into=into, keys=texts, retry=0).result().close()
    return into


class Terminal:
    """Runs `agentbench batch` in this process."""

    def __init__(self, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys

    def __call__(self, *arguments: str, status: int = 0) -> str:
        assert main(["batch", *arguments]) == status
        printed = self._capsys.readouterr()
        return printed.err if status else printed.out


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Terminal:
    return Terminal(capsys)


def test_show_lists_batches_and_describes_one(run: Terminal, into: str) -> None:
    assert run("show", into).split()[-7:-1] == ["review", "0", "1", "1", "2", "0"]
    shown = run("show", into, "review")
    for fact in ("4 rows", "1 finished, 1 failed, 2 waiting", "1 x ValueError", "Publish it?", "asks Which name?"):
        assert fact in shown
    facts = json.loads(run("show", into, "review", "--json", "--rows", "failed"))
    assert (facts["counts"]["failed"], [row["key"] for row in facts["rows"]]) == (1, ["broken"])
    assert [question["expects"] for question in facts["questions"]] == ["Verdict", "str", "str"]
    assert facts["questions"][0]["schema"]["required"] == ["ok"]


def test_text_of_runs_is_harmless_in_a_terminal_and_secrets_are_masked(run: Terminal, into: str) -> None:
    shown = run("show", into, "review", "--rows") + run("show", into, "review", "--rows", "--json")
    assert "\x1b" not in shown
    assert "sk-123" not in shown


def test_an_answer_is_read_as_its_type_wants_it_and_the_next_call_uses_it(run: Terminal, into: str) -> None:
    asked = run("answer", into, "review", "ask")
    assert "Verdict" in asked
    assert "expected Verdict" in run("answer", into, "review", "ask", '{"ok": "perhaps"}', status=1)
    assert open_batch(into, "review").row("ask").status is RowStatus.WAITING
    run("answer", into, "review", "ask", '{"ok": true}')
    requests = [each.request for each in open_batch(into, "review").questions("name")]
    assert "names no request" in run("answer", into, "review", "name", "Kim", status=1)
    texts = {"Which name?": "42", "Which title?": "a=b"}
    run("answer", into, "review", "name", *(f"{each.request_id}={texts[each.data]}" for each in requests))
    batch = run_many(reviewing(), ["good"], into=into).result()
    assert batch.row("ask").output == "published: True"
    assert sorted(batch.row("name").output) == ["Which name? 42", "Which title? a=b"]
    batch.close()


def test_retry_opens_failed_rows_and_says_who_runs_them(run: Terminal, into: str) -> None:
    assert "finished, not failed" in run("retry", into, "review", "broken", "good", status=1)
    assert "run_many()" in run("retry", into, "review", "broken")
    assert open_batch(into, "review").row("broken").status is RowStatus.OPEN
    assert "No row has failed" in run("retry", into, "review")


@pytest.mark.parametrize("ending", ["csv", "jsonl", "json"])
def test_an_export_holds_each_row_as_it_is_stored(run: Terminal, into: str, tmp_path: Path, ending: str) -> None:
    file = tmp_path / f"rows.{ending}"
    run("export", into, "review", str(file))
    text = file.read_text(encoding="utf-8")
    rows: list[Any]
    if ending == "csv":
        rows = list(csv.DictReader(text.splitlines()))
    else:
        rows = json.loads(text) if ending == "json" else [json.loads(line) for line in text.splitlines()]
    assert [row["key"] for row in rows] == ["good", "broken", "ask", "name"]
    assert rows[0]["output"] == 'good, "fine"'
    assert (rows[1]["error"] if ending == "csv" else rows[1]["error"]["type"]) == "ValueError"
    assert sorted(tmp_path.glob("*.part")) == []


def test_rows_of_classes_that_are_unknown_here_are_listed_exported_and_answered(
    run: Terminal, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    module = ModuleType("cars_of_another_program")
    source = (
        "from dataclasses import dataclass\n"
        "from agentbench import Executor, WorkflowContext, handler, response_handler\n"
        "@dataclass\n"
        "class Car:\n"
        "    name: str\n"
        "class Ask(Executor):\n"
        "    @handler\n"
        "    async def ask(self, car: Car, ctx: WorkflowContext) -> None:\n"
        "        await ctx.request_info(car, Car)\n"
        "    @response_handler\n"
        "    async def take(self, car: Car, answer: Car, ctx: WorkflowContext[None, str]) -> None:\n"
        "        await ctx.yield_output(answer.name)\n"
    )
    monkeypatch.setitem(sys.modules, module.__name__, module)
    exec(source, vars(module))
    into, file = str(tmp_path / "rows.db"), tmp_path / "rows.jsonl"

    def workflow() -> Workflow:
        return WorkflowBuilder(start_executor=module.Ask("ask"), name="cars").build()

    run_many(workflow(), [module.Car("Beetle")], into=into, keys=["car"]).result().close()
    with monkeypatch.context() as elsewhere:
        elsewhere.delitem(sys.modules, module.__name__)
        assert "cars_of_another_program.Car" in run("show", into, "cars", "--rows")
        run("export", into, "cars", str(file))
        assert json.loads(file.read_text())["input"]["v"] == ["cars_of_another_program.Car", {"name": "Beetle"}]
        run("answer", into, "cars", "car", '{"name": "Mini"}')
    batch = run_many(workflow(), [], into=into).result()
    assert batch.row("car").output == "Mini"
    batch.close()


def test_nothing_is_created_and_wrong_names_list_the_existing_ones(run: Terminal, into: str, tmp_path: Path) -> None:
    absent, other = tmp_path / "absent.db", tmp_path / "notes.txt"
    other.write_text("not a database")
    before = other.read_bytes()
    for action in ("show", "export"):
        extra = ["review", str(tmp_path / "rows.csv")] if action == "export" else []
        assert "absent.db" in run(action, str(absent), *extra, status=1)
        assert "notes.txt" in run(action, str(other), *extra, status=1)
    assert "'review'" in run("show", into, "reviews", status=1)
    assert "'good'" in run("answer", into, "review", "best", "1", status=1)
    assert "expected a file that ends in .csv" in run("export", into, "review", "rows.xls", status=1)
    assert (sorted(path.name for path in tmp_path.iterdir()), other.read_bytes()) == (["notes.txt", "rows.db"], before)


def test_a_batch_opened_without_its_workflow_is_read_but_not_run(into: str) -> None:
    batch = open_batch(into, "review")
    assert [row.key for row in batch.rows(RowStatus.FAILED)] == ["broken"]
    with raises(BatchError, "run_many()"):
        batch.result()
    with raises(BatchNotFoundError, name="revue", names=["review"]):
        open_batch(into, "revue")
    batch.close()
