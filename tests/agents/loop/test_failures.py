"""What the model is text of calls that did not succeed, and what the log is."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from agentbench import Agent, AgentSession
from agentbench.agents.middleware.contexts import FunctionInvocationContext, function_middleware
from agentbench.agents.tools.decorator import tool
from agentbench.exceptions import MiddlewareFailure, MiddlewareTermination, ToolResultError, UserInputRequiredException
from agentbench.messages.content.content import Content
from tests.agents.agent_runs import BOTH, answer, numbered
from tests.agents.fake_clients import Model
from tests.agents.fake_clients import call as called
from tests.agents.loop.scripts import Script, ask, call, results, says, shape
from tests.parts.errors import raises


@tool
def add(a: int) -> int:
    return a + 1


@tool
def fail() -> str:
    raise ValueError("a secret text")


@tool(max_invocations=1)
def once() -> str:
    return "done"


async def result_of(wanted: Content, **config: Any) -> Content:
    client = Script(says(wanted), says("end"), function_invocation_configuration=config)
    once.reset()
    response = await ask(client, options={"tools": [add, fail, once]})
    assert response.text.endswith("end")
    return response.messages[1].contents[0]


FAILURES = [
    (call("1", "gone"), 'Error: Requested function "gone" not found.', "Requested function 'gone' not found."),
    (call("1", "add", {"a": "x"}), "Error: Argument parsing failed. a: ", "Invalid arguments for tool 'add'"),
    (call("1", "add", "{}"), "Error: Argument parsing failed. a: ", "Invalid arguments for tool 'add'"),
    (call("1", "add", "no json"), "Error: Argument parsing failed. ", "The arguments are not valid JSON"),
    (call("1", "add", "[1]"), "Error: Argument parsing failed. ", "expected a JSON object"),
    (call("1", "fail"), "Error: Function failed.", "a secret text"),
]


@pytest.mark.parametrize(("wanted", "text", "exception"), FAILURES)
async def test_a_failed_call_is_an_error_for_the_model_with_its_text_only_on_request(
    wanted: Content, text: str, exception: str
) -> None:
    result, detailed = await result_of(wanted), await result_of(wanted, include_detailed_errors=True)

    assert result.result.startswith(text)
    assert (" Exception: " in result.result) is False
    assert exception in (result.exception or "")
    assert detailed.result == f"{result.result} Exception: {detailed.exception}"


async def test_the_model_reads_which_argument_was_wrong_but_not_its_value() -> None:
    @tool(schema={"type": "object", "properties": {"pin": {"type": "integer"}}, "required": ["city"]})
    def look(**given: Any) -> str:
        return "done"

    client = Script(says(call("1", "look", {"pin": "hunter2"})), says("end"))
    response = await ask(client, options={"tools": [look]})

    result = response.messages[1].contents[0].result
    assert "pin: expected integer" in result
    assert "city: required" in result
    assert "hunter2" not in result


async def test_a_report_that_is_meant_for_the_model_reaches_it_with_all_its_parts() -> None:
    chart = Content.from_uri("data:image/png;base64,AAEC")

    @tool
    def reports() -> str:
        raise ToolResultError("no such day", contents=[chart])

    for detailed in (False, True):
        config: Any = {"include_detailed_errors": detailed}
        client = Script(says(call("1", "reports")), says("end"), function_invocation_configuration=config)
        response = await ask(client, options={"tools": [reports]})

        result = response.messages[1].contents[0]
        assert (result.result, (result.items or [])[1:]) == ("Error: no such day", [chart])


async def test_an_unknown_tool_is_an_error_of_the_request_if_so_configured() -> None:
    client = Script(says(call("1", "gone")), function_invocation_configuration={"terminate_on_unknown_calls": True})

    with raises(KeyError, "gone"):
        await ask(client, options={"tools": [add]})


async def test_the_log_names_the_class_of_an_error_and_its_text_only_for_debugging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with caplog.at_level(logging.DEBUG, "agentbench"):
        await result_of(call("1", "fail"))

    by_level = {level: [r.getMessage() for r in caplog.records if r.levelno == level] for level in (10, 40)}
    assert by_level[logging.ERROR] == ["A call of the tool 'fail' failed: ValueError."]
    assert any("a secret text" in message for message in by_level[logging.DEBUG])


async def test_a_tool_that_needs_an_answer_puts_its_questions_into_the_assistants_message() -> None:
    question = Content.from_function_approval_request("", call("inner", "delete"))
    named = Content.from_function_approval_request("own", call("inner", "delete"))

    @tool
    def asks() -> str:
        raise UserInputRequiredException([question, named])

    client = Script(says(call("1", "asks"), call("2", "add", {"a": 1})))

    response = await ask(client, options={"tools": [asks, add]})

    kinds = ["function_call", "function_call", "function_approval_request", "function_approval_request"]
    assert shape(response) == [("assistant", kinds), ("tool", ["function_result"])]
    made, own = response.user_input_requests
    assert (made.call_id, own.call_id, own.id) == ("1", "1", "own")
    assert made.id not in (None, "", "1")
    assert question.call_id is None
    assert len(client.seen) == 1


async def test_a_tool_that_needs_an_answer_but_asks_nothing_has_failed() -> None:
    @tool
    def asks() -> str:
        raise UserInputRequiredException([])

    response = await ask(Script(says(call("1", "asks")), says("end")), options={"tools": [asks]})

    assert response.messages[1].contents[0].exception == "UserInputRequiredException"
    assert response.text.endswith("end")


async def test_what_is_no_exception_ends_the_request() -> None:
    class Stop(BaseException):
        pass

    @tool
    def stops() -> str:
        raise Stop

    with pytest.raises(Stop):
        await ask(Script(says(call("1", "stops"))), options={"tools": [stops]})


# ----------------------------------------------------------------------------------------------------------- middleware


async def test_middleware_sees_arguments_and_result_and_may_change_both() -> None:
    seen: dict[str, Any] = {}

    @function_middleware
    async def watch(context: FunctionInvocationContext, call_next: Any) -> None:
        seen.update(arguments=dict(context.arguments), call_id=context.metadata["call_id"])
        context.arguments = {"a": "40"}
        await call_next()
        seen["result"] = context.result
        context.result = "changed"

    client = Script(says(call("1", "add", {"a": "1"})), says("end"), middleware=[watch])

    response = await ask(client, options={"tools": [add]})

    assert seen == {"arguments": {"a": 1}, "call_id": "1", "result": [Content.from_text("41")]}
    assert results(response) == ["changed"]


async def test_arguments_that_middleware_spoiled_are_no_arguments() -> None:
    @function_middleware
    async def spoil(context: FunctionInvocationContext, call_next: Any) -> None:
        context.arguments = {"a": "nothing"}
        await call_next()

    client = Script(says(call("1", "add", {"a": 1})), says("end"), middleware=[spoil])

    response = await ask(client, options={"tools": [add]})

    assert response.messages[1].contents[0].exception is not None


async def test_middleware_that_raises_makes_a_failed_call() -> None:
    @function_middleware
    async def broken(context: FunctionInvocationContext, call_next: Any) -> None:
        raise RuntimeError("no")

    client = Script(says(call("1", "add", {"a": 1})), says("end"))

    response = await ask(client, options={"tools": [add]}, middleware=[broken])

    assert results(response) == ["Error: Function failed."]


@BOTH
async def test_a_failure_of_middleware_ends_the_runs_of_all_agents_that_called_each_other(stream: bool) -> None:
    @function_middleware
    async def guard(context: FunctionInvocationContext, call_next: Any) -> None:
        raise MiddlewareFailure("no")

    inner = Agent(Model(called("n")), name="inner", tools=[numbered(7)], middleware=[guard])
    model = Model(called("inner", task="t"))
    session = AgentSession()

    with raises(MiddlewareFailure, "no"):
        await answer(Agent(model, tools=[inner.as_tool()]), stream=stream, session=session)

    assert len(model.asked) == 1
    assert not session.state.get("in_memory", {}).get("messages")


async def test_middleware_that_ends_a_call_ends_the_loop_after_its_siblings() -> None:
    @function_middleware
    async def stop(context: FunctionInvocationContext, call_next: Any) -> None:
        if context.arguments["a"] == 1:
            raise MiddlewareTermination(result="stopped")
        await call_next()

    client = Script(says(call("1", "add", {"a": 1}), call("2", "add", {"a": 5})), middleware=[stop])

    response = await ask(client, options={"tools": [add]})

    assert results(response) == ["stopped", "6"]
    assert response.messages[-1].role == "tool"
    assert len(client.seen) == 1


async def test_a_request_that_middleware_sets_as_result_is_a_question_to_the_user() -> None:
    @function_middleware
    async def ask_first(context: FunctionInvocationContext, call_next: Any) -> None:
        wanted = call("1", "add", {"a": 1})
        context.result = Content.from_function_approval_request("1", wanted)

    client = Script(says(call("1", "add", {"a": 1})), middleware=[ask_first])

    response = await ask(client, options={"tools": [add]})

    assert shape(response) == [("assistant", ["function_call", "function_approval_request"])]


class Odd:
    """What no validator takes, with a fault of its own."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        def refuse(_: Any) -> Any:
            raise RuntimeError("no")

        schema = core_schema.no_info_plain_validator_function(refuse)
        return core_schema.json_or_python_schema(core_schema.any_schema(), schema)


