import asyncio
import json
from typing import Any

import pytest

from tests.parts.errors import raises

pytest.importorskip("opentelemetry.sdk.trace", reason="the OpenTelemetry SDK is not installed")

from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracerProvider, SpanKind, StatusCode

from agentbench._clock import CountingIds
from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import GraphConnectivityError
from agentbench.observability import OBSERVABILITY_SETTINGS, disable_instrumentation, enable_instrumentation
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.by_hand.runner_context import InProcRunnerContext
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import FunctionExecutor
from agentbench.workflows.executors.handlers import handler, response_handler
from agentbench.workflows.executors.message import MessageType
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.executors.state import State


class Beginnings(SpanProcessor):
    """Remembers in which order spans began; a clock may give two of them one time."""

    def __init__(self):
        self.ids = []

    def on_start(self, span, parent_context=None):
        self.ids.append(span.get_span_context().span_id)


def provider_for(exporter, *processors):
    provider = TracerProvider()
    for processor in (*processors, SimpleSpanProcessor(exporter)):
        provider.add_span_processor(processor)
    return provider


@pytest.fixture
def beginnings():
    return Beginnings()


@pytest.fixture
def exporter(monkeypatch, beginnings):
    """Where spans go: a provider of the SDK stands in for the process-wide one."""
    memory = InMemorySpanExporter()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider_for(memory, beginnings))
    return memory


@pytest.fixture
def spans(exporter, beginnings):
    """The finished spans as facts, in the order in which they began."""

    def read():
        finished = sorted(exporter.get_finished_spans(), key=lambda s: beginnings.ids.index(s.context.span_id))
        names = {s.context.span_id: s.name for s in finished}
        return [Facts(s, names) for s in finished]

    return read


class Facts:
    def __init__(self, span, names):
        self.name = span.name
        self.kind = span.kind
        self.parent = names.get(span.parent.span_id) if span.parent else None
        self.attributes = dict(span.attributes)
        self.links = [link.context.span_id for link in span.links]
        self.events = [(e.name, dict(e.attributes)) for e in span.events]
        self.status = span.status.status_code
        self.described = span.status.description
        self.id = span.context.span_id
        self.trace_id = span.context.trace_id


def named(spans, name):
    return [s for s in spans if s.name == name]


def node(act, key):
    return FunctionExecutor(act, key, input=Any, output=Any, workflow_output=Any)


async def send(message, ctx):
    await ctx.send_message(message)


async def show(message, ctx):
    await ctx.yield_output(message)


async def fail(message, ctx):
    raise KeyError("k")


def chain(*acts, **settings):
    nodes = [node(act, f"n{i}") for i, act in enumerate(acts)]
    builder = WorkflowBuilder(name="flow", start_executor=nodes[0], **settings)
    return (builder.add_chain(nodes) if len(nodes) > 1 else builder).build()


# ---- off -----------------------------------------------------------------------------------------


async def trace_contexts_of_a_run():
    storage = InMemoryCheckpointStorage()
    await chain(send, show, checkpoint_storage=storage).run("x")
    (first, *_) = await storage.list_checkpoints(workflow_name="flow")
    (message,) = first.messages["n0"]
    return message.trace_contexts, message.source_span_ids


@pytest.mark.parametrize("provider", [None, NoOpTracerProvider()], ids=["no provider", "a provider that does nothing"])
async def test_without_an_sdk_nothing_is_traced(monkeypatch, provider):
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    assert await trace_contexts_of_a_run() == (None, None)


@pytest.fixture
def switches_put_back():
    before = OBSERVABILITY_SETTINGS.ENABLED, OBSERVABILITY_SETTINGS.is_user_disabled
    yield
    OBSERVABILITY_SETTINGS.ENABLED, OBSERVABILITY_SETTINGS.is_user_disabled = before


