"""Streamed and asked for as a whole, a conversation is the same; a stream that is given up leaves nothing running."""

from __future__ import annotations

import asyncio
import copy
import gc
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentbench.agents.middleware.contexts import ChatContext, chat_middleware
from agentbench.agents.tools.decorator import tool
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.exceptions import UserInputRequiredException
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.response import ChatResponse
from agentbench.messages.update import ChatResponseUpdate
from agentbench.testing import CountingIds, set_runtime_defaults
from tests.agents.loop.scripts import Script, ask, call, says, shape


@tool
def good(n: int = 0) -> str:
    return f"good {n}"


@tool
async def slow(n: int = 0) -> str:
    await asyncio.sleep(0)
    return f"slow {n}"


@tool
def bad(n: int = 0) -> str:
    raise ValueError("bad")


@tool
def asks(n: int = 0) -> str:
    raise UserInputRequiredException([Content.from_oauth_consent_request("https://example.org")])


@tool(approval_mode="always_require")
def danger(n: int = 0) -> str:
    return f"danger {n}"


TOOLS = [good, slow, bad, asks, danger, FunctionTool(name="decl")]
NAMES = ["good", "slow", "bad", "asks", "danger", "decl", "gone"]

texts = st.text(alphabet="ab ", min_size=1, max_size=6)
usages: Any = st.none() | st.fixed_dictionaries({"input_token_count": st.integers(0, 9)})


@st.composite
def answers(draw: st.DrawFn, names: list[str]) -> ChatResponse[Any]:
    """An answer of the model, with calls or not."""
    contents: list[Any] = []
    if draw(st.booleans()):
        contents.append(Content.from_text(draw(texts)))
    if draw(st.booleans()):
        contents.append(Content.from_text_reasoning(id="t", text=draw(texts)))
    for n in range(draw(st.integers(0, 3))):
        arguments = draw(st.sampled_from(['{"n": 1}', {"n": 2}, None, '{"n": "x"}']))
        contents.append(call(f"c{draw(st.integers(0, 5))}-{n}", draw(st.sampled_from(names)), arguments))
    return ChatResponse(
        messages=[Message("assistant", contents or ["end"], message_id=draw(st.none() | st.just("m")))],
        response_id=draw(st.none() | st.sampled_from(["r1", "r2"])),
        finish_reason=draw(st.sampled_from([None, "stop", "tool_calls"])),
        usage_details=draw(usages),
        model=draw(st.none() | st.just("m1")),
    )


def in_pieces(response: ChatResponse[Any], cut: int) -> list[ChatResponseUpdate]:
    """An answer as a service would stream it: each text and each call's arguments cut in two."""
    pieces: list[Content] = []
    message_id: Any = response.messages[0].message_id
    for content in response.messages[0].contents:
        if content.type == "text":
            pieces += [Content.from_text((content.text or "")[:cut]), Content.from_text((content.text or "")[cut:])]
        elif content.type == "function_call" and isinstance(content.arguments, str):
            pieces.append(call(content.call_id or "", content.name or "", content.arguments[:cut]))
            pieces.append(call("", "", content.arguments[cut:]))
        else:
            pieces.append(content)
    updates = [
        ChatResponseUpdate(
            contents=[piece],
            role="assistant" if n == 0 and cut % 2 else None,
            message_id=message_id,
            response_id=response.response_id,
            model=response.model,
        )
        for n, piece in enumerate(pieces)
    ]
    last = ChatResponseUpdate(finish_reason=response.finish_reason, message_id=message_id)
    if response.usage_details is not None:
        last.contents.append(Content.from_usage(response.usage_details))
    return [*updates, last]


def told(response: ChatResponse[Any]) -> Any:
    """What has to be equal."""
    return (
        [message.to_dict() for message in response.messages],
        response.usage_details,
        response.finish_reason,
        response.response_id,
        response.model,
        response.try_value("no value"),
    )


async def asked(mode: str, client: Script, messages: Any, options: dict[str, Any]) -> ChatResponse[Any]:
    """Ask whole or streamed; `folded` takes only what was streamed."""
    if mode != "folded":
        return await ask(client, messages, options=options, mode=mode)
    updates = [update async for update in client.get_response(messages, stream=True, options=options)]
    return ChatResponse.from_updates(updates, output_format_type=options["response_format"])


