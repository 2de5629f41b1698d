from typing import Annotated, Any

import pytest

from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup, resolve_fan_in_mode, types_fit


class Node(Executor):
    """Declares the types of a test."""

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
    assert types_fit((Annotated[int, []], str), (str,))  # cannot be hashed
    for outputs, inputs in (((int,), (str, bytes)), ((), (str,)), ((str,), ()), ((Annotated[int, []],), (str,))):
        assert not types_fit(outputs, inputs)


@pytest.mark.parametrize(
    ("takes", "sends", "undecided"),
    [
        ([str], ([str], [str]), "independent"),
        ([list[str]], ([list[str]], [list[str]]), "independent"),
        ([list[str]], ([str], [str]), "barrier"),
        ([list[str | int]], ([str], [int]), "barrier"),
        ([list[str]], ([str], []), "barrier"),
        ([str, list[str]], ([str], [str]), "preferred"),
        ([str | list[str]], ([str], [str]), "preferred"),
        ([Any], ([], []), "preferred"),
        ([object], ([Any], []), "preferred"),
        ([bytes], ([str], [str]), "preferred"),  # takes neither, which the type check reports
        ([list[str]], ([], []), None),
        ([list[str]], ([Any], [Any, str]), None),
        ([], ([str], [str]), None),
    ],
)
def test_the_target_decides_and_the_group_where_it_takes_both_forms(takes, sends, undecided):
    for prefers_barrier, preferred in ((False, "independent"), (True, "barrier")):
        expected = preferred if undecided == "preferred" else undecided
        assert resolve(takes, *sends, prefers_barrier=prefers_barrier) == expected
