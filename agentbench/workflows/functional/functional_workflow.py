"""Workflows that are Python functions: `@workflow`."""

from __future__ import annotations

import copy
import inspect
import logging
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Literal, overload

from agentbench._clock import runtime_defaults
from agentbench._secrets import masked_repr
from agentbench.checkpoints.checkpoint import id_of
from agentbench.checkpoints.manager import bare_storage
from agentbench.observability.feature_stages import ExperimentalFeature, experimental
from agentbench.observability.switches import is_tracing
from agentbench.workflows.engine.active_run import RunState
from agentbench.workflows.engine.event_log import new_log
from agentbench.workflows.functional.context import ContextFunction, StepWrapper, code_digest
from agentbench.workflows.functional.execution import FunctionExecution
from agentbench.workflows.graph.graph import Graph
from agentbench.workflows.run.definition import OneRunAtATime
from agentbench.workflows.run.execution import ABSENT, Execution, RunInput
from agentbench.workflows.run.result import WorkflowRunResult
from agentbench.workflows.run.stream import WorkflowStream
from agentbench.workflows.run.workflow import check_combination, check_options, tool_list

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.manager import CheckpointManager
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.orchestrations.functional_agent import FunctionalWorkflowAgent
    from agentbench.workflows.executors.options import RunOptions

logger = logging.getLogger("agentbench")


@dataclass(frozen=True, eq=False)
class _FunctionGraph(Graph):
    """The graph of a function. It has no nodes; a checkpoint fits if the code is the same, or all steps have keys."""

    function: Callable[..., Any] = lambda: None

    @cached_property
    def signature(self) -> dict[str, Any]:
        steps, reached = _steps_of(self.function)
        known: dict[str, Any] = {"start_executor": None, "executors": {}, "edge_groups": [], "workflow": self.name}
        if (steps or reached) and all(step.replay_key is not None for step in [*steps, *reached]):
            return known
        return {**known, "steps": sorted({step.name for step in steps}), "code": code_digest(self.function)}


def _steps_of(function: Callable[..., Any]) -> tuple[list[StepWrapper[Any]], list[StepWrapper[Any]]]:
    """Return the steps that a function names, also in its comprehensions and inner functions.

    The second list has those that it may reach as attributes: `service.fetch` and `module.fetch`.
    """
    codes, names = [inspect.unwrap(function).__code__], set[str]()
    for code in codes:
        names.update(code.co_names)
        codes += [const for const in code.co_consts if inspect.iscode(const)]
    found = [inspect.unwrap(function).__globals__.get(name) for name in sorted(names)]
    found += inspect.getclosurevars(function).nonlocals.values()
    reached: list[Any] = []
    level = found
    for _ in range(3):  # as deep as package.module.service.fetch
        level = [inspect.getattr_static(each, name, None) for each in level if each is not None for name in names]
        reached += [each.__func__ if isinstance(each, (staticmethod, classmethod)) else each for each in level]
    return _only_steps(found), _only_steps(reached)


def _only_steps(values: list[Any]) -> list[StepWrapper[Any]]:
    return [each for each in values if isinstance(each, StepWrapper)]


