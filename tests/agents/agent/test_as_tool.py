"""Agents as tools of other agents."""

from __future__ import annotations

from typing import Any

import pytest

from agentbench import (
    Agent,
    AgentResponseUpdate,
    AgentSession,
    BaseAgent,
    Content,
    FunctionInvocationContext,
    tool,
)
from agentbench.exceptions import ChatClientException
from tests.agents.fake_clients import Model, call
from tests.parts.errors import raises


@pytest.mark.parametrize(
    ("given", "name"),
    [
        ("My Agent!", "My_Agent"),
        ("3x", "_3x"),
        ("!!!", "agent"),
    ],
)
def test_the_tool_is_called_by_the_agents_name_in_letters_for_models(given: str, name: str) -> None:
    assert Agent(Model(), name=given).as_tool().name == name


def test_an_explicit_name_is_taken_and_a_tool_without_any_is_refused() -> None:
    assert Agent(Model()).as_tool(name="x").name == "x"
    with raises(ValueError, "name"):
        Agent(Model()).as_tool()


def test_the_schema_is_one_text() -> None:
    made = Agent(Model(), name="helper", description="Helps.").as_tool()
    other = Agent(Model(), name="h").as_tool(arg_name="question", arg_description="What to ask", description="Asks.")

    assert made.description == "Helps."
    assert made.parameters() == {
        "type": "object",
        "properties": {"task": {"type": "string", "description": "Task for helper"}},
        "required": ["task"],
        "additionalProperties": False,
    }
    assert other.parameters()["properties"] == {"question": {"type": "string", "description": "What to ask"}}
    assert (other.description, other.approval_mode) == ("Asks.", "never_require")
    assert Agent(Model(), name="h").as_tool(approval_mode="always_require").approval_mode == "always_require"


async def test_updates_are_handed_out_on_the_way() -> None:
    seen: list[str] = []

    async def waits(update: AgentResponseUpdate) -> None:
        seen.append(update.text)

    made = Agent(Model("one two"), name="a").as_tool(stream_callback=waits)
    [content] = await made.invoke(arguments={"task": "x"})

    assert seen == ["one ", "two"]
    assert content.text == "one two"


async def test_a_callback_that_fails_closes_the_stream() -> None:
    client = Model("one two")

    def fail(update: AgentResponseUpdate) -> None:
        raise OSError("display is gone")

    with raises(OSError, "gone"):
        await Agent(client, name="a").as_tool(stream_callback=fail).invoke(arguments={"task": "x"})
    assert client.closed == 1


@pytest.mark.parametrize("propagates", [False, True])
async def test_the_session_goes_along_only_on_request_and_other_arguments_always(propagates: bool) -> None:
    seen: list[dict[str, Any]] = []

    @tool
    def look(context: FunctionInvocationContext) -> str:
        seen.append(dict(context.kwargs))
        return "ok"

    session = AgentSession()
    inner = Agent(Model(call("look"), "looked"), name="helper", tools=[look])
    outer = Agent(Model(call("helper", task="look"), "done"), tools=[inner.as_tool(propagate_session=propagates)])
    await outer.run("q", session=session, function_invocation_kwargs={"user": 7})

    assert seen == [{"user": 7, "session": session} if propagates else {"user": 7}]


async def test_a_failing_agent_is_a_failed_call() -> None:
    inner = Agent(Model(ChatClientException("no")), name="helper")
    response = await Agent(Model(call("helper", task="x"), "on"), tools=[inner.as_tool()]).run("q")

    assert response.messages[1].contents[0].result.startswith("Error: Function failed.")


class Foreign(BaseAgent):
    """An agent whose streams are of other classes than those of the library."""

    def __init__(self, form: str) -> None:
        super().__init__(name="foreign", description="Elsewhere.")
        self.form = form

    def run(self, messages: Any, *, stream: bool = False, session: Any = None) -> Any:
        updates = self._updates(messages)
        return self._late(updates) if self.form == "awaitable" else updates

    async def _late(self, updates: Any) -> Any:
        return updates

    async def _updates(self, messages: Any) -> Any:
        yield AgentResponseUpdate(contents=[Content.from_text(f"{messages}: ")], role="assistant")
        yield AgentResponseUpdate(contents=[Content.from_text("ok")])


@pytest.mark.parametrize("form", ["generator", "awaitable"])
async def test_an_agent_with_streams_of_its_own_is_a_tool_as_well(form: str) -> None:
    made = Foreign(form).as_tool()
    [content] = await made.invoke(arguments={"task": "x"})

    assert (made.name, made.description, content.text) == ("foreign", "Elsewhere.", "x: ok")
