"""Making large graphs small enough to read: folding look-alikes, and showing a neighbourhood."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

from agentbench.notebook.shape import TIMES, GraphShape, ShapeEdge, ShapeNode

__all__ = ["HOW_TO_OPEN", "MAX_SHOWN", "close_frames", "fit", "fold_siblings", "neighbourhood"]

MAX_SHOWN = 1000
"""Nodes that are drawn at most, after folding."""

HOW_TO_OPEN = "expand= opens one"
"""What notes say to those who draw; panels say something else in its place."""

MAX_BYTES = 400_000
RADIUS = 2

_Neighbours = tuple[object, ...]


def fit(shape: GraphShape, *, max_nodes: int, expand: Collection[str] = (), focus: Collection[str] = ()) -> GraphShape:
    """Return a shape that can be drawn: as it is, folded, or a part of it. What is left out is said in its `note`.

    Args:
        shape: The graph.
        max_nodes: Above this number of nodes, look-alikes are folded; likewise above 400 KB, which dense graphs reach
            earlier. Asking for more than 300 nodes raises that, too.
        expand: Ids of groups, or of any member, that stay open.
        focus: Executor ids that a partial picture is drawn around; the start nodes if empty.
    """
    if len(shape.nodes) <= max_nodes and _svg_bytes(shape) <= MAX_BYTES * max(1.0, max_nodes / 300):
        return shape
    folded = fold_siblings(shape, expand=expand)
    if len(folded.nodes) > max_nodes and folded.frames:
        folded = fold_siblings(close_frames(shape, max_nodes=max_nodes, expand=expand), expand=expand)
    return folded if len(folded.nodes) <= MAX_SHOWN else neighbourhood(folded, focus)


def fold_siblings(shape: GraphShape, *, expand: Collection[str] = ()) -> GraphShape:
    """Fold nodes that have the same kinds and the same neighbours into one node, `name` times their number.

    Args:
        shape: The graph.
        expand: Ids of groups, or of any member, that stay open.
    """
    before, after = _neighbours(shape)
    alike: dict[_Neighbours, list[ShapeNode]] = {}
    for node in shape.nodes:
        sources, targets = before.get(node.id, frozenset()), after.get(node.id, frozenset())
        if sources and not node.members:
            alike.setdefault((node.frame, node.kinds, sources, targets), []).append(node)
    open_ids = set(expand)
    groups = [_group(nodes) for nodes in alike.values() if len(nodes) > 1]
    groups = [group for group in groups if open_ids.isdisjoint((group.id, *group.members))]
    if not groups:
        return shape
    holder = {member: group for group in groups for member in group.members}
    nodes = dict.fromkeys(holder.get(node.id, node) for node in shape.nodes)
    note = f"{len(holder):,} look-alike nodes are folded into {len(groups):,}; {HOW_TO_OPEN}."
    return replace(shape, nodes=tuple(nodes), edges=_redirected(shape.edges, holder), note=_joined(shape.note, note))


def close_frames(shape: GraphShape, *, max_nodes: int, expand: Collection[str] = ()) -> GraphShape:
    """Close opened sub-workflows, the innermost and largest first, until few enough nodes are left.

    Args:
        shape: The graph.
        max_nodes: How many nodes are few enough.
        expand: Ids of sub-workflows that stay open.
    """
    closed: list[str] = []
    while len(shape.nodes) > max_nodes:
        size = Counter(node.frame for node in shape.nodes)
        outer = {frame.frame for frame in shape.frames}
        inner = [frame for frame in shape.frames if frame.id not in outer and not _opens(expand, frame.id)]
        if not inner:
            break
        frame = max(inner, key=lambda each: size[each.id])
        closed.append(frame.id)
        shape = _without(shape, frame)
    if not closed:
        return shape
    several = "sub-workflow stays" if len(closed) == 1 else "sub-workflows stay"
    return replace(shape, note=_joined(shape.note, f"{len(closed):,} {several} closed; {HOW_TO_OPEN}."))


def _opens(expand: Collection[str], frame_id: str) -> bool:
    """Whether a sub-workflow is to be open: it, or one inside it."""
    return any(each == frame_id or each.startswith(f"{frame_id}/") for each in expand)


def _without(shape: GraphShape, frame: ShapeNode) -> GraphShape:
    """The graph with one innermost frame as a node, in the place of the first of its nodes."""
    inside = {node.id for node in shape.nodes if node.frame == frame.id}
    nodes = dict.fromkeys(frame if node.id in inside else node for node in shape.nodes)
    return replace(
        shape,
        nodes=tuple(nodes),
        edges=tuple(edge for edge in shape.edges if edge.source not in inside),
        frames=tuple(each for each in shape.frames if each.id != frame.id),
    )


def neighbourhood(shape: GraphShape, focus: Collection[str] = (), *, limit: int = 300) -> GraphShape:
    """Keep what lies within two edges of the focus, in both directions.

    Args:
        shape: The graph.
        focus: Executor ids; the start nodes, else the first node, if empty or unknown.
        limit: Most nodes that are kept, nearest first.
    """
    ends = {frame.id: frame.id for frame in shape.frames} | shape.holder_of
    around: dict[str, list[str]] = {}
    for edge in shape.edges:
        around.setdefault(edge.source, []).append(edge.target)
        around.setdefault(edge.target, []).append(edge.source)
    centre = list(dict.fromkeys(ends[each] for each in focus if each in ends)) or _starts(shape)
    kept = dict.fromkeys(centre)
    ring: Iterable[str] = centre
    for _ in range(RADIUS):
        ring = list(dict.fromkeys(near for each in ring for near in around.get(each, ()) if near not in kept))
        kept.update(dict.fromkeys(ring))
    shown = set(list(kept)[:limit])
    inside = {frame.id for frame in shape.frames if frame.id in shown}
    nodes = tuple(node for node in shape.nodes if node.id in shown or node.frame in inside)
    ids = {node.id for node in nodes} | inside
    hidden = tuple(executor for node in shape.nodes if node.id not in ids for executor in node.members or (node.id,))
    named = ", ".join(shape.name_of[each] for each in centre[:3]) + (", …" if len(centre) > 3 else "")
    note = (
        f"{len(hidden):,} executors are hidden: only what is within {RADIUS} edges of {named} is drawn. "
        "The list of all is in .table."
    )
    return replace(
        shape,
        nodes=nodes,
        edges=tuple(edge for edge in shape.edges if edge.source in ids and edge.target in ids),
        frames=tuple(frame for frame in shape.frames if any(node.frame == frame.id for node in nodes)),
        hidden=hidden,
        note=_joined(shape.note, note),
    )


def _svg_bytes(shape: GraphShape) -> int:
    """Estimate the size of the picture; nothing is rendered for a decision about what to render."""
    labels = sum(150 + 2 * len(edge.label) for edge in shape.edges if edge.label)
    return 350 * len(shape.nodes) + 340 * len(shape.edges) + labels


def _neighbours(shape: GraphShape) -> tuple[dict[str, frozenset[str]], dict[str, frozenset[str]]]:
    before: dict[str, set[str]] = {}
    after: dict[str, set[str]] = {}
    for edge in shape.edges:
        after.setdefault(edge.source, set()).add(edge.target)
        before.setdefault(edge.target, set()).add(edge.source)
    return _frozen(before), _frozen(after)


def _frozen(table: dict[str, set[str]]) -> dict[str, frozenset[str]]:
    return {node: frozenset(others) for node, others in table.items()}


def _group(nodes: list[ShapeNode]) -> ShapeNode:
    first = nodes[0]
    stem = first.name
    while not all(node.name.startswith(stem) for node in nodes):
        stem = stem[:-1]
    stem = stem.rstrip("0123456789_-. :/#")
    return ShapeNode(
        id=f"{first.id} {TIMES} {len(nodes)}",
        name=f"{stem or first.name} {TIMES} {len(nodes)}",
        kinds=(*first.kinds, "group"),
        type_name=first.type_name if len({node.type_name for node in nodes}) == 1 else "",
        members=tuple(node.id for node in nodes),
        frame=first.frame,
    )


def _redirected(edges: Iterable[ShapeEdge], holder: dict[str, ShapeNode]) -> tuple[ShapeEdge, ...]:
    """Edges between groups: one for each pair; its label stays if all agree on it."""
    merged: dict[tuple[str, str], ShapeEdge] = {}
    for edge in edges:
        source = holder[edge.source].id if edge.source in holder else edge.source
        target = holder[edge.target].id if edge.target in holder else edge.target
        seen = merged.get((source, target))
        label = edge.label if seen is None or seen.label == edge.label else ""
        merged[source, target] = replace(edge, source=source, target=target, label=label)
    return tuple(merged.values())


def _starts(shape: GraphShape) -> list[str]:
    return [node.id for node in shape.nodes if "start" in node.kinds] or [node.id for node in shape.nodes[:1]]


def _joined(first: str, second: str) -> str:
    return f"{first} {second}" if first else second
