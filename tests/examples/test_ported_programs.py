"""Whole programs as people bring them, joined from the snippets of guides, with nothing but their imports changed."""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from pydantic import BaseModel

from agentbench import (
    Agent,
    AgentFrameworkException,
    AgentSession,
    BaseChatClient,
    ChatResponse,
    CheckpointManager,
    EdgeGroup,
    Executor,
    FanInEdgeGroup,
    FanOutEdgeGroup,
    FileCheckpointStorage,
    InMemoryCheckpointStorage,
    InProcessExecution,
    InProcRunnerContext,
    Message,
    Runner,
    SingleEdgeGroup,
    State,
    SwitchCaseEdgeGroup,
    SwitchCaseEdgeGroupCase,
    SwitchCaseEdgeGroupDefault,
    Workflow,
    WorkflowBuilder,
    WorkflowCheckpointException,
    WorkflowContext,
    WorkflowConvergenceException,
    WorkflowEvent,
    WorkflowEventType,
    WorkflowMessage,
    WorkflowRunState,
    create_edge_runner,
    executor,
    handler,
    response_handler,
)
from agentbench.exceptions import ChatClientContentFilterException, ChatClientInvalidAuthException
from agentbench.observability import OtelAttr, get_tracer
from tests.agents.telemetry.conftest import Spans, spans  # noqa: F401 - a fixture

# ---- a runner by hand ------------------------------------------------------------------------------


@dataclass
class Ticket:
    text: str
    priority: str = "low"
    trail: list[str] = field(default_factory=list)


class Triage(Executor):
    def __init__(self) -> None:
        super().__init__(id="triage")

    @handler
    async def from_text(self, text: str, ctx: WorkflowContext[Ticket]) -> None:
        await ctx.send_message(Ticket(text, "high" if "fire" in text else "low", ["triage"]))

    @handler
    async def from_batch(self, texts: list[str], ctx: WorkflowContext[Ticket]) -> None:
        for text in texts:
            await self.from_text(text, ctx)


class Desk(Executor):
    """Asks a person about what is urgent."""

    @handler
    async def work(self, ticket: Ticket, ctx: WorkflowContext[Ticket, str]) -> None:
        ticket.trail.append(self.id)
        ctx.set_state(f"seen {ticket.text}", ctx.get_source_executor_id())
        if self.id == "fast":
            await ctx.request_info(ticket, bool)
        else:
            await ctx.yield_output(f"queued {ticket.text}")
            await ctx.send_message(ticket)

    @response_handler
    async def decide(self, ticket: Ticket, is_true: bool, ctx: WorkflowContext[Ticket, str]) -> None:
        await ctx.yield_output(f"{'called' if is_true else 'ignored'} {ticket.text}")
        await ctx.send_message(ticket)


class Archive(Executor):
    def __init__(self) -> None:
        super().__init__(id="archive")
        self.trails: list[list[str]] = []

    @handler
    async def store(self, ticket: Ticket, ctx: WorkflowContext) -> None:
        self.trails.append([*ticket.trail, self.id])

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"trails": self.trails}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self.trails = state.get("trails", [])


def desk_groups() -> list[EdgeGroup]:
    return [
        SwitchCaseEdgeGroup(
            source_id="triage",
            cases=[
                SwitchCaseEdgeGroupCase(lambda ticket: ticket.priority == "high", "fast", condition_name="is_high"),
                SwitchCaseEdgeGroupDefault(target_id="batch"),
            ],
        ),
        FanInEdgeGroup(source_ids=["fast", "batch"], target_id="archive"),
    ]


def desk_executors() -> dict[str, Executor]:
    return {each.id: each for each in (Triage(), Desk(id="fast"), Desk(id="batch"), Archive())}


