"""Positions of nodes and edges: what every layout returns, and the built-in layered layout in plain Python.

Ranks follow the longest path, without loops; two barycentre sweeps order the nodes of each rank. Edges are straight or
bend in the gaps between ranks, so that none crosses a node; loops run below everything between their ends.
Coordinates are points. Ranks grow along x here, and the result is rotated to the requested direction.
"""

import functools
import itertools
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any, Literal, NamedTuple

from agentbench._text.escape import LABEL_LIMIT, esc
from agentbench.notebook.look.svg import room_for, text_width
from agentbench.workflows.draw.shape import GraphShape, ShapeEdge, ShapeNode, back_edges, path_lengths

Direction = Literal["LR", "RL", "TB", "BT"]
Detail = Literal["full", "short"]
Point = tuple[float, float]
Pair = tuple[str, str]
Size = tuple[float, float]

DIRECTIONS: tuple[Direction, ...] = ("LR", "RL", "TB", "BT")
UPRIGHT: tuple[Direction, ...] = ("TB", "BT")
"""Directions in which ranks are stacked vertically."""

NAME_SIZE, TEXT_SIZE = 13.0, 12.0
BORDER, RIM, NOTE_HEIGHT = 8.0, 6.0, 16.0
"""The additional size of a double border, the height of a cylinder's lid, and of the line below a name."""
PAUSE_SIGN = "‖"  # more fonts have it than the pause sign
# Signs before the name, in this order; the painter draws the first one as a shape.
_MARKS = {"hitl": PAUSE_SIGN, "start": "▷", "subworkflow": "▣"}
_SHORT_LIMIT = 18

_RANK_GAP, _NODE_GAP, _LOOP_GAP = 44.0, 22.0, 18.0
_BESIDE, _ARROW = 10.0, 10.0
_BEFORE, _BEHIND, _BETWEEN = range(3)
# Space around the nodes of a frame, and for its name above them.
_FRAME_MARGIN, _TITLE_HEIGHT = 14.0, 14.0


class Box(NamedTuple):
    """A node or a frame: centre and size."""

    x: float
    y: float
    width: float
    height: float

    @property
    def sides(self) -> tuple[float, float, float, float]:
        """Left, top, right and bottom."""
        across, along = self.width / 2, self.height / 2
        return self.x - across, self.y - along, self.x + across, self.y + along

    @classmethod
    def around(cls, boxes: Iterable["Box"]) -> "Box":
        """Return the smallest box around others."""
        lefts, tops, rights, bottoms = zip(*(box.sides for box in boxes), strict=True)
        left, top, right, bottom = min(lefts), min(tops), max(rights), max(bottoms)
        return cls((left + right) / 2, (top + bottom) / 2, right - left, bottom - top)


class Wire(NamedTuple):
    """An edge: its points, the last one the tip of the arrow, and the middle of its text.

    `curved`: the points before the tip are those of a Bézier spline, not corners.
    """

    points: list[Point]
    text: Point
    curved: bool = False


class Layout(NamedTuple):
    """The positions of nodes and frames by id, and of edges by (source, target)."""

    boxes: dict[str, Box]
    wires: dict[Pair, Wire]


def node_label(node: ShapeNode, detail: Detail) -> str:
    """Return the signs of a node's kinds and its name, shortened; not escaped for markup."""
    marks = "".join(mark for kind, mark in _MARKS.items() if kind in node.kinds)
    return esc(f"{marks} {node.name}".lstrip(), into="line", limit=LABEL_LIMIT if detail == "full" else _SHORT_LIMIT)


def edge_label(edge: ShapeEdge, detail: Detail) -> str:
    """Return the label of an edge, shortened; not escaped for markup."""
    return esc(edge.label, into="line", limit=LABEL_LIMIT) if detail == "full" else ""


def node_size(node: ShapeNode, label: str) -> Size:
    """Return the width and height of a node with a label."""
    width, height = max(text_width(label, NAME_SIZE) + 26, room_for(label, NAME_SIZE) + 14), 32.0
    if "hitl" in node.kinds:
        width = room_for(label, NAME_SIZE) + 40
    elif "subworkflow" in node.kinds:
        height += 2 * RIM
    elif "start" in node.kinds:
        width += 14
    if node.note:
        narrow = 1.25 if "start" in node.kinds else 1.0  # an ellipse is narrow where its second line is
        width, height = max(width, narrow * (room_for(node.note, TEXT_SIZE) + 14)), height + NOTE_HEIGHT
    border = BORDER if "output" in node.kinds else 0
    return max(width, 54.0) + border, height + border


