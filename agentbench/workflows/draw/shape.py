"""The graph of a workflow as plain values: the one model behind pictures and texts.

It uses only public members, so that anything with `executors` and `edge_groups` can be drawn.
"""

from __future__ import annotations

import ast
import hashlib
import inspect
import warnings
from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from functools import cached_property, lru_cache
from types import CodeType
from typing import Any, Literal

from agentbench.workflows.graph.edge_groups import EdgeGroup, FanInEdgeGroup, InternalEdgeGroup
from agentbench.workflows.graph.edges import SwitchCaseEdgeGroupDefault
from agentbench.workflows.graph.graph import find_sub_workflow
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup

NodeKind = Literal["executor", "start", "output", "hitl", "subworkflow", "group", "fan_in", "internal"]
EdgeKind = Literal["direct", "conditional", "fan_out", "fan_in", "switch", "loop"]

# Kinds in words, for text and screen readers; `executor` applies to every node and is omitted.
KIND_WORDS: dict[str, str] = {
    "start": "start",
    "output": "output",
    "hitl": "asks a person",
    "subworkflow": "sub-workflow",
    "group": "group",
    "fan_in": "fan-in",
    "internal": "internal",
}

TIMES = "\N{MULTIPLICATION SIGN}"
"""Separates the name of a folded group from its number of members."""


@dataclass(frozen=True, kw_only=True)
class ShapeNode:
    """One node, or one frame around an opened sub-workflow; its id is that of the executor.

    Inside an opened sub-workflow (its `frame`), the id starts with the outer ids: `outer/inner`. `kinds` are in the
    order of `KIND_WORDS`, empty for a plain executor. `members` are the ids of the executors in a folded group. `note`
    is a line of text below the name.
    """

    id: str
    name: str
    kinds: tuple[NodeKind, ...] = ()
    type_name: str = ""
    members: tuple[str, ...] = ()
    frame: str | None = None
    note: str = ""

    @property
    def words(self) -> str:
        """The kinds in words, for text and screen readers."""
        return ", ".join(KIND_WORDS[kind] for kind in self.kinds)


@dataclass(frozen=True, kw_only=True)
class ShapeEdge:
    """One connection. `label` is the name of a condition, a case or a selection function, or empty.

    `plain_label` is the label in DOT and Mermaid text, where conditions have no names. `weight` is its class in a
    picture of how much passes along it, `ab_w0` to `ab_w5`; None for other pictures.
    """

    source: str
    target: str
    kind: EdgeKind = "direct"
    label: str = ""
    plain_label: str = ""
    weight: int | None = None

    @property
    def is_dashed(self) -> bool:
        """Whether the line is dashed, because not every message takes it."""
        return self.kind in ("conditional", "switch")


