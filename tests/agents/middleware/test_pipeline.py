"""The chain around one call."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import pytest

from agentbench.agents.middleware.bases import CallNext
from agentbench.agents.middleware.contexts import ChatContext
from agentbench.agents.middleware.pipeline import run_pipeline, with_stream_hooks
from agentbench.exceptions import MiddlewareTermination
from agentbench.messages.stream import ResponseStream
from tests.ids import steady


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


async def test_the_first_middleware_is_the_outermost() -> None:
    trace = Trace()
    ended = await trace.run(trace.around("1"), trace.around("2"), trace.around("3"))
    assert trace.seen == ["1>", "2>", "3>", "call", "<3", "<2", "<1"]
    assert (ended, trace.context.result) == (False, "answer 1")


async def test_without_middleware_the_call_just_runs() -> None:
    trace = Trace()
    assert await trace.run() is False
    assert trace.seen == ["call"]


async def test_call_next_returns_nothing_and_the_outcome_stands_in_the_context() -> None:
    trace = Trace()
    returned: list[Any] = []

    async def looks(context: ChatContext, call_next: CallNext) -> None:
        returned.append(context.result)
        returned.append(await call_next())  # type: ignore[func-returns-value]
        returned.append(context.result)

    await trace.run(looks)
    assert returned == [None, None, "answer 1"]


async def test_a_result_set_after_the_call_replaces_its_result() -> None:
    trace = Trace()

    async def louder(context: ChatContext, call_next: CallNext) -> None:
        await call_next()
        context.result = context.result.upper()

    await trace.run(louder)
    assert trace.context.result == "ANSWER 1"


async def test_a_result_without_call_next_is_a_short_cut_and_outer_middleware_goes_on() -> None:
    trace = Trace()

    async def cached(context: ChatContext, call_next: CallNext) -> None:
        context.result = "cached"

    assert await trace.run(trace.around("1"), cached, trace.around("2")) is False
    assert trace.seen == ["1>", "<1"]
    assert trace.context.result == "cached"


async def test_neither_result_nor_call_next_leaves_no_result() -> None:
    trace = Trace()

    async def nothing(context: ChatContext, call_next: CallNext) -> None: ...

    assert await trace.run(nothing) is False
    assert trace.context.result is None


async def test_a_plain_function_may_set_the_result_or_hand_on() -> None:
    trace = Trace()

    def hands_on(context: ChatContext, call_next: CallNext) -> Awaitable[None]:
        trace.seen.append("plain")
        return call_next()

    def sets(context: ChatContext, call_next: CallNext) -> None:
        context.result = "set"

    await trace.run(hands_on, sets)
    assert (trace.seen, trace.context.result) == (["plain"], "set")


async def test_call_next_twice_runs_everything_inside_again() -> None:
    trace = Trace()

    async def again(context: ChatContext, call_next: CallNext) -> None:
        await call_next()
        await call_next()

    await trace.run(trace.around("1"), again, trace.around("2"))
    assert trace.seen == ["1>", "2>", "call", "<2", "2>", "call", "<2", "<1"]
    assert trace.context.result == "answer 2"


async def test_a_middleware_may_try_again_after_failures() -> None:
    context = ChatContext("client")
    failures = [RuntimeError("first"), RuntimeError("second")]

    async def innermost() -> None:
        if failures:
            raise failures.pop()
        context.result = "at last"

    async def retry(context: ChatContext, call_next: CallNext) -> None:
        while context.result is None:
            with contextlib.suppress(RuntimeError):
                await call_next()

    await run_pipeline([retry], context, innermost)
    assert context.result == "at last"


async def test_any_other_error_propagates() -> None:
    trace = Trace()

    async def broken(context: ChatContext, call_next: CallNext) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await trace.run(trace.around("1"), broken)
    assert trace.seen == ["1>"]


async def test_metadata_is_shared_between_the_middleware_of_a_call() -> None:
    trace = Trace()

    async def writes(context: ChatContext, call_next: CallNext) -> None:
        context.metadata["token"] = 1
        await call_next()

    async def reads(context: ChatContext, call_next: CallNext) -> None:
        context.result = context.metadata["token"]

    await trace.run(writes, reads)
    assert trace.context.result == 1


# ---------------------------------------------------------------------------------------------------------- termination


def ending(result: Any = None, *, set_before: Any = None) -> Callable[..., Awaitable[None]]:
    async def end(context: ChatContext, call_next: CallNext) -> None:
        if set_before is not None:
            context.result = set_before
        raise MiddlewareTermination(result=result)

    return end


async def test_a_termination_brings_its_result() -> None:
    trace = Trace()
    assert await trace.run(ending("brought")) is True
    assert trace.context.result == "brought"


async def test_the_result_in_the_context_wins_over_the_one_that_a_termination_brings() -> None:
    trace = Trace()
    assert await trace.run(ending("brought", set_before="there")) is True
    assert trace.context.result == "there"


async def test_a_termination_may_leave_no_result() -> None:
    trace = Trace()
    assert await trace.run(ending()) is True
    assert trace.context.result is None


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


@pytest.mark.parametrize("layers", [0, 1, 2])
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


def test_a_termination_without_words_has_the_usual_ones_and_logs_nothing(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(0, logger="agentbench"):
        assert MiddlewareTermination().args == ("Middleware terminated execution.",)
    assert caplog.records == []


# -------------------------------------------------------------------------------------------------------------- streams


async def numbers() -> AsyncIterator[int]:
    for number in (1, 2, 3):
        yield number


async def test_the_hooks_of_a_context_are_put_on_the_stream() -> None:
    context, seen = ChatContext("client", stream=True), []
    context.stream_transform_hooks.append(lambda update: update * 10)
    context.stream_result_hooks.append(lambda total: total + 1)
    context.stream_cleanup_hooks.append(lambda: seen.append("cleaned up"))
    stream: Any = ResponseStream(numbers(), finalizer=sum)
    hooked = with_stream_hooks(stream, context)
    assert hooked is stream
    assert [update async for update in hooked] == [10, 20, 30]
    assert await hooked.get_final_response() == 7
    assert seen == ["cleaned up"]


async def test_hooks_run_in_the_order_in_which_they_were_added() -> None:
    context = ChatContext("client", stream=True)
    context.stream_transform_hooks += [lambda update: update + 1, lambda update: update * 2]
    hooked = with_stream_hooks(ResponseStream(numbers(), finalizer=list), context)
    assert [update async for update in hooked] == [4, 6, 8]


@pytest.mark.parametrize("result", ["text", None, [1]], ids=steady)
def test_a_result_that_is_no_stream_is_refused(result: object) -> None:
    with pytest.raises(ValueError, match=r"Expected a ResponseStream: when context\.stream is true"):
        with_stream_hooks(result, ChatContext("client", stream=True))
