"""What can be configured: limits, scopes, time, threads."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from agentbench import Agent, EchoChatClient, _clock, run_sync
from agentbench.agents.loop.configuration import normalize_function_invocation_configuration
from agentbench.agents.tools.decorator import tool
from tests.agents.loop.scripts import Script, ask, call, results, says, shape
from tests.endless import WAIT_S, for_ever


@tool
def good() -> str:
    return "good"


@tool
def bad() -> str:
    raise ValueError("bad")


@tool(approval_mode="always_require")
def danger() -> str:
    return "did"


def client_of(*answers: Any, **config: Any) -> Script:
    return Script(*answers, function_invocation_configuration=config)


async def test_only_the_tool_that_fails_is_taken_away() -> None:
    both = [call("1", "good"), call("2", "bad")]
    answers = [says(*both) for _ in range(3)]
    client = client_of(*answers, says("end"), error_scope="tool", max_consecutive_errors_per_request=2)

    response = await ask(client, options={"tools": [good, bad]})

    assert [[one.name for one in options["tools"]] for options in client.options] == [
        ["good", "bad"],
        ["good", "bad"],
        ["good"],
        ["good"],
    ]
    assert all("tool_choice" not in options for options in client.options)
    assert "failed too often" in (response.messages[5].contents[1].exception or "")
    assert bad.invocation_count == 2
    bad.reset()


async def test_when_the_last_tool_is_taken_away_the_model_is_called_without_tools() -> None:
    client = client_of(says(call("1", "bad")), says("end"), error_scope="tool", max_consecutive_errors_per_request=1)

    await ask(client, options={"tools": [bad]})

    assert (client.options[1]["tools"], client.options[1]["tool_choice"]) == ([], "none")
    bad.reset()


async def test_harmless_calls_run_while_a_person_decides_about_the_other() -> None:
    client = client_of(says(call("1", "danger"), call("2", "good")), approval_scope="call")

    response = await ask(client, options={"tools": [good, danger]})

    kinds = ["function_call", "function_call", "function_approval_request"]
    assert shape(response) == [("assistant", kinds), ("tool", ["function_result"])]
    assert [one.function_call.call_id for one in response.user_input_requests if one.function_call] == ["1"]


async def test_a_strict_budget_holds_within_a_batch() -> None:
    client = client_of(
        says(call("1", "good"), call("2", "good"), call("3", "good")),
        says("end"),
        max_function_calls=2,
        strict_max_function_calls=True,
    )

    response = await ask(client, options={"tools": [good]})

    assert results(response) == ["good", "good", "Error: Function failed."]
    assert client.options[1]["tool_choice"] == "none"


async def test_tools_are_taken_away_when_time_is_up() -> None:
    _clock.set_runtime_defaults(clock=_clock.TickingClock(tick_s=10))
    client = client_of(*(says(call(str(n), "good")) for n in range(3)), says("end"), max_duration_seconds=25)

    await ask(client, options={"tools": [good]})

    assert [options.get("tool_choice") for options in client.options] == [None, None, None, "none"]


def test_the_earlier_name_of_the_duration_still_works_and_warns() -> None:
    with pytest.warns(DeprecationWarning, match="max_duration_seconds"):
        configuration = normalize_function_invocation_configuration({"max_duration_s": 3})
    assert configuration["max_duration_seconds"] == 3
    with pytest.warns(DeprecationWarning, match="max_duration_seconds"):
        Agent(EchoChatClient(), function_invocation_configuration={"max_duration_s": 3})


async def test_sync_tools_run_side_by_side_in_threads() -> None:
    meet = threading.Barrier(2)

    @tool
    def waits() -> str:
        meet.wait(timeout=30)
        return str(threading.get_ident())

    client = client_of(says(call("1", "waits"), call("2", "waits")), says("end"))

    threads = results(await ask(client, options={"tools": [waits]}))

    assert str(threading.get_ident()) not in threads
    assert len(set(threads)) == 2


async def test_sync_tools_may_be_kept_on_the_event_loop() -> None:
    @tool
    def where() -> str:
        return str(threading.get_ident())

    client = client_of(says(call("1", "where"), call("2", "where")), says("end"), sync_tools_in_threads=False)

    assert results(await ask(client, options={"tools": [where]})) == [str(threading.get_ident())] * 2


def test_a_sync_tool_may_wait_for_an_agent_under_run_sync() -> None:
    @tool
    def asks() -> str:
        return run_sync(ask(client_of(says("42")), options={}), timeout=30).text

    boss = client_of(says(call("1", "asks"), call("2", "asks")), says("end"))

    assert results(run_sync(ask(boss, options={"tools": [asks]}), timeout=30)) == ["42", "42"]


async def test_a_run_that_is_cancelled_leaves_its_sync_tool_and_cancels_what_the_tool_waits_for() -> None:
    begun, ended, freed = threading.Event(), threading.Event(), threading.Event()

    @tool
    def waits() -> None:
        try:
            run_sync(for_ever(begun, ended))
        finally:
            freed.set()

    running = asyncio.ensure_future(ask(client_of(says(call("1", "waits"))), options={"tools": [waits]}))
    assert await asyncio.to_thread(begun.wait, WAIT_S)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    assert await asyncio.to_thread(ended.wait, WAIT_S)
    assert await asyncio.to_thread(freed.wait, WAIT_S)


async def test_limits_of_a_tool_hold_for_each_request() -> None:
    @tool(max_invocations_per_run=1)
    def rare() -> str:
        return "ran"

    for _ in range(2):
        client = client_of(says(call("1", "rare"), call("2", "rare")), says("end"))
        assert results(await ask(client, options={"tools": [rare]})) == ["ran", "Error: Function failed."]


def test_nothing_passed_is_the_defaults() -> None:
    assert normalize_function_invocation_configuration(None) == {
        "enabled": True,
        "max_iterations": 40,
        "max_function_calls": None,
        "max_consecutive_errors_per_request": 3,
        "terminate_on_unknown_calls": False,
        "additional_tools": [],
        "include_detailed_errors": False,
    }


@pytest.mark.parametrize(
    "fine",
    [
        {"max_iterations": 1},
        {"max_function_calls": None},
        {"max_function_calls": 1},
        {"max_consecutive_errors_per_request": 0},
        {"max_duration_seconds": None},
        {"error_scope": "tool", "approval_scope": "call"},
    ],
)
def test_a_value_at_the_edge_of_its_range_is_taken(fine: dict[str, Any]) -> None:
    checked = normalize_function_invocation_configuration(fine)

    assert {key: checked[key] for key in fine} == fine  # type: ignore[literal-required]
