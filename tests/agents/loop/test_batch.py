"""Which calls are made, and what is done with each."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench.agents.loop.batch import Toolbox, plan_batch, run_batch
from agentbench.agents.loop.call import Calling, ToolCall
from agentbench.agents.loop.configuration import normalize_function_invocation_configuration
from agentbench.agents.tools.decorator import tool
from agentbench.agents.tools.function_tool import FunctionTool
from tests.agents.loop.scripts import call
from tests.parts.errors import raises


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


def test_an_unknown_tool_can_be_an_error_unless_an_earlier_call_decided() -> None:
    with raises(KeyError, "nowhere"):
        batch("plain", "nowhere", terminate_on_unknown=True)

    assert batch("danger", "nowhere", terminate_on_unknown=True) == ([], [ASK, ASK])


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
