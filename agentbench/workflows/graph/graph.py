"""What a workflow is, apart from any run of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from agentbench.workflows.executors.context import OutputKind
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.options import WorkflowSettings
from agentbench.workflows.graph.edge_groups import EdgeGroup
from agentbench.workflows.graph.routing import Router
from agentbench.workflows.graph.signature import graph_signature
from agentbench.workflows.graph.signature import signature_hash as hash_signature

if TYPE_CHECKING:
    from agentbench.workflows.graph.boundary import BoundaryHook

PLAIN = WorkflowSettings()


class Graph:
    """Executors, edges, start and designation of outputs, with the signature and the routing tables made of them.

    Nothing in it changes while it runs: clones and runs of a workflow share it.

    Args:
        edge_groups: in builder order, one internal group per executor included.
        executors: by id, in builder order.
        start_executor_ids: who gets the input of a run; the first one is *the* start executor.
        name: groups the checkpoints.
        description: for people.
        max_iterations: supersteps allowed since the last outside input.
        output_from: ids whose yields are outputs; None with `intermediate_output_from` None: everyone's.
        intermediate_output_from: ids whose yields are intermediate.
        settings: how it behaves.
        boundary_hook: drives another dialect of graphs.
        signature_hash: stands for the signature; by default the hash of the signature.
    """

    __slots__ = (
        "_hash",
        "_router",
        "_signature",
        "_stateful",
        "boundary_hook",
        "description",
        "edge_groups",
        "executors",
        "intermediate_output_from",
        "max_iterations",
        "name",
        "output_from",
        "output_kinds",
        "settings",
        "start_executor_ids",
    )

    def __init__(  # noqa: PLR0913 - everything that makes a workflow, by name
        self,
        edge_groups: Sequence[EdgeGroup],
        executors: dict[str, Executor],
        start_executor_ids: Sequence[str],
        *,
        name: str = "Workflow",
        description: str | None = None,
        max_iterations: int = 100,
        output_from: Sequence[str] | None = None,
        intermediate_output_from: Sequence[str] | None = None,
        settings: WorkflowSettings = PLAIN,
        boundary_hook: BoundaryHook | None = None,
        signature_hash: str | None = None,
    ) -> None:
        self.edge_groups = edge_groups
        self.executors = executors
        self.start_executor_ids = tuple(start_executor_ids)
        self.name = name
        self.description = description
        self.max_iterations = max_iterations
        self.output_from = output_from
        self.intermediate_output_from = intermediate_output_from
        self.settings = settings
        self.boundary_hook = boundary_hook
        #: Says by executor id how a yielded value is emitted; None where all are outputs.
        self.output_kinds: Callable[[str], OutputKind | None] | None = None
        if output_from is not None or intermediate_output_from is not None:
            kinds: dict[str, OutputKind] = dict.fromkeys(intermediate_output_from or (), "intermediate")
            kinds.update(dict.fromkeys(output_from or (), "output"))
            self.output_kinds = kinds.get
        self._router: Router | None = None
        self._signature: dict[str, Any] | None = None
        self._stateful: list[Executor] | None = None
        self._hash = signature_hash

    @property
    def start_executors(self) -> list[Executor]:
        """Executors that get the input of a run."""
        return [self.executors[i] for i in self.start_executor_ids]

    @property
    def router(self) -> Router:
        """The routing tables, made at first use."""
        if self._router is None:
            self._router = Router(
                self.edge_groups,
                self.executors,
                starts=self.start_executor_ids,
                copy_messages=self.settings.copy_messages,
            )
        return self._router

    @property
    def signature(self) -> dict[str, Any]:
        """What has to be the same for a checkpoint to fit; JSON-able. To be read only."""
        if self._signature is None:
            self._signature = graph_signature(
                self.edge_groups, self.executors, self.start_executor_ids, self.boundary_hook
            )
        return self._signature

    @property
    def signature_hash(self) -> str:
        """SHA-256 of the signature."""
        if self._hash is None:
            self._hash = hash_signature(self.signature)
        return self._hash

    @property
    def stateful_executors(self) -> list[Executor]:
        """Executors that save a state of their own."""
        if self._stateful is None:
            self._stateful = [e for e in self.executors.values() if e.keeps_state]
        return self._stateful

    def fresh(self) -> Graph:
        """Return the graph for another run: its executors are `executor.fresh()` of these."""
        executors = {key: executor.fresh() for key, executor in self.executors.items()}
        if all(executors[key] is executor for key, executor in self.executors.items()):
            return self
        return self.with_executors(executors)

    def with_executors(self, executors: dict[str, Executor]) -> Graph:
        """Return the same graph over other executors of the same ids and classes."""
        twin = Graph(**{**self.definition(), "executors": executors})
        twin._signature, twin._hash = self._signature, self._hash
        return twin

    def definition(self) -> Mapping[str, Any]:
        """Return the arguments that make this graph."""
        return {
            "edge_groups": self.edge_groups,
            "executors": self.executors,
            "start_executor_ids": self.start_executor_ids,
            "name": self.name,
            "description": self.description,
            "max_iterations": self.max_iterations,
            "output_from": self.output_from,
            "intermediate_output_from": self.intermediate_output_from,
            "settings": self.settings,
            "boundary_hook": self.boundary_hook,
        }

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle what it is made of; tables and signature are made again."""
        return _graph_of, (dict(self.definition()),)


def _graph_of(definition: dict[str, Any]) -> Graph:
    return Graph(**definition)
