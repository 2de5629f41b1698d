import asyncio
import logging
from typing import Any

import pytest

from agentbench.checkpoints.memory import InMemoryCheckpointStorage
from agentbench.exceptions import (
    GraphConnectivityError,
)
from agentbench.workflows.builder.workflow_builder import WorkflowBuilder
from agentbench.workflows.executors.context import WorkflowContext
from agentbench.workflows.executors.executor import Executor
from agentbench.workflows.executors.function_executor import FunctionExecutor, executor
from agentbench.workflows.executors.handlers import handler
from agentbench.workflows.executors.options import WorkflowSettings
from agentbench.workflows.graph.edge_groups import FanInEdgeGroup, InternalEdgeGroup, SingleEdgeGroup
from agentbench.workflows.graph.edges import Case, Default, SwitchCaseEdgeGroupCase, SwitchCaseEdgeGroupDefault
from agentbench.workflows.graph.selection import SwitchCaseEdgeGroup
from tests.parts.errors import raises, warns
from tests.parts.graphs import always


def node(key, takes=str, sends=str, yields=None):
    declared = {"input": takes, "output": sends} | ({} if yields is None else {"workflow_output": yields})

    async def act(message, ctx):
        if yields is not None:
            await ctx.yield_output(f"{key}:{message}")
        if sends is not None:
            await ctx.send_message(f"{key}:{message}")

    return FunctionExecutor(act, key, **declared)


def drawn(workflow):
    """The groups of a workflow but the internal ones, as kind and ends."""
    return [
        (type(group).__name__, group.source_executor_ids, group.target_executor_ids)
        for group in workflow.edge_groups
        if not isinstance(group, InternalEdgeGroup)
    ]


def run(workflow, message: Any = "x"):
    return asyncio.run(_run(workflow, message))


async def _run(workflow, message):
    return await workflow.run(message)


A, B, C, D = (node(key, yields=str) for key in "abcd")


# --------------------------------------------------------------------------------------------------------- constructor


def test_the_first_positional_argument_is_a_limit_a_name_or_the_start():
    workflow = WorkflowBuilder(5, "flow", "what it does").add_executor(A).build()
    assert (workflow.max_iterations, workflow.name, workflow.description) == (5, "flow", "what it does")
    assert WorkflowBuilder("flow").add_executor(A).build().name == "flow"
    assert WorkflowBuilder(A).build().start_executor_id == "a"
    with raises(TypeError, "starts"):
        WorkflowBuilder(A, start_executor=B)
    with raises(TypeError, "names"):
        WorkflowBuilder("flow", "other")


def test_without_a_name_one_is_generated_for_all_builds():
    builder = WorkflowBuilder(start_executor=A)
    name = builder.build().name
    assert name.startswith("WorkflowBuilder-")
    assert len(name) == len("WorkflowBuilder-") + 36
    assert builder.build(copy_executors=True).name == name


@pytest.mark.parametrize(
    ("keyword", "value"),
    [("check_types", "always"), ("agent_mode", "chat"), ("output_from", "some"), ("intermediate_output_from", "rest")],
)
def test_an_unknown_word_is_refused_at_construction(keyword, value):
    with pytest.raises(ValueError, match=keyword):
        WorkflowBuilder(**{keyword: value})


def test_settings_reach_the_workflow():
    settings = {
        "strict_context": False,
        "check_types": "error",
        "report_drops": True,
        "copy_messages": True,
        "strict_checkpoints": True,
        "checkpoint_run_kwargs": True,
    }
    assert WorkflowBuilder(**settings).add_executor(A).build().graph.settings == WorkflowSettings(**settings)  # type: ignore[arg-type]
    assert WorkflowBuilder(start_executor=A).build().graph.settings == WorkflowSettings()


def test_the_old_name_of_output_from_works_with_a_warning():
    with warns(DeprecationWarning, "output_from"):
        builder = WorkflowBuilder(start_executor=A, output_executors=[A])
    assert [e.id for e in builder.build().get_output_executors()] == ["a"]
    with raises(TypeError, "keyword"):
        WorkflowBuilder(start_executor=A, output_executors=[A], output_from=[A])


def test_a_limit_that_is_set_later_wins_and_is_not_negative():
    assert WorkflowBuilder(5).max_iterations(500).add_executor(A).build().max_iterations == 500
    assert WorkflowBuilder().max_iterations(0).add_executor(A).build().max_iterations == 0
    with raises(TypeError, "'5'", "max_iterations"):
        WorkflowBuilder(max_iterations="5")
    for refused in (lambda: WorkflowBuilder(-1), lambda: WorkflowBuilder().max_iterations(-500)):
        with raises(ValueError, "0"):
            refused()


def test_a_storage_may_be_set_by_keyword_or_by_method():
    storage = InMemoryCheckpointStorage()
    for builder in (
        WorkflowBuilder(start_executor=A, name="n", checkpoint_storage=storage),
        WorkflowBuilder(start_executor=A, name="n").checkpoint_storage(storage),
    ):
        run(builder.build(copy_executors=True))
    assert len(asyncio.run(storage.list_checkpoint_ids(workflow_name="n"))) > 1


