"""What a run of an agent leaves in spans and metrics, streamed or not."""

from __future__ import annotations

import asyncio
import gc
import json
import logging
import subprocess
import sys
import textwrap
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")

from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode
from pydantic import BaseModel

from agentbench.agents.agent.agent import Agent
from agentbench.agents.middleware.contexts import AgentContext, ChatContext, agent_middleware, chat_middleware
from agentbench.agents.tools.decorator import tool
from agentbench.agents.tools.function_tool import FunctionTool
from agentbench.agents.tools.results import SKIP_PARSING
from agentbench.exceptions import ChatClientException, ToolException, UserInputRequiredException
from agentbench.messages.content.content import Content
from agentbench.observability import (
    OBSERVABILITY_SETTINGS,
    AgentTelemetryLayer,
    disable_instrumentation,
    enable_instrumentation,
)
from agentbench.settings import SecretString
from tests.agents.telemetry.conftest import Points, Spans
from tests.agents.telemetry.models import (
    ANSWERED,
    ARGUMENT,
    INSTRUCTED,
    RESULT,
    SAID,
    Model,
    called,
    said,
)
from tests.parts.errors import raises

Run = Callable[..., Awaitable[Any]]


@tool
def look(a: str) -> str:
    """Looks."""
    return RESULT


@tool
def broken(a: str = "") -> str:
    """Breaks."""
    raise LookupError(RESULT)


async def at_once(agent: Any, *arguments: Any, **keywords: Any) -> Any:
    return await agent.run(*arguments, **keywords)


async def iterated(agent: Any, *arguments: Any, **keywords: Any) -> Any:
    around = trace.get_current_span()
    stream = agent.run(*arguments, stream=True, **keywords)
    async for _ in stream:
        assert trace.get_current_span() is around
    return await stream.get_final_response()


async def finalized(agent: Any, *arguments: Any, **keywords: Any) -> Any:
    return await agent.run(*arguments, stream=True, **keywords).get_final_response()


@pytest.fixture
def run() -> Run:
    return at_once


BOTH = pytest.mark.parametrize("run", [at_once, iterated])


def agent_with(*answers: Any, **keywords: Any) -> Agent:
    keywords = {"name": "nm", "description": "dd", "tools": [look, broken], **keywords}
    return Agent(Model(*answers), INSTRUCTED, **keywords)


# --------------------------------------------------------------------------------------------------------------- spans


@BOTH
async def test_one_round_of_a_tool_makes_two_chats_and_one_tool_below_the_agent(spans: Spans, run: Run) -> None:
    assert (await run(agent_with(called("look", a=ARGUMENT), said()), SAID)).text == ANSWERED
    assert spans.tree() == [
        ("invoke_agent nm", None),
        ("chat unknown", "invoke_agent nm"),
        ("execute_tool look", "invoke_agent nm"),
        ("chat unknown", "invoke_agent nm"),
    ]
    assert {span.status.status_code for span in spans.all()} == {StatusCode.UNSET}


@BOTH
async def test_the_agents_span_says_who_ran_and_what_it_took(spans: Spans, run: Run) -> None:
    agent = agent_with(called("look", a=ARGUMENT), said(), default_options={"temperature": 0.1, "stop": ["x"]})
    session = agent.create_session(session_id="s1")
    await run(agent, SAID, session=session, options={"max_tokens": 7, "model": "asked"})
    found = dict(spans.one("invoke_agent").attributes)
    definitions = json.loads(found.pop("gen_ai.tool.definitions"))
    assert [definition["function"]["name"] for definition in definitions] == ["look", "broken"]
    assert found == {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.provider.name": "agentbench",
        "gen_ai.agent.id": agent.id,
        "gen_ai.agent.name": "nm",
        "gen_ai.agent.description": "dd",
        "gen_ai.conversation.id": "s1",
        "gen_ai.request.model": "asked",
        "gen_ai.request.temperature": 0.1,
        "gen_ai.request.max_tokens": 7,
        "gen_ai.request.stop_sequences": ("x",),
        "gen_ai.request.choice.count": 1,
        "gen_ai.response.finish_reasons": ("stop",),
        "gen_ai.usage.input_tokens": 15,
        "gen_ai.usage.output_tokens": 22,
    }