@pytest.mark.usefixtures("switches_put_back")
async def test_switched_off_nothing_is_traced_although_there_is_an_sdk(spans):
    disable_instrumentation()
    assert await trace_contexts_of_a_run() == (None, None)
    enable_instrumentation()
    assert await trace_contexts_of_a_run() == (None, None)
    assert spans() == []
    enable_instrumentation(force=True)
    assert (await trace_contexts_of_a_run())[0] is not None
    assert spans() != []


# ---- a chain of two --------------------------------------------------------------------------------


async def test_the_spans_of_a_chain_of_two(spans):
    workflow = chain(send, show, description="for people")
    await workflow.run("ab", options=RunOptions(ids=CountingIds(), observe=True))
    seen = spans()
    assert [(s.name, s.kind, s.parent) for s in seen] == [
        ("workflow.build", SpanKind.INTERNAL, None),
        ("workflow.run", SpanKind.INTERNAL, None),
        ("executor.process n0", SpanKind.INTERNAL, "workflow.run"),
        ("message.send", SpanKind.PRODUCER, "executor.process n0"),
        ("edge_group.process SingleEdgeGroup", SpanKind.INTERNAL, "workflow.run"),
        ("executor.process n1", SpanKind.INTERNAL, "workflow.run"),
    ]
    _, run, first, sent, edge, second = seen
    assert run.attributes == {
        "workflow.id": workflow.id,
        "workflow.name": "flow",
        "workflow.description": "for people",
        "workflow.run_id": "run-1",
    }
    assert [name for name, _ in run.events] == ["workflow.started", "workflow.completed"]
    assert first.attributes == {
        "executor.id": "n0",
        "executor.type": "FunctionExecutor",
        "message.type": "standard",
        "message.payload_type": "str",
        "workflow.iteration": 0,
    }
    assert sent.attributes == {"message.type": "str"}
    assert edge.attributes == {
        "edge_group.type": "SingleEdgeGroup",
        "edge_group.id": workflow.edge_groups[0].id,
        "message.source_id": "n0",
        "edge_group.delivered": True,
        "edge_group.delivery_status": "delivered",
    }
    assert second.attributes["workflow.iteration"] == 1
    assert (first.links, sent.links, edge.links, second.links) == ([], [], [sent.id], [sent.id])
    assert {s.status for s in seen} == {StatusCode.UNSET}
    assert len({s.trace_id for s in seen[1:]}) == 1


async def test_an_executor_and_a_context_by_hand_have_spans_without_a_run(spans, monkeypatch):
    context, echo = InProcRunnerContext(), node(show, "echo")
    with trace.get_tracer("test").start_as_current_span("host"):
        ctx: WorkflowContext[str] = WorkflowContext(echo, ["user"], State(), context)
        await ctx.send_message("hello")
        ((envelope,),) = (await context.drain_messages()).values()
        carriers, ids = envelope.trace_contexts, envelope.source_span_ids
        await echo.execute("hello", ["user"], State(), context, trace_contexts=carriers, source_span_ids=ids)
    _, send, process, *_ = spans()
    assert (send.name, send.parent, ids) == ("message.send", "host", [format(send.id, "016x")])
    assert (process.name, process.parent, process.links) == ("executor.process echo", "host", [send.id])
    assert process.attributes["message.type"] == str(MessageType.STANDARD)
    monkeypatch.setattr(OBSERVABILITY_SETTINGS, "ENABLED", False)
    quiet: WorkflowContext[str] = WorkflowContext(echo, ["user"], State(), context)
    await quiet.send_message("hello")
    ((untraced,),) = (await context.drain_messages()).values()
    assert (untraced.trace_contexts, untraced.source_span_ids) == (None, None)


async def test_a_run_is_part_of_the_span_around_it(spans):
    with trace.get_tracer("mine").start_as_current_span("outer"):
        workflow = chain(show)
        await workflow.run("x")
        await workflow.run("x", stream=True).get_final_response()
    assert [s.parent for s in spans() if s.name in ("workflow.build", "workflow.run")] == ["outer"] * 3


