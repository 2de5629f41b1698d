"""A program reads the spans of its workflow by the names that the library offers for them."""

from __future__ import annotations

import json
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")

from typing import Never

from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from agentbench import Agent, Call, Executor, ScriptedChatClient, WorkflowBuilder, WorkflowContext, handler, tool
from agentbench.observability import OBSERVABILITY_SETTINGS, OtelAttr


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


async def test_the_spans_of_a_workflow_with_an_agent_and_a_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    for switch, value in (("ENABLED", True), ("SENSITIVE_DATA_ENABLED", True), ("is_user_disabled", False)):
        monkeypatch.setattr(OBSERVABILITY_SETTINGS, switch, value)

    client = ScriptedChatClient([Call("weather", {"city": "Oslo"}), "It is sunny."])
    agent = Agent(client, name="guide", tools=[weather])
    workflow = WorkflowBuilder(start_executor=Ask(agent), name="trip").build()
    assert (await workflow.run("Weather in Oslo?")).get_outputs() == ["It is sunny."]

    finished: tuple[Any, ...] = exporter.get_finished_spans()
    spans = {span.name: span for span in finished}
    by_operation: dict[str | None, list[Any]] = {}
    for span in finished:
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
    assert spans[OtelAttr.WORKFLOW_BUILD_SPAN].attributes[OtelAttr.WORKFLOW_BUILDER_NAME] == "trip"
    assert spans[OtelAttr.WORKFLOW_RUN_SPAN].attributes[OtelAttr.WORKFLOW_NAME] == "trip"
    assert spans[f"{OtelAttr.EXECUTOR_PROCESS_SPAN} ask"].attributes[OtelAttr.EXECUTOR_ID] == "ask"
    assert [event.name for event in spans["workflow.run"].events] == [
        OtelAttr.WORKFLOW_STARTED,
        OtelAttr.WORKFLOW_COMPLETED,
    ]
    written = json.loads(spans["execute_tool weather"].to_json())["attributes"]
    assert written["gen_ai.operation.name"] == "execute_tool"


def test_a_name_is_the_text_that_it_stands_for() -> None:
    for member in OtelAttr:
        assert member == member.value
        assert hash(member) == hash(member.value)
        assert str(member) == repr(member) == f"{member}" == member.value
    assert len(OtelAttr.__members__) == len(set(OtelAttr))