@dataclass(eq=False)
class _Cell:
    """A node, or the point where a long edge crosses a rank; `wide` and `above` reserve space for texts and loops."""

    rank: int
    along: float = 0.0
    across: float = 10.0
    wide: float = 10.0
    frame: int = -1
    above: float = 0.0
    place: float = 0.0
    x: float = 0.0
    y: float = 0.0
    before: "list[_Cell]" = field(default_factory=list)
    after: "list[_Cell]" = field(default_factory=list)


@functools.lru_cache(maxsize=16)  # many cells draw the same graph
def place(shape: GraphShape, direction: Direction = "LR", detail: Detail = "full") -> Layout:
    """Return the positions of a graph by the built-in layout."""
    sizes = {node.id: node_size(node, node_label(node, detail)) for node in shape.nodes}
    labels = {(edge.source, edge.target): edge_label(edge, detail) for edge in shape.edges}
    texts = {pair: (text_width(label, TEXT_SIZE) + 10, 16.0) for pair, label in labels.items() if label}
    grid = _Grid(shape, sizes, texts, upright=direction in UPRIGHT)
    boxes = {name: Box(*_turn((cell.x, cell.y), direction), *sizes[name]) for name, cell in grid.cells.items()}
    frames = _frames(shape, boxes)
    wires: dict[Pair, Wire] = {}
    for pair in grid.ends:
        points, text = grid.wire(pair)
        line = [_turn(each, direction) for each in points]
        line = _outside(_outside(line, frames.get(pair[1]))[::-1], frames.get(pair[0]))[::-1]
        wires[pair] = Wire(line, _turn(text, direction))
    return Layout(boxes | frames, wires)


def _frames(shape: GraphShape, boxes: Mapping[str, Box]) -> dict[str, Box]:
    """Return the frame of each opened sub-workflow, around its nodes and inner frames."""
    inside: dict[str | None, list[Box]] = {}
    for node in shape.nodes:
        inside.setdefault(node.frame, []).append(boxes[node.id])
    frames: dict[str, Box] = {}
    for frame in reversed(shape.frames):  # from inner to outer frames
        if frame.id in inside:
            x, y, width, height = Box.around(inside[frame.id])
            height += 2 * _FRAME_MARGIN + _TITLE_HEIGHT
            frames[frame.id] = Box(x, y - _TITLE_HEIGHT / 2, width + 2 * _FRAME_MARGIN, height)
            inside.setdefault(frame.frame, []).append(frames[frame.id])
    return frames


def _outside(points: list[Point], frame: Box | None) -> list[Point]:
    """Return a line without its last part inside a frame."""
    if frame is None:
        return points
    left, top, right, bottom = frame.sides
    inside = [left < x < right and top < y < bottom for x, y in points]
    points = points[: max(2, len(points) - inside[::-1].index(False) + 1)] if False in inside else points
    (x1, y1), (x2, y2) = points[-2:]
    for _ in range(12):  # bisect towards the border
        x, y = (x1 + x2) / 2, (y1 + y2) / 2
        if left < x < right and top < y < bottom:
            x2, y2 = x, y
        else:
            x1, y1 = x, y
    return [*points[:-1], (x2, y2)]