@dataclass(frozen=True, kw_only=True)
class GraphShape:
    """The nodes, edges and frames of a picture, in builder order; at most one edge per pair of nodes.

    Edges that name a frame end at its border. `hidden` are the ids of executors that are not drawn, and `note` is a
    line about folded and hidden nodes, empty when everything is drawn.
    """

    name: str = "workflow"
    nodes: tuple[ShapeNode, ...] = ()
    edges: tuple[ShapeEdge, ...] = ()
    frames: tuple[ShapeNode, ...] = ()
    hidden: tuple[str, ...] = ()
    note: str = ""

    def __hash__(self) -> int:  # shapes are cache keys, and hashing all values of a large one is slow
        return hash((self.name, self.nodes[:8], len(self.nodes), len(self.edges), self.note))

    @cached_property
    def element_of(self) -> dict[str | tuple[str, str], str]:
        """Element ids of the picture: `n0…` of nodes and their members, `c0…` of frames, `e0…` of (source, target)."""
        table: dict[Any, str] = {}
        for element, node in self.node_of.items():
            table.update(dict.fromkeys((node.id, *node.members), element))
        return table | {(edge.source, edge.target): f"e{index}" for index, edge in enumerate(self.edges)}

    @cached_property
    def node_of(self) -> dict[str, ShapeNode]:
        """Nodes and frames by element id."""
        nodes = {f"n{index}": node for index, node in enumerate(self.nodes)}
        return nodes | {f"c{index}": frame for index, frame in enumerate(self.frames)}

    @cached_property
    def name_of(self) -> dict[str, str]:
        """Names of nodes and frames by their ids."""
        return {node.id: node.name for node in self.node_of.values()}

    @cached_property
    def holder_of(self) -> dict[str, str]:
        """Id of the node of an executor: its own, or that of the group it is folded into."""
        return {each: node.id for node in self.node_of.values() for each in (node.id, *node.members)}

    @cached_property
    def outline(self) -> list[tuple[ShapeNode, int]]:
        """Nodes and frames in builder order with their depth, each frame before its first node."""
        frames: dict[str | None, ShapeNode] = {frame.id: frame for frame in self.frames}
        listed: dict[str, tuple[ShapeNode, int]] = {}
        for node in self.nodes:
            path = [node]
            while path[0].frame in frames:
                path.insert(0, frames[path[0].frame])
            for depth, each in enumerate(path):
                listed.setdefault(each.id, (each, depth))
        return list(listed.values())

    @cached_property
    def levels(self) -> dict[str, int]:
        """The distance of each node from the start, in execution order, without loops and frames."""
        nodes = dict.fromkeys(node.id for node in self.nodes)
        edges = [(edge.source, edge.target) for edge in self.edges if edge.kind != "loop"]
        return path_lengths(nodes, [ends for ends in edges if ends[0] in nodes and ends[1] in nodes])

    @cached_property
    def largest_fan(self) -> int:
        """The maximum number of edges that leave or enter one node; it determines the gap between ranks."""
        ends = [Counter(edge.source for edge in self.edges), Counter(edge.target for edge in self.edges)]
        return max((count for counter in ends for count in counter.values()), default=0)

    def anchor(self, node_id: str, *, leaving: bool = False) -> str:
        """Return the id of the node to which an edge is attached: for a frame, one of its inner nodes."""
        if all(frame.id != node_id for frame in self.frames):
            return node_id
        inside = [node for node in self.nodes if node.id.startswith(f"{node_id}/")]
        wanted = "output" if leaving else "start"
        fitting = [node for node in inside if wanted in node.kinds] or (inside[-1:] if leaving else inside[:1])
        return fitting[0].id

    def element(self, key: Any) -> str | None:
        """Return the element of an executor, or of the edge (source, target) between executors or their groups."""
        if isinstance(key, tuple):
            key = tuple(self.holder_of.get(end, end) for end in key)
        return self.element_of.get(key)


def read_shape(
    source: object, *, expand: Collection[str] | bool = (), joins: bool = False, internal: bool = False
) -> GraphShape:
    """Read the graph of a workflow, or of something with a `workflow`; a shape is returned unchanged.

    Args:
        source: A workflow, or a run, a compiled graph or a stepper of one.
        expand: Ids of sub-workflow nodes to open (`outer/inner` for nested ones), or `True` for all.
        joins: Whether a fan-in has a node before its target.
        internal: Whether the internal edges that carry responses are included.

    Raises:
        TypeError: `source` has no graph.
    """
    if isinstance(source, GraphShape):
        return source
    workflow: Any = source if hasattr(source, "edge_groups") else getattr(source, "workflow", None)
    if not hasattr(workflow, "edge_groups"):
        hint = " Call .build() first." if hasattr(source, "build") else ""
        msg = f"Cannot draw {type(source).__name__}: expected a workflow, a run of one, or a GraphShape.{hint}"
        raise TypeError(msg)
    reader = _ShapeReader(expand, joins=joins, internal=internal)
    reader.read(workflow)
    # Unnamed workflows have a generated name with a random id, which would differ in every picture.
    name = "workflow" if workflow.name.startswith("WorkflowBuilder-") else workflow.name
    nodes, edges, frames = tuple(reader.nodes), tuple(reader.edges.values()), tuple(reader.frames)
    return GraphShape(name=name, nodes=nodes, edges=edges, frames=frames)


