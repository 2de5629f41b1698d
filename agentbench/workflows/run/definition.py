"""The definition of a workflow: names, types, executors, outputs, its text form; and which run uses its state."""

from __future__ import annotations

import copy
import weakref
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Protocol, Self

from agentbench._clock import runtime_defaults
from agentbench._display import Displayable, call_view
from agentbench.exceptions import ValidationTypeEnum, WorkflowBusyError, WorkflowValidationError
from agentbench.workflows.engine.active_run import RunState
from agentbench.workflows.events.events import WorkflowEvent, WorkflowRunState
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.handlers import distinct_types
from agentbench.workflows.graph.graph import Graph, find_sub_workflow
from agentbench.workflows.run.responses import withdrawals
from agentbench.workflows.run.result import WorkflowRunResult

if TYPE_CHECKING:
    from agentbench.checkpoints.info import CheckpointInfo
    from agentbench.checkpoints.storage import CheckpointStorage
    from agentbench.workflows.graph.boundary import BoundaryHook
    from agentbench.workflows.graph.edge_groups import EdgeGroup


def _of_graph(name: str, doc: str) -> Any:
    return property(attrgetter(f"graph.{name}"), doc=doc)


class StateUser(Protocol):
    """A run that uses the state of a workflow instance."""

    @property
    def how_to_end(self) -> str:
        """How a caller can end it, for an error."""

    @property
    def is_over(self) -> bool:
        """Whether it needs the state no longer."""

    @property
    def status(self) -> WorkflowRunState:
        """Its state now."""

    def break_off_if_lost(self) -> bool:
        """End it if its event loop was closed, and return whether it was."""

    def become_read_only(self) -> None:
        """Let another run use the state."""


class OneRunAtATime(Displayable):
    """An instance with a state, which one run at a time uses."""

    name: str
    storage: CheckpointStorage | None
    """The default storage for checkpoints; None if none are saved."""
    run_state: RunState
    """The state between the runs of `run()`."""
    _user: Callable[[], StateUser | None] = staticmethod(lambda: None)
    _ended_as = WorkflowRunState.IDLE
    _run_several = "workflow.clone()"

    def require_free(self, caller: object = None) -> None:
        """Raise WorkflowBusyError while a run other than `caller` uses the state of the instance."""
        user = self._user()
        if user is None or user is caller or user.is_over or user.break_off_if_lost():
            return
        msg = (
            f"Workflow {self.name!r} is already running: {user.how_to_end}. "
            f"For concurrent runs use {self._run_several}."
        )
        raise WorkflowBusyError(msg)

    def acquire(self, run: StateUser) -> None:
        """Let a run use the state of the instance. WorkflowBusyError while another run uses it."""
        self.require_free(run)
        former = self._user()
        if former is not None and former is not run:
            former.become_read_only()
        self._user = weakref.ref(run)

    def release(self, run: StateUser) -> None:
        """Release the state of the instance, if `run` uses it."""
        if self._user() is run:
            del self._user
            self._ended_as = run.status

    @property
    def status(self) -> WorkflowRunState:
        """The state of the run that uses this instance, or of the last one; IDLE before the first run."""
        user = self._user()
        if user is not None:
            return user.status
        if self._ended_as in (WorkflowRunState.FAILED, WorkflowRunState.CANCELLED):
            return self._ended_as
        return WorkflowRunState.IDLE_WITH_PENDING_REQUESTS if self.run_state.requests else WorkflowRunState.IDLE

    def get_last_checkpoint_id(self) -> str | None:
        """Return the id of the latest checkpoint of the last run; None if it saved none.

        Example:
            >>> await workflow.run("tea", checkpoint_storage=storage)
            >>> await workflow.run(checkpoint_id=workflow.get_last_checkpoint_id(), checkpoint_storage=storage)
        """
        return self.run_state.last_checkpoint_id

    async def cancel_pending_requests(
        self, request_ids: Any = None, *, checkpoint_id: CheckpointInfo | str | None = None
    ) -> WorkflowRunResult:
        """Withdraw open requests, and let the run go on without their responses.

        Their response handlers are not called, which a `warning` event reports for each. Nodes that collect several
        responses, such as agents and workflows, continue with the others. A workflow function never returns from the
        call of `request_info` that made the request.

        Args:
            request_ids: one request or id, or several; None for all that are open.
            checkpoint_id: restore this checkpoint first, and withdraw its requests.

        Returns:
            The result of the run, as of one with responses; without events if nothing is open and no checkpoint given.

        Raises:
            WorkflowBusyError: the instance is already running.
            ValueError: one of them is not open, or is an interrupt of a state graph; or there is no storage.
            TypeError: one of them is neither a request nor an id.

        Example:
            >>> result = await workflow.run("Shall we?")
            >>> result = await workflow.cancel_pending_requests()
            >>> result.get_final_state()
            <WorkflowRunState.IDLE: 'IDLE'>
        """
        self.require_free()
        open_requests: Mapping[str, WorkflowEvent[Any]] = self.run_state.requests
        if checkpoint_id is not None:
            from agentbench.checkpoints.access import load_checkpoint  # noqa: PLC0415 - most runs start from none

            if self.storage is None:
                msg = "cancel_pending_requests(checkpoint_id=...) has no storage. Build the workflow with one."
                raise ValueError(msg)
            open_requests = (await load_checkpoint(self.storage, checkpoint_id)).pending_request_info_events
        responses = withdrawals(open_requests, request_ids)
        if not responses and checkpoint_id is None:
            return WorkflowRunResult((), [WorkflowEvent.status(self.status)])
        run: Any = self.run  # type: ignore[attr-defined] # each kind of workflow has its own signature
        result: WorkflowRunResult = await run(responses=responses or None, checkpoint_id=checkpoint_id)
        return result