# --------------------------------------------------------------------------------------------------------------- nodes


def test_ids_are_taken_by_the_fluent_methods_only():
    builder = WorkflowBuilder()
    for each in (A, B, C, D):
        builder.add_executor(each)
    builder.connect("a", "b").fan_out("b", ["c", "d"]).set_start("a").output_from("d")
    assert [kind for kind, _, _ in drawn(builder.build())] == ["SingleEdgeGroup", "FanOutEdgeGroup"]
    for refused in (
        lambda: builder.add_edge("a", "c"),
        lambda: builder.add_fan_out_edges("a", ["b", "c"]),
        lambda: builder.add_fan_in_edges(["a", "b"], "c"),
        lambda: builder.add_chain(["a", "b"]),
        lambda: builder.add_switch_case_edge_group("a", [Case(always, "b"), Default("c")]),
    ):
        with raises(TypeError, "node"):
            refused()


# --------------------------------------------------------------------------------------------------------------- edges


def test_both_dialects_make_the_same_groups():
    cases: list[Case | Default] = [Case(always, B), Default(C)]
    reference = (
        WorkflowBuilder(start_executor=A)
        .add_switch_case_edge_group(A, cases)
        .add_edge(B, C, always)
        .add_multi_selection_edge_group(C, [D, A], _first)
        .add_fan_in_edges([B, A], D)
        .build()
    )
    fluent = (
        WorkflowBuilder()
        .set_start(A)
        .switch(A, cases)
        .connect(B, C, always)
        .fan_out(C, [D, A], _first)
        .fan_in([B, A], D)
        .build()
    )
    assert drawn(reference) == drawn(fluent)
    assert reference.graph_signature_hash == fluent.graph_signature_hash


def _first(data, targets):
    return targets[:1]


def test_a_chain_connects_neighbours_and_may_close_a_cycle():
    assert drawn(WorkflowBuilder(A).add_chain([A, B, C, A]).build()) == [
        ("SingleEdgeGroup", ["a"], ["b"]),
        ("SingleEdgeGroup", ["b"], ["c"]),
        ("SingleEdgeGroup", ["c"], ["a"]),
    ]
    with raises(ValueError, "least"):
        WorkflowBuilder(A).add_chain([A])


@pytest.mark.parametrize(
    ("connect", "name"),
    [
        (lambda builder: builder.add_chain(A), "executors"),
        (lambda builder: builder.add_fan_out_edges(A, B), "targets"),
        (lambda builder: builder.add_multi_selection_edge_group(A, B, _first), "targets"),
        (lambda builder: builder.fan_out(A, B), "targets"),
        (lambda builder: builder.add_fan_in_edges(A, B), "sources"),
        (lambda builder: builder.fan_in("ab", C), "sources"),
        (lambda builder: builder.switch(A, Default(B)), "cases"),
    ],
)
def test_one_node_where_a_list_is_expected_is_refused(connect, name):
    with raises(TypeError, name, f"{name}=[...]"):
        connect(WorkflowBuilder(A))


def test_a_third_node_where_a_condition_is_expected_is_refused_with_the_call_that_makes_a_chain():
    for connect in (WorkflowBuilder(A).connect, WorkflowBuilder(A).add_edge):
        with raises(TypeError, "a->b", "add_chain([a, b, c])"):
            connect(A, B, C)


def test_cases_may_be_nodes_ids_pairs_or_descriptors():
    expected = [SwitchCaseEdgeGroupCase(always, "b"), SwitchCaseEdgeGroupDefault("c")]
    for cases in (
        [Case(always, B), Default(C)],
        [(always, B), Default("c")],
        [(always, "b"), SwitchCaseEdgeGroupDefault("c")],
        expected,
    ):
        group = WorkflowBuilder(A).add_executor(B).add_executor(C).switch(A, cases).build().edge_groups[0]
        assert isinstance(group, SwitchCaseEdgeGroup)
        assert group.cases == expected


def test_something_that_is_no_case_is_refused():
    with raises(TypeError, "switch"):
        WorkflowBuilder(A).switch(A, [B, Default(C)])


def test_a_group_made_by_hand_can_be_added_and_is_checked_at_build():
    group = SingleEdgeGroup("a", "b", always, id="mine")
    assert WorkflowBuilder(A).add_executor(B).add_edge_group(group).build().edge_groups[0] is group
    with raises(GraphConnectivityError, "['z']"):
        WorkflowBuilder(A).add_edge_group(SingleEdgeGroup("a", "z")).build()
    with raises(ValueError, "internal"):
        WorkflowBuilder(A).add_edge_group(InternalEdgeGroup("a"))


# --------------------------------------------------------------------------------------------------------------- start


class Hook:
    """Owns the reachability of its graph, and does nothing else."""

    failure_policy = "cancel"
    reachability = False

    def signature(self):
        return {"dialect": "test"}