@pytest.mark.parametrize("plain", [False, True])
async def test_spans_of_a_handler_are_part_of_its_executor_s_span(spans, plain):
    def work():
        with trace.get_tracer("mine").start_as_current_span("inner"):
            pass

    async def act(message, ctx):
        work()
        await ctx.send_message(message)

    def plain_act(message, ctx):
        work()
        ctx.send_message(message)

    await chain(plain_act if plain else act, show).run("x")
    assert [s.parent for s in spans() if s.name in ("inner", "message.send")] == ["executor.process n0"] * 2


# ---- edges ---------------------------------------------------------------------------------------


async def test_the_target_of_a_barrier_is_linked_to_every_message(spans):
    split, left, right = node(send, "split"), node(send, "left"), node(send, "right")

    async def gather(texts, ctx):
        await ctx.yield_output(texts)

    join = FunctionExecutor(gather, "join", input=list[str], workflow_output=list[str])
    builder = WorkflowBuilder(start_executor=split).add_fan_out_edges(split, [left, right])
    await builder.add_fan_in_edges([left, right], join).build().run("x")
    seen = spans()
    sends = [s for s in named(seen, "message.send") if s.parent != "executor.process split"]
    (joined,) = named(seen, "executor.process join")
    assert joined.links == [s.id for s in sorted(sends, key=lambda s: s.parent)]
    assert len(joined.links) == 2
    barriers = named(seen, "edge_group.process FanInEdgeGroup")
    assert [s.attributes["edge_group.delivery_status"] for s in barriers] == ["buffered", "delivered"]
    assert [s.attributes["edge_group.delivered"] for s in barriers] == [True, True]
    assert sorted(s.links[0] for s in barriers) == sorted(joined.links)
    assert {s.parent for s in [joined, *barriers]} == {"workflow.run"}


@pytest.mark.parametrize(
    ("condition", "message", "delivered", "status"),
    [
        (lambda m: False, "x", True, "dropped condition evaluated to false"),
        (lambda m: True, "x", True, "delivered"),
        (None, 5, False, "dropped type mismatch"),
    ],
)
@pytest.mark.filterwarnings("ignore::agentbench.exceptions.WorkflowWarning")
async def test_the_span_of_an_edge_says_what_became_of_the_message(spans, condition, message, delivered, status):
    async def send_this(_, ctx):
        await ctx.send_message(message)

    first = node(send_this, "first")
    last = FunctionExecutor(show, "last", input=str, workflow_output=str)
    await WorkflowBuilder(start_executor=first).add_edge(first, last, condition).build().run("go")
    (edge,) = named(spans(), "edge_group.process SingleEdgeGroup")
    assert edge.attributes["edge_group.delivered"] is delivered
    assert edge.attributes["edge_group.delivery_status"] == status


# ---- failures, ends --------------------------------------------------------------------------------


async def test_a_failure_is_on_the_spans_of_its_executor_and_of_the_run(spans):
    with pytest.raises(KeyError):
        await chain(send, fail).run("x")
    seen = spans()
    (failed,) = named(seen, "executor.process n1")
    (run,) = named(seen, "workflow.run")
    for span in (failed, run):
        assert span.status is StatusCode.ERROR
        assert span.attributes["error.type"] == "KeyError"
        ((_, exception),) = [e for e in span.events if e[0] == "exception"]
        assert exception["exception.type"] == "builtins.KeyError"
    assert [name for name, _ in run.events] == ["workflow.started", "workflow.error", "exception"]
    assert dict(run.events)["workflow.error"] == {"error.message": "KeyError", "error.type": "KeyError"}
    assert named(seen, "executor.process n0")[0].status is StatusCode.UNSET


async def refuse(message, ctx):
    raise ValueError(f"cannot read {message}")


