import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench._clock import CountingIds
from agentbench.workflows.graph.edge_groups import EdgeGroup, FanInEdgeGroup, InternalEdgeGroup, SingleEdgeGroup
from agentbench.workflows.graph.edges import Edge, SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup
from tests.parts.errors import raises

ids = st.text(min_size=1, max_size=6)
several_ids = st.lists(ids, min_size=2, max_size=5, unique=True)
maybe_id = st.none() | ids


def condition(data):
    return bool(data)


@st.composite
def switches(draw):
    cases = [
        SwitchCaseEdgeGroupCase(condition, target, condition_name=draw(maybe_id))
        for target in draw(st.lists(ids, min_size=1, max_size=4))
    ]
    return SwitchCaseEdgeGroup(draw(ids), [*cases, SwitchCaseEdgeGroupDefault(draw(ids))], id=draw(maybe_id))


groups = st.one_of(
    st.builds(SingleEdgeGroup, ids, ids, st.sampled_from([None, condition]), id=maybe_id),
    st.builds(
        FanOutEdgeGroup,
        ids,
        several_ids,
        st.sampled_from([None, lambda data, targets: targets]),
        selection_func_name=maybe_id,
        id=maybe_id,
    ),
    st.builds(FanInEdgeGroup, several_ids, ids, id=maybe_id, mode=st.sampled_from(["auto", "independent", "barrier"])),
    switches(),
    st.builds(InternalEdgeGroup, ids, id=maybe_id),
)


@given(group=groups)
def test_every_group_survives_its_dict_and_json_forms_with_class_and_id(group):
    restored = EdgeGroup.from_dict(group.to_dict())
    assert type(restored) is type(group)
    assert restored.id == group.id
    again = EdgeGroup.from_json(type(group).from_json(group.to_json()).to_json())
    assert restored.to_dict() == json.loads(again.to_json()) == group.to_dict()


@given(group=groups, deep=st.booleans())
def test_a_clone_equals_its_original_and_shares_its_edges_only_when_shallow(group, deep):
    fresh = group.clone(deep)
    assert type(fresh) is type(group)
    assert fresh.to_dict() == copy.deepcopy(group).to_dict() == group.to_dict()
    assert fresh.edges is not group.edges
    assert (fresh.edges[0] is group.edges[0]) is not deep
    assert [edge.condition for edge in fresh.edges] == [edge.condition for edge in group.edges]


def test_a_plain_group_lists_each_end_once_in_order_of_appearance():
    group = EdgeGroup([Edge("b", "x"), Edge("a", "y"), Edge("b", "y")], id="mine", type="Special")
    assert group.source_executor_ids == ["b", "a"]
    assert group.target_executor_ids == ["x", "y"]
    assert (group.to_dict()["id"], group.to_dict()["type"]) == ("mine", "Special")
    assert (EdgeGroup().edges, EdgeGroup().type) == ([], "EdgeGroup")


def test_the_id_is_made_of_the_class_when_first_read_and_then_stays(monkeypatch):
    counting = CountingIds()
    monkeypatch.setattr(
        "agentbench.workflows.graph.edge_groups.runtime_defaults", lambda: type("Defaults", (), {"ids": counting})()
    )
    first, second = SingleEdgeGroup("a", "b"), FanInEdgeGroup(["a", "b"], "c")
    assert repr(first) == "SingleEdgeGroup(['a'] -> ['b'])"
    assert second.id == second.id == "FanInEdgeGroup/group-1"
    assert first.id == "SingleEdgeGroup/group-2"


def test_an_unknown_type_comes_back_as_a_plain_group_of_that_type():
    group = EdgeGroup.from_dict({"id": "g", "type": "FromTheFuture", "edges": [{"source_id": "a", "target_id": "b"}]})
    assert type(group) is EdgeGroup
    assert group.type == "FromTheFuture"


def test_a_registered_subclass_is_found_by_its_name_without_calling_its_constructor(monkeypatch):
    monkeypatch.setattr(EdgeGroup, "_registry", dict(EdgeGroup._registry))

    @EdgeGroup.register
    class PairGroup(EdgeGroup):
        def __init__(self, a, b):
            super().__init__([Edge(a, b), Edge(b, a)])

    restored = EdgeGroup.from_dict(PairGroup("a", "b").to_dict())
    assert type(restored) is PairGroup
    assert [edge.id for edge in restored.edges] == ["a->b", "b->a"]


def test_a_fan_in_needs_two_sources_and_names_each_once():
    for sources in ([], ["a"]):
        with raises(ValueError, "source"):
            FanInEdgeGroup(sources, "b")
    with raises(ValueError, "'a'"):
        FanInEdgeGroup(["a", "a"], "b")


@pytest.mark.parametrize(("mode", "resolved"), [("auto", None), ("independent", "independent"), ("barrier", "barrier")])
def test_a_forced_mode_is_resolved_at_once_and_auto_is_left_open(mode, resolved):
    group = FanInEdgeGroup(["b", "a"], "c", mode=mode)
    assert (group.mode, group.resolved_mode, group.prefers_barrier) == (mode, resolved, False)
    assert ("mode" in group.to_dict()) is (mode != "auto")
    assert (group.source_executor_ids, group.target_executor_ids, group.target_id) == (["b", "a"], ["c"], "c")


def test_an_unknown_fan_in_mode_is_refused():
    with raises(ValueError, "'gather'"):
        FanInEdgeGroup(["a", "b"], "c", mode="gather")  # type: ignore[arg-type]
