"""Clients under a limiter: what takes a place, for how long, and what is sent again."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from typing import Any

import pytest

from agentbench import ChatResponseUpdate, tool
from agentbench._call_limiter import CallLimiter, in_force
from agentbench.agents.model.client import BaseChatClient
from agentbench.agents.model.layers import ChatMiddlewareLayer, FunctionInvocationLayer
from agentbench.agents.model.settings import service_key
from agentbench.exceptions import ChatClientException
from tests.agents.loop.scripts import MODES, Script, ask, call, says

both_ways = pytest.mark.parametrize("mode", MODES)


@pytest.fixture
def limiter() -> Iterator[CallLimiter]:
    made = CallLimiter(limits={"Script": 1})
    token = in_force.set(made)
    yield made
    in_force.reset(token)


def rejection() -> ChatClientException:
    error = ChatClientException("Too many requests.")
    error.status_code, error.retry_after, error.is_retryable = 429, 0, True
    return error


def updates(*texts: Any) -> list[Any]:
    return [ChatResponseUpdate(contents=[text], role="assistant") for text in texts]


def test_equal_clients_are_one_service() -> None:
    class Served(Script):
        def service_url(self) -> str:
            return "http://localhost:1/v1"

    first, second = Served(), Served()
    first.model, second.model = "a", "b"  # type: ignore[attr-defined]

    assert service_key(first) == "http://localhost:1/v1 a" != service_key(second)
    assert service_key(Script()) == service_key(Script()) == "Script"


@both_ways
async def test_every_call_of_a_model_takes_a_place_but_its_tools_do_not(mode: str, limiter: CallLimiter) -> None:
    places = []

    @tool
    def act() -> str:
        places.append(limiter.services["Script"].in_flight)
        return "done"

    client = Script(says(call("1", "act")), rejection(), rejection(), says("end"))
    response = await ask(client, options={"tools": [act]}, mode=mode)

    assert response.text == "end"
    assert places == [0]
    assert (limiter.calls, limiter.rejected, limiter.services["Script"].in_flight) == (4, 2, 0)
    assert [len(seen) for seen in client.seen] == [1, 3, 3, 3]


@both_ways
@pytest.mark.parametrize(
    "order", [(ChatMiddlewareLayer, FunctionInvocationLayer), (FunctionInvocationLayer, ChatMiddlewareLayer)]
)
async def test_layers_over_another_client_take_one_place(mode: str, order: Any, limiter: CallLimiter) -> None:
    ran = []

    @tool
    def act() -> str:
        ran.append(limiter.services["Stack"].in_flight)
        return "done"

    class Plain:
        def __init__(self) -> None:
            self.inner = Script(says(call("1", "act")), rejection(), says("end"), function_invocation_configuration={})
            self.inner.FUNCTION_INVOCATION_ENABLED = False  # type: ignore[misc]

        def get_response(self, messages: Any, *, stream: bool = False, **keywords: Any) -> Any:
            return self.inner.get_response(messages, stream=stream, **keywords)

    stack: Any = type("Stack", (*order, Plain), {})()
    limiter.set_limit("Stack", 1)
    response = await ask(stack, options={"tools": [act]}, mode=mode)

    assert response.text == "end"
    assert ran == [0]


async def test_a_stream_keeps_its_place_until_it_ends(limiter: CallLimiter) -> None:
    client = Script(updates("a", "b"), says("next"))
    stream = client.get_response("q", stream=True)
    read = [(await anext(stream)).text]
    waiting = asyncio.ensure_future(client.get_response("q"))
    await asyncio.sleep(0.01)

    assert (len(client.seen), waiting.done()) == (1, False)
    read += [update.text async for update in stream]
    assert read == ["a", "b"]
    assert (await stream.get_final_response()).text == "ab"
    assert (await waiting).text == "next"


@pytest.mark.parametrize("how", ["closed", "failed", "cancelled", "abandoned"])
async def test_a_stream_that_does_not_end_frees_its_place(how: str, limiter: CallLimiter) -> None:
    class Endless(Script):
        async def _updates(self, updates: Any) -> Any:
            for update in updates:
                yield update
            if how == "failed":
                raise rejection()
            await asyncio.Event().wait()

    limiter.set_limit("Endless", 1)
    client = Endless(updates("a"), says("next"))
    stream = client.get_response("q", stream=True)
    await anext(stream)
    assert limiter.services["Endless"].in_flight == 1
    if how == "closed":
        await stream.aclose()
    elif how == "failed":
        with pytest.raises(ChatClientException):
            await anext(stream)
    elif how == "cancelled":
        reading = asyncio.ensure_future(anext(stream))
        await asyncio.sleep(0)
        reading.cancel()
        with pytest.raises(asyncio.CancelledError):
            await reading
    else:
        del stream
        gc.collect()

    assert (await client.get_response("q")).text == "next"
    assert limiter.services["Endless"].in_flight == 0
    assert len(client.seen) == 2  # what was read already is not sent again


@both_ways
async def test_without_a_limiter_nothing_is_sent_again(mode: str) -> None:
    client = Script(rejection(), says("end"))
    with pytest.raises(ChatClientException):
        await ask(client, mode=mode)

    assert len(client.seen) == 1


async def test_a_client_made_of_another_one_waits_for_both(limiter: CallLimiter) -> None:
    inner = Script(rejection(), says("end"))

    class Outer(BaseChatClient[Any]):
        async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **_: Any) -> Any:
            return await inner.get_response(messages)

    assert (await Outer().get_response("q")).text == "end"
    assert {key: service.calls for key, service in limiter.services.items()} == {"Script": 2, "Outer": 1}
