"""The flow of a batch through its graph: statistics of nodes, edges and paths, and the picture of them."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from agentbench._extras import require
from agentbench._text.phrases import count_text, duration_text
from agentbench.batch.rows import BatchRow
from agentbench.notebook.batches.words import line
from agentbench.notebook.progress_bar.progress import is_compared
from agentbench.workflows.draw.shape import GraphShape, ShapeEdge, ShapeNode, read_shape

if TYPE_CHECKING:
    import pandas as pd

_WEIGHTS = 5


@dataclass(frozen=True)
class Flow:
    """The statistics of a batch, as frames.

    Attributes:
        name: The name of the batch.
        rows: The rows that have run, in input order.
        nodes: By executor, in the order of the graph: `runs`, `calls`, `median` and `p95` (seconds per call), `tokens`,
            `cost` and `failures`.
        edges: By source and target: `runs` and `messages`.
        paths: By path, the most frequent first: `runs`, `share`, `median` (seconds), `failures`.
        errors: By class of errors: the number of rows, the most frequent first.
        executors: By path: the executors that ran.
        shape: The graph; without a workflow, the executors and edges that were used.
    """

    name: str
    rows: list[BatchRow]
    nodes: pd.DataFrame
    edges: pd.DataFrame
    paths: pd.DataFrame
    errors: pd.Series[int]
    executors: dict[str, list[str]]
    shape: GraphShape

    @cached_property
    def picture(self) -> GraphShape:
        """The graph with statistics below the names of its nodes and on its edges."""
        total = max(1, len(self.rows))
        calls, edges = self.nodes.to_dict("index"), self.edges.to_dict("index")

        def note(node: ShapeNode) -> str:
            facts: Any = calls.get(node.id)
            if not facts:
                return "not called"
            time = [] if is_compared() or math.isnan(facts["median"]) else [duration_text(facts["median"])]
            failed = [f"{facts['failures']:,} failed"] if facts["failures"] else []
            return ", ".join([count_text(facts["calls"], "call"), *time, *failed])

        def weighed(edge: ShapeEdge) -> ShapeEdge:
            facts: Any = edges.get((edge.source, edge.target), {"runs": 0, "messages": 0})
            runs, messages = facts["runs"], facts["messages"]
            text = count_text(runs, "run") + ("" if messages == runs else f", {count_text(messages, 'message')}")
            label = f"{text} · {edge.label}" if edge.label else text
            return replace(edge, label=label, weight=math.ceil(_WEIGHTS * min(1.0, runs / total)))

        nodes = tuple(replace(node, note=note(node)) for node in self.shape.nodes)
        return replace(self.shape, nodes=nodes, edges=tuple(map(weighed, self.shape.edges)))


def read_flow(batch: Any) -> Flow:
    """Read the rows and the traffic of a batch, and compute its statistics."""
    require("pandas", extra="notebook", purpose="explore a batch")
    import pandas as pd

    rows = [row for row in batch.rows() if row.path or row.error is not None]
    traffic = batch.traffic()
    # One list per column: much faster than a dict per entry.
    found = pd.DataFrame(
        {
            "key": [each.key for each in traffic],
            "source": pd.Categorical([each.source for each in traffic]),
            "target": pd.Categorical([each.target for each in traffic]),
            "calls": [each.calls for each in traffic],
            "seconds": [each.seconds for each in traffic],
            "tokens": [each.tokens for each in traffic],
            "cost": [each.cost for each in traffic],
            "failures": [each.failures for each in traffic],
            "messages": [each.messages for each in traffic],
        }
    )
    on_node = (found["target"] == "").to_numpy()
    visits, passed = found[on_node], found[~on_node]
    visits = visits.assign(per_call=visits["seconds"] / visits["calls"].clip(lower=1))
    by_node = visits.groupby("source", observed=True, sort=False)
    nodes = by_node[["calls", "tokens", "cost", "failures"]].sum()
    nodes.insert(0, "runs", by_node.size())
    nodes["median"], nodes["p95"] = by_node["per_call"].median(), by_node["per_call"].quantile(0.95)
    by_edge = passed.groupby(["source", "target"], observed=True, sort=False)
    edges = pd.DataFrame({"runs": by_edge.size(), "messages": by_edge["messages"].sum()})
    shape = _used_shape(batch.name, nodes, edges) if batch.workflow is None else read_shape(batch.workflow)
    places = {node.id: place for place, node in enumerate(shape.nodes)}
    return Flow(
        name=batch.name,
        rows=rows,
        nodes=nodes.loc[sorted(nodes.index, key=lambda name: places.get(name, len(places)))],
        edges=edges,
        paths=_paths(rows),
        errors=pd.Series([row.error.type for row in rows if row.error is not None], dtype=object).value_counts(),
        executors=_executors_of(rows, visits),
        shape=shape,
    )


def _paths(rows: list[BatchRow]) -> pd.DataFrame:
    import pandas as pd

    frame = pd.DataFrame(
        {
            "path": [row.path for row in rows],
            "seconds": pd.array([row.seconds for row in rows], dtype="Float64"),
            "failed": [row.error is not None for row in rows],
        }
    )
    by_path = frame.groupby("path", sort=False)
    paths = pd.DataFrame({"runs": by_path.size(), "share": by_path.size() / max(1, len(rows))})
    paths["median"], paths["failures"] = by_path["seconds"].median(), by_path["failed"].sum()
    return paths.sort_values("runs", ascending=False, kind="stable")


def _executors_of(rows: list[BatchRow], visits: pd.DataFrame) -> dict[str, list[str]]:
    """Return the executors that ran on each path: those that one of its rows called."""
    path_of = {row.path: row.key for row in reversed(rows)}
    found = visits[visits["key"].isin(path_of.values())].groupby("key")["source"].agg(list).to_dict()
    return {path: found.get(key, []) for path, key in path_of.items()}


def _used_shape(name: str, nodes: pd.DataFrame, edges: pd.DataFrame) -> GraphShape:
    """Return a graph of the executors and edges that were used, for a batch without its workflow."""
    known = set(nodes.index)
    pairs = [pair for pair in edges.index if known.issuperset(pair)]
    return GraphShape(
        name=line(name),
        nodes=tuple(ShapeNode(id=each, name=each) for each in nodes.index),
        edges=tuple(ShapeEdge(source=source, target=target) for source, target in pairs),
    )
