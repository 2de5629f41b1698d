"""The map of a batch: its statistics, its filters, its page, and the file of it."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("anywidget")

from agentbench.batch.rows import BatchRow, RowError, RowStatus, Traffic
from agentbench.notebook.batches.explore import Explore, explore
from agentbench.notebook.batches.flow import read_flow
from tests.notebook.attacks import ATTACKS
from tests.notebook.test_hostile_text import check_bundle, check_svg, check_text
from tests.parts.batches import FakeBatch, many_rows, review_flow


def reviews(count: int = 100) -> FakeBatch:
    return FakeBatch(many_rows(count), workflow=review_flow())


class Page:
    """What a page gets from a map and says to it."""

    def __init__(self, shown: Explore) -> None:
        self.shown = shown
        self.widget: Any = shown.widget.children[0]
        self.sent: list[dict[str, Any]] = []
        self.widget.send = self.sent.append
        self.say("ready")

    def say(self, kind: str, **more: Any) -> None:
        self.widget._handle_custom_msg({"kind": kind, "view": "v", **more}, [])

    def last(self, kind: str) -> dict[str, Any]:
        return next(message for message in reversed(self.sent) if message["kind"] == kind)


def data_of(path: Path) -> dict[str, Any]:
    found = re.search(r'<script type="application/json" id="data">(.*?)</script>', path.read_text(encoding="utf-8"))
    assert found is not None
    data: dict[str, Any] = json.loads(found[1])
    return data


def test_nodes_edges_and_paths_are_counted_over_all_runs():
    flow = read_flow(reviews())
    assert flow.paths["runs"].to_dict() == {
        "read > (check, rate) > write": 88,
        "read > (check, rate)": 7,
        "read": 5,
    }
    assert flow.paths["failures"].tolist() == [0, 5, 5]
    assert flow.nodes["calls"].to_dict() == {"read": 100, "check": 95, "rate": 95, "write": 88}
    assert flow.nodes["failures"].to_dict() == {"read": 5, "check": 5, "rate": 0, "write": 0}
    assert flow.edges["runs"].to_dict()["check", "write"] == 88
    assert flow.errors.to_dict() == {"TimeoutError": 5, "ValueError": 5}
    assert {path: sorted(executors) for path, executors in flow.executors.items()} == {
        "read > (check, rate) > write": ["check", "rate", "read", "write"],
        "read > (check, rate)": ["check", "rate", "read"],
        "read": ["read"],
    }


def test_median_and_95th_percentile_are_of_the_seconds_per_call():
    rows = [BatchRow(f"k{place}", place, "x", RowStatus.FINISHED, path="n") for place in range(101)]
    batch = FakeBatch(rows, traffic=[Traffic(row.key, "n", "", 2, 2.0 * row.position) for row in rows])
    assert read_flow(batch).nodes[["calls", "median", "p95"]].to_dict("records") == [
        {"calls": 202, "median": 50.0, "p95": 95.0}
    ]


def test_the_picture_has_statistics_of_nodes_and_edges_and_thick_lines_for_many_runs():
    picture = read_flow(reviews()).picture
    assert [(node.name, node.note) for node in picture.nodes] == [
        ("read", "100 calls, 5 failed"),
        ("check", "95 calls, 5 failed"),
        ("rate", "95 calls"),
        ("write", "88 calls"),
    ]
    assert [(edge.label, edge.weight) for edge in picture.edges][:1] == [("95 runs", 5)]
    rare = [replace(row, path="read") if row.position > 10 else row for row in many_rows(100)]
    assert read_flow(FakeBatch(rare, workflow=review_flow())).picture.edges[0].weight == 1
    assert 'class="ab_edge ab_e_fan_out ab_w5"' in explore(reviews()).graph.svg


def test_a_batch_without_its_workflow_shows_the_executors_that_ran():
    found = explore(FakeBatch(many_rows(20)))
    assert [node.id for node in found.graph.shape.nodes] == ["read", "check", "rate", "write"]
    assert len(found.graph.shape.edges) == 4


def test_the_text_lists_paths_nodes_and_errors_without_times_when_outputs_are_compared():
    assert explore(reviews()).text.splitlines() == [
        "Map of reviews: 100 runs, 3 paths through the graph",
        "paths",
        "  read > (check, rate) > write  88  88.0%",
        "  read > (check, rate)          7   7.0%   5",
        "  read                          5   5.0%   5",
        "nodes",
        "  read   100  4,000  0.03    5",
        "  check  95   3,800  0.0285  5",
        "  rate   95   3,800  0.0285",
        "  write  88   3,520  0.0264",
        "errors",
        "  TimeoutError  5",
        "  ValueError    5",
    ]
    assert repr(explore(reviews())) == "Explore(reviews, 100 runs, 3 paths through the graph)"


def test_an_empty_batch_has_a_map_too():
    found = explore(FakeBatch(workflow=review_flow()))
    assert found.text == "Map of reviews: 0 runs, 0 paths through the graph"
    check_bundle(found.bundle())
    assert found.flow.picture.nodes[0].note == "not called"


@pytest.mark.parametrize(
    ("wanted", "count"),
    [
        ({"node": "check"}, 95),
        ({"path": "read"}, 5),
        ({"error": "ValueError"}, 5),
        ({"node": "write", "error": "ValueError"}, 0),
    ],
)
def test_rows_are_found_by_path_node_and_error(wanted: dict[str, str], count: int):
    assert len(explore(reviews()).rows(**wanted)) == count


def test_a_click_on_a_path_a_node_or_an_error_filters_the_rows_of_the_page():
    page = Page(explore(reviews()))
    assert page.last("map")["tables"][0]["rows"][0]["cells"][:2] == ["read > (check, rate) > write", "88"]
    assert (page.last("rows")["count"], len(page.last("rows")["rows"])) == (100, 50)
    place = page.last("map")["nodes"]["n1"]
    page.say("filter", by="node", id=place)
    assert (page.last("rows")["name"], page.last("rows")["count"]) == ("check", 95)
    page.say("filter", by="error", id="0")
    assert [row["id"] for row in page.last("rows")["rows"]] == ["3", "23", "43", "63", "83"]
    page.say("filter", by="error", id="0")
    assert page.last("rows")["count"] == 100
    for by, wrong in (("path", "17"), ("shape", "0"), ("node", "no number"), (None, None)):
        page.say("filter", by=by, id=wrong)
        assert page.last("rows")["by"] == ""


def test_a_row_opens_in_a_stepper_below_or_is_run_again():
    batch = reviews()
    page = Page(explore(batch))
    page.say("open", id="3")
    assert page.last("view")["again"] is True
    page.say("rerun", id="3")
    assert len(page.shown.widget.children) == 2
    page.say("close")
    assert len(page.shown.widget.children) == 1
    assert batch.calls == [("open", "row-00003", False), ("open", "row-00003", True)]
    page.say("open", id="no such row")
    assert page.last("view") == {"kind": "view"}
    page.shown.close()
    page.shown.close()


def test_a_saved_map_has_rows_of_every_path_and_error_and_says_how_many_it_left_out(tmp_path: Path):
    rows = many_rows(5000)
    rows[-1] = replace(rows[-1], path="rare", error=RowError("RareError", "x"), status=RowStatus.FAILED)
    path = explore(FakeBatch(rows, workflow=review_flow())).save(tmp_path / "map.html")
    data = data_of(path)
    assert (len(data["rows"]), data["count"]) == (2000, 5000)
    assert "the page has 2,000 of their rows" in path.read_text(encoding="utf-8")
    assert {row["path"] for row in data["rows"]} == {0, 1, 2, 3}
    assert {row["error"] for row in data["rows"]} == {None, 0, 1, 2}
    assert [name for name, _ in data["rows"][3]["details"]["fields"]][:2] == ["input", "error"]


def test_hostile_text_is_inert_and_secrets_are_masked(tmp_path: Path):
    for attack in ATTACKS:
        error = RowError(attack, f"{attack} password=sk-planted", attack, attack)
        row = BatchRow(
            f"k{attack}"[:300], 0, {attack: "x", "token": "sk-planted"}, RowStatus.FAILED, error=error, path=attack
        )
        entries = [Traffic(row.key, attack, calls=1), Traffic(row.key, attack, attack, messages=1)]
        found = explore(FakeBatch([row], name=attack, traffic=entries))
        check_bundle(found.bundle())
        check_text(repr(found))
        page = Page(found)
        check_svg(page.last("map")["graph"]["svg"])
        page.say("open", id="0")
        text = found.save(tmp_path / "map.html").read_text(encoding="utf-8")
        assert text.count("<script") == 2
        assert "sk-planted" not in text + json.dumps(page.sent)
        assert "sk-planted" not in json.dumps(page.widget.get_state(), default=str)
        found.close()
