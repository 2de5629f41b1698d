"""A shell whose commands run here, and one of the service, over a real connection."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import pytest

from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.messages.content.content import Content
from agentbench.messages.message import Message
from agentbench.openai import OpenAIChatClient, OpenAIResponsesClient
from tests.parts.errors import raises
from tests.servers import openai_wire as wire
from tests.servers.openai_server import Answer, OpenAIServer, reply, stream

pytestmark = pytest.mark.skipif(
    find_spec("openai") is None or find_spec("openai.resources.responses") is None,
    reason="openai is not installed, or older than its Responses API (1.66)",
)

CALL: dict[str, Any] = {"type": "shell_call", "id": "sh_1", "call_id": "c1", "status": "completed"}
CALL |= {"action": {"commands": ["ls", "pwd"], "timeout_ms": 1000, "max_output_length": None}}


def run_text(command: str) -> str:
    return f"ran {command!r}"


def run_list(commands: list[str]) -> Content:
    return Content.from_shell_command_output(stdout=f"ran {commands}", stderr="careful", exit_code=3)


async def run_late(command: str) -> list[Content]:
    return [Content.from_shell_command_output(stdout="a", timed_out=True)]


def fail(command: str) -> str:
    raise PermissionError


DONE = {"type": "exit", "exit_code": 0}
FAILED = {"type": "exit", "exit_code": 1}


@pytest.mark.parametrize("streaming", [False, True])
@pytest.mark.parametrize(
    ("func", "output"),
    [
        (run_text, {"stdout": "ran 'ls\\npwd'", "stderr": "", "outcome": DONE}),
        (run_list, {"stdout": "ran ['ls', 'pwd']", "stderr": "careful", "outcome": {"type": "exit", "exit_code": 3}}),
        (FunctionTool(run_late, name="late"), {"stdout": "a", "stderr": "", "outcome": {"type": "timeout"}}),
        (fail, {"stdout": "", "stderr": "Error: Function failed.", "outcome": FAILED}),
    ],
)
@pytest.mark.parametrize("store", [True, False])
async def test_commands_for_a_local_shell_run_here(
    server: OpenAIServer, func: Any, output: Any, *, store: bool, streaming: bool
) -> None:
    def answer(*output_items: Any) -> Answer:
        if not streaming:
            return reply(wire.response(*output_items))
        done = [{"type": "response.output_item.done", "output_index": 0, "item": item} for item in output_items]
        return stream(*wire.events(*done, {"type": "response.completed", "response": wire.response(*output_items)}))

    server.answer(answer(CALL), answer(wire.output_message("Done.")))
    async with OpenAIResponsesClient("m", base_url=server.url, max_retries=0) as client:
        shell = client.get_shell_tool(func=func, description="Run commands.")
        asked: Any = client.get_response("x", stream=streaming, options={"tools": [shell], "store": store})
        response = await (asked.get_final_response() if streaming else asked)
    first, second = server.bodies
    assert first["tools"] == [{"type": "shell", "environment": {"type": "local"}}]
    result = {"type": "shell_call_output", "call_id": "c1", "output": [output]}
    assert second["input"][-1] == result
    if store:
        assert second["input"] == [result]
    else:
        commands = ["ls", "pwd"] if func is run_list else ["ls\npwd"]
        call = {"type": "shell_call", "call_id": "c1", "action": {"commands": commands}, "status": "completed"}
        assert second["input"][-2] == call
    assert [one.name for message in response.messages for one in message.contents if one.type == "function_call"] == [
        getattr(func, "name", None) or func.__name__
    ]


async def test_commands_that_a_person_refuses_do_not_run(server: OpenAIServer) -> None:
    server.answer(reply(wire.response(CALL)), reply(wire.response(wire.output_message("Then not."))))
    async with OpenAIResponsesClient("m", base_url=server.url, max_retries=0) as client:
        shell = client.get_shell_tool(func=fail, name="bash", approval_mode="always_require")
        agent = client.as_agent(tools=[shell])
        session = agent.create_session()
        (request,) = (await agent.run("x", session=session)).user_input_requests
        assert request.function_call is not None
        assert request.function_call.name == "bash"
        answer = Message("user", [request.to_function_approval_response(False)])
        assert (await agent.run(answer, session=session)).text == "Then not."
    (result,) = server.bodies[1]["input"]
    assert (result["type"], result["call_id"]) == ("shell_call_output", "c1")
    assert "reject" in str(result["output"]).lower()


async def test_a_shell_of_the_service_is_declared_and_its_output_read(server: OpenAIServer) -> None:
    printed = {"stdout": "a\n", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}}
    output = {"type": "shell_call_output", "id": "o_1", "call_id": "c1", "output": [printed], "max_output_length": 9}
    server.answer(reply(wire.response(CALL, output, wire.output_message("Done."))))
    async with OpenAIChatClient("m", base_url=server.url, api="responses") as client:
        response = await client.get_response("x", options={"tools": [client.get_shell_tool()]})
    assert server.bodies[0]["tools"] == [{"type": "shell", "environment": {"type": "container_auto"}}]
    call, result, said = response.messages[0].contents
    assert (call.type, call.call_id, call.commands, call.timeout_ms) == ("shell_tool_call", "c1", ["ls", "pwd"], 1000)
    assert (result.type, result.call_id, result.max_output_length) == ("shell_tool_result", "c1", 9)
    [one] = list(result.outputs or [])
    assert (one.stdout, one.exit_code, one.timed_out) == ("a\n", 0, False)
    assert said.text == "Done."


def test_a_shell_runs_in_one_place() -> None:
    get_shell_tool = OpenAIChatClient.get_shell_tool
    place = {"type": "container_reference", "container_id": "c"}
    assert get_shell_tool(environment=place) == {"type": "shell", "environment": place}
    own = FunctionTool(run_text, name="own", approval_mode="always_require")
    shell = get_shell_tool(func=own, name="bash")
    assert isinstance(shell, FunctionTool)
    assert (shell.name, shell.approval_mode, own.name) == ("bash", "always_require", "own")
    for arguments in (
        {"environment": {"type": "local"}},
        {"environment": "local"},
        {"func": own, "environment": place},
    ):
        with raises(ValueError, "func="):
            get_shell_tool(**arguments)