async def test_a_monitor_drives_a_runner_answers_for_a_person_and_goes_on_elsewhere(tmp_path: Path) -> None:
    storage = FileCheckpointStorage(tmp_path)
    log: list[str] = []

    async def monitor(runner: Runner) -> None:
        async for event in runner.run_until_convergence():
            if event.type == WorkflowEventType.EXECUTOR_INVOKED:
                log.append(f">> {event.source_id}")
            elif event.type == WorkflowEventType.OUTPUT:
                log.append(event.data)

    context = InProcRunnerContext(storage)
    runner = Runner(desk_groups(), desk_executors(), State(), context, "desk", "desk-v1", max_iterations=10)
    start, texts = runner.graph.executors["triage"], ["a fire", "a leak"]
    await start.execute(texts, ["Workflow"], State(), context)
    await monitor(runner)
    assert log == [">> triage", ">> fast", ">> batch", "queued a leak", ">> archive"]
    (request,) = (await context.get_pending_request_info_events()).values()
    assert (request.data.text, request.response_type) == ("a fire", bool)

    log.clear()
    latest = await FileCheckpointStorage(tmp_path).get_latest(workflow_name="desk")
    assert latest is not None
    assert latest.graph_signature_hash == "desk-v1"
    later = InProcRunnerContext(storage)
    state, executors = State(), desk_executors()
    runner = Runner(desk_groups(), executors, state, later, "desk", "desk-v1")
    await runner.restore_from_checkpoint(latest.checkpoint_id)
    assert state.get("seen a fire") == "triage"
    await later.send_request_info_response(request.request_id, True)
    await monitor(runner)
    assert log == [">> fast", "called a fire", ">> archive"]
    archive: Any = executors["archive"]
    assert archive.trails == [["triage", "batch", "archive"], ["triage", "fast", "archive"]]
    assert await later.get_pending_request_info_events() == {}

    other = Runner(desk_groups(), desk_executors(), State(), InProcRunnerContext(), "desk", "desk-v2")
    with pytest.raises(WorkflowCheckpointException, match="another graph"):
        await other.restore_from_checkpoint(latest.checkpoint_id, storage)


async def test_a_host_of_executors_carries_a_trace_across(spans: Spans) -> None:  # noqa: F811
    """One executor is called here, another one there; what one process sends is linked in the other."""
    context, state = InProcRunnerContext(), State()
    with get_tracer("host").start_as_current_span("here"):
        await Triage().execute("a fire", ["Workflow"], state, context)
    ((message,),) = (await context.drain_messages()).values()
    wire = json.loads(json.dumps([message.trace_contexts, message.source_span_ids]))
    assert message.trace_context == wire[0][0]
    assert message.source_span_id == wire[1][0]
    await Desk(id="batch").execute(message.data, ["triage"], state, context, *wire)

    desk = Desk(id="batch")
    by_hand = WorkflowContext[Ticket, str](desk, ["triage"], state, context, request_id="r-1")
    await by_hand.send_message(message.data, target_id="archive")
    await by_hand.yield_output("done")
    assert by_hand.request_id == "r-1"
    assert [event.data for event in await context.drain_events() if event.type == "output"] == ["queued a fire", "done"]

    first, second = (span for span in spans.all() if span.name.startswith(OtelAttr.EXECUTOR_PROCESS_SPAN))
    assert [first.attributes[key] for key in (OtelAttr.EXECUTOR_ID, OtelAttr.MESSAGE_TYPE)] == ["triage", "standard"]
    assert second.attributes[OtelAttr.MESSAGE_PAYLOAD_TYPE] == "Ticket"
    assert [format(link.context.span_id, "016x") for link in second.links] == message.source_span_ids
    assert spans.tree()[:3] == [
        ("here", None),
        ("executor.process triage", "here"),
        ("message.send", "executor.process triage"),
    ]
    assert spans.all()[-1].attributes[OtelAttr.MESSAGE_DESTINATION_EXECUTOR_ID] == "archive"


# ---- routes of one's own ---------------------------------------------------------------------------


def route_by_language(msg: dict[str, Any], targets: list[str]) -> list[str]:
    preferred = f"agent_{msg.get('language', 'en')}"
    return [preferred] if preferred in targets else ["agent_en"]


@executor(id="classifier", input=str, output=dict)
async def classify(text: str, ctx: WorkflowContext[dict[str, Any]]) -> None:
    await ctx.send_message({"language": "fr" if "bonjour" in text else "xx", "text": text, "audit": "!" in text})


