"""Middleware of all three kinds around the runs of an agent: order, short cuts, termination, streams."""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentContext,
    AgentMiddleware,
    AgentMiddlewareLayer,
    AgentResponse,
    AgentResponseUpdate,
    AgentSession,
    ChatContext,
    ChatMiddleware,
    ChatResponse,
    ContextProvider,
    MiddlewareException,
    MiddlewareTermination,
    RawAgent,
    ResponseStream,
    agent_middleware,
    chat_middleware,
    function_middleware,
)
from tests.agents.agent_runs import BOTH, answer, numbered
from tests.agents.fake_clients import Model, call
from tests.parts.errors import raises


def around(log: list[str], name: str) -> Any:
    @agent_middleware
    async def note(context: Any, call_next: Any) -> None:
        log.append(f"{name}>")
        await call_next()
        log.append(f"<{name}")

    return note


def before(log: list[str], name: str, kind: Callable[[Any], Any]) -> Any:
    @kind
    async def note(context: Any, call_next: Any) -> None:
        log.append(name)
        await call_next()

    return note


# --------------------------------------------------------------------------------------------------------------- order


@BOTH
async def test_agent_middleware_is_outermost_and_the_others_run_around_each_call(stream: bool) -> None:
    log: list[str] = []

    def noted(name: str, reply: Any) -> Any:
        def give(_: Any) -> Any:
            log.append(name)
            return reply

        return give

    client = Model(
        noted("chat 1", call("n")),
        noted("chat 2", "done"),
        middleware=[before(log, "client", chat_middleware), before(log, "client", function_middleware)],
    )
    own = [around(log, "A1"), before(log, "agent", chat_middleware), before(log, "agent", function_middleware)]
    agent = Agent(client, tools=[numbered(7)], middleware=[*own, around(log, "A2")])
    runs = [around(log, "Run"), before(log, "run", chat_middleware), before(log, "run", function_middleware)]
    await answer(agent, stream=stream, middleware=runs)

    opened = "A1> A2> Run>" if not stream else "A1> A2> Run> <Run <A2 <A1"
    closed = " <Run <A2 <A1" if not stream else ""
    assert " ".join(log) == f"{opened} client agent run chat 1 client agent run client agent run chat 2{closed}"


async def test_middleware_of_providers_is_inside_of_that_of_the_run() -> None:
    log: list[str] = []

    class Adds(ContextProvider):
        async def before_run(self, *, context: Any, **more: Any) -> None:
            context.extend_middleware(self, before(log, "provider", chat_middleware))

    agent = Agent(Model(), context_providers=[Adds("adds")], middleware=before(log, "agent", chat_middleware))
    await agent.run("q", middleware=[before(log, "run", chat_middleware)])

    assert log == ["agent", "run", "provider"]


async def test_an_object_of_two_kinds_runs_in_both_places() -> None:
    log: list[str] = []

    class Both(AgentMiddleware, ChatMiddleware):
        async def process(self, context: Any, call_next: Any) -> None:
            log.append(type(context).__name__)
            await call_next()

    await Agent(Model(), middleware=[Both()]).run("q")

    assert log == ["AgentContext", "ChatContext"]


# ------------------------------------------------------------------------------------------------ what it sees and does


async def test_the_context_holds_the_arguments_of_the_run() -> None:
    seen: list[AgentContext] = []

    @agent_middleware
    async def look(context: AgentContext, call_next: Any) -> None:
        seen.append(context)
        await call_next()

    session = AgentSession()
    agent = Agent(Model(), middleware=[look])
    options = {"temperature": 0.5}
    await agent.run("q", session=session, options=options, client_kwargs={"x": 1})
    [context] = seen

    assert (context.agent, context.session, context.stream) == (agent, session, False)
    assert [message.text for message in context.messages] == ["q"]
    assert (context.options, context.client_kwargs, context.kwargs, context.metadata) == (options, {"x": 1}, {}, {})
    assert context.options is not options
    assert isinstance(context.result, AgentResponse)


