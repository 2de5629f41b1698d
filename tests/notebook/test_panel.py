"""Both panels, by the interface that they share."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from agentbench.exceptions import WidgetsUnavailable
from agentbench.notebook.graph_panel.live import GraphPanel
from agentbench.notebook.graph_panel.panel import make_graph_panel
from agentbench.notebook.graph_panel.plain import HtmlGraphPanel
from agentbench.notebook.look import style
from agentbench.notebook.runtime.settings import configure
from tests.notebook import graphs


@pytest.fixture(params=[True, False], ids=["live", "plain"])
def panel(request: pytest.FixtureRequest):
    configure(live_graph=request.param)
    made = make_graph_panel(graphs.research())
    yield made
    made.close()


@pytest.fixture
def live():
    made = make_graph_panel(graphs.research())
    assert isinstance(made, GraphPanel)
    yield made
    made.close()


@pytest.fixture
def sent(live: GraphPanel, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []
    monkeypatch.setattr(live, "send", lambda content, buffers=None: messages.append(content))
    return messages


def from_page(live: GraphPanel, **content: object) -> None:
    live._from_page(live, content, [])


# ---- choice


def test_the_live_panel_is_taken_unless_it_is_switched_off():
    assert isinstance(make_graph_panel(graphs.research()), GraphPanel)
    configure(live_graph=False)
    assert isinstance(make_graph_panel(graphs.research()), HtmlGraphPanel)


@pytest.mark.parametrize(
    ("missing", "expected"), [("anywidget", "HtmlGraphPanel"), ("ipywidgets", "WidgetsUnavailable")]
)
def test_a_missing_package_leads_to_the_next_best_thing(missing: str, expected: str):
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from agentbench.notebook.graph_panel.panel import make_graph_panel\n"
        "from tests.notebook.graphs import research\n"
        "try: print(type(make_graph_panel(research())).__name__)\n"
        "except Exception as error: print(type(error).__name__)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    assert done.stdout.strip() == expected
    assert issubclass(WidgetsUnavailable, ModuleNotFoundError)


# ---- what both do


def test_a_selection_is_reported_once_and_read_both_ways(panel):
    told: list[str | None] = []
    stop = panel.on_select(told.append)
    panel.select("draft")
    panel.select("draft")
    assert (panel.selected, panel.selected_id) == ("n2", "draft")
    panel.select(None)
    assert (panel.selected, panel.selected_id) == ("", None)
    stop()
    stop()
    panel.select("plan")
    assert told == ["draft", None]


def test_breakpoints_are_shown_and_not_reported_back(panel):
    told: list[tuple[str, ...]] = []
    panel.on_breakpoints(told.append)
    panel.set_breakpoints(["review", "plan"])
    assert panel.breakpoints == ["n0", "n3"]
    assert panel.breakpoint_ids == ("plan", "review")
    assert told == []


def test_opening_a_group_keeps_states_selection_and_breakpoints(panel):
    other = type(panel)(type(panel.model)(graphs.nested()))
    other.update({"after": "done"})
    other.select("after")
    other.set_breakpoints(["after"])
    other.set_expanded(["middle"])
    assert [frame.id for frame in other.shape.frames] == ["middle"]
    assert other.selected == other.model.element("after") == "n4"
    assert other.breakpoints == ["n4"]
    assert other.model.drawn_states() == {"n4": "done"}
    other.close()


# ---- the live one


def test_a_tick_is_one_message_with_what_changed(live: GraphPanel):
    seen: list[dict[str, object]] = []
    live.observe(lambda change: seen.append(dict(live.patch)), "stamp")
    live.update({"plan": "done"}, {"plan": "2 visits"})
    live.flush()
    assert seen == [{"n0": "done"}]
    assert live.badges == {"n0": "2 visits"}
    stamp = live.stamp
    live.flush()
    assert live.stamp == stamp


def test_a_tick_of_a_large_graph_stays_small():
    large = make_graph_panel(graphs.layers(500), max_nodes=500)
    assert isinstance(large, GraphPanel)
    large.update(dict.fromkeys(list(large.model.shape.holder_of), "done"))
    large.flush()
    assert len(large.patch) == 500
    assert len(json.dumps(large.patch)) < 10_240
    large.close()


def test_a_breakpoint_set_on_the_page_reaches_python(live: GraphPanel):
    told: list[tuple[str, ...]] = []
    live.on_breakpoints(told.append)
    live.set_state({"breakpoints": ["n3", "n0"]})
    assert told == [("plan", "review")]
    live.set_state({"breakpoints": []})
    assert told[1:] == [()]


def test_what_the_page_cannot_know_is_not_believed(live: GraphPanel):
    told: list[object] = []
    live.on_select(told.append)
    live.on_breakpoints(told.append)
    live.set_state({"selected": "<script>"})
    live.set_state({"breakpoints": ["n99", "e0", "x"]})
    for content in (
        {},
        {"kind": "rm -rf"},
        {"kind": "open", "element": "n0"},
        {"kind": "view", "view": 3},
    ):
        from_page(live, **content)
    live._from_page(live, "text", [])
    assert told == []
    assert (live.selected, live.selected_id, live.breakpoints) == ("", None, [])


def test_a_page_that_comes_late_gets_all_states(live: GraphPanel, sent: list[dict[str, object]]):
    live.update({"plan": "done"})
    live.flush()
    live.update({"search": "running"})
    live.flush()
    from_page(live, kind="ready", stamp=0)
    assert sent == [{"kind": "full", "states": {"n0": "done", "n1": "running"}}]


def test_a_click_on_a_selected_sub_workflow_opens_it():
    nested = make_graph_panel(graphs.nested())
    assert isinstance(nested, GraphPanel)
    before = nested.svg
    from_page(nested, kind="open", element="n1")
    assert [frame.id for frame in nested.shape.frames] == ["middle"]
    assert nested.svg != before
    from_page(nested, kind="open", element="c0")
    assert nested.shape.frames == ()
    nested.close()


def test_script_and_style_are_small_plain_and_local():
    script = style.read_script("graph_panel.js")
    assert len(script.encode()) <= 12 * 1024
    assert len(style.live_style().encode()) <= 6 * 1024
    folder = Path(style.__file__).parent / "static"
    assert sum(path.stat().st_size for path in folder.glob("graph*.css")) <= 6 * 1024
    for text in (script, style.live_style()):
        without_names = text.replace("http://www.w3.org/2000/svg", "")
        for forbidden in (
            "http",
            "import ",
            "import(",
            "eval",
            "innerHTML",
            "insertAdjacentHTML",
            "document.write",
            "fetch(",
        ):
            assert forbidden not in without_names


# ---- the plain one


def test_the_plain_panel_selects_by_its_list():
    configure(live_graph=False)
    plain = make_graph_panel(graphs.nested())
    assert isinstance(plain, HtmlGraphPanel)
    told: list[str | None] = []
    plain.on_select(told.append)
    assert [name for name, _ in plain._list.options][:3] == ["(none)", "before (start)", "middle (sub-workflow)"]
    plain._list.value = "n1"
    assert told == ["middle"]
    assert not plain._open.disabled
    plain._open.click()
    assert [frame.id for frame in plain.shape.frames] == ["middle"]
    plain.close()


def test_the_plain_panel_sets_breakpoints_by_its_button():
    configure(live_graph=False)
    plain = make_graph_panel(graphs.research())
    assert isinstance(plain, HtmlGraphPanel)
    told: list[tuple[str, ...]] = []
    plain.on_breakpoints(told.append)
    assert plain._stop.disabled
    plain.select("draft")
    plain._stop.value = True
    assert told == [("draft",)]
    plain.select("plan")
    assert plain._stop.value is False
    plain.select("draft")
    plain._stop.value = False
    assert told == [("draft",), ()]
    plain.close()


def test_the_plain_panel_shows_all_that_the_live_one_shows():
    configure(live_graph=False)
    plain = make_graph_panel(graphs.research())
    assert isinstance(plain, HtmlGraphPanel)
    plain.update({"review": "waiting", "plan": "done"}, {"plan": "2 visits"})
    plain.set_breakpoints(["plan"])
    plain.select("search")
    plain.flush()
    picture = plain._picture.value
    for shown in ("ab_s_waiting", "ab_halo", "ab_ring", "ab_stop", "ab_pick", ">2 visits<"):
        assert picture.count(shown) == 1
    assert "<style" not in picture
    assert "prefers-color-scheme" in plain._style.value
    assert plain._list.options[1][0] == "plan (start, done, 2 visits, breakpoint)"
    plain.close()
