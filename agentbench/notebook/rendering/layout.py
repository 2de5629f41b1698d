"""The built-in layered layout: where the boxes and arrows of a DOT graph go, in plain Python.

Rank by longest path with loops reversed, two barycentre sweeps, edges straight or with one bend. Coordinates are
points; ranks grow along x here, and `place` turns the whole for other directions.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agentbench.notebook.rendering.dot_reader import DotGraph
from agentbench.notebook.shape import back_edges, path_lengths

__all__ = ["Box", "Layout", "Wire", "place"]

Point = tuple[float, float]

_RANK_GAP = 44.0
_UPRIGHT = ("TB", "BT", "TD")
_NODE_GAP = 22.0
_VIA_SIZE = 10.0
_LOOP_BOW = 34.0


class Box(NamedTuple):
    """A node: centre and size."""

    x: float
    y: float
    width: float
    height: float


class Wire(NamedTuple):
    """An edge: its ends lie on the boxes' borders; `bend` is the control point of a curve, or `None`."""

    start: Point
    end: Point
    bend: Point | None


class Layout(NamedTuple):
    """Positions of everything; `wires` and `clusters` in the order of the DOT graph, `None` for what has no place."""

    boxes: dict[str, Box]
    wires: list[Wire]
    clusters: list[tuple[float, float, float, float] | None]


@dataclass
class _Cell:
    """A node, or the place where a long edge crosses a rank."""

    rank: int
    along: float
    across: float
    cluster: int = -1
    y: float = 0.0
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def place(
    graph: DotGraph, sizes: Mapping[str, tuple[float, float]], direction: str, room: Mapping[tuple[str, str], float]
) -> Layout:
    """Lay a graph out.

    Args:
        graph: What to place.
        sizes: Width and height of every node, in points.
        direction: `LR`, `RL`, `TB` or `BT`.
        room: What edges need for their text along the direction, in points.
    """
    upright = direction in _UPRIGHT
    pairs = [(edge.source, edge.target) for edge in graph.edges if edge.source != edge.target]
    entered = {target for _, target in pairs}
    back = back_edges(graph.nodes, pairs, first=[name for name in graph.nodes if name not in entered])
    forward = list(dict.fromkeys((b, a) if (a, b) in back else (a, b) for a, b in pairs))
    ranks = path_lengths(graph.nodes, forward)
    cells = {
        name: _Cell(ranks[name], *(size[::-1] if upright else size), cluster=graph.cluster_of.get(name, -1))
        for name, size in sizes.items()
    }
    vias = _linked(cells, forward)
    rows = _ordered(cells)
    _settle(cells, rows)
    columns = _columns(cells, rows, room)
    centres = {name: (columns[cell.rank], cell.y) for name, cell in cells.items()}
    wires = [
        _loop(edge.source, edge.target, centres, cells)
        if edge.source == edge.target or (edge.source, edge.target) in back
        else _wire(edge.source, edge.target, centres, cells, vias.get((edge.source, edge.target)))
        for edge in graph.edges
    ]
    boxes = {name: Box(*_turned(centres[name], direction), *sizes[name]) for name in sizes}
    wires = [
        Wire(_turned(start, direction), _turned(end, direction), _turned(bend, direction) if bend else None)
        for start, end, bend in wires
    ]
    return Layout(boxes, wires, _cluster_boxes(graph, boxes))


