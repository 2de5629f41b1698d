"""The graph of a workflow as plain values: what is drawn, however it is drawn.

Read from public members only, so that anything with `executors` and `edge_groups` can be drawn.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

from agentbench.notebook.graph.lambda_text import lambda_text
from agentbench.workflows.graph.edge_groups import EdgeGroup, FanInEdgeGroup, InternalEdgeGroup
from agentbench.workflows.graph.edges import SwitchCaseEdgeGroupCase
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup
from agentbench.workflows.graph.signature import find_sub_workflow

__all__ = [
    "EdgeKind",
    "GraphShape",
    "NodeKind",
    "ShapeEdge",
    "ShapeNode",
    "back_edges",
    "find_workflow",
    "read_shape",
    "running_order",
]

NodeKind = Literal["executor", "start", "output", "hitl", "subworkflow", "group"]
EdgeKind = Literal["direct", "conditional", "fan_out", "fan_in", "switch", "loop"]

# In words for text and screen readers; `executor` is what everything is and goes without saying.
KIND_WORDS: dict[str, str] = {
    "start": "start",
    "output": "output",
    "hitl": "asks a person",
    "subworkflow": "sub-workflow",
    "group": "group",
}

TIMES = "\N{MULTIPLICATION SIGN}"
"""Stands between the name of a folded group and the number of its members."""

_DEEPEST = 8


@dataclass(frozen=True, kw_only=True)
class ShapeNode:
    """One node, or one frame around an opened sub-workflow.

    Attributes:
        id: Executor id; inside an opened sub-workflow with the ids on the way, `outer/inner`.
        name: Its text.
        kinds: Its kinds, in the order of `KIND_WORDS`; empty for a plain executor.
        type_name: The executor's own type name.
        members: Ids of the executors in a folded group.
        frame: Id of the opened sub-workflow that it lies in.
    """

    id: str
    name: str
    kinds: tuple[NodeKind, ...] = ()
    type_name: str = ""
    members: tuple[str, ...] = ()
    frame: str | None = None

    @property
    def words(self) -> str:
        """The kinds in words, for text and screen readers."""
        return ", ".join(KIND_WORDS[kind] for kind in self.kinds)


@dataclass(frozen=True, kw_only=True)
class ShapeEdge:
    """One connection. `label` is the name of a condition, a case or a selection function, or empty."""

    source: str
    target: str
    kind: EdgeKind = "direct"
    label: str = ""


@dataclass(frozen=True, kw_only=True)
class GraphShape:
    """The nodes, edges and frames of a picture, in builder order.

    Attributes:
        name: Name of the workflow.
        nodes: The nodes.
        edges: The edges, at most one for a pair of nodes.
        frames: Opened sub-workflows; edges that name them end at their frame.
        hidden: Ids of executors that are left out.
        note: A line about folded and hidden nodes; empty when everything is drawn.
    """

    name: str = "workflow"
    nodes: tuple[ShapeNode, ...] = ()
    edges: tuple[ShapeEdge, ...] = ()
    frames: tuple[ShapeNode, ...] = ()
    hidden: tuple[str, ...] = ()
    note: str = ""

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Shapes are keys of what follows from them, and a large one has thousands of values to hash."""
        return hash((self.name, self.nodes, self.edges, self.frames, self.hidden, self.note))

    @cached_property
    def element_of(self) -> dict[str | tuple[str, str], str]:
        """Element ids of the picture: `n0…` for nodes, `c0…` for frames, `e0…` for edges by (source, target).

        Members of a folded group have the element of their group.
        """
        table: dict[str | tuple[str, str], str] = {}
        for index, node in enumerate(self.nodes):
            table.update(dict.fromkeys((node.id, *node.members), f"n{index}"))
        table.update((frame.id, f"c{index}") for index, frame in enumerate(self.frames))
        table.update(((edge.source, edge.target), f"e{index}") for index, edge in enumerate(self.edges))
        return table

    @cached_property
    def node_of(self) -> dict[str, ShapeNode]:
        """Nodes and frames by element id."""
        table = {f"n{index}": node for index, node in enumerate(self.nodes)}
        table.update((f"c{index}", frame) for index, frame in enumerate(self.frames))
        return table

    @cached_property
    def name_of(self) -> dict[str, str]:
        """Names of nodes and frames by their ids."""
        return {node.id: node.name for node in (*self.nodes, *self.frames)}

    @cached_property
    def holder_of(self) -> dict[str, str]:
        """Id of the node of an executor: its own, or that of the group it is folded into."""
        table = {node.id: node.id for node in (*self.nodes, *self.frames)}
        table.update((member, node.id) for node in self.nodes for member in node.members)
        return table

    def anchor(self, node_id: str, *, leaving: bool) -> str:
        """Return the id of the node that an edge is tied to: for a frame one of the nodes inside it."""
        if all(frame.id != node_id for frame in self.frames):
            return node_id
        inside = [node for node in self.nodes if node.id.startswith(f"{node_id}/")]
        wanted = "output" if leaving else "start"
        fitting = [node for node in inside if wanted in node.kinds] or (inside[-1:] if leaving else inside[:1])
        return fitting[0].id

    def edge_element(self, source: str, target: str) -> str | None:
        """Return the element of the edge between two executors, or between the groups that hold them."""
        holder = self.holder_of
        ends = (holder.get(source, source), holder.get(target, target))
        return self.element_of.get(ends)


