"""What the loop does with calls, in both ways of asking."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from agentbench.agents.middleware.contexts import FunctionInvocationContext, function_middleware
from agentbench.agents.sessions.session import AgentSession
from agentbench.agents.tools.decorator import tool
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.messages.update import ChatResponseUpdate
from tests.agents.loop.scripts import MODES, Script, ask, call, results, says, shape
from tests.parts.tools import danger

both_ways = pytest.mark.parametrize("mode", MODES)


@tool
def add(a: int, b: int = 2) -> int:
    return a + b


@tool
def fail() -> str:
    raise ValueError("it broke")


DECLARED = FunctionTool(name="decl", input_model={"type": "object", "properties": {"k": {"type": "integer"}}})


async def test_one_call_is_run_and_the_model_gets_its_result() -> None:
    client = Script(says(call("1", "add", '{"a": "3"}')), says("five"))

    response = await ask(client, options={"tools": [add]})

    assert shape(response) == [
        ("assistant", ["function_call"]),
        ("tool", ["function_result"]),
        ("assistant", ["text"]),
    ]
    assert results(response) == ["5"]
    assert client.roles(1) == ["user", "assistant", "tool"]
    assert len(client.seen) == 2


async def test_a_loop_that_is_switched_off_hands_calls_back() -> None:
    class Off(Script):
        FUNCTION_INVOCATION_ENABLED = False

    configured = Script(says(call("1", "add")), function_invocation_configuration={"enabled": False})

    for client in (configured, Off(says(call("1", "add")))):
        response = await ask(client, options={"tools": [add]})
        assert shape(response) == [("assistant", ["function_call"])]


async def test_async_tools_run_side_by_side_and_results_have_the_order_of_calls() -> None:
    both_run = asyncio.Event()
    ended = []

    @tool
    async def first() -> str:
        await both_run.wait()
        ended.append("first")
        return "one"

    @tool
    async def second() -> str:
        both_run.set()
        ended.append("second")
        return "two"

    client = Script(says(call("1", "first"), call("2", "second")), says("done"))

    response = await ask(client, options={"tools": [first, second]})

    assert results(response) == ["one", "two"]
    assert ended == ["second", "first"]


async def test_tools_are_taken_away_after_three_failing_batches_in_a_row() -> None:
    client = Script(*(says(call(str(n), "fail")) for n in range(3)), says("sorry"))

    response = await ask(client, options={"tools": [fail]})

    assert [options.get("tool_choice") for options in client.options] == [None, None, None, "none"]
    assert response.text == "sorry"


async def test_a_batch_with_one_error_counts_as_failing_and_a_clean_one_starts_anew() -> None:
    bad = [call("1", "fail"), call("2", "add", {"a": 1})]
    good = [call("3", "add", {"a": 1})]
    client = Script(says(*bad), says(*bad), says(*good), says(*bad), says(*bad), says(*bad), says("end"))

    await ask(client, options={"tools": [fail, add]})

    assert [options.get("tool_choice") for options in client.options] == [*[None] * 6, "none"]


@pytest.mark.parametrize("limit", [0, 1])
async def test_a_limit_of_no_or_one_error_stops_after_the_first_failing_batch(limit: int) -> None:
    config = {"max_consecutive_errors_per_request": limit}
    client = Script(says(call("1", "fail")), says("end"), function_invocation_configuration=config)

    await ask(client, options={"tools": [fail]})

    assert client.options[1]["tool_choice"] == "none"


@pytest.mark.parametrize(("config", "calls"), [({"max_iterations": 2}, 3), ({"max_function_calls": 1}, 2)])
async def test_at_a_limit_the_model_is_called_once_more_without_tools(config: dict[str, int], calls: int) -> None:
    endless = [says(call(str(n), "add", {"a": n})) for n in range(9)]
    client = Script(*endless, function_invocation_configuration=config)

    response = await ask(client, options={"tools": [add]})

    assert len(client.seen) == calls
    assert [options.get("tool_choice") for options in client.options] == [*[None] * (calls - 1), "none"]
    assert shape(response)[-1] == ("assistant", ["function_call"])


async def test_calls_of_a_model_with_the_choice_none_are_handed_back() -> None:
    client = Script(says(call("1", "add", {"a": 1})))

    response = await ask(client, options={"tools": [add], "tool_choice": "none"})

    assert shape(response) == [("assistant", ["function_call"])]


@pytest.mark.parametrize("choice", ["required", {"mode": "required", "required_function_name": "add"}])
async def test_a_required_call_is_required_once(choice: Any) -> None:
    client = Script(says(call("1", "add", {"a": 1})), says("end"))

    await ask(client, options={"tools": [add], "tool_choice": choice})

    assert client.options[0]["tool_choice"] == choice
    assert "tool_choice" not in client.options[1]


async def test_calls_of_declared_tools_hand_the_whole_batch_back() -> None:
    client = Script(says(call("1", "add", {"a": 1}), call("2", "decl", '{"k": 1}')))

    response = await ask(client, options={"tools": [add, DECLARED]})

    assert [(one.type, one.id, one.call_id) for one in response.user_input_requests] == [
        ("function_call", "1", "1"),
        ("function_call", "2", "2"),
    ]
    assert shape(response) == [("assistant", ["function_call", "function_call"])]
    assert response.messages[0].contents[1].arguments == '{"k": 1}'


ASK, BACK = "function_approval_request", "function_call"


@pytest.mark.parametrize(
    ("names", "requests"),
    [
        (["add", "nowhere"], []),
        (["add", "danger"], [ASK, ASK]),
        (["danger", "decl"], [ASK, ASK]),
        (["decl", "danger"], [BACK, BACK]),
        (["danger", "nowhere"], [ASK, ASK]),
    ],
)
async def test_the_first_call_that_is_not_simply_run_decides_for_all(names: list[str], requests: list[str]) -> None:
    calls = [call(str(number), name, {"a": 1} if name == "add" else None) for number, name in enumerate(names)]
    config = {"terminate_on_unknown_calls": "danger" in names}
    client = Script(says(*calls), says("end"), function_invocation_configuration=config)

    response = await ask(client, options={"tools": [add, danger, DECLARED]})

    assert [one.type for one in response.user_input_requests] == requests
    assert len(client.seen) == (1 if requests else 2)


async def test_a_call_that_is_cancelled_takes_the_others_along() -> None:
    started, cancelled = asyncio.Event(), list[str]()

    @tool
    async def waits() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.append("waits")
            raise

    @tool
    async def interrupts() -> None:
        await started.wait()
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        await ask(Script(says(call("1", "waits"), call("2", "interrupts"))), options={"tools": [waits, interrupts]})

    assert cancelled == ["waits"]


async def test_the_application_answers_a_declared_call_with_a_tool_message() -> None:
    client = Script(says(call("2", "decl", '{"k": 1}')), says("thanks"))
    first = await ask(client, options={"tools": [DECLARED]})
    answer = Message("tool", [Content.from_function_result("2", result="ok")])

    second = await ask(client, [Message("user", "q"), *first.messages, answer], options={"tools": [DECLARED]})

    assert second.text == "thanks"
    assert client.roles(1) == ["user", "assistant", "tool"]


@pytest.mark.parametrize("name", ["extra", "described"])
async def test_additional_and_described_tools_are_known_but_not_run(name: str) -> None:
    def extra() -> str:
        return "never"

    described = {"type": "function", "function": {"name": "described", "parameters": {}}}
    client = Script(says(call("1", name)), function_invocation_configuration={"additional_tools": [extra]})

    response = await ask(client, options={"tools": [add, add, described, dict(described)]})

    assert [one.call_id for one in response.user_input_requests] == ["1"]


async def test_a_call_that_the_answer_holds_the_result_of_is_not_run() -> None:
    done = Content.from_function_result("1", result="by the service")
    client = Script(says(call("1", "add", {"a": 1}), done, "fine"))

    assert len((await ask(client, options={"tools": [add]})).messages) == 1


async def test_usage_is_the_sum_and_the_rest_comes_from_the_last_call() -> None:
    first = says(
        call("1", "add", {"a": 1}),
        usage_details={"input_token_count": 1, "output_token_count": 2},
        response_id="r1",
        finish_reason="tool_calls",
        model="m",
    )
    last = says(
        "end", usage_details={"input_token_count": 10, "output_token_count": 20}, response_id="r2", finish_reason="stop"
    )

    response = await ask(Script(first, last), options={"tools": [add]})

    assert response.usage_details == {"input_token_count": 11, "output_token_count": 22}
    assert (response.response_id, response.finish_reason, response.model) == ("r2", "stop", "m")


@both_ways
async def test_a_call_that_is_streamed_in_pieces_is_run_once_with_all_its_arguments(mode: str) -> None:
    pieces = [
        ChatResponseUpdate(contents=[call("1", "add", '{"a": 4,')], role="assistant"),
        ChatResponseUpdate(contents=[call("", "", ' "b": 5}')]),
    ]

    response = await ask(Script(pieces, says("end")), options={"tools": [add]}, mode=mode)

    assert results(response) == ["9"]


@both_ways
async def test_once_the_service_stores_the_conversation_only_news_is_sent(mode: str) -> None:
    session = AgentSession()
    first = says(call("1", "add", {"a": 1}), conversation_id="c1")
    second = says(call("2", "add", {"a": 2}))
    client = Script(first, second, says("end"))

    await ask(client, options={"tools": [add]}, client_kwargs={"session": session}, mode=mode)

    assert [client.roles(n) for n in range(3)] == [["user"], ["tool"], ["tool"]]
    assert [options.get("conversation_id") for options in client.options] == [None, "c1", "c1"]
    assert session.service_session_id == "c1"


@both_ways
async def test_the_id_of_the_conversation_is_that_of_the_last_answer(mode: str) -> None:
    @tool
    def fail() -> str:
        raise LookupError

    client = Script(says(call("1", "fail"), conversation_id="c1"), says("sorry"))
    client.function_invocation_configuration["max_consecutive_errors_per_request"] = 1

    response = await ask(client, options={"tools": [fail]}, mode=mode)

    assert client.options[1]["tool_choice"] == "none"
    assert response.conversation_id == (None if mode == "whole" else "c1")


@both_ways
async def test_tools_and_middleware_see_the_conversation_that_the_service_has_begun(mode: str) -> None:
    seen: list[Any] = []

    @tool
    def look(ctx: FunctionInvocationContext) -> str:
        seen.append(ctx.session.service_session_id)
        return "ok"

    @function_middleware
    async def watch(context: FunctionInvocationContext, call_next: Any) -> None:
        seen.append(context.session.service_session_id)
        await call_next()

    session = AgentSession(service_session_id="c0")
    answers = [says(call("1", "look"), conversation_id="c1"), LookupError("no network")]
    client = Script(*answers, says(call("2", "look"), conversation_id="c2"), says("end", conversation_id="c3"))
    keywords: dict[str, Any] = {"options": {"tools": [look]}, "client_kwargs": {"session": session}, "mode": mode}
    client.function_middleware = [watch]

    with pytest.raises(LookupError):
        await ask(client, **keywords)
    # The conversation c1 has a call without a result, which services refuse.
    assert (seen, session.service_session_id) == (["c1", "c1"], "c0")

    await ask(client, **keywords)
    assert (seen[2:], session.service_session_id) == (["c2", "c2"], "c3")


async def test_runtime_arguments_reach_the_context_of_tools_and_leave_the_options() -> None:
    seen: dict[str, Any] = {}

    @tool
    def look(ctx: FunctionInvocationContext) -> str:
        seen.update(ctx.kwargs)
        seen["context.session"] = ctx.session
        return "ok"

    session = AgentSession()
    client = Script(says(call("1", "look")), says("end"))
    options = {"tools": [look], "additional_function_arguments": {"a": 2}}

    await ask(
        client,
        options=options,
        function_invocation_kwargs={"a": 1, "b": 1},
        client_kwargs={"session": session},
    )

    assert seen == {"a": 2, "b": 1, "session": session, "context.session": session}
    assert "additional_function_arguments" not in client.options[0]
    assert options["additional_function_arguments"] == {"a": 2}


async def test_neither_messages_nor_options_nor_answers_of_the_client_are_changed() -> None:
    messages = [Message("user", "q")]
    options = {"tools": [add], "tool_choice": "required"}
    first = says(call("1", "add", {"a": 1}))

    await ask(Script(first, says("end")), messages, options=options)

    assert len(messages) == 1
    assert options == {"tools": [add], "tool_choice": "required"}
    assert [len(message.contents) for message in first.messages] == [1]


async def test_a_client_that_changes_its_list_does_not_change_the_next_call() -> None:
    class Prepends(Script):
        def _inner_get_response(self, **kwargs: Any) -> Any:
            reply = super()._inner_get_response(**kwargs)
            kwargs["messages"].insert(0, Message("system", "be kind"))
            kwargs["options"].clear()
            return reply

    client = Prepends(says(call("1", "add", {"a": 1})), says("end"))

    await ask(client, options={"tools": [add]})

    assert client.roles(1) == ["user", "assistant", "tool"]
    assert client.options[1] == {"tools": [add]}


@both_ways
async def test_an_answer_after_a_tool_message_without_a_role_is_the_assistants(mode: str) -> None:
    client = Script(says(call("1", "add", {"a": 1})), [ChatResponseUpdate(text="end")])

    response = await ask(client, options={"tools": [add]}, mode=mode)

    assert [message.role for message in response.messages] == ["assistant", "tool", "assistant"]


async def test_tools_behind_a_server_are_connected_and_run() -> None:
    class Server:
        is_connected = False

        async def connect(self) -> None:
            self.is_connected = True

        @property
        def functions(self) -> list[Any]:
            return [add]

    server = Server()
    client = Script(says(call("1", "add", {"a": 1})), says("end"))

    assert results(await ask(client, options={"tools": [server]})) == ["3"]
    assert server.is_connected
