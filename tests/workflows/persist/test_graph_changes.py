"""How a graph changed since its checkpoint, in words and by path."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import InMemoryCheckpointStorage, Workflow, WorkflowBuilder
from agentbench.exceptions import GraphMismatchError
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup, SingleEdgeGroup
from agentbench.workflows.graph.graph import graph_signature
from agentbench.workflows.graph.selection import FanOutEdgeGroup, SwitchCaseEdgeGroup
from agentbench.workflows.persist.graph_changes import graph_changes, graph_mismatch
from tests.parts.executors import Pass, Show
from tests.parts.executors import chain as chained
from tests.parts.graphs import always
from tests.workflows.graph.test_signature import (
    Case,
    Default,
    Outer,
    Pinned,
    Writer,
    chain,
    hook,
    never,
    nodes,
    workflow,
)
from tests.workflows.storages import BareStorage, OwnStorage


def describe_changes(old: Any, new: Any) -> list[str]:
    return [change.text for change in graph_changes(old, new) if change.text is not None]


def changes(
    old: Any, new: Any, *, old_nodes: Any = "abc", new_nodes: Any = "abc", starts: Any = (("a",), ("a",))
) -> list[str]:
    before, after = (nodes(*each) if isinstance(each, str) else each for each in (old_nodes, new_nodes))
    return describe_changes(graph_signature(old, before, starts[0]), graph_signature(new, after, starts[1]))


def test_a_graph_that_is_the_same_has_not_changed():
    assert changes(chain(), chain()[::-1]) == []


def test_what_is_gone_takes_its_edges_with_it_and_what_is_new_is_named_with_its_edges():
    assert changes(chain(), [SingleEdgeGroup("a", "c")], new_nodes="ac") == [
        "executor 'b' is gone",
        "edge a -> c is new",
    ]
    assert changes(chain(), [*chain(), SingleEdgeGroup("c", "d")], new_nodes="abcd") == [
        "executor 'd' is new",
        "edge c -> d is new",
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (chain(), chain()[:1], ["edge b -> c is gone"]),
        (chain()[:1], [SingleEdgeGroup("a", "b", always)], ["condition of a -> b is new: 'always'"]),
        ([SingleEdgeGroup("a", "b", always)], chain()[:1], ["condition of a -> b is gone"]),
        (
            [SingleEdgeGroup("a", "b", always)],
            [SingleEdgeGroup("a", "b", never)],
            ["condition of a -> b changed from 'always' to 'never'"],
        ),
        ([], [SingleEdgeGroup("a", "b", always)], ["edge a -> b is new, with the condition 'always'"]),
        (
            [SingleEdgeGroup("a", "b"), SingleEdgeGroup("a", "c")],
            [FanOutEdgeGroup("a", ["b", "c"])],
            ["edge a -> b is gone", "edge a -> c is gone", "fan-out a -> b, c is new"],
        ),
        (
            [FanOutEdgeGroup("a", ["b", "c"])],
            [SwitchCaseEdgeGroup("a", [Case(always, "b"), Default("c")])],
            ["a -> b, c is a switch now, was a fan-out"],
        ),
        (
            [FanOutEdgeGroup("a", ["b", "c"], lambda data, ids: ids, selection_func_name="all")],
            [FanOutEdgeGroup("a", ["b", "c"], lambda data, ids: ids, selection_func_name="one")],
            ["selection of fan-out a -> b, c changed from 'all' to 'one'"],
        ),
        (
            [SwitchCaseEdgeGroup("a", [Case(always, "b"), Default("c")])],
            [SwitchCaseEdgeGroup("a", [Case(never, "b"), Default("c")])],
            ["cases of switch a -> b, c changed from [['b', 'always']] to [['b', 'never']]"],
        ),
        (
            [FanInEdgeGroup(["a", "b"], "c", mode="barrier")],
            [FanInEdgeGroup(["a", "b"], "c", mode="independent")],
            ["mode of fan-in a, b -> c changed from 'barrier' to 'independent'"],
        ),
    ],
)
def test_edges_are_named_by_their_ends(old: Any, new: Any, expected: list[str]):
    assert changes(old, new) == expected


def test_a_class_of_another_name_is_another_class():
    found = changes(chain(), chain(), new_nodes={**nodes("b", "c"), "a": Pinned("a")})
    assert found == [f"executor 'a' is of class acme.writer now, was of {Writer.__module__}.Writer"]


def test_the_text_says_how_a_class_that_moved_stays_the_same():
    class Moved(Writer):
        pass

    here = changes(chain(), chain(), old_nodes=nodes("a", "b", "c", kind=Moved))
    Moved.__module__ = "__main__"
    there = nodes("a", "b", "c", kind=Moved)
    before = graph_signature(chain(), there, ["a"])
    Moved.__module__ = "acme.nodes"
    found = describe_changes(before, graph_signature(chain(), there, ["a"]))
    assert len(here) == len(found) == 3
    assert found[0] == (
        "class Moved of executor 'a' moved from __main__ to acme.nodes "
        "(signature_key = '__main__.Moved' in the class would pin it)"
    )
    Moved.signature_key = "__main__.Moved"
    assert describe_changes(before, graph_signature(chain(), there, ["a"])) == []


def test_another_start_comes_first():
    assert changes(chain(), chain()[:1], starts=(("a",), ("b", "c"))) == [
        "the start is 'b' and 'c', was 'a'",
        "edge b -> c is gone",
    ]


def test_changes_inside_a_sub_workflow_say_where_they_are():
    def outer(*groups: Any, ids: str = "xy") -> Any:
        return graph_signature([], {"we": Outer("we", workflow(groups, nodes(*ids), ["x"]))}, ["we"])

    (change,) = graph_changes(outer(), outer(SingleEdgeGroup("x", "y")))
    assert change.text == "inside 'we': edge x -> y is new"
    assert change.path == "executors[we].sub_workflow.edge_groups[x->y]"
    assert describe_changes(outer(), outer(ids="x")) == ["inside 'we': executor 'y' is gone"]
    plain = graph_signature([], {"we": Outer("we", None)}, ["we"])
    assert describe_changes(plain, outer()) == ["executor 'we' runs a sub-workflow now"]
    assert describe_changes(outer(), plain) == ["executor 'we' runs no sub-workflow now"]


def test_the_part_of_a_hook_is_compared_too():
    old, new = (graph_signature([], nodes("a"), ["a"], hook({"nodes": found, "v": 1})) for found in (["a"], ["b"]))
    assert describe_changes(old, new) == ["boundary.nodes[0] changed from 'a' to 'b'"]
    without = graph_signature([], nodes("a"), ["a"])
    assert describe_changes(old, without) == ["boundary is gone"]


def test_a_changed_group_names_each_part_that_changed():
    switch = [SwitchCaseEdgeGroup("a", [Case(always, "b"), Default("c")])]
    old, new = (
        graph_signature(groups, nodes(*"abc"), ["a"]) for groups in ([FanOutEdgeGroup("a", ["b", "c"])], switch)
    )
    paths = {change.path for change in graph_changes(old, new)}
    assert paths == {f"edge_groups[a->b+c].{key}" for key in ("group_type", "cases", "default")}


edges = st.lists(st.sampled_from([("a", "b"), ("b", "c"), ("a", "c"), ("c", "b"), ("b", "a")]), unique=True)


@given(edges, edges, st.sets(st.sampled_from("abcd"), min_size=1), st.sets(st.sampled_from("abcd"), min_size=1))
def test_two_graphs_differ_in_words_exactly_if_their_signatures_do(old: Any, new: Any, some: Any, others: Any):
    before = graph_signature([SingleEdgeGroup(*e) for e in old], nodes(*some), ["a"])
    after = graph_signature([SingleEdgeGroup(*e) for e in new], nodes(*others), ["a"])
    texts = describe_changes(before, after)
    assert len(set(texts)) == len(texts)
    # Edges of what is gone go without saying, so only then may words be fewer than changes.
    assert bool(texts) == (before != after)


# ---- the error -------------------------------------------------------------------------------------


def flow(*names: str, storage: Any = None, **settings: Any) -> Workflow:
    return chained(*(Pass(name) for name in names), Show("end"), name="w", checkpoint_storage=storage, **settings)


async def test_the_error_of_a_mismatch_reads_like_a_diff_and_has_the_facts():
    storage = InMemoryCheckpointStorage()
    await flow("a", "b", "c", storage=storage).run("x")
    point = (await storage.list_checkpoints(workflow_name="w"))[0]
    changed = WorkflowBuilder(start_executor=(a := Pass("a")), name="w").add_edge(a, c := Pass("c"))
    with pytest.raises(GraphMismatchError) as caught:
        await (
            changed.add_edge(c, Show("end")).build().run(checkpoint_id=point.checkpoint_id, checkpoint_storage=storage)
        )
    assert str(caught.value) == (
        f"Checkpoint {point.checkpoint_id!r} was made by another graph than that of workflow 'w': executor 'b' is "
        "gone; edge a -> c is new. Rebuild the graph as it was, migrate the checkpoint "
        "(await workflow.migrate(...), app.migrate(...) for a thread), or start a new run."
    )
    assert [d["path"] for d in caught.value.differences] == [
        "edge_groups[a->b]",
        "edge_groups[a->c]",
        "edge_groups[b->c]",
        "executors[b]",
    ]


async def test_a_long_list_of_changes_is_cut_short_in_the_text_only():
    storage = InMemoryCheckpointStorage()
    await flow(*"abcdefghijkl", storage=storage).run("x")
    point = (await storage.list_checkpoints(workflow_name="w"))[0]
    mismatch = graph_mismatch(flow("a").graph, point)
    assert mismatch is not None
    assert "; executor 'i' is gone; and 4 more. Rebuild" in str(mismatch)
    assert len(mismatch.differences) == 24


@pytest.mark.parametrize(
    "stored",
    [None, "text", {}, {"executors": [], "edge_groups": []}, {"executors": {}, "edge_groups": [5]}],
)
async def test_without_a_readable_signature_the_error_says_so(stored: Any):
    storage = OwnStorage()
    await flow("a", storage=storage).run("x")
    point = next(iter(storage.kept.values()))
    point.metadata["graph_signature"] = stored
    with pytest.raises(GraphMismatchError) as caught:
        await flow("b").run(checkpoint_id=point.checkpoint_id, checkpoint_storage=storage)
    assert caught.value.differences == []


async def test_a_storage_without_metadata_can_say_no_more_than_that_the_graph_differs():
    storage = BareStorage()
    await flow("a", storage=storage).run("x")
    with pytest.raises(GraphMismatchError):
        await flow("b").run(checkpoint_id=next(iter(storage.kept)), checkpoint_storage=storage)


async def test_a_signature_that_was_tampered_with_is_compared_as_it_is():
    storage = OwnStorage()
    await flow("a", storage=storage).run("x")
    point = next(iter(storage.kept.values()))
    point.graph_signature_hash = "0" * 64
    with pytest.raises(GraphMismatchError):
        await flow("a").run(checkpoint_id=point.checkpoint_id, checkpoint_storage=storage)
