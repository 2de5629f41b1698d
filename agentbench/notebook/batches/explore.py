"""`explore`: the map of a batch: its graph with the flow of all runs, its paths, and the rows behind them."""

from __future__ import annotations

import base64
import hashlib
import json
import math
from collections.abc import Iterable
from pathlib import Path
from string import Template
from typing import Any

from agentbench._text.escape import esc
from agentbench._text.phrases import count_text, duration_text
from agentbench.batch.rows import BatchRow
from agentbench.exceptions import WidgetsUnavailable
from agentbench.notebook.batches.cards import row_details
from agentbench.notebook.batches.files import explore_script, explore_style, read_files
from agentbench.notebook.batches.flow import Flow, read_flow
from agentbench.notebook.batches.opening import Below, try_call
from agentbench.notebook.batches.words import ROW_HEAD, amount_text, line, row_cells
from agentbench.notebook.graph.view import GraphView, draw
from agentbench.notebook.look.html import Page, Table, image
from agentbench.notebook.progress_bar.progress import is_compared
from agentbench.notebook.runtime.stand_in import StandIn, WidgetDisplay, needs_widgets

_SHOWN = 50  # rows, and paths
_IN_TEXT = 10
_SAVED = 2000  # rows of a page without a kernel
_SAVED_LIMIT = 400  # characters of a value there


def explore(batch: Any) -> Explore:
    """Return the map of a batch as it is now. A cell displays it; `save` writes it as one page.

    Args:
        batch: The batch.

    Raises:
        MissingExtraError: pandas, which comes with the extra `notebook`, is not installed.

    Example:
        found = explore(batch)
        found.rows(node="check", error="TimeoutError")
        found.save("map.html")
    """
    return Explore(batch)


