"""Graphs written as a function: entrypoints and tasks."""

from __future__ import annotations

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any, TypedDict

import pytest

from agentbench.stategraph import (
    START,
    Command,
    InMemorySaver,
    SqliteSaver,
    StateGraph,
    entrypoint,
    get_runtime,
    get_stream_writer,
    interrupt,
    task,
)

THREAD = {"configurable": {"thread_id": "1"}}
calls: Counter[Any] = Counter()


@pytest.fixture(autouse=True)
def _no_calls() -> None:
    calls.clear()


@task
def double(n: int) -> int:
    calls["double", n] += 1
    return 2 * n


@task
async def add(a: int, b: int = 1) -> int:
    calls["add", a] += 1
    await asyncio.sleep(0)
    return a + b


def test_tasks_return_futures_that_run_together() -> None:
    @entrypoint()
    def sums(n: int) -> list[int]:
        futures = [double(i) for i in range(n)]
        return [future.result() for future in futures] + [add(n).result()]

    assert sums.invoke(3) == [0, 2, 4, 4]


async def test_an_async_function_awaits_tasks() -> None:
    @entrypoint()
    async def sums(n: int) -> list[int]:
        return [await add(n), await double(n), *await asyncio.gather(*map(add, range(2)))]

    assert await sums.ainvoke(5) == [6, 10, 1, 2]


async def test_an_async_function_cannot_block_its_loop() -> None:
    @entrypoint()
    async def sums(n: int) -> int:
        return add(n).result()

    with pytest.raises(RuntimeError, match="await future"):
        await sums.ainvoke(5, THREAD)


def test_a_result_is_not_computed_again_after_an_interrupt() -> None:
    @entrypoint(checkpointer=InMemorySaver())
    def approve(n: int) -> dict[str, Any]:
        drafts = [double(n).result(), add(n).result()]
        drafts.append(double(n).result())
        return {"drafts": drafts, "approved": interrupt({"drafts": drafts})}

    paused = approve.invoke(2, THREAD)
    assert [question.value for question in paused["__interrupt__"]] == [{"drafts": [4, 3, 4]}]
    assert approve.get_state(THREAD).next == ("approve",)

    assert approve.invoke(Command(resume=True), THREAD) == {"drafts": [4, 3, 4], "approved": True}
    assert calls == {("double", 2): 2, ("add", 2): 1}


def test_a_result_is_not_computed_again_after_an_error_in_another_process(tmp_path: Path) -> None:
    def build() -> Any:
        @task
        def flaky() -> str:
            calls["flaky"] += 1
            if calls["flaky"] == 1:
                raise ConnectionError("down")
            return "up"

        @entrypoint(checkpointer=SqliteSaver(tmp_path / "threads.db"))
        def fetch(n: int) -> list[Any]:
            return [double(n).result(), flaky().result()]

        return fetch

    with pytest.raises(ConnectionError):
        build().invoke(2, THREAD)

    assert build().invoke(None, THREAD) == [4, "up"]
    assert calls["double", 2] == 1


def test_a_change_of_a_result_does_not_reach_the_kept_one() -> None:
    @task
    def names() -> list[str]:
        return ["a"]

    @entrypoint(checkpointer=InMemorySaver())
    def grow(_: Any) -> list[str]:
        found = names().result()
        found.append("b")
        interrupt("go on?")
        return found

    grow.invoke("x", THREAD)
    assert grow.invoke(Command(resume=1), THREAD) == ["a", "b"]


def test_tasks_ask_questions_and_call_tasks() -> None:
    @task
    def ask(question: str) -> str:
        return f"{question}: {interrupt(question)}, {double(len(question)).result()}"

    @entrypoint(checkpointer=InMemorySaver())
    def survey(questions: list[str]) -> list[str]:
        return [future.result() for future in [ask(question) for question in questions]]

    asked = survey.invoke(["name", "age"], THREAD)["__interrupt__"]
    assert [question.value for question in asked] == ["name", "age"]

    answers = {question.id: question.value.upper() for question in asked}
    assert survey.invoke(Command(resume=answers), THREAD) == ["name: NAME, 8", "age: AGE, 6"]


