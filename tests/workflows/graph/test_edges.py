import asyncio
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.workflows.graph.edges import Edge, SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault
from tests.parts.errors import raises

names = st.text(min_size=1, max_size=8)


def is_big(data: int) -> bool:
    return data > 3


async def is_big_async(data: int) -> bool:
    await asyncio.sleep(0)
    return data > 3


class Nameless:
    __name__ = 3

    def __call__(self, data):
        raise AssertionError


# ---- edges -----------------------------------------------------------------------------------------


def test_an_edge_has_an_id_of_both_ends_and_needs_both():
    assert Edge("a", "b").id == f"a{Edge.ID_SEPARATOR}b" == "a->b"
    for source, target in (("", "b"), ("a", "")):
        with raises(ValueError, "executor"):
            Edge(source, target)
    with raises(ValueError, "executor"):
        Edge.from_dict({"source_id": "a"})


@pytest.mark.parametrize(
    ("condition", "name", "recorded"),
    [
        (None, None, None),
        (lambda data: True, None, "<lambda>"),
        (partial(is_big), None, "<callable>"),
        (Nameless(), None, "<callable>"),
        (is_big, "big enough", "big enough"),
    ],
    ids=["none", "lambda", "partial", "no text", "explicit"],
)
def test_a_condition_is_recorded_by_its_explicit_name_or_its_own(condition, name, recorded):
    assert Edge("a", "b", condition, condition_name=name).condition_name == recorded


def test_a_condition_that_cannot_be_called_is_refused():
    with raises(TypeError, "a->b", "3"):
        Edge("a", "b", 3)  # type: ignore[arg-type]
    with raises(TypeError, "'bin'", "'spam'"):
        SwitchCaseEdgeGroupCase("spam", "bin")  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("condition", "data", "passes"),
    [
        (None, 1, True),
        (is_big, 3, False),
        (is_big_async, 4, True),
        (is_big_async, 3, False),
        (lambda d: "yes", 1, True),
    ],
)
def test_a_message_passes_when_the_condition_is_truthy_after_awaiting_it(condition, data, passes):
    edge = Edge("a", "b", condition)
    assert asyncio.run(edge.should_route(data)) is passes
    assert edge.has_condition is (condition is not None)
    assert edge.condition is condition


def test_edges_and_branches_are_equal_by_ids_and_condition_name():
    first, second = Edge("a", "b", lambda data: True), Edge("a", "b", lambda data: False)
    assert first == second
    assert first != Edge("a", "b")
    assert first != "a->b"
    assert SwitchCaseEdgeGroupCase(lambda d: True, "x") == SwitchCaseEdgeGroupCase(lambda d: False, "x")
    assert SwitchCaseEdgeGroupCase(is_big, "x") != SwitchCaseEdgeGroupCase(is_big, "y")
    assert SwitchCaseEdgeGroupDefault("x") != SwitchCaseEdgeGroupCase(is_big, "x")
    assert SwitchCaseEdgeGroupDefault("x") != SwitchCaseEdgeGroupDefault("y")
    parts = [first, second, *[SwitchCaseEdgeGroupCase(is_big, "x")] * 2, *[SwitchCaseEdgeGroupDefault("x")] * 2]
    assert len(set(parts)) == 3


@given(source=names, target=names, condition_name=st.none() | names)
def test_an_edge_survives_its_dict_and_json_forms(source, target, condition_name):
    edge = Edge(source, target, condition_name=condition_name)
    assert Edge.from_dict(edge.to_dict()) == edge
    assert Edge.from_json(edge.to_json()) == edge


def test_an_edge_read_back_refuses_to_decide_without_the_callable():
    assert Edge("a", "b").to_dict() == {"source_id": "a", "target_id": "b"}
    restored = Edge.from_dict(Edge("a", "b", is_big).to_dict())
    assert (restored.condition_name, restored.has_condition) == ("is_big", False)
    with raises(RuntimeError, "'is_big'", "a->b"):
        asyncio.run(restored.should_route(9))


def test_json_that_is_no_object_is_refused():
    with raises(ValueError, "object"):
        Edge.from_json("[]")


# ---- branches of a switch --------------------------------------------------------------------------


def test_branches_write_target_kind_and_condition_name():
    case = SwitchCaseEdgeGroupCase(is_big, "bin")
    assert case.to_dict() == {"target_id": "bin", "type": "Case", "condition_name": "is_big"}
    named = SwitchCaseEdgeGroupCase(is_big, "bin", condition_name="heavy")
    assert (named.condition_name, named.condition) == ("heavy", is_big)
    default = SwitchCaseEdgeGroupDefault("inbox")
    assert default.to_dict() == {"target_id": "inbox", "type": "Default"}
    assert SwitchCaseEdgeGroupDefault.from_dict(default.to_dict()) == default


def test_a_case_without_condition_or_read_back_raises_when_it_is_called():
    nameless = SwitchCaseEdgeGroupCase(None, "bin")
    assert nameless.to_dict() == {"target_id": "bin", "type": "Case"}
    with raises(RuntimeError, "'bin'"):
        nameless.condition("x")
    case = SwitchCaseEdgeGroupCase.from_json(SwitchCaseEdgeGroupCase(is_big, "bin").to_json())
    with raises(RuntimeError, "'is_big'"):
        case.condition("x")


def test_a_branch_without_target_is_refused():
    for make in (lambda: SwitchCaseEdgeGroupCase(is_big, ""), lambda: SwitchCaseEdgeGroupDefault("")):
        with raises(ValueError, "target"):
            make()
