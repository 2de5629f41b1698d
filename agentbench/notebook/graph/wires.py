"""The edges of the built-in layout: straight or with one bend, spread over the sides of their boxes.

Ranks grow along x here; the layout turns the whole for other directions.
"""

import itertools
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import NamedTuple

from agentbench.notebook.graph.geometry import Frame, Pair, Point, Spot, border, turn

__all__ = ["Wire", "route"]

_PORT_STEP = 9.0
_PORT_SHARE = 0.6
_LOOP_BOW = 34.0
_LOOP_GAP = 14.0
_LOOP_STEP = 24.0


class Wire(NamedTuple):
    """An edge: its ends lie on the boxes' borders.

    Attributes:
        start: Where it begins.
        end: Where it ends.
        bend: Control point of a curve, or `None`.
        beside: On which side of a loop its text has most room: 1 where coordinates grow, -1 where they shrink, 0 for
            other edges.
    """

    start: Point
    end: Point
    bend: Point | None
    beside: int = 0

    def at(self, share: float) -> Point:
        """The place at some share of the way."""
        (x1, y1), (x2, y2) = self.start, self.end
        x3, y3 = self.bend or ((x1 + x2) / 2, (y1 + y2) / 2)
        first, second, third = (1 - share) ** 2, 2 * share * (1 - share), share**2
        return first * x1 + second * x3 + third * x2, first * y1 + second * y3 + third * y2

    def turn(self, direction: str) -> "Wire":
        """Return the wire in another direction."""
        bend = turn(self.bend, direction) if self.bend else None
        return Wire(turn(self.start, direction), turn(self.end, direction), bend, self.beside)

    def clip(self, tail: Frame | None, head: Frame | None) -> "Wire":
        """Return the wire, beginning or ending at the border of a frame around its end."""
        start, end, bend, beside = self
        if tail is not None:
            start = border(bend or end, start, tail)
        if head is not None:
            end = border(bend or start, end, head)
        return Wire(start, end, bend, beside)


def route(
    edges: Sequence[Pair],
    back: Collection[Pair],
    spots: Mapping[str, Spot],
    vias: Mapping[Pair, Point],
    inset: Callable[[str, float], float],
    steps: Mapping[Pair, float],
) -> list[Wire]:
    """Return a wire for each edge.

    Args:
        edges: Pairs of nodes, in order.
        back: Those that lead back, which go below everything between their ends.
        spots: Where the nodes are.
        vias: A place that a long edge passes.
        inset: How far the outline of a node lies behind its bounding box, at some distance from the middle of a side.
        steps: How far below a loop the next one must stay, for its text.
    """
    ahead = [i for i, pair in enumerate(edges) if pair[0] != pair[1] and pair not in back]
    leaving = _ports([(edges[i][0], _order_across(edges[i], 1, spots, vias), i) for i in ahead], spots, sideways=True)
    entering = _ports([(edges[i][1], _order_across(edges[i], 0, spots, vias), i) for i in ahead], spots, sideways=True)
    loops = [i for i, pair in enumerate(edges) if pair[0] != pair[1] and pair in back]
    below = _ports(
        [(edges[i][end], _loop_order(edges[i], end, spots), i if end else ~i) for i in loops for end in (0, 1)],
        spots,
        sideways=False,
    )
    lows = _lows([edges[i] for i in loops], spots, steps)
    wires: list[Wire] = []
    for index, (source, target) in enumerate(edges):
        first, last = spots[source], spots[target]
        if source == target:
            wires.append(_self_loop(first))
        elif (source, target) in back:
            start = (first.x + below[~index], first.y + first.across / 2)
            end = (last.x + below[index], last.y + last.across / 2)
            # A curve comes half as low as its control point.
            bend = ((first.x + last.x) / 2, 2 * lows[source, target] - (start[1] + end[1]) / 2)
            wires.append(Wire(start, end, bend, 1))
        else:
            out, into = leaving[index], entering[index]
            start = (first.x + first.along / 2 - inset(source, out), first.y + out)
            end = (last.x - last.along / 2 + inset(target, into), last.y + into)
            wires.append(Wire(start, end, vias.get((source, target))))
    return wires


def _order_across(pair: Pair, end: int, spots: Mapping[str, Spot], vias: Mapping[Pair, Point]) -> tuple[float, float]:
    """Sort key of the wires at one side of a node: where they come from or go to."""
    via = vias.get(pair)
    return (via[1] if via else spots[pair[end]].y), spots[pair[end]].y


def _loop_order(pair: Pair, end: int, spots: Mapping[str, Spot]) -> tuple[float, float]:
    """Sort key of the loops at the lower side of a node: short ones lie inside long ones."""
    own, other = spots[pair[end]].x, spots[pair[1 - end]].x
    return float(other > own), -other


def _ports(
    wanted: Sequence[tuple[str, tuple[float, float], int]], spots: Mapping[str, Spot], *, sideways: bool
) -> dict[int, float]:
    """Spread wires over a side of their node, in the order of their other ends. Returns distances from its middle."""
    found: dict[int, float] = {}
    for name, group in itertools.groupby(sorted(wanted), key=lambda each: each[0]):
        ends = list(group)
        room = (spots[name].across if sideways else spots[name].along) * _PORT_SHARE
        step = min(_PORT_STEP if sideways else 2 * _PORT_STEP, room / max(1, len(ends) - 1))
        for place, (_, _, index) in enumerate(ends):
            found[index] = (place - (len(ends) - 1) / 2) * step
    return found


def _lows(loops: Sequence[Pair], spots: Mapping[str, Spot], steps: Mapping[Pair, float]) -> dict[Pair, float]:
    """Lowest point of each loop: below everything between its ends, so that none is taken for the way forward."""
    lows: dict[Pair, float] = {}
    spans = {pair: sorted((spots[pair[0]].x, spots[pair[1]].x)) for pair in loops}
    for pair, (left, right) in sorted(spans.items(), key=lambda item: item[1][1] - item[1][0]):
        ends = [spots[name].y + spots[name].across / 2 for name in pair]
        low = [sum(ends) / 4 + max(ends) / 2 + _LOOP_BOW / 2 + (right - left) / 12]
        low += [spot.y + spot.across / 2 + _LOOP_GAP for spot in spots.values() if left < spot.x < right]
        low += [
            lows[other] + max(_LOOP_STEP, steps.get(other, 0.0))
            for other in lows
            if left < spans[other][1] and spans[other][0] < right
        ]
        lows[pair] = max(low)
    return lows


def _self_loop(spot: Spot) -> Wire:
    top, quarter = spot.y - spot.across / 2, min(spot.along / 4, 14.0)
    return Wire((spot.x - quarter, top), (spot.x + quarter, top), (spot.x, top - 1.6 * _LOOP_BOW), -1)