def _linked(cells: dict[str, _Cell], edges: Iterable[tuple[str, str]]) -> dict[tuple[str, str], str]:
    """Link cells rank by rank. Returns the middle one of the places that a long edge passes."""
    vias: dict[tuple[str, str], str] = {}
    for source, target in edges:
        first, last = cells[source].rank, cells[target].rank
        chain = [source]
        for rank in range(first + 1, last):
            via = f"\0{source}\0{target}\0{rank}"  # no node is named so: DOT names hold no NUL
            cells[via] = _Cell(rank, 0.0, _VIA_SIZE)
            chain.append(via)
        if len(chain) > 1:
            vias[source, target] = vias[target, source] = chain[len(chain) // 2]
        chain.append(target)
        for left, right in itertools.pairwise(chain):
            cells[left].after.append(right)
            cells[right].before.append(left)
    return vias


def _ordered(cells: Mapping[str, _Cell]) -> list[list[str]]:
    rows: list[list[str]] = [[] for _ in range(1 + max((cell.rank for cell in cells.values()), default=-1))]
    for name, cell in cells.items():
        rows[cell.rank].append(name)
    for row in rows:
        row.sort(key=lambda name: cells[name].cluster)
    for forwards in (True, False):
        place_of = {name: index for row in rows for index, name in enumerate(row)}
        for row in rows if forwards else reversed(rows):
            _sort_row(row, cells, place_of, forwards=forwards)
    return rows


def _sort_row(row: list[str], cells: Mapping[str, _Cell], place_of: dict[str, int], *, forwards: bool) -> None:
    """One step of a sweep: order by the mean place of the neighbours, members of one cluster side by side."""
    means: dict[str, float] = {}
    for name in row:
        near = cells[name].before if forwards else cells[name].after
        means[name] = sum(place_of[each] for each in near) / len(near) if near else place_of[name]
    members: dict[object, list[float]] = {}
    for name in row:
        members.setdefault(_cluster(name, cells), []).append(means[name])
    together = {cluster: sum(found) / len(found) for cluster, found in members.items()}
    row.sort(key=lambda name: (together[_cluster(name, cells)], cells[name].cluster, means[name]))
    place_of.update((name, index) for index, name in enumerate(row))


def _cluster(name: str, cells: Mapping[str, _Cell]) -> object:
    """What a cell is kept beside: its cluster, or itself where it lies in none."""
    return name if cells[name].cluster < 0 else cells[name].cluster


def _settle(cells: Mapping[str, _Cell], rows: Sequence[Sequence[str]]) -> None:
    """Give every cell its place across the ranks: near its neighbours, never over the next one in its row."""
    for row in rows:
        _spread(row, cells, dict.fromkeys(row, 0.0))
    for order in (rows, rows[::-1], rows):
        for row in order:
            wish = {}
            for name in row:
                near = cells[name].before if order is rows else cells[name].after
                near = near or cells[name].after or cells[name].before
                wish[name] = sum(cells[each].y for each in near) / len(near) if near else cells[name].y
            _spread(row, cells, wish)


def _spread(row: Sequence[str], cells: Mapping[str, _Cell], wish: Mapping[str, float]) -> None:
    """Place a row as near to its wishes as the order and the gaps allow: isotonic regression by pooling neighbours."""
    steps = ((cells[a].across + cells[b].across) / 2 + _NODE_GAP for a, b in itertools.pairwise(row))
    packed = list(itertools.accumulate(steps, initial=0.0))
    pools: list[tuple[float, int]] = []
    for name, offset in zip(row, packed, strict=True):
        total, count = wish[name] - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            total, count = total + pools[-1][0], count + pools.pop()[1]
        pools.append((total, count))
    shifts = [total / count for total, count in pools for _ in range(count)]
    for name, offset, shift in zip(row, packed, shifts, strict=True):
        cells[name].y = offset + shift


def _columns(
    cells: Mapping[str, _Cell], rows: Sequence[Sequence[str]], room: Mapping[tuple[str, str], float]
) -> list[float]:
    """Centre of each rank; ranks stand further apart where edges carry text."""
    text = [0.0] * len(rows)
    for (source, target), needed in room.items():
        rank = min(cells[source].rank, cells[target].rank)
        text[rank] = max(text[rank], needed)
    columns: list[float] = []
    x = 0.0
    for row, needed in zip(rows, text, strict=True):
        width = max(cells[name].along for name in row)
        columns.append(x + width / 2)
        x += width + _RANK_GAP + needed
    return columns


def _wire(source: str, target: str, centres: Mapping[str, Point], cells: Mapping[str, _Cell], via: str | None) -> Wire:
    (x1, y1), (x2, y2) = centres[source], centres[target]
    right, left = x1 + cells[source].along / 2, x2 - cells[target].along / 2
    return Wire((right, y1), (left, y2), centres[via] if via else None)


def _loop(source: str, target: str, centres: Mapping[str, Point], cells: Mapping[str, _Cell]) -> Wire:
    """Loops return below everything between their ends, so that they are not taken for the way forward."""
    (x1, y1), (x2, y2) = centres[source], centres[target]
    low1, low2 = y1 + cells[source].across / 2, y2 + cells[target].across / 2
    if source == target:
        quarter = cells[source].along / 4
        return Wire((x1 + quarter, low1), (x1 - quarter, low1), (x1, low1 + 2 * _LOOP_BOW))
    return Wire((x1, low1), (x2, low2), ((x1 + x2) / 2, max(low1, low2) + _LOOP_BOW + abs(x1 - x2) / 6))


def _cluster_boxes(graph: DotGraph, boxes: Mapping[str, Box]) -> list[tuple[float, float, float, float] | None]:
    around: list[list[tuple[float, float, float, float]]] = [[] for _ in graph.clusters]
    for name, cluster in graph.cluster_of.items():
        box = boxes[name]
        left, top = box.x - box.width / 2, box.y - box.height / 2
        around[cluster].append((left, top, left + box.width, top + box.height))
    found: list[tuple[float, float, float, float] | None] = [None] * len(around)
    for index in reversed(range(len(around))):  # inner clusters come after outer ones
        if not around[index]:
            continue
        lefts, tops, rights, bottoms = zip(*around[index], strict=True)
        found[index] = frame = (min(lefts) - 14, min(tops) - 28, max(rights) + 14, max(bottoms) + 14)
        parent = graph.clusters[index].parent
        if parent is not None:
            around[parent].append(frame)
    return found


def _turned(point: Point, direction: str) -> Point:
    """Turn a place from left-to-right into the wanted direction."""
    along, across = (-point[0] if direction in ("RL", "BT") else point[0]), point[1]
    return (across, along) if direction in _UPRIGHT else (along, across)