def speaker(name: str) -> Executor:
    @executor(id=name, input=dict, output=str)
    def speak(msg, ctx) -> None:
        time.sleep(0)  # in a worker thread
        ctx.send_message(f"{name}: {msg['text']}")

    return speak


@executor(id="each")
async def each(text: str, ctx: WorkflowContext[str, str]) -> None:
    await ctx.yield_output(text)


def routed_by_methods() -> Workflow:
    english, french, audit = (speaker(name) for name in ("agent_en", "agent_fr", "audit"))
    builder = WorkflowBuilder(name="routed").add_executor(classify)
    for node in (english, french, audit, each):
        builder = builder.add_executor(node)
    return (
        builder.fan_out(classify, [english, french], route_by_language, "by_language")
        .connect(classify, audit, condition=lambda msg: msg["audit"])
        .fan_in([english, french, audit], each)
        .output_from(each)
        .max_iterations(5)
        .build()
    )


def routed_by_groups() -> Workflow:
    async def is_audited(msg: dict[str, Any]) -> bool:
        return bool(msg["audit"])

    fan_out = FanOutEdgeGroup(
        source_id="classifier",
        target_ids=["agent_en", "agent_fr"],
        selection_func=route_by_language,
        selection_func_name="by_language",
    )
    fan_in = FanInEdgeGroup(source_ids=["agent_en", "agent_fr", "audit"], target_id=each.id)
    audited = SingleEdgeGroup("classifier", "audit", condition=is_audited)
    nodes = {node.id: node for node in (classify, *map(speaker, ("agent_en", "agent_fr", "audit")), each)}
    return Workflow([fan_out, audited, fan_in], nodes, classify, InProcRunnerContext(), "routed", None, 5, [each.id])


@pytest.mark.parametrize("build", [routed_by_methods, routed_by_groups])
@pytest.mark.parametrize(
    ("text", "expected"),
    [("bonjour", ["agent_fr: bonjour"]), ("hola!", ["agent_en: hola!", "audit: hola!"]), ("hi", ["agent_en: hi"])],
)
async def test_messages_go_by_language_and_what_is_loud_is_audited(
    build: Callable[[], Workflow], text: str, expected: list[str]
) -> None:
    result = await build().run(text)
    assert sorted(result.outputs) == expected
    assert result.get_final_state() is WorkflowRunState.IDLE


async def test_what_is_read_back_from_a_graph_names_its_functions_and_refuses_to_guess() -> None:
    workflow = routed_by_groups()
    snapshot = json.loads(json.dumps([group.to_dict() for group in workflow.edge_groups]))
    fan_out, audited, fan_in = (EdgeGroup.from_dict(group) for group in snapshot[:3])
    assert isinstance(fan_out, FanOutEdgeGroup)
    assert (fan_out.selection_func_name, fan_out.id, fan_out.type) == (
        "by_language",
        workflow.edge_groups[0].id,
        "FanOutEdgeGroup",
    )
    assert fan_in.source_executor_ids == ["agent_en", "agent_fr", "audit"]
    assert audited.edges[0].condition_name == "is_audited"
    edge_runner = create_edge_runner(fan_out, workflow.executors)
    with pytest.raises(RuntimeError, match=r"'by_language' .* Build the graph from code"):
        await edge_runner.send_message(WorkflowMessage({}, "classifier"), State(), InProcRunnerContext())

    switch: Any = desk_groups()[0]
    assert [switch.selection_func(Ticket("x", priority), ["fast", "batch"]) for priority in ("high", "low")] == [
        ["fast"],
        ["batch"],
    ]


# ---- failures and fresh starts ---------------------------------------------------------------------


class Draft(BaseModel):
    text: str
    rounds: int = 0


