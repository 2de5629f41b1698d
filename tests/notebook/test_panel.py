"""The live panel of a graph."""

import gc
import subprocess
import sys
from typing import Any

import pytest

from agentbench.exceptions import WidgetsUnavailable, install_command
from agentbench.notebook import GraphPanel, configure, make_graph_panel
from tests.notebook import graphs


@pytest.fixture
def live():
    made = make_graph_panel(graphs.research())
    yield made
    made.close()


@pytest.fixture
def sent(live: GraphPanel, monkeypatch: pytest.MonkeyPatch) -> list[dict[str, object]]:
    messages: list[dict[str, object]] = []
    monkeypatch.setattr(live, "send", lambda content, buffers=None: messages.append(content))
    return messages


def from_page(live: GraphPanel, **content: object) -> None:
    live._from_page(live, content, [])


def test_refused_arguments_are_one_error():
    with pytest.raises(TypeError):
        GraphPanel(graphs.research(), expand=7)  # type: ignore[arg-type]
    gc.collect()  # closing what was never opened must not print a second error


# ---- without a live panel


def test_without_live_panels_a_cell_shows_the_picture_the_text_and_why(live: GraphPanel):
    configure(live_graph=False)
    live.update({"plan": "done"})
    bundle = live._repr_mimebundle_()
    assert "ab_s_done" in bundle["image/svg+xml"]
    assert "plan (start) [done]" in bundle["text/plain"]
    assert "configure(live_graph=False)" in bundle["text/plain"].splitlines()[-1]


@pytest.mark.parametrize("missing", ["anywidget", "ipywidgets"])
def test_a_missing_package_is_named_with_what_to_install(missing: str):
    code = (
        f"import sys; sys.modules[{missing!r}] = None\n"
        "from agentbench.notebook import make_graph_panel\n"
        "from tests.notebook.graphs import research\n"
        "try: make_graph_panel(research())\n"
        "except Exception as error: print(type(error).__name__, error)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=120)
    for words in ("WidgetsUnavailable", missing, install_command("notebook"), "draw()"):
        assert words in done.stdout
    assert issubclass(WidgetsUnavailable, ModuleNotFoundError)


# ---- in Python


def test_a_selection_is_reported_once_and_read_both_ways(live: GraphPanel):
    told: list[str | None] = []
    stop = live.on_select(told.append)
    live.select("draft")
    live.select("draft")
    assert (live.selected, live.selected_id) == ("n2", "draft")
    live.select(None)
    assert (live.selected, live.selected_id) == ("", None)
    stop()
    stop()
    live.select("plan")
    assert told == ["draft", None]


def test_breakpoints_are_shown_and_not_reported_back(live: GraphPanel):
    told: list[tuple[str, ...]] = []
    live.on_breakpoints(told.append)
    live.set_breakpoints(["review", "plan"])
    assert live.breakpoints == ["n0", "n3"]
    assert live.breakpoint_ids == ("plan", "review")
    assert told == []


def test_opening_a_group_keeps_states_selection_and_breakpoints(live: GraphPanel):
    other = make_graph_panel(graphs.nested())
    other.update({"after": "done"})
    other.select("after")
    other.set_breakpoints(["after"])
    other.set_expanded(["middle"])
    assert [frame.id for frame in other.shape.frames] == ["middle"]
    assert other.selected == "n4"
    assert other.breakpoints == ["n4"]
    assert other.patch == {"n4": "done"}
    other.close()


# ---- on the page


def patches(panel: GraphPanel, *updates: dict[Any, str]) -> list[dict[str, str]]:
    seen: list[dict[str, str]] = []
    panel.observe(lambda change: seen.append(dict(panel.patch)), "stamp")
    for states in updates:
        panel.update(states)
        panel.flush()
    panel.close()
    return seen


def test_only_what_changed_is_sent():
    first = {"plan": "done", "search": "queued", ("plan", "search"): "done"}
    second = {"plan": "done", "search": "running"}
    sent = patches(make_graph_panel(graphs.research()), first, first, second)
    assert sent == [{"n0": "done", "n1": "queued", "e0": "done"}, {"n1": "running"}]


def test_ids_that_are_not_drawn_stay_until_their_group_is_opened():
    panel = make_graph_panel(graphs.nested())
    panel.update({"middle/in": "done", "nobody": "done"})
    panel.flush()
    assert panel.patch == {}
    panel.toggle_expanded("middle")
    assert panel.patch == {panel.shape.element("middle/in"): "done"}
    panel.toggle_expanded("middle")
    assert panel.patch == {}
    panel.close()


def test_a_group_shows_the_strongest_state_of_its_members():
    panel = make_graph_panel(graphs.farm(400))
    done = dict.fromkeys((f"worker_{index}" for index in range(400)), "done")
    assert patches(panel, done, {"worker_7": "failed"}, done) == [{"n1": "done"}, {"n1": "failed"}, {"n1": "done"}]


def test_a_very_large_graph_follows_what_happens():
    panel = make_graph_panel(graphs.layers(1300))
    assert panel.shape.element("step_0900") is None
    panel.update({"step_0900": "running"})
    panel.flush()
    assert panel.patch == {panel.shape.element("step_0900"): "running"}
    svg = panel.svg
    panel.update({"step_0900": "done"})
    panel.flush()
    assert panel.svg == svg
    panel.close()


def test_a_reset_puts_everything_back_to_idle(live: GraphPanel):
    live.update({"plan": "done"}, {"plan": "2 visits"})
    live.flush()
    live.reset()
    live.flush()
    assert (live.patch, live.badges, live.states) == ({"n0": "idle"}, {}, {})


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