@settings(suppress_health_check=[HealthCheck.too_slow])
@given(
    script=st.lists(answers(NAMES), min_size=1, max_size=4),
    config=st.fixed_dictionaries(
        {},
        optional={
            "max_iterations": st.integers(1, 3),
            "max_function_calls": st.integers(1, 3),
            "max_consecutive_errors_per_request": st.integers(0, 2),
            "approval_scope": st.sampled_from(["batch", "call"]),
            "error_scope": st.sampled_from(["batch", "tool"]),
            "strict_max_function_calls": st.booleans(),
        },
    ),
    cut=st.integers(1, 4),
    approve=st.booleans(),
    response_format=st.none() | st.just({"type": "object"}),
)
def test_a_streamed_conversation_equals_the_one_requested_as_a_whole(
    script: list[ChatResponse[Any]], config: dict[str, Any], cut: int, approve: bool, response_format: Any
) -> None:
    @chat_middleware
    async def looks_on(context: ChatContext, call_next: Any) -> None:
        await call_next()

    async def talk(mode: str, make: Callable[[ChatResponse[Any]], Any], middleware: Any) -> list[Any]:
        set_runtime_defaults(ids=CountingIds())
        script_of_turns = [*(make(answer) for answer in script), *(make(says("the end")) for _ in range(3))]
        client = Script(*script_of_turns, function_invocation_configuration=config, middleware=middleware)
        options = {"tools": TOOLS, "response_format": response_format}
        first = await asked(mode, client, "q", options)
        requests = [one for one in first.user_input_requests if one.type == "function_approval_request"]
        if not requests:
            return [told(first)]
        given = Message("user", [one.to_function_approval_response(approve) for one in requests])
        second = await asked(mode, client, [Message("user", "q"), *first.messages, given], options)
        return [told(first), told(second), [message.to_dict() for message in client.seen[-1]]]

    async def check() -> None:
        whole = await talk("whole", copy.copy, None)
        assert await talk("streamed", copy.copy, None) == whole
        assert await talk("streamed", copy.copy, [looks_on]) == whole
        assert await talk("folded", copy.copy, None) == whole
        assert await talk("streamed", lambda answer: in_pieces(answer, cut), None) == whole
        assert await talk("folded", lambda answer: in_pieces(answer, cut), None) == whole
        assert await talk("streamed", lambda answer: in_pieces(answer, cut), [looks_on]) == whole
        assert await talk("whole", lambda answer: in_pieces(answer, cut), None) == whole

    asyncio.run(check())


async def test_updates_are_those_of_the_model_with_results_and_requests_in_between() -> None:
    client = Script(says(call("1", "good")), says(call("2", "danger")))

    updates = [update async for update in client.get_response("q", stream=True, options={"tools": TOOLS})]

    assert [(update.role, [content.type for content in update.contents]) for update in updates] == [
        ("assistant", ["function_call"]),
        ("tool", ["function_result"]),
        ("assistant", ["function_call"]),
        ("assistant", ["function_approval_request"]),
    ]


async def test_a_declared_call_is_streamed_again_as_one_to_answer_and_folded_once() -> None:
    client = Script(says(call("1", "decl", '{"k": 1}')))
    stream = client.get_response("q", stream=True, options={"tools": TOOLS})

    updates = [update async for update in stream]

    assert [(one.id, one.arguments) for one in updates[-1].user_input_requests] == [("1", '{"k": 1}')]
    folded = ChatResponse.from_updates(updates)
    assert shape(folded) == shape(await stream.get_final_response()) == [("assistant", ["function_call"])]
    assert folded.messages[0].contents[0].arguments == '{"k": 1}'


async def test_a_stream_that_is_never_read_leaves_nothing_behind() -> None:
    client = Script(says("hi"))

    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        client.get_response("q", stream=True)
        gc.collect()

    assert (client.seen, [str(one.message) for one in told]) == ([], [])


async def test_a_reader_that_is_cancelled_cancels_the_tools_that_run() -> None:
    started, cancelled = asyncio.Event(), []

    @tool
    async def waits(name: str) -> str:
        if name == "b":
            started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append(name)
            raise
        return "never"

    client = Script(says(call("1", "waits", {"name": "a"}), call("2", "waits", {"name": "b"})))
    stream = client.get_response("q", stream=True, options={"tools": [waits]})

    async def read() -> None:
        async for _ in stream:
            pass

    reading = asyncio.ensure_future(read())
    await started.wait()
    reading.cancel()
    with pytest.raises(asyncio.CancelledError):
        await reading

    assert cancelled == ["a", "b"]


async def test_a_value_that_the_client_gave_remains() -> None:
    @chat_middleware
    async def looks_on(context: ChatContext, call_next: Any) -> None:
        await call_next()

    for middleware in (None, [looks_on]):
        client = Script(says(call("1", "good")), says("end", value={"a": 1}), middleware=middleware)
        response = await ask(client, mode="streamed", options={"tools": TOOLS})
        assert response.value == {"a": 1}


@pytest.mark.parametrize("has_index", [True, False], ids=["pieces with an index", "whole calls"])
async def test_calls_with_one_id_are_all_made_and_updates_name_them_as_the_response_does(has_index: bool) -> None:
    made: list[int] = []

    @tool
    def note(n: int) -> str:
        made.append(n)
        return str(n)

    pieces = [
        ChatResponseUpdate(
            role="assistant",
            contents=[
                Content.from_function_call(
                    call_id, "note", arguments=text, additional_properties={"tool_call_index": index}
                )
            ],
        )
        for index in range(2)
        for call_id, text in (("x", '{"n": '), ("", f"{index}}}"))
    ]
    whole = says(*(call("x", "note", {"n": n}) for n in range(2)))
    client = Script(pieces if has_index else whole, says("end"))

    stream = client.get_response("q", stream=True, options={"tools": [note]})
    updates = [update async for update in stream]
    response = await stream.get_final_response()

    assert sorted(made) == [0, 1]  # the calls run side by side, in threads
    ids = [[one.call_id for one in message.contents] for message in response.messages[:2]]
    assert ids == [["x", "x_2"], ["x", "x_2"]]
    assert [one.result for one in response.messages[1].contents] == ["0", "1"]
    assert ChatResponse.from_updates(updates).messages == response.messages
