"""Read by the type checker, never run: what users do most with each package beside the root."""

from __future__ import annotations

from typing import Any, assert_type

import pandas as pd

import agentbench
from agentbench import Agent, AgentResponse, ChatResponse, Workflow, WorkflowEvent, WorkflowRun
from agentbench.batch import CallRecord, DaskPlacement
from agentbench.checkpoints import (
    CheckpointDiff,
    CheckpointInfo,
    CheckpointStorage,
    FileCheckpointStorage,
    SQLCheckpointStorage,
    WorkflowCheckpoint,
    diff_checkpoints,
    fork_checkpoint,
    list_infos,
    list_lineage,
    open_storage,
)
from agentbench.evaluation import (
    EvalComparison,
    EvalItem,
    EvalResults,
    LocalEvaluator,
    compare_evaluations,
    evaluate_agent,
    evaluate_workflow,
    keyword_check,
)
from agentbench.exceptions import (
    MissingExtraError,
    NodeTimeoutError,
    TypeCompatibilityError,
    WorkflowConvergenceException,
    WorkflowValidationError,
)
from agentbench.notebook import (
    Chat,
    Form,
    GraphView,
    Plot,
    Settings,
    Stepper,
    StepperStatus,
    chat,
    configure,
    draw,
    events_frame,
    request_form,
    stepper,
    timeline,
)
from agentbench.observability import AgentTelemetryLayer, configure_otel_providers, is_tracing
from agentbench.openai import OpenAIChatClient, OpenAIChatOptions
from agentbench.orchestrations import (
    AIAgentHostExecutor,
    ConcurrentBuilder,
    HandoffBuilder,
    SequentialBuilder,
    WorkflowAgent,
    build_sequential,
)
from agentbench.revisions import ExecutorContent, Merge, Migration, ModelRecording, WhatIf, WhatIfSummary
from agentbench.stategraph import (
    END,
    START,
    AgentState,
    Command,
    CompiledGraph,
    GraphResult,
    InMemoryCheckpointer,
    StateGraph,
    StateHistory,
)
from agentbench.testing import Call, CountingIds, EchoChatClient, ScriptedChatClient, StorageCheck, TickingClock


def names_that_only_a_package_has_are_errors_at_the_root() -> None:
    moved = [
        agentbench.diff_checkpoints,  # type: ignore[attr-defined]
        agentbench.compare_evaluations,  # type: ignore[attr-defined]
        agentbench.MissingExtraError,  # type: ignore[attr-defined]
        agentbench.Stepper,  # type: ignore[attr-defined]
        agentbench.is_tracing,  # type: ignore[attr-defined]
        agentbench.OpenAIChatClient,  # type: ignore[attr-defined]
        agentbench.SequentialBuilder,  # type: ignore[attr-defined]
        agentbench.CompiledGraph,  # type: ignore[attr-defined]
        agentbench.TickingClock,  # type: ignore[attr-defined]
    ]
    assert_type(moved, list[Any])


async def checkpoints(storage: CheckpointStorage, first: WorkflowCheckpoint, second: WorkflowCheckpoint) -> None:
    assert_type(open_storage("sqlite:///runs.db"), CheckpointStorage)
    storages: list[CheckpointStorage] = [FileCheckpointStorage("runs"), SQLCheckpointStorage("runs.db")]
    assert_type(await list_infos(storages[0], workflow_name="w"), list[CheckpointInfo])
    assert_type(await list_lineage(storage, "cp-0001"), list[CheckpointInfo])
    assert_type(await storage.load("cp-0001"), WorkflowCheckpoint)
    assert_type(await storage.get_latest(workflow_name="w"), WorkflowCheckpoint | None)
    assert_type(await fork_checkpoint(storage, "cp-0001"), CheckpointInfo)
    assert_type(diff_checkpoints(first, second), CheckpointDiff)


async def evaluation(agent: Agent, workflow: Workflow) -> None:
    local = LocalEvaluator(keyword_check("sun"))
    assert_type(await local.evaluate([EvalItem(conversation=[])]), EvalResults)
    before = await evaluate_agent(agent=agent, queries=["Hello"], evaluators=local)
    assert_type(before, list[EvalResults])
    after = await evaluate_workflow(workflow=workflow, queries=["Hello"], evaluators=local)
    assert_type(compare_evaluations(before[0], after[0]), EvalComparison)