def back_edges(
    nodes: Iterable[str], edges: Iterable[tuple[str, str]], *, first: Iterable[str] = ()
) -> set[tuple[str, str]]:
    """Return the edges that close a loop: those to a node on the current path of the walk.

    The walk starts at the nodes in `first`, then at every unvisited node.
    """
    after: dict[str, list[str]] = {node: [] for node in nodes}
    for source, target in edges:
        after.setdefault(source, []).append(target)
    back: set[tuple[str, str]] = set()
    met: set[str] = set()
    for root in [*first, *after]:
        if root in met:
            continue
        met.add(root)
        path = {root: iter(after.get(root, ()))}  # a stack
        while path:
            node = next(reversed(path))
            ahead = next(path[node], None)
            if ahead is None:
                del path[node]
            elif ahead in path:
                back.add((node, ahead))
            elif ahead not in met:
                met.add(ahead)
                path[ahead] = iter(after.get(ahead, ()))
    return back


def path_lengths(nodes: Iterable[str], edges: Iterable[tuple[str, str]]) -> dict[str, int]:
    """Return the number of edges of the longest path to each node, in topological order; nodes in loops come last."""
    waiting = dict.fromkeys(nodes, 0)
    after: dict[str, list[str]] = {node: [] for node in waiting}
    for source, target in edges:
        after[source].append(target)
        waiting[target] += 1
    lengths = dict.fromkeys(waiting, 0)
    order = [node for node, count in waiting.items() if not count]
    for node in order:  # grows during the iteration
        for target in after[node]:
            lengths[target] = max(lengths[target], lengths[node] + 1)
            waiting[target] -= 1
            if not waiting[target]:
                order.append(target)
    return {node: lengths[node] for node in (*order, *(node for node, count in waiting.items() if count))}


class _ShapeReader:
    """Collects nodes, frames and edges of a workflow and of its opened sub-workflows."""

    def __init__(self, expand: Collection[str] | bool, *, joins: bool, internal: bool) -> None:
        self.expand, self.joins, self.internal = expand, joins, internal
        self.nodes: list[ShapeNode] = []
        self.frames: list[ShapeNode] = []
        self.edges: dict[tuple[str, str], ShapeEdge] = {}

    def read(self, workflow: Any, *, frame: str | None = None, around: tuple[object, ...] = ()) -> None:
        """Read a workflow; those around it are not opened again inside it."""
        prefix = "" if frame is None else f"{frame}/"
        around = (*around, workflow)
        added = self._read_edges(workflow, frame, prefix)
        outputs = {each.id for each in workflow.get_output_executors() if each.workflow_output_types}
        for executor_id, executor in workflow.executors.items():
            inner = find_sub_workflow(executor)
            facts: dict[NodeKind, bool] = {
                "start": executor_id in workflow.start_executor_ids,
                "output": executor_id in outputs,
                "hitl": executor.asks_person,
                "subworkflow": inner is not None,
            }
            node = ShapeNode(
                id=prefix + executor_id,
                name=executor_id,
                kinds=tuple(kind for kind, holds in facts.items() if holds),
                type_name=str(executor.type),
                frame=frame,
            )
            is_open = self.expand if isinstance(self.expand, bool) else node.id in self.expand
            if inner is not None and is_open and all(inner is not outer for outer in around):
                self.frames.append(node)
                self.read(inner, frame=node.id, around=around)
            else:
                self.nodes.append(node)
        self.nodes += added

    def _read_edges(self, workflow: Any, frame: str | None, prefix: str) -> list[ShapeNode]:
        """Read the edges, and return the nodes that are none of the executors: joins and internal sources."""
        groups = [group for group in workflow.edge_groups if self.internal or not isinstance(group, InternalEdgeGroup)]
        ends = [(edge.source_id, edge.target_id) for group in groups for edge in group.edges]
        back = back_edges(workflow.executors, ends, first=workflow.start_executor_ids)
        nodes: list[ShapeNode] = []
        for group in groups:
            if self.joins and isinstance(group, FanInEdgeGroup):
                # The id is derived from what the group joins, because its own id is random.
                key = "|".join([group.target_id, *sorted(group.source_executor_ids)])
                join = f"{prefix}fan_in::{group.target_id}::{short_digest(key)}"
                nodes.append(ShapeNode(id=join, name="fan-in", kinds=("fan_in",), frame=frame))
                for source in group.source_executor_ids:
                    self._add(prefix + source, join, "fan_in")
                self._add(join, prefix + group.target_id, "fan_in")
                continue
            if isinstance(group, InternalEdgeGroup):
                source = group.source_executor_ids[0]
                nodes.append(ShapeNode(id=prefix + source, name=source, kinds=("internal",), frame=frame))
            for edge in group.edges:
                kind, *labels = _kind_and_labels(group, edge)
                kind = "loop" if (edge.source_id, edge.target_id) in back else kind
                self._add(prefix + edge.source_id, prefix + edge.target_id, kind, *labels)
        return nodes

    def _add(self, source: str, target: str, kind: EdgeKind, label: str = "", plain_label: str = "") -> None:
        edge = ShapeEdge(source=source, target=target, kind=kind, label=label, plain_label=plain_label)
        self.edges.setdefault((source, target), edge)