async def test_what_agent_middleware_changes_is_used_downstream() -> None:
    other = AgentSession()

    async def change(context: AgentContext, call_next: Any) -> None:
        context.messages = [*context.messages, "and this"]
        context.options["seed"] = 3
        context.tools = [numbered(1)]
        context.session = other
        await call_next()

    client = Model()
    await answer(Agent(client, middleware=[change]), stream=True)

    assert client.asked[0].texts == ["q", "and this"]
    assert client.asked[0].options["seed"] == 3
    assert [each.name for each in client.asked[0].options["tools"]] == ["n"]
    assert "in_memory" in other.state


async def test_a_result_may_be_replaced_and_a_run_done_again() -> None:
    async def again(context: AgentContext, call_next: Any) -> None:
        await call_next()
        first = context.result.text
        await call_next()
        context.result = AgentResponse(text=f"{first}, {context.result.text}")

    assert (await Agent(Model(), middleware=[again]).run("q")).text == "answer 1, answer 2"


async def test_a_result_without_going_on_is_a_short_cut_that_outer_middleware_sees() -> None:
    log: list[str] = []

    async def known(context: AgentContext, call_next: Any) -> None:
        context.result = AgentResponse(text="known")

    client = Model()
    response = await Agent(client, middleware=[around(log, "outer"), known, around(log, "inner")]).run("q")

    assert (response.text, client.asked, log) == ("known", [], ["outer>", "<outer"])


async def test_no_result_and_no_going_on_is_none_or_an_empty_stream() -> None:
    async def nothing(context: AgentContext, call_next: Any) -> None: ...

    agent = Agent(Model(), middleware=[nothing], raise_on_user_input=True)
    stream = agent.run("q", stream=True)

    assert await agent.run("q") is None
    assert [update async for update in stream] == []
    assert (await stream.get_final_response()).messages == []


# --------------------------------------------------------------------------------------------------------- termination


@pytest.mark.parametrize("sets_result", [False, True])
async def test_termination_ends_the_run_with_its_result(sets_result: bool, caplog: pytest.LogCaptureFixture) -> None:
    log: list[str] = []

    async def stop(context: AgentContext, call_next: Any) -> None:
        if sets_result:
            context.result = AgentResponse(text="set")
        raise MiddlewareTermination(result=AgentResponse(text="tr"))

    with caplog.at_level(logging.DEBUG, "agentbench"):
        response = await Agent(Model(), middleware=[around(log, "outer"), stop]).run("q")

    assert response.text == ("set" if sets_result else "tr")
    assert log == ["outer>"]
    assert caplog.records == []


@BOTH
async def test_agent_and_chat_middleware_that_fail_fail_the_run(stream: bool) -> None:
    @agent_middleware
    async def bad_run(context: Any, call_next: Any) -> None:
        raise KeyError("run")

    @chat_middleware
    async def bad_call(context: Any, call_next: Any) -> None:
        raise KeyError("call")

    for bad in (bad_run, bad_call):
        with pytest.raises(KeyError):
            await answer(Agent(Model(), middleware=[bad]), stream=stream)


async def test_chat_middleware_may_answer_from_a_cache() -> None:
    cache: dict[str, ChatResponse[Any]] = {}

    async def cached(context: ChatContext, call_next: Any) -> None:
        key = context.messages[-1].text
        if key in cache:
            context.result = cache[key]
        else:
            await call_next()
            cache[key] = context.result

    client = Model()
    one, two = Agent(client, name="one", middleware=[cached]), Agent(client, name="two", middleware=[cached])
    responses = [await one.run("q"), await two.run("q")]

    assert len(client.asked) == 1
    assert [each.text for each in responses] == ["answer 1", "answer 1"]
    assert [each.messages[0].author_name for each in responses] == ["one", "two"]


# ------------------------------------------------------------------------------------------------------------- streams


async def test_hooks_of_a_run_see_updates_and_response_of_the_agent() -> None:
    log: list[str] = []

    async def watch(context: AgentContext, call_next: Any) -> None:
        context.stream_transform_hooks.append(lambda update: log.append(update.text))
        context.stream_result_hooks.append(lambda response: AgentResponse(text=response.text + "!"))
        context.stream_cleanup_hooks.append(lambda: log.append("cleaned"))
        await call_next()

    stream = Agent(Model("one two"), middleware=[watch]).run("q", stream=True)
    final = await stream.get_final_response()

    assert log == ["one ", "two", "cleaned"]
    assert final.text == "one two!"


