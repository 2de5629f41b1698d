"""What a batch runs: a workflow, a state graph or an agent, each as runs of the engine."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from agentbench._display import shorten
from agentbench.agents.sessions.agent_protocol import SupportsAgentRun
from agentbench.batch.inputs import Start
from agentbench.batch.running.meter import MeteredLog
from agentbench.observability.switches import is_tracing
from agentbench.orchestrations.agent_executor import AgentExecutor
from agentbench.stategraph.compiled import CompiledGraph
from agentbench.stategraph.results import graph_result, messages_of
from agentbench.stategraph.running.executors import META
from agentbench.stategraph.running.plan import CallRecord, GraphOptions
from agentbench.stategraph.threads.thread_call import flat_config, read_config
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.engine.active_run import RunState
from agentbench.workflows.executors.options import RunOptions
from agentbench.workflows.run.execution import Execution, RunInput
from agentbench.workflows.run.result import WorkflowRunResult
from agentbench.workflows.run.run import WorkflowRun
from agentbench.workflows.run.workflow import Workflow

if TYPE_CHECKING:
    from agentbench.checkpoints.checkpoint import WorkflowCheckpoint
    from agentbench.checkpoints.storage import CheckpointStorage


_NO_NAME: Final = "WorkflowBuilder-"
"""What the name of a workflow without a name begins with. Its rest is random, so that no later call would find it."""


@dataclass(frozen=True)
class RunPlan:
    """How one run begins: from an input, or from a checkpoint, with or without answers."""

    key: str
    input: Any
    checkpoint: WorkflowCheckpoint | None
    answers: Mapping[str, Any] | None
    storage: CheckpointStorage | None


class Target:
    """A workflow whose runs are the rows of a batch.

    Attributes:
        workflow: The workflow of the engine.
        batch_name: The name of the batch, which the chains of checkpoints begin with.
        log_class: The log of its runs. The output may be made of all that it keeps.
        is_resumable: Whether runs go on at a checkpoint or with answers. Otherwise an interrupted run begins again, and
            one that asks has finished.
    """

    log_class: type[MeteredLog] = MeteredLog
    is_resumable = True
    _kwarg_names: tuple[str, ...] = ("client_kwargs", "function_invocation_kwargs")

    def __init__(self, workflow: Workflow, batch_name: str, kwargs: Mapping[str, Any]) -> None:
        self.workflow, self.batch_name = workflow, batch_name
        for name, value in kwargs.items():
            if name not in self._kwarg_names or not isinstance(value, Mapping):
                msg = (
                    f"run_kwargs has the entry {name!r}: {shorten(value)}; expected dictionaries under "
                    f"{' or '.join(map(repr, self._kwarg_names))}."
                )
                raise TypeError(msg)
        self._kwargs = dict(kwargs)
        self._given_kwargs = kwargs
        self._others: dict[int, Target] = {}

    def of(self, input_: Any) -> Target:
        """Return the target for an input: another one for a `Start` with a workflow of its own."""
        own = input_.workflow if isinstance(input_, Start) else None
        if own is None:
            return self
        if id(own) not in self._others:
            self._others[id(own)] = make_target(own, self.batch_name, self._given_kwargs)
        return self._others[id(own)]

    @cached_property
    def graph_hash(self) -> str:
        """Hash of the graph and of the code in it."""
        return f"{self.workflow.graph_signature_hash[:16]}{self.workflow.graph.code_hash[:16]}"

    @property
    def parts(self) -> dict[str, str]:
        """Hashes of the parts of the graph, to say what changed."""
        return {"the graph": self.workflow.graph_signature_hash, **self.workflow.graph.code_hashes}

    def chain(self, key: str) -> str:
        """Return the name of the chain of a row's checkpoints."""
        name = self.batch_name.replace("%", "%25").replace("/", "%2F")  # batch "a/b" and key "c" are not "a" and "b/c"
        return f"batch/{name}/{key}"

    def opened_chain(self, key: str) -> str:
        """Return the name of the chain of a handle that a person opens on the run of a row."""
        return f"opened/{self.chain(key)}"

    def begin(self, plan: RunPlan, options: RunOptions, log: MeteredLog, run_id: str) -> Execution:
        """Return a run that has not begun yet."""
        chosen = self._options(plan, options, run_id)
        graph = self.workflow.graph.fresh()
        traced_as = self.workflow.id if is_tracing() else None
        return Execution(graph, RunState(), self._run_input(plan), chosen, log=log, run_id=run_id, traced_as=traced_as)

    def open(self, key: str, input_: Any, checkpoint: WorkflowCheckpoint | None, storage: Any) -> WorkflowRun:
        """Return a handle on a run of its own, from an input or a checkpoint."""
        plan = RunPlan(key, input_, checkpoint, None, storage)
        chain = self.opened_chain(key) if checkpoint is None else checkpoint.workflow_name
        options = self._options(plan, RunOptions(), "")
        return WorkflowRun(self.workflow, self._run_input(plan), replace(options, chain=chain))

    def _options(self, plan: RunPlan, options: RunOptions, run_id: str) -> RunOptions:
        return replace(options, chain=self.chain(plan.key))

    def _run_input(self, plan: RunPlan) -> RunInput:
        if plan.checkpoint is None:
            return RunInput(plan.input, storage=plan.storage, kwargs=self._kwargs)
        return RunInput(
            responses=plan.answers,
            checkpoint_id=plan.checkpoint.checkpoint_id,
            checkpoint=plan.checkpoint,
            storage=plan.storage,
            kwargs=self._kwargs,
        )

    def output(self, execution: Execution, outputs: list[Any]) -> Any:
        """Return the output of a run from the values that it has yielded: the only one, or a list of several."""
        result = WorkflowRunResult.from_log(execution.log)
        joined = result.get_outputs() if len(outputs) == len(execution.log.outputs) else outputs
        return joined[0] if len(joined) == 1 else joined or None