def short_digest(text: str) -> str:
    """Return eight digits that depend only on a text."""
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:8]


def _kind_and_labels(group: EdgeGroup, edge: Any) -> tuple[EdgeKind, str, str]:
    if isinstance(group, SwitchCaseEdgeGroup):
        cases = [case for case in group.cases if case.target_id == edge.target_id]
        names = [
            "default" if isinstance(case, SwitchCaseEdgeGroupDefault) else case.condition_name or "<missing>"
            for case in cases
        ]
        return "switch", " or ".join(map(_case_label, cases)), " / ".join(names)
    if isinstance(group, FanOutEdgeGroup):
        name = group.selection_func_name
        return "fan_out", f"by {_function_name(name)}" if name else "", name or ""
    if isinstance(group, FanInEdgeGroup):
        return "fan_in", "", ""
    if edge.has_condition or edge.condition_name:
        return "conditional", _case_label(edge), "conditional"
    return "direct", "", ""


def _case_label(case: Any) -> str:
    if isinstance(case, SwitchCaseEdgeGroupDefault):
        return "default"
    return f"if {_function_name(case.condition_name, case.condition)}"


def _function_name(name: str | None, function: object = None) -> str:
    """Return the name of a function; for a lambda its expression, because its name is always the same."""
    if name not in (None, "<lambda>", "<callable>"):
        return str(name)
    return lambda_text(function) or "λ"


def lambda_text(function: object) -> str | None:
    """Return the text of a condition that is a lambda: `score < 0.5` for `lambda draft: draft.score < 0.5`.

    It is the body without the argument's name; `None` if the source is missing or ambiguous.
    """
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType) or code.co_name != "<lambda>":
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the code itself has already warned
            found = _lambdas("".join(inspect.findsource(code)[0])).get((code.co_firstlineno, _words(code)), set())
    # The last: CPython 3.11, deep stacks.
    except (OSError, SyntaxError, ValueError, RecursionError, MemoryError, SystemError):
        return None
    return next(iter(found)) if len(found) == 1 else None


@lru_cache(maxsize=8)
def _lambdas(source: str) -> dict[tuple[int, frozenset[str]], set[str]]:
    """Return texts by line and words; the words differ if a file was changed after its code was loaded."""
    texts: dict[tuple[int, frozenset[str]], set[str]] = {}
    for node in (node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Lambda)):
        code = compile(ast.Expression(node), "<source>", "eval", dont_inherit=True).co_consts[0]
        body = ast.parse(ast.unparse(node.body), mode="eval")
        for each in ast.walk(body):
            if isinstance(each, ast.Attribute) and [getattr(each.value, "id", "")] == [a.arg for a in node.args.args]:
                each.value = ast.Name("\0")  # cannot occur in unparsed text
        texts.setdefault((node.lineno, _words(code)), set()).add(ast.unparse(body).replace("\0.", ""))
    return texts


def _words(code: CodeType) -> frozenset[str]:
    """Return the names and constants in a function and its inner functions."""
    inner = [each for each in code.co_consts if isinstance(each, CodeType)]
    plain = (repr(each) for each in code.co_consts if each not in inner and "<lambda>" not in str(each))
    return frozenset(plain).union(code.co_names, code.co_freevars, code.co_varnames, *map(_words, inner))
