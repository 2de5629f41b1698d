"""The definition of a workflow, independent of any run, and its signature."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from agentbench._lazy import public_path
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.host import OutputKind
from agentbench.workflows.executors.options import WorkflowSettings
from agentbench.workflows.graph.edge_groups import EdgeGroup, FanInEdgeGroup, InternalEdgeGroup, resolve_fan_in_mode
from agentbench.workflows.graph.edges import SwitchCaseEdgeGroupCase
from agentbench.workflows.graph.routing import Router
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup

if TYPE_CHECKING:
    from agentbench.workflows.graph.boundary import BoundaryHook


def graph_signature(
    edge_groups: Iterable[EdgeGroup],
    executors: Mapping[str, Executor],
    start_executor_ids: Sequence[str],
    boundary_hook: BoundaryHook | None = None,
    *,
    within: tuple[object, ...] = (),
) -> dict[str, Any]:
    """Return the parts of a graph on which checkpoints depend, as JSON values, independent of the building order."""
    starts = sorted(start_executor_ids)
    groups = [_describe(group, executors) for group in edge_groups if not isinstance(group, InternalEdgeGroup)]
    signature: dict[str, Any] = {
        "start_executor": starts[0] if starts else None,
        "executors": {key: _identity(executor, within) for key, executor in sorted(executors.items())},
        "edge_groups": sorted(groups, key=_canonical),
    }
    if len(starts) > 1:
        signature["start_executors"] = starts
    boundary = None if boundary_hook is None else boundary_hook.signature()
    if boundary is not None:
        signature["boundary"] = boundary
    return signature


def signature_hash(signature: Mapping[str, Any]) -> str:
    """Return the SHA-256 of a signature as 64 hex digits; equal signatures have equal hashes."""
    import hashlib  # noqa: PLC0415 - loads OpenSSL, and only checkpoints and comparisons need a hash

    return hashlib.sha256(_canonical(signature).encode()).hexdigest()


def find_sub_workflow(executor: Executor) -> Any | None:
    """Return the workflow that an executor runs inside itself (its attribute `workflow`), or `None`."""
    inner = getattr(executor, "workflow", None)
    if hasattr(inner, "edge_groups") and hasattr(inner, "executors") and hasattr(inner, "start_executor_ids"):
        return inner
    return None


def _identity(executor: Executor, within: tuple[object, ...]) -> str | dict[str, Any]:
    executor_class = executor.__class__
    # The class's own key: a subclass is a different class, even if its base has a signature_key.
    identity = vars(executor_class).get("signature_key") or public_path(executor_class)
    identity = identity or f"{executor_class.__module__}.{executor_class.__name__}"
    inner = find_sub_workflow(executor)
    if inner is None:
        return identity
    if any(inner is outer for outer in within):
        return {"type": identity, "sub_workflow": "recursive"}
    hook = getattr(inner, "boundary_hook", None)
    nested = graph_signature(
        inner.edge_groups, inner.executors, inner.start_executor_ids, hook, within=(*within, inner)
    )
    return {"type": identity, "sub_workflow": nested}


def _describe(group: EdgeGroup, executors: Mapping[str, Executor]) -> dict[str, Any]:
    edges = [
        {"source": edge.source_id, "target": edge.target_id, "condition": edge.condition_name} for edge in group.edges
    ]
    description: dict[str, Any] = {
        "group_type": group.type,
        "sources": sorted(group.source_executor_ids),
        "targets": sorted(group.target_executor_ids),
        "edges": sorted(edges, key=lambda edge: (edge["source"], edge["target"], edge["condition"] or "")),
    }
    if isinstance(group, FanOutEdgeGroup):
        description["selection_func"] = group.selection_func_name
    if isinstance(group, SwitchCaseEdgeGroup):
        description["cases"] = [
            [case.target_id, case.condition_name] for case in group.cases if isinstance(case, SwitchCaseEdgeGroupCase)
        ]
        description["default"] = group.default.target_id
    if isinstance(group, FanInEdgeGroup):
        # Before modes existed, a fan-in always waited for all sources, so that mode is not recorded.
        mode = resolve_fan_in_mode(group, executors) or group.mode
        if mode != "barrier":
            description["mode"] = mode
    return description


def _canonical(value: Any) -> str:
    import json  # noqa: PLC0415 - only checkpoints need it; a first small run does without

    return json.dumps(value, sort_keys=True, separators=(",", ":"))


PLAIN = WorkflowSettings()

_MADE_OF_EXECUTORS = ("router", "start_executors", "stateful_executors", "code_hashes", "code_hash")


@dataclass(frozen=True, eq=False)
class Graph:
    """Executors, edges, start and output designation, with the signature and the routing tables derived from them.

    It never changes, because clones and runs of a workflow share it. The fields are arguments of `Workflow`.
    """

    edge_groups: Sequence[EdgeGroup]
    executors: Mapping[str, Executor]
    start_executor_ids: tuple[str, ...]
    _: KW_ONLY
    name: str = "Workflow"
    description: str | None = None
    max_iterations: int = 100
    output_from: Sequence[str] | None = None
    intermediate_output_from: Sequence[str] | None = None
    settings: WorkflowSettings = PLAIN
    boundary_hook: BoundaryHook | None = None
    fixed_hash: str | None = None
    """Replaces the hash of the signature."""
    output_kinds: Callable[[str], OutputKind | None] | None = field(default=None, init=False)
    """Maps an executor id to how its yields are emitted; None if all are outputs."""

    def __post_init__(self) -> None:
        """Add the missing internal edges, create the table of designations, and make the executor table read-only."""
        present = {group.executor_id for group in self.edge_groups if isinstance(group, InternalEdgeGroup)}
        missing = [InternalEdgeGroup(executor_id) for executor_id in self.executors if executor_id not in present]
        vars(self)["edge_groups"] = [*self.edge_groups, *missing]
        vars(self)["executors"] = MappingProxyType(self.executors)
        if self.output_from is not None or self.intermediate_output_from is not None:
            kinds: dict[str, OutputKind] = dict.fromkeys(self.intermediate_output_from or (), "intermediate")
            kinds.update(dict.fromkeys(self.output_from or (), "output"))
            vars(self)["output_kinds"] = kinds.get

    @cached_property
    def driver(self) -> BoundaryHook | None:
        """The boundary hook, unless it only observes."""
        return self.boundary_hook if getattr(self.boundary_hook, "drives", True) else None

    @cached_property
    def start_executors(self) -> list[Executor]:
        """The executors that get the input of a run."""
        return [self.executors[i] for i in self.start_executor_ids]

    @cached_property
    def router(self) -> Router:
        """The routing tables."""
        copies = self.settings.copy_messages
        return Router(self.edge_groups, self.executors, starts=self.start_executor_ids, copy_messages=copies)

    @cached_property
    def signature(self) -> dict[str, Any]:
        """The values that must be equal for a checkpoint to fit, as JSON values. Read only."""
        return graph_signature(self.edge_groups, self.executors, self.start_executor_ids, self.boundary_hook)

    @cached_property
    def signature_hash(self) -> str:
        """SHA-256 of the signature."""
        return self.fixed_hash or signature_hash(self.signature)

    @cached_property
    def code_hashes(self) -> dict[str, str]:
        """Hashes of the code of executors and edges, by id. Read only; plain runs never compute them."""
        from agentbench.workflows.graph.code_hash import code_hashes  # noqa: PLC0415 - only batches and redo need it

        return code_hashes(self)

    @cached_property
    def code_hash(self) -> str:
        """SHA-256 of all code of the graph."""
        return signature_hash(self.code_hashes)

    @cached_property
    def stateful_executors(self) -> list[Executor]:
        """Executors that save their own state."""
        return [e for e in self.executors.values() if e.keeps_state]

    def fresh(self) -> Graph:
        """Return the graph for another run, over `executor.fresh()` of each; `TypeError` if an id differs."""
        executors = {key: executor.fresh() for key, executor in self.executors.items()}
        if all(executors[key] is executor for key, executor in self.executors.items()):
            return self
        for key, executor in executors.items():
            if getattr(executor, "id", None) != key:
                msg = f"fresh() of executor {key!r} returned {executor!r}; expected an executor with the same id."
                raise TypeError(msg)
        for executor in executors.values():
            executor.on_fresh(executors)
        return self.with_executors(executors)

    def with_executors(self, executors: dict[str, Executor]) -> Graph:
        """Return the same graph over other executors with the same ids and classes."""
        clone = copy.copy(self)
        vars(clone)["executors"] = MappingProxyType(executors)
        return clone

    def __getstate__(self) -> dict[str, Any]:
        """Leave out of copies and pickles what is derived from the executors."""
        state = {key: value for key, value in vars(self).items() if key not in _MADE_OF_EXECUTORS}
        return {**state, "executors": dict(self.executors)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Make the table of executors read-only again."""
        vars(self).update(state, executors=MappingProxyType(state["executors"]))
