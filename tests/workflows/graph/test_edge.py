import asyncio
import copy
import pickle
from functools import partial

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.workflows.graph.edges import Edge, MissingCallable, callable_name

names = st.text(min_size=1, max_size=8)


def is_big(data: int) -> bool:
    return data > 3


async def is_big_async(data: int) -> bool:
    await asyncio.sleep(0)
    return data > 3


@pytest.mark.parametrize(("source", "target"), [("", "b"), ("a", ""), ("", "")])
def test_an_edge_without_one_of_its_ids_is_refused(source, target):
    with pytest.raises(ValueError, match="two executor ids"):
        Edge(source, target)


def test_a_condition_that_cannot_be_called_is_refused():
    with pytest.raises(TypeError, match=r"condition of edge a->b is 3"):
        Edge("a", "b", 3)  # type: ignore[arg-type]


def test_the_id_joins_source_and_target_with_the_separator():
    assert Edge.ID_SEPARATOR == "->"
    assert Edge("a", "b").id == "a->b"


@pytest.mark.parametrize(
    ("condition", "given", "recorded"),
    [
        (None, None, None),
        (is_big, None, "is_big"),
        (lambda data: True, None, "<lambda>"),
        (partial(is_big), None, "<callable>"),
        (is_big, "big enough", "big enough"),
    ],
)
def test_the_recorded_name_is_the_given_one_or_that_of_the_callable(condition, given, recorded):
    assert Edge("a", "b", condition, condition_name=given).condition_name == recorded


@pytest.mark.parametrize(
    ("condition", "data", "expected"),
    [
        (None, 1, True),
        (is_big, 4, True),
        (is_big, 3, False),
        (is_big_async, 4, True),
        (is_big_async, 3, False),
        (lambda data: [], 1, False),
        (lambda data: "yes", 1, True),
    ],
)
def test_a_message_passes_when_the_condition_is_truthy_after_awaiting_it(condition, data, expected):
    assert asyncio.run(Edge("a", "b", condition).should_route(data)) is expected


def test_an_exception_of_the_condition_reaches_the_caller_unchanged():
    error = KeyError("priority")

    def broken(data):
        raise error

    with pytest.raises(KeyError) as caught:
        asyncio.run(Edge("a", "b", broken).should_route(1))
    assert caught.value is error


def test_edges_with_different_conditions_of_one_name_are_equal():
    first, second = Edge("a", "b", lambda data: True), Edge("a", "b", lambda data: False)
    assert first == second
    assert hash(first) == hash(second)
    assert first != Edge("a", "b")
    assert first != Edge("a", "c", lambda data: True)
    assert first != "a->b"


def test_an_unconditional_edge_writes_no_condition_name():
    assert Edge("a", "b").to_dict() == {"source_id": "a", "target_id": "b"}
    assert Edge("a", "b", is_big).to_dict() == {"source_id": "a", "target_id": "b", "condition_name": "is_big"}


def test_an_edge_read_back_keeps_the_name_but_refuses_to_decide_without_the_callable():
    restored = Edge.from_dict(Edge("a", "b", is_big).to_dict())
    assert restored.condition_name == "is_big"
    assert restored.has_condition is False
    with pytest.raises(RuntimeError, match=r"'is_big' of edge a->b has no callable"):
        asyncio.run(restored.should_route(9))


def test_whoever_calls_the_condition_of_an_edge_read_back_is_refused_too():
    condition = Edge.from_dict(Edge("a", "b", is_big).to_dict()).condition
    assert condition is not None
    with pytest.raises(RuntimeError, match="is_big"):
        condition(9)


def test_has_condition_tells_whether_a_live_callable_is_attached():
    assert Edge("a", "b", is_big).has_condition is True
    assert Edge("a", "b").has_condition is False
    assert Edge("a", "b").condition is None
    assert Edge("a", "b", is_big).condition is is_big


@given(source=names, target=names, condition_name=st.none() | names)
def test_an_edge_survives_its_dict_and_json_forms(source, target, condition_name):
    edge = Edge(source, target, condition_name=condition_name)
    assert Edge.from_dict(edge.to_dict()) == edge
    assert Edge.from_json(edge.to_json()) == edge


@pytest.mark.parametrize("text", ["[]", "3", '"a"', "null"])
def test_json_that_is_no_object_is_refused(text):
    with pytest.raises(ValueError, match="expects an object"):
        Edge.from_json(text)


def test_a_dict_without_ids_is_refused():
    with pytest.raises(ValueError, match="two executor ids"):
        Edge.from_dict({"source_id": "a"})


@pytest.mark.parametrize("deep", [True, False])
def test_a_clone_is_another_edge_with_the_same_callable(deep):
    edge = Edge("a", "b", is_big)
    fresh = edge.clone(deep)
    assert fresh == edge
    assert fresh is not edge
    assert fresh.condition is is_big


def test_edges_can_be_copied_and_pickled():
    edge = Edge("a", "b", is_big)
    assert copy.deepcopy(edge) == edge
    assert pickle.loads(pickle.dumps(edge)).condition is is_big


def test_the_repr_names_ids_and_condition():
    assert repr(Edge("a", "b")) == "Edge('a', 'b')"
    assert repr(Edge("a", "b", is_big)) == "Edge('a', 'b', condition_name='is_big')"
    assert repr(MissingCallable("It")) == "MissingCallable('It')"


def test_a_callable_whose_name_is_no_text_counts_as_nameless():
    class Odd:
        __name__ = 3

        def __call__(self):
            raise AssertionError

    assert callable_name(Odd()) == "<callable>"
