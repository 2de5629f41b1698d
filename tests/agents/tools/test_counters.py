"""How often a tool was called, and how often it may be."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from agentbench.agents.middleware.contexts import FunctionInvocationContext
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import ToolException, UserInputRequiredException
from tests.parts.errors import raises


def fails() -> None:
    raise KeyError("k")


async def fails_slowly() -> None:
    await asyncio.sleep(0)
    raise KeyError("k")


async def counts(tool: FunctionTool, **options: Any) -> tuple[int, int]:
    with pytest.raises(KeyError):
        await tool.invoke(**options)
    return tool.invocation_count, tool.invocation_exception_count


async def test_a_tool_is_used_up_after_its_invocations() -> None:
    tool = FunctionTool(lambda: 1, name="once", max_invocations=1)
    await tool.invoke()
    with raises(ToolException, "once", "1", "max_invocations=1"):
        await tool.invoke()
    with raises(ToolException, "reset()"):
        tool()
    assert tool.invocation_count == 1


async def test_reset_begins_again() -> None:
    tool = FunctionTool(fails, max_invocations=1, max_invocation_exceptions=1)
    assert await counts(tool) == (1, 1)
    tool.reset()
    assert (tool.invocation_count, tool.invocation_exception_count) == (0, 0)
    assert await counts(tool) == (1, 1)


@pytest.mark.parametrize("func", [fails, fails_slowly])
async def test_exceptions_are_counted_and_limited(func: Any) -> None:
    tool = FunctionTool(func, max_invocation_exceptions=2)
    assert await counts(tool) == (1, 1)
    assert await counts(tool) == (2, 2)
    with raises(ToolException, "2", "max_invocation_exceptions=2"):
        await tool.invoke()
    assert tool.invocation_count == 2


async def test_exceptions_of_generators_are_counted() -> None:
    def yields() -> Any:
        yield 1
        raise KeyError

    assert await counts(FunctionTool(yields)) == (1, 1)


async def test_exceptions_of_direct_calls_are_counted() -> None:
    plain, slow = FunctionTool(fails), FunctionTool(fails_slowly)
    with pytest.raises(KeyError):
        plain()
    with pytest.raises(KeyError):
        await slow()
    assert (plain.invocation_exception_count, slow.invocation_exception_count) == (1, 1)


async def test_a_question_to_a_person_is_no_failure() -> None:
    def asks() -> None:
        raise UserInputRequiredException([])

    async def asks_slowly() -> None:
        raise UserInputRequiredException([])

    for tool in (FunctionTool(asks), FunctionTool(asks_slowly)):
        with pytest.raises(UserInputRequiredException):
            await tool.invoke()
        with pytest.raises(UserInputRequiredException):
            await _called(tool)
        assert (tool.invocation_count, tool.invocation_exception_count) == (2, 0)


async def _called(tool: FunctionTool) -> Any:
    result = tool()
    return await result


async def test_a_cancelled_call_is_no_failure() -> None:
    tool = FunctionTool(asyncio.Event().wait, name="waits", input_model={})
    task = asyncio.ensure_future(tool.invoke())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (tool.invocation_count, tool.invocation_exception_count) == (1, 0)


def test_threads_never_get_past_a_limit() -> None:
    tool = FunctionTool(lambda: 1, max_invocations=50)

    def call(_: int) -> int:
        try:
            return int(tool())
        except ToolException:
            return 0

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(call, range(400))) == 50
    assert tool.invocation_count == 50


# -------------------------------------------------------------------------------------------------------------- per run


async def test_outside_of_a_run_its_limit_does_not_count() -> None:
    tool = FunctionTool(lambda: 1, max_invocations_per_run=1)
    await tool.invoke()
    await tool.invoke(context=FunctionInvocationContext(tool, {}))
    assert tool() == 1