def test_a_hook_that_owns_reachability_replaces_the_check():
    hook: Any = Hook()
    assert WorkflowBuilder().add_executor(A).add_executor(B).boundary_hook(hook).build().start_executor_ids == ("a",)
    workflow = WorkflowBuilder(A).add_executor(B).boundary_hook(hook).build()
    assert list(workflow.executors) == ["a", "b"]
    assert workflow.graph_signature["boundary"] == {"dialect": "test"}
    assert workflow.boundary_hook is hook


# --------------------------------------------------------------------------------------------------------- designation


def designated(builder):
    workflow = builder.add_chain([A, B, C]).build()
    return (
        [each.id for each in workflow.get_output_executors()],
        [each.id for each in workflow.get_intermediate_executors()],
    )


def test_methods_add_to_the_designation():
    assert designated(WorkflowBuilder(A).output_from(C).output_from(B)) == (["b", "c"], [])
    assert designated(WorkflowBuilder(A, output_from=[C]).output_from(B, A)) == (["a", "b", "c"], [])
    assert designated(WorkflowBuilder(A).output_from(C).intermediate_output_from("all_other")) == (["c"], ["a", "b"])
    assert designated(WorkflowBuilder(A).output_from("all")) == (["a", "b", "c"], [])


# --------------------------------------------------------------------------------------------------------------- build


def test_a_second_build_shares_its_executors_and_says_so(caplog):
    builder = WorkflowBuilder(A, name="flow").connect(A, B)
    with caplog.at_level(logging.WARNING):
        first = builder.build()
        assert caplog.text == ""
        second = builder.build()
    assert "'flow'" in caplog.text
    assert first.executors["b"] is second.executors["b"]
    assert first.graph_signature_hash == second.graph_signature_hash


def test_copied_executors_are_of_this_workflow_alone(caplog):
    class Counter(Executor):
        def __init__(self):
            super().__init__("counter")
            self.texts: list[str] = []

        @handler
        async def count(self, message: str, ctx: WorkflowContext[str, int]) -> None:
            self.texts.append(message)
            await ctx.yield_output(len(self.texts))

    builder = WorkflowBuilder(Counter())
    with caplog.at_level(logging.WARNING):
        first, second = builder.build(copy_executors=True), builder.build(copy_executors=True)
    assert caplog.text == ""
    assert run(first).outputs == [1]
    assert run(first).outputs == [2]
    assert run(second).outputs == [1]


# ----------------------------------------------------------------------------------------------------- whole workflows


@executor(id="up")
async def up(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message(text.upper())


@executor(id="show")
async def show(text: str, ctx: WorkflowContext[str, str]) -> None:
    await ctx.yield_output(text + "!")


def test_name_limit_and_designation_do_not_change_the_hash():
    plain = WorkflowBuilder(up).add_edge(up, show).build()
    other = (
        WorkflowBuilder(3, "other", "what it does", start_executor=up, output_from=[show]).add_edge(up, show).build()
    )
    assert other.graph_signature_hash == plain.graph_signature_hash


@executor(id="src")
async def src(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message(text)


@executor(id="l")
async def left(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message("l:" + text)


@executor(id="r")
async def right(text: str, ctx: WorkflowContext[str]) -> None:
    await ctx.send_message("r:" + text)


@executor(id="each")
async def each(text: str, ctx: WorkflowContext[str, str]) -> None:
    await ctx.yield_output(text)


@executor(id="join")
async def join(texts: list[str], ctx: WorkflowContext[str, list[str]]) -> None:
    await ctx.yield_output(texts)


@pytest.mark.parametrize(("target", "expected"), [(each, ["l:x", "r:x"]), (join, [["l:x", "r:x"]])])
def test_a_fan_in_delivers_in_the_form_that_the_target_takes(target, expected):
    workflow = WorkflowBuilder(name="i").add_executor(src).fan_out(src, [left, right]).fan_in([left, right], target)
    assert sorted(run(workflow.build()).outputs) == expected


@pytest.mark.parametrize(("add", "expected"), [("fan_in", ["l:x", "r:x"]), ("add_fan_in_edges", [["l:x", "r:x"]])])
def test_an_undecided_fan_in_is_decided_by_the_first_message_and_the_method_where_both_forms_are_taken(add, expected):
    async def pass_on(text: str, ctx: WorkflowContext[Any]) -> None:
        await ctx.send_message(f"{ctx.executor_id}:{text}")

    async def take(value: str | list[str], ctx: WorkflowContext[str, Any]) -> None:
        await ctx.yield_output(value)

    sources = [FunctionExecutor(pass_on, key) for key in ("l", "r")]
    builder = WorkflowBuilder(src).fan_out(src, sources)
    getattr(builder, add)(sources, FunctionExecutor(take, "t"))
    workflow = builder.build()
    assert [group.resolved_mode for group in workflow.edge_groups if isinstance(group, FanInEdgeGroup)] == [None]
    assert run(workflow).outputs == expected