class SpeechlessError(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


@tool
def odd(value: Odd) -> str:
    return "never"


@tool
def speechless() -> str:
    raise SpeechlessError


@pytest.mark.parametrize(
    ("wanted", "text", "exception"),
    [
        (call("1", "odd", {"value": 1}), "Error: Argument parsing failed.", "no"),
        (call("1", "speechless"), "Error: Function failed.", "SpeechlessError"),
        (call("1", "odd", "[" * 200_000), "Error: Argument parsing failed.", ""),
    ],
    ids=["a validator that raises", "an error without a text", "nested too deeply"],
)
async def test_no_failure_of_a_call_ends_the_request(wanted: Content, text: str, exception: str) -> None:
    response = await ask(Script(says(wanted), says("end")), options={"tools": [odd, speechless]})

    result = response.messages[1].contents[0]
    assert (result.result, response.messages[2].text) == (text, "end")
    assert exception in (result.exception or "")


async def test_middleware_without_a_result_gives_an_empty_one() -> None:
    @function_middleware
    async def silent(context: FunctionInvocationContext, call_next: Any) -> None:
        return

    client = Script(says(call("1", "add", {"a": 1})), says("end"))

    assert results(await ask(client, options={"tools": [add]}, client_kwargs={"middleware": silent})) == [""]