@BOTH
async def test_the_chats_spans_say_the_request_and_the_answer(spans: Spans, run: Run) -> None:
    await run(agent_with(called("look", a=ARGUMENT), said()), SAID, options={"model": "asked"})
    first, second = (dict(span.attributes) for span in spans.all() if span.name == "chat asked")
    assert first == {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "cc",
        "server.address": "models.example.com",
        "server.port": 8443,
        "gen_ai.request.model": "asked",
        "gen_ai.request.choice.count": 1,
        "gen_ai.response.id": "r-c1",
        "gen_ai.response.model": "mm",
        "gen_ai.response.finish_reasons": ("tool_calls",),
        "gen_ai.usage.input_tokens": 5,
        "gen_ai.usage.output_tokens": 2,
    }
    assert second["gen_ai.response.id"] == "r-end"
    assert (second["gen_ai.usage.input_tokens"], second["gen_ai.usage.output_tokens"]) == (10, 20)


async def test_a_client_that_makes_no_spans_leaves_its_answers_id_to_the_agents_span(spans: Spans) -> None:
    class Foreign:
        def __init__(self) -> None:
            self.additional_properties: dict[str, Any] = {}

        async def get_response(self, messages: Any, *, stream: bool = False, options: Any = None, **_: Any) -> Any:
            return said()

    await Agent(Foreign(), name="nm").run("q")
    assert spans.names() == ["invoke_agent nm"]
    found = dict(spans.one("invoke_agent").attributes)
    assert found["gen_ai.response.id"] == "r-end"
    assert found["gen_ai.usage.input_tokens"] == 10


@BOTH
async def test_an_agent_as_a_tool_has_its_span_below_the_tools(spans: Spans, run: Run) -> None:
    inner = Agent(Model(said(RESULT)), name="inner")
    outer = Agent(Model(called("inner", task="t"), said()), name="outer", tools=[inner.as_tool()])
    await run(outer, SAID)
    assert spans.tree() == [
        ("invoke_agent outer", None),
        ("chat unknown", "invoke_agent outer"),
        ("execute_tool inner", "invoke_agent outer"),
        ("invoke_agent inner", "execute_tool inner"),
        ("chat unknown", "invoke_agent inner"),
        ("chat unknown", "invoke_agent outer"),
    ]
    assert spans.one("invoke_agent outer").attributes["gen_ai.usage.input_tokens"] == 15


async def test_the_layer_over_an_agent_adds_no_second_span(spans: Spans, run: Run) -> None:
    class Twice(AgentTelemetryLayer, Agent):
        pass

    await run(Twice(Model(said()), name="nm", otel_provider_name="mine"), SAID)
    assert spans.names() == ["invoke_agent nm", "chat unknown"]
    assert spans.one("invoke_agent").attributes["gen_ai.provider.name"] == "mine"


@agent_middleware
async def around_the_agent(context: AgentContext, call_next: Any) -> None:
    assert not trace.get_current_span().is_recording()
    await call_next()


@chat_middleware
async def around_the_chat(context: ChatContext, call_next: Any) -> None:
    assert trace.get_current_span().name == "invoke_agent nm"  # type: ignore[attr-defined]
    await call_next()


@BOTH
async def test_middleware_runs_outside_the_span_of_what_it_surrounds(spans: Spans, run: Run) -> None:
    agent = agent_with(called("look", a=ARGUMENT), said(), middleware=[around_the_agent, around_the_chat])
    await run(agent, SAID)
    assert spans.tree() == [
        ("invoke_agent nm", None),
        ("chat unknown", "invoke_agent nm"),
        ("execute_tool look", "invoke_agent nm"),
        ("chat unknown", "invoke_agent nm"),
    ]


async def test_tools_that_run_side_by_side_are_siblings(spans: Spans, run: Run) -> None:
    @tool
    async def wait(a: str) -> str:
        """Waits."""
        await asyncio.sleep(0)
        assert trace.get_current_span().name == "execute_tool wait"  # type: ignore[attr-defined]
        return a

    both = called("wait", "c1", a="x")
    both.messages[0].contents += called("wait", "c2", a="y").messages[0].contents
    response = await run(agent_with(both, said(), tools=[wait]), SAID)
    results = [content.result for message in response.messages for content in message.contents if content.result]
    assert results == ["x", "y"]
    assert spans.tree().count(("execute_tool wait", "invoke_agent nm")) == 2


