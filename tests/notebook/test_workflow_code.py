"""The builder code of a workflow, which has to make the same graph."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentbench import Case, Default, InMemoryCheckpointStorage, SingleEdgeGroup, Workflow, WorkflowBuilder
from agentbench.notebook import define_workflow
from agentbench.workflows.draw.python_code import names_in_code, to_python
from tests.notebook.graphs import Gather, Step, Yield, desk, farm, is_spam, layers, needs_review, pick, research


def run_code(workflow: Workflow) -> Workflow:
    """What the code of a workflow makes."""
    variables = names_in_code(workflow)
    needed = dict(variables)
    exec(to_python(workflow), needed)
    (made,) = [value for name, value in needed.items() if name not in variables and isinstance(value, Workflow)]
    return made


def assert_same(made: Workflow, workflow: Workflow) -> None:
    assert made.graph_signature == workflow.graph_signature
    assert list(made.executors) == list(workflow.executors)
    assert made.start_executor_ids == workflow.start_executor_ids
    theirs, ours = made.to_dict(), workflow.to_dict()
    for key in ("name", "max_iterations", "output_executors", "intermediate_executors"):
        assert theirs[key] == ours[key]
    assert made.graph.settings == workflow.graph.settings
    assert made.description == workflow.description


def single() -> Workflow:
    return WorkflowBuilder(Yield("only"), name="single").build()


def odd_names() -> Workflow:
    steps = [Step("a-1"), Step("a 1"), Step("1st"), Step("class"), Step("WorkflowBuilder"), Step("übung"), Step("?")]
    return WorkflowBuilder(name="odd names").add_chain(steps).build()


def nameless_conditions() -> Workflow:
    a, b, c = Step("a"), Step("b"), Step("c")
    return (
        WorkflowBuilder(start_executor=a, name="lambdas")
        .add_edge(a, b, lambda message: True)
        .add_edge(a, c, lambda message: False)
        .build()
    )


def own_groups() -> Workflow:
    a, b = Step("a"), Step("b")
    group = SingleEdgeGroup("a", "b", needs_review, condition_name="another name")
    return WorkflowBuilder(start_executor=a, name="own").add_executor(b).add_edge_group(group).build()


def settings() -> Workflow:
    a, b, c = Yield("a"), Yield("b"), Yield("c")
    return (
        WorkflowBuilder(
            7, name="settings", description='says "hello" and it\'s "\n\u202e', strict_context=False, copy_messages=True
        )
        .connect(a, b)
        .connect(b, c)
        .output_from(c)
        .intermediate_output_from(a)
        .build()
    )


def named_functions() -> Workflow:
    a, b, c = Step("a"), Step("b"), Step("c")
    return (
        WorkflowBuilder(name="named")
        .switch(a, [Default(b), Case(is_spam, c, condition_name="other")])
        .fan_out(b, [a, c], pick, selection_func_name="chosen")
        .set_start(a)
        .build()
    )


def forced_fan_in() -> Workflow:
    a, b, c, d = Step("a"), Step("b"), Step("c"), Gather("d")
    return WorkflowBuilder(name="forced").fan_out(a, [b, c]).fan_in([b, c], d, mode="independent").build()


def two_starts() -> Workflow:
    return WorkflowBuilder(name="two").fan_in([Step("left"), Step("right")], Gather("join")).build()


def a_cycle() -> Workflow:
    a, b = Step("a"), Step("b")
    return WorkflowBuilder(start_executor=b, name="cycle").add_edge(a, b).add_edge(b, a).build()


def named_like_its_executor() -> Workflow:
    return WorkflowBuilder(Yield("flow"), name="flow").build()


SHAPES: list[Callable[[], Workflow]] = [
    research,
    desk,
    lambda: farm(3),
    lambda: farm(40),
    lambda: layers(25),
    single,
    odd_names,
    nameless_conditions,
    own_groups,
    settings,
    named_functions,
    forced_fan_in,
    two_starts,
    a_cycle,
    named_like_its_executor,
]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("shape", SHAPES)
def test_the_code_makes_the_same_graph(shape: Callable[[], Workflow]) -> None:
    workflow = shape()
    assert_same(run_code(workflow), workflow)
    compile(to_python(workflow), "code", "exec")
    assert all(len(line) <= 120 for line in to_python(workflow).splitlines())


def test_the_code_reads_as_a_person_would_write_it() -> None:
    assert to_python(research()) == (
        "# Needs: plan, search, draft, review, publish, needs_review, score_low\n"
        "from agentbench import WorkflowBuilder\n"
        "\n"
        "research_flow = (\n"
        '    WorkflowBuilder(name="research-flow")\n'
        "    .connect(plan, search)\n"
        "    .connect(search, draft)\n"
        "    .connect(draft, review, needs_review)\n"
        "    .connect(review, publish)\n"
        "    .connect(review, draft, score_low)\n"
        "    .build()\n"
        ")\n"
    )


def test_variables_that_are_passed_are_used() -> None:
    first, last = Step("a"), Yield("b")
    workflow = WorkflowBuilder(name="flow").connect(first, last, needs_review).build()
    code = workflow.to_python({"first": first, "last": last, "ready": needs_review})
    assert ".connect(first, last, ready)" in code


def test_storages_are_named_and_not_written_down() -> None:
    storage = InMemoryCheckpointStorage()
    workflow = WorkflowBuilder(Yield("a"), name="kept", checkpoint_storage=storage).build()
    assert "checkpoint_storage=storage" in to_python(workflow)
    assert names_in_code(workflow)["storage"] is storage


# ---- text -> graph -> code -> graph ----------------------------------------------------------------------------------

NODES = "abcdef"


def is_ready(message: str) -> bool:
    return True


@st.composite
def graph_texts(draw: st.DrawFn) -> str:
    """Texts of graphs in which everything is reached from `a`."""
    lines: list[str] = []
    edges: set[tuple[str, str]] = set()

    def add(source: str, targets: list[str], line: str) -> None:
        if not edges & {(source, target) for target in targets}:
            edges.update((source, target) for target in targets)
            lines.append(line)

    for number, target in enumerate(NODES[1:], start=1):
        source = draw(st.sampled_from(NODES[:number]))
        add(source, [target], f"{source} -> {target}{draw(st.sampled_from(['', ' if is_ready']))}")
    for _ in range(draw(st.integers(0, 4))):
        one, two, three = draw(st.permutations(NODES))[:3]
        kind = draw(st.integers(0, 2))
        if kind == 0:
            add(one, [two, three], f"{one} => {two}, {three}")
        elif kind == 1:
            add(one, [two, three], f"{one} -> {two} if is_spam else {three}")
        elif not edges & {(two, one), (three, one)}:
            edges.update({(two, one), (three, one)})
            lines.append(f"{two}, {three} => {one}")
    return "\n".join(lines)


@pytest.mark.filterwarnings("ignore")
@given(graph_texts())
def test_text_to_graph_to_code_to_graph_changes_nothing(text: str) -> None:
    namespace: dict[str, Any] = {name: Gather(f"{name}-node") for name in NODES}
    namespace |= {"is_spam": is_spam, "is_ready": is_ready}
    workflow = define_workflow(text, namespace, name="made")
    code = workflow.to_python()
    exec(code, namespace)
    assert_same(namespace["made"], workflow)
