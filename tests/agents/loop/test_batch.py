"""Which calls are made, and what is done with each."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench.agents.loop.batch import Toolbox, open_calls, plan_batch, run_batch
from agentbench.agents.loop.call import Calling, ToolCall
from agentbench.agents.loop.configuration import normalize_function_invocation_configuration
from agentbench.agents.tools.collection import tool_name
from agentbench.agents.tools.decorator import tool
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from tests.agents.loop.scripts import call


@tool
def plain() -> str:
    return "ran"


@tool(approval_mode="always_require")
def danger() -> str:
    return "did"


TOOLS = [plain, danger, FunctionTool(name="decl")]


def batch(*names: str, **keywords: bool) -> tuple[list[str | None], list[str]]:
    calls = [call(str(n), name) for n, name in enumerate(names)]
    settings = {"terminate_on_unknown": False, "ask_alone": False, **keywords}
    planned = plan_batch(calls, Toolbox(TOOLS, [FunctionTool(name="extra")]), **settings)
    return [one.name for one in planned.calls], [one.type for one in planned.requests]


ASK, BACK = "function_approval_request", "function_call"


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["plain"], (["plain"], [])),
        (["plain", "nowhere"], (["plain", "nowhere"], [])),
        (["plain", "danger"], ([], [ASK, ASK])),
        (["danger", "decl"], ([], [ASK, ASK])),
        (["decl", "danger"], ([], [BACK, BACK])),
        (["extra", "plain"], ([], [BACK, BACK])),
        ([], ([], [])),
    ],
)
def test_the_first_call_that_is_not_simply_run_decides_for_all(names: list[str], expected: Any) -> None:
    assert batch(*names) == expected


@pytest.mark.parametrize(
    ("names", "expected"),
    [
        (["plain", "danger", "plain"], (["plain", "plain"], [ASK])),
        (["danger"], ([], [ASK])),
        (["danger", "decl"], ([], [BACK, BACK])),
    ],
)
def test_asked_about_one_call_the_others_are_run_if_so_configured(names: list[str], expected: Any) -> None:
    assert batch(*names, ask_alone=True) == expected


def test_an_unknown_tool_can_be_an_error_unless_an_earlier_call_decided() -> None:
    with pytest.raises(KeyError, match="nowhere"):
        batch("plain", "nowhere", terminate_on_unknown=True)

    assert batch("danger", "nowhere", terminate_on_unknown=True) == ([], [ASK, ASK])


def test_calls_are_open_once_each_and_without_a_result() -> None:
    messages = [
        Message("assistant", [call("1", "a"), call("2", "b"), call("1", "a"), call("", "c"), call("", "c")]),
        Message("tool", [Content.from_function_result("2", result="x")]),
    ]

    assert [one.name for one in open_calls(messages)] == ["a", "c", "c"]


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (plain, "plain"),
        ({"type": "function", "function": {"name": "f"}}, "f"),
        ({"type": "function", "name": "g"}, "g"),
        ({"type": "web_search", "name": "h"}, None),
        ({"type": "web_search"}, None),
        (object(), None),
    ],
)
def test_the_name_of_a_tool_is_the_one_that_a_model_calls_it_by(given: Any, name: str | None) -> None:
    assert tool_name(given) == name


def calling(**config: Any) -> Calling:
    return Calling(normalize_function_invocation_configuration(config), (), None, {})


async def test_a_call_that_is_cancelled_takes_the_others_along() -> None:
    started = asyncio.Event()
    cancelled = []

    @tool
    async def waits() -> str:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("waits")
            raise
        return "never"

    @tool
    async def interrupts() -> str:
        await started.wait()
        raise asyncio.CancelledError

    calls = [ToolCall(call("1", "waits")), ToolCall(call("2", "interrupts"))]

    with pytest.raises(asyncio.CancelledError):
        await run_batch(calls, Toolbox([waits, interrupts]), calling())

    assert cancelled == ["waits"]


async def test_a_batch_that_is_cancelled_takes_its_calls_along() -> None:
    started, ended = asyncio.Event(), []

    @tool
    async def waits(name: str) -> str:
        if name == "b":
            started.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.append(name)
        return "never"

    calls = [ToolCall(call(name, "waits", {"name": name})) for name in "ab"]
    running = asyncio.ensure_future(run_batch(calls, Toolbox([waits]), calling()))
    await started.wait()
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running

    assert ended == ["a", "b"]


async def test_calls_beyond_the_room_there_is_fail_without_being_run() -> None:
    hits = []

    @tool
    def hit(n: int) -> int:
        hits.append(n)
        return n

    calls = [ToolCall(call(str(n), "hit", {"n": n})) for n in range(3)]

    outcomes = await run_batch(calls, Toolbox([hit]), calling(), room=2)

    assert hits == [0, 1]
    assert [outcome.failed for outcome in outcomes] == [False, False, True]
