"""Two runs, or two chains of checkpoints, beside each other."""

from typing import TYPE_CHECKING, Any

from agentbench.exceptions import AgentFrameworkException
from agentbench.notebook.compare_model import Compared, compared
from agentbench.notebook.compare_sources import read_sides
from agentbench.notebook.compare_svg import Drawn, compare_svg
from agentbench.notebook.compare_text import compare_text
from agentbench.notebook.frame_columns import assembled
from agentbench.notebook.frame_sources import Chosen
from agentbench.notebook.graph_view import draw
from agentbench.notebook.plot import Plot
from agentbench.notebook.shape import find_workflow

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["ComparePlot", "compare"]


class ComparePlot(Plot):
    """Two runs beside each other.

    Attributes:
        first: The first superstep that differs; `None` if none does.
        verdict: The first divergence in words.
    """

    def __init__(self, found: Compared, graphs: "list[Any]", width: float) -> None:
        self.first = found.first
        self.verdict = found.verdict
        super().__init__(
            found.title,
            svg=lambda: compare_svg(found, _drawn(found, graphs), width=width, description=compare_text(found)),
            text=lambda: compare_text(found),
            frame=lambda: _frame(found),
        )

    @property
    def is_equal(self) -> bool:
        """Whether no superstep differs."""
        return self.first is None


def compare(run_a: Any, run_b: Any, *, source: Any = None, width: float = 760) -> ComparePlot:
    """Compare two runs superstep by superstep: who ran, what came of it, what was asked, and the shared state.

    Observed runs are compared by their events. Where a side is known by its checkpoints only, both are compared by
    these, as far as they are at hand; of a storage the chain that led to its last checkpoint counts. Times and ids do
    not count. Superstep n stands beside superstep n: a run that was resumed or forked does not tell what came before,
    and is compared from there on.

    The picture shows both graphs where they are known, with the executors marked that did not do the same, and a table
    in which every superstep that differs is taken apart.

    Args:
        run_a: A run, a result, a stepper, a storage, a list of checkpoints, or the id of a run.
        run_b: Likewise.
        source: Where ids of runs are looked up: a storage, or a list of runs.
        width: Of the picture, in points.

    Returns:
        A plot. Its `frame` has the index (`superstep` int64, `part` string), columns `kind` (`executor`, `state`) and
        `op` category (`equal`, `changed`, `only_a`, `only_b`), `a`, `b` string, secrets masked. A key of the state has
        a row where it begins to differ, and where the difference changes.

    Raises:
        TypeError: A side is no source, or an id without a `source`.
    """
    one, other = read_sides(run_a, run_b, source)
    return ComparePlot(compared(one, other), [run_a, run_b], width)


def _frame(found: Compared) -> "pd.DataFrame":
    rows = found.rows
    return assembled(
        "compare",
        {
            "superstep": ("int64", [row.superstep for row in rows]),
            "part": ("string", [row.part for row in rows]),
            "kind": ("category", [row.kind for row in rows]),
            "op": ("category", [row.op for row in rows]),
            "a": ("string", [row.a or None for row in rows]),
            "b": ("string", [row.b or None for row in rows]),
        },
        index=["superstep", "part"],
        chosen=Chosen(),
        run_ids=(found.a.name, found.b.name),
    )


def _drawn(found: Compared, given: "list[Any]") -> list[Drawn]:
    """The graphs of both sides, if both are known."""
    try:
        runs = [getattr(each, "handle", each) for each in given]
        views = [draw(find_workflow(run), run=run, direction="auto", max_nodes=40) for run in runs]
        ids = [set(view.whole.holder_of) for view in views]
        differ = found.parted | (ids[0] ^ ids[1])
        elements = [view.shape.element_of for view in views]
        return [
            Drawn(view.svg, {known[each] for each in differ if each in known})
            for view, known in zip(views, elements, strict=True)
        ]
    except (AgentFrameworkException, TypeError):  # a picture that fails must not hide the table
        return []
