import json
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import FunctionExecutor
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup, InternalEdgeGroup, SingleEdgeGroup
from agentbench.workflows.graph.edges import SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault
from agentbench.workflows.graph.graph import (
    graph_signature,
    signature_hash,
)
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup
from tests.parts.graphs import always

Case, Default = SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault


class Writer(Executor):
    def __init__(self, key):
        super().__init__(key, defer_discovery=True)


class Pinned(Writer):
    signature_key = "acme.writer"


class Derived(Pinned):
    pass


class Outer(Writer):
    def __init__(self, key, workflow):
        super().__init__(key)
        self.workflow = workflow


class Hook:
    failure_policy = "cancel"
    reachability = True

    def __init__(self, signature):
        self._signature = signature

    def signature(self):
        return self._signature


def hook(signature) -> Any:
    return Hook(signature)


def nodes(*ids, kind=Writer):
    return {key: kind(key) for key in ids}


def hash_of(groups, executors=None, starts=("a",)):
    return signature_hash(graph_signature(groups, executors or nodes("a", "b", "c"), starts))


def chain():
    return [SingleEdgeGroup("a", "b"), SingleEdgeGroup("b", "c")]


def workflow(groups, executors, starts=("in",)):
    return SimpleNamespace(edge_groups=groups, executors=executors, start_executor_ids=list(starts))


def never(data):
    return False


def test_a_signature_names_start_classes_and_edges_and_is_json():
    signature = graph_signature([SingleEdgeGroup("a", "b", always)], nodes("b", "a"), ["a"])
    assert json.loads(json.dumps(signature)) == signature
    assert signature == {
        "start_executor": "a",
        "executors": {"a": f"{__name__}.Writer", "b": f"{__name__}.Writer"},
        "edge_groups": [
            {
                "group_type": "SingleEdgeGroup",
                "sources": ["a"],
                "targets": ["b"],
                "edges": [{"source": "a", "target": "b", "condition": "always"}],
            }
        ],
    }


group_lists = st.permutations(
    [
        SingleEdgeGroup("a", "b"),
        SingleEdgeGroup("b", "c", always),
        FanOutEdgeGroup("c", ["d", "e"]),
        FanInEdgeGroup(["d", "e"], "a", mode="barrier"),
        SwitchCaseEdgeGroup("e", [Case(always, "b"), Default("c")]),
    ]
)


@given(groups=group_lists, ids=st.permutations("abcde"))
def test_the_order_of_groups_and_executors_does_not_matter(groups, ids):
    signature = graph_signature(groups, nodes(*ids), ["a"])
    reference = graph_signature(sorted(groups, key=repr), nodes(*"abcde"), ["a"])
    assert signature == reference
    assert signature_hash(signature) == signature_hash(reference)


@given(targets=st.permutations("bcde"))
def test_the_order_of_edges_inside_a_group_does_not_matter(targets):
    executors = nodes(*"abcde")
    reference = [FanOutEdgeGroup("a", ["b", "c", "d", "e"])]
    assert hash_of([FanOutEdgeGroup("a", targets)], executors) == hash_of(reference, executors)


def test_ids_of_groups_internal_edges_and_code_of_conditions_do_not_matter():
    plain = hash_of([SingleEdgeGroup("a", "b", lambda data: True, id="one")])
    assert plain == hash_of([SingleEdgeGroup("a", "b", lambda data: False, id="two"), InternalEdgeGroup("a")])


@pytest.mark.parametrize(
    "changed",
    [
        [*chain(), SingleEdgeGroup("a", "c")],
        [SingleEdgeGroup("a", "b", always), SingleEdgeGroup("b", "c")],
        [SingleEdgeGroup("a", "b"), SingleEdgeGroup("c", "b")],
    ],
    ids=["edge added", "condition added", "edge turned round"],
)
def test_another_edge_or_condition_changes_the_hash(changed):
    assert hash_of(changed) != hash_of(chain())