class WorkflowDefinition(OneRunAtATime):
    """A workflow without the ways to run it: its graph, and the state of the instance."""

    graph: Graph
    _id: str | None = None
    _run_several = "workflow.start() or workflow.clone()"

    @classmethod
    def from_graph(cls, graph: Graph, storage: CheckpointStorage | None = None) -> Self:
        """Return a workflow over an existing graph, with an empty state."""
        workflow = cls.__new__(cls)
        workflow.graph, workflow.storage, workflow.run_state = graph, storage, RunState()
        return workflow

    def clone(self, *, copy_executors: bool = False) -> Self:
        """Return another instance of the same definition with its own state, messages and running flag.

        Args:
            copy_executors: deep-copy the executors; otherwise the clone gets `executor.fresh()` of each, which by
                default is the executor itself.
        """
        graph = self.graph.with_executors(copy.deepcopy(dict(self.executors))) if copy_executors else self.graph.fresh()
        return type(self).from_graph(graph, self.storage)

    @property
    def id(self) -> str:
        """Id of this instance."""
        if self._id is None:
            self._id = runtime_defaults().ids.new_id("workflow")
        return self._id

    name: str = _of_graph("name", "Groups the checkpoints.")
    description: str | None = _of_graph("description", "For people.")
    max_iterations: int = _of_graph("max_iterations", "Supersteps allowed since the last outside input.")
    edge_groups: Sequence[EdgeGroup] = _of_graph("edge_groups", "All edge groups, in builder order.")
    executors: Mapping[str, Executor] = _of_graph("executors", "All executors by id, in builder order.")
    boundary_hook: BoundaryHook | None = _of_graph("boundary_hook", "Drives another kind of graph.")
    start_executor_ids: tuple[str, ...] = _of_graph("start_executor_ids", "Ids of all start executors.")
    start_executors: list[Executor] = _of_graph("start_executors", "Executors that get the input of a run.")
    graph_signature: dict[str, Any] = _of_graph("signature", "What a checkpoint must match, as JSON; read only.")
    graph_signature_hash: str = _of_graph("signature_hash", "SHA-256 of the signature.")

    @property
    def start_executor_id(self) -> str:
        """Id of the start executor."""
        return self.graph.start_executor_ids[0]

    @property
    def input_types(self) -> list[Any]:
        """The types that the start executor takes."""
        return self.get_start_executor().input_types

    @property
    def output_types(self) -> list[Any]:
        """The types that the executors may yield, unions flattened, in builder order."""
        return distinct_types([executor.workflow_output_types for executor in self.executors.values()])

    def get_start_executor(self) -> Executor:
        """Return the start executor."""
        return self.executors[self.start_executor_id]

    def get_executors_list(self) -> list[Executor]:
        """Return all executors, in builder order."""
        return list(self.executors.values())

    def get_output_executors(self) -> list[Executor]:
        """Return the executors whose yields are outputs, by default all. WorkflowValidationError: an id is unknown."""
        if self.graph.output_kinds is None:
            return [e for e in self.executors.values() if e.workflow_output_types]
        return self._executors(self.graph.output_from)

    def get_intermediate_executors(self) -> list[Executor]:
        """Return the executors whose yields are intermediate, in builder order; raises like `get_output_executors`."""
        return self._executors(self.graph.intermediate_output_from)

    def _executors(self, ids: Sequence[str] | None) -> list[Executor]:
        missing = [i for i in ids or () if i not in self.executors]
        if missing:
            msg = f"{missing} are designated for outputs, but are not executors of workflow {self.name!r}."
            raise WorkflowValidationError(msg, ValidationTypeEnum.OUTPUT_VALIDATION)
        return [e for i, e in self.executors.items() if i in (ids or ())]

    def is_terminal_executor(self, executor_id: str) -> bool:
        """Whether the executor's yields are outputs."""
        kinds = self.graph.output_kinds
        return kinds is None or kinds(executor_id) == "output"

    def is_intermediate_executor(self, executor_id: str) -> bool:
        """Whether the executor's yields are intermediate."""
        kinds = self.graph.output_kinds
        return kinds is not None and kinds(executor_id) == "intermediate"

    def to_dict(self) -> dict[str, Any]:
        """Return the definition as JSON values; callables by name only."""
        designated = self.graph.output_kinds is not None
        out: dict[str, Any] = {
            "name": self.name,
            "id": self.id,
            "start_executor_id": self.start_executor_id,
            "max_iterations": self.max_iterations,
            "edge_groups": [group.to_dict() for group in self.edge_groups],
            "executors": {executor_id: _executor_dict(e) for executor_id, e in self.executors.items()},
            "output_executors": sorted(self.graph.output_from or ()) if designated else None,
            "intermediate_executors": sorted(self.graph.intermediate_output_from or ()) if designated else None,
        }
        if self.description:
            out["description"] = self.description
        return out

    def to_json(self) -> str:
        """Return `to_dict()` as JSON text."""
        import json  # noqa: PLC0415 - a run needs no JSON

        return json.dumps(self.to_dict())

    def to_python(self, names: Mapping[str, object] | None = None) -> str:
        """Return the builder code of this graph, using the `names` of variables such as `globals()` where possible."""
        text: str = call_view("agentbench.workflows.draw.python_code:to_python", self, names)
        return text


def _executor_dict(executor: Executor) -> dict[str, Any]:
    out = executor.to_dict()
    inner = find_sub_workflow(executor)
    if inner is not None and "workflow" not in out:
        out["workflow"] = inner.to_dict()
    return out
