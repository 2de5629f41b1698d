"""Nodes that are not functions (an executor, a workflow or another graph), and a graph as an executor."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar

from agentbench.exceptions import GraphError, GraphRecursionError, WorkflowConvergenceException
from agentbench.messages.message import Message
from agentbench.messages.whole_copies import copy_whole
from agentbench.stategraph.command import Command
from agentbench.stategraph.compiled import CompiledGraph
from agentbench.stategraph.interrupts import current_questions
from agentbench.stategraph.merging.state_fields import StateFields
from agentbench.stategraph.merging.updates import Collected, updates_between
from agentbench.stategraph.reducers import Overwrite
from agentbench.stategraph.results import GraphResult, graph_result
from agentbench.stategraph.running.inner_runs import answers_to, inherited_config, restore_run, stored_run
from agentbench.stategraph.running.plan import CallRecord, GraphOptions
from agentbench.stategraph.threads.thread_call import read_config
from agentbench.workflows.builder.nodes import register_executor_adapter
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.engine.active_run import ActiveRun, RunState
from agentbench.workflows.engine.run_kwargs import RUN_KWARGS, all_kwargs_inside
from agentbench.workflows.events.events import WorkflowEvent
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import handler
from agentbench.workflows.executors.message import WorkflowMessage
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.graph.graph import Graph, find_sub_workflow
from agentbench.workflows.nested import WorkflowExecutor, inner_log, path_inside
from agentbench.workflows.run.execution import ABSENT, Execution, RunInput
from agentbench.workflows.run.workflow import Workflow


def task_function(target: Any) -> Callable[..., Any]:
    """Return the function of a node: a function itself, or a runner of an agent, an executor, a workflow or a graph."""
    if isinstance(target, CompiledGraph):
        return GraphTask(target)
    if isinstance(target, (Executor, Workflow)):
        return WorkflowTask(target)
    if callable(getattr(target, "run", None)) and callable(getattr(target, "create_session", None)):
        function: Callable[..., Any] = import_module("agentbench.orchestrations.graph_nodes").AgentTask(target)
        return function
    return target  # type: ignore[no-any-return]


class Outbox(Executor):
    """Yields the messages of the executor before it."""

    signature_key: ClassVar[str | None] = "Outbox"

    @handler
    async def take(self, data: Any, ctx: WorkflowContext[Any, Any]) -> None:
        """Yield a message."""
        await ctx.yield_output(data)


class WorkflowTask:
    """Runs a workflow, or an executor, as one task of a graph; its outputs and messages are the update.

    While the inner run waits for answers, the task keeps all of its state, so that checkpoints of the graph include it.
    """

    continues_failed_runs: ClassVar[bool] = False
    """Whether a run that has failed or was stopped continues; otherwise it begins again."""

    def __init__(self, target: Executor | Workflow) -> None:
        self.workflow: Workflow | None = find_sub_workflow(target) if isinstance(target, Executor) else target
        """The workflow that drawings show inside the node."""
        if isinstance(target, Executor):
            builder = WorkflowBuilder(start_executor=target, name=target.id)
            target = builder.add_edge(target, Outbox(f"{target.id} sends")).build()
        self._runs = target
        self.may_ask = any(executor.is_request_response_capable for executor in target.executors.values())

    async def __call__(
        self, state: Any, fields: StateFields, config: dict[str, Any], ctx: WorkflowContext[Any, Any]
    ) -> Any:
        """Run or continue the workflow, and return its outputs."""
        outputs = await self._run(self._input(state, fields), self._runs.clone().graph, RunOptions(), ctx)
        return Collected(outputs)

    def _input(self, state: Any, fields: StateFields) -> Any:
        """Return the first form of the state that the start executor takes."""
        context = [*fields.messages_in(state)]
        values = dict(state) if fields.is_agent_state else fields.read(state)
        forms = (state, context, context[-1] if context else None, context[-1].text if context else "", values)
        start = self._runs.get_start_executor()
        for form in forms:
            if start.can_handle(WorkflowMessage(form, "graph")):
                return form
        message = (
            f"{self._runs.name!r} takes neither the state, nor its conversation, nor a message or text of it. Add a "
            "handler for one of these, or call it in a function."
        )
        raise GraphError(message)

    async def _run(self, message: Any, graph: Graph, options: RunOptions, ctx: Any) -> list[Any]:
        """Run to the end, and return the outputs; `GraphInterrupt` if the run waits for answers."""
        run: ActiveRun = ctx._run  # noqa: SLF001 - the engine's side of the context
        run_state, done, responses = RunState(), current_questions().done, None
        outputs: list[Any] = [*done.get("outputs", ())]
        if "run" in done:
            message, responses = ABSENT, await restore_run(graph, run_state, done["run"])

        def forward(event: WorkflowEvent[Any]) -> None:
            if event.type == "output":
                outputs.append(event.data)
            elif event.type in ("intermediate", "warning", "custom"):
                again = WorkflowEvent(event.type, event.data, origin=event.origin, executor_id=ctx.executor_id)
                run.log.append(again, ctx._delivery)  # noqa: SLF001 - as above

        kwargs = all_kwargs_inside(run.state.get(RUN_KWARGS), ctx.executor_id, graph.executors)
        execution = Execution(
            graph, run_state, RunInput(message=message, responses=responses, kwargs=kwargs, tools=run.tools), options,
            log=inner_log(run, ctx.executor_id, forward), run_id=run.run_id, streaming=run.streaming,
        )  # fmt: skip
        # In a separate task, because the inner nodes ask their own questions.
        running = asyncio.ensure_future(_drive(execution, run, ctx.executor_id))
        try:
            await asyncio.shield(running)
            if execution.run.stop_requested:  # by a node inside
                run.stop_requested = True
                raise asyncio.CancelledError
        except asyncio.CancelledError:
            execution.run.stop_requested = True
            execution.runner.cancel_deliveries()
            await asyncio.wait((running,))
            raise
        finally:
            has_failed = execution.error is not None or execution.run.stop_requested
            if run_state.requests or (has_failed and self.continues_failed_runs):
                done["run"] = await stored_run(graph, run_state)
                done["outputs"] = outputs
        if run_state.requests:
            answers_to(run_state)
        return outputs


class GraphTask(WorkflowTask):
    """Runs a graph as one task of another one: it gets the fields that both have, and returns them.

    For an `AgentState` the update is what it changed; for any other state it is its result, as that of a function.
    """

    continues_failed_runs = True

    def __init__(self, graph: CompiledGraph[Any]) -> None:
        super().__init__(graph.workflow)
        self.graph = graph
        self.returns_commands = any(node.goto is None for node in graph.plan.nodes.values())
        """Whether inner nodes return commands, which may name nodes of the outer graph."""

    async def __call__(
        self, state: Any, fields: StateFields, config: dict[str, Any], ctx: WorkflowContext[Any, Any]
    ) -> Any:
        """Run or continue the graph, and return the fields that it changed."""
        plan, done = self.graph.plan, current_questions().done
        outer = ctx.options
        assert isinstance(outer, GraphOptions)
        shared = [name for name in plan.fields.names if name in fields.names]
        given = fields.read(state, shared)
        record = CallRecord(is_watched=outer.call_record.is_watched, shows_called=outer.call_record.shows_called)
        options = GraphOptions(
            max_iterations=outer.config["recursion_limit"],
            config=inherited_config(outer),
            context=outer.context,
            store=outer.store if self.graph.store is None else self.graph.store,
            call_record=record,
            is_nested=True,
        )
        overwritten = Command(update={name: Overwrite(value) for name, value in given.items()})
        try:
            outputs = await self._run(overwritten, self._runs.graph, options, ctx)
        except WorkflowConvergenceException as error:
            message = f"The graph in node {config['node']!r} needs more than {options.max_iterations} supersteps."
            raise GraphRecursionError(
                message, max_iterations=options.max_iterations, thread_id=config["thread_id"]
            ) from error
        finally:
            done["goto"] = [*done.get("goto", ()), *record.parent_goto]
        after = {name: outputs[-1][name] for name in shared if name in outputs[-1]}
        if fields.is_agent_state:
            return Collected((Command(update=updates_between(given, after)), *done["goto"]))
        return Collected(done["goto"]) if done["goto"] else after


async def _drive(execution: Execution, around: ActiveRun, node: str) -> None:
    steps = around.inner_steps
    if steps is None:
        await execution.run_to_end()
        return
    execution.run.inner_steps, path = steps, path_inside(around, node)
    while await execution.advance():
        await steps.wait(path, execution.run.run_state.superstep)


class GraphExecutor(WorkflowExecutor):
    """A graph as a node of a workflow; created by `CompiledGraph.as_executor`, which explains it."""

    signature_key: ClassVar[str | None] = "GraphExecutor"

    def __init__(self, graph: CompiledGraph[Any], id: str, **settings: Any) -> None:  # noqa: A002 - as of executors
        super().__init__(graph.workflow, id, allow_direct_output=None, propagate_request=True, **settings)
        self.graph = graph

    @property
    def output_types(self) -> list[Any]:
        """The result of the graph."""
        return [GraphResult]

    def _ab_options(self, run: ActiveRun) -> RunOptions:
        config = read_config({"thread_id": self.id, "run_id": run.run_id}, self.graph.plan.recursion_limit)
        return GraphOptions(
            clock=run.options.clock,
            ids=run.options.ids,
            max_iterations=config["recursion_limit"],
            config=config,
            store=self.graph.store,
            call_record=CallRecord(is_watched=run.log.observed),
            is_nested=True,
        )

    def _ab_output(self, data: Any, options: RunOptions, message: Any) -> Any:
        assert isinstance(options, GraphOptions)
        return graph_result(self.graph.plan, options.call_record, "full", [], None, None)


class GraphAnswers(GraphExecutor):
    """A graph that answers messages with those that it adds, as agents do."""

    signature_key: ClassVar[str | None] = "GraphAnswers"

    @property
    def output_types(self) -> list[Any]:
        """The messages that the graph adds."""
        return [list[Message]]

    def _ab_output(self, data: Any, options: RunOptions, message: Any) -> Any:
        assert isinstance(options, GraphOptions)
        given = [*map(id, message)] if isinstance(message, list) else [id(message)]
        return copy_whole([message for message in options.call_record.messages if id(message) not in given])


def graph_agent(graph: CompiledGraph[Any], name: str, **settings: Any) -> Any:
    """Return a graph as an agent; `CompiledGraph.as_agent` documents it."""
    node = GraphAnswers(graph, name, concurrency="isolate")
    return WorkflowBuilder(start_executor=node, name=name).build().as_agent(name, **settings)


def _as_node(graph: CompiledGraph[Any], *, agent_mode: object = None) -> GraphExecutor:
    return GraphExecutor(graph, graph.plan.name)


register_executor_adapter(CompiledGraph, _as_node)