def find_workflow(source: object) -> Any:
    """Return the workflow in `source`: itself, or its `workflow` (a run, a compiled graph, a stepper).

    Raises:
        TypeError: There is none.
    """
    for candidate in (source, getattr(source, "workflow", None)):
        if hasattr(candidate, "executors") and hasattr(candidate, "edge_groups"):
            return candidate
    hint = " Call .build() first." if hasattr(source, "build") else ""
    msg = f"Cannot draw {type(source).__name__}: expected a workflow, a run of one, or a GraphShape.{hint}"
    raise TypeError(msg)


def read_shape(source: object, *, expand: Collection[str] | bool = ()) -> GraphShape:
    """Read the graph of a workflow.

    Args:
        source: A workflow, something with a `workflow`, or a shape, which is returned as it is.
        expand: Ids of sub-workflow nodes to open (`outer/inner` for nested ones), `True` for all.

    Raises:
        TypeError: `source` holds no graph.
    """
    if isinstance(source, GraphShape):
        return source
    workflow = find_workflow(source)
    reader = _Reader(expand)
    reader.read(workflow, prefix="", frame=None)
    name = getattr(workflow, "name", None)
    # Workflows without a name have a generated one with a random id, which would differ in every picture.
    named = name and not str(name).startswith("WorkflowBuilder-")
    return GraphShape(
        name=str(name) if named else "workflow",
        nodes=tuple(reader.nodes),
        edges=tuple(reader.edges.values()),
        frames=tuple(reader.frames),
    )


def back_edges(
    nodes: Iterable[str], edges: Iterable[tuple[str, str]], *, first: Iterable[str] = ()
) -> set[tuple[str, str]]:
    """Return the edges that close a loop: those that lead back to a node the walk came from.

    Args:
        nodes: All nodes, in order.
        edges: Pairs of nodes, in order.
        first: Where the walk begins; afterwards at every node not met yet.
    """
    after: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in edges:
        after.setdefault(source, []).append(target)
    back: set[tuple[str, str]] = set()
    met: set[str] = set()
    for root in [*first, *after]:
        if root not in met:
            _walk(root, after, met, back)
    return back


