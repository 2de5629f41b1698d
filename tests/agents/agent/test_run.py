"""What a run asks of the model, who takes part in which order, what it answers, and how it fails."""

from __future__ import annotations

import asyncio
from copy import copy
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentResponse,
    AgentSession,
    ChatResponse,
    Content,
    ContextProvider,
    FunctionInvocationContext,
    Message,
    RawAgent,
)
from agentbench.exceptions import AgentInvalidResponseException
from tests.agents.agent_runs import BOTH, Notes, answer, numbered
from tests.agents.fake_clients import Model, call
from tests.parts.errors import raises

# ------------------------------------------------------------------------------------------------------ what is asked


@pytest.mark.parametrize(
    ("messages", "texts"),
    [(None, []), ("hi", ["hi"]), (["a", Message("user", "b"), Content.from_text("c")], ["a", "b", "c"])],
)
async def test_a_run_takes_messages_in_any_form(messages: Any, texts: list[str]) -> None:
    client = Model()
    response = await answer(Agent(client), messages, stream=True)

    assert client.asked[0].texts == texts
    assert response.text == "answer 1"


async def test_instructions_travel_in_the_options() -> None:
    client = Model()
    notes = [Notes("p1", [], instructions="i1"), Notes("p2", [], instructions=["i2", "i3"])]
    agent = Agent(client, "base", context_providers=notes)
    await agent.run("q")
    await agent.run("q", options={"instructions": "now"})

    assert [asked.options["instructions"] for asked in client.asked] == ["base\ni1\ni2\ni3", "base\ni1\ni2\ni3\nnow"]
    assert client.asked[0].roles == ["user"]


async def test_providers_run_in_order_and_in_reverse_and_see_what_came_before() -> None:
    log: list[str] = []
    first, second = Notes("p1", log, messages=["m1"]), Notes("p2", log, messages=["m2"])
    client = Model()
    await answer(Agent(client, context_providers=[first, second]), stream=True)

    assert log == ["before p1", "before p2", "after p2: answer 1", "after p1: answer 1"]
    assert second.seen == ["m1"]
    assert client.asked[0].texts == ["m1", "m2", "q"]


async def test_options_of_the_run_go_over_the_agents_and_none_of_both_is_changed() -> None:
    client = Model()
    defaults, given = (
        {"temperature": 0.1, "metadata": {"a": 1}},
        {"temperature": 0.9, "metadata": {"b": 2}, "seed": None},
    )
    agent = Agent(client, default_options=defaults)
    await agent.run("q", options=given)

    assert client.asked[0].options == {"tool_choice": "auto", "temperature": 0.9, "metadata": {"a": 1, "b": 2}}
    assert agent.default_options == {"tool_choice": "auto", "temperature": 0.1, "metadata": {"a": 1}, "tools": []}
    assert given == {"temperature": 0.9, "metadata": {"b": 2}, "seed": None}


async def test_a_client_may_change_the_options_it_gets() -> None:
    class Changing(Model):
        async def _inner_get_response(self, *, options: Any, **given: Any) -> Any:
            options["stop"].append("b")
            options["metadata"]["a"].append(2)
            return await super()._inner_get_response(options=options, **given)

    defaults, given = {"metadata": {"a": [1]}}, {"stop": ["a"]}
    await Agent(Changing(), default_options=defaults).run("q", options=given)

    assert (defaults, given) == ({"metadata": {"a": [1]}}, {"stop": ["a"]})


async def test_the_clients_model_is_the_default_and_an_option_beats_it() -> None:
    client = Model(model="small")

    assert Agent(client).default_options["model"] == "small"
    assert Agent(client, default_options={"model": "big"}).default_options["model"] == "big"
    assert "model" not in Agent(Model()).default_options


# ------------------------------------------------------------------------------------------------------------ tools


async def test_tools_come_from_agent_providers_and_run() -> None:
    client = Model()
    agent = Agent(client, tools=[numbered(1, "a")], context_providers=[Notes("p", [], tools=[numbered(2, "b")])])
    await agent.run("q", tools=numbered(3, "c"), options={"tools": [numbered(4, "d")]})

    assert [each.name for each in client.asked[0].options["tools"]] == ["a", "b", "c", "d"]