async def exceptions(run: WorkflowRun) -> None:
    try:
        await run.result()
    except WorkflowConvergenceException as error:
        assert_type(error.max_iterations, int | None)
        assert_type(error.pending, dict[str, int])
    except TypeCompatibilityError as error:
        assert_type(error.source_types, list[Any])
    except WorkflowValidationError as error:
        assert_type(error.all_errors, list[WorkflowValidationError])
    except NodeTimeoutError as error:
        assert_type(error.node, str | None)
    except agentbench.exceptions.GraphMismatchError as error:
        assert_type(error.differences, list[dict[str, Any]])
    except MissingExtraError as error:
        assert_type(error.command, str)


def notebook(workflow: Workflow, run: WorkflowRun, agent: Agent, request: WorkflowEvent[Any]) -> None:
    panel = stepper(workflow, 1)
    assert_type(panel, Stepper)
    assert_type(panel.step(), agentbench.StepReport)
    assert_type(panel.run(until=3), StepperStatus)
    assert_type(panel.snapshot(), GraphView)
    assert_type(draw(workflow), GraphView)
    assert_type(events_frame(run), pd.DataFrame)
    assert_type(timeline(run), Plot)
    assert_type(configure(deterministic=True), Settings)
    assert_type(request_form(request, respond=run.respond), Form)
    assert_type(chat(agent), Chat)


def observability() -> None:
    configure_otel_providers()
    assert_type(is_tracing(), bool)
    assert_type(AgentTelemetryLayer.__name__, str)


async def openai(client: OpenAIChatClient[OpenAIChatOptions]) -> None:
    assert_type(OpenAIChatClient("small"), OpenAIChatClient[OpenAIChatOptions])
    assert_type(await client.get_response("Hello"), ChatResponse[Any])
    assert_type(await Agent(client).run("Hello"), AgentResponse[Any])


def orchestrations(agent: Agent) -> None:
    for builder in (SequentialBuilder, ConcurrentBuilder, HandoffBuilder):
        assert_type(builder(participants=[agent]).build(), Workflow)
    assert_type(build_sequential([agent]), Workflow)
    assert_type(build_sequential([agent]).as_agent("team"), WorkflowAgent)
    assert_type(AIAgentHostExecutor(agent), AIAgentHostExecutor)


async def stategraph(state: AgentState) -> None:
    graph = StateGraph(AgentState).add_node("say", str).add_edge(START, "say").add_edge("say", END)
    app = graph.compile(checkpointer=InMemoryCheckpointer())
    assert_type(app, CompiledGraph[AgentState])
    assert_type(app.invoke({}), GraphResult[AgentState])
    assert_type(await app.ainvoke(Command(resume=True)), GraphResult[AgentState])
    assert_type(app.start({}), WorkflowRun)
    assert_type(app.get_state_history({}), StateHistory)


async def revisions(workflow: Workflow, run: WorkflowRun) -> None:
    migration = await workflow.migrate("checkpoint", functions={"draft": lambda old: ExecutorContent("writer")})
    assert_type(migration, Migration)
    assert_type(await migration.apply(), CheckpointInfo)
    assert_type(await run.redo(), WorkflowRun)
    assert_type(ModelRecording.load("calls.jsonl"), ModelRecording)


async def testing() -> None:
    client = ScriptedChatClient([Call("weather", {"city": "Ulm"}), "Fog."])
    assert_type(client, agentbench.ScriptedChatClient)
    assert_type(await client.get_response("Hello"), ChatResponse[Any])
    assert_type(await EchoChatClient().get_response("Hello"), ChatResponse[Any])
    assert_type(TickingClock().time_ns(), int)
    assert_type(CountingIds().new_id("run"), str)
    assert_type(agentbench.testing.storage_suite.StorageCheck, type[StorageCheck])


async def uses_batch(client: Any, executor: Any, call: Any) -> None:
    assert_type(await DaskPlacement(client).call(executor, call), CallRecord)


def uses_revisions(result: WhatIf) -> None:
    assert_type(result.summary(), WhatIfSummary)


async def a_merge_makes_a_branch(merge: Merge) -> None:
    branch = await merge.apply()
    await branch.respond(merge.questions[0], value=True)