async def test_a_stream_may_be_put_in_the_place_of_the_run() -> None:
    async def other(context: AgentContext, call_next: Any) -> None:
        async def updates() -> Any:
            yield AgentResponseUpdate(text="else")

        context.result = ResponseStream(updates(), finalizer=AgentResponse.from_updates)

    stream = Agent(Model(), middleware=[other]).run("q", stream=True)

    assert [update.text async for update in stream] == ["else"]
    assert (await stream.get_final_response()).text == "else"


async def test_a_response_in_the_place_of_a_stream_is_refused() -> None:
    async def wrong(context: AgentContext, call_next: Any) -> None:
        context.result = AgentResponse(text="x")

    with raises(ValueError, "ResponseStream"):
        await answer(Agent(Model(), middleware=[wrong]), stream=True)


async def test_middleware_of_a_stream_begins_with_the_first_pull() -> None:
    log: list[str] = []
    stream = Agent(Model(), middleware=[around(log, "m")]).run("q", stream=True)

    assert log == []
    await stream.get_final_response()
    assert log == ["m>", "<m"]


# ------------------------------------------------------------------------------------------------------ what is refused


class Unsorted:
    async def process(self, context: Any, call_next: Any) -> None: ...


@pytest.mark.parametrize("junk", [lambda context, call_next: None, Unsorted(), ChatMiddleware])
def test_what_is_no_middleware_is_refused_at_once(junk: Any) -> None:
    with pytest.raises(MiddlewareException):
        Agent(Model(), middleware=[junk])
    with pytest.raises(MiddlewareException):
        _ = Agent(Model()).run("q", middleware=[junk])


async def test_a_provider_cannot_add_agent_middleware() -> None:
    class Adds(ContextProvider):
        async def before_run(self, *, context: Any, **more: Any) -> None:
            context.extend_middleware(self, around([], "late"))

    with pytest.raises(MiddlewareException):
        await Agent(Model(), context_providers=[Adds("adds")]).run("q")


# ------------------------------------------------------------------------------------------------- over other classes


class Elsewhere:
    """An agent of another library, whose run takes little."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.given: list[Any] = []

    def run(self, messages: Any, *, stream: bool = False, session: Any = None, **more: Any) -> Any:
        self.given.append(more)
        if stream:
            return self._updates(messages)
        return self._answer(messages)

    async def _answer(self, messages: Any) -> AgentResponse[Any]:
        return AgentResponse(text=f"{self.name}: {messages[-1].text}")

    async def _updates(self, messages: Any) -> Any:
        yield AgentResponseUpdate(text=f"{self.name}: ")
        yield AgentResponseUpdate(text=messages[-1].text)


class Layered(AgentMiddlewareLayer, Elsewhere):
    pass


@BOTH
async def test_the_layer_works_around_any_class_with_a_run(stream: bool) -> None:
    log: list[str] = []
    agent = Layered("there", middleware=[around(log, "m")])
    response = await answer(agent, stream=stream, options={"a": 1}, own="kept")

    assert response.text == "there: q"
    assert log == ["m>", "<m"]
    assert agent.given == [{"options": {"a": 1}, "own": "kept"}]


async def test_the_layer_over_a_raw_agent_hands_chat_middleware_to_the_client() -> None:
    class Own(AgentMiddlewareLayer, RawAgent): ...

    log: list[str] = []
    agent = Own(Model(), middleware=[around(log, "run"), before(log, "call", chat_middleware)])

    assert (await agent.run("q")).text == "answer 1"
    assert log == ["run>", "call", "<run"]


async def test_the_layer_may_stand_before_an_agent_too() -> None:
    class Own(AgentMiddlewareLayer, Agent): ...

    log: list[str] = []
    agent = Own(Model(), "be brief", middleware=[around(log, "m")])

    assert (await agent.run("q", middleware=[around(log, "n")])).text == "answer 1"
    assert log == ["m>", "n>", "<n", "<m"]