@pytest.mark.parametrize("sensitive", [False, True])
async def test_spans_hold_the_text_of_an_error_only_where_contents_are_allowed(spans, exporter, monkeypatch, sensitive):
    monkeypatch.setattr(OBSERVABILITY_SETTINGS, "SENSITIVE_DATA_ENABLED", sensitive)
    with raises(ValueError, "PIN", "1234"):
        await chain(send, refuse).run("my PIN is 1234")
    written = [span.to_json() for span in exporter.get_finished_spans()]
    assert any("my PIN is 1234" in span for span in written) is sensitive
    (failed,) = named(spans(), "executor.process n1")
    assert failed.attributes["error.type"] == "ValueError"
    assert failed.described == ("cannot read my PIN is 1234" if sensitive else "ValueError")


async def test_the_span_of_a_cancelled_run_ends_with_an_error(spans):
    entered = asyncio.Event()

    async def wait(message, ctx):
        entered.set()
        await asyncio.Event().wait()

    run = asyncio.ensure_future(chain(wait).run("x"))
    await entered.wait()
    run.cancel()
    with pytest.raises(asyncio.CancelledError):
        await run
    (span,) = named(spans(), "workflow.run")
    assert span.attributes["error.type"] == "CancelledError"
    assert len(named(spans(), "executor.process n0")) == 1


async def test_a_continuation_is_a_span_of_its_own(spans):
    class Asks(Executor):
        @handler
        async def ask(self, text: str, ctx: WorkflowContext[str]) -> None:
            await ctx.request_info(text, str, request_id="R")

        @response_handler
        async def on_answer(self, asked: str, answer: str, ctx: WorkflowContext[str]) -> None: ...

    workflow = WorkflowBuilder(start_executor=Asks("asks")).build()
    await workflow.run("x")
    await workflow.run(responses={"R": "yes"})
    first, second = named(spans(), "workflow.run")
    assert first.trace_id != second.trace_id
    assert [s.attributes["message.type"] for s in named(spans(), "executor.process asks")] == ["standard", "response"]


async def test_executor_events_of_an_observed_run_name_their_spans(spans):
    result = await chain(send, show).run("x", options=RunOptions(observe=True))
    seen = {s.name: format(s.id, "016x") for s in spans()}
    named_events = [e for e in result if e.executor_id is not None]
    assert len(named_events) == 5
    for event in named_events:
        assert event.span_id == seen[f"executor.process {event.executor_id}"]
        assert event.parent_span_id == seen["workflow.run"]


# ---- building ------------------------------------------------------------------------------------


def test_the_span_of_a_build_has_its_steps_and_the_whole_graph(spans):
    workflow = chain(send, show, description="for people")
    (build,) = spans()
    assert build.attributes["workflow_builder.name"] == "flow"
    assert build.attributes["workflow_builder.description"] == "for people"
    assert build.attributes["workflow.id"] == workflow.id
    assert json.loads(build.attributes["workflow.definition"]) == workflow.to_dict()
    assert [name for name, _ in build.events] == ["build.started", "build.validation_completed", "build.completed"]


def test_the_graph_can_be_left_out(spans, monkeypatch):
    monkeypatch.setattr(OBSERVABILITY_SETTINGS, "WORKFLOW_DEFINITION_ENABLED", False)
    chain(send, show)
    (build,) = spans()
    assert "workflow.definition" not in build.attributes


@pytest.mark.parametrize("sensitive", [False, True])
def test_the_span_of_a_failed_build_has_the_error(spans, monkeypatch, sensitive):
    monkeypatch.setattr(OBSERVABILITY_SETTINGS, "SENSITIVE_DATA_ENABLED", sensitive)
    builder = WorkflowBuilder(start_executor=node(send, "a")).add_executor(node(show, "unreachable"))
    with pytest.raises(GraphConnectivityError) as caught:
        builder.build()
    (build,) = spans()
    assert build.status is StatusCode.ERROR
    events = dict(build.events)
    assert list(events) == ["build.started", "build.error", "exception"]
    assert events["build.error"] == {
        "build.error.message": str(caught.value) if sensitive else "GraphConnectivityError",
        "build.error.type": "GraphConnectivityError",
    }
