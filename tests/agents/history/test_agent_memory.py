"""What an agent remembers, where, and what it keeps of runs that did not come to their end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentResponse,
    AgentSession,
    ChatResponse,
    ChatResponseUpdate,
    Content,
    ContextProvider,
    HistoryProvider,
    InMemoryHistoryProvider,
    Message,
)
from agentbench.exceptions import AgentInvalidRequestException
from tests.agents.agent_runs import BOTH, Notes, answer, numbered
from tests.agents.fake_clients import Model, Stranger, call
from tests.parts.errors import raises
from tests.parts.tools import passing


class Stored(HistoryProvider):
    """A history that only stores."""

    def __init__(self) -> None:
        super().__init__("audit", load_messages=False)
        self.stored: list[str] = []

    async def get_messages(self, session_id: Any, *, state: Any = None, **kwargs: Any) -> list[Message]:
        raise AssertionError("it does not load")

    async def save_messages(self, session_id: Any, messages: Any, *, state: Any = None, **kwargs: Any) -> None:
        self.stored += [message.text for message in messages]


# -------------------------------------------------------------------------------------------------------- memory


@BOTH
async def test_a_session_makes_the_agent_remember_and_leaves_nothing_behind(stream: bool) -> None:
    client = Model()
    agent, session = Agent(client), AgentSession()
    await answer(agent, "one", stream=stream, session=session)
    await answer(agent, "two", stream=stream, session=session)
    await answer(agent, "three", stream=stream)

    assert client.asked[1].texts == ["one", "answer 1", "two"]
    assert client.asked[2].texts == ["three"]
    assert agent.context_providers == []


@pytest.mark.parametrize("provider", [ContextProvider("todo"), InMemoryHistoryProvider(load_messages=False), Stored()])
async def test_a_provider_that_does_not_load_loses_no_memory(provider: Any) -> None:
    client, session = Model(), AgentSession()
    agent = Agent(client, context_providers=[provider])
    await agent.run("one", session=session)
    await agent.run("two", session=session)
    await agent.run("three", session=session)

    assert client.asked[2].texts == ["one", "answer 1", "two", "answer 2", "three"]
    assert agent.context_providers == [provider]


@pytest.mark.parametrize(
    ("session", "options"),
    [
        (AgentSession(service_session_id="svc"), {}),
        (AgentSession(service_session_id="svc"), {"conversation_id": "other"}),
        (AgentSession(), {"conversation_id": "svc"}),
        (AgentSession(), {"store": True}),
    ],
)
async def test_what_the_service_stores_is_not_stored_here(session: AgentSession, options: dict[str, Any]) -> None:
    client = Model()
    await Agent(client).run("one", session=session, options=options)

    assert session.state == {}
    assert client.asked[0].options.get("conversation_id") == (None if options == {"store": True} else "svc")


@pytest.mark.parametrize(("store", "kept"), [(None, False), (False, True)])
async def test_a_service_that_stores_by_default_can_be_configured_not_to(store: bool | None, kept: bool) -> None:
    class Storing(Model):
        STORES_BY_DEFAULT = True

    session = AgentSession()
    await Agent(Storing(), default_options={"store": store}).run("one", session=session)

    assert bool(session.state) == kept


@BOTH
async def test_a_conversation_that_the_service_begins_is_not_sent_twice(stream: bool) -> None:
    client = Model(ChatResponse(text="hi", conversation_id="c-9"), "again")
    agent, session = Agent(client), AgentSession()
    await answer(agent, "one", stream=stream, session=session)
    await answer(agent, "two", stream=stream, session=session)

    assert session.service_session_id == "c-9"
    assert (client.asked[1].texts, client.asked[1].options["conversation_id"]) == (["two"], "c-9")


async def test_without_a_session_providers_get_one_for_the_run() -> None:
    seen: list[AgentSession] = []

    class Peek(ContextProvider):
        async def before_run(self, *, session: AgentSession, **more: Any) -> None:
            seen.append(session)

    agent = Agent(Model(), context_providers=[Peek("peek")])
    await agent.run("q")
    await agent.run("q")

    assert seen[0] is not seen[1]


class Recording(HistoryProvider):
    """A history that records when it is used, and what it sees of the answer."""

    def __init__(self) -> None:
        super().__init__("recording")
        self.log: list[Any] = []

    async def get_messages(self, session_id: Any, **kwargs: Any) -> list[Message]:
        self.log.append("loaded")
        return []

    async def save_messages(self, session_id: Any, messages: Any, **kwargs: Any) -> None:
        self.log.append("saved")

    async def after_run(self, *, context: Any, **more: Any) -> None:
        await super().after_run(context=context, **more)
        self.log.append((type(context.response), context.response.text, context.response.response_id))


def pinging() -> Model:
    return Model(
        ChatResponse(messages=[Message("assistant", [call("ping")])], response_id="r1"),
        ChatResponse(messages=[Message("assistant", ["done"])], response_id="r2", conversation_id="c2"),
    )


def ping() -> str:
    return "pong"


@BOTH
@pytest.mark.parametrize("by", ["run", "agent", "client"])
async def test_around_calls_a_history_takes_no_part_where_the_service_stores(by: str, stream: bool) -> None:
    history, log = Recording(), list[str]()
    client = pinging()
    if by == "client":
        client.STORES_BY_DEFAULT = True  # type: ignore[misc]
    agent = Agent(
        client,
        tools=[ping],
        default_options={"store": True} if by == "agent" else None,
        context_providers=[history, Notes("p", log)],
        require_per_service_call_history_persistence=True,
    )
    session = AgentSession()
    options = {"store": True} if by == "run" else None
    response = await answer(agent, "q", stream=stream, session=session, options=options)

    assert (response.response_id, session.service_session_id) == ("r2", "c2")
    assert (history.log, log) == ([], ["before p", "after p: done"])


@BOTH
async def test_around_calls_a_history_sees_the_answer_of_the_agent_to_each(stream: bool) -> None:
    history, client = Recording(), pinging()
    client.answers[-1].conversation_id = None
    agent = Agent(client, tools=[ping], context_providers=[history], require_per_service_call_history_persistence=True)
    await answer(agent, "q", stream=stream)

    assert history.log == [
        *("loaded", "saved", (AgentResponse, "", None)),
        *("loaded", "saved", (AgentResponse, "done", None)),
    ]


@pytest.mark.parametrize(
    "given", [{"session": AgentSession(service_session_id="s")}, {"options": {"conversation_id": "s"}}]
)
async def test_two_places_for_one_history_are_refused(given: dict[str, Any]) -> None:
    agent = Agent(Model(), require_per_service_call_history_persistence=True)

    with raises(AgentInvalidRequestException, "'s'"):
        await agent.run("q", **given)
    options = {**given.get("options", {}), "store": True}
    assert (await agent.run("q", **{**given, "options": options})).text == "answer 1"


# ------------------------------------------------------------------------------------------------------------ abandoned


async def test_a_stream_that_is_abandoned_stores_the_turn_and_marks_it_as_partial() -> None:
    client, session = Model("one two three"), AgentSession()
    stream = Agent(client, name="a").run("q", stream=True, session=session)
    assert (await stream.__anext__()).text == "one "
    await stream.aclose()

    asked, partial = session.state["in_memory"]["messages"]
    assert (asked.text, partial.text, partial.author_name) == ("q", "one ", "a")
    assert partial.additional_properties["partial"] is True
    assert client.closed == 1


async def test_calls_without_results_are_not_stored_of_a_stream_that_is_abandoned() -> None:
    session = AgentSession()
    stream = Agent(Model([Content.from_text("let me see"), call("n")]), tools=[numbered(7)]).run(
        "q", stream=True, session=session
    )
    await stream.__anext__()
    await stream.aclose()

    kept = session.state["in_memory"]["messages"]
    assert [content.type for message in kept for content in message.contents] == ["text", "text"]


async def test_an_agent_may_drop_what_was_abandoned() -> None:
    session = AgentSession()
    stream = Agent(Model("one two"), save_abandoned=False).run("q", stream=True, session=session)
    await stream.__anext__()
    await stream.aclose()

    assert session.state["in_memory"] == {}


async def test_a_stream_can_be_left_and_read_to_its_end_later() -> None:
    session = AgentSession()
    stream = Agent(Model("one two three")).run("q", stream=True, session=session)
    async for _ in stream:
        break

    assert (await stream.get_final_response()).text == "one two three"
    assert [each.text for each in session.state["in_memory"]["messages"]] == ["q", "one two three"]


async def test_a_client_that_cannot_close_its_stream_loses_no_memory(caplog: pytest.LogCaptureFixture) -> None:
    class Stuck(Stranger):
        def get_response(self, messages: Any, **given: Any) -> Any:
            return self._stuck()

        async def _stuck(self) -> Any:
            try:
                yield ChatResponseUpdate(text="one ", role="assistant")
                yield ChatResponseUpdate(text="two")
            finally:
                raise OSError("wire")

    session = AgentSession()
    stream = Agent(Stuck()).run("q", stream=True, session=session)
    await stream.__anext__()
    await stream.aclose()

    assert [each.text for each in session.state["in_memory"]["messages"]] == ["q", "one "]
    assert "OSError" in caplog.text


@pytest.mark.parametrize("abandoned", [False, True])
async def test_history_around_calls_stores_what_was_abandoned(abandoned: bool) -> None:
    session = AgentSession()
    agent = Agent(Model("one two three"), require_per_service_call_history_persistence=True)
    stream = agent.run("q", stream=True, session=session)
    await stream.__anext__()
    if abandoned:
        await stream.aclose()
    else:
        await stream.get_final_response()

    stored = [each.text for each in session.state["in_memory"]["messages"]]
    assert stored == ["q", "one " if abandoned else "one two three"]


class Waiting(Model):
    """Says one word, then waits for ever."""

    async def _inner_get_response(self, *, stream: bool, **given: Any) -> Any:
        if not stream:
            await asyncio.Event().wait()
        return self._one_word()

    async def _one_word(self) -> AsyncIterator[ChatResponseUpdate]:
        try:
            yield ChatResponseUpdate(text="one ", role="assistant", conversation_id=self.model)
            await asyncio.Event().wait()
        finally:
            self.closed += 1


async def read(stream: Any, then: Any = None) -> None:
    async for _ in stream:
        if then is not None:
            await then()


async def at_work(task: asyncio.Task[Any]) -> None:
    for _ in range(30):
        await asyncio.sleep(0)
    assert not task.done()


CUT = pytest.mark.parametrize("way", ["cancelled", "timed out", "cancelled in between"])


@pytest.mark.parametrize("layers", [{}, {"middleware": passing}], ids=["plain", "with middleware"])
async def test_a_turn_that_was_left_is_before_the_next_one(layers: Any) -> None:
    client, session = Model("one two three", "next"), AgentSession()
    agent = Agent(client, **layers)
    async for _ in agent.run("q", stream=True, session=session):
        break
    await agent.run("and?", session=session)

    assert client.asked[1].texts == ["q", "one ", "and?"]
    assert [each.text for each in session.state["in_memory"]["messages"]] == ["q", "one ", "and?", "next"]


@CUT
async def test_a_stream_whose_reader_is_cancelled_stores_the_turn(way: str) -> None:
    client, session = Waiting(), AgentSession()
    between = asyncio.Event().wait if way == "cancelled in between" else None
    reading = read(Agent(client, name="a").run("q", stream=True, session=session), between)
    if way == "timed out":
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(reading, 0.05)
    else:
        task = asyncio.create_task(reading)
        await at_work(task)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
    del reading
    for _ in range(30):
        await asyncio.sleep(0)

    asked, partial = session.state["in_memory"]["messages"]
    assert (asked.text, partial.text, partial.author_name) == ("q", "one ", "a")
    assert partial.additional_properties["partial"] is True
    assert client.closed == 1


@pytest.mark.parametrize("by_call", [False, True], ids=["around the run", "around calls"])
@pytest.mark.parametrize("saved", [False, True])
async def test_a_cancelled_run_stores_its_input(by_call: bool, saved: bool) -> None:
    session = AgentSession()
    agent = Agent(Waiting(), require_per_service_call_history_persistence=by_call, save_abandoned=saved)
    task = asyncio.create_task(agent.run("q", session=session))
    await at_work(task)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert [each.text for each in session.state["in_memory"].get("messages", [])] == ["q"] * saved


async def test_a_run_that_is_cancelled_before_the_model_is_called_stores_what_its_first_providers_know() -> None:
    class Slow(ContextProvider):
        async def before_run(self, **given: Any) -> None:
            await asyncio.Event().wait()

        async def after_run(self, **given: Any) -> None:
            pytest.fail("its before_run was not over")

    client, session = Model(), AgentSession()
    task = asyncio.create_task(Agent(client, context_providers=[Slow("s")]).run("q", session=session))
    await at_work(task)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert [each.text for each in session.state["in_memory"]["messages"]] == ["q"]
    assert client.asked == []


@BOTH
async def test_a_cancellation_waits_for_no_slow_provider_and_is_hidden_by_no_failing_one(
    stream: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("agentbench.agents.agent.run._PATIENCE_S", 0)
    goes_on, log = asyncio.Event(), list[str]()

    class Slow(ContextProvider):
        async def after_run(self, **given: Any) -> None:
            await goes_on.wait()
            log.append("slow")
            raise OSError("disk")

    session = AgentSession()
    agent = Agent(Waiting(), context_providers=[Slow("s")])
    task = asyncio.create_task(answer(agent, stream=stream, session=session))
    await at_work(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (log, session.state["in_memory"]) == ([], {})

    goes_on.set()
    for _ in range(30):
        await asyncio.sleep(0)
    assert log == ["slow"]
    assert [each.text for each in session.state["in_memory"]["messages"]] == ["q", "one "][: 1 + stream]
    assert "OSError" in caplog.text
    assert "disk" not in caplog.text


async def test_an_answer_that_was_never_finished_is_not_continued() -> None:
    session = AgentSession(service_session_id="before")
    stream = Agent(Waiting(model="unfinished"), context_providers=[Notes("p", [])]).run(
        "q", stream=True, session=session
    )
    await stream.__anext__()
    await stream.aclose()

    assert session.service_session_id == "before"


@BOTH
async def test_a_conversation_of_the_service_with_an_open_call_is_not_continued(stream: bool) -> None:
    async def wait() -> None:
        await asyncio.Event().wait()

    asking = ChatResponse(messages=[Message("assistant", [call("wait")])], conversation_id="unfinished")
    session = AgentSession(service_session_id="before")
    task = asyncio.create_task(answer(Agent(Model(asking), tools=[wait]), stream=stream, session=session))
    await at_work(task)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task

    assert session.service_session_id == "before"


@BOTH
async def test_a_provider_that_fails_at_the_end_costs_the_others_nothing(
    stream: bool, caplog: pytest.LogCaptureFixture
) -> None:
    class Failing(ContextProvider):
        async def after_run(self, **given: Any) -> None:
            raise OSError(self.source_id)

    session, log = AgentSession(), list[str]()
    agent = Agent(Model(), context_providers=[Notes("p", log), Failing("a"), Failing("b")])
    with raises(OSError, "b"):
        await answer(agent, stream=stream, session=session)

    assert log == ["before p", "after p: answer 1"]
    assert [each.text for each in session.state["in_memory"]["messages"]] == ["q", "answer 1"]
    assert [each.getMessage() for each in caplog.records if each.levelname == "ERROR"] == [
        "after_run of the context provider Failing(source_id='a') failed: OSError"
    ]


@BOTH
@pytest.mark.parametrize("by_call", [False, True], ids=["around the run", "around calls"])
async def test_what_is_stored_is_signed(stream: bool, by_call: bool) -> None:
    session = AgentSession()
    agent = Agent(
        Model(call("n"), "done"), name="a", tools=[numbered(7)], require_per_service_call_history_persistence=by_call
    )
    response = await answer(agent, stream=stream, session=session)

    kept = session.state["in_memory"]["messages"]
    assert [(each.role, each.author_name) for each in kept] == [
        ("user", None),
        ("assistant", "a"),
        ("tool", "a"),
        ("assistant", "a"),
    ]
    assert [each.author_name for each in response.messages] == ["a", "a", "a"]