async def test_a_tool_of_the_agent_and_of_providers_is_one_tool() -> None:
    client, one = Model(call("n"), "done"), numbered(1)
    providers = [Notes("p", [], tools=[one]), Notes("q", [], tools=[one])]
    agent = Agent(client, tools=[one], context_providers=providers)

    assert (await agent.run("q", tools=one)).text == "done"
    assert client.asked[0].options["tools"] == [one]
    providers[1].adds["tools"] = [numbered(2)]
    with raises(ValueError, "'n'"):
        await agent.run("q")
    asking = copy(one)
    asking.approval_mode = "always_require"
    with raises(ValueError, "'n'"):
        Agent(client, tools=[one, asking])


async def test_the_agents_own_loop_configuration_counts() -> None:
    client = Model(call("n", "1"), call("n", "2"), call("n", "3"))
    agent = Agent(client, tools=[numbered(1)], function_invocation_configuration={"max_iterations": 1})
    await agent.run("q")

    assert len(client.asked) == 2
    assert client.asked[1].options["tool_choice"] == "none"


class Server:
    """A tool that stands for a server."""

    name, description = "files", "Reads files."

    def __init__(self) -> None:
        self.is_connected, self.log = False, ["made"]
        self.functions = [numbered(1, "read"), numbered(2, "write")]
        self.lets_go: asyncio.Event | None = None

    async def connect(self) -> None:
        if self.lets_go is not None:
            self.log.append("begin")
            await self.lets_go.wait()
        self.is_connected = True
        self.log.append("connect")

    async def close(self) -> None:
        self.is_connected = False
        self.log.append("close")


async def test_a_server_of_tools_is_connected_at_first_use_and_closed_with_the_agent() -> None:
    client, server, late = Model(), Server(), Server()
    late.functions = [numbered(3, "late")]
    agent = Agent(client, tools=[server, numbered(0, "own")])

    assert (agent.mcp_tools, server.log) == ([server], ["made"])
    assert [each.name for each in agent.default_options["tools"]] == ["own"]
    await agent.run("q", tools=[late])
    await agent.run("q")
    assert [each.name for each in client.asked[0].options["tools"]] == ["own", "read", "write", "late"]
    assert server.log == ["made", "connect"]

    await agent.close()
    assert (server.log[-1], late.log[-1]) == ("close", "close")
    await agent.run("q")
    assert server.log[-1] == "connect"


async def settled() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_runs_that_need_a_server_at_once_connect_it_once() -> None:
    client, server = Model(), Server()
    agents = [Agent(client, tools=[server]) for _ in range(2)]
    server.lets_go = asyncio.Event()

    tasks = [asyncio.create_task(agents[number % 2].run("q")) for number in range(4)]
    await settled()
    tasks[0].cancel()  # the next one takes over
    await settled()
    server.lets_go.set()
    answers = await asyncio.gather(*tasks, return_exceptions=True)

    assert server.log == ["made", "begin", "begin", "connect"]
    assert [isinstance(each, asyncio.CancelledError) for each in answers] == [True, False, False, False]
    assert all(len(each.options["tools"]) == 2 for each in client.asked)
    assert sorted(len(agent.connections) for agent in agents) == [0, 1]


# -------------------------------------------------------------------------------------------------------- raw agents


async def test_a_raw_agent_applies_no_middleware_of_its_own_and_takes_none() -> None:
    nothing: Any = object()
    agent = RawAgent(Model(), middleware=[nothing])

    assert (await agent.run("q")).text == "answer 1"
    with raises(TypeError, "RawAgent.run()"):
        await agent.run("q", middleware=[])


async def test_runtime_arguments_reach_the_tools_and_those_in_the_options_win() -> None:
    seen: dict[str, Any] = {}

    def peek(context: FunctionInvocationContext) -> str:
        seen.update(context.kwargs)
        return "ok"

    client = Model(call("peek"), "done")
    await Agent(client, tools=[peek]).run(
        "q",
        function_invocation_kwargs={"a": 1, "b": 1},
        options={"additional_function_arguments": {"b": 2}},
        session=(session := AgentSession()),
    )

    assert seen == {"a": 1, "b": 2, "session": session}


# ------------------------------------------------------------------------------------------------------ what comes back


async def test_the_response_has_everything_of_the_answer_and_the_agents_id() -> None:
    given: Any = ChatResponse(text="hi", response_id="r", finish_reason="stop", usage_details={"input_token_count": 3})
    response = await Agent(Model(given), name="a", id="a1").run("q")

    assert (response.text, response.response_id, response.agent_id) == ("hi", "r", "a1")
    assert (response.finish_reason, response.usage_details) == ("stop", {"input_token_count": 3})
    assert isinstance(response.raw_representation, ChatResponse)


