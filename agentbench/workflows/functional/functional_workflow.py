"""Workflows that are Python functions: `@workflow`."""

from __future__ import annotations

import copy
import inspect
import logging
import weakref
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

from agentbench._clock import runtime_defaults
from agentbench._display import Displayable
from agentbench._secrets import masked_repr
from agentbench.checkpoints.checkpoint import id_of
from agentbench.checkpoints.manager import bare_storage
from agentbench.exceptions import WorkflowBusyError
from agentbench.observability.switches import is_tracing
from agentbench.workflows.engine.event_log import new_log
from agentbench.workflows.engine.run_state import RunState
from agentbench.workflows.functional.calling import ContextFunction, code_digest
from agentbench.workflows.functional.execution import FunctionExecution
from agentbench.workflows.functional.step import StepWrapper
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.run.execution import ABSENT, Execution, RunInput
from agentbench.workflows.run.result import WorkflowRunResult
from agentbench.workflows.run.stream import WorkflowStream
from agentbench.workflows.run.workflow import check_combination, check_options

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.orchestrations.workflow_agent import FunctionalWorkflowAgent
    from agentbench.workflows.executors.options import RunOptions

logger = logging.getLogger("agentbench")


@dataclass(frozen=True, eq=False)
class _FunctionGraph(Graph):
    """The graph of a function, without nodes: what a checkpoint has to fit is its code."""

    function: Callable[..., Any] = lambda: None

    @cached_property
    def signature(self) -> dict[str, Any]:
        names = inspect.getclosurevars(self.function)
        steps = {v.name for v in (*names.globals.values(), *names.nonlocals.values()) if isinstance(v, StepWrapper)}
        nothing: dict[str, Any] = {"start_executor": None, "executors": {}, "edge_groups": []}
        return {**nothing, "workflow": self.name, "steps": sorted(steps), "code": code_digest(self.function)}


