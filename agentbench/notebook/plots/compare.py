"""Two runs, or two chains of checkpoints, beside each other."""

from typing import Any

from agentbench.exceptions import AgentFrameworkException
from agentbench.notebook.frames.comparison import comparison_frame
from agentbench.notebook.graph.shape import find_workflow
from agentbench.notebook.graph.view import draw
from agentbench.notebook.history.compare import RunComparison, compare_sides, read_sides
from agentbench.notebook.plots.compare_svg import MarkedGraph, compare_svg
from agentbench.notebook.plots.compare_text import compare_text
from agentbench.notebook.plots.plot import Plot

__all__ = ["ComparePlot", "compare"]


class ComparePlot(Plot):
    """Two runs beside each other, as `compare` returns them: a picture, text and a frame.

    Attributes:
        first: The first superstep that differs; `None` if none does.
        verdict: The first divergence in words.

    Example:
        found = compare(before, after)
        print(found.verdict)
        found.frame
    """

    def __init__(self, found: RunComparison, graphs: "list[Any]", width: float) -> None:
        self.first = found.first
        self.verdict = found.verdict
        super().__init__(
            found.title,
            svg=lambda: compare_svg(found, _marked_graphs(found, graphs), width=width, description=compare_text(found)),
            text=lambda: compare_text(found),
            frame=lambda: comparison_frame(found),
        )

    @property
    def is_equal(self) -> bool:
        """Whether no superstep differs."""
        return self.first is None


def compare(run_a: Any, run_b: Any, *, source: Any = None, width: float = 760) -> ComparePlot:
    """Compare two runs superstep by superstep: which executors ran, what they sent and requested, and the shared state.

    Runs with events are compared by their events. If one side has only checkpoints, both sides are compared by their
    checkpoints; of a storage, by the chain that ends in its last checkpoint. Times and ids do not count. A run that was
    resumed or forked is compared from its first superstep on: superstep n is compared with superstep n.

    The picture shows both graphs, if they are known, with the differing executors marked, and a table with the
    differences of each superstep.

    Args:
        run_a: A run, a result, a stepper, a storage, a list of checkpoints, or the id of a run.
        run_b: The other one, of the same types.
        source: A storage or a list of runs, needed for ids of runs.
        width: Width of the picture, in points.

    Returns:
        A plot. Its `frame` has the index (`superstep` int64, `part` string), columns `kind` (`executor`, `state`) and
        `op` category (`equal`, `changed`, `only_a`, `only_b`), `a`, `b` string, secrets masked. A key of the state has
        a row where it begins to differ, and where the difference changes.

    Raises:
        TypeError: A side is none of these, or is an id and `source` is missing.

    Example:
        compare(run, await run.fork(checkpoint), width=900)
    """
    one, other = read_sides(run_a, run_b, source)
    return ComparePlot(compare_sides(one, other), [run_a, run_b], width)


def _marked_graphs(found: RunComparison, sides: "list[Any]") -> list[MarkedGraph]:
    """Return the graphs of both sides, or none if one is unknown."""
    try:
        runs = [getattr(each, "handle", each) for each in sides]
        views = [draw(find_workflow(run), run=run, direction="auto", max_nodes=40) for run in runs]
        ids = [set(view.whole.holder_of) for view in views]
        differ = found.differing_executors | (ids[0] ^ ids[1])
        elements = [view.shape.element_of for view in views]
        return [
            MarkedGraph(view.svg, {known[each] for each in differ if each in known})
            for view, known in zip(views, elements, strict=True)
        ]
    except (AgentFrameworkException, TypeError):  # a picture that fails must not hide the table
        return []
