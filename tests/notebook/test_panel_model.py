from agentbench.notebook.graph_panel.model import PanelModel
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


def test_ids_that_are_not_drawn_stay_until_their_group_is_opened():
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


def test_a_very_large_graph_follows_what_happens():
    model = PanelModel(graphs.layers(1300))
    assert model.element("step_0900") == ""
    model.update({"step_0900": "running"})
    assert model.follow()
    assert model.drawn_states() == {model.element("step_0900"): "running"}
    assert not model.follow()
