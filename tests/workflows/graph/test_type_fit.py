from typing import Annotated, Any

import pytest

from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup
from agentbench.workflows.graph.type_fit import as_list_types, resolve_fan_in_mode, types_fit


class Node(Executor):
    """Declares whatever a test wants."""

    def __init__(self, key, takes=(), sends=()):
        super().__init__(key, defer_discovery=True)
        self.takes, self.sends = list(takes), list(sends)

    @property
    def input_types(self):
        return self.takes

    @property
    def output_types(self):
        return self.sends


def resolve(takes, *sends, prefers_barrier=False, mode="auto"):
    sources = [Node(f"s{number}", sends=types) for number, types in enumerate(sends)]
    group = FanInEdgeGroup([source.id for source in sources], "t", mode=mode)
    group.prefers_barrier = prefers_barrier
    return resolve_fan_in_mode(group, {node.id: node for node in [*sources, Node("t", takes)]})


def test_one_fitting_pair_of_types_is_enough():
    assert types_fit((int, str), (str,))
    assert not types_fit((int,), (str, bytes))
    assert not types_fit((), (str,))
    assert not types_fit((str,), ())


def test_types_that_cannot_be_hashed_are_compared_all_the_same():
    assert types_fit((Annotated[int, []], str), (str,))
    assert not types_fit((Annotated[int, []],), (str,))


def test_lists_of_the_sent_types_are_compared_for_a_barrier():
    assert types_fit(as_list_types((str,)), (list[str],))
    assert types_fit(as_list_types((str,)), (list,))
    assert types_fit(as_list_types((str,)), (list[str | int],))
    assert not types_fit(as_list_types((str,)), (str,))
    assert not types_fit(as_list_types((str,)), (list[int],))


@pytest.mark.parametrize("prefers_barrier", [True, False])
def test_a_target_that_takes_single_messages_gets_them_one_by_one(prefers_barrier):
    assert resolve([str], [str], [str], prefers_barrier=prefers_barrier) == "independent"


@pytest.mark.parametrize("prefers_barrier", [True, False])
def test_a_target_that_takes_only_lists_gets_one_list(prefers_barrier):
    assert resolve([list[str]], [str], [str], prefers_barrier=prefers_barrier) == "barrier"
    assert resolve([list[str | int]], [str], [int], prefers_barrier=prefers_barrier) == "barrier"


@pytest.mark.parametrize("takes", [[str, list[str]], [Any], [object], [str | list[str]]])
def test_a_target_that_takes_both_gets_what_the_group_prefers(takes):
    assert resolve(takes, [str], [str]) == "independent"
    assert resolve(takes, [str], [str], prefers_barrier=True) == "barrier"


def test_a_target_that_takes_anything_decides_without_the_sources():
    assert resolve([Any], [], [], prefers_barrier=True) == "barrier"
    assert resolve([object], [Any], []) == "independent"


def test_a_forced_mode_stands_against_the_types():
    assert resolve([str], [str], [str], mode="barrier") == "barrier"
    assert resolve([list[str]], [str], [str], mode="independent") == "independent"


@pytest.mark.parametrize("sends", [([], []), ([Any], []), ([Any], [Any, str])])
def test_sources_that_declare_nothing_or_anything_leave_the_decision_to_the_first_message(sends):
    assert resolve([list[str]], *sends) is None


def test_a_target_that_declares_nothing_leaves_the_decision_to_the_first_message():
    assert resolve([], [str], [str]) is None


def test_sources_that_declare_something_decide_for_those_that_do_not():
    assert resolve([list[str]], [str], []) == "barrier"


def test_lists_that_are_the_messages_themselves_are_handed_on_one_by_one():
    assert resolve([list[str]], [list[str]], [list[str]]) == "independent"


def test_a_target_that_takes_neither_gets_what_the_group_prefers_so_that_the_type_check_reports_it():
    assert resolve([bytes], [str], [str]) == "independent"
    assert resolve([bytes], [str], [str], prefers_barrier=True) == "barrier"


def test_executors_that_are_missing_leave_the_decision_open():
    assert resolve_fan_in_mode(FanInEdgeGroup(["a", "b"], "c"), {}) is None
    assert resolve_fan_in_mode(FanInEdgeGroup(["a", "b"], "c"), {"c": Node("c", [list[str]])}) is None
