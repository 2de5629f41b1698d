"""The comparison of two runs or two chains of checkpoints."""

import itertools
from collections.abc import Iterator
from typing import Any

from agentbench._text.escape import esc
from agentbench.exceptions import AgentFrameworkException
from agentbench.notebook.frames.differences import comparison_frame
from agentbench.notebook.graph.view import draw
from agentbench.notebook.history.compare import CompareRow, RunComparison, compare_sides, read_sides
from agentbench.notebook.history.overlay import STATE_OF_CALL
from agentbench.notebook.look.html import Markup, Table, element, image
from agentbench.notebook.look.style import PALETTE, read_static
from agentbench.notebook.plots.plot import Plot, align_columns, cut_lines

_MOST_PARTS = 8
_NAMED = 6
_CELL = 44
_OUTLINE = f"stroke:{PALETTE['light']['break']}!important;stroke-width:3!important"
_DIFFERS = "\N{NOT EQUAL TO}"
_SIGNS = {"equal": "=", "changed": _DIFFERS, "only_a": "\N{MINUS SIGN}", "only_b": "+", "unknown": "?"}

Line = tuple[str, str, str, str, str]
"""Superstep, sign, part, and the outcome on both sides; consecutive equal supersteps are one line."""


class ComparePlot(Plot):
    """The comparison of two runs, made by `compare`: both graphs above a table, text and a frame.

    Attributes:
        first: The first superstep that differs, `None` if all are equal.
        verdict: A sentence about the first difference.

    Example:
        found = compare(before, after)
        print(found.verdict)
        found.frame
    """

    def __init__(self, found: RunComparison, sources: "list[Any]") -> None:
        self.first = found.first
        self.verdict = found.verdict
        super().__init__(
            found.title,
            html=lambda: _html(found, sources),
            text=lambda: _text(found),
            frame=lambda: comparison_frame(found),
        )

    @property
    def is_equal(self) -> bool:
        """Whether no superstep differs."""
        return self.first is None


def compare(run_a: Any, run_b: Any, *, source: Any = None) -> ComparePlot:
    """Compare two runs superstep by superstep: which executors ran, what they sent and requested, and the shared state.

    Runs with events are compared by their events. If one side has only checkpoints, both sides are compared by their
    checkpoints; for a storage, by the chain that ends in its last checkpoint. Checkpoints contain no outputs, so parts
    that sent the same messages are then marked `?`, "outputs not recorded". Times and ids are ignored. A resumed or
    forked run is compared from its first superstep on: superstep n with superstep n.

    A cell displays both graphs, if they are known, with the differing executors marked, above a table with the
    differences of each superstep.

    Args:
        run_a: A run, a result, a stepper, a storage, a list of checkpoints, or the id of a run.
        run_b: The other one, of the same types.
        source: A storage or a list of runs, needed for ids of runs.

    Returns:
        A plot. Its `frame` has the index (`superstep` int64, `part` string), columns `kind` (`executor`, `state`) and
        `op` category (`equal`, `changed`, `only_a`, `only_b`, `unknown`), `a`, `b` string, secrets masked. A key of
        the state has a row where its difference begins and where it changes.

    Raises:
        TypeError: A side is none of these, or is an id and `source` is missing.

    Example:
        compare(run, await run.fork(checkpoint))
    """
    return ComparePlot(compare_sides(*read_sides(run_a, run_b, source)), [run_a, run_b])


def _html(found: RunComparison, sources: "list[Any]") -> str:
    head = element("p", element("b", esc(found.title, into="line", limit=None)), class_="ab_head")
    graphs = _graphs(found, sources)
    table = Table("Supersteps", ("superstep", "", "part", found.a.name, found.b.name), _lines(found))
    return str(
        element(
            "div",
            element("style", Markup(read_static("views.css") + read_static("diff.css"))),
            head,
            element("p", found.verdict),
            element("div", *graphs, class_="ab_pair") if graphs else None,
            table.html() if table.rows else None,
            class_="ab_view ab_compare",
        )
    )


def _graphs(found: RunComparison, sources: "list[Any]") -> list[Markup]:
    """Return the graphs of both sides with differing nodes outlined; empty if a graph is unknown."""
    try:
        views = []
        for side, source in zip((found.a, found.b), sources, strict=True):
            calls = [call for number in sorted(side.steps) for call in side.steps[number].calls.values()]
            states = {call.executor: STATE_OF_CALL[call.status] for call in calls}  # after its last superstep
            views.append(draw(getattr(source, "handle", source), run=states, direction="auto", max_nodes=40))
        only_one = set(views[0].whole.holder_of) ^ set(views[1].whole.holder_of)
        figures = []
        for side, view in zip((found.a, found.b), views, strict=True):
            differ = [each for each in view.shape.element_of if each in found.differing_executors | only_one]
            names = ", ".join(esc(each, into="line", limit=40) for each in differ)
            caption = element("figcaption", f"{side.name} ({_DIFFERS} {names})" if names else side.name)
            nodes = dict.fromkeys(view.shape.element_of[each] for each in differ)
            rules = "".join(f"#{each} .ab_shape{{{_OUTLINE}}}" for each in nodes)
            svg = view.svg.replace("</svg>", f"<style>{rules}</style></svg>")
            figures.append(element("figure", caption, image(svg, view.text)))
    except (AgentFrameworkException, TypeError):  # a failing picture must not hide the table
        return []
    return figures


# ---- lines ------------------------------------------------------------------------------------------------------


def _lines(found: RunComparison) -> list[Line]:
    """Return the supersteps as lines: differing ones in detail, consecutive equal ones as one line."""
    lines: list[Line] = []
    for is_equal, group in itertools.groupby(found.steps, lambda step: step not in found.different | found.unknown):
        steps = list(group)
        if is_equal:
            numbers = f"{steps[0]}" if len(steps) == 1 else f"{steps[0]}\N{EN DASH}{steps[-1]}"
            names = _names(row for step in steps for row in found.steps[step])
            lines.append((numbers, _SIGNS["equal"], names, "", ""))
            continue
        for step in steps:
            parts = [row for row in found.steps[step] if row.op != "equal"]
            detailed = [(_SIGNS[row.op], _part(row), row.a, row.b) for row in parts[:_MOST_PARTS]]
            if len(parts) > _MOST_PARTS:
                detailed.append((_DIFFERS, f"… {len(parts) - _MOST_PARTS} more", "", ""))
            if same := _names(row for row in found.steps[step] if row.op == "equal"):
                detailed.append((_SIGNS["equal"], same, "", ""))
            lines += [("" if place else str(step), *line) for place, line in enumerate(detailed)]
    return lines


def _names(rows: Iterator[CompareRow]) -> str:
    names = [esc(name, into="line", limit=40) for name in dict.fromkeys(row.part for row in rows)]
    return ", ".join(names[:_NAMED]) + (f" and {len(names) - _NAMED} more" if len(names) > _NAMED else "")


def _part(row: CompareRow) -> str:
    return ("state." if row.kind == "state" else "") + esc(row.part, into="line", limit=80)


def _text(found: RunComparison) -> str:
    """Return title, first difference and table, at most 60 lines."""
    names = ("", "") if not found.different | found.unknown else (found.a.name, found.b.name)
    rows = [("superstep", "", "", *names), *_lines(found)]
    cut = [[cell if len(cell) <= _CELL else f"{cell[: _CELL - 1]}…" for cell in row] for row in rows]
    table = align_columns(cut, right=(0,)) if found.steps else []
    return "\n".join([found.title, found.verdict, *table[:1], *cut_lines(table[1:])])
