"""Reduces large graphs to a readable size: similar nodes are folded, or only a neighbourhood is drawn."""

from collections import Counter
from collections.abc import Collection, Iterable
from dataclasses import replace

from agentbench.workflows.draw.shape import TIMES, GraphShape, ShapeEdge, ShapeNode

MAX_NODES = 1000
"""Maximum number of nodes in a picture, after folding."""

HOW_TO_OPEN = "To open one, pass its id: expand=[...]."
"""How to unfold a group by code; panels replace this text in notes."""

MAX_BYTES = 400_000
RADIUS = 2


def fit(shape: GraphShape, *, max_nodes: int, expand: Collection[str] = (), focus: Collection[str] = ()) -> GraphShape:
    """Return a drawable shape: unchanged, folded, or a part of it. Its `note` describes the omitted parts.

    Above `max_nodes`, or above 400 KB (which dense graphs reach earlier), similar nodes are folded; a `max_nodes` above
    300 also raises the limit of 400 KB. Groups in `expand` stay open, by their id or that of any member. The
    executors in `focus` are in the centre of a partial picture; by default the start nodes.
    """
    if len(shape.nodes) <= max_nodes and _svg_bytes(shape) <= MAX_BYTES * max(1.0, max_nodes / 300):
        return shape
    folded = fold_siblings(shape, expand=expand)
    if len(folded.nodes) > max_nodes and folded.frames:
        folded = fold_siblings(close_frames(shape, max_nodes=max_nodes, expand=expand), expand=expand)
    return folded if len(folded.nodes) <= MAX_NODES else neighbourhood(folded, focus)


def fold_siblings(shape: GraphShape, *, expand: Collection[str] = ()) -> GraphShape:
    """Fold nodes with the same kinds and neighbours into one node, `name` times their number.

    Groups stay open if `expand` contains their id or that of a member.
    """
    before: dict[str, set[str]] = {node.id: set() for node in shape.node_of.values()}
    after: dict[str, set[str]] = {node.id: set() for node in shape.node_of.values()}
    for edge in shape.edges:
        after[edge.source].add(edge.target)
        before[edge.target].add(edge.source)
    alike: dict[object, list[ShapeNode]] = {}
    for node in (node for node in shape.nodes if before[node.id] and not node.members):
        key = (node.frame, node.kinds, frozenset(before[node.id]), frozenset(after[node.id]))
        alike.setdefault(key, []).append(node)
    groups = [_group(nodes) for nodes in alike.values() if len(nodes) > 1]
    groups = [group for group in groups if not {group.id, *group.members}.intersection(expand)]
    if not groups:
        return shape
    holder = {member: group for group in groups for member in group.members}
    nodes = dict.fromkeys(holder.get(node.id, node) for node in shape.nodes)
    note = f"{shape.note} {len(holder):,} similar nodes are folded into {len(groups):,}. {HOW_TO_OPEN}".lstrip()
    return replace(shape, nodes=tuple(nodes), edges=_merge_edges(shape.edges, holder), note=note)


def close_frames(shape: GraphShape, *, max_nodes: int, expand: Collection[str] = ()) -> GraphShape:
    """Close opened sub-workflows, the innermost and largest first, until at most `max_nodes` remain.

    Those in `expand` and all that contain them stay open.
    """
    opened = {each[:end] for each in expand for end, char in enumerate(f"{each}/") if char == "/"}
    n_closed = 0
    while len(shape.nodes) > max_nodes:
        size = Counter(node.frame for node in shape.nodes)
        outer = opened.union(frame.frame for frame in shape.frames if frame.frame)
        inner = [frame for frame in shape.frames if frame.id not in outer]
        if not inner:
            break
        frame = max(inner, key=lambda each: size[each.id])
        inside = {node.id for node in shape.nodes if node.frame == frame.id}
        shape = replace(
            shape,
            nodes=tuple(dict.fromkeys(frame if node.id in inside else node for node in shape.nodes)),
            edges=tuple(edge for edge in shape.edges if edge.source not in inside),
            frames=tuple(each for each in shape.frames if each.id != frame.id),
        )
        n_closed += 1
    closed = "1 sub-workflow is closed." if n_closed == 1 else f"{n_closed:,} sub-workflows are closed."
    return replace(shape, note=f"{shape.note} {closed} {HOW_TO_OPEN}".lstrip()) if n_closed else shape


def neighbourhood(shape: GraphShape, focus: Collection[str] = (), *, limit: int = 300) -> GraphShape:
    """Return the part of a graph within two edges of the focus, in both directions: at most the nearest `limit` nodes.

    `focus` are executor ids; if none is known, the start nodes are used, otherwise the first node.
    """
    ends = shape.holder_of
    around: dict[str, list[str]] = {}
    for edge in shape.edges:
        around.setdefault(edge.source, []).append(edge.target)
        around.setdefault(edge.target, []).append(edge.source)
    starts = [node.id for node in shape.nodes if "start" in node.kinds] or [node.id for node in shape.nodes[:1]]
    centre = list(dict.fromkeys(ends[each] for each in focus if each in ends)) or starts
    near = dict.fromkeys(centre)
    ring: Iterable[str] = centre
    for _ in range(RADIUS):
        ring = list(dict.fromkeys(other for each in ring for other in around.get(each, ()) if other not in near))
        near.update(dict.fromkeys(ring))
    drawn = set(list(near)[:limit])
    inside = {frame.id for frame in shape.frames if frame.id in drawn}
    nodes = tuple(node for node in shape.nodes if node.id in drawn or node.frame in inside)
    ids = {node.id for node in nodes} | inside
    hidden = tuple(executor for node in shape.nodes if node.id not in ids for executor in node.members or (node.id,))
    named = ", ".join(shape.name_of[each] for each in centre[:3]) + (", …" if len(centre) > 3 else "")
    note = f"{len(hidden):,} executors are hidden: the picture shows only those within {RADIUS} edges of {named}."
    return replace(
        shape,
        nodes=nodes,
        edges=tuple(edge for edge in shape.edges if edge.source in ids and edge.target in ids),
        frames=tuple(frame for frame in shape.frames if any(node.id.startswith(f"{frame.id}/") for node in nodes)),
        hidden=hidden,
        note=f"{shape.note} {note} All are listed in .table.".lstrip(),
    )


def _svg_bytes(shape: GraphShape) -> int:
    """Estimate the size of the picture; without rendering."""
    labels = sum(150 + 2 * len(edge.label) for edge in shape.edges if edge.label)
    return 350 * len(shape.nodes) + 340 * len(shape.edges) + labels


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


def _merge_edges(edges: Iterable[ShapeEdge], holder: dict[str, ShapeNode]) -> tuple[ShapeEdge, ...]:
    """Return one edge for each pair of groups, with a label if all its edges have the same one."""
    merged: dict[tuple[str, str], ShapeEdge] = {}
    for edge in edges:
        source, target = (holder[end].id if end in holder else end for end in (edge.source, edge.target))
        other = merged.get((source, target))
        label = edge.label if other is None or other.label == edge.label else ""
        merged[source, target] = replace(edge, source=source, target=target, label=label)
    return tuple(merged.values())
