"""Calls of a graph: what goes in, what comes out, threads, streams and stops."""

from __future__ import annotations

import asyncio
import gc
import operator
import threading
import time
from typing import Annotated, Any

import pytest

from agentbench import Message
from agentbench.exceptions import (
    GraphError,
    GraphRecursionError,
    NestedLoopError,
    NodeTimeoutError,
    StateValidationError,
    ThreadBusyError,
)
from agentbench.stategraph.command import Command
from agentbench.stategraph.graph import StateGraph
from agentbench.stategraph.results import ResponseGranularity
from agentbench.stategraph.state import END, START, AgentState, ExecutionStatus, StopRequestStatus
from tests.parts.errors import raises


class Order(AgentState):
    order_id: str | None = None
    cart: list[dict[str, Any]] = []
    notes: Annotated[list[str], operator.add] = []
    confirmed: bool = False


def greet(state: Order, config: dict[str, Any]) -> list[Message]:
    return [Message.text_message(f"Order {state.order_id}", role="assistant")]


def confirm(state: Order) -> dict[str, Any]:
    return {"confirmed": True, "notes": ["confirmed"]}


def shop(**settings: Any) -> Any:
    graph = StateGraph(Order, name="shop").add_node("greet", greet).add_node("confirm", confirm)
    return graph.add_edge(START, "greet").add_edge("greet", "confirm").add_edge("confirm", END).compile(**settings)


def texts(result: Any) -> list[str]:
    return [message.text for message in result["messages"]]


THREAD = {"thread_id": "t1"}


def test_the_guides_sample_runs_on_defaults_and_with_the_initial_state_passed_on():
    initial = Order(order_id="ORD-001", cart=[{"sku": "ABC", "qty": 1}])
    message = Message.text_message("Process my order")
    assert texts(shop().invoke({"messages": [message]}, config={"thread_id": "order-session-1"})) == [
        "Process my order",
        "Order None",
    ]
    for given in (initial, {"state": initial}, {"state": {"order_id": "ORD-001"}}, {"order_id": "ORD-001"}):
        result = shop().invoke(given, THREAD, ResponseGranularity.FULL)
        assert texts(result) == ["Order ORD-001"]
        assert type(result["state"]) is Order
        assert (result["state"].order_id, result["state"].confirmed) == ("ORD-001", True)


def test_a_call_returns_what_its_granularity_says_also_when_it_pauses():
    for app in (shop(), shop(interrupt_before=["confirm"])):
        low = app.invoke("Hello", {"thread_id": "a"})
        partial = app.invoke("Hello", {"thread_id": "b"}, "partial")
        full = app.invoke("Hello", {"thread_id": "c"}, ResponseGranularity.FULL)
        assert list(low) == ["messages", "token_usage"]
        assert list(partial) == ["messages", "token_usage", "context", "summary"]
        assert list(full) == ["messages", "token_usage", "context", "summary", "state"]
        assert low["token_usage"] == {
            "total_input_tokens": 0, "total_output_tokens": 0, "total_reasoning_tokens": 0, "total_tokens": 0,
        }  # fmt: skip
        assert (low.thread_id, low.state.context[0].text) == ("a", "Hello")
    assert full.status is ExecutionStatus.INTERRUPTED


def test_two_calls_on_a_thread_accumulate_and_other_threads_and_graphs_see_nothing():
    app = shop()
    app.invoke({"messages": "one", "order_id": "7"}, THREAD)
    second = app.invoke({"messages": "two"}, THREAD, "full")
    assert texts(second) == ["two", "Order 7"]
    assert [message.text for message in second["context"]] == ["one", "Order 7", "two", "Order 7"]
    assert second.step == 2
    assert second["state"].notes == ["confirmed", "confirmed"]
    assert app.invoke("three", {"thread_id": "other"}, "full")["state"].order_id is None
    other = StateGraph(Order, name="other shop").add_node("greet", greet).set_entry_point("greet")
    assert not other.compile(checkpointer=app.storage).get_state(THREAD).exists


def test_numbers_name_threads_as_their_text_does_and_settings_may_stand_under_configurable():
    app = shop()
    app.invoke({"order_id": "7"}, {"configurable": {"thread_id": 1}})
    assert app.get_state({"thread_id": "1"}).values.order_id == "7"


@pytest.mark.parametrize("given", [None, {}])
def test_a_thread_without_anything_to_go_on_with_says_so(given: Any):
    app = shop()
    with raises(ValueError, THREAD["thread_id"]):
        app.invoke(None, THREAD)
    app.invoke("Hello", THREAD)
    with raises(ValueError, THREAD["thread_id"]):
        app.invoke(given, THREAD)
    with raises(ValueError, THREAD["thread_id"]):
        app.invoke({"resume": 1}, THREAD)


class Needs(AgentState):
    city: str