def running_order(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> list[str]:
    """Return the nodes in topological order, ties in their order; nodes of loops that nothing opens come last."""
    waiting = dict.fromkeys(nodes, 0)
    after: dict[str, list[str]] = {node: [] for node in waiting}
    for source, target in edges:
        after[source].append(target)
        waiting[target] += 1
    order = [node for node, count in waiting.items() if not count]
    for node in order:  # grows while it is read
        for target in after[node]:
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    return order + [node for node, count in waiting.items() if count > 0]


def path_lengths(nodes: Iterable[str], edges: Sequence[tuple[str, str]]) -> dict[str, int]:
    """Return the number of edges of the longest path to each node; `edges` hold no loop."""
    before: dict[str, list[str]] = {}
    for source, target in edges:
        before.setdefault(target, []).append(source)
    lengths: dict[str, int] = {}
    for node in running_order(nodes, edges):
        lengths[node] = max((lengths.get(each, 0) + 1 for each in before.get(node, ())), default=0)
    return lengths


def _walk(root: str, after: Mapping[str, Sequence[str]], met: set[str], back: set[tuple[str, str]]) -> None:
    met.add(root)
    on_path = {root}
    path: list[tuple[str, Iterator[str]]] = [(root, iter(after.get(root, ())))]
    while path:
        node, rest = path[-1]
        target = next(rest, None)
        if target is None:
            on_path.discard(node)
            path.pop()
        elif target in on_path:
            back.add((node, target))
        elif target not in met:
            met.add(target)
            on_path.add(target)
            path.append((target, iter(after.get(target, ()))))


class _Reader:
    """Collects nodes, frames and edges over a workflow and the sub-workflows that are to be opened."""

    def __init__(self, expand: Collection[str] | bool) -> None:
        self.expand = expand
        self.nodes: list[ShapeNode] = []
        self.frames: list[ShapeNode] = []
        self.edges: dict[tuple[str, str], ShapeEdge] = {}

    def read(self, workflow: Any, *, prefix: str, frame: str | None, depth: int = 0) -> None:
        starts = _start_ids(workflow)
        outputs = _output_ids(workflow)
        self._read_edges(workflow, starts, prefix)
        for executor_id, executor in workflow.executors.items():
            kinds = _kinds(executor_id, executor, starts, outputs)
            node = ShapeNode(
                id=prefix + executor_id,
                name=executor_id,
                kinds=kinds,
                type_name=str(getattr(executor, "type", None) or type(executor).__name__),
                frame=frame,
            )
            if "subworkflow" in kinds and depth < _DEEPEST and self._is_open(node.id):
                self.frames.append(node)
                self.read(executor.workflow, prefix=f"{node.id}/", frame=node.id, depth=depth + 1)
            else:
                self.nodes.append(node)

    def _is_open(self, node_id: str) -> bool:
        return self.expand if isinstance(self.expand, bool) else node_id in self.expand

    def _read_edges(self, workflow: Any, starts: Sequence[str], prefix: str) -> None:
        found = [edge for group in workflow.edge_groups for edge in _edges_of(group)]
        back = back_edges(workflow.executors, [(edge.source, edge.target) for edge in found], first=starts)
        for edge in found:
            ends = (prefix + edge.source, prefix + edge.target)
            kind: EdgeKind = "loop" if (edge.source, edge.target) in back else edge.kind
            self.edges.setdefault(ends, ShapeEdge(source=ends[0], target=ends[1], kind=kind, label=edge.label))


def _start_ids(workflow: Any) -> list[str]:
    several = getattr(workflow, "start_executor_ids", None)
    if several:
        return list(several)
    one = getattr(workflow, "start_executor_id", None)
    return [] if one is None else [one]


def _output_ids(workflow: Any) -> set[str]:
    """Ids of the executors whose yields are outputs of the run, among those that yield at all."""
    found = {getattr(executor, "id", executor): executor for executor in workflow.get_output_executors()}
    return {
        executor_id for executor_id, executor in found.items() if getattr(executor, "workflow_output_types", (object,))
    }


def _kinds(executor_id: str, executor: Any, starts: Collection[str], outputs: Collection[str]) -> tuple[NodeKind, ...]:
    facts: tuple[tuple[NodeKind, bool], ...] = (
        ("start", executor_id in starts),
        ("output", executor_id in outputs),
        ("hitl", bool(getattr(executor, "is_request_response_capable", False))),
        ("subworkflow", find_sub_workflow(executor) is not None),
    )
    return tuple(kind for kind, holds in facts if holds)


def _edges_of(group: EdgeGroup) -> list[ShapeEdge]:
    if isinstance(group, InternalEdgeGroup):
        return []
    if isinstance(group, SwitchCaseEdgeGroup):
        return _switch_edges(group)
    if isinstance(group, FanOutEdgeGroup):
        label = f"by {_function_words(group.selection_func_name)}" if group.selection_func_name else ""
        return [_edge(edge, "fan_out", label) for edge in group.edges]
    if isinstance(group, FanInEdgeGroup):
        return [_edge(edge, "fan_in", "") for edge in group.edges]
    return [
        _edge(edge, "conditional", f"if {_function_words(edge.condition_name, edge.condition)}")
        if edge.has_condition or edge.condition_name
        else _edge(edge, "direct", "")
        for edge in group.edges
    ]


def _switch_edges(group: SwitchCaseEdgeGroup) -> list[ShapeEdge]:
    labels: dict[str, list[str]] = {}
    for case in group.cases:
        word = (
            f"if {_function_words(case.condition_name, case.condition)}"
            if isinstance(case, SwitchCaseEdgeGroupCase)
            else "default"
        )
        labels.setdefault(case.target_id, []).append(word)
    return [_edge(edge, "switch", " or ".join(labels.get(edge.target_id, ()))) for edge in group.edges]


def _edge(edge: Any, kind: EdgeKind, label: str) -> ShapeEdge:
    return ShapeEdge(source=edge.source_id, target=edge.target_id, kind=kind, label=label)


def _function_words(name: str | None, condition: object = None) -> str:
    """The name of a function; of a lambda its expression, since Python's name for it is always the same."""
    if name not in (None, "<lambda>", "<callable>"):
        return str(name)
    return lambda_text(condition) or "λ"
