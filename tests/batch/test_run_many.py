"""Many inputs, one table: what a person sees of a batch on this machine."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentbench import (
    Agent,
    Executor,
    Message,
    RunOptions,
    Workflow,
    WorkflowBuilder,
    WorkflowContext,
    executor,
    handler,
    response_handler,
)
from agentbench.batch import Budget, RowStatus, run_many
from agentbench.exceptions import BatchChangedError, BatchError, BatchInputError, BatchStoppedError
from agentbench.stategraph import AgentState, StateGraph
from agentbench.testing import ScriptedChatClient
from tests.parts.errors import raises


@pytest.fixture(params=["memory", "sqlite"])
def into(request: pytest.FixtureRequest, tmp_path: Path) -> str | None:
    return None if request.param == "memory" else str(tmp_path / "rows.db")


class Half(Executor):
    """Halves even numbers until they are odd; fails for those in `broken`."""

    broken: tuple[int, ...] = ()

    @handler
    async def halve(self, number: int, ctx: WorkflowContext[int, int]) -> None:
        if number in self.broken:
            msg = f"{number} is broken"
            raise ValueError(msg)
        if number % 2:
            await ctx.yield_output(number)
        else:
            await ctx.send_message(number // 2)


def halving(*broken: int) -> Workflow:
    first, second = Half("first"), Half("second")
    first.broken = second.broken = broken
    return WorkflowBuilder(start_executor=first, name="halving").add_edge(first, second).add_edge(second, first).build()


async def test_each_input_has_a_row_in_the_order_of_the_inputs(into: str | None) -> None:
    batch = await run_many(halving(), [8, 5, 12], into)
    rows = batch.rows()
    assert [(row.position, row.input, row.output, row.supersteps, row.path) for row in rows] == [
        (0, 8, 1, 4, "first > second > first > second"),
        (1, 5, 5, 1, "first"),
        (2, 12, 3, 3, "first > second > first"),
    ]
    assert {row.status for row in rows} == {RowStatus.FINISHED}
    assert all(row.attempts == 1 and row.seconds and row.checkpoint_id is None for row in rows)
    batch.close()


async def test_rows_come_in_the_order_in_which_runs_end() -> None:
    @executor(id="wait")
    async def wait(turns: int, ctx: WorkflowContext[Any, int]) -> None:
        for _ in range(turns):
            await asyncio.sleep(0)
        await ctx.yield_output(turns)

    workflow = WorkflowBuilder(start_executor=wait).build()
    batch = run_many(workflow, [500, 5, 50], concurrency=3)
    assert [row.output async for row in batch] == [5, 50, 500]


def test_a_script_without_an_event_loop_reads_the_rows(into: str | None) -> None:
    batch = run_many(halving(), [3, 6], into)
    assert sorted(row.output for row in batch) == [3, 3]
    assert batch.result() is batch
    assert [row.output for row in batch] == [3, 3]
    batch.close()


async def test_equal_inputs_run_once_unless_keys_tell_them_apart(into: str | None) -> None:
    batch = await run_many(halving(), [6, 4, 6, 6], into)
    assert [row.input for row in batch.rows()] == [6, 4]
    assert batch.repeats() == {2: batch.rows()[0].key, 3: batch.rows()[0].key}
    assert batch.progress.duplicates == 2
    batch.close()
    apart = await run_many(halving(), [6, 6], keys=["a", "b"])
    assert [(row.key, row.output) for row in apart.rows()] == [("a", 3), ("b", 3)]


async def test_an_error_is_a_row_as_text_and_the_other_inputs_go_on(into: str | None) -> None:
    batch = await run_many(halving(3), [6, 10], into)
    failed, good = batch.rows()
    assert (failed.status, failed.attempts, good.output) == (RowStatus.FAILED, 2, 5)
    error: Any = failed.error
    assert (error.type, error.message, error.location) == ("ValueError", "3 is broken", "second, superstep 1")
    assert "test_run_many.py" in error.traceback
    assert "runner.py" not in error.traceback
    assert [row.key for row in batch.failed] == [failed.key]
    assert batch.failed.inputs == [6]
    batch.close()


async def test_a_second_call_skips_what_is_finished_and_adds_what_is_new(tmp_path: Path) -> None:
    calls: list[int] = []

    @executor(id="note")
    async def note(number: int, ctx: WorkflowContext[Any, int]) -> None:
        calls.append(number)
        await ctx.yield_output(-number)

    workflow = WorkflowBuilder(start_executor=note, name="noting").build()
    (await run_many(workflow, [1, 2], tmp_path / "rows.db")).close()
    batch = await run_many(workflow, [1, 2, 3], tmp_path / "rows.db")
    assert calls == [1, 2, 3]
    assert [row.output for row in batch.rows()] == [-1, -2, -3]
    assert batch.progress.skipped == 2
    batch.close()


async def test_a_failed_input_is_tried_again_from_its_last_checkpoint(into: str | None) -> None:
    seen: list[int] = []

    @handler
    async def halve(self: Any, number: int, ctx: WorkflowContext[int, int]) -> None:
        seen.append(number)
        if number == 3 and seen.count(3) < 2:
            raise ConnectionError("not now")
        await (ctx.yield_output(number) if number % 2 else ctx.send_message(number // 2))

    flaky = type("Flaky", (Executor,), {"halve": halve})
    one, other = flaky("first"), flaky("second")
    workflow = WorkflowBuilder(start_executor=one, name="flaky").add_edge(one, other).add_edge(other, one).build()
    batch = await run_many(workflow, [12], into)
    (row,) = batch.rows()
    assert seen == [12, 6, 3, 3]
    assert (row.status, row.output, row.attempts, row.supersteps) == (RowStatus.FINISHED, 3, 2, 3)
    assert sum(each.failures for each in batch.traffic()) == 1
    batch.close()


async def test_retry_runs_failed_rows_again_with_the_current_code(into: str | None) -> None:
    workflow = halving(3)
    batch = await run_many(workflow, [6, 5], into, retry=0)
    assert len(batch.failed) == 1
    for each in workflow.executors.values():
        vars(each)["broken"] = ()
    await batch.failed.retry()
    assert [row.output for row in batch.rows()] == [3, 5]
    assert batch.rows()[0].attempts == 2
    batch.close()


async def test_a_run_that_takes_too_long_fails_and_names_its_executor() -> None:
    @executor(id="slow")
    async def slow(number: int, ctx: WorkflowContext[Any, int]) -> None:
        await asyncio.sleep(60)

    batch = await run_many(WorkflowBuilder(start_executor=slow).build(), [1], timeout=0.05, retry=0)
    error: Any = batch.rows()[0].error
    assert (error.type, error.location) == ("RunTimeoutError", "slow, superstep 0")
    assert "'slow'" in error.message


async def test_on_error_stops_the_batch_and_keeps_its_rows(into: str | None) -> None:
    with raises(BatchStoppedError, failed=1):
        await run_many(halving(3), [6, 5, 7, 9, 11], into, on_error="stop", retry=0, concurrency=1)
    inputs = [number * 2 + 1 for number in range(100)]
    with raises(BatchStoppedError):
        await run_many(halving(*inputs[::2]), inputs, on_error=0.3, retry=0, concurrency=4)


async def test_a_budget_stops_new_inputs_and_says_what_is_left(into: str | None) -> None:
    batch = await run_many(halving(3, 5, 7), [3, 5, 7, 9, 11], into, budget=Budget(failures=2), retry=0, concurrency=1)
    progress = batch.progress
    assert (progress.state, progress.counts["failed"]) == ("stopped", 2)
    assert progress.budget == {"failures": (2, 2)}
    assert "failures" in progress.reason
    batch.close()


async def test_tokens_and_costs_of_models_count_for_their_nodes() -> None:
    client = ScriptedChatClient(["short"] * 3)
    agent = Agent(client, name="writer")
    batch = await run_many(
        agent, ["a", "b", "c"], prices={client.model: (1_000_000, 2_000_000)}, budget=Budget(tokens=10**9)
    )
    rows: list[Any] = batch.rows()
    assert all(row.output.text == "short" for row in rows)
    assert all(row.tokens_in and row.tokens_out for row in rows)
    assert rows[0].cost == rows[0].tokens_in + 2 * rows[0].tokens_out
    assert batch.progress.tokens_in == sum(row.tokens_in for row in rows)
    assert {each.source for each in batch.traffic() if each.tokens} == {"writer"}


async def test_limits_bound_an_executor_over_all_runs() -> None:
    running, most = 0, 0

    @executor(id="busy")
    async def busy(number: int, ctx: WorkflowContext[Any, int]) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        running -= 1
        await ctx.yield_output(number)

    workflow = WorkflowBuilder(start_executor=busy).build()
    await run_many(workflow, range(40), concurrency=20, limits={"busy": 3})
    assert most == 3
    most = 0
    await run_many(workflow, range(40), concurrency=7)
    assert most == 7


async def test_inputs_are_read_as_they_are_needed() -> None:
    taken = 0

    def numbers() -> Iterator[int]:
        nonlocal taken
        for number in range(1, 1000):
            taken += 1
            yield number

    batch = run_many(halving(), numbers(), concurrency=4)
    rows = aiter(batch)
    await anext(rows)
    assert taken < 40
    await rows.aclose()
    await batch
    assert taken == 999
    assert batch.progress.total == 999


async def test_a_data_frame_counts_as_its_rows() -> None:
    import pandas as pd

    @executor(id="add")
    async def add(row: dict[str, Any], ctx: WorkflowContext[Any, int]) -> None:
        await ctx.yield_output(row["a"] + row["b"])

    workflow = WorkflowBuilder(start_executor=add).build()
    batch = await run_many(workflow, pd.DataFrame({"a": [1, 2], "b": [10, 20]}), keys="b")
    assert [(row.key, row.output) for row in batch.rows()] == [("10", 11), ("20", 22)]


async def test_a_state_graph_and_a_factory_can_be_run(into: str | None) -> None:
    def build() -> Any:
        graph = StateGraph(AgentState)
        graph.add_node("greet", lambda state: {"messages": [Message("assistant", [f"Hello {state.context[-1].text}"])]})
        graph.set_entry_point("greet")
        graph.set_finish_point("greet")
        return graph.compile()

    batch = await run_many(build, [{"messages": "Ann"}, {"messages": "Bob"}], into, name="greetings")
    assert [row.output["messages"][-1].text for row in batch.rows()] == ["Hello Ann", "Hello Bob"]
    assert all("greet" in row.path for row in batch.rows())
    batch.close()


async def test_changed_code_is_told_kept_or_run_again(tmp_path: Path) -> None:
    def times(factor: int) -> Workflow:
        @executor(id="times")
        async def times(number: int, ctx: WorkflowContext[Any, int]) -> None:
            await ctx.yield_output(number * factor)

        return WorkflowBuilder(start_executor=times, name="times").build()

    into = tmp_path / "rows.db"
    (await run_many(times(2), [1, 2], into)).close()
    with raises(BatchChangedError, changes={"times": "changed"}, rows=2):
        run_many(times(3), [1, 2], into)
    kept = await run_many(times(3), [1, 2, 3], into, changed="keep")
    assert [row.output for row in kept.rows()] == [2, 4, 9]
    kept.close()
    again = await run_many(times(3), [1, 2, 3], into, changed="rerun")
    assert [row.output for row in again.rows()] == [3, 6, 9]
    again.close()


async def test_a_cancelled_batch_goes_on_where_its_runs_were(into: str | None) -> None:
    gate, reached = asyncio.Event(), asyncio.Event()
    calls: list[str] = []

    @executor(id="first")
    async def first(number: int, ctx: WorkflowContext[int]) -> None:
        calls.append("first")
        await ctx.send_message(number)

    @executor(id="second")
    async def second(number: int, ctx: WorkflowContext[Any, int]) -> None:
        calls.append("second")
        reached.set()
        await gate.wait()
        await ctx.yield_output(number)

    workflow = WorkflowBuilder(start_executor=first, name="two").add_edge(first, second).build()
    batch = run_many(workflow, [1], into)
    waiting = asyncio.ensure_future(batch._wait())
    await reached.wait()
    batch.cancel()
    await waiting
    assert batch.progress.state == "cancelled"
    assert batch.rows()[0].status is RowStatus.CANCELLED
    gate.set()
    await batch.resume()
    assert batch.rows()[0].output == 1
    assert calls == ["first", "second", "second"]
    batch.close()


async def test_the_run_of_a_row_can_be_opened_and_continued(into: str | None) -> None:
    batch = await run_many(halving(3), [12, 7], into, retry=0)
    failed, finished = batch.rows()
    run = await asyncio.to_thread(batch.open, failed.key)
    assert run.pending_messages == [] or run.checkpoints is not None
    assert [each.target for each in await run.plan()] == ["first"]
    with raises(BatchError):
        batch.open(finished.key)
    again = batch.open(finished.key, rerun=True)
    assert (await again.result()).get_outputs() == [7]
    assert batch.row(failed.key).status is RowStatus.FAILED
    batch.close()


async def test_options_of_runs_and_the_limit_of_supersteps_hold() -> None:
    batch = await run_many(halving(), [1024], options=RunOptions(max_iterations=3))
    error: Any = batch.rows()[0].error
    assert error.type == "WorkflowConvergenceException"


async def test_a_key_function_that_raises_names_the_input(into: str | None) -> None:
    with raises(BatchInputError, position=1):
        await run_many(halving(), [{"id": 1}, {}], into, keys=lambda row: row["id"])


async def test_a_resumed_batch_reads_the_inputs_that_are_left(into: str | None) -> None:
    batch = run_many(halving(), iter(range(1, 600, 2)), into, concurrency=2)
    async for _ in batch:
        batch.cancel()
        break
    with suppress(asyncio.CancelledError):
        await batch
    assert len(batch.rows()) < 300
    await batch.resume()
    progress = batch.progress
    assert (progress.counts["finished"], progress.total, progress.skipped) == (300, 300, 0)
    batch.close()


@pytest.mark.parametrize("kind", ["workflow", "graph"])
async def test_a_run_whose_row_was_not_written_is_not_run_again(tmp_path: Path, kind: str) -> None:
    calls: list[Any] = []

    @executor(id="note")
    async def note(number: int, ctx: WorkflowContext[Any, int]) -> None:
        calls.append(number)
        await ctx.yield_output(-number)

    def note_down(state: AgentState) -> dict[str, Any]:
        calls.append(7)
        return {"messages": [Message("assistant", ["noted"])]}

    def build() -> Any:
        if kind == "workflow":
            return WorkflowBuilder(start_executor=note, name="noting").add_edge(note, Half("never")).build()
        graph = StateGraph(AgentState, name="noting")
        graph.add_node("note", note_down)
        graph.set_entry_point("note")
        graph.set_finish_point("note")
        return graph.compile()

    def inputs() -> list[Any]:
        return [7] if kind == "workflow" else [{"messages": "seven"}]

    first = await run_many(build(), inputs(), tmp_path / "rows.db", checkpoints="all")
    (before,) = first.rows()
    database = first.store.database
    database.change(lambda session: session.run(database.sql("UPDATE agentbench_batch_rows SET status = 0"), {}))
    first.close()
    again = await run_many(build(), inputs(), tmp_path / "rows.db")
    (row,) = again.rows()
    assert calls == [7]
    assert (row.status, str(row.output), row.path, row.supersteps) == (
        RowStatus.FINISHED, str(before.output), before.path, before.supersteps
    )  # fmt: skip
    again.close()


async def test_a_waiting_run_of_a_batch_without_checkpoints_can_be_answered() -> None:
    class Ask(Executor):
        @handler
        async def ask(self, number: int, ctx: WorkflowContext[int, int]) -> None:
            await ctx.request_info(f"Double {number}?", bool)

        @response_handler
        async def hear(self, question: str, yes: bool, ctx: WorkflowContext[int, int]) -> None:
            await ctx.yield_output(2 if yes else 1)

    workflow = WorkflowBuilder(start_executor=Ask("ask")).build()
    batch = await run_many(workflow, [1, 2], checkpoints="none")
    assert len(batch.waiting) == 2
    assert await batch.answer(lambda question: "1" in question.request.data) == 2
    await batch
    assert [(row.output, row.path) for row in batch.rows()] == [(2, "ask > ask"), (1, "ask > ask")]


async def test_batches_and_keys_with_slashes_have_checkpoints_of_their_own(tmp_path: Path) -> None:
    def broken(name: str) -> Workflow:
        first, second = Half("first"), Half("second")
        second.broken = (3, 5)
        return WorkflowBuilder(start_executor=first, name=name).add_edge(first, second).build()

    first = await run_many(broken("a"), [6], tmp_path / "rows.db", keys=["b/c"])
    second = await run_many(broken("a/b"), [10], tmp_path / "rows.db", keys=["c"])
    await first.failed.retry()
    assert [str(row.error) for row in (*first.failed, *second.failed)] == [
        "ValueError: 3 is broken", "ValueError: 5 is broken"
    ]  # fmt: skip
    first.close()
    second.close()


async def test_rows_of_earlier_code_that_run_again_keep_nothing_of_their_former_runs(tmp_path: Path) -> None:
    @executor(id="note")
    async def note(number: int, ctx: WorkflowContext[Any, str]) -> None:
        await ctx.yield_output("old")

    (await run_many(WorkflowBuilder(start_executor=note).build(), [1], tmp_path / "rows.db", checkpoints="all")).close()
    calls: list[int] = []

    @executor(id="note")
    async def better(number: int, ctx: WorkflowContext[Any, str]) -> None:
        calls.append(number)
        if len(calls) == 1:
            msg = "not now"
            raise ConnectionError(msg)
        await ctx.yield_output("new")

    workflow = WorkflowBuilder(start_executor=better).build()
    batch = await run_many(workflow, [1], tmp_path / "rows.db", changed="rerun")
    assert [row.output for row in batch.rows()] == ["new"]
    assert [each.calls for each in batch.traffic() if not each.target] == [2]
    batch.close()


async def test_what_answered_runs_have_used_before_counts_once_in_a_budget(into: str | None) -> None:
    class Doubt(Executor):
        agent = Agent(ScriptedChatClient(["yes"] * 10), name="doubting")

        @handler
        async def ask(self, text: str, ctx: WorkflowContext[str, str]) -> None:
            await self.agent.run(text)
            await ctx.request_info("Sure?", bool)

        @response_handler
        async def hear(self, question: str, yes: bool, ctx: WorkflowContext[str, str]) -> None:
            await ctx.yield_output("sure")

    workflow = WorkflowBuilder(start_executor=Doubt("doubt")).build()
    inputs = [f"text {number}" for number in range(5)]
    trial = await run_many(workflow, inputs, checkpoints="none")
    used = trial.progress.tokens_in + trial.progress.tokens_out
    batch = await run_many(workflow, inputs, into, budget=Budget(tokens=used + 1), concurrency=1)
    await batch.answer(lambda question: True)
    await batch
    assert batch.progress.counts["finished"] == 5
    assert batch.progress.tokens_in + batch.progress.tokens_out == used > 0
    batch.close()


async def test_the_total_contains_the_rows_of_earlier_calls(tmp_path: Path) -> None:
    (await run_many(halving(), [1, 3, 5], tmp_path / "rows.db")).close()
    batch = await run_many(halving(), [7], tmp_path / "rows.db")
    assert (batch.progress.total, batch.progress.counts["finished"]) == (4, 4)
    batch.close()


async def test_a_cancelled_run_can_be_opened_and_open_rows_are_not_opened_again(into: str | None) -> None:
    reached = asyncio.Event()

    @executor(id="stay")
    async def stay(number: int, ctx: WorkflowContext[Any, int]) -> None:
        reached.set()
        await asyncio.Event().wait()

    first = Half("first")
    workflow = WorkflowBuilder(start_executor=first, name="staying").add_edge(first, stay).build()
    batch = run_many(workflow, [4], into)
    waiting = asyncio.ensure_future(batch._wait())
    await reached.wait()
    with raises(ValueError):
        batch.retry(RowStatus.OPEN)
    batch.cancel()
    await waiting
    run = batch.open(batch.rows()[0].key)
    assert [each.target for each in await run.plan()] == ["stay"]
    batch.close()


@pytest.mark.parametrize("error", [asyncio.CancelledError(), SystemExit(3)], ids=["cancelled", "exit"])
async def test_code_that_cancels_itself_or_exits_makes_its_row_fail(error: BaseException) -> None:
    @executor(id="give-up")
    async def give_up(number: int, ctx: WorkflowContext[Any, int]) -> None:
        if number == 1:
            raise error
        await ctx.yield_output(number)

    batch = await run_many(WorkflowBuilder(start_executor=give_up).build(), [1, 2])
    assert [row.status for row in batch.rows()] == [RowStatus.FAILED, RowStatus.FINISHED]
    assert batch.rows()[0].attempts == 2


async def test_the_time_that_a_run_waits_for_its_turn_is_not_part_of_its_time_limit() -> None:
    @executor(id="turn")
    async def turn(number: int, ctx: WorkflowContext[Any, int]) -> None:
        await asyncio.sleep(0.1)
        await ctx.yield_output(number)

    workflow = WorkflowBuilder(start_executor=turn).build()
    batch = await run_many(workflow, range(12), limits={"turn": 1}, concurrency=12, timeout=1, retry=0)
    assert batch.progress.counts["finished"] == 12


async def test_inputs_before_one_without_a_key_are_not_lost() -> None:
    batch = run_many(halving(), [1, 3, "x", 5], keys=lambda value: value + 0, concurrency=100)
    with raises(BatchInputError, position=2):
        await batch
    assert [row.input for row in batch.rows()] == [1, 3]


async def test_a_budget_that_was_enough_does_not_stop_a_batch(tmp_path: Path) -> None:
    budget = Budget(failures=1)
    batch = await run_many(halving(3), [3], tmp_path / "rows.db", budget=budget, retry=0)
    assert (batch.progress.state, batch.progress.reason) == ("done", "")
    batch.close()


async def test_a_workflow_without_a_name_is_found_again(tmp_path: Path) -> None:
    calls: list[int] = []

    def build() -> Workflow:
        @executor(id="note")
        async def note(number: int, ctx: WorkflowContext[Any, int]) -> None:
            calls.append(number)
            await ctx.yield_output(number)

        return WorkflowBuilder(start_executor=note).build()

    for inputs in ([1, 2], [1, 2, 3]):
        batch = await run_many(build(), inputs, tmp_path / "rows.db")
        assert batch.name == "workflow"
        batch.close()
    assert calls == [1, 2, 3]


async def test_secrets_in_the_text_of_an_error_are_not_displayed() -> None:
    @executor(id="login")
    async def login(number: int, ctx: WorkflowContext[Any, int]) -> None:
        msg = "rejected: password=planted-1234"
        raise PermissionError(msg)

    batch = await run_many(WorkflowBuilder(start_executor=login).build(), [1])
    (row,) = batch.failed
    assert row.error is not None
    assert row.error.message.endswith("planted-1234")
    assert "planted" not in f"{row.error} {row.error!r} {row!r}"
    batch.close()
    assert batch.rows()[0].key == row.key  # what is kept in memory can be read after close()


async def test_a_budget_of_cost_does_not_go_on_without_prices() -> None:
    def flow() -> Agent:
        return Agent(ScriptedChatClient(["yes"] * 30), name="saying")

    texts = [f"text {number}" for number in range(30)]
    with raises(ValueError):
        run_many(flow(), texts, budget=Budget(cost=1))
    batch = await run_many(flow(), texts, budget=Budget(cost=1), prices={"another": (1, 1)}, concurrency=2)
    assert batch.progress.state == "stopped"
    assert batch.progress.counts["finished"] < 30


@pytest.mark.parametrize("check_head", [None, False])
async def test_an_answer_is_used_again_if_its_handler_fails(into: str | None, *, check_head: bool | None) -> None:
    heard: list[bool] = []

    class Ask(Executor):
        @handler
        async def ask(self, number: int, ctx: WorkflowContext[int, int]) -> None:
            await ctx.request_info("Really?", bool)

        @response_handler
        async def hear(self, question: str, yes: bool, ctx: WorkflowContext[int, int]) -> None:
            heard.append(yes)
            if len(heard) == 1:
                msg = "not now"
                raise ConnectionError(msg)
            await ctx.yield_output(7)

    workflow = WorkflowBuilder(start_executor=Ask("ask"), name="asking").build()
    batch = await run_many(workflow, [1], into, options=RunOptions(check_head=check_head))
    await batch.answer(lambda question: True)
    await batch
    (row,) = batch.rows()
    assert (row.status, row.output, heard) == (RowStatus.FINISHED, 7, [True, True])
    batch.close()


async def test_numbers_after_an_answer_survive_an_interruption(into: str | None) -> None:
    gate, reached = asyncio.Event(), asyncio.Event()

    class Ask(Executor):
        @handler
        async def ask(self, number: int, ctx: WorkflowContext[int]) -> None:
            await ctx.request_info("Really?", bool)

        @response_handler
        async def hear(self, question: str, yes: bool, ctx: WorkflowContext[int]) -> None:
            await ctx.send_message(7)

    @executor(id="last")
    async def last(number: int, ctx: WorkflowContext[Any, int]) -> None:
        reached.set()
        await gate.wait()
        await ctx.yield_output(number)

    ask = Ask("ask")
    workflow = WorkflowBuilder(start_executor=ask, name="asking").add_edge(ask, last).build()
    batch = await run_many(workflow, [1], into)
    await batch.answer(lambda question: True)
    await reached.wait()
    batch.cancel()
    await batch
    gate.set()
    await batch.resume()
    assert [(row.output, row.path, row.supersteps) for row in batch.rows()] == [(7, "ask > ask > last", 3)]
    assert {(t.source, t.target): (t.calls, t.messages) for t in batch.traffic()} == {
        ("Workflow", "ask"): (0, 1), ("ask", ""): (2, 0), ("ask", "last"): (0, 1), ("last", ""): (1, 0)
    }  # fmt: skip
    batch.close()
