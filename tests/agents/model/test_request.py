"""One call of a model: its options, middleware, compaction and the network switch."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agentbench import validate_chat_options
from agentbench.agents.compaction.grouping import EXCLUDED_KEY, CharacterEstimatorTokenizer
from agentbench.agents.middleware.contexts import ChatContext, chat_middleware
from agentbench.agents.model.settings import is_offline, needs_network, require_network
from agentbench.agents.tools.decorator import tool
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import ChatClientException, MiddlewareTermination
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.stream import ResponseStream
from agentbench.messages.update import ChatResponseUpdate
from tests.agents.loop.scripts import MODES, Script, ask, call, says
from tests.parts.errors import raises

both_ways = pytest.mark.parametrize("mode", MODES)


@tool
def add(a: int) -> int:
    return a + 1


OPTIONS = {"tools": [add]}


def loop_of(*answers: Any, **keywords: Any) -> Script:
    return Script(says(call("1", "add", {"a": 1})), *answers, **keywords)


async def test_what_middleware_changes_is_what_the_model_sees_in_that_call() -> None:
    @chat_middleware
    async def rewrite(context: ChatContext, call_next: Any) -> None:
        context.messages.insert(0, Message("system", "be kind"))
        context.options["temperature"] = 1
        context.kwargs["extra"] = 2
        await call_next()

    client = loop_of(says("end"), middleware=[rewrite])

    await ask(client, options=OPTIONS, mode="streamed")

    assert [client.roles(n) for n in range(2)] == [["system", "user"], ["system", "user", "assistant", "tool"]]
    assert [options["temperature"] for options in client.options] == [1, 1]
    assert client.keywords == [{"extra": 2}, {"extra": 2}]


@both_ways
async def test_middleware_without_a_result_leaves_an_empty_answer_and_a_warning(
    mode: str, caplog: pytest.LogCaptureFixture
) -> None:
    @chat_middleware
    async def silent(context: ChatContext, call_next: Any) -> None:
        return

    @chat_middleware
    async def stops(context: ChatContext, call_next: Any) -> None:
        raise MiddlewareTermination

    for middleware in (silent, stops):
        caplog.clear()
        with caplog.at_level(logging.WARNING, "agentbench"):
            response = await ask(Script(middleware=[middleware]), options=OPTIONS, mode=mode)
        assert response.messages == []
        assert [record.levelname for record in caplog.records] == ["WARNING"]


async def test_changed_updates_become_a_response_in_the_way_of_their_client() -> None:
    class Signing(Script):
        def _finalize_response_updates(self, updates: Any, *, response_format: Any = None) -> ChatResponse[Any]:
            response = super()._finalize_response_updates(updates, response_format=response_format)
            response.additional_properties["signed"] = response_format
            return response

    @chat_middleware
    async def shout(context: ChatContext, call_next: Any) -> None:
        context.stream_transform_hooks.append(lambda update: update)
        await call_next()

    client = Signing([ChatResponseUpdate(text="{}")], middleware=shout)

    response = await ask(client, options={"response_format": {"type": "object"}}, mode="streamed")

    assert response.additional_properties["signed"] == {"type": "object"}


async def test_a_result_hook_of_middleware_replaces_the_response_and_what_the_loop_does() -> None:
    replaced = says("instead")

    @chat_middleware
    async def replace(context: ChatContext, call_next: Any) -> None:
        context.stream_result_hooks.append(lambda _: replaced)
        await call_next()
        if not context.stream:
            context.result = replaced

    client = loop_of(middleware=replace)

    assert (await ask(client, options=OPTIONS, mode="streamed")).text == "instead"
    assert len(client.seen) == 1


async def test_a_stream_of_middleware_needs_no_finalizer() -> None:
    @chat_middleware
    async def answers(context: ChatContext, call_next: Any) -> None:
        async def updates() -> Any:
            yield ChatResponseUpdate(text="bare")

        context.result = ResponseStream(updates()) if context.stream else says("bare")

    assert (await ask(Script(middleware=answers), mode="streamed")).text == "bare"


@both_ways
async def test_a_streamed_request_refuses_a_result_that_is_no_stream(mode: str) -> None:
    @chat_middleware
    async def answers(context: ChatContext, call_next: Any) -> None:
        context.result = says("whole")

    if mode == "whole":
        assert (await ask(Script(middleware=answers), mode=mode)).text == "whole"
    else:
        with raises(ValueError, "ResponseStream"):
            await ask(Script(middleware=answers), mode=mode)


# ----------------------------------------------------------------------------------------------------------- compaction


class KeepsLast:
    """Leaves out all but the last messages, once each, and counts how often it ran."""

    def __init__(self, keep: int) -> None:
        self.keep = keep
        self.sizes: list[int] = []

    async def __call__(self, messages: list[Message]) -> bool:
        self.sizes.append(len(messages))
        for message in messages[: -self.keep]:
            message.additional_properties[EXCLUDED_KEY] = True
        return True


HISTORY = [Message("user", "old"), Message("assistant", "older"), Message("user", "q")]


@both_ways
async def test_the_model_gets_the_messages_of_the_strategy_and_no_others_are_marked(mode: str) -> None:
    first = says(call("1", "add", {"a": 1}))
    client = Script(first, says("end"), compaction_strategy=KeepsLast(1))

    response = await ask(client, HISTORY, options=OPTIONS, mode=mode)

    assert client.roles(0) == ["user"]
    assert client.roles(1) == ["user", "assistant", "tool"]
    for message in (*HISTORY, *first.messages, *response.messages):
        assert not message.additional_properties


async def test_a_strategy_of_the_call_beats_that_of_the_client() -> None:
    own, given = KeepsLast(1), KeepsLast(2)
    client = Script(says("hi"), compaction_strategy=own)

    await ask(client, HISTORY, compaction_strategy=given, mode="streamed")

    assert (own.sizes, given.sizes) == ([], [3])
    assert len(client.seen[0]) == 2


async def test_marks_and_summaries_of_one_call_hold_for_the_next() -> None:
    class Summarises:
        def __init__(self) -> None:
            self.runs: list[list[str]] = []

        async def __call__(self, messages: list[Message]) -> bool:
            self.runs.append([message.text for message in messages])
            if len(self.runs) == 1:
                for message in messages[:2]:
                    message.additional_properties[EXCLUDED_KEY] = True
                messages.insert(0, Message("assistant", "summary"))
            return True

    @chat_middleware
    async def looks_on(context: ChatContext, call_next: Any) -> None:
        await call_next()

    for middleware in (None, looks_on):
        strategy = Summarises()
        client = loop_of(says("end"), compaction_strategy=strategy, middleware=middleware)
        await ask(client, HISTORY, options=OPTIONS, mode="streamed")
        assert strategy.runs[1][:4] == ["summary", "old", "older", "q"]
        assert [message.text for message in client.seen[1]][:2] == ["summary", "q"]


async def test_a_tokenizer_alone_only_counts() -> None:
    client = Script(says("hi"), tokenizer=CharacterEstimatorTokenizer())

    await ask(client, HISTORY, mode="streamed")

    assert [message.text for message in client.seen[0]] == ["old", "older", "q"]
    assert all(message.additional_properties["_group"]["token_count"] > 0 for message in client.seen[0])


async def test_while_the_service_keeps_the_conversation_nothing_is_left_out() -> None:
    strategy = KeepsLast(1)

    await ask(
        Script(says("hi"), compaction_strategy=strategy), HISTORY, options={"conversation_id": "c"}, mode="streamed"
    )

    assert strategy.sizes == []


async def test_messages_that_middleware_brings_are_not_marked_either() -> None:
    brought = Message("user", "brought")

    @chat_middleware
    async def bring(context: ChatContext, call_next: Any) -> None:
        context.messages = [brought, *context.messages]
        await call_next()

    client = Script(says("hi"), compaction_strategy=KeepsLast(1), middleware=bring)

    await ask(client, HISTORY, mode="streamed")

    assert brought.additional_properties == {}
    assert len(client.seen[0]) == 1


@pytest.mark.parametrize(
    ("name", "low", "high"),
    [("temperature", 0, 2), ("top_p", 0, 1), ("presence_penalty", -2, 2)],
)
async def test_a_number_has_to_be_in_its_range(name: str, low: int, high: int) -> None:
    for fine in (low, high):
        checked = await validate_chat_options({name: fine})
        assert checked == {name: fine}
        assert isinstance(checked[name], float)
    for wrong, error in ((low - 0.1, ValueError), (high + 0.1, ValueError), (True, TypeError)):
        with raises(error, "option ", name, " is "):
            await validate_chat_options({name: wrong})
    for name in ("temperature", "top_p", "presence_penalty"):
        with raises(ValueError, name):
            await validate_chat_options({name: float("nan")})


@pytest.mark.parametrize(("wrong", "error"), [(0, ValueError), (-1, ValueError), (2.5, TypeError), (True, TypeError)])
async def test_the_number_of_tokens_is_whole_and_above_zero(wrong: object, error: type[Exception]) -> None:
    with raises(error, "max_tokens", "0"):
        await validate_chat_options({"max_tokens": wrong})


async def test_tools_are_made_of_functions_and_the_callers_options_are_not_changed() -> None:
    def act() -> str:
        return "x"

    given = {"tools": act, "seed": 1, "temperature": None, "unknown": "kept"}

    checked = await validate_chat_options(given)

    assert isinstance(checked["tools"][0], FunctionTool)
    assert {key: value for key, value in checked.items() if key != "tools"} == {
        "seed": 1,
        "temperature": None,
        "unknown": "kept",
    }
    assert given["tools"] is act


class Remote:
    NEEDS_NETWORK = True

    def __init__(self, url: str) -> None:
        self.url = url

    def service_url(self) -> str:
        return self.url


@pytest.mark.parametrize(
    ("value", "expected"),
    [("1", True), (" YES ", True), ("", False), ("no", False)],
)
def test_the_switch_is_read_at_each_question(value: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_OFFLINE", value)
    assert is_offline() is expected
    monkeypatch.delenv("AGENTBENCH_OFFLINE")
    assert is_offline() is False


def test_an_unknown_word_is_logged_once(monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture) -> None:
    monkeypatch.setenv("AGENTBENCH_OFFLINE", "certainly")
    with caplog.at_level(logging.WARNING, logger="agentbench"):
        assert (is_offline(), is_offline()) == (False, False)
    assert [record.getMessage().partition(",")[0] for record in caplog.records] == ["AGENTBENCH_OFFLINE is 'certainly'"]


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://127.0.0.1:11434/v1", False),
        ("http://models.localhost/v1", False),
        ("https://api.example.org/v1", True),
        ("https://localhost.example.org", True),
        ("http://[broken", True),
    ],
)
def test_what_is_on_this_machine_is_let_through(url: str, expected: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AGENTBENCH_OFFLINE", "1")
    client = Remote(url)

    assert needs_network(client) is expected
    if expected:
        with raises(ChatClientException, "Remote ", "AGENTBENCH_OFFLINE"):
            require_network(client)
    else:
        require_network(client)
