"""A program reads the spans of its workflow by the names that the library offers for them."""

# ruff: noqa: F811  fixtures are imported
from __future__ import annotations

import json
from typing import Any, Never

from agentbench import Agent, Call, Executor, ScriptedChatClient, WorkflowBuilder, WorkflowContext, handler, tool
from agentbench.batch import run_many
from agentbench.observability import OtelAttr
from tests.agents.telemetry.conftest import Spans, sensitive, spans, switches  # noqa: F401 - fixtures


@tool
def weather(city: str) -> str:
    """Look the weather up."""
    return f"sunny in {city}"


class Ask(Executor):
    def __init__(self, agent: Agent) -> None:
        super().__init__("ask")
        self.agent = agent

    @handler
    async def ask(self, question: str, ctx: WorkflowContext[Never, str]) -> None:
        await ctx.yield_output((await self.agent.run(question)).text)


async def test_the_spans_of_a_workflow_with_an_agent_and_a_tool(sensitive: None, spans: Spans) -> None:
    client = ScriptedChatClient([Call("weather", {"city": "Oslo"}), "It is sunny."])
    agent = Agent(client, name="guide", tools=[weather])
    workflow = WorkflowBuilder(start_executor=Ask(agent), name="trip").build()
    assert (await workflow.run("Weather in Oslo?")).get_outputs() == ["It is sunny."]

    by_name = {span.name: span for span in spans.all()}
    by_operation: dict[str | None, list[Any]] = {}
    for span in spans.all():
        by_operation.setdefault(span.attributes.get(OtelAttr.OPERATION), []).append(span.attributes)

    (run,) = by_operation[OtelAttr.AGENT_INVOKE_OPERATION]
    assert run[OtelAttr.AGENT_NAME] == "guide"
    assert run[OtelAttr.PROVIDER_NAME] == OtelAttr.AGENT_FRAMEWORK_GEN_AI_SYSTEM
    first, last = by_operation[OtelAttr.CHAT_COMPLETION_OPERATION]
    assert json.loads(first[OtelAttr.INPUT_MESSAGES])[0]["parts"][0]["content"] == "Weather in Oslo?"
    assert json.loads(last[OtelAttr.OUTPUT_MESSAGES])[0]["parts"][0]["content"] == "It is sunny."
    (called,) = by_operation["execute_tool"]
    assert called[OtelAttr.TOOL_NAME] == "weather"
    assert json.loads(called[OtelAttr.TOOL_ARGUMENTS]) == {"city": "Oslo"}
    assert called[OtelAttr.TOOL_RESULT] == "sunny in Oslo"
    assert called[OtelAttr.MEASUREMENT_FUNCTION_INVOCATION_DURATION] > 0
    assert by_name[OtelAttr.WORKFLOW_BUILD_SPAN].attributes[OtelAttr.WORKFLOW_BUILDER_NAME] == "trip"
    assert by_name[OtelAttr.WORKFLOW_RUN_SPAN].attributes[OtelAttr.WORKFLOW_NAME] == "trip"
    assert by_name[f"{OtelAttr.EXECUTOR_PROCESS_SPAN} ask"].attributes[OtelAttr.EXECUTOR_ID] == "ask"
    assert [event.name for event in by_name["workflow.run"].events] == [
        OtelAttr.WORKFLOW_STARTED,
        OtelAttr.WORKFLOW_COMPLETED,
    ]
    written = json.loads(by_name["execute_tool weather"].to_json())["attributes"]
    assert written["gen_ai.operation.name"] == "execute_tool"


async def test_each_run_of_a_batch_has_the_spans_of_a_run(spans: Spans) -> None:
    agent = Agent(ScriptedChatClient(["Yes.", "No."]), name="guide")
    await run_many(WorkflowBuilder(start_executor=Ask(agent), name="trip").build(), ["Rain?", "Snow?"], concurrency=1)
    names = [span.name for span in spans.all()]
    assert names.count(OtelAttr.WORKFLOW_RUN_SPAN) == names.count(f"{OtelAttr.EXECUTOR_PROCESS_SPAN} ask") == 2