class FunctionalWorkflow(OneRunAtATime):
    """An async function as a workflow; usually created by `@workflow`.

    Its return value is the output. It is plain Python: branches, loops, `asyncio.gather`. Results of `@step` functions
    are cached, and saved in checkpoints. `ctx.request_info()` returns the response of a person: the run ends with the
    request pending, and the next one, with the responses, calls the function again from the top; cached steps are
    skipped. So the function must call its steps in the same order with the same arguments each time.

    Args:
        func: Takes the message, or nothing, and optionally the context, in a parameter named `ctx` or annotated
            `RunContext`.
        name: Groups the checkpoints; by default the function's name.
        description: A description for people; by default the first line of the docstring.
        checkpoint_storage: The default storage for checkpoints.

    Raises:
        TypeError: The function is not async.
        ValueError: The function has more than one parameter besides the context.

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
        self.parameter = parameters[0] if parameters else None
        """The parameter for the message; None without one."""
        self.__doc__ = func.__doc__
        self.name: str = name or func.__name__
        self.description = description or next(iter((inspect.getdoc(func) or "").splitlines()), None)
        self.storage = bare_storage(checkpoint_storage)
        self.run_state = RunState()
        self.graph: Graph = _FunctionGraph([], {}, (), name=self.name, description=self.description, function=func)

    @property
    def graph_signature_hash(self) -> str:
        """The hash that a checkpoint has to match: of the name, the names of the steps, and the code."""
        return self.graph.signature_hash

    @overload
    def run(
        self, message: Any = None, *, stream: Literal[False] = False, **arguments: Any
    ) -> Coroutine[Any, Any, WorkflowRunResult]: ...
    @overload
    def run(self, message: Any = None, *, stream: Literal[True], **arguments: Any) -> WorkflowStream: ...
    def run(  # noqa: PLR0913 - the arguments of `Workflow.run`
        self,
        message: Any = None,
        *,
        stream: bool = False,
        responses: Mapping[Any, Any] | None = None,
        checkpoint_id: CheckpointInfo | str | None = None,
        checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
        include_status_events: bool = False,
        tools: Any = None,
        options: RunOptions | None = None,
        **ignored: Any,
    ) -> Coroutine[Any, Any, WorkflowRunResult] | WorkflowStream:
        """Call the function, or continue a run that waits for responses.

        Args:
            message: The function's argument.
            stream: Return an async iterator of events instead of an awaitable result.
            responses: Responses by request or request id, to requests of the last run or of the checkpoint. Those of
                earlier rounds are cached.
            checkpoint_id: Continue from this checkpoint; its id or its info.
            checkpoint_storage: Load from and save to this storage, in this run only.
            include_status_events: Include `status` events in the result.
            tools: A tool or a function, or a list of them, for agents that the function calls; it gets the list from
                `RunContext.get_runtime_tools`. Responses keep those of the last run, as in `Workflow.run`.
            options: Further options of this run, such as `RunOptions(observe=True)`, whose events report the duration
                of each step. Functions have no supersteps, so there are none to limit.
            ignored: Other keyword arguments of `Workflow.run()` are ignored, with a logged warning.

        Returns:
            An awaitable of the `WorkflowRunResult`; with `stream=True` a `WorkflowStream`.

        Raises:
            ValueError: A message together with responses or a checkpoint, no message although the function needs one,
                or a message although it takes none. When awaited: no response belongs to an open request, or one has
                the
            wrong type.
            WorkflowBusyError: The workflow is already running.
            WorkflowRunnerException: When awaited: the function calls its steps differently than before.
            FunctionCheckpointError: When awaited: the checkpoint was made by another version of the function.
            TypeError: `tools` has the wrong type.
            Exception: Any error that the function raises, unchanged.
        """
        self._check_input(message, responses, checkpoint_id)
        self.require_free()
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
                tools=tool_list(tools),
            ),
            options,
            log=new_log(run_id, options.clock or defaults.clock, observe=observe),
            run_id=run_id,
            traced_as=self.name if is_tracing() else None,
            streaming=stream,
            on_end=self.release,
        )
        if stream:
            return WorkflowStream(
                execution, self.acquire, include_status_events=include_status_events, keep_events=True
            )
        return self._run_to_end(execution, include_status_events=include_status_events)

    async def _run_to_end(self, execution: Execution, *, include_status_events: bool) -> WorkflowRunResult:
        self.acquire(execution)
        await execution.run_to_end()
        return WorkflowRunResult.from_log(execution.log, include_status_events=include_status_events)

    def clone(self) -> FunctionalWorkflow:
        """Return another instance of the same function, with its own state."""
        clone = copy.copy(self)
        clone.run_state = RunState()
        clone.__dict__.pop("_user", None)
        clone.__dict__.pop("_ended_as", None)
        return clone

    def as_agent(
        self, name: str | None = None, *, description: str | None = None, context_providers: Any = None, **settings: Any
    ) -> FunctionalWorkflowAgent:
        """Return this workflow as an agent, see `FunctionalWorkflowAgent`."""
        agents = import_module("agentbench.orchestrations.functional_agent")  # a higher layer, imported on use
        agent: FunctionalWorkflowAgent = agents.FunctionalWorkflowAgent(
            self, name=name, description=description, context_providers=context_providers, **settings
        )
        return agent

    def _check_input(self, message: Any, responses: object, checkpoint_id: object) -> None:
        if message is not None and self.parameter is None:
            got = masked_repr(message)
            msg = f"Workflow function {self.name!r} takes no message, but run() got {got}. Add a parameter to it."
            raise ValueError(msg)
        is_needed = self.parameter is not None and self.parameter.default is inspect.Parameter.empty
        if is_needed or message is not None:
            check_combination(message, responses, checkpoint_id)

    def __repr__(self) -> str:
        return f"FunctionalWorkflow({self.name!r})"


class FunctionalWorkflowDefinition(FunctionalWorkflow):
    """A workflow function with `@workflow`: it can be run itself, and `build()` gives independent instances of it.

    Args:
        func: The async function. This and the other arguments are those of `FunctionalWorkflow`.
        name: The name of the workflow; by default the function's name.
        description: A description for people.
        checkpoint_storage: The default storage for checkpoints.

    Raises:
        TypeError: The function is not async.

    Example:
        >>> @workflow
        ... async def shout(text: str) -> str:
        ...     return text.upper()
        >>> first, second = shout.build(), shout.build()
        >>> results = await asyncio.gather(first.run("a"), second.run("b"))
    """

    def build(self) -> FunctionalWorkflow:
        """Return a new instance, with its own state and requests and the same storage for checkpoints.

        Example:
            >>> await shout.build().run("a")
        """
        return FunctionalWorkflow(
            self._function.function, name=self.name, description=self.description, checkpoint_storage=self.storage
        )


@overload
def workflow(func: Callable[..., Any]) -> FunctionalWorkflowDefinition: ...
@overload
def workflow(
    func: None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
) -> Callable[[Callable[..., Any]], FunctionalWorkflowDefinition]: ...
@experimental(feature_id=ExperimentalFeature.FUNCTIONAL_WORKFLOWS)
def workflow(
    func: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    checkpoint_storage: CheckpointStorage | CheckpointManager | None = None,
) -> Any:
    """Create a workflow from an async function: `@workflow`, or with keyword arguments.

    Args:
        func: Takes the message, or nothing, and optionally the context, in a parameter named `ctx` or annotated
            `RunContext`.
        name: Groups the checkpoints; by default the function's name.
        description: A description for people.
        checkpoint_storage: The default storage for checkpoints.

    Raises:
        TypeError: The function is not async.
        ValueError: The function has more than one parameter besides the context.

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
        return lambda f: FunctionalWorkflowDefinition(f, **settings)
    return FunctionalWorkflowDefinition(func, **settings)