def test_the_name_of_a_selection_function_matters():
    def group(name):
        return [FanOutEdgeGroup("a", ["b", "c"], lambda data, targets: targets, selection_func_name=name)]

    assert hash_of(group("by_tag")) == hash_of(group("by_tag"))
    assert hash_of(group("by_tag")) != hash_of(group("by_size"))
    assert hash_of(group("by_tag")) != hash_of([FanOutEdgeGroup("a", ["b", "c"])])


def test_names_targets_and_order_of_switch_cases_matter_but_not_the_place_of_the_default():
    def switch(*cases):
        return hash_of([SwitchCaseEdgeGroup("a", cases)])

    first = switch(Case(always, "b"), Case(never, "c"), Default("b"))
    assert first == switch(Case(always, "b"), Default("b"), Case(never, "c"))
    assert first != switch(Case(never, "b"), Case(always, "c"), Default("b"))
    assert first != switch(Case(never, "c"), Case(always, "b"), Default("b"))
    assert first != switch(Case(always, "b"), Case(never, "c"), Default("c"))


def test_what_a_fan_in_does_matters_whether_it_was_forced_or_found():
    def fan_in(takes, *, mode="auto", prefers_barrier=False):
        group = FanInEdgeGroup(["a", "b"], "c", mode=mode)
        group.prefers_barrier = prefers_barrier
        sources = {key: FunctionExecutor(lambda m: None, key, input=str, output=str) for key in "ab"}
        return hash_of([group], {**sources, "c": FunctionExecutor(lambda m: None, "c", input=takes)})

    assert fan_in(list[str]) == fan_in(list[str], mode="barrier") == fan_in(object, prefers_barrier=True)
    assert fan_in(str) == fan_in(str, mode="independent") == fan_in(object)
    assert fan_in(str) != fan_in(list[str])


def test_a_fan_in_that_waits_says_nothing_about_its_mode_and_an_undecided_one_does():
    barrier = graph_signature([FanInEdgeGroup(["a", "b"], "c", mode="barrier")], nodes(*"abc"), ["a"])
    undecided = graph_signature([FanInEdgeGroup(["a", "b"], "c")], nodes(*"abc"), ["a"])
    assert "mode" not in barrier["edge_groups"][0]
    assert undecided["edge_groups"][0]["mode"] == "auto"


def test_ids_classes_and_start_of_executors_matter():
    base = hash_of([], nodes("a", "b"))
    assert base != hash_of([], nodes("a", "x"))
    assert base != hash_of([], nodes("a", "b", kind=Pinned))
    assert base != hash_of([], nodes("a", "b"), starts=("b",))


def test_a_class_can_pin_its_identity_and_a_subclass_does_not_inherit_it():
    executors = graph_signature([], {"a": Pinned("a"), "b": Derived("b")}, ["a"])["executors"]
    assert executors == {"a": "acme.writer", "b": f"{__name__}.Derived"}


def test_several_starts_are_listed_and_their_order_does_not_matter():
    signature = graph_signature([], nodes("a", "b"), ["b", "a"])
    assert signature["start_executor"] == "a"
    assert signature["start_executors"] == ["a", "b"]
    assert signature == graph_signature([], nodes("a", "b"), ["a", "b"])
    assert "start_executors" not in graph_signature([], nodes("a"), ["a"])


def test_a_hook_enters_with_its_signature_or_not_at_all():
    assert graph_signature([], nodes("a"), ["a"], hook({"v": 1}))["boundary"] == {"v": 1}
    assert graph_signature([], nodes("a"), ["a"], hook(None)) == graph_signature([], nodes("a"), ["a"])


def test_a_sub_workflow_is_nested_in_the_signature():
    inner = workflow([SingleEdgeGroup("in", "out")], nodes("in", "out"))
    identity = graph_signature([], {"we": Outer("we", inner)}, ["we"])["executors"]["we"]
    assert identity["type"] == f"{__name__}.Outer"
    assert identity["sub_workflow"] == graph_signature(inner.edge_groups, inner.executors, ["in"])


def test_a_workflow_that_contains_itself_has_a_signature():
    executors: dict[str, Executor] = {}
    loop = workflow([], executors, starts=("we",))
    executors["we"] = Outer("we", loop)
    signature = graph_signature([], executors, ["we"])
    assert json.dumps(signature).count("recursive") == 1
