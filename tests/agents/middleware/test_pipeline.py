"""The chain around one call, and what a middleware is handed."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from agentbench.agents.middleware.contexts import AgentContext, CallNext, ChatContext, FunctionInvocationContext
from agentbench.agents.middleware.sorting import run_pipeline
from agentbench.exceptions import MiddlewareTermination


class Trace:
    """Middleware and an innermost call that write down when they run."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.context = ChatContext("client")

    def around(self, name: str) -> Callable[..., Awaitable[None]]:
        async def middleware(context: ChatContext, call_next: CallNext) -> None:
            self.seen.append(f"{name}>")
            await call_next()
            self.seen.append(f"<{name}")

        return middleware

    async def innermost(self) -> None:
        self.seen.append("call")
        self.context.result = f"answer {self.seen.count('call')}"

    async def run(self, *middleware: Callable[..., Any]) -> bool:
        return await run_pipeline(middleware, self.context, self.innermost)


async def test_a_plain_function_may_set_the_result_or_hand_on() -> None:
    trace = Trace()

    def hands_on(context: ChatContext, call_next: CallNext) -> Awaitable[None]:
        trace.seen.append("plain")
        return call_next()

    def sets(context: ChatContext, call_next: CallNext) -> None:
        context.result = "set"

    await trace.run(hands_on, sets)
    assert (trace.seen, trace.context.result) == (["plain"], "set")


# ---------------------------------------------------------------------------------------------------------- termination


def ending(result: Any = None, *, set_before: Any = None) -> Callable[..., Awaitable[None]]:
    async def end(context: ChatContext, call_next: CallNext) -> None:
        if set_before is not None:
            context.result = set_before
        raise MiddlewareTermination(result=result)

    return end


async def test_a_termination_skips_what_outer_middleware_does_after_call_next_except_finally() -> None:
    trace = Trace()

    async def careful(context: ChatContext, call_next: CallNext) -> None:
        try:
            await call_next()
        finally:
            trace.seen.append("finally")

    assert await trace.run(trace.around("1"), careful, ending("x"), trace.around("2")) is True
    assert trace.seen == ["1>", "finally"]


async def test_a_termination_after_the_call_keeps_the_result_of_the_call() -> None:
    trace = Trace()

    async def after(context: ChatContext, call_next: CallNext) -> None:
        await call_next()
        raise MiddlewareTermination(result="brought")

    assert await trace.run(after) is True
    assert trace.context.result == "answer 1"


async def test_an_outer_middleware_may_catch_a_termination_and_go_on() -> None:
    trace = Trace()

    async def catches(context: ChatContext, call_next: CallNext) -> None:
        try:
            await call_next()
        except MiddlewareTermination as end:
            context.result = f"caught {end.result}"

    assert await trace.run(catches, ending("x")) is False
    assert trace.context.result == "caught x"


@pytest.mark.parametrize("layers", [0, 2])
async def test_a_termination_that_the_call_itself_raises_is_an_ordinary_error(layers: int) -> None:
    trace = Trace()

    async def innermost() -> None:
        raise MiddlewareTermination(result="not a middleware")

    with pytest.raises(MiddlewareTermination):
        await run_pipeline([trace.around(str(i)) for i in range(layers)], trace.context, innermost)
    assert trace.context.result is None


async def test_a_middleware_may_end_what_the_call_wanted_to_end() -> None:
    trace = Trace()

    async def innermost() -> None:
        raise MiddlewareTermination(result="inner")

    async def ends_too(context: ChatContext, call_next: CallNext) -> None:
        try:
            await call_next()
        except MiddlewareTermination as error:
            raise MiddlewareTermination(result="outer") from error

    assert await run_pipeline([ends_too], trace.context, innermost) is True
    assert trace.context.result == "outer"


def test_none_stands_for_an_empty_value_in_every_context() -> None:
    nothing: Any = None
    hooks: Any = (print,)
    shared = {"trace": 1}
    agent = AgentContext(agent="a", messages=None, options=None, metadata=shared, kwargs=nothing)
    assert (agent.messages, agent.options, agent.kwargs) == ([], {}, {})
    assert agent.metadata is shared
    chat = ChatContext("client", None, None, stream_transform_hooks=hooks, stream_result_hooks=nothing)
    assert (chat.messages, chat.options) == ([], {})
    assert (chat.stream_transform_hooks, chat.stream_result_hooks) == ([print], [])
    function = FunctionInvocationContext("function", {}, metadata=nothing, kwargs=nothing)
    assert (function.metadata, function.kwargs) == ({}, {})


def test_a_context_shows_what_is_called_and_no_values() -> None:
    class Tool:
        name = "send_mail"

    context = FunctionInvocationContext(Tool(), {"to": "secret@example.com"}, kwargs={"token": "hidden"})
    assert repr(context) == "FunctionInvocationContext(send_mail(to), no result yet)"
    context.result = []
    assert repr(context) == "FunctionInvocationContext(send_mail(to), result=list)"
    assert repr(ChatContext(Tool(), [1])) == "ChatContext(client=Tool, messages=1, stream=False, no result yet)"
    assert repr(AgentContext(agent=Tool(), stream=True)) == (
        "AgentContext(agent='send_mail', messages=0, stream=True, no result yet)"
    )