class Writer(Executor):
    """Writes with an agent until the text is long enough."""

    def __init__(self, agent: Agent, long_enough: int, id: str = "writer") -> None:  # noqa: A002
        super().__init__(id=id)
        self._agent, self._long_enough = agent, long_enough
        self._session = agent.create_session(session_id="writing")

    @handler
    async def begin(self, topic: str, ctx: WorkflowContext[Draft]) -> None:
        await ctx.send_message(Draft(text=(await self._agent.run(topic, session=self._session)).text))

    @handler
    async def go_on(self, draft: Draft, ctx: WorkflowContext[Draft, str]) -> None:
        if draft.rounds >= self._long_enough:
            await ctx.yield_output(draft.text)
            return
        more = await self._agent.run("Go on.", session=self._session)
        await ctx.send_message(Draft(text=f"{draft.text} {more.text}", rounds=draft.rounds + 1))

    async def on_checkpoint_save(self) -> dict[str, Any]:
        return {"session": self._session.to_dict()}

    async def on_checkpoint_restore(self, state: dict[str, Any]) -> None:
        self._session = AgentSession.from_dict(state["session"])


class Typist(BaseChatClient):
    """Counts the user's messages, and fails once where it is to."""

    def __init__(self, failures: Mapping[int, Exception]) -> None:
        super().__init__()
        self.failures = dict(failures)

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **kwargs: Any) -> ChatResponse:
        n = sum(message.role == "user" for message in messages)
        if n in self.failures:
            raise self.failures.pop(n)
        return ChatResponse(messages=[Message("assistant", [f"w{n}"])])


def writing(
    storage: Any, *, failures: Mapping[int, Exception] | None = None, writer: str = "writer", limit: int = 2
) -> Workflow:
    node = Writer(Typist(failures or {}).as_agent(name="typist"), limit, writer)

    @executor(id="pass_on", input=Draft, output=Draft)
    async def pass_on(draft: Draft, ctx: WorkflowContext[Draft]) -> None:
        await ctx.send_message(draft)

    return (
        WorkflowBuilder(name="writing", start_executor=node, checkpoint_storage=storage, max_iterations=8)
        .add_edge(node, pass_on)
        .add_edge(pass_on, node)
        .build()
    )


async def robust_run(workflow: Workflow, prompt: str, storage: Any, alerts: list[str]) -> Any:
    checkpoint = await storage.get_latest(workflow_name=workflow.name)
    try:
        if checkpoint:
            return await workflow.run_from_checkpoint(checkpoint.checkpoint_id)
        return await workflow.run(prompt)
    except ChatClientInvalidAuthException:
        alerts.append("refresh")
        return await robust_run(workflow, prompt, storage, alerts)
    except ChatClientContentFilterException:
        return "I cannot respond to that."
    except WorkflowConvergenceException as exc:
        alerts.append(str(exc))
        raise
    except WorkflowCheckpointException as exc:
        alerts.append(f"incompatible: {exc}")
        return await workflow.run(prompt)
    except AgentFrameworkException as exc:
        alerts.append(type(exc).__name__)
        raise