# -------------------------------------------------------------------------------------------------------------- errors


@BOTH
async def test_a_failing_client_fails_both_spans(spans: Spans, run: Run) -> None:
    with raises(ChatClientException, ANSWERED):
        await run(agent_with(ChatClientException(ANSWERED)), SAID)
    for start in ("invoke_agent", "chat"):
        span = spans.one(start)
        assert span.status.status_code is StatusCode.ERROR
        assert span.attributes["error.type"] == "ChatClientException"
        (event,) = span.events
        assert (event.name, event.attributes["exception.type"]) == (
            "exception",
            "agentbench.exceptions.ChatClientException",
        )
    assert ANSWERED not in spans.text()


async def test_a_failing_tool_fails_its_own_span_and_no_other(spans: Spans, run: Run) -> None:
    await run(agent_with(called("broken"), said()), SAID)
    failed = spans.one("execute_tool")
    assert failed.status.status_code is StatusCode.ERROR
    assert failed.attributes["error.type"] == "LookupError"
    others = [span for span in spans.all() if span is not failed and span.name != failed.name]
    assert {span.status.status_code for span in others} == {StatusCode.UNSET}
    assert RESULT not in spans.text()


async def test_a_direct_call_of_a_tool_has_its_span(spans: Spans, points: Points, sensitive: None) -> None:
    class Place(BaseModel):
        name: str

    @tool(max_invocations=2)
    async def find(place: Place, secret: SecretString | None = None) -> Any:
        """Find a place."""
        if place.name == "nowhere":
            raise LookupError(RESULT)
        return place.name

    declared = FunctionTool(name="declared")
    find.func(Place(name="x")).close()  # type: ignore[misc]
    with pytest.raises(TypeError):
        await find.invoke(place=1)
    with pytest.raises(ToolException):
        await declared.invoke(arguments={})
    assert spans.all() == []

    await find.invoke(arguments={"place": {"name": "Ålesund"}}, tool_call_id="c7")
    await FunctionTool(lambda: {"a": "é"}, name="raw", result_parser=SKIP_PARSING).invoke()
    with pytest.raises(LookupError):
        await find.invoke(arguments={"place": {"name": "nowhere"}}, skip_parsing=True)
    with pytest.raises(ToolException):
        await find.invoke(arguments={"place": {"name": "Oslo"}})

    good, raw, failed, used_up = spans.all()
    expected = {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "find",
        "gen_ai.tool.call.id": "c7",
        "gen_ai.tool.call.arguments": '{"place": {"name": "Ålesund"}}',
        "gen_ai.tool.call.result": "Ålesund",
    }
    assert good.attributes.items() >= expected.items()
    assert raw.attributes["gen_ai.tool.call.result"] == "{'a': 'é'}"
    assert "agentbench.function.invocation.duration" in good.attributes
    assert failed.attributes["gen_ai.tool.call.id"] == "unknown"
    assert (failed.attributes["error.type"], failed.status.description) == ("LookupError", RESULT)
    assert [event.name for event in failed.events] == ["exception"]
    assert used_up.attributes["error.type"] == "ToolException"
    assert points.names() == ["agentbench.function.invocation.duration"]


async def test_a_request_of_a_tool_is_no_failure(spans: Spans, run: Run) -> None:
    @tool
    def ask() -> str:
        """Asks."""
        raise UserInputRequiredException([Content.from_text("which one?")])

    await run(agent_with(called("ask"), tools=[ask]), SAID)
    assert {span.status.status_code for span in spans.all()} == {StatusCode.UNSET}


async def test_a_cancelled_run_ends_its_spans(spans: Spans) -> None:
    started = asyncio.Event()

    class Slow(Model):
        async def _inner_get_response(self, **_: Any) -> Any:
            started.set()
            await asyncio.sleep(3600)

    task = asyncio.create_task(at_once(Agent(Slow(), name="nm"), "q"))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(spans.names()) == ["chat unknown", "invoke_agent nm"]
    assert {span.attributes["error.type"] for span in spans.all()} == {"CancelledError"}


# --------------------------------------------------------------------------------------------------------------- tasks


