"""A built workflow: the graph, and the ways to run it."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Coroutine, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

from agentbench._clock import runtime_defaults
from agentbench._display import Displayable, call_view, drawn_by
from agentbench._signatures import flatten_union
from agentbench.checkpoints.manager import bare_storage
from agentbench.exceptions import ValidationTypeEnum, WorkflowBusyError, WorkflowValidationError
from agentbench.observability import is_tracing
from agentbench.workflows.engine.event_log import EventLog
from agentbench.workflows.engine.runner import Runner
from agentbench.workflows.executors.options import RunOptions, WorkflowSettings
from agentbench.workflows.executors.state import State
from agentbench.workflows.graph.signature import find_sub_workflow, graph_signature, signature_hash
from agentbench.workflows.pages.runner_context import InProcRunnerContext, OutputKind
from agentbench.workflows.run.execution import ABSENT, Execution, RunInput, new_log
from agentbench.workflows.run.result import WorkflowRunResult
from agentbench.workflows.run.stream import WorkflowStream

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.engine.boundary import BoundaryHook
    from agentbench.workflows.executors.executor import Executor
    from agentbench.workflows.graph.edge_groups import EdgeGroup
    from agentbench.workflows.run.run import WorkflowRun

_PLAIN = WorkflowSettings()
_DEFAULT_OPTIONS = RunOptions()


@drawn_by("agentbench.notebook.views:workflow_bundle")
class Workflow(Displayable):
    """A graph of executors that can be run; usually made by `WorkflowBuilder`.

    An instance runs once at a time and keeps shared state, open requests and executor fields between runs;
    `clone()` is the cheap way to several at once.

    Args:
        edge_groups: in builder order, one internal group per executor included.
        executors: by id.
        start_executor: gets the input of a run.
        runner_context: what is in flight; a new one by default.
        name: groups the checkpoints.
        description: for people.
        max_iterations: supersteps allowed since the last outside input.
        output_from: ids whose yields are outputs; None with `intermediate_output_from` None: everyone's.
        intermediate_output_from: ids whose yields are intermediate.
        settings: how it behaves.
        start_executors: ids of all start executors, where there are several.
        boundary_hook: drives another dialect of graphs.
        checkpoint_storage: where checkpoints go by default.
    """

    def __init__(  # noqa: PLR0913 - the published signature
        self,
        edge_groups: Sequence[EdgeGroup],
        executors: dict[str, Executor],
        start_executor: Executor,
        runner_context: InProcRunnerContext | None = None,
        *,
        name: str = "Workflow",
        description: str | None = None,
        max_iterations: int = 100,
        output_from: Sequence[str] | None = None,
        intermediate_output_from: Sequence[str] | None = None,
        settings: WorkflowSettings = _PLAIN,
        start_executors: Sequence[str] = (),
        boundary_hook: BoundaryHook | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
    ) -> None:
        self.name = name
        self.description = description
        self.max_iterations = max_iterations
        self.edge_groups = edge_groups
        self.executors = executors
        self.settings = settings
        self.start_executor_id = start_executor.id
        self.start_executor_ids: tuple[str, ...] = tuple(start_executors) or (start_executor.id,)
        self.boundary_hook = boundary_hook
        self.state = State()
        #: A run reached its limit with messages left; they wait for a resume or a reset.
        self.unconverged = False
        self.last_checkpoint_id: str | None = None
        self._outputs = output_from
        self._intermediate = intermediate_output_from
        self._id: str | None = None
        self._signature: dict[str, Any] | None = None
        self._hash: str | None = None
        self._active: weakref.ref[Execution | WorkflowRun] | None = None
        context = (
            runner_context if runner_context is not None else InProcRunnerContext(bare_storage(checkpoint_storage))
        )
        context.strict_context = settings.strict_context
        context.report_drops = settings.report_drops
        if output_from is not None or intermediate_output_from is not None:
            context.set_yield_output_classifier(self._kinds().get)
        self.runner = Runner(
            edge_groups,
            executors,
            self.state,
            context,
            name,
            self._make_hash,
            max_iterations,
            boundary_hook=boundary_hook,
            copy_messages=settings.copy_messages,
        )
        self.runner.starts = self.start_executor_ids
        self.runner.restorer = self._restore

    def _kinds(self) -> dict[str, OutputKind]:
        kinds: dict[str, OutputKind] = dict.fromkeys(self._intermediate or (), "intermediate")
        kinds.update(dict.fromkeys(self._outputs or (), "output"))
        return kinds

    # ---- the graph -------------------------------------------------------------------------------

    @property
    def id(self) -> str:
        """Id of this instance."""
        if self._id is None:
            self._id = runtime_defaults().ids.new_id("workflow")
        return self._id

    @property
    def start_executors(self) -> list[Executor]:
        """Executors that get the input of a run."""
        return [self.executors[i] for i in self.start_executor_ids]

    @property
    def graph_signature(self) -> dict[str, Any]:
        """What has to be the same for a checkpoint to fit; JSON-able. To be read only."""
        if self._signature is None:
            self._signature = graph_signature(
                self.edge_groups, self.executors, self.start_executor_ids, self.boundary_hook
            )
        return self._signature

    @property
    def graph_signature_hash(self) -> str:
        """SHA-256 of the signature."""
        return self._make_hash()

    def _make_hash(self) -> str:
        if self._hash is None:
            self._hash = signature_hash(self.graph_signature)
        return self._hash

    @property
    def input_types(self) -> list[Any]:
        """What the start executor takes."""
        return self.executors[self.start_executor_id].input_types

    @property
    def output_types(self) -> list[Any]:
        """What the executors may yield, unions flattened, in builder order."""
        found: list[Any] = []
        for executor in self.executors.values():
            for declared in executor.workflow_output_types:
                found += [t for t in flatten_union(declared) if t not in found]
        return found

    def get_start_executor(self) -> Executor:
        """The start executor."""
        return self.executors[self.start_executor_id]

    def get_executors_list(self) -> list[Executor]:
        """All executors, in builder order."""
        return list(self.executors.values())

    def get_output_executors(self) -> list[Executor]:
        """Executors whose yields are outputs, in builder order; without a designation all that declare yields."""
        if self._outputs is None and self._intermediate is None:
            return [e for e in self.executors.values() if e.workflow_output_types]
        return self._designated(self._outputs)

    def get_intermediate_executors(self) -> list[Executor]:
        """Executors whose yields are intermediate, in builder order."""
        return self._designated(self._intermediate)

    def _designated(self, ids: Sequence[str] | None) -> list[Executor]:
        missing = [i for i in ids or () if i not in self.executors]
        if missing:
            msg = f"Executor {missing[0]!r} is designated for outputs but is not in workflow {self.name!r}."
            raise WorkflowValidationError(msg, ValidationTypeEnum.OUTPUT_VALIDATION)
        return [e for i, e in self.executors.items() if i in (ids or ())]

    def is_terminal_executor(self, executor_id: str) -> bool:
        """Whether the executor's yields are outputs."""
        return self.runner.context.classify_yielded_output(executor_id) == "output"

    def is_intermediate_executor(self, executor_id: str) -> bool:
        """Whether the executor's yields are intermediate."""
        return self.runner.context.classify_yielded_output(executor_id) == "intermediate"

    def to_dict(self) -> dict[str, Any]:
        """The definition as JSON values; callables by name only."""
        designated = self._outputs is not None or self._intermediate is not None
        out: dict[str, Any] = {
            "name": self.name,
            "id": self.id,
            "start_executor_id": self.start_executor_id,
            "max_iterations": self.max_iterations,
            "edge_groups": [group.to_dict() for group in self.edge_groups],
            "executors": {executor_id: _executor_dict(e) for executor_id, e in self.executors.items()},
            "output_executors": sorted(self._outputs or ()) if designated else None,
            "intermediate_executors": sorted(self._intermediate or ()) if designated else None,
        }
        if self.description:
            out["description"] = self.description
        return out

    def to_json(self) -> str:
        """`to_dict()` as JSON text."""
        import json  # noqa: PLC0415 - a run needs no JSON

        return json.dumps(self.to_dict())

    def to_python(self, names: Mapping[str, object] | None = None) -> str:
        """The builder code that makes the same graph; see `agentbench.notebook.to_python`.

        Args:
            names: variables, such as `globals()`, by which executors and conditions are called.
        """
        text: str = call_view("agentbench.notebook.workflow_code:to_python", self, names)
        return text

    # ---- running ---------------------------------------------------------------------------------

    @overload
    def run(
        self,
        message: Any = None,
        *,
        stream: Literal[False] = False,
        responses: Mapping[str, Any] | None = None,
        checkpoint_id: CheckpointInfo | str | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        include_status_events: bool = False,
        function_invocation_kwargs: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Coroutine[Any, Any, WorkflowRunResult]: ...
    @overload
    def run(
        self,
        message: Any = None,
        *,
        stream: Literal[True],
        responses: Mapping[str, Any] | None = None,
        checkpoint_id: CheckpointInfo | str | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        include_status_events: bool = False,
        function_invocation_kwargs: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> WorkflowStream: ...
    def run(  # noqa: PLR0913 - the published signature
        self,
        message: Any = None,
        *,
        stream: bool = False,
        responses: Mapping[str, Any] | None = None,
        checkpoint_id: CheckpointInfo | str | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        include_status_events: bool = False,
        function_invocation_kwargs: Mapping[str, Any] | None = None,
        client_kwargs: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> Coroutine[Any, Any, WorkflowRunResult] | WorkflowStream:
        """Start or continue a run.

        Args:
            message: input for the start executor; any value but None.
            stream: return an async iterator of events instead of an awaitable of the result.
            responses: answers by request id; continues where the requests were left open.
            checkpoint_id: restore this checkpoint first, then continue; its id or its info.
            checkpoint_storage: load from and save to here, in this run only.
            include_status_events: keep `status` events in the result.
            function_invocation_kwargs: for tools; flat, or keyed by executor id.
            client_kwargs: for model clients; flat, or keyed by executor id.
            options: further options of this run.

        Raises:
            ValueError: by the call: no input at all, or a message together with responses or a checkpoint; when
                awaited: a bad answer, or no storage to restore from.
            RuntimeError: by the call: the instance runs already; when awaited: nothing is open to be answered, or
                messages of an unconverged run are left.
            Exception: what a handler raised, as is.
        """
        _check_combination(message, responses, checkpoint_id)
        self.require_free()
        options = _checked(options)
        given = RunInput(
            message=ABSENT if message is None else message,
            responses=responses,
            checkpoint_id=_id_of(checkpoint_id),
            storage=bare_storage(checkpoint_storage),
            kwargs={"function_invocation_kwargs": function_invocation_kwargs, "client_kwargs": client_kwargs},
        )
        observe = options.observe if options.observe is not None else runtime_defaults().observe
        run_id = ""
        if observe or checkpoint_storage is not None or self.runner.context.storage is not None or is_tracing():
            run_id = (options.ids or runtime_defaults().ids).new_id("run")
        execution = Execution(
            self,
            given,
            options,
            log=new_log(options, run_id, observe=observe),
            run_id=run_id,
            streaming=stream,
        )
        if stream:
            return WorkflowStream(
                execution, include_status_events=include_status_events, keep_events=options.keep_events
            )
        return self._run_to_end(execution, include_status_events=include_status_events)

    async def _run_to_end(self, execution: Execution, *, include_status_events: bool) -> WorkflowRunResult:
        self.acquire(execution)
        await execution.run()
        return WorkflowRunResult.from_log(execution.log, include_status_events=include_status_events)

    _run_to_end.__qualname__ = "Workflow.run"  # what a person wrote: errors name the coroutine that cannot be awaited

    def run_stream(self, message: Any = None, **settings: Any) -> WorkflowStream:
        """Same as `run(..., stream=True)`."""
        return self.run(message, stream=True, **settings)

    @overload
    def run_from_checkpoint(
        self, checkpoint_id: CheckpointInfo | str, *, stream: Literal[False] = False, **settings: Any
    ) -> Coroutine[Any, Any, WorkflowRunResult]: ...
    @overload
    def run_from_checkpoint(
        self, checkpoint_id: CheckpointInfo | str, *, stream: Literal[True], **settings: Any
    ) -> WorkflowStream: ...
    def run_from_checkpoint(
        self, checkpoint_id: CheckpointInfo | str, *, stream: bool = False, **settings: Any
    ) -> Coroutine[Any, Any, WorkflowRunResult] | WorkflowStream:
        """Same as `run(checkpoint_id=...)`."""
        run: Any = self.run  # the overloads want the literal
        started: Coroutine[Any, Any, WorkflowRunResult] | WorkflowStream = run(
            checkpoint_id=checkpoint_id, stream=stream, **settings
        )
        return started

    def start(
        self,
        input: Any = None,  # noqa: A002 - the published name
        *,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        resume_from: CheckpointInfo | str | None = None,
        responses: Mapping[str, Any] | None = None,
        options: RunOptions | None = None,
    ) -> WorkflowRun:
        """A handle on a new run, which its reader drives; nothing runs yet.

        Args:
            input: for the start executors; with `resume_from` it is added to what is restored.
            checkpoint_storage: where this run's checkpoints go; default: the workflow's storage.
            resume_from: begin at this checkpoint.
            responses: answers, given right after the restore or to requests that are open.
            options: further options; a handle observes its run unless told otherwise.

        Raises:
            ValueError: none of input, resume_from and responses is given.
            RuntimeError: the instance runs already.
        """
        from agentbench.workflows.run.run import WorkflowRun  # noqa: PLC0415 - plain runs need no handle

        if input is None and resume_from is None and responses is None:
            msg = "start() needs input=, resume_from= or responses=."
            raise ValueError(msg)
        given = RunInput(
            message=ABSENT if input is None else input,
            checkpoint_id=_id_of(resume_from),
            responses=responses,
            storage=bare_storage(checkpoint_storage),
        )
        return WorkflowRun(self, given, _checked(options))

    def stepper(self, input: Any = None, **settings: Any) -> Any:  # noqa: A002 - as in start()
        """The notebook panel that steps this workflow; see `agentbench.notebook.stepper`.

        Raises:
            MissingExtraError: the notebook extra is not installed.
        """
        return call_view("agentbench.notebook.stepper:stepper", self, input, **settings)

    # ---- one at a time ---------------------------------------------------------------------------

    def _owner(self) -> Execution | WorkflowRun | None:
        return None if self._active is None else self._active()

    def require_free(self, asking: object = None) -> None:
        """Raise WorkflowBusyError while a run other than `asking` holds the instance."""
        owner = self._owner()
        if owner is None or owner is asking:
            return
        if isinstance(owner, Execution):
            how = "await the first run, or aclose() its stream, first"
        elif owner.is_over:
            return
        else:
            how = f"{owner!r} holds it; await its cancel() first"
        msg = f"Workflow {self.name!r} is already running: {how}. For runs side by side use workflow.clone()."
        raise WorkflowBusyError(msg)

    def acquire(self, owner: Execution | WorkflowRun) -> None:
        """Take the instance for one run. WorkflowBusyError while another holds it."""
        self.require_free(owner)
        former = self._owner()
        if former is not None and former is not owner and not isinstance(former, Execution):
            former.give_way()
        self._active = weakref.ref(owner)

    def release(self, owner: Execution | WorkflowRun) -> None:
        """Let the instance go, if `owner` holds it."""
        if self._owner() is owner:
            self._active = None

    async def _restore(self, checkpoint_id: str, storage: CheckpointStorage | None) -> None:
        given = RunInput(checkpoint_id=checkpoint_id, storage=storage)
        await Execution(self, given, _DEFAULT_OPTIONS, log=EventLog()).prepare()

    def reset(self) -> None:
        """Forget messages, open requests, buffers, shared state and counters. Executor fields stay.

        Raises:
            RuntimeError: the instance is running.
        """
        self.require_free()
        context = self.runner.context
        context.reset_for_new_run()
        context.requests = {}
        self.state.clear()
        self.runner.drop_plan()
        self.runner.reset_iteration_count()
        self.unconverged = False
        self.last_checkpoint_id = None

    def clone(self, *, copy_executors: bool = False) -> Workflow:
        """Another instance of the same definition with its own state, messages and running flag.

        Args:
            copy_executors: deep-copy the executors; else both instances share them, and they must keep nothing in
                their fields.
        """
        executors = copy.deepcopy(self.executors) if copy_executors else self.executors
        twin = Workflow(
            self.edge_groups,
            executors,
            executors[self.start_executor_id],
            name=self.name,
            description=self.description,
            max_iterations=self.max_iterations,
            output_from=self._outputs,
            intermediate_output_from=self._intermediate,
            settings=self.settings,
            start_executors=self.start_executor_ids,
            boundary_hook=self.boundary_hook,
            checkpoint_storage=self.runner.context.default_storage,
        )
        twin._signature, twin._hash = self._signature, self._hash
        if not copy_executors:
            twin.runner.share_router(self.runner)
        return twin

    def __repr__(self) -> str:
        return f"Workflow({self.name!r}, {len(self.executors)} executors, start={', '.join(self.start_executor_ids)})"


def _id_of(checkpoint: CheckpointInfo | str | None) -> str | None:
    if checkpoint is None or isinstance(checkpoint, str):
        return checkpoint
    from agentbench.checkpoints.access import id_of  # noqa: PLC0415 - most runs start from no checkpoint

    return id_of(checkpoint)


def _check_combination(message: Any, responses: object, checkpoint_id: object) -> None:
    if message is not None and responses is not None:
        msg = "message and responses cannot be given together: answer first, or start a new run with the message."
        raise ValueError(msg)
    if message is not None and checkpoint_id is not None:
        msg = "message and checkpoint_id cannot be given together. workflow.start(input, resume_from=...) can do it."
        raise ValueError(msg)
    if message is None and responses is None and checkpoint_id is None:
        msg = "run() needs a message, responses= or checkpoint_id=. None is no message; any other value is."
        raise ValueError(msg)


def _checked(options: object) -> RunOptions:
    if options is None:
        return _DEFAULT_OPTIONS
    if not isinstance(options, RunOptions):
        msg = f"options is {options!r}; expected RunOptions(...), such as RunOptions(max_iterations=500)."
        raise TypeError(msg)
    return options


def _executor_dict(executor: Executor) -> dict[str, Any]:
    out = executor.to_dict()
    inner = find_sub_workflow(executor)
    if inner is not None and "workflow" not in out:
        out["workflow"] = inner.to_dict()
    return out
