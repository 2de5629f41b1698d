"""Places and sizes of the built-in layout.

Ranks grow along x while a graph is laid out; `turn` brings its points into the wanted direction.
"""

from collections.abc import Mapping
from typing import NamedTuple

from agentbench.notebook.graph.dot_reader import DotGraph

__all__ = ["TITLE_HEIGHT", "UPRIGHT", "Box", "Frame", "Pair", "Point", "Spot", "border", "frames_around", "turn"]

Point = tuple[float, float]
Pair = tuple[str, str]
Frame = tuple[float, float, float, float]

UPRIGHT = ("TB", "BT", "TD")
"""Directions in which ranks lie below each other."""

TITLE_HEIGHT = 14.0
_FRAME_MARGIN = 14.0


class Box(NamedTuple):
    """A node: centre and size."""

    x: float
    y: float
    width: float
    height: float


class Spot(NamedTuple):
    """A node: its centre, and its size along and across the ranks."""

    x: float
    y: float
    along: float
    across: float


def turn(point: Point, direction: str) -> Point:
    """Turn a place from left-to-right into the wanted direction."""
    along, across = (-point[0] if direction in ("RL", "BT") else point[0]), point[1]
    return (across, along) if direction in UPRIGHT else (along, across)


def border(outside: Point, inside: Point, frame: Frame) -> Point:
    """Where a straight line from outside enters a frame; `inside` itself if it does not come from outside."""
    (x1, y1), (x2, y2) = outside, inside
    left, top, right, bottom = frame
    if left < x1 < right and top < y1 < bottom:
        return inside
    enters = 0.0
    for begin, finish, low, high in ((x1, x2, left, right), (y1, y2, top, bottom)):
        if begin < low < finish:
            enters = max(enters, (low - begin) / (finish - begin))
        elif begin > high > finish:
            enters = max(enters, (high - begin) / (finish - begin))
    return x1 + (x2 - x1) * enters, y1 + (y2 - y1) * enters


def frames_around(graph: DotGraph, boxes: Mapping[str, Box]) -> list[Frame | None]:
    """Return the frame of each cluster, `None` for empty ones."""
    around: list[list[Frame]] = [[] for _ in graph.clusters]
    for name, cluster in graph.cluster_of.items():
        box = boxes[name]
        left, top = box.x - box.width / 2, box.y - box.height / 2
        around[cluster].append((left, top, left + box.width, top + box.height))
    found: list[Frame | None] = [None] * len(around)
    for index in reversed(range(len(around))):  # inner clusters come after outer ones
        if not around[index]:
            continue
        lefts, tops, rights, bottoms = zip(*around[index], strict=True)
        margin = _FRAME_MARGIN
        frame = (min(lefts) - margin, min(tops) - margin - TITLE_HEIGHT, max(rights) + margin, max(bottoms) + margin)
        found[index] = frame
        parent = graph.clusters[index].parent
        if parent is not None:
            around[parent].append(frame)
    return found
