from __future__ import annotations

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from agentbench.notebook import ComparePlot
from agentbench.notebook.history.compare import RunComparison, Side, compare_sides
from agentbench.notebook.history.run_history import ExecutorCall, Superstep

#: The messages of an executor that sent none.
DONE: list[Any] = []


def side(name: str, *steps: Any, first: int = 0, status: str | None = None) -> Side:
    """A side; each step is what executors sent, or (that, state)."""
    made = {}
    for number, step in enumerate(steps, first):
        sent, state = step if isinstance(step, tuple) else (step, {})
        calls = {each: ExecutorCall(number, each, status="completed", results=sent[each]) for each in sent}
        made[number] = Superstep(number, calls, state=state)
    return Side(name, made, status)


def ops(found: RunComparison) -> list[tuple[int, str, str]]:
    return [(row.superstep, row.part, row.op) for row in found.rows]


SENT = {"plan": ["x"]}


def test_what_is_sent_differs_by_value_and_by_type():
    for value in ("y", 1, None):
        found = compare_sides(side("a", SENT), side("b", {"plan": [value]}))
        assert ops(found) == [(0, "plan", "changed")]
    found = compare_sides(side("a", {"p": [1]}), side("b", {"p": [True]}))
    assert ops(found) == [(0, "p", "changed")]


def test_a_state_that_differs_has_a_row_at_the_beginning_and_at_each_change():
    states: list[Any] = [({}, {"n": 1}), ({}, {"n": 2}), ({}, {"n": 2}), ({}, {"n": 3})]
    others: list[Any] = [({}, {"n": 1}), ({}, {"n": 5}), ({}, {"n": 5}), ({}, {"n": 5, "new": 1})]
    found = compare_sides(side("a", *states), side("b", *others))
    assert ops(found) == [(1, "n", "changed"), (3, "n", "changed"), (3, "new", "only_b")]
    assert found.verdict == "Equal up to superstep 0. In superstep 1, state n differs: 2 in a, 5 in b."


def test_secrets_of_the_state_are_masked_on_both_sides():
    found = compare_sides(side("a", ({}, {"api_key": "sk-1"})), side("b", ({}, {"api_key": "sk-2"})))
    (row,) = found.rows
    assert row.op == "changed"
    assert "sk-" not in ComparePlot(found, []).text
    assert (row.a, row.b) == ("•••", "••• (differs within)")


def test_a_side_that_begins_later_is_compared_from_there_on():
    found = compare_sides(side("a", {"start": DONE}, SENT, {"show": DONE}), side("b", SENT, {"show": DONE}, first=1))
    assert (found.begins, found.first, found.differing_executors) == (1, None, set())
    assert "b begins at superstep 1" in found.verdict
    assert found.title == "a and b: 2 of 2 supersteps equal"


outcomes = st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(0, 2), max_size=2), max_size=3)
steps = st.lists(st.tuples(outcomes, st.dictionaries(st.sampled_from("xy"), st.integers(0, 2), max_size=2)), max_size=5)


@given(steps)
def test_a_side_never_differs_from_itself(made: Any):
    assert compare_sides(side("a", *made), side("b", *made)).first is None


@given(steps, steps)
def test_both_directions_find_the_same_places(one: Any, other: Any):
    there, back = compare_sides(side("a", *one), side("b", *other)), compare_sides(side("a", *other), side("b", *one))
    turned = {"only_a": "only_b", "only_b": "only_a"}
    assert sorted(ops(there)) == sorted((step, part, turned.get(op, op)) for step, part, op in ops(back))
    assert there.first == back.first