async def test_a_robust_run_resumes_refreshes_and_starts_afresh(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    storage, alerts = FileCheckpointStorage(tmp_path), list[str]()
    failures: dict[int, Exception] = {2: ChatClientInvalidAuthException("expired")}

    result = await robust_run(writing(storage, failures=failures), "A text", storage, alerts)
    assert (result.outputs, alerts) == (["w1 w2 w3"], ["refresh"])

    blocked = writing(InMemoryCheckpointStorage(), failures={1: ChatClientContentFilterException("blocked")})
    assert await robust_run(blocked, "x", InMemoryCheckpointStorage(), alerts) == "I cannot respond to that."

    changed = writing(storage, writer="author")
    assert (await robust_run(changed, "A text", storage, alerts)).outputs == ["w1 w2 w3"]
    assert alerts[1].startswith("incompatible: Checkpoint ")
    assert "executor 'writer' is gone; executor 'author' is new" in alerts[1]

    with pytest.raises(WorkflowConvergenceException):
        await robust_run(writing(None, limit=99), "A text", InMemoryCheckpointStorage(), alerts)
    assert "'writing'" in alerts[2]
    assert "8" in alerts[2]

    raised = AgentFrameworkException("Custom integration failed.", inner_exception=failures[2], log_level=30)
    assert raised.inner_exception is failures[2]
    assert ("WARNING", str(raised)) in [(record.levelname, record.getMessage()) for record in caplog.records]


# ---- runs and their handles ------------------------------------------------------------------------


class Tally(Executor):
    """Keeps its texts as the other half of the page does: in the state, read and queued through the context."""

    @handler
    async def handle(self, message: str, ctx: WorkflowContext[str, str]) -> None:
        messages = [*(await ctx.read_state("texts", [])), message]
        await ctx.queue_state_update("texts", messages)
        if len(message) < 5:
            await ctx.send_message(f"{message}.")
        else:
            await ctx.yield_output(" ".join(messages))


async def test_a_run_is_watched_rewound_and_resumed_in_a_new_instance() -> None:
    def build() -> Workflow:
        tally, back = Tally("tally"), Tally("back")
        return WorkflowBuilder(tally).add_edge(tally, back).add_edge(back, tally).build()

    checkpoint_manager = CheckpointManager.create_in_memory()
    workflow = build()
    run = await InProcessExecution.run_streaming(workflow, "x", checkpoint_manager)
    completed, outputs = [], []
    async for evt in run.watch_stream():
        if evt.type == WorkflowEventType.SUPERSTEP_COMPLETED:
            completed.append(evt.data.checkpoint)
        elif evt.type == "output":
            outputs.append(evt.data)
    assert outputs == ["x x. x.. x... x...."]
    assert [info.checkpoint_id for info in completed] == [info.checkpoint_id for info in run.checkpoints[1:]]

    saved_checkpoint = run.checkpoints[2]
    await run.restore_checkpoint(saved_checkpoint)
    assert [evt.data async for evt in run.watch_stream() if evt.type == "output"] == outputs
    new_run = await InProcessExecution.resume_streaming(build(), saved_checkpoint, checkpoint_manager)
    assert [evt.data async for evt in new_run.watch_stream() if evt.type == "output"] == outputs


# ---- a person in the loop --------------------------------------------------------------------------


@dataclass
class Approval:
    draft: str
    rounds: int


class Editor(Executor):
    def __init__(self) -> None:
        super().__init__(id="editor")

    @handler
    async def submit(self, draft: str, ctx: WorkflowContext) -> None:
        await ctx.request_info(Approval(draft, 1), str)

    @response_handler
    async def reviewed(self, asked: Approval, verdict: str, ctx: WorkflowContext[str, str]) -> None:
        if verdict == "ok" or asked.rounds == 3:
            await ctx.yield_output(f"{asked.draft} ({verdict} after {asked.rounds})")
        else:
            await ctx.request_info(Approval(f"{asked.draft}, {verdict}", asked.rounds + 1), str)


@pytest.mark.parametrize("spelling", ["run", "run_stream"])
@pytest.mark.parametrize("by_hand", [False, True])
async def test_a_review_goes_on_over_restarts_until_the_person_agrees(spelling: str, by_hand: bool) -> None:
    storage = InMemoryCheckpointStorage()

    def build() -> Workflow:
        if by_hand:
            editor = Editor()
            return Workflow([], {"editor": editor}, editor, InProcRunnerContext(storage), "review")
        return WorkflowBuilder(name="review", checkpoint_storage=storage, start_executor=Editor()).build()

    async def events_of(workflow: Workflow, *args: Any, **kwargs: Any) -> list[WorkflowEvent[Any]]:
        stream: Any = workflow.run_stream if spelling == "run_stream" else workflow.run
        more = {} if spelling == "run_stream" else {"stream": True}
        return [event async for event in stream(*args, **kwargs, **more)]

    events = await events_of(build(), "draft")
    for verdict in ("shorter", "nicer", "ok"):
        (ask,) = [event for event in events if event.type == WorkflowEventType.REQUEST_INFO]
        latest = await storage.get_latest(workflow_name="review")
        assert latest is not None
        assert list(latest.pending_request_info_events) == [ask.request_id]
        events = await events_of(build(), checkpoint_id=latest.checkpoint_id, responses={ask.request_id: verdict})
        events = [event for event in events if event.type != "request_info" or event.request_id != ask.request_id]
    assert [event.data for event in events if event.type == "output"] == ["draft, shorter, nicer (ok after 3)"]
