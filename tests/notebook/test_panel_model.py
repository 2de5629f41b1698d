import pytest

from agentbench.notebook.panel_model import PanelModel
from tests.notebook import graphs


def test_only_what_changed_is_sent():
    model = PanelModel(graphs.research())
    model.update({"plan": "running"})
    model.update({"plan": "done", "search": "queued", ("plan", "search"): "done"})
    assert model.take_patch() == {"n0": "done", "n1": "queued", "e0": "done"}
    assert model.take_patch() == {}
    model.update({"plan": "done", "search": "running"})
    assert model.take_patch() == {"n1": "running"}


def test_a_state_and_its_opposite_in_one_tick_send_nothing():
    model = PanelModel(graphs.research())
    model.update({"plan": "running"})
    model.update({"plan": "idle"})
    assert model.take_patch() == {}


def test_an_unknown_state_changes_nothing():
    model = PanelModel(graphs.research())
    with pytest.raises(ValueError, match="no state 'finished'"):
        model.update({"plan": "done", "search": "finished"})
    assert model.states == {}


def test_ids_that_are_not_drawn_are_kept_until_their_group_is_opened():
    model = PanelModel(graphs.nested())
    model.update({"middle/in": "done", "nobody": "done"})
    assert model.take_patch() == {}
    model.toggle_expanded("middle")
    assert model.drawn_states() == {model.element("middle/in"): "done"}
    model.toggle_expanded("middle")
    assert model.drawn_states() == {}


def test_a_group_shows_the_strongest_state_of_its_members():
    model = PanelModel(graphs.farm(400))
    model.update({f"worker_{index}": "done" for index in range(400)})
    assert model.take_patch() == {"n1": "done"}
    model.update({"worker_7": "failed"})
    assert model.take_patch() == {"n1": "failed"}
    model.update({"worker_7": "done"})
    assert model.take_patch() == {"n1": "done"}


def test_reset_makes_everything_idle_again():
    model = PanelModel(graphs.research())
    model.update({"plan": "done"}, {"plan": "2 visits"})
    model.take_patch()
    model.reset()
    assert model.take_patch() == {"n0": "idle"}
    assert (model.states, model.badges) == ({}, {})


def test_badges_are_short_escaped_and_removable():
    model = PanelModel(graphs.research())
    model.update({}, {"plan": "x" * 100, "search": "a\u202eb", "draft": 3})
    assert model.drawn_badges() == {"n0": "x" * 23 + "…", "n1": "a\\u202eb", "n2": "3"}
    model.update({}, {"plan": None, "search": ""})
    assert model.drawn_badges() == {"n2": "3"}


def test_ids_are_checked_and_put_in_builder_order():
    model = PanelModel(graphs.research())
    assert model.drawable(["review", "plan", "review"]) == ("plan", "review")
    with pytest.raises(ValueError, match="no executor 'nobody' in 'research-flow'"):
        model.drawable(["nobody"])


def test_a_very_large_graph_follows_what_happens():
    model = PanelModel(graphs.layers(1300))
    assert model.element("step_0900") == ""
    model.update({"step_0900": "running"})
    assert model.follow()
    assert model.drawn_states() == {model.element("step_0900"): "running"}
    assert not model.follow()


def test_a_very_large_graph_follows_the_selection_before_the_run():
    model = PanelModel(graphs.layers(1300))
    model.update({"step_0900": "running"})
    model.selected = "step_0100"
    assert model.follow()
    assert model.element("step_0100") != ""


def test_a_panel_says_how_groups_are_opened_in_it():
    model = PanelModel(graphs.farm(400))
    assert model.note == "400 similar nodes are folded into 1; select one, then Enter or a click opens it."
    assert "expand=" in model.snapshot().text
    assert PanelModel(graphs.research()).note == ""


def test_the_list_of_nodes_tells_kinds_and_states():
    model = PanelModel(graphs.research())
    model.update({"review": "waiting"})
    assert model.names()[2:4] == [("draft", "n2"), ("review (asks a person, waiting)", "n3")]


def test_a_snapshot_is_a_picture_of_now():
    model = PanelModel(graphs.research())
    model.update({"plan": "done"})
    picture = model.snapshot()
    model.update({"plan": "failed"})
    assert "plan (start) [done]" in picture.text