class GraphTarget(Target):
    """A state graph. The output of a run is what `invoke` returns, as a plain dictionary."""

    _kwarg_names = ("config",)

    def __init__(self, app: CompiledGraph[Any], batch_name: str, kwargs: Mapping[str, Any]) -> None:
        super().__init__(app.workflow, batch_name, kwargs)
        self._kwargs = {}
        self._app = app
        self._config = flat_config(kwargs.get("config"))

    def _options(self, plan: RunPlan, options: RunOptions, run_id: str) -> RunOptions:
        config = read_config({**self._config, "thread_id": plan.key, "run_id": run_id}, self._app.plan.recursion_limit)
        record = CallRecord()
        if plan.checkpoint is not None:
            record.values = self._app.plan.values_in(plan.checkpoint.state)
            record.messages = list(messages_of(record.values))  # the output is that of the whole thread
            record.meta = plan.checkpoint.state[META]
        common = {each.name: getattr(options, each.name) for each in fields(options)}
        limit = options.max_iterations or config["recursion_limit"]
        own = {"chain": self.chain(plan.key), "max_iterations": limit}
        return GraphOptions(**{**common, **own}, config=config, store=self._app.store, call_record=record)

    def output(self, execution: Execution, outputs: list[Any]) -> Any:
        """Return the result of the thread as a plain dictionary."""
        run_state, options = execution.run.run_state, execution.run.options
        assert isinstance(options, GraphOptions)
        interrupts = [request.data for request in run_state.requests.values()]
        checkpoint_id = run_state.last_checkpoint_id
        return dict(graph_result(self._app.plan, options.call_record, "low", interrupts, execution.log, checkpoint_id))


def make_target(workflow: Any, batch_name: str | None, kwargs: Mapping[str, Any]) -> Target:
    """Return the target for a workflow, a compiled state graph, an agent, or a function that returns one of these.

    Raises:
        TypeError: It is something else.
    """
    expected = (
        "expected a Workflow (call build()), a compiled state graph (call compile()), an agent, or a function without "
        "parameters that returns one of these."
    )
    made = workflow
    if isinstance(workflow, type):
        msg = f"workflow is the class {workflow.__qualname__}; {expected}"
        raise TypeError(msg)
    if callable(workflow) and not isinstance(workflow, (Workflow, CompiledGraph, SupportsAgentRun)):
        try:
            inspect.signature(workflow).bind()
        except TypeError as error:
            msg = f"workflow is {shorten(workflow)}, which needs arguments ({error}); {expected}"
            raise TypeError(msg) from None
        made = workflow()
        if inspect.iscoroutine(made):
            made.close()
    if isinstance(made, CompiledGraph):
        return GraphTarget(made, batch_name or made.plan.name, kwargs)
    if isinstance(made, SupportsAgentRun):
        agent = made if made.name else AgentExecutor(made, id="agent")
        made = WorkflowBuilder(start_executor=agent, name=made.name or "agent").build()
    if not isinstance(made, Workflow):
        msg = f"workflow {'is' if made is workflow else 'returned'} {shorten(made)}; {expected}"
        raise TypeError(msg)
    is_named = not made.name.startswith(_NO_NAME)
    return Target(made, batch_name or (made.name if is_named else "workflow"), kwargs)