class Explore(WidgetDisplay):
    """The map of a batch, made by `explore`: statistics of nodes, edges and paths, and the rows behind them.

    Selecting a path, a node or a class of errors filters the rows; a click on a row opens its run in a stepper.

    Attributes:
        flow: The statistics as data frames: `nodes`, `edges`, `paths`, `errors`.

    Example:
        found = batch.explore()
        print(found.text)
        found.flow.nodes.sort_values("p95")
    """

    def __init__(self, batch: Any) -> None:
        self.batch = batch
        self.flow: Flow = read_flow(batch)
        self.graph: GraphView = draw(self.flow.picture, direction="auto")
        self._upright: GraphView = draw(self.flow.picture, direction="TB")  # beside the tables of a page
        self._filter: tuple[str, int] | None = None
        self._page: Any = None
        self._below: Any = None
        self._stand_in = StandIn(self, self.bundle)

    def rows(self, *, path: str | None = None, node: str | None = None, error: str | None = None) -> list[BatchRow]:
        """Return the rows that took a path, called an executor, or failed with a class of errors.

        Args:
            path: The path, as in `flow.paths`.
            node: The id of an executor.
            error: The name of a class of errors.
        """
        paths = {each for each, executors in self.flow.executors.items() if node is None or node in executors}
        return [
            row
            for row in self.flow.rows
            if row.path in paths
            and (path is None or row.path == path)
            and (error is None or (row.error is not None and row.error.type == error))
        ]

    # ---- tables, for all displays ------------------------------------------------------------------------------------

    def _tables(self, most: int | None = None) -> list[dict[str, Any]]:
        """Return the tables whose rows are filters: paths, nodes and classes of errors, the most frequent first."""
        flow = self.flow
        paths = [
            (path, f"{each['runs']:,}", f"{each['share']:.1%}", *_times(each["median"]), _count(each["failures"]))
            for path, each in _records(flow.paths, most)
        ]
        nodes = [
            (
                name,
                f"{each['calls']:,}",
                *_times(each["median"], each["p95"]),
                f"{each['tokens']:,}",
                amount_text(each["cost"]),
                _count(each["failures"]),
            )
            for name, each in _records(flow.nodes, most)
        ]
        errors = [(name, f"{count:,}") for name, count in flow.errors[:most].items()]
        times = [] if is_compared() else ["median"]
        return [
            {"by": "path", "title": "Paths", "head": ["path", "runs", "share", *times, "failed"], "rows": paths},
            {
                "by": "node",
                "title": "Nodes",
                "head": ["node", "calls", *times, *(["95 % under"] if times else []), "tokens", "cost", "failed"],
                "rows": nodes,
            },
            {"by": "error", "title": "Errors", "head": ["error", "rows"], "rows": errors},
        ]

    @property
    def _facts(self) -> list[str]:
        flow = self.flow
        return [count_text(len(flow.rows), "run"), f"{count_text(len(flow.paths), 'path')} through the graph"]

    @property
    def text(self) -> str:
        """The most frequent paths, the nodes and the errors as plain text."""
        return self._card(_IN_TEXT).text()

    def bundle(self) -> dict[str, str]:
        """Return the map by media type, for places without widgets."""
        return {"text/plain": self.text, "text/html": self._card(_SHOWN, picture=True).html()}

    def _card(self, most: int, *, picture: bool = False) -> Page:
        tables = [Table(each["title"], each["head"], each["rows"]) for each in self._tables(most)]
        svg = self.graph.svg.replace("</style>", f"{read_files('weights.css')}</style>", 1) if picture else ""
        return Page(
            f"Map of {self.flow.name}",
            facts=self._facts,
            tables=tables,
            picture=image(svg, f"Graph of {self.flow.name} with the flow of its runs") if picture else None,
        )

    # ---- the page ----------------------------------------------------------------------------------------------------

    @property
    def widget(self) -> Any:
        """The map as an ipywidget, created once.

        Raises:
            WidgetsUnavailable: ipywidgets or anywidget is missing.
        """
        if self._below is None:
            with needs_widgets("print(found.text) and found.save(path) work without widgets"):
                from agentbench.notebook.batches.page import ExplorePage
            self._page = ExplorePage(self._on_message, name=f"Map of {line(self.flow.name)}")
            self._below = Below(self.batch, self._page)
        return self._below.box

    def _map(self) -> dict[str, Any]:
        flow, tables = self.flow, self._tables()
        for table, frame in zip(tables, (flow.paths["runs"], flow.nodes["runs"], flow.errors), strict=True):
            # All nodes, because each of them can be selected in the graph.
            shown = table["rows"] if table["by"] == "node" else table["rows"][:_SHOWN]
            table["more"] = len(table["rows"]) - len(shown)
            table["rows"] = [
                {"id": str(place), "cells": [line(name, 400) or "nothing ran", *cells], "count": count}
                for place, ((name, *cells), count) in enumerate(zip(shown, frame.tolist(), strict=False))
            ]
        places = {name: str(place) for place, name in enumerate(self.flow.nodes.index)}
        nodes = {element: places.get(node.id, "") for element, node in self._upright.shape.node_of.items()}
        graph = {
            "svg": self._upright.live_svg,
            "label": f"Graph of {line(self.flow.name)}",
            "note": self._upright.shape.note,
        }
        facts = " · ".join(self._facts)
        return {"title": line(self.flow.name), "facts": facts, "graph": graph, "nodes": nodes, "tables": tables}

    def _rows_message(self) -> dict[str, Any]:
        by, name = ("", "") if self._filter is None else (self._filter[0], self._name_of(*self._filter))
        found = self.rows(**{by: name}) if by else self.flow.rows
        rows = [{"id": str(row.position), "cells": row_cells(row)} for row in found[:_SHOWN]]
        place = "" if self._filter is None else str(self._filter[1])
        return {"by": by, "id": place, "count": len(found), "name": line(name, 400), "head": ROW_HEAD, "rows": rows}

    def _name_of(self, by: str, place: int) -> str:
        tables: dict[str, Any] = {"path": self.flow.paths, "node": self.flow.nodes, "error": self.flow.errors}
        return str(tables[by].index[place])

    def _on_message(self, message: dict[str, Any]) -> None:
        kind, view = message["kind"], message.get("view")
        if kind == "ready":
            self._page.send({"kind": "map", "view": view, **self._map()})
            self._page.send({"kind": "rows", "view": view, **self._rows_message()})
        elif kind == "filter":
            try:
                wanted = (str(message.get("by")), int(str(message.get("id"))))
                self._name_of(*wanted)
            except (KeyError, ValueError, IndexError):
                wanted = None
            self._filter = None if wanted == self._filter else wanted
            self._page.send({"kind": "rows", **self._rows_message()})
        elif kind in ("open", "rerun"):
            problem = try_call(lambda: self._open(str(message.get("id")), rerun=kind == "rerun"))
            self._page.send({"kind": "problem", "text": problem})
        elif kind == "close":
            self._below.close()
            self._page.send({"kind": "view"})

    def _open(self, place: str, *, rerun: bool) -> None:
        key = next((row.key for row in self.flow.rows if str(row.position) == place), None)
        if key is not None:
            self._page.send({"kind": "view", **self._below.open_row(key, place, rerun=rerun)})

    def save(self, path: str | Path) -> Path:
        """Write the map to one HTML file that needs no kernel and no network.

        The file contains the graph, all statistics, and at most two thousand rows with their details: the first of each
        path and of each class of errors, and then the first of all. Values under secret names are masked.

        Args:
            path: The path of the file; an existing file is replaced.

        Returns:
            The path.
        """
        flow = self.flow
        saved = _spread(flow, _SAVED)
        paths, errors, nodes = (
            {name: place for place, name in enumerate(frame.index)} for frame in (flow.paths, flow.errors, flow.nodes)
        )
        data = {
            "map": self._map(),
            "head": ROW_HEAD,
            "count": len(flow.rows),
            "visited": [[nodes[each] for each in flow.executors[name] if each in nodes] for name in flow.paths.index],
            "rows": [
                {
                    "id": str(row.position),
                    "cells": row_cells(row),
                    "path": paths[row.path],
                    "error": None if row.error is None else errors[row.error.type],
                    "details": row_details(row, _SAVED_LIMIT),
                }
                for row in saved
            ],
        }
        left_out = f"; the page has {len(saved):,} of their rows" if len(saved) < len(flow.rows) else ""
        script = explore_script().replace("export default { render };", "") + read_files("explore_saved.js")
        page = Template(read_files("explore.html")).substitute(
            title=f"Map of {esc(flow.name, limit=80)}",
            caption=f"A saved map of {count_text(len(flow.rows), 'run')}{left_out}. Nothing is executed.",
            style=explore_style(),
            hash="sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode(),
            data=json.dumps(data).replace("<", "\\u003c"),
            script=script,
        )
        path = Path(path)
        path.write_text(page, encoding="utf-8", newline="\n")
        return path

    def close(self) -> None:
        """Free the page and close the opened run. May be called twice."""
        if self._below is None:
            return
        from agentbench.notebook.runtime.widgets import close_all

        self._stand_in.close()
        self._below.close()
        close_all(self._below.box)
        self._below = self._page = None

    def _bundle_without_widgets(self, error: WidgetsUnavailable) -> dict[str, Any]:
        return {**self.bundle(), "text/plain": f"{self.text}\n{error}"}

    def __repr__(self) -> str:
        return f"Explore({line(self.flow.name)}, {', '.join(self._facts)})"