class FunctionalWorkflow(Displayable):
    """An async function as a workflow; usually made by `@workflow`.

    What it returns is the output. It is plain Python: branches, loops, `asyncio.gather`. Calls of `@step` functions are
    remembered, and saved in checkpoints. `ctx.request_info()` returns the response of a person: the run ends with the
    request pending, and the next one, with the responses, calls the function again from the top, past the steps
    that are remembered. So the function has to call its steps in the same order with the same arguments each time.

    Args:
        func: Takes the message, or nothing, and the context, in a parameter named `ctx` or annotated `RunContext`.
        name: Groups the checkpoints; by default the function's name.
        description: For people; by default the first line of the docstring.
        checkpoint_storage: Where checkpoints go by default.

    Raises:
        TypeError: The function is not async.
        ValueError: It has more than one parameter besides the context.

    Example:
        >>> @step
        ... async def gather_notes(topic: str) -> str:
        ...     return f"Notes on {topic}"
        >>> @workflow
        ... async def report(topic: str, ctx: RunContext) -> str:
        ...     notes = await gather_notes(topic)
        ...     approved = await ctx.request_info(notes, bool)
        ...     return notes if approved else "rejected"
        >>> result = await report.run("tides")
        >>> (request,) = result.get_request_info_events()
        >>> result = await report.run(responses={request: True})
        >>> result.get_outputs()
        ['Notes on tides']
    """

    def __init__(
        self,
        func: Callable[..., Any],
        *,
        name: str | None = None,
        description: str | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
    ) -> None:
        self._function = ContextFunction(func, "Workflow function")
        parameters = self._function.parameters
        if len(parameters) > 1:
            msg = (
                f"Workflow function {func.__name__!r} has the parameters {', '.join(p.name for p in parameters)}; "
                "expected at most one, the message, besides the context, which is named ctx or annotated RunContext. "
                "Put several values into one object."
            )
            raise ValueError(msg)
        #: The parameter for the message; None without one.
        self.parameter = parameters[0] if parameters else None
        self.__doc__ = func.__doc__
        self.name: str = name or func.__name__
        self.description = description or next(iter((inspect.getdoc(func) or "").splitlines()), None)
        #: Where checkpoints go by default; None when none are saved.
        self.storage = bare_storage(checkpoint_storage)
        #: The state between the runs.
        self.run_state = RunState()
        self.graph: Graph = _FunctionGraph([], {}, (), name=self.name, description=self.description, function=func)
        self._holder: weakref.ref[Execution] | None = None

    @property
    def graph_signature_hash(self) -> str:
        """What a checkpoint has to fit: the name, the names of its steps, and its code."""
        return self.graph.signature_hash

    @overload
    def run(
        self, message: Any = None, *, stream: Literal[False] = False, **arguments: Any
    ) -> Coroutine[Any, Any, WorkflowRunResult]: ...
    @overload
    def run(self, message: Any = None, *, stream: Literal[True], **arguments: Any) -> WorkflowStream: ...
    def run(
        self,
        message: Any = None,
        *,
        stream: bool = False,
        responses: Mapping[Any, Any] | None = None,
        checkpoint_id: CheckpointInfo | str | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        include_status_events: bool = False,
        options: RunOptions | None = None,
        **ignored: Any,
    ) -> Coroutine[Any, Any, WorkflowRunResult] | WorkflowStream:
        """Call the function, or go on with a run that waits for responses.

        Args:
            message: Its argument.
            stream: Return an async iterator of events instead of an awaitable of the result.
            responses: By request or its id, to requests of the last run or of the checkpoint. Those of earlier rounds
                are remembered.
            checkpoint_id: Go on from this checkpoint; its id or its info.
            checkpoint_storage: Load from and save to here, in this run only.
            include_status_events: Include `status` events in the result.
            options: Further options of this run, such as `RunOptions(observe=True)`, whose events say how long each
                step took; a function has no supersteps to limit.
            ignored: Other keywords of `Workflow.run()` are accepted and ignored, which a logged warning says.

        Returns:
            An awaitable of the `WorkflowRunResult`; with `stream=True` a `WorkflowStream`.

        Raises:
            ValueError: A message together with responses or a checkpoint, no message where the function needs one, a
                message where it takes none; when awaited: no response belongs to an open request, or one has another
                type than that.
            WorkflowBusyError: It runs already.
            WorkflowRunnerException: When awaited: the function calls its steps in another way than before.
            FunctionCheckpointError: When awaited: the checkpoint is of another version of the function.
            Exception: What the function raised, as is.
        """
        self._check_input(message, responses, checkpoint_id)
        self._require_free()
        if ignored:
            logger.warning("Workflow function %r ignores the keywords %s.", self.name, ", ".join(ignored))
        options, defaults = check_options(options), runtime_defaults()
        run_id = (options.ids or defaults.ids).new_id("run")
        observe = defaults.observe if options.observe is None else options.observe
        execution = FunctionExecution(
            self._function,
            self.graph,
            self.run_state,
            RunInput(
                ABSENT if message is None else message,
                responses,
                None if checkpoint_id is None else id_of(checkpoint_id),
                self.storage if checkpoint_storage is None else bare_storage(checkpoint_storage),
            ),
            options,
            log=new_log(run_id, options.clock or defaults.clock, observe=observe),
            run_id=run_id,
            traced_as=self.name if is_tracing() else None,
            streaming=stream,
            on_end=self._release,
        )
        if stream:
            return WorkflowStream(
                execution, self._acquire, include_status_events=include_status_events, keep_events=True
            )
        return self._run_to_end(execution, include_status_events=include_status_events)

    async def _run_to_end(self, execution: Execution, *, include_status_events: bool) -> WorkflowRunResult:
        self._acquire(execution)
        await execution.run_to_end()
        return WorkflowRunResult.from_log(execution.log, include_status_events=include_status_events)

    def clone(self) -> FunctionalWorkflow:
        """Return another instance of the same function, with a state of its own."""
        twin = copy.copy(self)
        twin.run_state, twin._holder = RunState(), None  # noqa: SLF001 - its own class
        return twin

    def as_agent(
        self, name: str | None = None, *, description: str | None = None, context_providers: Any = None, **settings: Any
    ) -> FunctionalWorkflowAgent:
        """Return this workflow as an agent, see `FunctionalWorkflowAgent`."""
        agents = import_module("agentbench.orchestrations.workflow_agent")  # a room above, which no workflow needs
        agent: FunctionalWorkflowAgent = agents.FunctionalWorkflowAgent(
            self, name=name, description=description, context_providers=context_providers, **settings
        )
        return agent

    def _check_input(self, message: Any, responses: object, checkpoint_id: object) -> None:
        if message is not None and self.parameter is None:
            got = masked_repr(message)
            msg = f"Workflow function {self.name!r} takes no message, but run() got {got}. Give it a parameter."
            raise ValueError(msg)
        is_needed = self.parameter is not None and self.parameter.default is inspect.Parameter.empty
        if is_needed or message is not None:
            check_combination(message, responses, checkpoint_id)

    def _require_free(self) -> None:
        holder = None if self._holder is None else self._holder()
        if holder is not None and not holder.break_off_if_lost():
            msg = f"Workflow {self.name!r} is already running: await the first run, or aclose() its stream, first."
            raise WorkflowBusyError(msg)

    def _acquire(self, execution: Execution) -> None:
        self._require_free()
        self._holder = weakref.ref(execution)

    def _release(self, execution: Execution) -> None:
        if self._holder is not None and self._holder() is execution:
            self._holder = None

    def __repr__(self) -> str:
        return f"FunctionalWorkflow({self.name!r})"


@overload
def workflow(func: Callable[..., Any]) -> FunctionalWorkflow: ...
@overload
def workflow(
    func: None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
) -> Callable[[Callable[..., Any]], FunctionalWorkflow]: ...
def workflow(
    func: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
) -> Any:
    """Make a workflow from an async function: `@workflow`, or with keywords.

    Args:
        func: Takes the message, or nothing, and the context, in a parameter named `ctx` or annotated `RunContext`.
        name: Groups the checkpoints; by default the function's name.
        description: For people.
        checkpoint_storage: Where checkpoints go by default.

    Raises:
        TypeError: The function is not async.
        ValueError: It has more than one parameter besides the context.

    Example:
        >>> @workflow
        ... async def greet(name: str) -> str:
        ...     return f"Hello {name}"
        >>> result = await greet.run("Ann")
        >>> result.get_outputs()
        ['Hello Ann']
    """
    settings: dict[str, Any] = {"name": name, "description": description, "checkpoint_storage": checkpoint_storage}
    if func is None:
        return lambda f: FunctionalWorkflow(f, **settings)
    return FunctionalWorkflow(func, **settings)