def test_a_field_without_a_default_has_to_come_with_the_input():
    app = StateGraph(Needs).add_node("go", lambda state: None).set_entry_point("go").compile()
    with raises(StateValidationError, "city"):
        app.invoke("Hello", THREAD)
    assert app.invoke({"city": "Graz"}, THREAD, "full")["state"].city == "Graz"


def test_recursion_limit_counts_supersteps_and_a_call_with_a_larger_one_goes_on():
    with pytest.raises(GraphRecursionError) as caught:
        shop().invoke("Hello", {**THREAD, "recursion_limit": 1})
    assert texts(caught.value.result) == ["Hello", "Order None"]
    for limit in (2, 3):
        assert shop().invoke("Hello", {**THREAD, "recursion_limit": limit}).step == 2
    app = shop(durability="exit")
    with pytest.raises(GraphRecursionError):
        app.invoke("Hello", {**THREAD, "recursion_limit": 1})
    assert app.get_state(THREAD).next == ("confirm",)
    result = app.invoke(None, {**THREAD, "recursion_limit": 1})
    assert (result.status, result.state.confirmed, texts(result)) == (ExecutionStatus.COMPLETED, True, [])


async def test_invoke_works_inside_a_running_loop_and_from_threads():
    app = shop()
    assert texts(app.invoke("Hello", THREAD)) == ["Hello", "Order None"]
    found: list[Any] = []
    threads = [
        threading.Thread(target=lambda n=n: found.append(app.invoke(f"{n}", {"thread_id": n}))) for n in range(50)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        await asyncio.to_thread(thread.join)
    assert sorted(int(texts(result)[0]) for result in found) == [*range(50)]
    assert app.list_threads() == sorted([*map(str, range(50)), "t1"])


# -------------------------------------------------------------------------------------------------- two calls at once


class Gate:
    """A node that waits until it is let go."""

    def __init__(self) -> None:
        self.reached, self.go, self.calls = asyncio.Event(), asyncio.Event(), 0

    async def __call__(self, state: Order) -> dict[str, Any]:
        self.calls += 1
        self.reached.set()
        await self.go.wait()
        return {"notes": [f"pass {self.calls}"]}

    def graph(self, **settings: Any) -> Any:
        graph = (
            StateGraph(Order, name="gate").add_node("gate", self).add_node("after", lambda state: {"notes": ["after"]})
        )
        return graph.add_edge(START, "gate").add_edge("gate", "after").compile(**settings)


async def test_a_second_call_on_a_busy_thread_is_refused_waits_or_stops_the_first():
    gate = Gate()
    app = gate.graph()
    first = asyncio.create_task(app.ainvoke("one", THREAD))
    await gate.reached.wait()
    with raises(ThreadBusyError, "t1"):
        await app.ainvoke("two", THREAD)
    second = asyncio.create_task(app.ainvoke("two", {**THREAD, "on_busy": "wait"}))
    await asyncio.sleep(0)
    gate.go.set()
    assert [(await first).state.notes, (await second).state.notes] == [
        ["pass 1", "after"],
        ["pass 1", "after", "pass 2", "after"],
    ]
    gate.go.clear()
    gate.reached.clear()
    third = asyncio.create_task(app.ainvoke("three", THREAD))
    await gate.reached.wait()
    fourth = asyncio.create_task(app.ainvoke("four", {**THREAD, "on_busy": "stop"}))
    assert (await third).status is ExecutionStatus.INTERRUPTED
    gate.go.set()
    assert (await fourth).state.notes[-2:] == ["pass 4", "after"]


async def test_a_call_that_gives_up_waiting_for_a_thread_affects_no_other_call():
    gate = Gate()
    app = gate.graph()
    waits = {**THREAD, "on_busy": "wait"}
    first = asyncio.create_task(app.ainvoke("one", waits))
    await gate.reached.wait()
    second, third = (asyncio.create_task(app.ainvoke(text, waits)) for text in ("two", "three"))
    await asyncio.sleep(0)
    second.cancel()
    with pytest.raises(asyncio.CancelledError):
        await second
    gate.go.set()
    assert (await first).state.notes == ["pass 1", "after"]
    assert (await third).state.notes == ["pass 1", "after", "pass 2", "after"]


async def test_waiting_for_a_call_of_the_loop_that_one_blocks_is_a_named_error():
    gate = Gate()
    app = gate.graph()
    first = asyncio.create_task(app.ainvoke("one", THREAD))
    await gate.reached.wait()
    with pytest.raises(NestedLoopError):
        app.invoke("two", {**THREAD, "on_busy": "wait"})
    gate.go.set()
    assert (await first).status is ExecutionStatus.COMPLETED


@pytest.mark.parametrize("on_busy", ["raise", "wait", "stop"])
def test_a_thread_is_free_again_when_the_loop_of_its_call_was_closed(on_busy):
    gate = Gate()
    app = gate.graph()
    loop = asyncio.new_event_loop()
    task = loop.create_task(app.ainvoke("one", THREAD))
    loop.run_until_complete(gate.reached.wait())
    loop.close()

    assert app.stop(THREAD)["running"] is False
    gate.go = asyncio.Event()
    gate.go.set()
    assert app.invoke("two", {**THREAD, "on_busy": on_busy}).state.notes[-1] == "after"
    app.close()

    del task  # what is left of the first call ends only now, and changes nothing
    gc.collect()
    assert app.invoke("three", THREAD).state.notes[-1] == "after"


# --------------------------------------------------------------------------------------------------------------- stop


async def test_a_stopped_thread_is_saved_and_goes_on_with_what_was_left():
    gate = Gate()
    app = gate.graph()
    assert app.stop(THREAD) == {"ok": False, "running": False, "reason": "no-state"}
    running = asyncio.create_task(app.ainvoke("one", THREAD, "full"))
    await gate.reached.wait()
    assert await app.astop(THREAD) == {"ok": True, "running": True}
    result = await running
    meta = result["state"].execution_meta
    assert (result.status, meta.interrupt_reason) == (ExecutionStatus.INTERRUPTED, "stop_requested")
    assert meta.stop_current_execution is StopRequestStatus.STOP_REQUESTED
    assert await app.astop(THREAD) == {"ok": True, "running": False, "reason": "not-running"}
    assert app.get_state(THREAD).next == ("gate",)
    gate.go.set()
    done = await app.ainvoke("and this", THREAD, "full")
    assert (done.status, done["state"].notes) == (ExecutionStatus.COMPLETED, ["pass 2", "after"])
    assert [message.text for message in done["context"]] == ["one", "and this"]
    assert done["state"].execution_meta.stop_current_execution is StopRequestStatus.NONE


async def test_a_graceful_stop_lets_nodes_end():
    gate = Gate()
    app = gate.graph()
    running = asyncio.create_task(app.ainvoke("one", THREAD))
    await gate.reached.wait()
    await app.astop(THREAD, graceful=True)
    gate.go.set()
    assert (await running).state.notes == ["pass 1"]
    assert (await app.ainvoke(None, THREAD)).state.notes == ["pass 1", "after"]


def test_a_blocking_node_sees_the_stop_and_is_let_finish():
    entered = threading.Event()

    def work(state: Order) -> dict[str, Any]:
        entered.set()
        while not state.is_stopped_requested():
            time.sleep(0.001)
        return {"notes": ["put down my tools"]}

    graph = StateGraph(Order).add_node("work", work).add_node("after", lambda state: {"notes": ["after"]})
    app = graph.add_edge(START, "work").add_edge("work", "after").compile()
    found: list[Any] = []
    thread = threading.Thread(target=lambda: found.append(app.invoke("go", THREAD)))
    thread.start()
    entered.wait()
    app.stop(THREAD)
    app.stop(THREAD)
    thread.join()
    assert (found[0].status, found[0].state.notes) == (ExecutionStatus.INTERRUPTED, ["put down my tools"])
    assert app.get_state(THREAD).next == ("after",)


async def test_a_cancelled_call_is_stopped_and_saved():
    gate = Gate()
    app = gate.graph()
    with pytest.raises(TimeoutError):
        await asyncio.wait_for(app.ainvoke("one", THREAD), 0.2)
    assert app.get_state(THREAD).next == ("gate",)
    gate.go.set()
    assert (await app.ainvoke(None, THREAD)).state.notes == ["pass 2", "after"]


async def test_close_stops_what_runs():
    gate = Gate()
    async with gate.graph(shutdown_timeout=0.05) as app:
        running = asyncio.create_task(app.ainvoke("one", THREAD))
        await gate.reached.wait()
    assert (await running).status is ExecutionStatus.INTERRUPTED


# ------------------------------------------------------------------------------------------------------------- limits


async def test_a_node_that_takes_too_long_fails_by_its_own_the_graphs_or_the_calls_limit():
    async def slow(state: Order) -> None:
        await asyncio.sleep(10)

    def graph(**node: Any) -> Any:
        return StateGraph(Order).add_node("slow", slow, **node).set_entry_point("slow")

    for app, config in (
        (graph(timeout=0.01).compile(), {}),
        (graph().compile(node_timeout=0.01), {}),
        (graph().compile(), {"node_timeout": 0.01}),
    ):
        with raises(NodeTimeoutError, "[NODE_TIMEOUT_001]", "'slow'"):
            await app.ainvoke("go", {**THREAD, **config})


async def test_max_concurrency_bounds_how_many_nodes_run_at_once():
    at_work, most = 0, 0

    async def work(state: Order) -> None:
        nonlocal at_work, most
        at_work += 1
        most = max(most, at_work)
        await asyncio.sleep(0.002)
        at_work -= 1

    graph = StateGraph(Order)
    for n in range(6):
        graph.add_node(f"n{n}", work).add_edge(START, f"n{n}")
    await graph.compile(max_concurrency=2).ainvoke("go", THREAD)
    assert most == 2


# ------------------------------------------------------------------------------------------------------------ streams


def test_a_stream_has_messages_then_states_then_what_nodes_do():
    app = shop()
    low = [*app.stream("Hello", {"thread_id": "a"})]
    assert [(chunk.event.value, chunk.message.text) for chunk in low] == [("message", "Order None")]
    partial = [*app.stream("Hello", {"thread_id": "b"}, "partial")]
    assert [chunk.event.value for chunk in partial].count("state") == 3
    full = [chunk.data["status"] for chunk in app.stream("Hello", {"thread_id": "c"}, "full") if chunk.data]
    assert full[-1] == "completed"
    assert full.count("node_started") == full.count("node_finished") == 3  # with the input


def test_stream_modes_yield_payloads_or_pairs():
    app = shop()
    updates = [*app.stream({"order_id": "7"}, {"thread_id": "a"}, stream_mode="updates")]
    assert [next(iter(update)) for update in updates] == ["greet", "confirm"]
    values = [*app.stream({"order_id": "7"}, {"thread_id": "b"}, stream_mode="values")]
    assert [value["confirmed"] for value in values] == [False, False, True]
    pairs = [*app.stream({"order_id": "7"}, {"thread_id": "c"}, stream_mode=["updates", "checkpoints"])]
    assert {mode for mode, _ in pairs} == {"updates", "checkpoints"}


async def test_deltas_and_custom_data_are_shown_and_not_stored():
    async def speak(state: Order, emit: Any) -> Any:
        emit({"progress": 1})
        yield Message("assistant", ["Hel"], message_id="m", delta=True)
        yield Message("assistant", ["Hello"], message_id="m")

    app = StateGraph(Order).add_node("speak", speak).set_entry_point("speak").compile()
    chunks = [chunk async for chunk in app.astream("Hi", THREAD)]
    assert [(chunk.message.text, chunk.message.delta) for chunk in chunks] == [("Hel", True), ("Hello", False)]
    assert [message.text for message in app.get_state(THREAD).values.context] == ["Hi", "Hello"]
    assert [data async for data in app.astream("Hi", {"thread_id": "b"}, stream_mode="custom")] == [{"progress": 1}]


async def test_a_stream_that_is_left_stops_the_run_and_the_thread_goes_on_later():
    app = shop()
    async for _ in app.astream("Hello", THREAD):
        break
    await asyncio.sleep(0)
    for _ in range(100):
        if app.get_state(THREAD).exists and not app._running:
            break
        await asyncio.sleep(0.01)
    assert app.get_state(THREAD).status is ExecutionStatus.INTERRUPTED
    assert app.invoke(None, THREAD).state.confirmed is True


def test_a_command_as_input_goes_where_it_says():
    result = shop().invoke(Command(update={"order_id": "7"}, goto="confirm"), THREAD)
    assert (result.state.confirmed, texts(result)) == (True, [])


@pytest.mark.parametrize("given", [5, b"x", ["a", 5], {1: 2}, {"notes": 5}, {"unknown": 1}, Command(goto="nowhere")])
def test_an_invalid_input_is_refused_each_time_and_the_thread_stays_as_it_was(given: Any):
    app = shop()
    for _ in range(2):
        with pytest.raises(GraphError):
            app.invoke(given, THREAD)
    app.invoke({"order_id": "7"}, THREAD)
    for _ in range(2):
        with pytest.raises(GraphError):
            app.invoke(given, THREAD)
    assert app.get_state(THREAD).values.order_id == "7"


@pytest.mark.parametrize(
    ("config", "name"),
    [
        ("order-7", "config"),
        (["thread_id"], "config"),
        ({"configurable": 3}, "configurable"),
        ({"thread_id": ["t"]}, "thread_id"),
        ({"thread_id": "\ud800"}, "thread_id"),
        ({"thread_id": "t", "recursion_limit": "x"}, "recursion_limit"),
        ({"thread_id": "t", "recursion_limit": 0}, "recursion_limit"),
        ({"thread_id": "t", "on_busy": "queue"}, "on_busy"),
        ({"thread_id": "t", "on_graph_change": "no"}, "on_graph_change"),
        ({"thread_id": "t", "metadata": 5}, "metadata"),
        ({"thread_id": "t", "interrupt_before": 5}, "interrupt_before"),
    ],
)
def test_a_setting_of_a_wrong_type_is_named(config: Any, name: str):
    with raises((TypeError, ValueError), name):
        shop().invoke("Hello", config)