@pytest.mark.parametrize("way", [at_once, iterated, finalized])
async def test_runs_may_be_gathered_made_tasks_of_and_waited_for(
    spans: Spans, caplog: pytest.LogCaptureFixture, way: Run
) -> None:
    agent = agent_with(*(said() for _ in range(4)))
    await asyncio.gather(way(agent, "1"), way(agent, "2"))
    await asyncio.ensure_future(way(agent, "3"))
    await asyncio.wait_for(way(agent, "4"), 60)
    assert sorted(spans.names()) == ["chat unknown"] * 4 + ["invoke_agent nm"] * 4
    parents = [parent for name, parent in spans.tree() if name == "chat unknown"]
    assert parents == ["invoke_agent nm"] * 4
    assert len({span.context.trace_id for span in spans.all()}) == 4
    assert not trace.get_current_span().is_recording()
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_pulls_of_one_stream_may_come_from_several_tasks(spans: Spans, caplog: pytest.LogCaptureFixture) -> None:
    stream = agent_with(said("abc")).run("q", stream=True)
    for _ in range(2):
        await asyncio.create_task(stream.__anext__())
    await asyncio.wait_for(stream.get_final_response(), 60)
    assert spans.tree() == [("invoke_agent nm", None), ("chat unknown", "invoke_agent nm")]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


async def test_a_run_is_below_the_span_that_is_current_where_it_is_awaited(spans: Spans, run: Run) -> None:
    with trace.get_tracer("mine").start_as_current_span("mine"):
        await run(agent_with(said()), SAID)
        assert trace.get_current_span().name == "mine"  # type: ignore[attr-defined]
    assert spans.tree() == [("mine", None), ("invoke_agent nm", "mine"), ("chat unknown", "invoke_agent nm")]


# ------------------------------------------------------------------------------------------------------------- streams


async def test_a_stream_that_is_never_pulled_has_no_span(spans: Spans) -> None:
    agent = agent_with(said())
    stream = agent.run("q", stream=True)
    del stream
    gc.collect()
    closed = agent.run("q", stream=True)
    await closed.aclose()
    assert spans.names() == []


@pytest.mark.parametrize("middleware", [[], [around_the_agent, around_the_chat]], ids=["bare", "middleware"])
async def test_a_stream_that_is_closed_ends_its_spans_without_an_error(spans: Spans, middleware: list[Any]) -> None:
    agent = agent_with(said("abc"), middleware=middleware)
    async with agent.run("q", stream=True) as stream:
        async for _ in stream:
            break
        assert spans.names() == []
    assert spans.names() == ["invoke_agent nm", "chat unknown"]
    assert {span.status.status_code for span in spans.all()} == {StatusCode.UNSET}


async def test_a_stream_that_is_dropped_ends_its_spans(spans: Spans) -> None:
    agent = agent_with(said("abc"))
    stream = agent.run("q", stream=True)
    await stream.__anext__()
    assert spans.names() == []
    del stream
    for _ in range(10):
        gc.collect()
        await asyncio.sleep(0)
    assert spans.names() == ["invoke_agent nm", "chat unknown"]


async def test_a_task_that_is_cancelled_while_it_pulls_ends_the_spans(
    spans: Spans, caplog: pytest.LogCaptureFixture
) -> None:
    waiting = asyncio.Event()

    class Slow(Model):
        async def _streamed(self, answer: Any) -> Any:
            yield (await anext_of(super()._streamed(answer)))
            waiting.set()
            await asyncio.sleep(3600)

    async def anext_of(source: Any) -> Any:
        return await source.__anext__()

    stream = Agent(Slow(said()), name="nm").run("q", stream=True)
    task = asyncio.create_task(stream.get_final_response())
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert sorted(spans.names()) == ["chat unknown", "invoke_agent nm"]
    assert [record for record in caplog.records if record.levelno >= logging.WARNING] == []


# ------------------------------------------------------------------------------------------------------------ contents


