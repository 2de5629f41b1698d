"""The built-in layered layout: where the boxes and arrows of a DOT graph go, in plain Python.

Rank by longest path without loops, two barycentre sweeps, edges straight or with one bend. Coordinates are points;
ranks grow along x here, and `place` turns the whole for other directions.
"""

import itertools
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from agentbench.notebook.graph.dot_reader import DotGraph
from agentbench.notebook.graph.geometry import (
    TITLE_HEIGHT,
    UPRIGHT,
    Box,
    Frame,
    Pair,
    Spot,
    frames_around,
    turn,
)
from agentbench.notebook.graph.shape import back_edges, path_lengths
from agentbench.notebook.graph.wires import Wire, route

__all__ = ["TEXT_AT", "Layout", "place"]

_RANK_GAP = 44.0
TEXT_AT = 0.62
"""Where on an edge its text is, as a share of the way, if ranks lie below each other: in a fan that has most room."""

_NODE_GAP = 22.0
_VIA_SIZE = 10.0
_LOOP_ROOM = 18.0


class Layout(NamedTuple):
    """Positions of everything; `wires` and `clusters` in the order of the DOT graph, `None` for what has no place."""

    boxes: dict[str, Box]
    wires: list[Wire]
    clusters: list[Frame | None]


@dataclass
class _Cell:
    """A node, or the place where a long edge crosses a rank."""

    rank: int
    along: float
    across: float
    cluster: int = -1
    above: float = 0.0
    slot: float = 0.0
    y: float = 0.0
    before: list[str] = field(default_factory=list)
    after: list[str] = field(default_factory=list)


def place(
    graph: DotGraph,
    sizes: Mapping[str, tuple[float, float]],
    direction: str,
    texts: Mapping[Pair, tuple[float, float]],
    inset: Callable[[str, float], float] = lambda _name, _offset: 0.0,
) -> Layout:
    """Lay a graph out.

    Args:
        graph: The graph to place.
        sizes: Width and height of every node, in points.
        direction: `LR`, `RL`, `TB` or `BT`.
        texts: Width and height of what is written on edges.
        inset: How far the outline of a node lies behind its bounding box, at some distance from the middle of the side
            that edges leave or enter.
    """
    upright = direction in UPRIGHT
    if upright:
        texts = {pair: (high, wide) for pair, (wide, high) in texts.items()}
    pairs = [(edge.source, edge.target) for edge in graph.edges]
    marked = {pair for pair, edge in zip(pairs, graph.edges, strict=True) if edge.back}
    onward = [pair for pair in pairs if pair[0] != pair[1] and pair not in marked]
    entered = {target for _, target in onward}
    back = marked | back_edges(graph.nodes, onward, first=[name for name in graph.nodes if name not in entered])
    forward = dict.fromkeys(pair for pair in onward if pair not in back)
    ranks = path_lengths(graph.nodes, list(forward))
    cells = {
        name: _Cell(ranks[name], *(size[::-1] if upright else size), cluster=graph.cluster_of.get(name, -1))
        for name, size in sizes.items()
    }
    _make_room(cells, pairs, forward, texts)
    vias = _link(cells, forward)
    rows = _order_rows(cells)
    _settle(cells, rows)
    along = {pair: size[0] for pair, size in texts.items() if pair in forward or _near(pair, ranks)}
    columns = _columns(cells, rows, along, _RANK_GAP + (TITLE_HEIGHT if upright and graph.clusters else 0.0))
    spots = {
        name: Spot(columns[cells[name].rank], cells[name].y, cells[name].along, cells[name].across) for name in sizes
    }
    passed = {pair: (columns[cells[via].rank], cells[via].y) for pair, via in vias.items()}
    steps = {pair: size[1] + 14.0 for pair, size in texts.items()}
    boxes = {name: Box(*turn((spots[name].x, spots[name].y), direction), *sizes[name]) for name in sizes}
    frames = frames_around(graph, boxes)
    frame_of = dict(zip((cluster.name for cluster in graph.clusters), frames, strict=True))
    wires = [
        wire.turn(direction).clip(frame_of.get(edge.tail), frame_of.get(edge.head))
        for edge, wire in zip(graph.edges, route(pairs, back, spots, passed, inset, steps), strict=True)
    ]
    return Layout(boxes, wires, frames)


def _make_room(
    cells: Mapping[str, _Cell],
    pairs: Iterable[Pair],
    forward: Collection[Pair],
    texts: Mapping[Pair, tuple[float, float]],
) -> None:
    """Keep nodes apart for the loops above them, and where the texts of several edges would stand side by side."""
    for source, target in pairs:
        _, across = texts.get((source, target), (0.0, 0.0))
        if source == target:
            cells[source].above = _LOOP_ROOM + across
        elif (source, target) in forward and across:
            cells[target].slot = max(cells[target].slot, (across + 6) / TEXT_AT - _NODE_GAP)


def _near(pair: Pair, ranks: Mapping[str, int]) -> bool:
    """Whether a loop joins neighbouring ranks, so that its text needs room between them."""
    return abs(ranks[pair[0]] - ranks[pair[1]]) == 1


def _link(cells: dict[str, _Cell], edges: Iterable[Pair]) -> dict[Pair, str]:
    """Link cells rank by rank. Returns the middle one of the places that a long edge passes."""
    vias: dict[Pair, str] = {}
    for source, target in edges:
        first, last = cells[source].rank, cells[target].rank
        chain = [source]
        for rank in range(first + 1, last):
            via = f"\0{source}\0{target}\0{rank}"  # no node is named so: DOT names hold no NUL
            cells[via] = _Cell(rank, 0.0, _VIA_SIZE)
            chain.append(via)
        if len(chain) > 1:
            vias[source, target] = chain[len(chain) // 2]
        chain.append(target)
        for left, right in itertools.pairwise(chain):
            cells[left].after.append(right)
            cells[right].before.append(left)
    return vias


def _order_rows(cells: Mapping[str, _Cell]) -> list[list[str]]:
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
    """The group that a cell stays in: its cluster, or itself where it lies in none."""
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
    wide = {name: max(cells[name].across, cells[name].slot) for name in row}
    steps = ((wide[a] + wide[b]) / 2 + _NODE_GAP + cells[b].above for a, b in itertools.pairwise(row))
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
    cells: Mapping[str, _Cell], rows: Sequence[Sequence[str]], room: Mapping[Pair, float], gap: float
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
        x += width + gap + needed
    return columns