class _Grid:
    """The cells of a graph in ranks, from left to right."""

    def __init__(
        self, shape: GraphShape, sizes: Mapping[str, Size], texts: Mapping[Pair, Size], *, upright: bool
    ) -> None:
        self.lift = 0.0 if upright else 10.0  # texts are above horizontal lines and across the others
        tie = shape.anchor
        self.ends: dict[Pair, Pair] = {
            (edge.source, edge.target): (tie(edge.source, leaving=True), tie(edge.target)) for edge in shape.edges
        }
        self.texts = {pair: texts.get(pair, (0.0, 0.0))[:: -1 if upright else 1] for pair in self.ends}
        marked = {self.ends[edge.source, edge.target] for edge in shape.edges if edge.kind == "loop"}
        onward = [ends for ends in self.ends.values() if ends[0] != ends[1] and ends not in marked]
        entered = {target for _, target in onward}
        back = back_edges(sizes, onward, first=[name for name in sizes if name not in entered])
        forward = dict.fromkeys(ends for ends in onward if ends not in back)
        ranks = path_lengths(sizes, list(forward))
        number = {frame.id: index for index, frame in enumerate(shape.frames)}
        self.rows: list[list[_Cell]] = [[] for _ in range(1 + max(ranks.values(), default=-1))]
        self.cells: dict[str, _Cell] = {}
        for node in shape.nodes:
            along, across = sizes[node.id][::-1] if upright else sizes[node.id]
            cell = _Cell(ranks[node.id], along, across, across, number.get(node.frame or "", -1))
            self.cells[node.id] = cell
            self.rows[cell.rank].append(cell)
        self.chains = {ends: self._chain(*ends) for ends in forward}
        self.sides: dict[Pair, int] = {}
        self.rooms = [[0.0, 0.0, 0.0] for _ in self.rows]
        self.lanes: dict[Pair, float] = {}
        self._reserve_room()
        self._order()
        self._set_positions()
        gap = max(_RANK_GAP, min(144.0, 4.0 * shape.largest_fan)) + (_TITLE_HEIGHT if upright and number else 0.0)
        self.bends: list[Point] = []  # before and after each rank; texts are between these points and the nodes
        x = 0.0
        for row, (before, behind, between) in zip(self.rows, self.rooms, strict=True):
            along = max(cell.along for cell in row)
            for cell in row:
                cell.x = x + before + along / 2
            self.bends.append((x, x + before + along + behind))
            x = self.bends[-1][1] + between + gap
        self._set_lanes(_LOOP_GAP + (_FRAME_MARGIN if number else 0.0))

    def _chain(self, source: str, target: str) -> list[_Cell]:
        """Link the cells of an edge, one in each rank."""
        first, last = self.cells[source], self.cells[target]
        chain = [first, *map(_Cell, range(first.rank + 1, last.rank)), last]
        for left, right in itertools.pairwise(chain):
            left.after.append(right)
            right.before.append(left)
            self.rows[left.rank].extend([left] if left is not first else [])
        return chain

    def _reserve_room(self) -> None:
        """Reserve space for texts where their edge is alone: before its target, after its source, or between."""
        leaving, entering = (Counter(ends) for ends in zip(*self.chains, strict=True)) if self.chains else ({}, {})
        for pair, (source, target) in self.ends.items():
            if source == target:
                self.cells[source].above = _LOOP_GAP + self.texts[pair][1]
            elif self.texts[pair][0] and (source, target) in self.chains:
                side = _BEFORE if entering[target] == 1 else _BEHIND if leaving[source] == 1 else _BETWEEN
                chain, (along, across) = self.chains[source, target], self.texts[pair]
                cell = chain[(-1, 0, len(chain) // 2)[side]]
                self.sides[pair] = side
                cell.wide = max(cell.wide, across + 6)
                room = self.rooms[cell.rank - (side == _BETWEEN)]
                room[side] = max(room[side], along + _ARROW)

    def _order(self) -> None:
        """Order each rank by the mean position of the neighbours, in two sweeps; members of a frame stay together."""
        for row in self.rows:
            _sort(row, {cell: cell.frame for cell in row})
        for forwards in (True, False):
            for row in self.rows if forwards else reversed(self.rows):
                means = _means(row, "place", forwards=forwards)
                frames = {cell.frame for cell in row} - {-1}
                together = {frame: fmean(means[cell] for cell in row if cell.frame == frame) for frame in frames}
                _sort(row, {cell: (together.get(cell.frame, means[cell]), cell.frame, means[cell]) for cell in row})

    def _set_positions(self) -> None:
        """Set the position of every cell across the ranks: near its neighbours, without overlaps in its row."""
        for row in self.rows:
            _spread(row, dict.fromkeys(row, 0.0))
        for forwards in (True, False, True):
            for row in self.rows if forwards else reversed(self.rows):
                _spread(row, _means(row, "y", forwards=forwards))
        level = {cell: cell.y for row in self.rows for cell in row}
        for chain in self.chains.values():
            if vias := chain[1:-1]:
                level.update(dict.fromkeys(vias, fmean(via.y for via in vias)))
        for row in self.rows:
            _spread(row, level)

    def _set_lanes(self, gap: float) -> None:
        """Place each loop below everything between its ends, short loops closer than long ones."""
        spans = {
            pair: sorted(self.cells[name].rank for name in ends)
            for pair, ends in self.ends.items()
            if ends[0] != ends[1] and ends not in self.chains
        }
        for pair, (low, high) in sorted(spans.items(), key=lambda item: item[1][1] - item[1][0]):
            lane = max(cell.y + cell.wide / 2 for row in self.rows[low : high + 1] for cell in row) + gap
            nearer = [other for other in self.lanes if spans[other][0] <= high and spans[other][1] >= low]
            self.lanes[pair] = max([lane, *(self.lanes[other] + self.texts[other][1] + 14 for other in nearer)])

    def wire(self, pair: Pair) -> tuple[list[Point], Point]:
        """Return the points of an edge and the middle of its text, before rotation."""
        source, target = self.ends[pair]
        if source == target:
            cell = self.cells[source]
            aside, top, high = min(cell.along / 4, 14), cell.y - cell.across / 2, cell.y - cell.across / 2 - _LOOP_GAP
            x1, x2 = cell.x - aside, cell.x + aside
            return [(x1, top + 4), (x1, high), (x2, high), (x2, top)], (cell.x, high - self.texts[pair][1] / 2 - 2)
        if pair in self.lanes:
            return self._loop(pair)
        chain = self.chains[source, target]
        points = [(chain[0].x + chain[0].along / 2, chain[0].y)]
        for left, right in itertools.pairwise(chain):
            points += [(self.bends[left.rank][1], left.y), (self.bends[right.rank][0], right.y)]
        points.append((chain[-1].x - chain[-1].along / 2, chain[-1].y))
        side = self.sides.get(pair, _BETWEEN)
        at = (len(points) - 2, 0, 1 if len(chain) == 2 else len(chain) // 2 * 2)[side]
        (x1, y1), (x2, y2) = points[at : at + 2]
        return points, ((x1 + x2 - _ARROW * (side == _BEFORE)) / 2, (y1 + y2) / 2 - self.lift * (y1 == y2))

    def _loop(self, pair: Pair) -> tuple[list[Point], Point]:
        """Return a loop: down from a node if nothing is below it, otherwise down the gap after it; then up."""
        (first, last), lane = (self.cells[name] for name in self.ends[pair]), self.lanes[pair]
        if self.rows[first.rank][-1] is first:  # starts below the node, because outlines may be curved
            x = first.x - min(first.along / 6, 12)
            points = [(x, first.y + first.across / 2 - 4), (x, lane)]
        else:
            x = self.bends[first.rank][1] + _BESIDE
            points = [(first.x + first.along / 2, first.y), (x, first.y), (x, lane)]
        # The text is left of the line down, next to which longer loops of the same node run.
        middle = min((first.x + last.x) / 2, x - self.texts[pair][0] / 2 - 4)
        if self.rows[last.rank][-1] is last:
            points += [(last.x, lane), (last.x, last.y + last.across / 2)]
        else:
            x = self.bends[last.rank][0] - _BESIDE
            points += [(x, lane), (x, last.y), (last.x - last.along / 2, last.y)]
        return points, (middle, lane + self.texts[pair][1] / 2 + 4)


def _sort(row: list[_Cell], key: Mapping[_Cell, Any]) -> None:
    row.sort(key=key.__getitem__)
    for index, cell in enumerate(row):
        cell.place = index


def _means(row: Sequence[_Cell], name: str, *, forwards: bool) -> dict[_Cell, float]:
    """Return the mean of an attribute over the neighbours of each cell in the previous or next rank."""
    near = {cell: (cell.before or cell.after) if forwards else (cell.after or cell.before) for cell in row}
    return {cell: fmean(getattr(each, name) for each in near[cell] or [cell]) for cell in row}


def _spread(row: Sequence[_Cell], wish: Mapping[_Cell, float]) -> None:
    """Place a row as close to its wishes as order and gaps allow: isotonic regression by pooling neighbours."""
    steps = ((a.wide + b.wide) / 2 + _NODE_GAP + b.above for a, b in itertools.pairwise(row))
    packed = list(itertools.accumulate(steps, initial=0.0))
    pools: list[tuple[float, int]] = []
    for cell, offset in zip(row, packed, strict=False):
        total, count = wish[cell] - offset, 1
        while pools and pools[-1][0] / pools[-1][1] > total / count:
            total, count = total + pools[-1][0], count + pools.pop()[1]
        pools.append((total, count))
    shifts = [total / count for total, count in pools for _ in range(count)]
    for cell, offset, shift in zip(row, packed, shifts, strict=False):
        cell.y = offset + shift


def _turn(point: Point, direction: str) -> Point:
    along, across = (-point[0] if direction in ("RL", "BT") else point[0]), point[1]
    return (across, along) if direction in UPRIGHT else (along, across)