@BOTH
async def test_without_permission_no_content_leaves_the_run(
    spans: Spans, points: Points, run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    def parse(result: Any) -> str:
        raise ValueError(result)

    odd = FunctionTool(lambda a: RESULT, name="odd", result_parser=parse)
    with caplog.at_level(logging.DEBUG):
        calls = [called("look", "c1", a=ARGUMENT), called("broken", "c2", a=ARGUMENT), called("odd", "c3", a=ARGUMENT)]
        await run(agent_with(*calls, said(), tools=[look, broken, odd]), SAID)
        with pytest.raises(ChatClientException):
            await run(agent_with(ChatClientException(ANSWERED)), SAID)
    written = logging.Formatter()
    loud = "\n".join(written.format(record) for record in caplog.records if record.levelno > logging.DEBUG)
    assert "LookupError" in loud
    for text in (SAID, ANSWERED, INSTRUCTED, ARGUMENT, RESULT):
        assert text not in spans.text()
        assert text not in points.text()
        assert text not in loud
    keys = {key for span in spans.all() for key in span.attributes}
    assert {key for key in keys if "messages" in key or "instructions" in key or "arguments" in key} == set()


@BOTH
async def test_with_permission_messages_instructions_arguments_and_results_are_reported(
    spans: Spans, points: Points, run: Run, sensitive: None
) -> None:
    await run(agent_with(called("look", a=ARGUMENT), said()), SAID)
    question = {"role": "user", "parts": [{"type": "text", "content": SAID}]}
    call = {"type": "tool_call", "id": "c1", "name": "look", "arguments": {"a": ARGUMENT}}
    result = {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1", "response": RESULT}]}
    answer = {"role": "assistant", "parts": [{"type": "text", "content": ANSWERED}]}
    instructions = [{"type": "text", "content": INSTRUCTED}]

    whole = contents_of(spans.one("invoke_agent"))
    assert whole["gen_ai.input.messages"] == [question]
    assert whole["gen_ai.output.messages"] == [{"role": "assistant", "parts": [call]}, result, answer]
    assert whole["gen_ai.system_instructions"] == instructions

    first, second = (contents_of(span) for span in spans.all() if span.name.startswith("chat"))
    assert first["gen_ai.input.messages"] == [question]
    assert first["gen_ai.output.messages"] == [{"role": "assistant", "parts": [call], "finish_reason": "tool_call"}]
    assert first["gen_ai.system_instructions"] == instructions
    assert second["gen_ai.input.messages"] == [question, {"role": "assistant", "parts": [call]}, result]
    assert second["gen_ai.output.messages"] == [{**answer, "finish_reason": "stop"}]

    used = spans.one("execute_tool").attributes
    assert json.loads(used["gen_ai.tool.call.arguments"]) == {"a": ARGUMENT}
    assert used["gen_ai.tool.call.result"] == RESULT
    assert ARGUMENT not in points.text()


def contents_of(span: Any) -> dict[str, Any]:
    kinds = ("messages", "instructions")
    return {key: json.loads(value) for key, value in span.attributes.items() if key.endswith(kinds)}


async def test_an_argument_that_its_schema_calls_a_password_is_masked(spans: Spans, sensitive: None) -> None:
    schema = {
        "type": "object",
        "properties": {
            "user": {"type": "string"},
            "password": {"type": "string", "format": "password"},
            "pin": {"anyOf": [{"type": "string", "format": "password"}, {"type": "null"}]},
        },
    }
    enter = FunctionTool(lambda **_: "in", name="enter", input_model=schema)
    await agent_with(called("enter", user="u", password=ARGUMENT, pin=ARGUMENT), said(), tools=[enter]).run("q")
    shown = json.loads(spans.one("execute_tool").attributes["gen_ai.tool.call.arguments"])
    assert shown == {"user": "u", "password": "•••", "pin": "•••"}


# ------------------------------------------------------------------------------------------------------------- metrics


@BOTH
async def test_tokens_and_seconds_are_counted_with_few_attributes(spans: Spans, points: Points, run: Run) -> None:
    await run(agent_with(called("look", a=ARGUMENT), said()), SAID, options={"model": "asked"})
    model = {
        "gen_ai.operation.name": "chat",
        "gen_ai.provider.name": "cc",
        "gen_ai.request.model": "asked",
        "gen_ai.response.model": "mm",
        "server.address": "models.example.com",
        "server.port": 8443,
    }
    assert points.units() == {
        "gen_ai.client.token.usage": "{token}",
        "gen_ai.client.operation.duration": "s",
        "agentbench.function.invocation.duration": "s",
    }
    tokens = {point.attributes["gen_ai.token.type"]: point for point in points.of("gen_ai.client.token.usage")}
    assert {kind: (point.sum, point.count) for kind, point in tokens.items()} == {"input": (15, 2), "output": (22, 2)}
    assert dict(tokens["input"].attributes) == {**model, "gen_ai.token.type": "input"}
    assert tokens["input"].explicit_bounds == tuple(4**power for power in range(14))
    assert tokens["input"].explicit_bounds[-1] == 67108864
    (seconds,) = points.of("gen_ai.client.operation.duration")
    assert dict(seconds.attributes) == model
    assert seconds.count == 2
    assert seconds.explicit_bounds == tuple(round(0.01 * 2**power, 2) for power in range(14))
    assert seconds.explicit_bounds[-1] == 81.92
    (used,) = points.of("agentbench.function.invocation.duration")
    assert dict(used.attributes) == {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "look"}
    assert used.explicit_bounds == seconds.explicit_bounds


async def test_failures_are_counted_by_their_class(spans: Spans, points: Points, run: Run) -> None:
    await run(agent_with(called("broken"), said()), SAID)
    with pytest.raises(ChatClientException):
        await run(agent_with(ChatClientException("m")), SAID)
    (used,) = points.of("agentbench.function.invocation.duration")
    assert used.attributes["error.type"] == "LookupError"
    errors = [point.attributes.get("error.type") for point in points.of("gen_ai.client.operation.duration")]
    assert sorted(errors, key=str) == ["ChatClientException", None]


# ------------------------------------------------------------------------------------------------------------ switched


async def test_what_is_disabled_makes_nothing_until_it_is_forced(spans: Spans, points: Points, run: Run) -> None:
    disable_instrumentation()
    enable_instrumentation()
    await run(agent_with(called("look", a=ARGUMENT), said()), SAID)
    assert (spans.names(), points.names()) == ([], [])
    enable_instrumentation(force=True)
    await run(agent_with(said()), SAID)
    assert spans.names() == ["invoke_agent nm", "chat unknown"]
    assert not OBSERVABILITY_SETTINGS.SENSITIVE_DATA_ENABLED


@pytest.mark.parametrize("blocked", [False, True], ids=["installed", "absent"])
def test_without_a_provider_a_run_does_not_touch_opentelemetry(blocked: bool) -> None:
    program = textwrap.dedent(f"""
        import asyncio, sys
        if {blocked}:
            sys.modules["opentelemetry"] = None
        from agentbench import Agent, tool
        from agentbench.observability import AgentTelemetryLayer, ChatTelemetryLayer, EmbeddingTelemetryLayer
        from tests.agents.telemetry.models import Model, called, said

        @tool
        def look(a: str) -> str:
            return a

        async def main():
            agent = Agent(Model(called("look", a="x"), said(), called("look", a="x"), said()), tools=[look])
            await agent.run("q")
            await agent.run("q", stream=True).get_final_response()

        asyncio.run(main())
        loaded = [name for name, module in sys.modules.items() if module and name.startswith("opentelemetry")]
        print(loaded, [name for name in sys.modules if name.startswith("agentbench.agents.telemetry")
                       and not name.endswith((".telemetry", ".layers", ".attributes"))])
    """)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert (done.stdout, done.stderr) == ("[] []\n", "")


async def test_spans_and_metrics_are_those_of_the_published_conventions(
    spans: Spans, points: Points, sensitive: None, run: Run
) -> None:
    published = pytest.importorskip("opentelemetry.semconv._incubating.attributes.gen_ai_attributes")
    measured = pytest.importorskip("opentelemetry.semconv._incubating.metrics.gen_ai_metrics")
    await run(agent_with(called("look", a=ARGUMENT), said()), SAID)
    names = {name for span in spans.all() for name in span.attributes if name.startswith("gen_ai.")}
    assert names <= {value for value in vars(published).values() if isinstance(value, str)}
    assert {name for name in points.names() if name.startswith("gen_ai.")} <= {
        value for value in vars(measured).values() if isinstance(value, str)
    }
    kinds = {span.name.split()[0]: span.kind for span in spans.all()}
    assert kinds == {"invoke_agent": SpanKind.INTERNAL, "chat": SpanKind.CLIENT, "execute_tool": SpanKind.INTERNAL}
    for span in spans.all():
        for name in ("gen_ai.response.finish_reasons", "gen_ai.request.stop_sequences"):
            assert isinstance(span.attributes.get(name, ()), tuple)