def _spread(flow: Flow, most: int) -> list[BatchRow]:
    """Return rows of all paths and classes of errors, at most `most`, in input order."""
    if len(flow.rows) <= most:
        return flow.rows
    chosen: dict[int, BatchRow] = {}
    groups: dict[tuple[str, str], int] = {}
    each_gets = max(1, most // (len(flow.paths) + len(flow.errors)))
    for row in flow.rows:
        for group in (("path", row.path), *([("error", row.error.type)] if row.error is not None else [])):
            groups[group] = groups.get(group, 0) + 1
            if groups[group] <= each_gets and len(chosen) < most:
                chosen[row.position] = row
    for row in flow.rows:
        if len(chosen) >= most:
            break
        chosen.setdefault(row.position, row)
    return [chosen[position] for position in sorted(chosen)]


def _records(frame: Any, most: int | None) -> Iterable[tuple[str, dict[str, Any]]]:
    found: dict[str, dict[str, Any]] = frame[:most].to_dict("index")
    return found.items()


def _times(*seconds: float) -> list[str]:
    """Return durations as cells; none if outputs are compared."""
    return [] if is_compared() else ["" if _is_missing(each) else duration_text(each) for each in seconds]


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return value is pd.NA or math.isnan(value)


def _count(count: int) -> str:
    return f"{count:,}" if count else ""