async def test_updates_are_signed_and_carry_the_agents_id() -> None:
    agent = Agent(Model("one two"), id="a1")
    updates = [update async for update in agent.run("q", stream=True)]

    assert [update.text for update in updates] == ["one ", "two"]
    assert {(update.author_name, update.agent_id) for update in updates} == {("UnnamedAgent", "a1")}


async def test_an_author_that_is_there_stays_and_the_clients_answer_is_not_changed() -> None:
    given: Any = ChatResponse(messages=[Message("assistant", "a", author_name="x"), Message("assistant", "b")])
    response = await Agent(Model(given), name="me").run("q")

    assert [message.author_name for message in response.messages] == ["x", "me"]
    assert [message.author_name for message in given.messages] == ["x", None]
    assert response.messages is not given.messages


async def test_a_signed_message_is_in_all_else_as_the_client_gave_it() -> None:
    given = Message(
        "assistant",
        "a",
        message_id="m",
        delta=True,
        timestamp=1.5,
        usages={"total_token_count": 1},
        additional_properties={"k": 1},
        raw_representation=object(),
    )
    [signed] = (await Agent(Model([given]), name="me").run("q")).messages

    differing = {name for name in Message.__slots__ if getattr(signed, name) != getattr(given, name)}
    assert differing == {"author_name"}
    assert signed.contents is not given.contents
    assert signed.additional_properties is not given.additional_properties


@pytest.mark.parametrize("where", ["agent", "run", "client"])
async def test_the_value_is_read_in_the_form_of_agent_run_or_client(where: str) -> None:
    schema = {"type": "object"}
    given: Any = ChatResponse(text='{"a": 1}', response_format=schema if where == "client" else None)
    defaults = {"response_format": schema} if where == "agent" else {}
    options = {"response_format": schema} if where == "run" else {}
    response = await answer(Agent(Model(given), default_options=defaults), stream=True, options=options)

    assert response.value == {"a": 1}


class Broken:
    def __init__(self, gives: Any) -> None:
        self.gives = gives

    def get_response(self, messages: Any, **given: Any) -> Any:
        return asyncio.sleep(0, self.gives)


@pytest.mark.parametrize("gives", [None, AgentResponse(text="x")])
async def test_a_client_that_answers_with_no_response_is_named(gives: Any) -> None:
    with raises(AgentInvalidResponseException, "Broken"):
        await Agent(Broken(gives)).run("q")


# -------------------------------------------------------------------------------------------------------------- failing


@BOTH
async def test_when_the_client_fails_providers_get_the_error_in_reverse_order(stream: bool) -> None:
    log: list[str] = []
    agent = Agent(Model(ValueError("no")), context_providers=[Notes("p1", log), Notes("p2", log)])

    with raises(ValueError, "no"):
        await answer(agent, stream=stream)
    assert log == ["before p1", "before p2", "error p2: no", "error p1: no"]


@BOTH
async def test_a_provider_that_fails_before_the_run_does_not_get_its_own_error(stream: bool) -> None:
    log: list[str] = []
    client = Model()
    agent = Agent(client, context_providers=[Notes("p1", log), Notes("p2", log, fails=True), Notes("p3", log)])

    with raises(ValueError, "before"):
        await answer(agent, stream=stream)
    assert log == ["before p1", "before p2", "error p1: before"]
    assert client.asked == []


async def test_a_failing_on_error_is_logged_and_the_runs_error_is_raised(
    caplog: pytest.LogCaptureFixture,
) -> None:
    class Bad(ContextProvider):
        async def on_error(self, **given: Any) -> None:
            raise KeyError("secret")

    log: list[str] = []
    agent = Agent(Model(ValueError("no")), context_providers=[Notes("p1", log), Bad("bad")])

    with raises(ValueError, "no"):
        await agent.run("q")
    assert log == ["before p1", "error p1: no"]
    [record] = [each for each in caplog.records if each.levelname == "ERROR"]
    assert "KeyError" in record.getMessage()
    assert "secret" not in record.getMessage()


async def test_a_forgotten_await_is_reported_once_by_a_name_that_users_know() -> None:
    run: Any = Agent(Model()).run
    with pytest.warns(RuntimeWarning) as caught:
        run("q")

    assert [str(each.message) for each in caught] == ["coroutine 'Agent.run' was never awaited"]