def test_a_question_of_a_task_that_nobody_awaits_is_asked() -> None:
    @task
    def ask() -> str:
        calls[interrupt("sure?")] += 1
        return "done"

    @entrypoint(checkpointer=InMemorySaver())
    def confirm(_: Any) -> str:
        ask()
        return "confirmed"

    assert confirm.invoke("x", THREAD)["__interrupt__"][0].value == "sure?"
    assert confirm.invoke(Command(resume="yes"), THREAD) == "confirmed"
    assert calls == {"yes": 1}


def test_the_next_run_of_a_thread_gets_what_the_last_one_saved() -> None:
    @entrypoint(checkpointer=InMemorySaver())
    def total(n: int, *, previous: int | None = None) -> entrypoint.final[int, int]:
        return entrypoint.final(value=previous or 0, save=(previous or 0) + n)

    @entrypoint(checkpointer=InMemorySaver())
    def history(n: int, *, previous: list[int] | None = None) -> list[int]:
        return [*(previous or []), n]

    assert [total.invoke(n, THREAD) for n in (3, 4, 5)] == [0, 3, 7]
    assert [history.invoke(n, THREAD) for n in (1, 2)] == [[1], [1, 2]]
    assert total.get_state(THREAD).values == 7
    assert [snapshot.values for snapshot in history.get_state_history(THREAD)][:2] == [[1, 2], [1]]


def test_an_entrypoint_gets_what_its_parameters_name() -> None:
    @entrypoint(store={"k": "kept"})
    def facts(n: int, *, config: Any, writer: Any, store: Any, runtime: Any) -> Any:
        writer({"n": n})
        return config["thread_id"], store["k"], runtime.thread_id

    assert facts.invoke(1, THREAD) == ("1", "kept", "1")
    assert [*facts.stream(1, THREAD, stream_mode="custom")] == [{"n": 1}]


def test_a_stream_yields_the_results_of_tasks_and_of_the_function() -> None:
    @entrypoint(checkpointer=InMemorySaver())
    def publish(n: int) -> list[Any]:
        get_stream_writer()("begins")
        return [double(n).result(), interrupt("ok?")]

    first = [*publish.stream(1, THREAD, stream_mode=["updates", "custom", "values"])]
    question = first[-1][1]["__interrupt__"]
    assert question[0].value == "ok?"
    assert first == [
        ("custom", "begins"),
        ("updates", {"double": 2}),
        ("updates", {"__interrupt__": question}),
        ("values", {"__interrupt__": question}),
    ]
    assert [*publish.stream(Command(resume=True), THREAD)] == [{"publish": [2, True]}]


def test_a_node_of_a_graph_calls_tasks() -> None:
    class Counted(TypedDict):
        n: int

    @task(name="twice")
    def times_two(n: int) -> int:
        get_stream_writer()("in a task")
        return 2 * n

    graph = StateGraph(Counted).add_node("up", lambda state: {"n": times_two(state["n"]).result() + interrupt("by?")})
    app = graph.add_edge(START, "up").set_finish_point("up").compile()

    assert [mode for mode, _ in app.stream({"n": 1}, THREAD, stream_mode=["custom", "updates"])] == [
        "custom", "updates", "updates",
    ]  # fmt: skip
    assert app.invoke(Command(resume=5), THREAD) == {"n": 7}


def test_an_error_of_a_task_can_be_caught() -> None:
    @task
    def fail() -> None:
        raise LookupError("nothing")

    @entrypoint()
    def careful(_: Any) -> str:
        try:
            fail().result()
        except LookupError as error:
            return str(error)
        return "found"

    assert careful.invoke("x") == "nothing"


def test_wrong_uses_are_refused() -> None:
    with pytest.raises(RuntimeError, match="double"):
        double(1)
    with pytest.raises(RuntimeError, match="get_stream_writer"):
        get_stream_writer()
    with pytest.raises(ValueError, match="no parameter"):
        entrypoint()(lambda: 1)
    with pytest.raises(TypeError, match="function with a name"):
        entrypoint()(lambda n: n)
    with pytest.raises(RuntimeError, match=r"get_runtime\(\)"):
        get_runtime()
    with pytest.raises(TypeError, match="generator"):

        @entrypoint()
        def several(n: int) -> Any:
            yield n
